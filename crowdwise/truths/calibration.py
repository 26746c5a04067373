"""What a model says about examples of known class, each held out -> probabilities that are as sure as it is right.

The model's probabilities get a temperature. With enough truths per annotator they are also mixed with those of
logistic regressions on votes (`vote_weights`), which know the errors that annotators have in common; the shares are
those that make the truths most probable, each example being predicted from others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from crowdwise.arrays import Codes, Floats
from crowdwise.exceptions import warn
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import shown
from crowdwise.truths.check import RatingCheck
from crowdwise.truths.draw import Draw
from crowdwise.truths.vote_weights import Ballot, VoteWeights

# Truths are held out in so many parts.
N_FOLDS = 5
# If the average annotator has labelled fewer of the truths than this, the model has nothing but a temperature.
_ENOUGH = 15
# With fewer truths outside the most frequent known class than this, or than a fifth of them all if these are few, too.
_OUTSIDE = 5
# So many truths are hardly all of one class by chance.
_MANY = 10
# More truths than this make nothing surer.
_MOST = 5000
# No probability is taken to be smaller: no model knows its own errors so well.
_SMALLEST = 1e-4
# The logarithm of the temperature is found between these, and drawn to zero as if it had this precision. With the
# smallest probability above, only a known class is certain.
_COLDEST, _HOTTEST, _HOLD = np.log(1e-3), np.log(3.0), 1.0
# Truths that every member of a mixture is taken to have predicted before.
_SHARED = 1.0
# Ratings that are taken to have been as surely right as stated, besides the truths.
_FEW = 3.0
# Rounds in which the shares of a mixture settle.
_ROUNDS = 200


@dataclass(frozen=True, eq=False)
class Calibration:
    """How probabilities of a model become ones that are as sure as it is right."""

    temperature: float  # what the logarithms of its probabilities are multiplied by
    shares: Floats  # (n_members,): of the model, and of each of `votes`, in the mixture of probabilities
    votes: tuple[VoteWeights, ...] = ()  # what votes count by themselves

    def apply(self, proba: Floats, labels: CrowdLabels) -> Floats:
        """Calibrated probabilities of examples from those of the model and from their labels.

        Labels are coded by the classes of the fit. Where there are none, votes say nothing.
        """
        ours = np.exp(_tempered(_logarithms(proba), self.temperature))
        if not self.votes:
            return ours
        members = [ours, *(np.exp(weights.log_proba(labels)) for weights in self.votes)]
        mixed = np.tensordot(self.shares, np.stack(members), axes=1)
        return np.where(labels.labels_per_example[:, np.newaxis] > 0, mixed, ours)


def calibrate(
    proba: Floats, codes: Codes, labels: CrowdLabels, fold: Codes, draw: Draw | None = None
) -> tuple[Calibration, Floats]:
    """The calibration of a model by truths, and what it says about each truth when that is held out.

    Probabilities are by models that did not know the class of the example; those of a fold were held out together. What
    comes second is calibrated by the truths of other folds. (Shares of a mixture are found from predictions of those,
    which may have learnt from this one: two numbers, which one truth hardly moves.) If the `draw` of known examples
    does not carry over to the others, probabilities stay as they are.
    """
    if draw is not None and not draw.carries_over:
        assert labels.classes is not None
        draw.note(labels.classes)
        return Calibration(1.0, np.ones(1)), np.exp(_tempered(_logarithms(proba), 1.0))
    _note_one_class(codes, labels)
    logarithms, ballot = _logarithms(proba), Ballot.of(labels, codes, proba.shape[1])
    some = np.arange(len(codes)) if len(codes) <= _MOST else np.linspace(0, len(codes) - 1, _MOST).astype(np.intp)
    members = _n_members(ballot)
    told = np.empty((members, *proba.shape))  # what each member says about examples that it has not learnt from
    for k in np.unique(fold):
        rows, others = np.flatnonzero(fold == k), some[fold[some] != k]
        temperature, votes = _members(logarithms[others], codes[others], ballot.of_rows(others), members)
        told[0, rows] = np.exp(_tempered(logarithms[rows], temperature))
        for member, weights in enumerate(votes, start=1):
            told[member, rows] = np.exp(weights.log_proba(labels[rows]))
    right = told[:, np.arange(len(codes)), codes].T
    held_out = np.empty(proba.shape)
    for k in np.unique(fold):
        rows, others = fold == k, some[fold[some] != k]
        held_out[rows] = np.tensordot(_shares(right[others]), told[:, rows], axes=1)
    temperature, votes = _members(logarithms[some], codes[some], ballot.of_rows(some), members)
    return Calibration(temperature, _shares(right[some]), votes), held_out


def calibrate_ratings(rating: Floats, std: Floats, truth: Floats, fold: Codes) -> tuple[Calibration, RatingCheck]:
    """The same for ratings with standard deviations: a temperature for their precision, and how far they are off."""
    squared = (rating - truth) ** 2
    surprise = squared / std**2

    def temperature(some: Floats) -> float:
        return (len(some) + _FEW) / (float(some.sum()) + _FEW)

    variance = std**2
    for k in np.unique(fold):
        variance[fold == k] /= temperature(surprise[fold != k])
    check = RatingCheck(len(truth), float(np.sqrt(squared.mean())), float(np.sqrt(variance.mean())))
    return Calibration(temperature(surprise), np.ones(1)), check


def folds_of_truths(right: Floats) -> Codes:
    """Parts of the truths to hold out, dealt out in the order of how probable each was, or how far off its rating is.

    The order of the examples, of the annotators and of the classes plays no part in it.
    """
    fold = np.empty(len(right), dtype=np.intp)
    fold[np.argsort(np.round(right, 9), kind="stable")] = np.arange(len(right)) % N_FOLDS
    return fold


def _note_one_class(codes: Codes, labels: CrowdLabels) -> None:
    """Say so if many truths are of one class."""
    if len(codes) >= _MANY and labels.classes is not None and (codes == codes[0]).all():
        warn(
            f"all {len(codes):,} known answers are {shown(labels.classes[codes[0]])}: they do not tell how annotators "
            "answer where it is another class, and how often the consensus is right about them is no measure of the "
            "other classes. If they were picked for their class, add some of other classes, or of examples at random."
        )


def _n_members(ballot: Ballot) -> int:
    if len(ballot.annotators) < 2 or ballot.votes.nnz < _ENOUGH * len(ballot.annotators):
        return 1
    n_known = len(ballot.truth)
    outside = n_known - ballot.truth.sum(axis=0).max()
    if outside < min(_OUTSIDE, n_known // 5):  # a regression would learn that nearly everything is of one class
        return 1
    return 3 if ballot.can_be_told_apart else 2


def _members(logarithms: Floats, codes: Codes, ballot: Ballot, n_members: int) -> tuple[float, tuple[VoteWeights, ...]]:
    """The temperature of the model, and what votes count by themselves: with a weight per annotator, or per answer."""
    votes = tuple(ballot.fit(answers=member == 2) for member in range(1, n_members))
    return _temperature(logarithms, codes), votes


def _logarithms(proba: Floats) -> Floats:
    return np.log(np.maximum(proba, _SMALLEST))


def _tempered(logarithms: Floats, temperature: float) -> Floats:
    return log_softmax(temperature * logarithms, axis=1)


def _temperature(logarithms: Floats, codes: Codes) -> float:
    """The factor that makes the truths most probable; near one if they are few."""
    rows = np.arange(len(codes))

    def loss(logarithm: float) -> float:
        likelihood = _tempered(logarithms, np.exp(logarithm))[rows, codes].sum()
        return 0.5 * _HOLD * logarithm**2 - float(likelihood)

    if len(codes) == 0:
        return 1.0
    found = minimize_scalar(loss, bounds=(_COLDEST, _HOTTEST), method="bounded", options={"xatol": 1e-7})
    return float(np.exp(found.x))


def _shares(right: Floats) -> Floats:
    """The shares of members under which the truths are most probable, near equal ones if they are few.

    From the probability of the true class by each member, of shape (n_known, n_members).
    """
    n_known, n_members = right.shape
    shares = np.full(n_members, 1 / n_members)
    for _ in range(_ROUNDS if n_members > 1 else 0):
        blame = right * shares
        blame /= blame.sum(axis=1, keepdims=True)
        shares = (blame.sum(axis=0) + _SHARED) / (n_known + _SHARED * n_members)
    return shares
