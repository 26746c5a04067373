"""Labels -> the tuned model of every steepness, over folds that follow the consensus, as in the paper's software."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from crowdwise._arrays import Codes, Floats
from crowdwise.exceptions import CrowdWarning
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.paper.reproduce.stratified_ridge import N_FOLDS, stratified_folds
from crowdwise.ridge.classifier_cv import PAPER_L2S
from crowdwise.ridge.data import RidgeData
from crowdwise.ridge.expertise import Precision
from crowdwise.ridge.problem import L2Choice, SumsProblem
from crowdwise.ridge.rounds import Weighting, Weights, WeightSequence, alternate
from crowdwise.training_set import TrainingSet
from crowdwise.weights.curricula import Fixed

# The weight is twice the paper's g, so its l2 is doubled wherever g is used; its unweighted method has no g.
WEIGHT_OVER_G = 2.0
# When the paper's software stopped.
MAX_ROUNDS = 25
TOL = 1e-7


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
