"""Chunks of rows -> what logistic regressions read of them: features in their unit, folds, and sums over folds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from crowdwise._arrays import Codes, Floats
from crowdwise.rows.chunks import Chunk
from crowdwise.weights.folds import hashed_folds

# Soft classes of a chunk, of shape (n_examples, n_classes), and weights of its examples.
TargetsOf = Callable[[Chunk], tuple[Floats, Floats]]
# Rows whose features are this many bytes are worked on at a time: they stay in the cache, and are enough for what it
# costs to begin with a block.
_BLOCK_BYTES = 2**21


@dataclass(frozen=True, eq=False)
class SoftmaxRows:
    """How models read the rows of a chunk, and which part of them each leaves out."""

    n_features: int
    unit: float = 1.0  # what features are divided by
    shift: Floats | None = None  # (n_features,): subtracted from dense features then
    n_folds: int = 0  # parts of the rows, each of which one model leaves out; 0 is one model of all rows
    fold_columns: int = 0  # how many columns tell the fold of a row that has none yet
    fit_intercept: bool = True  # whether models have an intercept, which is not penalised

    @property
    def n_models(self) -> int:
        return max(self.n_folds, 1)

    def blocks(self, chunk: Chunk) -> Iterator[tuple[slice, Any]]:
        """Slices of the rows of a chunk, and their features in double precision."""
        n_rows = len(chunk)
        step = n_rows if sparse.issparse(chunk.X) else max(64, _BLOCK_BYTES // (8 * max(self.n_features, 1)))
        for start in range(0, n_rows, max(step, 1)):
            at = slice(start, min(start + step, n_rows))
            yield at, self.read(chunk.X[at])

    def read(self, X: Any) -> Any:
        """Features in the unit and around the shift of the coefficients."""
        if sparse.issparse(X):
            x = X.astype(np.float64)
            return x if self.unit == 1 else x / self.unit
        x = np.asarray(X, dtype=np.float64) if self.unit == 1 else X / np.float64(self.unit)
        return x if self.shift is None else x - self.shift

    def fold(self, chunk: Chunk) -> Codes:
        """The fold of each row of a chunk, by its content."""
        return chunk.keep("fold", lambda: hashed_folds(chunk.X, self.n_models, self.fold_columns))

    def at_fold(self, chunk: Chunk, block: slice) -> NDArray[np.int64]:
        """Where the fold of each row of a block is, in a table that has a row per fold and a column per row."""
        n_rows = block.stop - block.start
        if self.n_folds == 0:
            return np.arange(n_rows)
        return self.fold(chunk)[block].astype(np.int64) * n_rows + np.arange(n_rows)

    def fold_sums(self, chunk: Chunk, posterior: Floats, weight: Floats) -> Floats:
        """Sums of features (with a one) times weight, and times weight and class, over the rows of every fold.

        Of shape (1 + n_outputs, n_models, n_features + 1); one output for two classes, else one per class.
        """
        values = np.column_stack([np.ones(len(weight)), outputs_of(posterior)]) * weight[:, np.newaxis]
        n_values = values.shape[1]
        sums = np.zeros((n_values * self.n_models, self.n_features + 1))
        for block, x in self.blocks(chunk):
            own = self.at_fold(chunk, block)
            spread = np.zeros((n_values, self.n_models * len(own)))
            spread[:, own] = values[block].T
            spread = spread.reshape(len(sums), -1)
            sums[:, :-1] += spread @ x
            sums[:, -1] += spread.sum(axis=1)
        return sums.reshape(n_values, self.n_models, -1)

    def held_out_scores(self, chunk: Chunk, theta: Floats) -> Floats:
        """Scores of every row of a chunk by the model that leaves its fold out, of shape (n_examples, n_classes)."""
        n_outputs = theta.shape[2]
        flat = np.ascontiguousarray(theta.T).reshape(-1, len(theta))  # a row per output and model
        scores = np.empty((len(chunk), n_outputs))
        for block, x in self.blocks(chunk):
            of_all = np.ascontiguousarray(flat[:, :-1] @ x.T)
            of_all += flat[:, -1:]
            scores[block] = of_all.reshape(n_outputs, -1).take(self.at_fold(chunk, block), axis=1).T
        return classes_of(scores)


def classes_of(outputs: Floats) -> Floats:
    """Outputs of a model as scores of all classes: one output is the second of two classes compared with the first."""
    return np.column_stack([np.zeros(len(outputs)), outputs]) if outputs.shape[1] == 1 else outputs


def outputs_of(of_classes: Floats) -> Floats:
    """Columns of classes as outputs of a model: that of the second of two classes, else one per class."""
    return of_classes[..., 1:] if of_classes.shape[-1] == 2 else of_classes
