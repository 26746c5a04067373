"""Labels of rows -> numbers that depend on nothing but the labels: with keys of features, what samples are drawn by."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from crowdwise._arrays import Array, Floats
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.weights.folds import Keys

# Factors of annotators and classes in the key of a row's labels: sums of so many of their products are exact.
_ANNOTATOR_BITS, _CLASS_BITS = 30, 16
# Labels that are hashed at a time.
_MOST_LABELS = 2**20


def label_keys(labels: CrowdLabels) -> Keys:
    """A number for every example that is the same for the same labels of the same annotators.

    Rows with equal features would otherwise have the same key, and be kept or left out all together.
    """
    who = _named_factors(labels.annotators, _ANNOTATOR_BITS)
    klass = None if labels.classes is None else _named_factors(labels.classes, _CLASS_BITS)
    if klass is not None and labels.is_complete and len(klass) == 2:  # the same sums of whole numbers, by one product
        second = labels._weigh_complete(who, 1)
        return (klass[0] * (who.sum() - second) + klass[1] * second).view(np.uint64)
    sums = np.empty(len(labels))
    step = max(1, len(labels) * _MOST_LABELS // max(labels.n_labels, 1))
    for start in range(0, len(labels), step):
        some = labels[slice(start, start + step)]
        if klass is None:
            sums[start : start + step] = some._sum_per_example(who[some.annotator_index] * some.values)
        else:  # exact in any order
            sums[start : start + step] = some._as_sparse(klass[some.values]) @ who
    return sums.view(np.uint64)


def _named_factors(names: Array, n_bits: int) -> Floats:
    """A whole number for every name, from the name alone."""
    digests = (blake2b(repr(name).encode(), digest_size=8).digest() for name in names.tolist())
    return np.array([int.from_bytes(digest) % 2**n_bits for digest in digests], dtype=np.float64)
