"""Labels with an order: levels, classes, numbers or votes? And abstentions: left out, or answers?

python benchmarks/ordinal.py              all parts
python benchmarks/ordinal.py truth people

Judges are read from the folder ``judges`` in the directory that CROWDWISE_DATA names: per set a table of labels by
language models and people (task, worker, label, kind) and the strict majority of the people as truth (task, label).

truth: language models alone, and all together, against that majority. people: each person in turn is left out, and the
consensus of the others is compared with what that person said: nobody judges themselves. simulated: annotators who are
harsh or lenient, exact or vague, with 5 % of labels at random; the truth is known. Every cell has accuracy, mean
absolute error in levels, and quadratic weighted kappa.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import cohen_kappa_score
from tables import Place, Run, parser

from crowdwise import CrowdLabels, CrowdRidgeRegressor, aggregate
from crowdwise.consensus import chosen_classes
from crowdwise.em import Ordinal
from crowdwise.exceptions import CrowdWarning

PAGE = "docs/evidence/ordinal.md"
PLACES = {part: Place(PAGE, f"ordinal {part}") for part in ("truth", "people", "simulated", "abstentions", "speed")}
SETS = ("cebab_stars", "10k_prompts")
LEVELS = np.arange(1, 6)
# Labels of a crowd and what is compared with them, NaN where it is unknown.
Case = tuple[CrowdLabels, np.ndarray]


def judges(name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    folder = Path(os.environ.get("CROWDWISE_DATA", "data")) / "judges" / name
    return pd.read_csv(folder / "labels.csv"), pd.read_csv(folder / "truth.csv")


def labels_of(table: pd.DataFrame) -> CrowdLabels:
    return CrowdLabels.from_table(table[["task", "worker", "label"]], classes=LEVELS)


def against_truth(name: str, kinds: tuple[str, ...]) -> Iterator[Case]:
    table, truth = judges(name)
    labels = labels_of(table[table["kind"].isin(kinds)])
    yield labels, truth.set_index("task")["label"].reindex(labels.examples).to_numpy(dtype=float)


def against_people(name: str, kinds: tuple[str, ...], quick: bool) -> Iterator[Case]:
    table, _ = judges(name)
    people = sorted(table.loc[table["kind"] == "human", "worker"].unique())
    for person in people[:1] if quick else people:
        of_person = table[table["worker"] == person].set_index("task")["label"]
        labels = labels_of(table[table["kind"].isin(kinds) & (table["worker"] != person)])
        yield labels, of_person.reindex(labels.examples).to_numpy(dtype=float)


def simulated(per_example: int, n_trials: int, n_examples: int = 600, n_annotators: int = 12) -> Iterator[Case]:
    for seed in range(n_trials):
        rng = np.random.default_rng(seed)
        truth = rng.choice(LEVELS, n_examples, p=[0.1, 0.2, 0.3, 0.25, 0.15])
        offset, spread = rng.normal(0, 0.6, n_annotators), np.exp(rng.normal(-0.4, 0.4, n_annotators))
        felt = truth[:, np.newaxis] + offset + spread * rng.normal(size=(n_examples, n_annotators))
        said = np.clip(np.rint(felt), 1, 5)
        said = np.where(rng.random(said.shape) < 0.05, rng.integers(1, 6, said.shape), said)
        order = rng.random(said.shape).argsort(axis=1).argsort(axis=1)
        yield CrowdLabels.from_matrix(np.where(order < per_example, said, np.nan), classes=LEVELS), truth.astype(float)


# ------------------------------------------------------------------ methods


def vote(by: str) -> Callable[[CrowdLabels], np.ndarray]:
    def answer(labels: CrowdLabels) -> np.ndarray:
        counts = labels.counts() + 1e-9 * np.random.default_rng(0).random((len(labels), len(LEVELS)))  # ties by lot
        return LEVELS[chosen_classes(counts / counts.sum(axis=1, keepdims=True), by, LEVELS.astype(float))]

    return answer


def numbers(labels: CrowdLabels) -> np.ndarray:
    """CrowdRidgeRegressor without features: the mean weighted by how exact annotators are, rounded."""
    ratings = CrowdLabels.from_matrix(labels.to_matrix().astype(float), kind="rating")
    found = CrowdRidgeRegressor().fit(np.zeros((len(labels), 1)), ratings).label_consensus_
    return np.clip(np.rint(found), 1, 5)


def fitted(**settings: object) -> Callable[[CrowdLabels], np.ndarray]:
    return lambda labels: aggregate(labels, **settings).label


METHODS: dict[str, Callable[[CrowdLabels], np.ndarray]] = {
    "majority": vote("mode"),
    "median of labels": vote("median"),
    "mean of labels": vote("mean"),
    "numbers": numbers,
    "classes": fitted(),
    "levels": fitted(kind="ordinal", annotator_model=Ordinal()),
    "levels, by mean": fitted(kind="ordinal", annotator_model=Ordinal(), consensus_by="mean"),
}


def compared(cases: Iterator[Case]) -> list[str]:
    """Of every method accuracy, mean absolute error and quadratic weighted kappa, over all examples of all cases."""
    answers: dict[str, list[np.ndarray]] = {name: [] for name in METHODS}
    wanted = []
    for labels, truth in cases:
        known = ~np.isnan(truth)
        wanted.append(truth[known])
        for name, method in METHODS.items():
            answers[name].append(method(labels)[known])
    truth = np.concatenate(wanted)
    return [scores(np.concatenate(found), truth) for found in answers.values()]


def scores(found: np.ndarray, truth: np.ndarray) -> str:
    kappa = cohen_kappa_score(found.astype(int), truth.astype(int), weights="quadratic", labels=LEVELS)
    return f"{(found == truth).mean():.3f}, {np.abs(found - truth).mean():.3f}, {kappa:.3f}"


# ------------------------------------------------------------------ parts


def truth_part(run: Run) -> None:
    cases = [(name, kinds) for name in SETS for kinds in (("model",), ("model", "human"))]
    rows = [
        [f"{name}, {'models' if kinds == ('model',) else 'all'}", *compared(against_truth(name, kinds))]
        for name, kinds in (cases[:1] if run.quick else cases)
    ]
    run.table(PLACES["truth"], ("set", *METHODS), rows)


def people_part(run: Run) -> None:
    cases = [(name, kinds) for name in SETS for kinds in (("human",), ("model", "human"))]
    rows = [
        [f"{name}, {'people' if kinds == ('human',) else 'all'}", *compared(against_people(name, kinds, run.quick))]
        for name, kinds in (cases[:1] if run.quick else cases)
    ]
    run.table(PLACES["people"], ("set", *METHODS), rows)


def simulated_part(run: Run) -> None:
    numbers_of_labels = (3,) if run.quick else (2, 3, 5)
    rows = [[str(n), *compared(simulated(n, 1 if run.quick else 10))] for n in numbers_of_labels]
    run.table(PLACES["simulated"], ("labels per example", *METHODS), rows)


def abstentions_part(run: Run) -> None:
    folder = Path(os.environ.get("CROWDWISE_DATA", "data")) / "crowd" / "dices350"
    table, truth = pd.read_csv(folder / "labels.csv"), pd.read_csv(folder / "truth.csv")
    rows = []
    for n in (123,) if run.quick else (5, 20, 123):
        found: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
        for seed in range(1 if n == 123 else 10):
            # Some raters of all: with all of them, no method has anything left to gain.
            raters = np.random.default_rng(seed).permutation(table["worker"].unique())[:n]
            some = table[table["worker"].isin(raters)]
            labels = CrowdLabels.from_table(some, abstain=["Unsure"])
            known = truth.set_index("task")["label"].reindex(labels.examples).to_numpy()
            for informative, results in found.items():
                result = aggregate(labels, informative_abstentions=informative)
                results.append(((result.label == known).mean(), result.confidence.mean()))
        cells = [f"{right:.3f} ({sure:.3f})" for right, sure in (np.mean(each, axis=0) for each in found.values())]
        rows.append([str(n), *cells])
    run.table(PLACES["abstentions"], ("raters", "left out", "informative"), rows)


def speed_part(run: Run) -> None:
    n_examples, n_annotators = (10_000 if run.quick else 1_000_000), 200
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 5, n_examples)
    index = (rng.integers(0, n_annotators, (n_examples, 1)) + np.arange(5) * 37) % n_annotators
    offset = rng.normal(0, 0.6, n_annotators)
    said = np.clip(np.rint(truth[:, np.newaxis] + offset[index] + 0.7 * rng.normal(size=index.shape)), 0, 4)
    order = index.argsort(axis=1)
    labels = CrowdLabels(
        np.arange(n_examples + 1) * 5,
        np.take_along_axis(index, order, axis=1).ravel().astype(np.int16),
        np.take_along_axis(said, order, axis=1).ravel().astype(np.int8),
        np.arange(n_annotators),
        np.arange(n_examples),
        np.arange(5),
    )
    cells = []
    for settings in ({}, {"kind": "ordinal", "annotator_model": Ordinal()}):
        began = time.process_time()
        found = aggregate(labels, **settings)
        seconds = time.process_time() - began
        cells.append(f"{seconds:.1f} s, {found.n_rounds} rounds, {(found.label == truth).mean():.3f}")
    run.table(PLACES["speed"], ("labels", "classes", "levels"), [[f"{5 * n_examples:,}", *cells]])


PARTS = {
    "truth": truth_part,
    "people": people_part,
    "simulated": simulated_part,
    "abstentions": abstentions_part,
    "speed": speed_part,
}


def main() -> None:
    options = parser(__doc__, PARTS).parse_args()
    warnings.simplefilter("ignore", CrowdWarning)
    run = Run(options, [PLACES[part] for part in options.parts])
    for part in options.parts:
        PARTS[part](run)


if __name__ == "__main__":
    main()
