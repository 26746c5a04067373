"""Are probabilities calibrated? Predicted beside observed on real crowds whose truth is known.

python benchmarks/calibration.py features         with features: unseen examples, and the consensus
python benchmarks/calibration.py labels           the consensus of labels alone, on all crowds

Accuracy, mean probability of the class that is chosen, and by how much the two differ in ten bins of equal size
(expected calibration error); unseen examples are the mean of five splits where the set has no test examples of its own.
"""

from __future__ import annotations

import warnings

import numpy as np
from crowd_sets import WITH_FEATURES, load, splits
from tables import Place, Run, parser

from crowdwise import CrowdLogisticClassifier, aggregate
from crowdwise.datasets import CROWD_NAMES, fetch_crowd
from crowdwise.exceptions import CrowdWarning

PLACES = {part: Place("docs/evidence/models.md", f"calibration {part}") for part in ("features", "labels")}


def calibration(proba: np.ndarray, truth: np.ndarray, n_bins: int = 10) -> tuple[float, float, float]:
    """Share right, mean probability of the class that is chosen, mean difference of the two within bins."""
    sure, right = proba.max(axis=1), proba.argmax(axis=1) == truth
    return float(right.mean()), float(sure.mean()), calibration_error(sure, right, n_bins)


def calibration_error(sure: np.ndarray, right: np.ndarray, n_bins: int = 10) -> float:
    """Mean difference, within bins of equal size, of what is stated and how often it is right."""
    bins = np.array_split(np.argsort(sure, kind="stable"), n_bins)
    return float(sum(abs(sure[rows].mean() - right[rows].mean()) * len(rows) for rows in bins if len(rows)) / len(sure))


def shown(right: float, sure: float, error: float) -> str:
    return f"{right:.3f}, {sure:.3f}, {error:.3f}"


def with_features(run: Run) -> None:
    """`CrowdLogisticClassifier` on unseen examples, and its consensus."""
    rows = []
    for name in ("zencrowd_us",) if run.quick else WITH_FEATURES:
        data, model = load(name), CrowdLogisticClassifier()
        found = [
            calibration(model.fit(part.X, data.labels[part.rows]).predict_proba(part.X_test), part.truth_test)
            for part in splits(data)
        ]
        consensus = calibration(model.fit(data.X, data.labels).consensus_proba_, data.truth)
        rows.append([name, shown(*np.mean(found, axis=0)), shown(*consensus)])
    run.table(PLACES["features"], ("crowd", "unseen, `predict_proba`", "consensus"), rows)


def labels_alone(run: Run) -> None:
    """`aggregate` on all crowds, with and without errors in common."""
    rows = []
    for name in ("bluebirds",) if run.quick else CROWD_NAMES:
        data = fetch_crowd(name)
        found = (aggregate(data.labels, errors_in_common=common).proba for common in (True, False))
        rows.append([name, *(shown(*calibration(proba, data.truth)) for proba in found)])
    run.table(PLACES["labels"], ("crowd", "`aggregate(labels)`", "`errors_in_common=False`"), rows)


PARTS = {"features": with_features, "labels": labels_alone}


def main() -> None:
    options = parser(__doc__, PARTS).parse_args()
    warnings.simplefilter("ignore", CrowdWarning)
    run = Run(options, [PLACES[part] for part in options.parts])
    for part in options.parts:
        PARTS[part](run)


if __name__ == "__main__":
    main()
