"""The scale of labels: classes without an order, classes with one, or numbers; and what is taken as their consensus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from crowdwise._arrays import Array, Bools, Floats
from crowdwise._checks import check_choice
from crowdwise.exceptions import LabelError
from crowdwise.labels._mistakes import perhaps_no_answers

ScaleName = Literal["nominal", "ordinal", "interval"]
ConsensusBy = Literal["mode", "median", "mean"]
SCALES: tuple[ScaleName, ...] = get_args(ScaleName)
# Squares of the differences between larger numbers overflow.
LARGEST = 1e150
# Ratings whose variance is outside this range cannot be squared and summed without losing all digits.
_SMALLEST_SPAN, _LARGEST_SPAN = 1e-250, 1e250


@dataclass(frozen=True)
class LabelScale:
    """What labels are, and what is taken as their consensus.

    Parameters
    ----------
    name : {"nominal", "ordinal", "interval"}, default="nominal"
        Classes without an order; classes with one, as stars have; or real numbers.
    consensus : {"mode", "median", "mean"}, default="mode"
        What is taken of the probabilities of classes: the most probable class; of classes with an order also the
        median, or the level nearest to the mean. Of numbers it is always the mean.
    """

    name: ScaleName = "nominal"
    consensus: ConsensusBy = "mode"

    @classmethod
    def of(cls, name: Any, consensus: Any = None) -> LabelScale:
        """From names that a user gave; the consensus is by default the mode of classes and the mean of numbers."""
        check_choice("scale", name, SCALES)
        check_choice("consensus", consensus, (None, *get_args(ConsensusBy)))
        usual: ConsensusBy = "mode" if cls(name).has_classes else "mean"
        if name != "ordinal" and consensus not in (None, usual):
            raise ValueError(f'consensus="{consensus}" needs classes with an order: with_scale("ordinal", ...).')
        return cls(name, consensus or usual)

    @property
    def has_classes(self) -> bool:
        """Whether labels are classes, with an order or without; numbers otherwise."""
        return self.name != "interval"

    @property
    def has_order(self) -> bool:
        """Whether one label can be above another."""
        return self.name != "nominal"

    def in_order(self, classes: Array, known: Array) -> Array:
        """Classes with an order, of which some are new; an error if the place of a new one is not known."""
        if classes.dtype.kind in "biuf" and known.dtype.kind in "biuf":
            falling = len(known) > 1 and known[0] > known[-1]
            return np.sort(classes)[:: -1 if falling else 1]
        raise LabelError(
            f"the place of {classes[len(known)]!r} among the ordered classes {known.tolist()} is not known. Name all, "
            'from the lowest to the highest, before labels are appended: labels.with_scale("ordinal", levels=[...]).'
        )

    def no_answers(self, n: int) -> Array:
        """Answers of which none is known: -1 in the place of a class, NaN in that of a number."""
        return np.full(n, -1, dtype=np.intp) if self.has_classes else np.full(n, np.nan)

    def levels(self, classes: Array) -> Floats | None:
        """Where each class is: numbers as they are, anything else 1, 2, 3, ...; None for classes without an order."""
        if self.name != "ordinal":
            return None
        return classes.astype(np.float64) if classes.dtype.kind in "biuf" else np.arange(1.0, len(classes) + 1)


def is_known(answers: Array) -> Bools:
    """Which answers are known: classes from 0 on, ratings that are numbers."""
    return ~np.isnan(answers) if answers.dtype.kind == "f" else answers >= 0


NOMINAL, INTERVAL = LabelScale(), LabelScale.of("interval")


def check_order(classes: Array, *, declared: bool) -> None:
    """Raise unless classes have an order: that of numbers, or the one that was declared."""
    if classes.dtype.kind in "biuf":
        levels = classes.astype(np.float64)
        if not ((classes[1:] > classes[:-1]).all() or (classes[1:] < classes[:-1]).all()):
            raise LabelError(
                f"numbers have an order of their own, and these classes were declared in another: {classes.tolist()}. "
                "Declare them from the lowest to the highest."
            )
        if np.abs(levels).max(initial=0) > LARGEST:
            raise LabelError(
                f"levels beyond {LARGEST:g} are too far apart for their differences to be squared: rescale them."
            )
        if (np.diff(levels) == 0).any():
            raise LabelError(
                f"levels of so many digits cannot be told apart as numbers: {classes.tolist()[:8]}. Subtract what they "
                "have in common."
            )
    elif not declared and classes.dtype.kind not in "mM":
        words = perhaps_no_answers(classes)
        no_level = f" If {' and '.join(map(repr, words))} means no answer, say so first: abstain={words}, --abstain."
        raise LabelError(
            f"the ordinal scale needs classes with an order, and {classes.tolist()[:8]} have none of their own. Name "
            'them from the lowest to the highest: labels.with_scale("ordinal", levels=[...]), or classes=[...] when '
            f"labels are made; --classes A,B,... on the command line.{no_level if words else ''}"
        )


def checked_span(variance: float, low: float, high: float) -> float:
    """The variance of ratings from `low` to `high`, 1 if they are all the same; raises if squares lose all digits."""
    if low == high and abs(low) <= LARGEST:
        return 1.0
    if not _SMALLEST_SPAN < variance < _LARGEST_SPAN:
        raise LabelError(f"ratings from {low:g} to {high:g} cannot be squared without losing all digits: rescale them.")
    return variance
