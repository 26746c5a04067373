"""Statistics per level of disagreement and fold -> the sums per fold of any steepness, without reading a row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdwise.arrays import Array, Floats
from crowdwise.crowd.easy_weights import example_weights
from crowdwise.ridge.statistics import Statistics
from crowdwise.threads import run_parallel, spans

# Cells of levels and folds beyond this many cost more in calls than they save in reading.
MOST_CELLS = 2000
# Of this many examples, the levels of disagreement are nearly always all of them.
_SOME_EXAMPLES = 2000
# Up to this many levels, comparing with each is faster than a search.
_FEW_LEVELS = 32
# What finding the level of an example costs, in multiplications.
_SEARCH = 200.0


@dataclass(frozen=True, eq=False)
class LevelSums:
    """Sums per level of disagreement and fold.

    Parameters
    ----------
    statistics : Statistics
        Cells are the folds of the first level, then those of the second, and so on.
    levels : ndarray of shape (n_levels,)
        The disagreement of each level.
    n_folds : int
        Number of folds.
    """

    statistics: Statistics
    levels: Floats
    n_folds: int

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


def levels_of(values: Floats) -> tuple[Floats, Array]:
    """The values that occur, ascending, and which one each example has; quickly if they are few.

    Parameters
    ----------
    values : ndarray of shape (n_examples,)
        Such as disagreement.

    Returns
    -------
    levels : ndarray of shape (n_levels,)
    level : ndarray of shape (n_examples,)
        Positions in `levels`.
    """
    levels = np.unique(values[:: max(1, len(values) // _SOME_EXAMPLES)])
    if len(levels) < MOST_CELLS / 2:
        level = np.empty(len(values), dtype=np.int16)

        def place(span: range) -> bool:
            some = slice(span.start, span.stop)
            level[some] = _places(levels, values[some])
            return bool((levels.take(level[some]) == values[some]).all())

        if all(list(run_parallel(place, spans(len(values)), _SEARCH * len(values)))):
            return levels, level  # much faster than sorting everything
    return np.unique(values, return_inverse=True)


def _places(levels: Floats, values: Floats) -> Array:
    """How many of the levels but the first each value reaches."""
    if len(levels) > _FEW_LEVELS:
        return np.maximum(np.searchsorted(levels, values, side="right") - 1, 0)
    place = np.zeros(len(values), dtype=np.int16)
    for level in levels[1:]:
        place += values >= level
    return place
