"""Records of Argilla and Prodigy -> answers.

Argilla: only submitted responses count where the file has their status; suggestions become annotators of their own,
called "model:" and their agent. Prodigy: examples are known by their input hash, ignored tasks are left out, and what
was reviewed is truth.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote

from crowdwise._text import count
from crowdwise.exceptions import DataError
from crowdwise.formats._answers import Answers, list_in, record_in
from crowdwise.formats._names import TEXT_WORDS
from crowdwise.tables import Placed, Record, as_text

_RESPONSES, _SUGGESTION = ".responses", ".suggestion"
_START_TIME = re.compile(r"(.*-)?\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d")


def is_argilla(record: Record) -> bool:
    """Whether a record looks like one of Argilla, flattened or nested."""
    nested = isinstance(record.get("responses"), dict) and isinstance(record.get("fields"), dict)
    return nested or any(key.endswith(_RESPONSES) for key in record)


def read_argilla(records: Iterable[Placed], answers: Answers) -> None:
    """Take the responses and suggestions of Argilla."""
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
            elif label := _argilla_label(value, question, answers):
                answers.answer(question, example, as_text(user), label)
        for question, value, agent in _suggestions(place, record):
            if label := _argilla_label(value, question, answers):
                models = True
                answers.answer(question, example, f"model:{as_text(agent) or 'suggestion'}", label)
    if without_status:
        answers.notes.append(
            "this file does not say which responses were submitted: drafts and discarded ones count too. "
            "Export with to_list(flatten=True) to leave them out."
        )
    if models:
        answers.notes.append("suggestions are annotators of their own (model:...).")
    answers.choose_question(answers.options.question)


def _responses(place: str, record: Record) -> Iterator[tuple[str, Any, Any, Any]]:
    """The question, value, user and status (None if not known) of every response."""
    for question, responses in record_in(place, record, "responses").items():
        for response in list_in(place, {question: responses}, question):
            if not isinstance(response, dict):
                raise DataError(
                    f"{place}: a response must be a record with 'value' and 'user_id'; got {as_text(response)[:40]!r}."
                )
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
    for question, suggestion in record_in(place, record, "suggestions").items():
        suggested = record_in(place, {question: suggestion}, question)
        yield question, suggested.get("value"), suggested.get("agent")
    for key in [key for key in record if key.endswith(_SUGGESTION)]:
        yield key.removesuffix(_SUGGESTION), record[key], record.get(f"{key}.agent")


def _argilla_label(value: Any, question: str, answers: Answers) -> str:
    if any(isinstance(part, dict | list) for part in (value if isinstance(value, list) else [value])):
        answers.left_out["rankings and spans"] += 1
        return ""
    return answers.label_of(value, question)


def is_prodigy(record: Record) -> bool:
    """Whether a record looks like a task of Prodigy."""
    return "answer" in record and ("_input_hash" in record or "_task_hash" in record)


def read_prodigy(records: Iterable[Placed], answers: Answers) -> None:
    """Take the answered tasks of Prodigy."""
    times: set[str] = set()
    for number, (place, task) in enumerate(records):
        example = as_text(task.get("_input_hash")) or as_text(task.get("_task_hash")) or str(number)
        if isinstance(task.get("text"), str):
            answers.texts.setdefault(example, task["text"])
        question, label = _prodigy_answer(place, task, answers)
        if not label:
            continue
        annotator = unquote(as_text(task.get("_annotator_id")) or as_text(task.get("_session_id")))
        time = as_text(task.get("_timestamp")).zfill(20)
        if "versions" in task or "sessions" in task:
            answers.known_answer(question, example, label, time)
            continue
        answers.answer(question, example, annotator, label, time)
        if _START_TIME.fullmatch(annotator):
            times.add(annotator)
    answers.choose_question(answers.options.question)
    if times:
        answers.notes.append(
            f"{count(len(times), 'annotator is named after a time', 'annotators are named after times')} at which "
            f"Prodigy was started, such as {min(times)!r}: one person may look like many. Name sessions "
            "(?session=NAME)."
        )


def _prodigy_answer(place: str, task: Record, answers: Answers) -> tuple[str, str]:
    """The question and the label of a task; the label is empty if it has none."""
    answer, label = task.get("answer"), ""
    if answer == "ignore":
        answers.left_out["ignored tasks"] += 1
    elif "options" in task or "accept" in task:
        label = answers.label_of(list_in(place, task, "accept")) if answer == "accept" else ""
        if not label:
            answers.left_out["tasks that were rejected" if answer != "accept" else "tasks without a chosen option"] += 1
    elif "label" in task and answer in ("accept", "reject"):
        return as_text(task["label"]), answer
    else:
        answers.left_out["tasks without a choice or label (spans, texts)"] += 1
    return "choice", label
