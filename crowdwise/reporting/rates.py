"""How frequent a class of two is, such as a pass rate, corrected by known answers where there are any."""

from __future__ import annotations

import warnings
from typing import Any

from crowdwise._text import count
from crowdwise.exceptions import CrowdWarning
from crowdwise.rates import rate
from crowdwise.reporting.fit import Fit, Summary, estimate, named, percent

PAGES = ()  # it has its place among the first numbers


def data(fit: Fit) -> dict[str, Any]:
    """The share of the second class; None unless there are two."""
    if fit.results.classes is None or len(fit.results.classes) != 2:
        return {"rate": None}
    names = fit.results.classes.tolist()
    answers = {i: names[code] for i, code in zip(fit.labels.examples.tolist(), fit.answers, strict=True) if code >= 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)  # the consensus states whether they are a random draw
        found = rate(fit.results, fit.labels, answers or None)
    part = {"target": named(found.target), "uncorrected": found.uncorrected, "known": found.n_known}
    return {"rate": part | estimate(found.value, found.low, found.high)}


def _span(part: dict[str, Any]) -> str:
    return f"{100 * part['low']:.1f} to {100 * part['high']:.1f}"


def lines(summary: Summary) -> list[tuple[str, str]]:
    """The same for a terminal; nothing that is not corrected."""
    part = summary["rate"]
    if not part or not part["known"]:
        return []
    corrected = f"corrected by {count(part['known'], 'known answer')}"
    alone = f"{percent(part['uncorrected'], 1)} by the consensus alone"
    return [("Rate", f"{percent(part['value'], 1)} “{part['target']}” ({_span(part)}), {corrected}; {alone}")]


def numbers(summary: Summary) -> list[dict[str, str]]:
    """The rate on the first screen."""
    part = summary["rate"]
    if not part:
        return []
    how = f"corrected by {count(part['known'], 'known answer')}" if part["known"] else "by the consensus, not corrected"
    return [
        {"value": percent(part["value"], 1), "name": f"rate of “{part['target']}”", "note": f"{_span(part)}, {how}"}
    ]
