"""What a stream keeps apart in its sums, and whether that fits into memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from crowdwise.exceptions import DataError
from crowdwise.ridge.data import MEMORY_BUDGET
from crowdwise.ridge.levels import MOST_CELLS
from crowdwise.ridge.statistics import Statistics


@dataclass(frozen=True)
class StreamPlan:
    """What the sums of a stream depend on, besides features and labels.

    Parameters
    ----------
    kind : {"class", "rating"}
        What labels are.
    intercept : bool
        Whether the model has an intercept.
    init : {"majority", "mean"}
        The first consensus.
    n_folds : int
        Number of folds.
    seed : int
        Seed of the folds.
    by_level : bool
        Whether levels of disagreement are kept apart: they are not if all examples count alike anyway.
    tuned : bool
        Whether something is chosen over folds, so that they are needed.
    """

    kind: Literal["class", "rating"]
    intercept: bool
    init: str
    n_folds: int
    seed: int
    by_level: bool
    tuned: bool


@dataclass(frozen=True)
class SumsSize:
    """How much memory sums are going to take, whose columns and targets are those of `like`."""

    n_levels: int
    n_annotators: int
    is_complete: bool
    like: Statistics

    def n_folds(self, plan: StreamPlan, wanted: int) -> int:
        """How many folds can be kept apart: as many as wanted, or one if nothing is chosen over folds."""
        if self._fits(wanted) and (wanted == plan.n_folds or not plan.tuned):
            return wanted
        if plan.tuned or not self._fits(1):
            raise DataError(
                f"sums for {self.n_annotators} annotators and {self.n_levels} levels of disagreement do not fit into "
                f"{MEMORY_BUDGET / 2**20:.0f} MiB: with labels missing, each annotator needs sums of their own. Use "
                "fewer features or folds, steepness=0 (one level), or fit in memory, which can do without sums."
            )
        return 1

    def _fits(self, n_folds: int) -> bool:
        n_columns, n_targets = self.like.first.shape[1:]
        n_blocks = 1 if self.is_complete else self.n_annotators
        n_numbers = n_columns * (n_blocks * n_columns + self.n_annotators * n_targets)
        return 8 * self.n_levels * n_folds * n_numbers <= MEMORY_BUDGET


def check_levels(n_levels: int) -> None:
    if n_levels > MOST_CELLS:
        raise DataError(
            f"the disagreement of the examples of this stream takes more than {MOST_CELLS} different values, and sums "
            "are kept for each. Round the ratings (to half points, say), weight all examples alike with steepness=0, "
            "or fit in memory, which can do without sums."
        )
