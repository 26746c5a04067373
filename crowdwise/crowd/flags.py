"""Labels, agreement with a model -> what is remarkable about annotators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdwise.arrays import Array, Floats
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import shown

# With fewer labels than this, an annotator is flagged: their expertise is mostly the crowd's.
_FEW_LABELS = 3
# Annotators with the same labels on at least this many examples are flagged as copies.
_COPY_LABELS = 10
# How many examples are enough to tell most annotators apart.
_FIRST_EXAMPLES = 1000


def flag_annotators(labels: CrowdLabels, agreement: Floats) -> dict[Any, tuple[str, ...]]:
    """What is remarkable about annotators; those of whom nothing is are left out.

    Parameters
    ----------
    labels : CrowdLabels
        All labels.
    agreement : ndarray of shape (n_annotators,)
        How far each annotator's labels go with the scores; below zero is worse than chance.

    Returns
    -------
    flags : dict from annotator to tuple of str
    """
    n_labels = labels.labels_per_annotator
    twins = _copies(labels, n_labels)
    flags: dict[Any, tuple[str, ...]] = {}
    for i, name in enumerate(labels.annotators.tolist()):
        found = []
        if n_labels[i] == 0:
            found.append("no labels")
        elif n_labels[i] < _FEW_LABELS:
            found.append("few labels")
        if n_labels[i] and agreement[i] < 0:
            found.append("worse than chance")
        if i in twins:
            found.append(f"same labels as {shown(labels.annotators[twins[i]])}")
        if found:
            flags[name] = tuple(found)
    return flags


def _copies(labels: CrowdLabels, n_labels: NDArray[np.int64]) -> dict[int, int]:
    """Annotators who gave exactly the same labels to the same examples as another one."""
    many = np.flatnonzero(n_labels >= _COPY_LABELS)
    keys: list[Array] = [n_labels]
    for n_examples in sorted({min(_FIRST_EXAMPLES, labels.n_examples), labels.n_examples}):
        keys += _keys(labels if n_examples == labels.n_examples else labels[:n_examples])
        found = np.column_stack(keys)[many]
        if len(np.unique(found, axis=0)) == len(many):  # most annotators differ in the first examples already
            return {}
        if labels.is_complete:  # all labelled the first examples, and are compared label by label below
            break
    seen: dict[tuple[float, ...], int] = {}
    twins: dict[int, int] = {}
    for i, key in zip(many.tolist(), found.tolist(), strict=True):
        other = seen.setdefault(tuple(key), i)
        if other != i and _same_labels(labels, i, other):
            twins[i], twins[other] = other, i
    return twins


def _keys(labels: CrowdLabels) -> list[Floats]:
    """Two numbers per annotator that are the same for the same labels: random sums, exact in any order of addition."""
    n_values = 1 if labels.classes is None else len(labels.classes)
    largest = max(2**52 // max(labels.n_examples * n_values, 1), 2)
    key = np.random.default_rng(0).integers(1, largest, labels.n_examples).astype(np.float64)
    at = key[labels.example_index]
    return [labels.sum_per_annotator(at * labels.values), labels.sum_per_annotator(at)]


def _same_labels(labels: CrowdLabels, i: int, j: int) -> bool:
    if labels.is_complete:
        matrix = labels.values.reshape(labels.shape)
        return np.array_equal(matrix[:, i], matrix[:, j])
    one, other = labels.annotator_index == i, labels.annotator_index == j
    example = labels.example_index
    return np.array_equal(example[one], example[other]) and np.array_equal(labels.values[one], labels.values[other])
