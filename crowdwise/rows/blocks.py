"""Something that yields blocks -> Blocks: read one ahead on a second thread, and again if that is possible."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, NoReturn, TypeVar

from crowdwise._files import Unchanged
from crowdwise.exceptions import DataError, LabelError

T = TypeVar("T")
Result = TypeVar("Result")

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
        """Blocks are no array: whoever takes them for one would read nothing of them."""
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
    >>> from crowdwise.rows.blocks import read_ahead
    >>> list(read_ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, items, _END)
        while (item := coming.result()) is not _END:
            coming = reader.submit(next, items, _END)
            yield item


def map_blocks(
    task: Callable[[T], Result], blocks: Iterable[T], n_threads: int, n_before: int = 0
) -> Generator[Result]:
    """The results of a task for every block, in the order of blocks, on several threads and no block too early.

    `n_before` is how many rows came before these blocks.

    Examples
    --------
    >>> from crowdwise.rows.blocks import map_blocks
    >>> sum(map_blocks(len, ["one", "three", ""], n_threads=2))
    8
    """
    if n_threads == 1:
        for block in blocks:
            yield _placed(task, block, n_before)
            n_before += n_rows(block)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        running: deque[Future[Result]] = deque()
        for block in blocks:
            running.append(pool.submit(_placed, task, block, n_before))
            n_before += n_rows(block)
            if len(running) > n_threads:  # one more than threads, so that none waits for the sums of another
                yield running.popleft().result()
        while running:
            yield running.popleft().result()


def _placed(task: Callable[[T], Result], block: T, n_before: int) -> Result:
    """The result of a task, or its error with the place of the block that it counts rows in."""
    try:
        return task(block)
    except (DataError, LabelError) as error:
        if n_before == 0 or type(error) not in (DataError, LabelError):  # others say that sums are too large
            raise
        raise type(error)(f"{error} Rows are counted in their block, which begins with row {n_before}.") from error


def n_rows(block: Any) -> int:
    """How many rows a block, or what stands for one, has."""
    X = getattr(block, "X", block)
    return int(X.shape[0]) if hasattr(X, "shape") else len(X) if hasattr(X, "__len__") else 0


def rows_per_block(row_bytes: int, max_bytes: int) -> int:
    """How many rows a block has, so that all blocks in memory take no more than `max_bytes`."""
    return min(_MOST_ROWS, max(1, max_bytes // (_IN_MEMORY * max(row_bytes, 1))))
