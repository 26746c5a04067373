"""Results of marketplaces -> answers: Mechanical Turk's batch results (CSV) and Toloka's results (TSV).

Tasks with the same input are one example. Rejected assignments are left out. A group of check boxes, one TRUE or FALSE
column per option, is one question; so is every key of the JSON in Mechanical Turk's ``Answer.taskAnswers``. Toloka's
golden answer is the truth of its task.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from crowdwise._text import count
from crowdwise.exceptions import DataError, LabelError
from crowdwise.formats._answers import Answer, Answers
from crowdwise.formats._names import TEXT_WORDS, find_example, plain_name
from crowdwise.formats._tools import Tool
from crowdwise.tables import Placed, Record


@dataclass(frozen=True)
class _Marketplace:
    """How a marketplace names its columns; those of inputs, answers and known answers begin with the same."""

    task: str
    worker: str
    status: str
    accepted: tuple[str, ...]  # of the status, in small letters
    inputs: str
    answers: str
    golden: str = "GOLDEN:"
    in_json: str = ""  # the column with answers in JSON

    def tool(self, title: str) -> Tool:
        """What reads its files."""
        return Tool(
            title,
            self._is_its,
            self._answers_in,
            example=("example",),
            texts=lambda place, row: {"text": row["text"]},
            parts=self._rows,
            prefix=self.answers,
        )

    def _is_its(self, row: Record) -> bool:
        return (
            self.worker in row
            and bool(_named(row, self.answers))
            and (self.task in row or bool(_named(row, self.inputs)))
        )

    def _rows(self, records: Iterable[Placed], answers: Answers) -> Iterator[Placed]:
        """The rows that hold something, which are not those between two suites of tasks, with what is known of all."""
        rows = [(place, row) for place, row in records if any(row.values())]
        if not rows:
            return
        header, cells = rows[0][1], [row for _, row in rows]
        text, questions = self._text(header, answers.options.text), self._questions(cells)
        for (place, row), example in zip(rows, self._examples(cells, answers), strict=True):
            if row[self.worker] and example:
                yield place, {**row, "example": example, "text": text and row[text], "questions": questions}
            elif example and not any(row[name] for name in _named(header, self.answers)):
                answers.left_out["tasks without an answer"] += 1
            else:
                raise LabelError(f"{place}: every answer needs its task and its worker, {self.worker!r}.")

    def _answers_in(self, place: str, row: Record, answers: Answers) -> Iterator[Answer]:
        for name in filter(row.get, _named(row, self.golden)):
            yield Answer(name.removeprefix(self.golden), "", row[name], kind="truth")
        if (status := row.get(self.status, "").strip().lower()) not in self.accepted or row.get("Reject"):
            state = status if status not in self.accepted else "rejected"
            answers.left_out[f"answers of {state[:40]} assignments"] += 1
            return
        for question, boxes in row["questions"].items():
            name = self.answers + question
            value = [box for box in boxes if row[f"{name}.{box}"].lower() == "true"] if boxes else row[name]
            yield Answer(question, row[self.worker], value)
        if row.get(self.in_json, "").strip():
            for question, value in _answers_in_json(f"{place}: {self.in_json}", row[self.in_json]):
                yield Answer(question, row[self.worker], value)

    def _text(self, header: Record, named: str | None) -> str | None:
        if named is not None:
            return next((name for name in (named, self.inputs + named) if name in header), None)
        inputs = _named(header, self.inputs)
        texts = [name for name in inputs if plain_name(name.removeprefix(self.inputs)) in TEXT_WORDS]
        return texts[0] if texts else inputs[0] if len(inputs) == 1 else None

    def _examples(self, rows: Sequence[Record], answers: Answers) -> list[str]:
        """The example of every row: a column that was named, an input that is an id, else the first such task."""
        inputs = _named(rows[0], self.inputs)
        ids = [name for name in inputs if plain_name(name).endswith("_id")]
        named = answers.options.example or (ids[0] if len(ids) == 1 else None)
        answers.notes.append(f"columns: {named or self.task} -> example")
        if named is not None:
            find_example(answers.name, list(rows[0]), named)
            return [row[named] for row in rows]
        first: dict[tuple[str, ...], str] = {}
        examples, merged = [], set()
        for row in rows:
            task, shown = row.get(self.task, ""), tuple(row[name] for name in inputs)
            examples.append(first.setdefault(shown, task or " / ".join(shown)) if any(shown) else task)
            if task and task != examples[-1]:
                merged.add(task)
        if merged:
            answers.notes.append(f"{count(len(merged), 'task')} with the same input as another: the same example.")
        return examples

    def _questions(self, rows: Sequence[Record]) -> dict[str, list[str]]:
        """The check boxes of every question; a question that is one column has none."""
        names = [name for name in _named(rows[0], self.answers) if name != self.in_json]
        boxes: dict[str, list[str]] = {}
        for name in names:
            group, _, option = name.removeprefix(self.answers).rpartition(".")
            if group and {row[name].lower() for row in rows} <= {"true", "false", ""}:
                boxes.setdefault(group, []).append(option)
        groups = {question: options for question, options in boxes.items() if len(options) > 1}
        boxed = {f"{self.answers}{question}.{option}" for question, options in groups.items() for option in options}
        return groups | {name.removeprefix(self.answers): [] for name in names if name not in boxed}


def _named(row: Record, prefix: str) -> list[str]:
    """The columns whose names begin so."""
    return [name for name in row if name.startswith(prefix)]


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


MTURK = _Marketplace(
    task="HITId",
    worker="WorkerId",
    status="AssignmentStatus",
    accepted=("", "submitted", "approved"),
    inputs="Input.",
    answers="Answer.",
    in_json="Answer.taskAnswers",
).tool("Mechanical Turk")
TOLOKA = _Marketplace(
    task="ASSIGNMENT:task_id",
    worker="ASSIGNMENT:worker_id",
    status="ASSIGNMENT:status",
    accepted=("", "approved", "accepted", "submitted"),
    inputs="INPUT:",
    answers="OUTPUT:",
).tool("Toloka")
