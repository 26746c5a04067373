"""doccano's exports -> answers: a zip archive or folder with a file per annotator, or one such file.

The name of a file is that of the annotator. An example without labels in a file was not labelled by that annotator.
"""

from __future__ import annotations

import tempfile
import zipfile
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from crowdwise.exceptions import DataError, LabelError
from crowdwise.formats._answers import SEVERAL, Answers
from crowdwise.tables import Placed, Record, Source, as_text, json_records, open_table

# Where versions and kinds of projects keep labels and texts.
_LABELS = ("label", "labels", "cats", "categories")
_TEXTS = ("text", "data")
_ENDINGS = (".jsonl", ".json", ".csv")


def is_doccano(record: Record) -> bool:
    """Whether a record looks like an example of doccano, which names no annotator."""
    listed = [isinstance(record.get(key), list) for key in _LABELS]
    return "id" in record and any(key in record for key in _TEXTS) and any(listed) and len(record) <= 5


def read_doccano(source: Source, answers: Answers) -> str:
    """Take an archive, a folder or a single file; the name of the format."""
    if Path(source.path).is_dir():
        files = sorted(path for path in Path(source.path).iterdir() if path.suffix.lower() in _ENDINGS)
        _read_files([(path.stem, Source(str(path))) for path in files], answers)
    elif source.head.startswith(b"PK\x03\x04"):
        with tempfile.TemporaryDirectory(prefix="crowdwise-") as folder:
            _read_files(_unpacked(source, Path(folder)), answers)
    else:
        _read_files([(Path(source.path.removesuffix(".gz")).stem, source)], answers)
    return "doccano"


def _unpacked(source: Source, folder: Path) -> list[tuple[str, Source]]:
    """The files of an archive, each with the name of its annotator."""
    files = []
    try:
        with source.open() as raw, zipfile.ZipFile(raw) as archive:
            members = [info for info in archive.infolist() if PurePosixPath(info.filename).suffix.lower() in _ENDINGS]
            total = sum(info.file_size for info in members)
            if total > source.largest:
                raise DataError(f"{source.name}: its files claim {total:,} bytes, more than any export has.")
            for number, member in enumerate(members):
                inside = PurePosixPath(member.filename)
                path = folder / f"{number}{inside.suffix.lower()}"  # never a path that the archive names
                path.write_bytes(archive.read(member))
                files.append((inside.stem, Source(str(path), f"{source.name}: {inside.name}")))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError) as error:
        source.check_unchanged()
        raise DataError(f"{source.name}: the archive is cut off or damaged, or has a password ({error}).") from None
    source.check_unchanged()
    return files


def _read_files(files: list[tuple[str, Source]], answers: Answers) -> None:
    if not files:
        raise DataError(f"{answers.name}: it contains no annotator's file (.jsonl, .json or .csv).")
    if [annotator for annotator, _ in files] == ["all"]:
        raise LabelError(
            f"{answers.name}: this is the export of a collaborative project, which does not say who labelled what. "
            "Switch collaboration off in doccano before annotators start."
        )
    answers.notes.append(f"annotators, by the names of the files: {', '.join(annotator for annotator, _ in files)}")
    known = {part for name in answers.options.classes or () for part in name.split(SEVERAL)}
    if not known and any(file.suffix == ".csv" for _, file in files):
        known = {name for _, file in files for name in _sure_classes(file)}
    for annotator, file in files:
        _read_file(annotator, file, answers, known)


def _read_file(annotator: str, file: Source, answers: Answers, known: Collection[str]) -> None:
    for place, record in _records(file):
        example = as_text(record.get("id"))
        if not example:
            raise DataError(f"{place}: every example needs its 'id'.")
        text = next((record[key] for key in _TEXTS if isinstance(record.get(key), str)), None)
        if text is not None:
            answers.texts.setdefault(example, text)
        labels = _labels(place, record)
        if file.suffix == ".csv":
            labels = _parts(place, labels[0], known)
        if label := answers.label_of(labels):
            answers.add(example, annotator, label)
        else:
            answers.left_out["examples that an annotator did not label"] += 1


def _records(file: Source) -> Iterator[Placed]:
    if file.suffix == ".csv":
        yield from open_table(file).records()
        return
    for number, record in json_records(file):
        yield f"{file.name}, record {number}", record


def _labels(place: str, record: Record) -> list[Any]:
    key = next((key for key in _LABELS if key in record), None)
    if key is None:
        raise DataError(f"{place}: no label; one of {', '.join(_LABELS)} was expected among {', '.join(record)}.")
    value: Any = record[key]
    values = value if isinstance(value, list) else [value]
    if any(isinstance(part, list | dict) for part in values):
        raise LabelError(f"{place}: {key!r} holds spans; a class per example was expected.")
    return values


def _sure_classes(file: Source) -> Iterator[str]:
    """Names of classes; those of a cell of CSV if it can be one class only, for joined ones have no # at an end."""
    for place, record in _records(file):
        labels = map(as_text, _labels(place, record))
        yield from (name for name in labels if file.suffix != ".csv" or "#" not in name.strip("#"))


def _parts(place: str, cell: str, known: Collection[str]) -> list[str]:
    """The classes that a cell of CSV joins with #, which may stand in their names as well."""
    if "#" not in cell or cell in known:
        return [cell]
    pieces, longest = cell.split("#"), 1 + max((name.count("#") for name in known), default=0)
    ways: list[list[list[str]]] = [[[]]]  # at most two ways to read the first pieces
    for end in range(1, len(pieces) + 1):
        last = (("#".join(pieces[start:end]), start) for start in range(max(0, end - longest), end))
        ways.append([[*way, name] for name, start in last if name in known for way in ways[start]][:2])
    if len(ways[-1]) != 1:
        raise LabelError(
            f"{place}: {cell[:60]!r} may be one class or several, for doccano joins them with # in CSV. Export JSON "
            "Lines, or name the classes: --classes A,B,C (in Python: classes=[...])."
        )
    return ways[-1][0]
