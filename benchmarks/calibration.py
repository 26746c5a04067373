"""Are probabilities calibrated? Predicted beside observed on real crowds whose truth is known.

python benchmarks/calibration.py

For unseen examples (the mean of five splits where the set has no test examples of its own): how often the classifier is
right, its mean probability of the class that it chooses, and by how much the two differ in ten bins of equal size
(expected calibration error). The same for the consensus on labelled examples.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from contest import same_classifier
from crowd_sets import WITH_FEATURES, CrowdSet, Split, load, splits
from tables import Place, Run, parser

from crowdwise import CrowdLabels, CrowdLogisticClassifier
from crowdwise.exceptions import CrowdWarning

PLACE = Place("docs/evidence/models.md", "calibration")
COLUMNS = (
    "set",
    "unseen, `predict_proba`",
    "unseen, the majority's classifier",
    "consensus",
    "consensus by labels alone",
)


def calibration(proba: np.ndarray, truth: np.ndarray, n_bins: int = 10) -> tuple[float, float, float]:
    """Share right, mean probability of the class that is chosen, mean difference of the two within bins."""
    sure, right = proba.max(axis=1), proba.argmax(axis=1) == truth
    bins = np.array_split(np.argsort(sure, kind="stable"), n_bins)
    error = sum(abs(sure[rows].mean() - right[rows].mean()) * len(rows) for rows in bins) / len(sure)
    return float(right.mean()), float(sure.mean()), float(error)


def by_the_crowd(split: Split, labels: CrowdLabels) -> np.ndarray:
    return CrowdLogisticClassifier().fit(split.X, labels).predict_proba(split.X_test)


def by_majority(split: Split, labels: CrowdLabels) -> np.ndarray:
    assert labels.classes is not None
    scores, _ = same_classifier(split.X, labels.majority(), len(labels.classes))
    return scores(split.X_test)


def unseen(method: Callable[[Split, CrowdLabels], np.ndarray], data: CrowdSet) -> str:
    found = [calibration(method(part, data.labels[part.rows]), part.truth_test) for part in splits(data)]
    return shown(*np.mean(found, axis=0))


def shown(right: float, sure: float, error: float) -> str:
    return f"{right:.3f}, {sure:.3f}, {error:.3f}"


def main() -> None:
    options = parser(__doc__).parse_args()
    warnings.simplefilter("ignore", CrowdWarning)
    run = Run(options, [PLACE])
    rows = []
    for name in ("medical_cause",) if options.quick else WITH_FEATURES:
        data = load(name)
        fitted = CrowdLogisticClassifier().fit(data.X, data.labels)
        cells = [unseen(method, data) for method in (by_the_crowd, by_majority)]
        cells += [shown(*calibration(proba, data.truth)) for proba in (fitted.consensus_proba_, fitted.label_proba_)]
        rows.append([name, *cells])
    run.table(PLACE, COLUMNS, rows)


if __name__ == "__main__":
    main()
