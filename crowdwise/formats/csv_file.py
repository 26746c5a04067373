"""Rows -> a CSV file, whole or not at all, whose cells a spreadsheet takes for text and not for formulas."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from crowdwise._files import write_file
from crowdwise.exceptions import OutputError

# A spreadsheet takes a cell that begins so for a formula, unless it is a number. Apostrophes before it count, too, so
# that no two texts become one.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")


def safe_cell(value: Any) -> Any:
    """A value as it is; text that a spreadsheet would take for a formula with an apostrophe before it.

    Examples
    --------
    >>> from crowdwise.formats.csv_file import safe_cell
    >>> safe_cell("=1+1"), safe_cell("-1.5"), safe_cell("good"), safe_cell(-1)
    ("'=1+1", '-1.5', 'good', -1)
    """
    if isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def write_csv(
    path: str | os.PathLike[str], header: Sequence[Any], rows: Iterable[Sequence[Any]], *, safe: bool = True
) -> None:
    """Write a table with commas, as UTF-8; an old file is replaced when the new one is whole.

    Cells go through `safe_cell` unless the file is for another program, which has them as they are.
    """

    def save(file: BinaryIO) -> None:
        text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="")
        usual, quoting = (csv.writer(text, lineterminator="\n", quoting=q) for q in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
        for row in chain([header], rows):
            # Python 3.11 does not quote a carriage return, which would end the row when it is read.
            writer = quoting if any(isinstance(cell, str) and "\r" in cell for cell in row) else usual
            writer.writerow([safe_cell(cell) for cell in row] if safe else row)
        text.flush()
        text.detach()

    save_file(path, save)


def save_file(path: str | os.PathLike[str], content: str | Callable[[BinaryIO], object]) -> None:
    """Write a file as `write_file` does; an error that says so where it cannot be made."""
    try:
        write_file(Path(os.path.realpath(path)), content)
    except (FileNotFoundError, NotADirectoryError, PermissionError, IsADirectoryError) as error:
        raise OutputError(f"{os.fspath(path)} cannot be written: {error.strerror or error}.") from error
