"""Language models that judge the same examples, with a few human answers: what do the answers buy?

python benchmarks/judges.py                     every set, 30 draws of 20, 50, 100 and 200 truths: minutes
python benchmarks/judges.py alone               without truths, beside crowd-kit, and with the worst judge four times
python benchmarks/judges.py picture --write     the reliability diagram of docs/guide/judges.md
python benchmarks/judges.py --sets framing      some sets

A set is a folder judges/NAME of the data folder (CROWDWISE_DATA) with labels.csv (task, worker, label, kind) and
truth.csv (task, label): what people said, by strict majority. Only the models' labels are used. Accuracy, stated
confidence and expected calibration error (ten bins of equal size) are of the examples whose truth was not given, the
mean of all draws; beside it what that error would be if all probabilities were right, on as many examples, what it
would be with the temperature that suits these examples best, and the debiased error of `calibration.py`. "Best judge"
is the one that is right most often on the truths given, or, by hindsight, on all.
"""

from __future__ import annotations

import csv
import os
import sys
import tempfile
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from calibration import DEBIASED, RIGHT, by_hindsight, calibration, debiased_square, if_right, root
from contest import Task
from crowds import answers_of, peers_python, run_method
from sklearn.linear_model import LogisticRegression
from tables import ROOT, Place, Run, parser

from crowdwise import CrowdLabels, aggregate, error_correlation
from crowdwise.datasets.store import data_directory
from crowdwise.exceptions import CrowdWarning

PAGE = "docs/evidence/judges.md"
ACCURACY, CONFIDENCE = Place(PAGE, "judges accuracy"), Place(PAGE, "judges confidence")
ALONE = Place(PAGE, "judges alone")
CROWD_KIT = ("crowd-kit Dawid-Skene", "crowd-kit MACE", "crowd-kit GLAD")
N_TRUTHS = (0, 20, 50, 100, 200)
# No fewer examples are left to measure on.
FEWEST = 30


@dataclass(frozen=True)
class Judges:
    """What models said about examples, and what people did."""

    name: str
    labels: CrowdLabels
    truth: np.ndarray

    @property
    def n_classes(self) -> int:
        assert self.labels.classes is not None
        return len(self.labels.classes)

    @property
    def votes(self) -> np.ndarray:
        """One where a judge gave a class, of shape (n_examples, n_judges, n_classes)."""
        votes = np.zeros((*self.labels.shape, self.n_classes))
        votes[self.labels.example_index, self.labels.annotator_index, self.labels.values] = 1
        return votes


# Probabilities of the classes of all examples, from labels and the truth of some; None if it needs truth and has none.
Method = Callable[[Judges, np.ndarray], np.ndarray | None]


def folder() -> Path:
    """Where the sets are."""
    return data_directory() / "judges"


def set_names() -> list[str]:
    """All sets that are there."""
    return sorted(path.parent.name for path in folder().glob("*/labels.csv"))


def load(name: str) -> Judges:
    """The models' labels of the examples with truth."""
    with open(folder() / name / "truth.csv", encoding="utf-8", newline="") as file:
        truth = {row["task"]: row["label"] for row in csv.DictReader(file)}
    with open(folder() / name / "labels.csv", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["kind"] == "model" and row["task"] in truth]
    classes = sorted({*truth.values(), *(row["label"] for row in rows)})
    table = {column: [row[column] for row in rows] for column in ("task", "worker", "label")}
    labels = CrowdLabels.from_table(table, classes=classes)
    return Judges(name, labels, np.array([classes.index(truth[task]) for task in labels.examples.tolist()]))


def ours(judges: Judges, known: np.ndarray) -> np.ndarray:
    """`aggregate` with these truths."""
    assert judges.labels.classes is not None
    names = judges.labels.classes[judges.truth]
    truth = dict(zip(judges.labels.examples[known].tolist(), names[known].tolist(), strict=True))
    return aggregate(judges.labels, truth=truth or None).proba


def majority(judges: Judges, known: np.ndarray) -> np.ndarray:
    """Shares of the votes."""
    counts = judges.votes.sum(axis=1)
    return counts / counts.sum(axis=1, keepdims=True)


def best_judge(judges: Judges, known: np.ndarray) -> np.ndarray | None:
    """What the judge says who is right most often on the known examples; the majority where that one is silent."""
    if not len(known):
        return None
    right = judges.votes[known][np.arange(len(known)), :, judges.truth[known]].sum(axis=0)
    best = int((right / np.maximum(judges.votes[known].sum(axis=(0, 2)), 1)).argmax())
    said = judges.votes[:, best]
    return np.where(said.any(axis=1, keepdims=True), said, majority(judges, known))


def best_by_hindsight(judges: Judges, known: np.ndarray) -> np.ndarray | None:
    """The same if the truth of all examples is known."""
    return best_judge(judges, np.arange(len(judges.truth)))


def stack(judges: Judges, known: np.ndarray) -> np.ndarray | None:
    """Logistic regression on the votes, one column per judge and class."""
    if not len(known) or len(np.unique(judges.truth[known])) < 2:
        return None
    X = judges.votes.reshape(len(judges.truth), -1)
    model = LogisticRegression(max_iter=1000).fit(X[known], judges.truth[known])
    proba = np.zeros((len(X), judges.n_classes))
    proba[:, model.classes_] = model.predict_proba(X)
    return proba


HINDSIGHT = "error with the best temperature by hindsight"
OURS, STACK = "`aggregate(labels, truth=...)`", "logistic regression on votes"
METHODS: dict[str, Method] = {
    OURS: ours,
    "majority": majority,
    "best judge by these truths": best_judge,
    "best judge by hindsight": best_by_hindsight,
    STACK: stack,
}


def figures(proba: np.ndarray, truth: np.ndarray) -> tuple[float, float, float]:
    """Accuracy, a tie counted as a fair draw; mean confidence; expected calibration error."""
    _, sure, error = calibration(proba, truth)
    top = proba == proba.max(axis=1, keepdims=True)
    return float((top[np.arange(len(truth)), truth] / top.sum(axis=1)).mean()), sure, error


def measure(judges: Judges, n_truths: int, n_draws: int) -> dict[str, np.ndarray]:
    """The figures of every method in every draw of truths, and its debiased squared error; of shape (n_draws, 6).

    The last two are of ours alone: the error if it were right, and with the best temperature by hindsight.
    """
    found: dict[str, list[tuple[float, ...]]] = {name: [] for name in METHODS}
    for draw in range(n_draws if n_truths else 1):
        known = np.sort(np.random.default_rng([n_truths, draw]).permutation(len(judges.truth))[:n_truths])
        rest = np.delete(np.arange(len(judges.truth)), known)
        for name, method in METHODS.items():
            proba = method(judges, known)
            if proba is not None:
                proba, truth = proba[rest], judges.truth[rest]
                floors = (if_right(proba, 5), by_hindsight(proba, truth)) if name == OURS else (np.nan, np.nan)
                found[name].append((*figures(proba, truth), debiased_square(proba, truth), *floors))
    return {name: np.array(values).reshape(-1, 6) for name, values in found.items()}


def bold_near(found: dict[str, np.ndarray]) -> list[str]:
    """Means over draws; in bold the best one, and those that differ from it by at most a paired standard error."""
    best = max((values for values in found.values() if len(values)), key=np.mean)
    cells = []
    for values in found.values():
        mean = f"{values.mean():.3f}" if len(values) else "–"
        behind = best - values if len(values) == len(best) else best
        error = behind.std(ddof=1) / np.sqrt(len(behind)) if len(behind) > 1 else 0.0
        cells.append(f"**{mean}**" if behind.mean() <= error else mean)
    return cells


# ---------------------------------------------------------------------- parts


def truths(run: Run, options: Namespace) -> None:
    """Every set with 0 to 200 truths."""
    accuracy, confidence = [], []
    for judges in chosen_sets(options):
        for n_truths in (0, 20) if options.quick else N_TRUTHS:
            if n_truths and len(judges.truth) - n_truths < FEWEST:
                continue
            found = measure(judges, n_truths, 2 if options.quick else 30)
            means = {method: values.mean(axis=0) if len(values) else None for method, values in found.items()}
            accuracy.append([judges.name, str(n_truths), *bold_near({name: found[name][:, 0] for name in METHODS})])
            both = [means[method] for method in (OURS, STACK)]
            stated = ["–" if mean is None else three(mean[:3]) for mean in both]
            debiased = ["–" if mean is None else root(mean[3]) for mean in both]
            floors = [f"{value:.3f}" for value in both[0][4:]]
            confidence.append([judges.name, str(n_truths), *stated, *floors, " / ".join(debiased)])
    run.table(ACCURACY, ("set", "truths", *METHODS), accuracy)
    columns = ("accuracy / says / calibration error", "truths", OURS, STACK, RIGHT, HINDSIGHT, DEBIASED)
    run.table(CONFIDENCE, columns, confidence)


def alone(run: Run, options: Namespace) -> None:
    """Without truths; crowd-kit beside it."""
    python = None if options.quick else peers_python(options.peers_env)
    rows = []
    for judges in chosen_sets(options):
        result, independent = (aggregate(judges.labels, errors_in_common=common) for common in (True, False))
        assert judges.labels.classes is not None
        truth = dict(zip(judges.labels.examples.tolist(), judges.labels.classes[judges.truth].tolist(), strict=True))
        number = error_correlation(result, judges.labels, truth=truth).effective_votes
        votes = right(majority(judges, NOBODY), judges)
        rows.append([
            judges.name, f"{number:.1f} of {judges.labels.n_annotators}", f"{votes:.3f}",
            three(figures(result.proba, judges.truth)), three(figures(independent.proba, judges.truth)),
            *("" if python is None else f"{by_peer(python, name, judges):.3f}" for name in CROWD_KIT),
        ])  # fmt: skip
    ours_and = ("`aggregate(labels)`", "`errors_in_common=False`")
    run.table(ALONE, ("accuracy / says / calibration error", "votes", "majority", *ours_and, *CROWD_KIT), rows)


NOBODY = np.empty(0, dtype=np.intp)


def chosen_sets(options: Namespace) -> Iterator[Judges]:
    """The sets that were asked for; one in a quick run."""
    names = options.sets or set_names()
    yield from map(load, names[:1] if options.quick else names)


def right(proba: np.ndarray, judges: Judges) -> float:
    """Accuracy, a tie counted as a fair draw."""
    return figures(proba, judges.truth)[0]


def three(values: Iterable[float]) -> str:
    """As shown."""
    return " / ".join(f"{value:.3f}" for value in values)


def by_peer(python: str, name: str, judges: Judges) -> float:
    """The accuracy of one of crowd-kit's methods."""
    with tempfile.TemporaryDirectory() as directory:
        task = Path(directory) / "task.npz"
        Task(answers_of(judges.labels), None, []).save(task)
        found = run_method("peers", python, name, task, 1, 600)
    if not found.parts:
        sys.exit(f"{name} on {judges.name}: {found.note}")
    return float((found.parts[0]["consensus"] == judges.truth).mean())


def picture(run: Run, options: Namespace) -> None:
    """The reliability diagram of the guide: all sets together, before and after."""
    from matplotlib.figure import Figure

    stated: dict[str, list[np.ndarray]] = {name: [] for name in REACHED}
    for judges in chosen_sets(options):
        some = np.sort(np.random.default_rng(0).permutation(len(judges.truth))[: min(50, len(judges.truth) // 2)])
        rest = np.delete(np.arange(len(judges.truth)), some)
        found = (aggregate(judges.labels, errors_in_common=False).proba, ours(judges, NOBODY), ours(judges, some))
        for name, proba in zip(REACHED, found, strict=True):
            is_right = proba[rest].argmax(axis=1) == judges.truth[rest]
            stated[name].append(np.column_stack([proba[rest].max(axis=1), is_right]))
    figure = Figure(figsize=(5.2, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.plot([0.3, 1], [0.3, 1], color="0.6", linewidth=1)
    for (name, parts), marker in zip(stated.items(), "sod", strict=True):
        pairs = np.concatenate(parts)
        bins = np.array_split(pairs[np.argsort(pairs[:, 0], kind="stable")], 10)
        axes.plot(*np.array([part.mean(axis=0) for part in bins]).T, marker=marker, label=name)
    axes.set(xlabel="stated confidence", ylabel="share that is right", xlim=(0.3, 1.01), ylim=(0.3, 1.01))
    axes.legend(frameon=False, loc="upper left")
    if run.writes:
        figure.savefig(ROOT / "docs" / "figures" / "judges.png", dpi=150)


REACHED = ("judges taken as independent", "errors in common allowed for", "and 50 human answers")
PARTS = {"truths": truths, "alone": alone, "picture": picture}


def main() -> None:
    made = parser(__doc__, PARTS)
    cache = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "crowdwise" / "peers"
    made.add_argument("--peers-env", type=Path, default=cache, help="where the peers are installed: %(default)s")
    made.add_argument("--sets", nargs="+", help="names of folders; all by default")
    options = made.parse_args()
    warnings.simplefilter("ignore", CrowdWarning)
    places: dict[str, list[Place]] = {"truths": [ACCURACY, CONFIDENCE], "alone": [ALONE], "picture": []}
    run = Run(options, [place for part in options.parts for place in places[part]])
    for part in options.parts:
        PARTS[part](run, options)


if __name__ == "__main__":
    main()
