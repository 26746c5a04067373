"""Language models that judge the same examples, with a few human answers: what do the answers buy?

python benchmarks/judges.py table               every set, 30 draws of 50 truths: minutes
python benchmarks/judges.py picture --write     the reliability diagram of docs/guide/judges.md
python benchmarks/judges.py --sets framing      some sets

A set is a folder judges/NAME of the data folder (CROWDWISE_DATA) with labels.csv (task, worker, label, kind) and
truth.csv (task, label): what people said, by strict majority. Only the models' labels are used. Accuracy and stated
confidence are of the examples whose truth was not given, the mean of all draws.
"""

from __future__ import annotations

import csv
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from tables import ROOT, Place, Run, parser

from crowdwise import CrowdLabels, aggregate, error_correlation
from crowdwise.datasets import data_directory, fetch_crowd
from crowdwise.exceptions import CrowdWarning

PAGE = "docs/evidence/judges.md"
PLACE = Place(PAGE, "judges")
N_TRUTHS = 50
COLUMNS = (
    "set", "independent votes", "majority", "`aggregate(labels)`", "confidence", "confidence, `errors_in_common=False`",
    f"{N_TRUTHS} truths", "confidence", "logistic regression on votes",
)  # fmt: skip


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
    if not (found := sorted(path.parent.name for path in folder().glob("*/labels.csv"))):
        raise FileNotFoundError(f"there are no sets in {folder()}")
    return found


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


def crowd(name: str) -> Judges:
    """A crowd of people, as if they were judges."""
    data = fetch_crowd(name)
    assert data.labels.classes is not None
    place = {known: k for k, known in enumerate(data.labels.classes.tolist())}
    return Judges(name, data.labels, np.array([place[value] for value in data.truth.tolist()]))


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


def stack(judges: Judges, known: np.ndarray) -> np.ndarray | None:
    """Logistic regression on the votes, one column per judge and class."""
    if not len(known) or len(np.unique(judges.truth[known])) < 2:
        return None
    X = judges.votes.reshape(len(judges.truth), -1)
    model = LogisticRegression(max_iter=1000).fit(X[known], judges.truth[known])
    proba = np.zeros((len(X), judges.n_classes))
    proba[:, model.classes_] = model.predict_proba(X)
    return proba


def figures(proba: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Accuracy, a tie counted as a fair draw, and mean confidence."""
    top = proba == proba.max(axis=1, keepdims=True)
    return float((top[np.arange(len(truth)), truth] / top.sum(axis=1)).mean()), float(proba.max(axis=1).mean())


def with_truths(judges: Judges, method: Method, n_draws: int) -> tuple[float, float]:
    """Mean figures of a method on the other examples."""
    found = []
    for draw in range(n_draws):
        known = np.sort(np.random.default_rng([N_TRUTHS, draw]).permutation(len(judges.truth))[:N_TRUTHS])
        rest = np.delete(np.arange(len(judges.truth)), known)
        if (proba := method(judges, known)) is not None:
            found.append(figures(proba[rest], judges.truth[rest]))
    accuracy, confidence = np.mean(found, axis=0)
    return accuracy, confidence


# ---------------------------------------------------------------------- parts


def table(run: Run, options: Namespace) -> None:
    """A row per set."""
    rows, found, n_draws = [], [], 2 if options.quick else 30
    for judges in chosen_sets(options):
        result, independent = (aggregate(judges.labels, errors_in_common=common) for common in (True, False))
        assert judges.labels.classes is not None
        truth = dict(zip(judges.labels.examples.tolist(), judges.labels.classes[judges.truth].tolist(), strict=True))
        number = error_correlation(result, judges.labels, truth=truth).effective_votes
        values = (
            figures(majority(judges, NOBODY), judges.truth)[0],
            *figures(result.proba, judges.truth),
            figures(independent.proba, judges.truth)[1],
            *with_truths(judges, ours, n_draws),
            with_truths(judges, stack, n_draws)[0],
        )
        found.append(values)
        cells = [f"{value:.3f}" for value in values]
        rows.append([judges.name, f"{number:.1f} of {judges.labels.n_annotators}", *cells])
    run.table(PLACE, COLUMNS, rows, in_words(np.array(found)))


def in_words(values: np.ndarray) -> str:
    """How often truths help, and how far confidence is off; a row of numbers per set."""
    votes, alone, stated, _, known, stated_known, stack = values.T
    wins = [int((known > other).sum()) for other in (votes, stack, alone)]
    near, too_high = int((np.abs(stated_known - known) < 0.05).sum()), 100 * (stated - alone).max()
    return (
        f"With {N_TRUTHS} truths, more accurate than the majority on {wins[0]} of {len(values)} sets, than logistic "
        f"regression on the votes on {wins[1]}, and than without truths on {wins[2]}. Confidence is then within 5 "
        f"points of accuracy on {near}; without truths it is up to {too_high:.0f} points too high."
    )


NOBODY = np.empty(0, dtype=np.intp)


def chosen_sets(options: Namespace) -> Iterator[Judges]:
    """The sets that were asked for; a crowd that comes with the package in a quick run."""
    yield from [crowd("bluebirds")] if options.quick else map(load, options.sets or set_names())


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
PARTS = {"table": table, "picture": picture}


def main() -> None:
    made = parser(__doc__, PARTS)
    made.add_argument("--sets", nargs="+", help="names of folders; all by default")
    options = made.parse_args()
    warnings.simplefilter("ignore", CrowdWarning)
    run = Run(options, [PLACE] if "table" in options.parts else [])
    for part in options.parts:
        PARTS[part](run, options)


if __name__ == "__main__":
    main()
