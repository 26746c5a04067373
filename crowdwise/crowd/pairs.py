"""Labels, and what was expected of them -> how correlated the residuals of each two annotators are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdwise._arrays import Array, Bools, Floats, Positions, ratio
from crowdwise.labels.crowd_labels import CrowdLabels

# Two labels of an example are a pair; of more pairs than this, those of some examples are enough, and of fewer if
# classes are many.
_MOST_PAIRS, _MOST_ENTRIES = 300_000, 3_000_000
# Examples that are enough if every two annotators share all of them.
_ENOUGH_SHARED = 2000
# Examples without correlation that are added to those that two annotators share.
_ADDED = 7.0
# Counts per pair of annotators are kept in a square while that is small.
_SQUARE = 2**20


@dataclass(frozen=True, eq=False)
class Pairs:
    """Every two annotators who share an example, the first one before the second."""

    first: Positions  # (n_pairs,): positions of the annotators
    second: Positions
    shared: Floats  # (n_pairs,): examples that both labelled
    agreement: Floats  # (n_pairs,): share of these with the same label
    # (n_pairs,): of their deviations, drawn towards zero where they share few examples or deviate little.
    correlation: Floats

    def __len__(self) -> int:
        return len(self.first)

    def select(self, chosen: Bools) -> Pairs:
        """Some of them."""
        return Pairs(*(getattr(self, name)[chosen] for name in self.__dataclass_fields__))


def residual_pairs(labels: CrowdLabels, residual: Floats) -> Pairs:
    """How correlated the residuals of annotators are after a consensus.

    A residual of (n_labels, n_columns) is each label as it is coded, less what was expected of this annotator given the
    consensus.
    """
    left, right, _ = label_pairs(labels)
    squared = np.einsum("ic,ic->i", residual, residual)
    product = sum((column[left] * column[right] for column in residual.T), start=np.zeros(len(left)))
    return _Met.of(labels, left, right).pairs(product, squared[left], squared[right])


def enough_pairs(labels: CrowdLabels) -> Positions | None:
    """Some examples, drawn at random, if there are more pairs of labels than are needed; None if all are."""
    if labels.is_complete:
        n_pairs = len(labels) * (labels.n_annotators * (labels.n_annotators - 1) / 2)
    else:
        n_labels = labels.labels_per_example.astype(np.float64)
        n_pairs = float(n_labels @ (n_labels - 1) / 2)
    most = _MOST_PAIRS if labels.classes is None else min(_MOST_PAIRS, _MOST_ENTRIES / len(labels.classes))
    if n_pairs <= most:
        return None
    n_chosen = max(int(len(labels) * most / n_pairs), 1)
    if labels.is_complete:
        n_chosen = min(n_chosen, _ENOUGH_SHARED)
    return np.sort(np.random.default_rng(0).choice(len(labels), n_chosen, replace=False))


def label_pairs(labels: CrowdLabels) -> tuple[Positions, Positions, Positions]:
    """Positions of two labels of the same example, for every two, and the example; annotators in their order."""
    n_labels = labels.labels_per_example
    left, right, examples = [_NONE], [_NONE], [_NONE]
    for n in np.unique(n_labels[n_labels > 1]).tolist():
        example = np.flatnonzero(n_labels == n)
        one, other = np.triu_indices(n, 1)
        begin = labels.indptr[example][:, np.newaxis]
        left.append((begin + one).ravel())
        right.append((begin + other).ravel())
        examples.append(np.repeat(example, len(one)))
    return np.concatenate(left), np.concatenate(right), np.concatenate(examples)


_NONE = np.empty(0, dtype=np.intp)


def _no_pairs() -> Pairs:
    return Pairs(_NONE, _NONE, np.empty(0), np.empty(0), np.empty(0))


def one_hot(labels: CrowdLabels) -> Floats:
    """A one in the column of each label's class."""
    assert labels.classes is not None
    codes = np.zeros((labels.n_labels, len(labels.classes)))
    codes[np.arange(labels.n_labels), labels.values] = 1.0
    return codes


@dataclass(frozen=True, eq=False)
class _Met:
    """Who shares examples, and how often they say the same."""

    n_annotators: int
    key: Positions  # (n_pairs,): the first annotator of each pair times that number, plus the second
    which: Positions  # (n_label_pairs,): the pair that two labels of the same example are of
    shared: Floats  # (n_pairs,), as in `Pairs`
    agreement: Floats  # (n_pairs,), as in `Pairs`

    @classmethod
    def of(cls, labels: CrowdLabels, left: Positions, right: Positions) -> _Met:
        """From positions of two labels of the same example, for every two."""
        n = labels.n_annotators
        key = labels.annotator_index[left].astype(np.int64) * n + labels.annotator_index[right]
        if n * n <= min(len(key), _SQUARE):
            pairs = np.flatnonzero(np.bincount(key, minlength=n * n))
            place = np.zeros(n * n, dtype=np.intp)
            place[pairs] = np.arange(len(pairs))
            which = place[key]
        else:
            pairs, which = np.unique(key, return_inverse=True)
        shared = np.bincount(which, minlength=len(pairs)).astype(np.float64)
        n_same = np.bincount(which[labels.values[left] == labels.values[right]], minlength=len(pairs))
        return cls(n, pairs, which, shared, n_same / shared)

    def pairs(self, product: Floats, one: Floats, other: Floats) -> Pairs:
        """With sums of products and squares of the deviations of two labels."""
        if not len(self.key):
            return _no_pairs()

        def total(values: Array) -> Floats:
            return np.bincount(self.which, values, len(self.key)).astype(np.float64)

        usual = float(one.mean() + other.mean()) / 2
        scale = np.sqrt(total(one)) * np.sqrt(total(other)) + _ADDED * usual  # under one root a product might overflow
        correlation = ratio(total(product), scale, 0.0)
        n = self.n_annotators
        return Pairs(self.key // n, self.key % n, self.shared, self.agreement, correlation)
