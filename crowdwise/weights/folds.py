"""Rows -> folds that depend on what is in a row, not on where it stands.

Examples with the same features are never in two folds, so a model is not tested on a copy of what it was trained on.
Up to 20,000 examples, rows are put into an order by a smooth function of their features and dealt out over the folds:
neither the order of examples or features, nor repetition, units, offsets or a little jitter change the folds, and dense
and sparse features give the same ones. Beyond that, folds are drawn by a hash of the features.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.model_selection import check_cv

from crowdwise._arrays import TIED, Array, Bools, Codes, Floats, Positions
from crowdwise._limits import ENOUGH_EXAMPLES
from crowdwise.labels._encode import smallest_integer_type

Keys = NDArray[np.uint64]

# Rows are distinguished by their first columns if these do it as well as all of them.
_FIRST_COLUMNS = 2
_SOME_ROWS = 2000
# Rows that are scaled at a time, and bytes of rows that are hashed, so that all of their columns stay in the cache.
_SCALED_ROWS = 2**10
_HASHED_BYTES = 2**20


@dataclass(frozen=True, eq=False)
class Folds:
    """Which part each example that takes part is held out with."""

    fold: Codes
    n_folds: int

    @classmethod
    def by_content(cls, X: Any, n_folds: int, seed: int = 0) -> Folds:
        """Folds by the content of rows, so that equal rows are never in two folds."""
        fold = content_folds(X, n_folds, seed)
        drawn = np.zeros(n_folds, dtype=bool)
        drawn[fold] = True
        if not drawn.all():  # few different rows: some folds got none
            fold = np.unique(fold, return_inverse=True)[1]
        return cls(fold, max(int(drawn.sum()), 1))

    @classmethod
    def of_splitter(cls, cv: Any, majority: Codes, used: Bools) -> Folds:
        """Those of a scikit-learn splitter or of given splits, which see all examples, with their majority as y."""
        fold = np.full(len(majority), -1, dtype=np.int64)
        splits = check_cv(cv, majority, classifier=True).split(np.zeros((len(majority), 1)), majority)
        for k, (_, held_out) in enumerate(splits):
            if (fold[held_out] >= 0).any():
                raise ValueError("cv must hold every example out once; some are held out more than once.")
            fold[held_out] = k
        if (fold < 0).any():
            raise ValueError(f"cv must hold every example out once; {int((fold < 0).sum())} never are.")
        fold = np.unique(fold[used], return_inverse=True)[1]
        return cls(fold, int(fold.max()) + 1)


def content_folds(X: Any, n_folds: int, seed: int = 0) -> Codes:
    """A fold for every row, from 0, the same for equal rows; fewer than `n_folds` if there are fewer different rows."""
    X = sparse.csr_array(X) if sparse.issparse(X) else X
    if X.shape[0] >= ENOUGH_EXAMPLES:  # folds that are drawn are of nearly the same size without being counted
        return hashed_folds(X, n_folds, telling_columns(X, seed), seed)
    keys, first, where = np.unique(_row_keys(X, 0), return_index=True, return_inverse=True)
    if len(keys) == 0:
        return np.zeros(0, dtype=np.int64)
    order = np.lexsort([keys, _places(X, first)])  # keys break ties between rows that features cannot order
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return _dealt(len(order), n_folds, seed)[rank][where]


def _dealt(n_rows: int, n_folds: int, seed: int) -> NDArray[np.int64]:
    """Folds of rows in order: every stretch of n_folds rows has one of each, shuffled."""
    n_stretches = -(-n_rows // n_folds)
    stretches = np.tile(np.arange(n_folds), (n_stretches, 1))
    stretches[-1, : n_rows - (n_stretches - 1) * n_folds] = np.arange(n_rows - (n_stretches - 1) * n_folds)
    rng = np.random.default_rng(seed)
    dealt = rng.permuted(stretches[:-1], axis=1).ravel() if n_stretches > 1 else np.zeros(0, dtype=np.int64)
    return np.concatenate([dealt, stretches[-1]])[:n_rows].astype(np.int64)


def _places(X: Any, first: Positions) -> Floats:
    """A number per row that puts different rows, the `first` of each, into an order, whatever the units of features.

    A sum over features of a function of the value, scaled to [0, 1]. Each feature has a function of its own, made of
    the mean and the mean square of its scaled values, so that features do not need names to be distinguished.
    """
    X = X[first] if sparse.issparse(X) else X
    low, span = _range(X)
    wide = span >= np.finfo(np.float64).tiny  # one over less is infinite
    scale = np.where(wide, 1 / np.where(wide, span, 1.0), 0.0)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        if sparse.issparse(X):
            # A column without zeros may be far from zero: its smallest value is subtracted where it is stored.
            full = np.bincount(X.indices, minlength=X.shape[1]) == X.shape[0]
            at_zero = np.where(full, 0.0, -low * scale)
            entries = X.copy()
            entries.data = (X.data - np.where(full, low, 0.0)[X.indices]) * scale[X.indices]
            squares = entries.copy()
            squares.data = entries.data * (entries.data + 2 * at_zero[X.indices])
            linear, square = _shares(at_zero + _column_means(entries), at_zero**2 + _column_means(squares))
            total = entries @ linear + squares @ square + float(at_zero @ linear + at_zero**2 @ square)
        else:

            def scaled() -> Iterator[Floats]:
                """Some rows at a time: copies of all would be the most memory that a fit takes."""
                for start in range(0, len(first), _SCALED_ROWS):
                    yield (X[first[start : start + _SCALED_ROWS]] - low) * scale

            sums, squares = np.sum([[part.sum(axis=0), (part**2).sum(axis=0)] for part in scaled()], axis=0)
            linear, square = _shares(sums / len(first), squares / len(first))
            total = np.concatenate([part @ linear + part**2 @ square for part in scaled()])
    total = np.nan_to_num(np.asarray(total, dtype=np.float64))
    return np.round((total - total.min()) / max(np.ptp(total), np.finfo(np.float64).tiny) / TIED)


def _range(X: Any) -> tuple[Floats, Floats]:
    """The smallest value of every feature, and how far it is to the largest."""
    if sparse.issparse(X):
        low, high = (np.asarray(part.todense(), dtype=np.float64).ravel() for part in (X.min(axis=0), X.max(axis=0)))
    else:
        low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        return low, np.nan_to_num(high - low)


def _column_means(X: Any) -> Floats:
    return np.asarray(X.sum(axis=0), dtype=np.float64).ravel() / X.shape[0]


def _shares(mean: Floats, mean_square: Floats) -> tuple[Floats, Floats]:
    """What a feature's value and its square count, smoothly and differently for different features."""
    return 1 + np.sin(40 * mean + 17 * mean_square), np.cos(23 * mean - 31 * mean_square)


def hashed_folds(X: Any, n_folds: int, n_columns: int, seed: int = 0) -> Codes:
    """A fold for every row by a hash of its first columns, whatever rows it comes with.

    `telling_columns` is how many columns are looked at.
    """
    keys = _row_keys(X if n_columns == X.shape[1] else X[:, :n_columns], seed)
    return (keys % np.uint64(n_folds)).astype(smallest_integer_type(n_folds))


def telling_columns(X: Any, seed: int = 0) -> int:
    """How many columns distinguish rows: the first ones alone, if they do it as well as all."""
    n_columns = int(X.shape[1])
    if sparse.issparse(X) or n_columns <= _FIRST_COLUMNS:
        return n_columns
    sample = X[:: max(1, len(X) // _SOME_ROWS)]
    first_columns = sample[:, :_FIRST_COLUMNS]
    as_good = len(np.unique(_row_keys(first_columns, seed))) == len(np.unique(_row_keys(sample, seed)))
    return _FIRST_COLUMNS if as_good else n_columns


def stored_keys(X: Any, seed: int) -> Keys:
    """A number for every row that looks random and depends on nothing but what is stored of the row.

    Quicker than the hash of `content_folds`, for it takes the bytes of a row as they are: all rows that come one after
    the other in blocks are keyed alike, whatever the blocks. The same values in single and in double precision, or
    dense and sparse, have different keys.
    """
    if sparse.issparse(X):
        return _row_keys(sparse.csr_array(X), seed)
    word = np.dtype(np.uint64 if X.shape[1] * X.itemsize % 8 == 0 else np.uint32)
    n_words = X.shape[1] * X.itemsize // word.itemsize
    odd = np.random.default_rng(seed).integers(1, 2**63, n_words, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    key = np.zeros(X.shape[0], dtype=np.uint64)
    step = max(1, _HASHED_BYTES // max(n_words * word.itemsize, 1))
    for start in range(0, len(key) if n_words else 0, step):
        block = slice(start, start + step)
        words = np.ascontiguousarray(X[block]).view(word).astype(np.uint64, copy=False)
        if X.itemsize == 8:  # the last bits of whole numbers are zeros, and those of products would be too
            words = words ^ (words >> np.uint64(32))
        key[block] = np.einsum("ij,j->i", words, odd)
    return _stir(_stir(key))


def joint_keys(first: Keys, second: Keys) -> Keys:
    """Keys of two things together."""
    return _stir(first + _stir(second))


def _row_keys(X: Any, seed: int) -> Keys:
    """A number for every row that is the same for equal rows, dense or sparse, and looks random."""
    odd = np.random.default_rng(seed).integers(1, 2**63, X.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    if sparse.issparse(X):
        entries = _stir(_bits(X.data) * odd[X.indices])  # 0 for a zero that is stored
        ends = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(entries, dtype=np.uint64)])
        return _stir(ends[X.indptr[1:]] - ends[X.indptr[:-1]])
    key = np.zeros(X.shape[0], dtype=np.uint64)
    for column, factor in zip(X.T, odd, strict=True):
        key += _stir(_bits(column) * factor)
    return _stir(key)


def _bits(values: Array) -> Keys:
    return (values.astype(np.float64) + 0.0).view(np.uint64)  # adding zero makes -0.0 and 0.0 the same


def _stir(key: Keys) -> Keys:
    mixed = (key ^ (key >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
    return np.asarray(mixed ^ (mixed >> np.uint64(32)))
