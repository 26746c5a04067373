"""One block and the parameters of a round -> sums over its examples, which add: all that a round needs to go on.

The posterior of an example is made where its row is read and is forgotten there: `block_sums` is what is mapped over
blocks, ``+`` joins what it gives, and only sums travel.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from crowdwise.arrays import Array, Codes, Floats
from crowdwise.em.annotators import Annotators, Behaviour
from crowdwise.em.confusion import AnnotatorModel, Incidence
from crowdwise.em.labels_alone import vote_shares
from crowdwise.em.rounds import expectation
from crowdwise.em.together import Together, vote_strength
from crowdwise.logistic.blocks import CheckedBlock
from crowdwise.logistic.survey import levels_of_labels
from crowdwise.softmax.log_space import log_softmax
from crowdwise.softmax.models import normalisers
from crowdwise.weights.folds import hashed_folds
from crowdwise.weights.round_weights import SoftTargets

# Features that are worked on at a time: they stay in the cache of one core.
_BLOCK_NUMBERS = 2**17


@dataclass(frozen=True, eq=False)
class RoundState:
    """The parameters of a round: all that the sums over a block depend on, besides the block."""

    annotators: Array  # what labels are coded by, as by the classes
    classes: Array
    model: AnnotatorModel  # how annotators err
    behaviour: Behaviour  # how these annotators answer
    levels: NDArray[np.int64]  # (n_levels,): levels of disagreement, ascending
    easiness: Floats  # (n_levels,): what an example of each level counts
    class_weight: Floats  # (n_classes,): what each class counts for the classifier
    unit: float  # what features are divided by
    shift: Floats | None  # (n_features,): what is subtracted then; None for sparse features
    # (n_features + 1, n_models, n_outputs): coefficients of the models whose slopes are summed. Several leave a fold
    # out each; None is no model.
    theta: Floats | None
    # What is believed before labels are looked at: logarithms of the frequencies of classes, of shape (n_classes,), or
    # coefficients of a classifier for the rows of every fold, with temperature and damping, of shape (n_features + 1,
    # n_folds, n_outputs).
    prior: Floats
    # Who shares a vote, and whether votes decide what the classifier learns.
    together: Together = field(default_factory=Together)
    fold_columns: int | None = None  # how many columns tell the fold of a row; None is all

    @property
    def n_models(self) -> int:
        return 0 if self.theta is None else self.theta.shape[1]

    @property
    def n_folds(self) -> int:
        return max(1 if self.prior.ndim == 1 else self.prior.shape[1], self.n_models)

    def weights(self, block: CheckedBlock) -> Floats:
        """How much each example of a block counts."""
        return weights_of(block, self.levels, self.easiness)

    def folds(self, X: Any) -> Codes:
        """The fold of each row, by its content."""
        return row_folds(X, self.n_folds, X.shape[1] if self.fold_columns is None else self.fold_columns)

    def read(self, X: Any) -> Any:
        """Features in the unit and around the shift of the coefficients."""
        if sparse.issparse(X):
            return X.astype(np.float64) / self.unit
        x = np.asarray(X, dtype=np.float64) if self.unit == 1 else X / np.float64(self.unit)
        return x if self.shift is None else x - self.shift


@dataclass(frozen=True, eq=False)
class LogisticSums:
    """Sums over examples at the parameters of a round."""

    n_examples: int
    evidence: float  # weighted sum of the logarithms of the probabilities of their labels
    counts: Floats  # (n_annotators, n_states, n_classes): how often each annotator said c in every state
    share: Floats  # (n_difficulties, n_classes): how many examples are in every state
    parts: Floats  # (n_annotators,): sums of the parts of votes that their labels are
    votes: Floats  # (n_classes,): sums of the shares of votes
    value: Floats  # (n_models,): the part of the losses of the models in which classes do not occur
    slope: Floats  # (n_features + 1, n_models, n_outputs): its slope
    # (n_features + 1, n_models, n_outputs): sums of features (with a one) times classes, over the rows of every fold,
    # or of all rows.
    targets: Floats
    present: Floats  # (n_features + 1, n_models): sums of features alone

    def __add__(self, other: LogisticSums) -> LogisticSums:
        return LogisticSums(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(LogisticSums)))

    @property
    def mass(self) -> Floats:
        """How many examples are of each class."""
        return self.share.sum(axis=0)


def weights_of(block: CheckedBlock, levels: NDArray[np.int64], easiness: Floats) -> Floats:
    """How much each example of a block counts, from what examples of every level of disagreement do."""
    if (easiness == 1).all():
        return block.weight
    level = np.searchsorted(levels, levels_of_labels(block.labels))
    return block.weight * easiness[np.minimum(level, len(levels) - 1)]


def row_folds(X: Any, n_folds: int, n_columns: int) -> Codes:
    """A fold for every row by its first columns, whatever rows it comes with: that of many examples in memory."""
    if n_folds == 1:
        return np.zeros(X.shape[0], dtype=np.int64)
    return hashed_folds(X, n_folds, n_columns)


def block_sums(state: RoundState, given: Any) -> LogisticSums:
    """The sums over one block: a `CheckedBlock`, (X, labels) or (X, labels, sample_weight)."""
    block = CheckedBlock.of(given).among(state.annotators, state.classes)
    n_classes, weight = len(state.classes), state.weights(block)
    part = state.together.parts(block.labels)
    annotators = Annotators.of_behaviour(Incidence.of(block.labels, part), state.model, state.behaviour)
    likelihood = annotators.log_likelihood()
    votes = np.zeros(n_classes)
    if state.prior.ndim == 1:
        votes = weight @ vote_shares(block.labels, part)
        posterior, evidence = expectation(state.prior, likelihood)
    else:
        posterior, evidence = np.empty_like(likelihood), np.empty(len(likelihood))
    of_models = [np.zeros(0), np.zeros((0, 0, 0)), np.zeros((0, 0, 0)), np.zeros((0, 0))]
    if state.theta is not None:
        if state.together.by_votes:
            posterior = _by_votes(state, block, posterior)
        of_models = _over_rows(state, block.X, weight, likelihood, posterior, evidence)
    counts, share = annotators.counts(posterior, weight)
    given = block.labels.labels_per_annotator if part is None else block.labels.sum_per_annotator(part)
    return LogisticSums(len(block), float(weight @ evidence), counts, share, given + 0.0, votes, *of_models)


def _by_votes(state: RoundState, block: CheckedBlock, posterior: Floats) -> Floats:
    """What the classifier learns where the classes of the model do not mean what labels say: votes, not the model."""
    strength = vote_strength(state.behaviour.by_class(), np.exp(state.prior))
    return state.together.stated(posterior, block.labels, state.prior, strength)


def _over_rows(
    state: RoundState, X: Any, weight: Floats, likelihood: Floats, posterior: Floats, evidence: Floats
) -> list[Floats]:
    """Sums of the models; `posterior` and `evidence` are written to, unless they are those of labels alone."""
    assert state.theta is not None
    n_columns, n_models, n_outputs = state.theta.shape
    value, sums = np.zeros(n_models), np.zeros((n_columns, n_models * (2 * n_outputs + 1)))
    fold = state.folds(X)
    together = state.theta if state.prior.ndim == 1 else np.concatenate([state.theta, state.prior], axis=1)
    step = len(weight) if sparse.issparse(X) else max(64, _BLOCK_NUMBERS // n_columns)
    for start in range(0, len(weight), max(step, 1)):
        rows = slice(start, start + step)
        x = state.read(X[rows])
        scores = scores_of(x, together)  # one product is cheaper than two thin ones
        if state.prior.ndim == 3:
            where = n_models + (fold[rows] if state.prior.shape[1] > 1 else 0)
            prior = log_softmax(scores[np.arange(len(scores)), where])
            posterior[rows], evidence[rows] = expectation(prior, likelihood[rows])
        found = _of_models(state, scores[:, :n_models], posterior[rows], weight[rows], fold[rows])
        value += found[0]
        sums[:-1] += x.T @ found[1]
        sums[-1] += found[1].sum(axis=0)
    slope, targets, present = np.split(sums, [n_models * n_outputs, 2 * n_models * n_outputs], axis=1)
    shape = (n_columns, n_models, n_outputs)
    return [value, slope.reshape(shape), targets.reshape(shape), present]


def scores_of(x: Any, theta: Floats) -> Floats:
    """Of all rows by all models, of shape (n_rows, n_models, n_outputs)."""
    flat = theta.reshape(len(theta), -1)
    return np.asarray(np.asarray(x @ flat[:-1]) + flat[-1]).reshape(-1, *theta.shape[1:])


def _of_models(
    state: RoundState, scores: Floats, posterior: Floats, weight: Floats, fold: Codes
) -> tuple[Floats, Floats]:
    """Values of the models, and what features are to be multiplied with: for slopes, targets and means."""
    n_models = scores.shape[1]
    classes, counted = SoftTargets(posterior, weight, state.class_weight).by_class()
    outputs = classes[:, 1:] if classes.shape[1] == 2 else classes
    logarithm, proba = (found.T for found in normalisers(scores.T))
    belongs = np.ones((len(weight), 1)) if n_models == 1 else (fold[:, np.newaxis] == np.arange(n_models)) + 0.0
    learns = belongs if n_models == 1 else 1 - belongs
    learns, belongs = learns * counted[:, np.newaxis], belongs * counted[:, np.newaxis]
    value = np.einsum("ij,ij->j", learns, logarithm)
    proba *= learns[:, :, np.newaxis]
    targets = belongs[:, :, np.newaxis] * outputs[:, np.newaxis]
    return value, np.hstack([proba.reshape(len(proba), -1), targets.reshape(len(proba), -1), belongs])
