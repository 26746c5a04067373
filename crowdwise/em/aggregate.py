"""Labels alone -> consensus: how annotators answer and the classes, estimated together without features."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdwise.arrays import Floats
from crowdwise.crowd.disagreement import Scale, disagreement
from crowdwise.crowd.easiness import check_steepness, example_weights
from crowdwise.em.confusion import AnnotatorModelName, Incidence, model_of_annotators
from crowdwise.em.hard_examples import Annotators, Kinds, check_kinds
from crowdwise.exceptions import CrowdConvergenceWarning, LabelError, warn
from crowdwise.labels.align import as_labels
from crowdwise.labels.crowd_labels import CrowdLabels

# How many kinds of examples there are is found out on no more examples than this, and then in no more rounds.
_ENOUGH, _ENOUGH_ROUNDS = 20_000, 100


@dataclass(frozen=True, repr=False)
class Aggregation:
    """What the labels of a crowd say, and how far each annotator can be trusted.

    Parameters
    ----------
    label : ndarray of shape (n_examples,)
        The most probable class.
    confidence : ndarray of shape (n_examples,)
        Its probability if annotators err independently of each other. Real ones do not: use it to sort examples.
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
    hardness : ndarray of shape (n_examples,)
        Probability that the example is of the hardest kind; zeros if there is one kind only.
    kinds : int
        How many kinds of examples every class has.
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
    hardness: Floats
    kinds: int
    objective: Floats
    converged: bool

    def __repr__(self) -> str:
        return (
            f"Aggregation: {len(self.label):,} examples, {len(self.annotators):,} annotators, "
            f"{len(self.classes)} classes{', easy and hard' if self.kinds > 1 else ''}\n"
            f"  {self.n_rounds} rounds, {'settled' if self.converged else 'not settled'}; expertise "
            f"{np.nanmin(self.expertise):.2f} to {np.nanmax(self.expertise):.2f}"
        )

    @property
    def n_rounds(self) -> int:
        """Rounds turned."""
        return len(self.objective)


def aggregate(
    labels: Any,
    *,
    annotator_model: AnnotatorModelName = "shared",
    strength: float = 3.0,
    kinds: Kinds = "auto",
    class_prior: float = 1.0,
    steepness: float = 0.0,
    scale: Scale = "observed",
    max_rounds: int = 1000,
    tol: float = 1e-4,
) -> Aggregation:
    """The consensus of labels without features: the method of Dawid and Skene, smoothed, and with hard examples.

    Parameters
    ----------
    labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
        Classes; a column per annotator, NaN or None where there is no label.
    annotator_model : {"shared", "confusion", "one-coin"}, default="shared"
        What is estimated of an annotator: a confusion matrix drawn towards the crowd's, one of their own, or how often
        they are right.
    strength : float, default=3.0
        How many labels the prior of an annotator is worth.
    kinds : int or "auto", default="auto"
        How many kinds of examples every class has, from easy to hard: annotators may be confused in another way by hard
        ones. 1 is the method of Dawid and Skene; "auto" takes 1 or 2, whichever makes the labels more probable.
    class_prior : float, default=1.0
        Examples of every class added when the frequency of classes is estimated.
    steepness : float, default=0.0
        How fast an example's weight falls with disagreement. 0 weights all alike.
    scale : {"observed", "possible"} or None, default="observed"
        How disagreement is scaled, see `disagreement`.
    max_rounds : int, default=1000
        The most rounds.
    tol : float, default=1e-4
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
    _check_settings(class_prior, max_rounds, tol)
    crowd = as_labels(labels)
    if crowd.classes is None or crowd.n_labels == 0:
        raise LabelError("there is no label to aggregate.")
    weight = example_weights(disagreement(crowd, scale=scale), check_steepness(steepness))
    heard = crowd.labels_per_annotator > 0
    core, weight, where = distinct_patterns(crowd.select_annotators(heard), weight)
    settled = settle(
        core, weight, annotator_model, strength,
        kinds=kinds, class_prior=class_prior, max_rounds=max_rounds, tol=tol,
    )  # fmt: skip
    if not settled.converged:
        warn(
            f"probabilities still changed by more than tol={tol:g} after {max_rounds} rounds. Raise max_rounds or tol.",
            CrowdConvergenceWarning,
        )
    every = slice(None) if where is None else where
    proba = settled.posterior[every]
    confusion = np.full((crowd.n_annotators, len(crowd.classes), len(crowd.classes)), np.nan)
    confusion[heard] = settled.annotators.behaviour.by_class()
    return Aggregation(
        label=crowd.classes[proba.argmax(axis=1)],
        confidence=proba.max(axis=1),
        proba=proba,
        classes=crowd.classes,
        class_prior=settled.class_prior,
        annotators=crowd.annotators,
        confusion=confusion,
        expertise=probability_right(confusion, settled.class_prior),
        hardness=settled.hardness()[every],
        kinds=settled.annotators.n_kinds,
        objective=np.array(settled.objective),
        converged=settled.converged,
    )


def _check_settings(class_prior: float, max_rounds: int, tol: float) -> None:
    if not (np.isfinite(class_prior) and class_prior >= 0):
        raise ValueError(f"class_prior must be a finite number >= 0; got {class_prior!r}.")
    if not (isinstance(max_rounds, int | np.integer) and max_rounds >= 1):
        raise ValueError(f"max_rounds must be a whole number >= 1; got {max_rounds!r}.")
    if not tol >= 0:
        raise ValueError(f"tol must be at least 0; got {tol!r}.")


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
    posterior = log_prior + log_likelihood
    # Many short rows: a few passes over columns, in place, are much faster than a sum of exponentials row by row.
    top = reduce(np.maximum, posterior.T)
    posterior -= top[:, np.newaxis]
    np.exp(posterior, out=posterior)
    total = reduce(np.add, posterior.T)
    posterior /= total[:, np.newaxis]
    return posterior, top + np.log(total)


@dataclass
class Settled:
    """What labels alone say.

    Parameters
    ----------
    annotators : Annotators
        How they answer.
    posterior : ndarray of shape (n_examples, n_classes)
        Probability of every class.
    class_prior : ndarray of shape (n_classes,)
        How frequent each class is.
    objective : list of float
        One value a round.
    converged : bool
        Whether the posterior settled.
    """

    annotators: Annotators
    posterior: Floats
    class_prior: Floats
    objective: list[float]
    converged: bool

    def hardness(self) -> Floats:
        """Probability that an example is of the hardest of several kinds."""
        if self.annotators.n_kinds == 1:
            return np.zeros(len(self.posterior))
        return np.einsum("ik,ik->i", self.posterior, self.annotators.kind[:, -1])


def settle(
    labels: CrowdLabels,
    weight: Floats,
    annotator_model: AnnotatorModelName,
    strength: float,
    *,
    kinds: Kinds,
    class_prior: float,
    max_rounds: int,
    tol: float,
) -> Settled:
    """Estimate annotators and classes in rounds, with the number of kinds that makes the labels most probable.

    Parameters
    ----------
    labels : CrowdLabels
        Classes; every annotator has a label.
    weight : ndarray of shape (n_examples,)
        How much each example counts.
    annotator_model, strength, kinds, class_prior, max_rounds, tol
        As in `aggregate`.

    Returns
    -------
    settled : Settled
    """

    def turn(some: CrowdLabels, counts: Floats, n_kinds: int, max_rounds: int = max_rounds) -> Settled:
        model, votes = model_of_annotators(annotator_model, strength), vote_shares(some)
        annotators = Annotators.of(Incidence.of(some), model, votes, n_kinds)
        return _turn(annotators, votes, counts, class_prior, max_rounds, tol)

    choice = check_kinds(kinds)
    if len(choice) == 1:
        return turn(labels, weight, choice[0])
    few, weight_of_few = labels, weight
    if len(labels) > _ENOUGH:
        some = np.sort(np.random.default_rng(0).choice(len(labels), _ENOUGH, replace=False))
        few, weight_of_few = labels[some], weight[some]
    rounds = max_rounds if few is labels else min(max_rounds, _ENOUGH_ROUNDS)
    tried = {n_kinds: turn(few, weight_of_few, n_kinds, rounds) for n_kinds in choice}
    best = max(choice, key=lambda n_kinds: tried[n_kinds].annotators.evidence(tried[n_kinds].posterior, weight_of_few))
    return tried[best] if few is labels else turn(labels, weight, best)


def _turn(
    annotators: Annotators, posterior: Floats, weight: Floats, class_prior: float, max_rounds: int, tol: float
) -> Settled:
    """Estimate annotators and classes, then the posterior, until it settles."""
    objective: list[float] = []
    converged = False
    while len(objective) < max_rounds and not converged:
        annotators.estimate(posterior, weight)
        prior = weight @ posterior + class_prior
        prior /= prior.sum()
        previous = posterior
        posterior, evidence = expectation(np.log(prior), annotators.log_likelihood())
        objective.append(float(weight @ evidence) + annotators.log_prior() + class_prior * float(np.log(prior).sum()))
        converged = bool(np.abs(posterior - previous).max() < tol)
    return Settled(annotators, posterior, prior, objective, converged)


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
