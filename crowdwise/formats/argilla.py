"""Argilla's records, flattened or nested -> labels.

Only submitted responses count where the file has their status. Suggestions become annotators of their own, called
"model:" and their agent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from crowdwise.exceptions import DataError
from crowdwise.formats.answers import Answers
from crowdwise.formats.fields import Collected, Given, Placed, Record, list_in, one_label, record_in
from crowdwise.formats.label_file import LabelFile, Wishes, make_label_file
from crowdwise.formats.names import TEXT_WORDS
from crowdwise.tables.json_rows import as_text

NAME = "Argilla"
_FLAT = ".responses"


def is_argilla(record: Record) -> bool:
    """Whether a record looks like one of Argilla."""
    nested = isinstance(record.get("responses"), dict) and isinstance(record.get("fields"), dict)
    return nested or any(key.endswith(_FLAT) for key in record)


def read_argilla(name: str, records: Iterable[Placed], wishes: Wishes) -> LabelFile:
    """Labels from records with responses."""
    answers, collected = Answers(wishes.missing, strip=wishes.strip), Collected()
    without_status = models = False
    for number, (place, record) in enumerate(records):
        example = as_text(record.get("id")) or as_text(record.get("_server_id")) or str(number)
        fields = record_in(place, record, "fields") or record
        text = next((fields[key] for key in TEXT_WORDS if isinstance(fields.get(key), str)), None)
        if text is not None:
            answers.texts[example] = text
        for question, value, user, status in _responses(place, record):
            without_status |= status is None
            if status not in (None, "submitted"):
                answers.left_out[f"{as_text(status)[:40]} responses"] += 1
            elif (label := _label(value, answers)) is not None:
                collected.given.append(Given(question, example, as_text(user) or "(unknown)", label))
        for question, value, agent in _suggestions(place, record):
            if (label := _label(value, answers)) is not None:
                models = True
                collected.given.append(Given(question, example, f"model:{as_text(agent) or 'suggestion'}", label))
    if without_status:
        answers.notes.append(
            "this file does not say which responses were submitted: drafts and discarded ones count too. "
            "Export with to_list(flatten=True) to leave them out."
        )
    if models:
        answers.notes.append("suggestions are annotators of their own (model:...).")
    collected.choose(name, wishes.question, answers)
    return make_label_file(name, NAME, answers, wishes)


def _responses(place: str, record: Record) -> Iterator[tuple[str, Any, Any, Any]]:
    """The question, value, user and status (None if not known) of every response."""
    for question, given in record_in(place, record, "responses").items():
        for one in list_in(place, {question: given}, question):
            if not isinstance(one, dict):
                raise DataError(
                    f"{place}: a response must be a record with 'value' and 'user_id'; got {as_text(one)[:40]!r}."
                )
            yield question, one.get("value"), one.get("user_id"), one.get("status")
    for key in [key for key in record if key.endswith(_FLAT)]:
        values, users = list_in(place, record, key), list_in(place, record, f"{key}.users")
        status = list_in(place, record, f"{key}.status") or [None] * len(values)
        if not len(values) == len(users) == len(status):
            raise DataError(
                f"{place}: {key!r}, '.users' and '.status' must be of one length; got {len(values)}, {len(users)} and "
                f"{len(status)}."
            )
        for value, user, state in zip(values, users, status, strict=True):
            yield key.removesuffix(_FLAT), value, user, state


def _suggestions(place: str, record: Record) -> Iterator[tuple[str, Any, Any]]:
    """The question, value and agent of every suggestion."""
    for question, given in record_in(place, record, "suggestions").items():
        one = record_in(place, {question: given}, question)
        yield question, one.get("value"), one.get("agent")
    for key in [key for key in record if key.endswith(".suggestion")]:
        yield key.removesuffix(".suggestion"), record[key], record.get(f"{key}.agent")


def _label(value: Any, answers: Answers) -> str | None:
    if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(one, dict | list) for one in value)):
        answers.left_out["rankings and spans"] += 1
        return None
    label = one_label(value if isinstance(value, list) else [value])
    return label or None
