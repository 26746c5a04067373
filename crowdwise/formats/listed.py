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
from crowdwise.formats.names import candidates, find_example, plain_name, text_column
from crowdwise.tables.json_rows import as_text

NAME = "rows with lists"
_ANNOTATORS = tuple(
    f"{word}{suffix}"
    for word in ("annotator", "worker", "rater", "user", "judge", "coder")
    for suffix in ("s", "_ids", "s_ids", "_names")
)
# The most telling first: "label" beside "annotations" is one label for all.
_LABELS = ("annotations", "annotator_labels", "labels", "answers", "ratings", "responses", "votes", "label")


def is_listed(record: Record) -> bool:
    """Whether a record lists its annotators and their labels."""
    who, what = _named(record, _ANNOTATORS), _named(record, _LABELS)
    if what is None:
        return False
    if who is not None and isinstance(_parsed(record[who]), list):
        return True
    return isinstance(_parsed(record[what]), dict) and not candidates(list(record), "annotator")


def _named(record: Record, words: Sequence[str]) -> str | None:
    names = {plain_name(name): name for name in record}
    return next((names[word] for word in words if word in names), None)


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
    """Labels from rows with lists."""
    answers = Answers(wishes.missing, strip=wishes.strip)
    example_in = who = what = text = None
    for number, (place, record) in enumerate(records):
        if number == 0:
            example_in = find_example(name, list(record), wishes.example)
            who = wishes.annotator if isinstance(wishes.annotator, str) else _named(record, _ANNOTATORS)
            what = wishes.label or _named(record, _LABELS)
            text = text_column(list(record), [column for column in (example_in, who, what) if column])
            said = (f"{example_in or 'number of the row'} -> example", f"{who} -> annotator" if who else "")
            answers.notes.append("columns: " + ", ".join([*filter(None, said), f"{what} -> label"]))
        if what not in record:
            raise LabelError(
                f"{place}: no column lists the labels; the columns are {', '.join(record)}. Say which: --label COLUMN."
            )
        example = str(number) if example_in is None else as_text(record.get(example_in))
        for annotator, label in _pairs(place, record, who, what):
            if not example or not annotator:
                raise LabelError(f"{place}: every label needs its example and its annotator; one of them is empty.")
            answers.add(example, annotator, label)
        if text is not None and record.get(text) is not None:
            answers.texts[example] = as_text(record[text])
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
