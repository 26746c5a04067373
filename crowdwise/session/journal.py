"""A file to which every answer is added before it counts: JSON Lines, a checksum in each line."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from crowdwise._files import held, write_file
from crowdwise._text import count
from crowdwise.exceptions import DataError, warn

Entry = dict[str, Any]
_START = b'{"number": '


class Journal:
    """Entries in the order in which they were added, each on the disk when `add` returns.

    One process holds a journal at a time. After a crash the file may end with part of a line: that is moved to a file
    beside it, with a warning. A line that is damaged in the middle is an error, for what follows would be of no use.

    Parameters
    ----------
    path : str or path
        The file; made if it is not there.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "answers.jsonl"
    >>> with Journal(path) as journal:
    ...     journal.add({"example": "a", "person": "ann", "label": 1})
    >>> with Journal(path) as journal:
    ...     journal.entries
    [{'example': 'a', 'person': 'ann', 'label': 1}]
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.entries: list[Entry] = []
        self._held = ExitStack()
        self._held.enter_context(held(self.path, self.path.with_name(f".{self.path.name}.lock")))
        try:
            self._file = self._held.enter_context(open(self.path, "a+b", buffering=0))  # noqa: SIM115
            self._read()
        except BaseException:
            self._held.close()
            raise

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._held.close()

    def add(self, entry: Entry) -> None:
        """Write an entry and wait until it is on the disk; if that fails, the file is as it was before."""
        line = _line(len(self.entries), entry)
        end = os.fstat(self._file.fileno()).st_size
        try:
            written = self._file.write(line)
            if written != len(line):
                raise OSError(f"only {written} of {len(line)} bytes could be written to {self.path}: is the disk full?")
            os.fsync(self._file.fileno())
        except BaseException:
            os.ftruncate(self._file.fileno(), end)
            raise
        self.entries.append(json.loads(line)["entry"])

    def _read(self) -> None:
        self._file.seek(0)
        content = self._file.read()
        lines = content.splitlines(keepends=True)
        self.entries = list(_whole(lines))
        kept = sum(map(len, lines[: len(self.entries)]))
        if kept == len(content):
            return
        rest = content[kept:]
        if rest.count(_START) > 1 or any(_entry(line) for line in lines[len(self.entries) :]):
            raise DataError(
                f"{self.path} is damaged in line {len(self.entries) + 1}, and others follow. Restore the file from a "
                "copy, or remove all from that line on to continue without it."
            )
        beside = self.path.with_name(f"{self.path.name}.cut-{kept}")
        write_file(beside, rest)
        os.ftruncate(self._file.fileno(), kept)
        warn(
            f"{self.path} ended with a damaged line, as after a crash. What precedes it, "
            f"{count(len(self.entries), 'entry', 'entries')}, is kept; {beside.name} has the rest."
        )


def _line(number: int, entry: Entry) -> bytes:
    try:
        text = json.dumps({"number": number, "entry": entry}, default=_plain, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"a journal keeps texts, numbers and truth values; {entry!r} has something else: {error}"
        ) from None
    return f'{text[:-1]}, "crc": "{zlib.crc32(text.encode()):08x}"}}\n'.encode()


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic) and value.dtype.kind in "biufU":
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be kept")


def _whole(lines: list[bytes]) -> Iterator[Entry]:
    """The entries up to the first line that is damaged or out of order."""
    for number, line in enumerate(lines):
        entry = _entry(line, number)
        if entry is None:
            return
        yield entry


def _entry(line: bytes, number: int | None = None) -> Entry | None:
    """What a line holds; None if it is not as it was written, or has another number."""
    body, mark, crc = line.rpartition(b', "crc": "')
    if not mark or crc != b'%08x"}\n' % zlib.crc32(body + b"}"):
        return None
    record = json.loads(body + b"}")
    return record["entry"] if number in (None, record["number"]) else None
