"""How good each annotator is, who is flagged, what they mix up and where they stand alone."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from crowdwise._arrays import Array, Floats, Positions, ratio
from crowdwise._limits import ENOUGH_TRUTHS, FEW, MOST_ANNOTATORS, MOST_CLASSES, MOST_IN_CHART, NAMED
from crowdwise._text import count
from crowdwise.crowd.flags import class_counts
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.reporting._svg import Markup, bar, interval_rows, round_ticks, share_ticks, span
from crowdwise.reporting.fit import (
    Fit,
    Summary,
    decimal,
    excerpt,
    listed,
    named,
    percent,
    plain,
    short_percent,
    signed,
    some_of,
)

# What annotators are compared by, in words.
_SCORES = {
    "accuracy": "estimated accuracy",
    "truth_accuracy": "accuracy on known answers",
    "spread": "spread around their offsets",
    "correlation": "correlation with the consensus",
}
_ADVERSE = "worse than chance"
# Chance is what the frequencies of answers and classes give, which is more than a half where one class is frequent.
WHAT_CHANCE_IS = "agree with the consensus less than random answers would"
_COPY = re.compile(
    r"(same labels as|answers like) (['\"]?)(?P<other>.+?)\2( on \d+% of [\d,]+ examples: shares a vote)?$"
)
ROUGH = "a rough estimate: labels of two annotators cannot show who is right"
PAGES = (("annotators", "Annotators"),)


def data(fit: Fit) -> dict[str, Any]:
    """The annotators of a fit, those of the highest expertise first."""
    results, columns, chosen = fit.results, annotator_columns(fit), _chosen(fit)
    expertise = results.expertise
    shown = chosen[np.argsort(-np.nan_to_num(expertise[chosen], nan=-1.0), kind="stable")]
    # One who is never wrong has expertise without end, and would leave everybody else without a bar.
    largest = min(float(np.nanmax(expertise)), 6 * float(np.nanmedian(expertise)))
    alone, classes = _alone(fit, chosen), results.classes
    confusion = () if classes is None else results.confusion
    rows = []
    for i in shown.tolist():
        row = {name: plain(column[i]) for name, column in columns.items()}
        row["annotator"] = named(results.annotators[i])
        row["flags"] = list(results.annotator_flags.get(results.annotators[i], ()))
        row["bar"] = min((row["expertise"] or 0.0) / largest, 1.0) if largest > 0 else 0.0
        row["alone"] = alone[i]
        rows.append(row if classes is None else row | _confusion(confusion[i], classes))
    comparable = results.fitted is None or results.fitted.comparable
    return {"annotators": listed(len(expertise), rows), "comparable": comparable}


def annotator_columns(fit: Fit) -> dict[str, Any]:
    """Everything about the annotators, a column each: those of `annotators_frame`.

    Also, for classes, "agrees_with_consensus" and, of a model of features, "agrees_with_model" (out of fold).
    """
    results, labels = fit.results, fit.labels
    columns = results.with_truth(labels, fit.answers).annotator_columns()
    flags = columns.pop("flags")
    if results.accuracy is not None:
        columns["agrees_with_consensus"] = _agreement_with(labels, results.codes)
    if fit.model_codes is not None:
        columns["agrees_with_model"] = _agreement_with(labels, fit.model_codes)
    return columns | {"flags": flags}


def _agreement_with(labels: CrowdLabels, codes: Array) -> Floats:
    """For every annotator the share of their labels that equal the code of the example; NaN without labels."""
    same = labels._sum_per_annotator((labels.values == codes[labels.example_index]).astype(np.float64))
    return ratio(same, labels.labels_per_annotator)


def class_bias(fit: Fit) -> Floats:
    """For every annotator and class, how much more often they give it than the consensus does on their examples."""
    labels = fit.labels
    more = class_counts(labels, labels.values) - class_counts(labels, fit.results.codes[labels.example_index])
    return ratio(more, np.broadcast_to(labels.labels_per_annotator[:, np.newaxis], more.shape))


def _chosen(fit: Fit) -> Positions:
    """All annotators, or those flagged and those with the most labels, in their order."""
    results = fit.results
    if len(results.annotators) <= MOST_ANNOTATORS:
        return np.arange(len(results.annotators))
    few = {"few labels", "no labels"}
    flagged = np.array([bool(set(results.annotator_flags.get(name, ())) - few) for name in results.annotators])
    return np.sort(np.lexsort((-results.n_labels, ~flagged))[:MOST_ANNOTATORS])


def _alone(fit: Fit, chosen: Positions) -> dict[int, dict[str, Any]]:
    """By annotator, the labels that no one else gave to an example of three labels or more; the least probable first.

    For ratings, the labels farthest from the consensus.
    """
    labels, results = fit.labels, fit.results
    example, annotator = labels.example_index, labels.annotator_index
    lonely = np.isin(np.arange(labels.n_annotators), chosen)[annotator]
    if labels.classes is not None:
        lonely &= (labels._tally[example, labels.values] == 1) & (labels.labels_per_example[example] > 2)
    rows = np.flatnonzero(lonely)
    if labels.classes is None:
        strangeness = np.abs(labels.values[rows] - results.label[example[rows]])
    else:
        strangeness = 1 - results.proba[example[rows], labels.values[rows]]
    rows = rows[np.lexsort((-strangeness, annotator[rows]))]
    start = np.searchsorted(annotator[rows], np.arange(labels.n_annotators + 1)).tolist()
    by_annotator = {i: rows[start[i] : start[i + 1]] for i in chosen.tolist()}
    return {
        i: listed(len(alone), [_lone_label(fit, int(example[j]), j) for j in alone[:FEW].tolist()])
        for i, alone in by_annotator.items()
    }


def _lone_label(fit: Fit, i: int, j: int) -> dict[str, Any]:
    labels = fit.labels
    if labels.classes is None:
        answer, label = f"{labels.values[j]:.3g}", f"{fit.results.label[i]:.3g}"
    else:
        answer, label = named(labels.classes[labels.values[j]]), named(fit.results.label[i])
    row = {"example": named(fit.results.examples[i]), "said": answer, "label": label}
    return row if fit.texts is None or fit.texts[i] is None else row | {"text": excerpt(str(fit.texts[i]))}


def _confusion(matrix: Floats, classes: Array) -> dict[str, Any]:
    """An annotator's answers on examples of every class; of many classes only what is mixed up most."""
    if len(classes) <= MOST_CLASSES:
        return {"confusion": None if np.isnan(matrix).any() else matrix.round(3).tolist()}
    wrong = np.nan_to_num(matrix * (1 - np.eye(len(matrix))))
    worst = np.argsort(-wrong, axis=None, kind="stable")[:FEW]
    return {
        "mixed_up": [
            {"truth": named(classes[k]), "said": named(classes[c]), "share": round(float(wrong[k, c]), 3)}
            for k, c in zip(*np.unravel_index(worst, wrong.shape), strict=True)
        ]
    }


class Column(NamedTuple):
    """A column of the table of annotators: what it is sorted by, how its values are written, and a picture of them."""

    title: str
    key: str
    form: Callable[[float], str]
    note: str = ""
    wide: bool = False  # left out on a phone
    picture: Callable[[dict[str, Any]], Markup] | None = None

    def small(self, row: dict[str, Any]) -> str:
        """The interval, or how many known answers there are."""
        if self.key == "truth_accuracy":
            return f"of {row['truths']:,}"
        if self.key == "limits_low":
            return f"to {self.form(row['limits_high'])}"
        low, high = row.get(f"{self.key}_low"), row.get(f"{self.key}_high")
        return "" if low is None or high is None else f"{self.form(low)} to {self.form(high)}".replace("%", "", 1)


def columns(summary: Summary) -> list[Column]:
    """The columns that these annotators have."""
    rows = summary["annotators"]["rows"]
    known = set(rows[0]) if rows else set()
    if "truth_accuracy" in known:
        known.discard("agrees_with_consensus")
    if "spread" not in known:
        return [column for column in _COLUMNS if column.key in known]
    known -= {"accuracy", "expertise"}  # offset, spread and correlation are compared instead; a phone has room for them
    return [column._replace(wide=column.wide or column.key == "labels") for column in _COLUMNS if column.key in known]


def _accuracy_span(row: dict[str, Any]) -> Markup:
    return span(row["accuracy"], row["accuracy_low"], row["accuracy_high"])


def _three_digits(value: float) -> str:
    return f"{value:#.3g}".removesuffix(".")


_COLUMNS = (
    Column("Labels", "labels", "{:,}".format),
    Column("Expertise", "expertise", _three_digits, "weight in the vote", True, lambda row: bar(row["bar"])),
    Column("Estimated accuracy", "accuracy", short_percent, "against the consensus", picture=_accuracy_span),
    Column("On known answers", "truth_accuracy", short_percent, "accuracy on the examples with a known answer"),
    Column("With consensus", "agrees_with_consensus", short_percent, "share of labels equal to the consensus", True),
    Column(
        "With model", "agrees_with_model", short_percent, "share of labels equal to the out-of-fold prediction", True
    ),
    Column("Offset", "offset", signed, "how much higher than the consensus their labels are on average"),
    Column("Slope", "slope", decimal, "how much their rating rises when the true one rises by 1", True),
    Column("Spread", "spread", "{:.2f}".format, "standard deviation of their labels after the offset"),
    Column("Correlation", "correlation", decimal, "with the consensus"),
    Column("Rank correlation", "rank_correlation", decimal, "Spearman's, with the consensus", True),
    Column(
        "Limits",
        "limits_low",
        signed,
        "limits of agreement: 95% of their differences from the consensus are between these",
        True,
    ),
)


def flagged(summary: Summary, flag: str) -> list[str]:
    """Annotators with a flag that begins in some way."""
    rows = summary["annotators"]["rows"]
    return [row["annotator"] for row in rows if any(warning.startswith(flag) for warning in row["flags"])]


def chance_sentence(summary: Summary) -> str:
    """What the flag means, where someone has it: beside an accuracy above a half it looks like a contradiction."""
    return f"Annotators flagged “{_ADVERSE}” {WHAT_CHANCE_IS}." if flagged(summary, _ADVERSE) else ""


def _chance_words(names: list[str]) -> str:
    return WHAT_CHANCE_IS if len(names) > 1 else WHAT_CHANCE_IS.replace("agree", "agrees", 1)


def advice(summary: Summary) -> list[str]:
    """Whom to look at."""
    steps = []
    if adverse := flagged(summary, _ADVERSE):
        steps.append(f"look at the labels of {some_of(adverse)}, who {_chance_words(adverse)}")
    if copies := flagged(summary, "same labels as"):
        steps.append(
            f"ask whether {some_of(copies)} worked independently: their labels are identical to another annotator’s"
        )
    return steps


def _compared(summary: Summary, rows: list[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """What annotators are compared by, and those that can be, the best first.

    A harsh one is seldom right and may be consistent; only known answers show errors that annotators have in common.
    """
    if not rows or rows[0].get("spread") is not None:
        return "correlation" if summary["kind"] == "rating" else "spread", rows
    at_random = (summary["truth_check"] or summary["quality"]["known"] or {}).get("at_random", False)
    measured = [row for row in rows if at_random and row.get("truths", 0) >= ENOUGH_TRUTHS]
    if len(measured) > 1:
        return "truth_accuracy", sorted(measured, key=lambda row: -row["truth_accuracy"])
    return "expertise" if rows[0].get("accuracy") is None else "accuracy", rows


def chart(summary: Summary) -> Markup | None:
    """The annotators with intervals for the first screen: all, or the best and the worst; None if nothing is known.

    Of annotators of levels, how far they are above the consensus, with the spread of their labels.
    """
    score, rows = _in_chart(summary)
    if len(rows) < 2 or not summary["comparable"] or any(row.get(f"{score}_low") is None for row in rows):
        return None
    if score == "spread":
        values = [
            (row["offset"], row["offset"] - row["spread"], row["offset"] + row["spread"], signed(row["offset"]))
            for row in rows
        ]
        most = max(abs(end) for _, low, high, _ in values for end in (low, high)) or 1.0
        ends = (-most, most)
        ticks = list(round_ticks(*ends, "+").items())
        label, axis = (
            "Offset and spread of annotators, levels above the consensus.",
            "levels above the consensus, ± spread",
        )
    else:
        values = [(row[score], row[f"{score}_low"], row[f"{score}_high"], _form(score, row)) for row in rows]
        ends = (math.floor(5 * min(low for _, low, _, _ in values)) / 5, 1.0)
        ticks, axis = share_ticks(ends[0]), _SCORES[score]
        label = f"{axis.capitalize()} of annotators."
        if score == "correlation":
            ticks = [(value, decimal(value, 1)) for value, _ in ticks]
    shown = [
        (row["annotator"], *numbers, words, "below" if row["flags"] else "")
        for row, (*numbers, words) in zip(rows, values, strict=True)
    ]
    return interval_rows(shown, ends, ticks, label, axis)


def _in_chart(summary: Summary) -> tuple[str, list[dict[str, Any]]]:
    score, rows = _compared(summary, [row for row in summary["annotators"]["rows"] if row["labels"]])
    half = MOST_IN_CHART // 2
    return score, rows if len(rows) <= MOST_IN_CHART else [*rows[:half], *rows[-half:]]


def _unit(summary: Summary) -> str:
    return " levels" if summary["kind"] == "class" else ""


def chart_words(summary: Summary) -> str:
    """What that chart shows."""
    (score, rows), half = _in_chart(summary), MOST_IN_CHART // 2
    which = "" if len(rows) == summary["annotators"]["total"] else f" The {half} best and the {half} worst."
    flags = " Orange: flagged." if any(row["flags"] for row in rows) else ""
    content = "Annotators, with 95% intervals"
    if score == "spread":
        content = "Offset of each annotator, with the spread of their labels around it"
    rough = f" {ROUGH[0].upper()}{ROUGH[1:]}." if _is_rough(summary, score) else ""
    return f"{content}.{which}{flags}{rough}"


def number(summary: Summary) -> dict[str, Any]:
    """How many are flagged, for the first screen."""
    flags = sum(bool(row["flags"]) for row in summary["annotators"]["rows"])
    note = f"of {summary['annotators']['total']:,}"
    return {"value": f"{flags:,}", "name": "annotators flagged", "note": note, "act": flags > 0}


def lines(summary: Summary) -> list[tuple[str, str]]:
    """The best and the worst if their intervals differ, and who is flagged, for a terminal."""
    rows = [row for row in summary["annotators"]["rows"] if row["labels"] and "few labels" not in row["flags"]]
    by_flags: dict[str, list[str]] = {}
    pairs: set[tuple[str, str]] = set()  # copies: what is stated of one is not stated again of the other
    for row in rows:
        name, copied = row["annotator"], {flag: _COPY.match(flag) for flag in row["flags"]}
        flags = [flag for flag, of in copied.items() if not of or (of["other"], name) not in pairs]
        pairs |= {(name, of["other"]) for of in copied.values() if of}
        if flags:
            by_flags.setdefault("; ".join(flags), []).append(row["annotator"])
    groups = [f"{some_of(names)}: {flags.replace(_ADVERSE, _chance_words(names))}" for flags, names in by_flags.items()]
    more = [f"and {len(groups) - NAMED} more (see the report)"] if len(groups) > NAMED else []
    return [("Annotators", _best_and_worst(summary, rows)), ("Flagged", "; ".join([*groups[:NAMED], *more]))]


def _best_and_worst(summary: Summary, rows: list[dict[str, Any]]) -> str:
    score, rows = _compared(summary, rows)
    if len(rows) < 2 or not summary["comparable"]:
        return ""
    best, worst = next((row for row in rows if _ADVERSE not in row["flags"]), rows[0]), rows[-1]
    if score != "expertise":
        low, high = (best, worst) if score == "spread" else (worst, best)
        if low[f"{score}_high"] >= high[f"{score}_low"]:
            ends = " to ".join(dict.fromkeys(_form(score, row) for row in (low, high)))
            unit = _unit(summary) if score == "spread" else ""
            return f"no clear difference ({_SCORES[score]} {ends}{unit}){_biased(summary, rows)}"
    if _is_rough(summary, score):
        return f"{_scored(summary, best)}; {_scored(summary, worst)}; {ROUGH}"
    return f"best {_scored(summary, best)}; worst {_scored(summary, worst)}"


def _is_rough(summary: Summary, score: str) -> bool:
    """Whether two annotators are compared with nothing but each other."""
    alone = summary["size"]["annotators"] == 2 and not summary["model"]["uses_features"]
    return alone and score != "truth_accuracy"


def _form(score: str, row: dict[str, Any], end: str = "") -> str:
    value = row[score + end]
    if "accuracy" in score:
        return percent(value)
    return decimal(value) if score == "correlation" else f"{value:.2g}"


def _biased(summary: Summary, rows: list[dict[str, Any]]) -> str:
    """Who is harsh or lenient by more than half of their spread: consistent, and still far off."""
    rows = [row for row in rows if row.get("spread") and abs(row["offset"]) > row["spread"] / 2]
    return "".join(f"; {row['annotator']} is {_harsh(summary, row)}" for row in rows[:NAMED])


def _harsh(summary: Summary, row: dict[str, Any]) -> str:
    away = f"{abs(row['offset']):.2g}{_unit(summary)}"
    return f"{'lenient' if row['offset'] > 0 else 'harsh'} by {away}" if abs(row["offset"]) >= 0.05 else "no offset"


def _scored(summary: Summary, row: dict[str, Any]) -> str:
    """A name with all that is known about how good it is."""
    parts = []
    if row.get("spread") is not None:
        score = _compared(summary, [row])[0]
        span = f"{_form(score, row, '_low')} to {_form(score, row, '_high')}"
        parts += [_harsh(summary, row), f"{score} {_form(score, row)} ({span})"]
    if row.get("truth_accuracy") is not None:
        parts.append(f"accuracy {percent(row['truth_accuracy'])} on {count(row['truths'], 'known answer')}")
    if row.get("accuracy") is not None and row.get("spread") is None:
        parts.append(f"estimated accuracy {percent(row['accuracy'])}")
    parts = parts or [f"expertise {row['expertise']:.3g}"]
    return f"{row['annotator']} ({', '.join(parts)}, {count(row['labels'], 'label')})"
