"""Logistic regression as the prior of the rounds: in sample, or out of fold; and its penalty by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdwise.arrays import Floats
from crowdwise.em.softmax import SoftmaxModels, SoftmaxRows, log_softmax
from crowdwise.em.temperature import ClassScores
from crowdwise.weights.round_weights import SoftTargets

# Steps of the optimiser in one round: it goes on from where it was in the next.
_STEPS_PER_ROUND = 3
# Where nothing comes after; it stops by itself before.
_STEPS_TO_SETTLE, _SETTLED = 1000, 1e-7
# For the penalties to choose from.
_STEPS_TO_CHOOSE = 30
# Penalties to choose from, for features of variance one, the simplest classifier first.
_PENALTIES = np.array([1e3, 1e2, 1e1, 1e0, 1e-1])
# How many examples are enough to choose one.
_ENOUGH = 20_000
# No fold is left out.
_NONE = np.array([-1])


@dataclass(frozen=True)
class SoftmaxData:
    """What a logistic regression is fitted with, besides its targets.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_examples, n_features)
        Features.
    shift : ndarray of shape (n_features,) or None
        Subtracted from them.
    l2 : float
        Strength of the penalty.
    class_prior : float
        Examples added in the middle of the features, evenly of all classes.
    fit_intercept : bool
        Whether there is an intercept.
    """

    X: Any
    shift: Floats | None
    l2: float
    class_prior: float
    fit_intercept: bool

    def rows(self, fold: NDArray[np.int64] | None = None) -> SoftmaxRows:
        """The rows, in one part or in folds."""
        fold = np.zeros(self.X.shape[0], dtype=np.int64) if fold is None else fold
        return SoftmaxRows(self.X, self.shift, fold, self.fit_intercept, self.class_prior)

    def model(self) -> SoftmaxModels:
        """One model of all rows."""
        return SoftmaxModels(self.rows(), _NONE, np.array([self.l2]))

    def fit(self, targets: SoftTargets, start: Floats | None = None) -> Floats:
        """Coefficients of one model of all rows, to the end, beginning with the mean of those of other models."""
        model = self.model()
        model.theta = None if start is None else start.mean(axis=1, keepdims=True)
        return model.fit(*targets.by_class(), max_steps=_STEPS_TO_SETTLE, tol=_SETTLED)[:, 0]


@dataclass
class InSample:
    """One classifier for all examples, as in the paper of Raykar et al.; the objective never falls.

    Parameters
    ----------
    model : SoftmaxModels
        One model.
    """

    model: SoftmaxModels
    temperature: float = field(default=1.0, init=False)

    def update(self, targets: SoftTargets, log_likelihood: Floats) -> Floats:
        theta = self.model.fit(*targets.by_class(), max_steps=_STEPS_PER_ROUND)
        log_proba = log_softmax(self.model.rows.scores(theta[:, 0]))
        return ClassScores(log_proba, targets.class_weight, are_probabilities=True).log_proba(1.0)

    def log_density(self) -> float:
        return self.model.log_density()


@dataclass
class SoftmaxFolds:
    """A classifier per fold, fitted to the other folds, all at once.

    Parameters
    ----------
    models : SoftmaxModels
        Model k leaves fold k out.
    """

    models: SoftmaxModels

    @classmethod
    def of(cls, data: SoftmaxData, fold: NDArray[np.int64]) -> SoftmaxFolds:
        """A model for every fold."""
        n_folds = int(fold.max()) + 1
        return cls(SoftmaxModels(data.rows(fold), np.arange(n_folds), np.full(n_folds, data.l2)))

    def out_of_fold(self, targets: SoftTargets) -> ClassScores:
        self.models.fit(*targets.by_class(), max_steps=_STEPS_PER_ROUND)
        return ClassScores(log_softmax(self.models.held_out_scores()), targets.class_weight, are_probabilities=True)


def best_penalty(
    data: SoftmaxData, targets: SoftTargets, fold: NDArray[np.int64], variance: float
) -> tuple[float, Floats | None]:
    """A penalty for features of variance one by cross-validation with the one-standard-error rule, and its models.

    Held-out examples are scored by the log-likelihood of the first consensus, not of the labels: where features predict
    what misleads annotators, a classifier of fine distinctions explains labels best and the truth worse. The largest
    penalty within a standard error of the best is taken (Breiman et al.). All penalties and folds are fitted at once.

    Parameters
    ----------
    data : SoftmaxData
        Features; their penalty is not used.
    targets : SoftTargets
        The first consensus.
    fold : ndarray of shape (n_examples,)
        Which part each example is held out with.
    variance : float
        Of an average feature.

    Returns
    -------
    penalty : float
    theta : ndarray of shape (n_features + 1, n_folds, n_outputs) or None
        Coefficients of the models that leave a fold out: where rounds with these folds may begin.
    """
    some = np.arange(len(fold))
    if len(some) > _ENOUGH:
        some = np.sort(np.random.default_rng(0).choice(len(some), _ENOUGH, replace=False))
    posterior, weight = (part[some] for part in targets.by_class())
    fold = np.unique(fold[some], return_inverse=True)[1]
    n_folds = int(fold.max()) + 1
    if n_folds < 2 or not all(weight[fold != k].any() for k in range(n_folds)):
        return 1.0, None
    rows = SoftmaxRows(data.X[some], data.shift, fold, data.fit_intercept, data.class_prior)
    left_out, l2 = np.tile(np.arange(n_folds), len(_PENALTIES)), np.repeat(variance * _PENALTIES, n_folds)
    models = SoftmaxModels(rows, left_out, l2)
    theta = models.fit(posterior, weight, max_steps=_STEPS_TO_CHOOSE)
    found = [
        (posterior * log_softmax(models.held_out_scores(s * n_folds + np.arange(n_folds)))).sum(axis=1)
        for s in range(len(_PENALTIES))
    ]
    best = simplest_of_the_best(np.array(found), weight)
    if len(some) < _ENOUGH:  # nothing is saved, and a penalty that was found gives the bits of one that was given
        return float(_PENALTIES[best]), None
    return float(_PENALTIES[best]), theta[:, best * n_folds : (best + 1) * n_folds].copy()


def simplest_of_the_best(scores: Floats, weight: Floats) -> int:
    """The first of several candidates that is not worse than the best by more than a standard error of the best.

    Parameters
    ----------
    scores : ndarray of shape (n_candidates, n_examples)
        How well each does on every example, the simplest first.
    weight : ndarray of shape (n_examples,)
        How often each example counts.

    Returns
    -------
    position : int
    """
    share = weight / weight.sum()
    mean = scores @ share
    best = mean.argmax()
    error = np.sqrt(share @ (scores[best] - mean[best]) ** 2 / weight.sum())
    return int((mean >= mean[best] - error).argmax())
