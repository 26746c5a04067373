"""Chunks of rows and soft classes -> multinomial logistic regressions, several on the same rows at once.

The models differ in the fold that they leave out. One pass over the rows serves all of them: a product with the
coefficients of all models side by side, probabilities that are zero where an example is left out, and one product back.
What classes the examples are of enters by sums that no step changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from crowdwise._arrays import ROUNDING, Codes, Floats
from crowdwise.logistic.descent import (
    Memory,
    Point,
    by_model,
    curvature,
    descend,
    factored,
    side_by_side,
    solver,
)
from crowdwise.probabilities import log_softmax, shares_of_sum
from crowdwise.rows.chunks import Chunk, Chunks, Sums
from crowdwise.weights.folds import hashed_folds

# Soft classes of a chunk, of shape (n_examples, n_classes), and weights of its examples.
TargetsOf = Callable[[Chunk], tuple[Floats, Floats]]
# Rows whose features are this many bytes are worked on at a time: they stay in the cache, and are enough for what it
# costs to begin with a block.
_BLOCK_BYTES = 2**21


@dataclass(frozen=True, eq=False)
class SoftmaxRows:
    """How models read the rows of a chunk, and which part of them each leaves out."""

    n_features: int
    unit: float = 1.0  # what features are divided by
    shift: Floats | None = None  # (n_features,): subtracted from dense features then
    n_folds: int = 0  # parts of the rows, each of which one model leaves out; 0 is one model of all rows
    fold_columns: int = 0  # how many columns determine the fold of a row that has none yet
    fit_intercept: bool = True  # whether models have an intercept, which is not penalised

    @property
    def n_models(self) -> int:
        return max(self.n_folds, 1)

    def blocks(self, chunk: Chunk) -> Iterator[tuple[slice, Any]]:
        """Slices of the rows of a chunk, and their features in double precision."""
        n_rows = len(chunk)
        step = n_rows if sparse.issparse(chunk.X) else max(64, _BLOCK_BYTES // (8 * max(self.n_features, 1)))
        for start in range(0, n_rows, max(step, 1)):
            block = slice(start, min(start + step, n_rows))
            yield block, self.read(chunk.X[block])

    def read(self, X: Any) -> Any:
        """Features in the unit and around the shift of the coefficients."""
        if sparse.issparse(X):
            x = X.astype(np.float64)
            return x if self.unit == 1 else x / self.unit
        x = np.asarray(X, dtype=np.float64) if self.unit == 1 else X / np.float64(self.unit)
        return x if self.shift is None else x - self.shift

    def fold(self, chunk: Chunk) -> Codes:
        """The fold of each row of a chunk, by its content."""
        return chunk.keep("fold", lambda: hashed_folds(chunk.X, self.n_models, self.fold_columns))

    def at_fold(self, chunk: Chunk, block: slice) -> NDArray[np.int64]:
        """Where the fold of each row of a block is, in a table that has a row per fold and a column per row."""
        n_rows = block.stop - block.start
        if self.n_folds == 0:
            return np.arange(n_rows)
        return self.fold(chunk)[block].astype(np.int64) * n_rows + np.arange(n_rows)

    def fold_sums(self, chunk: Chunk, posterior: Floats, weight: Floats) -> Floats:
        """Sums of features (with a one) times weight, and times weight and class, over the rows of every fold.

        Of shape (1 + n_outputs, n_models, n_features + 1); one output for two classes, else one per class.
        """
        values = np.column_stack([np.ones(len(weight)), outputs_of(posterior)]) * weight[:, np.newaxis]
        n_values = values.shape[1]
        sums = np.zeros((n_values * self.n_models, self.n_features + 1))
        for block, x in self.blocks(chunk):
            places = self.at_fold(chunk, block)
            spread = np.zeros((n_values, self.n_models * len(places)))
            spread[:, places] = values[block].T
            spread = spread.reshape(len(sums), -1)
            sums[:, :-1] += spread @ x
            sums[:, -1] += spread.sum(axis=1)
        return sums.reshape(n_values, self.n_models, -1)

    def held_out_scores(self, chunk: Chunk, theta: Floats) -> Floats:
        """Scores of every row of a chunk by the model that leaves its fold out, of shape (n_examples, n_classes)."""
        n_outputs = theta.shape[2]
        flat = np.ascontiguousarray(theta.T).reshape(-1, len(theta))  # a row per output and model
        scores = np.empty((len(chunk), n_outputs))
        for block, x in self.blocks(chunk):
            of_all = np.ascontiguousarray(flat[:, :-1] @ x.T)
            of_all += flat[:, -1:]
            scores[block] = of_all.reshape(n_outputs, -1).take(self.at_fold(chunk, block), axis=1).T
        return classes_of(scores)


def classes_of(outputs: Floats) -> Floats:
    """Outputs of a model as scores of all classes: one output is the second of two classes compared with the first."""
    return np.column_stack([np.zeros(len(outputs)), outputs]) if outputs.shape[1] == 1 else outputs


def outputs_of(of_classes: Floats) -> Floats:
    """Columns of classes as outputs of a model: that of the second of two classes, else one per class."""
    return of_classes[..., 1:] if of_classes.shape[-1] == 2 else of_classes


# Exponentials of scores beyond would overflow; the other class no longer counts beside such a one.
_LARGEST_SCORE = 700.0
# Examples added at the mean of a model's rows, evenly of all classes: where all rows are of one class, intercepts stay
# finite.
_ADDED_EXAMPLES = 1.0


@dataclass
class SoftmaxModels:
    """Logistic regressions on the same rows; fitting goes on from where it was."""

    chunks: Chunks  # what they are fitted to
    rows: SoftmaxRows  # how that is read
    sample: Any  # (n_rows, n_features): some of it, read: curvature is first guessed from these rows
    l2: float  # strength of the penalty; one over scikit-learn's C
    # (n_features + 1, n_models, n_outputs): coefficients with the intercept last; one output for two classes, else one
    # per class. Zero to begin with.
    theta: Floats | None = None
    _sums: Floats = field(init=False)
    _targets_of: TargetsOf | None = field(default=None, init=False)
    _last: tuple[Floats, Floats, Floats] | None = field(default=None, init=False)
    _curvature: Floats | None = field(default=None, init=False)
    _factor: Floats | None = field(default=None, init=False)
    _memory: Memory = field(default_factory=Memory, init=False)

    def set_targets(self, targets: TargetsOf, weight: Floats) -> None:
        """Fit these soft classes from now on; `weight` is that of the rows of the sample."""
        rows = self.rows
        sums = self.chunks.total(lambda chunk: rows.fold_sums(chunk, *targets(chunk)))
        sums = sums.transpose(2, 1, 0)
        # Sums over the rows of each model, from those over folds: all but the one that it leaves out.
        self._sums = sums if rows.n_folds == 0 else sums.sum(axis=1, keepdims=True) - sums
        self._targets_of, self._last = targets, None
        if self.theta is None:
            self.theta = np.zeros((len(sums), rows.n_models, sums.shape[2] - 1))
        weight = weight * (self._total.mean() / max(weight.sum(), np.finfo(np.float64).tiny))
        self._curvature = curvature(self.sample, weight, self.theta, fit_intercept=rows.fit_intercept)
        self._factor = None
        self._memory.clear()

    def set_l2(self, l2: float) -> None:
        """Go on with another penalty."""
        self.l2, self._factor = l2, None
        self._memory.clear()

    def step(self, *, max_steps: int, tol: float) -> Floats:
        """Coefficients some steps closer to those that maximise the penalised log-likelihood of the soft classes.

        They are found by L-BFGS, until no model's slope, measured by the curvature and per root of the weight, is
        longer than the tolerance.
        """
        assert self.theta is not None
        assert self._curvature is not None
        shape, total = self.theta.shape, self._total
        middle = self._middle
        targets, counts = self._sums[:, :, 1:], (total > 0).astype(np.float64)[:, np.newaxis]
        if self._factor is None:
            self._factor = factored(self._curvature, self.l2, shape[0])

        def loss(point: Floats) -> Point:
            theta = side_by_side(point, shape) * counts  # a model without rows carries no information
            value, slope = self._normalisers(theta)
            added, added_slope = penalty(theta, middle, self.l2)
            value = value + added - np.einsum("pjo,pjo->j", targets, theta)
            slope = (slope + added_slope - targets) * counts
            if not self.rows.fit_intercept:
                slope[-1] = 0.0
            return Point(by_model(theta), value, by_model(slope))

        end = descend(
            loss, loss(by_model(self.theta)), self._memory, solver(self._factor, shape),
            max_steps=max_steps, tol=tol * np.sqrt(total),
        )  # fmt: skip
        self.theta = side_by_side(end.theta, shape)
        return self.theta

    def fit(self, targets: TargetsOf, weight: Floats, *, max_steps: int, tol: float) -> Floats:
        """Coefficients that maximise the weighted log-likelihood of soft classes minus l2 / 2 times squared length."""
        self.set_targets(targets, weight)
        return self.step(max_steps=max_steps, tol=tol)

    @property
    def log_prior(self) -> Floats:
        """Logarithms of the prior probabilities of each model's coefficients: what the penalty is, but for its sign."""
        assert self.theta is not None
        return -penalty(self.theta, self._middle, self.l2)[0]

    @property
    def _middle(self) -> Floats:
        """Weighted means of each model's rows, with a one."""
        total = self._total
        middle = self._sums[:, :, 0] / np.where(total > 0, total, 1.0)
        middle[-1] = 1.0
        return middle

    @property
    def _total(self) -> Floats:
        """The weight of each model's rows; rounding leaves nothing where there is nothing."""
        total = self._sums[-1, :, 0]
        return np.where(total > ROUNDING * total.max(initial=0.0), total, 0.0)

    def _normalisers(self, theta: Floats) -> tuple[Floats, Floats]:
        """The part of the losses that depends on coefficients and weights alone, and its slope: one pass."""
        if self._last is not None and np.array_equal(self._last[0], theta):  # where the last steps ended
            return self._last[1:]
        n_columns, n_models, n_outputs = theta.shape
        # A row per output and model, so that all that is done with scores runs along examples.
        flat = np.ascontiguousarray(theta.T).reshape(-1, n_columns)
        coef, rows, targets = np.ascontiguousarray(flat[:, :-1]), self.rows, self._targets_of
        assert targets is not None

        def task(chunk: Chunk) -> Sums:
            value, slope = np.zeros(n_models), np.zeros_like(flat)
            weight = targets(chunk)[1]
            for block, x in rows.blocks(chunk):
                scores = np.ascontiguousarray(coef @ x.T)
                scores += flat[:, -1:]
                total, proba = normalisers(scores.reshape(n_outputs, n_models, -1))
                if rows.n_folds:  # a model's own fold counts nothing for it
                    left_out = rows.at_fold(chunk, block)
                    total.reshape(-1)[left_out] = 0.0
                    proba.reshape(n_outputs, -1)[:, left_out] = 0.0
                value += total @ weight[block]
                proba *= weight[block]
                away = proba.reshape(len(flat), -1)
                slope[:, :-1] += away @ x
                slope[:, -1] += away.sum(axis=1)
            return Sums(value=value, slope=slope)

        sums = self.chunks.total(task)
        self._last = theta, sums.value, sums.slope.reshape(theta.T.shape).T
        return self._last[1:]


def penalty(theta: Floats, middle: Floats, l2: float) -> tuple[Floats, Floats]:
    """l2 / 2 times squared length minus the log-likelihood of the examples added, and its slope, per model.

    Coefficients are of (n_features + 1, n_models, n_outputs), with the intercept last, which is not penalised. Examples
    are added evenly of all classes in the `middle`: weighted means of each model's rows, with a one.
    """
    slope = l2 * theta
    slope[-1] = 0.0
    value = np.einsum("pjo,pjo->j", slope, theta) / 2
    scores = np.einsum("pj,pjc->jc", middle, theta)
    log_middle = log_softmax(scores)
    n_classes = log_middle.shape[1]
    value -= _ADDED_EXAMPLES / n_classes * log_middle.sum(axis=1)
    residual = _ADDED_EXAMPLES * (np.exp(log_middle) - 1 / n_classes)
    slope += middle[:, :, np.newaxis] * (residual[:, 1:] if scores.shape[1] == 1 else residual)
    return value, slope


def normalisers(scores: Floats) -> tuple[Floats, Floats]:
    """Logarithms of the sums of exponentials, and probabilities of the outputs, which may overwrite the scores.

    Scores of (n_outputs, n_models, n_examples) are those of all classes, or of the second of two.
    """
    if len(scores) > 1:
        return shares_of_sum(scores), scores
    far = scores.max(initial=0.0) > _LARGEST_SCORE
    proba = np.exp(np.minimum(scores, _LARGEST_SCORE) if far else scores)
    total = proba[0] + 1
    proba /= total
    np.log(total, out=total)
    return np.maximum(total, scores[0], out=total) if far else total, proba
