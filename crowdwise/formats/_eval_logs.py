"""Logs of evaluations (Inspect, Langfuse, MLflow, Phoenix) -> answers of judges and people.

Each of them has an example, the name of a score, which is the question, who gave it, and its value. Several runs of one
judge on an example are annotators of their own, who share a vote; of several answers of a person the newest counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from crowdwise.exceptions import DataError
from crowdwise.formats._answers import Answers, list_in, record_in
from crowdwise.formats._names import plain_name
from crowdwise.tables import Placed, Record, Table, as_text


class _Store(NamedTuple):
    """Names of fields, those of a record inside with an underscore, each with others that are taken in its place."""

    must_have: tuple[str, ...]  # by which its records are known
    values: tuple[str, ...]
    example: tuple[str, ...]
    kind: str
    who: tuple[str, ...]
    time: tuple[str, ...]
    people: str  # the kind of people
    truth: str = ""


LANGFUSE = _Store(
    must_have=("trace_id", "name", "source", "data_type"),
    values=("string_value", "value"),
    example=("observation_id", "trace_id", "session_id"),
    kind="source",
    who=("author_user_id", "evaluator_id"),
    time=("updated_at", "timestamp"),
    people="ANNOTATION",
)
MLFLOW = _Store(
    must_have=("trace_id", "source_source_type"),
    values=("feedback_value",),
    example=("trace_id",),
    kind="source_source_type",
    who=("source_source_id",),
    time=("last_update_time", "last_update_time_ms"),
    people="HUMAN",
    truth="expectation_value",
)
PHOENIX = _Store(
    must_have=("annotator_kind",),
    values=("result_label", "result_score", "label", "score"),
    example=("span_id", "trace_id", "session_id"),
    kind="annotator_kind",
    who=("user_id", "identifier"),
    time=("updated_at",),
    people="HUMAN",
)
# Where the records are in what an interface sends, and in a trace.
_INSIDE = ("data", "traces", "scores", "assessments")


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
        yield place, record
        return
    trace = {"trace_id": info.get("trace_id") or info.get("id")}
    for part in inside:
        if isinstance(part, dict):
            yield from _scores(place, {**trace, **part} if trace["trace_id"] else part)


def is_score(store: _Store, record: Record) -> bool:
    """Whether a record has scores as a store exports them."""
    score = next((score for _, score in _scores("", record)), {})
    return {*store.must_have} <= _flat(score).keys()


def read_scores(store: _Store, records: Iterable[Placed], answers: Answers) -> None:
    """Take the scores of a store."""
    for place, record in records:
        for where, score in _scores(place, record):
            _take(store, where, _flat(score), answers)
    answers.choose_question(answers.options.question)


def is_table(store: _Store, header: Sequence[str]) -> bool:
    """Whether a header is that of a store's scores."""
    return is_score(store, dict.fromkeys(header))


def read_table(store: _Store, table: Table, answers: Answers) -> None:
    """Take a table of a store's scores."""
    read_scores(store, table.records(), answers)


def _take(store: _Store, place: str, score: Record, answers: Answers) -> None:
    def first(names: Sequence[str]) -> str:
        return next((text for name in names if (text := as_text(score.get(name)))), "")

    question, example, kind = (
        first(("name", "assessment_name", "annotation_name")),
        first(store.example),
        first([store.kind]),
    )
    time = first(store.time)
    if score.get("valid") is False:
        answers.left_out["answers that were overridden"] += 1
    elif store.truth and score.get(store.truth) is not None:
        answers.known_answer(question, example, answers.label_of(score[store.truth], question), time)
    elif not (given := [score[name] for name in store.values if score.get(name) not in (None, "")]):
        answers.left_out["scores without a value"] += 1
    elif isinstance(given[0], dict):
        answers.left_out["scores of several values"] += 1
    else:
        who = first(store.who) or kind.lower()
        if kind != store.people:
            who = answers.run_of(who, example, question)
        answers.answer(question, example, who, answers.label_of(given[0], question), time)


def is_inspect(record: Record) -> bool:
    """Whether a record looks like the log of an evaluation by Inspect."""
    return isinstance(record.get("eval"), dict) and isinstance(record.get("samples"), list)


def read_inspect(records: Iterable[Placed], answers: Answers) -> None:
    """Take the scores of Inspect: scorers are annotators, and the names in a score of several values are questions."""
    later = False
    for place, log in records:
        for sample in list_in(place, log, "samples"):
            if not isinstance(sample, dict):
                raise DataError(f"{place}: a sample must be a record, {{...}}; got {as_text(sample)[:40]!r}.")
            epoch = as_text(sample.get("epoch"))
            is_later = epoch not in ("", "1")
            later |= is_later
            example = as_text(sample.get("id")) + (f" (epoch {epoch})" if is_later else "")
            if isinstance(sample.get("input"), str):
                answers.texts[example] = sample["input"]
            for scorer, score in record_in(place, sample, "scores").items():
                value = score.get("value") if isinstance(score, dict) else score
                for question, part in (value if isinstance(value, dict) else {"score": value}).items():
                    answers.answer(question, example, scorer, answers.label_of(part, question))
    if later:
        answers.notes.append("every epoch is an example of its own: the model answered anew.")
    answers.choose_question(answers.options.question)
