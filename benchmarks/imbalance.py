"""A rare class: throw examples of the larger class away, as the paper did, or weigh classes by the consensus?

python benchmarks/imbalance.py [n_versions] [crowd ...]     the table of docs/imbalance.md, crowd by crowd

Crowds: "p=1" and "p=5" are the paper's simulated annotators (ten, one who is always right and one who is always wrong),
who disagree near the boundary; "even" are ten annotators who are right with a probability of their own, from 0.65 to
0.95, anywhere. The same labels go to all methods; subsampling takes those of its examples. As in the paper, subsampling
"by truth" looks at the truth to balance, and labels by which ridge regression on its majority vote ranks the test
examples worse than chance are drawn again; "by vote" balances by the majority vote, which is all that one has in
practice. Needs w1a, w2a, w3a and w5a in the data directory.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import average_precision_score, roc_auc_score

from crowdwise import CrowdLabels, CrowdRidgeClassifierCV, simulate_annotators
from crowdwise.datasets import fetch_libsvm
from crowdwise.exceptions import CrowdWarning
from crowdwise.reproduce.draws import Draw, balanced, too_noisy
from crowdwise.reproduce.wins import count_wins, p_text

SETS = ("w1a", "w2a", "w3a", "w5a")
CROWDS = ("p=1", "p=5", "even")
STEEPNESSES = (0.0, 2.0)
METHODS = ("by truth", "by vote", "all", "balanced")


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
        if not too_noisy(Draw(data.X[subset], labels[subset], data.X_test, data.truth_test), rng):
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


def line(name: str, steepness: float, areas: np.ndarray) -> str:
    """A row of the table: means, and wins over other methods; `areas` is of shape (n_versions, 2, n_methods)."""
    cells = [name, f"{steepness:g}"]
    for measure in range(2):
        cells += [f"{mean:.3f}" for mean in areas[:, measure].mean(axis=0)]
    for better, worse in ((2, 0), (3, 0), (3, 2)):
        wins = [count_wins(areas[:, measure, better], areas[:, measure, worse]) for measure in range(2)]
        cells.append(", ".join(f"{w.wins} ({p_text(w.p_value)})" for w in wins))
    return "| " + " | ".join(cells) + " |"


def main(n_versions: int, crowds: tuple[str, ...]) -> None:
    for crowd in crowds:
        print(f"\n{crowd}, {n_versions} versions: AU-ROC, AU-PRC of {', '.join(METHODS)}; wins (p), AU-ROC then AU-PRC")
        for place, name in enumerate(SETS):
            data = fetch_libsvm(name)
            trials = [trial(crowd, data, [place, CROWDS.index(crowd), seed]) for seed in range(n_versions)]
            areas = np.array([each.areas for each in trials])
            for s, steepness in enumerate(STEEPNESSES):
                print(line(name, steepness, areas[:, :, s]))
            called, really = (
                np.mean([getattr(each, f"{x}_positive") for each in trials]) for x in ("called", "really")
            )
            print(
                f"{name}: {sum(each.unsettled for each in trials)} fits did not settle, "
                f"{sum(each.redrawn for each in trials)} versions were drawn again; the majority vote calls "
                f"{100 * called:.0f} % positive, of which {100 * really:.0f} % are",
                flush=True,
            )


if __name__ == "__main__":
    warnings.simplefilter("ignore", CrowdWarning)
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30, tuple(sys.argv[2:]) or CROWDS)
