"""The rounds of the logistic model: annotators and classifier from the posterior, then the posterior from both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdwise.arrays import Floats
from crowdwise.em.aggregate import expectation
from crowdwise.em.hard_examples import Annotators
from crowdwise.em.softmax import fit_softmax, log_probabilities, log_softmax
from crowdwise.em.temperature import Voice, best_temperature
from crowdwise.weights.round_weights import Lesson, Lessons

# Steps of the optimiser in one round: it goes on from where it was in the next.
_STEPS_A_ROUND = 10
# With each of the penalties to choose from: it goes on with the next.
_STEPS_A_PENALTY = 30
# And where nothing comes after; it stops by itself before.
_STEPS_TO_SETTLE = 1000
# Penalties to choose from, for features of variance one.
_PENALTIES = np.array([1e3, 1e2, 1e1, 1e0, 1e-1])
# How many examples are enough to choose one.
_ENOUGH = 20_000


@dataclass
class LogisticRounds:
    """One fit: what a round needs, and what it changes.

    Parameters
    ----------
    X : ndarray or sparse matrix
        Features.
    lessons : Lessons
        How much every example and class counts, round after round.
    annotators : Annotators
        How they answer.
    joint : bool
        Whether that is estimated anew in every round; if not, it stays as it is.
    l2 : float or ndarray of shape (n_features,)
        Strength of the penalty, of each feature if it is an array.
    class_prior : float
        Examples added in the middle of the features.
    fit_intercept : bool
        Whether there is an intercept.
    fold : ndarray of shape (n_examples,) or None
        If given, class probabilities come from classifiers of the other folds, at the temperature that suits labels.
    posterior : ndarray of shape (n_examples, n_classes)
        Changed by every round, as are all that follow.
    """

    X: Any
    lessons: Lessons
    annotators: Annotators
    joint: bool
    l2: float | Floats
    class_prior: float
    fit_intercept: bool
    fold: NDArray[np.int64] | None
    posterior: Floats
    theta: Floats | None = None
    fold_theta: dict[int, Floats] | None = None
    likelihood: Floats | None = None
    voice: Floats | None = None
    temperature: float = 1.0

    def best_l2(self, fold: NDArray[np.int64], variance: float, relative: Floats) -> float:
        """The largest penalty under which held-out examples are foretold about as well as under the best one.

        What is foretold is the first posterior, not the labels: where features tell what tempts annotators into error,
        a classifier of fine distinctions explains labels best and the truth worse. "About as well" is within a standard
        error, the rule of Breiman et al.: a simpler classifier is preferred as long as it is not surely worse.

        Parameters
        ----------
        fold : ndarray of shape (n_examples,)
            Which part each example is held out with.
        variance : float
            Of an average feature as it was given: what penalties are relative to.
        relative : ndarray of shape (n_features,)
            The penalty of each scaled feature, relative to that of the feature as it was given.

        Returns
        -------
        l2 : float
        """
        some = np.arange(len(self.posterior))
        if len(some) > _ENOUGH:
            some = np.sort(np.random.default_rng(0).choice(len(some), _ENOUGH, replace=False))
        X, fold = self.X[some], fold[some]
        lesson = self.lessons.again(self.posterior)
        posterior, weight = (part[some] for part in lesson.targets())
        found, starts = [], dict[int, Floats]()
        for l2 in variance * _PENALTIES:  # from simple to complex, each beginning with the last
            voice = np.empty_like(posterior)
            for k in np.unique(fold).tolist():
                apart = fold != k
                if not weight[apart].any():
                    return float(variance)
                starts[k] = fit_softmax(
                    X[apart], posterior[apart], weight[apart],
                    l2=l2 * relative, start=starts.get(k), fit_intercept=self.fit_intercept,
                    class_prior=self.class_prior, max_steps=_STEPS_A_PENALTY,
                )  # fmt: skip
                voice[~apart] = log_probabilities(X[~apart], starts[k])
            found.append((posterior * voice).sum(axis=1))
        return float(variance * _PENALTIES[simplest_of_the_best(np.array(found), weight)])

    def turn(self) -> tuple[float, float]:
        """One round: annotators, classifier, posterior. Gives the objective and the largest change."""
        lesson = self.lessons.next(self.posterior, self.voice)
        if self.joint:
            self.annotators.estimate(self.posterior, lesson.weight)
        if self.joint or self.likelihood is None:
            self.likelihood = self.annotators.log_likelihood()
        log_proba = self._in_sample(lesson) if self.fold is None else self._out_of_fold(lesson, self.fold)
        voice = Voice(log_proba, lesson.class_weight, are_probabilities=True)
        if self.fold is not None:
            self.temperature = best_temperature(voice, self.likelihood, lesson.weight)
        self.voice = self._calmed(voice.at(self.temperature))
        previous = self.posterior
        self.posterior, evidence = expectation(self.voice, self.likelihood)
        objective = float(lesson.weight @ evidence) + self.annotators.log_prior()
        return objective - self._penalty(lesson.weight), float(np.abs(self.posterior - previous).max())

    def settled_classifier(self) -> Floats:
        """The classifier that the posterior teaches in the end, at the temperature of its voice."""
        lesson = self.lessons.again(self.posterior)
        theta = self._classifier(lesson, slice(None), self.theta, _STEPS_TO_SETTLE) * self.temperature
        if self.fit_intercept:  # what classes count is not the classifier's opinion and has no temperature
            counted = np.log(lesson.class_weight)
            theta[-1] += (1 - self.temperature) * (counted[1:] - counted[0] if theta.shape[1] == 1 else counted)
        return theta

    def _classifier(
        self,
        lesson: Lesson,
        rows: NDArray[np.bool_] | slice,
        start: Floats | None,
        max_steps: int,
    ) -> Floats:
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
            max_steps=max_steps,
        )

    def _calmed(self, voice: Floats) -> Floats:
        """Out of fold, two examples may teach each other in turn for ever: half of the last round's voice ends that."""
        if self.fold is None or self.voice is None:
            return voice
        return log_softmax((voice + self.voice) / 2)

    def _in_sample(self, lesson: Lesson) -> Floats:
        self.theta = self._classifier(lesson, slice(None), self.theta, _STEPS_A_ROUND)
        return log_probabilities(self.X, self.theta)

    def _out_of_fold(self, lesson: Lesson, fold: NDArray[np.int64]) -> Floats:
        starts = self.fold_theta or {}
        log_proba = np.empty_like(self.posterior)
        found = {}
        for k in np.unique(fold).tolist():
            found[k] = self._classifier(lesson, fold != k, starts.get(k), _STEPS_A_ROUND)
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
