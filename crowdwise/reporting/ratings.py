"""How far each annotator's ratings are from the consensus of the others: Bland and Altman's picture."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdwise.reporting._svg import BOTTOM, LEFT, TOP, WIDTH, Markup, dot, line, picture, text
from crowdwise.reporting.fit import Fit, Summary, named, plain

_MOST_SHOWN, _MOST_POINTS, _FEWEST = 6, 300, 3
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
        some = at[np.linspace(0, len(at) - 1, min(len(at), _MOST_POINTS)).round().astype(np.intp)]
        places = np.column_stack([(labels.values[some] + others[some]) / 2, labels.values[some] - others[some]])
        low, high = raters.limits[:, i].tolist()
        rows.append({"annotator": named(labels.annotators[i]), "points": places.round(4).tolist()})
        rows[-1] |= {"low": plain(low), "high": plain(high)}
    return {"bland_altman": rows or None}


def agreement_picture(summary: Summary, row: dict[str, Any]) -> Markup:
    """One annotator's differences, with the limits of agreement; all annotators have the same axes."""
    rows, right = summary["bland_altman"], WIDTH - 62
    across = [x for each in rows for x, _ in each["points"]]
    ends = [abs(end) for each in rows for end in (each["low"], each["high"]) if end is not None]
    most = max([*ends, *(abs(y) for each in rows for _, y in each["points"])]) or 1.0
    first, span = min(across), (max(across) - min(across)) or 1.0

    def up(value: float) -> float:
        return (TOP + BOTTOM) / 2 - (BOTTOM - TOP) / 2 * value / most

    parts = [line(LEFT, up(0), right, up(0), "grid")]
    parts += [text(LEFT - 8, up(end) + 4, f"{end:+.2g}" if end else "0", anchor="end") for end in (-most, 0.0, most)]
    for share in (0.0, 0.5, 1.0):
        where = LEFT + (right - LEFT) * share
        parts.append(text(where, BOTTOM + 18, f"{first + span * share:.3g}", anchor="middle"))
    parts += [dot(LEFT + (right - LEFT) * (x - first) / span, up(y), 2.5, "point") for x, y in row["points"]]
    if row["low"] is not None and row["high"] is not None:
        for value, kind in ((row["low"], "limit"), (row["high"], "limit"), ((row["low"] + row["high"]) / 2, "curve")):
            parts.append(line(LEFT, up(value), right, up(value), kind))
            parts.append(text(right + 6, up(value) + 4, f"{value:+.2f}", kind="tick second"))
    parts.append(text(LEFT + 4, TOP, "difference", kind="axis"))
    parts.append(text((LEFT + right) / 2, BOTTOM + 38, "mean of both ratings", anchor="middle", kind="axis"))
    label = f"Differences of {row['annotator']} to the consensus of the others, with limits of agreement."
    return picture(BOTTOM + 46, label, parts)
