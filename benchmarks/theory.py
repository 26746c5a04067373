"""Measure the theory modules: speed of the perceptron and of the ball radii, and how well estimates find the truth.

    python benchmarks/theory.py [perceptron | balls | alignment | recovery | estimated_labels] ... [--quick | --write]

Each part runs in a process of its own, so that the peak memory is its own.
"""

from __future__ import annotations

import multiprocessing
import resource
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr
from sklearn.linear_model import Perceptron, RidgeClassifier
from tables import Place, Run, parser
from threadpoolctl import threadpool_limits

from crowdwise import simulate_annotators
from crowdwise.crowd import disagreement
from crowdwise.paper.theory import (
    EasyFirstPerceptron,
    alignment_expertise,
    ball_radii,
    feed,
    nested_ball_margins,
    simulate_ball_annotators,
)

# What a part finds: the columns of its table, the rows, and a note.
Table = tuple[tuple[str, ...], list[list[str]], str]


def seconds(call: Callable[[], Any], repeats: int = 3) -> float:
    """Processor time, the shortest of some runs: others may be at work on the same cores."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def plain_loop(signed: np.ndarray) -> list[int]:
    weights, mistakes = np.zeros(signed.shape[1]), []
    for i, row in enumerate(signed):
        if row @ weights <= 0:
            weights += row
            mistakes.append(i)
    return mistakes


def perceptron(n_examples: int = 100_000) -> Table:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_examples, 100))
    score = X @ rng.normal(size=100) / 10
    rows = []
    for noise in (0.0, 0.5, 2.0, 1e9):
        y = np.where(score + noise * rng.normal(size=len(X)) > 0, 1, -1)
        signed = X * y[:, np.newaxis]
        with threadpool_limits(1):
            mistakes = feed(signed, np.zeros(100))
            assert mistakes.tolist() == plain_loop(signed)
            fast = seconds(lambda signed=signed: feed(signed, np.zeros(100)))
            slow = seconds(lambda signed=signed: plain_loop(signed))
            compiled = Perceptron(max_iter=1, tol=None, shuffle=False)
            theirs = seconds(lambda y=y, compiled=compiled: compiled.fit(X, y))
            whole = seconds(lambda y=y: EasyFirstPerceptron(n_epochs=5).fit(X, y), 1)
        share = f"{100 * len(mistakes) / len(X):.0f} %"
        times = [f"{time:.3f} s" for time in (fast, slow, theirs)]
        rows.append([share, *times, f"{slow / fast:.1f}", f"{fast / theirs:.1f}", f"{whole:.2f} s"])
    columns = ("mistakes", "one pass, blocks", "plain loop", "scikit-learn", "loop / blocks", "blocks / scikit-learn",
               "`fit`, 5 epochs")  # fmt: skip
    note = (
        f"{n_examples:,} examples of 100 features, one thread, processor time. scikit-learn does not tell its mistakes."
    )
    return columns, rows, note


def balls(n_examples: int = 20_000) -> Table:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_examples, 20))
    labels = simulate_annotators(X, X[:, 0] > 0, 20, random_state=0)
    before = peak()
    taken = seconds(lambda: ball_radii(X, labels, random_state=0), 1)
    row = [f"{n_examples:,} x 20, 20 annotators", f"{taken:.1f} s", f"{peak():.0f} MiB", f"{before:.0f} MiB"]
    columns = ("`ball_radii`", "processor time", "peak memory", "of that, data and libraries")
    return columns, [row], ""


def alignment(n_examples: int = 100_000) -> Table:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_examples, 100))
    labels = simulate_annotators(X, X[:, 0] > 0, 20, clarity=5.0, random_state=0)
    exact = alignment_expertise(X, labels)
    taken = seconds(lambda: alignment_expertise(X, labels))
    found = []
    descent = seconds(lambda: found.append(alignment_expertise(X, labels, method="stochastic", random_state=0)), 1)
    row = [f"{n_examples:,} x 100, 20 annotators", f"{taken:.2f} s", f"{descent:.2f} s"]
    row += [f"{np.abs(exact - found[0]).max():.3f}", f"{peak():.0f} MiB"]
    columns = ("`alignment_expertise`", "exact", "stochastic", "largest difference", "peak memory")
    return columns, [row], f"Processor time. The kernel matrix alone would have {8 * len(X) ** 2 / 2**30:.0f} GiB."


def recovery(n_trials: int = 10) -> Table:
    rows = []
    for n_features in (2, 5, 10):
        found = [_ball_trial(n_features, seed) for seed in np.random.SeedSequence(0).spawn(n_trials)]
        rows.append([f"ball majority, {n_features} features", *_cells(found)])
    for clarity in (1.0, 2.0, 5.0):
        found = [_paper_trial(clarity, seed) for seed in np.random.SeedSequence(0).spawn(n_trials)]
        rows.append([f"the paper's simulator, p = {clarity:g}", *_cells(found)])
    columns = ("annotators", "radii", "margins, nested balls", "margins, minus disagreement")
    return columns, rows, f"Mean (smallest) of {n_trials} trials with 600 examples."


def _ball_trial(n_features: int, seed: np.random.SeedSequence) -> tuple[float, float, float]:
    rng = np.random.default_rng(seed)
    X, u = rng.uniform(-1, 1, (600, n_features)), rng.normal(size=n_features)
    margin = X @ u / np.linalg.norm(u) - 0.3
    true = np.quantile(cdist(X, X), [0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5])
    labels = simulate_ball_annotators(X, margin > 0, true)
    expertise = alignment_expertise(X, labels)
    radii = ball_radii(X, labels, expertise)
    return spearmanr(true, radii).statistic, *_ranks(labels, radii, expertise, margin)


def _paper_trial(clarity: float, seed: np.random.SeedSequence) -> tuple[float, float, float]:
    rng = np.random.default_rng(seed)
    truth = np.repeat([-1, 1], 300)
    X = rng.normal(size=(600, 10)) + 0.5 * truth[:, np.newaxis]
    labels = simulate_annotators(X, truth, 10, clarity=clarity, experts=1, adversaries=1, random_state=rng)
    expertise = alignment_expertise(X, labels)
    radii = ball_radii(X, labels, expertise)
    margin = RidgeClassifier().fit(X, truth).decision_function(X)
    return np.nan, *_ranks(labels, radii, expertise, margin)


def _ranks(labels: Any, radii: np.ndarray, expertise: np.ndarray, margin: np.ndarray) -> tuple[float, float]:
    nested = nested_ball_margins(labels, radii, expertise)
    constant = np.ptp(nested) == 0
    return (
        0.0 if constant else spearmanr(nested, np.abs(margin)).statistic,
        spearmanr(-disagreement(labels), np.abs(margin)).statistic,
    )


def _cells(found: list[tuple[float, float, float]]) -> list[str]:
    return [
        "-" if np.isnan(column).any() else f"{np.mean(column):.2f} ({np.min(column):.2f})"
        for column in np.array(found).T
    ]


def estimated_labels(n_trials: int = 20) -> Table:
    rows = []
    others = {"one always right": (1, 0), "one always right, one always wrong": (1, 1), "nobody": (0, 0)}
    for name, besides in others.items():
        seeds = np.random.SeedSequence(0).spawn(n_trials)
        found = np.mean([_label_trial(*besides, np.random.default_rng(seed)) for seed in seeds], axis=0)
        rows.append([name, *(f"{value:.2f}" for value in found)])
    columns = ("besides the ten", "majority right", "estimated label right", "accuracy, learnt from the majority",
               "from the estimated labels")  # fmt: skip
    return columns, rows, f"Means of {n_trials} trials."


def _label_trial(experts: int, adversaries: int, rng: np.random.Generator) -> tuple[float, float, float, float]:
    truth = np.tile([-1, 1], 600)
    X = rng.normal(size=(1200, 10)) + 0.5 * truth[:, np.newaxis]
    learn, test = slice(0, 600), slice(600, 1200)
    labels = simulate_annotators(
        X[learn], truth[learn], 10, clarity=1.0, experts=experts, adversaries=adversaries, random_state=rng
    )
    estimated = EasyFirstPerceptron("margin", average=True).fit(X[learn], labels)
    order = np.argsort(-estimated.margins_, kind="stable")
    majority = EasyFirstPerceptron("given", average=True).fit(X[learn], labels, curriculum=order)
    return (
        float((majority.consensus_ == truth[learn]).mean()),
        float((estimated.consensus_ == truth[learn]).mean()),
        majority.score(X[test], truth[test]),
        estimated.score(X[test], truth[test]),
    )


def peak() -> float:
    """Peak memory of this process in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# What is run, and the number of examples or trials of a quick version.
PARTS = {perceptron: 1000, balls: 500, alignment: 1000, recovery: 2, estimated_labels: 2}


PLACES = {part.__name__: Place("docs/theory.md", f"theory {part.__name__}") for part in PARTS}


def _quietly(part: Callable[..., Table], *size: int) -> Table:
    warnings.simplefilter("ignore")  # scikit-learn's note that one pass is not convergence
    return part(*size)


def main() -> None:
    options = parser(__doc__, PLACES).parse_args()
    run = Run(options, [PLACES[name] for name in options.parts])
    for part, quick in PARTS.items():
        if part.__name__ not in options.parts:
            continue
        with multiprocessing.get_context("spawn").Pool(1) as alone:
            columns, rows, note = alone.apply(_quietly, (part, *((quick,) if options.quick else ())))
        run.table(PLACES[part.__name__], columns, rows, note)


if __name__ == "__main__":
    main()
