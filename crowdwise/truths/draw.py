"""What is stated of known and of other examples -> whether the known ones may be a random draw.

Truths are often of chosen examples: those that annotators disagree on, gold questions that are clear to everybody, or
one class for the most part. How often the consensus is right on these says little about the others (covariate and label
shift). Where the two have little in common, what is learnt from truths about confidence and votes does not carry over.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from crowdwise.arrays import Array, Floats, Positions
from crowdwise.exceptions import warn
from crowdwise.labels.encode import shown

# A random draw differs as much from all with this probability (a chi-squared test).
_BY_CHANCE = 1e-3
# Confidence, rounded to steps of this size, is compared in so many groups, each with as many of the other examples.
_STEP, _GROUPS = 0.05, 5
# A group is covered by the truths if they are at least this share of what a random draw would give.
_COVERED = 0.25
# Truths carry over to the others if they leave less than this share of them uncovered, and if less than that share of
# the truths would have to be of another class, as far as is stated, to have the classes of the others.
_UNCOVERED, _OTHER_CLASS = 0.3, 0.35
# So many of the other examples are enough to compare with.
_ENOUGH = 5000


@dataclass(frozen=True, eq=False)
class Draw:
    """How the known examples differ from the others; all is stated as if no class were known."""

    confidence: tuple[float, float]  # mean stated confidence of the known and of the other examples
    uncovered: float  # share of the other examples that are unlike the known ones in stated confidence; 0 if by chance
    classes: Floats  # (2, n_classes): shares of the stated classes, of the known and of the other examples
    at_random: bool  # whether the known examples may be a random draw, by stated confidence and class

    @classmethod
    def of(cls, n_known: int, proba: Floats, weight: Floats) -> Draw:
        """From what is stated of the known and then of the other examples, and how much each of the others counts."""
        confidence, stated = proba.max(axis=1), proba.argmax(axis=1)
        n_classes, n_others, mean = proba.shape[1], float(weight.sum()), float(confidence[:n_known].mean())
        if n_known == len(proba) or n_others <= 0:
            return cls((mean, mean), 0.0, np.tile(_shares(stated, n_classes), (2, 1)), True)
        steps = np.round(confidence / _STEP)
        group = _groups(steps, steps[n_known:], weight / n_others)
        known, others = _shares(group[:n_known], _GROUPS), _shares(group[n_known:], _GROUPS, weight)
        classes = np.stack([_shares(stated[:n_known], n_classes), _shares(stated[n_known:], n_classes, weight)])
        chosen = _differ(known, others, n_known, n_others)
        return cls(
            (mean, float(np.average(confidence[n_known:], weights=weight))),
            float(others[known < _COVERED * others].sum()) if chosen else 0.0,
            classes,
            not chosen and not _differ(classes[0], classes[1], n_known, n_others),
        )

    @property
    def class_distance(self) -> float:
        """The share of the known examples that would have to be of another class to have the classes of the others."""
        return float(np.abs(self.classes[0] - self.classes[1]).sum()) / 2

    @property
    def carries_over(self) -> bool:
        """Whether what is learnt from the known examples may be taken to hold for the others."""
        return self.at_random or (self.uncovered < _UNCOVERED and self.class_distance < _OTHER_CLASS)

    def note(self, names: Array) -> None:
        """Warn that the truths calibrate nothing, and say why."""
        if self.class_distance >= _OTHER_CLASS:
            most = int((self.classes[0] - self.classes[1]).argmax())
            known, others = self.classes[:, most]
            why = f"by their labels {known:.0%} of them are {shown(names[most])}, and {others:.0%} of the others"
        else:
            known, others = self.confidence
            why = f"stated confidence would be {known:.2f} on average on these, and is {others:.2f} on the others"
        warn(
            f"the known answers are of examples unlike the others: {why}. Known answers are kept, and annotators are "
            "compared with them, but the confidence of the other examples is not calibrated by them. For that, add "
            "answers to examples drawn at random: what_to_label_next(..., at_random=True), or crowdwise next "
            "--at-random."
        )


def some_others(at: Positions, n_examples: int) -> Positions:
    """Positions of examples that are not among those at `at`; of very many, evenly spread ones."""
    other = np.ones(n_examples, dtype=bool)
    other[at] = False
    positions = np.flatnonzero(other)
    return positions[:: max(1, -(-len(positions) // _ENOUGH))]


def _groups(values: Floats, others: Floats, weight: Floats) -> Positions:
    """The group of each value: what share of the others is below it, counting half of those that are equal to it."""
    order = np.argsort(others, kind="stable")
    below = np.concatenate([[0.0], np.cumsum(weight[order])])
    first, last = (np.searchsorted(others[order], values, side) for side in ("left", "right"))
    rank = (below[first] + below[last]) / 2
    return np.minimum((_GROUPS * rank).astype(np.intp), _GROUPS - 1)


def _shares(values: Positions, n: int, weight: Floats | None = None) -> Floats:
    """The share of each of the values from 0 to n - 1."""
    counts = np.bincount(values, weight, n)
    return counts / counts.sum()


def _differ(known: Floats, others: Floats, n_known: int, n_others: float) -> bool:
    """Whether two distributions differ by more than chance would make them differ."""
    filled = others > 0
    if filled.sum() < 2:
        return False
    statistic = float(((known - others)[filled] ** 2 / others[filled]).sum())
    return statistic > chi2.isf(_BY_CHANCE, filled.sum() - 1) * (1 / n_known + 1 / n_others)
