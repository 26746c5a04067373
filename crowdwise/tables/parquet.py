"""Parquet files -> blocks of columns, by polars or pyarrow."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from typing import Any

from crowdwise._text import how_to_install
from crowdwise.exceptions import BusyError, DataError, MissingExtraError
from crowdwise.tables.block import Block
from crowdwise.tables.json_rows import as_text
from crowdwise.tables.source import Source

MAGIC = b"PAR1"
# A block of a Parquet file is larger than one of text: each is a search for its place in the file.
_N_ROWS = 2**18


class ParquetRows:
    """The rows of a Parquet file, block by block."""

    def __init__(self, source: Source) -> None:
        self.source = source
        try:
            self.header, self._frames = _open(source)
        except (BusyError, MissingExtraError, KeyboardInterrupt):
            raise
        except BaseException as error:  # polars panics, which is no Exception
            raise self._damaged(error) from None

    def blocks(self) -> Iterator[Block]:
        """The rows."""
        n_before = 0
        frames = iter(self._frames)
        while True:
            try:
                columns = next(frames, None)
                self.source.open().close()  # polars opens the file again for every block: has it changed?
            except (BusyError, KeyboardInterrupt):
                raise
            except BaseException as error:
                raise self._damaged(error) from None
            if columns is None:
                return
            texts = [[_as_cell(value) for value in column] for column in columns]
            yield Block(texts, lambda i, first=n_before + 1: first + i)  # type: ignore[misc]
            n_before += len(texts[0]) if texts else 0

    def _damaged(self, error: BaseException) -> DataError:
        lines = str(error).splitlines() or [type(error).__name__]
        return DataError(f"{self.source.name}: this Parquet file is cut off or damaged ({lines[0]}). Make it again.")


def _as_cell(value: Any) -> str:
    """Numbers that are whole are written so: pandas turns integers into floats to make room for what is missing."""
    if isinstance(value, float):
        if value != value:
            return ""
        return str(int(value)) if value.is_integer() else repr(value)
    return value if isinstance(value, str) else as_text(value) if _is_json(value) else str(value)


def _is_json(value: Any) -> bool:
    return value is None or isinstance(value, int | list | dict)


def _open(source: Source) -> tuple[list[str], Iterator[list[list[Any]]]]:
    """The names of the columns, and their values some rows at a time."""
    for package, opened in (("polars", _polars), ("pyarrow.parquet", _pyarrow)):
        try:
            module = importlib.import_module(package)
        except ImportError:
            continue
        return opened(module, source)
    raise MissingExtraError(f"Parquet files need polars or pyarrow: {how_to_install('parquet')}.")


def _polars(polars: Any, source: Source) -> tuple[list[str], Iterator[list[list[Any]]]]:
    with source.open() as file:
        path = os.path.abspath(file.name)
    frame = polars.scan_parquet(path, glob=False, hive_partitioning=False)  # the path is a name, not a pattern
    names = frame.collect_schema().names()
    n_rows = frame.select(polars.len()).collect().item()
    blocks = (frame.slice(start, _N_ROWS).collect() for start in range(0, n_rows, _N_ROWS))
    return names, ([block[name].to_list() for name in names] for block in blocks)


def _pyarrow(parquet: Any, source: Source) -> tuple[list[str], Iterator[list[list[Any]]]]:
    with source.open() as raw:
        file = parquet.ParquetFile(raw.name)
    names = file.schema_arrow.names
    return names, ([column.to_pylist() for column in batch.columns] for batch in file.iter_batches(_N_ROWS))
