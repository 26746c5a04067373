"""Features and labels -> the steepness that suits a crowd, contested examples being scored by ridge regression."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdwise._arrays import Floats
from crowdwise._threads import one_blas_thread
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.ridge.expertise import Votes
from crowdwise.ridge.problem import fold_models
from crowdwise.ridge.targets import Targets
from crowdwise.rows.features import N_FOLDS, Rows, mean_variance, row_space
from crowdwise.weights.folds import Folds
from crowdwise.weights.steepness import choose_steepness

# More examples than this make the answer no surer.
_ENOUGH = 20_000
# Penalty of the ridge regression that scores contested examples, relative to the features' variance and number of rows.
_PENALTY = 0.1
# Relative accuracy of its scores without a gram matrix: only their order is looked at.
_NEAR = 1e-4


def auto_steepness(X: Any, labels: CrowdLabels, sample_weight: Floats, disagreement: Floats) -> float:
    """The steepness that suits a crowd, contested examples being scored by ridge regression on the shares of votes.

    All examples take part: their features are finite, and each of them and every annotator has a label.
    """
    if len(labels) > _ENOUGH:
        some = np.sort(np.random.default_rng(0).choice(len(labels), _ENOUGH, replace=False))
        X, labels, sample_weight, disagreement = X[some], labels[some], sample_weight[some], disagreement[some]
    original = Rows.of(X, intercept=True)
    space = row_space(original)
    rows = original if space is None else space.rows
    shares = Votes.of(labels, np.ones(labels.n_annotators)).mean_targets(Targets.of(labels))
    with np.errstate(over="ignore"):  # features of such a size are refused below
        l2 = _PENALTY * sample_weight.sum() * (mean_variance(original, sample_weight) or 1.0)  # all may be constant
    folds = Folds.by_content(X, N_FOLDS)

    def scores_of(easiness: Floats) -> Floats:
        if folds.n_folds < 2:  # there is no other example to learn from
            return np.zeros_like(shares)
        theta = fold_models(rows, easiness * sample_weight, shares, l2, folds.fold, tol=_NEAR)
        return rows.fold_scores(theta, folds.fold)

    with one_blas_thread():
        return choose_steepness(scores_of, labels, disagreement, sample_weight)
