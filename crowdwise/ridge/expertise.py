"""Squared errors of annotators -> their expertise; labels, expertise, scores of a model -> one answer per example.

Expertise is one over the mean squared error against the model, floored and shrunk.

If the truth is class k, an annotator's label is taken to lie around its +1/-1 code with the annotator's expertise as
precision, and the model's score likewise with a precision of its own; all classes are alike beforehand. The
probabilities of the classes follow. Ratings are the mean of labels and score, weighted by precision.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from crowdwise.arrays import Floats
from crowdwise.consensus import Consensus, RatingConsensus
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.ridge.targets import Targets
from crowdwise.threads import EXPONENTIAL, each_block, run_parallel, spans

# With labels missing, this many labels of the crowd's average quality are added to those of an annotator.
PRIOR_LABELS = 3.0
# A perfect annotator would get infinite expertise; no mean squared error is taken to be smaller than this.
SMALLEST_ERROR = 1e-8
# Odds beyond the exponential of this are infinite, or nearly.
_LARGEST_EXPONENT = 700.0
# What a difference and a quotient cost, in multiplications.
_DIVIDING = 30.0


@dataclass(frozen=True, eq=False)
class Precision:
    """How squared errors become expertise: one over the mean squared error, shrunk where labels are missing.

    Parameters
    ----------
    mass : ndarray of shape (n_annotators,)
        Total weight of the examples that each annotator labelled.
    prior : ndarray of shape (n_annotators,)
        Weight of the crowd's average error in each annotator's: zero for those who labelled everything, so that
        complete labels give the paper's expertise exactly.
    floor : float
        The smallest mean squared error.
    """

    mass: Floats
    prior: Floats
    floor: float

    @classmethod
    def of(cls, mass: Floats, answered: Floats, present: float, span: float) -> Precision:
        """From the weights that were labelled, and that there were to label."""
        prior = PRIOR_LABELS * (1 - np.minimum(answered / present, 1.0))
        return cls(mass, prior, SMALLEST_ERROR * span)

    def expertise(self, errors: Floats) -> Floats:
        """Expertise from sums of squared errors."""
        return 1.0 / self._shrunk(errors, self._crowd_error(errors))

    def crowd_expertise(self, errors: Floats) -> float:
        """The expertise of the crowd as a whole: what an unknown annotator is taken to have."""
        return 1.0 / max(self._crowd_error(errors), self.floor)

    def objective(self, errors: Floats, penalties: Floats) -> Floats:
        """Minus the mean log-likelihood of the labels, up to constants, plus the ridge penalty, for every round.

        The crowd's error, and the scale of the penalty, are set anew in each round from the expertise then; here all
        rounds are measured as in the last one, so that they can be compared. `errors` are (n_rounds, n_annotators).
        """
        strength = self.mass + self.prior
        logarithms = np.log(self._shrunk(errors, self._crowd_error(errors[-1])))
        return (logarithms @ strength + penalties) / strength.sum()

    def _crowd_error(self, errors: Floats) -> float:
        return float(errors.sum() / self.mass.sum())

    def _shrunk(self, errors: Floats, crowd: float) -> Floats:
        return np.maximum((errors + self.prior * crowd) / (self.mass + self.prior), self.floor)


@dataclass(frozen=True, eq=False)
class Votes:
    """The labels of every example, counted with the expertise of those who gave them.

    Parameters
    ----------
    votes : ndarray of shape (n_examples, n_classes), or (n_examples, 1) for ratings
        Sums of expertise per class, or of expertise times rating.
    total : ndarray of shape (n_examples,)
        Sums of expertise.
    """

    votes: Floats
    total: Floats

    @classmethod
    def of(cls, labels: CrowdLabels, expertise: Floats, part: Floats | None = None) -> Votes:
        """Count labels; `expertise` is of each annotator, `part` what each label counts if some share a vote."""
        if labels.classes is None:
            precision = _precision(labels, expertise, part)
            sums = labels.sum_per_example(precision * labels.values)
            return cls(sums[:, np.newaxis], labels.sum_per_example(precision))
        votes = np.empty((len(labels), len(labels.classes)))
        if labels.is_complete and part is None:
            total = np.broadcast_to(expertise.sum(), len(labels))
            for k in range(1, votes.shape[1]):
                votes[:, k] = labels.weigh_complete(expertise, k)
        else:
            precision = _precision(labels, expertise, part)
            total = labels.sum_per_example(precision)
            for k in range(1, votes.shape[1]):
                votes[:, k] = labels.sum_per_example(np.where(labels.values == k, precision, 0.0))
        not_first = votes[:, 1] if votes.shape[1] == 2 else votes[:, 1:].sum(axis=1)
        np.maximum(total - not_first, 0.0, out=votes[:, 0])
        return cls(votes, total)

    def mean_targets(self, targets: Targets) -> Floats:
        """The expertise-weighted mean of each example's targets, of shape (n_examples, n_targets)."""
        tiny = np.finfo(float).tiny  # there may be examples without labels
        if targets.n_targets == 1 and targets.codebook is not None and targets.codebook[0, 0] == -1:
            mean = np.empty((len(self.votes), 1))

            def write(block: slice) -> None:
                difference = self.votes[block, 1] - self.votes[block, 0]
                np.divide(difference, np.maximum(self.total[block], tiny), out=mean[block, 0])

            each_block(write, len(mean), _DIVIDING * len(mean))
            return mean
        share = self.votes / np.maximum(self.total, tiny)[:, np.newaxis]
        return share - targets.centre if targets.codebook is None else share @ targets.codebook

    def consensus(
        self, labels: CrowdLabels, scores: Floats | None = None, precision: Floats | float = 0.0
    ) -> Consensus | RatingConsensus:
        """The consensus of these votes, and of a model's scores if they are given.

        `labels` are what was counted; `precision` is that of the scores, in the units of expertise, for all or per
        example.
        """
        if labels.classes is not None and len(labels.classes) == 2:
            return Consensus(labels.examples, labels.classes, self._two_probabilities(scores, precision))
        counted = np.zeros((1, 1)) if scores is None else np.reshape(precision, (-1, 1)) * scores
        if labels.classes is None:
            precisions = np.maximum(self.total + (0.0 if scores is None else precision), np.finfo(float).tiny)
            return RatingConsensus(labels.examples, (self.votes + counted)[:, 0] / precisions, precisions**-0.5)
        return Consensus(labels.examples, labels.classes, softmax(2 * self.votes + counted, axis=1))

    def _two_probabilities(self, scores: Floats | None, precision: Floats | float) -> Floats:
        """Of the first and the second of two classes, small ones with all their digits."""
        proba = np.empty(self.votes.shape)
        precisions = np.broadcast_to(precision, self.total.shape)

        def write(block: slice) -> None:
            log_odds = self.votes[block, 1] - self.votes[block, 0]
            if scores is not None:
                log_odds += precisions[block] * scores[block, 0]
            odds = np.exp(np.clip(2 * log_odds, -_LARGEST_EXPONENT, _LARGEST_EXPONENT))
            first = 1 / (1 + odds)
            proba[block, 0], proba[block, 1] = first, odds * first

        each_block(write, len(proba), EXPONENTIAL * len(proba))
        return proba


def _precision(labels: CrowdLabels, expertise: Floats, part: Floats | None) -> Floats:
    """What each label counts."""
    precision = expertise[labels.annotator_index]
    return precision if part is None else precision * part


def estimated_accuracy(labels: CrowdLabels, proba: Floats, weight: Floats) -> Floats:
    """For every annotator the mean probability of the classes that they chose; NaN for those without a label."""
    if not labels.is_complete:
        right = labels.sum_in_blocks(lambda at, example: proba[example, labels.values[at]] * weight[example])
        given = labels.sum_in_blocks(lambda at, example: weight[example])
        return np.divide(right, given, out=np.full(len(given), np.nan), where=given > 0)
    matrix = labels.values.reshape(labels.shape)
    n_classes = proba.shape[1]

    def chosen(span: range) -> Floats:
        rows = slice(span.start, span.stop)
        codes, weighted = matrix[rows], proba[rows] * weight[rows, np.newaxis]
        if n_classes == 2:
            first = weighted[:, 0]
            return first.sum() + (weighted[:, 1] - first) @ codes.astype(np.float64)
        return sum(weighted[:, k] @ (codes == k) for k in range(n_classes))

    return sum(run_parallel(chosen, spans(len(labels)), 20.0 * matrix.size)) / weight.sum()
