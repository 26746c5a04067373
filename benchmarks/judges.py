"""Language models that judge the same examples, with a few human answers: what do the answers buy?

python benchmarks/judges.py truths              every set, 30 draws of 50 and 200 truths: minutes
python benchmarks/judges.py alone               without truths
python benchmarks/judges.py picture --write     the reliability diagram of docs/guide/judges.md
python benchmarks/judges.py --sets framing      some sets

A set is a folder judges/NAME of the data folder (CROWDWISE_DATA) with labels.csv (task, worker, label, kind) and
truth.csv (task, label): what people said, by strict majority. Only the models' labels are used. Accuracy, stated
confidence and expected calibration error (ten bins of equal size) are of the examples whose truth was not given, the
mean of all draws. "Best judge" is the one that is right most often on the truths given.
"""

from __future__ import annotations

import csv
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from calibration import calibration
from sklearn.linear_model import LogisticRegression
from tables import ROOT, Place, Run, bold_best, parser

from crowdwise import CrowdLabels, aggregate, error_correlation
from crowdwise.datasets.store import data_directory
from crowdwise.exceptions import CrowdWarning

PAGE = "docs/evidence/judges.md"
PLACES = {part: Place(PAGE, f"judges {part}") for part in ("alone", "truths")}
N_TRUTHS = (50, 200)
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


def stack(judges: Judges, known: np.ndarray) -> np.ndarray | None:
    """Logistic regression on the votes, one column per judge and class."""
    if not len(known) or len(np.unique(judges.truth[known])) < 2:
        return None
    X = judges.votes.reshape(len(judges.truth), -1)
    model = LogisticRegression(max_iter=1000).fit(X[known], judges.truth[known])
    proba = np.zeros((len(X), judges.n_classes))
    proba[:, model.classes_] = model.predict_proba(X)
    return proba


METHODS: dict[str, Method] = {
    "majority": majority,
    "best judge": best_judge,
    "logistic regression on votes": stack,
    "`aggregate(labels, truth=...)`": ours,
}


def figures(proba: np.ndarray, truth: np.ndarray) -> tuple[float, float, float]:
    """Accuracy, a tie counted as a fair draw; mean confidence; expected calibration error."""
    _, sure, error = calibration(proba, truth)
    top = proba == proba.max(axis=1, keepdims=True)
    return float((top[np.arange(len(truth)), truth] / top.sum(axis=1)).mean()), sure, error


def measure(judges: Judges, n_truths: int, n_draws: int) -> list[str]:
    """Mean accuracies of all methods over draws of truths; of ours also confidence and calibration error."""
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in METHODS}
    for draw in range(n_draws):
        known = np.sort(np.random.default_rng([n_truths, draw]).permutation(len(judges.truth))[:n_truths])
        rest = np.delete(np.arange(len(judges.truth)), known)
        for name, method in METHODS.items():
            proba = method(judges, known)
            if proba is not None:
                found[name].append(figures(proba[rest], judges.truth[rest]))
    means = [np.mean(values, axis=0) for values in found.values()]
    accuracies = bold_best([f"{mean[0]:.3f}" for mean in means])
    return [*accuracies, *(f"{value:.3f}" for value in means[-1][1:])]


# ---------------------------------------------------------------------- parts


def truths(run: Run, options: Namespace) -> None:
    """Every set with some truths."""
    rows = []
    for judges in chosen_sets(options):
        for n_truths in (20,) if options.quick else N_TRUTHS:
            if len(judges.truth) - n_truths >= FEWEST:
                rows.append([judges.name, str(n_truths), *measure(judges, n_truths, 2 if options.quick else 30)])
    run.table(PLACES["truths"], ("set", "truths", *METHODS, "its confidence", "its calibration error"), rows)


def alone(run: Run, options: Namespace) -> None:
    """Without truths."""
    rows = []
    for judges in chosen_sets(options):
        result, independent = (aggregate(judges.labels, errors_in_common=common) for common in (True, False))
        assert judges.labels.classes is not None
        truth = dict(zip(judges.labels.examples.tolist(), judges.labels.classes[judges.truth].tolist(), strict=True))
        number = error_correlation(result, judges.labels, truth=truth).effective_votes
        rows.append([
            judges.name, f"{number:.1f} of {judges.labels.n_annotators}",
            f"{figures(majority(judges, NOBODY), judges.truth)[0]:.3f}",
            three(figures(result.proba, judges.truth)), three(figures(independent.proba, judges.truth)),
        ])  # fmt: skip
    columns = ("set", "independent votes", "majority", "`aggregate(labels)`", "`errors_in_common=False`")
    run.table(PLACES["alone"], columns, rows)


NOBODY = np.empty(0, dtype=np.intp)


def chosen_sets(options: Namespace) -> Iterator[Judges]:
    """The sets that were asked for; one in a quick run."""
    names = options.sets or set_names()
    yield from map(load, names[:1] if options.quick else names)


def three(values: Iterable[float]) -> str:
    """As shown."""
    return " / ".join(f"{value:.3f}" for value in values)


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
    made.add_argument("--sets", nargs="+", help="names of folders; all by default")
    options = made.parse_args()
    warnings.simplefilter("ignore", CrowdWarning)
    run = Run(options, [PLACES[part] for part in options.parts if part in PLACES])
    for part in options.parts:
        PARTS[part](run, options)


if __name__ == "__main__":
    main()
