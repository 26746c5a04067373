"""Label Studio's exports -> answers: JSON, and the flat ones (JSON_MIN and CSV, a row per answer).

Cancelled and rejected answers and drafts are left out; of several answers of one person the newest counts. Answers
marked as ground truth are truth. Predictions become annotators of their own, called "model:" and their version.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from crowdwise._text import count
from crowdwise.exceptions import LabelError
from crowdwise.formats._answers import Answer, Answers
from crowdwise.formats._names import text_column
from crowdwise.formats._tools import Tool, first_text, list_in, record_in
from crowdwise.tables import Placed, Record, as_text

# What a value of these types holds is an answer about the whole example.
_KINDS = ("choices", "rating", "number", "taxonomy", "pairwise")
# A value that has one of these is about a part of the example.
_PARTS = {"start", "end", "x", "y", "points", "ranges", "rle", "frame"}
# Columns of a flat export that are about the answer, and no part of it.
_OWN = ("id", "annotator", "annotation_id", "created_at", "updated_at", "lead_time")


def is_label_studio(record: Record) -> bool:
    """Whether a record looks like a task of Label Studio."""
    annotations = record.get("annotations", record.get("completions"))
    return isinstance(record.get("data"), dict) and isinstance(annotations, list)


def annotations_of(place: str, task: Record) -> list[Any]:
    """The annotations of a task; those of earlier versions are called completions."""
    return list_in(place, task, "annotations" if "annotations" in task else "completions")


def _answers_in(place: str, task: Record, answers: Answers) -> Iterator[Answer]:
    """The annotations and predictions of a task."""
    answers.left_out["drafts"] += len(list_in(place, task, "drafts"))
    for annotation in annotations_of(place, task):
        if isinstance(annotation, dict):
            yield from _annotated(place, annotation, answers)
        else:
            answers.left_out["annotations with only an id in the file"] += 1
    for prediction in list_in(place, task, "predictions"):
        if not isinstance(prediction, dict):
            answers.left_out["predictions with only an id in the file"] += 1
            continue
        model, time = first_text(prediction, ["model_version"]) or "prediction", as_text(prediction.get("created_at"))
        for question, choices in _choices(place, prediction, answers).items():
            yield Answer(question, model, choices, time, "model")


def _annotated(place: str, annotation: Record, answers: Answers) -> Iterator[Answer]:
    mark, time = as_text(annotation.get("id")), first_text(annotation, ("updated_at", "created_at"))
    if mark and mark in answers.seen:  # cloud storage repeats annotations over files
        answers.left_out["repeated annotations"] += 1
        return
    answers.seen.add(mark)
    reviews = [review for review in list_in(place, annotation, "reviews") if isinstance(review, dict)]
    is_rejected = reviews[-1].get("accepted") is False if reviews else annotation.get("last_action") == "rejected"
    if annotation.get("was_cancelled") or annotation.get("skipped"):
        answers.left_out["cancelled answers"] += 1
    elif is_rejected:
        answers.left_out["rejected answers"] += 1
    elif not (chosen := _choices(place, annotation, answers)):
        answers.left_out["annotations without an answer about the whole example"] += 1
    else:
        is_truth, person = annotation.get("ground_truth") is True, annotation.get("completed_by")
        annotator = first_text(person, ("email", "username", "id")) if isinstance(person, dict) else as_text(person)
        for question, choices in chosen.items():
            yield Answer(question, annotator, choices, time, "truth" if is_truth else "person")
        if not is_truth and _is_prefilled(place, annotation):
            answers.remarks[_prefilled].append(mark)


def _is_prefilled(place: str, annotation: Record) -> bool:
    origins = [as_text(part.get("origin")) for part in list_in(place, annotation, "result") if isinstance(part, dict)]
    return annotation.get("parent_prediction") is not None or any(origin.startswith("prediction") for origin in origins)


def _prefilled(marks: list[str]) -> str:
    return f"{count(len(marks), 'answer')} started from a model's prediction: not independent of that model."


def _choices(place: str, annotation: Record, answers: Answers) -> dict[str, list[Any]]:
    """The choices for every question that an annotation, or a prediction, answers."""
    whole, n_parts, n_others = results_about_the_whole(place, annotation)
    answers.left_out["results that are neither a class nor a rating (spans, boxes, texts)"] += n_others
    answers.left_out["answers about a part of an example"] += n_parts
    chosen: dict[str, list[Any]] = {}
    for result in whole:
        if choices := list(filter(as_text, choices_in(result["value"]))):
            chosen.setdefault(as_text(result.get("from_name")), []).extend(choices)
    return chosen


def results_about_the_whole(place: str, annotation: Record) -> tuple[list[Record], int, int]:
    """The results of an annotation or prediction that are a class or rating of the whole example.

    Then how many others are about a part of it, and how many are spans, boxes, texts and the like.
    """
    results = [result for result in list_in(place, annotation, "result") if isinstance(result, dict)]
    answered = [result for result in results if result.get("type") in _KINDS and isinstance(result.get("value"), dict)]
    regions = {as_text(result.get("id")) for result in results if result.get("type") not in _KINDS}
    whole = [
        result
        for result in answered
        if not _PARTS & result["value"].keys()
        and (result.get("id") is None or as_text(result.get("id")) not in regions)
    ]
    return whole, len(answered) - len(whole), len(results) - len(answered)


def choices_in(value: Record) -> list[Any]:
    """The choices, or the rating, that a value holds."""
    if isinstance(value.get("choices"), list):
        return value["choices"]
    if isinstance(value.get("taxonomy"), list):
        return ["/".join(map(as_text, path)) if isinstance(path, list) else path for path in value["taxonomy"]]
    return [value[key] for key in ("choices", "rating", "number", "selected") if value.get(key) is not None]


LABEL_STUDIO = Tool(
    "Label Studio", is_label_studio, _answers_in, texts=lambda place, task: record_in(place, task, "data")
)


def _flat_rows(records: Iterable[Placed], answers: Answers) -> Iterator[Placed]:
    """The rows of a flat export, each with its answers by question."""
    rows = list(records)
    header = list(rows[0][1]) if rows else []
    questions = _flat_questions(header, [row for _, row in rows], answers.options.question or answers.options.label)
    if len(questions) == 1:
        answers.notes.append(f"columns: id -> example, annotator -> annotator, {questions[0]} -> label")
    text = text_column(header, questions)
    for place, row in rows:
        if not row["id"]:
            raise LabelError(f"{place}: every label needs its example, and the column 'id' is empty there.")
        yield place, {**row, "text": text and row[text], "answers": {question: row[question] for question in questions}}


def _flat_questions(header: Sequence[str], rows: Sequence[Record], named: str | None) -> list[str]:
    """The columns with answers: those between "id" and "annotator".

    Where columns are in the order of their names there are none; then those in which answers to one example differ, for
    what is shown to annotators does not, or, if answers never do, all that may be.
    """
    if not rows or (between := header[header.index("id") + 1 : header.index("annotator")]):
        return list(between) if rows else []
    answered = [name for name in header if name not in _OWN]
    n_examples = len({row["id"] for row in rows})
    differing = [name for name in answered if len({(row["id"], row[name]) for row in rows}) > n_examples]
    if named in answered:
        return list(dict.fromkeys([*differing, named]))
    return differing or [name for name in answered if name != text_column(header, [])]


def _flat_answers_in(place: str, row: Record, answers: Answers) -> Iterator[Answer]:
    time = first_text(row, ("updated_at", "created_at"))
    for question, cell in row["answers"].items():
        yield Answer(question, row["annotator"], _flat_choices(cell), time)


def _flat_choices(cell: str) -> Any:
    """A cell; several choices at once are JSON in it."""
    if cell.startswith('{"choices"'):
        try:
            return json.loads(cell)["choices"]
        except (ValueError, TypeError, RecursionError):
            return cell
    return cell


LABEL_STUDIO = Tool(
    "Label Studio", is_label_studio, _answers_in, texts=lambda place, task: record_in(place, task, "data")
)
LABEL_STUDIO_FLAT = Tool(
    "Label Studio, flat",
    lambda row: {"id", "annotator", "annotation_id"} <= row.keys(),
    _flat_answers_in,
    texts=lambda place, row: {"text": row["text"]},
    parts=_flat_rows,
)
