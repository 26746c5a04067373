"""Chunks of features and soft classes -> the logistic regressions of all folds, their penalty, and one of all rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from crowdwise._arrays import Floats
from crowdwise._limits import L2_GRID
from crowdwise.em.round_weights import Targets
from crowdwise.probabilities.log_space import log_softmax
from crowdwise.rows.chunks import Chunk, Chunks
from crowdwise.softmax.models import SoftmaxModels
from crowdwise.softmax.rows import SoftmaxRows

# Steps of the optimiser at most, and how many times further from the lowest loss it may end while a penalty is chosen.
_MOST_STEPS, _TO_CHOOSE = 500, 30.0


@dataclass(frozen=True, eq=False)
class FoldScores:
    """What the models of all folds predict for rows that they leave out, what classes counted for them divided out."""

    rows: SoftmaxRows
    theta: Floats
    class_weight: Floats  # (n_classes,)
    log_prior: float = 0.0  # that of the coefficients, of one model of all rows

    def __call__(self, chunk: Chunk) -> Floats:
        make = lambda: self.rows.held_out_scores(chunk, self.theta) - np.log(self.class_weight)  # noqa: E731
        return chunk.keep("scores", make, owner=self)


@dataclass
class FoldedLogistic:
    """A logistic regression per fold, fitted to the other folds, all at once; one of all rows without folds."""

    chunks: Chunks
    rows: SoftmaxRows
    sample: Chunk  # some rows, as the chunks have them
    l2: float
    tol: float
    models: SoftmaxModels = field(init=False)

    def __post_init__(self) -> None:
        self.models = SoftmaxModels(self.chunks, self.rows, self.rows.read(self.sample.X), self.l2)

    def fit(self, targets: Targets) -> FoldScores:
        """Fit the models of all folds, from where they are."""
        theta = self.models.fit(targets, targets(self.sample)[1], max_steps=_MOST_STEPS, tol=self.tol)
        log_prior = 0.0 if self.rows.n_folds else float(self.models.log_prior[0])
        return FoldScores(self.rows, theta, targets.class_weight, log_prior)

    def choose_l2(self, targets: Targets, variance: float) -> None:
        """Take the penalty that predicts the soft classes of held-out rows of the sample best.

        The largest that is tried is about the curvature of the loss, a quarter of the weight of all rows times the
        variance of an average feature; each goes on from the last, until held-out rows are predicted less well.
        """
        models, losses, tried = self._of_sample(), list[float](), list[tuple[float, Floats]]()
        posterior, weight = targets(self.sample)
        models.set_targets(targets, weight)
        for l2 in float(weight.sum()) * variance / 4 * np.array(L2_GRID):
            models.set_l2(float(l2))
            theta = models.step(max_steps=_MOST_STEPS, tol=_TO_CHOOSE * self.tol)
            scores = models.rows.held_out_scores(self.sample, theta)
            losses.append(-float(weight @ np.einsum("ik,ik->i", posterior, log_softmax(scores))))
            tried.append((float(l2), theta))
            if len(losses) > 1 and losses[-1] > losses[-2]:
                break
        self.l2, self.models.theta = tried[int(np.argmin(losses))]
        self.models.set_l2(self.l2)

    def _of_sample(self) -> SoftmaxModels:
        return replace(self.models, chunks=_One(self.sample))

    def of_all_rows(self, targets: Targets) -> Floats:
        """Coefficients of one model of all rows, of shape (n_features + 1, n_outputs)."""
        rows = replace(self.rows, n_folds=0)
        begin = None if self.models.theta is None else self.models.theta.mean(axis=1, keepdims=True)
        model = SoftmaxModels(self.chunks, rows, self.models.sample, self.l2, begin)
        return model.fit(targets, targets(self.sample)[1], max_steps=_MOST_STEPS, tol=self.tol)[:, 0]


@dataclass(eq=False)
class _One:
    """One chunk."""

    chunk: Chunk

    def total(self, task: Any) -> Any:
        return task(self.chunk)
