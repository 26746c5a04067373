"""Logistic regression as the prior of the rounds: in sample, or out of fold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from crowdwise.arrays import Codes, Floats
from crowdwise.em.temperature import ClassScores
from crowdwise.softmax.models import SoftmaxModels
from crowdwise.softmax.rows import SoftmaxRows
from crowdwise.weights.round_weights import SoftTargets

# Steps of the optimiser in one round: it goes on from where it was in the next. Where nothing comes after, it stops by
# itself before it has made so many.
_FIRST_STEPS, _STEPS_PER_ROUND, STEPS_TO_SETTLE = 10, 2, 500
# No further steps if it is this close, or within the tolerance of the rounds if that is closer.
CLOSE = 1e-6
# No fold is left out.
_NONE = np.array([-1])

# Share of the last round's out-of-fold probabilities that is kept: else two examples may change each other in turn.
DAMPING = 0.5


@dataclass(frozen=True)
class SoftmaxData:
    """What a logistic regression is fitted with, besides its targets."""

    X: Any  # ndarray or sparse matrix of shape (n_examples, n_features)
    shift: Floats | None  # (n_features,): subtracted from them
    l2: float  # strength of the penalty
    class_prior: float  # examples added in the middle of the features, evenly of all classes
    fit_intercept: bool  # whether there is an intercept
    close: float = CLOSE  # how close to the lowest loss is close enough

    def models(self, fold: Codes, theta: Floats | None = None) -> SoftmaxModels:
        """A model for every fold, which leaves that fold out."""
        rows = SoftmaxRows(self.X, self.shift, fold, self.fit_intercept, self.class_prior)
        return SoftmaxModels(rows, np.arange(rows.n_folds), self.l2, theta)

    def model(self, theta: Floats | None = None) -> SoftmaxModels:
        """One model of all rows."""
        whole = np.zeros(self.X.shape[0], dtype=np.int64)
        rows = SoftmaxRows(self.X, self.shift, whole, self.fit_intercept, self.class_prior)
        return SoftmaxModels(rows, _NONE, self.l2, theta)


@dataclass
class InSample:
    """One classifier for all examples, as in the paper of Raykar et al."""

    model: SoftmaxModels
    close: float = CLOSE  # how close to the lowest loss is close enough
    temperature: float = field(default=1.0, init=False)

    def update(self, targets: SoftTargets, log_likelihood: Floats) -> Floats:
        return _scores(self.model, targets, self.close, _STEPS_PER_ROUND).log_proba(1.0)

    def log_density(self) -> float:
        return self.model.log_density()


@dataclass
class SoftmaxFolds:
    """A classifier per fold, fitted to the other folds, all at once."""

    models: SoftmaxModels  # model k leaves fold k out
    close: float = CLOSE  # how close to the lowest loss is close enough
    # Steps of the optimiser in one round; of many examples, rounds settle as soon with one as with several.
    n_steps: int = _STEPS_PER_ROUND

    def out_of_fold(self, targets: SoftTargets) -> ClassScores:
        return _scores(self.models, targets, self.close, self.n_steps)

    def as_they_are(self, targets: SoftTargets) -> ClassScores:
        """What models say that have been fitted before; only weights and what classes count is read of the targets."""
        scores = self.models.scores_as_they_are(targets.by_class()[1])
        return ClassScores(scores, targets.class_weight, are_probabilities=True)


def _scores(models: SoftmaxModels, targets: SoftTargets, close: float, n_steps: int) -> ClassScores:
    """What models some steps further say about the rows that they leave out."""
    models.fit(*targets.by_class(), max_steps=_FIRST_STEPS if models.theta is None else n_steps, tol=close)
    return ClassScores(models.held_out_scores, targets.class_weight, are_probabilities=True)
