"""LabelFile: what a file of labels holds, and what was said aloud when it was read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from crowdwise._text import count
from crowdwise.exceptions import LabelError
from crowdwise.formats.answers import MISSING, Answers
from crowdwise.labels.build import Kind
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.mistakes import perhaps

WIDE = "wide table"  # the format of a table with a column per annotator


@dataclass(frozen=True)
class LabelFile:
    """Labels from a file, and what else was in it.

    Parameters
    ----------
    labels : CrowdLabels
        Who said what about which example.
    texts : mapping from example to str, or None
        What was labelled, where the file has it.
    truth : mapping from example to label, or None
        Answers that the file marks as the right ones; they are not among the labels.
    format : str
        What the file was taken for.
    notes : tuple of str
        What was guessed and what was left out, in plain sentences.
    """

    labels: CrowdLabels
    texts: Mapping[Any, str] | None
    truth: Mapping[Any, Any] | None
    format: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Wishes:
    """What the caller said about a file, as `read` takes it; None where nothing was said."""

    example: str | None
    annotator: str | tuple[str, ...] | None
    label: str | None
    wide: bool | None
    question: str | None
    missing: tuple[str, ...]
    abstain: tuple[str, ...]
    on_duplicate: Literal["error", "first", "last"]
    kind: Kind
    classes: tuple[str, ...] | None
    strip: bool
    texts: bool
    text: str | None
    on_rows: Callable[[int], object] | None


def make_label_file(name: str, format: str, answers: Answers, wishes: Wishes) -> LabelFile:
    """The record, from all that was read; `format` is what the file was taken for."""
    notes = [*answers.notes, *_left_out(answers, "cells" if format == WIDE else "rows"), *_never_given(answers, wishes)]
    if len(answers) == 0:
        raise LabelError("; ".join([f"{name}: there is no label in it (taken for: {format})", *notes]) + ".")
    labels = answers.labels(
        on_duplicate=wishes.on_duplicate, kind=wishes.kind, abstain=wishes.abstain, classes=wishes.classes
    )
    if labels.n_abstentions:
        notes.append(f"{count(labels.n_abstentions, 'abstention')} (counted, not used as labels)")
    return LabelFile(labels, answers.texts_by_example(), answers.truth_by_example(), format, tuple(notes))


def _left_out(answers: Answers, rows: str) -> list[str]:
    """What was left out, how often, in one sentence."""
    parts = [f"{what} ({n:,})" for what, n in answers.left_out.items() if n]
    if answers.n_missing:
        kinds = ", ".join(f"{n:,} {repr(text) if text else 'empty'}" for text, n in answers.n_missing.items())
        parts.append(f"{rows} without a label ({kinds})")
    return [f"left out: {', '.join(parts)}"] if parts else []


def _never_given(answers: Answers, wishes: Wishes) -> list[str]:
    """What was said to be no label, and is none in this file: perhaps it is spelt otherwise."""
    absent = [text for text in wishes.missing if text and text not in (*MISSING, *answers.n_missing)]
    absent += [text for text in wishes.abstain if not answers.has_label(text)]
    shown = ", ".join(repr(text) + perhaps(list(map(repr, answers.spelt_like(text)))) for text in absent)
    return [f"never given, though said to be no label: {shown}"] if absent else []
