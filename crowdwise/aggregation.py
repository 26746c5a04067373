"""Labels alone -> consensus: annotators' confusion matrices and the classes, estimated together without features."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from crowdwise.confusion import AnnotatorModel, AnnotatorModelName, Incidence, model_of_annotators
from crowdwise.disagreement import Scale, disagreement
from crowdwise.easiness import check_steepness, example_weights
from crowdwise.exceptions import CrowdConvergenceWarning, LabelError
from crowdwise.inputs import as_labels
from crowdwise.labels import CrowdLabels

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Aggregation:
    """What the labels of a crowd say, and how far each annotator can be trusted.

    Parameters
    ----------
    label : ndarray of shape (n_examples,)
        The most probable class.
    confidence : ndarray of shape (n_examples,)
        Its probability.
    proba : ndarray of shape (n_examples, n_classes)
        Probability of every class; that of the crowd as a whole for examples without labels.
    classes : ndarray of shape (n_classes,)
        The classes.
    class_prior : ndarray of shape (n_classes,)
        How frequent each class is.
    annotators : ndarray of shape (n_annotators,)
        Names of the annotators.
    confusion : ndarray of shape (n_annotators, n_classes, n_classes)
        Probability that an annotator says c (last axis) if the truth is k; NaN for annotators without labels.
    expertise : ndarray of shape (n_annotators,)
        Probability that an annotator is right; NaN for those without labels.
    objective : ndarray of shape (n_rounds,)
        Log-likelihood plus log priors after every round; never falls.
    converged : bool
        Whether probabilities changed by less than the tolerance in the last round.
    """

    label: NDArray[Any]
    confidence: Floats
    proba: Floats
    classes: NDArray[Any]
    class_prior: Floats
    annotators: NDArray[Any]
    confusion: Floats
    expertise: Floats
    objective: Floats
    converged: bool

    @property
    def n_rounds(self) -> int:
        """Rounds turned."""
        return len(self.objective)


def aggregate(
    labels: Any,
    *,
    annotator_model: AnnotatorModelName = "shared",
    strength: float = 3.0,
    class_prior: float = 1.0,
    steepness: float = 0.0,
    scale: Scale = "observed",
    max_rounds: int = 300,
    tol: float = 1e-5,
) -> Aggregation:
    """The consensus of labels without features: the method of Dawid and Skene, smoothed.

    Parameters
    ----------
    labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
        Classes; a column per annotator, NaN or None where there is no label.
    annotator_model : {"shared", "confusion", "one-coin"}, default="shared"
        What is estimated of an annotator: a confusion matrix drawn towards the crowd's, one of their own, or how often
        they are right.
    strength : float, default=3.0
        How many labels the prior of an annotator is worth.
    class_prior : float, default=1.0
        Examples of every class added when the frequency of classes is estimated.
    steepness : float, default=0.0
        How fast an example's weight falls with disagreement. 0 weights all alike.
    scale : {"observed", "possible"} or None, default="observed"
        How disagreement is scaled, see `disagreement`.
    max_rounds : int, default=300
        The most rounds.
    tol : float, default=1e-5
        Stop when no probability changes by more than this.

    Returns
    -------
    aggregation : Aggregation

    Examples
    --------
    >>> from crowdwise import aggregate
    >>> result = aggregate([[1, 1, 0], [0, 0, 1], [1, 1, 0], [0, 0, 0], [1, 1, 1]])
    >>> result.label.tolist(), int(result.expertise.argmin())
    ([1, 0, 1, 0, 1], 2)
    """
    crowd = as_labels(labels)
    if crowd.classes is None or crowd.n_labels == 0:
        raise LabelError("there is no label to aggregate.")
    weight = example_weights(disagreement(crowd, scale=scale), check_steepness(steepness))
    heard = crowd.labels_per_annotator > 0
    core, weight, where = distinct_patterns(crowd.select_annotators(heard), weight)
    settled = _turn(core, weight, model_of_annotators(annotator_model, strength), class_prior, max_rounds, tol)
    if not settled.converged:
        warnings.warn(
            f"probabilities still changed by more than tol={tol:g} after {max_rounds} rounds. Raise max_rounds or tol.",
            CrowdConvergenceWarning,
            stacklevel=2,
        )
    proba = settled.posterior if where is None else settled.posterior[where]
    confusion = np.full((crowd.n_annotators, *settled.confusion.shape[1:]), np.nan)
    confusion[heard] = settled.confusion
    return Aggregation(
        label=crowd.classes[proba.argmax(axis=1)],
        confidence=proba.max(axis=1),
        proba=proba,
        classes=crowd.classes,
        class_prior=settled.class_prior,
        annotators=crowd.annotators,
        confusion=confusion,
        expertise=probability_right(confusion, settled.class_prior),
        objective=np.array(settled.objective),
        converged=settled.converged,
    )


def probability_right(confusion: Floats, class_prior: Floats) -> Floats:
    """The probability that each annotator is right about an example drawn at random.

    Parameters
    ----------
    confusion : ndarray of shape (n_annotators, n_classes, n_classes)
        Of each annotator.
    class_prior : ndarray of shape (n_classes,)
        How frequent each class is.

    Returns
    -------
    probability : ndarray of shape (n_annotators,)
    """
    return np.einsum("lkk,k->l", confusion, class_prior)


def expectation(log_prior: Floats, log_likelihood: Floats) -> tuple[Floats, Floats]:
    """Posterior probabilities of the classes, and the logarithm of the probability of each example's labels.

    Parameters
    ----------
    log_prior : ndarray of shape (n_classes,) or (n_examples, n_classes)
        Logarithms of the probabilities before the labels are known.
    log_likelihood : ndarray of shape (n_examples, n_classes)
        Logarithms of the probabilities of the labels if the truth is each class.

    Returns
    -------
    posterior : ndarray of shape (n_examples, n_classes)
    evidence : ndarray of shape (n_examples,)
    """
    joint = log_prior + log_likelihood
    evidence = logsumexp(joint, axis=1)
    return np.exp(joint - evidence[:, np.newaxis]), evidence


@dataclass
class _Settled:
    posterior: Floats
    confusion: Floats
    class_prior: Floats
    objective: list[float]
    converged: bool


def _turn(
    labels: CrowdLabels, weight: Floats, model: AnnotatorModel, class_prior: float, max_rounds: int, tol: float
) -> _Settled:
    """Estimate annotators and classes, then the posterior, until it settles."""
    incidence = Incidence.of(labels)
    posterior = vote_shares(labels)
    objective: list[float] = []
    converged = False
    while len(objective) < max_rounds and not converged:
        weighted = posterior * weight[:, np.newaxis]
        confusion = model.estimate(incidence.counts(weighted))
        prior = weighted.sum(axis=0) + class_prior
        prior /= prior.sum()
        previous = posterior
        posterior, evidence = expectation(np.log(prior), incidence.log_likelihood(confusion))
        objective.append(
            float(weight @ evidence) + model.log_prior(confusion) + class_prior * float(np.log(prior).sum())
        )
        converged = bool(np.abs(posterior - previous).max() < tol)
    return _Settled(posterior, confusion, prior, objective, converged)


def vote_shares(labels: CrowdLabels) -> Floats:
    """The share of each class among the labels of each example; even where there is none.

    Parameters
    ----------
    labels : CrowdLabels
        Classes.

    Returns
    -------
    shares : ndarray of shape (n_examples, n_classes)
    """
    counts = labels.tally.astype(np.float64)
    total = counts.sum(axis=1, keepdims=True)
    even = np.full_like(counts, 1.0 / counts.shape[1])
    return np.divide(counts, total, out=even, where=total > 0)


def distinct_patterns(labels: CrowdLabels, weight: Floats) -> tuple[CrowdLabels, Floats, NDArray[np.intp] | None]:
    """Examples with the same labels taken together, where labels are complete and patterns few.

    Parameters
    ----------
    labels : CrowdLabels
        Classes.
    weight : ndarray of shape (n_examples,)
        Of each example.

    Returns
    -------
    labels : CrowdLabels
        An example a pattern, or all as they were.
    weight : ndarray
        Summed over the examples of a pattern.
    where : ndarray of shape (n_examples,) or None
        The pattern of each example; None if they are as they were.
    """
    n_classes = 0 if labels.classes is None else len(labels.classes)
    few = labels.n_annotators * math.log(max(n_classes, 2)) < math.log(max(len(labels) / 2, 1))
    if not (labels.is_complete and few):
        return labels, weight, None
    matrix = labels.values.reshape(labels.shape)
    key = np.zeros(len(labels), dtype=np.int64)
    for column in matrix.T:
        key = key * n_classes + column
    _, first, where = np.unique(key, return_index=True, return_inverse=True)
    sums = np.bincount(where, weight).astype(np.float64)
    return labels[first], sums, where
