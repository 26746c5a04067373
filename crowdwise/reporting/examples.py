"""Rows about single examples: what to check next, and all from easy to hard."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdwise._arrays import Array, Positions, ratio
from crowdwise._limits import LITTLE_GAIN, MOST_EXAMPLES, MOST_IN_CHART, MOST_ROWS, NAME_LENGTH, NAMED, TEXT_LENGTH
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.reporting.fit import Fit, Summary, evenly, excerpt, listed, named, plain
from crowdwise.results.suggest import best_first, information_gain, next_labels

PAGES = (("next", "Check next"), ("order", "Easy to hard"))


def data(fit: Fit) -> dict[str, Any]:
    """Those to check next, and all of them in their order."""
    return {"next": _next(fit), "order": _ordered(fit)}


def rows_of(fit: Fit, chosen: Positions, *, length: int = TEXT_LENGTH, answers: bool = True) -> list[dict[str, Any]]:
    """What is known about some examples, in their order; texts are cut to `length`, `answers` are who gave which."""
    results, first = fit.results, _first(fit, chosen)
    sure = results.std if results.classes is None else results.confidence
    weight = results.easiness
    rows = []
    for i, (answer, tied) in zip(chosen.tolist(), first, strict=True):
        row: dict[str, Any] = {
            "example": named(results.examples[i]),
            "label": _answer(results.label[i]),
            "sure": float(sure[i]),
            "first": answer,
            "tied": tied,
            "labels": int(fit.labels.labels_per_example[i]),
            "disagreement": float(results.disagreement[i]),
            "easiness": float(weight[i]),
        }
        if fit.texts is not None:
            row["text"] = None if fit.texts[i] is None else excerpt(str(fit.texts[i]), length)
        if fit.shown_truth is not None:
            row["truth"] = fit.shown_truth[i]
        rows.append(row | {"said": _said(fit.labels, i)} if answers else row)
    return rows


def _first(fit: Fit, chosen: Positions) -> list[tuple[str | float | None, bool]]:
    """The majority's answer, " or " between those that tie, and whether they do; the plain mean of ratings."""
    if fit.results.classes is None:
        return [(plain(value), False) for value in mean_ratings(fit.labels)[chosen]]
    names = [named(name) for name in fit.results.classes]
    leads = [np.flatnonzero(row) for row in fit.votes[chosen]]
    return [(" or ".join(names[k] for k in classes) or None, len(classes) > 1) for classes in leads]


def mean_ratings(labels: CrowdLabels) -> Array:
    """The plain mean of every example's ratings; NaN without any."""
    return ratio(labels._sum_per_example(labels.values), labels.labels_per_example)


def _said(labels: CrowdLabels, i: int) -> list[dict[str, Any]]:
    """Who gave which label to one example, the most frequent label first."""
    rows = slice(labels.indptr[i], labels.indptr[i + 1])
    values, annotators = labels.values[rows], labels.annotators[labels.annotator_index[rows]]
    answers, counts = np.unique(values, return_counts=True)
    order = np.argsort(-counts, kind="stable") if labels.classes is not None else np.arange(len(answers))
    return [
        {
            "label": _answer(answers[k] if labels.classes is None else labels.classes[answers[k]]),
            "n": int(counts[k]),
            "annotators": [named(name) for name in annotators[values == answers[k]][:MOST_IN_CHART]],
        }
        for k in order
    ]


def _answer(value: Any) -> str | float:
    """A class as text; a rating as a number."""
    return float(value) if isinstance(value, float) else named(value)


def _next(fit: Fit) -> dict[str, Any]:
    """What to check next."""
    gain = information_gain(fit.results)
    order = best_first(fit.results, gain)
    first = order[:MOST_ROWS]
    reasons = next_labels(fit.results, fit.labels, gain, first).reason.tolist()
    more = zip(rows_of(fit, first), gain[first].tolist(), reasons, strict=True)
    return listed(len(order), [row | {"gain": bits, "reason": reason} for row, bits, reason in more])


def _ordered(fit: Fit) -> dict[str, Any]:
    """All examples from easy to hard, or as many of them, evenly spread, as a page can hold."""
    n = len(fit.labels)
    place = evenly(n, MOST_EXAMPLES)
    rows = rows_of(fit, fit.easy_to_hard[place], length=NAME_LENGTH, answers=False)
    return listed(n, [row | {"order": int(position) + 1} for row, position in zip(rows, place, strict=True)])


def consensus_columns(fit: Fit) -> dict[str, Array]:
    """Everything about the examples, a column each.

    "example", "label", "confidence" ("mean" too for classes with an order) and "p(...)" per class ("std" for ratings),
    "labels", "majority" ("mean" for ratings), "disagreement", "easiness" and "order" (1 is the easiest).
    """
    results, labels = fit.results, fit.labels
    columns = results.consensus.columns() | {"labels": labels.labels_per_example}
    if results.classes is None:
        columns["mean"] = mean_ratings(labels)
    else:
        columns["majority"] = labels.majority()
    order = np.empty(len(labels), dtype=np.int64)
    order[fit.easy_to_hard] = np.arange(1, len(labels) + 1)
    return columns | {"disagreement": results.disagreement, "easiness": results.easiness, "order": order}


def worth_labelling(summary: Summary) -> list[dict[str, Any]]:
    """The first examples to check; none if all are sure."""
    if summary["size"]["annotators"] == 1:
        return []
    return [row for row in summary["next"]["rows"][:NAMED] if row["gain"] >= LITTLE_GAIN]


def next_words(summary: Summary) -> str:
    """What an expert should check first."""
    first = worth_labelling(summary)[0]
    return f"have an expert check the least certain examples, starting with “{first['example']}” ({first['reason']})"
