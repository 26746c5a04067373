"""Results of marketplaces -> answers: Mechanical Turk's batch results (CSV) and Toloka's results (TSV).

Tasks with the same input are one example. Rejected assignments are left out. A group of check boxes, one TRUE or FALSE
column per option, is one question; so is every key of the JSON in Mechanical Turk's ``Answer.taskAnswers``. Toloka's
golden answer is the truth of its task.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from crowdwise._text import count
from crowdwise.exceptions import DataError, LabelError
from crowdwise.formats._answers import Answer, Answers
from crowdwise.formats._names import TEXT_WORDS, plain_name
from crowdwise.tables import Record, Table


@dataclass(frozen=True)
class Marketplace:
    """How a marketplace names its columns; those of inputs, answers and known answers begin with the same."""

    title: str
    task: str
    worker: str
    status: str
    accepted: tuple[str, ...]  # of the status, in small letters
    inputs: str
    answers: str
    golden: str = "GOLDEN:"
    in_json: str = ""  # the column with answers in JSON

    def is_its(self, header: Sequence[str]) -> bool:
        """Whether a header is that of the marketplace."""
        has = [any(name.startswith(prefix) for name in header) for prefix in (self.answers, self.inputs)]
        return self.worker in header and has[0] and (self.task in header or has[1])

    def read(self, table: Table, answers: Answers) -> None:
        """Take all answers."""
        columns, options = table.columns(), answers.options
        inputs, golden = (
            [name for name in table.header if name.startswith(prefix)] for prefix in (self.inputs, self.golden)
        )
        questions, text = self._questions(columns), self._text(table.header, inputs, options.text)
        examples = self._examples(table, columns, inputs, answers)
        for i, example in enumerate(examples):
            row = {name: cells[i] for name, cells in columns.items()}
            if not any(row.values()) or not self._is_answered(table.place(i), example, row, answers):
                continue  # an empty row is between two suites of tasks
            for name in filter(row.get, golden):
                answers.take(example, Answer(name.removeprefix(self.golden), "", row[name], kind="truth"))
            if (status := row.get(self.status, "").strip().lower()) not in self.accepted or row.get("Reject"):
                state = status if status not in self.accepted else "rejected"
                answers.left_out[f"answers of {state[:40]} assignments"] += 1
                continue
            for question, value in self._given(table.place(i), row, questions):
                answers.take(example, Answer(question, row[self.worker], value, f"{i:020}"))
            if text is not None:
                answers.texts.setdefault(example, row[text])
        named = options.question or options.label
        answers.choose_question(named and named.removeprefix(self.answers))

    def _is_answered(self, place: str, example: str, row: Record, answers: Answers) -> bool:
        if row[self.worker] and example:
            return True
        if example and not any(value for name, value in row.items() if name.startswith(self.answers)):
            answers.left_out["tasks without an answer"] += 1
            return False
        raise LabelError(f"{place}: every answer needs its task and its worker, {self.worker!r}.")

    def _given(self, place: str, row: Record, questions: dict[str, list[str]]) -> Iterator[tuple[str, Any]]:
        """Every question with what was chosen."""
        for question, boxes in questions.items():
            name = self.answers + question
            yield question, [box for box in boxes if row[f"{name}.{box}"].lower() == "true"] if boxes else row[name]
        if row.get(self.in_json, "").strip():
            yield from _answers_in_json(f"{place}: {self.in_json}", row[self.in_json])

    def _text(self, header: Sequence[str], inputs: Sequence[str], named: str | None) -> str | None:
        if named is not None:
            return next((name for name in (named, self.inputs + named) if name in header), None)
        texts = [name for name in inputs if plain_name(name.removeprefix(self.inputs)) in TEXT_WORDS]
        return texts[0] if texts else inputs[0] if len(inputs) == 1 else None

    def _examples(
        self, table: Table, columns: dict[str, list[str]], inputs: Sequence[str], answers: Answers
    ) -> list[str]:
        """The example of every row: a column that was named, an input that is an id, else the first such task."""
        ids = [name for name in inputs if plain_name(name).endswith("_id")]
        named = answers.options.example or (ids[0] if len(ids) == 1 else None)
        answers.notes.append(f"columns: {named or self.task} -> example")
        if named is not None:
            table.position(named)
            return columns[named]
        first: dict[tuple[str, ...], str] = {}
        examples, tasks = [], columns.get(self.task) or [""] * len(columns[self.worker])
        for i, task in enumerate(tasks):
            shown = tuple(columns[name][i] for name in inputs)
            examples.append(first.setdefault(shown, task or " / ".join(shown)) if any(shown) else task)
        merged = {task for task, example in zip(tasks, examples, strict=True) if task and task != example}
        if merged:
            answers.notes.append(f"{count(len(merged), 'task')} with the input of another one: the same example.")
        return examples

    def _questions(self, columns: dict[str, list[str]]) -> dict[str, list[str]]:
        """The check boxes of every question; a question that is one column has none."""
        names = [name for name in columns if name.startswith(self.answers) and name != self.in_json]
        boxes: dict[str, list[str]] = {}
        for name in names:
            group, _, option = name.removeprefix(self.answers).rpartition(".")
            if group and {cell.lower() for cell in columns[name]} <= {"true", "false", ""}:
                boxes.setdefault(group, []).append(option)
        groups = {question: options for question, options in boxes.items() if len(options) > 1}
        boxed = {f"{self.answers}{question}.{option}" for question, options in groups.items() for option in options}
        return groups | {name.removeprefix(self.answers): [] for name in names if name not in boxed}


def _answers_in_json(place: str, cell: str) -> Iterator[tuple[str, Any]]:
    try:
        document: Any = json.loads(cell)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place} is not JSON ({error}).") from None
    for part in document if isinstance(document, list) else [document]:
        if not isinstance(part, dict):
            raise DataError(f"{place} must hold records; got {cell[:40]!r}.")
        for question, value in part.items():
            if isinstance(value, dict):  # a box per option, or {"label": ...} as crowd-classifier writes
                on = [key for key, state in value.items() if state is True]
                value = on or [state for state in value.values() if state is not False]
            yield question, value


MTURK = Marketplace(
    "Mechanical Turk",
    task="HITId",
    worker="WorkerId",
    status="AssignmentStatus",
    accepted=("", "submitted", "approved"),
    inputs="Input.",
    answers="Answer.",
    in_json="Answer.taskAnswers",
)
TOLOKA = Marketplace(
    "Toloka",
    task="ASSIGNMENT:task_id",
    worker="ASSIGNMENT:worker_id",
    status="ASSIGNMENT:status",
    accepted=("", "approved", "accepted", "submitted"),
    inputs="INPUT:",
    answers="OUTPUT:",
)
