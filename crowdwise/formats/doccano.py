"""doccano's exports -> labels: a zip archive or folder with a file per annotator, or one such file.

The name of a file is that of the annotator. An example without labels in a file was not labelled by that annotator.
"""

from __future__ import annotations

import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from crowdwise.exceptions import DataError, LabelError
from crowdwise.formats.answers import Answers
from crowdwise.formats.fields import Record, one_label
from crowdwise.formats.label_file import LabelFile, Wishes, make_label_file
from crowdwise.tables import Source, open_table
from crowdwise.tables.json_rows import as_text, json_records

NAME = "doccano"
# Where versions and kinds of projects keep labels and texts.
_LABELS = ("label", "labels", "cats", "categories")
_TEXTS = ("text", "data")
_ENDINGS = (".jsonl", ".json", ".csv")
_SPREADSHEETS = (".xlsx", ".xlsm", ".ods")
# No export of texts is compressed more than so many times.
_LARGE, _LARGEST_RATIO = 2**28, 200


def is_doccano(record: Record) -> bool:
    """Whether a record looks like an example of doccano, which names no annotator."""
    listed = [isinstance(record.get(key), list) for key in _LABELS]
    return "id" in record and any(key in record for key in _TEXTS) and any(listed) and len(record) <= 5


def read_doccano(source: Source, wishes: Wishes) -> LabelFile:
    """Labels from an archive, a folder or a single file."""
    answers = Answers(wishes.missing, strip=wishes.strip)
    if Path(source.path).is_dir():
        files = sorted(path for path in Path(source.path).iterdir() if path.suffix.lower() in _ENDINGS)
        _read_files([(path.stem, Source(str(path))) for path in files], source, answers)
    elif source.head.startswith(b"PK\x03\x04"):
        with tempfile.TemporaryDirectory(prefix="crowdwise-") as folder:
            _read_files(_unpacked(source, Path(folder)), source, answers)
    else:
        _read_files([(Path(source.path.removesuffix(".gz")).stem, source)], source, answers)
    return make_label_file(source.name, NAME, answers, wishes)


def _unpacked(source: Source, folder: Path) -> list[tuple[str, Source]]:
    """The files of an archive, each with the name of its annotator."""
    found = []
    try:
        with source.open() as raw, zipfile.ZipFile(raw) as archive:
            members = [one for one in archive.infolist() if PurePosixPath(one.filename).suffix.lower() in _ENDINGS]
            total, limit = sum(one.file_size for one in members), max(_LARGE, _LARGEST_RATIO * source.size)
            if total > limit:
                raise DataError(
                    f"{source.name}: its files say that they have {total:,} bytes, more than any export has."
                )
            for number, member in enumerate(members):
                inside = PurePosixPath(member.filename)
                path = folder / f"{number}{inside.suffix.lower()}"  # never a path that the archive names
                path.write_bytes(archive.read(member))
                found.append((inside.stem, Source(str(path), f"{source.name}: {inside.name}")))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError) as error:
        what = "spreadsheet" if source.suffix in _SPREADSHEETS else "archive"
        advice = " Open it, and save it as CSV." if what == "spreadsheet" else ""
        raise DataError(
            f"{source.name}: the {what} is cut off or damaged, or has a password ({error}).{advice}"
        ) from None
    return found


def _read_files(files: list[tuple[str, Source]], source: Source, answers: Answers) -> None:
    if not files:
        raise DataError(
            f"{source.name}: there is no file of an annotator in it (.jsonl, .json or .csv). A spreadsheet has to be "
            "saved as CSV first."
        )
    if [annotator for annotator, _ in files] == ["all"]:
        raise LabelError(
            f"{source.name}: this is the export of a collaborative project, which does not say who labelled what. "
            "Switch collaboration off in doccano before annotators start."
        )
    answers.notes.append(f"annotators, by the names of the files: {', '.join(annotator for annotator, _ in files)}")
    for annotator, file in files:
        _read_file(annotator, file, answers)


def _read_file(annotator: str, file: Source, answers: Answers) -> None:
    for place, record in _records(file):
        example = as_text(record.get("id"))
        if not example:
            raise DataError(f"{place}: every example needs its 'id'.")
        text = next((record[key] for key in _TEXTS if isinstance(record.get(key), str)), None)
        if text is not None:
            answers.texts.setdefault(example, text)
        label = _label(place, record)
        if label:
            answers.add(example, annotator, label)
        else:
            answers.left_out["examples that an annotator did not label"] += 1


def _records(file: Source) -> Iterator[tuple[str, Record]]:
    if file.suffix == ".csv":
        yield from open_table(file).records()
        return
    for number, record in json_records(file):
        yield f"{file.name}, record {number}", record


def _label(place: str, record: Record) -> str:
    key = next((key for key in _LABELS if key in record), None)
    if key is None:
        raise DataError(f"{place}: no label; one of {', '.join(_LABELS)} was expected among {', '.join(record)}.")
    value: Any = record[key]
    values = value.split("#") if isinstance(value, str) else value if isinstance(value, list) else [value]
    if any(isinstance(one, list | dict) for one in values):
        raise LabelError(f"{place}: {key!r} holds spans; a class per example was expected.")
    return one_label(values)
