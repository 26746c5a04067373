"""A table of results -> CSV, JSON or aligned text."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdwise._text import printable
from crowdwise.formats._write import csv_text, safe_cell

_WIDEST, _BLOCK = 72, 10_000  # letters of a cell, rows at a time


@dataclass(frozen=True, eq=False)
class ResultTable:
    """Columns of one length.

    Parameters
    ----------
    name : str
        What it is, such as "consensus".
    columns : mapping from name to list or array
        Texts, whole numbers and floats; None or NaN where there is nothing.

    Examples
    --------
    >>> from crowdwise.runs.result_table import ResultTable
    >>> table = ResultTable("annotators", {"annotator": ["ann", "=bob"], "accuracy": [0.75, None]})
    >>> print(table.as_csv(), end="")
    annotator,accuracy
    ann,0.75
    '=bob,
    >>> print(table.as_text())
    annotator  accuracy
    ann           0.750
    =bob
    """

    name: str
    columns: Mapping[str, Any]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def _blocks(self, cells: Callable[[Any], list[Any]]) -> Iterator[list[tuple[Any, ...]]]:
        """The rows, some at a time: a table may have millions."""
        for start in range(0, len(self), _BLOCK):
            rows = slice(start, start + _BLOCK)
            yield list(zip(*(cells(column[rows]) for column in self.columns.values()), strict=True))

    def csv_parts(self) -> Iterator[str]:
        """As CSV, some rows at a time; texts that a spreadsheet would take for formulas get an apostrophe."""
        yield csv_text([tuple(map(safe_cell, self.columns))])
        yield from map(csv_text, self._blocks(_cells))

    def write(self, folder: Path) -> None:
        """Write a CSV file that is called as the table is."""
        with open(folder / f"{self.name}.csv", "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
            file.writelines(self.csv_parts())

    def as_csv(self) -> str:
        """As CSV."""
        return "".join(self.csv_parts())

    def json_parts(self) -> Iterator[str]:
        """As JSON with the version of its shape, some rows at a time."""
        yield f'{{"schema": "{schema(self.name)}", "rows": ['
        between = "\n"
        for rows in self._blocks(_values):
            dicts = (dict(zip(self.columns, map(_plain, row), strict=True)) for row in rows)
            yield between + ",\n".join(json.dumps(row, allow_nan=False) for row in dicts)
            between = ",\n"
        yield "]}\n"

    def as_text(self) -> str:
        """Aligned: texts to the left, numbers to the right."""
        columns = {name: _values(column) for name, column in self.columns.items()}
        shown = [[_shown(value) for value in column] for column in columns.values()]
        numeric = [_is_numeric(column) for column in columns.values()]
        widths = [max(map(len, [name, *cells])) for name, cells in zip(columns, shown, strict=True)]
        rows = [list(columns), *map(list, zip(*shown, strict=True))]
        return "\n".join(
            "  ".join(
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(row, widths, numeric, strict=True)
            ).rstrip()
            for row in rows
        )


def as_json(name: str, content: Mapping[str, Any]) -> str:
    """A result as JSON, with the version of its shape: ``{"schema": "crowdwise.NAME/1", ...}``."""
    return json.dumps({"schema": schema(name), **content}, indent=1, allow_nan=False)


def schema(name: str) -> str:
    """The name of a shape of JSON, with its version: that goes up when a key is renamed or gets another meaning."""
    return f"crowdwise.{name}/1"


def _values(column: Any) -> list[Any]:
    return column if isinstance(column, list) else column.tolist()


def _cells(column: Any) -> list[Any]:
    return list(map(_cell, _values(column)))


def _cell(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:g}" if math.isfinite(value) else ""
    return safe_cell(value)


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _shown(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        return f"{value:.3f}"
    text = printable(" ".join(str(value).split()))
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def _is_numeric(column: list[Any]) -> bool:
    return any(isinstance(value, int | float) for value in column) and not any(isinstance(v, str) for v in column)
