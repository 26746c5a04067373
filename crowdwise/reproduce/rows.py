"""Trials -> rows of a CSV file, appended as trials end, the same bytes at the end whatever happened on the way."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from crowdwise.files import write_file

Row = dict[str, Any]
Key = tuple[Any, ...]


class RowLog:
    """The rows of an experiment on disk.

    A trial adds all of its rows at once. Reading keeps whole trials only: of one that was being written when
    the process was killed, nothing counts.

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
    """

    def __init__(self, path: Path, columns: Mapping[str, type], key: Sequence[str], rows_per_trial: int) -> None:
        self.path = path
        self.columns = dict(columns)
        self.key = tuple(key)
        self.rows_per_trial = rows_per_trial
        self.trials: dict[Key, list[Row]] = self._read()
        self._rewrite()  # so that what is appended follows a whole line

    def key_of(self, row: Mapping[str, Any]) -> Key:
        """What names the trial of a row."""
        return tuple(row[column] for column in self.key)

    def append(self, rows: Sequence[Row]) -> None:
        """Add a trial, in one write."""
        with open(self.path, "a", encoding="utf-8", newline="") as file:
            file.write(self._as_text(rows))
        self.trials[self.key_of(rows[0])] = list(rows)

    def finish(self) -> None:
        """Put the rows in order: by trial, then as the trial gave them."""
        self.trials = dict(sorted(self.trials.items()))
        self._rewrite()

    def rows_of(self, keys: Iterable[Key]) -> list[Row]:
        """The rows of some trials, in the order of the keys."""
        return [row for key in keys for row in self.trials[key]]

    def _read(self) -> dict[Key, list[Row]]:
        if not self.path.exists():
            return {}
        text = self.path.read_text(encoding="utf-8", errors="replace")
        lines = text[: text.rfind("\n") + 1].splitlines()  # a last line without its end was cut off
        trials: dict[Key, list[Row]] = {}
        for values in csv.reader(lines[1:]):
            row = self._parse(values)
            if row is not None:
                trials.setdefault(self.key_of(row), []).append(row)
        return {key: rows for key, rows in trials.items() if len(rows) == self.rows_per_trial}

    def _parse(self, values: Sequence[str]) -> Row | None:
        """A row, or None if the line is not one: its trial is then run again."""
        if len(values) != len(self.columns):
            return None
        try:
            return {name: kind(value) for (name, kind), value in zip(self.columns.items(), values, strict=True)}
        except ValueError:
            return None

    def _rewrite(self) -> None:
        rows = [row for rows in self.trials.values() for row in rows]
        write_file(self.path, ",".join(self.columns) + "\n" + self._as_text(rows))

    def _as_text(self, rows: Iterable[Row]) -> str:
        text = StringIO()
        writer = csv.writer(text, lineterminator="\n")
        # float() first: the shortest text that reads back as the same number, not NumPy's own notation
        writer.writerows([kind(row[name]) for name, kind in self.columns.items()] for row in rows)
        return text.getvalue()
