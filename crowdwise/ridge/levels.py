"""Statistics per level of disagreement and fold -> the sums per fold of any steepness, without reading a row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdwise.arrays import Floats
from crowdwise.crowd.easy_weights import example_weights
from crowdwise.ridge.statistics import Statistics

# Cells of levels and folds beyond this many cost more in calls than they save in reading.
MOST_CELLS = 2000


@dataclass(frozen=True, eq=False)
class LevelSums:
    """Sums per level of disagreement and fold: cells are the folds of the first level, then those of the second, ...

    `levels` is the disagreement of each level.
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
