"""A posterior over classes -> how annotators answer on easy and on hard examples of every class.

Labels of one example are not independent given its class: some examples tempt everybody into the same error. A model
without such examples takes them for another class. So every class may come in kinds, from easy to hard, and an
annotator has a confusion matrix for each. Which kind an example is of is hidden, as its class is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, gammaln

from crowdwise.arrays import Floats
from crowdwise.em.confusion import AnnotatorModel, Incidence

Kinds = int | Literal["auto"]

# No example is taken to be surely of one kind to begin with.
_DOUBT = 0.05


def check_kinds(kinds: Kinds) -> tuple[int, ...]:
    """The numbers of kinds to choose from."""
    if isinstance(kinds, str) and kinds == "auto":
        return (1, 2)
    if isinstance(kinds, bool) or not (isinstance(kinds, int | np.integer) and kinds >= 1):
        raise ValueError(f'kinds must be "auto" or a whole number >= 1; got {kinds!r}.')
    return (int(kinds),)


def first_kinds(votes: Floats, n_kinds: int) -> Floats:
    """How far each example looks like every kind, by how clear its vote is.

    Parameters
    ----------
    votes : ndarray of shape (n_examples, n_classes)
        Shares of the classes among the labels.
    n_kinds : int
        Number of kinds, the easiest first.

    Returns
    -------
    share : ndarray of shape (n_examples, n_kinds)
    """
    if n_kinds == 1:
        return np.ones((len(votes), 1))
    even = 1 / votes.shape[1]
    clarity = (votes.max(axis=1) - even) / (1 - even)
    distance = np.abs(clarity[:, np.newaxis] - np.linspace(1, 0, n_kinds)) * (n_kinds - 1)
    share = np.maximum(1 - distance, 0) + _DOUBT
    return share / share.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class Behaviour:
    """What every annotator says about examples of every class and kind.

    Parameters
    ----------
    confusion : ndarray of shape (n_annotators, n_kinds, n_classes, n_classes)
        Probability of a label (last axis).
    share : ndarray of shape (n_kinds, n_classes)
        How frequent each kind is within a class.
    crowd : ndarray of shape (n_kinds, n_classes, n_classes)
        What all of them together say: how somebody unknown may be expected to behave.
    """

    confusion: Floats
    share: Floats
    crowd: Floats

    def by_kind(self, incidence: Incidence) -> Floats:
        """Logarithm of the probability of each example's kind and labels for every true class.

        Parameters
        ----------
        incidence : Incidence
            Labels of these annotators.

        Returns
        -------
        log_likelihood : ndarray of shape (n_examples, n_kinds, n_classes)
        """
        n_annotators, n_kinds, n_classes, _ = self.confusion.shape
        flat = self.confusion.reshape(n_annotators, n_kinds * n_classes, n_classes)
        likelihood = incidence.log_likelihood(flat).reshape(-1, n_kinds, n_classes)
        return likelihood if n_kinds == 1 else likelihood + np.log(self.share)

    def log_likelihood(self, incidence: Incidence) -> Floats:
        """The same over all kinds, of shape (n_examples, n_classes)."""
        by_kind = self.by_kind(incidence)
        return _over_kinds(by_kind)

    def by_class(self) -> Floats:
        """The confusion matrix of each annotator over all kinds, of shape (n_annotators, n_classes, n_classes)."""
        if len(self.share) == 1:
            return self.confusion[:, 0]
        return np.einsum("ljkc,jk->lkc", self.confusion, self.share)

    def among(self, heard: NDArray[np.bool_]) -> Behaviour:
        """The same among all annotators, with NaN for those who were not heard."""
        confusion = np.full((len(heard), *self.confusion.shape[1:]), np.nan)
        confusion[heard] = self.confusion
        return Behaviour(confusion, self.share, self.crowd)

    def of(self, position: NDArray[np.int64]) -> Behaviour:
        """The behaviour of the annotators at some positions; that of the crowd for unknown ones.

        Parameters
        ----------
        position : ndarray of shape (n_wanted,)
            Where each is among the annotators, -1 for those who are not.

        Returns
        -------
        behaviour : Behaviour
        """
        known = self.confusion[np.maximum(position, 0)]
        unknown = (position < 0) | np.isnan(known[:, 0, 0, 0])
        confusion = np.where(unknown[:, np.newaxis, np.newaxis, np.newaxis], self.crowd, known)
        return Behaviour(confusion, self.share, self.crowd)


@dataclass
class Annotators:
    """The annotators of one fit: estimated from a posterior over classes, and asked for the likelihood of labels.

    Parameters
    ----------
    incidence : Incidence
        The labels.
    model : AnnotatorModel
        How counts become confusion matrices.
    kind : ndarray of shape (n_examples, n_kinds, n_classes)
        Probability of each kind, if the example is of a class; changed by `log_likelihood`.
    """

    incidence: Incidence
    model: AnnotatorModel
    kind: Floats
    behaviour: Behaviour = field(init=False)

    @classmethod
    def of(cls, incidence: Incidence, model: AnnotatorModel, votes: Floats, n_kinds: int) -> Annotators:
        """Annotators of whom nothing is known yet, examples of a kind by the clarity of their vote."""
        kind = np.repeat(first_kinds(votes, n_kinds)[:, :, np.newaxis], votes.shape[1], axis=2)
        return cls(incidence, model, kind)

    @property
    def n_kinds(self) -> int:
        return self.kind.shape[1]

    def estimate(self, posterior: Floats, weight: Floats) -> None:
        """Estimate how they behave.

        Parameters
        ----------
        posterior : ndarray of shape (n_examples, n_classes)
            Probability of every class.
        weight : ndarray of shape (n_examples,)
            How much each example counts.
        """
        counts, share = self._counts(posterior * weight[:, np.newaxis])
        confusion = self.model.estimate(counts)
        share = share + 1.0  # as if every kind of every class had been seen once more
        crowd = counts.sum(axis=0) + 1 / counts.shape[-1]
        self.behaviour = Behaviour(
            confusion.reshape(len(counts), *share.shape, -1),
            share / share.sum(axis=0),
            (crowd / crowd.sum(axis=-1, keepdims=True)).reshape(*share.shape, -1),
        )

    def log_likelihood(self) -> Floats:
        """Logarithm of the probability of each example's labels for every class; kinds are judged anew.

        Returns
        -------
        log_likelihood : ndarray of shape (n_examples, n_classes)
        """
        by_kind = self.behaviour.by_kind(self.incidence)
        if self.n_kinds == 1:
            return by_kind[:, 0]
        total = _over_kinds(by_kind)
        self.kind = np.exp(by_kind - total[:, np.newaxis])
        return total

    def log_prior(self) -> float:
        """Logarithm of the prior of what was estimated, up to a constant."""
        confusion = self.behaviour.confusion
        flat = confusion.reshape(len(confusion), -1, confusion.shape[-1])
        kinds = 0.0 if self.n_kinds == 1 else float(np.log(self.behaviour.share).sum())
        return self.model.log_prior(flat) + kinds

    def evidence(self, posterior: Floats, weight: Floats) -> float:
        """A lower bound of the logarithm of the probability of all labels, whatever the annotators are like.

        It is what more kinds have to be worth: unlike the likelihood it does not rise with every further parameter.

        Parameters
        ----------
        posterior : ndarray of shape (n_examples, n_classes)
            Probability of every class.
        weight : ndarray of shape (n_examples,)
            How much each example counts.

        Returns
        -------
        evidence : float
        """
        state = posterior[:, np.newaxis] * self.kind
        counts, share = self._counts(posterior * weight[:, np.newaxis])
        uncertainty = float(weight @ entr(state).sum(axis=(1, 2)))
        classes = _evenly_drawn(share.sum(axis=0))
        kinds = sum(_evenly_drawn(of_class) for of_class in share.T)
        return self.model.log_evidence(counts) + uncertainty + classes + kinds

    def _counts(self, weighted: Floats) -> tuple[Floats, Floats]:
        """How often each annotator said c in every state (kind and class), and how many examples are in it."""
        state = weighted if self.n_kinds == 1 else (weighted[:, np.newaxis] * self.kind).reshape(len(weighted), -1)
        frequency = np.ones(len(state)) @ state  # of few columns, a product is much faster than a sum
        return self.incidence.counts(state), frequency.reshape(self.n_kinds, -1)


def _over_kinds(by_kind: Floats) -> Floats:
    """Logarithm of the sum over kinds, kind by kind: there are few, and many examples."""
    return reduce(np.logaddexp, np.moveaxis(by_kind, 1, 0))


def _evenly_drawn(counts: Floats) -> float:
    """Logarithm of the probability of counts in a row, their frequencies evenly distributed beforehand."""
    return float(gammaln(len(counts)) - gammaln(len(counts) + counts.sum()) + gammaln(1 + counts).sum())
