"""Labels and ball radii -> how far every example is from the boundary, by nested balls.

Around an example, the annotators' balls are opened from the smallest to the largest. A ball that crosses the boundary
may get the wrong label, one that does not cannot. So the first annotator who contradicts the estimated label
has a ball that reaches the boundary: its radius is an *upper* bound of the distance if radii and estimated labels are
right (the paper calls it a lower bound). What we estimate the margin by from below is the last ball before it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crowdwise.arrays import Floats
from crowdwise.exceptions import LabelError
from crowdwise.labels.align import align, as_labels
from crowdwise.theory.alignment import alignment_expertise
from crowdwise.theory.balls import ball_radii
from crowdwise.theory.signs import label_signs, weighted_majority


def margin_lower_bounds(labels: Any, radii: ArrayLike, expertise: ArrayLike | None = None) -> Floats:
    """The largest ball around each example before the first that contradicts the estimated label.

    Parameters
    ----------
    labels : CrowdLabels or array-like of shape (n_examples, n_annotators)
        Labels of two classes. Annotators who did not label an example have no ball there.
    radii : array-like of shape (n_annotators,)
        What `ball_radii` gives; annotators with NaN have no ball.
    expertise : array-like of shape (n_annotators,), default=None
        Weights of the annotators in the estimated labels. By default all alike.

    Returns
    -------
    margins : ndarray of shape (n_examples,)
        Zero if the smallest ball already contradicts, or if there is no estimated label; the largest radius
        of those who labelled the example if none contradicts. Of two equal balls, one that contradicts counts.

    Examples
    --------
    >>> from crowdwise.theory import margin_lower_bounds
    >>> labels = [[1, 1, 1], [1, 1, -1], [1, -1, 1], [-1, 1, 1]]
    >>> margin_lower_bounds(labels, radii=[0.1, 0.5, 2.0]).tolist()
    [2.0, 0.5, 0.1, 0.0]
    """
    return _nested(labels, radii, expertise)[0]


def margin_upper_bounds(labels: Any, radii: ArrayLike, expertise: ArrayLike | None = None) -> Floats:
    """The smallest ball around each example that contradicts the estimated label; infinite if none does.

    Parameters
    ----------
    labels : CrowdLabels or array-like of shape (n_examples, n_annotators)
        Labels of two classes.
    radii : array-like of shape (n_annotators,)
        What `ball_radii` gives; annotators with NaN have no ball.
    expertise : array-like of shape (n_annotators,), default=None
        Weights of the annotators in the estimated labels. By default all alike.

    Returns
    -------
    margins : ndarray of shape (n_examples,)
        With true radii and labels, an example of the other class is at most this far away.

    Examples
    --------
    >>> from crowdwise.theory import margin_upper_bounds
    >>> margin_upper_bounds([[1, 1, 1], [1, 1, -1], [1, -1, 1]], radii=[0.1, 0.5, 2.0]).tolist()
    [inf, 2.0, 0.5]
    """
    return _nested(labels, radii, expertise)[1]


def estimate_margins(X: Any, labels: Any, *, random_state: int | np.random.Generator | None = None) -> Floats:
    """Margins from features and labels alone: expertise by alignment, then radii, then nested balls.

    Parameters
    ----------
    X : array-like of shape (n_examples, n_features)
        Features.
    labels : CrowdLabels or array-like of shape (n_examples, n_annotators)
        Labels of two classes.
    random_state : int, Generator or None, default=None
        Seed of the radii tried when there are many examples.

    Returns
    -------
    margins : ndarray of shape (n_examples,)
        At least 0, in the units of distance between examples.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise.theory import estimate_margins, simulate_ball_annotators
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    >>> labels = simulate_ball_annotators(X, X[:, 0] > 0.3, radii=np.linspace(0, 1, 6))
    >>> margins, near = estimate_margins(X, labels), np.abs(X[:, 0] - 0.3) < 0.2
    >>> bool(margins[near].mean() < margins[~near].mean())
    True
    """
    X, crowd = align(X, as_labels(labels))
    expertise = alignment_expertise(X, crowd)
    if not np.nansum(expertise) > 0:  # nobody lines up with the features: trust all alike
        expertise = np.ones(crowd.n_annotators)
    radii = ball_radii(X, crowd, expertise, random_state=random_state)
    return margin_lower_bounds(crowd, radii, expertise)


def _nested(labels: Any, radii: ArrayLike, expertise: ArrayLike | None) -> tuple[Floats, Floats]:
    crowd = as_labels(labels)
    signs = label_signs(crowd)
    sizes = np.asarray(radii, dtype=np.float64)
    if sizes.shape != (crowd.n_annotators,) or (sizes < 0).any():
        raise LabelError(f"radii must be {crowd.n_annotators} numbers >= 0 or NaN, one per annotator; got {radii!r}.")
    estimated = weighted_majority(signs, expertise)[:, np.newaxis]
    balls = np.where(np.isnan(sizes) | (signs == 0), np.nan, sizes)
    upper = np.where(signs * estimated < 0, balls, np.inf)
    upper = np.where(np.isnan(upper), np.inf, upper).min(axis=1, initial=np.inf)
    within = np.where(balls < upper[:, np.newaxis], balls, 0.0)  # NaN compares as false
    lower = within.max(axis=1, initial=0.0)
    lower[estimated[:, 0] == 0] = 0.0
    return lower, upper
