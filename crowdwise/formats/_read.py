"""A file of labels, whatever made it -> a `LabelFile`; the format is guessed and noted."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from crowdwise._text import some_names
from crowdwise.exceptions import DataError, LabelError
from crowdwise.formats._answers import MISSING, WIDE, Answers, LabelFile, OnDuplicate, ReadOptions
from crowdwise.formats._doccano import is_doccano, read_doccano
from crowdwise.formats._label_studio import LABEL_STUDIO, LABEL_STUDIO_FLAT
from crowdwise.formats._listed import ask_for_the_order, is_listed, is_mapping, read_listed, read_mapping
from crowdwise.formats._marketplaces import MTURK, TOLOKA
from crowdwise.formats._plain import read_plain
from crowdwise.formats._tools import ARGILLA, INSPECT, LANGFUSE, MLFLOW, PHOENIX, PRODIGY
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.scale import LabelScale, ScaleName
from crowdwise.tables import (
    Placed,
    Source,
    check_encoding,
    encoding_of,
    is_document,
    json_records,
    open_table,
    parse_document,
)

# Tools that write records. The first that knows a file is taken.
_RECORDS = {
    "label-studio": LABEL_STUDIO,
    "prodigy": PRODIGY,
    "argilla": ARGILLA,
    "inspect": INSPECT,
    "langfuse": LANGFUSE,
    "mlflow": MLFLOW,
    "phoenix": PHOENIX,
}
# Tools that write tables, known by their headers.
_TABLES = {
    "mturk": MTURK,
    "toloka": TOLOKA,
    "label-studio": LABEL_STUDIO_FLAT,
    "langfuse": LANGFUSE,
    "phoenix": PHOENIX,
}
_LISTED = "hugging-face"
_MAPPINGS = {"peerannot": ("peerannot", True), "alttest": ("AltTest", False)}
_PLAIN = ("table", "wide", "crowd-kit")
FORMATS = tuple(sorted({*_PLAIN, *_TABLES, *_RECORDS, *_MAPPINGS, _LISTED, "doccano"}))


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
    abstain: Any = (),
    on_duplicate: OnDuplicate = "error",
    scale: ScaleName = "nominal",
    classes: Sequence[Any] | None = None,
    strip: bool = False,
    encoding: str | None = None,
    delimiter: str | None = None,
    texts: bool | str = True,
    on_rows: Callable[[int], object] | None = None,
) -> LabelFile:
    """Labels from a file, with the texts and known answers that come along, and what was guessed.

    Parameters
    ----------
    path : str or path
        The file; "-" is standard input.
    format : str, default=None
        One of `FORMATS`; by default it is guessed.
    example : str, default=None
        Column with the example's identifier; by default the one with a usual name ("task", "item", ...).
    annotator : str or sequence of str, default=None
        Column with the annotator's name ("worker", "rater", ...); the columns of the annotators in a wide table.
    label : str, default=None
        Column with the label ("label", "rating", "answer", ...).
    wide : bool, default=None
        Whether the table has a column per annotator; by default recognised by their names.
    question : str, default=None
        Which question, if annotators answered several per example.
    missing : str or collection of str, default=MISSING
        Labels that mean "no label"; empty ones always do.
    abstain : str or collection of str, default=()
        Answers such as "Unsure" that are no labels; they are left out and counted, see `CrowdLabels.from_table`.
    on_duplicate : {"error", "first", "last", "runs"}, default="error"
        What to do when an annotator gave one example two different labels. "runs": each is a run of the same judge (a
        seed, an order of a pair), and the runs of a judge share one vote.
    scale : {"nominal", "ordinal", "interval"}, default="nominal"
        Classes; classes with an order, that of numbers or of `classes`; or real numbers.
    classes : sequence, default=None
        Every class there is, in this order; a label outside them is an error. By default the labels found, sorted.
    strip : bool, default=False
        Whether labels that differ in spaces at their ends, capitals or the coding of accents only are one; the most
        frequent spelling is kept.
    encoding : str, default=None
        Such as "latin-1"; by default UTF-8, or UTF-16 if the file begins with its mark.
    delimiter : str, default=None
        Of a text table; guessed by default.
    texts : bool or str, default=True
        Whether to keep the texts, or the name of their column in a table.
    on_rows : callable, default=None
        Is given the number of labels of a plain table that have been read, again and again.

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
    if format is not None and format not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}; got {format!r}.")
    options = ReadOptions(
        example=example,
        annotator=annotator if annotator is None or isinstance(annotator, str) else tuple(annotator),
        label=label,
        wide={"wide": True, "crowd-kit": False}.get(format or "", wide),
        question=question,
        missing=_as_texts(missing),
        abstain=_as_texts(abstain),
        on_duplicate=on_duplicate,
        scale=LabelScale.of(scale),
        classes=None if classes is None else _as_texts(classes),
        strip=strip,
        texts=texts,
        on_rows=on_rows,
    )
    source = Source(os.fspath(path))
    answers = Answers(source.name, options)
    file = answers.label_file(_take(source, format, answers, encoding, delimiter))
    if format is None and file.format not in ("table", WIDE):
        file = replace(file, notes=(f"format: {file.format}", *file.notes))
    return file if texts else replace(file, texts=None)


def _as_texts(values: Any) -> tuple[str, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        return (str(values),)
    return tuple(map(str, values))


def _take(source: Source, format: str | None, answers: Answers, encoding: str | None, delimiter: str | None) -> str:
    """Take the answers of a file; what it was taken for."""
    if format == "doccano" or (format is None and _is_archive(source)):
        return read_doccano(source, answers)
    used = encoding_of(source.head) if encoding is None else check_encoding(encoding)
    is_json = source.head.decode(used, "ignore").lstrip()[:1] in ("{", "[")
    if not is_json or delimiter is not None or format in _PLAIN:
        return _take_table(source, format, answers, encoding, delimiter)
    if is_document(source, used):
        document = parse_document(source, used)
        if format in _MAPPINGS:
            title, examples_outside = _MAPPINGS[format]
            read_mapping(document, answers, examples_outside=examples_outside)
            return title
        records = _records_of(source.name, document, format)
    else:
        records = ((f"{source.name}, line {line}", record) for line, record in json_records(source, used))
    return _take_records(source, records, format, answers, used)


def _is_archive(source: Source) -> bool:
    return Path(source.path).is_dir() or (source.head.startswith(b"PK\x03\x04") and not source.is_spreadsheet)


def _take_table(
    source: Source, format: str | None, answers: Answers, encoding: str | None, delimiter: str | None = None
) -> str:
    table = open_table(source, encoding, delimiter)
    for name, tool in _TABLES.items():
        is_its = tool.is_its(dict.fromkeys(table.header))
        if format == name and not is_its:
            raise LabelError(f"{source.name} is not a table of {name}: its columns are {some_names(table.header)}.")
        if is_its and format in (None, name):
            tool.read(table.records(), answers)
            return tool.title
    first = next(table.records(), None) if format is None else None
    if format == _LISTED or (first is not None and is_listed(first[1])):
        return read_listed(table.records(), answers)
    if format not in (None, *_PLAIN):
        raise DataError(f"{source.name} is a table, and JSON was expected: {format} writes no other.")
    return read_plain(table, answers)


def _records_of(name: str, document: Any, format: str | None) -> Iterator[Placed]:
    """The records of a whole JSON document: a list of records, one record, or records in a record."""
    if isinstance(document, dict):
        inner = list(document.values())
        if all(isinstance(record, dict) for record in inner) and any(map(is_listed, inner)):
            document = [{"id": key, **record} for key, record in document.items()]
        elif format is None and is_mapping(document):
            raise ask_for_the_order(name)
    records = document if isinstance(document, list) else [document]
    for number, record in enumerate(records, start=1):
        if not isinstance(record, dict):
            raise DataError(f"{name}, record {number}: a record with names and values was expected, {{...}}.")
    return ((f"{name}, record {number}", record) for number, record in enumerate(records, start=1))


def _take_records(
    source: Source, records: Iterator[Placed], format: str | None, answers: Answers, encoding: str
) -> str:
    first = next(records, None)
    if first is None:
        raise DataError(f"{source.name}: it contains no records.")
    records = chain([first], records)
    for name, tool in _RECORDS.items():
        is_flat = name == "label-studio" and LABEL_STUDIO_FLAT.is_its(first[1])  # it writes tables too
        if not is_flat and (format == name or (format is None and tool.is_its(first[1]))):
            tool.read(records, answers)
            return tool.title
    if format == _LISTED or (format is None and is_listed(first[1])):
        return read_listed(records, answers)
    if format is None and is_doccano(first[1]):
        return read_doccano(source, answers)
    return _take_table(source, format, answers, encoding)


def read_labels(
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    example: str | None = None,
    annotator: str | Sequence[str] | None = None,
    label: str | None = None,
    wide: bool | None = None,
    question: str | None = None,
    missing: Any = MISSING,
    abstain: Any = (),
    on_duplicate: OnDuplicate = "error",
    scale: ScaleName = "nominal",
    classes: Sequence[Any] | None = None,
    strip: bool = False,
    encoding: str | None = None,
    delimiter: str | None = None,
) -> CrowdLabels:
    """Labels from a file: a table of any kind, or the export of a labelling tool.

    Identifiers and classes that are all whole numbers become integers; all else stays text as in the file. Texts, known
    answers and what was guessed are in what `crowdwise.formats.read` returns.

    Parameters
    ----------
    path : str or path
        The file; "-" is standard input.
    format : str, default=None
        One of `crowdwise.formats.FORMATS`; guessed by default.
    example, annotator, label : str, default=None
        Columns with the example's identifier, the annotator's name and the label; by default those with usual names.
        In a wide table, `annotator` may be a sequence of columns.
    wide : bool, default=None
        Whether the table has a column per annotator; by default recognised by their names.
    question : str, default=None
        Which question, if annotators answered several per example.
    missing : str or collection of str, default=MISSING
        Labels that mean "no label"; empty ones always do.
    abstain : str or collection of str, default=()
        Answers such as "Unsure" that are no labels; they are left out and counted.
    on_duplicate : {"error", "first", "last", "runs"}, default="error"
        What to do when an annotator gave one example two different labels. "runs": each is a run of the same judge (a
        seed, an order of a pair), and the runs of a judge share one vote.
    scale : {"nominal", "ordinal", "interval"}, default="nominal"
        Classes; classes with an order, that of numbers or of `classes`; or real numbers.
    classes : sequence, default=None
        All classes, in this order; by default the labels found, sorted.
    strip : bool, default=False
        Whether labels that differ in spaces at their ends, capitals or the coding of accents only are one.
    encoding : str, default=None
        Such as "latin-1"; by default UTF-8, or UTF-16 if the file begins with its mark.
    delimiter : str, default=None
        Of a text table; guessed by default.

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
      labels per example: 1 to 2, mean 1.5; missing: 25.0%
      classes: 0, 1
    """
    return read(**locals(), texts=False).labels  # all parameters are those of `read`
