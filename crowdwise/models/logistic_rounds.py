"""The rounds of the logistic model: annotators and classifier from the posterior, then the posterior from both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from crowdwise.aggregation import expectation
from crowdwise.confusion import AnnotatorModel, Incidence
from crowdwise.models.lessons import Lesson, Lessons
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
    lessons : Lessons
        How much every example and class counts, round after round.
    incidence : Incidence
        The labels.
    model : AnnotatorModel
        How counts become confusion matrices.
    l2 : float or ndarray of shape (n_features,)
        Strength of the penalty, of each feature if it is an array.
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
    lessons: Lessons
    incidence: Incidence
    model: AnnotatorModel
    l2: float | Floats
    class_prior: float
    fit_intercept: bool
    fold: NDArray[np.int64] | None
    posterior: Floats
    theta: Floats | None = None
    fold_theta: dict[int, Floats] | None = None
    confusion: Floats | None = None
    voice: Floats | None = None

    def turn(self) -> tuple[float, float]:
        """One round: annotators, classifier, posterior. Gives the objective and the largest change."""
        lesson = self.lessons.next(self.posterior, self.voice)
        self.confusion = self.model.estimate(self.incidence.counts(self.posterior * lesson.weight[:, np.newaxis]))
        log_proba = self._in_sample(lesson) if self.fold is None else self._out_of_fold(lesson, self.fold)
        self.voice = without_class_weight(log_proba, lesson.class_weight)
        previous = self.posterior
        self.posterior, evidence = expectation(self.voice, self.incidence.log_likelihood(self.confusion))
        objective = float(lesson.weight @ evidence) + self.model.log_prior(self.confusion)
        return objective - self._penalty(lesson.weight), float(np.abs(self.posterior - previous).max())

    def classifier(self, lesson: Lesson, rows: NDArray[np.bool_] | slice = slice(None), start: Any = None) -> Floats:
        """The classifier that some rows teach; one that knows nothing if none of them has a weight."""
        posterior, weight = lesson.targets()
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
            max_steps=_STEPS_A_ROUND,
        )

    def _in_sample(self, lesson: Lesson) -> Floats:
        self.theta = self.classifier(lesson, start=self.theta)
        return log_probabilities(self.X, self.theta)

    def _out_of_fold(self, lesson: Lesson, fold: NDArray[np.int64]) -> Floats:
        starts = self.fold_theta or {}
        log_proba = np.empty_like(self.posterior)
        found = {}
        for k in np.unique(fold).tolist():
            found[k] = self.classifier(lesson, fold != k, starts.get(k))
            log_proba[fold == k] = log_probabilities(self.X[fold == k], found[k])
        self.fold_theta = found
        return log_proba

    def _penalty(self, weight: Floats) -> float:
        if self.theta is None or self.fold is not None:
            return 0.0
        middle = np.append(np.asarray(self.X.T @ weight) / weight.sum(), 1.0)[np.newaxis]
        at_middle = log_probabilities(middle[:, :-1], self.theta)
        rough = (np.atleast_1d(self.l2)[:, np.newaxis] * self.theta[:-1] ** 2).sum() / 2
        return float(rough - self.class_prior / self.posterior.shape[1] * at_middle.sum())


def without_class_weight(log_proba: Floats, class_weight: Floats) -> Floats:
    """Logarithms of the probabilities of a classifier as if every class had counted alike when it learnt.

    A class of weight 10 looks ten times as frequent to the classifier. Beside the labels of annotators that would be a
    prior that nobody believes in, so it is divided out there.

    Parameters
    ----------
    log_proba : ndarray of shape (n_examples, n_classes)
        Logarithms of the classifier's probabilities.
    class_weight : ndarray of shape (n_classes,)
        How much each class counted.

    Returns
    -------
    log_proba : ndarray of shape (n_examples, n_classes)
    """
    if (class_weight == 1).all():
        return log_proba
    return np.asarray(log_softmax(log_proba - np.log(class_weight), axis=1))
