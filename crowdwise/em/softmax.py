"""Features and soft classes -> multinomial logistic regressions, several on the same rows at once.

The models differ in the fold that they leave out. One pass over the rows serves all of them: a product with the
coefficients of all models side by side, probabilities that are zero where an example is left out, and one product back.
What classes the examples are of enters by sums that a step does not change, so a round of new classes costs one thin
product, and goes on from the pass that the last round ended with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.special import log_expit

from crowdwise.arrays import Floats
from crowdwise.em.descent import Memory, Point, Solve, descend
from crowdwise.ridge.features import run_parallel

# Rows whose features are this many bytes are worked on at a time: they stay in the cache of one core.
_BLOCK_BYTES = 2**20
# Blocks that one task works on; partial sums are added in a fixed order, so threads change no bit.
_TASK_BLOCKS = 8
# Up to this many columns, curvature is a matrix; beyond, its diagonal.
_EXACT_COLUMNS = 1000
# Curvature is made of this many rows, and some for every column: as a first guess that is enough.
_ENOUGH_ROWS, _ROWS_PER_COLUMN = 2000, 8
# No row is taken to add less to the curvature, relative to its weight: it would once its probabilities change.
_LEAST_SPREAD = 0.01


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
        if sparse.issparse(self.X):  # read in one block
            return self.X if isinstance(rows, slice) else self.X[rows]
        if self.shift is None:
            return np.asarray(self.X[rows], dtype=np.float64)
        return np.subtract(self.X[rows], self.shift, dtype=np.float64)

    def over_tasks(self, task: Any, n_columns: int) -> Iterator[Any]:
        """What a task found in each list of blocks of rows; it multiplies the features with so many columns."""
        n_rows, n_features = self.X.shape
        step = n_rows if sparse.issparse(self.X) else max(64, _BLOCK_BYTES // (8 * max(n_features, 1)))
        blocks = [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, max(step, 1))]
        tasks = [blocks[start : start + _TASK_BLOCKS] for start in range(0, len(blocks), _TASK_BLOCKS)]
        return run_parallel(task, tasks, n_rows * n_features * n_columns)

    def fold_sums(self, values: Floats) -> Floats:
        """Sums of features (with a one) times values over the rows of every fold.

        Parameters
        ----------
        values : ndarray of shape (n_examples, n_outputs)
            A few numbers per row.

        Returns
        -------
        sums : ndarray of shape (n_features + 1, n_folds, n_outputs)
        """
        n_folds, n_outputs = self.n_folds, values.shape[1]
        shape = (self.X.shape[1] + 1, n_folds * n_outputs)

        def task(blocks: list[slice]) -> Floats:
            sums = np.zeros(shape)
            for block in blocks:
                belongs = self.fold[block, np.newaxis] == np.arange(n_folds)
                spread = (belongs[:, :, np.newaxis] * values[block, np.newaxis]).reshape(-1, shape[1])
                sums[:-1] += self.read(block).T @ spread
                sums[-1] += spread.sum(axis=0)
            return sums

        parts = self.over_tasks(task, 2 * shape[1])
        return sum(parts, start=np.zeros(shape)).reshape(shape[0], n_folds, n_outputs)


@dataclass
class SoftmaxModels:
    """Logistic regressions on the same rows; fitting goes on from where it was.

    Parameters
    ----------
    rows : SoftmaxRows
        What they are fitted to.
    left_out : ndarray of shape (n_models,)
        The fold that each model leaves out; -1 for none.
    l2 : float
        Strength of the penalty; one over scikit-learn's C.
    theta : ndarray of shape (n_features + 1, n_models, n_outputs), default=None
        Coefficients with the intercept last; one output for two classes, else one per class. Zero to begin with.
    """

    rows: SoftmaxRows
    left_out: NDArray[np.int64]
    l2: float
    theta: Floats | None = None
    _weighted: _Weighted | None = field(default=None, init=False)
    _last: _Pass | None = field(default=None, init=False)
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
            Stop when no model's slope, measured by the curvature and per root of the weight, is longer.

        Returns
        -------
        theta : ndarray of shape (n_features + 1, n_models, n_outputs)
        """
        outputs = posterior[:, 1:] if posterior.shape[1] == 2 else posterior
        weighted = self._weighted_by(weight)
        targets = weighted.of_models(self.rows.fold_sums(outputs * weight[:, np.newaxis]))
        shape = targets.shape
        if self.theta is None:
            self.theta = np.zeros(shape)
        if self._last is None or self._last.theta is not self.theta:
            self._last = self._normaliser(self.theta * weighted.counts[:, np.newaxis], weighted)

        def by_model(values: Floats) -> Floats:
            return values.transpose(1, 0, 2).reshape(shape[1], -1)

        def side_by_side(values: Floats) -> Floats:
            return np.ascontiguousarray(values.reshape(shape[1], shape[0], shape[2]).transpose(1, 0, 2))

        def loss(at: _Pass) -> Point:
            value = at.value - np.einsum("pjo,pjo->j", targets, at.theta)
            slope = (at.slope - targets) * weighted.counts[:, np.newaxis]
            if not self.rows.fit_intercept:
                slope[-1] = 0.0
            return Point(by_model(at.theta), value, by_model(slope), at)

        end = descend(
            lambda point: loss(self._normaliser(side_by_side(point), weighted)),
            loss(self._last),
            self._memory,
            weighted.solver(shape),
            max_steps=max_steps,
            tol=tol * np.sqrt(weighted.total),
        )
        self._last = end.found
        self.theta = self._last.theta
        return self.theta

    @property
    def held_out_scores(self) -> Floats:
        """Scores of every row by the model that leaves its fold out, of shape (n_examples, n_outputs)."""
        assert self._last is not None
        return self._last.held_out

    def log_density(self) -> float:
        """Minus the penalties, plus the log-likelihood of the examples that were added."""
        assert self.theta is not None
        assert self._weighted is not None
        return -float(self._penalty(self.theta, self._weighted.middle)[0].sum())

    def _weighted_by(self, weight: Floats) -> _Weighted:
        """What depends on the weights; the same in every round whose weights are the same."""
        if self._weighted is None or not np.array_equal(self._weighted.weight, weight):
            self._weighted = _Weighted.of(self.rows, self.left_out, self.l2, weight, self.theta)
            self._last = None
            self._memory.clear()
        return self._weighted

    def _normaliser(self, theta: Floats, weighted: _Weighted) -> _Pass:
        """The part of the losses in which classes do not occur, its slope, and the scores of the rows held out."""
        n_columns, n_models, n_outputs = theta.shape
        flat = theta.reshape(n_columns, -1)
        probabilities = _two_classes if n_outputs == 1 else _many_classes
        alone = n_models == 1 and self.left_out[0] < 0
        held_out = np.empty((len(weighted.weight), n_outputs))

        def task(blocks: list[slice]) -> tuple[Floats, Floats]:
            value, slope = np.zeros(n_models), np.zeros_like(flat)
            for block in blocks:
                x, fold = self.rows.read(block), self.rows.fold[block]
                scores = (np.asarray(x @ flat[:-1]) + flat[-1]).reshape(-1, n_models, n_outputs)
                held_out[block] = scores[:, 0] if alone else scores[np.arange(len(scores)), fold]
                counts = weighted.weight[block, np.newaxis]
                if not alone:
                    counts = counts * (fold[:, np.newaxis] != self.left_out)
                total, proba = probabilities(scores)
                value += np.einsum("ij,ij->j", counts, total)
                proba *= counts[:, :, np.newaxis]
                away = proba.reshape(len(proba), -1)
                slope[:-1] += x.T @ away
                slope[-1] += away.sum(axis=0)
            return value, slope

        value, slope = np.zeros(n_models), np.zeros_like(flat)
        for part, part_slope in self.rows.over_tasks(task, 4 * flat.shape[1]):
            value += part
            slope += part_slope
        penalty, penalty_slope = self._penalty(theta, weighted.middle)
        return _Pass(theta, value + penalty, slope.reshape(theta.shape) + penalty_slope, held_out)

    def _penalty(self, theta: Floats, middle: Floats) -> tuple[Floats, Floats]:
        """l2 / 2 times squared length minus the log-likelihood of the examples added, and its slope, per model."""
        slope = self.l2 * theta
        slope[-1] = 0.0
        value = np.einsum("pjo,pjo->j", slope, theta) / 2
        if self.rows.class_prior > 0:
            scores = np.einsum("pj,pjc->jc", middle, theta)
            log_middle = log_softmax(scores)
            n_classes = log_middle.shape[1]
            value -= self.rows.class_prior / n_classes * log_middle.sum(axis=1)
            pull = self.rows.class_prior * (np.exp(log_middle) - 1 / n_classes)
            slope += middle[:, :, np.newaxis] * (pull[:, 1:] if scores.shape[1] == 1 else pull)
        return value, slope


def _two_classes(scores: Floats) -> tuple[Floats, Floats]:
    """Logarithms of the sums of exponentials, and probabilities of the second class."""
    z = scores[:, :, 0]
    small = np.exp(-np.abs(z))
    total = 1 + small
    proba = np.where(z >= 0, 1.0, small) / total
    return np.maximum(z, 0) + np.log(total), proba[:, :, np.newaxis]


def _many_classes(scores: Floats) -> tuple[Floats, Floats]:
    """Logarithms of the sums of exponentials, and probabilities of all classes."""
    top = reduce(np.maximum, np.moveaxis(scores, 2, 0))
    proba = np.exp(scores - top[:, :, np.newaxis])
    total = reduce(np.add, np.moveaxis(proba, 2, 0))
    proba /= total[:, :, np.newaxis]
    return np.log(total) + top, proba


@dataclass(frozen=True)
class _Pass:
    """What a pass over the rows found at some coefficients.

    Parameters
    ----------
    theta : ndarray of shape (n_features + 1, n_models, n_outputs)
        The coefficients.
    value : ndarray of shape (n_models,)
        The part of the losses in which classes do not occur.
    slope : ndarray of shape (n_features + 1, n_models, n_outputs)
        Its slope.
    held_out : ndarray of shape (n_examples, n_outputs)
        Scores of every row by the model that leaves its fold out.
    """

    theta: Floats
    value: Floats
    slope: Floats
    held_out: Floats


@dataclass(frozen=True)
class _Weighted:
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
    ) -> _Weighted:
        """One thin pass over the rows; curvature is that at some coefficients."""
        others = (np.arange(rows.n_folds)[:, np.newaxis] != left_out).astype(np.float64)
        sums = rows.fold_sums(weight[:, np.newaxis])[:, :, 0] @ others
        total = sums[-1]
        middle = sums / np.where(total > 0, total, 1.0)
        middle[-1] = 1.0
        bends = _curvature(rows, l2, weight * (total.mean() / max(weight.sum(), np.finfo(np.float64).tiny)), theta)
        factor = np.sqrt(bends) if bends.ndim == 1 else linalg.cholesky(bends, lower=True, check_finite=False)
        return cls(weight, total, middle, others, factor)

    @property
    def counts(self) -> Floats:
        """One for every model that has something to learn from, else zero: it says nothing then."""
        return (self.total > 0).astype(np.float64)

    def of_models(self, sums: Floats) -> Floats:
        """Sums over the rows of each model from those over folds."""
        return np.einsum("pfo,fj->pjo", sums, self.others)

    def solver(self, shape: tuple[int, ...]) -> Solve:
        """Divides slopes by the curvature, a row per model; `shape` is that of coefficients side by side."""
        n_columns, n_models, n_outputs = shape
        if self.factor.ndim == 1:
            each = np.repeat(np.square(self.factor), n_outputs)
            return lambda slope: slope / each

        def solve(slope: Floats) -> Floats:
            columns = slope.reshape(n_models, n_columns, n_outputs).transpose(1, 0, 2).reshape(n_columns, -1)
            solved = linalg.cho_solve((self.factor, True), columns, check_finite=False)
            return np.asarray(solved.reshape(shape).transpose(1, 0, 2).reshape(n_models, -1))

        return solve


def _curvature(rows: SoftmaxRows, l2: float, weight: Floats, theta: Floats | None) -> Floats:
    """About the second derivative of a model's loss, the same for every output: of all pairs of columns, or a diagonal.

    A quarter of the weighted sums of squares bounds it; where the probabilities are known, it is less. Some of the rows
    are enough.
    """
    n_rows, n_columns = len(weight), rows.X.shape[1] + 1
    every = max(1, n_rows // max(_ENOUGH_ROWS, _ROWS_PER_COLUMN * n_columns))
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
