"""Features and labels -> the steepness that suits a crowd, contested examples being scored by ridge regression."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from crowdwise.arrays import Floats
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.ridge.ballot import Ballot
from crowdwise.ridge.features import Rows, one_blas_thread, row_space
from crowdwise.ridge.fit import N_FOLDS, cross_fitted_scores
from crowdwise.ridge.targets import Targets
from crowdwise.weights.auto_steepness import choose_steepness
from crowdwise.weights.folds import content_folds

# More examples than this make the answer no surer.
_ENOUGH = 20_000
# Penalty of the ridge regression that scores contested examples, relative to the features' variance and number of rows.
_PENALTY = 0.1


def auto_steepness(X: Any, labels: CrowdLabels, weight: Floats, disagreement: Floats) -> float:
    """The steepness that suits a crowd, contested examples being scored by ridge regression on the shares of votes.

    Parameters
    ----------
    prepared : Prepared
        Checked features and labels.

    Returns
    -------
    steepness : float
    """
    if len(labels) > _ENOUGH:
        some = np.sort(np.random.default_rng(0).choice(len(labels), _ENOUGH, replace=False))
        X, labels, weight, disagreement = X[some], labels[some], weight[some], disagreement[some]

    def scores_of(easiness: Floats) -> Floats:
        original = Rows.of(X, intercept=True)
        space = row_space(original)
        rows = original if space is None else space.rows
        targets = Targets.of(labels, intercept=True)
        votes = Ballot.of(labels, np.ones(labels.n_annotators)).mean_targets(targets)
        variance = mean_variance(X, weight)
        with one_blas_thread(rows.n_columns):
            return cross_fitted_scores(
                rows, easiness * weight, votes, _PENALTY * len(labels) * variance, content_folds(X, N_FOLDS)
            )

    return choose_steepness(scores_of, labels, disagreement)


def mean_variance(X: Any, weight: Floats) -> float:
    """The variance of the average feature; 1 if all are constant."""
    spread = StandardScaler(with_mean=not sparse.issparse(X)).fit(X, sample_weight=weight)
    return float(np.mean(spread.var_)) or 1.0
