"""How near a fit comes to the limit: one matrix product X.T @ X of the same features.

python benchmarks/limit.py                      1,000,000 x 100, and 10,000,000 x 20 on disk
python benchmarks/limit.py --small              100,000 x 100 only
python benchmarks/limit.py --write              also written into its page
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tables import Place, Run, parser
from timing import medians_in_turn, peak_megabytes

from crowdwise import CrowdLabels, CrowdRidgeClassifier, CrowdRidgeClassifierCV

PLACE = Place("docs/evidence/speed.md", "limit")
COLUMNS = ("examples x features", "`X.T @ X`", "`CrowdRidgeClassifier`", "ratio", "`CrowdRidgeClassifierCV`", "ratio",
           "extra memory, of X")  # fmt: skip
STEEPNESSES = (0.0, 0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)


def crowd_of(X: np.ndarray, rng: np.random.Generator, n_annotators: int = 12) -> CrowdLabels:
    """Complete labels of annotators from good to bad."""
    truth = X[:, 0] + X[:, 1] + rng.normal(size=len(X)) > 0
    flips = rng.random((len(X), n_annotators), dtype=np.float32) < np.linspace(0.05, 0.45, n_annotators)
    return CrowdLabels.from_matrix((truth[:, np.newaxis] ^ flips).astype(np.int8))


def row(X: np.ndarray, labels: CrowdLabels, repeats: int) -> list[str]:
    """What a size takes, and how often that is what one product takes."""
    before = peak_megabytes()
    calls = (
        lambda: X.T @ X,
        lambda: CrowdRidgeClassifier().fit(X, labels),
        lambda: CrowdRidgeClassifierCV(STEEPNESSES, cv=10).fit(X, labels),
    )
    limit, plain, tuned = (elapsed for elapsed, _ in medians_in_turn(calls, repeats))
    extra = (peak_megabytes() - before) * 2**20 / X.nbytes
    return [f"{len(X):,} x {X.shape[1]}", f"{limit:.3f} s", f"{plain:.2f} s", f"{plain / limit:.1f}",
            f"{tuned:.2f} s", f"{tuned / limit:.1f}", f"{100 * extra:.0f} %"]  # fmt: skip


def features(n_examples: int, n_features: int, rng: np.random.Generator, folder: Path | None = None) -> np.ndarray:
    """Random features, on disk if a folder is given."""
    if folder is None:
        return rng.standard_normal((n_examples, n_features))
    X = np.lib.format.open_memmap(folder / "X.npy", mode="w+", dtype=np.float64, shape=(n_examples, n_features))
    for start in range(0, n_examples, 100_000):
        X[start : start + 100_000] = rng.standard_normal((min(100_000, n_examples - start), n_features))
    X.flush()
    return np.load(folder / "X.npy", mmap_mode="r")


def rows(options: argparse.Namespace) -> Iterator[list[str]]:
    """Sizes in memory, then a larger one on disk."""
    rng = np.random.default_rng(0)
    X = features(10_000 if options.quick else 100_000, 100, rng)
    yield row(X, crowd_of(X, rng), options.repeats)
    if options.quick or options.small:
        return
    X = features(1_000_000, 100, rng)
    yield row(X, crowd_of(X, rng), options.repeats)
    with tempfile.TemporaryDirectory() as folder:
        X = features(10_000_000, 20, rng, Path(folder))
        yield row(X, crowd_of(X, rng), 3)


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--small", action="store_true", help="100,000 x 100 only")
    arguments.add_argument("--repeats", type=int, default=7)
    options = arguments.parse_args()
    options.repeats = 1 if options.quick else options.repeats
    run = Run(options, [PLACE])
    note = f"12 annotators; medians of calls in turn. Tuned: {len(STEEPNESSES)} steepnesses, 17 l2 and 10 folds."
    run.table(PLACE, COLUMNS, list(rows(options)), note)


if __name__ == "__main__":
    main()
