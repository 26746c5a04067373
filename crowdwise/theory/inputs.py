"""What a caller gave as features and labels -> finite numbers and the labels of the same rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array

from crowdwise.arrays import Floats
from crowdwise.labels.align import align, as_labels
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.rows.features import check_finite


def read_features(X: Any) -> Floats:
    """Features as finite numbers."""
    rows = check_array(X, dtype=np.float64, ensure_all_finite=False)
    check_finite(rows)
    return np.asarray(rows)


def read_crowd(X: Any, labels: Any) -> tuple[Floats, CrowdLabels]:
    """Features as finite numbers, and the labels of the same rows."""
    X, crowd = align(X, as_labels(labels))
    return read_features(X), crowd
