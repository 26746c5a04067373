"""Lists of examples, and single ones with their texts or pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from crowdwise._arrays import Array, Bools, Floats, Positions
from crowdwise.diagnosis import margins
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.reporting import consensus as consensus_section
from crowdwise.reporting.examples import rows_of
from crowdwise.reporting.fit import Fit
from crowdwise.studio._schema import Problem
from crowdwise.studio._state import WHOLE_TEXT, Answer, Position, Studio, class_names


def margin_of(fit: Fit) -> Floats:
    """The gap between the two most probable classes: of the classifier out of fold, else of the consensus."""
    proba = fit.results.proba if fit.results.model_proba is None else fit.results.model_proba
    return margins(proba, np.zeros(len(proba), dtype=np.intp))[0]


def examples(studio: Studio, order: str, search: str, page: int, size: int, seat: str, **filters: Any) -> Answer:
    """One page of a list."""
    fit = studio.fit(Position(filters["steepness"], filters["l2"], filters["without"]), seat)
    margin = margin_of(fit)
    keep = _within(margin, filters["margin_low"], filters["margin_high"])
    keep &= _within(fit.results.disagreement, filters["disagreement_low"], filters["disagreement_high"])
    if filters["one"] is not None:
        keep &= _apart(studio, fit, filters["one"], filters["other"])
    if search:
        keep &= _matching(studio, search)
    if order == "flipped":
        before = Position(filters["before_steepness"], filters["before_l2"], filters["before_without"])
        keep &= studio.fit(before, seat).results.codes != fit.results.codes
    listed = _ordered(fit, order, keep)
    shown = listed[page * size : (page + 1) * size]
    return {"total": len(listed), "page": page, "size": size, "rows": _rows(fit, shown, margin)}


def _rows(fit: Fit, shown: Positions, margin: Floats, **settings: Any) -> list[Answer]:
    rows = zip(rows_of(fit, shown, **settings), shown.tolist(), margin[shown].tolist(), strict=True)
    return [{"row": position, "margin": gap} | row for row, position, gap in rows]


def _within(values: Floats, low: float | None, high: float | None) -> Bools:
    return (values >= (-np.inf if low is None else low)) & (values <= (np.inf if high is None else high))


def _apart(studio: Studio, fit: Fit, annotator: str, partner: str | None) -> Bools:
    """Examples that an annotator labelled differently from another one, or from the consensus."""
    codes = _codes_of(studio.session.labels, studio.annotator(annotator))
    compared = fit.results.codes if partner is None else _codes_of(studio.session.labels, studio.annotator(partner))
    return (codes >= 0) & (compared >= 0) & (codes != compared)


def _codes_of(labels: CrowdLabels, annotator: Any) -> Array:
    """The label of an annotator for every example, -1 where there is none."""
    codes = np.full(len(labels), -1)
    by_annotator = np.flatnonzero(labels.annotator_index == labels.annotators.tolist().index(annotator))
    rows = np.searchsorted(labels.indptr, by_annotator, side="right") - 1
    codes[rows] = labels.values[by_annotator]
    return codes


def _matching(studio: Studio, search: str) -> Bools:
    """Examples whose id or text has some words in it."""
    words, ids = search.casefold(), studio.session.labels.examples.tolist()
    texts = [""] * len(ids) if studio.texts is None else studio.texts
    matches = (words in f"{example}\n{text}".casefold() for example, text in zip(ids, texts, strict=True))
    return np.fromiter(matches, dtype=bool, count=len(ids))


def _ordered(fit: Fit, order: str, keep: Bools) -> Positions:
    results, positions = fit.results, fit.easy_to_hard
    if order in ("hardest", "contested"):
        positions = positions[::-1]
    if order == "contested":
        keep = keep & (results.disagreement > 0) & (fit.labels.labels_per_example > 1)
    elif order == "overridden":
        keep = keep & consensus_section.changed_examples(fit)
    if order in ("unsure", "flipped", "overridden"):
        positions = np.argsort(results.confidence, kind="stable")
    return positions[keep[positions]]


def example(studio: Studio, row: int, steepness: Any, l2: Any, without: Any, seat: str) -> Answer:
    """One example."""
    studio.example(row)
    fit = studio.fit(Position(steepness, l2, without), seat)
    results = fit.results
    return {
        "example": _rows(fit, np.array([row]), margin_of(fit), length=WHOLE_TEXT)[0],
        "classes": class_names(results.classes),
        "proba": results.proba[row].tolist(),
        "model_proba": None if results.model_proba is None else results.model_proba[row].tolist(),
    }


def picture(studio: Studio, row: int) -> Path:
    """The file with the picture of an example: its name is a text of ours, never what a client sends."""
    studio.example(row)
    if studio.pictures is None or studio.texts is None or studio.texts[row] is None:
        raise Problem(404, "there is no picture of this example.", "row")
    folder, name = studio.pictures.resolve(), str(studio.texts[row])
    try:
        path = (folder / name).resolve()
        if path.is_relative_to(folder) and path.is_file():
            return path
    except (OSError, ValueError):
        pass  # no name of a file: too long, or with a character that none has
    raise Problem(404, f"there is no picture {name[:80]!r} in the folder of pictures.", "row")
