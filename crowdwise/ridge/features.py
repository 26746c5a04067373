"""The features: the only module that reads X. Blocks of rows, shifted and weighted, in parallel."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from threadpoolctl import ThreadpoolController

from crowdwise.arrays import Floats
from crowdwise.exceptions import DataError

Result = TypeVar("Result")

# Rows of a block: it should stay in the cache of one core while it is shifted, weighted and multiplied.
_BLOCK_BYTES = 2**20
# Below this many multiplications the work is done before a second thread has started.
_PARALLEL_FROM = 2**27
# Up to this many columns, the matrices of a round are too small to be shared between threads.
_WIDE = 500
# Features this many times further from zero than they are wide lose digits unless they are shifted to be scored.
_FAR_OFF = 1e4


@dataclass(frozen=True)
class Rows:
    """Features as the solver sees them: shifted near zero, with a column of ones for the intercept.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_examples, n_features)
        Never changed.
    shift : ndarray of shape (n_features,)
        Subtracted from every row, so that large offsets do not drown small differences.
    intercept : bool
        Whether a last column of ones is added.
    """

    X: Any
    shift: Floats
    intercept: bool

    @classmethod
    def of(cls, X: Any, *, intercept: bool) -> Rows:
        """Rows with a provisional centre: the middle of some rows, which a constant feature equals exactly."""
        shift = np.zeros(X.shape[1])
        if intercept and not sparse.issparse(X):
            some = X[:: max(1, len(X) // 101)][:101]
            shift = np.sort(some, axis=0)[len(some) // 2].astype(np.float64)
            shift[~np.isfinite(shift)] = 0.0  # reported when the sums are checked
        return cls(X, shift, intercept)

    @property
    def n_examples(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_columns(self) -> int:
        """Features, and the column of ones if there is one."""
        return int(self.X.shape[1]) + self.intercept

    def read(self, rows: slice | NDArray[np.intp], root_weight: Floats | None) -> Any:
        """The shifted features of some rows, each times the root of its weight (None: of weight one)."""
        if sparse.issparse(self.X):
            chunk = sparse.csr_array(self.X[rows], dtype=np.float64)
            return chunk if root_weight is None else sparse.diags_array(root_weight) @ chunk
        if isinstance(rows, slice):
            out = np.subtract(self.X[rows], self.shift, dtype=np.float64)
        else:  # taking is a copy already: go on in it
            out = self.X.take(rows, axis=0).astype(np.float64, copy=False)
            out -= self.shift
        if root_weight is not None:
            out *= root_weight[:, np.newaxis]
        return out

    def scores(self, theta: Floats, rows: NDArray[np.intp] | None = None) -> Floats:
        """Scores of all rows, or of some, with coefficients `theta` of shape (n_columns, n_targets)."""
        n_features = self.X.shape[1]
        coef, offset = theta[:n_features], theta[n_features] if self.intercept else 0.0
        if sparse.issparse(self.X):
            return np.asarray((self.X if rows is None else self.X[rows]) @ coef) + offset
        out = np.empty((self.n_examples if rows is None else len(rows), theta.shape[1]))
        for block in self.blocks(range(len(out))):
            out[block] = (self.X[block if rows is None else rows[block]] - self.shift) @ coef
        out += offset
        return out

    def blocks(self, span: range) -> Iterator[slice]:
        """Slices of a range of rows that are small enough for the cache."""
        step = max(64, _BLOCK_BYTES // (8 * self.n_columns))
        for start in range(span.start, span.stop, step):
            yield slice(start, min(start + step, span.stop))


def distant_offset(shift: Floats, spread: Floats) -> Floats | None:
    """The shift, if scores would lose digits without it; None if they would not."""
    return shift if (np.abs(shift) > _FAR_OFF * spread).any() else None


def run_parallel(task: Callable[[Any], Result], parts: Iterable[Any], n_multiplications: float) -> Iterator[Result]:
    """Results of independent tasks in order, on all cores if the work is worth it, BLAS then on one thread each."""
    n_threads = _available_cores() if n_multiplications >= _PARALLEL_FROM else 1
    if n_threads == 1:
        yield from map(task, parts)
        return
    with one_blas_thread(), ThreadPoolExecutor(n_threads) as pool:
        yield from pool.map(task, parts)


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all loaded libraries, which takes milliseconds


def one_blas_thread(n_columns: int = 0) -> AbstractContextManager[Any]:
    """Let BLAS use one thread, unless matrices have so many columns that several are worth their while."""
    if n_columns > _WIDE:
        return nullcontext()
    return _controller().limit(limits=1, user_api="blas")


def _available_cores() -> int:
    limit = os.environ.get("OMP_NUM_THREADS", "")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    return min(cores, int(limit)) if limit.isdigit() and int(limit) > 0 else cores


def check_finite(X: Any) -> None:
    """Raise with up to five positions if a feature is NaN or infinite."""
    values = X.data if sparse.issparse(X) else X
    with np.errstate(invalid="ignore", over="ignore"):
        total = values.sum(dtype=np.float64)  # one number tells in nearly all cases
    if np.isfinite(total) or np.isfinite(values).all():
        return
    if sparse.issparse(X):
        entries = X.tocoo()
        bad = ~np.isfinite(entries.data)
        places = list(zip(entries.row[bad][:5].tolist(), entries.col[bad][:5].tolist(), strict=True))
        n_bad = int(bad.sum())
    else:
        bad = ~np.isfinite(X)
        n_bad = int(bad.sum())
        places = [tuple(place) for place in np.argwhere(bad)[:5].tolist()]
    shown = ", ".join(f"row {row} column {column}" for row, column in places)
    raise DataError(
        f"Input X contains NaN or infinity: {n_bad} values, at {shown}{', ...' if n_bad > 5 else ''}. "
        "Fill them in or leave these examples out."
    )


@dataclass(frozen=True)
class RowSpace:
    """Features with more columns than rows, in coordinates of the space that the rows span.

    Ridge coefficients lie in that space, and lengths in it are the same, so nothing is lost and the
    problem has as many columns as rows.

    Parameters
    ----------
    rows : Rows
        The coordinates.
    original : Rows
        The features.
    lift : ndarray of shape (n_examples, n_coordinates)
        Takes coefficients of coordinates to combinations of rows.
    """

    rows: Rows
    original: Rows
    lift: Floats

    @classmethod
    def of(cls, original: Rows) -> RowSpace:
        """Coordinates from the eigenvectors of the matrix of inner products between rows."""
        X = original.X if sparse.issparse(original.X) else original.X - original.shift
        products = np.asarray((X @ X.T).toarray() if sparse.issparse(X) else X @ X.T, dtype=np.float64)
        check_finite(products if np.isfinite(products).all() else original.X)
        values, vectors = np.linalg.eigh(products)
        kept = values > max(values[-1], 0.0) * len(values) * np.finfo(np.float64).eps
        kept[-1] = True  # all rows alike: one coordinate, which is zero
        root = np.sqrt(np.maximum(values[kept], np.finfo(np.float64).tiny))
        coordinates = vectors[:, kept] * root
        flat = Rows(coordinates, np.zeros(coordinates.shape[1]), original.intercept)
        return cls(flat, original, vectors[:, kept] / root)

    def to_features(self, theta: Floats) -> Floats:
        """Coefficients of the features, from those of the coordinates."""
        n_coordinates = self.lift.shape[1]
        mix = self.lift @ theta[:n_coordinates]
        coef = np.asarray(self.original.X.T @ mix) - np.outer(self.original.shift, mix.sum(axis=0))
        return np.vstack([coef, theta[n_coordinates:]])


N_FOLDS = 5
_SPARSE_ROWS = 500
EXACT_COLUMNS = 3000


def row_space(rows: Rows) -> RowSpace | None:
    """Coordinates, if there are fewer rows than columns and few enough for a matrix of their products."""
    n_rows, n_features = rows.X.shape
    most = _SPARSE_ROWS if sparse.issparse(rows.X) else EXACT_COLUMNS
    return RowSpace.of(rows) if n_rows < n_features and n_rows < most else None
