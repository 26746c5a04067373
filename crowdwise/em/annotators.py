"""A posterior over classes -> how annotators answer on easy and on hard examples of every class, and back.

Labels of one example are not independent given its class: some examples mislead everybody in the same way. A model
without such examples takes them for another class. So every class may have examples of several difficulties, from easy
to hard, and an annotator has a confusion matrix for each. How hard an example is, is hidden, as its class is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, gammaln, softmax

from crowdwise.arrays import Bools, Floats, Positions
from crowdwise.crowd.pairs import one_hot
from crowdwise.em.confusion import AnnotatorModel, Incidence
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.softmax.log_space import shares_of_sum

# No example is taken to be surely easy or hard to begin with.
_DOUBT = 0.05


@dataclass(frozen=True, eq=False)
class Behaviour:
    """What every annotator says about examples of every class and difficulty."""

    # (n_annotators, n_difficulties, n_classes, n_classes): probability of a label (last axis); a last column more if
    # abstentions are answers.
    confusion: Floats
    share: Floats  # (n_difficulties, n_classes): how frequent each difficulty is within a class
    # (n_difficulties, n_classes, n_classes): what all of them together say: how somebody unknown may be expected to
    # behave.
    crowd: Floats

    @classmethod
    def always_right(cls, n_classes: int) -> Behaviour:
        """One annotator, who is believed."""
        right = np.eye(n_classes)[np.newaxis]
        return cls(right[np.newaxis], np.ones((1, n_classes)), right)

    @property
    def has_abstentions(self) -> bool:
        """Whether abstentions are answers."""
        return self.confusion.shape[-1] > self.confusion.shape[-2]

    def incidence(self, labels: CrowdLabels, part: Floats | None = None) -> Incidence:
        """Labels as these annotators are asked about: with their abstentions, if these are answers."""
        return Incidence.of(labels, part, abstentions=self.has_abstentions)

    def by_difficulty(self, incidence: Incidence) -> Floats:
        """Logarithm of the probability of each example's difficulty and labels for every true class.

        Of shape (n_examples, n_difficulties, n_classes).
        """
        n_annotators, n_difficulties, n_classes, n_answers = self.confusion.shape
        flat = self.confusion.reshape(n_annotators, n_difficulties * n_classes, n_answers)
        likelihood = incidence.log_likelihood(flat).reshape(-1, n_difficulties, n_classes)
        return likelihood if n_difficulties == 1 else likelihood + np.log(self.share)

    def log_likelihood(self, incidence: Incidence) -> Floats:
        """The same over all difficulties, of shape (n_examples, n_classes)."""
        return _over_difficulties(self.by_difficulty(incidence))[0]

    def by_class(self) -> Floats:
        """The confusion matrix of each annotator over all examples, of shape (n_annotators, n_classes, n_classes)."""
        if len(self.share) == 1:
            return self.confusion[:, 0]
        return np.einsum("ljkc,jk->lkc", self.confusion, self.share)

    def answers(self) -> Floats:
        """The same of the labels that an annotator gives, abstentions being left out."""
        confusion = self.by_class()
        if not self.has_abstentions:
            return confusion
        return confusion[..., :-1] / (1 - confusion[..., -1:])

    def among(self, active: Bools) -> Behaviour:
        """The same among all annotators, with NaN for those who are not active."""
        if active.all():
            return self
        confusion = np.full((len(active), *self.confusion.shape[1:]), np.nan)
        confusion[active] = self.confusion
        return Behaviour(confusion, self.share, self.crowd)

    def of(self, position: NDArray[np.int64]) -> Behaviour:
        """The behaviour of the annotators at some positions; that of the crowd for unknown ones, which are at -1."""
        known = self.confusion[np.maximum(position, 0)]
        unknown = (position < 0) | np.isnan(known[:, 0, 0, 0])
        confusion = np.where(unknown[:, np.newaxis, np.newaxis, np.newaxis], self.crowd, known)
        return Behaviour(confusion, self.share, self.crowd)


@dataclass(frozen=True, eq=False)
class Sharing:
    """Groups of annotators who have one vote together.

    An annotator is estimated from all of their labels all the same; only beside others they count less. Four copies of
    an annotator then are to the crowd what one is.
    """

    group: Positions  # (n_annotators,): a number per group, from 0
    part: Floats  # (n_annotators,): the mean part of a vote that each has

    @classmethod
    def of(cls, labels: CrowdLabels, group: Positions, part: Floats) -> Sharing:
        """From what each label counts."""
        n_labels = labels.labels_per_annotator
        mean = labels.sum_per_annotator(part) / np.maximum(n_labels, 1)
        return cls(group, np.where(n_labels > 0, mean, 1.0))

    @property
    def length(self) -> Floats:
        """What parameters are multiplied by, so that those of a group are as long as those of one annotator."""
        return np.sqrt(self.part)[:, np.newaxis, np.newaxis, np.newaxis]

    def own(self, counts: Floats) -> Floats:
        """Counts of all labels of each annotator, from those of parts."""
        return counts / self.part[:, np.newaxis, np.newaxis]

    def merged(self, counts: Floats) -> Floats:
        """Counts of each group as if it were one annotator."""
        merged = np.zeros((int(self.group.max()) + 1, *counts.shape[1:]))
        np.add.at(merged, self.group, counts)
        return merged

    def total(self, of_each: Floats, term: Callable[[Floats], float]) -> float:
        """A sum over annotators, each counted by their part; a hundredth of a vote more or less is nothing."""
        parts, which = np.unique(self.part.round(2), return_inverse=True)
        return sum(float(part) * term(of_each[which == i]) for i, part in enumerate(parts))


@dataclass
class Annotators:
    """The annotators of one fit: estimated from a posterior over classes, and asked for the likelihood of labels."""

    incidence: Incidence
    model: AnnotatorModel  # how counts become confusion matrices
    # (n_examples, n_difficulties, n_classes): probability of each difficulty, if the example is of a class; changed by
    # `log_likelihood`.
    difficulty: Floats
    sharing: Sharing | None = None  # who has a vote together with others, if anybody has
    behaviour: Behaviour = field(init=False)

    @classmethod
    def of(
        cls,
        incidence: Incidence,
        model: AnnotatorModel,
        votes: Floats,
        n_difficulties: int,
        sharing: Sharing | None = None,
    ) -> Annotators:
        """Annotators of whom nothing is known yet, examples being as hard as their vote is unclear."""
        first = np.repeat(first_difficulty(votes, n_difficulties)[:, :, np.newaxis], votes.shape[1], axis=2)
        return cls(incidence, model, first, sharing)

    @classmethod
    def of_behaviour(cls, incidence: Incidence, model: AnnotatorModel, behaviour: Behaviour) -> Annotators:
        """Annotators whose behaviour is known; how hard examples are is found with the likelihood of their labels."""
        annotators = cls(incidence, model, np.ones((0, *behaviour.share.shape)))
        annotators.behaviour = behaviour
        return annotators

    @property
    def n_difficulties(self) -> int:
        return self.difficulty.shape[1]

    def estimate(self, posterior: Floats, weight: Floats) -> None:
        """Estimate how they behave from a posterior over classes and weights of the examples."""
        self.settle(*self.counts(posterior, weight))

    def settle(self, counts: Floats, share: Floats) -> None:
        """Behave as what `counts` gives says."""
        if hasattr(self, "behaviour"):
            del self.behaviour  # as large as the counts, and no longer needed
        sharing = self.sharing
        crowd = self.model.crowd(counts if sharing is None else sharing.merged(counts))
        confusion = self.model.estimate(counts if sharing is None else sharing.own(counts), crowd)
        share = share + 1.0  # as if every difficulty of every class had been seen once more
        self.behaviour = Behaviour(
            confusion.reshape(len(counts), *share.shape, -1),
            share / share.sum(axis=0),
            crowd.reshape(*share.shape, -1),
        )

    def log_likelihood(self) -> Floats:
        """Logarithm of the probability of each example's labels for every class; difficulties are estimated anew."""
        by_difficulty = self.behaviour.by_difficulty(self.incidence)
        if self.n_difficulties == 1:
            return by_difficulty[:, 0]
        total, self.difficulty = _over_difficulties(by_difficulty)
        return total

    def log_prior(self, behaviour: Behaviour | None = None) -> float:
        """Logarithm of the prior of what was estimated, or of another behaviour, up to a constant."""
        behaviour = self.behaviour if behaviour is None else behaviour
        confusion = behaviour.confusion
        flat = confusion.reshape(len(confusion), -1, confusion.shape[-1])
        shares = 0.0 if self.n_difficulties == 1 else float(np.log(behaviour.share).sum())
        crowd = behaviour.crowd.reshape(flat.shape[1:])
        if self.sharing is not None:
            return self.sharing.total(flat, lambda some: self.model.log_prior(some, crowd)) + shares
        return self.model.log_prior(flat, crowd) + shares

    def parameters(self, others: Floats) -> Floats:
        """Logarithms of what was estimated, and other parameters after them, in one vector."""
        confusion, share = self.behaviour.confusion, self.behaviour.share
        parameters = np.empty(confusion.size + share.size + len(others))
        own = parameters[: confusion.size].reshape(confusion.shape)
        np.log(confusion, out=own)
        if self.sharing is not None:
            own *= self.sharing.length
        parameters[confusion.size :] = np.concatenate([np.log(share.ravel()), others])
        return parameters

    def move(self, parameters: Floats) -> None:
        """Take on other parameters, scaled to be probabilities, and matrices of the model if these are not any."""
        last = self.behaviour
        own = parameters[: last.confusion.size].reshape(last.confusion.shape)
        confusion = softmax(own if self.sharing is None else own / self.sharing.length, axis=-1)
        share = softmax(parameters[last.confusion.size :].reshape(last.share.shape), axis=0)
        if (nearest := getattr(self.model, "nearest", None)) is not None:
            shape, flat = last.confusion.shape, (-1, last.confusion.shape[-1])
            confusion = nearest(confusion.reshape(shape[0], *flat), last.crowd.reshape(flat)).reshape(shape)
        self.behaviour = Behaviour(confusion, share, last.crowd)

    def hardness(self, posterior: Floats) -> Floats:
        """Probability that each example is of the hardest of several difficulties; zeros if there is one."""
        if self.n_difficulties == 1:
            return np.zeros(len(posterior))
        return np.einsum("ik,ik->i", posterior, self.difficulty[:, -1])

    def evidence(self, posterior: Floats, weight: Floats) -> float:
        """A lower bound of the logarithm of the probability of all labels, whatever the annotators are like.

        Numbers of difficulties are compared by it: unlike the likelihood it does not rise with every further parameter.
        """
        counts, share = self.counts(posterior, weight)
        counts = counts if self.sharing is None else self.sharing.merged(counts)
        uncertainty = float((weight @ entr(self.states(posterior))).sum())
        classes = _evenly_drawn(share.sum(axis=0))
        difficulties = sum(_evenly_drawn(of_class) for of_class in share.T)
        return self.model.log_evidence(counts, self.model.crowd(counts)) + uncertainty + classes + difficulties

    def states(self, posterior: Floats) -> Floats:
        """Probability of every state, of shape (n_examples, n_difficulties * n_classes)."""
        if self.n_difficulties == 1:
            return posterior
        by_state = posterior.T * self.difficulty.transpose(1, 2, 0)  # states are few: all runs along examples
        return np.ascontiguousarray(by_state.reshape(self.n_difficulties * posterior.shape[1], -1).T)

    def counts(self, posterior: Floats, weight: Floats) -> tuple[Floats, Floats]:
        """How often each annotator said c in every state (difficulty and class), and how many examples are in it."""
        state = self.states(posterior)
        frequency = weight @ state
        if not (weight == 1).all():
            state = state * weight[:, np.newaxis]
        return self.incidence.counts(state), frequency.reshape(self.n_difficulties, -1)


def label_residuals(labels: CrowdLabels, states: Floats, behaviour: Behaviour) -> Floats:
    """Each label, a one in the column of its class, less the probabilities of this annotator's labels.

    The states are difficulties and classes, of shape (n_examples, n_difficulties * n_classes).
    """
    residual, n_states = one_hot(labels), states.shape[1]
    order = np.argsort(labels.annotator_index, kind="stable")
    own = np.split(order, np.cumsum(labels.labels_per_annotator)[:-1])
    example = labels.example_index
    for confusion, of_annotator in zip(behaviour.confusion, own, strict=True):
        expected = states[example[of_annotator]] @ confusion.reshape(n_states, -1)
        residual[of_annotator] -= expected[:, : residual.shape[1]]  # the last column may be of abstentions
    return residual


def first_difficulty(votes: Floats, n_difficulties: int) -> Floats:
    """How probable each difficulty is to begin with, the easiest first, by how clear an example's vote is."""
    if n_difficulties == 1:
        return np.ones((len(votes), 1))
    even = 1 / votes.shape[1]
    clarity = (votes.max(axis=1) - even) / (1 - even)
    distance = np.abs(clarity[:, np.newaxis] - np.linspace(1, 0, n_difficulties)) * (n_difficulties - 1)
    near = np.maximum(1 - distance, 0) + _DOUBT
    return near / near.sum(axis=1, keepdims=True)


def _over_difficulties(by_difficulty: Floats) -> tuple[Floats, Floats]:
    """Logarithm of the sum over difficulties, and the share of each in it."""
    along_examples = by_difficulty.transpose(1, 2, 0).copy()
    share = np.empty_like(along_examples)
    return shares_of_sum(along_examples, share).T, share.transpose(2, 0, 1)


def _evenly_drawn(counts: Floats) -> float:
    """Logarithm of the probability of counts in a row, their frequencies evenly distributed beforehand."""
    return float(gammaln(len(counts)) - gammaln(len(counts) + counts.sum()) + gammaln(1 + counts).sum())
