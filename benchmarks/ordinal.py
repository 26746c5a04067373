"""Labels with an order: levels, classes, numbers or votes?

python benchmarks/ordinal.py levels calibration judges

Judges are read from the folder ``judges`` in the directory that CROWDWISE_DATA names: per set a table of labels by
language models and people (task, worker, label, kind) and the strict majority of the people as truth (task, label).

levels: language models against that majority; people against a person who was left out;
simulated annotators who are harsh or lenient, exact or vague, with 5 % of labels at random. Every cell has accuracy and
mean absolute error in levels.
calibration: how sure the default is and how often it is right. judges: whether annotators of levels are ranked and
described as the truth shows them. Both have all sets of levels of benchmarks/trust.py, in its two halves.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from tables import Place, Run, parser
from trust import calibration_error
from trust_sets import Crowd, Row, all_rows, draws

from crowdwise import CrowdLabels, CrowdRidgeRegressor, aggregate
from crowdwise.em import Ordinal
from crowdwise.exceptions import CrowdWarning
from crowdwise.results.consensus import chosen_classes
from crowdwise.results.fit_results import FitResults
from crowdwise.truths.check import share_interval, spread_interval

PAGE = "docs/evidence/ordinal.md"
PLACES = {part: Place(PAGE, f"ordinal {part}") for part in ("levels", "calibration", "judges")}
# Labels of known truth from which an annotator is compared with what was estimated; simulated crowds per family.
ENOUGH, N_DRAWS = 100, 10
SETS = ("cebab_stars", "10k_prompts")
LEVELS = np.arange(1, 6)
# Labels of a crowd and what is compared with them, NaN where it is unknown.
Case = tuple[CrowdLabels, np.ndarray]


def judges(name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    folder = Path(os.environ.get("CROWDWISE_DATA", "data")) / "judges" / name
    return pd.read_csv(folder / "labels.csv"), pd.read_csv(folder / "truth.csv")


def labels_of(table: pd.DataFrame) -> CrowdLabels:
    return CrowdLabels.from_table(table[["task", "worker", "label"]], classes=LEVELS)


def models_against_people(name: str) -> Iterator[Case]:
    table, truth = judges(name)
    labels = labels_of(table[table["kind"] == "model"])
    yield labels, truth.set_index("task")["label"].reindex(labels.examples).to_numpy(dtype=float)


def against_people(name: str) -> Iterator[Case]:
    table, _ = judges(name)
    table = table[table["kind"] == "human"]
    for person in sorted(table["worker"].unique()):
        of_person = table[table["worker"] == person].set_index("task")["label"]
        labels = labels_of(table[table["worker"] != person])
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
    ratings = CrowdLabels.from_matrix(labels.to_matrix().astype(float), scale="interval")
    found = CrowdRidgeRegressor().fit(np.zeros((len(labels), 1)), ratings).results_.label_consensus.label
    return np.clip(np.rint(found), 1, 5)


def fitted(by: str = "mode", model: Ordinal | None = None) -> Callable[[CrowdLabels], np.ndarray]:
    return lambda labels: aggregate(labels.with_scale("ordinal", consensus=by), annotator_model=model).label


METHODS: dict[str, Callable[[CrowdLabels], np.ndarray]] = {
    "majority": vote("mode"),
    "median of labels": vote("median"),
    "numbers": numbers,
    "ordinal": fitted(),
    "by median": fitted("median"),
    "`Ordinal()`": fitted(model=Ordinal()),
}


def compared(cases: Iterator[Case]) -> list[str]:
    """Of every method accuracy and mean absolute error, over all examples of all cases."""
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
    return f"{(found == truth).mean():.3f}, {np.abs(found - truth).mean():.3f}"


# ------------------------------------------------------------------ parts


def levels_part(run: Run) -> None:
    cases: dict[str, Callable[[], Iterator[Case]]] = {}
    for name in SETS:
        cases[f"{name}, models"] = partial(models_against_people, name)
        cases[f"{name}, a person left out"] = partial(against_people, name)
    for n in (2, 3, 5):
        cases[f"simulated, {n} labels per example"] = partial(simulated, n, 10)
    chosen = list(cases)[-1:] if run.quick else list(cases)
    run.table(PLACES["levels"], ("labels", *METHODS), [[name, *compared(cases[name]())] for name in chosen])


def level_rows(quick: bool) -> Iterator[tuple[Row, list[tuple[Crowd, FitResults]]]]:
    """Every set and family of levels, with the consensus of each of its crowds."""
    rows = [row for row in all_rows() if row.kind == "levels" and row.group != "parts"]
    for row in rows[:1] if quick else sorted(rows, key=lambda row: (row.group, row.half, row.name)):
        crowds = draws(row, 1 if quick else N_DRAWS)
        yield row, [(crowd, aggregate(crowd.labels.with_scale("ordinal"))) for crowd in crowds]


def means(rows: list[tuple[Row, list[float]]]) -> list[list[str]]:
    """The means by group and half; every row is printed."""
    lines = []
    for row, values in rows:
        print(f"{row.group}: {row.name}", row.half, *(f"{value:.3f}" for value in values))
    for group, half in sorted({(row.group, row.half) for row, _ in rows}):
        own = [values for row, values in rows if (row.group, row.half) == (group, half)]
        lines.append([f"{group} ({len(own)})", half, *(f"{value:.3f}" for value in np.nanmean(own, axis=0))])
    return lines


def calibration_part(run: Run) -> None:
    rows = []
    for row, found in level_rows(run.quick):
        figures = []
        for crowd, result in found:
            is_right = (result.label == crowd.truth)[crowd.known].astype(float)
            stated = result.confidence[crowd.known]
            figures.append([is_right.mean(), stated.mean(), calibration_error(stated, is_right)])
        right, stated, error = np.mean(figures, axis=0)
        rows.append((row, [right, stated, stated - right, error]))
    run.table(
        PLACES["calibration"], ("crowds", "half", "accuracy", "stated", "stated − right", "calibration error"),
        means(rows),
    )  # fmt: skip


def judges_part(run: Run) -> None:
    rows = []
    for row, found in level_rows(run.quick):
        figures = [figure for crowd, result in found if (figure := described(crowd, result))]
        if figures:
            rows.append((row, np.nanmean(figures, axis=0).tolist()))
    heads = ("rank correlation of spreads", "of accuracies", "interval of the spread covers", "of the accuracy")
    run.table(PLACES["judges"], ("crowds", "half", *heads), means(rows))


def described(crowd: Crowd, result: FitResults) -> list[float]:
    """Whether spread and accuracy rank annotators as the truth does, and how many of their intervals cover it."""
    labels = crowd.labels
    truth = crowd.truth[labels.example_index]
    known = (truth >= 0) & (truth < crowd.n_classes)
    number = np.bincount(labels.annotator_index[known], minlength=labels.n_annotators)
    judged = np.flatnonzero(number >= ENOUGH)
    if len(judged) < 3:
        return []
    above = [(labels.values - truth)[known & (labels.annotator_index == judge)] for judge in judged]
    spread, accuracy = np.array([one.std() for one in above]), np.array([(one == 0).mean() for one in above])
    covered = []
    for interval, estimate, true in (
        (spread_interval, result.spread, spread), (share_interval, result.accuracy, accuracy)
    ):  # fmt: skip
        low, high = interval(estimate[judged], labels.labels_per_annotator[judged])
        covered.append(((low <= true) & (true <= high)).mean())
    ranks = [spearmanr(result.spread[judged], spread)[0], spearmanr(result.accuracy[judged], accuracy)[0]]
    return [*ranks, *covered]


PARTS = {"levels": levels_part, "calibration": calibration_part, "judges": judges_part}


def main() -> None:
    options = parser(__doc__, PARTS).parse_args()
    warnings.simplefilter("ignore", CrowdWarning)
    run = Run(options, [PLACES[part] for part in options.parts])
    for part in options.parts:
        PARTS[part](run)


if __name__ == "__main__":
    main()
