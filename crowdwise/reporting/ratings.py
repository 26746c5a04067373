"""How far each annotator's ratings are from the consensus of the others: Bland and Altman's picture."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdwise.reporting._svg import Markup, Plot
from crowdwise.reporting.fit import MOST_POINTS, Fit, Summary, evenly, named, plain

_MOST_SHOWN, _FEWEST = 6, 3
PAGES = (("bland_altman", "Ratings"),)


def data(fit: Fit) -> dict[str, Any]:
    """By annotator, differences to the consensus of the others against the mean of both; None without such ratings."""
    raters, labels = fit.results.raters, fit.labels
    if raters is None:
        return {"bland_altman": None}
    above, _ = raters.by_others(labels)
    others = raters.mean + above
    compared = labels.labels_per_example[labels.example_index] > 1
    rows = []
    for i in np.argsort(-labels.labels_per_annotator, kind="stable")[:_MOST_SHOWN].tolist():
        at = np.flatnonzero(compared & (labels.annotator_index == i))
        if len(at) < _FEWEST:
            continue
        some = at[evenly(len(at), MOST_POINTS)]
        places = np.column_stack([(labels.values[some] + others[some]) / 2, labels.values[some] - others[some]])
        low, high = raters.limits[:, i].tolist()
        rows.append({"annotator": named(labels.annotators[i]), "points": places.round(4).tolist()})
        rows[-1] |= {"low": plain(low), "high": plain(high)}
    return {"bland_altman": rows or None}


def agreement_picture(summary: Summary, row: dict[str, Any]) -> Markup:
    """One annotator's differences, with the limits of agreement; all annotators have the same axes."""
    rows = summary["bland_altman"]
    across = [x for each in rows for x, _ in each["points"]]
    ends = [abs(end) for each in rows for end in (each["low"], each["high"]) if end is not None]
    most = max([*ends, *(abs(y) for each in rows for _, y in each["points"])]) or 1.0
    first, span = min(across), (max(across) - min(across)) or 1.0
    x_ticks = {first + span * share: f"{first + span * share:.3g}" for share in (0.0, 0.5, 1.0)}
    y_ticks = {end: f"{end:+.2g}" if end else "0" for end in (-most, 0.0, most)}
    plot = Plot((first, first + span), (-most, most), right=62)
    plot.axes("mean of both ratings", x_ticks, "difference", y_ticks, grid=[0.0])
    plot.points(row["points"])
    if row["low"] is not None and row["high"] is not None:
        for value, kind in ((row["low"], "limit"), (row["high"], "limit"), ((row["low"] + row["high"]) / 2, "curve")):
            plot.level(value, kind, f"{value:+.2f}")
    return plot.picture(f"Differences of {row['annotator']} to the consensus of the others, with limits of agreement.")
