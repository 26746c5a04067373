"""Argilla, Prodigy and Inspect.

Argilla: only submitted responses count where the file has their status. Prodigy: examples are known by their input
hash, ignored tasks are left out, and what was reviewed is truth. Inspect: scorers are annotators, and the names in a
score of several values are questions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from crowdwise._text import count
from crowdwise.exceptions import DataError
from crowdwise.formats._answers import Answer, Answers
from crowdwise.formats._names import TEXT_WORDS
from crowdwise.formats._tool import Tool, first_text, list_in, record_in, records_in
from crowdwise.tables import Placed, Record, as_text

_RESPONSES, _SUGGESTION = ".responses", ".suggestion"
_START_TIME = re.compile(r"(.*-)?\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d")


def _is_argilla(record: Record) -> bool:
    """Flattened or nested."""
    nested = isinstance(record.get("responses"), dict) and isinstance(record.get("fields"), dict)
    return nested or any(key.endswith(_RESPONSES) for key in record)


def _argilla_texts(place: str, record: Record) -> Record:
    fields = record_in(place, record, "fields") or record
    return {key: fields.get(key) for key in TEXT_WORDS}


def _argilla(place: str, record: Record, answers: Answers) -> Iterator[Answer]:
    for question, value, user, status in _responses(place, record):
        if status is None:
            answers.note(
                "this file does not say which responses were submitted: drafts and discarded ones count too. "
                "Export with to_list(flatten=True) to leave them out."
            )
        if status not in (None, "submitted"):
            answers.left_out[f"{as_text(status)[:40]} responses"] += 1
        elif _is_answer(value, answers):
            yield Answer(question, as_text(user), value)
    for question, value, agent in _suggestions(place, record):
        if _is_answer(value, answers):
            yield Answer(question, as_text(agent) or "suggestion", value, kind="model")


def _responses(place: str, record: Record) -> Iterator[tuple[str, Any, Any, Any]]:
    """The question, value, user and status (None if not known) of every response."""
    nested = record_in(place, record, "responses")
    for question in nested:
        for response in records_in(place, nested, question):
            yield question, response.get("value"), response.get("user_id"), response.get("status")
    for key in [key for key in record if key.endswith(_RESPONSES)]:
        values, users = list_in(place, record, key), list_in(place, record, f"{key}.users")
        status = list_in(place, record, f"{key}.status") or [None] * len(values)
        if not len(values) == len(users) == len(status):
            raise DataError(
                f"{place}: {key!r}, '.users' and '.status' must be of one length; got {len(values)}, {len(users)} and "
                f"{len(status)}."
            )
        for value, user, state in zip(values, users, status, strict=True):
            yield key.removesuffix(_RESPONSES), value, user, state


def _suggestions(place: str, record: Record) -> Iterator[tuple[str, Any, Any]]:
    """The question, value and agent of every suggestion."""
    nested = record_in(place, record, "suggestions")
    for question in nested:
        suggested = record_in(place, nested, question)
        yield question, suggested.get("value"), suggested.get("agent")
    for key in [key for key in record if key.endswith(_SUGGESTION)]:
        yield key.removesuffix(_SUGGESTION), record[key], record.get(f"{key}.agent")


def _is_answer(value: Any, answers: Answers) -> bool:
    parts = value if isinstance(value, list) else [value]
    is_other = any(isinstance(part, dict | list) for part in parts)
    answers.left_out["rankings and spans"] += is_other
    return not is_other and any(map(as_text, parts))


def _prodigy(place: str, task: Record, answers: Answers) -> Iterator[Answer]:
    answer, question, value = task.get("answer"), "choice", []
    if answer == "ignore":
        answers.left_out["ignored tasks"] += 1
    elif "options" in task or "accept" in task:
        value = list_in(place, task, "accept") if answer == "accept" else []
        if not any(map(as_text, value)):
            answers.left_out["tasks that were rejected" if answer != "accept" else "tasks without a chosen option"] += 1
    elif "label" in task and answer in ("accept", "reject"):
        question, value = as_text(task["label"]), [answer]
    else:
        answers.left_out["tasks without a choice or label (spans, texts)"] += 1
    if not any(map(as_text, value)):
        return
    annotator = unquote(first_text(task, ("_annotator_id", "_session_id")))
    is_reviewed = "versions" in task or "sessions" in task
    if not is_reviewed and _START_TIME.fullmatch(annotator):
        answers.remarks[_named_after_times].append(annotator)
    time = as_text(task.get("_timestamp")).zfill(20)
    yield Answer(question, annotator, value, time, "truth" if is_reviewed else "person")


def _named_after_times(annotators: list[str]) -> str:
    named = count(len(set(annotators)), "annotator is named after a time", "annotators are named after times")
    return (
        f"{named} at which Prodigy was started, such as {min(annotators)!r}: one person may look like many. Name "
        "sessions (?session=NAME)."
    )


def _samples(place: str, log: Record) -> Iterator[Placed]:
    """The samples of a log: every epoch is an example of its own."""
    for sample in records_in(place, log, "samples"):
        epoch = as_text(sample.get("epoch"))
        later = f" (epoch {epoch})" if epoch not in ("", "1") else ""
        yield place, {**sample, "example": as_text(sample.get("id")) + later, "later": later}


def _inspect(place: str, sample: Record, answers: Answers) -> Iterator[Answer]:
    if sample["later"]:
        answers.note("every epoch is an example of its own: the model answered anew.")
    for scorer, score in record_in(place, sample, "scores").items():
        value = score.get("value") if isinstance(score, dict) else score
        for question, part in (value if isinstance(value, dict) else {"score": value}).items():
            yield Answer(question, scorer, part)


ARGILLA = Tool(
    "Argilla",
    _is_argilla,
    _argilla,
    example=("id", "_server_id"),
    texts=_argilla_texts,
)
PRODIGY = Tool(
    "Prodigy",
    lambda task: "answer" in task and ("_input_hash" in task or "_task_hash" in task),
    _prodigy,
    example=("_input_hash", "_task_hash"),
    texts=lambda place, task: {"text": task.get("text")},
)
INSPECT = Tool(
    "Inspect",
    lambda log: isinstance(log.get("eval"), dict) and isinstance(log.get("samples"), list),
    _inspect,
    example=("example",),
    texts=lambda place, sample: {"input": sample.get("input")},
    parts=_samples,
)
