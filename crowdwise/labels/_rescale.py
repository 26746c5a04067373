"""The same labels on another scale: classes as numbers, numbers as classes, classes in an order."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from crowdwise.exceptions import LabelError
from crowdwise.labels._encode import as_ids, encode_declared, smallest_integer_type, tidy
from crowdwise.labels._label_arrays import LabelArrays
from crowdwise.labels.scale import is_known

Labels = TypeVar("Labels", bound=LabelArrays)
# Ratings of more different values are no classes.
_MOST_LEVELS = 100


def in_order(labels: Labels, levels: ArrayLike) -> Labels:
    """The same labels with their classes in another order; there may be some without labels."""
    wanted = tidy(as_ids(levels, "levels").tolist())
    assert labels.classes is not None
    lacking = encode_declared(labels.classes, wanted) < 0
    if lacking.any():
        raise LabelError(
            f"levels must name all classes in their order; {labels.classes[lacking].tolist()} are not among "
            f"{wanted.tolist()}."
        )
    return replace(labels._with_classes(wanted), declared_classes=True)


def as_classes(labels: Labels) -> Labels:
    """The same labels as classes: of numbers, the different ones."""
    if labels.classes is not None:
        return labels
    known = np.zeros(0) if labels.truth is None else labels.truth[is_known(labels.truth)]
    classes = np.unique(np.concatenate([labels.values, known]))
    if len(classes) > _MOST_LEVELS:
        raise LabelError(
            f"these ratings have {len(classes):,} different values, and labels that are classes have at most "
            f"{_MOST_LEVELS}: round the ratings first."
        )
    names = tidy(classes.tolist())
    truth = labels.truth
    if truth is not None:
        truth = np.where(is_known(truth), np.searchsorted(classes, truth), -1)
    values = np.searchsorted(classes, labels.values).astype(smallest_integer_type(len(classes)))
    return replace(labels, values=values, classes=names, truth=truth, declared_classes=False)


def as_numbers(labels: Labels) -> Labels:
    """The same labels as numbers: the classes, which must be numbers."""
    if labels.classes is None:
        return labels
    if labels.classes.dtype.kind not in "biuf":
        raise LabelError(
            f"the interval scale needs numbers, and the classes are {labels.classes[:8].tolist()}: use "
            'scale="ordinal" if they have an order, or make the labels numbers first.'
        )
    numbers = labels.classes.astype(np.float64)
    truth = None if labels.truth is None else np.append(numbers, np.nan)[labels.truth]
    return replace(labels, values=numbers[labels.values], classes=None, truth=truth, declared_classes=False)
