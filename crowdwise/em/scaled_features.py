"""Features as they came -> features of a common size, and coefficients of these back to those of the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from crowdwise.arrays import Floats
from crowdwise.ridge.features import Rows, RowSpace, distant_offset, row_space

# Features beyond these sizes overflow, or vanish, when they are squared; they are brought to size one first.
_SMALLEST, _LARGEST = 1e-100, 1e100
# No penalty is taken to be larger: coefficients are zero with it.
_LARGEST_PENALTY = 1e200


@dataclass(frozen=True)
class ScaledFeatures:
    """Scaled features, and the way back to the features as they came.

    Fewer rows than columns are coordinates of the space that the rows span: coefficients lie in it.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_examples, n_columns)
        Scaled features or coordinates.
    unit : float
        What all features were divided by first.
    centre : ndarray of shape (n_columns,)
        What was subtracted then.
    size : ndarray of shape (n_columns,)
        What they were divided by last.
    original : Rows
        The features, divided by the unit.
    space : RowSpace or None
        How to come back from coordinates, if they are used.
    """

    X: Any
    unit: float
    centre: Floats
    size: Floats
    original: Rows
    space: RowSpace | None

    @classmethod
    def of(cls, X: Any, weight: Floats, *, centred: bool) -> ScaledFeatures:
        """Features of weighted standard deviation one and, if they are dense and `centred`, mean zero."""
        unit = _unit(X)
        original = Rows.of(X if unit == 1 else X / unit, intercept=centred)
        space = row_space(original)
        columns = original.X if space is None else space.rows.X
        spread = StandardScaler(with_mean=not sparse.issparse(columns)).fit(columns, sample_weight=weight)
        centred &= not sparse.issparse(columns)
        square = spread.var_ if centred or sparse.issparse(columns) else spread.var_ + spread.mean_**2
        if space is not None:  # coordinates may be turned; what is found must not depend on how
            square = np.full_like(square, np.mean(square))
        size = np.sqrt(np.where(square > 0, square, 1.0))
        centre = spread.mean_ if centred else np.zeros(columns.shape[1])
        scaled = columns / size if sparse.issparse(columns) else (columns - centre) / size
        scaled = sparse.csr_array(scaled) if sparse.issparse(scaled) else scaled
        return cls(scaled, unit, centre, size, original, space)

    @property
    def variance(self) -> float:
        """That of an average feature in its unit, however many coordinates stand for it."""
        return float((self.size**2).sum() / self.original.X.shape[1])

    def penalty(self, l2: float) -> Floats:
        """The penalty of each scaled feature, from one on the coefficients of the features as they came."""
        return np.minimum(l2 / self.unit / self.unit / self.size**2, _LARGEST_PENALTY)

    def undo(self, theta: Floats) -> tuple[Floats, Floats, Floats | None]:
        """Coefficients of the features as they came, intercepts, and the shift that these are at (None is zero)."""
        coef = theta[:-1] / self.size[:, np.newaxis]
        if self.space is None:
            shift, intercept = self.centre, theta[-1]
        else:
            lifted = self.space.to_features(np.vstack([coef, theta[-1] - self.centre @ coef]))
            coef, shift, intercept = lifted[:-1], self.original.shift, lifted[-1]
        coef, shift = coef / self.unit, shift * self.unit
        if distant_offset(shift, self._spread() * self.unit) is None:
            return coef, intercept - shift @ coef, None
        return coef, intercept, shift

    def _spread(self) -> Floats:
        """The size of every feature in its unit."""
        if self.space is None:
            return self.size
        some = self.original.X[:101]
        return np.ones(some.shape[1]) if sparse.issparse(some) else np.abs(some - self.original.shift).max(axis=0)


def _unit(X: Any) -> float:
    """One, or the power of two next to the largest feature if squares of it would overflow or vanish."""
    values = X.data if sparse.issparse(X) else X
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    return 1.0 if largest == 0 or _SMALLEST < largest < _LARGEST else float(2.0 ** np.round(np.log2(largest)))
