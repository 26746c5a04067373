"""Dask collections of features and labels -> DaskBlocks: a function is mapped over them, and its results are added.

Each block is worked on where Dask has it; only results travel. They are added in a tree whose shape depends on the
number of blocks alone, so the same chunks give the same bits, whichever worker does what, and also after one was lost.

Arrays that come over a network may begin at any byte, and products of such arrays have other last digits. So tasks and
results travel as bytes, from which arrays are made anew, and blocks are copied where they do not lie as new arrays do.
"""

from __future__ import annotations

import importlib
import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from numbers import Real
from operator import add
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np

from crowdwise.exceptions import AlignmentError, DataError, WorkerError
from crowdwise.labels._align import align, as_labels
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.scale import ScaleName
from crowdwise.rows.features import is_dask
from crowdwise.rows.read import Block

Result = TypeVar("Result")

# How many results are added at a time.
_FAN_IN = 8
# What is in memory while a block is summed up: its features, copies of parts of them, and sums. Labels are read into
# several columns each.
_COPIES_OF_FEATURES, _COPIES_OF_LABELS = 2, 4


def _is_dask_frame(data: object) -> bool:
    """Whether this is a Dask data frame or series."""
    return is_dask(data) and hasattr(data, "divisions")


@dataclass(frozen=True, eq=False)
class DaskBlocks:
    """Blocks of rows that a Dask scheduler has or makes."""

    parts: tuple[Block, ...]  # features, labels and weights, delayed or in memory
    n_rows: tuple[float, ...]  # how many rows each has; NaN where Dask does not know
    row_bytes: float  # about how much memory a row takes while it is learned from

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any = None, *, scale: ScaleName = "nominal") -> DaskBlocks:
        """From collections whose blocks hold the same rows: the chunks of rows of X.

        Labels and weights may be anything that `fit` takes; those in memory are split if the lengths of the blocks are
        known.
        """
        X = _rows_whole(X)
        n_rows = _lengths(X)
        labels, width = _split_labels(y, X, scale)
        weights = _split_weights(sample_weight, X)
        parts = tuple(Block(*part) for part in zip(_delayed_blocks(X), labels, weights, strict=True))
        row_bytes = 8.0 * (_COPIES_OF_FEATURES * X.shape[1] + _COPIES_OF_LABELS * width)
        return cls(parts, n_rows, row_bytes)

    def total(self, task: Callable[[Block], Result]) -> Result:
        """The sum over all blocks of what a task finds in one, computed by the present Dask scheduler."""
        delayed = importlib.import_module("dask").delayed
        token = uuid4().hex
        shared = delayed(_as_bytes(task), name=f"crowdwise-task-{token}")
        results = [
            delayed(_bytes_of_block)(shared, number, *part, dask_key_name=f"crowdwise-{token}-{number}")
            for number, part in enumerate(self.parts)
        ]
        while len(results) > 1:
            groups = [results[start : start + _FAN_IN] for start in range(0, len(results), _FAN_IN)]
            results = [delayed(_added, pure=False)(group) if len(group) > 1 else group[0] for group in groups]
        try:
            total: Result = pickle.loads(results[0].compute())
        except Exception as error:  # Dask's own is known by name: the package of schedulers need not be there
            if type(error).__name__ != "KilledWorker":
                raise
            raise WorkerError(self._describe_killed(str(getattr(error, "task", "")), token)) from error
        return total

    def _describe_killed(self, key: str, token: str) -> str:
        _, ours, number = key.partition(f"crowdwise-{token}-")
        n_rows = self.n_rows[int(number)] if ours else max(self.n_rows)
        if math.isnan(n_rows):
            return (
                f"workers of the cluster were killed over a block of X, most likely because it needs more memory than "
                f"they have (about {self.row_bytes:,.0f} bytes a row): use smaller chunks."
            )
        return (
            "workers of the cluster were killed over a block of X, most likely for lack of memory: a block of "
            f"{n_rows:,.0f} rows needs about {max(1, round(n_rows * self.row_bytes / 10**6)):,} MB: use smaller "
            "chunks, with X.rechunk(...) or X.repartition(...), or workers with more memory."
        )


def _rows_whole(X: Any) -> Any:
    """The same with all columns of a row in one block."""
    if X.ndim != 2:
        raise DataError(f"X must have two dimensions, examples and features; got a Dask collection with {X.ndim}.")
    if _is_dask_frame(X) or X.numblocks[1] == 1:
        return X
    return X.rechunk({1: -1})


def _as_bytes(task: Any) -> bytes:
    made: bytes = importlib.import_module("cloudpickle").dumps(task)  # which comes with Dask; takes any function
    return made


def _bytes_of_block(task: bytes, number: int, X: Any, y: Any, sample_weight: Any) -> bytes:
    """What a task finds in a block; an error states which block it was."""
    block = Block(_as_new(X), _as_new(y), _as_new(sample_weight))
    try:
        return pickle.dumps(pickle.loads(task)(block))
    except DataError as error:
        raise type(error)(f"in block {number} of X (from 0): {error}") from error


def _added(results: list[bytes]) -> bytes:
    return pickle.dumps(reduce(add, map(pickle.loads, results)))


def _as_new(values: Any) -> Any:
    """The same array, data frame or labels, lying in memory as new ones do."""
    if isinstance(values, np.ndarray):
        return np.require(values, requirements=["C", "A"])
    if isinstance(values, CrowdLabels):
        return replace(values, values=np.require(values.values, requirements="A"))
    return values.copy() if hasattr(values, "iloc") else values


def _lengths(values: Any) -> tuple[float, ...]:
    """How many rows each block has; NaN where that is not known, as of data frames."""
    if _is_dask_frame(values):
        return (math.nan,) * values.npartitions
    return tuple(map(float, values.chunks[0]))


def _delayed_blocks(values: Any) -> list[Any]:
    blocks: list[Any] = np.ravel(np.array(values.to_delayed(), dtype=object)).tolist()
    return blocks


def _split_labels(y: Any, X: Any, scale: ScaleName) -> tuple[list[Any], int]:
    """The labels of every block, and how many columns they have."""
    if y is None:
        raise ValueError("y is needed: the labels of the rows of X.")
    if is_dask(y):
        return _matched(y, X, "y"), 1 if y.ndim == 1 else y.shape[1]
    bounds = _bounds(X, "y")
    labels = as_labels(y, scale=scale)
    _, labels = align(X, labels)
    labels = replace(labels, examples=np.arange(len(labels)), id_source="position")  # warned of once, not per block
    width = math.ceil(labels.n_labels / max(len(labels), 1))
    return [labels[start:stop] for start, stop in bounds], width


def _split_weights(sample_weight: Any, X: Any) -> list[Any]:
    """The weights of every block."""
    if is_dask(sample_weight):
        return _matched(sample_weight, X, "sample_weight")
    if sample_weight is None or isinstance(sample_weight, Real):
        return [sample_weight] * len(_lengths(X))
    bounds, weight = _bounds(X, "sample_weight"), np.asarray(sample_weight)
    if weight.shape != (bounds[-1][1],):
        raise AlignmentError(f"sample_weight must be {bounds[-1][1]} numbers, one per example; got {weight.shape}.")
    return [weight[start:stop] for start, stop in bounds]


def _bounds(X: Any, what: str) -> list[tuple[int, int]]:
    """Where blocks begin and end, which is needed to split what is in memory."""
    lengths = _lengths(X)
    if any(map(math.isnan, lengths)):
        raise DataError(
            f"{what} is in memory and X has blocks of unknown length, so they cannot be matched. Use "
            f"X.compute_chunk_sizes() if X is a Dask array, or give {what} as a Dask collection with the same blocks "
            "as X."
        )
    ends = np.cumsum(lengths).astype(int).tolist()
    return list(zip([0, *ends[:-1]], ends, strict=True))


def _matched(values: Any, X: Any, what: str) -> list[Any]:
    """The blocks of another collection that hold the same rows as those of X."""
    values = _with_divisions(values, X) if _is_dask_frame(values) else _rechunked(values, X, what)
    lengths = _lengths(values), _lengths(X)
    if len(lengths[0]) != len(lengths[1]):
        raise AlignmentError(
            f"X has {len(lengths[1])} blocks of rows and {what} has {len(lengths[0])}, and their lengths are not "
            "known, so they cannot be matched. Give both the same blocks; X.compute_chunk_sizes() makes the lengths "
            "of a Dask array known."
        )
    return _delayed_blocks(values)


def _with_divisions(values: Any, X: Any) -> Any:
    """A data frame with partitions as those of X, if both know which ids theirs have."""
    known = _is_dask_frame(X) and X.known_divisions and values.known_divisions
    if not known or X.divisions == values.divisions:
        return values
    if (X.divisions[0], X.divisions[-1]) != (values.divisions[0], values.divisions[-1]):
        return values  # its rows are not those of X, as the blocks will state
    return values.repartition(divisions=X.divisions)


def _rechunked(values: Any, X: Any, what: str) -> Any:
    """An array with chunks of rows as those of X, if the lengths of both are known."""
    whole = {1: -1} if values.ndim == 2 else {}
    lengths, rows_of_X = _lengths(values), _lengths(X)
    if any(map(math.isnan, (*lengths, *rows_of_X))):
        return values.rechunk(whole) if whole else values
    if sum(lengths) != sum(rows_of_X):
        raise AlignmentError(
            f"X has {sum(rows_of_X):.0f} rows and {what} has {sum(lengths):.0f}: one for each is needed."
        )
    return values.rechunk({0: tuple(map(int, rows_of_X)), **whole})
