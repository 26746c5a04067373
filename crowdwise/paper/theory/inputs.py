"""What a caller gave as features and labels -> finite numbers and the labels of the same rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import check_array

from crowdwise._arrays import Floats
from crowdwise.exceptions import DataError
from crowdwise.labels._align import align, as_labels
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.rows.features import check_finite, check_squares
from crowdwise.training_set import refuse_texts_and_times

OfPairs = Callable[[Floats, Floats], Floats]  # a number for every pair of a row of one array and a row of the other


def of_pairs(function: OfPairs, left: Floats, right: Floats, name: str, values: str) -> Floats:
    """What a user's kernel or metric gives for all pairs of rows, if it is finite and has their shape."""
    block = np.asarray(function(left, right), dtype=np.float64)
    if block.shape != (len(left), len(right)) or not np.isfinite(block).all():
        raise DataError(
            f"{name} must give finite {values} of shape {(len(left), len(right))}; got shape {block.shape}."
        )
    return block


def read_features(X: Any) -> Floats:
    """Features as finite numbers."""
    refuse_texts_and_times(X)
    return checked_features(check_array(X, dtype=np.float64, ensure_all_finite=False))


def checked_features(X: Any) -> Floats:
    """Features that are finite and have finite norms."""
    check_finite(X)
    rows = np.asarray(X, dtype=np.float64)
    with np.errstate(over="ignore"):
        check_squares(np.einsum("ij,ij->", rows, rows))
    return rows


def read_crowd(X: Any, labels: Any) -> tuple[Floats, CrowdLabels]:
    """Features as finite numbers, and the labels of the same rows."""
    X, crowd = align(X, as_labels(labels))
    return read_features(X), crowd
