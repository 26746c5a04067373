"""One version of a data set -> how well the tuned model of every steepness does on the test examples."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import KFold

from crowdwise.exceptions import CrowdWarning
from crowdwise.labels import CrowdLabels
from crowdwise.models.ridge_cv import PAPER_L2S, CrowdRidgeClassifierCV
from crowdwise.reproduce.draws import Draw
from crowdwise.reproduce.rows import Row

# What a row holds besides the setting and the trial.
COLUMNS: dict[str, type] = {
    "steepness": float,
    "roc": float,
    "prc": float,
    "l2": float,
    "n_rounds": int,
    "converged": int,
    "redrawn": int,
}
# The weight is twice the paper's g, so its l2 is doubled wherever g is used; its unweighted method has no g.
WEIGHT_OVER_G = 2.0


def tuned(
    X: Any, labels: CrowdLabels, steepnesses: Sequence[float], cv: Any, *, l2_factor: float = WEIGHT_OVER_G
) -> dict[str, Any]:
    """The tuned model of every steepness, as the paper's software tuned it.

    Parameters
    ----------
    X : array or sparse array of shape (n_examples, n_features)
        Features.
    labels : CrowdLabels
        Their labels.
    steepnesses : sequence of float
        Each gets its own model, with l2 chosen anew in every round.
    cv : splitter
        The folds, the same for every steepness.
    l2_factor : float, default=2.0
        The values of l2 that the weighted models choose from, relative to those of the unweighted one.

    Returns
    -------
    models : dict
        The ``cv_results_`` of `CrowdRidgeClassifierCV`, with steepness 0 first.
    """
    weighted_l2s = tuple(l2_factor * l2 for l2 in PAPER_L2S)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)  # whether the rounds settled goes into the row
        parts = [
            CrowdRidgeClassifierCV(steepness, l2s=l2s, cv=cv, init="mean").fit(X, labels).cv_results_
            for steepness, l2s in (((0.0,), PAPER_L2S), (tuple(steepnesses), weighted_l2s))
        ]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def measure(
    drawn: Draw, steepnesses: Sequence[float], rng: np.random.Generator, *, l2_factor: float = WEIGHT_OVER_G
) -> list[Row]:
    """A row for steepness 0 and one for every other: the areas under both curves, and how the fit went."""
    cv = KFold(10, shuffle=True, random_state=int(rng.integers(2**31)))
    models = tuned(drawn.X, drawn.labels, steepnesses, cv, l2_factor=l2_factor)
    positive = drawn.truth_test > 0
    rows = []
    for i, steepness in enumerate(models["steepness"]):
        scores = drawn.X_test @ models["coef"][i, 0]  # an intercept changes no order
        rows.append(
            {
                "steepness": float(steepness),
                "roc": float(roc_auc_score(positive, scores)),
                "prc": float(average_precision_score(positive, scores)),
                "l2": float(models["l2"][i]),
                "n_rounds": int(models["n_rounds"][i]),
                "converged": int(models["converged"][i]),
                "redrawn": drawn.redrawn,
            }
        )
    return rows
