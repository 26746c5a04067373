"""Which pairs of annotators agree most and least: Cohen's kappa, and a grid of the most active ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from crowdwise._arrays import Positions
from crowdwise.crowd.kappas import PairAgreement, cohen_kappas
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.reporting._svg import WIDTH, Markup, picture, tag, text
from crowdwise.reporting._words import decimal
from crowdwise.reporting.fit import Fit, Summary, named, plain

_FEWEST_SHARED, _MOST_PAIRS, _MOST_IN_GRID, _MOST_WITH_VALUES = 10, 10, 24, 12
# Of more annotators those with the most labels are compared, and of more pairs of labels a part of the examples.
_MOST_COMPARED, _PAIRS_AT_MOST = 300, 20_000_000
PAGES = (("pairs", "Pairs"),)


def data(fit: Fit) -> dict[str, Any]:
    """The pairs of a fit's annotators; None for ratings and if none can be compared."""
    return {"pairs": pairs(fit.labels)}


def pairs(labels: CrowdLabels) -> dict[str, Any] | None:
    """Cohen's kappa of pairs with enough examples in common; None if there are none.

    How many pairs, quantiles, the pairs that agree most and least, and a grid of the most active annotators. If classes
    have an order, kappa is weighted by the square of how far labels are apart.
    """
    if labels.classes is None:
        return None
    part, share = _part_of(labels)
    weights: Any = "quadratic" if labels.scale.name == "ordinal" else None
    found = cohen_kappas(part, min_shared=_FEWEST_SHARED, weights=weights)
    known = np.flatnonzero(~np.isnan(found.kappa))
    if len(known) == 0:
        return None
    order = known[np.argsort(found.kappa[known], kind="stable")]
    low, median, high = np.quantile(found.kappa[known], [0.1, 0.5, 0.9]).tolist()
    n = min(_MOST_PAIRS, len(order) // 2)
    return {
        "total": len(order),
        "annotators": part.n_annotators,
        "share": share,
        "fewest_shared": _FEWEST_SHARED,
        "low": low,
        "median": median,
        "high": high,
        "least": _rows(found, order[: max(n, 1)]),
        "most": _rows(found, order[::-1][:n]),
        "grid": _grid(part, found, known),
    }


def _rows(found: PairAgreement, chosen: Positions) -> list[dict[str, Any]]:
    return [
        {
            "first": named(found.first[j]),
            "second": named(found.second[j]),
            "shared": int(found.n_shared[j]),
            "kappa": float(found.kappa[j]),
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
    step = math.ceil(float((per_example * (per_example - 1) / 2).sum()) / _PAIRS_AT_MOST)
    return (labels, 1.0) if step <= 1 else (labels[::step], 1 / step)


def _grid(labels: CrowdLabels, found: PairAgreement, known: Positions) -> dict[str, Any]:
    """Kappa of every pair of the annotators with the most labels, those first who agree most; None if unknown."""
    busiest = np.argsort(-labels.labels_per_annotator, kind="stable")[:_MOST_IN_GRID]
    place = {name: at for at, name in enumerate(labels.annotators[busiest].tolist())}
    grid = np.full((len(busiest), len(busiest)), np.nan)
    for one, other, value in zip(found.first[known], found.second[known], found.kappa[known], strict=True):
        if one in place and other in place:
            grid[place[one], place[other]] = grid[place[other], place[one]] = value
    is_known = ~np.isnan(grid)
    mean = np.where(is_known, grid, 0.0).sum(axis=1) / np.maximum(is_known.sum(axis=1), 1)
    order = np.argsort(-mean, kind="stable")
    rows = [[plain(value) for value in row] for row in grid[order][:, order].round(3)]
    return {"annotators": [named(name) for name in labels.annotators[busiest[order]]], "kappa": rows}


def grid_picture(summary: Summary) -> Markup:
    """Agreement of every pair of the most active annotators; blue beyond chance, orange below it."""
    grid = summary["pairs"]["grid"]
    names: list[str] = grid["annotators"]
    shown = [name if len(name) <= 12 else name[:11] + "…" for name in names]
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
                if len(names) < _MOST_WITH_VALUES:
                    where = (left + cell * (j + 0.5) - 0.75, cell * (i + 0.5) + 4)
                    value_kind = "value strong" if strength > 0.55 else "value"
                    parts.append(text(*where, decimal(value), anchor="middle", kind=value_kind))
    label = f"Cohen’s kappa of every pair of the {len(names)} annotators with the most labels."
    return picture(cell * len(names), label, parts, width=max(left + cell * len(names), WIDTH))
