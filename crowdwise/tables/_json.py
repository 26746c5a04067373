"""JSON Lines, or a JSON list of records -> records, and blocks of columns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

from crowdwise.exceptions import DataError
from crowdwise.tables._source import FIRST_ROWS, N_ROWS, Block, Source, decoded, encoding_of, line_blocks

Record = dict[str, Any]
# A record with its place in words, such as "tasks.json, record 3".
Placed = tuple[str, Record]


def as_text(value: Any) -> str:
    """A value of JSON as a cell of a table: text as it is, null as an empty cell, all else as JSON writes it.

    Examples
    --------
    >>> from crowdwise.tables import as_text
    >>> as_text("a"), as_text(None), as_text(3), as_text([1, "b"])
    ('a', '', '3', '[1, "b"]')
    """
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def parse_document(source: Source, encoding: str | None = None) -> Any:
    """A whole JSON document, in the encoding that its first bytes announce, or else UTF-8, unless one is given."""
    content = source.read()
    encoding = encoding or encoding_of(content)
    try:
        return _parse(content.decode(encoding))
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DataError(
            f"{source.name}, line {line}: this is not {encoding.upper()}, in which JSON is written. Save it as UTF-8, "
            "or name its encoding: --encoding NAME."
        ) from None
    except json.JSONDecodeError as error:
        raise DataError(
            f"{source.name}, line {error.lineno}, column {error.colno}: this is not JSON ({error.msg}). Is the file "
            "cut off? Export it again."
        ) from None
    except (RecursionError, ValueError) as error:
        raise DataError(f"{source.name}: this JSON cannot be read ({error}).") from None


def _parse(text: str) -> Any:
    return json.loads(text, parse_constant=_constant)


def _constant(name: str) -> Any:
    """NaN is a missing value, as pandas writes it; infinity is none that a label can have."""
    if name == "NaN":
        return None
    raise ValueError(f"{name} is not a value of JSON")


def json_records(source: Source, encoding: str | None = None) -> Iterator[tuple[int, Record]]:
    """The records of JSON Lines, or of a JSON document that is a list, each with its line or number."""
    encoding = encoding or encoding_of(source.head)
    values: Iterator[tuple[int, Any]] = _line_values(source, encoding)
    if whole := is_document(source, encoding):
        document = parse_document(source, encoding)
        values = enumerate(document if isinstance(document, list) else [document], start=1)
    for number, record in values:
        if not isinstance(record, dict):
            raise DataError(
                f"{source.name}, {'record' if whole else 'line'} {number}: a record with names and values was "
                f"expected, {{...}}; got {as_text(record)[:40]}."
            )
        yield number, record


def _line_values(source: Source, encoding: str) -> Iterator[tuple[int, Any]]:
    for number, line in enumerate(chain.from_iterable(line_blocks(source, encoding)), start=1):
        if line.strip():
            try:
                yield number, _parse(line)
            except (ValueError, RecursionError) as error:
                raise DataError(
                    f"{source.name}, line {number}: this is not JSON ({error}). A line per record was expected, each "
                    "{...}. Is the file cut off?"
                ) from None


def is_document(source: Source, encoding: str) -> bool:
    """Whether a file is one JSON document rather than a line per record, by its first line."""
    start = source.head.decode(encoding, "ignore").lstrip()
    if not start.startswith("{"):
        return True
    if source.suffix in (".jsonl", ".ndjson"):
        return False
    first, end, rest = start.partition("\n")
    if not end:  # the line goes on after what was looked at
        return _is_one_line(source, encoding)
    try:
        _parse(first)
    except (ValueError, RecursionError):  # the first of many lines, unless it looks like a broken record
        return not first.rstrip().endswith("}")
    return not rest.strip()


def _is_one_line(source: Source, encoding: str) -> bool:
    in_first = True
    for number, text in enumerate(decoded(source, encoding)):
        rest = text if number else text.lstrip()
        if in_first:
            _, end, rest = rest.partition("\n")
            in_first = not end
        if rest.strip():
            return False
    return True


class JsonRows:
    """The rows of records, block by block; `header` holds the names that occur in the first of them."""

    def __init__(self, source: Source, encoding: str | None) -> None:
        self.source, self._records = source, json_records(source, encoding)
        self._first = list(islice(self._records, FIRST_ROWS))
        self.header = list(dict.fromkeys(name for _, record in self._first for name in record))

    def blocks(self) -> Iterator[Block]:
        """The rows."""
        records, known = chain(self._first, self._records), set(self.header)
        while rows := list(islice(records, N_ROWS)):
            for line, record in rows:
                if not record.keys() <= known:
                    raise DataError(
                        f"{self.source.name}, line {line}: the names {sorted(record.keys() - known)} do not occur in "
                        f"the first {FIRST_ROWS:,} records. Give all records the same names."
                    )
            columns = [[as_text(record.get(name)) for _, record in rows] for name in self.header]
            yield Block(columns, [line for line, _ in rows].__getitem__)
