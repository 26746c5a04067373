"""A fit and its labels -> plain rows about annotators and pairs of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from crowdwise._arrays import Array, Bools, Floats, Positions
from crowdwise.crowd.kappas import cohen_kappas
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.reporting.columns import annotator_columns
from crowdwise.reporting.examples import listed, named, plain
from crowdwise.reporting.record import FitRecord

MOST_ANNOTATORS = 1000
# Matrices of more classes would fill a page; the most frequent confusions are listed instead.
_MOST_CLASSES, _MOST_MIXED_UP = 8, 5
_MOST_ALONE = 5
_FEWEST_SHARED, _MOST_PAIRS, _MOST_IN_GRID = 10, 10, 24
# Of more annotators those with the most labels are compared, and of more pairs of labels a part of the examples.
_MOST_COMPARED, _PAIRS_AT_MOST = 300, 20_000_000


def annotators(record: FitRecord) -> dict[str, Any]:
    """The annotators of a fit, those of the highest expertise first."""
    columns = annotator_columns(record)
    chosen = _chosen(record)
    shown = chosen[np.argsort(-np.nan_to_num(columns["expertise"][chosen], nan=-1.0), kind="stable")]
    # One who is never wrong has expertise without end, and would leave everybody else without a bar.
    largest = min(float(np.nanmax(columns["expertise"])), 6 * float(np.nanmedian(columns["expertise"])))
    alone, mixed = _alone(record, chosen), _confusion(record, chosen)
    flags = record.results.annotator_flags
    rows = []
    for i in shown.tolist():
        row = {name: plain(column[i]) for name, column in columns.items() if name not in ("annotator", "flags")}
        row |= {"annotator": named(columns["annotator"][i]), "flags": list(flags.get(columns["annotator"][i], ()))}
        expertise = 0.0 if row["expertise"] is None else row["expertise"]
        row["bar"] = min(expertise / largest, 1.0) if largest > 0 else 0.0
        rows.append(row | {"alone": alone[i]} | ({} if mixed is None else mixed[i]))
    return listed(len(columns["annotator"]), rows)


def _chosen(record: FitRecord) -> Positions:
    """All annotators, or those flagged and those with the most labels, in their order."""
    found = record.results
    if len(found.annotators) <= MOST_ANNOTATORS:
        return np.arange(len(found.annotators))
    flagged = np.array(
        [bool(set(found.annotator_flags.get(name, ())) - {"few labels", "no labels"}) for name in found.annotators]
    )
    return np.sort(np.lexsort((-found.n_labels, ~flagged))[:MOST_ANNOTATORS])


def _mask(record: FitRecord, chosen: Positions) -> Bools:
    mask = np.zeros(len(record.results.annotators), dtype=bool)
    mask[chosen] = True
    return mask


def _alone(record: FitRecord, chosen: Positions) -> dict[int, dict[str, Any]]:
    """By annotator, the labels that nobody else gave to an example of three labels or more; the least probable first.

    For ratings, the labels farthest from the consensus.
    """
    labels, consensus = record.labels, record.results.consensus
    example, by = labels.example_index, labels.annotator_index
    if labels.classes is None:
        strangeness = np.abs(labels.values - consensus.label[example])
        lonely = np.ones(labels.n_labels, dtype=bool)
    else:
        strangeness = 1 - record.proba[example, labels.values]
        lonely = (labels.tally[example, labels.values] == 1) & (labels.labels_per_example[example] > 2)
    at = np.flatnonzero(lonely & _mask(record, chosen)[by])
    at = at[np.lexsort((-strangeness[at], by[at]))]
    start = np.searchsorted(by[at], np.arange(labels.n_annotators + 1))
    return {
        i: listed(
            int(start[i + 1] - start[i]),
            [_lone_label(record, j) for j in at[start[i] : min(start[i] + _MOST_ALONE, start[i + 1])].tolist()],
        )
        for i in chosen.tolist()
    }


def _lone_label(record: FitRecord, j: int) -> dict[str, Any]:
    labels, consensus = record.labels, record.results.consensus
    i = int(np.searchsorted(labels.indptr, j, side="right")) - 1
    said = labels.values[j] if labels.classes is None else labels.classes[labels.values[j]]
    words = (f"{answer:.3g}" if labels.classes is None else named(answer) for answer in (said, consensus.label[i]))
    return dict(zip(("example", "said", "label"), (named(consensus.examples[i]), *words), strict=True))


def _confusion(record: FitRecord, chosen: Positions) -> dict[int, dict[str, Any]] | None:
    """By annotator, what they say about examples of every class; of many classes only what is mixed up most."""
    if record.classes is None:
        return None
    matrices = record.confusion(_mask(record, chosen))
    few = len(record.classes) <= _MOST_CLASSES
    names = [named(name) for name in record.classes]
    return {
        i: {"confusion": _rounded(matrix)} if few else {"mixed_up": _mixed_up(matrix, names)}
        for i, matrix in zip(chosen.tolist(), matrices, strict=True)
    }


def _rounded(matrix: Floats) -> list[list[float]] | None:
    return None if np.isnan(matrix).any() else matrix.round(3).tolist()


def _mixed_up(matrix: Floats, names: list[str]) -> list[dict[str, Any]]:
    """The most frequent mistakes: of a class, and what is said."""
    wrong = np.nan_to_num(matrix * (1 - np.eye(len(matrix))))
    worst = np.argsort(-wrong, axis=None, kind="stable")[:_MOST_MIXED_UP]
    places = zip(*np.unravel_index(worst, wrong.shape), strict=True)
    return [{"truth": names[k], "said": names[c], "share": round(float(wrong[k, c]), 3)} for k, c in places]


def pairs(labels: CrowdLabels, *, ordered: bool = False) -> dict[str, Any] | None:
    """Cohen's kappa of pairs with enough examples in common; None if there are none.

    How many pairs, quantiles, the pairs that agree most and least, and a grid of the most active annotators. If classes
    have an order, kappa is weighted by the square of how far labels are apart.
    """
    if labels.classes is None:
        return None
    part, share = _part_of(labels)
    found = cohen_kappas(part, min_shared=_FEWEST_SHARED, weights="quadratic" if ordered else None)
    known = np.flatnonzero(~np.isnan(found.kappa))
    if len(known) == 0:
        return None
    order = known[np.argsort(found.kappa[known], kind="stable")]
    quantiles = np.quantile(found.kappa[known], [0.1, 0.5, 0.9])

    def rows(chosen: Positions) -> list[dict[str, Any]]:
        return [
            {
                "first": named(found.first[j]),
                "second": named(found.second[j]),
                "shared": int(found.n_shared[j]),
                "kappa": float(found.kappa[j]),
            }
            for j in chosen
        ]

    n = min(_MOST_PAIRS, len(order) // 2)
    return {
        "total": len(order),
        "annotators": part.n_annotators,
        "share": share,
        "fewest_shared": _FEWEST_SHARED,
        "low": float(quantiles[0]),
        "median": float(quantiles[1]),
        "high": float(quantiles[2]),
        "least": rows(order[: max(n, 1)]),
        "most": rows(order[::-1][:n]),
        "grid": _grid(part, found.first[known], found.second[known], found.kappa[known]),
    }


def _part_of(labels: CrowdLabels) -> tuple[CrowdLabels, float]:
    """The labels whose pairs can be counted: of the busiest annotators, on examples evenly spread; and their share."""
    if labels.n_annotators > _MOST_COMPARED:
        busiest = np.zeros(labels.n_annotators, dtype=bool)
        busiest[np.argsort(-labels.labels_per_annotator, kind="stable")[:_MOST_COMPARED]] = True
        labels = labels.select_annotators(busiest)
    per_example = labels.labels_per_example.astype(np.float64)
    step = math.ceil(float((per_example * (per_example - 1) / 2).sum()) / _PAIRS_AT_MOST)
    return (labels, 1.0) if step <= 1 else (labels[::step], 1 / step)


def _grid(labels: CrowdLabels, first: Array, second: Array, kappa: Floats) -> dict[str, Any]:
    """Kappa of every pair of the annotators with the most labels, those first who agree most; NaN is None."""
    busiest = np.argsort(-labels.labels_per_annotator, kind="stable")[:_MOST_IN_GRID]
    place = {name: at for at, name in enumerate(labels.annotators[busiest].tolist())}
    grid = np.full((len(busiest), len(busiest)), np.nan)
    for one, other, value in zip(first.tolist(), second.tolist(), kappa.tolist(), strict=True):
        if one in place and other in place:
            grid[place[one], place[other]] = grid[place[other], place[one]] = value
    known = ~np.isnan(grid)
    mean = np.where(known, grid, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    order = np.argsort(-mean, kind="stable")
    rows = [[plain(value) for value in row] for row in grid[order][:, order].round(3)]
    return {"annotators": [named(name) for name in labels.annotators[busiest[order]]], "kappa": rows}
