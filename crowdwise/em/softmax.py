"""Features and soft classes -> multinomial logistic regressions, several on the same rows at once.

The models differ in the fold that they leave out and in their penalty. One pass over the rows serves all of them: a
product with the coefficients of all models side by side, residuals that are zero where an example is left out, and one
product back. L-BFGS does the steps, in coordinates in which a bound of the curvature is the identity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import log_expit

from crowdwise.arrays import Floats
from crowdwise.em.descent import Memory, descend
from crowdwise.ridge.features import run_parallel

# Rows whose features are this many bytes are worked on at a time: they stay in the cache of one core.
_BLOCK_BYTES = 2**20
# Blocks that one task works on; partial sums are added in a fixed order, so threads change no bit.
_TASK_BLOCKS = 8
# Up to this many columns, curvature is bounded by a matrix; beyond, by its diagonal.
_EXACT_COLUMNS = 1000
# From this many steps on, a fit is meant to come to its end and is polished.
_TO_THE_END, _POLISHING_STEPS, _POLISHED = 200, 3, 1e-11
# With more rows than this, the last digits are far below what they say.
_ENOUGH = 20_000


def log_softmax(scores: Floats) -> Floats:
    """Logarithms of probabilities that are as exp(score); a few passes over columns are much faster than over rows.

    Parameters
    ----------
    scores : ndarray of shape (n_examples, 1) or (n_examples, n_classes)
        Of every class; one column is the second of two classes compared with the first.

    Returns
    -------
    log_probabilities : ndarray of shape (n_examples, n_classes)
    """
    if scores.shape[1] == 1:
        second = log_expit(scores)
        return np.hstack([second - scores, second])
    shifted = scores - reduce(np.maximum, scores.T)[:, np.newaxis]
    return np.asarray(shifted - np.log(reduce(np.add, np.exp(shifted).T))[:, np.newaxis])


@dataclass(frozen=True)
class SoftmaxRows:
    """The rows that all models see, and which part of them each leaves out.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_examples, n_features)
        Features.
    shift : ndarray of shape (n_features,) or None
        Subtracted from dense features when they are read.
    fold : ndarray of shape (n_examples,)
        The part that each row belongs to, from 0.
    fit_intercept : bool
        Whether models have an intercept, which is not penalised.
    class_prior : float
        Examples added in the middle of a model's rows, evenly of all classes.
    """

    X: Any
    shift: Floats | None
    fold: NDArray[np.int64]
    fit_intercept: bool = True
    class_prior: float = 0.0

    @property
    def n_folds(self) -> int:
        return int(self.fold.max(initial=0)) + 1

    def read(self, rows: slice | NDArray[np.intp]) -> Any:
        """The features of some rows, shifted, in double precision."""
        if sparse.issparse(self.X):
            return self.X[rows]
        if self.shift is None:
            return np.asarray(self.X[rows], dtype=np.float64)
        return np.subtract(self.X[rows], self.shift, dtype=np.float64)

    def tasks(self) -> list[list[slice]]:
        """Lists of blocks of rows."""
        n_rows, n_columns = self.X.shape
        step = n_rows if sparse.issparse(self.X) else max(64, _BLOCK_BYTES // (8 * max(n_columns, 1)))
        blocks = [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, max(step, 1))]
        return [blocks[start : start + _TASK_BLOCKS] for start in range(0, len(blocks), _TASK_BLOCKS)]

    def scores(self, theta: Floats, rows: slice | NDArray[np.intp] = slice(None)) -> Floats:
        """Scores of some rows by one model, of shape (n_rows, n_columns)."""
        return np.asarray(self.read(rows) @ theta[:-1]) + theta[-1]


@dataclass(frozen=True)
class Curvature:
    """A bound of every model's curvature, factorised: the coordinates of the optimiser.

    Parameters
    ----------
    factors : list of ndarray
        A lower triangle of shape (n_columns, n_columns) per model, or a diagonal of shape (n_columns,).
    """

    factors: list[Floats]

    def to_theta(self, phi: Floats) -> Floats:
        """Coefficients from coordinates, both of shape (n_columns, n_models, n_outputs)."""
        return self._apply(phi, lambda L, part: linalg.solve_triangular(L, part, lower=True, trans="T"))

    def to_phi(self, theta: Floats) -> Floats:
        """Coordinates from coefficients."""
        return self._apply(theta, lambda L, part: L.T @ part, divide=False)

    def gradient(self, slope: Floats) -> Floats:
        """The slope in coordinates from that in coefficients."""
        return self._apply(slope, lambda L, part: linalg.solve_triangular(L, part, lower=True))

    def _apply(self, values: Floats, triangle: Any, *, divide: bool = True) -> Floats:
        out = np.empty_like(values)
        for j, factor in enumerate(self.factors):
            if factor.ndim == 2:
                out[:, j] = triangle(factor, values[:, j])
            else:
                out[:, j] = values[:, j] / factor[:, np.newaxis] if divide else values[:, j] * factor[:, np.newaxis]
        return out


@dataclass
class SoftmaxModels:
    """Logistic regressions on the same rows; fitting goes on from where it was.

    Parameters
    ----------
    rows : SoftmaxRows
        What they are fitted to.
    left_out : ndarray of shape (n_models,)
        The fold that each model leaves out; -1 for none.
    l2 : ndarray of shape (n_models,)
        Strength of each model's penalty; one over scikit-learn's C.
    theta : ndarray of shape (n_features + 1, n_models, n_outputs), default=None
        Coefficients with the intercept last; one output for two classes, else one per class. Zero to begin with.
    """

    rows: SoftmaxRows
    left_out: NDArray[np.int64]
    l2: Floats
    theta: Floats | None = None
    _weight: Floats | None = field(default=None, init=False)
    _moments: _Moments | None = field(default=None, init=False)
    _memory: Memory = field(default_factory=Memory, init=False)

    def fit(self, posterior: Floats, weight: Floats, *, max_steps: int, tol: float = 1e-8) -> Floats:
        """Coefficients that maximise the weighted log-likelihood of soft classes minus l2 / 2 times squared length.

        Parameters
        ----------
        posterior : ndarray of shape (n_examples, n_classes)
            How much each example is of each class.
        weight : ndarray of shape (n_examples,)
            How much each example counts.
        max_steps : int
            The most steps of L-BFGS.
        tol : float, default=1e-08
            Stop when no slope, in coordinates of the curvature and per root of the weight, is larger.

        Returns
        -------
        theta : ndarray of shape (n_features + 1, n_models, n_outputs)
        """
        n_classes = posterior.shape[1]
        shape = (self.rows.X.shape[1] + 1, len(self.left_out), 1 if n_classes == 2 else n_classes)
        if self.theta is None:
            self.theta = np.zeros(shape)
        moments = self._moments_of(weight)
        curvature = moments.curvature

        def loss(flat: Floats) -> tuple[float, Floats]:
            theta = curvature.to_theta(flat.reshape(shape))
            value, slope = self._loss(theta, posterior, weight, moments)
            return value, curvature.gradient(slope).ravel()

        scale = float(np.sqrt(moments.total.max(initial=0.0))) or 1.0
        start = curvature.to_phi(self.theta).ravel()
        phi = descend(loss, start, self._memory, max_steps=max_steps, tol=tol * scale)
        if max_steps >= _TO_THE_END and self.rows.X.shape[0] <= _ENOUGH:
            phi = _polished(phi, lambda at: loss(at)[1], scale)
        self.theta = curvature.to_theta(phi.reshape(shape))
        self.theta[:, moments.total == 0] = 0.0  # nothing to learn from: it says nothing
        if shape[2] > 1:  # what all classes have in common has no meaning
            self.theta[-1] -= self.theta[-1].mean(axis=1, keepdims=True)
        return self.theta

    def held_out_scores(self, model_of_fold: NDArray[np.int64] | None = None) -> Floats:
        """Scores of every row by the model that leaves its fold out, of shape (n_examples, n_outputs)."""
        assert self.theta is not None
        chosen = np.arange(self.rows.n_folds) if model_of_fold is None else model_of_fold
        n_columns, _, n_outputs = self.theta.shape
        flat = self.theta[:, chosen].reshape(n_columns, -1)
        out = np.empty((len(self.rows.fold), n_outputs))

        def task(blocks: list[slice]) -> None:
            for block in blocks:
                scores = self.rows.scores(flat, block).reshape(-1, len(chosen), n_outputs)
                out[block] = scores[np.arange(len(scores)), self.rows.fold[block]]

        for _ in run_parallel(task, self.rows.tasks(), len(out) * flat.size):
            pass
        return out

    def log_density(self) -> float:
        """Minus the penalties, plus the log-likelihood of the examples that were added."""
        assert self.theta is not None
        assert self._moments is not None
        return -self._penalty(self.theta, self._moments)[0]

    def _moments_of(self, weight: Floats) -> _Moments:
        """Sums over rows by their weights; the same in every round whose weights are the same."""
        if self._weight is None or not np.array_equal(self._weight, weight):
            self._moments = _Moments.of(self.rows, self.left_out, self.l2, weight)
            self._weight = weight
            self._memory.clear()  # it is in coordinates of other weights
        assert self._moments is not None
        return self._moments

    def _loss(self, theta: Floats, posterior: Floats, weight: Floats, moments: _Moments) -> tuple[float, Floats]:
        """Minus the log-likelihood of all models plus their penalties, and its slope."""
        n_columns, n_models, n_outputs = theta.shape
        flat = theta.reshape(n_columns, -1)
        residuals = _two_classes if n_outputs == 1 else _many_classes
        alone = n_models == 1 and self.left_out[0] < 0

        def task(blocks: list[slice]) -> tuple[float, Floats]:
            value, slope = 0.0, np.zeros_like(flat)
            for block in blocks:
                x = self.rows.read(block)
                scores = (np.asarray(x @ flat[:-1]) + flat[-1]).reshape(-1, n_models, n_outputs)
                counts = weight[block, np.newaxis]
                if not alone:
                    counts = counts * (self.rows.fold[block, np.newaxis] != self.left_out)
                lost, away = residuals(scores, posterior[block], counts)
                value += lost
                slope[:-1] += x.T @ away
                slope[-1] += away.sum(axis=0)
            return value, slope

        value, slope = 0.0, np.zeros_like(flat)
        for part, part_slope in run_parallel(task, self.rows.tasks(), 4 * len(weight) * flat.size):
            value += part
            slope += part_slope
        penalty, penalty_slope = self._penalty(theta, moments)
        slope = slope.reshape(theta.shape) + penalty_slope
        if not self.rows.fit_intercept:
            slope[-1] = 0.0
        return value + penalty, slope

    def _penalty(self, theta: Floats, moments: _Moments) -> tuple[float, Floats]:
        """l2 / 2 times squared length minus the log-likelihood of the examples added, and its slope."""
        slope = np.zeros_like(theta)
        slope[:-1] = self.l2[:, np.newaxis] * theta[:-1]
        value = float((slope[:-1] * theta[:-1]).sum()) / 2
        if self.rows.class_prior > 0:
            scores = np.einsum("pj,pjc->jc", moments.middle, theta)
            log_middle = log_softmax(scores)
            n_classes = log_middle.shape[1]
            value -= self.rows.class_prior / n_classes * float(log_middle.sum())
            pull = self.rows.class_prior * (np.exp(log_middle) - 1 / n_classes)
            slope += moments.middle[:, :, np.newaxis] * (pull[:, 1:] if scores.shape[1] == 1 else pull)
        return value, slope


def _polished(phi: Floats, slope_at: Callable[[Floats], Floats], scale: float) -> Floats:
    """The same point to the last digits: where a loss is too flat to be compared, its slope still tells the way.

    Newton's steps, curvature times a direction being a difference of slopes.
    """
    slope = slope_at(phi)
    for _ in range(_POLISHING_STEPS):
        if np.linalg.norm(slope) <= _POLISHED * scale:
            break

        def bend(direction: Floats, phi: Floats = phi) -> Floats:
            step = 1e-3 * scale / max(float(np.linalg.norm(direction)), np.finfo(np.float64).tiny)
            return (slope_at(phi + step * direction) - slope_at(phi - step * direction)) / (2 * step)

        curved = LinearOperator((len(phi), len(phi)), matvec=bend, dtype=np.float64)
        better = phi - cg(curved, slope, rtol=1e-4, maxiter=30)[0]
        new_slope = slope_at(better)
        if not np.linalg.norm(new_slope) < np.linalg.norm(slope):
            break
        phi, slope = better, new_slope
    return phi


def _two_classes(scores: Floats, posterior: Floats, counts: Floats) -> tuple[float, Floats]:
    """Minus the log-likelihood of two soft classes, and its slope by the score of the second."""
    z, target = scores[:, :, 0], posterior[:, 1:]
    small = np.exp(-np.abs(z))
    loss = np.maximum(z, 0) - target * z + np.log1p(small)
    proba = np.where(z >= 0, 1.0, small) / (1 + small)
    return float(np.einsum("ij,ij->", np.broadcast_to(counts, z.shape), loss)), counts * (proba - target)


def _many_classes(scores: Floats, posterior: Floats, counts: Floats) -> tuple[float, Floats]:
    """Minus the log-likelihood of soft classes, and its slope by the score of each."""
    top = reduce(np.maximum, np.moveaxis(scores, 2, 0))
    shifted = scores - top[:, :, np.newaxis]
    proba = np.exp(shifted)
    total = reduce(np.add, np.moveaxis(proba, 2, 0))
    proba /= total[:, :, np.newaxis]
    target = posterior[:, np.newaxis]
    loss = np.log(total) - np.einsum("ijk,ijk->ij", np.broadcast_to(target, scores.shape), shifted)
    away = (proba - target) * counts[:, :, np.newaxis]
    return float(np.einsum("ij,ij->", np.broadcast_to(counts, loss.shape), loss)), away.reshape(len(away), -1)


@dataclass(frozen=True)
class _Moments:
    """Weighted sums over the rows of each model, which steps need but which no step changes.

    Parameters
    ----------
    total : ndarray of shape (n_models,)
        Weight of the rows.
    middle : ndarray of shape (n_columns, n_models)
        Their weighted means, with a one for the intercept.
    gram : ndarray of shape (n_folds, n_columns, n_columns), or (n_folds, n_columns) for its diagonal
        Sums of weight · x xᵀ per fold, with the column of ones.
    """

    total: Floats
    middle: Floats
    gram: Floats
    left_out: NDArray[np.int64]
    l2: Floats
    fit_intercept: bool

    @classmethod
    def of(cls, rows: SoftmaxRows, left_out: NDArray[np.int64], l2: Floats, weight: Floats) -> _Moments:
        """One pass over the rows."""
        n_columns = rows.X.shape[1] + 1
        exact = n_columns <= _EXACT_COLUMNS
        shape = (rows.n_folds, n_columns, n_columns) if exact else (rows.n_folds, n_columns)

        def task(blocks: list[slice]) -> tuple[Floats, Floats]:
            gram, sums = np.zeros(shape), np.zeros((rows.n_folds, n_columns))
            for block in blocks:
                x, fold = rows.read(block), rows.fold[block]
                for f in range(rows.n_folds):
                    at = np.flatnonzero(fold == f)
                    _add_moments(gram[f], sums[f], x[at], weight[block][at])
            return gram, sums

        gram, sums = np.zeros(shape), np.zeros((rows.n_folds, n_columns))
        for part, part_sums in run_parallel(task, rows.tasks(), len(weight) * n_columns**2 / 4):
            gram += part
            sums += part_sums
        use = np.arange(rows.n_folds) != left_out[:, np.newaxis]
        of_model = use.astype(np.float64) @ sums
        total = of_model[:, -1]
        middle = of_model.T / np.where(total > 0, total, 1.0)
        middle[-1] = 1.0
        return cls(total, middle, gram, left_out, l2, rows.fit_intercept)

    @cached_property
    def curvature(self) -> Curvature:
        """A quarter of the sums plus the penalty bounds the curvature of two classes, and is near that of more."""
        factors = []
        for left_out, l2, total in zip(self.left_out, self.l2, self.total, strict=True):
            bound = self.gram[np.arange(len(self.gram)) != left_out].sum(axis=0) / 4
            penalty = np.full(bound.shape[-1], l2)
            penalty[-1] = 0.0
            # Directions without data or penalty would have no bound; they stay where they are.
            least = max(float(np.max(bound, initial=0.0)) * 1e-10, total * 1e-300, np.finfo(np.float64).tiny)
            if bound.ndim == 1:
                factors.append(np.sqrt(bound + penalty + least))
                continue
            if not self.fit_intercept:
                bound[-1], bound[:, -1] = 0.0, 0.0
                bound[-1, -1] = 1.0
            bound.flat[:: len(bound) + 1] += penalty + least
            factors.append(linalg.cholesky(bound, lower=True, check_finite=False))
        return Curvature(factors)


def _add_moments(gram: Floats, sums: Floats, x: Any, weight: Floats) -> None:
    """Add weight · x xᵀ (or its diagonal) and weight · x of some rows, with a column of ones."""
    mean = np.asarray(x.T @ weight).ravel()
    sums[:-1] += mean
    sums[-1] += weight.sum()
    if gram.ndim == 1:
        squares = x.multiply(x) if sparse.issparse(x) else x * x
        gram[:-1] += np.asarray(squares.T @ weight).ravel()
        gram[-1] += weight.sum()
        return
    if sparse.issparse(x):
        gram[:-1, :-1] += (x.T @ (sparse.diags_array(weight) @ x)).toarray()
    else:
        rooted = x * np.sqrt(weight)[:, np.newaxis]
        gram[:-1, :-1] += rooted.T @ rooted
    gram[:-1, -1] += mean
    gram[-1, :-1] += mean
    gram[-1, -1] += weight.sum()
