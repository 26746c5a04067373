"""Are probabilities calibrated? Predicted beside observed on real crowds whose truth is known.

python benchmarks/calibration.py                   with features: unseen examples, and the consensus
python benchmarks/calibration.py labels --write    the consensus of labels alone, on all crowds

For unseen examples (the mean of five splits where the set has no test examples of its own): how often the classifier is
right, its mean probability of the class that it chooses, and by how much the two differ in ten bins of equal size
(expected calibration error). The same for the consensus on labelled examples. Few examples make that error larger than
nothing even if all probabilities are right: what it is then is measured with truths drawn from the probabilities.
"""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Callable

import numpy as np
from contest import same_classifier
from crowd_sets import WITH_FEATURES, CrowdSet, Split, load, splits
from tables import Place, Run, parser

from crowdwise import CrowdLabels, CrowdLogisticClassifier, aggregate
from crowdwise.datasets import CROWD_NAMES, fetch_crowd
from crowdwise.exceptions import CrowdWarning

PLACE = Place("docs/evidence/models.md", "calibration")
ALONE = Place("docs/evidence/models.md", "calibration of labels alone")
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


def if_right(proba: np.ndarray, n_draws: int = 20) -> float:
    """The expected calibration error of these probabilities if they are right: truths are drawn from them."""
    cuts, rng = proba.cumsum(axis=1)[:, :-1], np.random.default_rng(0)
    drawn = ((rng.random((len(proba), 1)) > cuts).sum(axis=1) for _ in range(n_draws))
    return float(np.mean([calibration(proba, truth)[2] for truth in drawn]))


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


def with_features(run: Run, options: Namespace) -> None:
    """Classifiers on unseen examples, and the consensus that they learnt."""
    rows = []
    for name in ("medical_cause",) if options.quick else WITH_FEATURES:
        data = load(name)
        fitted = CrowdLogisticClassifier().fit(data.X, data.labels)
        cells = [unseen(method, data) for method in (by_the_crowd, by_majority)]
        cells += [shown(*calibration(proba, data.truth)) for proba in (fitted.consensus_proba_, fitted.label_proba_)]
        rows.append([name, *cells])
    run.table(PLACE, COLUMNS, rows)


def labels_alone(run: Run, options: Namespace) -> None:
    """`aggregate` on all crowds, with and without errors in common."""
    rows = []
    for name in ("bluebirds",) if options.quick else CROWD_NAMES:
        data = fetch_crowd(name)
        found, apart = (aggregate(data.labels, errors_in_common=common).proba for common in (True, False))
        cells = [shown(*calibration(proba, data.truth)) for proba in (found, apart)]
        rows.append([name, *cells, f"{if_right(found):.3f}"])
    columns = ("set", "`aggregate(labels)`", "`errors_in_common=False`", "error if the first were right")
    run.table(ALONE, columns, rows)


PARTS = {"features": with_features, "labels": labels_alone}


def main() -> None:
    options = parser(__doc__, PARTS).parse_args()
    warnings.simplefilter("ignore", CrowdWarning)
    places = {"features": PLACE, "labels": ALONE}
    run = Run(options, [places[part] for part in options.parts])
    for part in options.parts:
        PARTS[part](run, options)


if __name__ == "__main__":
    main()
