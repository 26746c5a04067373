"""Scores in the stores of evaluations (Langfuse, MLflow, Phoenix) -> answers of judges and people.

Each of them has an example, the name of a score, which is the question, who gave it, and its value. Several runs of one
judge on an example are annotators of their own, who share a vote; of several answers of a person the newest counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from crowdwise.formats._answers import Answer, Answers
from crowdwise.formats._names import plain_name
from crowdwise.formats._tool import Tool, first_text, record_in
from crowdwise.tables import Placed, Record

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
    who: Sequence[str],
    values: Sequence[str],
    time: Sequence[str],
    truth: str = "",
) -> Tool:
    """A store, by the names of fields, each with those that are taken in its place.

    Fields of a record inside another have an underscore in their names. By those of `must_have` scores are known; the
    field `kind` is `people` if people gave them.
    """

    def given(place: str, score: Record, answers: Answers) -> Iterator[Answer]:
        question = first_text(score, ("name", "assessment_name", "annotation_name"))
        filled = [score[name] for name in values if score.get(name) not in (None, "")]
        annotator = partial(Answer, question, first_text(score, who) or first_text(score, [kind]).lower())
        if score.get("valid") is False:
            answers.left_out["answers that were overridden"] += 1
        elif truth and score.get(truth) is not None:
            yield annotator(score[truth], first_text(score, time), "truth")
        elif not filled:
            answers.left_out["scores without a value"] += 1
        elif isinstance(filled[0], dict):
            answers.left_out["scores of several values"] += 1
        else:
            yield annotator(filled[0], first_text(score, time), "person" if score.get(kind) == people else "judge")

    def is_its(record: Record) -> bool:
        return {*must_have} <= next((score for _, score in _scores("", record)), {}).keys()

    return Tool(title, is_its, given, example=example, parts=_scores)


LANGFUSE = _store(
    "Langfuse",
    must_have=("trace_id", "name", "source", "data_type"),
    example=("observation_id", "trace_id", "session_id"),
    kind="source",
    people="ANNOTATION",
    who=("author_user_id", "evaluator_id"),
    values=("string_value", "value"),
    time=("updated_at", "timestamp"),
)
MLFLOW = _store(
    "MLflow",
    must_have=("trace_id", "source_source_type"),
    example=("trace_id",),
    kind="source_source_type",
    people="HUMAN",
    who=("source_source_id",),
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
    who=("user_id", "identifier"),
    values=("result_label", "result_score", "label", "score"),
    time=("updated_at",),
)
