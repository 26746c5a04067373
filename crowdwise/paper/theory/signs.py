"""Labels of two classes -> -1 and +1 in a sparse matrix, and the label that most expertise is behind."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crowdwise._arrays import Floats
from crowdwise.exceptions import LabelError
from crowdwise.labels._align import as_labels

# Expertise by least squares is exact to about 1e-7: sums that should cancel leave as much, and its sign means nothing.
_ROUNDING = 1e-6


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
