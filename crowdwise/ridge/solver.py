"""The two steps of a round: ridge coefficients from sums over rows, and expertise from squared errors.

Gram matrices and right-hand sides are solved for one l2, for every l2 at once, or without a gram matrix.
Coefficients are ``theta`` of shape (n_columns, n_targets) in the columns of `Rows`; the intercept, which is not
penalised, is the last of them and is eliminated before anything is factorised.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import LinearOperator, lsmr

from crowdwise._arrays import Floats
from crowdwise._limits import PRIOR_LABELS, SMALLEST_ERROR
from crowdwise._threads import run_parallel
from crowdwise.rows.features import Rows


@dataclass(frozen=True, eq=False)
class Systems:
    """Gram matrices and right-hand sides of cells for one consensus, and what combines them to sets of cells.

    An example counts by the expertise of those who labelled it, relative to the average example of its set. Where all
    labelled the same rows, every example is average: gram matrices are `lasting`, the same for any expertise.
    """

    gram: Floats  # (n_cells, n_columns, n_columns)
    cross: Floats  # (n_cells, n_columns, n_targets)
    labelled: Floats  # (n_cells,): the expertise of all who labelled the examples
    present: Floats  # (n_cells,): how many there are
    lasting: bool = False

    def average(self, use: Floats | None = None) -> Floats:
        """The expertise of all who labelled the average example; sets are rows of `use`, by default the cells."""
        return sets(use, self.labelled) / sets(use, self.present)

    def grams(self, use: Floats | None = None) -> Floats:
        """Of shape (n_sets, n_columns, n_columns)."""
        grams = sets(use, self.gram)
        return grams if self.lasting else grams / self.average(use)[:, np.newaxis, np.newaxis]

    def crosses(self, use: Floats | None = None) -> Floats:
        """Of shape (n_sets, n_columns, n_targets)."""
        return sets(use, self.cross) / self.average(use)[:, np.newaxis, np.newaxis]


@dataclass(frozen=True, eq=False)
class Precision:
    """How squared errors become expertise: one over the mean squared error, shrunk where labels are missing."""

    mass: Floats  # (n_annotators,): total weight of the examples that each annotator labelled
    answered: Floats  # (n_annotators,): the same without easiness: how much each annotator labelled
    present: float  # how much there was to label
    span: float  # the squared size of a typical difference between labels

    @cached_property
    def prior(self) -> Floats:
        """Weight of the crowd's average error in each annotator's.

        It is zero for those who labelled everything, so that complete labels give the paper's expertise exactly.
        """
        return PRIOR_LABELS * (1 - np.minimum(self.answered / self.present, 1.0))

    def expertise(self, errors: Floats) -> Floats:
        """Expertise from sums of squared errors."""
        return 1.0 / self._shrunk(errors, self._crowd_error(errors))

    def crowd_expertise(self, errors: Floats) -> float:
        """The expertise of the crowd as a whole: what an unknown annotator is taken to have."""
        return 1.0 / max(self._crowd_error(errors), SMALLEST_ERROR * self.span)

    def objective(self, errors: list[Floats], roughness: list[float], expertise: Floats, l2: float) -> Floats:
        """Minus the mean log-likelihood of the labels, up to constants, plus the ridge penalty, for every round.

        The crowd's error, and the scale of the penalty, are set anew in each round from the expertise then; here all
        rounds are measured as in the last one, so that they can be compared. `roughness` is the squared length of the
        coefficients.
        """
        scale = min(l2 * float(self.answered @ expertise / self.present), np.finfo(np.float64).max)  # infinity times 0
        penalties = scale * np.array(roughness)
        strength = self.mass + self.prior
        logarithms = np.log(self._shrunk(np.array(errors), self._crowd_error(errors[-1])))
        return (logarithms @ strength + penalties) / strength.sum()

    def _crowd_error(self, errors: Floats) -> float:
        return float(errors.sum() / self.mass.sum())

    def _shrunk(self, errors: Floats, crowd: float) -> Floats:
        floor = SMALLEST_ERROR * self.span
        return np.maximum((errors + self.prior * crowd) / (self.mass + self.prior), floor)


def sets(use: Floats | None, cells: Floats) -> Floats:
    """Sums over sets of cells; by default every cell is one."""
    return cells if use is None else np.tensordot(use, cells, axes=1)


@dataclass(frozen=True, eq=False)
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
    rounding : ndarray of shape (...)
        Eigenvalues below this may be nothing but the rounding of the sums.
    """

    gram: Floats
    mean: Floats | None
    total: Floats
    rounding: Floats

    @classmethod
    def of(cls, gram: Floats, *, intercept: bool) -> Centred:
        """Eliminate the intercept from sums over the columns of `Rows`."""
        inner = gram[..., :-1, :-1] if intercept else gram
        # Relative to the sums before they are centred: of equal rows, centring leaves nothing but rounding.
        largest = np.einsum("...ii->...i", inner).max(axis=-1, initial=0.0)
        rounding = largest * (inner.shape[-1] * np.finfo(np.float64).eps)
        if not intercept:
            return cls(gram, None, np.ones(gram.shape[:-2]), rounding)
        # Weights may all have vanished in a fold; its mean is then zero, not 0 / 0.
        total = np.where(gram[..., -1, -1] > 0, gram[..., -1, -1], 1.0)
        mean = gram[..., :-1, -1] / total[..., np.newaxis]
        outer = mean[..., :, np.newaxis] * gram[..., np.newaxis, :-1, -1]
        return cls(inner - outer, mean, total, rounding)

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


@dataclass(frozen=True, eq=False)
class Factor:
    """One ridge system with one l2, factorised once and solved for many right-hand sides.

    `rank` is how many directions of the features the data and l2 determine; the others get coefficient zero.
    """

    centred: Centred
    rank: int
    _cholesky: Any
    _inverse: Floats | None

    @classmethod
    def of(cls, gram: Floats, l2: float, *, intercept: bool) -> Factor:
        """Factorise a gram matrix of shape (n_columns, n_columns)."""
        centred = Centred.of(gram, intercept=intercept)
        if l2 > centred.rounding:
            penalised = centred.gram.copy()
            penalised.flat[:: len(penalised) + 1] += l2
            try:
                cholesky = linalg.cho_factor(penalised, overwrite_a=True, check_finite=False)
                return cls(centred, len(penalised), cholesky, None)
            except linalg.LinAlgError:
                pass
        values, vectors = np.linalg.eigh(centred.gram)
        determined = values > max(float(centred.rounding), values[-1] * len(values) * np.finfo(np.float64).eps)
        inverse = (vectors[:, determined] / (values[determined] + l2)) @ vectors[:, determined].T
        return cls(centred, int(determined.sum()), None, inverse)

    def solve(self, cross: Floats) -> Floats:
        """theta for a right-hand side of shape (n_columns, n_targets)."""
        right = self.centred.right_side(cross)
        if self._inverse is not None:
            coef = self._inverse @ right
        else:
            coef = linalg.cho_solve(self._cholesky, right, check_finite=False)
        return self.centred.theta(coef, cross)


@dataclass(frozen=True, eq=False)
class Spectrum:
    """A batch of ridge systems, diagonalised once and solved for every l2."""

    centred: Centred
    values: Floats
    vectors: Floats
    rounding: Floats

    @classmethod
    def of(cls, gram: Floats, *, intercept: bool) -> Spectrum:
        """Diagonalise gram matrices of shape (n_systems, n_columns, n_columns)."""
        centred = Centred.of(gram, intercept=intercept)
        pairs = list(run_parallel(np.linalg.eigh, centred.gram, 10.0 * gram.size * gram.shape[-1]))
        values, vectors = np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])
        largest = values.max(axis=1, initial=0.0) * values.shape[1] * np.finfo(np.float64).eps
        return cls(centred, np.maximum(values, 0.0), vectors, np.maximum(largest, centred.rounding)[:, np.newaxis])

    def solve(self, cross: Floats, l2s: Floats) -> Floats:
        """theta of shape (n_systems, n_columns, n_l2s, n_targets)."""
        right = self.vectors.swapaxes(-1, -2) @ self.centred.right_side(cross)
        strength = self.values[:, :, np.newaxis] + l2s
        # A direction without data has right-hand side zero; without l2 it gets coefficient zero.
        inverse = np.divide(1.0, strength, out=np.zeros_like(strength), where=strength > self.rounding[:, np.newaxis])
        shrunk = right[:, :, np.newaxis, :] * inverse[:, :, :, np.newaxis]
        n_systems, n_features, n_l2s, n_targets = shrunk.shape
        coef = self.vectors @ shrunk.reshape(n_systems, n_features, n_l2s * n_targets)
        if self.centred.mean is None:
            return coef.reshape(shrunk.shape)
        level = cross[:, -1:, :] / self.centred.total[:, np.newaxis, np.newaxis]
        intercept = np.tile(level, (1, 1, n_l2s)) - self.centred.mean[:, np.newaxis] @ coef
        theta = np.concatenate([coef, intercept], axis=1)
        return theta.reshape(n_systems, n_features + 1, n_l2s, n_targets)

    def rank(self, l2: float) -> int:
        """How many directions of the features the data of the last system, and l2, determine."""
        return int((self.values[-1] + l2 > self.rounding[-1]).sum())


def leave_one_out(n_folds: int) -> Floats:
    """Which folds each training set is made of; the last one is made of all."""
    return np.vstack([1 - np.eye(n_folds), np.ones(n_folds)])


def held_out_errors(gram: Floats, cross: Floats, theta: Floats, factor: float) -> Floats:
    """Sums of squared errors of held-out folds for every l2, up to a constant that no l2 changes.

    `gram` and `cross` are sums over the held-out rows, `theta` of shape (n_folds, n_columns, n_l2s, n_targets) are
    models of the other folds.
    """
    scored = (gram @ theta.reshape(*theta.shape[:2], -1)).reshape(theta.shape)
    return factor * ((scored - 2 * cross[:, :, np.newaxis, :]) * theta).sum(axis=(0, 1, 3))


def solve_iteratively(
    rows: Rows, weight: Floats, target: Floats, l2: float, start: Floats | None, *, tol: float = 1e-10
) -> Floats:
    """theta without a gram matrix, for wide sparse features; `start` is a nearby solution.

    `tol` is the relative accuracy.
    """
    root = np.sqrt(weight)
    total = weight.sum()
    mean = np.asarray(rows.X.T @ weight) / total if rows.intercept else np.zeros(rows.n_features)
    level = weight @ target / total if rows.intercept else np.zeros(target.shape[1])
    operator = LinearOperator(
        (rows.n_examples, rows.n_features),
        matvec=lambda v: root * (rows.X @ np.ravel(v) - mean @ np.ravel(v)),
        rmatvec=lambda u: rows.X.T @ (root * np.ravel(u)) - mean * (root @ np.ravel(u)),
        dtype=np.float64,
    )
    coef = np.empty((rows.n_features, target.shape[1]))
    for t in range(target.shape[1]):
        begin = np.zeros(rows.n_features) if start is None else start[: rows.n_features, t]
        # The step from the start is penalised towards minus the start, so that the sum is penalised towards zero.
        coef[:, t] = _damped_step(operator, root * (target[:, t] - level[t]), l2, begin, tol)
    if not rows.intercept:
        return coef
    shift = 0.0 if rows.is_sparse else rows.shift  # sparse features are shifted already
    return np.vstack([coef, level - (mean - shift) @ coef])


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
    remainder = np.concatenate([right - operator.matvec(begin), -damp * begin])
    solution = lsmr(stacked, remainder, atol=tol, btol=tol, conlim=0.0, maxiter=10 * min(n_rows, n_features))
    return begin + solution[0]
