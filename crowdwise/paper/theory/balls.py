"""Balls around examples: annotators who answer with the majority inside theirs, and how large these balls are.

The model of Urner et al. and the paper's appendix: an annotator looks at the true labels of all examples within
some radius. The estimated radius minimises, over the examples that the annotator labelled, the squared
difference between the label and the mean of the estimated labels inside the ball. Those means do not depend on
the annotator, so one sweep over radii serves all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.spatial.distance import cdist

from crowdwise._arrays import Floats, Positions
from crowdwise._checks import check_seed, check_whole
from crowdwise.exceptions import DataError, LabelError
from crowdwise.labels._encode import as_array, encode
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.paper.theory.inputs import OfPairs, label_signs, of_pairs, read_crowd, read_features, weighted_majority

Metric = Literal["euclidean", "cityblock", "chebyshev"] | OfPairs
# Up to this many examples every distance between two of them is tried as a radius.
_ALL_RADII = 1000
# Distances held at a time.
_BLOCK_DISTANCES = 2**21
# Differences of squared error below this (relative) are rounding: the smaller radius is taken.
_SAME = 1e-9


def ball_averages(X: Any, values: ArrayLike, radii: ArrayLike, *, metric: Metric = "euclidean") -> Floats:
    """Means of a value over all examples within each radius of each example, itself included.

    Parameters
    ----------
    X : array-like of shape (n_examples, n_features)
        Features.
    values : array-like of shape (n_examples,)
        What to average.
    radii : array-like of shape (n_radii,)
        At least 0, in any order.
    metric : {"euclidean", "cityblock", "chebyshev"} or callable, default="euclidean"
        A callable gets two arrays of examples and gives the matrix of their distances.

    Returns
    -------
    averages : ndarray of shape (n_examples, n_radii)

    Examples
    --------
    >>> from crowdwise.paper.theory import ball_averages
    >>> ball_averages([[0.0], [1.0], [3.0]], [1, 1, -1], radii=[0.0, 1.0, 2.0]).round(2).tolist()
    [[1.0, 1.0, 1.0], [1.0, 1.0, 0.33], [-1.0, -1.0, 0.0]]
    """
    X = read_features(X)
    targets, wanted = np.asarray(values, dtype=np.float64), _check_radii(radii)
    if targets.shape != (len(X),):
        raise DataError(f"values must be one per example, {len(X)}; got shape {targets.shape}.")
    order = np.argsort(wanted, kind="stable")
    averages = np.empty((len(X), len(wanted)))
    for rows, block in _sweep(X, targets, wanted[order], metric):
        averages[rows[:, np.newaxis], order] = block
    return averages


def ball_radii(
    X: Any,
    labels: Any,
    expertise: ArrayLike | None = None,
    *,
    metric: Metric = "euclidean",
    n_radii: int | None = None,
    random_state: int | np.random.Generator | None = None,
) -> Floats:
    """The radius of every annotator's ball.

    Parameters
    ----------
    X : array-like of shape (n_examples, n_features)
        Features.
    labels : CrowdLabels or array-like of shape (n_examples, n_annotators)
        Labels of two classes.
    expertise : array-like of shape (n_annotators,), default=None
        Weights of the annotators in the estimated labels, at least 0; NaN counts as 0. By default all alike.
    metric : {"euclidean", "cityblock", "chebyshev"} or callable, default="euclidean"
        A callable gets two arrays of examples and gives the matrix of their distances.
    n_radii : int, default=None
        Number of radii to try: 0 and quantiles of the distances, each enclosing a constant factor more examples than
        the one before. By default every distance there is up to 1,000 examples, and 100 radii beyond.
    random_state : int, Generator or None, default=None
        Seed of the examples that the quantiles are taken from.

    Returns
    -------
    radii : ndarray of shape (n_annotators,)
        The smallest of the best radii; NaN for annotators without labels.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise.paper.theory import ball_radii, simulate_ball_annotators
    >>> X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
    >>> labels = simulate_ball_annotators(X, X[:, 0] + X[:, 1] ** 2 > 0.3, radii=[0.0, 0.0, 0.0, 0.8])
    >>> radii = ball_radii(X, labels)
    >>> radii[:3].tolist(), bool(radii[3] > 0.2)
    ([0.0, 0.0, 0.0], True)
    """
    if n_radii is not None:
        check_whole("n_radii", n_radii, low=2)
    rng = check_seed(random_state)
    X, crowd = read_crowd(X, labels)
    signs = label_signs(crowd)
    estimated = weighted_majority(signs, expertise)
    if n_radii is None and len(X) <= _ALL_RADII:
        return _best_of_all_radii(X, estimated, signs, metric)
    radii = distance_quantiles(X, 100 if n_radii is None else n_radii, rng, metric)
    found = radii[_first_smallest(_costs(X, estimated, signs, radii, metric))]
    found[crowd.labels_per_annotator == 0] = np.nan
    return found


def simulate_ball_annotators(
    X: Any, truth: ArrayLike, radii: ArrayLike, *, metric: Metric = "euclidean"
) -> CrowdLabels:
    """Labels of annotators who answer with the majority of true labels within a ball around the example.

    Parameters
    ----------
    X : array-like of shape (n_examples, n_features)
        Features.
    truth : array-like of shape (n_examples,)
        The right classes, two of them.
    radii : array-like of shape (n_annotators,)
        The radius of each annotator's ball; an annotator with radius 0 is always right.
    metric : {"euclidean", "cityblock", "chebyshev"} or callable, default="euclidean"
        A callable gets two arrays of examples and gives the matrix of their distances.

    Returns
    -------
    labels : CrowdLabels
        A ball with as many examples of either class gets the example's own class.

    Examples
    --------
    >>> from crowdwise.paper.theory import simulate_ball_annotators
    >>> labels = simulate_ball_annotators([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 0], radii=[0.5, 1.0])
    >>> labels.to_matrix().tolist()
    [[0, 0], [1, 0], [0, 0], [0, 0]]
    """
    codes, classes = encode(as_array(truth))
    if len(classes) != 2:
        raise LabelError(f"truth must have two classes; found {classes.tolist()}.")
    right = 2.0 * codes - 1.0
    answers = np.sign(ball_averages(X, right, radii, metric=metric))
    answers = np.where(answers == 0, right[:, np.newaxis], answers)
    names = [f"annotator {i + 1}" for i in range(answers.shape[1])]
    return CrowdLabels.from_matrix(classes[(answers > 0).astype(np.intp)], annotators=names, classes=classes)


def distance_quantiles(
    X: Floats, n_radii: int, random_state: int | np.random.Generator | None = None, metric: Metric = "euclidean"
) -> Floats:
    """Radius 0, and radii whose balls hold ever more examples, each about a constant factor more.

    Ascending, up to the largest distance seen between 500 examples; equal ones are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise.paper.theory.balls import distance_quantiles
    >>> distance_quantiles(np.arange(5.0)[:, np.newaxis], 3).tolist()
    [0.0, 1.0, 4.0]
    """
    check_whole("n_radii", n_radii, low=2)  # radius 0 and another one
    if len(X) < 2:
        return np.zeros(1)
    centres = check_seed(random_state).permutation(len(X))[:500]
    distances = _distances(X, centres, metric)
    distances[np.arange(len(centres)), centres] = np.inf  # an example's distance to itself
    ascending = np.sort(distances, axis=None)[: len(centres) * (len(X) - 1)]
    shares = np.geomspace(1 / len(X), 1.0, n_radii - 1)
    at = np.clip(np.ceil(shares * len(ascending)).astype(np.intp) - 1, 0, len(ascending) - 1)
    return np.unique(np.concatenate([[0.0], ascending[at]]))


def _check_radii(radii: ArrayLike) -> Floats:
    wanted = np.asarray(radii, dtype=np.float64)
    if wanted.ndim != 1 or not (np.isfinite(wanted).all() and (wanted >= 0).all()):
        raise DataError(f"radii must be finite numbers >= 0, one per annotator; got {radii!r}.")
    return wanted


def _distances(X: Floats, rows: Positions, metric: Metric) -> Floats:
    """Distances of some examples to all; exactly 0 to itself, which a metric may miss by rounding."""
    if callable(metric):
        distances = np.maximum(of_pairs(metric, X[rows], X, "metric", "distances"), 0.0)
    elif metric in ("euclidean", "cityblock", "chebyshev"):
        distances = cdist(X[rows], X, metric)
    else:
        raise ValueError(
            'metric must be "euclidean", "cityblock", "chebyshev" or a function of two arrays of examples; '
            f"got {metric!r}."
        )
    distances[np.arange(len(rows)), rows] = 0.0
    return distances


def _sweep(X: Floats, values: Floats, radii: Floats, metric: Metric) -> Iterator[tuple[Positions, Floats]]:
    """Blocks of examples with the means of values in their balls, for ascending radii."""
    n_radii = len(radii)
    n_rows = max(1, _BLOCK_DISTANCES // len(X))
    for start in range(0, len(X), n_rows):
        rows = np.arange(start, min(start + n_rows, len(X)))
        ring = np.searchsorted(radii, _distances(X, rows, metric))  # the first radius that reaches an example
        ring += (n_radii + 1) * np.arange(len(rows))[:, np.newaxis]
        size = len(rows) * (n_radii + 1)
        count = np.bincount(ring.ravel(), minlength=size).reshape(len(rows), -1)
        total = np.bincount(ring.ravel(), np.tile(values, len(rows)), minlength=size).reshape(len(rows), -1)
        yield rows, (total.cumsum(axis=1) / count.cumsum(axis=1))[:, :n_radii]


def _costs(X: Floats, estimated: Floats, signs: Any, radii: Floats, metric: Metric) -> Floats:
    """Squared error of every radius (rows) for every annotator (columns)."""
    cost = np.zeros((signs.shape[1], len(radii)))
    for rows, averages in _sweep(X, estimated, radii, metric):
        given = signs[rows]
        cost += abs(given).T @ averages**2 - 2 * (given.T @ averages)
    return np.asarray(cost.T + abs(signs).sum(axis=0))


def _best_of_all_radii(X: Floats, estimated: Floats, signs: Any, metric: Metric) -> Floats:
    """The distance between two examples with the smallest squared error for each annotator; NaN without labels.

    Only the balls around the examples that an annotator labelled change the error, so that the work of an
    annotator is in proportion to their labels.
    """
    distance, ball, change, change_squared = _growing_balls(X, estimated, metric)
    columns = sparse.csc_array(signs)
    found = np.full(signs.shape[1], np.nan)
    for annotator in np.flatnonzero(np.diff(columns.indptr)).tolist():
        labels = slice(columns.indptr[annotator], columns.indptr[annotator + 1])
        given = np.zeros(len(X))
        given[columns.indices[labels]] = columns.data[labels]
        at = np.flatnonzero((given != 0)[ball])
        sign, reached = given[ball[at]], distance[at]
        cost = np.cumsum(change_squared[at] - 2 * sign * change[at])
        last = np.append(reached[1:] != reached[:-1], True)  # equal distances enter together
        best = _first_smallest(cost[last, np.newaxis] + (labels.stop - labels.start))
        found[annotator] = reached[last][best[0]]
    return found


def _growing_balls(X: Floats, estimated: Floats, metric: Metric) -> tuple[Floats, Positions, Floats, Floats]:
    """All pairs of examples by distance: the distance, whose ball grows, and how its mean and squared mean change."""
    distances = _distances(X, np.arange(len(X)), metric)
    nearest = np.argsort(distances, axis=1, kind="stable")
    averages = np.cumsum(estimated[nearest], axis=1) / np.arange(1, len(X) + 1)
    flat = np.take_along_axis(distances, nearest, axis=1).ravel()
    order = np.argsort(flat, kind="stable")
    change = np.diff(averages, axis=1, prepend=0.0).ravel()[order]
    change_squared = np.diff(averages**2, axis=1, prepend=0.0).ravel()[order]
    return flat[order], order // len(X), change, change_squared


def _first_smallest(cost: Floats) -> Positions:
    """The first row of each column that has its smallest value, up to rounding."""
    least = cost.min(axis=0)
    return np.asarray((cost <= least + _SAME * (1.0 + np.abs(least))).argmax(axis=0))
