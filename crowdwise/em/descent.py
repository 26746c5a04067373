"""A loss and its slope -> a lower point of it: L-BFGS whose memory is kept from one round to the next.

SciPy's own begins every call with a step of length one and an empty memory. Here each round goes on from the last,
close to where it will end, in coordinates in which a step as long as the slope is about right.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from crowdwise.arrays import Floats

Loss = Callable[[Floats], tuple[float, Floats]]

# A step is taken if the loss falls by this share of what the slope promises; else it is halved, at most so often.
_SUFFICIENT, _MOST_HALVINGS = 1e-4, 25
# A fall of the loss by less than this share of it is rounding.
_FLAT = 1e-15


@dataclass
class Memory:
    """The last steps and how the slope changed along them: what is known of the curvature.

    Parameters
    ----------
    size : int, default=20
        How many steps are kept.
    """

    size: int = 20
    _steps: deque[tuple[Floats, Floats, float]] = field(default_factory=deque, init=False)

    def add(self, step: Floats, bend: Floats) -> None:
        """Keep a step, if the loss is curved upwards along it."""
        curved = float(step @ bend)
        if curved <= 1e-10 * float(np.linalg.norm(step)) * float(np.linalg.norm(bend)):
            return
        self._steps.append((step, bend, 1 / curved))
        if len(self._steps) > self.size:
            self._steps.popleft()

    def direction(self, slope: Floats) -> Floats:
        """Where to go: minus the slope times the inverse of the curvature, as far as it is known (two loops)."""
        rest, shares = -slope, []
        for step, bend, inverse in reversed(self._steps):
            share = inverse * float(step @ rest)
            rest = rest - share * bend
            shares.append(share)
        if self._steps:
            step, bend, inverse = self._steps[-1]
            rest = rest / (inverse * float(bend @ bend))
        for (step, bend, inverse), share in zip(self._steps, reversed(shares), strict=True):
            rest = rest + (share - inverse * float(bend @ rest)) * step
        return rest

    def clear(self) -> None:
        """Forget everything."""
        self._steps.clear()


def descend(loss: Loss, start: Floats, memory: Memory, *, max_steps: int, tol: float) -> Floats:
    """A point where the loss is lower, or at its lowest if there are steps enough.

    Parameters
    ----------
    loss : callable
        From a point to the loss and its slope.
    start : ndarray of shape (n,)
        Where to begin.
    memory : Memory
        Of earlier steps; changed.
    max_steps : int
        The most steps.
    tol : float
        Stop when no part of the slope is larger.

    Returns
    -------
    point : ndarray of shape (n,)
    """
    point = start
    value, slope = loss(point)
    for _ in range(max_steps):
        if np.abs(slope).max(initial=0.0) <= tol:
            break
        direction = memory.direction(slope)
        fall = float(direction @ slope)
        if not fall < 0:
            memory.clear()
            direction, fall = -slope, -float(slope @ slope)
        found = _search(loss, point, value, direction, fall)
        if found is None:
            break
        new_point, new_value, new_slope = found
        memory.add(new_point - point, new_slope - slope)
        is_flat = value - new_value <= _FLAT * abs(value)
        point, value, slope = new_point, new_value, new_slope
        if is_flat:
            break
    return point


def _search(
    loss: Loss, point: Floats, value: float, direction: Floats, fall: float
) -> tuple[Floats, float, Floats] | None:
    """The first of ever shorter steps that lowers the loss enough; None if none does."""
    length = 1.0
    for _ in range(_MOST_HALVINGS):
        new_point = point + length * direction
        new_value, new_slope = loss(new_point)
        if new_value <= value + _SUFFICIENT * length * fall:
            return new_point, new_value, new_slope
        length /= 2
    return None
