"""``truth=`` -> the known answers of some examples, in the order of the labels; a posterior that holds them fixed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np

from crowdwise._arrays import Array, Floats, Positions
from crowdwise.exceptions import LabelError
from crowdwise.labels._align import match_examples
from crowdwise.labels._encode import as_column, encode_declared, missing_mask, shown
from crowdwise.labels._frames import is_frame
from crowdwise.labels._mistakes import plain_spelling
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.scale import is_known

# Known answers belong to the next example if they agree so many standard errors better with its labels than with their
# own and than by chance; fewer are enough where some of their ids are not known otherwise.
_SHIFTED, _SHIFTED_AND_UNKNOWN = 3.5, 1.5


@dataclass(frozen=True, eq=False)
class Known:
    """The examples whose answer is known, among those of a fit."""

    at: Positions  # (n_known,): positions of the examples, ascending
    answers: Array  # (n_known,): positions of their classes, or their ratings

    @classmethod
    def of(cls, answers: Array) -> Known | None:
        """From the answers of all examples, as `known_answers` gives them; None if none is known."""
        at = np.flatnonzero(is_known(answers))
        return cls(at, answers[at]) if len(at) else None

    def __len__(self) -> int:
        return len(self.at)

    def __getitem__(self, index: Any) -> Known:
        """Some of them."""
        return Known(self.at[index], self.answers[index])

    def as_labels(self, labels: CrowdLabels) -> CrowdLabels:
        """Labels in which all who labelled a known example gave the known answer."""
        where = np.full(len(labels), -1, dtype=np.intp)
        where[self.at] = np.arange(len(self.at))
        place = where[labels.example_index]
        values = labels.values.copy()
        values[place >= 0] = self.answers[place[place >= 0]]
        return replace(labels, values=values)

    def clamp_posterior(self, posterior: Floats) -> Floats:
        """A posterior over classes in which the known ones are certain; a copy."""
        sure = posterior.copy()
        sure[self.at] = np.eye(posterior.shape[1])[self.answers]
        return sure


def known_answers(truth: Any, X: Any, labels: CrowdLabels) -> Array | None:
    """What `fit` was given as truth, matched with the examples; None if nothing is known at all.

    An array has None or NaN where nothing is known; anything else names examples by their ids, which may be some only.
    A frame has one column and the ids as index, or a column of ids and one of answers. The index of X names the rows if
    it has one; the labels do otherwise. Answers are positions among the classes, -1 where nothing is known; or ratings,
    and NaN there.
    """
    if truth is None:
        return labels.truth
    answers = codes_of_truth(truth, X, labels) if labels.scale.has_classes else _ratings(truth, X, labels)
    return answers if is_known(answers).any() else None


def codes_of_truth(truth: Any, X: Any, labels: CrowdLabels) -> Positions:
    """Positions of known classes among those of the labels; -1 where nothing is known."""
    assert labels.classes is not None
    values = _column(truth, X, labels)
    codes = encode_declared(values, labels.classes).astype(np.intp)
    strange = (codes < 0) & ~missing_mask(values)
    if strange.any():
        first = int(strange.argmax())
        value, classes = values[first : first + 1].tolist()[0], labels.classes.tolist()
        if str(value) in map(str, classes):
            advice = "A class is spelt like this but has another type: convert truth or the labels."
        elif alike := [name for name in classes if plain_spelling(str(name)) == plain_spelling(str(value))]:
            advice = f"It is spelt like the class {alike[0]!r}: write them the same way."
        elif same := [name for name in classes if _as_float(name) == _as_float(value)]:
            advice = f"That is the number of the class {same[0]!r}: convert truth, or the labels, so that both match."
        else:
            advice = (
                "If no annotator gave that class, declare it: read_labels(..., classes=[...]), or classes= of "
                "CrowdLabels.from_table."
            )
        raise LabelError(
            f"truth must use the labels' classes {classes}; found {value!r} for example "
            f"{shown(labels.examples[first])}. {advice}"
        )
    known = np.flatnonzero(codes >= 0)
    refuse_shifted_ids(labels.examples[known], codes[known], labels)
    return codes


def refuse_shifted_ids(ids: Array, codes: Array, labels: CrowdLabels) -> None:
    """An error if known answers are numbered from 1 and examples from 0, or the other way round.

    The ids may be some that no example has. Answers are compared with the majority vote.
    """
    if labels.examples.dtype.kind not in "iu" or ids.dtype.kind not in "iu" or len(ids) == 0 or not labels.n_labels:
        return
    order = np.argsort(labels.examples, kind="stable")
    names = labels.examples[order]
    votes = np.where(labels.labels_per_example > 0, labels._tally.argmax(axis=1), -1)[order]

    def agrees(shift: int) -> tuple[Floats, bool]:
        place = np.minimum(np.searchsorted(names, ids + shift), len(names) - 1)
        is_there = names[place] == ids + shift
        return (is_there & (votes[place] == codes)).astype(np.float64), bool(is_there.all())

    here, all_found = agrees(0)
    by_chance = np.bincount(votes[votes >= 0], minlength=codes.max() + 1)[codes].mean() / len(votes)
    error = (by_chance * (1 - by_chance) / len(ids)) ** 0.5
    if here.mean() < by_chance - 2 * error:  # a crowd that is wrong about these answers
        return
    for shift in (-1, 1):
        there, all_found_there = agrees(shift)
        limit = _SHIFTED_AND_UNKNOWN if all_found_there and not all_found else _SHIFTED
        better = there - here
        over_own = better.mean() * len(ids) ** 0.5 > limit * max(better.std(), 1 / len(ids))
        if over_own and there.mean() > by_chance + limit * error:
            first = int(ids.min())
            raise LabelError(
                f"ids of the known answers look shifted by one: the answer of {first} fits the labels of "
                f"{first + shift}, and so on ({100 * there.mean():.0f}% of the answers then agree with the majority "
                f"vote, {100 * here.mean():.0f}% as they are). "
                f"{'Subtract 1 from' if shift < 0 else 'Add 1 to'} the ids of the known answers."
            )


def _as_float(value: Any) -> float:
    """The number that is meant; NaN, which is equal to none, if it is not one."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _ratings(truth: Any, X: Any, labels: CrowdLabels) -> Floats:
    values = _column(truth, X, labels)
    missing = missing_mask(values)
    try:
        ratings = np.where(missing, np.nan, np.where(missing, 0.0, values).astype(np.float64))
    except (TypeError, ValueError):
        raise LabelError("truth must be ratings, which are numbers, or missing.") from None
    if (infinite := np.isinf(ratings)).any():
        first = int(infinite.argmax())
        raise LabelError(f"truth must be finite; found {ratings[first]} for example {shown(labels.examples[first])}.")
    return ratings


def _column(truth: Any, X: Any, labels: CrowdLabels) -> Array:
    """The values of truth in the order of the labels."""
    values = as_column(match_examples(_of_frame(truth), X, labels, "truth", partial=True), "truth")
    if len(values) != len(labels):
        raise LabelError(
            f"truth must be one per example, {len(labels)}; got {len(values)}. If it is known for some examples only, "
            "give None or NaN for the others, or a dict from example to answer."
        )
    return values


def _of_frame(truth: Any) -> Any:
    """The one column of a frame, or the answers by id of one with two columns; anything else as it is."""
    if not is_frame(truth):
        return truth
    frame = nw.from_native(truth, eager_only=True)
    if len(frame.columns) == 1:
        return frame[frame.columns[0]].to_native()
    if len(frame.columns) != 2:
        raise LabelError(
            "truth as a frame must have one column, with the ids of the examples as index, or two, ids and answers; "
            f"found {frame.columns}. Keep these two: truth[[ids, answers]]."
        )
    answers: dict[Any, Any] = {}
    for example, answer in zip(*(frame[name].to_list() for name in frame.columns), strict=True):
        known = answers.setdefault(example, answer)
        if known != answer and not (known != known and answer != answer):  # NaN is not equal to itself
            raise LabelError(f"truth has two answers for example {shown(example)}: {known!r} and {answer!r}.")
    return answers
