"""Models tuned as the paper's software tuned them: over folds cut from every stratum in the order of the rows.

The strata are the signs of what is to be learned. Nothing is shuffled, and rows stand class by class, so a fold is not
a random part of the data: where labels are noisy, the folds differ in the truth of their examples, and cross-validation
asks for more regularisation than it would over random folds. With a crowd's labels, folds follow the consensus.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdwise._arrays import Codes, Floats
from crowdwise.exceptions import CrowdWarning
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.ridge.classifier import PAPER_L2S
from crowdwise.ridge.collect import row_sums, values_from
from crowdwise.ridge.data import RidgeData
from crowdwise.ridge.problem import L2Choice, SumsProblem
from crowdwise.ridge.rounds import Precision, Weighting, Weights, WeightSequence, alternate
from crowdwise.ridge.solver import Spectrum, held_out_errors, leave_one_out
from crowdwise.rows.features import Rows, row_space
from crowdwise.training_set import TrainingSet
from crowdwise.weights.curricula import Fixed

N_FOLDS = 10
# The weight is twice the paper's g, so its l2 is doubled wherever g is used; its unweighted method has no g.
WEIGHT_OVER_G = 2.0
# When the paper's software stopped.
MAX_ROUNDS = 25
TOL = 1e-7


def stratified_folds(strata: NDArray[Any], n_folds: int = N_FOLDS) -> NDArray[np.int64]:
    """A fold for every row: each stratum is cut into stretches, in the order of its rows.

    The first folds take what is left over.

    Examples
    --------
    >>> import numpy as np
    >>> stratified_folds(np.array([1, 1, -1, 1, -1]), n_folds=2).tolist()
    [0, 0, 0, 1, 1]
    """
    fold = np.empty(len(strata), dtype=np.int64)
    for stratum in np.unique(strata):
        members = np.flatnonzero(strata == stratum)
        stretches = np.array_split(members, n_folds)
        fold[members] = np.repeat(np.arange(n_folds), [len(stretch) for stretch in stretches])
    return fold


@dataclass(frozen=True)
class TunedRidge:
    """A linear model and the l2 that was chosen for it."""

    coef: Floats
    intercept: float
    l2: float

    def scores(self, X: Any) -> Floats:
        """The score of every row."""
        return np.asarray(X @ self.coef) + self.intercept


def tuned_ridge(X: Any, target: NDArray[Any]) -> TunedRidge:
    """Ridge regression with the l2 of the paper's grid that has the smallest held-out squared error.

    Folds are stratified by the signs of the target.
    """
    original = Rows.of(X, intercept=True)
    space = row_space(original)
    rows = original if space is None else space.rows
    values = values_from(np.asarray(target, dtype=np.float64)[:, np.newaxis])
    gram, cross = row_sums(rows, None, values, 1, stratified_folds(np.sign(target)), N_FOLDS)
    training, l2s = leave_one_out(N_FOLDS), np.array(PAPER_L2S)
    spectrum = Spectrum.of(np.tensordot(training, gram, axes=1), intercept=True)
    path = spectrum.solve(np.tensordot(training, cross, axes=1), l2s)
    best = int(held_out_errors(gram, cross, path[:-1], 1.0).argmin())
    theta = path[-1, :, best] if space is None else space.to_features(path[-1, :, best])
    coef = theta[:-1, 0]
    return TunedRidge(coef, float(theta[-1, 0] - original.shift @ coef), float(l2s[best]))


@dataclass(eq=False)
class FollowingFolds:
    """A problem whose folds are cut anew from the signs of the consensus."""

    data: RidgeData  # what is to be learned from
    easiness: Floats  # (n_examples,): the weights
    choice: L2Choice  # the l2, chosen in every round
    rank: int = field(default=0, init=False)
    _fold: Codes | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._votes = self.data.labels.to_matrix()

    @property
    def precision(self) -> Precision:
        return self.current.precision

    @property
    def l2(self) -> float:
        return self.choice.l2

    def at(self, weights: Weights) -> FollowingFolds:
        """The weights are the same in every round."""
        return self

    def solve(self, expertise: Floats | None) -> Floats:
        """theta over the folds of the round before, unless a sign has changed."""
        fold = stratified_folds(
            np.sign(self._votes @ (np.ones(self._votes.shape[1]) if expertise is None else expertise))
        )
        if self._fold is None or not np.array_equal(fold, self._fold):
            plain, easy = (self.data.sums(weight, fold, N_FOLDS) for weight in (None, self.easiness))
            self._fold, self.current = fold, SumsProblem(self.data, easy, plain, self.choice)
        return self.current.solve(expertise)

    def squared_errors(self, theta: Floats) -> Floats:
        return self.current.squared_errors(theta)


@dataclass(frozen=True)
class TunedModel:
    """The model of one steepness: coefficients of the features, the l2 of its last round, and how the rounds went."""

    steepness: float
    coef: Floats
    l2: float
    n_rounds: int
    converged: bool


def tuned(X: Any, labels: CrowdLabels, steepnesses: Sequence[float]) -> list[TunedModel]:
    """The tuned model of every steepness, as the paper's software tuned it: of complete labels, -1 or +1.

    The l2 is chosen anew in every round, over folds cut anew from the consensus.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)  # whether the rounds settled goes into the row
        training = TrainingSet.of(X, labels, None, weighting=max(steepnesses) > 0)
        data = RidgeData.of(training, intercept=True, init="mean")
        return [_tuned_model(data, steepness) for steepness in steepnesses]


def _tuned_model(data: RidgeData, steepness: float) -> TunedModel:
    choice = L2Choice(np.array(PAPER_L2S) * (WEIGHT_OVER_G if steepness > 0 else 1.0), every_round=True)
    easiness = data.easiness(steepness)
    weights = WeightSequence(data, steepness, Weighting(Fixed()))
    settled, _ = alternate(FollowingFolds(data, easiness, choice), weights, max_rounds=MAX_ROUNDS, tol=TOL)
    coef, _ = data.to_features(settled.theta)
    return TunedModel(steepness, coef[0], choice.l2, settled.n_rounds, settled.converged)
