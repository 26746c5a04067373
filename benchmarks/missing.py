"""A large crowd in which each example has few labels.

python benchmarks/missing.py          1,000,000 examples, 50 features, 200 annotators, 5 labels each
"""

from __future__ import annotations

import time

import numpy as np
from tables import Place, Run, parser
from timing import peak_megabytes

from crowdwise import CrowdLabels, CrowdRidgeClassifier

PLACE = Place("docs/evidence/speed.md", "missing")
COLUMNS = ("examples x features", "annotators", "reading the labels", "`CrowdRidgeClassifier`", "rounds",
           "peak memory, of X", "consensus right", "majority right")  # fmt: skip


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--examples", type=int, default=1_000_000)
    arguments.add_argument("--annotators", type=int, default=200)
    arguments.add_argument("--features", type=int, default=50)
    options = arguments.parse_args()
    rng = np.random.default_rng(0)
    run = Run(options, [PLACE])
    if options.quick:
        options.examples = 10_000
    X = rng.standard_normal((options.examples, options.features))
    truth = X[:, 0] + X[:, 1] > 0
    # Five different annotators per example: a random start and a random step around the circle of annotators.
    step = rng.integers(1, options.annotators // 5, (options.examples, 1))
    who = (rng.integers(0, options.annotators, (options.examples, 1)) + step * np.arange(5)) % options.annotators
    skill = rng.uniform(0.55, 0.95, options.annotators)
    right = rng.random(who.shape) < skill[who]
    table = {
        "example": np.repeat(np.arange(options.examples), 5),
        "annotator": who.ravel(),
        "label": np.where(right, truth[:, np.newaxis], ~truth[:, np.newaxis]).astype(np.int8).ravel(),
    }
    start = time.perf_counter()
    labels = CrowdLabels.from_table(table)
    reading = time.perf_counter() - start
    start = time.perf_counter()
    model = CrowdRidgeClassifier(l2=1.0).fit(X, labels)
    fitting = time.perf_counter() - start
    right = [np.mean(answer == truth) for answer in (model.consensus_, labels.majority())]
    row = [f"{len(X):,} x {X.shape[1]}", f"{options.annotators}", f"{reading:.1f} s", f"{fitting:.1f} s",
           f"{model.n_rounds_}", f"{peak_megabytes() * 2**20 / X.nbytes:.1f}",
           *(f"{share:.4f}" for share in right)]  # fmt: skip
    run.table(PLACE, COLUMNS, [row], "Five labels per example.")


if __name__ == "__main__":
    main()
