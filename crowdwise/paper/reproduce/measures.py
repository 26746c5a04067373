"""One version of a data set -> how well the tuned model of every steepness does on the test examples."""

from __future__ import annotations

from collections.abc import Sequence

from sklearn.metrics import average_precision_score, roc_auc_score

from crowdwise.paper.reproduce.draws import Draw
from crowdwise.paper.reproduce.following_folds import tuned
from crowdwise.paper.reproduce.rows import Row

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


def measure(drawn: Draw, steepnesses: Sequence[float]) -> list[Row]:
    """A row for steepness 0 and one for every other: the areas under both curves, and how the fit went."""
    positive = drawn.truth_test > 0
    rows = []
    for model in tuned(drawn.X, drawn.labels, [0.0, *steepnesses]):
        scores = drawn.X_test @ model.coef  # an intercept changes no order
        rows.append(
            {
                "steepness": float(model.steepness),
                "roc": float(roc_auc_score(positive, scores)),
                "prc": float(average_precision_score(positive, scores)),
                "l2": model.l2,
                "n_rounds": model.n_rounds,
                "converged": int(model.converged),
                "redrawn": drawn.redrawn,
            }
        )
    return rows
