"""Fields of records that a tool wrote -> checked values; questions, and several answers of one annotator to one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from crowdwise._text import count
from crowdwise.exceptions import DataError, LabelError
from crowdwise.formats.answers import Answers
from crowdwise.formats.names import shell_word
from crowdwise.tables.json_rows import as_text

Record = dict[str, Any]
# A record with its place in words, such as "tasks.json, record 3".
Placed = tuple[str, Record]
# Between several choices that are one answer.
SEVERAL = "|"


def list_in(place: str, record: Record, key: str) -> list[Any]:
    """A field that must be a list; one that is absent or null is an empty one."""
    value = record.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise DataError(f"{place}: {key!r} must be a list; got {as_text(value)[:40]!r}.")
    return value


def record_in(place: str, record: Record, key: str) -> Record:
    """A field that must be a record; one that is absent or null is an empty one."""
    value = record.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise DataError(f"{place}: {key!r} must be a record, {{...}}; got {as_text(value)[:40]!r}.")
    return value


def one_label(chosen: Iterable[Any]) -> str:
    """One label for the choices of one answer: several are a class of their own, in any order; none is an empty text.

    Examples
    --------
    >>> from crowdwise.formats.fields import one_label
    >>> one_label(["b", "a"]), one_label([3]), one_label([])
    ('a|b', '3', '')
    """
    return SEVERAL.join(sorted({text for text in map(as_text, chosen) if text}))


def choose_question(name: str, questions: Iterable[str], wanted: str | None) -> str:
    """The question whose answers are the labels: the one wanted, or the only one."""
    found = list(dict.fromkeys(questions))
    if wanted is not None:
        if wanted in found:
            return wanted
        raise LabelError(f"{name} has no question {wanted!r}; its questions are {', '.join(found) or '(none)'}.")
    if not found:
        raise LabelError(f"{name}: there is no question in it that was answered with a class or a rating.")
    if len(found) > 1:
        raise LabelError(
            f"{name} has {len(found)} questions: {', '.join(found)}. Pick one: --question {shell_word(found[0])} "
            f"(in Python: question={found[0]!r})."
        )
    return found[0]


@dataclass(frozen=True)
class Given:
    """One answer of one annotator to one question; its time is a text that sorts."""

    question: str
    example: str
    annotator: str
    label: str
    time: str = ""


@dataclass
class Collected:
    """All answers to all questions, and those marked as right, before one question is chosen."""

    given: list[Given] = field(default_factory=list)
    truth: list[Given] = field(default_factory=list)

    def choose(self, name: str, wanted: str | None, answers: Answers) -> None:
        """Hand the answers to one question over, the newest of each annotator."""
        question = choose_question(name, (one.question for one in (*self.given, *self.truth)), wanted)
        if any(one.question != question for one in (*self.given, *self.truth)):
            answers.notes.append(f"question: {question}")
        newest: dict[tuple[str, str], Given] = {}
        for one in self.given:
            if one.question == question:
                before = newest.get((one.example, one.annotator))
                if before is not None:
                    answers.left_out["earlier answers of the same annotator to the same example"] += 1
                if before is None or one.time >= before.time:
                    newest[one.example, one.annotator] = one
        for one in newest.values():
            answers.add(one.example, one.annotator, one.label)
        for one in sorted(self.truth, key=lambda one: one.time):
            if one.question == question and one.label:
                answers.truth[one.example] = one.label
        several = [one.label for one in newest.values() if SEVERAL in one.label]
        if several:
            answers.notes.append(
                f"{count(len(several), 'answer is', 'answers are')} several choices at once; each combination is a "
                f"class, such as {several[0]!r}."
            )
