"""The cells of one column, as files have them -> columns of numbers for a model, in the same way for new rows.

Each kind of column learns from the cells of a fit what it has to know, and keeps that as plain numbers and texts: they
are written as JSON and never executed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from crowdwise._arrays import Floats
from crowdwise.exceptions import DataError
from crowdwise.labels._encode import is_missing
from crowdwise.labels.scale import LARGEST

MOST_TERMS = 20_000
MOST_CATEGORIES = 50
# What people and programs write where they have nothing; compared in small letters.
_NOTHING = frozenset({"", "na", "n/a", "nan", "null", "none"})
_BETWEEN = re.compile(r"[\s,;]+")


def is_nothing(cell: Any) -> bool:
    """Whether a cell is empty or stands for no value."""
    return cell.strip().lower() in _NOTHING if isinstance(cell, str) else is_missing(cell)


def as_numbers(cells: Sequence[Any]) -> Floats | None:
    """Cells as numbers, NaN where there is nothing; None if some are not numbers.

    Examples
    --------
    >>> from crowdwise.features._columns import as_numbers
    >>> as_numbers(["1", " 2.5", ""]).tolist()
    [1.0, 2.5, nan]
    >>> as_numbers(["1", "blue"]) is None
    True
    """
    try:
        return np.fromiter(map(_number, cells), np.float64, len(cells))
    except (TypeError, ValueError):
        return None


def _number(cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError):
        if not is_nothing(cell):
            raise
        return np.nan


def as_texts(cells: Sequence[Any]) -> list[str]:
    """Cells as texts; an empty text where there is nothing.

    Examples
    --------
    >>> from crowdwise.features._columns import as_texts
    >>> as_texts(["blue", None, 7])
    ['blue', '', '7']
    """
    return [cell if isinstance(cell, str) else "" if is_missing(cell) else str(cell) for cell in cells]


def as_vectors(cells: Sequence[Any], name: str) -> Floats:
    """Cells that each hold a list of numbers, as the rows of a matrix; NaN in the rows where there is nothing.

    Examples
    --------
    >>> from crowdwise.features._columns import as_vectors
    >>> as_vectors(["[1, 2]", "3 4"], "embedding").tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    if isinstance(cells, np.ndarray) and cells.ndim == 2:
        return cells.astype(np.float64)
    rows = [_vector(cell, name, number) for number, cell in enumerate(cells, start=1)]
    size = max((len(row) for row in rows if row is not None), default=0)
    if not size:
        raise DataError(f"the column {name!r} is empty: there is no embedding in it.")
    for number, row in enumerate(rows, start=1):
        if row is not None and len(row) != size:
            raise DataError(
                f"the lists of numbers in the column {name!r} must be of one length; row {number} has {len(row)} "
                f"numbers, others have {size}."
            )
    return np.array([[np.nan] * size if row is None else row for row in rows], dtype=np.float64)


def _vector(cell: Any, name: str, number: int) -> list[float] | None:
    is_list = not isinstance(cell, str) and np.ndim(cell) == 1
    if not is_list and is_nothing(cell):
        return None
    try:
        return [float(value) for value in (cell if is_list else _listed(str(cell)))]
    except (TypeError, ValueError):
        raise DataError(
            f"the column {name!r} must hold a list of numbers in each row, such as [0.1, 0.2] or 0.1 0.2; row {number} "
            f"holds {str(cell)[:40]!r}."
        ) from None


def _listed(text: str) -> list[Any]:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return _BETWEEN.split(text.strip().strip("[]()").strip())
    return values if isinstance(values, list) else [values]


@dataclass(frozen=True)
class Numbers:
    """A column of numbers, or of lists of numbers: scaled to mean 0 and spread 1, gaps filled with the median.

    Parameters
    ----------
    name : str
        Of the column.
    fill, mean, scale : list of float
        Of each number: the median, the mean after gaps are filled, the standard deviation (1 for a constant).
    is_list : bool
        Whether a cell holds a list of numbers.
    """

    name: str
    fill: list[float]
    mean: list[float]
    scale: list[float]
    is_list: bool = False

    @property
    def feature_names(self) -> list[str]:
        """What to call each of its numbers."""
        return [f"{self.name} {at}" for at in range(len(self.fill))] if self.is_list else [self.name]

    @classmethod
    def learn(cls, name: str, values: Floats, *, is_list: bool = False) -> Numbers:
        """From numbers of shape (n_rows, n_numbers), NaN where there is nothing."""
        check_finite_numbers(name, values)
        fill = np.array([np.median(column[~np.isnan(column)]) for column in values.T])
        filled = np.where(np.isnan(values), fill, values)
        scale = filled.std(axis=0)
        scale[scale <= 1e-12 * np.abs(filled).max(axis=0, initial=0.0)] = 1.0  # rounding makes no spread
        return cls(name, fill.tolist(), filled.mean(axis=0).tolist(), scale.tolist(), is_list)

    def transform(self, cells: Any) -> tuple[Floats, int]:
        """Numbers of new rows, and how many gaps were filled."""
        values = self._values(cells)
        if values.shape[1] != len(self.fill):
            raise DataError(
                f"{self.name!r} has {values.shape[1]} numbers in each row, but had {len(self.fill)} in the fit."
            )
        check_finite_numbers(self.name, values)
        gaps = np.isnan(values)
        filled = np.where(gaps, self.fill, values)
        return (filled - self.mean) / self.scale, int(gaps.any(axis=1).sum())

    def _values(self, cells: Any) -> Floats:
        if self.is_list:
            return as_vectors(cells, self.name)
        numbers = as_numbers(cells)
        if numbers is None:
            at = next(i for i, cell in enumerate(cells) if as_numbers([cell]) is None)
            raise DataError(
                f"the column {self.name!r} held numbers in the fit; row {at + 1} holds {str(cells[at])[:40]!r}."
            )
        return numbers[:, np.newaxis]


@dataclass(frozen=True)
class Categories:
    """A column of a few different texts: zeros and ones for each of the sorted `values`; only zeros for others."""

    name: str
    values: list[str]

    @property
    def feature_names(self) -> list[str]:
        """What to call each of its numbers."""
        return [f"{self.name}: {value}" for value in self.values]

    def transform(self, cells: Sequence[Any]) -> tuple[Any, int]:
        """Zeros and ones of new rows, and how many rows have none of the categories."""
        place = {value: i for i, value in enumerate(self.values)}
        values = np.array([place.get(text.strip(), -1) for text in as_texts(cells)], dtype=np.intp)
        rows = np.flatnonzero(values >= 0)
        shape = (len(values), len(self.values))
        return sparse.csr_array((np.ones(len(rows)), (rows, values[rows])), shape=shape), len(values) - len(rows)


@dataclass(frozen=True)
class Words:
    """A column of texts: TF-IDF of terms that are in two of them or more, at most the 20,000 most frequent."""

    name: str  # of the column
    # What terms are made of: one or two words, or one to three characters where texts have no words between spaces.
    unit: str
    terms: list[str]  # in the order of their columns
    idf: list[float]  # weights of the terms

    @property
    def feature_names(self) -> list[str]:
        """What to call each of its numbers."""
        return self.terms

    @classmethod
    def learn(cls, name: str, cells: Sequence[Any]) -> Words:
        """From the cells of a fit."""
        texts = as_texts(cells)
        for unit, in_texts in (("word", 2), ("char", 2), ("char", 1)):
            terms = _vectorizer(unit, min_df=in_texts, max_features=MOST_TERMS)
            try:
                counts = terms.fit_transform(texts)
            except ValueError:  # no term is left
                continue
            known = (np.diff(counts.indptr) > 0).sum()
            if 2 * known >= sum(map(bool, texts)):  # else few words are repeated: perhaps a script without spaces
                return cls(name, unit, terms.get_feature_names_out().tolist(), terms.idf_.tolist())
        raise DataError(f"the column {name!r} has no text to learn from.")

    @cached_property
    def _fitted(self) -> Any:
        fitted = _vectorizer(self.unit, vocabulary=self.terms)
        fitted.idf_ = np.array(self.idf)
        return fitted

    def transform(self, cells: Sequence[Any]) -> tuple[Any, int]:
        """TF-IDF of new rows, and how many rows have none of the terms."""
        counts = sparse.csr_array(self._fitted.transform(as_texts(cells)))
        return counts, int((np.diff(counts.indptr) == 0).sum())


def _vectorizer(unit: str, **settings: Any) -> Any:
    reach = (1, 2) if unit == "word" else (1, 3)
    return TfidfVectorizer(analyzer=unit, ngram_range=reach, sublinear_tf=True, **settings)


def check_finite_numbers(name: str, values: Floats) -> None:
    """Raise if a number is infinite, or so large that its square is."""
    infinite = (np.abs(values) > LARGEST).any(axis=1)
    if infinite.any():
        at = int(infinite.argmax())
        raise DataError(
            f"{name!r} holds an infinite or huge number in row {at + 1}; expected numbers up to {LARGEST:g} or nothing."
        )


def distinct(cells: Sequence[Any]) -> list[str]:
    """The different texts in a column, sorted, without what means nothing."""
    return sorted({text.strip() for text in as_texts([cell for cell in cells if not is_nothing(cell)])})
