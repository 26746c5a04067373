"""A file of labels, whatever made it -> a `LabelFile`; the format is guessed and said aloud."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from crowdwise._text import some_names
from crowdwise.exceptions import DataError, LabelError
from crowdwise.formats.answers import MISSING
from crowdwise.formats.argilla import is_argilla, read_argilla
from crowdwise.formats.doccano import is_doccano, read_doccano
from crowdwise.formats.fields import Placed
from crowdwise.formats.label_file import WIDE, LabelFile, Wishes
from crowdwise.formats.label_studio import is_label_studio, read_label_studio
from crowdwise.formats.label_studio_flat import is_label_studio_flat, read_label_studio_flat
from crowdwise.formats.listed import is_listed, read_listed
from crowdwise.formats.mapping import ask_for_the_order, is_mapping, read_mapping
from crowdwise.formats.mturk import is_mturk, read_mturk
from crowdwise.formats.plain import read_plain
from crowdwise.formats.prodigy import is_prodigy, read_prodigy
from crowdwise.formats.toloka import is_toloka, read_toloka
from crowdwise.labels.build import Kind
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.tables import Source, Table, open_table
from crowdwise.tables.json_rows import is_document, json_records, parse_document
from crowdwise.tables.lines import check_encoding, encoding_of

# Readers of tables and of records, and how each knows its own. The first that does is taken.
_TABLES = {
    "mturk": (is_mturk, read_mturk),
    "toloka": (is_toloka, read_toloka),
    "label-studio": (is_label_studio_flat, read_label_studio_flat),
}
_RECORDS = {
    "label-studio": (is_label_studio, read_label_studio),
    "prodigy": (is_prodigy, read_prodigy),
    "argilla": (is_argilla, read_argilla),
    "hugging-face": (is_listed, read_listed),
}
_MAPPINGS = {"peerannot": True, "alttest": False}
# So many records are looked at to see what they are.
_FEW = 100
_PLAIN = ("table", "wide", "crowd-kit")
FORMATS = tuple(sorted({*_PLAIN, *_TABLES, *_RECORDS, *_MAPPINGS, "doccano"}))


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
    on_duplicate: Literal["error", "first", "last"] = "error",
    kind: Kind = "class",
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
    abstain : str or collection of str, default=()
        Answers such as "Unsure" that are no labels; they are left out and counted, see `CrowdLabels.from_table`.
    on_duplicate : {"error", "first", "last"}, default="error"
        What to do when an annotator gave one example two different labels.
    kind : {"class", "rating"}, default="class"
        Whether labels are classes or real numbers.
    classes : sequence, default=None
        Every class there is, in this order; a label outside them is an error. By default the labels found, sorted.
    strip : bool, default=False
        Whether labels that differ in spaces at their ends, capitals or the coding of accents only are one; the most
        frequent spelling is kept.
    encoding : str, default=None
        Such as "latin-1"; by default UTF-8, or UTF-16 where the file begins with its mark.
    delimiter : str, default=None
        Of a table of text; by default it is guessed.
    texts : bool or str, default=True
        Whether to keep the texts, or the name of their column in a table.
    on_rows : callable, default=None
        Is told how many labels of a plain table have been read, again and again.

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
    wishes = Wishes(
        example=example,
        annotator=annotator if annotator is None or isinstance(annotator, str) else tuple(annotator),
        label=label,
        wide={"wide": True, "crowd-kit": False}.get(format or "", wide),
        question=question,
        missing=_as_texts(missing),
        abstain=_as_texts(abstain),
        on_duplicate=on_duplicate,
        kind=kind,
        classes=None if classes is None else _as_texts(classes),
        strip=strip,
        texts=bool(texts),
        text=texts if isinstance(texts, str) else None,
        on_rows=on_rows,
    )
    source = Source(os.fspath(path))
    file = _read(source, format, wishes, encoding, delimiter)
    if format is None and file.format not in ("table", WIDE):
        file = replace(file, notes=(f"format: {file.format}", *file.notes))
    return file if texts else replace(file, texts=None)


def _read(source: Source, format: str | None, wishes: Wishes, encoding: str | None, delimiter: str | None) -> LabelFile:
    if format == "doccano" or (format is None and _is_archive(source)):
        return read_doccano(source, wishes)
    if delimiter is None and _is_json(source, encoding) and format not in _PLAIN:
        used = encoding or encoding_of(source.head)
        if is_document(source, used):
            return _read_document(source, parse_document(source, used), format, wishes, used)
        placed = ((f"{source.name}, line {line}", record) for line, record in json_records(source, used))
        return _read_records(source, placed, format, wishes, used)
    table = open_table(source, encoding, delimiter)
    if reader := _reader_of(table, format):
        return reader(table, wishes)
    if format == "hugging-face" or (format is None and _lists(table)):
        return read_listed(source.name, table.records(), wishes)
    if format not in (None, *_PLAIN):
        raise DataError(f"{source.name} is a table, and JSON was expected: {format} writes no other.")
    return read_plain(table, wishes)


def _is_archive(source: Source) -> bool:
    return Path(source.path).is_dir() or source.head.startswith(b"PK\x03\x04")


def _is_json(source: Source, encoding: str | None) -> bool:
    used = encoding_of(source.head) if encoding is None else check_encoding(encoding)
    return source.head.decode(used, "ignore").lstrip()[:1] in ("{", "[")


def _lists(table: Table) -> bool:
    first = next(table.records(), None)
    return first is not None and is_listed(first[1])


def _reader_of(table: Table, format: str | None) -> Callable[[Table, Wishes], LabelFile] | None:
    """The reader of a tool's tables: of the one that is named, or whose header this is."""
    for name, (is_its, read_its) in _TABLES.items():
        its = is_its(table.header)
        if format == name and not its:
            raise LabelError(f"{table.source.name} is no table of {name}: its columns are {some_names(table.header)}.")
        if its and format in (None, name):
            return read_its
    return None


def _read_document(source: Source, document: Any, format: str | None, wishes: Wishes, encoding: str) -> LabelFile:
    """A whole JSON document: a list of records, one record, or records in a record."""
    if format in _MAPPINGS:
        return read_mapping(source.name, document, wishes, examples_outside=_MAPPINGS[format])
    if isinstance(document, dict):
        inner = list(document.values())
        if all(isinstance(one, dict) for one in inner) and any(map(is_listed, inner[:_FEW])):
            document = [{"id": key, **record} for key, record in document.items()]
        elif format is None and is_mapping(document):
            raise ask_for_the_order(source.name)
        else:
            document = [document]
    records = []
    for number, record in enumerate(document if isinstance(document, list) else [document], start=1):
        if not isinstance(record, dict):
            raise DataError(f"{source.name}, record {number}: a record with names and values was expected, {{...}}.")
        records.append((f"{source.name}, record {number}", record))
    return _read_records(source, iter(records), format, wishes, encoding)


def _read_records(
    source: Source, records: Iterator[Placed], format: str | None, wishes: Wishes, encoding: str
) -> LabelFile:
    first = next(records, None)
    if first is None:
        raise DataError(f"{source.name}: there is no record in it.")
    for name, (is_its, read_its) in _RECORDS.items():
        flat = name in _TABLES and _TABLES[name][0](list(first[1]))  # the same tool writes tables too
        if not flat and (format == name or (format is None and is_its(first[1]))):
            return read_its(source.name, chain([first], records), wishes)
    if format is None and is_doccano(first[1]):
        return read_doccano(source, wishes)
    table = open_table(source, encoding)
    return (_reader_of(table, format) or read_plain)(table, wishes)


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
      labels per example: 1 to 2, mean 1.5; missing: 25.0%
      classes: 0, 1
    """
    return read(path, texts=False, **options).labels
