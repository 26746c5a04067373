"""The stored form of labels: sparse rows of codes, frozen; how many there are, and sums over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from crowdwise._arrays import Array, FrozenArrays, read_only
from crowdwise.exceptions import LabelError
from crowdwise.labels._encode import smallest_integer_type
from crowdwise.labels.scale import NOMINAL, LabelScale

# Where the ids of the examples come from: nowhere (they are positions), a default index, the caller, or the caller's
# table, whose ids were sorted.
IdSource = Literal["position", "default", "given", "sorted"]
# How many labels a sparse matrix of some examples may have.
_MOST_STORED = 2**19


@dataclass(frozen=True, eq=False, repr=False)
class LabelRows(FrozenArrays):
    """Labels row by row; absent labels take no space. The parameters are those of `CrowdLabels`."""

    indptr: NDArray[np.int64]
    annotator_index: Array
    values: Array
    annotators: Array
    examples: Array
    classes: Array | None
    id_source: IdSource = "position"
    abstentions: Any = None
    frame_library: str | None = None
    declared_classes: bool = False
    truth: Array | None = None
    groups: Array | None = None
    scale: LabelScale = NOMINAL
    informative_abstentions: bool = False

    @cached_property
    def _warned(self) -> set[str]:
        """What was warned of, of these labels or a part of them."""
        return set()

    # ------------------------------------------------------------------ how many

    def __len__(self) -> int:
        return self.n_examples

    @property
    def shape(self) -> tuple[int, int]:
        """Examples and annotators, as of the matrix that `to_matrix` gives."""
        return self.n_examples, self.n_annotators

    @property
    def n_examples(self) -> int:
        """Number of examples, with or without labels."""
        return len(self.indptr) - 1

    @property
    def n_annotators(self) -> int:
        """Number of annotators, with or without labels."""
        return len(self.annotators)

    @property
    def n_labels(self) -> int:
        """Number of labels given."""
        return len(self.values)

    @property
    def levels(self) -> NDArray[np.float64] | None:
        """Where each class is, if classes have an order: numbers as they are, anything else 1, 2, 3, ..."""
        return None if self.classes is None else self.scale.levels(self.classes)

    @property
    def _named_examples(self) -> bool:
        """Whether `examples` are identifiers that the caller gave, rather than positions or a default index."""
        return self.id_source in ("given", "sorted")

    @property
    def is_complete(self) -> bool:
        """Whether every annotator labelled every example."""
        return self.n_labels == self.n_examples * self.n_annotators

    @cached_property
    def labels_per_example(self) -> NDArray[np.int64]:
        """How many labels each example has."""
        return read_only(np.diff(self.indptr))

    @cached_property
    def labels_per_annotator(self) -> NDArray[np.int64]:
        """How many labels each annotator gave."""
        return read_only(np.bincount(self.annotator_index, minlength=self.n_annotators))

    @property
    def n_abstentions(self) -> int:
        """Number of answers such as "I cannot tell"; they are no labels."""
        return 0 if self.abstentions is None else int(self.abstentions.nnz)

    @property
    def abstentions_per_example(self) -> NDArray[np.int64]:
        """How many annotators abstained from each example."""
        if self.abstentions is None:
            return np.zeros(self.n_examples, dtype=np.int64)
        return np.diff(self.abstentions.indptr).astype(np.int64)

    @property
    def abstentions_per_annotator(self) -> NDArray[np.int64]:
        """From how many examples each annotator abstained."""
        if self.abstentions is None:
            return np.zeros(self.n_annotators, dtype=np.int64)
        return np.bincount(self.abstentions.indices, minlength=self.n_annotators)

    @property
    def example_index(self) -> NDArray[np.intp]:
        """The row that each label belongs to, as `annotator_index` is its column."""
        return np.repeat(np.arange(self.n_examples), self.labels_per_example)

    # ------------------------------------------------------------------ sums

    @cached_property
    def _tally(self) -> Array:
        """What `counts` gives, kept in the smallest integer type."""
        classes = self._need_classes("counts")
        per_example = self.labels_per_example
        largest = int(per_example.max(initial=0))
        tally = np.empty((self.n_examples, len(classes)), dtype=smallest_integer_type(largest + 1))
        for k in range(1, len(classes)):
            tally[:, k] = self._sum_per_example(self.values == k)
        if len(classes):
            tally[:, 0] = per_example - tally[:, 1:].sum(axis=1)
        return read_only(tally)

    def _sum_per_example(self, per_label: Array) -> Array:
        """Sums of a quantity given for every label, over the labels of each example."""
        dtype = np.int64 if per_label.dtype.kind in "biu" else np.float64
        sums = np.zeros(self.n_examples, dtype=dtype)
        filled = self.labels_per_example > 0
        if filled.any():  # an empty stretch would otherwise repeat its neighbour's first value
            sums[filled] = np.add.reduceat(per_label, self.indptr[:-1][filled], dtype=dtype)
        return sums

    def _sum_per_annotator(self, per_label: Array) -> NDArray[np.float64]:
        """Sums of a quantity given for every label, over the labels of each annotator."""
        sums = np.bincount(self.annotator_index, per_label, minlength=self.n_annotators)
        return sums.astype(np.float64, copy=False)

    def _sum_in_blocks(self, per_label: Callable[[slice, NDArray[np.intp]], Array]) -> NDArray[np.float64]:
        """Sums of a quantity over the labels of each annotator, made of some labels at a time to take less memory."""
        sums = np.zeros(self.n_annotators)
        step = max(1, self.n_examples * _MOST_STORED // max(self.n_labels, 1))
        for start in range(0, self.n_examples, step):
            stop = min(start + step, self.n_examples)
            at = slice(int(self.indptr[start]), int(self.indptr[stop]))
            example = np.repeat(np.arange(start, stop), self.labels_per_example[start:stop])
            sums += np.bincount(self.annotator_index[at], per_label(at, example), minlength=self.n_annotators)
        return sums

    def _as_sparse(self, per_label: NDArray[np.float64]) -> sparse.csr_array:
        """A quantity given for every label, as a matrix of examples by annotators; zeros are stored too."""
        index = np.int32 if self.n_labels < 2**31 else np.int64  # SciPy takes the larger type of both
        entries = (per_label, self.annotator_index.astype(index), self.indptr.astype(index))
        return sparse.csr_array(entries, shape=self.shape)

    def _need_classes(self, purpose: str) -> Array:
        if self.classes is None:
            raise LabelError(f'{purpose} needs classes, and these labels are numbers (scale="interval").')
        return self.classes
