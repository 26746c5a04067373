"""JSON of two levels -> labels: peerannot's {"task": {"worker": label}}, and the same with the levels swapped."""

from __future__ import annotations

from typing import Any

from crowdwise.exceptions import DataError, LabelError
from crowdwise.formats.answers import Answers
from crowdwise.formats.fields import one_label
from crowdwise.formats.label_file import LabelFile, Wishes, make_label_file
from crowdwise.tables.json_rows import as_text

PEERANNOT, ALTTEST = "peerannot", "AltTest"


def is_mapping(document: Any) -> bool:
    """Whether a document is records in a record, with one value for each name."""
    return (
        isinstance(document, dict)
        and bool(document)
        and all(isinstance(inner, dict) for inner in document.values())
        and not any(isinstance(value, dict | list) for inner in document.values() for value in inner.values())
    )


def ask_for_the_order(name: str) -> LabelError:
    """The error for a file that may be read in two ways."""
    return LabelError(
        f"{name}: this JSON has two levels and does not say which of them are the examples. Say it: --format peerannot "
        "if it is {example: {annotator: label}}, --format alttest if it is {annotator: {example: label}} (in Python: "
        'format="peerannot" or format="alttest").'
    )


def read_mapping(name: str, document: Any, wishes: Wishes, *, examples_outside: bool) -> LabelFile:
    """Labels from a document of two levels: examples and then annotators, or the reverse."""
    if not isinstance(document, dict) or not all(isinstance(inner, dict) for inner in document.values()):
        raise DataError(f"{name}: a record of records was expected, {{...: {{...: label}}}}.")
    answers = Answers(wishes.missing, strip=wishes.strip)
    for outer, inner in document.items():
        for key, value in inner.items():
            if isinstance(value, dict):
                raise DataError(f"{name}, {outer!r}, {key!r}: a label was expected; got {as_text(value)[:40]}.")
            label = one_label(value) if isinstance(value, list) else as_text(value)
            if not outer or not key:
                raise DataError(f"{name}: every label needs its example and annotator; one of them is empty.")
            answers.add(outer if examples_outside else key, key if examples_outside else outer, label)
    return make_label_file(name, PEERANNOT if examples_outside else ALTTEST, answers, wishes)
