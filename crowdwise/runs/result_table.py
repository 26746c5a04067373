"""A table of results -> CSV, JSON or aligned text; and back from the CSV of a run."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from crowdwise.exceptions import DataError

# What a spreadsheet takes for the beginning of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_WIDEST = 48
_DIGITS = 6
# Columns whose cells are texts, or whole numbers if all of them are; those of all other columns are numbers.
TEXTS = frozenset({"example", "label", "majority", "annotator", "flags", "reason"})
_WHOLE = re.compile(r"|0|-?[1-9][0-9]{0,17}")


@dataclass(frozen=True, eq=False)
class ResultTable:
    """Columns of one length.

    Parameters
    ----------
    name : str
        What it is, such as "consensus".
    columns : mapping from name to list
        Texts and whole numbers as they are; floats, None where there is none.

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
    columns: Mapping[str, list[Any]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Row by row."""
        return zip(*self.columns.values(), strict=True)

    def first(self, n: int) -> ResultTable:
        """The first rows."""
        return ResultTable(self.name, {name: column[:n] for name, column in self.columns.items()})

    def write_csv(self, file: TextIO) -> None:
        """Write it as CSV; a text that a spreadsheet would take for a formula gets an apostrophe before it."""
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([safe_cell(name) for name in self.columns])
        writer.writerows([safe_cell(value) for value in row] for row in self.rows())

    def as_csv(self) -> str:
        """As CSV."""
        text = io.StringIO()
        self.write_csv(text)
        return text.getvalue()

    def as_json(self) -> str:
        """As JSON, with the version of its shape."""
        rows = [dict(zip(self.columns, map(_plain, row), strict=True)) for row in self.rows()]
        return as_json(self.name, {"rows": rows})

    def as_text(self) -> str:
        """Aligned: texts to the left, numbers to the right."""
        shown = [[_shown(value) for value in column] for column in self.columns.values()]
        numeric = [_is_numeric(column) for column in self.columns.values()]
        widths = [max(map(len, [name, *cells])) for name, cells in zip(self.columns, shown, strict=True)]
        rows = [list(self.columns), *map(list, zip(*shown, strict=True))]
        return "\n".join(
            "  ".join(
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(row, widths, numeric, strict=True)
            ).rstrip()
            for row in rows
        )


def read_table(path: Path, name: str) -> ResultTable:
    """The table that was written as CSV.

    Parameters
    ----------
    path : Path
        The file.
    name : str
        What it is.

    Returns
    -------
    table : ResultTable
        Empty cells are None.
    """
    try:
        with open(path, encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file, strict=True)
            names = [_unsafe(cell) for cell in header]
            columns = list(zip(*rows, strict=True)) or [()] * len(names)
            return ResultTable(name, {n: _parsed(n, column) for n, column in zip(names, columns, strict=True)})
    except (ValueError, csv.Error) as error:
        raise DataError(f"{path} is damaged: {error}. Make the run again.") from error


def as_json(name: str, content: Mapping[str, Any]) -> str:
    """A result as JSON, with the version of its shape: ``{"schema": "crowdwise.NAME/1", ...}``.

    Parameters
    ----------
    name : str
        What it is.
    content : mapping
        What JSON can hold.

    Returns
    -------
    text : str
    """
    return json.dumps({"schema": f"crowdwise.{name}/1", **content}, indent=1, allow_nan=False)


def safe_cell(value: Any) -> Any:
    """A cell of a CSV file that stays what it is in a spreadsheet."""
    if isinstance(value, float):
        return f"{value:.{_DIGITS}g}" if math.isfinite(value) else ""
    if isinstance(value, str) and value.startswith(_FORMULA):
        return "'" + value
    return value


def _unsafe(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_FORMULA) else cell


def _parsed(name: str, cells: Sequence[str]) -> list[Any]:
    """The cells of a column: identifiers and classes are whole numbers if all of them are, as they are when labels are read."""
    if name not in TEXTS:
        return [float(cell) if "." in cell or "e" in cell else int(cell) if cell else None for cell in cells]
    texts = [_unsafe(cell) for cell in cells]
    if all(map(_WHOLE.fullmatch, texts)):
        return [int(text) if text else None for text in texts]
    return [text or None for text in texts]


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _shown(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        return f"{value:.3f}"
    text = printable(" ".join(str(value).split()))
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def printable(text: str) -> str:
    """A text that tells a terminal nothing but its letters."""
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)


def _is_numeric(column: list[Any]) -> bool:
    return any(isinstance(value, int | float) for value in column) and not any(isinstance(v, str) for v in column)
