"""The seat of people: what to answer next, what they did, and files of all answers."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from crowdwise import formats
from crowdwise.exceptions import DataError
from crowdwise.reporting.fit import accuracy_of, estimate, named
from crowdwise.studio._schema import Problem
from crowdwise.studio._start import now
from crowdwise.studio._state import WHOLE_TEXT, Answer, Studio, class_names

# So many of the last answers can be edited, and so many on known answers measure a person.
_MOST_EDITABLE, _LEAST_CHECKED = 10, 10


def label(studio: Studio, person: str, rule: Any, check: float) -> Answer:
    """What to ask a person next, and what they did."""
    session = studio.session
    try:
        offered = session.next(person, rule=rule, check=check)
    except ValueError as error:
        raise Problem(409, str(error), "rule") from None
    history = session.done_by(person)
    last = {done.example: done for done in history}
    n_answers = sum(done.label is not None for done in last.values())
    checked = session.checked(person)
    return {
        "person": person,
        "version": session.version,
        "classes": class_names(session.labels.classes),
        "next": _shown(studio, session.position_of(offered[0])) if offered else None,
        "last": [
            _shown(studio, done.example) | {"code": None if done.label is None else session.code_of(done.label)}
            for done in history[::-1][:_MOST_EDITABLE]
        ],
        "progress": {
            "answers": n_answers,
            "skipped": len(last) - n_answers,
            "left": session.n_left(person),
            "checked": checked["checked"],
            "right": checked["right"],
            "accuracy": _accuracy(studio, person, checked),
        },
        "is_pending": session.is_pending,
    }


def _shown(studio: Studio, row: int) -> Answer:
    text = None if studio.texts is None or studio.texts[row] is None else str(studio.texts[row])[:WHOLE_TEXT]
    return {"row": row, "example": named(studio.session.labels.examples[row]), "text": text}


def _accuracy(studio: Studio, person: str, checked: dict[str, Any]) -> Answer:
    """On known answers if these are enough; else as the fit estimates it."""
    if checked["checked"] >= _LEAST_CHECKED:
        return estimate(checked["accuracy"], checked["low"], checked["high"])
    result = studio.session.result
    if result is None or person not in result.annotators.tolist():
        return accuracy_of(np.zeros(0))
    columns, position = result.annotator_columns(), result.annotators.tolist().index(person)
    return estimate(*(columns[f"accuracy{end}"][position] for end in ("", "_low", "_high")))


def answer(studio: Studio, person: str, row: int, code: int) -> Answer:
    """Count an answer."""
    session, example = studio.session, studio.example(row)
    classes = session.labels.classes
    assert classes is not None
    if code >= len(classes):
        raise Problem(422, f"there are {len(classes)} classes, from 0; got {code}.", "code")
    session.answer(example, person, classes[code : code + 1].tolist()[0])
    return _done(studio, row, person, code)


def skip(studio: Studio, person: str, row: int) -> Answer:
    """Count an example as skipped."""
    studio.session.skip(studio.example(row), person)
    return _done(studio, row)


def undo(studio: Studio, person: str) -> Answer:
    """Take back the last thing that a person did."""
    try:
        return _done(studio, studio.session.position_of(studio.session.undo(person)))
    except DataError as error:
        raise Problem(409, str(error), "person") from None


def _done(studio: Studio, row: int, person: str | None = None, code: int | None = None) -> Answer:
    session = studio.session
    known = session.known_answer(studio.example(row)) if person is not None and person not in session.experts else None
    right = None if known is None else session.code_of(known)
    checked = None if right is None else {"code": right, "is_right": right == code}
    return {"row": row, "version": session.version, "checked": checked}


def retune(studio: Studio) -> Answer:
    """Choose l2 and steepness anew."""
    studio.session.retune()
    return now(studio)


def export(studio: Studio, format: str) -> tuple[str, str, bytes]:
    """A file: its name, what it is, and its content."""
    session = studio.session
    result = session.result
    if format != "csv" and result is None:
        raise Problem(409, "there are no labels yet.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        if format == "csv":
            session.save(path)
            return "labels.csv", "text/csv", path.read_bytes()
        assert result is not None
        if format == "consensus":
            formats.write(result.consensus, path)
            return "consensus.csv", "text/csv", path.read_bytes()
        examples = result.examples.tolist()
        shown = examples if studio.texts is None else studio.texts
        texts = {example: str(text) for example, text in zip(examples, shown, strict=True)}
        formats.write(result.consensus, path, format=format, texts=texts)
        return "consensus.json", "application/json", path.read_bytes()
