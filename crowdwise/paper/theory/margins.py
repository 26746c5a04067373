"""Features and labels -> expertise, labels and margins, as in the paper's appendix.

Around an example, the annotators' balls are opened from the smallest to the largest. A ball that crosses the boundary
may get the wrong label, one that does not cannot. So the first annotator who contradicts the estimated label
has a ball that reaches the boundary: its radius is an *upper* bound of the distance if radii and estimated labels are
right (the paper calls it a lower bound). The margin is estimated by the last ball before it, which is no bound: that
ball may cross the boundary as well and still hold a majority of the right class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crowdwise._arrays import Array, Floats
from crowdwise._checks import check_seed
from crowdwise.exceptions import LabelError
from crowdwise.labels._align import as_labels
from crowdwise.labels._frames import make_frame
from crowdwise.paper.theory.alignment import Kernel, alignment_expertise
from crowdwise.paper.theory.balls import Metric, ball_radii
from crowdwise.paper.theory.inputs import label_signs, read_crowd, weighted_majority


@dataclass(frozen=True, repr=False, eq=False)
class MarginEstimates:
    """What the appendix estimates: expertise and radius per annotator, label and margin per example.

    Parameters
    ----------
    examples : ndarray of shape (n_examples,)
        Identifiers of the examples.
    annotators : ndarray of shape (n_annotators,)
        Names of the annotators.
    classes : ndarray of shape (n_classes,)
        The classes.
    expertise : ndarray of shape (n_annotators,)
        In [0, 1], by alignment with the features; NaN for annotators without labels.
    radii : ndarray of shape (n_annotators,)
        Of the annotators' balls; NaN for annotators without labels.
    signs : ndarray of shape (n_examples,)
        The estimated label: -1 (first class), +1 (second class), or 0 for a tie and where all expertise is 0.
    margins : ndarray of shape (n_examples,)
        At least 0, in the units of distance between examples.

    Examples
    --------
    >>> from crowdwise.paper.theory import estimate_margins
    >>> estimate_margins([[-2.0], [-1.0], [1.0], [2.0]], [[0, 0, 1], [0, 0, 0], [1, 1, 0], [1, 1, 1]])
    MarginEstimates: 4 examples, 3 annotators
    """

    examples: Array
    annotators: Array
    classes: Array
    expertise: Floats
    radii: Floats
    signs: Floats
    margins: Floats

    @property
    def label(self) -> Array:
        """The estimated class per example; None where there is none."""
        label = self.classes[(self.signs > 0).astype(np.intp)].astype(object)
        label[self.signs == 0] = None
        return np.asarray(label)

    def __repr__(self) -> str:
        return f"MarginEstimates: {len(self.examples):,} examples, {len(self.annotators):,} annotators"

    def to_frame(self) -> Any:
        """A data frame with the columns "example", "label" and "margin".

        Returns
        -------
        frame : pandas.DataFrame, or polars.DataFrame where pandas is not installed
        """
        return make_frame({"example": self.examples, "label": self.label, "margin": self.margins})


def estimate_labels(
    X: Any, labels: Any, *, kernel: Kernel = "linear", random_state: int | np.random.Generator | None = None
) -> tuple[Floats, Floats]:
    """The first step of the appendix: expertise by alignment, and the label that most expertise is behind.

    Parameters
    ----------
    X : array-like of shape (n_examples, n_features)
        Features.
    labels : CrowdLabels or array-like of shape (n_examples, n_annotators)
        Labels of two classes.
    kernel : "linear" or callable, default="linear"
        As for `alignment_expertise`.
    random_state : int, Generator or None, default=None
        Seed of the examples that a callable kernel is approximated from when there are many.

    Returns
    -------
    expertise : ndarray of shape (n_annotators,)
        In [0, 1]; 1 for all if the labels of no one line up with the features; NaN for annotators without labels.
    signs : ndarray of shape (n_examples,)
        -1 (first class), +1 (second class), or 0 for a tie and where all expertise is 0.

    Examples
    --------
    >>> from crowdwise.paper.theory import estimate_labels
    >>> estimate_labels([[-2.0], [-1.0], [1.0], [2.0]], [[0, 1], [0, 0], [1, 1], [1, 0]])[1].tolist()
    [-1.0, -1.0, 1.0, 1.0]
    """
    X, crowd = read_crowd(X, labels)
    expertise = alignment_expertise(X, crowd, kernel, random_state=random_state)
    if not np.nansum(expertise) > 0:  # no one lines up with the features: trust all alike
        expertise = np.where(np.isnan(expertise), np.nan, 1.0)
    return expertise, weighted_majority(label_signs(crowd), expertise)


def nested_ball_margins(labels: Any, radii: ArrayLike, expertise: ArrayLike | None = None) -> Floats:
    """The largest ball around each example before the first that contradicts the estimated label.

    An estimate that grows with the distance from the boundary, and no bound of it.

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
    >>> from crowdwise.paper.theory import nested_ball_margins
    >>> labels = [[1, 1, 1], [1, 1, -1], [1, -1, 1], [-1, 1, 1]]
    >>> nested_ball_margins(labels, radii=[0.1, 0.5, 2.0]).tolist()
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
    >>> from crowdwise.paper.theory import margin_upper_bounds
    >>> margin_upper_bounds([[1, 1, 1], [1, 1, -1], [1, -1, 1]], radii=[0.1, 0.5, 2.0]).tolist()
    [inf, 2.0, 0.5]
    """
    return _nested(labels, radii, expertise)[1]


def estimate_margins(
    X: Any,
    labels: Any,
    *,
    kernel: Kernel = "linear",
    metric: Metric = "euclidean",
    random_state: int | np.random.Generator | None = None,
) -> MarginEstimates:
    """Labels and margins from features and labels alone: expertise by alignment, then radii, then nested balls.

    Parameters
    ----------
    X : array-like of shape (n_examples, n_features)
        Features.
    labels : CrowdLabels or array-like of shape (n_examples, n_annotators)
        Labels of two classes.
    kernel : "linear" or callable, default="linear"
        The similarity of examples, as for `alignment_expertise`.
    metric : {"euclidean", "cityblock", "chebyshev"} or callable, default="euclidean"
        The distance of examples, as for `ball_radii`.
    random_state : int, Generator or None, default=None
        Seed of what is drawn when there are many examples: radii, and landmarks of a callable kernel.

    Returns
    -------
    estimates : MarginEstimates

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise.paper.theory import estimate_margins, simulate_ball_annotators
    >>> X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    >>> labels = simulate_ball_annotators(X, X[:, 0] > 0.3, radii=np.linspace(0, 1, 6))
    >>> found, near = estimate_margins(X, labels), np.abs(X[:, 0] - 0.3) < 0.2
    >>> bool(found.margins[near].mean() < found.margins[~near].mean())
    True
    """
    rng = check_seed(random_state)
    X, crowd = read_crowd(X, labels)
    expertise, signs = estimate_labels(X, crowd, kernel=kernel, random_state=rng)
    radii = ball_radii(X, crowd, expertise, metric=metric, random_state=rng)
    return MarginEstimates(
        examples=crowd.examples,
        annotators=crowd.annotators,
        classes=np.asarray(crowd.classes),
        expertise=expertise,
        radii=radii,
        signs=signs,
        margins=nested_ball_margins(crowd, radii, expertise),
    )


def _nested(labels: Any, radii: ArrayLike, expertise: ArrayLike | None) -> tuple[Floats, Floats]:
    """The last ball before a contradiction, and the contradicting one; label by label, nothing where there is none."""
    crowd = as_labels(labels)
    signs = label_signs(crowd)
    sizes = np.asarray(radii, dtype=np.float64)
    if sizes.shape != (crowd.n_annotators,) or (sizes < 0).any():
        raise LabelError(f"radii must be {crowd.n_annotators} numbers >= 0 or NaN, one per annotator; got {radii!r}.")
    estimated = weighted_majority(signs, expertise)
    example, ball = crowd.example_index, sizes[crowd.annotator_index]  # NaN compares as false below
    contradicts = (signs.data * estimated[example] < 0) & (ball >= 0)
    upper = np.full(len(crowd), np.inf)
    np.minimum.at(upper, example[contradicts], ball[contradicts])
    before = (ball < upper[example]) & (estimated[example] != 0)
    lower = np.zeros(len(crowd))
    np.maximum.at(lower, example[before], ball[before])
    return lower, upper
