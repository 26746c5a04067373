"""How many examples have how much disagreement, what they weigh, and how far they are from the model's boundary."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdwise._arrays import Floats
from crowdwise._limits import MOST_POINTS, N_BINS
from crowdwise.crowd._disagreement import easiness
from crowdwise.diagnosis import margins, rank_correlation
from crowdwise.reporting._svg import Markup, Plot, histogram, text
from crowdwise.reporting.fit import Fit, Summary, decimal, estimate, evenly

PAGES = (("disagreement", "Disagreement"),)


def data(fit: Fit) -> dict[str, Any]:
    """Disagreement, and margins where there are features."""
    return {"disagreement": by_disagreement(fit), "margin": None if fit.X is None else margin(fit)}


def by_disagreement(fit: Fit) -> dict[str, Any]:
    """How many examples have how much disagreement, and what they weigh."""
    differs, steepness = fit.results.disagreement, fit.results.steepness
    paired = differs[fit.labels.labels_per_example > 1]
    largest = max(1.0, float(differs.max(initial=0.0)))
    edges = np.linspace(0, largest, N_BINS + 1)
    grid = np.linspace(0, largest, 41)
    return {
        "edges": edges.tolist(),
        "counts": np.histogram(paired, edges)[0].tolist(),
        "unanimous": int((paired == 0).sum()),
        "paired": len(paired),
        "steepness": float(steepness),
        "curve": np.column_stack([grid, easiness(grid, steepness)]).round(4).tolist(),
    }


def margin(fit: Fit) -> dict[str, Any] | None:
    """Disagreement and distance from the model's boundary; None for ratings and where either does not vary."""
    paired = np.flatnonzero(fit.labels.labels_per_example > 1)
    scores = None if fit.results.classes is None else _class_scores(fit.model, fit.X)
    if scores is None or len(paired) < 4:
        return None
    distance, _ = margins(scores[paired], np.zeros(len(paired), dtype=np.intp))
    differs = fit.results.disagreement[paired]
    correlation = rank_correlation(differs, distance)
    if np.isnan(correlation.value):
        return None
    far = float(np.quantile(distance, 0.99)) or 1.0
    rows = evenly(len(paired), MOST_POINTS)
    places = np.column_stack([differs[rows], np.minimum(distance[rows] / far, 1.0)])
    return {
        "correlation": estimate(correlation.value, correlation.low, correlation.high),
        "points": places.round(3).tolist(),
        "levels": _levels(differs, distance / far),
    }


def _levels(differs: Floats, distance: Floats) -> list[dict[str, float]]:
    """Quartiles of the distance of unanimous examples, and at up to four levels of disagreement as frequent each."""
    edges = np.unique(np.quantile(differs[differs > 0], [0.25, 0.5, 0.75]))
    level = np.where(differs > 0, 1 + np.searchsorted(edges, differs), 0)
    levels = []
    for k in np.unique(level):
        rows = level == k
        low, middle, high = np.minimum(np.quantile(distance[rows], [0.25, 0.5, 0.75]), 1.0).tolist()
        levels.append({"disagreement": float(differs[rows].mean()), "low": low, "median": middle, "high": high})
    return levels


def _class_scores(model: Any, X: Any) -> Floats | None:
    """A score per class; None if the model has none."""
    if hasattr(model, "decision_function"):
        scores = np.asarray(model.decision_function(X))
        return np.column_stack([np.zeros(len(scores)), scores]) if scores.ndim == 1 else scores
    return np.asarray(model.predict_proba(X)) if hasattr(model, "predict_proba") else None


def margin_words(summary: Summary) -> str:
    """What the correlation of disagreement and distance means."""
    correlation = summary["margin"]["correlation"]
    if correlation["low"] <= 0 <= correlation["high"]:
        return "disagreement is unrelated to the boundary"
    return f"annotators disagree {'near' if correlation['high'] < 0 else 'far from'} the boundary"


def histogram_picture(summary: Summary) -> Markup:
    """How many examples have how much disagreement, with the curve of weights."""
    part = summary["disagreement"]
    ticks = _ticks(part["edges"][-1])
    plot = histogram(part["edges"], part["counts"], "disagreement", ticks, "disagreement {:.2f} to {:.2f}", right=40)
    if part["steepness"] > 0:
        weights = Plot(plot.x, (0, 1), right=40)
        weights.polyline(part["curve"], "curve")
        for share in (0, 0.5, 1):
            x, y = weights.at(plot.x[1], share)
            plot.parts.append(text(x + 8, y + 4, f"{share:g}", kind="tick second"))
        plot.parts += [*weights.parts, text(x, y - 4, "weight", anchor="end", kind="axis second")]
    label = f"Histogram of the disagreement of {part['paired']:,} examples, {part['unanimous']:,} of them unanimous."
    return plot.picture(label)


def margin_picture(summary: Summary) -> Markup:
    """Distance from the model's boundary against disagreement: examples, and quartiles by level."""
    part = summary["margin"]
    largest = max(1.0, max(x for x, _ in part["points"]))
    ends, grid = {0: "near", 1: "far"}, (0, 0.5, 1)
    plot = Plot((0, largest), (0, 1)).axes("disagreement", _ticks(largest), "", ends, grid=grid)
    plot.points(part["points"])
    for level in part["levels"]:
        plot.interval(level["disagreement"], level["median"], level["low"], level["high"])
    correlation = decimal(part["correlation"]["value"])
    return plot.picture(f"Distance from the model’s boundary against disagreement; rank correlation {correlation}.")


def _ticks(largest: float) -> dict[float, str]:
    return {largest * k / 4: f"{largest * k / 4:.3g}" for k in range(5)}
