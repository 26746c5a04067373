"""Ours and the peers side by side on every real crowd: consensus, classifier, seconds.

python benchmarks/crowds.py                       every set and method (ours.py, peers.py); installs the peers once
python benchmarks/crowds.py --sets music rte      some sets
python benchmarks/crowds.py --no-peers            ours alone
python benchmarks/crowds.py --speed               a million examples: aggregate and crowd-kit's Dawid-Skene

Consensus: share of labelled examples whose consensus is the truth. Test: accuracy on unseen examples of the method's
own classifier, or of one and the same logistic regression taught by the method's consensus; the mean of five splits
where the set has no test examples of its own. Seconds: the fit alone, for the consensus; "+" that of the classifier
where it is taught afterwards. CPU seconds are fairer on a busy machine, if OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import venv
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import ours
import peers
from contest import Answers, Task
from crowd_sets import LABELS_ONLY, WITH_FEATURES, CrowdSet, load, splits
from scipy.stats import rankdata
from sklearn.metrics import roc_auc_score
from timing import environment

from crowdwise import CrowdLabels

HERE = Path(__file__).parent
METHODS = {
    **{f"crowdwise {name}": ("ours", name in ours.LABELS_ONLY) for name in (*ours.LABELS_ONLY, *ours.WITH_FEATURES)},
    **{name: ("peers", name in peers.CROWD_KIT) for name in (*peers.CROWD_KIT, *peers.WITH_FEATURES)},
}
COLUMNS = ("consensus", "test", "AUC", "seconds", "CPU s", "+ CPU s")


@dataclass(frozen=True)
class Row:
    """What a method reached on a set; NaN where it reached nothing, and then the note says why."""

    consensus: float = np.nan
    test: float = np.nan
    auc: float = np.nan
    seconds: float = np.nan
    cpu_seconds: float = np.nan
    classifier_cpu_seconds: float = np.nan
    note: str = ""

    def cells(self) -> list[str]:
        """As shown."""
        accuracies = [f"{value:.3f}" for value in (self.consensus, self.test, self.auc)]
        times = [f"{value:.3g}" for value in (self.seconds, self.cpu_seconds, self.classifier_cpu_seconds)]
        return ["" if cell == "nan" else cell for cell in (*accuracies, *times)]


class Report:
    """Lines of Markdown, printed as they come and kept."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str = "") -> None:
        """A line."""
        print(line, flush=True)
        self.lines.append(line)

    def row(self, first: str, cells: list[str], width: int = 9) -> None:
        """A line of a table."""
        self.say(f"| {first:40} | {' | '.join(f'{cell:{width}}' for cell in cells)} |")

    def head(self, first: str, columns: tuple[str, ...], width: int = 9) -> None:
        """The first two lines of a table."""
        self.row(first, list(columns), width)
        self.say("|---" * (len(columns) + 1) + "|")


def main() -> None:
    options = read_options()
    report = Report()
    report.say(environment() + f", {os.environ.get('OMP_NUM_THREADS', 'all')} threads\n")
    pythons = {"ours": sys.executable}
    if not options.no_peers:
        pythons["peers"] = peers_python(options.peers_env)
    if options.speed:
        speed(report, pythons, options.limit)
    else:
        compare(report, pythons, options)
    if options.out:
        options.out.write_text("\n".join(report.lines) + "\n")


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    cache = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "crowdwise" / "peers"
    names = (*WITH_FEATURES, *LABELS_ONLY)
    parser.add_argument("--sets", nargs="+", choices=names, default=names, metavar="SET", help=", ".join(names))
    parser.add_argument("--methods", nargs="+", default=[""], help="parts of names; a method with any of them runs")
    parser.add_argument("--no-peers", action="store_true", help="ours alone")
    parser.add_argument("--peers-env", type=Path, default=cache, help="where the peers are installed: %(default)s")
    parser.add_argument(
        "--splits", type=int, default=5, choices=range(6), help="of the five to test on; fewer is faster"
    )
    parser.add_argument(
        "--labelled-splits", action="store_true", help="five splits also where the set has test examples of its own"
    )
    parser.add_argument("--repeat", type=int, default=1, help="fits to take the median time of")
    parser.add_argument("--limit", type=float, default=600, help="seconds that a method may take on a set")
    parser.add_argument("--speed", action="store_true", help="a million examples, labels alone")
    parser.add_argument("--out", type=Path, help="also write the report to this file")
    return parser.parse_args()


def peers_python(directory: Path) -> str:
    """The Python of the peers' environment, made if it is not there or of another list."""
    wanted = (HERE / "peers.txt").read_text()
    installed = directory / "installed.txt"
    python = directory / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not installed.exists() or installed.read_text() != wanted:
        print(f"Installing the peers in {directory} ...", file=sys.stderr)
        venv.create(directory, with_pip=True, clear=True)
        # The list is complete: crowd-kit would bring along gigabytes that its aggregations never import.
        subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", "-r", HERE / "peers.txt"], check=True)
        installed.write_text(wanted)
    return str(python)


# ---------------------------------------------------------------------- one method on one task


@dataclass(frozen=True)
class Outcome:
    """Parts that a method finished, and what stopped it, if anything did."""

    parts: list[dict[str, np.ndarray]]
    note: str


def run(program: str, python: str, method: str, task: Path, repeat: int, limit: float) -> Outcome:
    """A fresh process; what it finished counts even if it fails or takes too long afterwards."""
    note = ""
    # The peers' environment is theirs alone.
    variables = {name: value for name, value in os.environ.items() if program == "ours" or name != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as directory:
        command = [python, HERE / f"{program}.py", method.removeprefix("crowdwise "), task, directory, str(repeat)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit, env=variables)
            note = last_words(done.stderr, failed=done.returncode != 0)
        except subprocess.TimeoutExpired:
            note = f"stopped after {limit:g} seconds"
        files = sorted(Path(directory).glob("[0-9]*.npz"), key=lambda path: int(path.stem))
        return Outcome([dict(np.load(path)) for path in files], note)


def last_words(said: str, failed: bool) -> str:
    """The error that ended a process, else its last warning; nothing if there was none."""
    lines = [line for line in said.splitlines() if failed or "Warning: " in line]
    return re.sub(r"^.*?(\w+Warning: )", r"\1", lines[-1].strip()) if lines else "failed" * failed


def judge(outcome: Outcome, truth: np.ndarray, tests: list[np.ndarray]) -> Row:
    """Accuracies of a method that knew no truth."""
    if not outcome.parts:
        return Row(note=outcome.note or "gave no result")
    first, *taught = outcome.parts
    trials = taught[1:]
    times = [float(first["seconds"]), float(first["cpu_seconds"]), *(float(part["cpu_seconds"]) for part in taught[:1])]
    times += [np.nan] * (3 - len(times))
    accuracy = auc = np.nan
    if tests and len(trials) == len(tests):
        pairs = [(trial["scores"], test) for trial, test in zip(trials, tests, strict=True)]
        accuracy = np.mean([np.mean(scores.argmax(axis=1) == test) for scores, test in pairs])
        if len(np.unique(truth)) == 2:
            auc = np.mean([roc_auc_score(test, scores[:, 1]) for scores, test in pairs])
    return Row(np.mean(first["consensus"] == truth), accuracy, auc, *times, note=outcome.note)


def answers_of(labels: CrowdLabels) -> Answers:
    """Plain arrays."""
    assert labels.classes is not None
    columns = labels.example_index, labels.annotator_index.astype(np.int64), labels.values.astype(np.int64)
    return Answers(*columns, labels.n_examples, labels.n_annotators, len(labels.classes))


# ---------------------------------------------------------------------- all sets


def compare(report: Report, pythons: dict[str, str], options: argparse.Namespace) -> None:
    chosen = {
        name: (program, python, labels_only)
        for name, (program, labels_only) in METHODS.items()
        if (python := pythons.get(program)) and any(part in name for part in options.methods)
    }
    results = {}
    for name in options.sets:
        data = load(name)
        found = {method: where[:2] for method, where in chosen.items() if where[2] or data.X is not None}
        results[name] = one_set(report, data, found, options)
    summary(report, results)


def one_set(
    report: Report, data: CrowdSet, methods: dict[str, tuple[str, str]], options: argparse.Namespace
) -> dict[str, Row]:
    """The table of a set, a row as soon as it is known."""
    parts = list(islice(splits(data, own_test=not options.labelled_splits), options.splits))
    assert data.labels.classes is not None
    assert (data.labels.classes == np.arange(len(data.labels.classes))).all()  # codes are classes
    shape = "no features" if data.X is None else f"{data.X.shape[1]} features"
    report.say(f"## {data.name}\n\n{str(data.labels).splitlines()[0].split(': ')[1]}, {shape}\n")
    report.head("method", COLUMNS)
    rows = {}
    with tempfile.TemporaryDirectory() as directory:
        task = Path(directory) / "task.npz"
        Task(answers_of(data.labels), data.X, [(split.rows, split.X, split.X_test) for split in parts]).save(task)
        for method, (program, python) in methods.items():
            outcome = run(program, python, method, task, options.repeat, options.limit)
            rows[method] = judge(outcome, data.truth, [split.truth_test for split in parts])
            report.row(method, rows[method].cells())
    report.say()
    for method, row in rows.items():
        if row.note:
            report.say(f"- {method}: {row.note}")
    report.say()
    return rows


def summary(report: Report, results: dict[str, dict[str, Row]]) -> None:
    """The best of ours and of the peers on every set, and mean ranks."""
    for measure in ("consensus", "test", "auc"):
        report.say(f"## Best {measure}\n")
        report.head("set", ("ours", "peers"), 40)
        for name, rows in results.items():
            if not all(np.isnan(getattr(row, measure)) for row in rows.values()):
                report.row(name, [best(rows, measure, program) for program in ("ours", "peers")], 40)
        report.say()
    report.say("## Mean rank (1 is best; a method without result comes last)\n")
    groups = {
        "consensus, labels only": [name for name in results if name in LABELS_ONLY],
        "consensus, features": [name for name in results if name in WITH_FEATURES],
        "test, features": [name for name in results if name in WITH_FEATURES],
    }
    ranks = {title: mean_ranks(results, names, title.split(",")[0]) for title, names in groups.items() if names}
    report.head("method", tuple(ranks), 22)
    for method in dict.fromkeys(method for rows in results.values() for method in rows):
        report.row(method, [f"{rank[method]:.2f}" if method in rank else "" for rank in ranks.values()], 22)


def best(rows: dict[str, Row], measure: str, program: str) -> str:
    """The highest figure and whose it is."""
    found = {method: getattr(row, measure) for method, row in rows.items() if METHODS[method][0] == program}
    found = {method: value for method, value in found.items() if not np.isnan(value)}
    if not found:
        return ""
    winner = max(found, key=lambda method: found[method])
    return f"{found[winner]:.3f} {winner.removeprefix('crowdwise ')}"


def mean_ranks(results: dict[str, dict[str, Row]], names: list[str], measure: str) -> dict[str, float]:
    """Among the methods of these sets; equal figures share a rank."""
    methods = list(results[names[0]])
    figures = np.array([[getattr(results[name][method], measure) for method in methods] for name in names])
    ranks = rankdata(-np.nan_to_num(figures, nan=-1.0), axis=1).mean(axis=0)
    return dict(zip(methods, ranks, strict=True))


# ---------------------------------------------------------------------- a million examples


def simulated(n_examples: int, n_annotators: int, n_labels: int) -> tuple[np.ndarray, Answers]:
    """Two-coin annotators: each right on either class with a chance of 0.5 to 0.9 of its own."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, n_examples)
    right = rng.uniform(0.5, 0.9, (n_annotators, 2))
    # Random steps around the circle of annotators: never the same one twice, all of them if n_labels is their number.
    steps = rng.integers(1, n_annotators // n_labels + 1, (n_examples, n_labels))
    first = rng.integers(0, n_annotators, (n_examples, 1))
    annotator = np.sort((first + steps.cumsum(axis=1)) % n_annotators, axis=1).ravel()
    example = np.repeat(np.arange(n_examples), n_labels)
    is_right = rng.random(len(example)) < right[annotator, truth[example]]
    value = np.where(is_right, truth[example], 1 - truth[example])
    return truth, Answers(example, annotator, value, n_examples, n_annotators, 2)


def speed(report: Report, pythons: dict[str, str], limit: float) -> None:
    """One after the other, each in a fresh process."""
    methods = {"crowdwise aggregate": "ours", "crowdwise aggregate confusion": "ours", "crowd-kit Dawid-Skene": "peers"}
    for n_annotators, n_labels in ((12, 12), (200, 5)):
        truth, answers = simulated(1_000_000, n_annotators, n_labels)
        report.say(f"## 1,000,000 examples, {n_labels} labels each by {n_annotators} annotators\n")
        report.head("method", ("consensus", "seconds", "times as long", "CPU s", "times as long"), 14)
        rows: dict[str, Row] = {}
        with tempfile.TemporaryDirectory() as directory:
            task = Path(directory) / "task.npz"
            Task(answers, None, []).save(task)
            for method, program in methods.items():
                if program in pythons:
                    rows[method] = row = judge(run(program, pythons[program], method, task, 1, limit), truth, [])
                    base = rows["crowdwise aggregate"]
                    ratios = row.seconds / base.seconds, row.cpu_seconds / base.cpu_seconds
                    report.row(
                        f"{method} {row.note}".strip(),
                        [f"{row.consensus:.5f}", f"{row.seconds:.2f}", f"{ratios[0]:.1f}",
                         f"{row.cpu_seconds:.2f}", f"{ratios[1]:.1f}"],
                        14,
                    )  # fmt: skip
        report.say()


if __name__ == "__main__":
    main()
