"""Chunks of features and labels -> who and what is in them, and a sample of their rows: what a first pass finds out.

Summaries of two parts add. The sample is of the rows with the smallest keys, which are made of features and labels:
neither the order of the chunks nor where they are cut changes which rows it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from crowdwise._arrays import Array, Codes, Floats, FrozenArrays, Positions
from crowdwise._limits import ENOUGH_EXAMPLES
from crowdwise._threads import TASK_ROWS
from crowdwise.crowd._disagreement import PairMoments, RatingMoments, RelativeTo, pair_sums, scaled_pair_sums
from crowdwise.exceptions import DataError, LabelError
from crowdwise.labels._encode import as_objects, encode, encode_declared
from crowdwise.labels._groups import groups_by_name, groups_in_order, joined_groups
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.rows.chunks import Chunk, recoded
from crowdwise.rows.features import check_finite
from crowdwise.training_set import check_named
from crowdwise.weights.folds import Keys, joint_keys, stored_keys

# The most numbers that the features of the sample may take.
_MOST_NUMBERS = 2**24
# Another seed than that of the folds: the sample is to have rows of all folds.
_SEED = 1
# Factors of annotators and classes in the key of a row's labels: sums of so many of their products are exact.
_ANNOTATOR_BITS, _CLASS_BITS = 30, 16

# What adds of two summaries.
_ADDED = (
    "n_given", "n_examples", "n_unlabelled", "labels_per_class", "labels_per_annotator", "ratings", "pairs", "sample",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Sample(FrozenArrays):
    """The rows with the smallest keys, in the order in which they came."""

    key: Keys  # of features and labels
    X: Any
    labels: CrowdLabels
    weight: Floats  # how often each row counts
    fold: Codes | None = None

    @classmethod
    def of(cls, key: Keys, chunk: Chunk, fold: Codes | None = None, *, dense: bool = False) -> Sample:
        """Of the rows of a chunk; sparse features become `dense` if they are to."""
        at = _smallest(key, _most_rows(chunk.X, dense=dense))
        X = chunk.X[at]
        X = X.toarray() if dense and sparse.issparse(X) else X
        return cls(key[at], X, stacked([chunk.labels[at]]), chunk.weight[at], None if fold is None else fold[at])

    def __len__(self) -> int:
        return len(self.key)

    def __add__(self, other: Sample) -> Sample:
        """The smallest keys of both, whose annotators and classes are the same."""
        key, parts = np.concatenate([self.key, other.key]), [self, other]
        most = _most_rows(self.X)
        if len(key) > most:
            last = np.partition(key, most - 1)[most - 1]
            parts = [part.at(part.key <= last) for part in parts]
        rows, folds = [part.X for part in parts], [part.fold for part in parts if part.fold is not None]
        return Sample(
            np.concatenate([part.key for part in parts]),
            sparse.csr_array(sparse.vstack(rows)) if any(map(sparse.issparse, rows)) else np.concatenate(rows),
            stacked([part.labels for part in parts]),
            np.concatenate([part.weight for part in parts]),
            np.concatenate(folds) if folds else None,
        )

    def at(self, rows: Any) -> Sample:
        """Some of the rows."""
        fold = None if self.fold is None else self.fold[rows]
        return Sample(self.key[rows], self.X[rows], self.labels[rows], self.weight[rows], fold)

    def in_order(self) -> Sample:
        """By keys, so that not even the order depends on how the rows came."""
        return self.at(np.argsort(self.key, kind="stable"))


@dataclass(frozen=True, eq=False)
class DataSummary(FrozenArrays):
    """Who and what is in some chunks."""

    n_features: int
    feature_names: tuple[str, ...] | None  # their names, if they have any
    n_given: int  # all examples, with those that take no part
    n_examples: int  # examples with a label and a weight: those that take part
    n_unlabelled: int  # examples without a label
    classes: Array | None  # (n_classes,): sorted unless one block declared them all; None for ratings
    annotators: Array  # (n_annotators,): all annotators, in the order in which blocks name them
    groups: dict[Any, Any] | None  # of annotators, by their names
    labels_per_class: NDArray[np.int64]  # (n_classes,): how many labels are of each class; none for ratings
    labels_per_annotator: NDArray[np.int64]  # (n_annotators,): how many labels each annotator gave
    most_labels: int  # of an example
    ratings: RatingMoments
    pairs: PairMoments  # what disagreement is measured by
    sample: Sample

    @classmethod
    def of(cls, chunk: Chunk, sample: Sample | None = None) -> DataSummary:
        """Of one chunk; without a sample of it, its features are checked to be finite."""
        labels = chunk.labels
        if sample is None:
            check_finite(chunk.X)
            if labels.informative_abstentions:
                raise LabelError("with_abstentions needs examples in memory, and blocks are not kept.")
            sample = Sample.of(sample_keys(chunk.X, labels), chunk)
        rated = labels.classes is None
        return cls(
            chunk.X.shape[1],
            chunk.feature_names,
            max(chunk.n_given, len(chunk)),
            len(chunk),
            chunk.n_unlabelled,
            labels.classes,
            labels.annotators,
            groups_by_name(labels.groups, labels.annotators),
            np.zeros(0, dtype=np.int64) if rated else labels._tally.sum(axis=0, dtype=np.int64),
            np.array(labels.labels_per_annotator),
            int(labels.labels_per_example.max(initial=0)),
            RatingMoments.of(labels.values) if rated else RatingMoments(),
            PairMoments.of(pair_sums(labels), labels.labels_per_example, chunk.weight),
            sample,
        )

    def __add__(self, other: DataSummary) -> DataSummary:
        if self.n_features != other.n_features:
            raise DataError(
                f"all blocks must have the same features; one has {self.n_features} and another {other.n_features}."
            )
        if self.feature_names != other.feature_names:
            raise DataError("all blocks must have the same features, with the same names, in the same order.")
        annotators, classes = _joined(self.annotators, other.annotators), None
        if self.classes is not None and other.classes is not None:
            classes = _joined(self.classes, other.classes)
            if classes is not self.classes and classes is not other.classes:
                classes = encode(classes)[1]
        first, second = self.among(annotators, classes), other.among(annotators, classes)
        return replace(
            first,
            groups=joined_groups(first.groups, second.groups),
            most_labels=max(first.most_labels, second.most_labels),
            **{name: getattr(first, name) + getattr(second, name) for name in _ADDED},
        )

    def among(self, annotators: Array, classes: Array | None) -> DataSummary:
        """The same in the terms of more annotators and classes."""
        if annotators is self.annotators and classes is self.classes:
            return self
        of_class = self.labels_per_class
        if classes is not None and self.classes is not None:
            of_class = _placed(of_class, self.classes, classes)
        return replace(
            self,
            classes=classes,
            annotators=annotators,
            labels_per_class=of_class,
            labels_per_annotator=_placed(self.labels_per_annotator, self.annotators, annotators),
            sample=replace(self.sample, labels=recoded(self.sample.labels, annotators, classes)),
        )

    def check(self, *, one_class: bool = False) -> None:
        """Raise if there is nothing to learn from; with `one_class`, one of several declared classes is enough."""
        if self.n_examples == 0:
            raise LabelError(
                f"there is no label yet: all {self.n_given} examples so far are without one, or without weight."
            )
        if self.classes is not None:
            check_named(self.classes, self.labels_per_class > 0, declared=one_class)

    @property
    def active(self) -> Array:
        """The annotators with a label."""
        return self.annotators[self.labels_per_annotator > 0]

    def with_groups(self) -> Sample:
        """The sample, whose labels carry the groups of annotators of all chunks."""
        groups = groups_in_order(self.groups, self.annotators)
        return replace(self.sample, labels=replace(self.sample.labels, groups=groups))

    @property
    def is_complete(self) -> bool:
        """Whether all examples are in the sample."""
        return len(self.sample) == self.n_examples

    def disagreement(self, totals: Floats, n_labels: Array, relative_to: RelativeTo) -> Floats:
        """From sums over the pairs of labels of some examples or levels, relative to that of all examples."""
        n_classes = None if self.classes is None else len(self.classes)
        span = self.ratings.high - self.ratings.low if n_classes is None else 0.0
        return scaled_pair_sums(totals, n_labels, relative_to, self.pairs, n_classes=n_classes, span=span)


def _most_rows(X: Any, *, dense: bool = False) -> int:
    if sparse.issparse(X) and not dense:
        return ENOUGH_EXAMPLES
    return min(ENOUGH_EXAMPLES, _MOST_NUMBERS // max(X.shape[1], 1))


def _smallest(key: Keys, most: int) -> Positions:
    """Positions of the smallest keys, ascending."""
    return np.arange(len(key)) if len(key) <= most else np.sort(np.argpartition(key, most - 1)[:most])


def sample_keys(X: Any, labels: CrowdLabels) -> Keys:
    """A number for every row, from its features and labels: the sample is of the rows with the smallest."""
    return joint_keys(stored_keys(X, _SEED), label_keys(labels))


def first_of_sample(X: Any, labels: CrowdLabels, most: int) -> Positions | None:
    """Positions of so many rows with the smallest keys, as a sample of blocks has them; None if that is all rows."""
    if len(labels) <= most:
        return None
    keys = sample_keys(X, labels)
    smallest = _smallest(keys, most)
    return smallest[np.argsort(keys[smallest], kind="stable")]


def label_keys(labels: CrowdLabels) -> Keys:
    """A number for every example that is the same for the same labels of the same annotators.

    Rows with equal features would otherwise have the same key, and be kept or left out all together.
    """
    of_annotator, of_class = _named_factors(labels.annotators, _ANNOTATOR_BITS), None
    if labels.classes is not None:
        of_class = _named_factors(labels.classes, _CLASS_BITS)
    sums = np.empty(len(labels))
    for start in range(0, len(labels), TASK_ROWS):  # sums of whole numbers are exact in any order
        block = slice(start, start + TASK_ROWS)
        part = labels[block]
        sums[block] = part._as_sparse(part.values if of_class is None else of_class[part.values]) @ of_annotator
    return sums.view(np.uint64)


def _named_factors(names: Array, n_bits: int) -> Floats:
    """A whole number for every name, from the name alone."""
    digests = (blake2b(repr(name).encode(), digest_size=8).digest() for name in names.tolist())
    return np.array([int.from_bytes(digest) % 2**n_bits for digest in digests], dtype=np.float64)


def _joined(names: Array, more: Array) -> Array:
    """All names; those of one side as they are if it has them all."""
    if names is more or np.array_equal(names, more):
        return names
    new = encode_declared(more, names) < 0
    if not new.any():
        return names
    if (encode_declared(names, more) >= 0).all():
        return more
    return as_objects([*names.tolist(), *more[new].tolist()])


def _placed(counts: NDArray[np.int64], names: Array, among: Array) -> NDArray[np.int64]:
    placed = np.zeros(len(among), dtype=np.int64)
    placed[encode_declared(names, among).astype(np.intp)] = counts
    return placed


def stacked(parts: Sequence[CrowdLabels]) -> CrowdLabels:
    """Labels of the same annotators and classes, one after the other, without ids."""
    first, lengths = parts[0], np.concatenate([part.labels_per_example for part in parts])
    return CrowdLabels(
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([part.annotator_index for part in parts]),
        np.concatenate([part.values for part in parts]),
        first.annotators,
        np.arange(len(lengths)),
        first.classes,
        declared_classes=all(part.declared_classes for part in parts),
        scale=first.scale,
    )
