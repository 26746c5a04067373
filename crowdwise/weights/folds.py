"""Rows -> folds that depend on what is in a row, not on where it stands.

Examples with the same features are never in two folds, so a model is not tested on a copy of what it was trained on.
Neither the order of the examples nor repeating them changes anything, up to 20,000 of them; beyond that both may
change which features tell rows apart, and how folds are drawn.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

# Rows are told apart by their first columns if these do it as well as all of them.
_FIRST_COLUMNS = 2
_SOME_ROWS = 2000
# From this many examples on, folds drawn independently are of nearly the same size without being counted.
_MANY = 20_000


def content_folds(X: Any, n_folds: int, seed: int = 0) -> NDArray[np.int64]:
    """A fold for every row, the same for equal rows.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_examples, n_features)
        Features.
    n_folds : int
        Number of folds; there are fewer if there are fewer different rows.
    seed : int, default=0
        Another seed gives other folds.

    Returns
    -------
    fold : ndarray of shape (n_examples,)
        From 0 to n_folds - 1.
    """
    key = _row_keys(X, seed)
    if len(key) >= _MANY:
        return (key % np.uint64(n_folds)).astype(np.int64)
    rank = np.unique(key, return_inverse=True)[1]
    return rank.astype(np.int64) % n_folds


def _row_keys(X: Any, seed: int) -> NDArray[np.uint64]:
    """A number for every row that is the same for equal rows and looks random."""
    odd = np.random.default_rng(seed).integers(1, 2**63, X.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    if sparse.issparse(X):
        return _sparse_keys(X.tocsr(), odd)
    if X.shape[1] <= _FIRST_COLUMNS:
        return _dense_keys(X, odd)
    some = X if len(X) < _MANY else X[:: len(X) // _SOME_ROWS]
    few = odd[:_FIRST_COLUMNS]
    as_good = len(np.unique(_dense_keys(some, few))) == len(np.unique(_dense_keys(some, odd)))
    return _dense_keys(X, few if as_good else odd)


def _dense_keys(X: NDArray[Any], odd: NDArray[np.uint64]) -> NDArray[np.uint64]:
    key = np.zeros(len(X), dtype=np.uint64)
    columns = np.ascontiguousarray(X[:, : len(odd)].T)
    for column, factor in zip(columns, odd, strict=True):
        key = _stir((key ^ _bits(column)) * factor)
    return key


def _sparse_keys(X: Any, odd: NDArray[np.uint64]) -> NDArray[np.uint64]:
    entries = _stir(_bits(X.data) * odd[X.indices])  # 0 for a zero that is stored
    ends = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(entries, dtype=np.uint64)])
    return _stir(ends[X.indptr[1:]] - ends[X.indptr[:-1]])


def _bits(values: NDArray[Any]) -> NDArray[np.uint64]:
    return (values.astype(np.float64) + 0.0).view(np.uint64)  # adding zero makes -0.0 and 0.0 the same


def _stir(key: NDArray[np.uint64]) -> NDArray[np.uint64]:
    mixed = (key ^ (key >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
    return np.asarray(mixed ^ (mixed >> np.uint64(32)))
