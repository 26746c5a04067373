"""Votes, Dawid and Skene of crowd-kit, CROWDLAB of cleanlab, and ours: one table over all public sets.

python benchmarks/beside.py --write       all sets; the peers are installed once, in an environment of their own
python benchmarks/beside.py --quick       a simulated crowd, without the peers

Sets are those of `trust_sets.py`: crowds of people, and panels of language models, whose truth is people's majority.
CROWDLAB needs a classifier's probabilities, so it takes part where there are features. Per method: mean accuracy (a
tied vote counts by chance), the lowest difference to the votes of any set, mean calibration error (ten bins of equal
size), and CPU seconds of all fits together, one thread. A method that gives no answer for an example is wrong on it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from calibration import calibration_error
from contest import Task
from crowd_sets import WITH_FEATURES, load
from crowds import answers_of, peers_python, run_method
from tables import Place, Run, parser
from trust_sets import FAMILIES, Crowd, all_rows, draws

PLACES = {part: Place("README.md", f"beside {part}") for part in ("labels", "features")}
VOTES, DEFAULT = "crowdwise majority", "crowdwise default"
TITLES = {
    VOTES: "majority vote",
    "crowd-kit Dawid-Skene": "Dawid-Skene (crowd-kit)",
    "cleanlab CROWDLAB": "CROWDLAB (cleanlab)",
    "crowdwise aggregate": "**`aggregate(labels)`**",
    DEFAULT: "**`CrowdLogisticClassifier()`**",
}
METHODS = {
    "labels": (VOTES, "crowd-kit Dawid-Skene", "crowdwise aggregate"),
    "features": (VOTES, "crowd-kit Dawid-Skene", "cleanlab CROWDLAB", "crowdwise aggregate", DEFAULT),
}
COLUMNS = ("accuracy", "worst − votes", "calibration error", "seconds")


@dataclass
class Found:
    """What a method reached, a number per set."""

    accuracy: list[float] = field(default_factory=list)
    error: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


def right_by_vote(crowd: Crowd) -> np.ndarray:
    """How probably a vote whose ties are drawn is the truth, per example."""
    labels = crowd.labels
    tally = np.zeros((labels.n_examples, crowd.n_classes + 1))  # the last class is one that nobody gave
    np.add.at(tally, (labels.example_index, labels.values), 1.0)
    top = tally == tally.max(axis=1, keepdims=True)
    return (top / top.sum(axis=1, keepdims=True))[np.arange(len(crowd.truth)), crowd.truth]


def crowds_of(part: str, quick: bool) -> list[tuple[str, Crowd]]:
    """Every public set; with features, their labels and truth as in `crowd_sets`."""
    if quick:
        kind = "labels" if part == "labels" else "features"
        return [("simulated", next(iter(FAMILIES[kind].values()))(np.random.default_rng(0)))]
    if part == "labels":
        rows = [row for row in all_rows() if row.kind == "labels" and row.group == "real"]
        return [(row.name, next(draws(row, 1))) for row in rows]
    loaded = [(name, load(name)) for name in WITH_FEATURES]
    return [(name, Crowd(data.labels, data.truth, data.X)) for name, data in loaded]


def measure(found: dict[str, Found], crowd: Crowd, pythons: dict[str, str], limit: float) -> None:
    """All methods on one set."""
    known = crowd.known
    with tempfile.TemporaryDirectory() as directory:
        task = Path(directory) / "task.npz"
        Task(answers_of(crowd.labels), crowd.X, []).save(task)
        for method, so_far in found.items():
            program = "ours" if method.startswith("crowdwise") else "peers"
            if program not in pythons:
                continue
            outcome = run_method(program, pythons[program], method, task, 1, limit)
            if not outcome.parts:
                raise SystemExit(f"{method}: {outcome.note}")
            part = outcome.parts[0]
            right = right_by_vote(crowd) if method == VOTES else part["consensus"] == crowd.truth
            so_far.accuracy.append(float(right[known].mean()))
            so_far.error.append(calibration_error(part["confidence"][known], right[known]))
            so_far.seconds.append(float(part["cpu_seconds"]))


def table(run: Run, part: str, pythons: dict[str, str], limit: float) -> None:
    """A row per method."""
    found = {method: Found() for method in METHODS[part]}
    crowds = crowds_of(part, run.quick)
    for name, crowd in crowds:
        measure(found, crowd, pythons, limit)
        print(name, *(f"{each.accuracy[-1]:.3f}" for each in found.values() if each.accuracy), flush=True)
    votes = np.array(found[VOTES].accuracy)
    rows = []
    for method, each in found.items():
        if each.accuracy:
            worst = "" if method == VOTES else f"{(np.array(each.accuracy) - votes).min():+.3f}"
            cells = f"{np.mean(each.accuracy):.3f}", worst, f"{np.mean(each.error):.3f}", f"{sum(each.seconds):.2g}"
            rows.append([TITLES[method], *cells])
    what = "labels alone" if part == "labels" else "labels and features"
    note = f"{len(crowds)} public sets: mean accuracy, worst difference, mean calibration error, CPU seconds of all."
    run.table(PLACES[part], (what, *COLUMNS), rows, note)


def main() -> None:
    arguments = parser(__doc__, PLACES)
    cache = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "crowdwise" / "peers"
    arguments.add_argument("--peers-env", type=Path, default=cache, help="where the peers are installed: %(default)s")
    arguments.add_argument("--limit", type=float, default=600, help="seconds that a method may take on a set")
    options = arguments.parse_args()
    run = Run(options, [PLACES[part] for part in options.parts])
    os.environ["OMP_NUM_THREADS"] = "1"  # of the processes that fit
    pythons = {"ours": sys.executable}
    if not options.quick:
        pythons["peers"] = peers_python(options.peers_env)
    for part in options.parts:
        table(run, part, pythons, options.limit)


if __name__ == "__main__":
    main()
