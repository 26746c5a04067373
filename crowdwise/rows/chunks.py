"""Features and labels -> chunks of rows, and the sum over all chunks of what a task finds in one.

All that reads rows takes chunks and calls `total`. Arrays in memory are one source of chunks, files a second, Dask a
third. A source in memory keeps its chunks, and what was computed for one stays with it; the others make each chunk anew
in every pass. Results are added in the order of the chunks, so no bit depends on who computed them, or on how many
threads there were.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import add
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from crowdwise._arrays import Array, Codes, Floats, Positions
from crowdwise._threads import available_cores, one_blas_thread, run_parallel
from crowdwise.exceptions import DataError, LabelError
from crowdwise.labels._encode import encode_declared, smallest_integer_type
from crowdwise.labels._groups import groups_by_name, groups_in_order
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.scale import ScaleName
from crowdwise.rows.dask_blocks import DaskBlocks
from crowdwise.rows.features import check_finite
from crowdwise.rows.read import Block, Blocks
from crowdwise.training_set import check_features, check_sample_weight

T = TypeVar("T")
Result = TypeVar("Result")
# Features and labels of a chunk in memory: enough that a thread has something to do, few enough to be shared out.
_CHUNK_BYTES, _CHUNK_LABELS = 2**23, 2**17


class Sums:
    """Sums by name, which add."""

    def __init__(self, **parts: Any) -> None:
        vars(self).update(parts)

    def __add__(self, other: Sums) -> Sums:
        return Sums(**{name: value + vars(other)[name] for name, value in vars(self).items()})

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


@dataclass(eq=False)
class Chunk:
    """Some examples that take part: each has a label and a weight."""

    labels: CrowdLabels
    weight: Floats  # (n_examples,): how often each example counts
    X: Any = None  # ndarray or sparse array of shape (n_examples, n_features); None without features
    truth: Codes | None = None  # (n_examples,): positions of known classes, -1 where nothing is known
    memo: dict[str, tuple[object, Any]] | None = None  # what stays with a chunk in memory; None if nothing does
    n_given: int = 0  # how many examples there were, with those that take no part
    n_unlabelled: int = 0  # how many of them had no label
    feature_names: tuple[str, ...] | None = None  # of a data frame

    @classmethod
    def of(cls, block: Any, scale: ScaleName = "nominal", model: Any = None, *, reset: bool = True) -> Chunk:
        """From (X, labels) or (X, labels, sample_weight); without `reset`, the features are those of a `model`."""
        seen = BaseEstimator() if model is None else model
        X, labels = check_features(seen, block[0], block[1], scale, reset=reset, least=0)
        weight = check_sample_weight(block[2] if len(block) > 2 else None, X, labels, rescale=False)
        labelled, n_given = labels.labels_per_example > 0, len(labels)
        used = labelled & (weight > 0)
        if not used.all():
            check_finite(X)
            X, labels, weight = X[used], labels[used], weight[used]
        names = getattr(seen, "feature_names_in_", None)
        named = None if names is None else tuple(names.tolist())
        return cls(labels, weight, X, n_given=n_given, n_unlabelled=int((~labelled).sum()), feature_names=named)

    def __len__(self) -> int:
        return len(self.weight)

    def keep(self, name: str, make: Callable[[], Result], owner: object = None) -> Result:
        """What was computed for this chunk under a name, by the same owner; computed now if it was not, or not kept."""
        if self.memo is None:
            return make()
        last_owner, value = self.memo.get(name, (self, None))
        if last_owner is not owner:
            value = make()
            self.memo[name] = owner, value
        result: Result = value
        return result

    def among(self, annotators: Array, classes: Array | None) -> Chunk:
        """The same with labels coded by the annotators and classes of all chunks."""
        return replace(self, labels=recoded(self.labels, annotators, classes))


@dataclass(frozen=True)
class Stored:
    """What was put with every chunk under a name, a row per example."""

    name: str

    def __call__(self, chunk: Chunk) -> Any:
        assert chunk.memo is not None
        return chunk.memo[self.name][1]


class Chunks(Protocol):
    """A source of chunks."""

    def total(self, task: Callable[[Chunk], Result]) -> Result:
        """The sum over all chunks of what a task finds in one."""
        ...


@dataclass(eq=False)
class MemoryChunks:
    """Chunks of arrays in memory, which are kept."""

    chunks: list[Chunk]
    work: float = 0.0  # what a pass costs, in multiplications: below some, threads gain nothing

    @classmethod
    def of(
        cls, labels: CrowdLabels, weight: Floats, X: Any = None, truth: Codes | None = None, *, whole: bool = False
    ) -> Self:
        """Rows that all take part, in chunks that threads can share; in one chunk if it is to be `whole`."""
        n_rows = len(labels)
        row_bytes = 0 if X is None else 8 * (X.nnz / max(n_rows, 1) if sparse.issparse(X) else X.shape[1])
        step = int(min(_CHUNK_BYTES / max(row_bytes, 1), _CHUNK_LABELS * n_rows / max(labels.n_labels, 1)))
        step = n_rows if whole or sparse.issparse(X) else min(max(step, 64), n_rows)
        parts = []
        for start in range(0, n_rows, max(step, 1)):
            at = slice(start, min(start + step, n_rows))
            of_chunk = labels if step == n_rows else labels[at]
            known = None if truth is None else truth[at]
            parts.append(Chunk(of_chunk, weight[at], None if X is None else X[at], known, {}))
        return cls(parts, 50.0 * labels.n_labels + n_rows * row_bytes)

    def total(self, task: Callable[[Chunk], Result]) -> Result:
        return reduce(add, self.each(task))

    def each(self, task: Callable[[Chunk], Result]) -> Iterable[Result]:
        """What a task finds in every chunk."""
        return run_parallel(task, self.chunks, self.work)

    def gather(self, task: Callable[[Chunk], Array]) -> Array:
        """Arrays with a row per example, one below the other."""
        return np.concatenate(list(self.each(task)))

    def put(self, name: str, values: Array) -> None:
        """Keep an array with a row per example, each chunk its part of it."""
        start = 0
        for chunk in self.chunks:
            assert chunk.memo is not None
            chunk.memo[name] = None, values[start : start + len(chunk)]
            start += len(chunk)


@dataclass(eq=False)
class ReadChunks:
    """Chunks that are made anew in every pass: of blocks that are read, or of Dask collections, where Dask has them."""

    blocks: Blocks | DaskBlocks  # yields (X, labels) or (X, labels, sample_weight), again and again
    names: tuple[Array, Array | None] | None = None  # annotators and classes that labels are coded by; None: their own
    scale: ScaleName = "nominal"  # what labels are
    report: Callable[[str], None] | None = None  # is given a line after every block
    n_passes: int = field(default=0, init=False)
    _n_examples: int | None = field(default=None, init=False)

    def total(self, task: Callable[[Chunk], Result]) -> Result:
        of_block = partial(_in_block, task, self.scale, self.names)
        if isinstance(self.blocks, DaskBlocks):
            sums = self.blocks.total(of_block)
            self._report(f"{len(self.blocks.parts):,} blocks", sums)
        else:
            sums = self._read(self.blocks, of_block)
        self.n_passes += 1
        if self._n_examples not in (None, sums.n_examples):
            raise DataError(
                f"blocks must be the same in every pass; the first had {self._n_examples} examples with labels, pass "
                f"{self.n_passes} had {sums.n_examples}. An iterator that is used up cannot be read again."
            )
        self._n_examples = sums.n_examples
        result: Result = sums.result
        return result

    def _read(self, blocks: Blocks, of_block: Callable[[Block], Sums]) -> Sums:
        sums: Any = None
        # Threads end here and not wherever garbage is collected after an error: that may wait for ever.
        with (
            one_blas_thread(),
            closing(iter(blocks)) as coming,
            closing(map_blocks(of_block, coming, available_cores())) as results,
        ):
            for number, result in enumerate(results, start=1):
                sums = result if sums is None else sums + result
                self._report(f"block {number}", sums)
        if sums is None:
            raise DataError("there are no blocks to learn from.")
        return sums

    def _report(self, blocks: str, sums: Sums) -> None:
        if self.report is not None:
            self.report(f"{blocks}: {sums.n_given:,} examples")


def map_blocks(
    task: Callable[[T], Result], blocks: Iterable[T], n_threads: int, n_before: int = 0
) -> Generator[Result]:
    """The results of a task for every block, in the order of blocks, on several threads and no block too early.

    `n_before` is how many rows came before these blocks.

    Examples
    --------
    >>> from crowdwise.rows.chunks import map_blocks
    >>> sum(map_blocks(len, ["one", "three", ""], n_threads=2))
    8
    """
    if n_threads == 1:
        for block in blocks:
            yield _placed(task, block, n_before)
            n_before += _n_rows(block)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        running: deque[Future[Result]] = deque()
        for block in blocks:
            running.append(pool.submit(_placed, task, block, n_before))
            n_before += _n_rows(block)
            if len(running) > n_threads:  # one more than threads, so that none waits for the sums of another
                yield running.popleft().result()
        while running:
            yield running.popleft().result()


def _placed(task: Callable[[T], Result], block: T, n_before: int) -> Result:
    """The result of a task, or its error with the place of the block that it counts rows in."""
    try:
        return task(block)
    except (DataError, LabelError) as error:
        if n_before == 0 or type(error) not in (DataError, LabelError):  # others state that sums are too large
            raise
        raise type(error)(f"{error} Rows are counted in their block, which begins with row {n_before}.") from error


def _n_rows(block: Any) -> int:
    """How many rows a block, or what stands for one, has."""
    X = getattr(block, "X", block)
    return int(X.shape[0]) if hasattr(X, "shape") else len(X) if hasattr(X, "__len__") else 0


def chunks_of(
    X: Any, y: Any, sample_weight: Any, scale: ScaleName = "nominal", report: Callable[[str], None] | None = None
) -> ReadChunks:
    """The chunks of blocks of files, which have labels and weights of their own, or of Dask collections."""
    if not isinstance(X, Blocks):
        return ReadChunks(DaskBlocks.of(X, y, sample_weight, scale=scale), None, scale, report)
    beside = {"y": y, "sample_weight": sample_weight}
    if names := [name for name, value in beside.items() if value is not None]:
        raise ValueError(f"{', '.join(names)} cannot be given with blocks, which have their own labels and weights.")
    return ReadChunks(X, None, scale, report)


def _in_block(
    task: Callable[[Chunk], Any], scale: ScaleName, names: tuple[Array, Array | None] | None, block: Block
) -> Sums:
    with one_blas_thread():
        chunk = Chunk.of(block, scale)
        result = task(chunk if names is None else chunk.among(*names))
        return Sums(n_examples=len(chunk), n_given=chunk.n_given, result=result)


def recoded(labels: CrowdLabels, annotators: Array, classes: Array | None) -> CrowdLabels:
    """Labels coded by other annotators and classes, such as those of all chunks, which include these."""
    labels = labels if classes is None else labels._with_classes(classes)
    if labels.annotators is annotators or np.array_equal(labels.annotators, annotators):
        return labels
    position: Positions = encode_declared(labels.annotators, annotators).astype(np.intp)
    if (unknown := (position < 0) & (labels.labels_per_annotator > 0)).any():
        raise LabelError(
            f"the annotators {labels.annotators[unknown][:3].tolist()} are not among those known, such as "
            f"{annotators[:3].tolist()}. Give the same blocks in every pass."
        )
    annotator, values = position[labels.annotator_index], labels.values
    if (np.diff(position[position >= 0]) < 0).any():  # labels of an example are in the order of the annotators
        order = np.lexsort([annotator, labels.example_index])
        annotator, values = annotator[order], values[order]
    annotator = annotator.astype(smallest_integer_type(len(annotators)))
    groups = groups_in_order(groups_by_name(labels.groups, labels.annotators), annotators)
    return replace(
        labels, annotator_index=annotator, values=values, annotators=annotators, abstentions=None, groups=groups
    )
