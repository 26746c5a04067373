"""A fit on a file that need not fit into memory, against reading the file and multiplying it.

python benchmarks/out_of_core.py                       20,000,000 x 50 in single precision, 10 labels each: 4.2 GB
python benchmarks/out_of_core.py --examples 2000000    fewer
python benchmarks/out_of_core.py --write               also written into its page

Files go to the folder that TMPDIR names, and are removed afterwards.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from tables import Place, Run, parser
from timing import medians_in_turn, peak_megabytes

from crowdwise import CrowdRidgeClassifier, read_blocks

PLACE = Place("docs/guide/scaling.md", "out_of_core")
COLUMNS = ("examples x features", "file", "read and multiply", "`fit(read_blocks(...))`", "ratio", "ratio of CPU",
           "peak memory")  # fmt: skip
N_FEATURES, N_ANNOTATORS = 50, 10
# Rows that are written, or read and multiplied, at a time.
STEP = 2**16


def write(folder: Path, n_examples: int) -> tuple[Path, Path]:
    """Features and complete labels of annotators from good to bad, as .npy files."""
    rng, paths = np.random.default_rng(0), (folder / "X.npy", folder / "y.npy")
    shapes = ((n_examples, N_FEATURES), np.float32), ((n_examples, N_ANNOTATORS), np.int8)
    files = [path.open("wb") for path in paths]
    for file, (shape, dtype) in zip(files, shapes, strict=True):
        header = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
    for start in range(0, n_examples, STEP):
        X = rng.standard_normal((min(STEP, n_examples - start), N_FEATURES), dtype=np.float32)
        truth = X[:, 0] + X[:, 1] + rng.standard_normal(len(X)) > 0
        flips = rng.random((len(X), N_ANNOTATORS), dtype=np.float32) < np.linspace(0.05, 0.45, N_ANNOTATORS)
        X.tofile(files[0])
        (truth[:, np.newaxis] ^ flips).astype(np.int8).tofile(files[1])
    for file in files:
        file.close()
    return paths


def read_and_multiply(path: Path) -> np.ndarray:
    """X.T @ X in double precision, by blocks: the least that any fit has to do."""
    X = np.load(path, mmap_mode="r")
    gram, row = np.zeros((X.shape[1], X.shape[1])), X.shape[1] * X.itemsize
    for start in range(0, len(X), STEP):
        n_rows = min(STEP, len(X) - start)
        block = np.fromfile(path, X.dtype, n_rows * X.shape[1], offset=X.offset + start * row).reshape(n_rows, -1)
        wide = block.astype(np.float64)
        gram += wide.T @ wide
    return gram


def row(folder: Path, n_examples: int, repeats: int) -> list[str]:
    """What the limit and the fit take."""
    X, y = write(folder, n_examples)
    calls = [lambda: read_and_multiply(X), lambda: CrowdRidgeClassifier().fit(read_blocks(X, y))]
    (limit, limit_cpu), (ours, ours_cpu) = medians_in_turn(calls, repeats)
    size = (X.stat().st_size + y.stat().st_size) / 1e9
    return [f"{n_examples:,} x {N_FEATURES}", f"{size:.1f} GB", f"{limit:.1f} s", f"{ours:.1f} s",
            f"{ours / limit:.2f}", f"{ours_cpu / limit_cpu:.2f}", f"{peak_megabytes():.0f} MiB"]  # fmt: skip


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--examples", type=int, default=20_000_000)
    arguments.add_argument("--repeats", type=int, default=5)
    options = arguments.parse_args()
    run = Run(options, [PLACE])
    n_examples, repeats = (20_000, 1) if options.quick else (options.examples, options.repeats)
    with tempfile.TemporaryDirectory() as folder:
        note = f"{N_ANNOTATORS} labels per example, features in single precision; medians of runs in turn."
        run.table(PLACE, COLUMNS, [row(Path(folder), n_examples, repeats)], note)


if __name__ == "__main__":
    main()
