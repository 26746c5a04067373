"""Easy examples first, and then? How each curriculum settles, and what it does to AUC, on the paper's synthetic data.

python benchmarks/curricula.py figure     changes from round to round, and docs/figures/curricula.png
python benchmarks/curricula.py tables     the other tables of docs/evidence/curricula.md

The data are those of the paper's Table 2 (two Gaussians, twelve annotators, labels that are too noisy drawn again),
with l2 chosen in every round from the paper's values, the same for all.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold
from tables import ROOT, Place, Run, parser

from crowdwise import CrowdRidgeClassifierCV
from crowdwise.exceptions import CrowdWarning
from crowdwise.paper.reproduce.draws import Draw, draw_usable, synthetic
from crowdwise.paper.reproduce.trials import trial_seed
from crowdwise.paper.reproduce.wins import Wins, count_wins, p_text
from crowdwise.weights import Curriculum, Fading, Fixed, SelfPaced, Smooth

CURRICULA = [Fixed(), Fading(1.0), Fading(2.0), Fading(3.0), Smooth(1.0), Smooth(2.0), Smooth(3.0), SelfPaced()]
SOME = [Fixed(), Fading(1.0), Smooth(1.0), SelfPaced()]
CLARITIES = (1.0, 2.0, 5.0)
SETTINGS = ((1.0, 2.0), (1.0, 5.0), (2.0, 2.0), (5.0, 2.0))  # clarity, steepness
N_ROUNDS = 100
FIGURE = ROOT / "docs" / "figures" / "curricula.png"
PAGE = "docs/evidence/curricula.md"
CHANGES = Place(PAGE, "curricula changes")
PLACES = {setting: Place(PAGE, "curricula p={:g} steepness={:g}".format(*setting)) for setting in SETTINGS}


@dataclass(frozen=True)
class Recorded(Curriculum):
    """Another curriculum, and how far the model was from the consensus after every round."""

    reads_losses: ClassVar[bool] = True
    curriculum: Curriculum
    distances: list[np.ndarray] = field(default_factory=list)

    def weights(self, t: int, easiness: Any, losses: Any, rng: Any, sample_weight: Any = None) -> Any:
        if losses is not None:
            self.distances.append(np.sqrt(losses))
        return self.curriculum.weights(t, easiness, losses, rng, sample_weight)

    def settled(self, t: int, tol: float) -> bool:
        return self.curriculum.settled(t, tol)


def title(curriculum: Any) -> str:
    c = f"{curriculum.c:.1g}" if hasattr(curriculum, "c") else ""
    return f"{type(curriculum).__name__}({c})"


def draws(clarity: float, n_sets: int) -> list[Draw]:
    """The data sets of Table 2 for one level of noise."""
    draw = partial(synthetic, clarity=clarity)
    seeds = [trial_seed(0, CLARITIES.index(clarity), trial) for trial in range(n_sets)]
    return [draw_usable(draw, np.random.default_rng(seed), redraw=True) for seed in seeds]


def fit(
    drawn: Draw, steepness: float, curriculum: Any, seed: int, max_rounds: int = N_ROUNDS, **settings: Any
) -> CrowdRidgeClassifierCV:
    """A fit; the seed gives the folds, which are the same for all curricula, and the tosses."""
    model = CrowdRidgeClassifierCV(
        (steepness,),
        cv=KFold(10, shuffle=True, random_state=seed),
        init="mean",
        max_rounds=max_rounds,
        curriculum=curriculum,
        random_state=seed,
        **settings,
    )
    return model.fit(drawn.X, drawn.labels)


def all_changes(drawn: Draw, steepness: float, curriculum: Curriculum, seed: int) -> np.ndarray:
    """How much the distances from model to consensus change in rounds 2, 3, ..., relative to their size.

    A distance per example, so neither a change of the coefficients nor one of the expertise can hide.
    """
    recorded = Recorded(curriculum)
    # One round more, for a curriculum is shown the last round's model; tol=0 goes on however settled they are.
    fit(drawn, steepness, recorded, seed, N_ROUNDS + 1, tol=0.0)
    found = np.array(recorded.distances)
    return np.linalg.norm(np.diff(found, axis=0), axis=1) / np.linalg.norm(found[1:], axis=1)


def distance(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.linalg.norm(one - other) / np.linalg.norm(other))


def auc(model: CrowdRidgeClassifierCV, drawn: Draw) -> float:
    return float(roc_auc_score(drawn.truth_test > 0, model.decision_function(drawn.X_test)))


def against(wins: Wins) -> str:
    """Wins, losses and the p-value; the rest are ties."""
    return f"{wins.wins} : {wins.trials - wins.wins - wins.ties} ({p_text(wins.p_value)})"


def table(run: Run, setting: tuple[float, float], n_sets: int) -> None:
    """A line per curriculum: how it settles, where it ends, and what it does to AUC."""
    clarity, steepness = setting
    sets = draws(clarity, n_sets)
    plain = [fit(drawn, 0.0, None, seed) for seed, drawn in enumerate(sets)]
    fixed = [fit(drawn, steepness, None, seed) for seed, drawn in enumerate(sets)]
    rows = []
    for curriculum in CURRICULA if setting == SETTINGS[0] else SOME:
        models = [fit(drawn, steepness, curriculum, seed) for seed, drawn in enumerate(sets)]
        rows.append([f"`{title(curriculum)}`", *ends(models, plain, fixed), *areas(sets, models, plain, fixed)])
        if isinstance(curriculum, Fixed):
            rows[-1][-1] = "-"
    unweighted = np.mean([auc(model, drawn) for model, drawn in zip(plain, sets, strict=True)])
    columns = ("curriculum", "settled", "rounds", "from unweighted", "from `Fixed`", "elsewhere", "AUC",
               "over unweighted", "over `Fixed`")  # fmt: skip
    run.table(PLACES[setting], columns, rows, f"{n_sets} data sets; mean AUC without weights {unweighted:.3f}.")


def ends(models: list[Any], plain: list[Any], fixed: list[Any]) -> list[str]:
    """Whether and when fits settle, and how far from others."""
    settled = [model.n_rounds_ for model in models if model.converged_]
    away = [[distance(a.coef_, b.coef_) for a, b in zip(models, others, strict=True)] for others in (plain, fixed)]
    return [
        f"{100 * len(settled) / len(models):.0f} %",
        f"{np.median(settled):.0f}" if settled else "-",
        *(f"{np.median(each):.1g}" for each in away),
        str(sum(each > 0.05 for each in away[0])),
    ]


def areas(sets: list[Draw], models: list[Any], plain: list[Any], fixed: list[Any]) -> list[str]:
    """Mean AUC, and wins over others."""
    found, *others = (
        [auc(model, drawn) for model, drawn in zip(each, sets, strict=True)] for each in (models, plain, fixed)
    )
    return [f"{np.mean(found):.3f}", *(against(count_wins(found, other)) for other in others)]


def changes(run: Run, n_sets: int) -> dict[str, np.ndarray]:
    """Changes per round of all data sets with the most noise, at steepness 2."""
    sets = draws(1.0, n_sets)
    found = {
        title(curriculum): np.array([all_changes(drawn, 2.0, curriculum, seed) for seed, drawn in enumerate(sets)])
        for curriculum in CURRICULA
    }
    rows = []
    for name, each in found.items():
        medians = [f"{np.median(each[:, t - 2]):.0e}" for t in (5, 10, 30, N_ROUNDS)]
        jumps = (each[:, 29:] > 1e-3).sum(axis=1).mean()  # rounds 31 and later
        rows.append([f"`{name}`", *medians, f"{jumps:.1f}"])
    columns = ("curriculum", "round 5", "round 10", "round 30", f"round {N_ROUNDS}", "jumps after 30")
    run.table(CHANGES, columns, rows, f"p = 1, steepness 2, {n_sets} data sets.")
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
    left.set_ylabel("relative change of the distances")
    for axis in (left, right):
        axis.set_xlabel("round")
        axis.grid(color="0.9")
        axis.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=6, frameon=False, handlelength=3.2)
    figure.savefig(FIGURE, dpi=150, metadata={"Software": None})
    print(f"\n{FIGURE.name} written")


def main() -> None:
    arguments = parser(__doc__, ("figure", "tables"))
    arguments.add_argument("--sets", type=int, help="number of data sets: 30 for the figure, 100 for the tables")
    options = arguments.parse_args()
    warnings.simplefilter("ignore", CrowdWarning)
    run = Run(options, [CHANGES, *PLACES.values()])
    if "figure" in options.parts:
        found = changes(run, 2 if options.quick else options.sets or 30)
        if options.write:
            draw_figure(found)
    if "tables" in options.parts:
        for setting in SETTINGS:
            table(run, setting, 2 if options.quick else options.sets or 100)


if __name__ == "__main__":
    main()
