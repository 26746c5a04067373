"""How long peers take on the same labels and features, up to a limit of seconds each.

    python benchmarks/scale.py --limit 200

Every fit has a process of its own and one thread; CPU seconds of the fit alone.
"""

from __future__ import annotations

import os
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from contest import Answers, Task
from crowds import judge, peers_python, run_method
from tables import Place, Run, parser

PLACE = Place("docs/evidence/speed.md", "scale")
OURS = ("crowdwise aggregate", "crowdwise ridge", "crowdwise ridge 0", "crowdwise default")
OTHERS = ("crowd-kit Dawid-Skene", "snorkel LabelModel", "cleanlab CROWDLAB", "scikit-activeml Raykar")
LABELS_ONLY = {"crowdwise aggregate", "crowd-kit Dawid-Skene", "snorkel LabelModel"}
# The first fit of a process also pays for its memory: the median of three, the same for all.
N_FITS = 3
DEFAULT = "crowdwise default"  # what the others are compared with
TITLES = {
    "crowdwise aggregate": "`aggregate(labels)`",
    "crowdwise ridge": "`CrowdRidgeClassifier()`",
    "crowdwise ridge 0": "`CrowdRidgeClassifierCV((0.0,))`",
    "crowdwise default": "**`CrowdLogisticClassifier()`**",
}


N_EXAMPLES = 100_000
N_FEATURES, N_ANNOTATORS, N_LABELS = 50, 50, 5


def crowd(n_examples: int) -> tuple[np.ndarray, np.ndarray, Answers]:
    """Features, truth drawn from a logistic model of them, labels by annotators who are right in 55 to 90 %."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_examples, N_FEATURES))
    scores = X @ (rng.standard_normal(N_FEATURES) * 3 / np.sqrt(N_FEATURES))
    truth = (rng.random(n_examples) < 1 / (1 + np.exp(-scores))).astype(np.int64)
    right = rng.uniform(0.55, 0.9, N_ANNOTATORS)
    # Random steps around the circle of annotators: never the same one twice.
    steps = rng.integers(1, N_ANNOTATORS // N_LABELS + 1, (n_examples, N_LABELS))
    first = rng.integers(0, N_ANNOTATORS, (n_examples, 1))
    annotator = np.sort((first + steps.cumsum(axis=1)) % N_ANNOTATORS, axis=1)
    is_right = rng.random(annotator.shape) < right[annotator]
    value = np.where(is_right, truth[:, np.newaxis], 1 - truth[:, np.newaxis])
    example = np.repeat(np.arange(n_examples), N_LABELS)
    return X, truth, Answers(example, annotator.ravel(), value.ravel(), n_examples, N_ANNOTATORS, 2)


def rows(options: Namespace) -> Iterator[tuple[str, ...]]:
    """Everyone on the same crowd."""
    os.environ["OMP_NUM_THREADS"] = "1"
    methods = dict.fromkeys(OURS, ("ours", sys.executable))
    if not options.quick:
        python = peers_python(options.peers_env)
        methods |= dict.fromkeys(OTHERS, ("peers", python))
    X, truth, answers = crowd(1_000 if options.quick else N_EXAMPLES)
    with tempfile.TemporaryDirectory() as directory:
        tasks = {False: Path(directory) / "task.npz", True: Path(directory) / "labels.npz"}
        Task(answers, X, []).save(tasks[False])
        Task(answers, None, []).save(tasks[True])
        found = {
            name: judge(run_method(*method, name, tasks[name in LABELS_ONLY], N_FITS, options.limit), truth, [])
            for name, method in methods.items()
        }
    for name, row in found.items():
        ratio = row.cpu_seconds / found[DEFAULT].cpu_seconds
        cells = f"{row.cpu_seconds:.2g}", f"{row.consensus:.3f}", f"{ratio:.1f}"
        yield TITLES.get(name, name), *((row.note, "", "") if np.isnan(row.consensus) else cells)


def main() -> None:
    made = parser(__doc__)
    cache = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "crowdwise" / "peers"
    made.add_argument("--peers-env", type=Path, default=cache, help="where the peers are installed: %(default)s")
    made.add_argument("--limit", type=float, default=600, help="seconds that a peer may take")
    options = made.parse_args()
    columns = ("method", "CPU seconds", "consensus right", f"times {TITLES[DEFAULT]}")
    note = (
        f"{N_FEATURES} features, {N_LABELS} labels per example of {N_ANNOTATORS} annotators; medians of {N_FITS} fits."
    )
    Run(options, [PLACE]).table(PLACE, columns, list(rows(options)), note)


if __name__ == "__main__":
    main()
