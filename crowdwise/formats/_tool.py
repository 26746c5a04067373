"""Records of a labelling tool -> answers: what is the same for all tools, and what describes one of them.

A tool is a `Tool`: how its records are known, where a record has the id and the text of its example, and the answers
in it. Which question is asked for, which answer of an annotator is the newest and what is left out is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from crowdwise.exceptions import DataError
from crowdwise.formats._answers import Answer, Answers
from crowdwise.formats._names import TEXT_WORDS
from crowdwise.tables import Placed, Record, Table, as_text


def first_text(record: Record, names: Iterable[str]) -> str:
    """The first of some fields that is filled, as text."""
    return next((text for name in names if (text := as_text(record.get(name)))), "")


def _alone(place: str, record: Record) -> Iterable[Placed]:
    return [(place, record)]


@dataclass(frozen=True)
class Tool:
    """How a tool writes answers."""

    title: str
    is_its: Callable[[Record], bool]
    given: Callable[[str, Record, Answers], Iterable[Answer]]  # the answers in a record, with its place in words
    example: tuple[str, ...] = ("id",)  # fields with the id of the example; its number if none is filled
    texts: Callable[[str, Record], Record] = lambda place, record: {}  # what may hold the text that was labelled
    parts: Callable[[str, Record], Iterable[Placed]] = _alone  # the records in one of the file

    def read(self, records: Iterable[Placed], answers: Answers) -> None:
        """Take all answers."""
        for number, (place, record) in enumerate(part for one in records for part in self.parts(*one)):
            example = first_text(record, self.example) or str(number)
            if text := _text(self.texts(place, record), answers.options.text):
                answers.texts.setdefault(example, text)
            for given in self.given(place, record, answers):
                answers.take(example, given)
        answers.choose_question(answers.options.question)

    def is_its_header(self, header: Sequence[str]) -> bool:
        """Whether a table has such records as its rows."""
        return self.is_its(dict.fromkeys(header))

    def read_table(self, table: Table, answers: Answers) -> None:
        """Take the answers of a table."""
        self.read(table.records(), answers)


def _text(fields: Record, wanted: str | None) -> str:
    words = {key: value for key, value in fields.items() if isinstance(value, str)}
    named = (words[key] for key in (wanted, *TEXT_WORDS) if key in words)
    return next(named, next(iter(words.values())) if len(words) == 1 else "")


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
