"""Does the objective fall in every round? Random crowds of all sizes, complete and not, and many strengths of l2.

python benchmarks/objective.py          1,500 random problems
"""

from __future__ import annotations

import warnings

import numpy as np
from tables import Run, parser

from crowdwise import CrowdLabels, CrowdRidgeClassifier
from crowdwise.exceptions import CrowdWarning


def random_problem(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Features, and labels of annotators between useless and good; NaN where there is none."""
    n_examples, n_features, n_annotators = (int(rng.integers(low, high)) for low, high in ((10, 300), (1, 15), (2, 13)))
    n_classes = int(rng.integers(2, 4))
    X = rng.normal(size=(n_examples, n_features)) * 10 ** rng.uniform(-1, 1)
    truth = (X @ rng.normal(size=(n_features, n_classes))).argmax(axis=1)
    guess = rng.integers(0, n_classes, (n_examples, n_annotators))
    knows = rng.random(guess.shape) < rng.uniform(0, 0.9, n_annotators)
    labels = np.where(knows, truth[:, np.newaxis], guess).astype(float)
    labels[rng.random(guess.shape) < rng.choice([0.0, 0.3, 0.7])] = np.nan
    return X, labels


def main() -> None:
    options = parser(__doc__, writes=False).parse_args()
    Run(options)
    warnings.simplefilter("ignore", CrowdWarning)
    rng = np.random.default_rng(1)
    rises, rounds, settled = [], [], []
    while len(rises) < (20 if options.quick else 1500):
        X, labels = random_problem(rng)
        if len(np.unique(labels[~np.isnan(labels)])) < 2:
            continue
        model = CrowdRidgeClassifier(float(rng.choice([0, 2, 5])), l2=10.0 ** rng.uniform(-3, 4))
        model.fit(X, CrowdLabels.from_matrix(labels))
        rises.append(max(np.diff(model.objective_), default=0.0))
        rounds.append(model.n_rounds_)
        settled.append(model.converged_)
    n_rises = np.sum(np.array(rises) > 1e-9)
    print(f"{len(rises)} problems: the objective rose by more than 1e-9 in {n_rises}; {np.sum(settled)} settled, "
          f"after {np.median(rounds):.0f} rounds (median), {max(rounds)} at most")  # fmt: skip


if __name__ == "__main__":
    main()
