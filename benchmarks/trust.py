"""Are the defaults ever worse than the simple thing? All models on real and simulated crowds whose truth is known.

python benchmarks/trust.py --jobs 2 --write     every row; what was measured before at this commit is not run again
python benchmarks/trust.py labels levels        some kinds of rows: labels alone, labels with features, levels
python benchmarks/trust.py --only paper         rows with this in their name
python benchmarks/trust.py --models logistic    some models

The consensus is compared with the majority vote (a tie counts as a fair draw), with two rounds of Dawid-Skene from the
vote shares (0.5 added to every cell of an annotator's counts), and with the same run to convergence. A classifier is
compared with logistic regression on the majority vote, with CrowdRidgeClassifier, and its consensus with its own
predictions out of fold. Besides: what probability is stated and how often that is right, what happens if the annotator
of lowest accuracy is there four times, and what 50 known answers change.

Intervals are of 95 % and paired: over draws (Student's t), or over examples where there is one draw. Parts of a set
overlap, so theirs is about parts of this set. Results are appended to a file as they come, one line per row and model.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import softmax
from scipy.stats import norm, t
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from tables import Place, Run, parser
from threadpoolctl import threadpool_limits
from trust_sets import Crowd, Row, all_rows, draws, has_data

import crowdwise
from crowdwise import CrowdLabels
from crowdwise.exceptions import CrowdWarning

PAGE = "docs/evidence/trust.md"
N_DRAWS, N_KNOWN, KNOWN_DRAWS = 20, 50, 20
# No fewer examples are left to measure on where answers are known.
FEWEST = 30
KINDS = ("labels", "features", "levels")
QUICK = (
    Row("labels", "simulated", "strong"),
    Row("labels", "simulated", "correlated errors"),
    Row("labels", "real", "bluebirds"),
    Row("labels", "parts", "bluebirds"),
    Row("features", "simulated", "honest .65, 300 x 5, good features"),
    Row("features", "simulated", "20 examples x 5"),
    Row("features", "real", "music"),
    Row("levels", "simulated", "four levels"),
    Row("levels", "real", "mtbench"),
)

# ------------------------------------------------------------------ models


@dataclass(frozen=True)
class Answers:
    """What a model gives: classes and their probabilities, NaN where it states none."""

    label: np.ndarray
    confidence: np.ndarray
    own: np.ndarray | None = None  # by the classifier alone, out of fold
    test: np.ndarray | None = None  # of examples that nobody labelled
    test_confidence: np.ndarray | None = None


Known = dict[int, int] | None  # classes by example
Model = Callable[[Crowd, Known], Answers]


def consensus(crowd: Crowd, known: Known = None, scale: str = "nominal") -> Answers:
    """By labels alone."""
    found = crowdwise.aggregate(crowd.labels.with_scale(scale), truth=known)
    return Answers(found.label, found.confidence)


def classifier(name: str, crowd: Crowd, known: Known = None) -> Answers:
    """By labels and features; imported when it is asked for, as all of crowdwise is."""
    model = getattr(crowdwise, name)().fit(crowd.X, crowd.labels, truth=known)
    own = model.results_.model_proba
    test = model.predict(crowd.X_test)
    stated = model.predict_proba(crowd.X_test).max(axis=1) if hasattr(model, "predict_proba") else None
    return Answers(
        model.consensus_, model.consensus_confidence_, None if own is None else own.argmax(axis=1), test, stated
    )


MODELS: dict[str, tuple[str, tuple[str, ...], Model]] = {
    "aggregate": ("`aggregate(labels)`", ("labels", "features"), consensus),
    "ordinal": ('`aggregate(labels.with_scale("ordinal"))`', ("levels",), partial(consensus, scale="ordinal")),
    **{
        name: (f"`{estimator}()`", ("features",), partial(classifier, estimator))
        for name, estimator in {
            "logistic": "CrowdLogisticClassifier",
            "any": "CrowdClassifier",
            "ridge": "CrowdRidgeClassifier",
            "tuned": "CrowdRidgeClassifierCV",
        }.items()
    },
}


# ------------------------------------------------------------------ the simple things


def vote_shares(labels: CrowdLabels) -> np.ndarray:
    """Of shape (n_examples, n_classes); even where there are no labels."""
    counts = labels.counts() + 1e-12
    return counts / counts.sum(axis=1, keepdims=True)


def dawid_skene(labels: CrowdLabels, max_rounds: int, tol: float = 1e-4) -> np.ndarray:
    """Posteriors of Dawid and Skene's model from the vote shares on, 0.5 added to every cell of the counts."""
    posterior = vote_shares(labels)
    n, n_classes = posterior.shape
    column = labels.annotator_index.astype(np.intp) * n_classes + labels.values
    shape = (n, labels.n_annotators * n_classes)
    given = sparse.csr_array((np.ones(len(column)), (labels.example_index, column)), shape=shape)
    by_label = given.T.tocsr()
    for _ in range(max_rounds):
        counts = (by_label @ posterior).reshape(-1, n_classes, n_classes) + 0.5  # annotator, label, class
        log_matrix = np.log(counts / counts.sum(axis=1, keepdims=True)).reshape(-1, n_classes)
        before, posterior = posterior, softmax(given @ log_matrix + np.log(posterior.mean(axis=0) + 1e-300), axis=1)
        if np.abs(posterior - before).max() < tol:
            break
    return posterior


def right(proba: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """How right each answer is, a tie being a fair draw."""
    best = proba >= proba.max(axis=1, keepdims=True) - 1e-9
    padded = np.column_stack([best, np.zeros(len(best))])  # a class that nobody gave is never right
    return padded[np.arange(len(truth)), truth] / best.sum(axis=1)


def simple_classifier(crowd: Crowd) -> np.ndarray:
    """What logistic regression on the majority vote, ties by lot, predicts for new examples."""
    shares = vote_shares(crowd.labels)
    vote = (shares + 1e-6 * np.random.default_rng(0).random(shares.shape)).argmax(axis=1)
    assert crowd.X_test is not None
    if len(np.unique(vote)) == 1:
        return np.full(len(crowd.X_test), vote[0])
    return LogisticRegression(max_iter=1000).fit(crowd.X, vote).predict(crowd.X_test)


def median_right(labels: CrowdLabels, truth: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of the median of the labels, which may be any of two levels or between: how right it is, and levels off."""
    below = vote_shares(labels).cumsum(axis=1)
    low, high = ((below >= limit).argmax(axis=1) for limit in (0.5 - 1e-9, 0.5 + 1e-9))
    is_right = np.mean([low == truth, high == truth], axis=0)
    return is_right, (np.abs(low - truth) + np.abs(high - truth)) / 2


# ------------------------------------------------------------------ measuring

Figures = dict[str, float]


def calibration_error(stated: np.ndarray, is_right: np.ndarray, n_bins: int = 10) -> float:
    """Mean difference of stated probability and share right in bins of equal size."""
    bins = np.array_split(np.argsort(stated, kind="stable"), n_bins)
    return sum(abs((stated[rows] - is_right[rows]).sum()) for rows in bins) / len(stated)


def difference(name: str, ours: np.ndarray, theirs: np.ndarray) -> Figures:
    """The mean over examples, and its standard deviation if a fair coin gave every difference its sign."""
    apart = ours - theirs
    return {name: apart.mean(), f"{name} noise": np.sqrt((apart**2).sum()) / len(apart)}


@dataclass(frozen=True)
class Simple:
    """How right the simple things are, per example whose truth is known.

    Parameters
    ----------
    scores : dict
        Of the consensus, by name.
    off : ndarray or None
        How many levels the median of the labels is off; None for classes without an order.
    test : ndarray or None
        Of the simple classifier on new examples.
    copied : Crowd or None
        The crowd with the annotator of lowest accuracy four times; None if nobody has enough labels to tell.
    """

    scores: dict[str, np.ndarray]
    off: np.ndarray | None
    test: np.ndarray | None
    copied: Crowd | None

    @classmethod
    def of(cls, crowd: Crowd, *, levels: bool) -> Simple:
        """All of them on a crowd."""
        known = crowd.known
        truth, labels = crowd.truth[known], crowd.labels
        found = {
            "votes": vote_shares(labels),
            "two rounds": dawid_skene(labels, 2),
            "converged": dawid_skene(labels, 500),
        }
        scores = {name: right(proba[known], truth) for name, proba in found.items()}
        off = None
        if levels:
            scores["median"], off = median_right(labels[known], truth)
        test = None if crowd.X_test is None else (simple_classifier(crowd) == crowd.truth_test).astype(float)
        worst = crowd.worst_annotator()
        return cls(scores, off, test, None if worst is None else crowd.with_copies(worst))


def measured(crowd: Crowd, simple: Simple, model: Model) -> Figures:
    """The figures of a model on a crowd, differences being ours minus theirs."""
    began = time.perf_counter()
    answers = model(crowd, None)
    figures: Figures = {"seconds": time.perf_counter() - began}
    known = crowd.known
    label, stated, truth = answers.label[known], answers.confidence[known], crowd.truth[known]
    is_right = (label == truth).astype(float)
    figures |= {"accuracy": is_right.mean(), "stated": stated.mean() - is_right.mean()}
    figures["error"] = calibration_error(stated, is_right)
    for name, theirs in simple.scores.items():
        figures |= difference(name, is_right, theirs)
    if simple.off is not None:
        figures |= difference("off", np.abs(label - truth), simple.off)
    if simple.copied is not None:
        figures |= difference("copies", (model(simple.copied, None).label[known] == truth).astype(float), is_right)
    if answers.own is not None:
        own = (answers.own[known] == truth).astype(float)
        better = max(own, simple.scores["votes"], key=np.mean)
        figures |= difference("own", is_right, own) | difference("better", is_right, better)
    if answers.test is not None and simple.test is not None:
        test = (answers.test == crowd.truth_test).astype(float)
        figures |= {"test": test.mean(), **difference("simple", test, simple.test)}
        if answers.test_confidence is not None:
            figures["test stated"] = answers.test_confidence.mean() - test.mean()
            figures["test error"] = calibration_error(answers.test_confidence, test)
    return figures


def known_answers(crowd: Crowd, model: Model, n_draws: int) -> list[float]:
    """What known answers change in accuracy on the other examples, per draw; nothing where the truth is of too few."""
    usable = np.flatnonzero((crowd.truth >= 0) & (crowd.truth < crowd.n_classes))
    if len(usable) < N_KNOWN + FEWEST:
        return []
    without = model(crowd, None).label == crowd.truth
    changes = []
    for seed in range(n_draws):
        given = np.random.default_rng([N_KNOWN, seed]).choice(usable, N_KNOWN, replace=False)
        found = model(crowd, {int(row): int(crowd.truth[row]) for row in given})
        rest = np.setdiff1d(crowd.known, given)
        changes.append(float((found.label == crowd.truth)[rest].mean() - without[rest].mean()))
    return changes


@dataclass
class Result:
    """What was measured of a model on a row, a value per draw."""

    row: Row
    model: str
    figures: dict[str, list[float]] = field(default_factory=dict)
    known: list[float] = field(default_factory=list)
    seconds: float = 0.0  # of the whole row, shared by the models of a run
    failure: str = ""

    def line(self, version: str) -> str:
        """As kept in the file."""
        kept = {name: [round(value, 6) for value in values] for name, values in self.figures.items()}
        return json.dumps({
            "version": version, "kind": self.row.kind, "group": self.row.group, "name": self.row.name,
            "model": self.model, "seconds": round(self.seconds, 2), "failure": self.failure, "figures": kept,
            "known": [round(value, 6) for value in self.known],
        })  # fmt: skip

    @classmethod
    def read(cls, line: dict[str, Any]) -> Result:
        """From the file."""
        row = Row(line["kind"], line["group"], line["name"])
        return cls(row, line["model"], line["figures"], line["known"], line["seconds"], line["failure"])

    def mean(self, name: str) -> float:
        """Over draws; NaN if it was not measured."""
        return float(np.mean(self.figures[name])) if self.figures.get(name) else np.nan

    def worst(self, name: str) -> float:
        """The draw with the lowest value."""
        return min(self.figures.get(name, [np.nan]))

    def half_width(self, name: str) -> float:
        """Of the interval: over draws, or over examples where there is one draw."""
        values = self.figures.get(name, [])
        if len(values) == 1:
            return float(norm.ppf(0.975) * self.figures.get(f"{name} noise", [np.nan])[0])
        return half_width(values)

    def is_below(self, name: str, limit: float) -> bool:
        """Whether the whole interval is."""
        return self.mean(name) + self.half_width(name) < limit

    def below_a_coin(self, name: str) -> bool:
        """Whether the worst draw is below what a coin that changes as many answers gives in 95 % of the cases."""
        values, noise = (np.array(self.figures.get(key, [])) for key in (name, f"{name} noise"))
        lowest = norm.ppf(1 - 0.95 ** (1 / max(len(values), 1)))
        return bool((values < lowest * noise - 1e-9).any())


def half_width(values: Sequence[float]) -> float:
    """Of Student's 95 % interval of the mean."""
    if len(values) < 2:
        return np.nan
    return float(t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))


def measure(row: Row, models: Sequence[str], quick: bool) -> list[Result]:
    """All draws of a row. A model that fails is reported as such and does not keep others from being measured."""
    began = time.perf_counter()
    results = {name: Result(row, name) for name in models}
    with threadpool_limits(1), warnings.catch_warnings():
        for category in (CrowdWarning, ConvergenceWarning):
            warnings.simplefilter("ignore", category)
        for number, crowd in enumerate(draws(row, 2 if quick else N_DRAWS)):
            simple = Simple.of(crowd, levels=row.kind == "levels")
            for result in results.values():
                if not result.failure:
                    _measure(result, crowd, simple, number == 0 and row.group == "real", quick)
    for result in results.values():
        result.seconds = time.perf_counter() - began
    return list(results.values())


def _measure(result: Result, crowd: Crowd, simple: Simple, with_known: bool, quick: bool) -> None:
    model = MODELS[result.model][2]
    try:
        for key, value in measured(crowd, simple, model).items():
            result.figures.setdefault(key, []).append(float(value))
        if with_known:
            result.known = known_answers(crowd, model, 2 if quick else KNOWN_DRAWS)
    except Exception as error:  # any: it is shown in the tables, and a quick run ends with it
        result.failure = f"{type(error).__name__}: {error}".splitlines()[0]
        result.figures.clear()


# ------------------------------------------------------------------ results that are kept

Results = dict[tuple[Row, str], Result]


def read_results(path: Path, version: str) -> Results:
    """Those of this version of the code; of the others nothing is used."""
    found: Results = {}
    if path.is_file():
        for text in path.read_text(encoding="utf-8").splitlines():
            line = json.loads(text)
            if line["version"] == version and not line["failure"]:
                result = Result.read(line)
                found[result.row, result.model] = result
    return found


def measure_all(wanted: dict[Row, list[str]], options: Namespace, version: str) -> Iterator[Result]:
    """Rows in several processes; every result is appended to the file when its row is done."""
    rows = sorted(wanted, key=lambda row: (row.kind != "features", row.group == "simulated"))  # the longest first
    if not options.quick:
        options.results.parent.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(options.jobs) as pool:
        tasks = {pool.submit(measure, row, wanted[row], options.quick): row for row in rows}
        for number, done in enumerate(as_completed(tasks), 1):
            row, results = tasks[done], done.result()
            print(
                f"{number} of {len(rows)}: {row.kind}, {row.group}, {row.name}: {results[0].seconds:.1f} s", flush=True
            )
            if not options.quick:
                with open(options.results, "a", encoding="utf-8") as file:
                    file.writelines(f"{result.line(version)}\n" for result in results)
            yield from results


# ------------------------------------------------------------------ tables

# Heads of the columns by the name of a figure; a minus is "ours less".
HEADS = {
    "accuracy": "accuracy",
    "votes": "− votes",
    "two rounds": "− two rounds",
    "converged": "− Dawid-Skene",
    "median": "− median",
    "off": "levels off − median's",
    "own": "consensus − own predictions",
    "stated": "stated − right",
    "error": "calibration error",
    "copies": "worst annotator four times",
    "test": "test accuracy",
    "simple": "− logistic regression on the votes",
    "ridge": "− ridge",
    "test stated": "stated − right, test",
    "test error": "calibration error, test",
}
SHARES = ("accuracy", "error", "test", "test error")  # no differences: without a sign
MEANS = (*SHARES, "stated", "test stated")  # without an interval
OF_CONSENSUS = ("accuracy", "votes", "two rounds", "converged", "stated", "error", "copies")
OF_LEVELS = ("accuracy", "votes", "two rounds", "converged", "median", "off", "stated", "error", "copies")
OF_CLASSIFIER = ("own", "test", "simple", "ridge", "test stated", "test error")
ON_PAGE = ("votes", "two rounds", "stated", "error", "simple")
GROUPS = ("real", "parts", "simulated")
KIND_NAMES = {"labels": "labels alone", "features": "with features", "levels": "levels"}

SUMMARY, KNOWN, MISSED = (Place(PAGE, f"trust {name}") for name in ("summary", "known answers", "missed"))
# A table per kind of rows and model, a line per row.
ROWS = {
    (kind, model): Place(PAGE, f"trust {model} {KIND_NAMES[kind]}")
    for model, (_, kinds, _) in MODELS.items()
    for kind in kinds
}
PLACES = (SUMMARY, KNOWN, MISSED)


def number(value: float, sign: str = "+") -> str:
    """As shown; nothing for NaN."""
    return "" if np.isnan(value) else f"{value:{sign}.3f}".replace("-0.000", "+0.000" if sign else "0.000")


def cell(result: Result, name: str) -> str:
    """The mean; of differences also half the width of the interval, and in brackets the worst draw."""
    mean = result.mean(name)
    if name in MEANS or np.isnan(mean):
        return number(mean, "" if name in SHARES else "+")
    width, values = result.half_width(name), result.figures[name]
    lowest = max(values) if name == "off" else min(values)  # fewer levels off are better
    worst = f" ({number(lowest)})" if len(values) > 1 else ""
    return number(mean) + ("" if np.isnan(width) else f" ± {width:.3f}") + worst


def with_ridge(results: Results) -> None:
    """Add how much better classifiers are on new examples than the ridge classifier, draw by draw."""
    for (row, model), result in results.items():
        ridge = results.get((row, "ridge"))
        if model != "ridge" and ridge is not None and result.figures.get("test") and ridge.figures.get("test"):
            pairs = list(zip(result.figures["test"], ridge.figures["test"], strict=True))
            result.figures["ridge"] = [ours - theirs for ours, theirs in pairs]


def of_model(
    results: Results, kind: str, model: str, group: str | None = None, half: str | None = None
) -> list[Result]:
    """Some results by group and name, without failures."""
    chosen = [
        one
        for (row, name), one in results.items()
        if (row.kind, name) == (kind, model) and group in (None, row.group) and half in (None, row.half)
    ]
    return sorted(
        (one for one in chosen if not one.failure), key=lambda one: (GROUPS.index(one.row.group), one.row.name)
    )


def groups(results: Results) -> Iterator[tuple[list[str], list[Result]]]:
    """The results behind every line of the summary, with its first cells: sets and families of the half that no
    constant was chosen on. `aggregate` has its lines among labels alone."""
    for kind, model in ROWS:
        for group in ("real", "simulated"):
            found = of_model(results, kind, model, group, "B")
            if found and (kind, model) != ("features", "aggregate"):
                yield [f"{KIND_NAMES[kind]}, {group} ({len(found)})", MODELS[model][0]], found


def mean_of(found: Sequence[Result], name: str) -> float:
    """Over rows that have it."""
    means = [one.mean(name) for one in found if not np.isnan(one.mean(name))]
    return float(np.mean(means)) if means else np.nan


def summary(run: Run, results: Results) -> None:
    """Means over rows, and the lowest draw of all."""
    lines = []
    for cells, found in groups(results):
        means = [number(mean_of(found, name), "" if name in SHARES else "+") for name in ON_PAGE]
        lowest = min((one.worst("votes") for one in found if one.figures.get("votes")), default=np.nan)
        lines.append([*cells, *means, number(lowest)])
    run.table(SUMMARY, ("crowds", "model", *(HEADS[name] for name in ON_PAGE), "worst draw − votes"), lines)


def row_tables(run: Run, results: Results) -> None:
    """A table per kind and model with a line per row."""
    for (kind, model), place in ROWS.items():
        names = OF_LEVELS if kind == "levels" else OF_CONSENSUS
        if kind == "features" and model != "aggregate":
            names = (*OF_CONSENSUS, *OF_CLASSIFIER)
        found = of_model(results, kind, model)
        lines = [
            [f"{one.row.group}: {one.row.name}", one.row.half, *(cell(one, name) for name in names)] for one in found
        ]
        run.table(place, ("crowd", "half", *(HEADS[name] for name in names)), lines)


KNOWN_ON_PAGE = (("labels", "aggregate"), ("levels", "ordinal"), ("features", "logistic"))


def known_table(run: Run, results: Results) -> None:
    """What known answers change on real sets, a line per kind and model."""
    lines = []
    for kind, model in ROWS:
        found = [one for one in of_model(results, kind, model, "real") if one.known]
        if found and (kind, model) in KNOWN_ON_PAGE:
            means = {one.row.name: float(np.mean(one.known)) for one in found}
            lowest = min(means, key=means.__getitem__)
            cells = [KIND_NAMES[kind], MODELS[model][0], str(len(found)), number(float(np.mean(list(means.values()))))]
            lines.append([*cells, f"{number(means[lowest])} ({lowest})"])
    run.table(KNOWN, ("crowds", "model", "sets", f"{N_KNOWN} known answers − none", "lowest"), lines)


# ------------------------------------------------------------------ aims


@dataclass(frozen=True)
class Aim:
    """What no row should show, and by how much one does."""

    text: str
    is_missed: Callable[[Result], bool]
    figure: Callable[[Result], float]


def below(name: str, than: str) -> Aim:
    """The interval of a difference is wholly below a point."""
    return Aim(
        f"worse than {than} (interval wholly below -0.01)",
        lambda one: one.is_below(name, -0.01),
        lambda one: one.mean(name),
    )


N_SHOWN = 3
AIMS = (
    below("votes", "the majority vote"),
    below("two rounds", "two rounds of Dawid-Skene"),
    below("simple", "logistic regression on the majority vote, on new examples"),
    Aim(
        "worst draw below that of a coin that changes as many answers of the majority",
        lambda one: one.below_a_coin("votes"),
        lambda one: one.worst("votes"),
    ),
    Aim(
        "consensus more than a point below the better of votes and own predictions out of fold",
        lambda one: one.mean("better") < -0.01,
        lambda one: one.mean("better"),
    ),
    Aim(
        "the worst annotator four times costs more than a point",
        lambda one: one.mean("copies") < -0.01,
        lambda one: one.mean("copies"),
    ),
    Aim(
        f"{N_KNOWN} known answers cost more than half a point",
        lambda one: bool(one.known) and float(np.mean(one.known)) < -0.005,
        lambda one: float(np.mean(one.known)),
    ),
)


def missed(run: Run, results: Results) -> list[str]:
    """How many rows miss an aim, and the sets and families with the lowest figures."""
    found = []
    for aim in AIMS:
        rows = [one for one in results.values() if aim.is_missed(one)]
        lowest: dict[str, float] = {}
        for one in rows:
            lowest[one.row.name] = min(aim.figure(one), lowest.get(one.row.name, np.inf))
        shown = [f"{name} ({number(value)})" for name, value in sorted(lowest.items(), key=lambda item: item[1])]
        others = [f"and {len(shown) - N_SHOWN} more"] if len(shown) > N_SHOWN else []
        listed = "; ".join([*shown[:N_SHOWN], *others]) or "none"
        found.append(f"- **{aim.text[0].upper()}{aim.text[1:]}**: {len(rows)} of {len(results)} rows: {listed}.")
    run.text(MISSED, "\n".join(found))
    return [f"{one.row.name}, {one.model}: {one.failure}" for one in results.values() if one.failure]


# ------------------------------------------------------------------ the run


def read_options() -> Namespace:
    made = parser(__doc__, KINDS)
    cache = Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "crowdwise" / "trust.jsonl"
    made.add_argument("--results", type=Path, default=cache, help="where results are kept: %(default)s")
    made.add_argument("--jobs", type=int, default=1, help="processes: %(default)s")
    made.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS), help="all by default")
    made.add_argument("--rows", action="store_true", help="print a line per row too")
    made.add_argument("--only", default="", help="rows with this in their name")
    return made.parse_args()


def main() -> None:
    options = read_options()
    if not has_data():
        if options.write:
            sys.exit(
                "set CROWDWISE_DATA to the directory with crowd/, judges/ and ratings/: tables need the real sets."
            )
        print("No real sets: set CROWDWISE_DATA to a directory with crowd/ and judges/. Simulated crowds only.")
    run = Run(options, PLACES)
    rows = [row for row in all_rows() if not options.quick or row in QUICK]
    every = {(row, name) for row in rows for name, (_, kinds, _) in MODELS.items() if row.kind in kinds}
    version = run.source
    # Of code with changes that have no commit, nothing is used again.
    is_known = version.startswith("commit") and not version.endswith("changes")
    results = read_results(options.results, version) if is_known and not options.quick else {}
    wanted: dict[Row, list[str]] = {}
    for row, model in sorted(every - results.keys(), key=str):
        if row.kind in options.parts and model in options.models and options.only in row.name:
            wanted.setdefault(row, []).append(model)
    print(f"{len(every & results.keys())} of {len(every)} results are there already.", flush=True)
    for result in measure_all(wanted, options, version):
        results[result.row, result.model] = result
    if run.writes and (lacking := every - results.keys()):
        sys.exit(f"{len(lacking)} of {len(every)} results are not there yet: the page is as it was.")
    results = {key: results[key] for key in sorted(every & results.keys(), key=str)}
    with_ridge(results)
    summary(run, results)
    failures = missed(run, results)
    known_table(run, results)
    if options.rows and not run.writes:  # too long for a page
        row_tables(run, results)
    if failures:
        sys.exit("\n".join(["failed:", *failures]))


if __name__ == "__main__":
    main()
