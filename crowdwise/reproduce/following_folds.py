"""Labels -> the tuned model of every steepness, over folds that follow the consensus, as in the paper's software."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdwise.arrays import Floats
from crowdwise.exceptions import CrowdWarning
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.reproduce.stratified_ridge import N_FOLDS, stratified_folds
from crowdwise.ridge.classifier_cv import PAPER_L2S, CrowdRidgeClassifierCV
from crowdwise.ridge.preparation import Prepared, prepare
from crowdwise.ridge.problem import Task
from crowdwise.ridge.rounds import alternate
from crowdwise.ridge.tuning import TunedSums

# The weight is twice the paper's g, so its l2 is doubled wherever g is used; its unweighted method has no g.
WEIGHT_OVER_G = 2.0
# When the paper's software stopped.
MAX_ROUNDS = 25
TOL = 1e-7


@dataclass
class FollowingFolds:
    """Rounds whose folds are cut anew from the signs of the consensus.

    Parameters
    ----------
    task : Task
        What is to be learnt.
    make : callable
        Gives the problem tuned over some folds.
    """

    task: Task
    make: Callable[[NDArray[np.int64]], TunedSums]
    is_steady: bool = field(default=True, init=False)
    _fold: NDArray[np.int64] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._votes = self.task.labels.to_matrix()

    def problem(self, t: int, expertise: Floats | None, theta: Floats | None) -> TunedSums:
        """The problem of the round before, unless a sign has changed."""
        voice = np.ones(self._votes.shape[1]) if expertise is None else expertise
        fold = stratified_folds(np.sign(self._votes @ voice))
        if self._fold is None or not np.array_equal(fold, self._fold):
            self._fold, self.current = fold, self.make(fold)
        return self.current

    def settled(self, t: int, tol: float) -> bool:
        return True


@dataclass(frozen=True)
class TunedModel:
    """The model of one steepness: coefficients of the features, the l2 of its last round, and how the rounds went."""

    steepness: float
    coef: Floats
    l2: float
    n_rounds: int
    converged: bool


def tuned(X: Any, labels: CrowdLabels, steepnesses: Sequence[float]) -> list[TunedModel]:
    """The tuned model of every steepness, as the paper's software tuned it.

    Parameters
    ----------
    X : array or sparse array of shape (n_examples, n_features)
        Features.
    labels : CrowdLabels
        Their labels, -1 or +1, complete.
    steepnesses : sequence of float
        Each gets its own model, with l2 chosen anew in every round, over folds cut anew from its consensus.

    Returns
    -------
    models : list of TunedModel
        In the order of the steepnesses.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)  # whether the rounds settled goes into the row
        prepared = prepare(
            CrowdRidgeClassifierCV(), X, labels, None,
            kind="class", scale="observed", fit_intercept=True, steepest=max(steepnesses),
        )  # fmt: skip
        base = prepared.task(0.0, "mean")
        return [_tuned_model(prepared, replace(base, steepness=steepness)) for steepness in steepnesses]


def _tuned_model(prepared: Prepared, task: Task) -> TunedModel:
    l2s = np.array(PAPER_L2S) * (WEIGHT_OVER_G if task.steepness > 0 else 1.0)

    def make(fold: NDArray[np.int64]) -> TunedSums:
        plain, easy = (task.statistics(weighted=weighted, cell=fold, n_cells=N_FOLDS) for weighted in (False, True))
        return TunedSums(folds=easy, held_out=plain, targets=task.targets, intercept=True, l2s=l2s, every_round=True)

    course = FollowingFolds(task, make)
    settled = alternate(course, max_rounds=MAX_ROUNDS, tol=TOL)
    coef, _ = prepared.to_features(settled.theta)
    return TunedModel(task.steepness, coef[0], course.current.l2, settled.n_rounds, settled.converged)
