"""Features as they came -> what logistic regression reads, and its coefficients back to those of the features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from crowdwise._arrays import Floats
from crowdwise.rows.features import Rows, RowSpace, is_far, mean_variance, row_space

# Features whose largest value is further from one, up or down, are brought to size one first: beside them, the
# intercept and the tolerance of the solver would be of another size, and far beyond, squares overflow or vanish.
_LARGEST = 1e3
# Units are no smaller or larger: coefficients of the features as they came have to be finite, and so have features in
# their unit. Features far below are next to nothing.
_LARGEST_UNIT = 2.0**1000
_FINITE = np.finfo(np.float64).min, np.finfo(np.float64).max
# No penalty is taken to be larger: coefficients are zero with it.
_LARGEST_PENALTY = 1e200


@dataclass(frozen=True)
class LogisticFeatures:
    """Features in a unit and with a shift that cost no digits, and the way back.

    Fewer rows than columns are coordinates of the space that the rows span: coefficients lie in it.
    """

    unit: float  # what all features were divided by
    rows: Rows  # the features in that unit, with their shift
    space: RowSpace | None  # how to come back from coordinates, if they are used
    variance: float  # that of an average feature in its unit

    @classmethod
    def of(cls, X: Any, weight: Floats, *, centred: bool) -> LogisticFeatures:
        """With a shift if features are dense and `centred`; variances are around zero otherwise."""
        rows = Rows.of(X, intercept=centred)
        if (unit := _unit(rows)) != 1:
            rows = Rows.of(X.astype(np.float64) / unit, intercept=centred)
        variance = mean_variance(rows, weight, centred=centred)
        return cls(unit, rows, row_space(rows), variance if variance > 0 else 1.0)

    @property
    def X(self) -> Any:
        """What is read: features, or coordinates."""
        return self.rows.X if self.space is None else self.space.rows.X

    @property
    def shift(self) -> Floats | None:
        """What is subtracted from what is read."""
        return self.rows.shift if self.space is None and self.rows.shift.any() else None

    def penalty(self, l2: float) -> float:
        """The penalty in this unit, from one on the coefficients of the features as they came."""
        return min(l2 / self.unit / self.unit, _LARGEST_PENALTY)

    def penalty_as_given(self, l2: float) -> float:
        """The penalty on the coefficients of the features as they came, from one in this unit; it stays finite."""
        return min(l2 * self.unit * self.unit, float(_FINITE[1]))

    def undo(self, theta: Floats) -> tuple[Floats, Floats, Floats | None]:
        """Coefficients of the features as they came, intercepts, and the shift that these are at (None is zero)."""
        lifted = theta if self.space is None else self.space.to_features(theta)
        return undo(lifted, self.unit, self.rows.shift, self.spread())

    def spread(self) -> Floats:
        """The size of every feature in its unit."""
        sample = self.rows.X[:101]
        return np.ones(sample.shape[1]) if sparse.issparse(sample) else np.abs(sample - self.rows.shift).max(axis=0)


def undo(theta: Floats, unit: float, shift: Floats, spread: Floats) -> tuple[Floats, Floats, Floats | None]:
    """Coefficients of the features as they came, intercepts, and the shift that these are at (None is zero).

    From coefficients, intercepts last, of features in another unit, minus a shift; shift and `spread`, how wide each
    feature is, are in that unit.
    """
    with np.errstate(over="ignore"):
        coef = np.clip(theta[:-1] / unit, *_FINITE)
    intercept, shift = theta[-1], shift * unit
    if not is_far(shift, spread * unit):
        return coef, intercept - shift @ coef, None
    return coef, intercept, shift


def _unit(rows: Rows) -> float:
    """One, or the power of two next to the largest shifted feature if that is far from one."""
    if rows.is_sparse:
        largest = float(np.abs(rows.X.data).max(initial=0.0))
    elif not rows.is_shifted:
        largest = max(-float(rows.X.min(initial=0.0)), float(rows.X.max(initial=0.0)))
    else:
        ends = np.stack([rows.X.min(axis=0), rows.X.max(axis=0)]).astype(np.float64)
        with np.errstate(over="ignore"):
            largest = float(np.abs(ends - rows.shift).max(initial=0.0))
    if largest == 0 or 1 / _LARGEST < largest < _LARGEST:
        return 1.0
    largest = min(max(largest, 1 / _LARGEST_UNIT), _LARGEST_UNIT)
    return float(2.0 ** np.round(np.log2(largest)))
