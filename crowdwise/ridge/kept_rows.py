"""Blocks of rows -> a sample of them that does not depend on their order: what sums cannot say is found out from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from crowdwise._arrays import Array, Codes, Floats, FrozenArrays, Positions
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import encode_declared, smallest_integer_type
from crowdwise.weights.folds import Keys

# Rows that are kept, if they take no more bytes than this.
_MOST_ROWS = 20_000
_MOST_BYTES = 2**26


def most_rows(n_features: int) -> int:
    """How many rows are kept."""
    return min(_MOST_ROWS, _MOST_BYTES // (8 * n_features))


@dataclass(frozen=True, eq=False)
class KeptRows(FrozenArrays):
    """The rows with the smallest keys.

    Parameters
    ----------
    key : ndarray of shape (n_rows,)
        Ascending. Keys are made of features and labels.
    X : ndarray of shape (n_rows, n_features)
        Features.
    weight : ndarray of shape (n_rows,)
        Sample weights.
    fold : ndarray of shape (n_rows,)
        Folds.
    indptr : ndarray of shape (n_rows + 1,)
        Where the labels of each row begin.
    annotator : ndarray of shape (n_labels,)
        Who gave each label, as a position in the annotators of the sums.
    value : ndarray of shape (n_labels,)
        Each label, as a position in the classes of the sums, or the rating.
    """

    key: NDArray[np.uint64]
    X: Floats
    weight: Floats
    fold: NDArray[np.int64]
    indptr: NDArray[np.int64]
    annotator: NDArray[np.int64]
    value: Array

    @classmethod
    def of(cls, key: Keys, X: Any, labels: CrowdLabels, weight: Floats, fold: Codes, bound: Keys | None) -> KeptRows:
        """The rows of a block with the smallest keys, none of them above `bound`."""
        most = most_rows(X.shape[1])
        candidates = np.arange(len(key)) if bound is None else np.flatnonzero(key <= bound)
        if len(candidates) > most:
            candidates = candidates[np.argpartition(key[candidates], most - 1)[:most]]
        at = candidates[np.argsort(key[candidates], kind="stable")]
        few = labels[at]
        return cls(
            key[at],
            X[at].toarray() if sparse.issparse(X) else X[at],
            weight[at],
            fold[at].astype(np.int64),
            few.indptr,
            few.annotator_index.astype(np.int64),
            few.values if labels.classes is None else few.values.astype(np.int64),
        )

    @classmethod
    def none(cls, n_features: int, *, ratings: bool) -> KeptRows:
        """No rows."""
        whole = np.zeros(0, dtype=np.int64)
        no_labels = np.zeros(0) if ratings else whole
        none = np.zeros(0, dtype=np.uint64), np.zeros((0, n_features)), np.zeros(0), whole
        return cls(*none, np.zeros(1, dtype=np.int64), whole, no_labels)

    def __len__(self) -> int:
        return len(self.key)

    @property
    def bound(self) -> Keys | None:
        """The largest key that a further row may have; None while there is room."""
        return self.key[-1] if len(self) >= most_rows(self.X.shape[1]) else None

    def __add__(self, other: KeptRows) -> KeptRows:
        """The smallest keys of both, whose annotators and classes are the same."""
        if len(self) == 0 or len(other) == 0:
            return other if len(self) == 0 else self
        key = np.concatenate([self.key, other.key])
        at = np.argsort(key, kind="stable")[: most_rows(self.X.shape[1])]
        mine = at < len(self)
        X = np.empty((len(at), self.X.shape[1]), dtype=np.result_type(self.X, other.X))
        X[mine], X[~mine] = self.X[at[mine]], other.X[at[~mine] - len(self)]
        lengths = np.concatenate([np.diff(self.indptr), np.diff(other.indptr)])
        begin = np.concatenate([self.indptr[:-1], other.indptr[:-1] + self.indptr[-1]])[at]
        indptr = np.concatenate([[0], np.cumsum(lengths[at])])
        label = np.repeat(begin - indptr[:-1], lengths[at]) + np.arange(indptr[-1])
        return KeptRows(
            key[at],
            X,
            np.concatenate([self.weight, other.weight])[at],
            np.concatenate([self.fold, other.fold])[at],
            indptr,
            np.concatenate([self.annotator, other.annotator])[label],
            np.concatenate([self.value, other.value])[label],
        )

    def recoded(self, annotator: Positions, klass: Positions | None) -> KeptRows:
        """With other positions of annotators and classes; None for ratings."""
        if _is_identity(annotator) and (klass is None or _is_identity(klass)):
            return self
        who = np.asarray(annotator, dtype=np.int64)[self.annotator]
        value = self.value if klass is None else np.asarray(klass, dtype=np.int64)[self.value]
        order = np.lexsort([who, np.repeat(np.arange(len(self)), np.diff(self.indptr))])  # ascending within a row
        return KeptRows(self.key, self.X, self.weight, self.fold, self.indptr, who[order], value[order])

    def labels(self, annotators: Array, classes: Array | None) -> CrowdLabels:
        """The labels of the rows."""
        narrow = smallest_integer_type(len(annotators))
        value = self.value if classes is None else self.value.astype(smallest_integer_type(len(classes)))
        who = self.annotator.astype(narrow)
        return CrowdLabels(self.indptr, who, value, annotators, np.arange(len(self)), classes)


def _is_identity(position: Positions) -> bool:
    return np.array_equal(position, np.arange(len(position)))


def places(names: Array, among: Array) -> Positions:
    """Where each name is among others, which have them all."""
    if np.array_equal(names, among):
        return np.arange(len(names))
    return encode_declared(names, among).astype(np.intp)
