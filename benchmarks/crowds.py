"""Ours and the peers side by side on every real crowd: consensus, classifier, seconds.

python benchmarks/crowds.py                       every set and method (ours.py, peers.py); installs the peers once
python benchmarks/crowds.py --sets music rte      some sets
python benchmarks/crowds.py --no-peers            ours alone
python benchmarks/crowds.py --sets --write        nothing is run: the table is made of the results that are kept

Consensus: share of labelled examples whose consensus is the truth. Test: accuracy on unseen examples of the method's
own classifier, or of one and the same logistic regression fitted to the method's consensus; the mean of five splits
where the set has no test examples of its own. Seconds: the fit alone, for the consensus; "+" that of the classifier
where it is fitted afterwards. CPU seconds are fairer on a busy machine, if OMP_NUM_THREADS=1.

All methods on all sets take an hour, so each result is kept in results/crowds.json with its date and commit, and the
table is made of what is kept there.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date
from itertools import islice
from pathlib import Path

import numpy as np
import ours
import peers
from contest import Answers, Task
from crowd_sets import LABELS_ONLY, WITH_FEATURES, CrowdSet, load, splits
from sklearn.metrics import roc_auc_score
from tables import Place, Run, bold_best, commit, markdown, parser

from crowdwise import CrowdLabels

HERE = Path(__file__).parent
METHODS = {
    **{f"crowdwise {name}": ("ours", name in ours.LABELS_ONLY) for name in (*ours.LABELS_ONLY, *ours.WITH_FEATURES)},
    **{name: ("peers", name in peers.CROWD_KIT) for name in (*peers.CROWD_KIT, *peers.WITH_FEATURES)},
}
COLUMNS = ("method", "consensus", "test", "AUC", "seconds", "CPU s", "+ CPU s")
N_SPLITS = 5
RESULTS = HERE / "results" / "crowds.json"
PAGE = "docs/evidence/models.md"
PLACE = Place(PAGE, "crowds")
MAJORITY, DAWID_SKENE = "crowdwise majority", "crowd-kit Dawid-Skene"
QUICK = ("crowdwise majority", "crowdwise aggregate", "crowdwise default")


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
    date: str = ""
    commit: str = ""

    def cells(self) -> list[str]:
        """As shown."""
        accuracies = [f"{value:.3f}" for value in (self.consensus, self.test, self.auc)]
        times = [f"{value:.3g}" for value in (self.seconds, self.cpu_seconds, self.classifier_cpu_seconds)]
        return ["" if cell == "nan" else cell for cell in (*accuracies, *times)]


Results = dict[str, dict[str, Row]]  # by set and method


def main() -> None:
    options = read_options()
    run = Run(options, [PLACE])
    print(f"{os.environ.get('OMP_NUM_THREADS', 'all')} threads\n")
    pythons = {"ours": sys.executable}
    if options.sets and not options.no_peers and not options.quick:
        pythons["peers"] = peers_python(options.peers_env)
    results: Results = {} if options.quick else read_results()
    compare(results, pythons, options)
    if options.quick or is_standard(options):
        write_table(run, results)


def is_standard(options: argparse.Namespace) -> bool:
    """Whether unseen examples are those of the tables; only then are results kept."""
    return options.splits == N_SPLITS and not options.labelled_splits


def read_options() -> argparse.Namespace:
    made = parser(__doc__)
    cache = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "crowdwise" / "peers"
    names = (*WITH_FEATURES, *LABELS_ONLY)
    made.add_argument("--sets", nargs="*", choices=names, default=names, metavar="SET", help=", ".join(names))
    made.add_argument("--methods", nargs="+", default=[""], help="parts of names; a method with any of them runs")
    made.add_argument("--no-peers", action="store_true", help="ours alone")
    made.add_argument("--peers-env", type=Path, default=cache, help="where the peers are installed: %(default)s")
    made.add_argument(
        "--splits", type=int, default=N_SPLITS, choices=range(N_SPLITS + 1),
        help="of the five to test on; fewer is faster, and nothing is kept",
    )  # fmt: skip
    made.add_argument(
        "--labelled-splits", action="store_true",
        help="five splits also where the set has test examples of its own; nothing is kept",
    )  # fmt: skip
    made.add_argument("--repeat", type=int, default=1, help="fits to take the median time of")
    made.add_argument("--limit", type=float, default=600, help="seconds that a method may take on a set")
    options = made.parse_args()
    if options.quick:
        options.sets, options.splits = ("zencrowd_us", "bluebirds"), 1  # come with the package
    return options


def read_results() -> Results:
    """What earlier runs found of methods that there still are."""
    if not RESULTS.exists():
        return {}
    kept = json.loads(RESULTS.read_text(encoding="utf-8"))
    return {
        name: {method: Row(**{key: np.nan if value is None else value for key, value in row.items()})
               for method, row in rows.items() if method in METHODS}
        for name, rows in kept.items()
    }  # fmt: skip


def keep(results: Results) -> None:
    """Write all results; NaN is null, which JSON has."""
    plain = {
        name: {method: {key: None if value != value else value for key, value in asdict(row).items()}
               for method, row in sorted(rows.items())}
        for name, rows in sorted(results.items())
    }  # fmt: skip
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")


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


def run_method(program: str, python: str, method: str, task: Path, repeat: int, limit: float) -> Outcome:
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
    first, *later = outcome.parts
    trials = later[1:]
    times = [float(first["seconds"]), float(first["cpu_seconds"]), *(float(part["cpu_seconds"]) for part in later[:1])]
    times += [np.nan] * (3 - len(times))
    accuracy = auc = np.nan
    if tests and len(trials) == len(tests):
        pairs = [(trial["scores"], test) for trial, test in zip(trials, tests, strict=True)]
        accuracy = np.mean([np.mean(scores.argmax(axis=1) == test) for scores, test in pairs])
        if len(np.unique(truth)) == 2:
            auc = np.mean([roc_auc_score(test, scores[:, 1]) for scores, test in pairs])
    measured = (np.mean(first["consensus"] == truth), accuracy, auc, *times)
    return Row(*map(float, measured), outcome.note, str(date.today()), commit())


def answers_of(labels: CrowdLabels) -> Answers:
    """Plain arrays."""
    assert labels.classes is not None
    columns = labels.example_index, labels.annotator_index.astype(np.int64), labels.values.astype(np.int64)
    return Answers(*columns, labels.n_examples, labels.n_annotators, len(labels.classes))


# ---------------------------------------------------------------------- all sets


def compare(results: Results, pythons: dict[str, str], options: argparse.Namespace) -> None:
    """Run the methods that were chosen on the sets that were chosen, and keep what they reach."""
    for name in options.sets:
        data = load(name)
        chosen = {
            method: (program, pythons[program])
            for method, (program, labels_only) in METHODS.items()
            if program in pythons
            and (method in QUICK if options.quick else any(part in method for part in options.methods))
            and (labels_only or data.X is not None)
        }
        for method, row in one_set(data, chosen, options):
            results.setdefault(name, {})[method] = row
            if not options.quick and is_standard(options):
                keep(results)


def one_set(
    data: CrowdSet, methods: dict[str, tuple[str, str]], options: argparse.Namespace
) -> Iterator[tuple[str, Row]]:
    """What each method reaches, as soon as it is known."""
    parts = list(islice(splits(data, own_test=not options.labelled_splits), options.splits))
    assert data.labels.classes is not None
    assert (data.labels.classes == np.arange(len(data.labels.classes))).all()  # codes are classes
    shape = "no features" if data.X is None else f"{data.X.shape[1]} features"
    print(f"\n## {data.name}\n\n{str(data.labels).splitlines()[0].split(': ')[1]}, {shape}\n")
    print(markdown(COLUMNS, []), flush=True)
    with tempfile.TemporaryDirectory() as directory:
        task = Path(directory) / "task.npz"
        Task(answers_of(data.labels), data.X, [(split.rows, split.X, split.X_test) for split in parts]).save(task)
        for method, (program, python) in methods.items():
            outcome = run_method(program, python, method, task, options.repeat, options.limit)
            row = judge(outcome, data.truth, [split.truth_test for split in parts])
            print(f"| {method} | {' | '.join(row.cells())} | {row.note}", flush=True)
            yield method, row


# ---------------------------------------------------------------------- tables


def write_table(run: Run, results: Results) -> None:
    """That of the page, from all results there are: a row per crowd, consensus and unseen examples."""
    rows, found = [], []
    for name in (*WITH_FEATURES, *LABELS_ONLY):
        if name not in results:
            continue
        default = "crowdwise default" if name in WITH_FEATURES else "crowdwise aggregate"
        if run.writes and (absent := [method for method in (default, MAJORITY) if method not in results[name]]):
            sys.exit(f"Nothing was written: {RESULTS.name} has no results of {', '.join(absent)} on {name}.")
        rows.append([name, *consensus_cells(results[name], default), *unseen_cells(results[name], default)])
        found.append([results[name].get(default, Row()).consensus, results[name].get(MAJORITY, Row()).consensus,
                      best_peer(results[name], "consensus")])  # fmt: skip
    columns = (
        "crowd", "default", "majority vote", "Dawid-Skene", "best of the peers", "unseen: default", "majority vote",
        "best of the peers",
    )  # fmt: skip
    run.table(PLACE, columns, rows, f"{in_words(np.array(found))} {made_at(results)}")


def in_words(found: np.ndarray) -> str:
    """How often the default is better than the majority and the best peer, and by how much it is worse at most."""
    parts = []
    for title, other in (("the majority vote", found[:, 1]), ("the best of the peers", found[:, 2])):
        over = 100 * (found[:, 0] - other)
        over = over[~np.isnan(over)]
        if len(over):
            counts = f"better than {title} on {(over > 0.05).sum()} of {len(over)}, worse on {(over < -0.05).sum()}"
            parts.append(f"{counts} (at most by {max(-over.min(), 0):.1f} points)")
    return f"The default is {'; '.join(parts)}."


def consensus_cells(found: dict[str, Row], default: str) -> list[str]:
    """Ours, the majority, Dawid-Skene of crowd-kit, and the best peer, whichever that is."""
    values = [found.get(method, Row()).consensus for method in (default, MAJORITY, DAWID_SKENE)]
    return bold_best([shown(value) for value in (*values, best_peer(found, "consensus"))])


def unseen_cells(found: dict[str, Row], default: str) -> list[str]:
    """Accuracy on unseen examples, with features."""
    values = [found.get(method, Row()).test for method in (default, MAJORITY)]
    return bold_best([shown(value) for value in (*values, best_peer(found, "test"))])


def best_peer(found: dict[str, Row], measure: str) -> float:
    values = [getattr(row, measure) for method, row in found.items() if METHODS[method][0] == "peers"]
    return max((value for value in values if not np.isnan(value)), default=np.nan)


def shown(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.3f}"


def made_at(results: Results) -> str:
    """When the results were found, and ours with which code."""
    parts = []
    for program, title in (("ours", "Ours"), ("peers", "The peers")):
        rows = [
            row
            for found in results.values()
            for method, row in found.items()
            if METHODS[method][0] == program and (program == "peers" or method in QUICK)
        ]
        when = sorted({row.date for row in rows if row.date})
        code = sorted({row.commit for row in rows if row.commit}) if program == "ours" else []
        if when:
            parts.append(f"{title}: {', '.join([' to '.join(dict.fromkeys((when[0], when[-1]))), *code])}.")
    return " ".join(parts)


if __name__ == "__main__":
    main()
