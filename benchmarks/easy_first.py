"""Does it help a perceptron to see the easiest examples first?

Counts the mistakes of one pass from the easiest example to the hardest, in random order, and from the hardest to the
easiest, beside the bounds of Novikoff and of theorem 2.

The LIBSVM sets are read from the folder ``libsvm`` in the directory that CROWDWISE_DATA names; those that
are not there are left out.
"""

from __future__ import annotations

import lzma
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import RidgeClassifier
from tables import Place, Run, parser

from crowdwise import simulate_annotators
from crowdwise.paper.theory import EasyFirstPerceptron

LIBSVM = ("breast-cancer_scale", "german.numer_scale", "a1a")
PLACE = Place("docs/evidence/reproduction.md", "easy_first")
# Examples nearer to the boundary than this share of the radius are left out where a bound needs a margin.
SMALLEST_MARGIN = 0.02


def two_clouds(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    truth = np.repeat([-1, 1], 500)
    return rng.normal(size=(1000, 10)) + 0.5 * truth[:, np.newaxis], truth


def libsvm_set(path: Path) -> Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]:
    with lzma.open(path) as file:
        X, y = load_svmlight_file(file)
    X, truth = X.toarray(), np.where(y == y.max(), 1, -1)

    def three_quarters(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        rows = rng.permutation(len(X))[: 3 * len(X) // 4]
        return X[rows], truth[rows]

    return three_quarters


def data_sets() -> dict[str, Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]]:
    found = {"two clouds": two_clouds}
    for name in LIBSVM:
        path = Path(os.environ.get("CROWDWISE_DATA", "data")) / "libsvm" / f"{name}.xz"
        if path.exists():
            found[name] = libsvm_set(path)
        else:
            print(f"{name} is left out: {path} does not exist; set CROWDWISE_DATA.")
    return found


# Three situations. "Known margins": labels are the sign of a linear model, examples next to its boundary are left
# out, and the order goes by true margins, so the theorem applies to the letter. Else the labels are the majority of
# twelve annotators as in the paper's simulator (one always right, one always wrong), the order goes by disagreement.


def hyperplane(X: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """A unit vector, the intercept last."""
    ridge = RidgeClassifier().fit(X, truth)
    u = np.append(np.ravel(ridge.coef_), ridge.intercept_)
    return u / np.linalg.norm(u)


def known_margins(X: np.ndarray, truth: np.ndarray, rng: np.random.Generator) -> list[list[float]]:
    rows = np.column_stack([X, np.ones(len(X))])
    u = hyperplane(X, truth)
    keep = np.abs(rows @ u) >= SMALLEST_MARGIN * np.linalg.norm(rows, axis=1).max()
    X, score = X[keep], (rows @ u)[keep]
    easiest = np.argsort(-np.abs(score), kind="stable")
    return measure(X, np.sign(score).astype(int), np.sign(score), easiest, u, rng, max_regions=1000)


def twelve_annotators(X: np.ndarray, truth: np.ndarray, rng: np.random.Generator, clarity: float) -> list[list[float]]:
    labels = simulate_annotators(X, truth, 10, clarity=clarity, experts=1, adversaries=1, random_state=rng)
    shuffled = rng.permutation(len(X))  # equally disputed examples in random order
    disputed = EasyFirstPerceptron(n_epochs=1).fit(X, labels).disagreement_
    easiest = shuffled[np.argsort(disputed[shuffled], kind="stable")]
    return measure(X, labels, truth, easiest, hyperplane(X, truth), rng, max_regions=9)


def measure(X, labels, truth, easiest, u, rng, max_regions) -> list[list[float]]:
    """Per order: mistakes, both bounds, and accuracy of the averaged weights."""
    found = []
    for order in (easiest, rng.permutation(easiest), easiest[::-1]):
        model = EasyFirstPerceptron("given", n_epochs=1, max_regions=max_regions).fit(X, labels, curriculum=order)
        bound = model.bound(X, u=u)
        if model.n_mistakes_ > min(bound.value, bound.novikoff):
            raise AssertionError("a bound was exceeded")
        averaged = EasyFirstPerceptron("given", n_epochs=1, average=True).fit(X, labels, curriculum=order)
        accuracy = float((averaged.predict(X) == truth).mean())
        found.append([model.n_mistakes_, bound.value, bound.novikoff, accuracy])
    return found


SITUATIONS = {
    "known margins": known_margins,
    "p = 1": partial(twelve_annotators, clarity=1.0),
}


def column(situation: str, draw: Callable, n_trials: int) -> list[str]:
    """Means over trials: mistakes and accuracy of the orders, and the bounds of the easiest-first order."""
    found = []
    for seed in np.random.SeedSequence(0).spawn(n_trials):
        rng = np.random.default_rng(seed)
        found.append(SITUATIONS[situation](*draw(rng), rng))
    mistakes, theorem, novikoff, accuracy = np.mean(found, axis=0).T
    return [
        "/".join(f"{count:.1f}" for count in mistakes),
        "/".join(f"{share:.3f}" for share in accuracy),
        f"{theorem[0]:.0f}/{novikoff[0]:.0f}",
    ]


def fewer_mistakes(cells: Sequence[str]) -> tuple[float, float]:
    """By how many percent the easiest-first order makes fewer mistakes than a random one: least and most."""
    saved = [100 * (1 - easiest / random) for easiest, random, _ in (map(float, cell.split("/")) for cell in cells)]
    return min(saved), max(saved)


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--trials", type=int, default=30)
    options = arguments.parse_args()
    run, n_trials = Run(options, [PLACE]), 2 if options.quick else options.trials
    sets = data_sets()
    rows = []
    for situation in SITUATIONS:
        columns = [column(situation, draw, n_trials) for draw in sets.values()]
        names = (f"{situation}: mistakes", "accuracy", "bounds")
        rows += [[name, *cells] for name, cells in zip(names, zip(*columns, strict=True), strict=True)]
    note = f"Easiest/random/hardest first, and Theorem 2 or 3/Novikoff: means of {n_trials} trials of one pass."
    fewer = [fewer_mistakes(row[1:]) for row in rows if row[0].endswith("mistakes")]
    ranges = " and ".join(
        f"{name}: {low:.0f} to {high:.0f} %" for name, (low, high) in zip(SITUATIONS, fewer, strict=True)
    )
    run.table(PLACE, ("", *sets), rows, f"{note} Mistakes that the easiest-first order saves ({ranges}).")


if __name__ == "__main__":
    main()
