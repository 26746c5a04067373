"""Trials -> rows of a CSV file, appended as trials end, the same bytes at the end whatever happened on the way."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any
from zlib import crc32

from crowdwise._files import write_file
from crowdwise.exceptions import DataError

Row = dict[str, Any]
Key = tuple[Any, ...]


class RowLog:
    """The rows of an experiment on disk.

    A trial adds all of its rows at once. Reading keeps whole trials only: of one that was being written when
    the process was killed, nothing counts. The last column is a checksum, so that any other damage is an error.

    Parameters
    ----------
    path : Path
        The CSV file.
    columns : mapping of str to type
        Names and types (str, int, float) of the columns.
    key : sequence of str
        Columns that name a trial.
    rows_per_trial : int
        How many rows a trial has.
    stamp : str, default=""
        What all rows depend on, such as the seed. The checksums depend on it, too.
    resume : bool, default=True
        Whether to keep the trials that the file has.
    """

    def __init__(
        self,
        path: Path,
        columns: Mapping[str, type],
        key: Sequence[str],
        rows_per_trial: int,
        *,
        stamp: str = "",
        resume: bool = True,
    ) -> None:
        self.path = path
        self.columns = dict(columns)
        self.key = tuple(key)
        self.rows_per_trial = rows_per_trial
        self.stamp = stamp
        self._header = ",".join([*self.columns, "check"])
        self.trials: dict[Key, list[Row]] = self._read() if resume else {}
        self._rewrite()  # so that what is appended follows a whole line

    def key_of(self, row: Mapping[str, Any]) -> Key:
        """What names the trial of a row."""
        return tuple(row[column] for column in self.key)

    def append(self, rows: Sequence[Row]) -> None:
        """Add a trial, in one write."""
        with open(self.path, "a", encoding="utf-8", newline="") as file:
            file.write("".join(self._lines(rows)))
        self.trials[self.key_of(rows[0])] = list(rows)

    def finish(self) -> None:
        """Put the rows in order: by trial, then as the trial gave them."""
        self.trials = dict(sorted(self.trials.items()))
        self._rewrite()

    def rows_of(self, keys: Iterable[Key]) -> list[Row]:
        """The rows of some trials, in the order of the keys."""
        return [row for key in keys for row in self.trials[key]]

    def _read(self) -> dict[Key, list[Row]]:
        lines = self._whole_lines()
        if lines and lines[0] != self._header.encode():
            raise self._damaged(1, f"expected the columns {self._header}")
        trials: dict[Key, list[Row]] = {}
        rows: list[Row] = []  # of the trial that is being read
        for number, line in enumerate(lines[1:], start=2):
            row = self._parse(line, place=len(rows), number=number)
            rows.append(row)
            if self.key_of(row) != self.key_of(rows[0]) or self.key_of(row) in trials:
                raise self._damaged(number, "the rows of a trial do not stand together")
            if len(rows) == self.rows_per_trial:
                trials[self.key_of(row)], rows = rows, []
        return trials

    def _whole_lines(self) -> list[bytes]:
        """All lines but a last one without its end: the process was killed while it wrote that."""
        if not self.path.exists():
            return []
        *lines, rest = self.path.read_bytes().split(b"\n")
        if not lines and not self._header.encode().startswith(rest):
            raise self._damaged(1, f"expected the columns {self._header}")
        return lines

    def _parse(self, line: bytes, *, place: int, number: int) -> Row:
        text, _, check = line.decode(errors="replace").rpartition(",")
        if check != self._check(text, place):
            raise self._damaged(number, "its checksum is not that of its values")
        (values,) = csv.reader([text])
        return {name: kind(value) for (name, kind), value in zip(self.columns.items(), values, strict=True)}

    def _damaged(self, number: int, why: str) -> DataError:
        return DataError(
            f"{self.path}, line {number} is damaged: {why}. Remove this line and all lines after it, or the whole "
            "file, and start again: what is then missing is run again."
        )

    def _rewrite(self) -> None:
        lines = [line for rows in self.trials.values() for line in self._lines(rows)]
        write_file(self.path, "".join([self._header, "\n", *lines]))

    def _lines(self, rows: Iterable[Row]) -> list[str]:
        lines = []
        for place, row in enumerate(rows):
            text = StringIO()
            # float() first: the shortest text that reads back as the same number, not NumPy's own notation
            values = [kind(row[name]) for name, kind in self.columns.items()]
            csv.writer(text, lineterminator="").writerow(values)
            lines.append(f"{text.getvalue()},{self._check(text.getvalue(), place)}\n")
        return lines

    def _check(self, text: str, place: int) -> str:
        """A checksum of a line, its place in its trial and the stamp: no other line and no other place fits it."""
        return f"{crc32(f'{self.stamp}|{place}|{text}'.encode()):08x}"
