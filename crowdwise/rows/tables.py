"""Tables of Parquet, Arrow and CSV files, read by pyarrow -> features and ids of blocks, and labels matched by id."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from crowdwise._arrays import Array, Bools, Positions
from crowdwise._text import how_to_install
from crowdwise.exceptions import AlignmentError, DataError, MissingDataError, MissingExtraError
from crowdwise.labels._frames import USUAL_NAMES
from crowdwise.labels._mistakes import ids_spelt_otherwise
from crowdwise.labels.crowd_labels import CrowdLabels

Join = Literal["exact", "inner"]

_FORMATS = {".parquet": "parquet", ".pq": "parquet", ".arrow": "ipc", ".feather": "ipc", ".ipc": "ipc", ".csv": "csv"}


def is_table(source: Any) -> bool:
    """Whether this is a file that pyarrow reads, a folder or a list of such, or an Arrow dataset or table."""
    if hasattr(source, "to_batches"):
        return True
    if isinstance(source, list | tuple) and source:
        return all(isinstance(path, str | os.PathLike) and is_table(path) for path in source)
    return isinstance(source, str | os.PathLike) and _format_of(Path(source)) is not None


def _format_of(path: Path) -> str | None:
    """What a file is, by its name; of a folder, what the first of its files is that has one of these names."""
    if path.is_dir():
        formats = (_FORMATS.get(file.suffix.lower()) for file in sorted(path.rglob("*")))
        return next(filter(None, formats), None)
    return _FORMATS.get(path.suffix.lower())


def open_dataset(source: Any) -> Any:
    """An Arrow dataset."""
    if hasattr(source, "to_batches"):
        return source
    try:
        dataset = importlib.import_module("pyarrow.dataset")
    except ImportError:
        raise MissingExtraError(
            f"blocks of Parquet, Arrow and CSV files need pyarrow: {how_to_install('arrow')}."
        ) from None
    paths = [os.fspath(path) for path in source] if isinstance(source, list | tuple) else os.fspath(source)
    several = paths if isinstance(paths, list) else [paths]
    first = Path(several[0])
    try:
        return dataset.dataset(paths, format=_format_of(first))
    except FileNotFoundError:
        absent = next((path for path in several if not os.path.exists(path)), first)
        raise MissingDataError(f"there is no file {absent}.") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{first} cannot be read: {error}") from error


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are what.

    Parameters
    ----------
    features : tuple of str
        Features.
    labels : tuple of str
        A column per annotator; none if labels come from elsewhere.
    example : str or None
        Ids of the examples.
    weight : str or None
        Sample weights.
    """

    features: tuple[str, ...]
    labels: tuple[str, ...]
    example: str | None
    weight: str | None

    @classmethod
    def of(
        cls,
        schema: Any,
        features: Sequence[str] | None,
        labels: Sequence[str] | None,
        example: str | None,
        weight: str | None,
    ) -> Columns:
        """Among all columns; by default all others are features, but for the index that pandas wrote beside them."""
        names = schema.names
        others = [*(labels or ()), *(name for name in (example, weight) if name is not None)]
        if unknown := [name for name in (*others, *(features or ())) if name not in names]:
            raise DataError(f"there is no column {unknown[0]!r}; the columns are {', '.join(names)}.")
        left_out = {*others, *_pandas_index(schema)}
        chosen = [name for name in names if name not in left_out] if features is None else features
        if not chosen:
            raise DataError(f"no column is left for features; the columns are {', '.join(names)}.")
        return cls(tuple(chosen), tuple(labels or ()), example, weight)

    @property
    def all(self) -> list[str]:
        """Every column that is read."""
        others = (name for name in (self.example, self.weight) if name is not None)
        return list(dict.fromkeys([*self.features, *self.labels, *others]))


def _pandas_index(schema: Any) -> list[str]:
    """The columns that were the index of a pandas frame; one that only counts rows is none."""
    written = schema.pandas_metadata or {}
    return [name for name in written.get("index_columns", ()) if isinstance(name, str)]


def named_like_ids(schema: Any, columns: Columns) -> str | None:
    """The first feature of whole numbers that is named as ids of examples are."""
    types = importlib.import_module("pyarrow.types")
    usual = {"id", *USUAL_NAMES["example"]}
    whole = (name for name in columns.features if types.is_integer(schema.field(name).type))
    return next((name for name in whole if name.lower() in usual), None)


def batches(data: Any, columns: Columns, n_rows: int) -> Iterator[Any]:
    """Tables of about so many rows; small batches, as in files with many row groups, are joined."""
    pyarrow = importlib.import_module("pyarrow")
    options: dict[str, Any] = {}
    if not isinstance(data, pyarrow.Table):
        options = {"columns": columns.all, "batch_size": n_rows, "batch_readahead": 1, "fragment_readahead": 1}
    waiting: list[Any] = []
    for batch in data.to_batches(**options):
        for start in range(0, batch.num_rows, n_rows):
            waiting.append(batch.slice(start, n_rows))
            if sum(part.num_rows for part in waiting) >= n_rows:
                yield pyarrow.Table.from_batches(waiting)
                waiting = []
    if waiting:
        yield pyarrow.Table.from_batches(waiting)


def features_of(batch: Any, columns: Columns) -> Array:
    """The features of a batch, in single precision if all of them are."""
    parts = []
    for name in columns.features:
        values = batch.column(name).to_numpy()
        if values.dtype.kind not in "biuf":
            raise DataError(
                f"the column {name!r} is of type {batch.schema.field(name).type}, and features must be numbers. Name "
                "the columns that are: features=[...]."
            )
        parts.append(values)
    single = all(part.dtype == np.float32 for part in parts)
    X = np.empty((batch.num_rows, len(parts)), dtype=np.float32 if single else np.float64)
    for j, part in enumerate(parts):
        X[:, j] = part
    return X


def ids_of(batch: Any, columns: Columns) -> Array:
    """The ids of the examples of a batch: numbers, or anything else as it is."""
    column = batch.column(columns.example)
    if column.null_count:
        raise DataError(
            f"every row needs its id; {column.null_count} rows have none in the column {columns.example!r}."
        )
    return np.asarray(column.to_numpy())


class LabelsById:
    """The labels of blocks whose rows are named by ids, looked up one block after the other.

    Parameters
    ----------
    labels : CrowdLabels
        With ids; no two examples have the same.
    join : {"exact", "inner"}
        What to do with rows that have no labels and labels that have no row: stop with an error, or keep what is on
        both sides.
    """

    def __init__(self, labels: CrowdLabels, join: Join) -> None:
        self.labels, self.join = labels, join
        ids = _comparable(labels.examples)
        self._order = np.argsort(ids, kind="stable")
        self._sorted = ids[self._order]
        if (repeated := self._sorted[1:] == self._sorted[:-1]).any():
            at = self._order[1:][repeated][0]
            raise AlignmentError(
                "the identifiers of the labels must be different from each other; "
                f"{labels.examples[at : at + 1].tolist()[0]!r} is repeated."
            )
        self._met = np.zeros(len(labels), dtype=bool)

    def of(self, ids: Array) -> tuple[Bools, CrowdLabels]:
        """Which rows of a block are kept, and the labels of these."""
        place = self._places(_comparable(ids))
        known = place >= 0
        if self.join == "exact" and not known.all():
            advice = ids_spelt_otherwise(ids[~known], self.labels.examples[~self._met])
            raise AlignmentError(
                f"{int((~known).sum())} of {len(ids)} rows of a block (such as {ids[~known][:3].tolist()}) have no "
                f"labels, whose identifiers are such as {self.labels.examples[:3].tolist()}. "
                + (advice or 'Use join="inner" to continue without them.')
            )
        at = place[known]
        if self._met[at].any() or len(np.unique(at)) < len(at):
            raise AlignmentError("a row with the same identifier comes twice: each example must have one row.")
        self._met[at] = True
        return known, self.labels[at]

    def _places(self, ids: Array) -> Positions:
        if len(self._sorted) == 0 or (ids.dtype.kind == "U") != (self._sorted.dtype.kind == "U"):
            return np.full(len(ids), -1, dtype=np.intp)
        at = np.minimum(np.searchsorted(self._sorted, ids), len(self._sorted) - 1)
        return np.where(self._sorted[at] == ids, self._order[at], -1)

    def finish(self) -> None:
        """Raise if labels are left over, unless that was to be expected."""
        left = ~self._met
        if self.join == "exact" and left.any():
            raise AlignmentError(
                f"{int(left.sum())} of {len(left)} examples with labels (such as "
                f'{self.labels.examples[left][:3].tolist()}) have no row of features. Use join="inner" to go on '
                "without them."
            )


def _comparable(ids: Array) -> Array:
    """Ids that can be sorted: numbers, or text, in which 1 and "1" are different, as everywhere."""
    if ids.dtype.kind in "iuf":
        return ids
    values = ids.tolist()
    return np.array(values if all(isinstance(value, str) for value in values) else list(map(repr, values)), np.str_)
