"""The tuned fit against a plain loop around scikit-learn's Ridge: every l2, fold and round fitted anew.

python benchmarks/naive.py          500 x 10, 12 annotators, 17 l2, 10 folds
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.linear_model import Ridge
from tables import Run, parser
from timing import median_seconds

from crowdwise import CrowdRidgeClassifierCV, disagreement, easiness, simulate_annotators
from crowdwise.ridge.classifier_cv import PAPER_L2S
from crowdwise.weights.folds import content_folds


def naive_fit(
    X: np.ndarray, Y: np.ndarray, weight: np.ndarray, fold: np.ndarray, n_rounds: int
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and expertise, with labels of +1 and -1 in the columns of Y."""
    consensus = np.sign(Y.sum(axis=1))
    for _ in range(n_rounds):
        errors = np.zeros(len(PAPER_L2S))
        for s, l2 in enumerate(PAPER_L2S):
            for k in np.unique(fold):
                model = Ridge(alpha=l2).fit(X[fold != k], consensus[fold != k], sample_weight=weight[fold != k])
                errors[s] += ((model.predict(X[fold == k]) - consensus[fold == k]) ** 2).sum()
        model = Ridge(alpha=PAPER_L2S[errors.argmin()]).fit(X, consensus, sample_weight=weight)
        expertise = weight.sum() / (weight[:, None] * (Y - model.predict(X)[:, None]) ** 2).sum(axis=0)
        consensus = Y @ expertise / expertise.sum()
    return model.coef_, expertise


def main() -> None:
    options = parser(__doc__, writes=False).parse_args()
    Run(options)
    rng = np.random.default_rng(1)
    truth = np.repeat([0, 1], 50 if options.quick else 250)
    X = rng.normal(size=(len(truth), 10)) + truth[:, None] - 0.5
    labels = simulate_annotators(X, truth, experts=1, adversaries=1, random_state=rng)
    model = CrowdRidgeClassifierCV((2.0,)).fit(X, labels)
    ours = median_seconds(lambda: CrowdRidgeClassifierCV((2.0,)).fit(X, labels), 21)
    start = time.perf_counter()
    coef, expertise = naive_fit(
        X, 2.0 * labels.to_matrix() - 1, easiness(disagreement(labels), 2.0), content_folds(X, 10), model.n_rounds_
    )
    naive = time.perf_counter() - start
    print(f"{model.n_rounds_} rounds x 17 l2 x 10 folds")
    print(f"  plain loop   {naive:9.3f} s")
    print(f"  crowdwise    {ours:9.5f} s   {naive / ours:.0f} times faster")
    print(f"  largest relative difference: coefficients {np.abs(model.coef_[0] / coef - 1).max():.1e}, "
          f"expertise {np.abs(model.expertise_ / expertise - 1).max():.1e}")  # fmt: skip


if __name__ == "__main__":
    main()
