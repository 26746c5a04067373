"""A rare class: throw examples of the larger class away, as the paper did, or weight classes by the consensus?

python benchmarks/imbalance.py                                  the tables of docs/evidence/imbalance.md, crowd by crowd
python benchmarks/imbalance.py --crowds even --versions 10      one of them, ten versions of each data set

Crowds: "p=1" and "p=5" are the paper's simulated annotators (ten, one who is always right and one who is always wrong),
who disagree near the boundary; "even" are ten annotators who are right with a probability of their own, from 0.65 to
0.95, anywhere. The same labels go to all methods; subsampling takes those of its examples. As in the paper, subsampling
"by truth" looks at the truth to balance, and labels by which ridge regression on its majority vote ranks the test
examples worse than chance are drawn again; "by vote" balances by the majority vote, which is all that one has in
practice. Needs w1a, w2a, w3a and w5a in the data directory.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import average_precision_score, roc_auc_score
from tables import Place, Run, bold_best, parser

from crowdwise import CrowdLabels, CrowdRidgeClassifierCV, simulate_annotators
from crowdwise.datasets import fetch_libsvm
from crowdwise.exceptions import CrowdWarning
from crowdwise.paper.reproduce.draws import Draw, balanced, too_noisy
from crowdwise.paper.reproduce.wins import count_wins, p_text

SETS = ("w1a", "w2a", "w3a", "w5a")
CROWDS = ("p=1", "p=5", "even")
STEEPNESSES = (0.0, 2.0)
METHODS = ("by truth", "by vote", "all", "balanced")
PAIRS = ((2, 0), (3, 0), (3, 2))  # methods compared, the first with the second
COLUMNS = (
    "data", "steepness", "ROC by truth", *METHODS[1:], "PRC by truth", *METHODS[1:],
    *(f"{METHODS[better]} : {METHODS[worse]}" for better, worse in PAIRS),
)  # fmt: skip
PLACES = {crowd: Place("docs/evidence/imbalance.md", f"imbalance {crowd}") for crowd in CROWDS}


def labels_of(crowd: str, data: Any, subset: np.ndarray, rng: np.random.Generator) -> CrowdLabels:
    """Labels of all training examples."""
    if crowd == "even":
        right = rng.random((len(data.truth), 10)) < rng.uniform(0.65, 0.95, 10)
        return CrowdLabels.from_matrix(np.where(right, data.truth[:, np.newaxis], -data.truth[:, np.newaxis]))
    # As clear as in the paper's version, in which there is the subset only.
    scores = RidgeClassifier(alpha=1.0).fit(data.X[subset], data.truth[subset]).decision_function(data.X)
    scores = np.clip(scores / np.abs(scores[subset]).max(), -1, 1)
    clarity = float(crowd.removeprefix("p="))
    return simulate_annotators(
        data.X, data.truth, 10, clarity=clarity, experts=1, adversaries=1, scores=scores, random_state=rng
    )


def version(crowd: str, data: Any, rng: np.random.Generator) -> tuple[np.ndarray, CrowdLabels, int]:
    """A subset with as many examples of either class, labels of all examples, and how often they were drawn again."""
    for redrawn in range(1000):
        subset = balanced(np.arange(len(data.truth)), data.truth, rng)
        labels = labels_of(crowd, data, subset, rng)
        if not too_noisy(Draw(data.X[subset], labels[subset], data.X_test, data.truth_test)):
            return subset, labels, redrawn
    raise RuntimeError("every version was too noisy")


def vote_subset(labels: CrowdLabels, rng: np.random.Generator) -> np.ndarray:
    """As many examples of either class by the majority vote."""
    vote = labels.majority(tie="random", random_state=rng)
    return balanced(np.arange(len(labels)), vote, rng)


@dataclass(frozen=True)
class Trial:
    """Areas under both curves of shape (2, n_steepnesses, n_methods), and what else there is to say about a version."""

    areas: np.ndarray
    unsettled: int
    redrawn: int
    called_positive: float
    really_positive: float


def trial(crowd: str, data: Any, seed: list[int]) -> Trial:
    """One version: its labels, and all methods on them."""
    subset, labels, redrawn = version(crowd, data, np.random.default_rng(seed))
    by_vote = vote_subset(labels, np.random.default_rng([*seed, 1]))
    work = (
        (data.X[subset], labels[subset], None),
        (data.X[by_vote], labels[by_vote], None),
        (data.X, labels, None),
        (data.X, labels, "balanced"),
    )
    areas, unsettled = np.empty((2, len(STEEPNESSES), len(METHODS))), 0
    for m, (X, own, class_weight) in enumerate(work):
        for s, steepness in enumerate(STEEPNESSES):
            model = CrowdRidgeClassifierCV((steepness,), cv=5, tol=1e-5, class_weight=class_weight).fit(X, own)
            scores = model.decision_function(data.X_test)
            areas[:, s, m] = [
                measure(data.truth_test > 0, scores) for measure in (roc_auc_score, average_precision_score)
            ]
            unsettled += not model.converged_
    positive = labels.majority() > 0
    return Trial(areas, unsettled, redrawn, positive.mean(), (data.truth[positive] > 0).mean())


def line(name: str, steepness: float, areas: np.ndarray) -> list[str]:
    """A row of the table: means, and wins over other methods; `areas` is of shape (n_versions, 2, n_methods)."""
    cells = [name, f"{steepness:g}"]
    for measure in range(2):
        cells += bold_best([f"{mean:.3f}" for mean in areas[:, measure].mean(axis=0)])
    for better, worse in PAIRS:
        wins = [count_wins(areas[:, measure, better], areas[:, measure, worse]) for measure in range(2)]
        cells.append(", ".join(f"{w.wins} ({p_text(w.p_value)})" for w in wins))
    return cells


def note(n_versions: int, found: dict[str, list[Trial]]) -> str:
    """What the table does not show: the majority vote, and the fits."""
    votes = [
        f"{name} {100 * np.mean([each.called_positive for each in trials]):.0f} % "
        f"({100 * np.mean([each.really_positive for each in trials]):.0f} %)"
        for name, trials in found.items()
    ]
    every = [each for trials in found.values() for each in trials]
    return (
        f"{n_versions} versions of each data set. Examples that the majority vote calls positive (and how many of them "
        f"are): {', '.join(votes)}. Fits that did not settle: {sum(each.unsettled for each in every)}; versions drawn "
        f"again: {sum(each.redrawn for each in every)}."
    )


def table(run: Run, crowd: str, sets: tuple[str, ...], n_versions: int) -> None:
    """All data sets with the labels of one crowd."""
    rows, found = [], {}
    for name in sets:
        data = fetch_libsvm(name)
        seeds = [[SETS.index(name), CROWDS.index(crowd), seed] for seed in range(n_versions)]
        found[name] = [trial(crowd, data, seed) for seed in seeds]
        areas = np.array([each.areas for each in found[name]])
        rows += [line(name, steepness, areas[:, :, s]) for s, steepness in enumerate(STEEPNESSES)]
    run.table(PLACES[crowd], COLUMNS, rows, note(n_versions, found))


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--crowds", nargs="+", choices=CROWDS, default=CROWDS)
    arguments.add_argument("--versions", type=int, default=30, help="of each data set: %(default)s")
    options = arguments.parse_args()
    warnings.simplefilter("ignore", CrowdWarning)
    run = Run(options, [PLACES[crowd] for crowd in options.crowds])
    for crowd in options.crowds:
        table(run, crowd, SETS[:1] if options.quick else SETS, 2 if options.quick else options.versions)


if __name__ == "__main__":
    main()
