"""Features -> class probabilities of logistic regression as the prior of the rounds: in sample, or out of fold."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdwise.arrays import Floats
from crowdwise.em.softmax import fit_softmax, log_probabilities
from crowdwise.em.temperature import ClassScores
from crowdwise.weights.round_weights import SoftTargets

# Steps of the optimiser in one round: it goes on from where it was in the next.
_STEPS_PER_ROUND = 10
# With each of the penalties to choose from: it goes on with the next.
_STEPS_PER_PENALTY = 30
# And where nothing comes after; it stops by itself before.
_STEPS_TO_SETTLE = 1000
# Penalties to choose from, for features of variance one, the simplest classifier first.
_PENALTIES = np.array([1e3, 1e2, 1e1, 1e0, 1e-1])
# How many examples are enough to choose one.
_ENOUGH = 20_000


@dataclass(frozen=True)
class SoftmaxData:
    """What a logistic regression is fitted with, besides its targets.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_examples, n_features)
        Scaled features.
    l2 : ndarray of shape (n_features,)
        Strength of the penalty of each feature.
    class_prior : float
        Examples added in the middle of the features, evenly of all classes.
    fit_intercept : bool
        Whether there is an intercept.
    """

    X: Any
    l2: Floats
    class_prior: float
    fit_intercept: bool

    def fit(
        self,
        targets: SoftTargets,
        start: Floats | None = None,
        rows: NDArray[np.bool_] | slice = slice(None),
        max_steps: int = _STEPS_TO_SETTLE,
    ) -> Floats:
        """Coefficients from some rows; zeros, which say nothing, if none of them has a weight."""
        posterior, weight = targets.by_class()
        if not weight[rows].any():
            n_classes = posterior.shape[1]
            return np.zeros((self.X.shape[1] + 1, 1 if n_classes == 2 else n_classes))
        return fit_softmax(
            self.X[rows],
            posterior[rows],
            weight[rows],
            l2=self.l2,
            start=start,
            fit_intercept=self.fit_intercept,
            class_prior=self.class_prior,
            max_steps=max_steps,
        )


@dataclass
class InSample:
    """One classifier for all examples, as in the paper of Raykar et al.; the objective never falls.

    Parameters
    ----------
    data : SoftmaxData
        Features and penalty.
    """

    data: SoftmaxData
    temperature: float = field(default=1.0, init=False)
    theta: Floats | None = field(default=None, init=False)
    _log_density: float = field(default=0.0, init=False)

    def update(self, targets: SoftTargets, log_likelihood: Floats) -> Floats:
        self.theta = self.data.fit(targets, self.theta, max_steps=_STEPS_PER_ROUND)
        self._log_density = self._log_prior(targets.weight)
        scores = ClassScores(log_probabilities(self.data.X, self.theta), targets.class_weight, True)
        return scores.log_proba(1.0)

    def log_density(self) -> float:
        return self._log_density

    def _log_prior(self, weight: Floats) -> float:
        """Minus the penalty, plus the log-likelihood of the examples that were added."""
        assert self.theta is not None
        middle = np.asarray(self.data.X.T @ weight)[np.newaxis] / weight.sum()
        at_middle = log_probabilities(middle, self.theta)
        penalty = (self.data.l2[:, np.newaxis] * self.theta[:-1] ** 2).sum() / 2
        return float(self.data.class_prior / at_middle.shape[1] * at_middle.sum() - penalty)


@dataclass
class SoftmaxFolds:
    """A classifier per fold, fitted to the other folds.

    Parameters
    ----------
    data : SoftmaxData
        Features and penalty.
    fold : ndarray of shape (n_examples,)
        Which part each example is held out with.
    """

    data: SoftmaxData
    fold: NDArray[np.int64]
    max_steps: int = _STEPS_PER_ROUND
    theta: dict[int, Floats] = field(default_factory=dict, init=False)

    def out_of_fold(self, targets: SoftTargets) -> ClassScores:
        log_proba = np.empty_like(targets.posterior)
        for k in np.unique(self.fold).tolist():
            held_out = self.fold == k
            self.theta[k] = self.data.fit(targets, self.theta.get(k), ~held_out, self.max_steps)
            log_proba[held_out] = log_probabilities(self.data.X[held_out], self.theta[k])
        return ClassScores(log_proba, targets.class_weight, are_probabilities=True)


def best_penalty(data: SoftmaxData, targets: SoftTargets, fold: NDArray[np.int64], relative: Floats) -> float:
    """The penalty chosen by cross-validation with the one-standard-error rule, for features of variance one.

    Held-out examples are scored by the log-likelihood of the first consensus, not of the labels: where features tell
    what misleads annotators, a classifier of fine distinctions explains labels best and the truth worse. The largest
    penalty within a standard error of the best is taken (Breiman et al.).

    Parameters
    ----------
    data : SoftmaxData
        Features; their penalty is not used.
    targets : SoftTargets
        The first consensus.
    fold : ndarray of shape (n_examples,)
        Which part each example is held out with.
    relative : ndarray of shape (n_features,)
        The penalty of each scaled feature, if that of the average feature as it was given is one.

    Returns
    -------
    penalty : float
    """
    some = np.arange(len(fold))
    if len(some) > _ENOUGH:
        some = np.sort(np.random.default_rng(0).choice(len(some), _ENOUGH, replace=False))
    posterior, weight = (part[some] for part in targets.by_class())
    few = SoftTargets(posterior, weight, np.ones(posterior.shape[1]))
    if not all(weight[fold[some] != k].any() for k in np.unique(fold[some])):
        return 1.0
    folds = SoftmaxFolds(replace(data, X=data.X[some]), fold[some], _STEPS_PER_PENALTY)
    found = []
    for penalty in _PENALTIES:  # from simple to complex, each beginning with the last
        folds.data = replace(folds.data, l2=penalty * relative)
        found.append((posterior * folds.out_of_fold(few).scores).sum(axis=1))
    return float(_PENALTIES[simplest_of_the_best(np.array(found), weight)])


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
