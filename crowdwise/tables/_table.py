"""A file -> its header, and its rows or columns of text, whatever the file is; Parquet is read by Polars."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from crowdwise._text import how_to_install, some_names
from crowdwise.exceptions import BusyError, DataError, MissingExtraError
from crowdwise.tables._delimited import DELIMITERS, DelimitedRows, guess_delimiter
from crowdwise.tables._json import JsonRows, as_text
from crowdwise.tables._source import N_ROWS, ZIP, Block, Source, check_encoding, encoding_of

_MOST_COLUMNS = 50_000
_PARQUET = b"PAR1"
_FOREIGN = {ZIP: "a zip archive", b"\x93NUMPY": "a NumPy file", b"%PDF": "a PDF"}


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of text with a header.

    Parameters
    ----------
    source : Source
        The file.
    header : tuple of str
        Names of the columns.
    notes : tuple of str
        What was guessed, in words.
    open_rows : callable
        Opens the file at its start.
    """

    source: Source
    header: tuple[str, ...]
    notes: tuple[str, ...]
    open_rows: Callable[[], DelimitedRows | JsonRows | _ParquetRows]

    def blocks(self) -> Iterator[Block]:
        """All rows, some at a time and column by column: the fastest way to go through a large file."""
        return self.open_rows().blocks()

    def rows(self) -> Iterator[tuple[str, ...]]:
        """All rows, one at a time."""
        for block in self.blocks():
            yield from zip(*block.columns, strict=True)

    def records(self) -> Iterator[tuple[str, dict[str, str]]]:
        """All rows, each with its place in words and its cells by the names of their columns."""
        for i, row in enumerate(self.rows()):
            yield self.place(i), dict(zip(self.header, row, strict=True))

    def place(self, i: int) -> str:
        """Where a row is, in words, from its position."""
        return f"{self.source.name}, row {i + 1} after the header"

    def columns(self, names: Sequence[str] | None = None) -> dict[str, list[str]]:
        """Whole columns, by default all of them."""
        columns: dict[str, list[str]] = {name: [] for name in (self.header if names is None else names)}
        places = [self.position(name) for name in columns]
        for block in self.blocks():
            for column, place in zip(columns.values(), places, strict=True):
                column.extend(block.columns[place])
        return columns

    def vectors(self, name: str) -> Any:
        """A column of lists of numbers that are all of one length, as a matrix; None if this file has no such."""
        rows = self.open_rows()
        return rows.vectors(name) if isinstance(rows, _ParquetRows) else None

    def position(self, name: str) -> int:
        """Which column has a name, from 0."""
        if name not in self._positions:
            raise DataError(f"{self.source.name} has no column {name!r}; its columns are {some_names(self.header)}.")
        return self._positions[name]

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.header)}


class _ParquetCells(Sequence[list[str]]):
    """The columns of a frame as text, each when it is asked for: many are not, and lists of numbers are long."""

    def __init__(self, frame: Any) -> None:
        self._frame, self._made = frame, dict[int, list[str]]()

    def __len__(self) -> int:
        return int(self._frame.width)

    def __getitem__(self, i: Any) -> Any:
        if not 0 <= i < len(self):
            raise IndexError(i)
        if i not in self._made:
            self._made[i] = list(map(_as_cell, self._frame.to_series(i).to_list()))
        return self._made[i]


class _ParquetRows:
    """The rows of a Parquet file, block by block."""

    def __init__(self, source: Source) -> None:
        try:
            import polars
        except ImportError as error:
            raise MissingExtraError(f"Parquet files need polars: {how_to_install('parquet')}.") from error
        with source.open() as file:
            path = os.path.abspath(file.name)
        self._source = source
        with self._reading():
            # The path is a name, not a pattern.
            self._frame = polars.scan_parquet(path, glob=False, hive_partitioning=False)
            self.header = self._frame.collect_schema().names()
            self._n_rows = self._frame.select(polars.len()).collect().item()

    def blocks(self) -> Iterator[Block]:
        """The rows."""
        for start in range(0, self._n_rows, N_ROWS):
            with self._reading():
                frame = self._frame.slice(start, N_ROWS).collect()
                self._source.check_unchanged()  # polars opens the file again for every block
            yield Block(_ParquetCells(frame), range(start + 1, start + 1 + len(frame)).__getitem__)

    def vectors(self, name: str) -> Any:
        """A column of lists of numbers, none of them missing and all of one length, as a matrix; else None."""
        import polars

        with self._reading():
            inner = getattr(self._frame.collect_schema()[name], "inner", None)
            if inner is None or not inner.is_numeric():
                return None
            column = self._frame.select(name).collect().to_series()
            self._source.check_unchanged()
            if isinstance(column.dtype, polars.List):
                lengths = column.list.len()
                if column.null_count() or not len(column) or lengths.n_unique() > 1 or not lengths[0]:
                    return None
                column = column.list.to_array(int(lengths[0]))
            values = column.to_numpy()
        return values if values.ndim == 2 and values.dtype.kind in "iuf" else None

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """Turn what goes wrong into our errors: polars panics, which is no Exception."""
        try:
            yield
        except (BusyError, KeyboardInterrupt):
            raise
        except BaseException as error:
            self._source.check_unchanged()
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise DataError(
                f"{self._source.name}: this Parquet file is cut off or damaged ({reason}). Make it again."
            ) from None


def _as_cell(value: Any) -> str:
    """Numbers that are whole are written so: pandas turns integers into floats to make room for what is missing."""
    if isinstance(value, float):
        if value != value:
            return ""
        return str(int(value)) if value.is_integer() else repr(value)
    return as_text(value) if value is None or isinstance(value, str | int | list | dict) else str(value)


def open_table(
    path: str | os.PathLike[str] | Source, encoding: str | None = None, delimiter: str | None = None
) -> Table:
    """A table in a file: CSV with any delimiter, TSV, JSON Lines or Parquet, compressed with gzip or not.

    What the file is is decided by its first bytes, not by its name. Rows are read when they are asked for.

    Parameters
    ----------
    path : str, path or Source
        The file; "-" is standard input.
    encoding : str, default=None
        Such as "latin-1"; by default UTF-8, or UTF-16 if the file begins with its mark.
    delimiter : str, default=None
        One character, or "tab"; by default the one of comma, semicolon, tab and pipe that fits.

    Returns
    -------
    table : Table

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from crowdwise.tables import open_table
    >>> path = Path(tempfile.mkdtemp()) / "labels.csv"
    >>> _ = path.write_text("task;worker;label\\na;ann;yes\\n")
    >>> table = open_table(path)
    >>> table.header, table.columns(["label"])
    (('task', 'worker', 'label'), {'label': ['yes']})
    >>> table.notes
    ('delimiter: semicolon',)
    """
    source = path if isinstance(path, Source) else Source(os.fspath(path))
    open_rows, notes = _kind(source, encoding, delimiter)
    return Table(source, _checked_header(source.name, open_rows().header), notes, open_rows)


def _checked_header(name: str, header: Sequence[str]) -> tuple[str, ...]:
    """The names of columns, without spaces at their ends; columns without a name get their number."""
    if not header:
        raise DataError(
            f"{name} is empty; a header with the names of the columns was expected, and a row per label or example."
        )
    if len(header) > _MOST_COLUMNS:
        raise DataError(
            f"{name} has {len(header):,} columns; at most {_MOST_COLUMNS:,} are read. Give a row per label: example, "
            "annotator, label; or features as a NumPy file (.npy)."
        )
    names = tuple(cell.strip() or f"column {i}" for i, cell in enumerate(header, start=1))
    repeated = [column for column, n in Counter(names).items() if n > 1]
    if repeated:
        raise DataError(
            f"{name}: the columns must have different names; {', '.join(map(repr, repeated))} occurs more than once "
            f"in the header. Rename one of them."
        )
    return names


def _kind(
    source: Source, encoding: str | None, delimiter: str | None
) -> tuple[Callable[[], DelimitedRows | JsonRows | _ParquetRows], tuple[str, ...]]:
    """How the rows are read, and what was guessed."""
    head = source.head
    if head.startswith(_PARQUET):
        return lambda: _ParquetRows(source), ("format: Parquet",)
    if source.is_spreadsheet:
        raise DataError(
            f"{source.name} is a spreadsheet: save its sheet as CSV (in Excel: CSV UTF-8) and give that file."
        )
    for magic, kind in _FOREIGN.items():
        if head.startswith(magic):
            raise DataError(f"{source.name} is {kind}; CSV, TSV, JSON Lines or Parquet was expected.")
    used = encoding_of(head) if encoding is None else check_encoding(encoding)
    notes = () if encoding or used == "utf-8" else (f"encoding: {used.removesuffix('-sig').upper()}",)
    if delimiter is None and head.decode(used, "ignore").lstrip()[:1] in ("{", "["):
        return lambda: JsonRows(source, used), (*notes, "format: JSON")
    if delimiter is not None:
        checked = _check_delimiter(delimiter)
        return lambda: DelimitedRows(source, used, checked), notes
    guessed = guess_delimiter(source, used)
    if guessed != ",":
        notes = (*notes, f"delimiter: {DELIMITERS.get(guessed, guessed)}")
    return lambda: DelimitedRows(source, used, guessed), notes


def _check_delimiter(delimiter: str) -> str:
    delimiter = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)  # as it is typed in a shell
    if len(delimiter) != 1 or delimiter in '"\r\n\0' or (not delimiter.isprintable() and delimiter != "\t"):
        raise ValueError(f"delimiter must be one character, such as ; or a tab; got {delimiter!r}.")
    return delimiter
