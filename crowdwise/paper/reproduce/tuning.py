"""Models tuned as the paper's software tuned them: over folds cut from every stratum in the order of the rows.

The strata are the signs of what is to be learned. Nothing is shuffled, and rows stand class by class, so a fold is not
a random part of the data: where labels are noisy, the folds differ in the truth of their examples, and cross-validation
asks for more regularisation than it would over random folds. With a crowd's labels, folds follow the consensus.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdwise._arrays import Codes, Floats
from crowdwise.exceptions import CrowdWarning
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.ridge.classifier import PAPER_L2S
from crowdwise.ridge.data import RidgeData
from crowdwise.ridge.problem import L2Choice, SumsProblem, Weights
from crowdwise.ridge.rounds import RoundWeights, alternate
from crowdwise.ridge.solver import Spectrum, held_out_errors, leave_one_out
from crowdwise.ridge.statistics import Statistics, row_sums
from crowdwise.rows.features import Rows, row_space
from crowdwise.training_set import TrainingSet

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
    values = np.asarray(target, dtype=np.float64)[:, np.newaxis]
    gram, cross = row_sums(rows, None, values.__getitem__, 1, stratified_folds(np.sign(target)), N_FOLDS)
    training, l2s = leave_one_out(N_FOLDS), np.array(PAPER_L2S)
    spectrum = Spectrum.of(np.tensordot(training, gram, axes=1), intercept=True)
    path = spectrum.solve(np.tensordot(training, cross, axes=1), l2s)
    best = int(held_out_errors(gram, cross, path[:-1], 1.0).argmin())
    theta = path[-1, :, best] if space is None else space.to_features(path[-1, :, best])
    coef = theta[:-1, 0]
    return TunedRidge(coef, float(theta[-1, 0] - original.shift @ coef), float(l2s[best]))


@dataclass(eq=False)
class FollowingFolds(SumsProblem):
    """A problem whose folds are cut anew from the signs of the consensus."""

    votes: Floats  # (n_examples, n_annotators): labels, -1 or +1
    fold: Codes

    def solve(self, expertise: Floats | None) -> Floats:
        """theta over the folds of the round before, unless a sign has changed."""
        fold = _folds_of(self.votes, np.ones(self.votes.shape[1]) if expertise is None else expertise)
        if not np.array_equal(fold, self.fold):
            self.fold, self._spectrum = fold, None
            self.easy, self.plain = _fold_sums(self.weights, fold)
            for name in ("sums", "whole", "precision"):  # of the folds before
                vars(self).pop(name, None)
        return super().solve(expertise)


def _folds_of(votes: Floats, expertise: Floats) -> Codes:
    return stratified_folds(np.sign(votes @ expertise))


def _fold_sums(weights: Weights, fold: Codes) -> tuple[Statistics, Statistics]:
    """Sums weighted by easiness, and sums that are not."""
    data = weights.data
    return data.sums(weights.example, fold, N_FOLDS), data.sums(None, fold, N_FOLDS)


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
    weights, votes = RoundWeights(data, steepness), data.labels.to_matrix()
    fold = _folds_of(votes, np.ones(votes.shape[1]))
    problem = FollowingFolds(data, choice, weights.first, *_fold_sums(weights.first, fold), votes, fold)
    settled, _ = alternate(problem, weights, MAX_ROUNDS, TOL)
    coef, _ = data.to_features(settled.theta)
    return TunedModel(steepness, coef[0], choice.l2, settled.n_rounds, settled.converged)
