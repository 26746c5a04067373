"""Annotators who err together -> what their votes count, and how sure of a class one may be.

Members of a group have one vote on an example, each an equal part of it. And all votes have errors in common, from
examples that mislead everybody: labels alone cannot show these, for a consensus that all share looks like the truth. On
public crowds whose truth is known, errors of two annotators are correlated by .1 to .6, and stated probabilities are
about right if .4 is assumed. With a correlation of r, n votes say as much as n / (1 + (n - 1) r) independent ones, and
logarithms of probabilities are scaled by 1 / (1 + (n - 1) r). The most probable class stays the same.

Votes of annotators who guess say nothing, so they do not make n larger: with strengths a, n is (sum of a)² / sum of a².
The strength of a vote is the square root of the information that it carries about the class, for log-odds add up as
normal variables do whose means, in standard deviations, are the strengths.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.special import entr

from crowdwise.arrays import Floats, FrozenArrays, Positions
from crowdwise.crowd.pairs import numbered, vote_parts
from crowdwise.em.confusion import blocks
from crowdwise.labels.crowd_labels import CrowdLabels

# How many examples are enough for a mean.
_ENOUGH = 20_000
# The correlation of errors of two annotators that is assumed without known truths.
COMMON_ERRORS = 0.4


@dataclass(frozen=True, eq=False)
class Together(FrozenArrays):
    """How far annotators err together.

    Parameters
    ----------
    group : ndarray of shape (n_annotators,) or None, default=None
        Annotators of the same number have one vote together; None if all have their own.
    common : float, default=0.0
        Correlation of the errors of two votes; 0 if they are independent.
    by_votes : bool, default=False
        Whether votes decide and the model only where they tie: its classes do not mean what labels say.
    given : bool, default=False
        Whether groups were given, rather than found.
    """

    group: Positions | None = None
    common: float = 0.0
    by_votes: bool = False
    given: bool = False

    def numbers(self, n_annotators: int) -> Positions:
        """The group of each of so many annotators; everybody's own if there are none."""
        return np.arange(n_annotators) if self.group is None else numbered(self.group)

    def effective_number(self, labels: CrowdLabels, strength: Floats) -> float:
        """How many independent votes the labels of an average example amount to; `strength` is of each annotator."""
        some = np.flatnonzero(labels.labels_per_example > 0)
        some = some[:: max(1, len(some) // _ENOUGH)]
        labels = labels if len(some) == len(labels) else labels[some]
        return float(effective_number(n_votes(labels, strength, self.parts(labels)), self.common).mean())

    def parts(self, labels: CrowdLabels) -> Floats | None:
        """What each label counts; None if each counts one."""
        return vote_parts(labels, self.group)

    def at(self, position: Positions) -> Together:
        """Of the annotators at some positions; one at -1 is unknown and alone."""
        if self.group is None:
            return self
        known = self.group[np.maximum(position, 0)]
        alone = len(self.group) + np.arange(len(position))
        return replace(self, group=np.where(position < 0, alone, known))

    def stated(self, posterior: Floats, labels: CrowdLabels, log_prior: Floats, strength: Floats) -> Floats:
        """The probabilities to state.

        Parameters
        ----------
        posterior : ndarray of shape (n_examples, n_classes)
            Probabilities if votes are independent.
        labels : CrowdLabels
            Labels of these examples.
        log_prior : ndarray of shape (n_classes,) or (n_examples, n_classes)
            Logarithms of the probabilities before labels are looked at.
        strength : ndarray of shape (n_annotators,)
            Of the votes of each annotator, see `vote_strength`.

        Returns
        -------
        proba : ndarray of shape (n_examples, n_classes)
        """
        if self.common == 0 and not self.by_votes:
            return posterior
        part = self.parts(labels)
        proba = tempered(posterior, n_votes(labels, strength, part), self.common)
        if not self.by_votes:
            return proba
        # One more vote, which decides where others tie: a third of it is the model's, the rest is known beforehand.
        votes = vote_counts(labels, part) + (proba + 2 * np.exp(log_prior)) / 3
        return votes / votes.sum(axis=1, keepdims=True)


def vote_strength(confusion: Floats, class_prior: Floats) -> Floats:
    """The square root of the information, in nats, that a label of each annotator carries about the class.

    Parameters
    ----------
    confusion : ndarray of shape (n_annotators, n_classes, n_classes)
        Probability of a label (last axis); NaN for annotators without labels.
    class_prior : ndarray of shape (n_classes,)
        How frequent each class is.

    Returns
    -------
    strength : ndarray of shape (n_annotators,)
        0 where nothing is known.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise.em.together import vote_strength
    >>> always_right, guesses = np.eye(2), np.full((2, 2), 0.5)
    >>> (vote_strength(np.array([always_right, guesses]), np.array([0.5, 0.5])) ** 2 / np.log(2)).round(2).tolist()
    [1.0, 0.0]
    """
    information = np.empty(len(confusion))
    for some in blocks(confusion):
        given = entr(np.einsum("k,lkc->lc", class_prior, confusion[some])).sum(axis=1)
        information[some] = given - entr(confusion[some]).sum(axis=2) @ class_prior
    return np.sqrt(np.maximum(np.nan_to_num(information), 0.0))


def n_votes(labels: CrowdLabels, strength: Floats, part: Floats | None = None) -> Floats:
    """How many votes each example has, weak ones counting less beside strong ones; at least one.

    Parameters
    ----------
    labels : CrowdLabels
        Labels.
    strength : ndarray of shape (n_annotators,)
        Of the votes of each annotator.
    part : ndarray of shape (n_labels,), default=None
        What each label counts, if some annotators share a vote.

    Returns
    -------
    n_votes : ndarray of shape (n_examples,)
    """
    counted = np.ones(labels.n_labels) if part is None else part
    votes = sparse.csr_array((counted, labels.annotator_index, labels.indptr), shape=labels.shape)
    total, squares = np.ascontiguousarray((votes @ np.column_stack([strength, strength**2])).T)
    number = np.divide(total**2, squares, out=np.ones(len(labels)), where=squares > 0)
    return np.maximum(number, 1.0, out=number)


def tempered(posterior: Floats, n_votes: Floats, common: float) -> Floats:
    """Probabilities to the power of what a vote counts beside others whose errors are correlated with its own.

    Parameters
    ----------
    posterior : ndarray of shape (n_examples, n_classes)
        Probabilities.
    n_votes : ndarray of shape (n_examples,)
        Number of votes; at least one.
    common : float
        The correlation of their errors.

    Returns
    -------
    proba : ndarray of shape (n_examples, n_classes)

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise.em.together import tempered
    >>> tempered(np.array([[0.9, 0.1]]), np.array([5.0]), 0.25).round(2).tolist()  # the square root of each
    [[0.75, 0.25]]
    """
    proba = posterior.T ** (effective_number(n_votes, common) / n_votes)
    return np.ascontiguousarray((proba / proba.sum(axis=0)).T)


def effective_number(n_votes: Floats, common: float) -> Floats:
    """The number of independent votes that say as much as these."""
    return n_votes / (1 + (n_votes - 1) * common)


def vote_counts(labels: CrowdLabels, part: Floats | None = None) -> Floats:
    """The votes for each class, of shape (n_examples, n_classes); `part` is what each label counts."""
    if part is None:
        return labels.tally.astype(np.float64)
    assert labels.classes is not None
    columns = [labels.sum_per_example(np.where(labels.values == k, part, 0.0)) for k in range(len(labels.classes))]
    return np.column_stack(columns)
