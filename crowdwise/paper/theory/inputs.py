"""What a caller gave -> finite features, labels as -1 and +1, and the label that most expertise is behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array

from crowdwise._arrays import Floats
from crowdwise.exceptions import DataError, LabelError
from crowdwise.labels._align import align, as_labels
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.rows.features import check_finite, check_squares
from crowdwise.training_set import refuse_texts_and_times

# Expertise by least squares is exact to about 1e-7: sums that should cancel leave as much, and its sign means nothing.
_ROUNDING = 1e-6
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


def label_signs(labels: Any) -> Any:
    """The labels as a sparse matrix of -1 (first class) and +1 (second class); nothing is stored where there is none.

    Parameters
    ----------
    labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
        Of at most two classes.

    Returns
    -------
    signs : csr_array of shape (n_examples, n_annotators)

    Examples
    --------
    >>> from crowdwise import CrowdLabels
    >>> from crowdwise.paper.theory import label_signs
    >>> label_signs(CrowdLabels.from_matrix([["cat", "dog"], [None, "dog"]])).toarray().tolist()
    [[-1.0, 1.0], [0.0, 1.0]]
    """
    labels = as_labels(labels, scale=None)
    if labels.classes is None or len(labels.classes) > 2:
        found = "real-valued labels" if labels.classes is None else f"{len(labels.classes)} classes"
        raise LabelError(f"the theory is about two classes, -1 and +1; got {found}.")
    return labels._as_sparse(2.0 * labels.values - 1.0)


def weighted_majority(signs: Any, expertise: ArrayLike | None = None) -> Floats:
    """The sign of the sum of labels, each times the expertise of who gave it; 0 for a tie or no label.

    Parameters
    ----------
    signs : csr_array or ndarray of shape (n_examples, n_annotators)
        What `label_signs` gives.
    expertise : array-like of shape (n_annotators,), default=None
        At least 0; NaN counts as 0. By default all alike, which gives the plain majority.

    Returns
    -------
    majority : ndarray of shape (n_examples,)
        -1, 0 or +1.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise.paper.theory import weighted_majority
    >>> weighted_majority(np.array([[1.0, -1.0, -1.0], [1.0, -1.0, 0.0]]), [1.0, 0.2, 0.2]).tolist()
    [1.0, 1.0]
    """
    weights = np.ones(signs.shape[1]) if expertise is None else np.asarray(expertise, dtype=np.float64)
    weights = np.where(np.isnan(weights), 0.0, weights)
    if weights.shape != signs.shape[1:]:
        raise LabelError(f"expertise must be one number per annotator, {signs.shape[1]}; got shape {weights.shape}.")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise LabelError("expertise must be finite and at least 0 for every annotator.")
    total = np.asarray(signs @ weights)
    total[np.abs(total) <= _ROUNDING * (abs(signs) @ weights)] = 0.0
    return np.sign(total)
