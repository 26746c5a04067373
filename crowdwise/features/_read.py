"""A file of features -> ids, numbers and texts of its examples, and the recipe for new rows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdwise._arrays import Array
from crowdwise._text import some_names
from crowdwise.exceptions import DataError
from crowdwise.features._columns import as_texts
from crowdwise.features._recipe import MATRIX, Recipe
from crowdwise.formats._names import check_ids, find_example
from crowdwise.labels._encode import as_objects
from crowdwise.rows.read import map_array
from crowdwise.tables import Source, open_table

_NUMPY = b"\x93NUMPY"


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Features of examples.

    Parameters
    ----------
    ids : ndarray of shape (n_examples,)
        Of the examples, as texts; the numbers of the rows, from 0, of a NumPy file.
    X : ndarray or csr_array of shape (n_examples, n_features)
        Numbers for a model.
    recipe : Recipe
        What makes the same numbers of new rows.
    texts : list of str or None
        Of the examples, if a column of texts was named.
    notes : tuple of str
        What was found and done, in words.
    """

    ids: Array
    X: Any
    recipe: Recipe
    texts: list[str] | None
    notes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.ids)


def read_features(
    path: str | os.PathLike[str],
    *,
    id: str | None = None,
    text: Sequence[str] = (),
    embedding: Sequence[str] = (),
    columns: Sequence[str] | None = None,
    encoding: str | None = None,
    recipe: Recipe | None = None,
    ids: str | os.PathLike[str] | None = None,
    show: str | None = None,
) -> FeatureTable:
    """Features from a table (CSV, TSV, JSON Lines, Parquet) or a NumPy file.

    Numbers are scaled and gaps filled, categories become zeros and ones, texts TF-IDF.

    Parameters
    ----------
    path : str or path
        The file.
    id : str, default=None
        The column with the examples' ids; by default "example", "task", "item", "id", ...
    text, embedding : sequence of str, default=()
        Columns with texts, and with lists of numbers.
    columns : sequence of str, default=None
        Columns with numbers or categories; by default all, or none if texts or embeddings are named.
    encoding : str, default=None
        Such as "latin-1"; by default UTF-8, or UTF-16 if the file begins with its mark.
    recipe : Recipe, default=None
        Of a fit, to be applied to these rows; by default it is learned from them.
    ids : str or path, default=None
        File with the ids of the rows of a NumPy file: a text with an id per line, a table with one column or one that
        is named like ids, or a NumPy file. By default the numbers of the rows, from 0.
    show : str, default=None
        Column with texts for people to read; it becomes no feature.

    Returns
    -------
    features : FeatureTable

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from crowdwise.features import read_features
    >>> path = Path(tempfile.mkdtemp()) / "features.csv"
    >>> _ = path.write_text("id,size,colour\\na,1,red\\nb,,blue\\n")
    >>> features = read_features(path)
    >>> features.ids.tolist(), features.X.shape
    (['a', 'b'], (2, 3))
    >>> features.notes[-1]
    "1 gap in 'size' was filled with the median"
    """
    source = Source(os.fspath(path))
    if source.head.startswith(_NUMPY):
        return _of_matrix(source, recipe, ids)
    if ids is not None:
        raise DataError(f"{source.name} is a table, which has its ids in a column: name it with --id COLUMN.")
    if recipe is not None and recipe.is_matrix:
        raise DataError(f"{source.name} is no NumPy file; the fit had one. Give new rows in the same way.")
    table = open_table(source, encoding)
    name = _id_column(source.name, table.header, id)
    lists = embedding if recipe is None else recipe.list_columns
    vectors = {column: table.vectors(column) for column in lists if column in table.header}
    vectors = {column: values for column, values in vectors.items() if values is not None}
    cells: dict[str, Any] = table.columns([column for column in table.header if column not in vectors]) | vectors
    if not cells[name]:
        raise DataError(f"{source.name} has a header but no rows.")
    if show is not None and show not in cells:
        raise DataError(f"{source.name} has no column {show!r} to show; its columns are {some_names(table.header)}.")
    texts = None if show is None else as_texts(cells[show] if show in (*text, *(columns or ())) else cells.pop(show))
    row_ids = cells.pop(name)
    check_ids(table.place, name, row_ids)
    notes = [*table.notes, f"ids: column {name!r}"]
    try:
        if recipe is None:
            recipe, described = Recipe.learn(cells, text=text, embedding=embedding, columns=columns)
            notes += described
        X, gaps = recipe.transform(cells)
    except DataError as error:
        raise DataError(f"{source.name}: {error}") from error
    if texts is None and (shown := text or recipe.text_columns):
        texts = as_texts(cells[shown[0]])
    return FeatureTable(as_objects(row_ids), X, recipe, texts, (*notes, *gaps))


def _of_matrix(source: Source, recipe: Recipe | None, ids: str | os.PathLike[str] | None) -> FeatureTable:
    with source.open() as file:
        values = map_array(file.name, source.name)
    if values.ndim != 2 or values.dtype.kind not in "iufb" or not values.size:
        raise DataError(
            f"{source.name} holds an array of shape {values.shape} and type {values.dtype}; numbers of shape "
            "(n_examples, n_features) were expected."
        )
    values = values.astype(np.float64)
    if recipe is not None and not recipe.is_matrix:
        raise DataError(f"{source.name} is a NumPy file; the fit had a table with columns.")
    notes = [] if recipe else [f"features: {values.shape[1]:,} numbers per example, scaled"]
    recipe = recipe or Recipe.of_matrix(values)
    X, gaps = recipe.transform({MATRIX: values})
    if ids is None:
        names, note = list(map(str, range(len(values)))), "ids: the numbers of the rows, from 0"
    else:
        names, note = _listed_ids(Source(os.fspath(ids)), len(values)), f"ids: those in {os.fspath(ids)}"
    return FeatureTable(as_objects(names), X, recipe, None, (*notes, note, *gaps))


def _listed_ids(source: Source, n_rows: int) -> list[str]:
    """The ids in a file: a NumPy file, a table with a column of them, or a text with one per line."""
    if source.head.startswith(_NUMPY):
        with source.open() as file:
            array = map_array(file.name, source.name)
        ids, column = list(map(str, array.ravel().tolist())), "the array"
    else:
        table = open_table(source)
        column = table.header[0] if len(table.header) == 1 else _id_column(source.name, table.header, None)
        ids = table.columns([column])[column]
        if len(table.header) == 1 and len(ids) == n_rows - 1:  # its first line is an id, and no header
            ids = [column, *ids]
    if len(ids) != n_rows:
        raise DataError(f"{source.name} has {len(ids):,} ids, and the features have {n_rows:,} rows: one each.")
    check_ids(lambda i: f"{source.name}, row {i + 1}", column, ids)
    return ids


def _id_column(name: str, header: Sequence[str], named: str | None) -> str:
    """The column with the ids: the one named, or the one that is usual."""
    column = find_example(name, header, named, "--id", ())
    if column is None:
        raise DataError(
            f"{name}: which column holds the ids of the examples? Its columns are {some_names(header)}. "
            "Name it: --id COLUMN."
        )
    return column
