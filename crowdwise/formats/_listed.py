"""JSON and rows that list the annotators of an example -> answers.

Data sets on Hugging Face have the annotators and the labels of an example in one row: as lists, texts with commas, or
one record from annotator to label. peerannot has {"task": {"worker": label}}, AltTest the same with the levels swapped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from crowdwise.exceptions import DataError, LabelError
from crowdwise.formats._answers import Answers
from crowdwise.formats._names import candidates, find_example, plain_name, text_column
from crowdwise.tables import Placed, Record, as_text

_ANNOTATORS = tuple(
    f"{word}{suffix}"
    for word in ("annotator", "worker", "rater", "user", "judge", "coder")
    for suffix in ("s", "_ids", "s_ids", "_names")
)
# The most telling first: "label" beside "annotations" is one label for all.
_LABELS = ("annotations", "annotator_labels", "labels", "answers", "ratings", "responses", "votes", "label")


def is_listed(record: Record) -> bool:
    """Whether a record lists its annotators and their labels."""
    annotators, labels = _named(record, _ANNOTATORS), _named(record, _LABELS)
    if labels is None:
        return False
    if annotators is not None and isinstance(_parsed(record[annotators]), list):
        return True
    return isinstance(_parsed(record[labels]), dict) and not candidates(list(record), "annotator")


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


def read_listed(records: Iterable[Placed], answers: Answers) -> str:
    """Take rows with lists; what they are called."""
    options = answers.options
    example_in = annotators_in = labels_in = text = None
    for number, (place, record) in enumerate(records):
        if number == 0:
            example_in = find_example(answers.name, list(record), options.example)
            annotators_in = options.annotator if isinstance(options.annotator, str) else _named(record, _ANNOTATORS)
            labels_in = options.label or _named(record, _LABELS)
            text = text_column(list(record), [name for name in (example_in, annotators_in, labels_in) if name])
            roles = {example_in or "number of the row": "example", annotators_in: "annotator", labels_in: "label"}
            answers.notes.append("columns: " + ", ".join(f"{name} -> {role}" for name, role in roles.items() if name))
        if labels_in not in record:
            raise LabelError(
                f"{place}: no column lists the labels; the columns are {', '.join(record)}. Name it: --label COLUMN."
            )
        example = str(number) if example_in is None else as_text(record.get(example_in))
        for annotator, label in _pairs(place, record, annotators_in, labels_in):
            if not example or not annotator:
                raise LabelError(f"{place}: every label needs its example and its annotator; one of them is empty.")
            answers.add(example, annotator, answers.label_of(label))
        if text is not None and record.get(text) is not None:
            answers.texts[example] = as_text(record[text])
    return "rows with lists"


def _pairs(place: str, record: Record, annotators_in: str | None, labels_in: str) -> Iterable[tuple[str, Any]]:
    labels = _parsed(record[labels_in])
    if isinstance(labels, dict):
        return labels.items()
    if annotators_in is None or annotators_in not in record:
        raise LabelError(
            f"{place}: {labels_in!r} lists labels, and no column lists whose they are. Name it: --annotator COLUMN."
        )
    annotators = _parsed(record[annotators_in])
    annotators, labels = (value if isinstance(value, list) else [value] for value in (annotators, labels))
    if len(annotators) != len(labels):
        raise DataError(
            f"{place}: {annotators_in!r} and {labels_in!r} must be of one length; got {len(annotators)} and "
            f"{len(labels)}."
        )
    return zip(map(as_text, annotators), labels, strict=True)


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
        f"{name}: this JSON has two levels and does not say which of them are the examples. Name its format: --format "
        "peerannot if it is {example: {annotator: label}}, --format alttest if it is {annotator: {example: label}} (in "
        'Python: format="peerannot" or format="alttest").'
    )


def read_mapping(document: Any, answers: Answers, *, examples_outside: bool) -> None:
    """Take a document of two levels: examples and then annotators, or the reverse."""
    name = answers.name
    if not isinstance(document, dict) or not all(isinstance(inner, dict) for inner in document.values()):
        raise DataError(f"{name}: a record of records was expected, {{...: {{...: label}}}}.")
    for outer, inner in document.items():
        for key, value in inner.items():
            if isinstance(value, dict):
                raise DataError(f"{name}, {outer!r}, {key!r}: a label was expected; got {as_text(value)[:40]}.")
            example, annotator = (outer, key) if examples_outside else (key, outer)
            answers.add(example, annotator, answers.label_of(value))
