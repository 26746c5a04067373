"""Measure the theory modules: speed of the perceptron and of the ball radii, and how well estimates find the truth.

    python benchmarks/theory.py [perceptron | balls | alignment | recovery | estimated_labels] ... [--quick]

Each part runs in a process of its own, so that the peak memory is its own.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr
from sklearn.linear_model import Perceptron, RidgeClassifier
from tables import Run, parser
from threadpoolctl import threadpool_limits

from crowdwise import EasyFirstPerceptron, disagreement, simulate_annotators
from crowdwise.theory import (
    alignment_expertise,
    ball_radii,
    feed,
    nested_ball_margins,
    simulate_ball_annotators,
)


def seconds(call: Callable[[], Any], repeats: int = 3) -> float:
    """The shortest of some runs."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def plain_loop(signed: np.ndarray) -> list[int]:
    weights, mistakes = np.zeros(signed.shape[1]), []
    for i, row in enumerate(signed):
        if row @ weights <= 0:
            weights += row
            mistakes.append(i)
    return mistakes


def perceptron(n_examples: int = 100_000) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_examples, 100))
    score = X @ rng.normal(size=100) / 10
    print(f"{n_examples:,} x 100, one pass in seconds; last column: fit with 5 epochs, all checks and regions included")
    print(f"{'mistakes':>9} {'feed':>7} {'loop':>7} {'loop/feed':>9} {'scikit-learn':>12} {'5 epochs':>9}")
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
        print(f"{len(mistakes):9,} {fast:7.3f} {slow:7.3f} {slow / fast:9.1f} {theirs:12.3f} {whole:9.2f}")


def balls(n_examples: int = 20_000) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_examples, 20))
    labels = simulate_annotators(X, X[:, 0] > 0, 20, random_state=0)
    before = peak()
    taken = seconds(lambda: ball_radii(X, labels, random_state=0), 1)
    print(f"ball_radii, {n_examples:,} examples x 20 features, 20 annotators: {taken:.1f} s, peak {peak():.0f} MiB")
    print(f"(of which {before:.0f} MiB for data and libraries)")


def alignment(n_examples: int = 100_000) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_examples, 100))
    labels = simulate_annotators(X, X[:, 0] > 0, 20, clarity=5.0, random_state=0)
    exact = alignment_expertise(X, labels)
    taken = seconds(lambda: alignment_expertise(X, labels))
    print(f"alignment_expertise, {n_examples:,} x 100, 20 annotators: exact {taken:.2f} s", end="")
    start = time.perf_counter()
    descent = alignment_expertise(X, labels, method="stochastic", random_state=0)
    print(f", stochastic {time.perf_counter() - start:.2f} s, largest difference {np.abs(exact - descent).max():.3f}")
    print(f"peak {peak():.0f} MiB; the kernel matrix alone would have {8 * len(X) ** 2 / 2**30:.0f} GiB")


def recovery(n_trials: int = 10) -> None:
    print(f"rank correlations with the truth, mean (smallest) of {n_trials} trials, 600 examples")
    print(f"{'annotators':34} {'radii':>14} {'nested balls':>16} {'disagreement':>16}")
    for n_features in (2, 5, 10):
        found = [_ball_trial(n_features, seed) for seed in np.random.SeedSequence(0).spawn(n_trials)]
        _print_trials(f"ball majority, {n_features} features", found)
    for clarity in (1.0, 2.0, 5.0):
        found = [_paper_trial(clarity, seed) for seed in np.random.SeedSequence(0).spawn(n_trials)]
        _print_trials(f"the paper's simulator, p = {clarity:g}", found)


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


def _print_trials(name: str, found: list[tuple[float, float, float]]) -> None:
    cells = [
        "-" if np.isnan(column).any() else f"{np.mean(column):.2f} ({np.min(column):.2f})"
        for column in np.array(found).T
    ]
    print(f"{name:34} {cells[0]:>14} {cells[1]:>16} {cells[2]:>16}")


def estimated_labels(n_trials: int = 20) -> None:
    print(f"learning from the majority and from the estimated labels, p = 1, means of {n_trials} trials: 600 examples,")
    print("10 simulated annotators and others; the same order by estimated margins, 10 epochs, averaged weights")
    print(f"{'others':34} {'right: majority':>16} {'estimated':>10} {'test accuracy: majority':>24} {'estimated':>10}")
    for name, others in (("one expert", (1, 0)), ("one expert, one adversary", (1, 1)), ("none", (0, 0))):
        seeds = np.random.SeedSequence(0).spawn(n_trials)
        found = np.mean([_label_trial(*others, np.random.default_rng(seed)) for seed in seeds], axis=0)
        print(f"{name:34} {found[0]:16.2f} {found[1]:10.2f} {found[2]:24.2f} {found[3]:10.2f}")


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


def _run(part: Callable[..., None], *size: int) -> None:
    warnings.simplefilter("ignore")  # scikit-learn's note that one pass is not convergence
    part(*size)


if __name__ == "__main__":
    options = parser(__doc__, [part.__name__ for part in PARTS], writes=False).parse_args()
    Run(options)
    for part, quick in PARTS.items():
        if part.__name__ not in options.parts:
            continue
        size = (quick,) if options.quick else ()
        process = multiprocessing.get_context("spawn").Process(target=_run, args=(part, *size))
        process.start()
        process.join()
        if process.exitcode:
            sys.exit(process.exitcode)
        print()
