"""Chunks of features and labels -> who and what is in them, and a sample: what a first pass finds out.

Summaries of two parts add. The sample is of the rows with the smallest keys, which are made of features and labels:
neither the order of the chunks nor where they are cut changes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from crowdwise._arrays import Array, Floats, Positions
from crowdwise.crowd._disagreement import CLASS_DISTANCE, PairMoments, RelativeTo, pair_sums, scaled_pair_sums
from crowdwise.exceptions import DataError, LabelError
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import as_objects, encode, encode_declared
from crowdwise.labels.groups import groups_by_name, groups_in_order, joined_groups
from crowdwise.rows.chunks import Chunk
from crowdwise.rows.features import check_finite
from crowdwise.rows.keys import label_keys
from crowdwise.training_set import check_named
from crowdwise.weights.folds import Keys, joint_keys, stored_keys

# Rows of the sample, and the most numbers that their features may take.
MOST_ROWS = 20_000
_MOST_NUMBERS = 2**24
# Another seed than that of the folds: the sample is to have rows of all folds.
_SEED = 1
# A level of disagreement is a number of labels times this, and the pairs of labels that differ.
_PAIRS = 2**40


@dataclass(frozen=True, eq=False)
class DataSummary:
    """Who and what is in some chunks."""

    n_features: int
    feature_names: tuple[str, ...] | None  # their names, if they have any
    n_examples: int  # examples with a label and a weight: those that take part
    n_unlabelled: int  # examples without a label
    classes: Array  # (n_classes,): the classes, sorted unless one block declared them all
    annotators: Array  # (n_annotators,): all annotators, in the order in which blocks name them
    labels_per_class: NDArray[np.int64]  # (n_classes,): how many labels are of each class
    labels_per_annotator: NDArray[np.int64]  # (n_annotators,): how many labels each annotator gave
    # (n_levels,): levels of disagreement that occur, ascending; a number for both labels and differing pairs of an
    # example.
    levels: NDArray[np.int64]
    examples_per_level: Floats  # (n_levels,): how many examples are of each, every one as often as it counts
    kept: tuple[tuple[Keys, Chunk], ...]  # rows with the smallest keys
    groups: dict[Any, Any] | None  # of annotators, by their names

    @classmethod
    def of(cls, chunk: Chunk) -> DataSummary:
        """Of one chunk, whose features are checked to be finite."""
        check_finite(chunk.X)
        labels = chunk.labels
        assert labels.classes is not None
        if labels.informative_abstentions:
            raise LabelError("with_abstentions needs examples in memory, and blocks are not kept.")
        levels, level = np.unique(levels_of_labels(labels), return_inverse=True)
        return cls(
            chunk.X.shape[1],
            chunk.feature_names,
            len(chunk),
            chunk.n_unlabelled,
            labels.classes,
            labels.annotators,
            labels._tally.sum(axis=0, dtype=np.int64),
            np.array(labels.labels_per_annotator),
            levels,
            _sums(level, chunk.weight, len(levels)),
            _smallest(((sample_keys(chunk.X, labels), chunk),), chunk.X.shape[1]),
            groups_by_name(labels.groups, labels.annotators),
        )

    def __add__(self, other: DataSummary) -> DataSummary:
        if self.n_features != other.n_features:
            raise DataError(
                f"all blocks must have the same features; one has {self.n_features} and another {other.n_features}."
            )
        if self.feature_names != other.feature_names:
            raise DataError("all blocks must have the same features, with the same names, in the same order.")
        classes = _joined(self.classes, other.classes)
        if classes is not self.classes and classes is not other.classes:
            classes = encode(classes)[1]
        annotators = _joined(self.annotators, other.annotators)
        levels, place = np.unique(np.concatenate([self.levels, other.levels]), return_inverse=True)
        counts = _sums(place, np.concatenate([self.examples_per_level, other.examples_per_level]), len(levels))
        return DataSummary(
            self.n_features,
            self.feature_names,
            self.n_examples + other.n_examples,
            self.n_unlabelled + other.n_unlabelled,
            classes,
            annotators,
            _placed(self.labels_per_class, self.classes, classes)
            + _placed(other.labels_per_class, other.classes, classes),
            _placed(self.labels_per_annotator, self.annotators, annotators)
            + _placed(other.labels_per_annotator, other.annotators, annotators),
            levels,
            counts,
            _smallest(self.kept + other.kept, self.n_features),
            joined_groups(self.groups, other.groups),
        )

    def check(self) -> None:
        """Raise if there is nothing to learn from."""
        if self.n_examples == 0:
            raise LabelError(
                f"there is no label: all {self.n_unlabelled} examples of all blocks are without one, or without weight."
            )
        check_named(self.classes, self.labels_per_class > 0)

    @property
    def active(self) -> Array:
        """The annotators with a label."""
        return self.annotators[self.labels_per_annotator > 0]

    def disagreement(self, relative_to: RelativeTo) -> Floats:
        """Of every level."""
        n_labels, pairs = np.divmod(self.levels, _PAIRS)
        totals = CLASS_DISTANCE * pairs
        moments = PairMoments.of(totals, n_labels, self.examples_per_level)
        return scaled_pair_sums(totals, n_labels, relative_to, moments, n_classes=len(self.classes))

    @property
    def is_complete(self) -> bool:
        """Whether all examples are among the rows that were kept."""
        return sum(len(key) for key, _ in self.kept) == self.n_examples

    def sample(self) -> Chunk:
        """The rows that were kept, in the order of their keys, coded by all annotators and classes."""
        rows = self.rows()
        order = np.argsort(np.concatenate([key for key, _ in self.kept]), kind="stable")
        return Chunk(rows.labels[order], rows.weight[order], rows.X[order], memo={})

    def rows(self) -> Chunk:
        """The rows that were kept, in the order of the chunks."""
        chunks = [chunk.among(self.annotators, self.classes) for _, chunk in self.kept]
        rows = [chunk.X for chunk in chunks]
        X = sparse.csr_array(sparse.vstack(rows)) if sparse.issparse(rows[0]) else np.concatenate(rows)
        labels = replace(
            stacked([chunk.labels for chunk in chunks]), groups=groups_in_order(self.groups, self.annotators)
        )
        return Chunk(labels, np.concatenate([chunk.weight for chunk in chunks]), X)


def _sums(place: Positions, values: Floats, n_places: int) -> Floats:
    """The sum of the values at each place."""
    return np.bincount(place, values, n_places).astype(np.float64)


def sample_keys(X: Any, labels: CrowdLabels) -> Keys:
    """A number for every row, from its features and labels: the sample is of the rows with the smallest."""
    return joint_keys(stored_keys(X, _SEED), label_keys(labels))


def first_of_sample(X: Any, labels: CrowdLabels, most: int) -> Positions | None:
    """Positions of so many rows with the smallest keys, as a sample of blocks has them; None if that is all rows."""
    if len(labels) <= most:
        return None
    keys = sample_keys(X, labels)
    some = np.argpartition(keys, most - 1)[:most]
    return some[np.argsort(keys[some], kind="stable")]


def levels_of_labels(labels: CrowdLabels) -> NDArray[np.int64]:
    """The level of disagreement of every example."""
    pairs = (pair_sums(labels) / CLASS_DISTANCE).astype(np.int64)
    return labels.labels_per_example * _PAIRS + pairs


def _smallest(parts: Sequence[tuple[Keys, Chunk]], n_features: int) -> tuple[tuple[Keys, Chunk], ...]:
    """The rows with the smallest keys."""
    if not parts:
        return ()
    most = min(MOST_ROWS, _MOST_NUMBERS // max(n_features, 1))
    if any(sparse.issparse(chunk.X) for _, chunk in parts):
        most = MOST_ROWS
    keys = np.concatenate([key for key, _ in parts])
    bound = None if len(keys) <= most else np.partition(keys, most - 1)[most - 1]
    if bound is None:
        return tuple(parts)
    kept = []
    for key, chunk in parts:
        some = np.flatnonzero(key <= bound)
        if len(some) == len(key):
            kept.append((key, chunk))
        elif len(some):
            kept.append((key[some], Chunk(chunk.labels[some], chunk.weight[some], chunk.X[some])))
    return tuple(kept)


def _joined(one: Array, other: Array) -> Array:
    """All names; those of one side as they are if it has them all."""
    if one is other or np.array_equal(one, other):
        return one
    new = encode_declared(other, one) < 0
    if not new.any():
        return one
    if (encode_declared(one, other) >= 0).all():
        return other
    return as_objects([*one.tolist(), *other[new].tolist()])


def _placed(counts: NDArray[np.int64], names: Array, among: Array) -> NDArray[np.int64]:
    """Counts in other places."""
    if names is among:
        return counts
    placed = np.zeros(len(among), dtype=np.int64)
    placed[encode_declared(names, among).astype(np.intp)] = counts
    return placed


def stacked(parts: Sequence[CrowdLabels]) -> CrowdLabels:
    """Labels of the same annotators and classes, one after the other."""
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
