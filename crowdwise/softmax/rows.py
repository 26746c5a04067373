"""Features -> scores and sums over rows, in blocks that stay in the cache, for several models side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from crowdwise.arrays import Codes, Floats
from crowdwise.threads import run_parallel

# Rows whose features are this many bytes are worked on at a time: they stay in the cache, and are enough for what it
# costs to begin with a block.
_BLOCK_BYTES = 2**21
# Blocks that one task works on; partial sums are added in a fixed order, so threads change no bit.
_TASK_BLOCKS = 4


@dataclass(frozen=True)
class SoftmaxRows:
    """The rows that all models see, and which part of them each leaves out."""

    X: Any  # ndarray or sparse matrix of shape (n_examples, n_features)
    shift: Floats | None  # (n_features,): subtracted from dense features when they are read
    fold: Codes  # (n_examples,): the part that each row belongs to, from 0
    fit_intercept: bool = True  # whether models have an intercept, which is not penalised
    class_prior: float = 0.0  # examples added in the middle of a model's rows, evenly of all classes

    @property
    def n_folds(self) -> int:
        return int(self.fold.max(initial=0)) + 1

    def read(self, rows: slice | NDArray[np.intp]) -> Any:
        """The features of some rows, shifted, in double precision."""
        if sparse.issparse(self.X):  # read in one block
            return self.X if isinstance(rows, slice) else self.X[rows]
        if self.shift is None:
            return np.asarray(self.X[rows], dtype=np.float64)
        return np.subtract(self.X[rows], self.shift, dtype=np.float64)

    def over_tasks(self, task: Any, n_columns: int) -> Iterator[Any]:
        """What a task found in each list of blocks of rows; it multiplies the features with so many columns."""
        n_rows, n_features = self.X.shape
        step = n_rows if sparse.issparse(self.X) else max(64, _BLOCK_BYTES // (8 * max(n_features, 1)))
        blocks = [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, max(step, 1))]
        tasks = [blocks[start : start + _TASK_BLOCKS] for start in range(0, len(blocks), _TASK_BLOCKS)]
        return run_parallel(task, tasks, n_rows * n_features * n_columns)

    def fold_sums(self, values: Floats) -> Floats:
        """Sums of features (with a one) times a few values per row, over the rows of every fold.

        Of shape (n_features + 1, n_folds, n_outputs).
        """
        n_folds, n_outputs = self.n_folds, values.shape[1]
        shape = (n_outputs * n_folds, self.X.shape[1] + 1)

        def task(blocks: list[slice]) -> Floats:
            sums = np.zeros(shape)
            for block in blocks:
                own = self.at_fold(block)
                spread = np.zeros((n_outputs, n_folds * len(own)))
                spread[:, own] = values[block].T
                spread = spread.reshape(len(sums), -1)
                sums[:, :-1] += spread @ self.read(block)
                sums[:, -1] += spread.sum(axis=1)
            return sums

        sums = sum(self.over_tasks(task, 2 * shape[0]), start=np.zeros(shape))
        return sums.reshape(n_outputs, n_folds, -1).transpose(2, 1, 0)

    def at_fold(self, block: slice) -> NDArray[np.int64]:
        """Where the fold of each row of a block is, in a table that has a row per fold and a column per row."""
        fold = self.fold[block].astype(np.int64)  # folds are small integers, and places are not
        return fold * len(fold) + np.arange(len(fold))
