"""LabelFile: what a file of labels holds, and what was said aloud when it was read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crowdwise.exceptions import LabelError
from crowdwise.formats.answers import Answers
from crowdwise.labels.build import Kind
from crowdwise.labels.crowd_labels import CrowdLabels


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
    """What the caller said about a file; None where nothing was said.

    Parameters
    ----------
    example, annotator, label : str or None
        Columns of a table. For a wide table, `annotator` may be a sequence of columns.
    wide : bool or None
        Whether a table has a column per annotator.
    question : str or None
        Which question of several.
    missing : tuple of str
        Labels that mean "none".
    on_duplicate : {"error", "first", "last"}
        See `CrowdLabels.from_table`.
    kind : {"class", "rating"}
        Whether labels are classes or real numbers.
    """

    example: str | None
    annotator: str | tuple[str, ...] | None
    label: str | None
    wide: bool | None
    question: str | None
    missing: tuple[str, ...]
    on_duplicate: str
    kind: Kind


def make_label_file(name: str, format: str, answers: Answers, notes: list[str], wishes: Wishes) -> LabelFile:
    """The record, from all that was read.

    Parameters
    ----------
    name : str
        Of the file, for messages.
    format : str
        What the file was taken for.
    answers : Answers
        All of them.
    notes : list of str
        What to say.
    wishes : Wishes
        What the caller said.

    Returns
    -------
    file : LabelFile
    """
    if len(answers) == 0:
        left_out = f" {' '.join(notes)}" if notes else ""
        raise LabelError(f"{name}: there is no label in it (taken for: {format}).{left_out}")
    if answers.n_missing:
        total = sum(answers.n_missing.values())
        kinds = ", ".join(f"{n:,} {f'{text!r}' if text else 'empty'}" for text, n in answers.n_missing.items())
        notes.append(f"{total:,} rows without a label are left out ({kinds}).")
    labels = answers.labels(on_duplicate=wishes.on_duplicate, kind=wishes.kind)
    return LabelFile(labels, answers.texts_by_example(), answers.truth_by_example(), format, tuple(notes))
