"""How near a fit comes to the limit: one matrix product X.T @ X of the same features.

python benchmarks/limit.py                      1,000,000 x 100, then the growth with the number of examples
python benchmarks/limit.py --small              100,000 x 100 only
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from tables import Run, parser
from timing import median_seconds, peak_megabytes

from crowdwise import CrowdLabels, CrowdRidgeClassifier, CrowdRidgeClassifierCV

STEEPNESSES = (0.0, 0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)


def crowd_of(X: np.ndarray, rng: np.random.Generator, n_annotators: int = 12) -> CrowdLabels:
    """Complete labels of annotators from good to bad."""
    truth = X[:, 0] + X[:, 1] + rng.normal(size=len(X)) > 0
    flips = rng.random((len(X), n_annotators), dtype=np.float32) < np.linspace(0.05, 0.45, n_annotators)
    return CrowdLabels.from_matrix((truth[:, np.newaxis] ^ flips).astype(np.int8))


def measure(X: np.ndarray, labels: CrowdLabels, repeats: int) -> dict[str, float]:
    return {
        "X.T @ X": median_seconds(lambda: X.T @ X, repeats),
        "CrowdRidgeClassifier.fit": median_seconds(lambda: CrowdRidgeClassifier().fit(X, labels), repeats),
        "CrowdRidgeClassifierCV.fit": median_seconds(
            lambda: CrowdRidgeClassifierCV(STEEPNESSES, cv=10).fit(X, labels), repeats
        ),
    }


def report(X: np.ndarray, labels: CrowdLabels, repeats: int) -> None:
    before = peak_megabytes()
    times = measure(X, labels, repeats)
    extra = peak_megabytes() - before
    limit = times["X.T @ X"]
    print(f"\n{len(X):,} x {X.shape[1]} features, {labels.n_annotators} annotators, medians of {repeats}")
    for name, seconds in times.items():
        print(f"  {name:<28}{seconds:8.3f} s   {seconds / limit:5.2f} x the limit")
    print(f"  extra memory {extra:.0f} MB, {100 * extra * 2**20 / X.nbytes:.0f} % of X; the tuned fit has "
          f"{len(STEEPNESSES)} steepnesses x 17 l2 x 10 folds")  # fmt: skip


def features(n_examples: int, n_features: int, rng: np.random.Generator, folder: Path | None = None) -> np.ndarray:
    """Random features, on disk if a folder is given."""
    if folder is None:
        return rng.standard_normal((n_examples, n_features))
    X = np.lib.format.open_memmap(folder / "X.npy", mode="w+", dtype=np.float64, shape=(n_examples, n_features))
    for start in range(0, n_examples, 100_000):
        X[start : start + 100_000] = rng.standard_normal((min(100_000, n_examples - start), n_features))
    X.flush()
    return np.load(folder / "X.npy", mmap_mode="r")


def main() -> None:
    arguments = parser(__doc__, writes=False)
    arguments.add_argument("--small", action="store_true", help="100,000 x 100 only")
    arguments.add_argument("--repeats", type=int, default=7)
    options = arguments.parse_args()
    rng = np.random.default_rng(0)
    Run(options)
    X = features(10_000 if options.quick else 100_000, 100, rng)
    report(X, crowd_of(X, rng), 1 if options.quick else options.repeats)
    if options.quick or options.small:
        return
    X = features(1_000_000, 100, rng)
    report(X, crowd_of(X, rng), options.repeats)
    for n_examples in (100_000, 1_000_000, 10_000_000):
        with tempfile.TemporaryDirectory() as folder:
            X = features(n_examples, 20, rng, Path(folder))
            report(X, crowd_of(X, rng), 3)


if __name__ == "__main__":
    main()
