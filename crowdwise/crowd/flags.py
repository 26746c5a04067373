"""Labels, agreement with a model -> what is remarkable about annotators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdwise.arrays import Floats
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import shown

# With fewer labels than this, an annotator is flagged: their expertise is mostly the crowd's.
_FEW_LABELS = 3
# Annotators with the same labels on at least this many examples are flagged as copies.
_COPY_LABELS = 10


def flag_annotators(
    labels: CrowdLabels, agreement: Floats, n_labels: NDArray[np.int64] | None = None
) -> dict[Any, tuple[str, ...]]:
    """What is remarkable about annotators; those of whom nothing is are left out.

    Parameters
    ----------
    labels : CrowdLabels
        All labels.
    agreement : ndarray of shape (n_annotators,)
        How far each annotator's labels go with the scores; below zero is worse than chance.
    n_labels : ndarray of shape (n_annotators,), default=None
        How many labels each annotator gave, if these are a sample of all.

    Returns
    -------
    flags : dict from annotator to tuple of str
    """
    twins = _copies(labels, labels.labels_per_annotator)
    n_labels = labels.labels_per_annotator if n_labels is None else n_labels
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
    seen: dict[tuple[float, float], int] = {}
    twins: dict[int, int] = {}
    sums, where = _keys(labels)
    for i in np.flatnonzero(n_labels >= _COPY_LABELS).tolist():
        other = seen.setdefault((float(sums[i]), float(where[i])), i)
        if other != i and _same_labels(labels, i, other):
            twins[i], twins[other] = other, i
    return twins


def _keys(labels: CrowdLabels) -> tuple[Floats, Floats]:
    """Two numbers per annotator that are the same for the same labels: random sums, exact in any order of addition."""
    n_values = 1 if labels.classes is None else len(labels.classes)
    largest = max(2**52 // max(labels.n_examples * n_values, 1), 2)
    n_keys = min(labels.n_examples, 1000) if labels.is_complete else labels.n_examples
    key = np.random.default_rng(0).integers(1, largest, n_keys).astype(np.float64)
    if labels.is_complete:  # all labelled the same examples: the first of them differ between most annotators
        first_labels = labels.values.reshape(labels.shape)[:n_keys]
        return key @ first_labels.astype(np.float64), np.zeros(labels.n_annotators)
    at = key[labels.example_index]
    return labels.sum_per_annotator(at * labels.values), labels.sum_per_annotator(at)


def _same_labels(labels: CrowdLabels, i: int, j: int) -> bool:
    if labels.is_complete:
        matrix = labels.values.reshape(labels.shape)
        return np.array_equal(matrix[:, i], matrix[:, j])
    one, other = labels.annotator_index == i, labels.annotator_index == j
    example = labels.example_index
    return np.array_equal(example[one], example[other]) and np.array_equal(labels.values[one], labels.values[other])
