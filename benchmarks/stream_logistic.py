"""The logistic model on data that need not fit into memory, and on streams: what it costs, and how near it is to `fit`.

python benchmarks/stream_logistic.py                             both parts
python benchmarks/stream_logistic.py distance                    partial_fit against fit on everything
python benchmarks/stream_logistic.py blocks                      fit on blocks of a file of 2,000,000 x 50
python benchmarks/stream_logistic.py blocks --examples 20000000  of a larger one: 4.2 GB
python benchmarks/stream_logistic.py --write                     also written into their page

Real crowds are smaller than what a stream keeps as it is. They are streams here because fewer rows are kept.
"""

from __future__ import annotations

import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from crowd_sets import load
from out_of_core import N_ANNOTATORS, N_FEATURES, read_and_multiply, seconds, write
from tables import Place, Run, parser

from crowdwise import CrowdLabels, CrowdLogisticClassifier, read_blocks
from crowdwise.ridge import kept_rows

PAGE = "docs/guide/scaling.md"
DISTANCE, BLOCKS = Place(PAGE, "stream_logistic distance"), Place(PAGE, "stream_logistic blocks")
# Rows kept and rows per batch, of real and of simulated crowds.
FEW = ((1_000, 100), (1_000, 1_000), (4_000, 1_000))
MANY = ((20_000, 1_000), (20_000, 10_000))


def simulated(n_examples: int, n_classes: int) -> tuple[np.ndarray, CrowdLabels, np.ndarray]:
    """Features, five labels each by 30 annotators from bad to good, and the truth."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_examples, N_FEATURES), dtype=np.float32)
    scores = X @ rng.normal(size=(N_FEATURES, n_classes)) * 3 / np.sqrt(N_FEATURES)
    truth = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    who = np.argsort(rng.random((n_examples, 30)), axis=1)[:, :5]
    right = rng.random(who.shape) < rng.uniform(0.4, 0.95, 30)[who]
    matrix = np.full((n_examples, 30), -1, dtype=np.int8)
    np.put_along_axis(matrix, who, np.where(right, truth[:, None], rng.integers(0, n_classes, who.shape)), axis=1)
    return X, CrowdLabels.from_matrix(matrix, missing=-1), truth


@contextmanager
def keeping(n_rows: int) -> Iterator[None]:
    """Streams that keep so many rows."""
    before, kept_rows._MOST_ROWS = kept_rows._MOST_ROWS, n_rows
    try:
        yield
    finally:
        kept_rows._MOST_ROWS = before


def streamed(X: Any, labels: CrowdLabels, n_batch: int) -> CrowdLogisticClassifier:
    """A model after batch upon batch."""
    model = CrowdLogisticClassifier()
    for start in range(0, len(labels), n_batch):
        model.partial_fit(X[start : start + n_batch], labels[start : start + n_batch], batch=start)
    return model


def distances(name: str, X: Any, labels: CrowdLabels, truth: np.ndarray, sizes: Any) -> Iterator[list[str]]:
    """Rows of one crowd: what `fit` gives, and what streams do."""
    order = np.random.default_rng(0).permutation(len(labels))
    X, labels, truth = X[order], labels[order], truth[order]
    known = np.array([value == value and value is not None for value in truth.tolist()])

    def accuracies(model: CrowdLogisticClassifier) -> list[str]:
        said = model.consensus(X, labels).label, model.predict(X)
        return [f"{np.mean(of[known] == truth[known]):.4f}" for of in said]

    whole = CrowdLogisticClassifier().fit(X, labels)
    yield [name, f"{len(labels):,}", "all: `fit`", "-", *accuracies(whole), "-", "-"]
    for n_kept, n_batch in sizes:
        with keeping(n_kept):
            stream = streamed(X, labels, n_batch)
        away = [
            np.abs(one - other).sum(axis=1).mean() / 2
            for one, other in (
                (stream.consensus(X, labels).proba, whole.consensus(X, labels).proba),
                (stream.predict_proba(X), whole.predict_proba(X)),
            )
        ]
        yield [
            name,
            f"{len(labels):,}",
            f"{n_kept:,}",
            f"{n_batch:,}",
            *accuracies(stream),
            *(f"{d:.4f}" for d in away),
        ]


def distance(run: Run) -> None:
    """How far streams are from `fit`."""
    few, many = (((200, 100),), ((300, 200),)) if run.quick else (FEW, MANY)
    rows = []
    for name in ("product",) if run.quick else ("sentiment", "product"):
        data = load(name)
        some = np.arange(len(data.labels))[: 800 if run.quick else None]
        rows += distances(name, data.X[some], data.labels[some], np.asarray(data.truth)[some], few)
    for n_classes in (2, 3):
        rows += distances(
            f"simulated, {n_classes} classes", *simulated(1_000 if run.quick else 200_000, n_classes), many
        )
    columns = ("data", "examples", "rows kept", "rows per batch", "accuracy of consensus", "accuracy of predict",
               "consensus differs by", "predict_proba differs by")  # fmt: skip
    note = "Differences are of probabilities: the mean over examples of half the sum over classes, in random order."
    run.table(DISTANCE, columns, rows, note)


def anonymous_megabytes() -> float:
    """Memory of this process that is not that of a file, on Linux."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon"))


@contextmanager
def peak() -> Iterator[list[float]]:
    """The most anonymous memory while something runs."""
    most, done = [0.0], threading.Event()

    def watch() -> None:
        while not done.wait(0.01):
            most[0] = max(most[0], anonymous_megabytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield most
    finally:
        done.set()
        watcher.join()


def blocks(run: Run, n_examples: int) -> None:
    """What a fit on blocks costs."""
    with tempfile.TemporaryDirectory() as place:
        X, y = write(Path(place), n_examples)
        size = (X.stat().st_size + y.stat().st_size) / 1e9
        limit = seconds(lambda: read_and_multiply(X), 1)[1]
        with peak() as most:
            start, cpu = time.perf_counter(), time.process_time()
            model = CrowdLogisticClassifier().fit(read_blocks(X, y))
            taken, cpu = time.perf_counter() - start, time.process_time() - cpu
    row = [f"{n_examples:,} x {N_FEATURES}", f"{size:.1f} GB", f"{model.n_rounds_}", f"{model.n_passes_}",
           f"{cpu:.1f} s", f"{cpu / model.n_passes_:.2f} s", f"{limit:.2f} s", f"{taken:.0f} s",
           f"{most[0]:.0f} MiB"]  # fmt: skip
    columns = ("examples x features", "file", "rounds", "passes", "CPU", "CPU per pass", "read and multiply once, CPU",
               "elapsed", "peak memory")  # fmt: skip
    note = (
        f"{N_ANNOTATORS} labels per example, features in single precision, default settings. The fit to the sample is "
        "part of the CPU."
    )
    run.table(BLOCKS, columns, [row], note)


def main() -> None:
    arguments = parser(__doc__, ("distance", "blocks"))
    arguments.add_argument("--examples", type=int, default=2_000_000)
    options = arguments.parse_args()
    run = Run(options, [{"distance": DISTANCE, "blocks": BLOCKS}[part] for part in options.parts])
    warnings.simplefilter("ignore")
    if "distance" in options.parts:
        distance(run)
    if "blocks" in options.parts:
        blocks(run, 30_000 if run.quick else options.examples)


if __name__ == "__main__":
    main()
