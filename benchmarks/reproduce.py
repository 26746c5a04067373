"""How much faster tuning is than the plain scikit-learn loop, on data sets of table 2, in one run.

    python benchmarks/reproduce.py [--sets N]

Both fit every steepness of the table with l2 chosen over ten folds in every round, the folds cut anew from the signs
of the consensus, and must find the same models.
One thread, so that the ratio is of work and not of cores.
"""

from __future__ import annotations

import time
from functools import partial

import numpy as np
from sklearn.linear_model import Ridge
from tables import Run, parser
from threadpoolctl import threadpool_limits

from crowdwise.crowd import disagreement
from crowdwise.paper.reproduce.draws import draw_usable, synthetic
from crowdwise.paper.reproduce.table2 import STEEPNESSES
from crowdwise.paper.reproduce.trials import trial_seed
from crowdwise.paper.reproduce.tuning import MAX_ROUNDS, N_FOLDS, TOL, stratified_folds, tuned
from crowdwise.ridge.classifier import PAPER_L2S


def plain_loop(X, labels, steepness):
    """The method as one would write it with scikit-learn: a ridge regression per round, fold and l2."""
    votes = labels.to_matrix().astype(float)
    g = np.ones(len(X)) if steepness == 0 else 1 / (1 + np.exp(steepness * disagreement(labels)))
    consensus, expertise = votes.mean(axis=1), np.ones(votes.shape[1])
    for n_rounds in range(1, MAX_ROUNDS + 1):
        error = np.zeros(len(PAPER_L2S))
        fold = stratified_folds(np.sign(consensus))
        for k in range(N_FOLDS):
            train, held_out = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            for i, l2 in enumerate(PAPER_L2S):
                model = Ridge(alpha=l2).fit(X[train], consensus[train], sample_weight=g[train])
                error[i] += ((model.predict(X[held_out]) - consensus[held_out]) ** 2).sum()
        model = Ridge(alpha=PAPER_L2S[error.argmin()]).fit(X, consensus, sample_weight=g)
        before = expertise
        expertise = 1 / (g[:, None] * (votes - model.predict(X)[:, None]) ** 2).mean(axis=0)
        consensus = votes @ expertise / expertise.sum()
        if n_rounds > 1 and np.abs(expertise / before - 1).max() < TOL:
            break
    return model.coef_


def main() -> None:
    arguments = parser(__doc__, writes=False)
    arguments.add_argument("--sets", type=int, default=3, help="number of data sets: %(default)s")
    options = arguments.parse_args()
    Run(options)
    with threadpool_limits(1):
        compare(1 if options.quick else options.sets, (0.0, 2.0) if options.quick else (0.0, *STEEPNESSES))


def compare(n_datasets: int, steepnesses: tuple[float, ...]) -> None:
    """Both on each data set, and the ratio of their times."""
    ours = plain = 0.0
    for trial in range(n_datasets):
        rng = np.random.default_rng(trial_seed(0, 0, trial))
        drawn = draw_usable(partial(synthetic, clarity=1.0), rng, redraw=True)
        began = time.perf_counter()
        models = tuned(drawn.X, drawn.labels, steepnesses)
        middle = time.perf_counter()
        coefs = [plain_loop(drawn.X, drawn.labels, steepness) for steepness in steepnesses]
        ended = time.perf_counter()
        largest = max(np.abs(a - b.coef).max() / np.abs(a).max() for a, b in zip(coefs, models, strict=True))
        print(
            f"data set {trial}: {middle - began:.3f} s, plain loop {ended - middle:.2f} s, "
            f"ratio {(ended - middle) / (middle - began):.0f}, coefficients differ by at most {largest:.0e}"
        )
        if largest > 1e-3:
            raise SystemExit("the two do not find the same models: the ratio would mean nothing.")
        ours, plain = ours + middle - began, plain + ended - middle
    print(f"together: {ours:.3f} s, plain scikit-learn loop {plain:.2f} s: {plain / ours:.0f} times faster")


if __name__ == "__main__":
    main()
