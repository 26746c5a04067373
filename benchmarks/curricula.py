"""Easy examples first, and then? What each curriculum does to convergence and AUC, on the paper's synthetic data.

The data are those of the paper's Table 2 with the most noise (two Gaussians, twelve annotators, labels that are too
noisy drawn again), with l2 chosen in every round from the paper's values, the same for all.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold
from tables import Place, Run, parser

from crowdwise import CrowdRidgeClassifierCV
from crowdwise.exceptions import CrowdWarning
from crowdwise.paper.reproduce.draws import Draw, draw_usable, synthetic
from crowdwise.paper.reproduce.trials import trial_seed
from crowdwise.paper.reproduce.wins import Wins, count_wins, p_text
from crowdwise.weights import Fading, Fixed, SelfPaced, Smooth

CURRICULA = [Fixed(), Fading(1.0), Smooth(1.0), SelfPaced()]
CLARITY, STEEPNESS = 1.0, 2.0
PLACE = Place("docs/evidence/weighting.md", "curricula")
COLUMNS = ("curriculum", "settled", "rounds", "AUC", "over unweighted", "over `Fixed`")


def title(curriculum: Any) -> str:
    c = f"{curriculum.c:.1g}" if hasattr(curriculum, "c") else ""
    return f"`{type(curriculum).__name__}({c})`"


def draws(n_sets: int) -> list[Draw]:
    """The data sets of Table 2."""
    draw = partial(synthetic, clarity=CLARITY)
    seeds = [trial_seed(0, 0, trial) for trial in range(n_sets)]
    return [draw_usable(draw, np.random.default_rng(seed), redraw=True) for seed in seeds]


def fit(drawn: Draw, steepness: float, curriculum: Any, seed: int) -> CrowdRidgeClassifierCV:
    """A fit; the seed gives the folds, which are the same for all curricula, and the tosses."""
    model = CrowdRidgeClassifierCV(
        (steepness,),
        cv=KFold(10, shuffle=True, random_state=seed),
        init="mean",
        max_rounds=100,
        curriculum=curriculum,
        random_state=seed,
    )
    return model.fit(drawn.X, drawn.labels)


def areas(models: list[CrowdRidgeClassifierCV], sets: list[Draw]) -> list[float]:
    """Test AUC."""
    pairs = zip(models, sets, strict=True)
    return [float(roc_auc_score(drawn.truth_test > 0, model.decision_function(drawn.X_test))) for model, drawn in pairs]


def against(wins: Wins) -> str:
    """Wins, losses and the p-value; the rest are ties."""
    return f"{wins.wins} : {wins.trials - wins.wins - wins.ties} ({p_text(wins.p_value)})"


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--sets", type=int, default=100, help="number of data sets: %(default)s")
    options = arguments.parse_args()
    warnings.simplefilter("ignore", CrowdWarning)
    run, n_sets = Run(options, [PLACE]), 2 if options.quick else options.sets
    sets = draws(n_sets)
    plain = areas([fit(drawn, 0.0, None, seed) for seed, drawn in enumerate(sets)], sets)
    fixed, rows = None, []
    for curriculum in CURRICULA:
        models = [fit(drawn, STEEPNESS, curriculum, seed) for seed, drawn in enumerate(sets)]
        settled = [model.n_rounds_ for model in models if model.converged_]
        found = areas(models, sets)
        over_fixed = "-" if fixed is None else against(count_wins(found, fixed))
        fixed = fixed or found
        rows.append([
            title(curriculum),
            f"{100 * len(settled) / n_sets:.0f} %",
            f"{np.median(settled):.0f}" if settled else "-",
            f"{np.mean(found):.3f}",
            against(count_wins(found, plain)),
            over_fixed,
        ])  # fmt: skip
    run.table(PLACE, COLUMNS, rows, f"{n_sets} data sets; mean AUC without weights {np.mean(plain):.3f}.")


if __name__ == "__main__":
    main()
