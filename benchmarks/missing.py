"""Table 2 where labels are missing: does weighting by disagreement still help, and what if annotators choose?

The data are the paper's synthetic ones with the most noise (p = 1, labels that are too noisy drawn again). Of every
example each label is missing with the same probability, or with more probability the nearer the example is to
the boundary ("they choose easy ones"), or the farther ("hard ones"), with the same share missing on the whole. The
expert and the adversary choose as the others do. An example that nobody labelled takes no part.
"""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold
from tables import Place, Run, parser

from crowdwise import CrowdLabels, CrowdRidgeClassifierCV
from crowdwise.exceptions import CrowdWarning
from crowdwise.paper.reproduce.draws import Draw, draw_usable, synthetic
from crowdwise.paper.reproduce.trials import trial_seed
from crowdwise.paper.reproduce.wins import count_wins, p_text

PLACE = Place("docs/evidence/weighting.md", "missing")
N_SETS, CLARITY, STEEPNESS = 100, 1.0, 2.0
SHARES = (0.25, 0.5, 0.75)
# How fast the logit of labelling an example grows with its standardised distance from the boundary.
CHOICES = {"at random": 0.0, "easy ones chosen": 2.0, "hard ones chosen": -2.0}
COLUMNS = ("missing", "which", "labels per example", "AUC, steepness 0", "steepness 2", "wins : losses (p-value)")


def clearness(drawn: Draw, truth: np.ndarray) -> np.ndarray:
    """Standardised distance of the training examples from the boundary of a linear model of the truth."""
    distance = np.abs(RidgeClassifier().fit(drawn.X, truth).decision_function(drawn.X))
    return (distance - distance.mean()) / distance.std()


def with_missing(drawn: Draw, share: float, slope: float, rng: np.random.Generator) -> tuple[np.ndarray, CrowdLabels]:
    """Rows that have labels, and these labels."""
    votes = drawn.labels.to_matrix().astype(float)
    logit = slope * clearness(drawn, np.repeat([1, -1], len(votes) // 2))
    level = brentq(lambda level: expit(level + logit).mean() - (1 - share), -50, 50)
    votes[rng.random(votes.shape) >= expit(level + logit)[:, np.newaxis]] = np.nan
    rows = np.flatnonzero(~np.isnan(votes).all(axis=1))
    return rows, CrowdLabels.from_matrix(votes[rows])


def areas(drawn: Draw, rows: np.ndarray, labels: CrowdLabels, seed: int) -> list[float]:
    """Test AUC without weights and with them, l2 chosen in every round."""
    cv = KFold(10, shuffle=True, random_state=seed)
    model = CrowdRidgeClassifierCV((0.0, STEEPNESS), cv=cv, init="mean", max_rounds=100).fit(drawn.X[rows], labels)
    scores = (drawn.X_test @ coef[0] for coef in model.cv_results_["coef"])
    return [float(roc_auc_score(drawn.truth_test > 0, score)) for score in scores]


def row(share: float, which: str, sets: list[Draw]) -> list[str]:
    """All data sets with labels missing in one way."""
    found, number = [], []
    for seed, drawn in enumerate(sets):
        rng = np.random.default_rng([seed, round(100 * share), list(CHOICES).index(which)])
        rows, labels = with_missing(drawn, share, CHOICES[which], rng)
        found.append(areas(drawn, rows, labels, seed))
        number.append(labels.n_labels / len(drawn.X))
    plain, weighted = np.array(found).T
    wins = count_wins(weighted, plain)
    return [
        f"{share:.0%}",
        which if share else "",
        f"{np.mean(number):.1f}",
        f"{plain.mean():.3f}",
        f"{weighted.mean():.3f}",
        f"{wins.wins} : {wins.trials - wins.wins - wins.ties} ({p_text(wins.p_value)})",
    ]


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--sets", type=int, default=N_SETS, help="number of data sets: %(default)s")
    options = arguments.parse_args()
    warnings.simplefilter("ignore", CrowdWarning)
    run, n_sets = Run(options, [PLACE]), 2 if options.quick else options.sets
    draw = partial(synthetic, clarity=CLARITY)
    seeds = [trial_seed(0, 0, trial) for trial in range(n_sets)]
    sets = [draw_usable(draw, np.random.default_rng(seed), redraw=True) for seed in seeds]
    rows = [row(0.0, "at random", sets)]
    for share in SHARES:
        rows += [row(share, which, sets) for which in CHOICES]
        print(*rows[-len(CHOICES) :], sep="\n", flush=True)
    run.table(PLACE, COLUMNS, rows, f"{n_sets} data sets.")


if __name__ == "__main__":
    main()
