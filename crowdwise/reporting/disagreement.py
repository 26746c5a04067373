"""How many examples have how much disagreement, what they weigh, and how far they are from the model's boundary."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from crowdwise._arrays import Floats
from crowdwise.crowd._disagreement import easiness
from crowdwise.diagnosis import margins, rank_correlation
from crowdwise.reporting._svg import BOTTOM, LEFT, TOP, WIDTH, Markup, axes, dot, line, picture, points, tag, text
from crowdwise.reporting._words import decimal
from crowdwise.reporting.fit import Fit, Summary, estimate

_N_BINS, _MOST_POINTS = 20, 600
PAGES = (("disagreement", "Disagreement"),)


def data(fit: Fit) -> dict[str, Any]:
    """Disagreement, and margins where there are features."""
    return {"disagreement": histogram(fit), "margin": None if fit.X is None else margin(fit)}


def histogram(fit: Fit) -> dict[str, Any]:
    """How many examples have how much disagreement, and what they weigh."""
    differs, steepness = fit.results.disagreement, fit.results.steepness
    paired = differs[fit.labels.labels_per_example > 1]
    largest = max(1.0, float(differs.max(initial=0.0)))
    edges = np.linspace(0, largest, _N_BINS + 1)
    at = np.linspace(0, largest, 41)
    return {
        "edges": edges.tolist(),
        "counts": np.histogram(paired, edges)[0].tolist(),
        "unanimous": int((paired == 0).sum()),
        "paired": len(paired),
        "steepness": float(steepness),
        "curve": np.column_stack([at, easiness(at, steepness)]).round(4).tolist(),
    }


def margin(fit: Fit) -> dict[str, Any] | None:
    """Disagreement and distance from the model's boundary; None for ratings and where either does not vary."""
    paired = np.flatnonzero(fit.labels.labels_per_example > 1)
    scores = None if fit.results.classes is None else _class_scores(fit.model, fit.X)
    if scores is None or len(paired) < 4:
        return None
    distance, _ = margins(scores[paired], np.zeros(len(paired), dtype=np.intp))
    differs = fit.results.disagreement[paired]
    found = rank_correlation(differs, distance)
    if np.isnan(found.value):
        return None
    far = float(np.quantile(distance, 0.99)) or 1.0
    some = np.linspace(0, len(paired) - 1, min(_MOST_POINTS, len(paired))).round().astype(np.intp)
    places = np.column_stack([differs[some], np.minimum(distance[some] / far, 1.0)])
    return {
        "correlation": estimate(found.value, found.low, found.high),
        "points": places.round(3).tolist(),
        "levels": _levels(differs, distance / far),
    }


def _levels(differs: Floats, distance: Floats) -> list[dict[str, float]]:
    """Quartiles of the distance of unanimous examples, and at up to four levels of disagreement as frequent each."""
    edges = np.unique(np.quantile(differs[differs > 0], [0.25, 0.5, 0.75]))
    level = np.where(differs > 0, 1 + np.searchsorted(edges, differs), 0)
    found = []
    for k in np.unique(level):
        at = level == k
        low, middle, high = np.minimum(np.quantile(distance[at], [0.25, 0.5, 0.75]), 1.0).tolist()
        found.append({"disagreement": float(differs[at].mean()), "low": low, "median": middle, "high": high})
    return found


def _class_scores(model: Any, X: Any) -> Floats | None:
    """A score per class; None if the model has none."""
    if hasattr(model, "decision_function"):
        scores = np.asarray(model.decision_function(X))
        return np.column_stack([np.zeros(len(scores)), scores]) if scores.ndim == 1 else scores
    return np.asarray(model.predict_proba(X)) if hasattr(model, "predict_proba") else None


def margin_words(summary: Summary) -> str:
    """What the correlation of disagreement and distance means."""
    found = summary["margin"]["correlation"]
    if found["low"] <= 0 <= found["high"]:
        return "disagreement has little to do with the boundary"
    return f"annotators disagree {'near' if found['high'] < 0 else 'far from'} the boundary"


def histogram_picture(summary: Summary) -> Markup:
    """How many examples have how much disagreement, with the curve of weights."""
    part = summary["disagreement"]
    edges, counts, right = part["edges"], part["counts"], WIDTH - 40
    most = max(max(counts), 1)
    across, up, marks = axes(edges[-1], right)
    unit = 10 ** math.floor(math.log10(most))
    step = max(round(next(unit * k for k in (0.2, 0.5, 1, 2, 5) if most <= 4 * unit * k)), 1)
    parts = []
    for n in range(0, most + 1, step):
        parts.append(line(LEFT, up(n / most), right, up(n / most), "grid"))
        parts.append(text(LEFT - 8, up(n / most) + 4, f"{n:,}", anchor="end"))
    for start, stop, n in zip(edges[:-1], edges[1:], counts, strict=True):
        if n:
            y, width = up(n / most), across(stop) - across(start)
            box = {"x": across(start) + 1, "y": y, "width": max(width - 2, 1.0), "height": max(BOTTOM - y, 1.0)}
            title = tag("title", f"{n:,} examples with disagreement {start:.2f} to {stop:.2f}")
            parts.append(tag("rect", title, **box, rx=1.5, class_="column"))
    parts.append(text(LEFT, TOP - 4, "examples", kind="axis"))
    if part["steepness"] > 0:
        parts.append(tag("polyline", points=points((across(x), up(y)) for x, y in part["curve"]), class_="curve"))
        parts += [text(right + 8, up(share) + 4, f"{share:g}", kind="tick second") for share in (0, 0.5, 1)]
        parts.append(text(right, TOP - 4, "weight", anchor="end", kind="axis second"))
    label = f"Histogram of the disagreement of {part['paired']:,} examples, {part['unanimous']:,} of them unanimous."
    return picture(BOTTOM + 46, label, [*parts, *marks])


def margin_picture(summary: Summary) -> Markup:
    """Distance from the model's boundary against disagreement: examples, and quartiles by level."""
    part, right = summary["margin"], WIDTH - 16
    across, up, marks = axes(max(1.0, max(x for x, _ in part["points"])), right)
    parts = [line(LEFT, up(share), right, up(share), "grid") for share in (0, 0.5, 1)]
    parts += [text(LEFT - 8, up(0) + 4, "near", anchor="end"), text(LEFT - 8, up(1) + 4, "far", anchor="end")]
    parts += [dot(across(x), up(y), 2, "point") for x, y in part["points"]]
    for level in part["levels"]:
        x = across(level["disagreement"])
        parts.append(line(x, up(level["low"]), x, up(level["high"]), "interval"))
        parts.append(dot(x, up(level["median"]), 4.5))
    found = decimal(part["correlation"]["value"])
    label = f"Distance from the model’s boundary against disagreement; rank correlation {found}."
    return picture(BOTTOM + 46, label, [*parts, *marks])
