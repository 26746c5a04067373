"""Rows -> folds that depend on what is in a row, not on where it stands.

Examples with the same features are never in two folds, so a model is not tested on a copy of what it was trained on.
Up to 20,000 examples, neither their order nor repeating them changes anything; beyond that both may change which
features tell rows apart, and how folds are drawn. Neither the order of features nor how they are stored matters, nor
does rounding in late digits, unless rows differ in nothing else (such as which of many features is the one).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

# From this many examples on, folds drawn independently are of nearly the same size without being counted.
_MANY = 20_000
# Then rows are told apart by their most diverse columns, if these do it as well as all of them.
_FEW_COLUMNS = 2
_SOME_ROWS = 2000
# With more columns than this, finding the most diverse ones takes longer than using all.
_MANY_COLUMNS = 1000
# Rows of a dense X that are hashed at a time.
_BLOCK_ROWS = 4096
# Bits of a number that are left after rounding: its sign and exponent and 20 bits, about six digits.
_LATE_BITS = np.uint64(32)

Keys = NDArray[np.uint64]


def content_folds(X: Any, n_folds: int, seed: Any = 0) -> NDArray[np.int64]:
    """A fold for every row, the same for equal rows.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_examples, n_features)
        Features.
    n_folds : int
        Number of folds; there are fewer if there are fewer different rows.
    seed : int or Generator, default=0
        Another seed gives other folds.

    Returns
    -------
    fold : ndarray of shape (n_examples,)
        From 0 to n_folds - 1.
    """
    X = X.tocsr() if sparse.issparse(X) else X
    key = _row_keys(X, np.random.default_rng(seed))
    if len(key) >= _MANY:
        return (key % np.uint64(n_folds)).astype(np.int64)
    rank = np.unique(key, return_inverse=True)[1]
    return rank.astype(np.int64) % n_folds


def _row_keys(X: Any, rng: np.random.Generator) -> Keys:
    """A number for every row that is the same for equal rows and looks random."""
    n_rows, n_columns = X.shape
    odd = rng.integers(1, 2**63, n_columns + 1, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    alike, apart = odd[:1], odd[1:]  # the same factor for all columns makes their order irrelevant
    some = X if n_rows < _MANY else X[:: n_rows // _SOME_ROWS]
    n_different = len(np.unique(_keys(some, apart, rounded=False)))
    if n_rows >= _MANY and n_columns <= _MANY_COLUMNS:
        columns = _most_diverse(some)
        if len(np.unique(_keys(some[:, columns], alike, rounded=True))) == n_different:
            return _keys(X[:, columns], alike, rounded=True)
    for rounded in (True, False):
        # Rows of the same values in other places, such as 0, 1 and 1, 0, are taken for alike: a few may be.
        key = _keys(some, alike, rounded=rounded)
        if 2 * len(np.unique(key)) > n_different:
            return key if some is X else _keys(X, alike, rounded=rounded)
    return _keys(X, apart, rounded=False)


def _most_diverse(some: Any) -> NDArray[np.intp]:
    """Columns with the most different values, in an order that does not depend on where they stand."""
    values = np.sort(some.toarray() if sparse.issparse(some) else some, axis=0)
    n_different = (np.diff(values, axis=0) != 0).sum(axis=0)
    return np.lexsort([*values[:: max(1, len(values) // 10)], -n_different])[:_FEW_COLUMNS]


def _keys(X: Any, odd: Keys, *, rounded: bool) -> Keys:
    """Sums over columns of a hash of each value; a zero adds nothing."""
    if sparse.issparse(X):
        entries = _hashed(X.data, odd[X.indices] if len(odd) > 1 else odd, rounded=rounded)
        ends = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(entries, dtype=np.uint64)])
        return _stir(ends[X.indptr[1:]] - ends[X.indptr[:-1]])
    sums = np.empty(len(X), dtype=np.uint64)
    for start in range(0, len(X), _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        sums[block] = _hashed(X[block], odd, rounded=rounded).sum(axis=1, dtype=np.uint64)
    return _stir(sums)


def _hashed(values: Any, odd: Keys, *, rounded: bool) -> Keys:
    bits = (values.astype(np.float64) + 0.0).view(np.uint64)  # adding zero makes -0.0 and 0.0 the same
    if rounded:
        bits = (bits + (np.uint64(1) << (_LATE_BITS - np.uint64(1)))) >> _LATE_BITS
    return _stir(bits * odd)


def _stir(key: Keys) -> Keys:
    mixed = (key ^ (key >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
    return np.asarray(mixed ^ (mixed >> np.uint64(32)))
