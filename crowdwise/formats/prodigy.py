"""Prodigy's JSON Lines -> labels.

Examples are told apart by their input hash. Ignored tasks are left out; what was reviewed is truth.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote

from crowdwise._text import count
from crowdwise.formats.answers import Answers
from crowdwise.formats.fields import Collected, Given, Placed, Record, list_in, one_label
from crowdwise.formats.label_file import LabelFile, Wishes, make_label_file
from crowdwise.tables.json_rows import as_text

NAME = "Prodigy"
_START_TIME = re.compile(r"(.*-)?\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d")
_CHOICE = "choice"


def is_prodigy(record: Record) -> bool:
    """Whether a record looks like a task of Prodigy."""
    return "answer" in record and ("_input_hash" in record or "_task_hash" in record)


def read_prodigy(name: str, records: Iterable[Placed], wishes: Wishes) -> LabelFile:
    """Labels from answered tasks."""
    answers, collected = Answers(wishes.missing, strip=wishes.strip), Collected()
    for number, (place, task) in enumerate(records):
        example = as_text(task.get("_input_hash")) or as_text(task.get("_task_hash")) or str(number)
        if isinstance(task.get("text"), str):
            answers.texts.setdefault(example, task["text"])
        found = _answer(place, task, answers)
        if found is None:
            continue
        question, label = found
        who = unquote(as_text(task.get("_annotator_id")) or as_text(task.get("_session_id"))) or "(unknown)"
        time = as_text(task.get("_timestamp")).zfill(20)
        to = collected.truth if "versions" in task or "sessions" in task else collected.given
        to.append(Given(question, example, who, label, time))
    collected.choose(name, wishes.question, answers)
    times = sorted({one.annotator for one in collected.given if _START_TIME.fullmatch(one.annotator)})
    if times:
        answers.notes.append(
            f"{count(len(times), 'annotator is named after a time', 'annotators are named after times')} at which "
            f"Prodigy was started, such as {times[0]!r}: one person may look like many. Name sessions (?session=NAME)."
        )
    return make_label_file(name, NAME, answers, wishes)


def _answer(place: str, task: Record, answers: Answers) -> tuple[str, str] | None:
    """The question and the label of a task; None if it has none."""
    answer = task.get("answer")
    if answer == "ignore":
        answers.left_out["ignored tasks"] += 1
        return None
    if "options" in task or "accept" in task:
        label = one_label(list_in(place, task, "accept"))
        if answer != "accept" or not label:
            answers.left_out["tasks that were rejected" if answer != "accept" else "tasks without a chosen option"] += 1
            return None
        return _CHOICE, label
    if "label" in task and answer in ("accept", "reject"):
        return as_text(task["label"]), answer
    answers.left_out["tasks without a choice or label (spans, texts)"] += 1
    return None
