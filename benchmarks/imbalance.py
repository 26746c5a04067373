"""A rare class: throw examples of the larger class away, as the paper did, or weight classes by the consensus?

python benchmarks/imbalance.py                                  the table of docs/evidence/weighting.md
python benchmarks/imbalance.py --crowds p=5 --versions 10       another crowd, ten versions of each data set

Crowds: "p=5" are the paper's simulated annotators (ten, one who is always right and one who is always wrong), who
disagree near the boundary; "even" are ten annotators who are right with a probability of their own, from 0.65 to
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
from crowdwise.model_selection import balanced_subsample
from crowdwise.paper.reproduce.draws import Draw, too_noisy

SETS = ("w1a", "w2a", "w3a", "w5a")
CROWDS = {"p=5": 1, "even": 2}  # and a part of their seeds
METHODS = ("by truth", "by vote", "all", "balanced")
COLUMNS = ("data", "ROC by truth", *METHODS[1:], "PRC by truth", *METHODS[1:])
PLACES = {crowd: Place("docs/evidence/weighting.md", f"imbalance {crowd}") for crowd in CROWDS}


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


def version(crowd: str, data: Any, rng: np.random.Generator) -> tuple[np.ndarray, CrowdLabels]:
    """A subset with as many examples of either class, and labels of all examples."""
    for _ in range(1000):
        subset = balanced_subsample(data.truth, random_state=rng)
        labels = labels_of(crowd, data, subset, rng)
        if not too_noisy(Draw(data.X[subset], labels[subset], data.X_test, data.truth_test)):
            return subset, labels
    raise RuntimeError("every version was too noisy")


def vote_subset(labels: CrowdLabels, rng: np.random.Generator) -> np.ndarray:
    """As many examples of either class by the majority vote."""
    vote = labels.majority(tie="random", random_state=rng)
    return balanced_subsample(vote, random_state=rng)


@dataclass(frozen=True)
class Trial:
    """Areas under both curves of shape (2, n_methods), and the majority vote of a version."""

    areas: np.ndarray
    called_positive: float
    really_positive: float


def trial(crowd: str, data: Any, seed: list[int]) -> Trial:
    """One version: its labels, and all methods on them."""
    subset, labels = version(crowd, data, np.random.default_rng(seed))
    by_vote = vote_subset(labels, np.random.default_rng([*seed, 1]))
    work = (
        (data.X[subset], labels[subset], None),
        (data.X[by_vote], labels[by_vote], None),
        (data.X, labels, None),
        (data.X, labels, "balanced"),
    )
    areas = np.empty((2, len(METHODS)))
    for m, (X, own, class_weight) in enumerate(work):
        model = CrowdRidgeClassifierCV((0.0,), cv=5, tol=1e-5, class_weight=class_weight).fit(X, own)
        scores = model.decision_function(data.X_test)
        areas[:, m] = [measure(data.truth_test > 0, scores) for measure in (roc_auc_score, average_precision_score)]
    positive = labels.majority() > 0
    return Trial(areas, positive.mean(), (data.truth[positive] > 0).mean())


def table(run: Run, crowd: str, sets: tuple[str, ...], n_versions: int) -> None:
    """All data sets with the labels of one crowd."""
    rows, votes = [], []
    for name in sets:
        data = fetch_libsvm(name)
        seeds = [[SETS.index(name), CROWDS[crowd], seed] for seed in range(n_versions)]
        trials = [trial(crowd, data, seed) for seed in seeds]
        means = np.mean([each.areas for each in trials], axis=0)
        rows.append([name, *(cell for row in means for cell in bold_best([f"{mean:.3f}" for mean in row]))])
        called, really = (
            100 * np.mean([getattr(each, name) for each in trials]) for name in ("called_positive", "really_positive")
        )
        votes.append(f"{name} {called:.0f} % ({really:.0f} %)")
    note = f"Examples that the majority vote calls positive (and how many of them are): {', '.join(votes)}."
    run.table(PLACES[crowd], COLUMNS, rows, f"{n_versions} versions of each data set. {note}")


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--crowds", nargs="+", choices=CROWDS, default=["even"])
    arguments.add_argument("--versions", type=int, default=30, help="of each data set: %(default)s")
    options = arguments.parse_args()
    warnings.simplefilter("ignore", CrowdWarning)
    run = Run(options, [PLACES[crowd] for crowd in options.crowds])
    for crowd in options.crowds:
        table(run, crowd, SETS[:1] if options.quick else SETS, 2 if options.quick else options.versions)


if __name__ == "__main__":
    main()
