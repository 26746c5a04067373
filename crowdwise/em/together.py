"""Annotators who err together -> what their votes count, and how sure of a class one may be.

Members of a group have one vote on an example, who gives always the same answer has none, and all votes have errors in
common: `crowd.votes` says what votes count then. Stated probabilities are those of independent votes, to a power of
less than one. The most probable class stays the same, unless the classes of the model do not mean what labels say: then
votes decide.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import entr

from crowdwise.arrays import Bools, Floats, FrozenArrays, Positions, in_c_order
from crowdwise.crowd.pairs import numbered
from crowdwise.crowd.votes import n_votes, tempered, vote_counts, vote_parts
from crowdwise.em.confusion import answers_of, blocks
from crowdwise.labels.crowd_labels import CrowdLabels

# What a label counts that says nothing. Zero would leave nothing to estimate those from who give it.
_HARDLY = 1e-3


@dataclass(frozen=True, eq=False)
class Together(FrozenArrays):
    """How far annotators err together."""

    # (n_annotators,): annotators of the same number have one vote together; None if all have their own.
    group: Positions | None = None
    common: float = 0.0  # correlation of the errors of two votes; 0 if they are independent
    # Whether votes decide and the model only where they tie: its classes do not mean what labels say.
    by_votes: bool = False
    given: bool = False  # whether groups were given, rather than found
    # (n_annotators,): who gives always the same answer, which says nothing about an example; None if nobody does.
    silent: Bools | None = None
    abstentions: bool = False  # whether abstentions are answers: then they count as votes

    def numbers(self, n_annotators: int) -> Positions:
        """The group of each of so many annotators; everybody's own if there are none."""
        return np.arange(n_annotators) if self.group is None else numbered(self.group)

    @property
    def all_alike(self) -> bool:
        """Whether every label counts one."""
        return self.group is None and self.silent is None

    @property
    def one_group(self) -> bool:
        """Whether groups were given that put all annotators into one."""
        return (
            self.given and self.group is not None and len(self.group) > 1 and bool((self.group == self.group[0]).all())
        )

    def n_voters(self, n_annotators: int) -> int:
        """How many votes so many annotators have, if all of them label an example."""
        numbers = self.numbers(n_annotators)
        return len(np.unique(numbers if self.silent is None else numbers[~self.silent]))

    def answers(self, labels: CrowdLabels) -> CrowdLabels:
        """Labels, and abstentions as those of one more class if they are answers."""
        return answers_of(labels) if self.abstentions else labels

    def parts(self, labels: CrowdLabels) -> Floats | None:
        """What each answer counts; None if each counts one."""
        answers = self.answers(labels)
        part = vote_parts(answers, self.group)
        if self.silent is None:
            return part
        heard = np.where(self.silent[answers.annotator_index], _HARDLY, 1.0)
        return heard if part is None else part * heard

    def votes(self, labels: CrowdLabels) -> Floats:
        """The votes for each class, of shape (n_examples, n_classes)."""
        counts = vote_counts(self.answers(labels), self.parts(labels))
        return counts[:, :-1] if self.abstentions else counts

    def n_votes(self, labels: CrowdLabels, strength: Floats) -> Floats:
        """How many votes each example has; for `strength` see `vote_strength`."""
        return n_votes(self.answers(labels), strength, self.parts(labels))

    def at(self, position: Positions) -> Together:
        """Of the annotators at some positions; one at -1 is unknown and alone."""
        group, silent, known = self.group, self.silent, np.maximum(position, 0)
        if group is not None:
            group = np.where(position < 0, len(group) + np.arange(len(position)), group[known])
        return replace(self, group=group, silent=None if silent is None else silent[known] & (position >= 0))

    def stated(self, posterior: Floats, labels: CrowdLabels, log_prior: Floats, strength: Floats) -> Floats:
        """The probabilities to state, from the posterior of independent votes; for `strength` see `vote_strength`."""
        if self.common == 0 and not self.by_votes:
            return posterior
        proba = tempered(posterior, self.n_votes(labels, strength), self.common)
        if not self.by_votes:
            return proba
        # One more vote, which decides where others tie: a third of it is the model's, the rest is known beforehand. And
        # one that is for all classes alike, as shares of votes are too sure where few are independent.
        votes = self.votes(labels) + (proba + 2 * np.exp(log_prior)) / 3
        votes += 1 / votes.shape[1]
        return votes / votes.sum(axis=1, keepdims=True)


def vote_strength(confusion: Floats, class_prior: Floats) -> Floats:
    """The square root of the information, in nats, that a label of each annotator carries about the class.

    0 where nothing is known: confusion matrices of annotators without labels are NaN.

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
        matrices = in_c_order(confusion[some])
        given = entr(np.einsum("k,lkc->lc", class_prior, matrices)).sum(axis=1)
        information[some] = given - entr(matrices).sum(axis=2) @ class_prior
    return np.sqrt(np.maximum(np.nan_to_num(information), 0.0))
