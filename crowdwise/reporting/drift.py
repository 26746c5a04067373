"""Each annotator's accuracy over time, where labels have times, and who changed."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdwise._limits import FEW
from crowdwise._text import count
from crowdwise.reporting._svg import Markup, Plot
from crowdwise.reporting.fit import Fit, Summary, named, percent, plain
from crowdwise.slices import SliceAccuracy

PAGES = (("drift", "Over time"),)


def data(fit: Fit) -> dict[str, Any]:
    """Accuracy by period of the annotators who changed and of the busiest, and the changes; None without times."""
    drift = fit.drift
    periods = [] if drift is None else list(dict.fromkeys(sorted(drift.slice.tolist())))
    if drift is None or len(periods) < 2:
        return {"drift": None}
    changed = drift.annotator[drift.differs][np.argsort(drift.p_value[drift.differs], kind="stable")].tolist()
    busiest = fit.results.annotators[np.argsort(-fit.results.n_labels, kind="stable")].tolist()
    shown = list(dict.fromkeys([*changed, *busiest]))[:FEW]
    return {
        "drift": {
            "reference": drift.reference,
            "periods": [str(name) for name in periods],
            "changed": [named(name) for name in dict.fromkeys(changed)],
            "rows": [{"annotator": named(name), "periods": _periods(drift, name, periods)} for name in shown],
        }
    }


def _periods(drift: SliceAccuracy, annotator: Any, periods: list[Any]) -> list[dict[str, Any]]:
    """One annotator's accuracy in the periods with labels."""
    mine = np.flatnonzero(drift.annotator == annotator)
    columns = {"n": drift.n_labels, "value": drift.accuracy, "low": drift.low, "high": drift.high}
    return [
        {"period": periods.index(drift.slice[i])} | {key: plain(column[i]) for key, column in columns.items()}
        for i in mine
    ]


def sentence(summary: Summary) -> str:
    """Who changed, with the accuracy in every period; that no one did; nothing without times."""
    part = summary["drift"]
    if not part:
        return ""
    against = "on known answers" if part["reference"] == "truth" else "against the consensus"
    if not part["changed"]:
        return f"no clear change of accuracy {against} over {len(part['periods'])} periods"
    rows = [row for row in part["rows"] if row["annotator"] in part["changed"]]
    people = [f"{row['annotator']} {', '.join(percent(period['value']) for period in row['periods'])}" for row in rows]
    more = f"; {count(len(part['changed']) - len(rows), 'other')}" if len(part["changed"]) > len(rows) else ""
    return f"accuracy {against} changed, in periods from {', '.join(part['periods'])} on: {'; '.join(people)}{more}"


def drift_picture(summary: Summary, row: dict[str, Any]) -> Markup:
    """One annotator's accuracy by period, with 95% intervals."""
    periods = summary["drift"]["periods"]
    marks = {0: "0%", 0.5: "50%", 1: "100%"}
    plot = Plot((-0.5, len(periods) - 0.5), (0, 1)).axes(
        "from", dict(enumerate(periods)), "accuracy", marks, grid=marks
    )
    for entry in row["periods"]:
        title = f"{percent(entry['value'])} of {count(entry['n'], 'label')}"
        plot.interval(entry["period"], entry["value"], entry["low"], entry["high"], title)
    return plot.picture(f"Accuracy of {row['annotator']} over time.")
