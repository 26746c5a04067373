"""Do real annotators disagree, and err, near the boundary? People on eleven public crowds, with plain features.

The boundary is that of a logistic regression of the truth, out of fold; the distance of an example is the gap between
its two most probable classes in logarithms. Features are plain: audio (music), words reduced to 100 components (texts;
the difference of both for pairs of arguments), or what six language models answered (panels, whose annotators are the
people here). For pairs of names there are similarities made by hand too. The truth is the experts' where there is
one; else that of a label is the majority of the other people.

Two nulls, of which the wider counts: labels permuted among the examples of one annotator and one class (keeps how well
each annotator knows each class), and distances permuted among examples of one class (keeps how hard each example is).
No data set here has response times.
"""

from __future__ import annotations

import csv
import gzip
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from crowd_sets import load
from scipy.stats import rankdata
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tables import Place, Run, parser

from crowdwise import diagnose, simulate_annotators
from crowdwise.datasets import data_directory, fetch_crowd
from crowdwise.exceptions import CrowdWarning

PLACE = Place("docs/evidence/weighting.md", "boundary")
COLUMNS = ("crowd", "features", "accuracy (constant)", "errors: near", "far", "errors", "disagreement")
WITH_TRUTH = ("music", "sentiment", "medical_cause", "product", "zencrowd_us")
BY_HAND = ("product", "zencrowd_us")
PANELS = ("10k_prompts", "cebab_stars", "framing", "lgbteen", "mtbench")
N_PERMUTATIONS, N_COMPONENTS = 200, 100
MOST_PAIRS = 4000  # of the arguments, drawn at random: all would take longer than the other crowds together


@dataclass(frozen=True)
class Crowd:
    """Labels as codes, a place for each; the class of each label's example, and features of examples.

    `truth` is per example, what the classifier learns; `right` is per label, what it is compared with, -1 if unknown.
    """

    example: np.ndarray
    annotator: np.ndarray
    label: np.ndarray
    right: np.ndarray
    truth: np.ndarray
    X: np.ndarray


def words(texts: Any) -> np.ndarray:
    """Components of the words of texts."""
    made = make_pipeline(TfidfVectorizer(sublinear_tf=True, min_df=2), TruncatedSVD(N_COMPONENTS, random_state=0))
    return made.fit_transform(texts)


def experts(name: str, by_hand: bool) -> Crowd:
    """A crowd whose truth does not come from its labels."""
    data = fetch_crowd(name)
    X = load(name).X if by_hand else data.X if data.X is not None else words(data.texts)
    labels = data.labels
    return Crowd(
        labels.example_index, labels.annotator_index, labels.values, data.truth[labels.example_index], data.truth, X
    )


def read(path: Any) -> list[dict[str, str]]:
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def of_people(rows: list[tuple[str, str, str]], X: dict[str, np.ndarray]) -> Crowd:
    """A crowd without experts: its truth is the majority, for a label that of the others."""
    rows = [row for row in rows if row[0] in X]
    (tasks, example), (_, annotator), (_, label) = (
        np.unique(column, return_inverse=True) for column in zip(*rows, strict=True)
    )
    counts = np.zeros((len(tasks), label.max() + 1))
    np.add.at(counts, (example, label), 1)
    others = counts[example]
    others[np.arange(len(label)), label] -= 1
    clear = (others == others.max(axis=1, keepdims=True)).sum(axis=1) == 1
    right = np.where(clear & (others.max(axis=1) > 0), others.argmax(axis=1), -1)
    return Crowd(example, annotator, label, right, counts.argmax(axis=1), np.array([X[task] for task in tasks]))


def panel(name: str) -> Crowd:
    """The people of a panel; features are what the language models answered."""
    rows = read(data_directory() / "judges" / name / "labels.csv")
    models = sorted({row["worker"] for row in rows if row["kind"] == "model"})
    answers: dict[str, list[str]] = {}
    for row in rows:
        if row["kind"] == "model":
            answers.setdefault(row["task"], [""] * len(models))[models.index(row["worker"])] = row["label"]
    X = OneHotEncoder(sparse_output=False).fit_transform(np.array(list(answers.values())))
    people = [(row["task"], row["worker"], row["label"]) for row in rows if row["kind"] == "human"]
    return of_people(people, dict(zip(answers, X, strict=True)))


def arguments() -> Crowd:
    """Which of two arguments convinces more: the difference of their words, and of the logarithms of their lengths."""
    folder = data_directory() / "pairs" / "ukpconvarg1"
    texts = {row["item"]: row["text"] for row in read(folder / "texts.csv.gz")}
    lengths = np.log1p([len(text) for text in texts.values()])
    place = dict(zip(texts, np.column_stack([words(list(texts.values())), lengths]), strict=True))
    rows = [row for row in read(folder / "labels.csv.gz") if row["label"] != "equal"]
    tasks = sorted({row["task"] for row in rows})
    kept = set(np.random.default_rng(0).choice(tasks, min(MOST_PAIRS, len(tasks)), replace=False))
    rows = [row for row in rows if row["task"] in kept]
    X = {row["task"]: place[row["left"]] - place[row["right"]] for row in rows}
    return of_people([(row["task"], row["worker"], row["label"]) for row in rows], X)


def simulated() -> Crowd:
    """For a quick run: annotators who err near the boundary."""
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], 150)
    X = rng.normal(size=(300, 3)) + truth[:, np.newaxis]
    labels = simulate_annotators(X, truth, random_state=0)
    return Crowd(labels.example_index, labels.annotator_index, labels.values, truth[labels.example_index], truth, X)


def crowds(quick: bool) -> Iterator[tuple[str, str, Crowd]]:
    """Name, features, crowd."""
    if quick:
        yield "simulated", "plain", simulated()
        return
    for name in WITH_TRUTH:
        yield name, "audio" if name == "music" else "words", experts(name, by_hand=False)
        if name in BY_HAND:
            yield name, "by hand", experts(name, by_hand=True)
    yield "ukpconvarg1", "words", arguments()
    for name in PANELS:
        yield name, "six models", panel(name)


def distances(crowd: Crowd) -> tuple[np.ndarray, float]:
    """Of examples from the boundary, and the accuracy of the classifier, both out of fold."""
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
    folds = KFold(5, shuffle=True, random_state=0)
    proba = cross_val_predict(model, crowd.X, crowd.truth, cv=folds, method="predict_log_proba")
    top = np.sort(proba, axis=1)
    classes = np.unique(crowd.truth)
    return top[:, -1] - top[:, -2], float((classes[proba.argmax(axis=1)] == crowd.truth).mean())


def disagreement(crowd: Crowd, label: np.ndarray) -> np.ndarray:
    """Share of the pairs of labels that differ, per example; NaN with fewer than two."""
    counts = np.zeros((len(crowd.truth), label.max() + 1))
    np.add.at(counts, (crowd.example, label), 1)
    number = counts.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(number > 1, (number**2 - (counts**2).sum(axis=1)) / (number * (number - 1)), np.nan)


def within(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Values less the mean of their group."""
    number = np.bincount(groups)
    return values - (np.bincount(groups, values) / np.maximum(number, 1))[groups]


def correlations(crowd: Crowd, label: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """Of errors with the rank of the distance, within annotators; and of disagreement with it, by rank."""
    known = crowd.right >= 0
    who = crowd.annotator[known]
    wrong = within((label != crowd.right)[known].astype(float), who)
    far = within(rank[crowd.example[known]], who)
    disputed = disagreement(crowd, label)
    two = np.isfinite(disputed)
    return np.array([
        (wrong @ far) / np.sqrt((wrong @ wrong) * (far @ far)),
        np.corrcoef(rankdata(disputed[two]), rankdata(rank[two]))[0, 1],
    ])  # fmt: skip


def permuted(values: np.ndarray, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Values in random order within each group."""
    order, mixed = np.argsort(groups, kind="stable"), np.lexsort((rng.random(len(groups)), groups))
    result = np.empty_like(values)
    result[order] = values[mixed]
    return result


def null_range(crowd: Crowd, rank: np.ndarray, n_permutations: int) -> np.ndarray:
    """The widest middle 95 % under both nulls, of shape (2, 2): low and high of either correlation."""
    rng = np.random.default_rng(0)
    by_annotator = crowd.annotator * (crowd.truth.max() + 1) + crowd.truth[crowd.example]
    labels = [correlations(crowd, permuted(crowd.label, by_annotator, rng), rank) for _ in range(n_permutations)]
    examples = [correlations(crowd, crowd.label, permuted(rank, crowd.truth, rng)) for _ in range(n_permutations)]
    ranges = np.array([np.percentile(draws, [2.5, 97.5], axis=0) for draws in (labels, examples)])
    return np.array([ranges[:, 0].min(axis=0), ranges[:, 1].max(axis=0)])


def near_and_far(crowd: Crowd, rank: np.ndarray) -> list[str]:
    """Share of wrong labels in the quarter of examples nearest to the boundary, and in the farthest."""
    known = crowd.right >= 0
    of_label = rank[crowd.example][known] / len(rank)
    wrong = (crowd.label != crowd.right)[known]
    return [f"{wrong[part].mean():.0%}" for part in (of_label <= 0.25, of_label > 0.75)]


def row(name: str, features: str, crowd: Crowd, n_permutations: int) -> tuple[list[str], np.ndarray]:
    """What is shown, and whether either correlation is below both nulls."""
    distance, accuracy = distances(crowd)
    rank = rankdata(distance)
    found, (low, high) = correlations(crowd, crowd.label, rank), null_range(crowd, rank, n_permutations)
    shown = [f"{value:+.2f} ({a:+.2f} to {b:+.2f})" for value, a, b in zip(found, low, high, strict=True)]
    constant = np.bincount(crowd.truth).max() / len(crowd.truth)
    return [name, features, f"{accuracy:.2f} ({constant:.2f})", *near_and_far(crowd, rank), *shown], found < low


def advice(quick: bool) -> str:
    """What `diagnose` advises, without the truth."""
    sets = () if quick else WITH_TRUTH
    weights = [name for name in sets if diagnose((data := load(name)).X, data.labels).weight]
    return f"`diagnose` advises weights on {len(weights)} of the {len(sets)} crowds with a truth of experts."


def main() -> None:
    options = parser(__doc__).parse_args()
    warnings.simplefilter("ignore", CrowdWarning)
    run, rows, below = Run(options, [PLACE]), [], []
    for name, features, crowd in crowds(options.quick):
        cells, is_below = row(name, features, crowd, 20 if options.quick else N_PERMUTATIONS)
        rows.append(cells)
        below.append(is_below)
        print(*cells, sep=" | ", flush=True)
    errors, disputed = np.sum(below, axis=0)
    note = f"Below both nulls: errors in {errors} of {len(rows)} rows, disagreement in {disputed}."
    run.table(PLACE, COLUMNS, rows, f"{note} {advice(options.quick)}")


if __name__ == "__main__":
    main()
