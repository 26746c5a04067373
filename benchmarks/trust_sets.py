"""Crowds whose truth is known: the real sets, random parts of them, and simulated families.

A row of the tables is a set or a family; `draws` gives the crowds it is measured on. There are labels alone, labels
with features, and labels with an order (levels). Rows are in two halves by a fixed hash of the name: choices are made
on half A and confirmed on half B. A set is in the same half whatever is made of it.

Real sets are those of the folders ``crowd``, ``judges`` and ``ratings`` in the directory that CROWDWISE_DATA names. Of
panels of judges only the language models are annotators: the truth is the majority of the people.
"""

from __future__ import annotations

import csv
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
from crowd_sets import WITH_FEATURES, load, splits
from sklearn.datasets import make_classification

from crowdwise import CrowdLabels, simulate_annotators
from crowdwise.datasets import data_directory

# A random part has this share of a set's examples, all labels with them.
SHARE = 0.7
# So large that parts of it would take longer than all other rows together.
WHOLE_ONLY = ("fact_eval",)
N_TEST = 1000


@dataclass(frozen=True)
class Crowd:
    """Labels with the classes 0, 1, ... and the truth of their examples; features where there are any.

    Parameters
    ----------
    labels : CrowdLabels
    truth : ndarray of shape (n_examples,)
        Classes; -1 where it is unknown, and the number of classes where it is one that nobody gave.
    X : ndarray of shape (n_examples, n_features) or None, default=None
    X_test, truth_test : ndarray or None, default=None
        Examples that nobody labelled.
    """

    labels: CrowdLabels
    truth: np.ndarray
    X: np.ndarray | None = None
    X_test: np.ndarray | None = None
    truth_test: np.ndarray | None = None

    @property
    def n_classes(self) -> int:
        assert self.labels.classes is not None
        return len(self.labels.classes)

    @property
    def known(self) -> np.ndarray:
        """Examples whose truth is known."""
        return np.flatnonzero(self.truth >= 0)

    def some(self, rows: np.ndarray) -> Crowd:
        """Some of the examples with all their labels."""
        labels = self.labels[rows]
        codes = labels.example_index, labels.annotator_index, labels.values
        flat = labels_of(*codes, self.n_classes, len(rows))
        return replace(self, labels=flat, truth=self.truth[rows], X=None if self.X is None else self.X[rows])

    def part(self, rng: np.random.Generator) -> Crowd:
        """A random part of the examples."""
        return self.some(np.flatnonzero(rng.random(len(self.truth)) < SHARE))

    def worst_annotator(self, fewest: int = 10) -> int | None:
        """The annotator of lowest accuracy among those with enough labels of known truth."""
        labels = self.labels
        known = self.truth[labels.example_index] >= 0
        who = labels.annotator_index[known]
        is_right = self.truth[labels.example_index[known]] == labels.values[known]
        number = np.bincount(who, minlength=labels.n_annotators)
        right = np.bincount(who, is_right, labels.n_annotators)
        if not (number >= fewest).any():
            return None
        return int(np.argmin(np.where(number >= fewest, right / np.maximum(number, 1), 2.0)))

    def with_copies(self, annotator: int, n_copies: int = 3) -> Crowd:
        """The same with further annotators whose labels are those of this one."""
        labels = self.labels
        rows = np.flatnonzero(labels.annotator_index == annotator)
        new = np.repeat(labels.n_annotators + np.arange(n_copies), len(rows))
        example, label = (
            np.append(all_, np.tile(all_[rows], n_copies)) for all_ in (labels.example_index, labels.values)
        )
        return replace(self, labels=labels_of(example, np.append(labels.annotator_index, new), label, self.n_classes))


@dataclass(frozen=True, order=True)
class Row:
    """A row of the tables.

    Parameters
    ----------
    kind : {"labels", "features", "levels"}
    group : {"real", "parts", "simulated"}
    name : str
        Of the set or the family.
    """

    kind: str
    group: str
    name: str

    @property
    def half(self) -> str:
        """Choices are made on half A and confirmed on half B."""
        name = self.name if self.group == "simulated" else self.name.split(",")[0]
        return "AB"[zlib.crc32(name.encode()) % 2]


def all_rows() -> list[Row]:
    """Every row that there are data for."""
    simulated = [Row(kind, "simulated", name) for kind, families in FAMILIES.items() for name in families]
    if not has_data():
        return simulated
    real = [Row("labels", "real", name) for name in _set_names()]
    real += [Row("features", "real", name) for name in WITH_FEATURES]
    real += [Row("levels", "real", name) for name in (*LEVEL_SETS, *LEFT_OUT)]
    # A person who was left out is a draw already.
    parts = [replace(row, group="parts") for row in real if row.name not in (*WHOLE_ONLY, *LEFT_OUT)]
    return [*real, *parts, *simulated]


def draws(row: Row, n_draws: int) -> Iterator[Crowd]:
    """The crowds of a row.

    A whole set is one crowd, or one per split where it has features and no test examples of its own, or one per person
    left out, up to so many. All others have so many draws.
    """
    if row.group == "simulated":
        yield from (FAMILIES[row.kind][row.name](_rng(row.name, seed)) for seed in range(n_draws))
    elif row.group == "real":
        yield from islice(_whole(row.kind, row.name), n_draws)
    else:
        whole = list(_whole(row.kind, row.name))
        yield from (whole[seed % len(whole)].part(_rng(row.name, seed)) for seed in range(n_draws))


def _rng(name: str, seed: int) -> np.random.Generator:
    return np.random.default_rng([zlib.crc32(name.encode()), seed])


# ------------------------------------------------------------------ real sets


def has_data() -> bool:
    """Whether the directory with the real sets is there."""
    return any(data_directory().glob("crowd/*/labels.csv")) and any(data_directory().glob("judges/*/labels.csv"))


def _set_names() -> list[str]:
    folder = data_directory()
    return [path.parent.name for kind in ("crowd", "judges") for path in sorted(folder.glob(f"{kind}/*/labels.csv"))]


def _whole(kind: str, name: str) -> Iterator[Crowd]:
    if kind == "features":
        data = load(name)
        for split in splits(data):
            labels = data.labels[split.rows]
            assert data.labels.classes is not None
            flat = labels_of(
                labels.example_index, labels.annotator_index, labels.values, len(data.labels.classes), len(split.rows)
            )
            yield Crowd(flat, data.truth[split.rows], split.X, split.X_test, split.truth_test)
    elif name in LEFT_OUT:
        yield from _left_out(*LEFT_OUT[name])
    elif kind == "levels":
        set_name, levels = LEVEL_SETS[name]
        rows, truth = _models(set_name)
        yield _crowd(_cut(rows, levels), _cut_truth(truth, levels), _names_of(levels))
    else:
        yield _crowd(*_models(name))


Table = list[tuple[str, str, str]]  # example, annotator, label
# The levels of a set from the lowest to the highest, or into how many equal parts numbers from 0 to 100 are cut.
Levels = Sequence[str] | int
STARS = "12345"
LEVEL_SETS: dict[str, tuple[str, Levels]] = {
    "cebab_stars": ("cebab_stars", STARS),
    "10k_prompts": ("10k_prompts", STARS),
    "weather": ("weather", "012"),  # without "not about weather" and "cannot tell"
    "dices350": ("dices350", ("No", "Unsure", "Yes")),
    "mtbench": ("mtbench", ("model_a", "tie", "model_b")),
    "css_politeness": ("css_politeness", "abc"),
    "css_talklife": ("css_talklife", "abc"),
    "lgbteen": ("lgbteen", ("No", "Partially", "Yes")),
    "care_asset, 3 levels": ("care_asset", 3),
    "care_asset, 5 levels": ("care_asset", 5),
    "care_asset, 7 levels": ("care_asset", 7),
}
# Each person in turn is left out, and the consensus of the other people is compared with their labels.
LEFT_OUT: dict[str, tuple[str, Levels]] = {
    "cebab_stars, people": ("cebab_stars", STARS),
    "10k_prompts, people": ("10k_prompts", STARS),
    "care_asset, people": ("care_asset", 5),
}
FEWEST_LABELS = 20  # of a person who is left out


@cache
def _read(name: str) -> tuple[list[dict[str, str]], dict[str, str]]:
    (folder,) = (path for kind in ("crowd", "judges", "ratings") if (path := data_directory() / kind / name).is_dir())
    return _rows(folder / "labels.csv"), {row["task"]: row["label"] for row in _rows(folder / "truth.csv")}


def _rows(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _models(name: str) -> tuple[Table, dict[str, str]]:
    """Labels of a crowd, or of the language models of a panel; and the truth."""
    rows, truth = _read(name)
    return [(row["task"], row["worker"], row["label"]) for row in rows if row.get("kind", "model") == "model"], truth


def _left_out(name: str, levels: Levels) -> Iterator[Crowd]:
    rows, _ = _read(name)
    people = _cut([(row["task"], row["worker"], row["label"]) for row in rows if row["kind"] == "human"], levels)
    for person in sorted({worker for _, worker, _ in people}):
        own = {task: label for task, worker, label in people if worker == person}
        crowd = _crowd([row for row in people if row[1] != person], own, _names_of(levels))
        if (crowd.truth >= 0).sum() >= FEWEST_LABELS:
            yield crowd


def _names_of(levels: Levels) -> Sequence[str]:
    return [str(level) for level in range(levels)] if isinstance(levels, int) else levels


def _cut(rows: Table, levels: Levels) -> Table:
    """Numbers become levels; labels that are no level are left out."""
    if isinstance(levels, int):
        return [(task, worker, _level(label, levels)) for task, worker, label in rows]
    return [row for row in rows if row[2] in levels]


def _cut_truth(truth: dict[str, str], levels: Levels) -> dict[str, str]:
    if isinstance(levels, int):
        return {task: _level(label, levels) for task, label in truth.items()}
    return {task: label for task, label in truth.items() if label in levels}


def _level(number: str, n_levels: int) -> str:
    return str(min(int(float(number) / 100 * n_levels), n_levels - 1))


def _crowd(rows: Table, truth: dict[str, str], classes: Sequence[str] | None = None) -> Crowd:
    """By default the classes are those of the labels; of repeated labels the last counts."""
    names = sorted({label for *_, label in rows}) if classes is None else list(classes)
    code = {name: position for position, name in enumerate(names)}
    last = {(task, worker): code[label] for task, worker, label in rows}
    examples, example = np.unique([task for task, _ in last], return_inverse=True)
    _, annotator = np.unique([worker for _, worker in last], return_inverse=True)
    known = [code.get(truth[task], len(names)) if task in truth else -1 for task in examples.tolist()]
    return Crowd(labels_of(example, annotator, np.array(list(last.values())), len(names)), np.array(known))


def labels_of(
    example: np.ndarray, annotator: np.ndarray, label: np.ndarray, n_classes: int, n_examples: int | None = None
) -> CrowdLabels:
    """Labels from codes; annotators without any are left out."""
    table = {"example": example, "annotator": annotator, "label": label}
    names = {name: name for name in table}
    examples = None if n_examples is None else np.arange(n_examples)
    return CrowdLabels.from_table(table, **names, classes=np.arange(n_classes), examples=examples)


# ------------------------------------------------------------------ how simulated annotators answer

Draw = Callable[[np.random.Generator], Crowd]


def coins(accuracy: np.ndarray, n_classes: int) -> np.ndarray:
    """Confusion matrices of annotators with these accuracies, their errors spread evenly."""
    wrong = (1 - accuracy) / (n_classes - 1)
    return wrong[:, None, None] + (accuracy - wrong)[:, None, None] * np.eye(n_classes)


def by_class(right: np.ndarray) -> np.ndarray:
    """Confusion matrices from how often each annotator is right about each of two classes, of shape (n, 2)."""
    return np.stack([np.stack([right[:, 0], 1 - right[:, 0]], 1), np.stack([1 - right[:, 1], right[:, 1]], 1)], 1)


def assigned(
    rng: np.random.Generator,
    n_examples: int,
    n_annotators: int,
    per_example: int | np.ndarray | None = None,
    busy: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Which annotators label which examples: so many of each at random, `busy` ones more often; all by default."""
    keys = rng.gumbel(size=(n_examples, n_annotators)) + (0.0 if busy is None else np.log(busy))
    rank = np.argsort(np.argsort(-keys, axis=1), axis=1)
    number = np.broadcast_to(n_annotators if per_example is None else per_example, n_examples)
    return np.nonzero(rank < number[:, None])


def drawn(rng: np.random.Generator, proba: np.ndarray) -> np.ndarray:
    """A class from each row of probabilities."""
    return np.minimum((rng.random(len(proba))[:, None] > proba.cumsum(axis=1)).sum(axis=1), proba.shape[1] - 1)


def independent(
    rng: np.random.Generator,
    truth: np.ndarray,
    tables: np.ndarray,
    per_example: int | np.ndarray | None = 5,
    busy: np.ndarray | None = None,
) -> CrowdLabels:
    """Labels of annotators with these confusion matrices whose errors are independent."""
    example, annotator = assigned(rng, len(truth), len(tables), per_example, busy)
    return labels_of(example, annotator, drawn(rng, tables[annotator, truth[example]]), tables.shape[1], len(truth))


def from_columns(columns: Sequence[np.ndarray], n_classes: int) -> CrowdLabels:
    """Complete labels, a column per annotator."""
    matrix = np.stack(columns, axis=1)
    example, annotator = np.divmod(np.arange(matrix.size), matrix.shape[1])
    return labels_of(example, annotator, matrix.ravel(), n_classes)


# ------------------------------------------------------------------ families of labels alone


def even(n_classes: int) -> np.ndarray:
    """All classes equally frequent."""
    return np.full(n_classes, 1 / n_classes)


def honest(
    low: float,
    high: float,
    n_classes: int = 2,
    n_annotators: int = 10,
    n_examples: int | tuple[int, int] = 500,
    per_example: int = 5,
    frequency: Sequence[float] | None = None,
    busy: np.ndarray | None = None,
) -> Draw:
    """Annotators of even accuracy between these two whose errors are independent."""

    def draw(rng: np.random.Generator) -> Crowd:
        n = n_examples if isinstance(n_examples, int) else int(rng.integers(n_examples[0], n_examples[1] + 1))
        truth = rng.choice(n_classes, n, p=frequency)
        tables = coins(rng.uniform(low, high, n_annotators), n_classes)
        return Crowd(independent(rng, truth, tables, min(per_example, n_annotators), busy), truth)

    return draw


def with_tables(
    tables: Callable[[np.random.Generator], np.ndarray], per_example: int = 5, frequency: Sequence[float] | None = None
) -> Draw:
    """The same with other confusion matrices."""

    def draw(rng: np.random.Generator) -> Crowd:
        made = tables(rng)
        truth = rng.choice(made.shape[1], 500, p=frequency)
        return Crowd(independent(rng, truth, made, per_example), truth)

    return draw


def one_label(overlap: float) -> Draw:
    """One label per example, on a share of them two; one in ten annotators is poor."""

    def draw(rng: np.random.Generator) -> Crowd:
        truth = rng.choice(3, 600, p=[0.5, 0.3, 0.2])
        accuracy = np.where(rng.random(20) < 0.1, 0.4, rng.uniform(0.9, 1, 20))
        return Crowd(independent(rng, truth, coins(accuracy, 3), 1 + (rng.random(600) < overlap)), truth)

    return draw


def one_class_always(n_classes: int, n_annotators: int, n_spammers: int, always: float) -> Draw:
    """Some annotators nearly always give the first class."""

    def tables(rng: np.random.Generator) -> np.ndarray:
        made = coins(rng.uniform(0.65, 0.9, n_annotators), n_classes)
        made[:n_spammers] = np.append(always, np.full(n_classes - 1, (1 - always) / (n_classes - 1)))
        return made

    return with_tables(tables)


def _biased(rng: np.random.Generator) -> np.ndarray:
    first = np.where(rng.random(12) < 0.5, 0.95, 0.6)
    return by_class(np.stack([first, 1.55 - first], 1))


def _all_biased(rng: np.random.Generator) -> np.ndarray:
    return by_class(np.stack([rng.uniform(0.85, 0.98, 12), rng.uniform(0.45, 0.75, 12)], 1))


def _of_different_difficulty(rng: np.random.Generator) -> np.ndarray:
    """Two of four classes are hard, and mostly mistaken for each other."""
    right = np.clip(np.array([0.95, 0.8, 0.6, 0.5]) + rng.normal(0, 0.07, (20, 4)), 0.3, 0.99)
    tables = np.repeat(((1 - right) / 3)[:, :, None], 4, axis=2)
    tables[:, np.arange(4), np.arange(4)] = right
    tables[:, 2, 3], tables[:, 3, 2] = 0.6 * (1 - right[:, 2]), 0.6 * (1 - right[:, 3])
    return tables / tables.sum(axis=2, keepdims=True)


def misled(low: float, high: float, n_classes: int, n_annotators: int, share: float, taken: float) -> Draw:
    """Correlated errors: a share of the examples have a wrong class of their own that so many labels are of."""

    def draw(rng: np.random.Generator) -> Crowd:
        truth = rng.integers(n_classes, size=500)
        wrong = (truth + rng.integers(1, n_classes, 500)) % n_classes
        is_misleading = rng.random(500) < share
        labels = independent(rng, truth, coins(rng.uniform(low, high, n_annotators), n_classes))
        example = labels.example_index
        falls = is_misleading[example] & (rng.random(len(example)) < taken)
        label = np.where(falls, wrong[example], labels.values)
        return Crowd(labels_of(example, labels.annotator_index, label, n_classes, 500), truth)

    return draw


def _hard_examples(rng: np.random.Generator) -> Crowd:
    """Half the examples are nearly coin flips for everybody, the other half easy."""
    truth = rng.integers(2, size=500)
    example, annotator = assigned(rng, 500, 12, 6)
    skill, ease = rng.normal(1.2, 0.7, 12), np.where(rng.random(500) < 0.5, 0.15, 1.6)
    right = rng.random(len(example)) < 1 / (1 + np.exp(-skill[annotator] * ease[example] * 1.3))
    return Crowd(labels_of(example, annotator, np.where(right, truth[example], 1 - truth[example]), 2, 500), truth)


def panel(n_classes: int, n_vendors: int, per_vendor: int, own: float) -> Draw:
    """Language models of a few vendors: those of one mostly repeat its errors, and all prefer some classes."""

    def draw(rng: np.random.Generator, n: int = 400) -> Crowd:
        truth = rng.integers(n_classes, size=n)
        suggested = rng.integers(n_classes, size=n)  # to all, by misleading examples
        is_misleading = rng.random(n) < 0.2
        said = []
        for _ in range(n_vendors):
            skill, preference = rng.uniform(0.5, 0.85), rng.dirichlet(np.ones(n_classes) * 2)
            base = np.where(rng.random(n) < skill, truth, rng.choice(n_classes, n, p=preference))
            base = np.where(is_misleading & (rng.random(n) < 0.7), suggested, base)
            for _ in range(per_vendor):
                alone = np.where(rng.random(n) < skill - 0.1, truth, rng.choice(n_classes, n, p=preference))
                said.append(np.where(rng.random(n) < own, alone, base))
        return Crowd(from_columns(said, n_classes), truth)

    return draw


def _near_copies(rng: np.random.Generator) -> Crowd:
    """Four honest annotators, and a weak one whose answers three others repeat but for one in a hundred."""
    n, n_classes = 400, 3
    truth = rng.integers(n_classes, size=n)
    said = [drawn(rng, table[truth]) for table in coins(np.append(rng.uniform(0.65, 0.9, 4), 0.5), n_classes)]
    said += [np.where(rng.random(n) < 0.01, rng.integers(n_classes, size=n), said[4]) for _ in range(3)]
    return Crowd(from_columns(said, n_classes), truth)


def _option_letters(rng: np.random.Generator) -> Crowd:
    """A quiz: letters mean nothing, questions differ in difficulty, and hard ones have a tempting answer."""
    n, n_classes = 150, 4
    truth, tempting = rng.integers(n_classes, size=n), rng.integers(n_classes, size=n)
    skill, hard = rng.normal(0.5, 1.0, 25), rng.normal(0, 1.2, n)
    example, annotator = assigned(rng, n, 25, 12)
    knows = rng.random(len(example)) < 1 / (1 + np.exp(hard[example] - skill[annotator]))
    is_tempted = rng.random(len(example)) < 0.35
    guess = np.where(is_tempted, tempting[example], rng.integers(n_classes, size=len(example)))
    return Crowd(labels_of(example, annotator, np.where(knows, truth[example], guess), n_classes, n), truth)


LABELS: dict[str, Draw] = {
    "strong": honest(0.7, 0.95),
    "weak .6": honest(0.6, 0.6),
    "weak .6, complete": honest(0.55, 0.65, n_annotators=7, per_example=7),
    "weak, 4 classes": honest(0.35, 0.6, 4, n_annotators=20),
    "7 classes": honest(0.3, 0.9, 7, n_annotators=20),
    "two annotators": honest(0.65, 0.9, n_annotators=2),
    "two annotators, 4 classes": honest(0.5, 0.9, 4, n_annotators=2),
    "three annotators": honest(0.6, 0.9, n_annotators=3),
    "three annotators, 4 classes": honest(0.5, 0.9, 4, n_annotators=3),
    "three of 150": honest(0.5, 0.95, n_annotators=150, per_example=3),
    "450 labels of 150": honest(0.5, 0.95, n_annotators=150, n_examples=90),
    "unbalanced": honest(0.65, 0.9, frequency=(0.9, 0.1)),
    "unbalanced, 4 classes": honest(0.5, 0.85, 4, frequency=(0.85, 0.05, 0.05, 0.05)),
    "nine to one, three labels": honest(0.6, 0.9, frequency=(0.9, 0.1), n_annotators=30, per_example=3),
    "mostly one class": honest(0.5, 0.85, 5, frequency=(0.8, 0.05, 0.05, 0.05, 0.05), n_annotators=15),
    "rare class": honest(0.65, 0.9, frequency=(0.95, 0.05), n_annotators=20),
    "rare classes of three": honest(0.55, 0.9, 3, frequency=(0.8, 0.15, 0.05), n_annotators=15, per_example=4),
    "two to one": honest(0.6, 0.85, frequency=(0.67, 0.33), n_annotators=30, per_example=3),
    "strong, 4 classes": honest(0.7, 0.95, 4, n_annotators=12, per_example=3),
    "uneven counts": honest(0.55, 0.95, n_annotators=40, busy=1 / np.arange(1, 41) ** 1.5),
    "20 to 60 examples": honest(0.55, 0.9, n_annotators=7, n_examples=(20, 60)),
    "20 to 60 examples, 3 classes": honest(0.55, 0.9, 3, n_annotators=7, n_examples=(20, 60)),
    "20 to 60 examples, 4 classes": honest(0.55, 0.9, 4, n_annotators=7, n_examples=(20, 60)),
    **{f"one label, {overlap} % overlap": one_label(overlap / 100) for overlap in (0, 2, 5, 10)},
    "adversaries": with_tables(lambda rng: coins(np.append([0.15] * 3, rng.uniform(0.6, 0.85, 12)), 2)),
    "one-class spammers": one_class_always(3, 15, 6, 0.96),
    "one-class spammers of two": one_class_always(2, 10, 4, 1.0),
    "biased": with_tables(_biased, frequency=(0.6, 0.4)),
    "all biased to one class": with_tables(_all_biased),
    "few experts among guessers": with_tables(lambda rng: coins(np.repeat([0.95, 0.53], (3, 9)), 2), 8),
    "few experts among guessers, 4 classes": with_tables(lambda rng: coins(np.repeat([0.9, 0.3], (3, 12)), 4), 8),
    "classes of different difficulty": with_tables(_of_different_difficulty),
    "correlated errors": misled(0.65, 0.95, 2, 10, 0.3, 0.5),
    "correlated errors, 4 classes": misled(0.5, 0.95, 4, 20, 0.4, 0.6),
    "hard examples": _hard_examples,
    "judges of three vendors": panel(3, 3, 2, 0.5),
    "judges of four vendors, 5 classes": panel(5, 4, 3, 0.4),
    "near copies": _near_copies,
    "option letters": _option_letters,
}

# ------------------------------------------------------------------ families with features


def examples(
    rng: np.random.Generator, n: int, frequency: np.ndarray, gap: float, n_features: int = 10
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Features and truth of examples to be labelled and of others; every class is among the first.

    Classes are normal, their centres `gap` apart, in random directions. The best classifier of two even classes is
    right on Phi(gap / 2): 0.93 with a gap of 3 (good features), 0.69 with 1 (weak), 0.5 with 0 (useless).
    """
    n_classes, total = len(frequency), n + N_TEST
    truth = rng.choice(n_classes, total, p=frequency)
    while len(np.unique(truth[:n])) < n_classes:
        truth = rng.choice(n_classes, total, p=frequency)
    directions = np.linalg.qr(rng.normal(size=(n_features, n_classes)))[0].T  # orthogonal, of length one
    X = rng.normal(size=(total, n_features)) + gap / np.sqrt(2) * directions[truth]
    return X[:n], truth[:n], X[n:], truth[n:]


def honest_with_features(
    n: int,
    accuracies: tuple[float, float],
    n_annotators: int,
    gap: float = 3.0,
    frequency: Sequence[float] = (0.5, 0.5),
    n_features: int = 10,
    per_example: int | None = None,
) -> Draw:
    """Errors are independent of each other and of the features."""

    def tables(rng: np.random.Generator) -> np.ndarray:
        return coins(rng.uniform(*accuracies, n_annotators), len(frequency))

    return tables_with_features(tables, per_example, frequency, n, gap, n_features)


def tables_with_features(
    tables: Callable[[np.random.Generator], np.ndarray],
    per_example: int | None = 5,
    frequency: Sequence[float] = (0.5, 0.5),
    n: int = 500,
    gap: float = 3.0,
    n_features: int = 10,
) -> Draw:
    """The same with any confusion matrices."""

    def draw(rng: np.random.Generator) -> Crowd:
        X, truth, X_test, truth_test = examples(rng, n, np.array(frequency), gap, n_features)
        return Crowd(independent(rng, truth, tables(rng), per_example), truth, X, X_test, truth_test)

    return draw


def correlated_with_features(by_features: bool, share: float, gap: float, n: int = 500) -> Draw:
    """Seven annotators of 0.8; on a share of the examples most labels are of one wrong class.

    By features, these examples are a region along a feature that says nothing about the class, and labels there tend to
    the second class whatever the truth.
    """

    def draw(rng: np.random.Generator) -> Crowd:
        X, truth, X_test, truth_test = examples(rng, n, even(2), gap)
        region = rng.normal(size=n)
        is_misleading = region > np.quantile(region, 1 - share)
        said = independent(rng, truth, coins(np.full(7, 0.8), 2), None)
        example = said.example_index
        wrong = np.ones(n, dtype=int) if by_features else 1 - truth
        falls = is_misleading[example] & (rng.random(len(example)) < 0.7)
        labels = labels_of(example, said.annotator_index, np.where(falls, wrong[example], said.values), 2)
        if by_features:
            X, X_test = np.column_stack([X, region]), np.column_stack([X_test, rng.normal(size=N_TEST)])
        return Crowd(labels, truth, X, X_test, truth_test)

    return draw


def one_label_with_features(overlap: float) -> Draw:
    """One label per example, of ten annotators; on a share of examples a second one."""

    def draw(rng: np.random.Generator) -> Crowd:
        X, truth, X_test, truth_test = examples(rng, 500, even(2), 3.0)
        tables = coins(rng.uniform(0.6, 0.95, 10), 2)
        return Crowd(independent(rng, truth, tables, 1 + (rng.random(500) < overlap)), truth, X, X_test, truth_test)

    return draw


def _near_boundary(rng: np.random.Generator) -> Crowd:
    """Seven annotators whose errors are independent but more frequent near the boundary: a coin on it."""
    X, truth, X_test, truth_test = examples(rng, 500, even(2), 2.0)
    normal = X[truth == 1].mean(axis=0) - X[truth == 0].mean(axis=0)
    distance = np.abs((X - X.mean(axis=0)) @ normal / np.linalg.norm(normal))
    is_right = rng.random((500, 7)) < (0.5 + 0.45 * np.tanh(distance))[:, None]
    said = np.where(is_right, truth[:, None], 1 - truth[:, None])
    return Crowd(from_columns(list(said.T), 2), truth, X, X_test, truth_test)


def paper(clarity: float, missing: float = 0.0, linear: bool = True) -> Draw:
    """The paper's simulator: ten annotators who err together near the boundary, an expert and an adversary.

    A linear classifier can be right on 0.98 of the examples, or, of classes of two clusters each, on about 0.8.
    """

    def draw(rng: np.random.Generator) -> Crowd:
        if linear:
            X, truth, X_test, truth_test = examples(rng, 500, even(2), 4.0)
        else:
            seed = int(rng.integers(2**31))
            X, truth = make_classification(500 + N_TEST, 10, n_informative=5, n_redundant=0, random_state=seed)
            X, truth, X_test, truth_test = X[:500], truth[:500], X[500:], truth[500:]
        settings = {"clarity": clarity, "experts": 1, "adversaries": 1, "missing": missing}
        labels = simulate_annotators(X, truth, 10, random_state=rng, **settings)
        has_labels = np.flatnonzero(labels.labels_per_example > 0)
        return Crowd(labels, truth, X, X_test, truth_test).some(has_labels)

    return draw


def _four_of_ten_give_one_class(rng: np.random.Generator) -> np.ndarray:
    tables = coins(np.full(10, 0.75), 2)
    tables[6:] = np.array([0.0, 1.0])
    return tables


def _rare_class_missed(rng: np.random.Generator) -> np.ndarray:
    return by_class(np.stack([rng.uniform(0.9, 1.0, 5), rng.uniform(0.4, 0.7, 5)], 1))


FEATURES: dict[str, Draw] = {
    "honest .65, 300 x 3, good features": honest_with_features(300, (0.6, 0.7), 3),
    "honest .65, 300 x 5, good features": honest_with_features(300, (0.65, 0.65), 5),
    "honest .60, 1000 x 5, good features": honest_with_features(1000, (0.6, 0.6), 5),
    "honest .65, 300 x 5, weak features": honest_with_features(300, (0.65, 0.65), 5, gap=1.0),
    "honest .65, 300 x 5, useless features": honest_with_features(300, (0.65, 0.65), 5, gap=0.0),
    "uneven .55 to .95, 500 x 5, good features": honest_with_features(500, (0.55, 0.95), 5),
    "uneven .55 to .95, 500 x 5, useless features": honest_with_features(500, (0.55, 0.95), 5, gap=0.0),
    "strong .85 to .95, 500 x 5, weak features": honest_with_features(500, (0.85, 0.95), 5, gap=1.0),
    "strong .85 to .95, 500 x 3, good features": honest_with_features(500, (0.85, 0.95), 3),
    "many features, 300 x 5 of .7": honest_with_features(300, (0.65, 0.75), 5, n_features=100),
    "150 annotators, three labels each of 400, good features": honest_with_features(
        400, (0.6, 0.9), 150, per_example=3
    ),
    "errors in common, not by features, good features": correlated_with_features(False, 0.15, 3.0),
    "errors in common, not by features, weak features": correlated_with_features(False, 0.15, 1.0),
    "errors in common by features, good features": correlated_with_features(True, 0.2, 3.0),
    "errors in common by features, weak features": correlated_with_features(True, 0.2, 1.0),
    "errors near the boundary, independent": _near_boundary,
    "adversaries": tables_with_features(lambda rng: coins(np.repeat([0.7, 0.2], (8, 2)), 2)),
    "four of ten give one class": tables_with_features(_four_of_ten_give_one_class),
    "few experts among guessers": tables_with_features(lambda rng: coins(np.repeat([0.9, 0.5], (2, 8)), 2), None),
    "unbalanced 90 : 10, .75, 500 x 5": honest_with_features(500, (0.7, 0.8), 5, frequency=(0.9, 0.1)),
    "unbalanced and biased": tables_with_features(_rare_class_missed, None, (0.85, 0.15)),
    "20 examples x 5": honest_with_features(20, (0.65, 0.9), 5),
    "40 examples x 3": honest_with_features(40, (0.65, 0.9), 3),
    "60 examples x 5, weak features": honest_with_features(60, (0.65, 0.9), 5, gap=1.0),
    "one label": one_label_with_features(0.0),
    "one label, 5 % with two": one_label_with_features(0.05),
    "paper, clarity 1": paper(1.0),
    "paper, clarity 2": paper(2.0),
    "paper, clarity 5": paper(5.0),
    "paper, clarity 2, 70 % missing": paper(2.0, 0.7),
    "paper, clarity 1, not linear": paper(1.0, linear=False),
    "paper, clarity 2, not linear": paper(2.0, linear=False),
    "eight classes of .5, 800 x 5": honest_with_features(800, (0.4, 0.6), 5, gap=3.5, frequency=even(8)),
    "four classes of .6, 300 x 4, weak features": honest_with_features(
        300, (0.5, 0.7), 4, gap=1.5, frequency=(0.4, 0.3, 0.2, 0.1)
    ),
}

# ------------------------------------------------------------------ families of levels

# How frequent levels are: most in the middle, at the top, or at both ends.
_SHAPES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "middle": lambda place: np.exp(-1.5 * place**2),
    "top": lambda place: np.exp(2.5 * place),
    "ends": lambda place: np.exp(2 * place**2),
}


def levels(
    n: int = 500,
    n_annotators: int = 12,
    per_example: int = 5,
    n_levels: int = 5,
    offset: float = 0.6,
    exact: tuple[float, float] = (-0.4, 0.4),
    slope: tuple[float, float] = (1.0, 1.0),
    shared: float = 0.0,
    constant: float = 0.0,
    hard: float = 0.0,
    shape: str = "middle",
    overlap: float | None = None,
) -> Draw:
    """Annotators are harsh or lenient, exact or vague; 5 % of their labels are random.

    Parameters
    ----------
    offset : float, default=0.6
        Standard deviation of how far annotators are above or below the truth, in levels of a scale of five.
    exact : tuple of float, default=(-0.4, 0.4)
        Mean and standard deviation of the logarithm of an annotator's spread.
    slope : tuple of float, default=(1.0, 1.0)
        The range of annotators' slopes: below one they avoid the ends.
    shared : float, default=0.0
        Standard deviation of an example's error that all annotators have in common.
    constant : float, default=0.0
        Share of annotators who always give the same level.
    hard : float, default=0.0
        By how much more labels of three examples in ten are spread.
    overlap : float or None, default=None
        Share of examples with two labels, all others having one.
    """

    def draw(rng: np.random.Generator) -> Crowd:
        frequency = _SHAPES[shape](np.linspace(-1, 1, n_levels))
        truth = rng.choice(n_levels, n, p=frequency / frequency.sum())
        unit, middle = (n_levels - 1) / 4, (n_levels - 1) / 2
        spread = np.exp(rng.normal(*exact, n_annotators)) * (1 + hard * (rng.random((n, 1)) < 0.3))
        noise = rng.normal(0, offset, n_annotators) + spread * rng.normal(size=(n, n_annotators))
        noise += shared * rng.normal(size=(n, 1))
        felt = middle + rng.uniform(*slope, n_annotators) * (truth[:, None] - middle) + unit * noise
        said = np.clip(np.rint(felt), 0, n_levels - 1).astype(int)
        said = np.where(rng.random(said.shape) < 0.05, rng.integers(0, n_levels, said.shape), said)
        said = np.where(rng.random(n_annotators) < constant, rng.integers(0, n_levels, n_annotators), said)
        number = per_example if overlap is None else 1 + (rng.random(n) < overlap)
        example, annotator = assigned(rng, n, n_annotators, number)
        return Crowd(labels_of(example, annotator, said[example, annotator], n_levels, n), truth)

    return draw


LEVELS: dict[str, Draw] = {
    "four levels": levels(n_levels=4),
    "ten levels": levels(n_levels=10, per_example=4),
    "small offsets, 200 examples": levels(200, offset=0.3),
    "eight judges, correlated errors": levels(n_annotators=8, per_example=8, shared=0.5),
    "four judges, correlated errors, 100 examples": levels(100, n_annotators=4, per_example=4, shared=0.9),
    "mostly high, ends avoided": levels(shape="top", slope=(0.5, 1.0)),
    "mostly at the ends, three levels": levels(shape="ends", n_levels=3),
    "15 % of annotators constant, 80 examples": levels(80, constant=0.15),
    "one label, 2 % overlap": levels(overlap=0.02),
    "one label, 20 % overlap": levels(overlap=0.2),
    "two labels of 40 annotators": levels(n_annotators=40, per_example=2),
    "mostly high, hard examples": levels(shape="top", hard=2.0),
    "mostly high, exact annotators": levels(shape="top", exact=(-1.0, 0.3)),
    "six judges without offsets": levels(offset=0.0, n_annotators=6, per_example=6),
    "seven levels without offsets": levels(offset=0.0, n_levels=7),
    "25 examples": levels(25, n_annotators=6, per_example=4),
}

FAMILIES = {"labels": LABELS, "features": FEATURES, "levels": LEVELS}
