"""Sums over all examples -> coefficients one step further: logistic regressions whose rows are never all there.

A pass gives the losses and slopes at one point, so a round has one step. How the slope bends along a step does not
depend on the classes of the examples, so what is known of the curvature stays true from round to round; the first guess
of it is made of a sample. Summed over all rows, the curvature of every fold would cost many times as much as the pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from crowdwise.arrays import Bools, Floats
from crowdwise.logistic.sums import LogisticSums
from crowdwise.softmax.curvature import curvature, factored, solver
from crowdwise.softmax.descent import Memory, Solve, by_model, dot, side_by_side
from crowdwise.softmax.models import penalty
from crowdwise.softmax.rows import SoftmaxRows

# A step is kept if the loss falls by this share of what the slope promised, but for rounding; else half of it is.
_SUFFICIENT, _ROUNDING = 1e-4, 1e-13


@dataclass(frozen=True)
class _Found:
    """What a pass found at a point, per model; `targets` are those of the classes then, `fall` what was promised."""

    theta: Floats
    value: Floats
    slope: Floats
    targets: Floats
    fall: Floats


@dataclass
class BlockModels:
    """Logistic regressions that go on from the sums of every pass."""

    theta: Floats  # (n_features + 1, n_models, n_outputs): where to begin. Several models leave a fold out each.
    l2: float  # strength of the penalty
    sample: SoftmaxRows  # some rows
    weight: Floats  # (n_rows,): how much each of them counts
    _memory: Memory = field(default_factory=Memory, init=False)
    _last: _Found | None = field(default=None, init=False)
    _factor: Floats | None = field(default=None, init=False)

    def log_density(self, sums: LogisticSums) -> float:
        """Minus the penalties, plus the log-likelihood of the examples that were added."""
        middle = self._middle(sums)[1]
        return -float(penalty(self.theta, middle, self.l2, self.sample.class_prior)[0].sum())

    def step(self, sums: LogisticSums, *, same_weights: bool = True) -> float:
        """Go one step further from a pass at the present coefficients; how far there is to go (1e-6 is close).

        That is the longest slope of a model, measured by the curvature and per root of the weight. Unless examples
        count as in the pass before, its losses are those of another problem.
        """
        if not same_weights:
            self._last, self._factor = None, None
            self._memory.clear()
        found, total = self._found(sums)
        solve = self._curved(total)
        too_far = self._too_far(found)
        if self._last is not None:
            bend = by_model(found.slope - self._last.slope)
            self._memory.add(by_model(found.theta - self._last.theta), bend, solve)
        slope = by_model((found.slope - found.targets) * (total > 0)[:, np.newaxis])
        direction = self._memory.direction(slope, solve)
        if not (dot(direction, slope) <= 0).all():
            self._memory.clear()
            direction = -solve(slope)
        fall = dot(direction, slope)
        ahead = found.theta + side_by_side(direction, self.theta.shape)
        if self._last is None or not too_far.any():
            self._last = _Found(found.theta, found.value, found.slope, found.targets, fall)
            self.theta = ahead
        else:
            self._last, self.theta = self._back(found, ahead, fall, too_far)
        distance = np.sqrt(np.maximum(dot(slope, solve(slope)), 0.0) / np.where(total > 0, total, 1.0))
        return float(np.where(too_far, np.inf, distance).max())

    def _found(self, sums: LogisticSums) -> tuple[_Found, Floats]:
        """What a pass found, and the weight of every model's rows."""
        total, middle = self._middle(sums)
        added, added_slope = penalty(self.theta, middle, self.l2, self.sample.class_prior)
        slope, targets = sums.slope + added_slope, np.einsum("pfo,fj->pjo", sums.targets, self._others)
        if not self.sample.fit_intercept:
            slope[-1], targets[-1] = 0.0, 0.0
        return _Found(self.theta, sums.value + added, slope, targets, np.zeros(len(total))), total

    def _too_far(self, found: _Found) -> Bools:
        """Models whose last step did not lower their loss, the classes being those that the step was made for."""
        last = self._last
        if last is None:
            return np.zeros(len(found.value), dtype=bool)
        now, before = (at.value - np.einsum("pjo,pjo->j", last.targets, at.theta) for at in (found, last))
        return np.asarray(~(now <= before + _SUFFICIENT * last.fall + _ROUNDING * np.abs(before)))

    def _back(self, found: _Found, ahead: Floats, fall: Floats, too_far: Bools) -> tuple[_Found, Floats]:
        """Half of the last step for models that went too far, the next step for the others."""
        last, middle = self._last, too_far[:, np.newaxis]
        assert last is not None
        kept = _Found(
            np.where(middle, last.theta, found.theta),
            np.where(too_far, last.value, found.value),
            np.where(middle, last.slope, found.slope),
            np.where(middle, last.targets, found.targets),
            np.where(too_far, last.fall / 2, fall),
        )
        return kept, np.where(middle, (last.theta + found.theta) / 2, ahead)

    @property
    def _others(self) -> Floats:
        """One where a model does not leave a fold out."""
        n_models = self.theta.shape[1]
        return np.ones((1, 1)) if n_models == 1 else 1 - np.eye(n_models)

    def _middle(self, sums: LogisticSums) -> tuple[Floats, Floats]:
        """The weight of each model's rows, and their weighted means, with a one."""
        present = sums.present @ self._others
        total = present[-1]
        middle = present / np.where(total > 0, total, 1.0)
        middle[-1] = 1.0
        return total, middle

    def _curved(self, total: Floats) -> Solve:
        """Divides slopes by the first guess of the curvature."""
        if self._factor is None:
            weight = self.weight * (total.mean() / max(self.weight.sum(), np.finfo(np.float64).tiny))
            self._factor = factored(curvature(self.sample, weight, self.theta), self.l2, len(self.theta))
        return solver(self._factor, self.theta.shape)
