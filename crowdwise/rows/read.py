"""Files, arrays and iterators -> Blocks: read one ahead on a second thread, and again if that is possible."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from mmap import mmap
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np

from crowdwise._checks import check_choice, check_whole
from crowdwise._files import Unchanged
from crowdwise.exceptions import AlignmentError, DataError, MissingDataError, warn
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.rows.tables import (
    Columns,
    Join,
    LabelsById,
    batches,
    features_of,
    ids_of,
    is_table,
    named_like_ids,
    open_dataset,
)

T = TypeVar("T")

# Bytes of the features of all blocks that are in memory at a time.
MAX_BYTES = 2**27
# Two that are learned from, one that waits for whichever thread is free, and the one that is read ahead.
_IN_MEMORY = 4
# Rows of a block: what is made of more of them does not stay in the cache; of fewer, threads wait for each other's hold
# of the interpreter.
_MOST_ROWS = 2**17
_END: Any = object()


class Block(NamedTuple):
    """Some rows: features, their labels, and how often each counts."""

    X: Any
    y: Any
    sample_weight: Any = None


class Blocks:
    """Blocks of rows that are read when they are asked for, each while the one before it is being worked on.

    Parameters
    ----------
    start : callable
        Begins to read: gives an iterator of blocks.
    again : bool
        Whether it can be called more than once.
    files : iterable of str or path, default=()
        What is read, and must not change from now on.
    """

    def __init__(
        self, start: Callable[[], Iterator[Block]], *, again: bool, files: Iterable[str | os.PathLike[str]] = ()
    ) -> None:
        self._start, self.again, self._files = start, again, Unchanged(files)
        self._n_reads = 0

    def __repr__(self) -> str:
        return f"Blocks that can be read {'again and again' if self.again else 'once'}"

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        """Blocks are no array: code that takes them for one would read nothing of them."""
        raise TypeError(
            "blocks are for fit of the ridge models and CrowdLogisticClassifier; all else takes one block at a time, "
            "such as [model.predict(block.X) for block in blocks]."
        )

    def __iter__(self) -> Generator[Block]:
        if self._n_reads and not self.again:
            raise DataError(
                "these blocks come from an iterator that has been read, and they are needed once more. Give a function "
                "that begins a new iterator, or a list, a file or an array."
            )
        self._n_reads += 1
        return read_ahead(self._unchanged(self._start()))

    def _unchanged(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """Blocks of the files as they were: never a mixture of two."""
        while True:
            try:
                block = next(blocks, _END)
            finally:  # a file that was replaced is the reason for whatever error this gave
                self._files.check()
            if block is _END:
                return
            yield block


def read_ahead(items: Iterator[T]) -> Generator[T]:
    """The same items, the next one being made on another thread while the last one is used.

    Examples
    --------
    >>> from crowdwise.rows.read import read_ahead
    >>> list(read_ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, items, _END)
        while (item := coming.result()) is not _END:
            coming = reader.submit(next, items, _END)
            yield item


def rows_per_block(row_bytes: int, max_bytes: int) -> int:
    """How many rows a block has, so that all blocks in memory take no more than `max_bytes`."""
    return min(_MOST_ROWS, max(1, max_bytes // (_IN_MEMORY * max(row_bytes, 1))))


def read_blocks(
    X: Any,
    y: Any = None,
    *,
    labels: Sequence[str] | None = None,
    features: Sequence[str] | None = None,
    example: str | None = None,
    sample_weight: Any = None,
    join: Join = "exact",
    max_bytes: int = MAX_BYTES,
) -> Blocks:
    """Blocks of rows of data that need not fit into memory, for ``model.fit(blocks)``.

    Parameters
    ----------
    X : array, path, Arrow dataset, function or iterable
        Features as an array that may be memory-mapped, or the name of an .npy file; a table with features, and perhaps
        labels, in Parquet, Arrow or CSV files (one, a list or a folder) or as an Arrow dataset, which need pyarrow; or
        blocks themselves: an iterable of pairs ``(X, y)`` or triples ``(X, y, sample_weight)``, or a function that
        begins such an iterator anew.
    y : CrowdLabels, array or path, default=None
        Labels of all rows: in the order of the rows, or matched by the ids in the column `example`. Arrays and .npy
        files have a column per annotator.
    labels : sequence of str or str, default=None
        Columns of a table that hold labels, one per annotator, where `y` is not given.
    features : sequence of str or str, default=None
        Columns of a table that are features; by default all others but the index of a pandas frame.
    example : str, default=None
        Column of a table with the ids of examples: `y` is then matched by id.
    sample_weight : array or str, default=None
        Weight of each example; for a table, the name of a column.
    join : {"exact", "inner"}, default="exact"
        What to do with ids that are on one side only: stop with an error, or keep what is on both sides.
    max_bytes : int, default=134217728
        About how much memory the features of blocks may take at a time. Blocks that are given as such are as large as
        they are.

    Returns
    -------
    blocks : Blocks

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from crowdwise import CrowdRidgeClassifier, read_blocks
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> y = X[:, :1] + rng.normal(size=(1000, 3)) * [0.1, 1.0, 2.0] > 0
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.save(folder / "X.npy", X)
    >>> np.save(folder / "y.npy", y)
    >>> model = CrowdRidgeClassifier().fit(read_blocks(folder / "X.npy", folder / "y.npy"))
    >>> int(model.expertise_.argmax())
    0
    """
    check_choice("join", join, ("exact", "inner"))
    check_whole("max_bytes", max_bytes)
    if is_table(X):
        labels, features = ([names] if isinstance(names, str) else names for names in (labels, features))
        return _of_table(X, y, labels, features, example, sample_weight, join, max_bytes)
    X = _mapped(X)
    if labels is not None or features is not None or example is not None:
        raise ValueError("labels=, features= and example= name columns of a table, and X is none.")
    if hasattr(X, "shape"):
        return _of_arrays(X, _mapped_labels(y), _mapped(sample_weight), max_bytes)
    return _of_blocks(X, y, sample_weight)


def _mapped(array: Any) -> Any:
    """An .npy file as a memory-mapped array; anything else as it is."""
    if not isinstance(array, str | os.PathLike):
        return array
    name = os.fspath(array)
    if not os.path.exists(name):
        raise MissingDataError(f"there is no file {name}.")
    if not name.endswith(".npy"):
        raise DataError(
            f"{name} is not a file type that blocks can be read from: use .npy, .parquet, .arrow, .feather or .csv."
        )
    return map_array(name, name)


def map_array(path: str, name: str) -> Any:
    """An .npy file with a row per example as a memory-mapped array: whatever its header claims, nothing is read yet."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        if array.ndim == 0 or array.itemsize == 0:
            raise ValueError(f"its shape is {array.shape} and its type {array.dtype}")
    except OSError:
        raise
    except Exception as error:  # headers are Python's literals: what is wrong with one may be of any type
        raise DataError(f"{name} cannot be read as an array: {str(error).rstrip('.')}.") from error
    return array


def _mapped_labels(y: Any) -> Any:
    """Labels as they are, or an .npy file of them; any other file has to be read by the caller."""
    if isinstance(y, str | os.PathLike) and not os.fspath(y).endswith(".npy"):
        raise DataError(
            f"y as a file must be .npy, with a column per annotator; got {os.fspath(y)}. Labels with a row per label "
            f"are read first: y=crowdwise.read_labels({os.fspath(y)!r}), matched by id if X is a table and example= "
            "names its column of ids."
        )
    return _mapped(y)


def _of_arrays(X: Any, y: Any, sample_weight: Any, max_bytes: int) -> Blocks:
    if y is None:
        raise ValueError("y is needed: the labels of the rows of X.")
    n_rows, weighted = X.shape[0], np.ndim(sample_weight) > 0
    for values, what in ((y, "y"), *(((sample_weight, "sample_weight"),) if weighted else ())):
        if len(values) != n_rows:
            raise AlignmentError(f"X has {n_rows} rows and {what} has {len(values)}: one for each is needed.")
    columns = int(X.shape[1]) if len(X.shape) > 1 else 1
    step = rows_per_block(X.dtype.itemsize * columns, max_bytes)

    def start() -> Iterator[Block]:
        for begin in range(0, n_rows, step):
            at = slice(begin, min(begin + step, n_rows))
            yield Block(_rows(X, at), _rows(y, at), _rows(sample_weight, at) if weighted else sample_weight)

    return Blocks(start, again=True, files=_files_of(X, y, sample_weight))


def _files_of(*arrays: Any) -> list[str]:
    """The files that arrays are mapped from."""
    return [array.filename for array in arrays if isinstance(array, np.memmap) and array.filename is not None]


def _rows(array: Any, at: slice) -> Any:
    """Some rows in memory; what is mapped is read here and now, and from its file where that is possible.

    Pages that are read through the map count as memory of the process.
    """
    if not isinstance(array, np.memmap):
        return array[at]
    if array.filename is None or not isinstance(array.base, mmap) or not array.flags.c_contiguous:
        return np.array(array[at])
    row = array[:1].nbytes
    numbers = np.fromfile(
        array.filename, array.dtype, (at.stop - at.start) * row // array.itemsize, offset=array.offset + at.start * row
    )
    return numbers.reshape(at.stop - at.start, *array.shape[1:])


def _of_blocks(source: Any, y: Any, sample_weight: Any) -> Blocks:
    if y is not None or sample_weight is not None:
        raise ValueError(
            "blocks have their own labels and weights: give pairs (X, y) or triples (X, y, sample_weight)."
        )
    begin: Callable[[], Iterable[Any]]
    if callable(source):
        begin, again = source, True
    elif isinstance(source, Iterable):
        begin, again = (lambda: source), not isinstance(source, Iterator)
    else:
        raise TypeError(
            f"blocks are read from an array, a file, an Arrow dataset, an iterable of pairs (X, y) or a function that "
            f"begins one; got {type(source).__name__}."
        )

    def start() -> Iterator[Block]:
        for number, block in enumerate(begin()):
            if not isinstance(block, tuple | list) or len(block) not in (2, 3):
                raise DataError(
                    f"every block must be a pair (X, y) or a triple (X, y, sample_weight); block {number} (from 0) is "
                    f"of type {type(block).__name__}."
                )
            yield Block(*block)

    return Blocks(start, again=again)


def _of_table(
    source: Any,
    y: Any,
    labels: Sequence[str] | None,
    features: Sequence[str] | None,
    example: str | None,
    sample_weight: Any,
    join: Join,
    max_bytes: int,
) -> Blocks:
    if (y is None) == (labels is None):
        raise ValueError("say where the labels are: in columns of the table (labels=[...]) or elsewhere (y=...).")
    if sample_weight is not None and not isinstance(sample_weight, str):
        raise ValueError("sample_weight of a table is the name of a column.")
    y = _mapped_labels(y)
    if example is not None and y is not None and not isinstance(y, CrowdLabels):
        raise ValueError("labels are matched by id if they have ids: give y as CrowdLabels, or leave example= out.")
    data = open_dataset(source)
    columns = Columns.of(data.schema, features, labels, example, sample_weight)
    if features is None and example is None and (ids := named_like_ids(data.schema, columns)) is not None:
        warn(
            f"the column {ids!r} is used as a feature, and rows and labels are matched by position. If it holds the "
            f"ids of the examples, say so: example={ids!r}; else name the features: features=[...]."
        )
    step = rows_per_block(8 * len(columns.all), max_bytes)
    label_names, match = list(columns.labels), _by_order if example is None else _by_id

    def start() -> Iterator[Block]:
        parts = batches(data, columns, step)
        if y is None:
            return (_block(batch, columns, batch.select(label_names)) for batch in parts)
        return match(parts, columns, y, join)

    return Blocks(start, again=True, files=[*getattr(data, "files", ()), *_files_of(y)])


def _block(batch: Any, columns: Columns, y: Any, keep: Any = slice(None)) -> Block:
    weight = None if columns.weight is None else batch.column(columns.weight).to_numpy()[keep]
    return Block(features_of(batch, columns)[keep], y, weight)


def _by_order(parts: Iterator[Any], columns: Columns, y: Any, join: Join) -> Iterator[Block]:
    """Rows and labels in the same order."""
    n_before = 0
    for batch in parts:
        at = slice(n_before, n_before + batch.num_rows)
        n_before = at.stop
        if n_before > len(y):
            break
        yield _block(batch, columns, y[at])
    if n_before != len(y):
        more = "more" if n_before > len(y) else "fewer"
        raise AlignmentError(f"the table has {more} rows than the {len(y)} of y: one for each is needed.")


def _by_id(parts: Iterator[Any], columns: Columns, y: CrowdLabels, join: Join) -> Iterator[Block]:
    """Rows and labels matched by the ids of examples."""
    labels = LabelsById(y, join)
    for batch in parts:
        keep, of_rows = labels.of(ids_of(batch, columns))
        yield _block(batch, columns, of_rows, keep)
    labels.finish()
