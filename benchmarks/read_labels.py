"""How long a large file of labels takes to read, and how much memory: five labels per example, a thousand annotators.

python benchmarks/read_labels.py                10,000,000 labels, as CSV with plain ids and with ids of text
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
from tables import Run, parser
from timing import peak_megabytes

from crowdwise import read_labels

N_ANNOTATORS = 1_000
LABELS_PER_EXAMPLE = 5
CLASSES = np.array(["no", "yes"])


def write_labels(path: Path, n_examples: int, rng: np.random.Generator, prefix: str) -> None:
    """A file with the labels of every example together, by different annotators."""
    with path.open("w", encoding="utf-8") as file:
        file.write("task,worker,label\n")
        for start in range(0, n_examples, 100_000):
            size = min(100_000, n_examples - start)
            first = rng.integers(N_ANNOTATORS, size=(size, 1))
            annotators = (first + 7 * np.arange(LABELS_PER_EXAMPLE)) % N_ANNOTATORS
            labels = CLASSES[rng.integers(2, size=annotators.shape)]
            examples = np.repeat(np.arange(start, start + size), LABELS_PER_EXAMPLE).tolist()
            rows = zip(examples, annotators.ravel().tolist(), labels.ravel().tolist(), strict=True)
            file.writelines(f"{prefix}{example},w{annotator},{label}\n" for example, annotator, label in rows)


def report(path: Path, what: str) -> None:
    wall, cpu = time.perf_counter(), time.process_time()
    labels = read_labels(path)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(
        f"{what}: {path.stat().st_size / 2**20:,.0f} MB, {labels.n_labels:,} labels of {labels.n_examples:,} examples"
    )
    print(f"  {wall:.1f} s ({cpu:.1f} s of the processor), peak memory of the process {peak_megabytes():,.0f} MB")


def main() -> None:
    options = parser(__doc__, writes=False).parse_args()
    Run(options)
    n_examples = 2_000 if options.quick else 2_000_000
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "labels.csv"
        for prefix, what in (("", "numbers as ids"), ("tweet-", "text as ids")):
            write_labels(path, n_examples, rng, prefix)
            report(path, what)


if __name__ == "__main__":
    main()
