"""How well the margins of the paper's appendix find the truth: rank correlations with it."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr
from sklearn.linear_model import RidgeClassifier
from tables import Run, markdown, parser

from crowdwise import simulate_annotators
from crowdwise.crowd import disagreement
from crowdwise.paper.theory import alignment_expertise, ball_radii, nested_ball_margins, simulate_ball_annotators


def _ball_trial(n_features: int, seed: np.random.SeedSequence) -> tuple[float, float, float]:
    rng = np.random.default_rng(seed)
    X, u = rng.uniform(-1, 1, (600, n_features)), rng.normal(size=n_features)
    margin = X @ u / np.linalg.norm(u) - 0.3
    true = np.quantile(cdist(X, X), [0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5])
    labels = simulate_ball_annotators(X, margin > 0, true)
    expertise = alignment_expertise(X, labels)
    radii = ball_radii(X, labels, expertise)
    return spearmanr(true, radii).statistic, *_ranks(labels, radii, expertise, margin)


def _paper_trial(clarity: float, seed: np.random.SeedSequence) -> tuple[float, float, float]:
    rng = np.random.default_rng(seed)
    truth = np.repeat([-1, 1], 300)
    X = rng.normal(size=(600, 10)) + 0.5 * truth[:, np.newaxis]
    labels = simulate_annotators(X, truth, 10, clarity=clarity, experts=1, adversaries=1, random_state=rng)
    expertise = alignment_expertise(X, labels)
    radii = ball_radii(X, labels, expertise)
    margin = RidgeClassifier().fit(X, truth).decision_function(X)
    return np.nan, *_ranks(labels, radii, expertise, margin)


def _ranks(labels: Any, radii: np.ndarray, expertise: np.ndarray, margin: np.ndarray) -> tuple[float, float]:
    nested = nested_ball_margins(labels, radii, expertise)
    constant = np.ptp(nested) == 0
    return (
        0.0 if constant else spearmanr(nested, np.abs(margin)).statistic,
        spearmanr(-disagreement(labels), np.abs(margin)).statistic,
    )


def _cells(found: list[tuple[float, float, float]]) -> list[str]:
    return [
        "-" if np.isnan(column).any() else f"{np.mean(column):.2f} ({np.min(column):.2f})"
        for column in np.array(found).T
    ]


def main() -> None:
    options = parser(__doc__, writes=False).parse_args()
    Run(options)
    n_trials = 2 if options.quick else 10
    rows = []
    for n_features in (2, 5, 10):
        found = [_ball_trial(n_features, seed) for seed in np.random.SeedSequence(0).spawn(n_trials)]
        rows.append([f"ball majority, {n_features} features", *_cells(found)])
    for clarity in (1.0, 2.0, 5.0):
        found = [_paper_trial(clarity, seed) for seed in np.random.SeedSequence(0).spawn(n_trials)]
        rows.append([f"the paper's simulator, p = {clarity:g}", *_cells(found)])
    columns = ("annotators", "radii", "margins, nested balls", "margins, minus disagreement")
    print(f"{markdown(columns, rows)}\n\nMean (smallest) of {n_trials} trials with 600 examples.")


if __name__ == "__main__":
    main()
