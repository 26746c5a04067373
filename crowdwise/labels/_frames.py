"""Data frames of any library, and mappings of columns -> plain arrays and their names."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Hashable, Mapping
from typing import Any

import narwhals as nw
import numpy as np

from crowdwise._arrays import Array
from crowdwise.exceptions import LabelError, MissingExtraError
from crowdwise.labels._encode import as_column, as_objects, loses_digits

# What people call the three columns of a long table of labels, most usual first.
USUAL_NAMES = {
    "example": ("example", "task", "item", "example_id", "task_id", "item_id", "question", "unit"),
    "annotator": ("annotator", "worker", "rater", "annotator_id", "worker_id", "rater_id", "user", "judge"),
    "label": ("label", "rating", "answer", "response", "annotation", "class", "value", "vote", "verdict"),
}


def is_frame(data: object) -> bool:
    """Whether `data` is a data frame that narwhals knows (pandas, polars, pyarrow, ...)."""
    if isinstance(data, np.ndarray):  # narwhals looks long
        return False
    try:
        return isinstance(nw.from_native(data, eager_only=True, pass_through=True), nw.DataFrame)
    except nw.exceptions.DuplicateError as error:
        raise LabelError(
            f"the columns of a data frame must have different names: {' '.join(str(error).split())}."
        ) from None


def library_of(data: object) -> str | None:
    """Whether `data` is of pandas or of polars; None if it is neither, or labels that came from neither."""
    name = type(data).__module__.partition(".")[0]
    return name if name in ("pandas", "polars") else getattr(data, "frame_library", None)


def index_of(data: object) -> Array | None:
    """The index of a pandas object, a default one too; None for anything that has none."""
    index = getattr(data, "index", None)
    return None if index is None or not hasattr(index, "to_numpy") else np.asarray(index.to_numpy())


def is_default(ids: Array) -> bool:
    """Whether ids are 0, 1, 2, ..., which pandas makes where none were given."""
    return ids.dtype.kind in "iu" and np.array_equal(ids, np.arange(len(ids)))


def named_values(values: Any) -> tuple[Array | None, Any]:
    """The ids that values are given by, those of a mapping or the index of a series, and the values; None without."""
    if isinstance(values, Mapping):
        return as_objects(list(values)), as_objects(list(values.values()))
    return index_of(values), values


def row_ids(data: object) -> Array | None:
    """The index of a pandas object; None for a default index and for anything that has none."""
    ids = index_of(data)
    return None if ids is None or is_default(ids) else ids


def _column(series: Any) -> Array:
    """A column as an array, everything that means "absent" turned into None or NaN."""
    try:
        values = series.to_numpy()
    except Exception:  # of each library its own: polars has whole numbers of 128 bits
        values = as_objects(series.to_list())
    absent = series.is_null().to_numpy()
    if absent.any() and values.dtype.kind not in "fMm":
        values = values.astype(object)
        values[absent] = None
    elif (
        absent.any() and values.dtype.kind == "f" and loses_digits(values)
    ):  # integers became floats to make room for what is absent
        values = as_objects(series.to_list())
    return np.asarray(values)


def frame_matrix(frame: Any) -> tuple[Array, list[object]]:
    """The values of a wide data frame as one matrix, and its column names."""
    table = nw.from_native(frame, eager_only=True)
    names: list[object] = list(table.columns)
    columns = [_column(table[:, i]) for i in range(len(names))]
    if not columns:
        return np.empty((len(table), 0)), names
    letters = {column.dtype.kind for column in columns}
    if letters <= {"i", "f"} and not (len(letters) == 2 and any(map(loses_digits, columns))):
        return np.column_stack(columns), names
    dtypes = {column.dtype for column in columns}
    matrix = np.empty((len(table), len(columns)), dtype=dtypes.pop() if len(dtypes) == 1 else object)
    for i, column in enumerate(columns):
        is_time = column.dtype.kind in "Mm" and matrix.dtype == object  # which would become numbers
        matrix[:, i] = as_objects(list(column)) if is_time else column
    return matrix, names


def find_column(names: list[Hashable], role: str, name: Hashable | None) -> Hashable:
    """The name of the column that plays `role`: the one named, else the first usual name."""
    if name is not None:
        if name in names:
            return name
        raise LabelError(f"there is no column {name!r} for {role}; the columns are {names}.")
    lowered = {name.lower(): name for name in reversed(names) if isinstance(name, str)}
    for usual in USUAL_NAMES[role]:
        if usual in lowered:
            return lowered[usual]
    raise LabelError(
        f"no column looks like {role} (tried {', '.join(USUAL_NAMES[role])}); the columns are {names}. "
        f"Say which one it is: {role}='...'."
    )


def table_columns(table: Any) -> dict[Hashable, Array]:
    """The columns of a long table, which is a data frame or a mapping from names to columns."""
    if isinstance(table, Mapping):
        return {name: as_column(column, f"column {name!r}") for name, column in table.items()}
    if not is_frame(table):
        raise TypeError(
            f"table must be a data frame or a mapping of columns; got {type(table).__name__}. "
            "For a matrix with a column per annotator use CrowdLabels.from_matrix."
        )
    frame = nw.from_native(table, eager_only=True)
    return {name: _column(frame.get_column(name)) for name in frame.columns}


def make_frame(columns: Mapping[str, Array], library: str | None = None) -> Any:
    """A data frame of a library, by default pandas, or polars where that is not installed; it can be changed."""
    copies = {
        # No library has names with half of a surrogate pair.
        name.encode(errors="backslashreplace").decode(): np.array(column) if isinstance(column, np.ndarray) else column
        for name, column in columns.items()
    }
    if library != "polars":
        with contextlib.suppress(ImportError):
            pandas = importlib.import_module("pandas")
            return pandas.DataFrame({name: _pandas_column(pandas, column) for name, column in copies.items()})
    with contextlib.suppress(ImportError):
        polars = importlib.import_module("polars")
        return polars.DataFrame([_polars_column(polars, name, column) for name, column in copies.items()])
    raise MissingExtraError("a data frame needs pandas (or polars): pip install pandas.")


def _pandas_column(pandas: Any, column: Any) -> Any:
    """A column of pandas; text with half of a surrogate pair, which its strings cannot hold, stays as it is."""
    try:
        return pandas.Series(column)
    except UnicodeEncodeError:
        return pandas.Series(column, dtype=object)


def _polars_column(polars: Any, name: str, column: Any) -> Any:
    """A column of polars, which has one type; values of several, and text that is not UTF-8, stay as they are."""
    if not isinstance(column, np.ndarray) or len({type(value) for value in column.tolist() if value is not None}) < 2:
        with contextlib.suppress(UnicodeEncodeError):
            return polars.Series(name, column)
    return polars.Series(name, np.asarray(column).tolist(), dtype=polars.Object)
