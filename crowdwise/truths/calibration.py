"""Probabilities without known answers, and known answers of some examples -> probabilities calibrated by them.

Two members are averaged, by how well each predicts known answers that were held out: the probabilities as they are,
with a temperature; and a logistic regression on the same probabilities and on the votes, which learns what each
annotator's answer adds, and so the errors that annotators have in common. Without known answers both are the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, softmax

from crowdwise._arrays import Array, Codes, Floats, Positions
from crowdwise._limits import (
    ANSWER_PRECISION,
    COMPARED_EXAMPLES,
    N_FOLDS,
    SMALLEST_PROBABILITY,
    WITHOUT_TRUTHS_ODDS,
)
from crowdwise.exceptions import warn
from crowdwise.labels._encode import encode_declared, shown
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.truth import Known
from crowdwise.probabilities import best_temperature
from crowdwise.truths.check import RatingCheck
from crowdwise.truths.representativeness import Representativeness

# So many known answers are seldom all of one class by chance.
_MANY_ANSWERS = 10
# Ratings that are taken to have been as surely right as stated, besides the known ones.
_ASSUMED_RATINGS = 3.0
# Precision of the logarithm of the temperature and of class terms around zero; of class terms that are left free.
_PRECISION, _FREE_PRECISION = 1.0, 1e-3
# The logarithm of a probability of zero; infinity could not be subtracted from another.
_IMPOSSIBLE = -1e4


@dataclass(frozen=True, eq=False)
class Calibration:
    """How known answers calibrate probabilities."""

    temperature: float  # of the probabilities as they are
    own_share: float  # their part of the mixture
    factor: float = 1.0  # on their logarithms in the regression
    class_terms: Floats | None = None  # (n_classes,): what the regression adds to each class
    annotators: Array | None = None  # (n_annotators,): whose answers count in the regression
    # (n_annotators, n_classes, n_classes): what it adds to the score of each class (last axis) that an annotator gave
    # an answer.
    table: Floats | None = None

    def apply(self, proba: Floats, labels: CrowdLabels) -> Floats:
        """Calibrated probabilities of examples, from those without known answers and from their labels."""
        scores = _logarithms(proba)
        own = softmax(self.temperature * scores, axis=1)
        if self.table is None or self.own_share == 1:
            return own
        assert self.annotators is not None
        position = encode_declared(labels.annotators, self.annotators).astype(np.intp)[labels.annotator_index]
        added = np.where((position < 0)[:, np.newaxis], 0.0, self.table[position, labels.values])
        answers = np.column_stack([labels._sum_per_example(column) for column in added.T])
        regression = softmax(self.factor * scores + answers + self.class_terms, axis=1)
        return self.own_share * own + (1 - self.own_share) * regression


@dataclass(frozen=True, eq=False)
class Calibrated:
    """What known answers make of a fit."""

    calibration: Calibration
    held_out: Floats  # (n_known, n_classes): what would be stated of each known example if its answer were not known
    representative: bool  # whether the known examples may be a random draw


def calibrate(proba: Floats, labels: CrowdLabels, known: Known) -> Calibrated:
    """The calibration of probabilities of all examples by the known answers of some.

    If the known examples are no random draw, they show how annotators answer, and neither how frequent classes are nor
    how sure the consensus may be.
    """
    draw = Representativeness.of(proba, known.at, known.answers)
    _warn_if_one_class(known.answers, labels)
    votes, scores = _vote_matrix(labels, proba.shape[1])[known.at], _logarithms(proba[known.at])
    fold = folds_of_truths(proba[known.at, known.answers])
    enough = np.arange(len(known))
    if len(known) > COMPARED_EXAMPLES:
        enough = np.linspace(0, len(known) - 1, COMPARED_EXAMPLES).astype(np.intp)
    draw.warn_if_chosen(labels.classes)

    def learn(rows: Positions) -> Calibration:
        precision = _PRECISION if draw.is_representative else _FREE_PRECISION
        factor, class_terms, table = _regression(votes[rows], scores[rows], known.answers[rows], precision)
        if not draw.is_representative:
            return Calibration(1.0, 0.0, 1.0, np.zeros(proba.shape[1]), labels.annotators, table)
        temperature = _temperature(scores[rows], known.answers[rows])
        return Calibration(temperature, 1.0, factor, class_terms, labels.annotators, table)

    members = np.empty((2, len(known), proba.shape[1]))
    for k in np.unique(fold):
        out = np.flatnonzero(fold == k)
        calibration = learn(enough[fold[enough] != k])
        for number, share in enumerate((1.0, 0.0)):
            member = replace(calibration, own_share=share)
            members[number, out] = member.apply(proba[known.at[out]], labels[known.at[out]])
    if not draw.is_representative:
        return Calibrated(learn(enough), members[1], False)
    share = _own_share(members[:, np.arange(len(known)), known.answers])
    held_out = share * members[0] + (1 - share) * members[1]
    return Calibrated(replace(learn(enough), own_share=share), held_out, True)


def _regression(
    votes: sparse.csr_array, scores: Floats, codes: Codes, class_precision: float
) -> tuple[float, Floats, Floats]:
    """The factor on scores, class terms, and what each answer of each annotator adds to each class."""
    n_classes = scores.shape[1]
    columns = np.flatnonzero(np.bincount(votes.indices, minlength=votes.shape[1]))
    used, truth = votes[:, columns], np.eye(n_classes)[codes]
    precision = np.repeat([_PRECISION, class_precision, ANSWER_PRECISION], [1, n_classes, len(columns) * n_classes])

    def loss(theta: Floats) -> tuple[float, Floats]:
        factor, answers = np.exp(theta[0]), theta[1 + n_classes :].reshape(-1, n_classes)
        logarithms = log_softmax(factor * scores + used @ answers + theta[1 : 1 + n_classes], axis=1)
        residual = np.exp(logarithms) - truth
        slope = [[factor * (residual * scores).sum()], residual.sum(axis=0), np.asarray(used.T @ residual).ravel()]
        value = 0.5 * float(precision @ theta**2) - float((truth * logarithms).sum())
        return value, np.concatenate(slope) + precision * theta

    theta = minimize(loss, np.zeros(len(precision)), jac=True, method="L-BFGS-B", options={"maxiter": 300}).x
    table = np.zeros((votes.shape[1], n_classes))
    table[columns] = theta[1 + n_classes :].reshape(-1, n_classes)
    return float(np.exp(theta[0])), theta[1 : 1 + n_classes], table.reshape(-1, n_classes, n_classes)


def _temperature(scores: Floats, codes: Codes) -> float:
    """The factor on logarithms that makes the known answers most probable; near one if they are few."""
    log_likelihood = np.where(np.eye(scores.shape[1])[codes] == 1, 0.0, _IMPOSSIBLE)
    return best_temperature(scores, log_likelihood, np.ones(len(codes)))


def _own_share(right: Floats) -> float:
    """The probability that the first member predicts better; `right` is how probable each made held-out answers.

    The members are averaged by it: a few known answers change what labels show only if they contradict it clearly.
    """
    gain = np.log(right[1]).sum() - np.log(right[0]).sum()
    return float(expit(np.log(WITHOUT_TRUTHS_ODDS) - gain))


def calibrate_ratings(rating: Floats, std: Floats, truth: Floats, fold: Codes) -> tuple[float, RatingCheck]:
    """The same for ratings with standard deviations: a temperature for their precision, and how far they are off."""
    squared = (rating - truth) ** 2
    surprise = squared / std**2

    def temperature(squares: Floats) -> float:
        return (len(squares) + _ASSUMED_RATINGS) / (float(squares.sum()) + _ASSUMED_RATINGS)

    variance = std**2
    for k in np.unique(fold):
        variance[fold == k] /= temperature(surprise[fold != k])
    check = RatingCheck(len(truth), float(np.sqrt(squared.mean())), float(np.sqrt(variance.mean())))
    return temperature(surprise), check


def folds_of_truths(right: Floats) -> Codes:
    """Parts of the known answers to hold out, dealt out in the order of how probable, or how far off, each was.

    The order of the examples, of the annotators and of the classes plays no part in it.
    """
    fold = np.empty(len(right), dtype=np.intp)
    fold[np.argsort(np.round(right, 9), kind="stable")] = np.arange(len(right)) % N_FOLDS
    return fold


def _vote_matrix(labels: CrowdLabels, n_classes: int) -> sparse.csr_array:
    """A one for every label, of shape (n_examples, n_annotators * n_classes)."""
    columns = labels.annotator_index.astype(np.int64) * n_classes + labels.values
    shape = (len(labels), labels.n_annotators * n_classes)
    return sparse.csr_array((np.ones(labels.n_labels), columns, labels.indptr), shape=shape)


def _logarithms(proba: Floats) -> Floats:
    return np.log(np.maximum(proba, SMALLEST_PROBABILITY))


def _warn_if_one_class(codes: Codes, labels: CrowdLabels) -> None:
    """Warn if many known answers are of one class."""
    if len(codes) >= _MANY_ANSWERS and labels.classes is not None and (codes == codes[0]).all():
        warn(
            f"all {len(codes):,} known answers are {shown(labels.classes[codes[0]])}: they do not show how annotators "
            "answer on other classes. If they were picked for their class, add answers of other classes, or for "
            "examples drawn at random."
        )
