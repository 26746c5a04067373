"""What a model says about examples of known class, each held out -> probabilities that are as sure as it is right.

The model's probabilities get a temperature. With enough truths per annotator they are also mixed with those of
logistic regressions on votes (`vote_weights`), which learn the errors that annotators have in common, and with those of
each annotator alone (`answer_tables`); the shares are those that make the truths most probable, each example being
predicted from others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from crowdwise.arrays import Codes, Floats, Positions
from crowdwise.exceptions import warn
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import shown
from crowdwise.truths.answer_tables import AnswerTables
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
# Truths that every member of a mixture is taken to have predicted before, and all annotators alone together.
_SHARED, _SHARED_ALONE = 1.0, 0.3
# More annotators than this are a crowd, of whom no single one has labelled enough.
_PANEL = 50
# Ratings that are taken to have been as surely right as stated, besides the truths.
_FEW = 3.0
# Rounds in which the shares of a mixture settle.
_ROUNDS = 200


@dataclass(frozen=True, eq=False)
class Calibration:
    """How probabilities of a model become ones that are as sure as it is right."""

    temperature: float  # what the logarithms of its probabilities are multiplied by
    # (n_members,): of the model, of each of `votes`, and of each annotator of `alone`, in the mixture of probabilities.
    shares: Floats
    votes: tuple[VoteWeights, ...] = ()  # what votes count by themselves
    alone: AnswerTables | None = None  # what the answers of each annotator alone say

    def apply(self, proba: Floats, labels: CrowdLabels) -> Floats:
        """Calibrated probabilities of examples from those of the model and from their labels.

        Labels are coded by the classes of the fit. Where there are none, votes say nothing.
        """
        ours = self._tempered(proba)
        if not self.votes:
            return ours
        members = [ours, *(np.exp(weights.log_proba(labels)) for weights in self.votes)]
        mixed = np.tensordot(self.shares[: len(members)], np.stack(members), axes=1)
        if self.alone is not None:
            mixed += self.alone.mixed(labels, self.shares[len(members) :])
        return np.where(labels.labels_per_example[:, np.newaxis] > 0, mixed, ours)

    def right(self, proba: Floats, labels: CrowdLabels, codes: Codes) -> Floats:
        """Probability of the true class by each member, of shape (n_examples, n_members)."""
        ours, rows = self._tempered(proba), np.arange(len(codes))
        parts = [ours[rows, codes], *(np.exp(weights.log_proba(labels)[rows, codes]) for weights in self.votes)]
        return np.column_stack(parts if self.alone is None else [*parts, self.alone.right(labels, codes)])

    @property
    def before(self) -> Floats:
        """How many truths each member is taken to have predicted before, of shape (n_members,)."""
        n_alone = 0 if self.alone is None else len(self.alone.annotators)
        return np.repeat([_SHARED, _SHARED_ALONE / max(n_alone, 1)], [1 + len(self.votes), n_alone])

    def with_shares(self, right: Floats) -> Calibration:
        """The same with the shares that suit the probabilities of true classes by each member."""
        return replace(self, shares=_shares(right, self.before))

    def _tempered(self, proba: Floats) -> Floats:
        return np.exp(_tempered(_logarithms(proba), self.temperature))


def calibrate(
    proba: Floats, codes: Codes, labels: CrowdLabels, fold: Codes, draw: Draw | None = None
) -> tuple[Calibration, Floats]:
    """The calibration of a model by truths, and what it says about each truth when that is held out.

    Probabilities are by models that did not know the class of the example; those of a fold were held out together. What
    comes second is calibrated by the truths of other folds. (Shares of a mixture are found from predictions of those,
    which may have learnt from this one: a few numbers, which one truth hardly moves.) If the `draw` of known examples
    does not carry over to the others, probabilities stay as they are.
    """
    if draw is not None and not draw.carries_over:
        assert labels.classes is not None
        draw.note(labels.classes)
        none = Calibration(1.0, np.ones(1))
        return none, none.apply(proba, labels)
    _note_one_class(codes, labels)
    logarithms, ballot = _logarithms(proba), Ballot.of(labels, codes, proba.shape[1])
    some = np.arange(len(codes)) if len(codes) <= _MOST else np.linspace(0, len(codes) - 1, _MOST).astype(np.intp)
    n_regressions = _n_regressions(ballot)

    def learnt_from(rows: Positions) -> Calibration:
        return _members(logarithms[rows], codes[rows], ballot.of_rows(rows), n_regressions)

    without = {k: learnt_from(some[fold[some] != k]) for k in np.unique(fold).tolist()}
    final = learnt_from(some)
    right = np.empty((len(codes), len(final.before)))  # by members that have not learnt from the example
    for k, members in without.items():
        rows = np.flatnonzero(fold == k)
        right[rows] = members.right(proba[rows], labels[rows], codes[rows])
    held_out = np.empty(proba.shape)
    for k, members in without.items():
        rows, others = np.flatnonzero(fold == k), some[fold[some] != k]
        held_out[rows] = members.with_shares(right[others]).apply(proba[rows], labels[rows])
    return final.with_shares(right[some]), held_out


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


def _n_regressions(ballot: Ballot) -> int:
    """How many regressions on votes the truths suffice for."""
    if len(ballot.annotators) < 2 or ballot.votes.nnz < _ENOUGH * len(ballot.annotators):
        return 0
    n_known = len(ballot.truth)
    outside = n_known - ballot.truth.sum(axis=0).max()
    if outside < min(_OUTSIDE, n_known // 5):  # a regression would learn that nearly everything is of one class
        return 0
    return 2 if ballot.can_be_told_apart else 1


def _members(logarithms: Floats, codes: Codes, ballot: Ballot, n_regressions: int) -> Calibration:
    """The temperature of the model, what votes count by themselves, and what annotators say alone; without shares."""
    votes = tuple(ballot.fit(answers=answers) for answers in (False, True)[:n_regressions])
    alone = AnswerTables.of(ballot) if votes and len(ballot.annotators) <= _PANEL else None
    return Calibration(_temperature(logarithms, codes), np.empty(0), votes, alone)


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


def _shares(right: Floats, before: Floats) -> Floats:
    """The shares of members under which the truths are most probable.

    From the probability of the true class by each member, of shape (n_known, n_members), and how many truths each is
    taken to have predicted before.
    """
    shares = before / before.sum()
    for _ in range(_ROUNDS if len(shares) > 1 else 0):
        blame = right * shares
        blame /= blame.sum(axis=1, keepdims=True)
        shares = (blame.sum(axis=0) + before) / (len(right) + before.sum())
    return shares
