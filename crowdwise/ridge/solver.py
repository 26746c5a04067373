"""Gram matrices and right-hand sides -> ridge coefficients: one l2, every l2 at once, or without a gram matrix.

Coefficients are ``theta`` of shape (n_columns, n_targets) in the columns of `Rows`; the intercept, which is not
penalised, is the last of them and is eliminated before anything is factorised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, lsmr

from crowdwise.arrays import Floats
from crowdwise.exceptions import warn
from crowdwise.ridge.features import Rows


@dataclass(frozen=True)
class Centred:
    """Ridge systems with the intercept eliminated; leading axes are a batch.

    Parameters
    ----------
    gram : ndarray of shape (..., n_features, n_features)
        Sums of weight · x xᵀ around the weighted means.
    mean : ndarray of shape (..., n_features) or None
        The weighted means, in the shifted columns; None without an intercept.
    total : ndarray of shape (...)
        Sums of weights.
    """

    gram: Floats
    mean: Floats | None
    total: Floats

    @classmethod
    def of(cls, gram: Floats, *, intercept: bool) -> Centred:
        """Eliminate the intercept from sums over the columns of `Rows`."""
        if not intercept:
            return cls(gram, None, np.ones(gram.shape[:-2]))
        total = gram[..., -1, -1]
        # Weights may all have vanished in a fold; its mean is then zero, not 0 / 0.
        mean = gram[..., :-1, -1] / np.where(total > 0, total, 1.0)[..., np.newaxis]
        outer = mean[..., :, np.newaxis] * gram[..., np.newaxis, :-1, -1]
        return cls(gram[..., :-1, :-1] - outer, mean, np.where(total > 0, total, 1.0))

    def right_side(self, cross: Floats) -> Floats:
        """Sums of weight · x y around the means of x."""
        if self.mean is None:
            return cross
        return cross[..., :-1, :] - self.mean[..., :, np.newaxis] * cross[..., -1:, :]

    def theta(self, coef: Floats, cross: Floats) -> Floats:
        """The coefficients of one system with the intercept that goes with them."""
        if self.mean is None:
            return coef
        return np.vstack([coef, cross[-1] / self.total - self.mean @ coef])


@dataclass(frozen=True)
class Factor:
    """One ridge system with one l2, factorised once and solved for many right-hand sides."""

    centred: Centred
    l2: float
    _cholesky: Any
    _pseudo_inverse: Floats | None

    @classmethod
    def of(cls, gram: Floats, l2: float, *, intercept: bool) -> Factor:
        """Factorise a gram matrix of shape (n_columns, n_columns)."""
        centred = Centred.of(gram, intercept=intercept)
        penalised = centred.gram.copy()
        penalised.flat[:: len(penalised) + 1] += l2
        if l2 > 0:
            try:
                return cls(centred, l2, linalg.cho_factor(penalised, overwrite_a=True, check_finite=False), None)
            except linalg.LinAlgError:  # l2 is below the rounding of the gram matrix: treat it as zero
                pass
        return cls(centred, l2, None, _minimum_norm_inverse(centred.gram))

    def solve(self, cross: Floats) -> Floats:
        """theta for a right-hand side of shape (n_columns, n_targets)."""
        right = self.centred.right_side(cross)
        if self._pseudo_inverse is not None:
            coef = self._pseudo_inverse @ right
        else:
            coef = linalg.cho_solve(self._cholesky, right, check_finite=False)
        return self.centred.theta(coef, cross)

    def degrees_of_freedom(self) -> float:
        """The trace of the hat matrix: how many parameters the fit really has."""
        extra = 0.0 if self.centred.mean is None else 1.0
        if self._pseudo_inverse is not None:
            inverse = self._pseudo_inverse
        else:
            inverse = linalg.cho_solve(self._cholesky, np.eye(len(self.centred.gram)), check_finite=False)
        return float(np.einsum("ij,ij->", inverse, self.centred.gram)) + extra


def _minimum_norm_inverse(gram: Floats) -> Floats:
    values, vectors = np.linalg.eigh(gram)
    cutoff = max(values[-1], 0.0) * len(gram) * np.finfo(np.float64).eps
    kept = values > cutoff
    if not kept.all():
        warn(
            f"l2 is 0 and only {int(kept.sum())} of {len(gram)} directions of the features are determined by the "
            "data: the solution of smallest norm is taken. Use l2 > 0 for a solution that is stable."
        )
    return (vectors[:, kept] / values[kept]) @ vectors[:, kept].T


@dataclass(frozen=True)
class Spectrum:
    """A batch of ridge systems, diagonalised once and solved for every l2."""

    centred: Centred
    values: Floats
    vectors: Floats

    @classmethod
    def of(cls, gram: Floats, *, intercept: bool) -> Spectrum:
        """Diagonalise gram matrices of shape (n_systems, n_columns, n_columns)."""
        centred = Centred.of(gram, intercept=intercept)
        values, vectors = np.linalg.eigh(centred.gram)
        return cls(centred, np.maximum(values, 0.0), vectors)

    def solve(self, cross: Floats, l2s: Floats) -> Floats:
        """theta of shape (n_systems, n_columns, n_l2s, n_targets)."""
        right = self.vectors.swapaxes(-1, -2) @ self.centred.right_side(cross)
        strength = self.values[:, :, np.newaxis] + l2s
        # A direction without data has right-hand side zero; without l2 it gets coefficient zero.
        inverse = np.divide(1.0, strength, out=np.zeros_like(strength), where=strength > self._negligible())
        shrunk = right[:, :, np.newaxis, :] * inverse[:, :, :, np.newaxis]
        n_systems, n_features, n_l2s, n_targets = shrunk.shape
        coef = self.vectors @ shrunk.reshape(n_systems, n_features, n_l2s * n_targets)
        if self.centred.mean is None:
            return coef.reshape(shrunk.shape)
        level = cross[:, -1:, :] / self.centred.total[:, np.newaxis, np.newaxis]
        intercept = np.tile(level, (1, 1, n_l2s)) - self.centred.mean[:, np.newaxis] @ coef
        theta = np.concatenate([coef, intercept], axis=1)
        return theta.reshape(n_systems, n_features + 1, n_l2s, n_targets)

    def _negligible(self) -> Floats:
        largest = self.values.max(axis=1, initial=0.0)
        return (largest * self.values.shape[1] * np.finfo(np.float64).eps)[:, np.newaxis, np.newaxis]


def solve_iteratively(
    rows: Rows, weight: Floats, target: Floats, l2: float, start: Floats | None, *, tol: float = 1e-10
) -> Floats:
    """theta without a gram matrix, for wide sparse features; `start` is a nearby solution.

    Parameters
    ----------
    rows : Rows
        The features.
    weight : ndarray of shape (n_examples,)
        Weights of the squared errors.
    target : ndarray of shape (n_examples, n_targets)
        What the scores should be.
    l2 : float
        Ridge strength.
    start : ndarray of shape (n_columns, n_targets) or None
        Where to begin.
    tol : float, default=1e-10
        Relative accuracy.

    Returns
    -------
    theta : ndarray of shape (n_columns, n_targets)
    """
    n_features = rows.X.shape[1]
    root = np.sqrt(weight)
    total = weight.sum()
    mean = np.asarray(rows.X.T @ weight) / total if rows.intercept else np.zeros(n_features)
    level = weight @ target / total if rows.intercept else np.zeros(target.shape[1])
    operator = LinearOperator(
        (rows.n_examples, n_features),
        matvec=lambda v: root * (rows.X @ np.ravel(v) - mean @ np.ravel(v)),
        rmatvec=lambda u: rows.X.T @ (root * np.ravel(u)) - mean * (root @ np.ravel(u)),
        dtype=np.float64,
    )
    coef = np.empty((n_features, target.shape[1]))
    for t in range(target.shape[1]):
        begin = np.zeros(n_features) if start is None else start[:n_features, t]
        # The step from the start is penalised towards minus the start, so that the sum is penalised towards zero.
        coef[:, t] = _damped_step(operator, root * (target[:, t] - level[t]), l2, begin, tol)
    if not rows.intercept:
        return coef
    # `Rows` counts from its shift, which is zero for sparse features.
    return np.vstack([coef, level - (mean - rows.shift) @ coef])


def _damped_step(operator: LinearOperator, right: Floats, l2: float, begin: Floats, tol: float) -> Floats:
    """argmin |A v - right|² + l2 |v|², begun at `begin`: with v = begin + d this is a least-squares problem in d."""
    n_rows, n_features = operator.shape
    damp = np.sqrt(l2)
    stacked = LinearOperator(
        (n_rows + n_features, n_features),
        matvec=lambda v: np.concatenate([operator.matvec(v), damp * np.ravel(v)]),
        rmatvec=lambda u: operator.rmatvec(u[:n_rows]) + damp * u[n_rows:],
        dtype=np.float64,
    )
    rest = np.concatenate([right - operator.matvec(begin), -damp * begin])
    solution = lsmr(stacked, rest, atol=tol, btol=tol, conlim=0.0, maxiter=10 * min(n_rows, n_features))
    return begin + solution[0]
