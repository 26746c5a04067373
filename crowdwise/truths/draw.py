"""What is stated of known and of other examples -> whether the known ones may be a random draw.

Truths are often of chosen examples: those that annotators disagree on, gold questions that are clear to everybody, or
one class for the most part. How often the consensus is right on these says little about the others (covariate and label
shift). Where the two have little in common, what is learnt from truths about confidence and votes does not carry over.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdwise.arrays import Array, Codes, Floats, Positions
from crowdwise.exceptions import warn
from crowdwise.labels.encode import shown

# Confidence, rounded to steps of this size, is compared in so many groups, each with as many of the other examples. A
# random draw has a chi-squared statistic above this with a probability of one in a thousand.
_STEP, _GROUPS, _BY_CHANCE = 0.05, 5, 18.47
# A group is covered by the truths if they are at least this share of what a random draw would give.
_COVERED = 0.25
# Truths carry over to the others if they leave less than this share of them uncovered, and if less than that share of
# the truths would have to be of another class to have the classes of the others.
_UNCOVERED, _OTHER_CLASS = 0.3, 0.4
# So many of the other examples are enough to compare with.
_ENOUGH = 5000


@dataclass(frozen=True, eq=False)
class Draw:
    """How the known examples differ from the others; all is stated as if no class were known."""

    confidence: tuple[float, float]  # mean stated confidence of the known and of the other examples
    uncovered: float  # share of the other examples that are unlike the known ones in stated confidence
    like_others: bool  # whether the known ones may be drawn at random from all, by stated confidence
    classes: Floats  # (2, n_classes): shares of the known classes, and of the classes stated of the others

    @classmethod
    def of(cls, answers: Codes, proba: Floats, weight: Floats) -> Draw:
        """From known classes, what is stated of known and then of other examples, and how much each other counts."""
        n_known, (n_rows, n_classes) = len(answers), proba.shape
        confidence, stated = proba.max(axis=1), proba.argmax(axis=1)
        shares = np.tile(np.bincount(answers, minlength=n_classes) / n_known, (2, 1))
        mean = float(confidence[:n_known].mean())
        n_others = float(weight.sum())
        if n_known == n_rows or n_others <= 0:
            return cls((mean, mean), 0.0, True, shares)
        weight = weight / n_others
        shares[1] = np.bincount(stated[n_known:], weight, n_classes)
        steps = np.round(confidence / _STEP)
        group = _groups(steps, steps[n_known:], weight)
        known = np.bincount(group[:n_known], minlength=_GROUPS) / n_known
        others = np.bincount(group[n_known:], weight, _GROUPS)
        filled = others > 0  # not if many have the same confidence, and so are of one group
        statistic = float(((known - others)[filled] ** 2 / others[filled]).sum())
        like_others = statistic <= _BY_CHANCE * (1 / n_known + 1 / n_others)
        uncovered = 0.0 if like_others else float(others[known < _COVERED * others].sum())
        return cls((mean, float(confidence[n_known:] @ weight)), uncovered, like_others, shares)

    @property
    def class_distance(self) -> float:
        """The share of the known examples that would have to be of another class to have the classes of the others."""
        return float(np.abs(self.classes[0] - self.classes[1]).sum()) / 2

    @property
    def at_random(self) -> bool:
        """Whether the known examples may be a random draw of all, as far as can be seen."""
        return self.like_others and self.class_distance < _OTHER_CLASS

    @property
    def carries_over(self) -> bool:
        """Whether what is learnt from the known examples may be taken to hold for the others."""
        return self.uncovered < _UNCOVERED and self.class_distance < _OTHER_CLASS

    def note(self, names: Array) -> None:
        """Warn that the truths calibrate nothing, and say why."""
        if self.class_distance >= _OTHER_CLASS:
            most = int((self.classes[0] - self.classes[1]).argmax())
            known, others = self.classes[:, most]
            why = f"{known:.0%} of them are {shown(names[most])}, as is the consensus on {others:.0%} of the others"
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
    """The group of each value: how much of the others is below it, counting half of those that are equal to it."""
    order = np.argsort(others, kind="stable")
    below = np.concatenate([[0.0], np.cumsum(weight[order])])
    first, last = (np.searchsorted(others[order], values, side) for side in ("left", "right"))
    rank = (below[first] + below[last]) / 2
    return np.minimum((_GROUPS * rank).astype(np.intp), _GROUPS - 1)
