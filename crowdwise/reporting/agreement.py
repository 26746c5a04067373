"""How far annotators agree: all of them, how many independent votes they have, each pair, and on ratings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from crowdwise._arrays import Positions
from crowdwise._limits import (
    AGREEMENT,
    ENOUGH_SHARED,
    ENOUGH_TRUTHS,
    FEW,
    MOST_IN_CHART,
    MOST_POINTS,
    MOSTLY_INDEPENDENT,
)
from crowdwise._text import count
from crowdwise.crowd._agreement import agreement
from crowdwise.crowd._disagreement import disagreement
from crowdwise.crowd.coefficients import krippendorff_alpha
from crowdwise.crowd.kappas import PairAgreement, cohen_kappas
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.reporting._svg import WIDTH, Markup, Plot, picture, round_ticks, tag, text
from crowdwise.reporting.fit import (
    Fit,
    Summary,
    decimal,
    estimate,
    evenly,
    excerpt,
    interval,
    named,
    plain,
    rounded,
    signed,
)
from crowdwise.results._error_correlation import votes_by_truth
from crowdwise.results.fit_results import is_representative
from crowdwise.truths.check import HALF_WIDTH

# Of more annotators those with the most labels are compared, and of more pairs of labels a part of the examples.
_MOST_COMPARED, _MOST_LABEL_PAIRS = 300, 20_000_000
PAGES = (("bland_altman", "Ratings"), ("pairs", "Pairs"))


def data(fit: Fit) -> dict[str, Any]:
    """Krippendorff's alpha, the number of independent votes, pairs of annotators, and differences of ratings."""
    return {
        "alpha": alpha_interval(fit.labels),
        "votes": _votes(fit),
        "pairs": pairs(fit.labels),
        "bland_altman": _differences(fit),
    }


def alpha_interval(labels: CrowdLabels) -> dict[str, Any]:
    """Krippendorff's alpha with an interval over examples that might have been drawn instead.

    All None if no example has two labels. If classes have an order, it is the one that uses it.

    Examples
    --------
    >>> from crowdwise import CrowdLabels
    >>> from crowdwise.reporting.agreement import alpha_interval
    >>> alpha_interval(CrowdLabels.from_matrix([[0, 0], [1, 1], [0, 1], [1, 1]] * 25))["value"] > 0.4
    True
    """
    paired = labels.labels_per_example > 1
    if not paired.any():
        return estimate(np.nan)
    compared = labels[paired]
    if labels.scale.name == "ordinal":
        ordinal = agreement(compared, min_shared=len(compared) + 1).alpha
        return estimate(ordinal.value, ordinal.low, ordinal.high)
    alpha = krippendorff_alpha(compared)
    n, n_labels = compared.labels_per_example, compared.n_labels
    within = disagreement(compared, relative_to=None) / (n - 1)
    if compared.classes is None:
        spread = (compared.values - compared.values.mean()) ** 2
        at_random, moved = spread.mean(), spread - spread.mean()
    else:
        share = compared._tally.sum(axis=0) / n_labels
        at_random, moved = 2 * (1 - (share**2).sum()), 4 * ((share**2).sum() - share[compared.values])
    if not at_random > 0:
        return estimate(alpha)
    # How far one example more of each kind would move alpha, which is a ratio of two means.
    mean_within = within.sum() / n_labels
    influence = mean_within / at_random * compared._sum_per_example(moved) - (within - mean_within * n)
    error = float(np.sqrt((influence**2).sum())) / (n_labels * at_random)
    return estimate(alpha, alpha - HALF_WIDTH * error, min(alpha + HALF_WIDTH * error, 1.0))


def _votes(fit: Fit) -> dict[str, Any]:
    """How many independent votes there are, how that is known, and how many annotators share one, and why."""
    results, fitted = fit.results, fit.results.fitted
    shared = 0 if results.vote_weight is None else int((results.vote_weight < 1).sum())
    why = "groups were given" if fitted is not None and fitted.sharing.given else "their labels are near copies"
    votes = {"effective": plain(results.effective_votes), "shared": shared, "why": why, "truths": 0}
    if fitted is None:
        return votes
    n_truths = int(((fit.answers >= 0) & (fit.labels.labels_per_example > 1)).sum())
    if n_truths < ENOUGH_TRUTHS or not is_representative(results, fit.labelled, fit.answers):
        return votes
    effective = votes_by_truth(results, fit.labels, fit.answers)
    return votes | {"effective": effective, "truths": n_truths}


def pairs(labels: CrowdLabels) -> dict[str, Any] | None:
    """Cohen's kappa of pairs with enough examples in common; None for ratings and if there are none.

    How many pairs, quantiles, the pairs that agree most and least, and a grid of the most active annotators. If classes
    have an order, kappa is weighted by the square of how far labels are apart.
    """
    if labels.classes is None:
        return None
    part, share = _part_of(labels)
    weights: Any = "quadratic" if labels.scale.name == "ordinal" else None
    kappas = cohen_kappas(part, min_shared=ENOUGH_SHARED, weights=weights)
    known = np.flatnonzero(~np.isnan(kappas.kappa))
    if len(known) == 0:
        return None
    order = known[np.argsort(kappas.kappa[known], kind="stable")]
    low, median, high = np.quantile(kappas.kappa[known], [0.1, 0.5, 0.9]).tolist()
    n = min(FEW, len(order) // 2)
    return {
        "total": len(order),
        "annotators": part.n_annotators,
        "share": share,
        "fewest_shared": ENOUGH_SHARED,
        "low": low,
        "median": median,
        "high": high,
        "least": _rows(kappas, order[: max(n, 1)]),
        "most": _rows(kappas, order[::-1][:n]),
        "grid": _grid(part, kappas, known),
    }


def _rows(kappas: PairAgreement, chosen: Positions) -> list[dict[str, Any]]:
    return [
        {
            "first": named(kappas.first[j]),
            "second": named(kappas.second[j]),
            "shared": int(kappas.n_shared[j]),
            "kappa": float(kappas.kappa[j]),
        }
        for j in chosen
    ]


def _part_of(labels: CrowdLabels) -> tuple[CrowdLabels, float]:
    """The labels whose pairs can be counted: of the busiest annotators, on examples evenly spread; and their share."""
    if labels.n_annotators > _MOST_COMPARED:
        busiest = np.zeros(labels.n_annotators, dtype=bool)
        busiest[np.argsort(-labels.labels_per_annotator, kind="stable")[:_MOST_COMPARED]] = True
        labels = labels.select_annotators(busiest)
    per_example = labels.labels_per_example.astype(np.float64)
    step = math.ceil(float((per_example * (per_example - 1) / 2).sum()) / _MOST_LABEL_PAIRS)
    return (labels, 1.0) if step <= 1 else (labels[::step], 1 / step)


def _grid(labels: CrowdLabels, kappas: PairAgreement, known: Positions) -> dict[str, Any]:
    """Kappa of every pair of the annotators with the most labels, those first who agree most; None if unknown."""
    busiest = np.argsort(-labels.labels_per_annotator, kind="stable")[: 2 * MOST_IN_CHART]
    place = {name: i for i, name in enumerate(labels.annotators[busiest].tolist())}
    grid = np.full((len(busiest), len(busiest)), np.nan)
    for first, second, kappa in zip(kappas.first[known], kappas.second[known], kappas.kappa[known], strict=True):
        if first in place and second in place:
            grid[place[first], place[second]] = grid[place[second], place[first]] = kappa
    is_known = ~np.isnan(grid)
    mean = np.where(is_known, grid, 0.0).sum(axis=1) / np.maximum(is_known.sum(axis=1), 1)
    order = np.argsort(-mean, kind="stable")
    rows = [[plain(kappa) for kappa in row] for row in grid[order][:, order].round(3)]
    return {"annotators": [named(name) for name in labels.annotators[busiest[order]]], "kappa": rows}


def _differences(fit: Fit) -> list[dict[str, Any]] | None:
    """Of the busiest annotators, differences to the consensus of the others against the mean of both.

    Bland and Altman's picture, with the limits of agreement; None without ratings that can be compared.
    """
    raters, labels = fit.results.raters, fit.labels
    if raters is None:
        return None
    offset, _ = raters.by_others(labels)
    consensus = raters.mean + offset
    compared = labels.labels_per_example[labels.example_index] > 1
    rows = []
    for i in np.argsort(-labels.labels_per_annotator, kind="stable")[:FEW].tolist():
        index = np.flatnonzero(compared & (labels.annotator_index == i))
        if len(index) == 0:
            continue
        index = index[evenly(len(index), MOST_POINTS)]
        points = np.column_stack(
            [
                (labels.values[index] + consensus[index]) / 2,
                labels.values[index] - consensus[index],
            ]
        )
        low, high = map(plain, raters.limits[:, i])
        rows.append(
            {"annotator": named(labels.annotators[i]), "points": points.round(4).tolist(), "low": low, "high": high}
        )
    return rows or None


def alpha_name(*, ordered: bool) -> str:
    """What the agreement is called: where classes have an order, alpha knows it."""
    return f"Krippendorff's alpha{' for ordered labels' if ordered else ''}"


def agreement_words(alpha: Mapping[str, float | None]) -> str:
    """How far annotators agree, by an alpha that is known."""
    value, low = alpha["value"], alpha.get("low")
    assert value is not None
    if value < 0:
        return "agree less than by chance"
    if low is not None and low <= 0:
        return "agree little more than by chance"
    return f"agree {next(word for least, word in AGREEMENT if value >= least)}"


def agreement_sentence(summary: Summary) -> str:
    """How far the annotators agree beyond chance."""
    alpha, crowd = summary["alpha"], count(summary["size"]["annotators"], "annotator")
    if summary["size"]["annotators"] == 1:
        return "There is one annotator, so neither agreement nor accuracy can be estimated."
    if alpha["value"] is None:
        if summary["size"]["labels_per_example"]["max"] < 2:
            return f"No two of these {crowd} share an example, so their accuracies cannot be compared."
        return f"All labels of these {crowd} are the same, so agreement beyond chance is unknown."
    span = "" if alpha["low"] is None else f" (95% interval {interval(alpha)})"
    name = alpha_name(ordered=summary["ordered"])
    words = f"These {crowd} {agreement_words(alpha)}: {name} is {decimal(alpha['value'])}{span}"
    return f"{words}, where 0 is chance and 1 is perfect."


def votes_sentence(summary: Summary) -> str:
    """How many independent votes an example has by known answers, and who shares one.

    What labels alone say is left out: on real crowds it is a half to two thirds of what known answers show.
    """
    votes = summary["votes"]
    if summary["size"]["annotators"] == 1:
        return ""
    shared = f"{count(votes['shared'], 'annotator')} share votes: {votes['why']}." if votes["shared"] else ""
    if not votes["truths"]:
        return shared
    labels = summary["size"]["labels_per_example"]["mean"]
    independent = votes["effective"] >= MOSTLY_INDEPENDENT * labels
    return (
        f"{'Errors are mostly independent' if independent else 'Annotators make the same mistakes'}: {rounded(labels)} "
        f"labels carry about as much information as {rounded(votes['effective'])} independent ones (measured on "
        f"{count(votes['truths'], 'known answer')}). {shared}"
    ).rstrip()


def lines(summary: Summary) -> list[tuple[str, str]]:
    """The same for a terminal."""
    return [("Agreement", agreement_sentence(summary)), ("Votes", votes_sentence(summary))]


def number(summary: Summary) -> dict[str, str]:
    """The agreement on the first screen."""
    alpha = summary["alpha"]
    value = "–" if alpha["value"] is None else decimal(alpha["value"])
    span = "" if alpha["low"] is None else f", {interval(alpha)}"
    return {"value": value, "name": "agreement beyond chance", "note": alpha_name(ordered=summary["ordered"]) + span}


def grid_picture(summary: Summary) -> Markup:
    """Agreement of every pair of the most active annotators; blue beyond chance, orange below it."""
    grid = summary["pairs"]["grid"]
    names: list[str] = grid["annotators"]
    shown = [excerpt(name, 12) for name in names]
    left = 14 + 6.5 * max(map(len, shown))
    cell = min((WIDTH - left) / len(names), 44.0)
    parts = []
    for i, (name, row) in enumerate(zip(names, grid["kappa"], strict=True)):
        parts.append(text(left - 8, cell * (i + 0.5) + 4, shown[i], anchor="end"))
        for j, value in enumerate(row):
            box = {"x": left + cell * j, "y": cell * i, "width": cell - 1.5, "height": cell - 1.5, "rx": 1.5}
            if value is None:
                parts.append(tag("rect", **box, class_="self" if i == j else "empty"))
            else:
                title = tag("title", f"{name} and {names[j]}: {decimal(value)}")
                kind = "above" if value >= 0 else "below"
                strength = 0.08 + 0.92 * min(abs(value), 1.0)
                parts.append(tag("rect", title, **box, class_=kind, fill_opacity=strength))
                if len(names) < MOST_IN_CHART:
                    where = (left + cell * (j + 0.5) - 0.75, cell * (i + 0.5) + 4)
                    value_kind = "value strong" if strength > 0.55 else "value"
                    parts.append(text(*where, decimal(value), anchor="middle", kind=value_kind))
    label = f"Cohen’s kappa of every pair of the {len(names)} annotators with the most labels."
    return picture(cell * len(names), label, parts, width=max(left + cell * len(names), WIDTH))


def difference_picture(summary: Summary, row: dict[str, Any]) -> Markup:
    """One annotator's differences, with the limits of agreement; all annotators have the same axes."""
    rows = summary["bland_altman"]
    across = [x for entry in rows for x, _ in entry["points"]]
    ends = [abs(end) for entry in rows for end in (entry["low"], entry["high"]) if end is not None]
    most = max([*ends, *(abs(y) for entry in rows for _, y in entry["points"])]) or 1.0
    first, span = min(across), (max(across) - min(across)) or 1.0
    plot = Plot((first, first + span), (-most, most), right=62)
    x_ticks, y_ticks = round_ticks(first, first + span), round_ticks(-most, most, "+")
    plot.axes("mean of both ratings", x_ticks, "difference", y_ticks, grid=[0.0])
    plot.points(row["points"])
    if row["low"] is not None and row["high"] is not None:
        for value, kind in ((row["low"], "limit"), (row["high"], "limit"), ((row["low"] + row["high"]) / 2, "curve")):
            plot.level(value, kind, signed(value))
    return plot.picture(f"Differences of {row['annotator']} to the consensus of the others, with limits of agreement.")
