"""Some rows of a table, column by column, and the errors that every kind of table has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from crowdwise.exceptions import DataError

# Rows of a block.
N_ROWS = 2**15


@dataclass(frozen=True)
class Block:
    """Some rows of a table."""

    columns: Sequence[Sequence[str]]  # one per column, all of the same length
    line_of: Callable[[int], int]  # from the position of a row in the block to the line of the file that it begins on


def no_header(name: str) -> DataError:
    """The error for a file in which there is nothing."""
    return DataError(
        f"{name} is empty; a header with the names of the columns was expected, and a row per label or example."
    )


def checked_header(name: str, header: Sequence[str]) -> tuple[str, ...]:
    """The names of columns, without spaces at their ends; columns without a name get their number.

    Examples
    --------
    >>> from crowdwise.tables._block import checked_header
    >>> checked_header("a.csv", ["", " task"])
    ('column 1', 'task')
    """
    if len(header) > 50_000:
        raise DataError(
            f"{name} has {len(header):,} columns; at most 50,000 are read. Give a row per label: example, annotator, "
            "label; or features as a NumPy file (.npy)."
        )
    names = tuple(cell.strip() or f"column {i}" for i, cell in enumerate(header, start=1))
    repeated = [column for column, n in Counter(names).items() if n > 1]
    if repeated:
        raise DataError(
            f"{name}: the columns must have different names; {', '.join(map(repr, repeated))} occurs more than once "
            f"in the header. Rename one of them."
        )
    return names
