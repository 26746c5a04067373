"""Votes on examples of known class -> how probable each class is if one annotator gives an answer, whatever others say.

The best of a few annotators may be better than any way of combining them. Truths show which one that is, and how much
better: `calibration` gives each annotator a share of the consensus.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdwise.arrays import Array, Floats
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import encode_declared
from crowdwise.truths.vote_weights import Ballot

# Before truths are seen, every answer has been given so often, and is right as often as the annotator is on average.
_ADDED = 10.0
# An annotator has been right so often, of so many answers.
_RIGHT, _ANSWERS = 2.0, 3.0


@dataclass(frozen=True, eq=False)
class AnswerTables:
    """What an answer of each annotator alone says about the class."""

    annotators: Array  # (n_annotators,): who votes
    table: Floats  # (n_annotators, n_classes, n_classes): probability of each class (last axis) if the answer is c

    @classmethod
    def of(cls, ballot: Ballot) -> AnswerTables:
        """Estimated from the votes on examples of known class."""
        n_classes = ballot.truth.shape[1]
        counts = np.asarray(ballot.votes.T @ ballot.truth).reshape(len(ballot.annotators), n_classes, n_classes)
        right = (np.einsum("lcc->l", counts) + _RIGHT) / (counts.sum(axis=(1, 2)) + _ANSWERS)
        same, other = np.eye(n_classes), (1 - np.eye(n_classes)) / max(n_classes - 1, 1)
        expected = np.multiply.outer(right, same) + np.multiply.outer(1 - right, other)
        table = (counts + _ADDED * expected) / (counts.sum(axis=2, keepdims=True) + _ADDED)
        return cls(ballot.annotators, table)

    def mixed(self, labels: CrowdLabels, shares: Floats) -> Floats:
        """Probabilities by each annotator, times the share of that annotator, summed up.

        All classes are alike for an annotator who has not labelled an example.
        """
        position = encode_declared(labels.annotators, self.annotators).astype(np.intp)[labels.annotator_index]
        share = np.where(position < 0, 0.0, shares[position])
        by_label = share[:, np.newaxis] * self.table[position, labels.values]
        given = np.column_stack([labels.sum_per_example(column) for column in by_label.T])
        return given + ((shares.sum() - labels.sum_per_example(share)) / given.shape[1])[:, np.newaxis]

    def right(self, labels: CrowdLabels, codes: Array) -> Floats:
        """Probability of the true class of each example by each annotator, of shape (n_examples, n_annotators).

        The annotators are those of the labels.
        """
        right = np.full((len(codes), len(self.annotators)), 1 / self.table.shape[1])
        where, who = labels.example_index, labels.annotator_index
        right[where, who] = self.table[who, labels.values, codes[where]]
        return right
