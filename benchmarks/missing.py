"""A large crowd in which each example has few labels.

python benchmarks/missing.py          1,000,000 examples, 50 features, 200 annotators, 5 labels each
"""

from __future__ import annotations

import time

import numpy as np
from tables import Run, parser
from timing import peak_megabytes

from crowdwise import CrowdLabels, CrowdRidgeClassifier


def main() -> None:
    arguments = parser(__doc__, writes=False)
    arguments.add_argument("--examples", type=int, default=1_000_000)
    arguments.add_argument("--annotators", type=int, default=200)
    arguments.add_argument("--features", type=int, default=50)
    options = arguments.parse_args()
    rng = np.random.default_rng(0)
    Run(options)
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
    seconds = time.perf_counter() - start
    size = sum(part.nbytes for part in (labels.example_index, labels.annotator_index, labels.values))
    print(f"{labels}\n  made in {seconds:.2f} s, "
          f"{size / 2**20:.0f} MB")  # fmt: skip
    before = peak_megabytes()
    start = time.perf_counter()
    model = CrowdRidgeClassifier(l2=1.0).fit(X, labels)
    seconds = time.perf_counter() - start
    peak = peak_megabytes()
    print(f"fit: {seconds:.1f} s, {model.n_rounds_} rounds, route {model.route_!r}; peak of the whole process "
          f"{peak:.0f} MB = {peak * 2**20 / X.nbytes:.2f} x X ({before:.0f} MB before the fit)")  # fmt: skip
    found = np.corrcoef(skill[model.annotators_.astype(int)], model.expertise_)[0, 1]
    majority = np.mean(labels.majority() == truth)
    print(f"consensus accuracy {np.mean(model.consensus_ == truth):.4f} (majority {majority:.4f}), "
          f"correlation of skill and expertise {found:.3f}")  # fmt: skip


if __name__ == "__main__":
    main()
