"""steepness="auto": how far does it go from no weights to the best steepness, where weights help and where they don't?

python benchmarks/auto_steepness.py                 all parts below
python benchmarks/auto_steepness.py simulated       the paper's synthetic data
python benchmarks/auto_steepness.py truths          how far some known truths go, at the most noise (p = 1)
python benchmarks/auto_steepness.py real            what it chooses on real crowds, and what weights do there

--trials N is the number of data sets per row, --first S the first seed, --jobs the number of processes.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from crowd_sets import WITH_FEATURES, load
from joblib import Parallel, delayed
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold
from tables import Place, Run, parser

from crowdwise import (
    CrowdLabels,
    CrowdRidgeClassifier,
    CrowdRidgeClassifierCV,
    simulate_annotators,
)
from crowdwise.exceptions import CrowdWarning

STEEPNESSES = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
N_TRUTHS = (0, 10, 20, 50, 100)
SETTINGS = tuple((clarity, experts) for clarity in (1.0, 2.0, 5.0) for experts in (1, 0))
TRIALS = {"simulated": 100, "truths": 100}

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


def trial(seed: int, clarity: float, experts: int) -> tuple[list[float], float]:
    """Test AUC of every steepness, and the one that "auto" chooses."""
    warnings.simplefilter("ignore", CrowdWarning)
    X, labels, _, area = drawn(seed, clarity, experts)
    areas = [area(coef[0]) for coef in every_steepness().fit(X, labels).cv_results_["coef"]]
    return areas, CrowdRidgeClassifier("auto").fit(X, labels).steepness_


def trial_of_truths(seed: int, clarity: float, experts: int, n_truths: int) -> tuple[list[float], float]:
    """The same for a model that learns from some known truths, which also choose."""
    warnings.simplefilter("ignore", CrowdWarning)
    X, labels, truth, area = drawn(seed, clarity, experts)
    known = np.where(np.arange(500) < n_truths, truth, np.nan)
    model = every_steepness().fit(X, labels, truth=known)
    return [area(coef[0]) for coef in model.cv_results_["coef"]], model.steepness_


def every_steepness() -> CrowdRidgeClassifierCV:
    return CrowdRidgeClassifierCV(STEEPNESSES, cv=KFold(10, shuffle=True, random_state=0), init="mean")


def simulated(run: Run, options: argparse.Namespace) -> None:
    """A row per level of noise, with and without an expert and an adversary."""
    columns = ("p", "expert and adversary", *(f"{s:g}" for s in STEEPNESSES), "best of each data set", "auto", "gain",
               "of the way to the best")  # fmt: skip
    rows = []
    for clarity, experts in SETTINGS:
        found = repeated(options, trial, clarity, experts)
        areas = np.array([row for row, _ in found])
        auto, none, best = reached(areas, [steepness for _, steepness in found])
        # Where there is nothing to gain, a share of it would be noise.
        way = f"{100 * (auto - none) / (best - none):.0f} %" if clarity == 1 else "-"
        numbers = [f"{area:.3f}" for area in (*areas.mean(axis=0), best, auto)]
        rows.append([f"{clarity:g}", "yes" if experts else "no", *numbers, f"{auto - none:+.4f}", way])
    run.table(PLACES["simulated"], columns, rows, f"{options.trials} data sets per row, from seed {options.first} on.")


def truths(run: Run, options: argparse.Namespace) -> None:
    """A row per number of known truths: how far of the way to the best, by "auto" and by truths."""
    rows = []
    for experts in (1, 0):
        for n in N_TRUTHS:
            found = repeated(options, trial_of_truths, 1.0, experts, n) if n else repeated(options, trial, 1.0, experts)
            reach, none, best = reached(np.array([row for row, _ in found]), [steepness for _, steepness in found])
            numbers = [f"{area:.3f}" for area in (none, reach, best)]
            way = f"{100 * (reach - none) / (best - none):.0f} %"
            rows.append(["yes" if experts else "no", str(n) if n else 'none, "auto"', *numbers, way])
    columns = (
        "expert and adversary",
        "truths",
        "no weights",
        "chosen",
        "best of each data set",
        "of the way to the best",
    )
    run.table(PLACES["truths"], columns, rows, f"{options.trials} data sets per row, from seed {options.first} on.")


def repeated(options: argparse.Namespace, one: Callable[..., Any], *settings: Any) -> list[Any]:
    """All trials of a setting."""
    seeds = range(options.first, options.first + options.trials)
    return Parallel(options.jobs)(delayed(one)(seed, *settings) for seed in seeds)


def reached(areas: np.ndarray, chosen: Iterable[float]) -> tuple[float, float, float]:
    """Mean AUC of the steepness chosen for each data set, of no weights, and of the best for each."""
    at = [STEEPNESSES.index(steepness) for steepness in chosen]
    return areas[np.arange(len(areas)), at].mean(), areas[:, 0].mean(), areas.max(axis=1).mean()


def real(run: Run, options: argparse.Namespace) -> None:
    """A row per crowd."""
    tried = (0.0, 2.0, 5.0)
    rows = []
    for name in ("medical_cause",) if options.quick else WITH_FEATURES:
        data = load(name)
        auto = CrowdRidgeClassifier("auto").fit(data.X, data.labels).steepness_
        models = [CrowdRidgeClassifierCV((steepness,), cv=5).fit(data.X, data.labels) for steepness in tried]
        right = [np.mean(model.consensus_ == data.truth) for model in models]
        rows.append([name, f"{auto:g}", *(f"{share:.3f}" for share in right)])
    columns = ("crowd", '"auto" is', *(f"consensus at {steepness:g}" for steepness in tried))
    run.table(PLACES["real"], columns, rows)


PARTS = {"simulated": simulated, "truths": truths, "real": real}
PLACES = {part: Place("docs/evidence/models.md", f"auto_steepness {part}") for part in PARTS}


def main() -> None:
    arguments = parser(__doc__, PARTS)
    arguments.add_argument("--trials", type=int)
    arguments.add_argument("--first", type=int, default=0)
    arguments.add_argument("--jobs", type=int, default=1)
    options = arguments.parse_args()
    warnings.simplefilter("ignore", CrowdWarning)
    run, n_trials = Run(options, [PLACES[part] for part in options.parts]), options.trials
    for part in options.parts:
        options.trials = 2 if options.quick else n_trials or TRIALS.get(part)
        PARTS[part](run, options)


if __name__ == "__main__":
    main()
