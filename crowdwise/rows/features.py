"""The features: the only module that reads X. Rows in blocks, shifted near zero."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from crowdwise._arrays import Codes, Floats, Positions
from crowdwise._text import count
from crowdwise._threads import one_blas_thread, run_all, run_parallel, spans
from crowdwise.exceptions import DataError
from crowdwise.training_set import refuse_texts_and_times

# A block of rows should stay in the cache while it is shifted, weighted and multiplied. In smaller blocks than this,
# threads wait for each other's hold of the interpreter for as long as they multiply.
_BLOCK_BYTES = 2**21
# Features this many times further from zero than they are wide lose digits unless they are shifted.
_FAR_OFF = 1e4
# Products of features beyond it are refused: weights and sums over rows and annotators must not overflow.
_LARGEST_PRODUCT = 1e300
# No feature counts as more variable than so many times the middle one: a column in another unit would hide all others.
_ODD_UNIT = 1e3
# Up to this many columns, or rows if these are fewer, a matrix of products is factorised; beyond, the solver iterates.
EXACT_COLUMNS = 3000
# The same for sparse rows that are fewer than columns: their own coordinates are dense.
_FEW_SPARSE_ROWS = 500


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
        return cls(X, shift, True, is_far(shift, spread))

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
        self.n_examples, self.n_features = (int(size) for size in self.X.shape)
        self.n_columns = self.n_features + self.intercept  # with the column of ones if there is one

    def read(self, at: slice | Positions, root: Floats | None = None) -> Any:
        """The shifted features of some rows, each times the root of its weight."""
        x = self._rows(at).astype(np.float64, copy=False)
        if self.is_sparse:
            return x if root is None else x.multiply(root[:, np.newaxis]).tocsr()
        if self.is_shifted:
            x = x - self.shift
        if root is None:
            return x
        return np.multiply(x, root[:, np.newaxis], out=x if self.is_shifted else None)

    def _rows(self, at: slice | Positions) -> Any:
        """Some rows as they are; `take` is twice as fast as an index."""
        return self.X[at] if self.is_sparse or isinstance(at, slice) else self.X.take(at, axis=0, mode="clip")

    def blocks(self, span: range) -> Iterator[slice]:
        """Slices of a range of rows that are small enough for the cache."""
        step = max(64, _BLOCK_BYTES // (8 * self.n_columns))
        for start in range(span.start, span.stop, step):
            yield slice(start, min(start + step, span.stop))

    def scores(self, theta: Floats, at: Positions | None = None) -> Floats:
        """Scores of all rows, or of those `at`, with coefficients `theta` of shape (n_columns, n_targets)."""
        coef, offset = theta[: self.n_features], theta[self.n_features] if self.intercept else np.zeros(theta.shape[1])
        subtract = self.is_shifted and self.far
        if self.is_shifted and not subtract:
            offset = offset - self.shift @ coef
        n_rows = self.n_examples if at is None else len(at)
        out = np.empty((n_rows, theta.shape[1]))

        def score(span: range) -> None:
            for block in self.blocks(span):
                x = self._rows(block if at is None else at[block])
                out[block] = np.asarray((x - self.shift if subtract else x) @ coef) + offset

        run_all(score, spans(n_rows), 5.0 * n_rows * self.n_features)
        return out

    def fold_scores(self, theta: Floats, fold: Codes) -> Floats:
        """Scores of all rows, each with the coefficients of its fold; `theta` is (n_folds, n_columns, n_targets)."""
        out = np.empty((self.n_examples, theta.shape[2]))
        for k, of_fold in enumerate(theta):
            at = np.flatnonzero(fold == k)
            out[at] = self.scores(of_fold, at)
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


def is_far(shift: Floats, spread: Floats) -> bool:
    """Whether scores would lose digits without the shift."""
    return bool((np.abs(shift) / _FAR_OFF > spread).any())


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


def is_dask(data: object) -> bool:
    """Whether this is a Dask array, data frame or series; Dask is not imported for the answer."""
    home = type(data).__module__.startswith(("dask.array.", "dask.dataframe."))
    return home and hasattr(data, "to_delayed") and hasattr(data, "ndim")


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
    if shift is None or not sparse.issparse(X):
        return np.asarray((X if shift is None else X - shift) @ coef) + offset
    far, near = np.flatnonzero(shift), coef.copy()
    near[far] = 0.0
    return np.asarray(X @ near) + (X[:, far].toarray() - shift[far]) @ coef[far] + offset


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
        spanned = values > max(values[-1], 0.0) * len(values) * np.finfo(np.float64).eps
        if not spanned.any():  # all rows are alike: one coordinate, which is zero
            nothing = np.zeros((len(values), 1))
            return cls(Rows(nothing, np.zeros(1), original.intercept), original, nothing)
        root = np.sqrt(values[spanned])
        coordinates = vectors[:, spanned] * root
        flat = Rows(coordinates, np.zeros(coordinates.shape[1]), original.intercept)
        return cls(flat, original, vectors[:, spanned] / root)

    def to_features(self, theta: Floats) -> Floats:
        """Coefficients of the features, from those of the coordinates."""
        n_coordinates = self.lift.shape[1]
        mix = self.lift @ theta[:n_coordinates]
        if self.original.is_shifted:  # before the product: a constant feature far from zero has coefficient 0
            blocks = _column_blocks(self.original)
            coef = np.concatenate([_shifted_columns(self.original, block).T @ mix for block in blocks])
        else:
            coef = np.asarray(self.original.X.T @ mix)
        return np.vstack([coef, theta[n_coordinates:]])


def row_space(rows: Rows) -> RowSpace | None:
    """Coordinates, if there are fewer rows than columns and few enough for a matrix of their products."""
    most = _FEW_SPARSE_ROWS if rows.is_sparse else EXACT_COLUMNS
    return RowSpace.of(rows) if rows.n_examples < rows.n_features and rows.n_examples < most else None


def _column_blocks(rows: Rows) -> list[slice]:
    """Some columns at a time, at least as many as rows: a shifted copy of all might not fit into memory."""
    step = max(rows.n_examples, _BLOCK_BYTES // (8 * rows.n_examples))
    return [slice(start, start + step) for start in range(0, rows.n_features, step)]


def _shifted_columns(rows: Rows, columns: slice) -> Floats:
    return np.subtract(rows.X[:, columns], rows.shift[columns], dtype=np.float64)


def _inner_products(rows: Rows) -> Floats:
    """Of all pairs of shifted rows."""
    if rows.is_sparse:
        products = np.asarray((rows.X @ rows.X.T).toarray(), dtype=np.float64)
    else:

        def products_of(columns: slice) -> Floats:
            with np.errstate(over="ignore", invalid="ignore"):  # which is checked
                part = _shifted_columns(rows, columns)
                return part @ part.T

        parts = run_parallel(products_of, _column_blocks(rows), rows.n_examples**2 * rows.n_features)
        products = sum(parts, start=np.zeros(()))
    check_squares(products)
    return products


def check_squares(products: Floats, X: Any = None) -> None:
    """Raise if products of features have overflowed, or sums of them would, or if X is given and not finite."""
    if not (np.abs(products) < _LARGEST_PRODUCT).all():
        if X is not None:
            check_finite(X)
        raise DataError("Input X is too large: the squares of its values overflow. Rescale the features.")
