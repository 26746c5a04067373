"""Rows with lists, as data sets on Hugging Face have them -> labels: the annotators and the labels of an example.

Both may be lists, texts with commas, or one record from annotator to label.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from crowdwise.exceptions import DataError, LabelError
from crowdwise.formats.answers import Answers
from crowdwise.formats.fields import Placed, Record, one_label
from crowdwise.formats.label_file import LabelFile, Wishes, make_label_file
from crowdwise.formats.names import candidates, plain_name, text_column
from crowdwise.tables.json_rows import as_text

NAME = "rows with lists"
_ANNOTATORS = {
    f"{word}{suffix}"
    for word in ("annotator", "worker", "rater", "user", "judge", "coder")
    for suffix in ("s", "_ids", "s_ids", "_names")
}
_LABELS = {"annotations", "labels", "answers", "ratings", "responses", "votes", "label", "annotator_labels"}


def is_listed(record: Record) -> bool:
    """Whether a record lists its annotators and their labels.

    Parameters
    ----------
    record : dict
        The first one of a file.

    Returns
    -------
    answer : bool
    """
    who, what = _columns(list(record), None, None)
    if what is None:
        return False
    value = _parsed(record[what])
    return isinstance(value, dict) or (who is not None and isinstance(_parsed(record[who]), list))


def _columns(names: Sequence[str], annotator: str | None, label: str | None) -> tuple[str | None, str | None]:
    who = annotator or next((name for name in names if plain_name(name) in _ANNOTATORS), None)
    what = label or next((name for name in names if plain_name(name) in _LABELS), None)
    return who, what


def _parsed(value: Any) -> Any:
    """Lists and records as they are; text that is JSON, or has commas, as what it stands for."""
    if not isinstance(value, str):
        return value
    if value[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return [part.strip() for part in value.split(",")] if "," in value else value


def read_listed(name: str, records: Iterable[Placed], wishes: Wishes) -> LabelFile:
    """Labels from rows with lists.

    Parameters
    ----------
    name : str
        Of the file, for messages.
    records : iterable of (place, record)
        The rows.
    wishes : Wishes
        What the caller said.

    Returns
    -------
    file : LabelFile
    """
    answers = Answers(wishes.missing)
    for number, (place, record) in enumerate(records):
        header = list(record)
        who, what = _columns(header, wishes.annotator if isinstance(wishes.annotator, str) else None, wishes.label)
        if what is None or what not in record:
            raise LabelError(
                f"{place}: no column lists the labels; the columns are {', '.join(header)}. Say which: --label COLUMN."
            )
        ids = (
            [wishes.example]
            if wishes.example
            else [c for c in candidates(header, "example") if plain_name(c) != "text"]
        )
        example = as_text(record.get(ids[0])) if ids else str(number)
        for annotator, label in _pairs(place, record, who, what):
            if not example or not annotator:
                raise LabelError(f"{place}: every label needs its example and its annotator; one of them is empty.")
            answers.add(example, annotator, label)
        if text := text_column(header, [what, *ids]):
            answers.texts[example] = as_text(record[text])
        if number == 0:
            said = (f"{ids[0]} -> example" if ids else "row number -> example", f"{who} -> annotator" if who else "")
            answers.notes.append("columns: " + ", ".join([*filter(None, said), f"{what} -> label"]))
    return make_label_file(name, NAME, answers, wishes)


def _pairs(place: str, record: Record, who: str | None, what: str) -> Iterable[tuple[str, str]]:
    labels = _parsed(record[what])
    if isinstance(labels, dict):
        return [(annotator, _one(label)) for annotator, label in labels.items()]
    if who is None or who not in record:
        raise LabelError(
            f"{place}: {what!r} lists labels, and no column lists whose they are. Say which: --annotator COLUMN."
        )
    given = [value if isinstance(value, list) else [value] for value in (_parsed(record[who]), labels)]
    if len(given[0]) != len(given[1]):
        raise DataError(
            f"{place}: {who!r} and {what!r} must be of one length; got {len(given[0])} and {len(given[1])}."
        )
    return [(as_text(annotator), _one(label)) for annotator, label in zip(*given, strict=True)]


def _one(label: Any) -> str:
    return one_label(label) if isinstance(label, list) else as_text(label)
