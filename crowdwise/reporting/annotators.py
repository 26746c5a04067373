"""How good each annotator is, who is flagged, what they mix up and where they stand alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from crowdwise._arrays import Array, Floats, Positions, ratio
from crowdwise._text import count
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.reporting._svg import Markup, interval_rows, share_ticks
from crowdwise.reporting._words import NAMED, percent, some_of
from crowdwise.reporting.fit import Fit, Summary, listed, named, plain

_MOST_ANNOTATORS, _MOST_ALONE, _MOST_IN_CHART = 1000, 5, 10
# Matrices of more classes would fill a page; the most frequent confusions are listed instead.
_MOST_CLASSES, _MOST_MIXED_UP = 8, 5
_MEASURED = 20  # with so many known answers per annotator, these are compared by them
_ADVERSE = "worse than chance"
# Chance is what the frequencies of answers and classes give, which is more than a half where one class is frequent.
WHAT_CHANCE_IS = "agree with the consensus less than random answers would"
PAGES = (("annotators", "Annotators"),)


def data(fit: Fit) -> dict[str, Any]:
    """The annotators of a fit, those of the highest expertise first."""
    results, columns, chosen = fit.results, annotator_columns(fit), _chosen(fit)
    expertise = results.expertise
    shown = chosen[np.argsort(-np.nan_to_num(expertise[chosen], nan=-1.0), kind="stable")]
    # One who is never wrong has expertise without end, and would leave everybody else without a bar.
    largest = min(float(np.nanmax(expertise)), 6 * float(np.nanmedian(expertise)))
    alone, mixed = _alone(fit, chosen), _confusion(fit, chosen)
    rows = []
    for i in shown.tolist():
        row = {name: plain(column[i]) for name, column in columns.items()}
        row["annotator"] = named(results.annotators[i])
        row["flags"] = list(results.annotator_flags.get(results.annotators[i], ()))
        row["bar"] = min((row["expertise"] or 0.0) / largest, 1.0) if largest > 0 else 0.0
        rows.append(row | {"alone": alone[i]} | mixed.get(i, {}))
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
    if results.model_proba is not None:
        columns["agrees_with_model"] = _agreement_with(labels, results.model_proba.argmax(axis=1))
    return columns | {"flags": flags}


def _agreement_with(labels: CrowdLabels, codes: Array) -> Floats:
    """For every annotator the share of their labels that equal the code of the example; NaN without labels."""
    same = labels._sum_per_annotator((labels.values == codes[labels.example_index]).astype(np.float64))
    return ratio(same, labels.labels_per_annotator)


def _chosen(fit: Fit) -> Positions:
    """All annotators, or those flagged and those with the most labels, in their order."""
    results = fit.results
    if len(results.annotators) <= _MOST_ANNOTATORS:
        return np.arange(len(results.annotators))
    few = {"few labels", "no labels"}
    flagged = np.array([bool(set(results.annotator_flags.get(name, ())) - few) for name in results.annotators])
    return np.sort(np.lexsort((-results.n_labels, ~flagged))[:_MOST_ANNOTATORS])


def _alone(fit: Fit, chosen: Positions) -> dict[int, dict[str, Any]]:
    """By annotator, the labels that nobody else gave to an example of three labels or more; the least probable first.

    For ratings, the labels farthest from the consensus.
    """
    labels, results = fit.labels, fit.results
    example, by = labels.example_index, labels.annotator_index
    if labels.classes is None:
        strangeness = np.abs(labels.values - results.label[example])
        lonely = np.ones(labels.n_labels, dtype=bool)
    else:
        strangeness = 1 - results.proba[example, labels.values]
        lonely = (labels._tally[example, labels.values] == 1) & (labels.labels_per_example[example] > 2)
    at = np.flatnonzero(lonely & np.isin(by, chosen))
    at = at[np.lexsort((-strangeness[at], by[at]))]
    start = np.searchsorted(by[at], np.arange(labels.n_annotators + 1)).tolist()
    return {
        i: listed(
            start[i + 1] - start[i],
            [_lone_label(fit, j) for j in at[start[i] : min(start[i] + _MOST_ALONE, start[i + 1])].tolist()],
        )
        for i in chosen.tolist()
    }


def _lone_label(fit: Fit, j: int) -> dict[str, Any]:
    labels, i = fit.labels, int(fit.labels.example_index[j])
    if labels.classes is None:
        said, label = f"{labels.values[j]:.3g}", f"{fit.results.label[i]:.3g}"
    else:
        said, label = named(labels.classes[labels.values[j]]), named(fit.results.label[i])
    return {"example": named(fit.results.examples[i]), "said": said, "label": label}


def _confusion(fit: Fit, chosen: Positions) -> dict[int, dict[str, Any]]:
    """By annotator, the answers on examples of every class; of many classes only what is mixed up most."""
    if fit.results.classes is None:
        return {}
    names = [named(name) for name in fit.results.classes]
    found: dict[int, dict[str, Any]] = {}
    for i, matrix in zip(chosen.tolist(), fit.results.confusion[chosen], strict=True):
        if len(names) > _MOST_CLASSES:
            found[i] = {"mixed_up": _mixed_up(matrix, names)}
        else:
            found[i] = {"confusion": None if np.isnan(matrix).any() else matrix.round(3).tolist()}
    return found


def _mixed_up(matrix: Floats, names: list[str]) -> list[dict[str, Any]]:
    """The most frequent mistakes: of a class, and what is answered."""
    wrong = np.nan_to_num(matrix * (1 - np.eye(len(matrix))))
    worst = np.argsort(-wrong, axis=None, kind="stable")[:_MOST_MIXED_UP]
    places = zip(*np.unravel_index(worst, wrong.shape), strict=True)
    return [{"truth": names[k], "said": names[c], "share": round(float(wrong[k, c]), 3)} for k, c in places]


def flagged(summary: Summary, flag: str) -> list[str]:
    """Annotators with a flag that begins in some way."""
    rows = summary["annotators"]["rows"]
    return [row["annotator"] for row in rows if any(given.startswith(flag) for given in row["flags"])]


def chance_sentence(summary: Summary) -> str:
    """What the flag means, where somebody has it: beside an accuracy above a half it looks like a contradiction."""
    return f"Annotators flagged “{_ADVERSE}” {WHAT_CHANCE_IS}." if flagged(summary, _ADVERSE) else ""


def _chance_words(names: list[str]) -> str:
    return WHAT_CHANCE_IS if len(names) > 1 else WHAT_CHANCE_IS.replace("agree", "agrees", 1)


def advice(summary: Summary) -> list[str]:
    """Whom to look at."""
    found = []
    if adverse := flagged(summary, _ADVERSE):
        found.append(f"look at the labels of {some_of(adverse)}, who {_chance_words(adverse)}")
    if copies := flagged(summary, "same labels as"):
        found.append(f"ask whether {some_of(copies)} worked independently, as their labels are the same as another’s")
    return found


def chart(summary: Summary) -> Markup | None:
    """The annotators with intervals for the first screen: all, or the best and the worst; None if nothing is known."""
    rows = _in_chart(summary)
    if len(rows) < 2 or not summary["comparable"]:
        return None
    kinds = ["below" if row["flags"] else "" for row in rows]
    if rows[0].get("offset") is not None:
        return _offsets(summary, rows, kinds)
    score = "truth_accuracy" if all(row.get("truths", 0) >= _MEASURED for row in rows) else "accuracy"
    if any(row.get(score) is None for row in rows):
        return None
    low = math.floor(10 * min(row[f"{score}_low"] for row in rows)) / 10
    shown = [
        (row["annotator"], row[score], row[f"{score}_low"], row[f"{score}_high"], percent(row[score]), kind)
        for row, kind in zip(rows, kinds, strict=True)
    ]
    axis = "estimated accuracy" if score == "accuracy" else "accuracy on known answers"
    return interval_rows(shown, (low, 1.0), share_ticks(low), f"{axis.capitalize()} of annotators.", axis)


def _in_chart(summary: Summary) -> list[dict[str, Any]]:
    rows = [row for row in summary["annotators"]["rows"] if row["labels"]]
    half = _MOST_IN_CHART // 2
    return rows if len(rows) <= _MOST_IN_CHART else [*rows[:half], *rows[-half:]]


def _offsets(summary: Summary, rows: list[dict[str, Any]], kinds: list[str]) -> Markup:
    """How far annotators of levels or ratings are above the consensus, with the spread of their labels."""
    ends = [(row["offset"] - row["spread"], row["offset"] + row["spread"]) for row in rows]
    most = max(abs(end) for pair in ends for end in pair) or 1.0
    shown = [
        (row["annotator"], row["offset"], *pair, f"{row['offset']:+.2f}", kind)
        for row, pair, kind in zip(rows, ends, kinds, strict=True)
    ]
    ticks = [(share * most, f"{share * most:+.2g}" if share else "0") for share in (-1.0, -0.5, 0.0, 0.5, 1.0)]
    axis = "levels above the consensus" if summary["kind"] == "class" else "above the consensus"
    return interval_rows(shown, (-most, most), ticks, f"Offset and spread of annotators, {axis}.", f"{axis}, ± spread")


def chart_words(summary: Summary) -> str:
    """What that chart shows."""
    rows, half = _in_chart(summary), _MOST_IN_CHART // 2
    which = "" if len(rows) == summary["annotators"]["total"] else f" The {half} best and the {half} worst."
    flags = " Orange: flagged." if any(row["flags"] for row in rows) else ""
    ends = "95% intervals" if rows[0].get("offset") is None else "the spread of their labels"
    return f"Annotators, with {ends}.{which}{flags}"


def number(summary: Summary) -> dict[str, Any]:
    """How many are flagged, for the first screen."""
    flags = sum(bool(row["flags"]) for row in summary["annotators"]["rows"])
    note = f"of {summary['annotators']['total']:,}"
    return {"value": f"{flags:,}", "name": "annotators flagged", "note": note, "act": flags > 0}


def lines(summary: Summary) -> list[str]:
    """The best and the worst if their intervals differ, and who is flagged, for a terminal."""
    rows = [row for row in summary["annotators"]["rows"] if row["labels"] and "few labels" not in row["flags"]]
    measured = (summary["truth_check"] or summary["quality"]["known"] or {}).get("at_random", False)
    score = "accuracy"
    levels = bool(rows) and rows[0].get("spread") is not None  # a harsh annotator is seldom right and may be consistent
    if measured and not levels and all(row.get("truths", 0) >= _MEASURED for row in rows):  # with common errors too
        score = "truth_accuracy"
        rows = sorted(rows, key=lambda row: -row[score])
    found = []
    if len(rows) > 1 and summary["comparable"]:
        best, worst = rows[0], rows[-1]
        if levels and best["spread_high"] >= worst["spread_low"]:
            span = f"{best['spread']:.2g} to {worst['spread']:.2g} levels"
            found.append(f"Annotators  no clear difference (spread around their offsets {span})")
        elif not levels and best.get(score) is not None and best[f"{score}_low"] <= worst[f"{score}_high"]:
            span = " to ".join(dict.fromkeys(percent(row[score]) for row in (worst, best)))
            what = "estimated accuracy" if score == "accuracy" else "accuracy on known answers"
            found.append(f"Annotators  no clear difference ({what} {span})")
        else:
            found.append(f"Annotators  best {_scored(best)}; worst {_scored(worst)}")
    by_flags: dict[str, list[str]] = {}
    for row in rows:
        if row["flags"]:
            by_flags.setdefault("; ".join(row["flags"]), []).append(row["annotator"])
    groups = [f"{some_of(names)}: {flags.replace(_ADVERSE, _chance_words(names))}" for flags, names in by_flags.items()]
    if groups:
        more = ["and more"] if len(groups) > NAMED else []
        found.append(f"Flagged     {'; '.join([*groups[:NAMED], *more])}")
    return found


def _scored(row: dict[str, Any]) -> str:
    if row.get("spread") is not None:
        harsh = f"{'lenient' if row['offset'] > 0 else 'harsh'} by {abs(row['offset']):.1f} levels, otherwise "
        spread = f"within {row['spread']:.2g} ({row['spread_low']:.2g} to {row['spread_high']:.2g})"
        return f"{row['annotator']} ({harsh}{spread}, {count(row['labels'], 'label')})"
    if row.get("accuracy") is None:
        return f"{row['annotator']} (expertise {row['expertise']:.3g}, {count(row['labels'], 'label')})"
    known = ""
    if row.get("truth_accuracy") is not None:
        known = f"accuracy {percent(row['truth_accuracy'])} on {count(row['truths'], 'known answer')}, "
    share = percent(row["accuracy"])
    return f"{row['annotator']} ({known}estimated accuracy {share}, {count(row['labels'], 'label')})"
