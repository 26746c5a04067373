"""Label Studio's flat exports (JSON_MIN and CSV, a row per answer) -> labels."""

from __future__ import annotations

import json
from collections.abc import Sequence

from crowdwise.formats.answers import Answers
from crowdwise.formats.fields import Collected, Given, one_label
from crowdwise.formats.label_file import LabelFile, Wishes, make_label_file
from crowdwise.formats.names import text_column
from crowdwise.tables import Table

NAME = "Label Studio, flat"
# Columns that are about the answer, and no part of it.
_OWN = ("id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time")


def is_label_studio_flat(header: Sequence[str]) -> bool:
    """Whether a header is that of a flat export."""
    return {"id", "annotator", "annotation_id"} <= set(header)


def read_label_studio_flat(table: Table, wishes: Wishes) -> LabelFile:
    """Labels from a flat export."""
    wanted = wishes.question or wishes.label
    columns, answers, collected = table.columns(), Answers(wishes.missing, strip=wishes.strip), Collected()
    questions = _questions(columns, wanted)
    if len(questions) == 1:
        answers.notes.append(f"columns: id -> example, annotator -> annotator, {questions[0]} -> label")
    times = columns.get("updated_at") or columns.get("created_at") or [""] * len(columns["id"])
    for question in questions:
        rows = zip(columns["id"], columns["annotator"], columns[question], times, strict=True)
        for example, annotator, cell, time in rows:
            if label := _label(cell):
                collected.given.append(Given(question, example, annotator or "(unknown)", label, time))
    text = text_column(table.header, questions)
    if text is not None:
        answers.texts.update(zip(columns["id"], columns[text], strict=True))
    collected.choose(table.source.name, wanted, answers)
    return make_label_file(table.source.name, NAME, answers, wishes)


def _questions(columns: dict[str, list[str]], wanted: str | None) -> list[str]:
    """The columns with answers: those between "id" and "annotator".

    Where columns are in the order of their names there are none; then those in which answers to one example differ, for
    what is shown to annotators does not, or, if answers never do, all that may be.
    """
    header = list(columns)
    if between := header[header.index("id") + 1 : header.index("annotator")]:
        return between
    others = [name for name in header if name not in _OWN]
    n_examples = len(set(columns["id"]))
    differing = [name for name in others if len(set(zip(columns["id"], columns[name], strict=True))) > n_examples]
    if wanted in others:
        return [*differing, wanted] if wanted not in differing else differing
    return differing or [name for name in others if name != text_column(header, [])]


def _label(cell: str) -> str:
    """A cell; several choices at once are JSON in it."""
    if cell.startswith('{"choices"'):
        try:
            return one_label(json.loads(cell)["choices"])
        except (ValueError, TypeError, RecursionError):
            return cell
    return cell
