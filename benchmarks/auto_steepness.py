"""steepness="auto": how far does it go from no weights to the best steepness, where weights help and where they don't?

python benchmarks/auto_steepness.py simulated [N [S]]   the paper's synthetic data, N data sets a setting, seeds from S
python benchmarks/auto_steepness.py models [N]          the same for logistic and any(logistic), steepness 0 and "auto"
python benchmarks/auto_steepness.py truths [N]          how far some known truths go, at the most noise (p = 1)
python benchmarks/auto_steepness.py real                what it chooses on real crowds, and what weights do there
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable

import numpy as np
from crowd_sets import WITH_FEATURES, load
from joblib import Parallel, delayed
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold

from crowdwise import (
    CrowdClassifier,
    CrowdLabels,
    CrowdLogisticClassifier,
    CrowdRidgeClassifier,
    CrowdRidgeClassifierCV,
    simulate_annotators,
)
from crowdwise.exceptions import CrowdWarning

STEEPNESSES = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
N_TRUTHS = (10, 20, 50, 100)


Data = tuple[np.ndarray, CrowdLabels, np.ndarray, Callable[[np.ndarray], float]]


def drawn(seed: int, clarity: float, experts: int) -> Data:
    """Features and labels to learn from, their truth, and the test AUC of scores; nothing is drawn again."""
    rng = np.random.default_rng([seed, round(10 * clarity), experts])
    truth = np.repeat([-1, 1], 500)
    X = rng.normal(size=(1000, 10)) + 0.5 * truth[:, np.newaxis]
    order = rng.permutation(1000)
    train, test = order[:500], order[500:]
    scores = RidgeClassifier().fit(X[train], truth[train]).decision_function(X[train])
    labels = simulate_annotators(
        X[train], truth[train], 10,
        clarity=clarity, experts=experts, adversaries=experts, scores=scores / np.abs(scores).max(), random_state=rng,
    )  # fmt: skip
    return X[train], labels, truth[train], lambda coef: float(roc_auc_score(truth[test], X[test] @ coef))


def trial(seed: int, clarity: float, experts: int, n_truths: tuple[int, ...] = ()) -> tuple[list[float], list[float]]:
    """Test AUC of every steepness, and the one that "auto", then some truths choose."""
    warnings.simplefilter("ignore", CrowdWarning)
    X, labels, truth, area = drawn(seed, clarity, experts)
    model = CrowdRidgeClassifierCV(STEEPNESSES, cv=KFold(10, shuffle=True, random_state=0), init="mean")
    areas = [area(coef[0]) for coef in model.fit(X, labels).cv_results_["coef"]]
    chosen = [CrowdRidgeClassifier("auto").fit(X, labels).steepness_]
    for n in n_truths:
        known = np.where(np.arange(500) < n, truth, np.nan)
        chosen.append(model.fit(X, labels, truth=known).best_steepness_)
    return areas, chosen


def others(seed: int, clarity: float, experts: int) -> list[float]:
    """Test AUC of the logistic model and of any classifier around logistic regression, steepness 0 and "auto" each."""
    warnings.simplefilter("ignore", CrowdWarning)
    X, labels, _, area = drawn(seed, clarity, experts)
    logistic = [CrowdLogisticClassifier(steepness).fit(X, labels).coef_ for steepness in (0.0, "auto")]
    wrapped = [
        CrowdClassifier(LogisticRegression(), steepness=steepness).fit(X, labels).estimator_.coef_
        for steepness in (0.0, "auto")
    ]
    return [area(coef[0]) for coef in logistic + wrapped]


def simulated(n_trials: int = 100, first: int = 0) -> None:
    print("| p | expert and adversary | " + " | ".join(f"{s:g}" for s in STEEPNESSES) + " | best | auto | of the way |")
    print("|---" * (len(STEEPNESSES) + 5) + "|")
    for clarity in (1.0, 2.0, 5.0):
        for experts in (1, 0):
            found = Parallel(2)(delayed(trial)(seed, clarity, experts) for seed in range(first, first + n_trials))
            areas = np.array([row for row, _ in found])
            chosen = np.array([STEEPNESSES.index(steepness) for _, (steepness,) in found])
            auto = areas[np.arange(n_trials), chosen].mean()
            none, best = areas[:, 0].mean(), areas.max(axis=1).mean()
            way = f"{(auto - none) / (best - none):.0%}" if clarity == 1 else f"{auto - none:+.4f}"
            means = " | ".join(f"{area:.3f}" for area in areas.mean(axis=0))
            print(
                f"| {clarity:g} | {'yes' if experts else 'no'} | {means} | {best:.3f} | {auto:.3f} | {way} |",
                flush=True,
            )


def models(n_trials: int = 100) -> None:
    print("| p | expert and adversary | logistic 0 | logistic auto | any(logistic) 0 | any(logistic) auto |")
    print("|---" * 6 + "|")
    for clarity in (1.0, 2.0, 5.0):
        for experts in (1, 0):
            areas = Parallel(2)(delayed(others)(seed, clarity, experts) for seed in range(n_trials))
            means = " | ".join(f"{area:.3f}" for area in np.mean(areas, axis=0))
            print(f"| {clarity:g} | {'yes' if experts else 'no'} | {means} |", flush=True)


def truths(n_trials: int = 100) -> None:
    for experts in (1, 0):
        found = Parallel(2)(delayed(trial)(seed, 1.0, experts, N_TRUTHS) for seed in range(n_trials))
        areas, chosen = np.array([row for row, _ in found]), np.array([row for _, row in found])
        none, best = areas[:, 0].mean(), areas.max(axis=1).mean()
        for column, name in enumerate(("auto", *N_TRUTHS)):
            at = [STEEPNESSES.index(steepness) for steepness in chosen[:, column]]
            area = areas[np.arange(n_trials), at].mean()
            print(
                f"experts {experts}, {name} truths: {area:.3f}, {(area - none) / (best - none):.0%} of the way",
                flush=True,
            )


def real() -> None:
    for name in WITH_FEATURES:
        data = load(name)
        chosen = CrowdRidgeClassifier("auto").fit(data.X, data.labels).steepness_
        line = f"{name}: auto is {chosen:g}; consensus with the model's voice at"
        for steepness in (0.0, 2.0, 5.0):
            model = CrowdRidgeClassifierCV((steepness,), cv=5).fit(data.X, data.labels)
            line += f" {steepness:g}: {np.mean(model.consensus(data.X, data.labels).label == data.truth):.3f}"
        print(line, flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore", CrowdWarning)
    modes = {"simulated": simulated, "models": models, "truths": truths, "real": real}
    if sys.argv[1:2] and sys.argv[1] in modes:
        modes[sys.argv[1]](*map(int, sys.argv[2:]))
    else:
        sys.exit(__doc__)
