"""Stated probabilities of known and of other examples -> whether the known ones may be a random draw.

Known answers are often of chosen examples: those that annotators disagree on, gold questions that are clear to
everybody, or mostly one class. What they show about confidence and class frequencies does not hold for the others
(covariate and label shift).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdwise._arrays import Array, Codes, Floats, Positions
from crowdwise._limits import CHOSEN_DISTANCE, CHOSEN_NOISE, COMPARED_EXAMPLES
from crowdwise.exceptions import warn
from crowdwise.labels._encode import shown


@dataclass(frozen=True, eq=False)
class Representativeness:
    """How far the known examples differ from the others."""

    # The largest distance between known and other examples, from 0 to 1: Kolmogorov-Smirnov's of the confidence and the
    # class probabilities that labels give them, or by how much a class is more frequent among the answers.
    distance: float
    limit: float  # beyond it, the known examples are no random draw
    column: int  # where it is largest: 0 is confidence, then the classes
    known: float  # the mean there of the known examples
    others: float  # and of the others

    @classmethod
    def of(cls, proba: Floats, at: Positions, answers: Codes) -> Representativeness:
        """From the probabilities of all examples without known answers, which of them are known, and the answers."""
        is_other = np.ones(len(proba), dtype=bool)
        is_other[at] = False
        rest = np.flatnonzero(is_other)
        if not len(rest) or not len(at):
            return cls(0.0, 1.0, 0, 1.0, 1.0)
        if len(rest) > COMPARED_EXAMPLES:
            rest = np.random.default_rng(0).choice(rest, COMPARED_EXAMPLES, replace=False)
        columns = np.column_stack([proba.max(axis=1), proba])
        known, others = columns[at], columns[rest]
        distance = np.array([_distance(*pair) for pair in zip(known.T, others.T, strict=True)])
        is_given = proba.max(axis=0) > 0  # a class that no one gave has no probability to compare with
        answered = np.bincount(answers, minlength=proba.shape[1]) / len(answers)
        distance[1:] = np.maximum(distance[1:], np.where(is_given, answered - others[:, 1:].mean(axis=0), 0.0))
        largest = int(np.argmax(distance))
        limit = max(CHOSEN_DISTANCE, CHOSEN_NOISE * float(np.sqrt(1 / len(known) + 1 / len(others))))
        mean = known[:, largest].mean() if largest == 0 else max(known[:, largest].mean(), answered[largest - 1])
        return cls(float(distance[largest]), limit, largest, float(mean), float(others[:, largest].mean()))

    @property
    def is_representative(self) -> bool:
        """Whether the known examples may be a random draw."""
        return self.distance <= self.limit

    def warn_if_chosen(self, classes: Array | None) -> None:
        """Warn that the known answers calibrate no confidence, with the reason."""
        if self.is_representative:
            return
        quantity = "mean confidence"
        if self.column and classes is not None:
            quantity = f"share of {shown(classes[self.column - 1])}"
        warn(
            f"the examples with known answers differ from the others: their {quantity} is {self.known:.2f}, and by the "
            f"labels {self.others:.2f} on the others. They are used to compare annotators, but not to "
            "calibrate the confidence of the other examples. For that, add answers for examples drawn at random: "
            "suggest_labels(..., at_random=True), or crowdwise next --at-random."
        )


def _distance(*samples: Floats) -> float:
    """The Kolmogorov-Smirnov distance of two samples; values are compared to nine digits."""
    samples = tuple(np.sort(np.round(sample, 9)) for sample in samples)
    ranks = (np.searchsorted(sample, np.concatenate(samples), "right") / len(sample) for sample in samples)
    return float(np.abs(np.subtract(*ranks)).max())
