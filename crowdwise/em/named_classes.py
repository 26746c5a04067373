"""Labels of declared classes -> the classes that somebody named: nothing can be learnt about the others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdwise.arrays import Floats
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import encode_declared
from crowdwise.weights.class_weights import check_class_weight


def named_classes(labels: CrowdLabels) -> NDArray[Any]:
    """The classes that have labels."""
    assert labels.classes is not None
    return labels.classes[labels.tally.any(axis=0)]


def labels_of_named(labels: CrowdLabels, named: NDArray[Any]) -> CrowdLabels:
    """The labels that are of these classes."""
    assert labels.classes is not None
    kept = encode_declared(labels.classes, named)[labels.values] >= 0
    indptr = np.concatenate([[0], np.cumsum(kept)])[labels.indptr]
    few = replace(labels, indptr=indptr, annotator_index=labels.annotator_index[kept], values=labels.values[kept])
    return few.with_classes(named)


def weights_of_named(class_weight: Any, labels: CrowdLabels, named: NDArray[Any]) -> Floats | str | None:
    """What `class_weight` says of these classes; it may name others that the labels declare."""
    assert labels.classes is not None
    checked = check_class_weight(class_weight, labels.classes)
    if checked is None or isinstance(checked, str):
        return checked
    return checked[encode_declared(named, labels.classes).astype(np.intp)]
