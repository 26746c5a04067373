"""Records of labelling tools and of stores of evaluations -> answers.

A tool is a `Tool`: how its records are known, where a record has the id and the text of its example, and the answers
in it. Which question is asked for, which answer of an annotator is the newest and what is left out is decided for all.

Argilla: only submitted responses count where the file has their status. Prodigy: examples are known by their input
hash, ignored tasks are left out, and what was reviewed is truth. Inspect: scorers are annotators, and the names in a
score of several values are questions. Langfuse, MLflow and Phoenix keep scores, each with an example, a name, which is
the question, who gave it, and a value. Several runs of one judge on an example are annotators of their own, who share a
vote; of several answers of a person the newest counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import unquote

from crowdwise._text import count
from crowdwise.exceptions import DataError
from crowdwise.formats._answers import Answer, Answers
from crowdwise.formats._names import TEXT_WORDS, plain_name
from crowdwise.tables import Placed, Record, as_text

_RESPONSES, _SUGGESTION = ".responses", ".suggestion"
_START_TIME = re.compile(r"(.*-)?\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d")
# Where the records are in what an interface sends, and in a trace.
_INSIDE = ("data", "traces", "scores", "assessments")


def first_text(record: Record, names: Iterable[str]) -> str:
    """The first of some fields that is filled, as text."""
    return next((text for name in names if (text := as_text(record.get(name)))), "")


@dataclass(frozen=True)
class Tool:
    """How a tool writes answers."""

    title: str
    is_its: Callable[[Record], bool]  # of a record, or of the names of the columns of a table
    answers_in: Callable[[str, Record, Answers], Iterable[Answer]]  # the answers in a record, with its place in words
    example: tuple[str, ...] = ("id",)  # fields with the id of the example; its number if none is filled
    texts: Callable[[str, Record], Record] = lambda place, record: {}  # what may hold the text that was labelled
    # The records of single examples in those of a file.
    parts: Callable[[Iterable[Placed], Answers], Iterable[Placed]] = lambda records, answers: records
    prefix: str = ""  # of columns with answers, which are called by what follows

    def read(self, records: Iterable[Placed], answers: Answers) -> None:
        """Take all answers."""
        for number, (place, record) in enumerate(self.parts(records, answers)):
            example = first_text(record, self.example) or str(number)
            if text := _text(self.texts(place, record), answers.options.text):
                answers.texts.setdefault(example, text)
            for answer in self.answers_in(place, record, answers):
                answers.take(example, answer)
        named = answers.options.question or answers.options.label
        answers.choose_question(named and named.removeprefix(self.prefix))


def _text(fields: Record, named: str | None) -> str:
    texts = {key: value for key, value in fields.items() if isinstance(value, str)}
    usual = (texts[key] for key in (named, *TEXT_WORDS) if key in texts)
    return next(usual, next(iter(texts.values())) if len(texts) == 1 else "")


def list_in(place: str, record: Record, key: str) -> list[Any]:
    """A field that must be a list; one that is absent or null is an empty one."""
    return _field(place, record, key, list, "a list")


def record_in(place: str, record: Record, key: str) -> Record:
    """A field that must be a record; one that is absent or null is an empty one."""
    return _field(place, record, key, dict, "a record, {...}")


def records_in(place: str, record: Record, key: str) -> Iterator[Record]:
    """A field that must be a list of records."""
    for part in list_in(place, record, key):
        if not isinstance(part, dict):
            raise DataError(f"{place}: {key!r} must hold records, {{...}}; got {as_text(part)[:40]!r}.")
        yield part


def _field(place: str, record: Record, key: str, kind: type[Any], expected: str) -> Any:
    value = record.get(key)
    if value is not None and not isinstance(value, kind):
        raise DataError(f"{place}: {key!r} must be {expected}; got {as_text(value)[:40]!r}.")
    return kind() if value is None else value


# ---------------------------------------------------------------------- Argilla, Prodigy, Inspect


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


def _samples(logs: Iterable[Placed], answers: Answers) -> Iterator[Placed]:
    """The samples of logs: every epoch is an example of its own."""
    for place, log in logs:
        for sample in records_in(place, log, "samples"):
            epoch = as_text(sample.get("epoch"))
            later = f" (epoch {epoch})" if epoch not in ("", "1") else ""
            if later:
                answers.note("every epoch counts as a separate example, as the model answered again.")
            yield place, {**sample, "example": as_text(sample.get("id")) + later}


def _inspect(place: str, sample: Record, answers: Answers) -> Iterator[Answer]:
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


# ---------------------------------------------------------------------- Langfuse, MLflow, Phoenix


def _flat(record: Record) -> Record:
    """A record with those inside it, under names with underscores: traceId and trace_id are one."""
    flat: Record = {}
    for name, value in record.items():
        inner = {f"{name}_{key}": part for key, part in value.items()} if isinstance(value, dict) else {name: value}
        flat.update((plain_name(key), part) for key, part in inner.items())
    return flat


def _scores(place: str, record: Record) -> Iterator[Placed]:
    """The records of single scores in what was exported: alone, in a trace, or in a list of traces."""
    info = record_in(place, record, "info") if isinstance(record.get("info"), dict) else record
    inside = next((info[key] for key in _INSIDE if isinstance(info.get(key), list)), None)
    if inside is None:
        yield place, _flat(record)
        return
    trace = {"trace_id": info.get("trace_id") or info.get("id")}
    for part in inside:
        if isinstance(part, dict):
            yield from _scores(place, {**trace, **part} if trace["trace_id"] else part)


def _store(
    title: str,
    *,
    must_have: Sequence[str],
    example: tuple[str, ...],
    kind: str,
    people: str,
    annotator: Sequence[str],
    values: Sequence[str],
    time: Sequence[str],
    truth: str = "",
) -> Tool:
    """A store, by the names of fields, each with those that are taken in its place.

    Fields of a record inside another have an underscore in their names. By those of `must_have` scores are known; the
    field `kind` is `people` if people gave them.
    """

    def answers_in(place: str, score: Record, answers: Answers) -> Iterator[Answer]:
        question = first_text(score, ("name", "assessment_name", "annotation_name"))
        filled = [score[name] for name in values if score.get(name) not in (None, "")]
        answer = partial(Answer, question, first_text(score, annotator) or first_text(score, [kind]).lower())
        if score.get("valid") is False:
            answers.left_out["answers that were overridden"] += 1
        elif truth and score.get(truth) is not None:
            yield answer(score[truth], first_text(score, time), "truth")
        elif not filled:
            answers.left_out["scores without a value"] += 1
        elif isinstance(filled[0], dict):
            answers.left_out["scores of several values"] += 1
        else:
            yield answer(filled[0], first_text(score, time), "person" if score.get(kind) == people else "judge")

    def is_its(record: Record) -> bool:
        return {*must_have} <= next((score for _, score in _scores("", record)), {}).keys()

    def parts(records: Iterable[Placed], answers: Answers) -> Iterator[Placed]:
        return (score for placed in records for score in _scores(*placed))

    return Tool(title, is_its, answers_in, example=example, parts=parts)


LANGFUSE = _store(
    "Langfuse",
    must_have=("trace_id", "name", "source", "data_type"),
    example=("observation_id", "trace_id", "session_id"),
    kind="source",
    people="ANNOTATION",
    annotator=("author_user_id", "evaluator_id"),
    values=("string_value", "value"),
    time=("updated_at", "timestamp"),
)
MLFLOW = _store(
    "MLflow",
    must_have=("trace_id", "source_source_type"),
    example=("trace_id",),
    kind="source_source_type",
    people="HUMAN",
    annotator=("source_source_id",),
    values=("feedback_value",),
    time=("last_update_time", "last_update_time_ms"),
    truth="expectation_value",
)
PHOENIX = _store(
    "Phoenix",
    must_have=("annotator_kind",),
    example=("span_id", "trace_id", "session_id"),
    kind="annotator_kind",
    people="HUMAN",
    annotator=("user_id", "identifier"),
    values=("result_label", "result_score", "label", "score"),
    time=("updated_at",),
)
