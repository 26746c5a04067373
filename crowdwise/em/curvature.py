"""Weights of rows -> what they make of logistic regressions: totals, means, and about how the losses are curved."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from crowdwise.arrays import Floats
from crowdwise.em.descent import Solve
from crowdwise.em.softmax_rows import SoftmaxRows, log_softmax

# Up to this many columns, curvature is a matrix; beyond, its diagonal.
_EXACT_COLUMNS = 1000
# Curvature is made of this many rows, and some for every column: as a first guess that is enough.
_ENOUGH_ROWS, _ROWS_PER_COLUMN = 2000, 8
# No row is taken to add less to the curvature, relative to its weight: it would once its probabilities change.
_LEAST_SPREAD = 0.01


@dataclass(frozen=True)
class Weighted:
    """What the weights of the rows make of the models, which no step changes.

    Parameters
    ----------
    weight : ndarray of shape (n_examples,)
        How much each row counts.
    total : ndarray of shape (n_models,)
        Weight of a model's rows.
    middle : ndarray of shape (n_columns, n_models)
        Their weighted means, with a one for the intercept.
    others : ndarray of shape (n_folds, n_models)
        One where a model does not leave a fold out.
    factor : ndarray of shape (n_columns, n_columns) or (n_columns,)
        A triangle whose square is about the curvature of all models, or a diagonal.
    """

    weight: Floats
    total: Floats
    middle: Floats
    others: Floats
    factor: Floats

    @classmethod
    def of(
        cls, rows: SoftmaxRows, left_out: NDArray[np.int64], l2: float, weight: Floats, theta: Floats | None
    ) -> Weighted:
        """One thin pass over the rows; curvature is that at some coefficients."""
        others = (np.arange(rows.n_folds)[:, np.newaxis] != left_out).astype(np.float64)
        sums = rows.fold_sums(weight[:, np.newaxis])[:, :, 0] @ others
        total = sums[-1]
        middle = sums / np.where(total > 0, total, 1.0)
        middle[-1] = 1.0
        bends = curvature(rows, l2, weight * (total.mean() / max(weight.sum(), np.finfo(np.float64).tiny)), theta)
        return cls(weight, total, middle, others, factored(bends))

    @property
    def counts(self) -> Floats:
        """One for every model that has something to learn from, else zero: it says nothing then."""
        return (self.total > 0).astype(np.float64)

    def of_models(self, sums: Floats) -> Floats:
        """Sums over the rows of each model from those over folds."""
        return np.einsum("pfo,fj->pjo", sums, self.others)

    def solver(self, shape: tuple[int, ...]) -> Solve:
        """Divides slopes by the curvature, a row per model; `shape` is that of coefficients side by side."""
        return solver(self.factor, shape)


def solver(factor: Floats, shape: tuple[int, ...]) -> Solve:
    """Divides slopes by a curvature, a row per model.

    Parameters
    ----------
    factor : ndarray of shape (n_columns, n_columns) or (n_columns,)
        What `factored` gives.
    shape : tuple (n_columns, n_models, n_outputs)
        That of coefficients side by side.

    Returns
    -------
    solve : callable
    """
    n_columns, n_models, n_outputs = shape
    if factor.ndim == 1:
        each = np.repeat(np.square(factor), n_outputs)
        return lambda slope: slope / each

    def solve(slope: Floats) -> Floats:
        columns = slope.reshape(n_models, n_columns, n_outputs).transpose(1, 0, 2).reshape(n_columns, -1)
        solved = linalg.cho_solve((factor, True), columns, check_finite=False)
        return np.asarray(solved.reshape(shape).transpose(1, 0, 2).reshape(n_models, -1))

    return solve


def factored(bends: Floats) -> Floats:
    """A triangle whose square is a curvature, or the root of a diagonal."""
    return np.sqrt(bends) if bends.ndim == 1 else linalg.cholesky(bends, lower=True, check_finite=False)


def curvature(rows: SoftmaxRows, l2: float, weight: Floats, theta: Floats | None, enough: int = _ENOUGH_ROWS) -> Floats:
    """About the second derivative of a model's loss, the same for every output: of all pairs of columns, or a diagonal.

    A quarter of the weighted sums of squares bounds it; where the probabilities are known, it is less. Some of the rows
    are enough.
    """
    n_rows, n_columns = len(weight), rows.X.shape[1] + 1
    every = max(1, n_rows // max(enough, _ROWS_PER_COLUMN * n_columns))
    some = np.arange(0, n_rows, every)
    x, share = rows.read(some), weight[some] * (weight.sum() / max(weight[some].sum(), np.finfo(np.float64).tiny))
    if theta is None:
        share /= 4
    else:
        share *= _spread(np.asarray(x @ theta[:-1].mean(axis=1)) + theta[-1].mean(axis=0))
    mean = np.append(np.asarray(x.T @ share).ravel(), share.sum())
    if n_columns > _EXACT_COLUMNS:
        squares = x.multiply(x) if sparse.issparse(x) else x * x
        bends = diagonal = np.append(np.asarray(squares.T @ share).ravel(), share.sum())
    else:
        bends = np.empty((n_columns, n_columns))
        if sparse.issparse(x):
            bends[:-1, :-1] = (x.T @ (sparse.diags_array(share) @ x)).toarray()
        else:
            rooted = x * np.sqrt(share)[:, np.newaxis]
            bends[:-1, :-1] = rooted.T @ rooted
        bends[-1], bends[:, -1] = mean, mean
        if not rows.fit_intercept:
            bends[-1], bends[:, -1], bends[-1, -1] = 0.0, 0.0, 1.0
        diagonal = bends.reshape(-1)[:: n_columns + 1]
    largest = float(np.max(diagonal, initial=0.0))
    diagonal[:-1] += l2
    # Directions without data or penalty would have none; they stay where they are.
    diagonal += max(largest * 1e-10, np.finfo(np.float64).tiny)
    return bends


def _spread(scores: Floats) -> Floats:
    """The variance of an average class of each row, of which there is never quite nothing."""
    proba = np.exp(log_softmax(scores))
    return np.maximum(np.mean(proba * (1 - proba), axis=1), _LEAST_SPREAD)
