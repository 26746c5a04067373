"""Sums per level of disagreement and fold: those of any steepness follow, also after some labels have changed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from crowdwise._arrays import Array, Bools, Codes, Floats
from crowdwise.crowd._disagreement import example_weights
from crowdwise.ridge.data import RidgeData
from crowdwise.ridge.statistics import Statistics
from crowdwise.weights.folds import Folds

# Data, and the folds of their examples.
InFolds = tuple[RidgeData, Folds]

# Sums are made anew if more than this share of the rows count otherwise than before.
_MOVED_SHARE = 0.1


@dataclass(frozen=True, eq=False)
class LevelSums:
    """Sums per level of disagreement and fold: cells are the folds of the first level, then those of the second, ...

    `levels` is the disagreement of each level, `level` that of each example, if these are known.
    """

    statistics: Statistics
    levels: Floats
    n_folds: int
    level: Codes | None = None

    def plain(self) -> Statistics:
        """Sums per fold that no easiness weights."""
        return self.statistics.combine(self._folds_of_cells())

    def easy(self, steepness: float) -> Statistics:
        """Sums per fold, weighted by easiness."""
        weight = np.repeat(self.easiness(steepness), self.n_folds)
        return self.statistics.combine(self._folds_of_cells(), weight)

    def easiness(self, steepness: float) -> Floats:
        """The weight of each level."""
        return example_weights(self.levels, steepness)

    def _folds_of_cells(self) -> Floats:
        return np.tile(np.eye(self.n_folds), len(self.levels))

    def examples_per_level(self) -> tuple[Floats, Floats]:
        """The levels that occur, ascending, and how often the examples of each count."""
        levels, place = np.unique(self.levels, return_inverse=True)
        present = self.statistics.present.reshape(-1, self.n_folds).sum(axis=1)
        count = np.bincount(place, present).astype(np.float64)
        return levels[count > 0], count[count > 0]

    def without_folds(self) -> LevelSums:
        """The folds of each level added up."""
        use = np.repeat(np.eye(len(self.levels)), self.n_folds, axis=1)
        return replace(self, statistics=self.statistics.combine(use), n_folds=1)

    def relabelled(self, before: InFolds, after: InFolds) -> LevelSums | None:
        """The sums after some labels have changed, from those of the rows concerned; None if these are many.

        The arrays of these sums are written over. With other labels, the disagreement of a level may be another, but
        rows that stayed as they were are still of one level.
        """
        was, now = before[0].training.used, after[0].training.used
        assert self.level is not None
        value, level = _of_all(now, after[0].training.weighing_disagreement), _of_all(was, self.level)
        stay = was & now & ~_relabelled(before[0], after[0])
        if self.n_folds > 1:
            stay &= _of_all(was, before[1].fold) == _of_all(now, after[1].fold)
        levels = np.full(len(self.levels), np.nan)  # of levels that no row stays at
        levels[level[stay]] = value[stay]
        stay &= levels[level] == value
        moved = np.flatnonzero((was | now) & ~stay)
        if len(moved) > _MOVED_SHARE * len(now):
            return None
        new = np.setdiff1d(value[moved[now[moved]]], levels)
        levels = np.append(levels, np.full(max(len(new) - int(np.isnan(levels).sum()), 0), np.nan))
        levels[np.flatnonzero(np.isnan(levels))[: len(new)]] = new
        order = np.argsort(levels)
        place = order[np.minimum(np.searchsorted(levels[order], value), len(order) - 1)]
        statistics = self.statistics
        if len(levels) > len(self.levels):
            statistics = statistics.with_cells(len(levels) * self.n_folds)
        for (data, folds), level_of_row, sign in ((before, level, -1.0), (after, np.where(stay, level, place), 1.0)):
            used = data.training.used
            level_of_used = level_of_row[used]
            cell = level_of_used if self.n_folds == 1 else level_of_used * self.n_folds + folds.fold
            rows = (np.cumsum(used) - 1)[moved[used[moved]]]
            if len(rows):
                statistics.add_to_cells(*data.sums_of(rows, cell[rows]), sign)
        statistics.clear(np.bincount(cell, minlength=statistics.n_cells) == 0)
        levels = np.nan_to_num(levels, nan=value[now][0])  # of no row, whatever it is
        return LevelSums(replace(statistics, targets=after[0].targets), levels, self.n_folds, level_of_used)


def _of_all(used: Bools, values: Array) -> Array:
    """Values of the examples that take part among all; 0 for the others."""
    of_all = np.zeros(len(used), dtype=values.dtype)
    of_all[used] = values
    return of_all


def _relabelled(before: RidgeData, after: RidgeData) -> Bools:
    """Which of all examples have other labels, or another first consensus."""
    changed: Bools = np.ones(len(before.training.used), dtype=bool)
    both = before.training.used & after.training.used
    old, new = (np.flatnonzero(both[data.training.used]) for data in (before, after))
    labels, new_labels = before.labels[old], after.labels[new]
    n_labels, n_new_labels = labels.labels_per_example, new_labels.labels_per_example
    as_many = n_labels == n_new_labels
    same = as_many & (before.first[old] == after.first[new]).all(axis=1)
    compared, new_compared = np.repeat(as_many, n_labels), np.repeat(as_many, n_new_labels)
    differs = (labels.annotator_index[compared] != new_labels.annotator_index[new_compared]) | (
        labels.values[compared] != new_labels.values[new_compared]
    )
    same[labels.example_index[compared][differs]] = False
    changed[np.flatnonzero(both)] = ~same
    return changed
