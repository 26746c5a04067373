"""The features: the only module that reads X. Rows in blocks, shifted near zero."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from crowdwise._arrays import Array, Floats, Positions
from crowdwise._text import count
from crowdwise._threads import one_blas_thread, run_all, run_parallel, spans
from crowdwise.exceptions import DataError
from crowdwise.rows.dask_blocks import is_dask
from crowdwise.training_set import refuse_texts_and_times

# A block of rows should stay in the cache while it is shifted, weighted and multiplied. In smaller blocks than this,
# threads wait for each other's hold of the interpreter for as long as they multiply.
_BLOCK_BYTES = 2**21
# Features this many times further from zero than they are wide lose digits unless they are shifted.
_FAR_OFF = 1e4
# Products of features beyond it are refused: weights and sums over rows and annotators must not overflow.
_LARGEST_PRODUCT = 1e300
# Columns of dense features that are shifted and multiplied at a time.
_COLUMNS_AT_ONCE = 4096
# No feature counts as more variable than so many times the middle one: a column in another unit would hide all others.
_ODD_UNIT = 1e3
# With fewer rows than this, and fewer than features, the rows' own coordinates are used. Sparse ones become dense.
_FEW_ROWS, _FEW_SPARSE_ROWS = 3000, 500


@dataclass(eq=False)
class Rows:
    """Features as the solver sees them: shifted near zero, with a column of ones for the intercept.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_examples, n_features)
        Dense features are shifted when they are read; of sparse ones this is a copy that is shifted already.
    shift : ndarray of shape (n_features,)
        Subtracted from every row, so that large offsets do not drown small differences.
    intercept : bool
        Whether a last column of ones is added.
    far : bool
        Whether scores would lose digits if the features were not shifted.
    """

    X: Any
    shift: Floats
    intercept: bool
    far: bool = False

    @classmethod
    def of(cls, X: Any, *, intercept: bool) -> Rows:
        """Rows with a provisional centre: the middle of some rows, which a constant feature equals exactly."""
        if not intercept:
            return cls(X, np.zeros(X.shape[1]), False)
        if sparse.issparse(X):
            return cls._sparse(X)
        sample = X[:: max(1, len(X) // 101)][:101]
        shift = np.sort(sample, axis=0)[len(sample) // 2].astype(np.float64)
        shift[~np.isfinite(shift)] = 0.0  # reported when the sums are checked
        with np.errstate(invalid="ignore", over="ignore"):
            spread = np.abs(sample - shift).max(axis=0)
        shift[np.abs(shift) <= spread] = 0.0  # near enough to zero: nothing is lost, and there is less to do
        return cls(X, shift, True, distant_offset(shift, spread) is not None)

    @classmethod
    def _sparse(cls, X: Any) -> Rows:
        """Columns far from zero in all rows are shifted where they are stored, which leaves the others sparse."""
        X = sparse.csr_array(X)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        shift = np.zeros(X.shape[1])
        full = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]) == X.shape[0])
        if len(full):
            sample = X[:: max(1, X.shape[0] // 101)][:101][:, full].toarray().astype(np.float64)
            middle = np.sort(sample, axis=0)[len(sample) // 2]
            with np.errstate(invalid="ignore", over="ignore"):
                far = np.isfinite(middle) & (np.abs(middle) / _FAR_OFF > np.abs(sample - middle).max(axis=0))
            shift[full[far]] = middle[far]
        if not shift.any():
            return cls(X, shift, True)
        data = X.data.astype(np.float64) - shift[X.indices]
        return cls(sparse.csr_array((data, X.indices, X.indptr), shape=X.shape), shift, True, far=True)

    def __post_init__(self) -> None:
        self.is_sparse = bool(sparse.issparse(self.X))
        self.is_shifted = bool(self.shift.any()) and not self.is_sparse
        self.is_copied = not self.is_sparse and (self.is_shifted or self.X.dtype != np.float64)  # by `read`, always
        self.n_examples, self.n_features = (int(size) for size in self.X.shape)
        self.n_columns = self.n_features + self.intercept  # with the column of ones if there is one

    def read(self, at: slice | Positions, root: Floats | None = None, out: Floats | None = None) -> Any:
        """The shifted features of some rows, each times the root of its weight.

        Dense ones are written into `out`, if it is given, unless they can be used where they stand.
        """
        if self.is_sparse:
            x = self.X[at].astype(np.float64)
            return x if root is None else x.multiply(root).tocsr()
        if isinstance(at, slice):
            x = self.X[at]
        else:
            x = self.X.take(at, axis=0, out=None if self.is_copied else out, mode="clip")
        if self.is_shifted:
            x = np.subtract(x, self.shift, out=out, dtype=np.float64)
        if root is not None:
            x = np.multiply(x, root, out=out, dtype=np.float64)
        if x.dtype == np.float64 or out is None:
            return x.astype(np.float64, copy=False)
        out[...] = x
        return out

    def blocks(self, span: range) -> Iterator[slice]:
        """Slices of a range of rows that are small enough for the cache."""
        step = max(64, _BLOCK_BYTES // (8 * self.n_columns))
        for start in range(span.start, span.stop, step):
            yield slice(start, min(start + step, span.stop))

    def scores(self, theta: Floats, at: Positions | None = None) -> Floats:
        """Scores of all rows, or of those `at`, with coefficients `theta` of shape (n_columns, n_targets)."""
        if at is None:
            return self.fold_scores(theta[np.newaxis], None)
        coef, offset = theta[: self.n_features], theta[self.n_features] if self.intercept else 0.0
        if self.is_sparse:
            return np.asarray(self.X[at] @ coef) + offset
        out = np.empty((len(at), theta.shape[1]))
        for block in self.blocks(range(len(at))):
            out[block] = (self.X[at[block]] - self.shift) @ coef
        return out + offset

    def fold_scores(self, theta: Floats, fold: Array | None) -> Floats:
        """Scores of all rows, each with the coefficients of its fold; `theta` is (n_folds, n_columns, n_targets)."""
        coef = np.ascontiguousarray(theta[:, : self.n_features].transpose(2, 0, 1))
        offset = theta[:, self.n_features] if self.intercept else np.zeros((len(theta), theta.shape[2]))
        out = np.empty((self.n_examples, theta.shape[2]))
        subtract = self.is_shifted and self.far
        if self.is_shifted and not subtract:
            offset = offset - (coef @ self.shift).T

        def score(span: range) -> None:
            for block in self.blocks(span):
                x = self.X[block] - self.shift if subtract else self.X[block]
                if fold is None or self.is_sparse or len(theta) == 1:
                    scores = np.asarray(x @ coef.reshape(-1, self.n_features).T).reshape(x.shape[0], *coef.shape[:2])
                    which = 0 if fold is None else fold[block]
                    out[block] = scores[np.arange(x.shape[0]), :, which] + offset[which]
                else:
                    for t, of_fold in enumerate(coef):
                        out[block, t] = np.einsum("ij,ij->i", x, of_fold.take(fold[block], axis=0))
                    out[block] += offset.take(fold[block], axis=0)

        run_all(score, spans(self.n_examples), 5.0 * self.X.shape[0] * self.n_features)
        return out


def mean_variance(rows: Rows, weight: Floats, *, centred: bool = True) -> float:
    """The weighted variance of the average feature, those in a far larger unit than most being cut.

    Parameters
    ----------
    rows : Rows
        The features.
    weight : ndarray of shape (n_examples,)
        How often each row counts.
    centred : bool, default=True
        Whether it is around the mean; else around zero.

    Returns
    -------
    variance : float
    """
    share = weight / weight.sum()
    if rows.is_sparse:
        mean, square = rows.X.T @ share, rows.X.multiply(rows.X).T @ share
    else:
        mean, square = np.zeros((2, rows.n_features))
        for block in rows.blocks(range(rows.n_examples)):
            x = rows.read(block)
            mean += share[block] @ x
            square += share[block] @ (x * x)
    variance = np.maximum(square - (mean**2 if centred else 0.0), 0.0)
    middle = float(np.median(variance[variance > 0])) if variance.any() else 0.0
    return float(np.minimum(variance, _ODD_UNIT * middle).mean())


def distant_offset(shift: Floats, spread: Floats) -> Floats | None:
    """The shift, if scores would lose digits without it; None if they would not."""
    return shift if (np.abs(shift) / _FAR_OFF > spread).any() else None


def check_finite(X: Any, rows: Positions | None = None, *, nan: bool = True) -> None:
    """Raise with up to five positions if a feature is NaN or infinite; without `nan`, NaN is passed over.

    `rows` is where the rows of X stand in what the user gave, if not where they stand in X.
    """
    values = X.data if sparse.issparse(X) else X
    is_bad = (lambda numbers: ~np.isfinite(numbers)) if nan else np.isinf
    with np.errstate(invalid="ignore", over="ignore"):
        total = values.sum(dtype=np.float64)  # one number is enough in nearly all cases
    if np.isfinite(total) or not is_bad(values).any():
        return
    if sparse.issparse(X):
        entries = X.tocoo()
        bad = is_bad(entries.data)
        row, column = entries.row[bad], entries.col[bad]
    else:
        row, column = np.nonzero(is_bad(X))
    shown = ", ".join(
        f"row {int(i if rows is None else rows[i])} column {int(j)}" for i, j in zip(row[:5], column[:5], strict=True)
    )
    what = "NaN or infinity" if nan else "infinity"
    raise DataError(
        f"Input X contains {what}: {count(len(row), 'value')}, at {shown}{', ...' if len(row) > 5 else ''}. "
        "Fill them in or leave these examples out."
    )


def check_new(estimator: Any, X: Any) -> Any:
    """Features for a fitted estimator, finite."""
    if is_dask(X):
        raise TypeError(
            "predictions are of examples in memory, and X is a Dask collection. Map the method over its blocks: "
            "X.map_blocks(model.predict, drop_axis=1, dtype=...), or X.map_partitions for a data frame."
        )
    refuse_texts_and_times(X)
    X = validate_data(
        estimator, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=False
    )
    check_finite(X)
    return X


def linear_scores(X: Any, coef: Floats, offset: Floats, shift: Floats | None) -> Floats:
    """Scores of examples, of shape (n_examples, n_outputs): features less a shift, times coefficients, and the offset.

    Only the columns of sparse features that are shifted become dense.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if shift is None or not sparse.issparse(X):
            scores = np.asarray((X if shift is None else X - shift) @ coef) + offset
        else:
            far, near = np.flatnonzero(shift), coef.copy()
            near[far] = 0.0
            scores = np.asarray(X @ near) + (X[:, far].toarray() - shift[far]) @ coef[far] + offset
    is_small = np.abs(scores) < _LARGEST_PRODUCT
    if not is_small.all():
        row = int((~is_small).any(axis=1).argmax())
        raise DataError(f"Input X is too large: the score of row {row} overflows. Rescale the features as in the fit.")
    return scores


@dataclass(frozen=True, eq=False)
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
        with one_blas_thread():
            values, vectors = np.linalg.eigh(_inner_products(original))
        kept = values > max(values[-1], 0.0) * len(values) * np.finfo(np.float64).eps
        if not kept.any():  # all rows are alike: one coordinate, which is zero
            nothing = np.zeros((len(values), 1))
            return cls(Rows(nothing, np.zeros(1), original.intercept), original, nothing)
        root = np.sqrt(values[kept])
        coordinates = vectors[:, kept] * root
        flat = Rows(coordinates, np.zeros(coordinates.shape[1]), original.intercept)
        return cls(flat, original, vectors[:, kept] / root)

    def to_features(self, theta: Floats) -> Floats:
        """Coefficients of the features, from those of the coordinates."""
        n_coordinates = self.lift.shape[1]
        mix = self.lift @ theta[:n_coordinates]
        if self.original.is_shifted:  # before the product: a constant feature far from zero has coefficient 0
            starts = range(0, self.original.n_features, _COLUMNS_AT_ONCE)
            coef = np.concatenate([_shifted_columns(self.original, start).T @ mix for start in starts])
        else:
            coef = np.asarray(self.original.X.T @ mix)
        return np.vstack([coef, theta[n_coordinates:]])


def row_space(rows: Rows) -> RowSpace | None:
    """Coordinates, if there are fewer rows than columns and few enough for a matrix of their products."""
    most = _FEW_SPARSE_ROWS if rows.is_sparse else _FEW_ROWS
    return RowSpace.of(rows) if rows.n_examples < rows.n_features and rows.n_examples < most else None


def _shifted_columns(rows: Rows, start: int) -> Floats:
    columns = slice(start, start + _COLUMNS_AT_ONCE)
    return np.subtract(rows.X[:, columns], rows.shift[columns], dtype=np.float64)


def _inner_products(rows: Rows) -> Floats:
    """Of all pairs of shifted rows."""
    if rows.is_sparse:
        products = np.asarray((rows.X @ rows.X.T).toarray(), dtype=np.float64)
    else:

        def of_columns(start: int) -> Floats:
            with np.errstate(over="ignore", invalid="ignore"):  # which is checked
                part = _shifted_columns(rows, start)
                return part @ part.T

        starts = range(0, rows.n_features, _COLUMNS_AT_ONCE)
        products = sum(run_parallel(of_columns, starts, rows.n_examples**2 * rows.n_features), start=np.zeros(()))
    check_squares(products)
    return products


def check_gram(gram: Floats, X: Any) -> None:
    """Raise if products of the features X are too large, by a feature that is not finite or by their size."""
    if not (np.abs(gram) < _LARGEST_PRODUCT).all():
        check_finite(X)
        check_squares(gram)


def check_squares(products: Floats) -> None:
    """Raise if products of finite features have overflowed, or sums of them would."""
    if not (np.abs(products) < _LARGEST_PRODUCT).all():
        raise DataError("Input X is too large: the squares of its values overflow. Rescale the features.")
