"""Are probabilities calibrated? Predicted beside observed on real crowds whose truth is known.

python benchmarks/calibration.py                   with features: unseen examples, and the consensus
python benchmarks/calibration.py labels --write    the consensus of labels alone, on all crowds
python benchmarks/calibration.py simulated         the same on simulated crowds, with and without errors in common

For unseen examples (the mean of five splits where the set has no test examples of its own): how often the classifier is
right, its mean probability of the class that it chooses, and by how much the two differ in ten bins of equal size
(expected calibration error). The same for the consensus on labelled examples. Few examples make that error larger than
nothing even if all probabilities are right: what it is then is measured with truths drawn from the probabilities.
Beside it the root of the mean squared difference within bins, its square less the part that is noise (debiased, after
Kumar, Liang and Ma 2019): the square is zero in the mean if all probabilities are right. Where bins differ, a root mean
square is larger than a mean.
"""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
from contest import same_classifier
from crowd_sets import WITH_FEATURES, CrowdSet, Split, load, splits
from scipy.stats import norm
from tables import Place, Run, parser

from crowdwise import CrowdLabels, CrowdLogisticClassifier, aggregate
from crowdwise.datasets import CROWD_NAMES, fetch_crowd
from crowdwise.exceptions import CrowdWarning

PLACE = Place("docs/evidence/models.md", "calibration")
ALONE = Place("docs/evidence/models.md", "calibration of labels alone")
SIMULATED = Place("docs/evidence/models.md", "calibration on simulated crowds")
COLUMNS = (
    "set",
    "unseen, `predict_proba`",
    "unseen, the majority's classifier",
    "consensus",
    "consensus by labels alone",
)
BOTH = ("`aggregate(labels)`", "`errors_in_common=False`")
RIGHT, DEBIASED = "error if the first were right", "debiased, of both"


def calibration(proba: np.ndarray, truth: np.ndarray, n_bins: int = 10) -> tuple[float, float, float]:
    """Share right, mean probability of the class that is chosen, mean difference of the two within bins."""
    sure, right = proba.max(axis=1), proba.argmax(axis=1) == truth
    bins = np.array_split(np.argsort(sure, kind="stable"), n_bins)
    error = sum(abs(sure[rows].mean() - right[rows].mean()) * len(rows) for rows in bins) / len(sure)
    return float(right.mean()), float(sure.mean()), float(error)


def debiased_square(proba: np.ndarray, truth: np.ndarray, n_bins: int = 10) -> float:
    """The mean squared difference within bins, without the noise of few examples: unbiased, so it may be negative.

    The square of a bin's mean is too large by the variance of that mean, which its examples tell.
    """
    sure = proba.max(axis=1)
    off = (proba.argmax(axis=1) == truth) - sure
    bins = (off[rows] for rows in np.array_split(np.argsort(sure, kind="stable"), n_bins))
    return float(sum(len(part) * part.mean() ** 2 - part.var(ddof=1) for part in bins) / len(off))


def root(square: float) -> str:
    """Of an estimated square, as shown; zero if noise made it negative."""
    return f"{np.sqrt(max(square, 0.0)):.3f}"


def if_right(proba: np.ndarray, n_draws: int = 20) -> float:
    """The expected calibration error of these probabilities if they are right: truths are drawn from them."""
    cuts, rng = proba.cumsum(axis=1)[:, :-1], np.random.default_rng(0)
    drawn = ((rng.random((len(proba), 1)) > cuts).sum(axis=1) for _ in range(n_draws))
    return float(np.mean([calibration(proba, truth)[2] for truth in drawn]))


def by_hindsight(proba: np.ndarray, truth: np.ndarray) -> float:
    """The least expected calibration error that a temperature would give, if all truths were known to choose it by."""
    powers = (np.maximum(proba, 1e-12) ** temperature for temperature in np.exp(np.arange(-15, 11) / 10))
    return min(calibration(power / power.sum(axis=1, keepdims=True), truth)[2] for power in powers)


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
    """Classifiers on unseen examples, and their consensus."""
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
        debiased = [root(debiased_square(proba, data.truth)) for proba in (found, apart)]
        rows.append([name, *cells, f"{if_right(found):.3f}", ", ".join(debiased)])
    run.table(ALONE, ("set", *BOTH, RIGHT, DEBIASED), rows)


def simulated_crowd(kind: str, n_classes: int, n_annotators: int, n_labels: int, seed: int) -> tuple[CrowdLabels, Any]:
    """Labels of 1500 examples; errors are independent, go along with a hidden variable, or examples mislead."""
    rng, n_examples = np.random.default_rng(seed), 1500
    truth, accuracy = rng.integers(0, n_classes, n_examples), rng.uniform(0.6, 0.85, n_annotators)
    who = np.array([rng.permutation(n_annotators)[:n_labels] for _ in range(n_examples)])
    right, hidden = accuracy[who], rng.normal(size=(n_examples, 1))
    common = {"hidden variable, weak": 0.2, "hidden variable, strong": 0.5}.get(kind, 0.0)
    wrong = np.sqrt(common) * hidden + np.sqrt(1 - common) * rng.normal(size=who.shape) > norm.ppf(right)
    if kind == "misleading examples":
        wrong = np.where(rng.random((n_examples, 1)) < 0.15, rng.random(who.shape) < 0.7, wrong)
    share = 0.0 if kind == "independent" else 0.5  # of errors that are the same wrong class
    mislead = (truth + rng.integers(1, n_classes, n_examples))[:, None] % n_classes
    other = (truth[:, None] + rng.integers(1, n_classes, who.shape)) % n_classes
    labels = np.where(wrong, np.where(rng.random(who.shape) < share, mislead, other), truth[:, None])
    rows = np.repeat(np.arange(n_examples), n_labels)
    table = {"example": rows, "annotator": who.ravel(), "label": labels.ravel()}
    return CrowdLabels.from_table(table, classes=range(n_classes)), truth


KINDS = ("independent", "hidden variable, weak", "hidden variable, strong", "misleading examples")
PANELS = ((6, 6), (30, 5), (30, 10))


def simulated_crowds(kind: str, quick: bool) -> Iterator[tuple[CrowdLabels, Any]]:
    """All panels, classes and seeds."""
    for place, (panel, n_classes) in enumerate(product(PANELS[:1] if quick else PANELS, (2, 3, 5))):
        for seed in range(1 if quick else 3):
            yield simulated_crowd(kind, n_classes, *panel, 100 * place + seed)


def simulated(run: Run, options: Namespace) -> None:
    """`aggregate` on simulated crowds: the mean over panels, classes and seeds."""
    rows = []
    for kind in KINDS:
        figures: list[tuple[float, ...]] = []
        for labels, truth in simulated_crowds(kind, options.quick):
            found, apart = (aggregate(labels, errors_in_common=common) for common in (True, False))
            off = [calibration(one.proba, truth) for one in (found, apart)]
            squares = [debiased_square(one.proba, truth) for one in (found, apart)]
            figures.append((*off[0], *off[1], if_right(found.proba, 5), *squares, off[0][2]))
        mean = np.mean(figures, axis=0)
        span = f"{min(row[-1] for row in figures):.3f} to {max(row[-1] for row in figures):.3f}"
        debiased = f"{root(mean[7])}, {root(mean[8])}"
        rows.append([kind, shown(*mean[:3]), span, shown(*mean[3:6]), f"{mean[6]:.3f}", debiased])
    run.table(SIMULATED, ("errors", BOTH[0], "its errors", BOTH[1], RIGHT, DEBIASED), rows)


PARTS = {"features": with_features, "labels": labels_alone, "simulated": simulated}


def main() -> None:
    options = parser(__doc__, PARTS).parse_args()
    warnings.simplefilter("ignore", CrowdWarning)
    places = {"features": PLACE, "labels": ALONE, "simulated": SIMULATED}
    run = Run(options, [places[part] for part in options.parts])
    for part in options.parts:
        PARTS[part](run, options)


if __name__ == "__main__":
    main()
