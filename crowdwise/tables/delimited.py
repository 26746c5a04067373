"""Lines -> blocks of columns: text with delimiters and quotes."""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from crowdwise.exceptions import DataError
from crowdwise.tables.block import N_ROWS, Block, no_header
from crowdwise.tables.lines import LONGEST, line_blocks
from crowdwise.tables.source import Source

DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe"}
# A delimiter is guessed from so many rows.
_N_GUESSED = 50


def guess_delimiter(source: Source, encoding: str) -> str:
    """The delimiter that cuts the first rows into the most columns, all of them into as many if there is such a one.

    Parameters
    ----------
    source : Source
        The file.
    encoding : str
        Its encoding.

    Returns
    -------
    delimiter : str
    """
    if source.suffix in (".tsv", ".tab"):
        return "\t"
    lines = next((lines for lines in line_blocks(source, encoding) if lines), [])
    best, delimiter = (False, 1), ","
    for candidate in DELIMITERS:
        widths = _widths(lines, candidate)
        if widths and widths[0] > 1 and (found := (len(set(widths)) == 1, widths[0])) > best:
            best, delimiter = found, candidate
    return delimiter


def _widths(lines: Iterable[str], delimiter: str) -> list[int]:
    widths: list[int] = []
    with contextlib.suppress(csv.Error):  # found again, and told, when the rows are read
        widths.extend(len(row) for row in islice(csv.reader(lines, delimiter=delimiter), _N_GUESSED) if row)
    return widths


class DelimitedRows:
    """The rows of a file, block by block; `header` is read at once.

    Parameters
    ----------
    source : Source
        The file.
    encoding : str
        Its encoding.
    delimiter : str
        Between two cells.
    """

    def __init__(self, source: Source, encoding: str, delimiter: str) -> None:
        self.source, self.line = source, 1
        csv.field_size_limit(max(csv.field_size_limit(), LONGEST))  # one for the whole process: only ever raised
        lines = chain.from_iterable(line_blocks(source, encoding))
        self.reader = csv.reader(lines, delimiter=delimiter, strict=True)
        first = self._take(1)
        while first and not first[0]:  # empty lines before the header
            self.line, first = self.reader.line_num + 1, self._take(1)
        if not first:
            raise no_header(source.name)
        self.header = first[0]

    def blocks(self) -> Iterator[Block]:
        """The rows after the header."""
        while True:
            self.line = self.reader.line_num + 1
            rows = self._take(N_ROWS)
            if not rows:
                return
            yield self._block(rows)

    def _take(self, n: int) -> list[list[str]]:
        rows: list[list[str]] = []
        try:
            rows.extend(islice(self.reader, n))  # what came before an error stays in the list
        except csv.Error as error:
            raise DataError(self._broken(_line_of(rows, self.line, len(rows)), str(error))) from None
        return rows

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

    def _block(self, rows: list[list[str]]) -> Block:
        width, first = len(self.header), self.line
        filled = rows
        at: Sequence[int] = range(len(rows))
        if set(map(len, rows)) != {width}:
            at = [i for i, row in enumerate(rows) if row]
            filled = [rows[i] for i in at]
            for i in at:
                if len(rows[i]) != width:
                    raise DataError(
                        f"{self.source.name}, line {_line_of(rows, first, i)}: {width} cells were expected, as in the "
                        f"header, and {len(rows[i])} came. Is a delimiter missing, or one too many, or not in quotes?"
                    )
        columns = list(zip(*filled, strict=True)) if filled else [()] * width
        return Block(columns, lambda i: _line_of(rows, first, at[i]))


def _line_of(rows: Sequence[Sequence[str]], first: int, i: int) -> int:
    """The line that row i begins on: rows before it may have line ends inside their cells."""
    return first + i + sum(_line_ends(cell) for row in rows[:i] for cell in row)


def _line_ends(cell: str) -> int:
    return cell.count("\n") + cell.count("\r") - cell.count("\r\n")
