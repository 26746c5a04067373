"""Lines -> blocks of columns: text with delimiters and quotes."""

from __future__ import annotations

import contextlib
import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice

from crowdwise.exceptions import DataError
from crowdwise.tables._source import FIRST_ROWS, LONGEST, N_ROWS, Block, Source, line_blocks

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe"}
# A first line of spreadsheets that names the delimiter and is not a part of the table.
_DECLARED, _DECLARATION = re.compile(r'sep=([^\w\s"]|\t)'), ["sep=", ""]


def guess_delimiter(source: Source, encoding: str) -> str:
    """The delimiter that cuts the first rows into the most columns, all of them into as many if there is such a one."""
    if source.suffix in (".tsv", ".tab"):
        return "\t"
    lines = next((lines for lines in line_blocks(source, encoding) if lines), [])
    if lines and (declared := _DECLARED.fullmatch(lines[0].strip("\r\n"))):
        return declared[1]
    best, delimiter = (False, 1), ","
    for candidate in DELIMITERS:
        widths = _widths(lines, candidate)
        if widths and widths[0] > 1 and (shape := (len(set(widths)) == 1, widths[0])) > best:
            best, delimiter = shape, candidate
    return delimiter


def _widths(lines: Iterable[str], delimiter: str) -> list[int]:
    widths: list[int] = []
    with contextlib.suppress(csv.Error):  # found again, and reported, when the rows are read
        widths.extend(len(row) for row in islice(csv.reader(lines, delimiter=delimiter), FIRST_ROWS) if row)
    return widths


class DelimitedRows:
    """The rows of a file, block by block; `header` is read at once."""

    def __init__(self, source: Source, encoding: str, delimiter: str) -> None:
        self.source = source
        csv.field_size_limit(max(csv.field_size_limit(), LONGEST))  # one for the whole process: only ever raised
        lines = chain.from_iterable(line_blocks(source, encoding))
        self._reader = csv.reader(lines, delimiter=delimiter, strict=True)
        self._rows = self._checked()
        self.header: list[str] = next(self._rows, [])

    def _checked(self) -> Iterator[list[str]]:
        """The header and then the rows, each as long as it; empty lines are passed over."""
        width, line = 0, 1  # the line on which the next row begins
        self._empty: list[int] = []
        try:
            for row in self._reader:
                if not row or (line == 1 and row == _DECLARATION):
                    self._empty.append(line)
                elif len(row) == width:
                    yield row
                elif width == 0:
                    yield row
                    width = len(row)
                else:
                    raise DataError(
                        f"{self.source.name}, line {line}: expected {width} cells, as in the header, got {len(row)}. "
                        "Is a delimiter missing, or one too many, or not in quotes?"
                    )
                line = self._reader.line_num + 1
        except csv.Error as error:
            raise DataError(self._broken(line, str(error))) from None

    def blocks(self) -> Iterator[Block]:
        """The rows after the header."""
        width = len(self.header)
        while True:
            first, self._empty = self._reader.line_num + 1, []
            # Cells one after the other: a list per row would make Python look for cycles among them again and again.
            cells = list(chain.from_iterable(islice(self._rows, N_ROWS)))
            if not cells:
                return
            line_of = partial(_line_of, cells, width, first, tuple(self._empty))
            yield Block([cells[i::width] for i in range(width)], line_of)

    def _broken(self, line: int, error: str) -> str:
        if "end of data" in error:
            return f"{self.source.name}, line {line}: a quote that opens there is not closed. Close or remove it."
        if "field larger" in error:
            return (
                f"{self.source.name}, line {line}: a cell of more than {LONGEST:,} characters begins there. "
                "Is a quote not closed?"
            )
        return (
            f"{self.source.name}, line {line}: quotes that are not those of a table ({error}). "
            'Write "" for a quote in a cell.'
        )


def _line_of(cells: Sequence[str], width: int, first: int, empty_lines: Sequence[int], i: int) -> int:
    """The line that a row of a block begins on, from its position; needed for messages only."""
    ends = (cell.count("\n") + cell.count("\r") - cell.count("\r\n") for cell in cells[: i * width])
    line = first + i + sum(ends)
    for empty in empty_lines:
        line += empty <= line
    return line
