"""A generator -> a version of a data set with labels of twelve annotators -> how tuned models do on test examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.utils import Bunch

from crowdwise.exceptions import DataError
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.model_selection import balanced_subsample
from crowdwise.paper.reproduce.rows import Row
from crowdwise.paper.reproduce.tuning import tuned, tuned_ridge
from crowdwise.simulate import simulate_annotators

# What a row holds besides the setting and the trial.
COLUMNS: dict[str, type] = {
    **dict.fromkeys(("steepness", "roc", "prc", "l2"), float),
    **dict.fromkeys(("n_rounds", "converged", "redrawn"), int),
}
_MOST_REDRAWS = 1000
_TRAINING_SHARE = 0.75  # of a benchmark data set that has no test part


@dataclass(frozen=True)
class Draw:
    """One random version of a data set."""

    X: Any  # array or sparse array of shape (n_train, n_features): of the training examples, as the labels
    labels: CrowdLabels
    X_test: Any  # array or sparse array of shape (n_test, n_features)
    truth_test: NDArray[np.int64]  # (n_test,): their truth, -1 or +1
    redrawn: int = 0  # how many versions were thrown away before this one


def synthetic(rng: np.random.Generator, clarity: float) -> Draw:
    """Two Gaussians in ten dimensions, 500 examples each; half of both to learn from, half to test."""
    truth = np.repeat([1, -1], 250)
    X, X_test = (rng.normal(size=(500, 10)) + 0.5 * truth[:, np.newaxis] for _ in range(2))
    return Draw(X, _crowd(X, truth, clarity, rng), X_test, truth)


def benchmark(rng: np.random.Generator, data: Bunch, clarity: float) -> Draw:
    """A benchmark data set: its own split or three quarters to learn from, and those with as many of either class."""
    if data.X_test is None:
        order = rng.permutation(len(data.truth))
        n_train = round(_TRAINING_SHARE * len(order))
        train, test = order[:n_train], order[n_train:]
        X_test, truth_test = data.X[test], data.truth[test]
    else:
        train, X_test, truth_test = np.arange(len(data.truth)), data.X_test, data.truth_test
    train = train[balanced_subsample(data.truth[train], random_state=rng)]
    X = data.X[train]
    return Draw(X, _crowd(X, data.truth[train], clarity, rng), X_test, truth_test)


def _crowd(X: Any, truth: NDArray[np.int64], clarity: float, rng: np.random.Generator) -> CrowdLabels:
    scores = tuned_ridge(X, truth).scores(X)
    return simulate_annotators(
        X, truth, clarity=clarity, scores=scores / np.abs(scores).max(), paper=True, random_state=rng
    )


def draw_usable(draw: Callable[[np.random.Generator], Draw], rng: np.random.Generator, *, redraw: bool) -> Draw:
    """A version that is not too noisy, and how many were thrown away for it.

    Too noisy means that tuned ridge regression on the majority vote orders the test examples worse than chance; the
    paper's software threw such versions away.
    """
    for redrawn in range(_MOST_REDRAWS):
        drawn = draw(rng)
        if not redraw or not too_noisy(drawn):
            return replace(drawn, redrawn=redrawn)
    raise DataError(
        f"the labels are too noisy: none of {_MOST_REDRAWS} versions was usable. Use --no-redraw, or less noise."
    )


def too_noisy(drawn: Draw) -> bool:
    """Whether tuned ridge regression on the majority vote, 0 for a tie, has a test AU-ROC below one half."""
    vote = np.sign(drawn.labels.to_matrix().sum(axis=1))
    return bool(roc_auc_score(drawn.truth_test, tuned_ridge(drawn.X, vote).scores(drawn.X_test)) < 0.5)


def measure(drawn: Draw, steepnesses: Sequence[float]) -> list[Row]:
    """A row for steepness 0 and one for every other: the areas under both curves, and how the fit went."""
    positive = drawn.truth_test > 0
    rows = []
    for model in tuned(drawn.X, drawn.labels, [0.0, *steepnesses]):
        scores = drawn.X_test @ model.coef  # an intercept changes no order
        areas = roc_auc_score(positive, scores), average_precision_score(positive, scores)
        values = (model.steepness, *areas, model.l2, model.n_rounds, model.converged, drawn.redrawn)
        rows.append({name: kind(value) for (name, kind), value in zip(COLUMNS.items(), values, strict=True)})
    return rows
