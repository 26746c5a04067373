"""Losses and their slopes -> lower points: L-BFGS for several problems at once, its memory kept between calls.

SciPy's own begins every call with a step of length one and an empty memory. Here each call goes on from the last, close
to where it will end, and a bound of the curvature is the first guess of it. The problems are independent of each other
but evaluated together; each has its own memory and its own length of step. Problems are logistic regressions, whose
curvature is made of some of their rows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import linalg, sparse

from crowdwise._arrays import Bools, Floats
from crowdwise.probabilities import log_softmax

# Points and slopes are of shape (n_problems, n): a row per problem.
Solve = Callable[[Floats], Floats]

# A step is taken if the loss falls by this share of what the slope promises; else it is halved, at most so often.
_SUFFICIENT, _MOST_HALVINGS = 1e-4, 25
# Losses that differ by less than this share are the same but for rounding.
_ROUNDING = 1e-13


@dataclass(frozen=True)
class Point:
    """Where all problems are."""

    theta: Floats  # (n_problems, n): the point
    value: Floats  # (n_problems,): the losses there
    slope: Floats  # (n_problems, n): their slopes


@dataclass
class Memory:
    """The last steps and how the slope changed along them: what is known of the curvature."""

    size: int = 6  # how many steps are kept
    _steps: deque[tuple[Floats, Floats, Floats, Floats]] = field(default_factory=deque, init=False)

    def add(self, step: Floats, slope_change: Floats, solve: Solve) -> None:
        """Keep a step of those problems whose loss is curved upwards along it."""
        curved = dot(step, slope_change)
        usable = curved > 1e-10 * np.sqrt(dot(step, step) * dot(slope_change, slope_change))
        if not usable.any():
            return
        inverse = np.divide(1.0, curved, out=np.zeros_like(curved), where=usable)
        # How far the bound of the curvature is off along this step.
        scale = np.divide(curved, dot(slope_change, solve(slope_change)), out=np.ones_like(curved), where=usable)
        self._steps.append((step, slope_change, inverse, scale))
        if len(self._steps) > self.size:
            self._steps.popleft()

    def direction(self, slope: Floats, solve: Solve) -> Floats:
        """Where to go: minus the slope times the inverse of the curvature, as far as it is known (two loops)."""
        rest, shares = -slope, []
        for step, slope_change, inverse, _ in reversed(self._steps):
            share = inverse * dot(step, rest)
            rest -= per_problem(share) * slope_change
            shares.append(share)
        rest = solve(rest)
        if self._steps:
            rest *= per_problem(self._steps[-1][3])
        for (step, slope_change, inverse, _), share in zip(self._steps, reversed(shares), strict=True):
            rest += per_problem(share - inverse * dot(slope_change, rest)) * step
        return rest

    def clear(self) -> None:
        """Forget everything."""
        self._steps.clear()


def descend(
    loss: Callable[[Floats], Point], point: Point, memory: Memory, solve: Solve, *, max_steps: int, tol: Floats
) -> Point:
    """A point where all losses are lower, or at their lowest if there are steps enough; the memory is changed.

    `solve` divides slopes by a bound of the curvature. A problem is done when its slope, measured by that bound, is not
    longer than its `tol`.
    """
    for _ in range(max_steps):
        open_ = np.sqrt(np.maximum(dot(point.slope, solve(point.slope)), 0.0)) > tol
        if not open_.any():
            break
        direction = memory.direction(point.slope, solve)
        fall = dot(direction, point.slope)
        if not (fall[open_] < 0).all():
            memory.clear()
            direction = -solve(point.slope)
            fall = dot(direction, point.slope)
        lower = _search(loss, point, direction * per_problem(open_), np.where(open_, fall, 0.0))
        if lower is None:
            break
        memory.add(lower.theta - point.theta, lower.slope - point.slope, solve)
        point = lower
    return point


def _search(loss: Callable[[Floats], Point], point: Point, direction: Floats, fall: Floats) -> Point | None:
    """The first of ever shorter steps of each problem that lowers its loss enough; None if there are none."""
    length = np.ones(len(fall))
    for _ in range(_MOST_HALVINGS):
        lower = loss(point.theta + per_problem(length) * direction)
        allowed = point.value + _SUFFICIENT * length * fall + _ROUNDING * np.abs(point.value)
        too_far: Bools = ~(lower.value <= allowed)
        if not too_far.any():
            return lower
        length = np.where(too_far, length / 2, length)
    return None


def dot(left: Floats, right: Floats) -> Floats:
    """The inner product of each problem, of shape (n_problems,)."""
    return np.einsum("ji,ji->j", left, right)


def by_model(values: Floats) -> Floats:
    """Coefficients or slopes of (n_columns, n_models, n_outputs) as points: a row per model."""
    return values.transpose(1, 0, 2).reshape(values.shape[1], -1)


def side_by_side(points: Floats, shape: tuple[int, ...]) -> Floats:
    """The way back, to that shape."""
    return np.ascontiguousarray(points.reshape(shape[1], shape[0], shape[2]).transpose(1, 0, 2))


def per_problem(values: Floats | Bools) -> Floats:
    """Values of problems, to be multiplied with their points."""
    return np.asarray(values, dtype=np.float64)[:, np.newaxis]


# ---------------------------------------------------------------------------------------------------------------------
# How losses are curved

# Up to this many columns, curvature is a matrix; beyond, its diagonal. Outputs are in one matrix if it is not larger.
_EXACT_COLUMNS = 1000
# Curvature is made of so many rows as a first guess: some for every column, more if that is soon done.
_ROWS_PER_COLUMN, _MULTIPLICATIONS = 8, 2**30
# No class of a row is taken to be surer: rows would add nothing to the curvature, and they do once others change.
_DOUBT = 0.02
# Entries that are multiplied at a time: of matrices, and of rows that stay in the cache.
_BLOCK_ENTRIES, _CACHED_ENTRIES = 2**20, 2**16


def solver(factor: Floats, shape: tuple[int, ...]) -> Solve:
    """Divides slopes by a curvature, a row per model.

    The factor is what `factored` gives; the shape that of coefficients side by side: columns, models and outputs.
    """
    n_models, n = shape[1], len(factor)
    if factor.ndim == 1:
        diagonal = np.repeat(np.square(factor), shape[2])
        return lambda slope: slope / diagonal

    def solve(slope: Floats) -> Floats:
        columns = slope.reshape(n_models, n, -1).transpose(1, 0, 2).reshape(n, -1)
        solved = linalg.cho_solve((factor, True), columns, check_finite=False)
        return np.asarray(solved.reshape(n, n_models, -1).transpose(1, 0, 2).reshape(n_models, -1))

    return solve


def factored(hessian: Floats, l2: float, n_columns: int) -> Floats:
    """A triangle whose square is a curvature and a penalty on all but the last column, or the root of a diagonal."""
    hessian, n_intercepts = hessian.copy(), len(hessian) // n_columns
    if hessian.ndim == 1:
        hessian[:-n_intercepts] += l2
        return np.sqrt(hessian)
    hessian.reshape(-1)[:: len(hessian) + 1][:-n_intercepts] += l2
    return np.asarray(linalg.cholesky(hessian, lower=True, overwrite_a=True, check_finite=False))


def curvature(rows: Any, weight: Floats, theta: Floats, *, fit_intercept: bool) -> Floats:
    """About the second derivative of a model's loss at the mean of some coefficients, without penalty.

    Of all columns and outputs, if they are few, outputs of the same column next to each other; else of all pairs of
    columns, the same for every output; else a diagonal. Some of the rows, of shape (n_rows, n_columns - 1), are enough.
    Coefficients are of (n_columns, n_models, n_outputs), intercepts last.
    """
    n_rows, n_columns, n_outputs = len(weight), len(theta), theta.shape[2]
    count = weight.sum()  # a row that counts twice is two rows
    joint_outputs = n_columns * n_outputs <= min(_EXACT_COLUMNS, count // _ROWS_PER_COLUMN)
    n = n_columns * n_outputs if joint_outputs else n_columns
    enough = max(_ROWS_PER_COLUMN * n, _MULTIPLICATIONS // (n * n))
    step = max(1, n_rows // enough)
    every = slice(None) if step == 1 else np.arange(0, n_rows, step)  # all rows need not be copied
    x, share = rows[every], weight[every] * (count / max(weight[every].sum(), np.finfo(np.float64).tiny))
    proba = _proba(np.asarray(x @ theta[:-1].mean(axis=1)) + theta[-1].mean(axis=0))
    if n_columns > _EXACT_COLUMNS:
        squares = x.multiply(x) if sparse.issparse(x) else x * x
        hessian = np.append(np.asarray(squares.T @ (share * _spread(proba))).ravel(), share.sum())
    elif joint_outputs and n_outputs > 1:
        hessian = _of_outputs(x, share, proba)
    else:
        hessian = _of_columns(x, share * _spread(proba))
    diagonal = hessian if hessian.ndim == 1 else hessian.reshape(-1)[:: n + 1]
    if not fit_intercept and hessian.ndim == 2:
        of_intercept = slice(n - n // n_columns, n)
        hessian[of_intercept], hessian[:, of_intercept] = 0.0, 0.0
        diagonal[of_intercept] = 1.0
    # Directions without data or penalty would have none; they stay where they are.
    diagonal += max(float(np.max(diagonal, initial=0.0)) * 1e-10, np.finfo(np.float64).tiny)
    return hessian


def _of_columns(x: Any, share: Floats) -> Floats:
    """Weighted sums of products of all pairs of columns, the last being ones."""
    n_columns = x.shape[1] + 1
    hessian = np.zeros((n_columns, n_columns))
    if sparse.issparse(x):
        hessian[:-1, :-1] = (x.T @ (sparse.diags_array(share) @ x)).toarray()
    else:
        root, step = np.sqrt(share)[:, np.newaxis], max(n_columns, _CACHED_ENTRIES // n_columns)
        for start in range(0, len(x), step):
            rooted = x[start : start + step] * root[start : start + step]
            hessian[:-1, :-1] += rooted.T @ rooted
    hessian[-1, :-1] = hessian[:-1, -1] = np.asarray(x.T @ share).ravel()
    hessian[-1, -1] = share.sum()
    return hessian


def _of_outputs(x: Any, share: Floats, proba: Floats) -> Floats:
    """The same of all pairs of columns and outputs, products counted by how the probabilities of outputs vary.

    That all scores of a row rise by the same changes nothing, and would have no curvature; it is given some.
    """
    n_columns, n_outputs = x.shape[1] + 1, proba.shape[1]
    n = n_columns * n_outputs
    hessian, step = np.zeros((n, n)), max(1, _BLOCK_ENTRIES // n)
    for start in range(0, len(share), step):
        block = slice(start, start + step)
        part = x[block].toarray() if sparse.issparse(x) else x[block]
        part = np.column_stack([part, np.ones(len(part))]) * np.sqrt(share[block])[:, np.newaxis]
        spread = (part[:, :, np.newaxis] * proba[block, np.newaxis]).reshape(-1, n)
        hessian -= spread.T @ spread
    pairs = hessian.reshape(n_columns, n_outputs, n_columns, n_outputs)
    for k in range(n_outputs):
        pairs[:, k, :, k] += _of_columns(x, share * proba[:, k])
    pairs += (_DOUBT / n_outputs * _of_columns(x, share))[:, np.newaxis, :, np.newaxis]
    return hessian


def _proba(scores: Floats) -> Floats:
    """Probabilities of all classes, none of them quite sure."""
    proba = np.exp(log_softmax(scores))
    return (1 - _DOUBT) * proba + _DOUBT / proba.shape[1]


def _spread(proba: Floats) -> Floats:
    """The variance of an average class of each row."""
    return np.mean(proba * (1 - proba), axis=1)
