"""Easy examples first, and then? How each curriculum settles, and what it does to AUC, on the paper's synthetic data.

python benchmarks/curricula.py figure [n_sets]     changes from round to round, and docs/figures/curricula.png
python benchmarks/curricula.py tables [n_sets]     the other tables of docs/curricula.md

The data are those of the paper's Table 2 (two Gaussians, twelve annotators, labels that are too noisy drawn again),
with l2 chosen in every round from the paper's values, the same for all.
"""

from __future__ import annotations

import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from crowdwise.models import tuned_path
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold

from crowdwise import CrowdRidgeClassifierCV, Fading, Fixed, SelfPaced, Smooth
from crowdwise.exceptions import CrowdWarning
from crowdwise.reproduce.draws import Draw, draw_usable, synthetic
from crowdwise.reproduce.trials import trial_seed
from crowdwise.reproduce.wins import Wins, count_wins, p_text

CURRICULA = [Fixed(), Fading(1.0), Fading(2.0), Fading(3.0), Smooth(1.0), Smooth(2.0), Smooth(3.0), SelfPaced()]
SOME = [Fixed(), Fading(1.0), Smooth(1.0), SelfPaced()]
CLARITIES = (1.0, 2.0, 5.0)
SETTINGS = ((1.0, 2.0), (1.0, 5.0), (2.0, 2.0), (5.0, 2.0))  # clarity, steepness
N_ROUNDS = 100
FIGURE = Path(__file__).parent.parent / "docs" / "figures" / "curricula.png"


class Watched:
    """A course whose coefficients are written down after every round."""

    def __init__(self, course: Any) -> None:
        self.course, self.coefs = course, []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.course, name)

    def problem(self, t: int, expertise: Any, theta: Any) -> Any:
        if theta is not None:
            self.coefs.append(theta[:-1, 0].copy())
        return self.course.problem(t, expertise, theta)


def title(curriculum: Any) -> str:
    return (
        f"{type(curriculum).__name__}({getattr(curriculum, 'c', ''):.1g})"
        if hasattr(curriculum, "c")
        else (f"{type(curriculum).__name__}()")
    )


def draws(clarity: float, n_sets: int) -> list[Draw]:
    """The data sets of Table 2 for one level of noise."""
    draw = partial(synthetic, clarity=clarity)
    seeds = [trial_seed(0, CLARITIES.index(clarity), trial) for trial in range(n_sets)]
    return [draw_usable(draw, np.random.default_rng(seed), redraw=True) for seed in seeds]


def fit(drawn: Draw, steepness: float, curriculum: Any, seed: int, **settings: Any) -> CrowdRidgeClassifierCV:
    """A fit; the seed gives the folds, which are the same for all curricula, and the tosses."""
    model = CrowdRidgeClassifierCV(
        (steepness,),
        cv=KFold(10, shuffle=True, random_state=seed),
        init="mean",
        max_rounds=N_ROUNDS,
        curriculum=curriculum,
        random_state=seed,
        **settings,
    )
    return model.fit(drawn.X, drawn.labels)


def all_changes(drawn: Draw, steepness: float, curriculum: Any, seed: int) -> np.ndarray:
    """How much the coefficients change in rounds 2, 3, ..., relative to their length, however settled they are."""
    watched: list[Watched] = []

    def alternate(course: Any, **settings: Any) -> Any:
        watched.append(Watched(course))
        return original(watched[-1], **settings)

    original = tuned_path.alternate
    with patch.object(tuned_path, "alternate", alternate):
        model = fit(drawn, steepness, curriculum, seed, tol=0.0)
    coefs = np.array([*watched[0].coefs, model.coef_[0]])
    return np.linalg.norm(np.diff(coefs, axis=0), axis=1) / np.linalg.norm(coefs[1:], axis=1)


def distance(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.linalg.norm(one - other) / np.linalg.norm(other))


def auc(model: CrowdRidgeClassifierCV, drawn: Draw) -> float:
    return float(roc_auc_score(drawn.truth_test > 0, model.decision_function(drawn.X_test)))


def against(wins: Wins) -> str:
    """Wins, losses and the p-value; the rest are ties."""
    return f"{wins.wins} : {wins.trials - wins.wins - wins.ties} ({p_text(wins.p_value)})"


def table(clarity: float, steepness: float, n_sets: int) -> None:
    """One line a curriculum: how it settles, where it ends, and what it does to AUC."""
    sets = draws(clarity, n_sets)
    plain = [fit(drawn, 0.0, None, seed) for seed, drawn in enumerate(sets)]
    unweighted = [auc(model, drawn) for model, drawn in zip(plain, sets, strict=True)]
    fixed: list[CrowdRidgeClassifierCV] = []
    print(
        f"\np = {clarity:g}, steepness {steepness:g}, {n_sets} data sets; "
        f"unweighted: mean AUC {np.mean(unweighted):.3f}"
    )
    for curriculum in CURRICULA if (clarity, steepness) == SETTINGS[0] else SOME:
        models = [fit(drawn, steepness, curriculum, seed) for seed, drawn in enumerate(sets)]
        fixed = fixed or models
        areas = [auc(model, drawn) for model, drawn in zip(models, sets, strict=True)]
        by_fixed = [auc(model, drawn) for model, drawn in zip(fixed, sets, strict=True)]
        settled = [model.converged_ for model in models]
        rounds = f"{np.median([m.n_rounds_ for m in models if m.converged_]):.0f}" if any(settled) else "-"
        elsewhere = sum(distance(a.coef_, b.coef_) > 0.05 for a, b in zip(models, plain, strict=True))
        ends = [
            np.median([distance(a.coef_, b.coef_) for a, b in zip(models, to, strict=True)]) for to in (plain, fixed)
        ]
        over, under = count_wins(areas, unweighted), count_wins(areas, by_fixed)
        wins = [against(over), against(under)]
        if isinstance(curriculum, Fixed):
            wins[1] = "-"
        cells = [
            f"`{title(curriculum)}`",
            f"{100 * np.mean(settled):.0f} %",
            rounds,
            *(f"{end:.1g}" for end in ends),
            str(elsewhere),
        ]
        print("| " + " | ".join([*cells, f"{np.mean(areas):.3f}", *wins]) + " |", flush=True)


def changes(n_sets: int) -> dict[str, np.ndarray]:
    """Changes a round of all data sets with the most noise, at steepness 2."""
    sets = draws(1.0, n_sets)
    found = {}
    print(f"\nmedian change of coefficients in rounds 5, 10, 30 and {N_ROUNDS}; p = 1, steepness 2")
    for curriculum in CURRICULA:
        rows = np.array([all_changes(drawn, 2.0, curriculum, seed) for seed, drawn in enumerate(sets)])
        found[title(curriculum)] = rows
        shown = [f"{np.median(rows[:, t - 2]):.0e}" for t in (5, 10, 30, N_ROUNDS)]
        jumps = (rows[:, 29:] > 1e-3).sum(axis=1).mean()  # rounds 31 and later
        print("| " + " | ".join([f"`{title(curriculum)}`", *shown, f"{jumps:.1f}"]) + " |", flush=True)
    return found


def draw_figure(found: dict[str, np.ndarray]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    style = {
        "Fixed()": ("#000000", "-"),
        "Fading(1)": ("#D55E00", "-"),
        "Fading(2)": ("#E69F00", (0, (4, 1.5))),
        "Smooth(1)": ("#0072B2", (0, (6, 2))),
        "Smooth(2)": ("#56B4E9", (0, (1, 1.2))),
        "SelfPaced()": ("#009E73", (0, (4, 1.5, 1, 1.5))),
    }
    rounds, floor = np.arange(2, N_ROUNDS + 1), 1e-12  # below is rounding
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
    for name, (colour, dash) in style.items():
        left.semilogy(rounds, np.maximum(found[name][0], floor), color=colour, ls=dash, lw=1.5, label=name)
        tenth = np.quantile(found[name], 0.9, axis=0)  # a median would hide the jumps, which come at different times
        right.semilogy(rounds, np.maximum(tenth, floor), color=colour, ls=dash, lw=1.5)
    left.set_title("one data set")
    right.set_title(f"exceeded in one of ten of {len(found['Fixed()'])} data sets")
    left.set_ylabel("relative change of the coefficients")
    for axis in (left, right):
        axis.set_xlabel("round")
        axis.grid(color="0.9")
        axis.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=6, frameon=False, handlelength=3.2)
    figure.savefig(FIGURE, dpi=150, metadata={"Software": None})
    print(f"\n{FIGURE.name} written")


if __name__ == "__main__":
    warnings.simplefilter("ignore", CrowdWarning)
    number = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    if sys.argv[1:2] == ["figure"]:
        draw_figure(changes(number))
    elif sys.argv[1:2] == ["tables"]:
        for setting in SETTINGS:
            table(*setting, number)
    else:
        sys.exit(__doc__)
