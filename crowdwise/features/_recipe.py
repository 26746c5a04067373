"""Columns of a table -> what each of them becomes, learned once and applied to new rows; kept as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import sparse

from crowdwise._text import count, some_names
from crowdwise.exceptions import DataError
from crowdwise.features._columns import (
    MOST_CATEGORIES,
    Categories,
    Numbers,
    Words,
    as_numbers,
    as_vectors,
    distinct,
)

Column = Numbers | Categories | Words
_KINDS: dict[str, type[Any]] = {"numbers": Numbers, "categories": Categories, "words": Words}
_SCHEMA = "crowdwise.features/1"
# The rows of a NumPy file, which has no columns with names.
MATRIX = "the matrix"
# Columns of these names are taken for answers, which must not be features.
_ANSWERS = frozenset({"label", "labels", "truth", "gold", "answer", "class", "target", "y"})
# What pandas calls the index of a frame in a file, and what a column without a name is called here.
_INDEX = re.compile(r"__index_level_\d+__|Unnamed: \d+|column \d+")
# A number with a comma in place of a point, as spreadsheets write it in much of Europe.
_WITH_COMMA = re.compile(r"[-+]?[0-9]+,[0-9]+")


@dataclass(frozen=True)
class Recipe:
    """What each column becomes.

    Parameters
    ----------
    columns : tuple of Numbers, Categories or Words
        In the order in which their numbers are side by side.

    Examples
    --------
    >>> from crowdwise.features import Recipe
    >>> table = {"size": ["1", "2", "3"], "colour": ["red", "blue", "red"]}
    >>> recipe, notes = Recipe.learn(table)
    >>> X, notes = recipe.transform(table)
    >>> X.shape
    (3, 3)
    """

    columns: tuple[Column, ...]

    @classmethod
    def learn(
        cls,
        table: Mapping[str, Sequence[Any]],
        *,
        text: Sequence[str] = (),
        embedding: Sequence[str] = (),
        columns: Sequence[str] | None = None,
    ) -> tuple[Recipe, list[str]]:
        """The recipe of a table without its ids, and what is worth saying about it.

        Its columns of numbers or categories are by default all, or none if there are texts or embeddings.
        """
        named = (*text, *embedding, *(columns or ()))
        for name in named:
            if name not in table:
                raise DataError(f"there is no column {name!r}; the columns are {', '.join(map(repr, table))}.")
        chosen = columns if columns is not None else [] if named else list(table)
        learned: list[Column] = [Words.learn(name, table[name]) for name in text]
        learned += [Numbers.learn(name, as_vectors(table[name], name), is_list=True) for name in embedding]
        notes: list[str] = []
        for name in chosen:
            column = _guess(name, table[name], is_named=name in named)
            if isinstance(column, str):
                notes.append(column)
            else:
                learned.append(column)
        if not learned:
            raise DataError(
                f"no column can be used as it is: {'; '.join(notes) or 'there is none beside the ids'}. "
                "Name a column of texts with --text, or of lists of numbers with --embedding."
            )
        return cls(tuple(learned)), [*_describe(learned), *notes]

    @classmethod
    def of_matrix(cls, values: Any) -> Recipe:
        """The recipe of a matrix of numbers."""
        return cls((Numbers.learn(MATRIX, values, is_list=True),))

    @property
    def is_matrix(self) -> bool:
        """Whether it is of a matrix, without names of columns."""
        return self.columns[0].name == MATRIX

    @property
    def feature_names(self) -> list[str]:
        """What to call each of the numbers of a row."""
        return [name for column in self.columns for name in column.feature_names]

    @property
    def text_columns(self) -> list[str]:
        """Names of the columns with texts."""
        return [column.name for column in self.columns if isinstance(column, Words)]

    @property
    def list_columns(self) -> list[str]:
        """Names of the columns with lists of numbers."""
        return [column.name for column in self.columns if isinstance(column, Numbers) and column.is_list]

    def transform(self, table: Mapping[str, Any]) -> tuple[Any, list[str]]:
        """Features of the rows of a table, sparse if there are texts, and what is worth saying about them.

        The table has all the columns of the fit; others are passed over.
        """
        absent = [column.name for column in self.columns if column.name not in table]
        if absent:
            raise DataError(
                f"the features need the columns {', '.join(map(repr, absent))}, as in the fit; "
                f"the columns here are {', '.join(map(repr, table))}."
            )
        parts: list[Any] = []
        notes: list[str] = []
        for column in self.columns:
            part, n_without = column.transform(table[column.name])
            parts.append(part)
            notes += [_without(column, n_without)] if n_without else []
        if any(isinstance(column, Words) for column in self.columns):
            return sparse.csr_array(sparse.hstack(parts)), notes
        return np.hstack([part.toarray() if sparse.issparse(part) else part for part in parts]), notes

    def to_json(self) -> str:
        """The recipe as JSON."""
        kinds = {kind: name for name, kind in _KINDS.items()}
        columns = [{"kind": kinds[type(column)], **asdict(column)} for column in self.columns]
        return json.dumps({"schema": _SCHEMA, "columns": columns}, ensure_ascii=False, indent=1) + "\n"

    @classmethod
    def from_json(cls, content: str | bytes) -> Recipe:
        """The recipe that was written as JSON."""
        try:
            read = json.loads(content)
            if read["schema"] != _SCHEMA:
                raise DataError(f"the features are of the schema {read['schema']!r}; this version reads {_SCHEMA!r}.")
            return cls(tuple(_KINDS[column.pop("kind")](**column) for column in read["columns"]))
        except DataError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DataError(f"the description of the features is damaged: {error!r}.") from error


def _guess(name: str, cells: Sequence[Any], *, is_named: bool) -> Column | str:
    """What a column becomes, or why it is left out."""
    if name.lower() in _ANSWERS and not is_named:
        return f"column {name!r} is left out because it may hold answers (--columns to use it)"
    numbers = as_numbers(cells)
    if numbers is not None:
        if np.isnan(numbers).all():
            return f"column {name!r} is left out: it is empty"
        is_index = not is_named and _INDEX.fullmatch(name) and (numbers == np.floor(numbers)).all()
        if is_index and len(np.unique(numbers)) == len(numbers):
            return f"column {name!r} is left out because it numbers the rows (--columns to use it)"
        return Numbers.learn(name, numbers[:, np.newaxis])
    values = distinct(cells)
    _refuse_decimal_commas(name, values)
    if len(values) > MOST_CATEGORIES and not is_named:
        return f"column {name!r} is left out: {len(values):,} different texts (--text {name} to use it)"
    return Categories(name, values)


def _refuse_decimal_commas(name: str, values: Sequence[str]) -> None:
    """An error if these are numbers but for a comma: as categories they would be of no use."""
    commas = [value for value in values if _WITH_COMMA.fullmatch(value)]
    if commas and as_numbers([value.replace(",", ".") for value in values]) is not None:
        raise DataError(
            f"the column {name!r} holds numbers with a comma, such as {commas[0]!r}: write them with a point, or leave "
            "the column out by naming those to use: --columns A,B,..."
        )


def _describe(columns: Sequence[Column]) -> list[str]:
    lines = []
    numeric = [column for column in columns if isinstance(column, Numbers) and not column.is_list]
    if numeric:
        lines.append(f"features: {some_names([repr(column.name) for column in numeric])} as numbers, scaled")
    for column in columns:
        if isinstance(column, Categories):
            lines.append(f"features: {column.name!r} as {len(column.values)} categories")
        elif isinstance(column, Words):
            of = "words and pairs of words" if column.unit == "word" else "pieces of one to three characters"
            of = of.replace("words and pairs", "word or pair") if len(column.terms) == 1 else of
            lines.append(f"features: {column.name!r} as TF-IDF of {len(column.terms):,} {of}")
        elif column.is_list:
            lines.append(f"features: {column.name!r} as {len(column.fill):,} numbers per example, scaled")
    return lines


def _without(column: Column, n: int) -> str:
    if isinstance(column, Numbers):
        filled = count(n, f"gap in {column.name!r} was", f"gaps in {column.name!r} were")
        return f"{filled} filled with the median"
    known = "words" if isinstance(column, Words) else "categories"
    return f"{count(n, 'row has', 'rows have')} none of the known {known} in {column.name!r}"
