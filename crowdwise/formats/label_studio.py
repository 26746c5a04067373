"""Label Studio's JSON export -> labels.

Cancelled and rejected answers and drafts are left out; of several answers of one person the newest counts. Answers
marked as ground truth are truth. Predictions become annotators of their own, called "model:" and their version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from crowdwise._text import count
from crowdwise.formats.answers import Answers
from crowdwise.formats.fields import Collected, Given, Placed, Record, list_in, one_label, record_in
from crowdwise.formats.label_file import LabelFile, Wishes, make_label_file
from crowdwise.formats.names import TEXT_WORDS
from crowdwise.tables.json_rows import as_text

NAME = "Label Studio"
# What a value of these types holds is an answer about the whole example.
_KINDS = ("choices", "rating", "number", "taxonomy", "pairwise")
# A value that has one of these is about a part of the example.
_PARTS = {"start", "end", "x", "y", "points", "ranges", "rle", "frame"}


def is_label_studio(record: Record) -> bool:
    """Whether a record looks like a task of Label Studio."""
    given = record.get("annotations", record.get("completions"))
    return isinstance(record.get("data"), dict) and isinstance(given, list)


def read_label_studio(name: str, records: Iterable[Placed], wishes: Wishes) -> LabelFile:
    """Labels from tasks with their annotations."""
    answers, collected = Answers(wishes.missing, strip=wishes.strip), Collected()
    seen: set[str] = set()
    n_prefilled = 0
    for number, (place, task) in enumerate(records):
        example = as_text(task.get("id")) or str(number)
        if text := _text(record_in(place, task, "data")):
            answers.texts[example] = text
        answers.left_out["drafts"] += len(list_in(place, task, "drafts"))
        for annotation in _annotations(place, task, answers):
            mark = as_text(annotation.get("id"))
            if mark and mark in seen:  # cloud storage repeats annotations over files
                answers.left_out["repeated annotations"] += 1
                continue
            seen.add(mark)
            n_prefilled += _take(place, example, annotation, collected, answers)
        for prediction in list_in(place, task, "predictions"):
            _take_prediction(place, example, prediction, collected, answers)
    if n_prefilled:
        answers.notes.append(
            f"{count(n_prefilled, 'answer')} started from a model's prediction: not independent of that model."
        )
    collected.choose(name, wishes.question, answers)
    return make_label_file(name, NAME, answers, wishes)


def _text(data: Record) -> str:
    words = {key: value for key, value in data.items() if isinstance(value, str)}
    for key in TEXT_WORDS:
        if key in words:
            return words[key]
    return next(iter(words.values())) if len(words) == 1 else ""


def _annotations(place: str, task: Record, answers: Answers) -> Iterator[Record]:
    for annotation in list_in(place, task, "annotations" if "annotations" in task else "completions"):
        if isinstance(annotation, dict):
            yield annotation
        else:
            answers.left_out["annotations of which the file has only the id"] += 1


def _take(place: str, example: str, annotation: Record, collected: Collected, answers: Answers) -> int:
    """Take the answers of one annotation; 1 if they started from a model's, else 0."""
    if annotation.get("was_cancelled") or annotation.get("skipped"):
        answers.left_out["cancelled answers"] += 1
        return 0
    if _is_rejected(place, annotation):
        answers.left_out["rejected answers"] += 1
        return 0
    time = as_text(annotation.get("updated_at") or annotation.get("created_at"))
    given = _answered(place, annotation, answers)
    if not given:
        answers.left_out["annotations without an answer about the whole example"] += 1
    to = collected.truth if annotation.get("ground_truth") is True else collected.given
    for question, label in given.items():
        to.append(Given(question, example, _who(annotation.get("completed_by")), label, time))
    if to is collected.truth:
        return 0
    origins = [one.get("origin") for one in list_in(place, annotation, "result") if isinstance(one, dict)]
    started = annotation.get("parent_prediction") is not None or any(
        isinstance(origin, str) and origin.startswith("prediction") for origin in origins
    )
    return int(started and bool(given))


def _is_rejected(place: str, annotation: Record) -> bool:
    reviews = [review for review in list_in(place, annotation, "reviews") if isinstance(review, dict)]
    if reviews:
        return reviews[-1].get("accepted") is False
    return annotation.get("last_action") == "rejected"


def _who(completed_by: Any) -> str:
    if isinstance(completed_by, dict):
        completed_by = next((completed_by[key] for key in ("email", "username", "id") if completed_by.get(key)), None)
    return as_text(completed_by) or "(unknown)"


def _answered(place: str, annotation: Record, answers: Answers) -> dict[str, str]:
    """The label of every question that an annotation, or a prediction, answers."""
    whole, n_parts, n_others = results_about_the_whole(place, annotation)
    answers.left_out["results that are no class or rating (spans, boxes, texts)"] += n_others
    answers.left_out["answers about a part of an example"] += n_parts
    chosen: dict[str, list[Any]] = {}
    for one in whole:
        chosen.setdefault(as_text(one.get("from_name")), []).extend(_choices(one["value"]))
    return {question: label for question, values in chosen.items() if (label := one_label(values))}


def results_about_the_whole(place: str, annotation: Record) -> tuple[list[Record], int, int]:
    """The results of an annotation or prediction that are a class or rating of the whole example.

    Then how many others are about a part of it, and how many are spans, boxes, texts and the like.
    """
    results = [one for one in list_in(place, annotation, "result") if isinstance(one, dict)]
    answered = [one for one in results if one.get("type") in _KINDS and isinstance(one.get("value"), dict)]
    regions = {as_text(one.get("id")) for one in results if one.get("type") not in _KINDS}
    whole = [
        one
        for one in answered
        if not _PARTS & one["value"].keys() and (one.get("id") is None or as_text(one.get("id")) not in regions)
    ]
    return whole, len(answered) - len(whole), len(results) - len(answered)


def _choices(value: Record) -> list[Any]:
    if isinstance(value.get("choices"), list):
        return value["choices"]
    if isinstance(value.get("taxonomy"), list):
        return ["/".join(map(as_text, path)) if isinstance(path, list) else path for path in value["taxonomy"]]
    return [value[key] for key in ("choices", "rating", "number", "selected") if value.get(key) is not None]


def _take_prediction(place: str, example: str, prediction: Any, collected: Collected, answers: Answers) -> None:
    if not isinstance(prediction, dict):
        answers.left_out["predictions of which the file has only the id"] += 1
        return
    model = f"model:{as_text(prediction.get('model_version')) or 'prediction'}"
    for question, label in _answered(place, prediction, answers).items():
        collected.given.append(Given(question, example, model, label, as_text(prediction.get("created_at"))))
        note = f"the predictions of {model!r} are an annotator of their own."
        if note not in answers.notes:
            answers.notes.append(note)
