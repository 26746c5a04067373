"""Blocks of features and labels -> one result per block, added up in the order of the blocks.

A pass over data that need not fit into memory is a plain "map blocks, add results": a function of one block, whose
results have ``+``. What maps it is passed in, so threads, joblib or a cluster can drive it. Results are added in the
order of the blocks, so no bit depends on who computed them, or on how many threads there were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from typing import Any, TypeVar

import numpy as np
from sklearn.utils import check_array

from crowdwise.arrays import Array, Floats
from crowdwise.cluster.blocks import DaskBlocks
from crowdwise.exceptions import LabelError
from crowdwise.labels.align import align, as_labels
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import encode_declared, smallest_integer_type
from crowdwise.out_of_core.blocks import map_blocks
from crowdwise.threads import available_cores, one_blas_thread
from crowdwise.training_set import check_sample_weight

Result = TypeVar("Result")
# From a function of one block and blocks to its results, in the order of the blocks.
Mapper = Callable[[Callable[[Any], Result], Any], Iterable[Result]]


@dataclass(frozen=True, eq=False)
class CheckedBlock:
    """Some examples that take part: each has a label and a weight."""

    X: Any  # ndarray or sparse array of shape (n_examples, n_features)
    labels: CrowdLabels
    weight: Floats  # (n_examples,): how often each example counts
    n_unlabelled: int = 0  # how many further examples had no label

    @classmethod
    def of(cls, given: Any) -> CheckedBlock:
        """From what a reader of blocks gives: (X, labels) or (X, labels, sample_weight)."""
        if isinstance(given, CheckedBlock):
            return given
        X, labels = align(given[0], as_labels(given[1]))
        X = check_array(
            X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=False, ensure_min_samples=0
        )
        weight = check_sample_weight(given[2] if len(given) > 2 else None, X, labels, rescale=False)
        labelled = labels.labels_per_example > 0
        learnt = labelled & (weight > 0)
        if not learnt.all():
            X, labels, weight = X[learnt], labels[learnt], weight[learnt]
        return cls(X, labels, weight, int((~labelled).sum()))

    def __len__(self) -> int:
        return len(self.weight)

    def among(self, annotators: Array, classes: Array) -> CheckedBlock:
        """The same with labels coded by the annotators and classes of all blocks."""
        return replace(self, labels=recoded(self.labels, annotators, classes))


def recoded(labels: CrowdLabels, annotators: Array, classes: Array) -> CrowdLabels:
    """Labels coded by other annotators and classes, such as those of all blocks, which include these."""
    labels = labels.with_classes(classes)
    if labels.annotators is annotators or np.array_equal(labels.annotators, annotators):
        return labels
    position = encode_declared(labels.annotators, annotators)
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
    return replace(labels, annotator_index=who, values=values, annotators=annotators, abstentions=None)


def in_threads(task: Callable[[Any], Result], blocks: Iterable[Any]) -> Iterator[Result]:
    """Results of a task for every block, in order, on all cores; only a few blocks are held at a time."""
    with one_blas_thread():
        yield from map_blocks(task, blocks, available_cores())


def on_dask(task: Callable[[Any], Result], blocks: DaskBlocks) -> list[Result]:
    """The total over the blocks of Dask collections, which is the only result: it is added up where the blocks are."""
    return [blocks.total(partial(_on_one_thread, task))]


def _on_one_thread(task: Callable[[Any], Result], block: Any) -> Result:
    with one_blas_thread():
        return task(block)


def total(task: Callable[[Any], Any], blocks: Any, mapper: Mapper[Any] = in_threads) -> Any:
    """The sum over all blocks of what a task finds in one; None if there is no block."""
    results = iter(mapper(task, blocks))
    first = next(results, None)
    return None if first is None else reduce(add, results, first)
