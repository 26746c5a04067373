"""Features and soft classes -> multinomial logistic regressions, several on the same rows at once.

The models differ in the fold that they leave out. One pass over the rows serves all of them: a product with the
coefficients of all models side by side, probabilities that are zero where an example is left out, and one product back.
What classes the examples are of enters by sums that a step does not change, so a round of new classes costs one thin
product, and goes on from the pass that the last round ended with.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from crowdwise.arrays import Floats
from crowdwise.softmax.curvature import Weighted, factored, solver
from crowdwise.softmax.descent import Memory, Point, by_model, descend, side_by_side
from crowdwise.softmax.log_space import log_softmax
from crowdwise.softmax.rows import SoftmaxRows

# Exponentials of scores beyond would overflow; the other class no longer counts beside such a one.
_FAR = 700.0


@dataclass(frozen=True)
class _Pass:
    """What a pass over the rows found at some coefficients."""

    theta: Floats  # (n_features + 1, n_models, n_outputs): the coefficients
    value: Floats  # (n_models,): the part of the losses in which neither classes nor penalties occur
    slope: Floats  # (n_features + 1, n_models, n_outputs): its slope
    held_out: Floats  # (n_examples, n_outputs): scores of every row by the model that leaves its fold out


@dataclass
class SoftmaxModels:
    """Logistic regressions on the same rows; fitting goes on from where it was."""

    rows: SoftmaxRows  # what they are fitted to
    left_out: NDArray[np.int64]  # (n_models,): the fold that each model leaves out; -1 for none
    l2: float  # strength of the penalty; one over scikit-learn's C
    # (n_features + 1, n_models, n_outputs): coefficients with the intercept last; one output for two classes, else one
    # per class. Zero to begin with.
    theta: Floats | None = None
    _weighted: Weighted | None = field(default=None, init=False)
    _targets: Floats | None = field(default=None, init=False)
    _factor: Floats | None = field(default=None, init=False)
    _last: _Pass | None = field(default=None, init=False)
    _memory: Memory = field(default_factory=Memory, init=False)

    def fit(self, posterior: Floats, weight: Floats, *, max_steps: int, tol: float = 1e-8) -> Floats:
        """Coefficients that maximise the weighted log-likelihood of soft classes minus l2 / 2 times squared length.

        They are found by L-BFGS, until no model's slope, measured by the curvature and per root of the weight, is
        longer than the tolerance.
        """
        self.aim(posterior, weight)
        return self.go_on(max_steps=max_steps, tol=tol)

    def aim(self, posterior: Floats, weight: Floats) -> None:
        """Fit these classes from now on; parameters are those of `fit`."""
        outputs = posterior[:, 1:] if posterior.shape[1] == 2 else posterior
        if self.theta is None:
            self.theta = np.zeros((self.rows.X.shape[1] + 1, len(self.left_out), outputs.shape[1]))
        weighted = self._weighted_by(weight, self.theta)
        self._targets = weighted.of_models(self.rows.fold_sums(outputs * weight[:, np.newaxis]))

    def go_on(self, *, max_steps: int, tol: float) -> Floats:
        """Some steps more towards the classes that were last aimed at; parameters are those of `fit`."""
        assert self.theta is not None
        assert self._weighted is not None
        assert self._targets is not None
        shape, weighted, targets = self.theta.shape, self._weighted, self._targets
        if self._factor is None:
            self._factor = factored(weighted.bends, self.l2, shape[0])

        def loss(at: _Pass) -> Point:
            added, added_slope = penalty(at.theta, weighted.middle, self.l2, self.rows.class_prior)
            value = at.value + added - np.einsum("pjo,pjo->j", targets, at.theta)
            slope = (at.slope + added_slope - targets) * weighted.counts[:, np.newaxis]
            if not self.rows.fit_intercept:
                slope[-1] = 0.0
            return Point(by_model(at.theta), value, by_model(slope), at)

        end = descend(
            lambda point: loss(self._normaliser(side_by_side(point, shape), weighted)),
            loss(self._begin(weighted)),
            self._memory,
            solver(self._factor, shape),
            max_steps=max_steps,
            tol=tol * np.sqrt(weighted.total),
        )
        self._last = end.found
        self.theta = self._last.theta
        return self.theta

    def _begin(self, weighted: Weighted) -> _Pass:
        """The pass at the coefficients as they are: the last one, if that is of these."""
        assert self.theta is not None
        if self._last is None or self._last.theta is not self.theta:
            self._last = self._normaliser(self.theta * weighted.counts[:, np.newaxis], weighted)
            self.theta = self._last.theta
        return self._last

    def scores_as_they_are(self, weight: Floats) -> Floats:
        """Scores of every row by the model that leaves its fold out, before these take a step."""
        assert self.theta is not None
        return self._begin(self._weighted_by(weight, self.theta)).held_out

    def of_all_rows(self) -> SoftmaxModels:
        """One model that leaves nothing out and begins where these are, with what is known of weights and curvature."""
        assert self.theta is not None
        assert self._weighted is not None
        if len(self.left_out) == 1 and self.left_out[0] < 0:  # by the curvature where it is now, it can end closer
            return SoftmaxModels(self.rows, self.left_out, self.l2, self.theta)
        rows = replace(self.rows, fold=np.zeros_like(self.rows.fold))
        model = SoftmaxModels(rows, np.array([-1]), self.l2, self.theta.mean(axis=1, keepdims=True))
        model._weighted = self._weighted.of_all_rows()
        return model

    def penalise(self, l2: float) -> None:
        """Go on with another penalty."""
        self.l2, self._factor = l2, None
        self._memory.clear()

    @property
    def held_out_scores(self) -> Floats:
        """Scores of every row by the model that leaves its fold out, of shape (n_examples, n_outputs)."""
        assert self._last is not None
        return self._last.held_out

    def log_density(self) -> float:
        """Minus the penalties, plus the log-likelihood of the examples that were added."""
        assert self.theta is not None
        assert self._weighted is not None
        return -float(penalty(self.theta, self._weighted.middle, self.l2, self.rows.class_prior)[0].sum())

    def _weighted_by(self, weight: Floats, theta: Floats) -> Weighted:
        """What depends on the weights; the same in every round whose weights are the same."""
        if self._weighted is None or not np.array_equal(self._weighted.weight, weight):
            self._weighted = Weighted.of(self.rows, self.left_out, weight, theta)
            self._last, self._factor = None, None
            self._memory.clear()
        return self._weighted

    def _normaliser(self, theta: Floats, weighted: Weighted) -> _Pass:
        """What depends on the coefficients alone, in one pass over the rows."""
        n_columns, n_models, n_outputs = theta.shape
        # A row per output and model, so that all that is done with scores runs along examples.
        flat = np.ascontiguousarray(theta.T).reshape(-1, n_columns)
        coef = np.ascontiguousarray(flat[:, :-1])
        alone = n_models == 1 and self.left_out[0] < 0
        held_out = np.empty((len(weighted.weight), n_outputs))

        def task(blocks: list[slice]) -> tuple[Floats, Floats]:
            value, slope = np.zeros(n_models), np.zeros_like(flat)
            for block in blocks:
                x, counts = self.rows.read(block), weighted.weight[block]
                scores = np.ascontiguousarray(coef @ x.T)
                scores += flat[:, -1:]
                total, proba = normalisers(scores.reshape(n_outputs, n_models, -1))
                if alone:
                    held_out[block] = scores.T
                else:  # a model's own fold is scored by it, and counts nothing for it
                    own = self.rows.at_fold(block)
                    held_out[block] = scores.reshape(n_outputs, -1).take(own, axis=1).T
                    total.reshape(-1)[own] = 0.0
                    proba.reshape(n_outputs, -1)[:, own] = 0.0
                value += total @ counts
                proba *= counts
                away = proba.reshape(len(flat), -1)
                slope[:, :-1] += away @ x
                slope[:, -1] += away.sum(axis=1)
            return value, slope

        value, slope = np.zeros(n_models), np.zeros_like(flat)
        for part, part_slope in self.rows.over_tasks(task, 4 * len(flat)):
            value += part
            slope += part_slope
        return _Pass(theta, value, slope.reshape(theta.T.shape).T, held_out)


def penalty(theta: Floats, middle: Floats, l2: float, class_prior: float) -> tuple[Floats, Floats]:
    """l2 / 2 times squared length minus the log-likelihood of the examples added, and its slope, per model.

    Coefficients are of (n_features + 1, n_models, n_outputs), with the intercept last, which is not penalised. Examples
    are added evenly of all classes in the `middle`: weighted means of each model's rows, with a one.
    """
    slope = l2 * theta
    slope[-1] = 0.0
    value = np.einsum("pjo,pjo->j", slope, theta) / 2
    if class_prior > 0:
        scores = np.einsum("pj,pjc->jc", middle, theta)
        log_middle = log_softmax(scores)
        n_classes = log_middle.shape[1]
        value -= class_prior / n_classes * log_middle.sum(axis=1)
        pull = class_prior * (np.exp(log_middle) - 1 / n_classes)
        slope += middle[:, :, np.newaxis] * (pull[:, 1:] if scores.shape[1] == 1 else pull)
    return value, slope


def normalisers(scores: Floats) -> tuple[Floats, Floats]:
    """Logarithms of the sums of exponentials, and probabilities of the outputs.

    Scores of (n_outputs, n_models, n_examples) are those of all classes, or of the second of two.
    """
    if len(scores) == 1:
        return _of_two_classes(scores)
    top = reduce(np.maximum, scores)
    proba = scores - top
    np.exp(proba, out=proba)
    total = reduce(np.add, proba)
    proba /= total
    return np.log(total, out=total) + top, proba


def _of_two_classes(scores: Floats) -> tuple[Floats, Floats]:
    """The same with one exponential, from the scores of the second class."""
    far = scores.max(initial=0.0) > _FAR
    proba = np.exp(np.minimum(scores, _FAR) if far else scores)
    total = proba[0] + 1
    proba /= total
    np.log(total, out=total)
    return np.maximum(total, scores[0], out=total) if far else total, proba
