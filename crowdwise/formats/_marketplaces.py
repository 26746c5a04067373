"""Results of marketplaces -> answers: Mechanical Turk's batch results (CSV) and Toloka's results (TSV).

Tasks with the same input are one example. Rejected assignments are left out. On Mechanical Turk, a group of check
boxes, one TRUE or FALSE column per option, is one question; so is every key of the JSON in ``Answer.taskAnswers``.
Toloka's golden answer is the truth of its task.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from crowdwise._text import count
from crowdwise.exceptions import DataError, LabelError
from crowdwise.formats._answers import Answers, Given
from crowdwise.formats._names import TEXT_WORDS, plain_name
from crowdwise.tables import Table

# Prefixes and names of columns.
_ANSWER, _ANSWERS_IN_JSON, _MTURK_INPUT = "Answer.", "Answer.taskAnswers", "Input."
_OUTPUT, _GOLDEN, _TOLOKA_INPUT = "OUTPUT:", "GOLDEN:", "INPUT:"
_WORKER, _TASK, _STATUS = "ASSIGNMENT:worker_id", "ASSIGNMENT:task_id", "ASSIGNMENT:status"


class _SameInputs:
    """The id of the first task that showed something, for all tasks that show it."""

    def __init__(self) -> None:
        self._first: dict[tuple[str, ...], str] = {}
        self._merged: set[str] = set()

    def example(self, task: str, inputs: Sequence[str]) -> str:
        """The example of a task; its id, and what it shows, may be empty."""
        if not any(inputs):
            return task
        first = self._first.setdefault(tuple(inputs), task or " / ".join(inputs))
        if task and first != task:
            self._merged.add(task)
        return first

    def note(self, answers: Answers, task: str) -> None:
        """Note how many tasks show what another one shows."""
        if n := len(self._merged):
            answers.notes.append(f"{count(n, task)} with the input of another one: the same example.")


def is_mturk(header: Sequence[str]) -> bool:
    """Whether a header is that of Mechanical Turk."""
    return {"HITId", "WorkerId"} <= set(header) and any(name.startswith(_ANSWER) for name in header)


def read_mturk(table: Table, answers: Answers) -> None:
    """Take the answers of Mechanical Turk."""
    columns, options = table.columns(), answers.options
    examples = _mturk_examples(table, columns, answers)
    questions = _mturk_questions(columns)
    text = _mturk_text(table.header, options.text)
    nothing = [""] * len(examples)
    status, rejected, in_json = (
        columns.get(name, nothing) for name in ("AssignmentStatus", "Reject", _ANSWERS_IN_JSON)
    )
    for i, (example, worker) in enumerate(zip(examples, columns["WorkerId"], strict=True)):
        if not worker:
            answers.left_out["HITs without an answer"] += 1
            continue
        if status[i].strip().lower() == "rejected" or rejected[i].strip():
            answers.left_out["rejected assignments"] += 1
            continue
        for question, boxes in questions.items():
            chosen: Any = [option for option, cells in boxes.items() if cells[i].lower() == "true"]
            value = chosen if boxes else columns[_ANSWER + question][i]
            answers.take(example, Given(question, worker, value, f"{i:020}"))
        if in_json[i].strip():
            for question, value in _answers_in_json(table.place(i), in_json[i]):
                answers.take(example, Given(question, worker, value, f"{i:020}"))
        if text:
            answers.texts.setdefault(example, columns[text][i])
    wanted = options.question or options.label
    answers.choose_question(wanted and wanted.removeprefix(_ANSWER))


def _mturk_text(header: Sequence[str], given: str | None) -> str | None:
    inputs = [name for name in header if name.startswith(_MTURK_INPUT)]
    if given is not None:
        return next((name for name in (given, _MTURK_INPUT + given) if name in header), None)
    named = [name for name in inputs if plain_name(name.removeprefix(_MTURK_INPUT)) in TEXT_WORDS]
    return named[0] if named else inputs[0] if len(inputs) == 1 else None


def _mturk_examples(table: Table, columns: dict[str, list[str]], answers: Answers) -> list[str]:
    """The example of every row: a column that was named, an input that is an id, else the HIT."""
    inputs = [name for name in table.header if name.startswith(_MTURK_INPUT)]
    ids = [name for name in inputs if plain_name(name).endswith("_id")]
    named = answers.options.example or (ids[0] if len(ids) == 1 else None)
    answers.notes.append(f"columns: {named or 'HITId'} -> example")
    if named is not None:
        table.position(named)
        return columns[named]
    same = _SameInputs()
    shown = zip(*(columns[name] for name in inputs), strict=True) if inputs else [()] * len(columns["HITId"])
    examples = [same.example(hit, cells) for hit, cells in zip(columns["HITId"], shown, strict=True)]
    same.note(answers, "HIT")
    return examples


def _mturk_questions(columns: dict[str, list[str]]) -> dict[str, dict[str, list[str]]]:
    """The check boxes of every question, by option; a question that is one column has none."""
    names = [name for name in columns if name.startswith(_ANSWER) and name != _ANSWERS_IN_JSON]
    boxes: dict[str, dict[str, list[str]]] = {}
    for name in names:
        group, _, option = name.rpartition(".")
        if group.startswith(_ANSWER) and {cell.lower() for cell in columns[name]} <= {"true", "false", ""}:
            boxes.setdefault(group.removeprefix(_ANSWER), {})[option] = columns[name]
    groups = {question: options for question, options in boxes.items() if len(options) > 1}
    boxed = {f"{_ANSWER}{question}.{option}" for question, options in groups.items() for option in options}
    return groups | {name.removeprefix(_ANSWER): {} for name in names if name not in boxed}


def _answers_in_json(place: str, cell: str) -> Iterator[tuple[str, Any]]:
    try:
        document: Any = json.loads(cell)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}: {_ANSWERS_IN_JSON} is not JSON ({error}).") from None
    for part in document if isinstance(document, list) else [document]:
        if not isinstance(part, dict):
            raise DataError(f"{place}: {_ANSWERS_IN_JSON} must hold records; got {cell[:40]!r}.")
        for question, value in part.items():
            if isinstance(value, dict):  # a box per option, or {"label": ...} as crowd-classifier writes
                on = [key for key, state in value.items() if state is True]
                value = on or [state for state in value.values() if state is not False]
            yield question, value


def is_toloka(header: Sequence[str]) -> bool:
    """Whether a header is that of Toloka."""
    return _WORKER in header and any(name.startswith(_OUTPUT) for name in header)


def read_toloka(table: Table, answers: Answers) -> None:
    """Take the answers of Toloka."""
    header, same = table.header, _SameInputs()
    inputs, outputs, golden = (
        [name for name in header if name.startswith(prefix)] for prefix in (_TOLOKA_INPUT, _OUTPUT, _GOLDEN)
    )
    text = next((name for name in inputs if name.removeprefix(_TOLOKA_INPUT).lower() in TEXT_WORDS), None)
    for number, (place, row) in enumerate(table.records()):
        if not any(row.values()):  # between two suites of tasks
            continue
        example = same.example(row.get(_TASK, ""), [row[name] for name in inputs])
        worker, status = row[_WORKER], row.get(_STATUS, "")
        if not example or not worker:
            raise LabelError(f"{place}: every answer needs its task and its worker_id.")
        for name in filter(row.get, golden):
            answers.take(example, Given(name.removeprefix(_GOLDEN), "", row[name], kind="truth"))
        if status.upper() not in ("", "APPROVED", "ACCEPTED", "SUBMITTED"):
            answers.left_out[f"answers of {status[:40].lower()} assignments"] += 1
            continue
        for name in outputs:
            answers.take(example, Given(name.removeprefix(_OUTPUT), worker, row[name], f"{number:020}"))
        if text is not None:
            answers.texts.setdefault(example, row[text])
    same.note(answers, "task")
    wanted = answers.options.question or answers.options.label
    answers.choose_question(wanted and wanted.removeprefix(_OUTPUT))
