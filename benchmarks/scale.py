"""How time and memory grow with examples, features, annotators and labels per example; and how long peers take.

    python benchmarks/scale.py growth      ours alone, one size varied at a time
    python benchmarks/scale.py peers       the same labels and features for all, up to a limit of seconds each

Every fit has a process of its own and one thread; CPU seconds of the fit alone. The exponent is the slope of the
logarithm of the seconds over the three largest sizes: 1 is in proportion to the size. Memory is the most that the fit
took beside the data: features as double precision, and labels.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from argparse import Namespace
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from contest import Answers, Clock, Task
from crowds import judge, peers_python, run_method
from ours import crowd_labels
from tables import Place, Run, parser

from crowdwise import CrowdLogisticClassifier, CrowdRidgeClassifier, aggregate

GROWTH, PEERS = Place("docs/evidence/speed.md", "scale growth"), Place("docs/evidence/speed.md", "scale peers")
FITS = {
    "`aggregate`": lambda X, labels: aggregate(labels),
    "`CrowdRidgeClassifier`": lambda X, labels: CrowdRidgeClassifier().fit(X, labels),
    "`CrowdLogisticClassifier`": lambda X, labels: CrowdLogisticClassifier().fit(X, labels),
}
OURS = ("crowdwise aggregate", "crowdwise ridge", "crowdwise ridge 0", "crowdwise default")
OTHERS = ("crowd-kit Dawid-Skene", "snorkel LabelModel", "cleanlab CROWDLAB", "scikit-activeml Raykar")
LABELS_ONLY = {"crowdwise aggregate", "crowd-kit Dawid-Skene", "snorkel LabelModel"}
# The first fit of a process also pays for its memory: the median of three, the same for all.
N_FITS = 3
# What the others are compared with: the quickest of ours that chooses its penalty, and what one gets by default.
BESIDE = ("crowdwise ridge 0", "crowdwise default")
TITLES = {
    "crowdwise aggregate": "`aggregate(labels)`",
    "crowdwise ridge": "`CrowdRidgeClassifier()`",
    "crowdwise ridge 0": "`CrowdRidgeClassifierCV((0.0,))`",
    "crowdwise default": "**`CrowdLogisticClassifier()`**",
}


@dataclass(frozen=True)
class Size:
    """Of a crowd; labels are of two classes."""

    examples: int = 100_000
    features: int = 50
    annotators: int = 200
    labels: int = 5

    @property
    def n_bytes(self) -> int:
        """Features in double precision; per label a class, an annotator and an example as they are kept."""
        return self.examples * (8 * self.features + 8 + 5 * self.labels)


VARIED: dict[str, tuple[Size, ...]] = {
    "examples": tuple(Size(examples=n) for n in (10_000, 100_000, 300_000, 1_000_000, 3_000_000)),
    "features": tuple(Size(examples=30_000, features=n) for n in (10, 100, 300, 1_000)),
    "annotators": tuple(Size(annotators=n) for n in (10, 100, 1_000, 10_000)),
    "labels": tuple(Size(labels=n) for n in (2, 5, 20, 100)),
}
TITLES_OF_SIZES = {"labels": "labels per example"}
COMPARED = (1_000, 10_000, 100_000, 1_000_000)


def crowd(size: Size, seed: int = 0) -> tuple[np.ndarray, np.ndarray, Answers]:
    """Features, truth drawn from a logistic model of them, labels by annotators who are right in 55 to 90 %."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((size.examples, size.features))
    scores = X @ (rng.standard_normal(size.features) * 3 / np.sqrt(size.features))
    truth = (rng.random(size.examples) < 1 / (1 + np.exp(-scores))).astype(np.int64)
    right = rng.uniform(0.55, 0.9, size.annotators)
    # Random steps around the circle of annotators: never the same one twice.
    steps = rng.integers(1, size.annotators // size.labels + 1, (size.examples, size.labels))
    first = rng.integers(0, size.annotators, (size.examples, 1))
    annotator = np.sort((first + steps.cumsum(axis=1)) % size.annotators, axis=1)
    is_right = rng.random(annotator.shape) < right[annotator]
    value = np.where(is_right, truth[:, np.newaxis], 1 - truth[:, np.newaxis])
    example = np.repeat(np.arange(size.examples), size.labels)
    return X, truth, Answers(example, annotator.ravel(), value.ravel(), size.examples, size.annotators, 2)


# ---------------------------------------------------------------------- growth


def one_fit(name: str, size: Size) -> tuple[float, float]:
    """CPU seconds, and megabytes beside the data."""
    X, _, answers = crowd(size)
    labels = crowd_labels(answers)
    del answers
    before = reset_peak()
    clock = Clock()
    FITS[name](X, labels)
    return clock.read()[1], memory("VmHWM") - before


def reset_peak() -> float:
    """Forget the most memory that there was so far; what there is now, in megabytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return memory("VmRSS")


def memory(name: str) -> float:
    """What Linux says of this process, in megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:"))


def in_new_process(name: str, size: Size) -> tuple[float, float]:
    """The same in a fresh process with one thread."""
    code = f"import scale; print(*scale.one_fit({name!r}, scale.{size!r}))"
    variables = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, env=variables,
        cwd=Path(__file__).parent,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"{name} at {size} failed:\n{done.stderr}")
    seconds, megabytes = map(float, done.stdout.split())
    return seconds, megabytes


def growth(run: Run, options: Namespace) -> None:
    """One size after the other, all models."""
    rows = []
    for varied, sizes in VARIED.items():
        if options.quick:
            sizes = tuple(replace(size, examples=1_000, features=5, annotators=20, labels=2) for size in sizes[:2])
            sizes = (sizes[0], replace(sizes[1], **{varied: 3 * getattr(sizes[1], varied)}))
        for name in FITS:
            if varied == "features" and name == "`aggregate`":
                continue
            found = [in_new_process(name, size) for size in sizes]
            at = [getattr(size, varied) for size in sizes]
            exponent = np.polyfit(np.log(at[-3:]), np.log([seconds for seconds, _ in found[-3:]]), 1)[0]
            extra = [100 * megabytes * 2**20 / size.n_bytes for (_, megabytes), size in zip(found, sizes, strict=True)]
            rows.append((
                f"{TITLES_OF_SIZES.get(varied, varied)}: {', '.join(f'{n:,}' for n in at)}", name,
                ", ".join(f"{seconds:.2g}" for seconds, _ in found), f"{exponent:.2f}", f"{extra[-1]:.0f} %",
            ))  # fmt: skip
            print(*rows[-1], file=sys.stderr)
    columns = ("what grows", "model", "CPU seconds", "exponent", "extra memory, of the data, at the last")
    rest = Size()
    note = (
        f"The rest is {rest.examples:,} examples (30,000 where features grow), {rest.features} features, "
        f"{rest.labels} labels per example of {rest.annotators} annotators."
    )
    run.table(GROWTH, columns, rows, note)


# ---------------------------------------------------------------------- peers


def peers(run: Run, options: Namespace) -> None:
    """Everyone on the same crowds; a method that did not finish one is not tried on larger ones."""
    os.environ["OMP_NUM_THREADS"] = "1"
    methods = dict.fromkeys(OURS, ("ours", sys.executable))
    if not options.quick:
        python = peers_python(options.peers_env)
        methods |= dict.fromkeys(OTHERS, ("peers", python))
    rows, gave_up = [], set[str]()
    for n_examples in (300, 1_000) if options.quick else COMPARED:
        X, truth, answers = crowd(Size(n_examples, annotators=50))
        with tempfile.TemporaryDirectory() as directory:
            tasks = {False: Path(directory) / "task.npz", True: Path(directory) / "labels.npz"}
            Task(answers, X, []).save(tasks[False])
            Task(answers, None, []).save(tasks[True])
            found = {
                name: judge(run_method(*method, name, tasks[name in LABELS_ONLY], N_FITS, options.limit), truth, [])
                for name, method in methods.items()
                if name not in gave_up
            }
        for name, row in found.items():
            seconds, right = f"{row.cpu_seconds:.2g}", f"{row.consensus:.3f}"
            ratios = [f"{row.cpu_seconds / found[ours].cpu_seconds:.1f}" for ours in BESIDE]
            if np.isnan(row.consensus):
                gave_up.add(name)
                seconds, right, ratios = row.note, "", ["" for _ in BESIDE]
            rows.append((f"{n_examples:,}", TITLES.get(name, name), seconds, right, *ratios))
            print(*rows[-1], file=sys.stderr, flush=True)
    columns = ("examples", "method", "CPU seconds", "consensus right", *(f"times {TITLES[ours]}" for ours in BESIDE))
    note = (
        f"50 features, five labels per example of 50 annotators, two classes; medians of {N_FITS} fits in one process, "
        "all of which have to end within the limit. CROWDLAB has the classifier in it that it "
        "needs: logistic regression out of five folds, its penalty chosen by cross-validation, as ours choose theirs."
    )
    run.table(PEERS, columns, rows, note)


PARTS = {"growth": growth, "peers": peers}


def main() -> None:
    made = parser(__doc__, PARTS)
    cache = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "crowdwise" / "peers"
    made.add_argument("--peers-env", type=Path, default=cache, help="where the peers are installed: %(default)s")
    made.add_argument("--limit", type=float, default=600, help="seconds that a peer may take")
    options = made.parse_args()
    run = Run(options, [place for name, place in (("growth", GROWTH), ("peers", PEERS)) if name in options.parts])
    for part in options.parts:
        PARTS[part](run, options)


if __name__ == "__main__":
    main()
