"""The cells of one column -> columns of numbers for a model, in the same way for new rows.

Each kind of column learns from the cells of a fit what it has to know, and keeps that as plain numbers and texts: they
are written as JSON and never executed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer

from crowdwise._arrays import Floats
from crowdwise.exceptions import DataError
from crowdwise.features.cells import as_numbers, as_texts, as_vectors, is_nothing

MOST_TERMS = 20_000
MOST_CATEGORIES = 50


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
        if isinstance(cells, np.ndarray) and cells.ndim == 2:
            return cells.astype(np.float64)
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

    @classmethod
    def learn(cls, name: str, cells: Sequence[Any]) -> Categories:
        """From the cells of a fit."""
        return cls(name, distinct(cells))

    def transform(self, cells: Sequence[Any]) -> tuple[Any, int]:
        """Zeros and ones of new rows, and how many rows have none of the categories."""
        place = {value: i for i, value in enumerate(self.values)}
        found = np.array([place.get(text.strip(), -1) for text in as_texts(cells)], dtype=np.intp)
        rows = np.flatnonzero(found >= 0)
        shape = (len(found), len(self.values))
        return sparse.csr_array((np.ones(len(rows)), (rows, found[rows])), shape=shape), len(found) - len(rows)


@dataclass(frozen=True)
class Words:
    """A column of texts: TF-IDF of terms that are in two of them or more, at most the 20,000 most frequent."""

    name: str  # of the column
    # What terms are made of: one or two words, or one to three characters where texts have no words between spaces.
    unit: str
    terms: list[str]  # in the order of their columns
    idf: list[float]  # weights of the terms

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
            if 2 * known >= sum(
                map(bool, texts)
            ):  # else words are hardly ever repeated: perhaps a script without spaces
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
    infinite = (np.abs(values) > 1e150).any(axis=1)
    if infinite.any():
        at = int(infinite.argmax())
        raise DataError(
            f"{name!r} holds an infinite or huge number in row {at + 1}; expected numbers up to 1e150 or nothing."
        )


def distinct(cells: Sequence[Any]) -> list[str]:
    """The different texts in a column, sorted, without what means nothing."""
    return sorted({text.strip() for text in as_texts([cell for cell in cells if not is_nothing(cell)])})
