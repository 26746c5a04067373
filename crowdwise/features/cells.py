"""The cells of a column, as files have them -> numbers, texts or vectors, and where there is nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from crowdwise._arrays import Floats
from crowdwise.exceptions import DataError
from crowdwise.labels.encode import is_missing

# What people and programs write where they have nothing; compared in small letters.
NOTHING = frozenset({"", "na", "n/a", "nan", "null", "none"})
_BETWEEN = re.compile(r"[\s,;]+")


def is_nothing(cell: Any) -> bool:
    """Whether a cell is empty or says that there is no value."""
    return cell.strip().lower() in NOTHING if isinstance(cell, str) else is_missing(cell)


def as_numbers(cells: Sequence[Any]) -> Floats | None:
    """Cells as numbers, NaN where there is nothing; None if some are not numbers.

    Examples
    --------
    >>> from crowdwise.features.cells import as_numbers
    >>> as_numbers(["1", " 2.5", ""]).tolist()
    [1.0, 2.5, nan]
    >>> as_numbers(["1", "blue"]) is None
    True
    """
    try:
        return np.fromiter(map(float, cells), np.float64, len(cells))
    except (TypeError, ValueError):  # gaps, or no numbers
        numbers = np.empty(len(cells))
    for i, cell in enumerate(cells):
        try:
            numbers[i] = float(cell)
        except (TypeError, ValueError):
            if not is_nothing(cell):
                return None
            numbers[i] = np.nan
    return numbers


def as_texts(cells: Sequence[Any]) -> list[str]:
    """Cells as texts; an empty text where there is nothing.

    Examples
    --------
    >>> from crowdwise.features.cells import as_texts
    >>> as_texts(["blue", None, 7])
    ['blue', '', '7']
    """
    return [cell if isinstance(cell, str) else "" if is_missing(cell) else str(cell) for cell in cells]


def as_vectors(cells: Sequence[Any], name: str) -> Floats:
    """Cells that each hold a list of numbers, as the rows of a matrix; NaN in the rows where there is nothing.

    Examples
    --------
    >>> from crowdwise.features.cells import as_vectors
    >>> as_vectors(["[1, 2]", "3 4"], "embedding").tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    rows = [_vector(cell, name, at) for at, cell in enumerate(cells, start=1)]
    sizes = sorted({len(row) for row in rows if row is not None})
    if not sizes:
        raise DataError(f"the column {name!r} is empty: there is no embedding in it.")
    if len(sizes) > 1:
        odd = next(at for at, row in enumerate(rows, start=1) if row is not None and len(row) != sizes[-1])
        raise DataError(
            f"the lists of numbers in the column {name!r} must be of one length; row {odd} has "
            f"{len(rows[odd - 1] or ())} numbers, others have {sizes[-1]}."
        )
    nothing = [np.nan] * sizes[0]
    return np.array([nothing if row is None else row for row in rows], dtype=np.float64)


def _vector(cell: Any, name: str, at: int) -> list[float] | None:
    if not isinstance(cell, str) and np.ndim(cell) == 1:
        values = list(cell)
    elif is_nothing(cell):
        return None
    else:
        values = _listed(str(cell))
    try:
        return [float(value) for value in values]
    except (TypeError, ValueError):
        raise DataError(
            f"the column {name!r} must hold a list of numbers in each row, such as [0.1, 0.2] or 0.1 0.2; row {at} "
            f"holds {str(cell)[:40]!r}."
        ) from None


def _listed(text: str) -> list[Any]:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return _BETWEEN.split(text.strip().strip("[]()").strip())
    return values if isinstance(values, list) else [values]
