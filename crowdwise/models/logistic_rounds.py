"""The rounds of the logistic model: annotators and classifier from the posterior, then the posterior from both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdwise.aggregation import expectation
from crowdwise.confusion import AnnotatorModel, Incidence
from crowdwise.softmax import fit_softmax, log_probabilities

Floats = NDArray[np.float64]

# Steps of the optimiser in one round: it goes on from where it was in the next.
_STEPS_A_ROUND = 30


@dataclass
class LogisticRounds:
    """One fit: what a round needs, and what it changes.

    Parameters
    ----------
    X : ndarray or sparse matrix
        Features.
    weight : ndarray of shape (n_examples,)
        Of each example.
    incidence : Incidence
        The labels.
    model : AnnotatorModel
        How counts become confusion matrices.
    l2 : float
        Strength of the penalty.
    class_prior : float
        Examples added in the middle of the features.
    fit_intercept : bool
        Whether there is an intercept.
    fold : ndarray of shape (n_examples,) or None
        If given, class probabilities come from classifiers of the other folds.
    posterior : ndarray of shape (n_examples, n_classes)
        Changed by every round, as are all that follow.
    """

    X: Any
    weight: Floats
    incidence: Incidence
    model: AnnotatorModel
    l2: float
    class_prior: float
    fit_intercept: bool
    fold: NDArray[np.int64] | None
    posterior: Floats
    theta: Floats | None = None
    fold_theta: dict[int, Floats] | None = None
    confusion: Floats | None = None

    def turn(self) -> tuple[float, float]:
        """One round: annotators, classifier, posterior. Gives the objective and the largest change."""
        self.confusion = self.model.estimate(self.incidence.counts(self.posterior * self.weight[:, np.newaxis]))
        log_prior = self._in_sample() if self.fold is None else self._out_of_fold(self.fold)
        previous = self.posterior
        self.posterior, evidence = expectation(log_prior, self.incidence.log_likelihood(self.confusion))
        objective = float(self.weight @ evidence) + self.model.log_prior(self.confusion)
        return objective - self._penalty(), float(np.abs(self.posterior - previous).max())

    def classifier(self, rows: NDArray[np.bool_] | slice = slice(None), start: Floats | None = None) -> Floats:
        """The classifier of some rows for the present posterior."""
        return fit_softmax(
            self.X[rows],
            self.posterior[rows],
            self.weight[rows],
            l2=self.l2,
            start=start,
            fit_intercept=self.fit_intercept,
            class_prior=self.class_prior,
            max_steps=_STEPS_A_ROUND,
        )

    def _in_sample(self) -> Floats:
        self.theta = self.classifier(start=self.theta)
        return log_probabilities(self.X, self.theta)

    def _out_of_fold(self, fold: NDArray[np.int64]) -> Floats:
        starts = self.fold_theta or {}
        log_prior = np.empty_like(self.posterior)
        found = {}
        for k in np.unique(fold).tolist():
            found[k] = self.classifier(fold != k, starts.get(k))
            log_prior[fold == k] = log_probabilities(self.X[fold == k], found[k])
        self.fold_theta = found
        return log_prior

    def _penalty(self) -> float:
        if self.theta is None or self.fold is not None:
            return 0.0
        middle = np.append(np.asarray(self.X.T @ self.weight) / self.weight.sum(), 1.0)[np.newaxis]
        at_middle = log_probabilities(middle[:, :-1], self.theta)
        n_classes = self.posterior.shape[1]
        return float(self.l2 / 2 * (self.theta[:-1] ** 2).sum() - self.class_prior / n_classes * at_middle.sum())
