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


def is_label_studio_flat(header: Sequence[str]) -> bool:
    """Whether a header is that of a flat export.

    Parameters
    ----------
    header : sequence of str
        Names of the columns.

    Returns
    -------
    answer : bool
    """
    return {"id", "annotator", "annotation_id"} <= set(header)


def read_label_studio_flat(table: Table, wishes: Wishes) -> LabelFile:
    """Labels from a flat export; the questions are the columns between "id" and "annotator".

    Parameters
    ----------
    table : Table
        The file.
    wishes : Wishes
        What the caller said.

    Returns
    -------
    file : LabelFile
    """
    first, last = table.position("id"), table.position("annotator")
    questions = table.header[first + 1 : last]
    columns, answers, collected = table.columns(), Answers(wishes.missing, strip=wishes.strip), Collected()
    times = columns.get("updated_at") or columns.get("created_at") or [""] * len(columns["id"])
    for question in questions:
        rows = zip(columns["id"], columns["annotator"], columns[question], times, strict=True)
        for example, annotator, cell, time in rows:
            if label := _label(cell):
                collected.given.append(Given(question, example, annotator or "(unknown)", label, time))
    text = text_column(table.header, questions)
    if text is not None:
        answers.texts.update(zip(columns["id"], columns[text], strict=True))
    collected.choose(table.source.name, wishes.question or wishes.label, answers)
    return make_label_file(table.source.name, NAME, answers, wishes)


def _label(cell: str) -> str:
    """A cell; several choices at once are JSON in it."""
    if cell.startswith('{"choices"'):
        try:
            return one_label(json.loads(cell)["choices"])
        except (ValueError, TypeError, RecursionError):
            return cell
    return cell
