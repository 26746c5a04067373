"""Losses and their slopes -> lower points: L-BFGS for several problems at once, its memory kept between calls.

SciPy's own begins every call with a step of length one and an empty memory. Here each call goes on from the last, close
to where it will end, and a bound of the curvature is the first guess of it. The problems are independent of each other
but evaluated together; each has its own memory and its own length of step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from crowdwise._arrays import Bools, Floats

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
