"""The steepness that the tuned ridge model chooses on the paper's synthetic data: how far from none to the best?

--trials N is the number of data sets per row, --first S the first seed, --jobs the number of processes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from joblib import Parallel, delayed
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold
from tables import Place, Run, parser

from crowdwise import CrowdLabels, CrowdRidgeClassifierCV, simulate_annotators
from crowdwise.exceptions import CrowdWarning

SHOWN = (0.0, 2.0, 5.0)
PLACE = Place("docs/evidence/weighting.md", "choose_steepness")

Data = tuple[np.ndarray, CrowdLabels, Callable[[np.ndarray], float]]


def drawn(seed: int, clarity: float) -> Data:
    """Features and labels to learn from, and the test AUC of coefficients; nothing is drawn again."""
    rng = np.random.default_rng([seed, round(10 * clarity), 1])
    truth = np.repeat([-1, 1], 500)
    X = rng.normal(size=(1000, 10)) + 0.5 * truth[:, np.newaxis]
    order = rng.permutation(1000)
    train, test = order[:500], order[500:]
    scores = RidgeClassifier().fit(X[train], truth[train]).decision_function(X[train])
    labels = simulate_annotators(
        X[train], truth[train], 10,
        clarity=clarity, experts=1, adversaries=1, scores=scores / np.abs(scores).max(), random_state=rng,
    )  # fmt: skip
    return X[train], labels, lambda coef: float(roc_auc_score(truth[test], X[test] @ coef))


def trial(seed: int, clarity: float) -> list[float]:
    """Test AUC of the steepnesses that are shown, and of the default's choice among its own."""
    warnings.simplefilter("ignore", CrowdWarning)
    X, labels, area = drawn(seed, clarity)
    model = CrowdRidgeClassifierCV(SHOWN, cv=KFold(10, shuffle=True, random_state=0), init="mean").fit(X, labels)
    areas = [area(coef[0]) for coef in model.cv_results_["coef"]]
    return [*areas, areas[SHOWN.index(CrowdRidgeClassifierCV().fit(X, labels).steepness_)]]


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--trials", type=int, default=100)
    arguments.add_argument("--first", type=int, default=0)
    arguments.add_argument("--jobs", type=int, default=1)
    options = arguments.parse_args()
    run, n_trials = Run(options, [PLACE]), 2 if options.quick else options.trials
    rows = []
    for clarity in (1.0, 2.0, 5.0):
        seeds = range(options.first, options.first + n_trials)
        means = np.mean(Parallel(options.jobs)(delayed(trial)(seed, clarity) for seed in seeds), axis=0)
        rows.append([f"{clarity:g}", *(f"{mean:.3f}" for mean in means)])
    columns = ("p", "steepness 0", "2", "5", "chosen of 0 and 2")
    run.table(PLACE, columns, rows, f"{n_trials} data sets per row, from seed {options.first} on.")


if __name__ == "__main__":
    main()
