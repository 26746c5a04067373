"""The tuned fit against a plain loop around scikit-learn's Ridge: every l2, fold and round fitted anew.

python benchmarks/naive.py          500 x 10, 12 annotators, 17 l2, 10 folds
"""

from __future__ import annotations

import time

import numpy as np
from sklearn.linear_model import Ridge
from tables import Place, Run, parser
from timing import median_seconds

from crowdwise import CrowdRidgeClassifierCV, simulate_annotators
from crowdwise.crowd import disagreement, easiness
from crowdwise.ridge.classifier_cv import PAPER_L2S
from crowdwise.weights.folds import content_folds

PLACE = Place("docs/evidence/speed.md", "naive")
COLUMNS = ("examples x features", "rounds", "plain loop around `Ridge`", "`CrowdRidgeClassifierCV`", "times faster",
           "difference of coefficients", "of expertise")  # fmt: skip


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
    options = parser(__doc__).parse_args()
    run = Run(options, [PLACE])
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
    differences = [np.abs(model.coef_[0] / coef - 1).max(), np.abs(model.expertise_ / expertise - 1).max()]
    row = [f"{len(X):,} x 10", f"{model.n_rounds_}", f"{naive:.2f} s", f"{ours:.5f} s", f"{naive / ours:.0f}",
           *(f"{difference:.0e}" for difference in differences)]  # fmt: skip
    run.table(PLACE, COLUMNS, [row], "17 l2 and 10 folds in every round.")


if __name__ == "__main__":
    main()
