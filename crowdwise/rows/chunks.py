"""Features and labels -> chunks of rows, and the sum over all chunks of what a task finds in one.

All that reads rows takes chunks and calls `total`. Arrays in memory are one source of chunks, files a second, Dask a
third. A source in memory keeps its chunks, and what was computed for one stays with it; the others make each chunk anew
in every pass. Results are added in the order of the chunks, so no bit depends on who computed them, or on how many
threads there were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import add
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.validation import _get_feature_names

from crowdwise._arrays import Array, Codes, Floats, Positions
from crowdwise._threads import available_cores, one_blas_thread, run_parallel
from crowdwise.exceptions import DataError, LabelError
from crowdwise.labels.align import align, as_labels
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import encode_declared, smallest_integer_type
from crowdwise.labels.groups import groups_by_name, groups_in_order
from crowdwise.rows.blocks import Block, Blocks, map_blocks
from crowdwise.rows.dask_blocks import DaskBlocks
from crowdwise.training_set import check_sample_weight

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
    n_unlabelled: int = 0  # how many further examples had no label
    feature_names: tuple[str, ...] | None = None  # of a data frame

    @classmethod
    def of(cls, given: Any) -> Chunk:
        """From what a reader of blocks gives: (X, labels) or (X, labels, sample_weight)."""
        X, labels = align(given[0], as_labels(given[1]))
        names = _get_feature_names(X)
        X = check_array(
            X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=False, ensure_min_samples=0
        )
        weight = check_sample_weight(given[2] if len(given) > 2 else None, X, labels, rescale=False)
        labelled = labels.labels_per_example > 0
        used = labelled & (weight > 0)
        if not used.all():
            X, labels, weight = X[used], labels[used], weight[used]
        named = None if names is None else tuple(names.tolist())
        return cls(labels, weight, X, n_unlabelled=int((~labelled).sum()), feature_names=named)

    def __len__(self) -> int:
        return len(self.weight)

    def keep(self, name: str, make: Callable[[], Result], owner: object = None) -> Result:
        """What was computed for this chunk under a name, by the same owner; computed now if it was not, or not kept."""
        if self.memo is None:
            return make()
        last, kept = self.memo.get(name, (self, None))
        if last is not owner:
            kept = make()
            self.memo[name] = owner, kept
        result: Result = kept
        return result

    def among(self, annotators: Array, classes: Array) -> Chunk:
        """The same with labels coded by the annotators and classes of all chunks."""
        return replace(self, labels=recoded(self.labels, annotators, classes))


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
            some = labels if step == n_rows else labels[at]
            known = None if truth is None else truth[at]
            parts.append(Chunk(some, weight[at], None if X is None else X[at], known, {}))
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
    names: tuple[Array, Array] | None = None  # annotators and classes that labels are coded by; None is their own
    n_passes: int = field(default=0, init=False)
    _n_examples: int | None = field(default=None, init=False)

    def total(self, task: Callable[[Chunk], Result]) -> Result:
        of_block = partial(_in_block, task, self.names)
        if isinstance(self.blocks, DaskBlocks):
            sums = self.blocks.total(of_block)
        else:
            # Threads end here and not wherever garbage is collected after an error: that may wait for ever.
            with (
                one_blas_thread(),
                closing(iter(self.blocks)) as blocks,
                closing(map_blocks(of_block, blocks, available_cores())) as found,
            ):
                first = next(found, None)
                if first is None:
                    raise DataError("there are no blocks to learn from.")
                sums = reduce(add, found, first)
        self.n_passes += 1
        if self._n_examples not in (None, sums.n_examples):
            raise DataError(
                f"blocks must be the same in every pass; the first had {self._n_examples} examples with labels, pass "
                f"{self.n_passes} had {sums.n_examples}. An iterator that is used up cannot be read again."
            )
        self._n_examples = sums.n_examples
        result: Result = sums.result
        return result


def chunks_of(X: Any, y: Any, sample_weight: Any) -> ReadChunks:
    """The chunks of blocks of files, which have labels and weights of their own, or of Dask collections."""
    if not isinstance(X, Blocks):
        return ReadChunks(DaskBlocks.of(X, y, sample_weight))
    given = {"y": y, "sample_weight": sample_weight}
    if names := [name for name, value in given.items() if value is not None]:
        raise ValueError(f"{', '.join(names)} cannot be given beside blocks, which have their own labels and weights.")
    return ReadChunks(X)


def _in_block(task: Callable[[Chunk], Any], names: tuple[Array, Array] | None, block: Block) -> Sums:
    with one_blas_thread():
        chunk = Chunk.of(block)
        return Sums(n_examples=len(chunk), result=task(chunk if names is None else chunk.among(*names)))


def recoded(labels: CrowdLabels, annotators: Array, classes: Array) -> CrowdLabels:
    """Labels coded by other annotators and classes, such as those of all chunks, which include these."""
    labels = labels._with_classes(classes)
    if labels.annotators is annotators or np.array_equal(labels.annotators, annotators):
        return labels
    position: Positions = encode_declared(labels.annotators, annotators).astype(np.intp)
    if (unknown := (position < 0) & (labels.labels_per_annotator > 0)).any():
        raise LabelError(
            f"the annotators {labels.annotators[unknown][:3].tolist()} are not among those known, such as "
            f"{annotators[:3].tolist()}. Give the same blocks in every pass."
        )
    who, values = position[labels.annotator_index], labels.values
    if (np.diff(position[position >= 0]) < 0).any():  # labels of an example are in the order of the annotators
        order = np.lexsort([who, labels.example_index])
        who, values = who[order], values[order]
    who = who.astype(smallest_integer_type(len(annotators)))
    groups = groups_in_order(groups_by_name(labels.groups, labels.annotators), annotators)
    return replace(labels, annotator_index=who, values=values, annotators=annotators, abstentions=None, groups=groups)
