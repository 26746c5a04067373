"""Votes on examples of known class -> what each vote counts for each class: a small logistic regression on votes.

Errors that annotators have in common are in its weights, unlike in a model of each annotator alone. Few truths do not
suffice for it, so it is drawn towards less: what an annotator's answer counts for a class towards what a vote of that
annotator counts, and that towards what a vote of anybody counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import log_softmax

from crowdwise.arrays import Array, Floats
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import encode_declared

# Before truths are seen, any vote multiplies the odds of its class by the exponential of this.
_ANY_VOTE = 0.5
# How strongly parameters are held to what they are drawn towards, in units of truths.
_HOLD_ANY, _HOLD_OWN, _HOLD_ANSWER, _HOLD_CLASS = 0.1, 4.0, 1.0, 0.2
# More parameters than this are not worth their memory.
_MOST_PARAMETERS = 2_000_000


@dataclass(frozen=True, eq=False)
class VoteWeights:
    """What votes count."""

    annotators: Array  # (n_annotators,): who votes
    # (n_annotators + 1, n_classes, n_classes): what it adds to the score of each class (last axis) that an annotator
    # gave an answer; at the end for anybody else.
    table: Floats
    classes: Floats  # (n_classes,): what each class has without votes

    def log_proba(self, labels: CrowdLabels) -> Floats:
        """Logarithms of the probabilities of the classes, of shape (n_examples, n_classes)."""
        position = encode_declared(labels.annotators, self.annotators).astype(np.intp)  # -1 is the last, anybody
        added = self.table[position[labels.annotator_index], labels.values]
        scores = np.column_stack([labels.sum_per_example(column) for column in added.T])
        return log_softmax(scores + self.classes, axis=1)


@dataclass(frozen=True, eq=False)
class Ballot:
    """Votes on examples of known class, as the fit of weights needs them."""

    annotators: Array  # (n_annotators,): who votes
    votes: sparse.csr_array  # (n_known, n_annotators * n_classes): a one for every vote
    truth: Floats  # (n_known, n_classes): a one for the class of each example

    @classmethod
    def of(cls, labels: CrowdLabels, codes: Array, n_classes: int) -> Ballot:
        """From the labels of examples of known class."""
        columns = labels.annotator_index.astype(np.int64) * n_classes + labels.values
        shape = (len(labels), labels.n_annotators * n_classes)
        votes = sparse.csr_array((np.ones(labels.n_labels), columns, labels.indptr), shape=shape)
        return cls(labels.annotators, votes, np.eye(n_classes)[codes])

    def of_rows(self, rows: Array) -> Ballot:
        """That of some of the examples."""
        return Ballot(self.annotators, self.votes[rows], self.truth[rows])

    @property
    def can_be_told_apart(self) -> bool:
        """Whether there are so few annotators and classes that every answer may have weights of its own."""
        return self.votes.shape[1] * self.truth.shape[1] <= _MOST_PARAMETERS

    def fit(self, *, answers: bool) -> VoteWeights:
        """The weights of the votes; `answers` says whether every answer of an annotator has weights of its own."""
        n_classes, n_annotators = self.truth.shape[1], len(self.annotators)
        shape = (n_annotators, n_classes, n_classes)
        diagonal = np.arange(n_classes)
        sizes = [1, n_annotators, n_classes, int(np.prod(shape)) if answers else 0]
        ends = np.cumsum(sizes)
        hold = np.repeat([_HOLD_ANY, _HOLD_OWN, _HOLD_CLASS, _HOLD_ANSWER], sizes)
        centre = np.repeat([_ANY_VOTE, 0.0, 0.0, 0.0], sizes)

        def table_of(parameters: Floats) -> Floats:
            any_vote, own, _, answer = np.split(parameters, ends[:-1])
            table = answer.reshape(shape).copy() if answers else np.zeros(shape)
            table[:, diagonal, diagonal] += any_vote + own[:, np.newaxis]
            return table

        def loss(parameters: Floats) -> tuple[float, Floats]:
            scores = self.votes @ table_of(parameters).reshape(-1, n_classes) + parameters[ends[1] : ends[2]]
            logarithms = log_softmax(scores, axis=1)
            away, residual = parameters - centre, np.exp(logarithms) - self.truth
            slope = np.asarray(self.votes.T @ residual).reshape(shape)
            own = slope[:, diagonal, diagonal].sum(axis=1)
            parts = [own.sum(keepdims=True), own, residual.sum(axis=0), *([slope.ravel()] if answers else [])]
            value = -float((self.truth * logarithms).sum()) + 0.5 * float(hold @ away**2)
            return value, np.concatenate(parts) + hold * away

        options = {"maxiter": 1000, "maxcor": 20, "ftol": 1e-14, "gtol": 1e-8}
        found = minimize(loss, centre, jac=True, method="L-BFGS-B", options=options).x
        table = np.concatenate([table_of(found), found[0] * np.eye(n_classes)[np.newaxis]])
        return VoteWeights(self.annotators, table, found[ends[1] : ends[2]])
