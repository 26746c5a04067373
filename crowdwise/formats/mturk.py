"""Mechanical Turk's batch results (CSV) -> labels.

HITs with the same input are one example. Rejected assignments are left out. A group of check boxes, one TRUE or FALSE
column per option, is one question; so is every key of the JSON in ``Answer.taskAnswers``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from crowdwise._text import count
from crowdwise.exceptions import DataError
from crowdwise.formats.answers import Answers
from crowdwise.formats.fields import Collected, Given, one_label
from crowdwise.formats.label_file import LabelFile, Wishes, make_label_file
from crowdwise.formats.names import TEXT_WORDS, plain_name
from crowdwise.formats.same_inputs import SameInputs
from crowdwise.tables import Table

NAME = "Mechanical Turk"
_ANSWER, _INPUT, _JSON = "Answer.", "Input.", "Answer.taskAnswers"
_TRUTH_VALUES = {"true", "false", ""}


def is_mturk(header: Sequence[str]) -> bool:
    """Whether a header is that of batch results."""
    return {"HITId", "WorkerId"} <= set(header) and any(name.startswith(_ANSWER) for name in header)


def read_mturk(table: Table, wishes: Wishes) -> LabelFile:
    """Labels from batch results."""
    columns = table.columns()
    for needed in ("HITId", "WorkerId"):
        table.position(needed)
    answers, collected = Answers(wishes.missing, strip=wishes.strip), Collected()
    examples = _examples(table, columns, wishes, answers)
    groups = _questions(columns)
    text = _text_column(table.header, wishes.text)
    for i, (example, worker) in enumerate(zip(examples, columns["WorkerId"], strict=True)):
        if not worker:
            answers.left_out["HITs without an answer"] += 1
        elif _cell(columns, "AssignmentStatus", i).lower() == "rejected" or _cell(columns, "Reject", i):
            answers.left_out["rejected assignments"] += 1
        else:
            for question, label in _answered(f"{table.source.name}, row {i + 1} after the header", groups, columns, i):
                collected.given.append(Given(question, example, worker, label, f"{i:020}"))
            if text:
                answers.texts.setdefault(example, columns[text][i])
    wanted = wishes.question or wishes.label
    collected.choose(table.source.name, wanted and wanted.removeprefix(_ANSWER), answers)
    return make_label_file(table.source.name, NAME, answers, wishes)


def _cell(columns: dict[str, list[str]], name: str, i: int) -> str:
    return columns[name][i].strip() if name in columns else ""


def _text_column(header: Sequence[str], given: str | None) -> str | None:
    inputs = [name for name in header if name.startswith(_INPUT)]
    if given is not None:
        return next((name for name in (given, _INPUT + given) if name in header), None)
    named = [name for name in inputs if plain_name(name.removeprefix(_INPUT)) in TEXT_WORDS]
    return named[0] if named else inputs[0] if len(inputs) == 1 else None


def _examples(table: Table, columns: dict[str, list[str]], wishes: Wishes, answers: Answers) -> list[str]:
    """The example of every row: a column that was named, an input that is an id, else the HIT."""
    inputs = [name for name in table.header if name.startswith(_INPUT)]
    ids = [name for name in inputs if plain_name(name).endswith("_id")]
    named = wishes.example or (ids[0] if len(ids) == 1 else None)
    if named is not None:
        table.position(named)
        answers.notes.append(f"columns: {named} -> example")
        return columns[named]
    same = SameInputs()
    examples = [same.example(hit, [columns[name][i] for name in inputs]) for i, hit in enumerate(columns["HITId"])]
    answers.notes.append("columns: HITId -> example")
    if same.n_merged:
        answers.notes.append(f"{count(same.n_merged, 'HIT')} with the input of another one: the same example.")
    return examples


def _questions(columns: dict[str, list[str]]) -> dict[str, dict[str, list[str]]]:
    """The columns of every question, by option; a question that is one column has no options."""
    names = [name for name in columns if name.startswith(_ANSWER) and name != _JSON]
    boxes: dict[str, dict[str, list[str]]] = {}
    for name in names:
        group, _, option = name.rpartition(".")
        if group.startswith(_ANSWER) and {cell.lower() for cell in columns[name]} <= _TRUTH_VALUES:
            boxes.setdefault(group.removeprefix(_ANSWER), {})[option] = columns[name]
    groups = {question: options for question, options in boxes.items() if len(options) > 1}
    boxed = {f"{_ANSWER}{question}.{option}" for question, options in groups.items() for option in options}
    return groups | {name.removeprefix(_ANSWER): {} for name in names if name not in boxed}


def _answered(
    place: str, groups: dict[str, dict[str, list[str]]], columns: dict[str, list[str]], i: int
) -> Iterator[tuple[str, str]]:
    for question, options in groups.items():
        if options:
            yield question, one_label(option for option, cells in options.items() if cells[i].lower() == "true")
        else:
            yield question, columns[_ANSWER + question][i]
    if _cell(columns, _JSON, i):
        yield from _answered_in_json(place, columns[_JSON][i])


def _answered_in_json(place: str, cell: str) -> Iterator[tuple[str, str]]:
    try:
        document: Any = json.loads(cell)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}: {_JSON} is not JSON ({error}).") from None
    for part in document if isinstance(document, list) else [document]:
        if not isinstance(part, dict):
            raise DataError(f"{place}: {_JSON} must hold records; got {cell[:40]!r}.")
        for question, value in part.items():
            if isinstance(value, dict):  # a box per option, or {"label": ...} as crowd-classifier writes
                chosen = [key for key, on in value.items() if on is True] or [
                    v for v in value.values() if v is not False
                ]
                yield question, one_label(chosen)
            else:
                yield question, one_label(value if isinstance(value, list) else [value])
