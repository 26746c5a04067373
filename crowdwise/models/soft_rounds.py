"""Labels and an estimator -> consensus, confusion matrices and the model's voice, in alternating rounds."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, logsumexp
from sklearn.model_selection import check_cv

from crowdwise.aggregation import expectation, vote_shares
from crowdwise.confusion import Incidence, Shared
from crowdwise.exceptions import CrowdConvergenceWarning, DataError
from crowdwise.labels import CrowdLabels
from crowdwise.models.copies import Learner, Rows, has_probabilities
from crowdwise.models.lessons import Lessons

Floats = NDArray[np.float64]

# The model's scores are multiplied by a number between these, on a logarithmic scale.
_COLDEST, _WARMEST = np.log(1e-3), np.log(1e2)


def dealt_folds(code: NDArray[Any], n_folds: int, rng: np.random.Generator) -> list[tuple[Rows, Rows]]:
    """Pairs of examples to learn from and examples held out; each class is dealt out over the folds like cards.

    Parameters
    ----------
    code : ndarray of shape (n_examples,)
        The class of each example by majority. A class of two or more examples is then in every part to learn from.
    n_folds : int
        Number of folds; fewer if there are fewer examples.
    rng : Generator
        Shuffles.

    Returns
    -------
    splits : list of (learn, held_out)
    """
    n_examples = len(code)
    shuffled = rng.permutation(n_examples)
    order = shuffled[np.argsort(code[shuffled], kind="stable")]
    fold = np.empty(n_examples, dtype=np.intp)
    fold[order] = np.arange(n_examples) % n_folds
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(min(n_folds, n_examples))]


def splits_of(
    cv: Any, X: Any, majority: NDArray[Any], learnt: NDArray[np.bool_], rng: np.random.Generator
) -> list[tuple[Rows, Rows]]:
    """The splits that `cv` asks for, as positions among the examples that take part."""
    position = np.cumsum(learnt) - 1
    if isinstance(cv, int | np.integer):
        if cv < 2:
            raise ValueError(f"cv must be at least 2 folds, a splitter or a list of splits; got {cv!r}.")
        return dealt_folds(majority[learnt], int(cv), rng)
    given: Iterator[tuple[Any, Any]] = check_cv(cv).split(X, majority)
    rows = np.arange(len(learnt))
    splits = [(rows[learn], rows[held_out]) for learn, held_out in given]
    return [(position[learn[learnt[learn]]], position[out[learnt[out]]]) for learn, out in splits]


@dataclass(frozen=True)
class Voice:
    """What a model says about examples beside their labels; what each class counted for it is divided out again.

    A class of weight 10 looks ten times as frequent to the model. Beside the labels that would be a prior that nobody
    believes in.

    Parameters
    ----------
    scores : ndarray of shape (n_examples, n_classes)
        Of a model that has not seen the example.
    class_weight : ndarray of shape (n_classes,)
        What each class counted for it.
    are_probabilities : bool
        Whether scores are logarithms of probabilities. If not, their unit is unknown before they have a temperature.
    """

    scores: Floats
    class_weight: Floats
    are_probabilities: bool

    def at(self, temperature: float) -> Floats:
        """Logarithms of probabilities when scores are multiplied by a temperature."""
        shift = np.log(self.class_weight)
        if self.are_probabilities:
            return np.asarray(log_softmax(temperature * (self.scores - shift), axis=1))
        return np.asarray(log_softmax(temperature * self.scores - shift, axis=1))


def best_temperature(voice: Voice, log_likelihood: Floats, weight: Floats) -> float:
    """The factor on the model's scores under which the labels are likeliest: how loud its voice should be.

    A prior around one keeps it finite where few examples never contradict the model: every doubling of a loud voice has
    to be paid for by the labels.

    Parameters
    ----------
    voice : Voice
        Of models that have not seen the example.
    log_likelihood : ndarray of shape (n_examples, n_classes)
        Logarithm of the probability of the example's labels for every true class.
    weight : ndarray of shape (n_examples,)
        Of each example.

    Returns
    -------
    temperature : float
    """

    def badness(logarithm: float) -> float:
        together = voice.at(np.exp(logarithm)) + log_likelihood
        prior = logarithm - np.exp(logarithm)
        return -float(weight @ logsumexp(together, axis=1) + prior)

    found = minimize_scalar(badness, bounds=(_COLDEST, _WARMEST), method="bounded", options={"xatol": 1e-6})
    return float(np.exp(found.x))


@dataclass(frozen=True)
class SoftFit:
    """What the rounds found.

    Parameters
    ----------
    posterior : ndarray of shape (n_examples, n_classes)
        Probability of every class, by labels and out-of-fold model together.
    confusion : ndarray of shape (n_annotators, n_classes, n_classes)
        Of each annotator.
    crowd : ndarray of shape (n_classes, n_classes)
        Of all annotators together.
    temperature : float
        Factor on the model's scores.
    n_rounds : int
        Rounds turned.
    converged : bool
        Whether they settled.
    """

    posterior: Floats
    confusion: Floats
    crowd: Floats
    temperature: float
    n_rounds: int
    converged: bool


def alternate(
    learner: Learner,
    lessons: Lessons,
    labels: CrowdLabels,
    splits: list[tuple[Rows, Rows]],
    seeds: list[int],
    *,
    strength: float,
    max_rounds: int,
    tol: float,
) -> SoftFit:
    """Turn rounds until the consensus settles.

    M-step: confusion matrices, and a classifier for every fold, from the current posterior. E-step: the posterior from
    the annotators' likelihoods and the out-of-fold classifiers.
    """
    incidence, annotators = Incidence.of(labels), Shared(strength)
    posterior, prior = vote_shares(labels), None
    change = np.inf
    while lessons.n_rounds < max_rounds and not (change <= tol and lessons.settled(tol)):
        lesson = lessons.next(posterior, prior)
        confusion = annotators.estimate(incidence.counts(posterior * lesson.weight[:, np.newaxis]))
        scores = learner.out_of_fold(lesson, splits, seeds)
        voice = Voice(scores, lesson.class_weight, has_probabilities(learner.estimator))
        log_likelihood = incidence.log_likelihood(confusion)
        temperature = best_temperature(voice, log_likelihood, lesson.weight)
        prior = voice.at(temperature)
        previous, posterior = posterior, expectation(prior, log_likelihood)[0]
        change = float(np.abs(posterior - previous).sum(axis=1).mean() / 2)
    converged = change <= tol and lessons.settled(tol)
    if not converged:
        still = f"after {max_rounds} rounds the consensus still changes by {change:.2g} an example (tol={tol:g}). "
        message = lessons.still_changing() if change <= tol else still + "Allow more rounds or a larger tol."
        warnings.warn(message, CrowdConvergenceWarning, stacklevel=3)
    assert annotators.crowd is not None
    return SoftFit(posterior, confusion, annotators.crowd, temperature, lessons.n_rounds, converged)


def taken_at_their_word(labels: CrowdLabels) -> SoftFit:
    """What one annotator alone says: nobody is there to doubt it."""
    posterior = vote_shares(labels)
    word = np.eye(posterior.shape[1])
    return SoftFit(posterior, word[np.newaxis], word, 1.0, 0, True)


def check_splits(splits: list[tuple[Rows, Rows]], n_examples: int) -> None:
    """Raise unless every example is held out once, from models that do not see it."""
    times = np.zeros(n_examples, dtype=np.int64)
    for learn, held_out in splits:
        np.add.at(times, held_out, 1)
        if len(np.intersect1d(learn, held_out)):
            raise DataError("cv gave splits in which an example is both learnt from and held out.")
    if (times != 1).any():
        raise DataError(
            f"cv must hold out every example once; example {int((times != 1).argmax())} of those with labels is held "
            f"out {int(times[(times != 1).argmax()])} times."
        )
