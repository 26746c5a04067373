"""A file of labels, whatever made it -> a `LabelFile`; the format is guessed and said aloud."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from crowdwise.formats.answers import MISSING
from crowdwise.formats.label_file import LabelFile, Wishes
from crowdwise.formats.plain import read_plain
from crowdwise.labels.build import Kind
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.tables import open_table


def read(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    example: str | None = None,
    annotator: str | Sequence[str] | None = None,
    label: str | None = None,
    wide: bool | None = None,
    question: str | None = None,
    missing: Any = MISSING,
    on_duplicate: Literal["error", "first", "last"] = "error",
    kind: Kind = "class",
    encoding: str | None = None,
    delimiter: str | None = None,
) -> LabelFile:
    """Labels from a file, with the texts and known answers that come along, and what was guessed.

    Parameters
    ----------
    path : str or path
        The file; "-" is standard input.
    format : str, default=None
        One of `FORMATS`; by default it is guessed.
    example : str, default=None
        Column with the example's identifier; by default the one whose name says so ("task", "item", ...).
    annotator : str or sequence of str, default=None
        Column with the annotator's name ("worker", "rater", ...); the columns of the annotators in a wide table.
    label : str, default=None
        Column with the label ("label", "rating", "answer", ...).
    wide : bool, default=None
        Whether the table has a column per annotator; by default it is seen by their names.
    question : str, default=None
        Which question, if annotators answered several per example.
    missing : str or collection of str, default=MISSING
        Labels that mean "no label"; empty ones always do.
    on_duplicate : {"error", "first", "last"}, default="error"
        What to do when an annotator gave one example two different labels.
    kind : {"class", "rating"}, default="class"
        Whether labels are classes or real numbers.
    encoding : str, default=None
        Such as "latin-1"; by default UTF-8, or UTF-16 where the file begins with its mark.
    delimiter : str, default=None
        Of a table of text; by default it is guessed.

    Returns
    -------
    file : LabelFile

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from crowdwise import formats
    >>> path = Path(tempfile.mkdtemp()) / "labels.csv"
    >>> _ = path.write_text("task,worker,label\\na,ann,yes\\na,bob,no\\n")
    >>> file = formats.read(path)
    >>> file.notes
    ('columns: task -> example, worker -> annotator, label -> label',)
    >>> file.labels.n_labels
    2
    """
    wishes = Wishes(
        example=example,
        annotator=annotator if annotator is None or isinstance(annotator, str) else tuple(annotator),
        label=label,
        wide=wide,
        question=question,
        missing=_as_texts(missing),
        on_duplicate=on_duplicate,
        kind=kind,
    )
    return read_plain(open_table(path, encoding, delimiter), wishes, with_texts=True)


def _as_texts(missing: Any) -> tuple[str, ...]:
    if isinstance(missing, str) or not isinstance(missing, Iterable):
        return (str(missing),)
    return tuple(map(str, missing))


def read_labels(path: str | os.PathLike[str], **options: Any) -> CrowdLabels:
    """Labels from a file: a table of any kind, or the export of a labelling tool.

    Identifiers and classes that are all whole numbers become integers; all else stays text as in the file.

    Parameters
    ----------
    path : str or path
        The file; "-" is standard input.
    **options : keywords
        Those of `crowdwise.formats.read`: which columns, which format, which question.

    Returns
    -------
    labels : CrowdLabels

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import crowdwise
    >>> path = Path(tempfile.mkdtemp()) / "labels.csv"
    >>> _ = path.write_text("item,rater,rating\\n7,ann,1\\n7,bob,0\\n8,ann,1\\n")
    >>> crowdwise.read_labels(path)
    CrowdLabels: 2 examples, 2 annotators, 3 labels of 2 classes
      labels per example: 1 to 2, mean 1.5; missing: 25.0 %
      classes: 0, 1
    """
    return read(path, **options).labels
