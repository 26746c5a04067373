"""Labels -> how far the annotators of each example differ, and a weight for every example."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit

from crowdwise._arrays import ratio
from crowdwise._checks import check_choice, check_number
from crowdwise.exceptions import LabelError
from crowdwise.labels._align import as_labels
from crowdwise.labels.crowd_labels import CrowdLabels

RelativeTo = Literal["observed", "possible"] | None

# Two different classes are this far apart: the squared difference of +1 and -1.
CLASS_DISTANCE = 4.0
# Squares of ratings that span less lose digits.
_TINY_SPAN = np.finfo(np.float64).tiny ** 0.25


def disagreement(
    labels: Any, *, relative_to: RelativeTo = "observed", sample_weight: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """How far the annotators of each example differ; zero means that they agree.

    The sum over pairs of annotators of the squared difference of their labels, where classes count as
    +1 and -1 (so each differing pair adds 4, for any number of classes). Scaled values are per pair of
    labels, so that examples with few and with many labels can be compared.

    Parameters
    ----------
    labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
        Classes or ratings.
    relative_to : {"observed", "possible"} or None, default="observed"
        None gives the sum itself. "observed" divides the mean over pairs by the largest one present,
        "possible" by the largest one that the number of labels of the example allows.
    sample_weight : ndarray of shape (n_examples,), default=None
        How often each example counts in the mean over all pairs; once by default.

    Returns
    -------
    disagreement : ndarray of shape (n_examples,)
        In [0, 1] if scaled. An example with fewer than two labels carries no information about disagreement: it
        gets the mean over all pairs of labels of the crowd (and zero if unscaled).

    Examples
    --------
    >>> from crowdwise import CrowdLabels
    >>> from crowdwise.crowd import disagreement
    >>> labels = CrowdLabels.from_matrix([[1, 1, 1, 1], [1, 1, 1, -1], [1, -1, 1, -1]])
    >>> disagreement(labels, relative_to=None).tolist()
    [0.0, 12.0, 16.0]
    >>> disagreement(labels).tolist()
    [0.0, 0.75, 1.0]
    """
    check_choice("relative_to", relative_to, ("observed", "possible", None))
    labels = as_labels(labels, scale=None)
    if relative_to is not None and labels.classes is None:
        labels = _with_visible_squares(labels)
    span = _span(labels) if labels.classes is None else 0.0
    n_classes = None if labels.classes is None else len(labels.classes)
    total, n_labels = pair_sums(labels), labels.labels_per_example
    moments = PairMoments.of(total, n_labels, sample_weight)
    return scaled_pair_sums(total, n_labels, relative_to, moments, n_classes=n_classes, span=span)


@dataclass(frozen=True)
class RatingMoments:
    """Number, mean, sum of squares around the mean, and range of ratings."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    low: float = np.inf
    high: float = -np.inf

    @classmethod
    def of(cls, ratings: NDArray[np.float64]) -> RatingMoments:
        if len(ratings) == 0:
            return cls()
        mean = float(ratings.mean())
        squares = float(((ratings - mean) ** 2).sum())
        return cls(len(ratings), mean, squares, float(ratings.min()), float(ratings.max()))

    def __add__(self, other: RatingMoments) -> RatingMoments:
        count = self.count + other.count
        if count == 0:
            return self
        step = other.mean - self.mean
        mean = self.mean + step * (other.count / count)
        squares = self.squares + other.squares + step**2 * (self.count * other.count / count)
        return RatingMoments(count, mean, squares, min(self.low, other.low), max(self.high, other.high))


@dataclass(frozen=True)
class PairMoments:
    """What disagreement is scaled by: found out about all examples, and added up over blocks of them."""

    total: float = 0.0  # the sum over all pairs of labels of all examples
    pairs: float = 0.0  # how many pairs there are
    largest: float = 0.0  # the largest mean over the pairs of an example
    fewest: int = 2**31  # the fewest labels of an example with a pair of them

    @classmethod
    def of(cls, total: NDArray[np.float64], n_labels: NDArray[Any], count: NDArray[Any] | None = None) -> PairMoments:
        """From the sums over pairs, and the numbers of labels, of examples or levels of them that count so often."""
        n = n_labels.astype(np.float64)
        pairs = n * (n - 1) / 2
        paired = pairs > 0
        if not paired.any():
            return cls()
        largest = float((total[paired] / pairs[paired]).max())
        all_sums, all_pairs = (total, pairs) if count is None else (count * total, count * pairs)
        return cls(float(all_sums.sum()), float(all_pairs.sum()), largest, int(n[paired].min()))

    def __add__(self, other: PairMoments) -> PairMoments:
        return PairMoments(
            self.total + other.total,
            self.pairs + other.pairs,
            max(self.largest, other.largest),
            min(self.fewest, other.fewest),
        )


def scaled_pair_sums(
    total: NDArray[np.float64],
    n_labels: NDArray[np.integer],
    relative_to: RelativeTo,
    moments: PairMoments,
    *,
    n_classes: int | None,
    span: float = 0.0,
) -> NDArray[np.float64]:
    """The disagreement of examples, or of levels of it that many examples have, from their sums over pairs.

    `moments` are those of all examples, `n_classes` is None for ratings, and `span` is how far these are apart.
    """
    if relative_to is None:
        return total
    n = n_labels.astype(np.float64)
    pairs = n * (n - 1) / 2
    paired = pairs > 0
    if moments.pairs == 0:
        return np.zeros(len(total))
    per_pair = ratio(total, pairs, moments.total / moments.pairs)
    if relative_to == "possible":  # the more labels, the less they can differ
        limit = _largest_possible(np.where(paired, n, moments.fewest), n_classes, span)
    else:
        limit = np.full(len(total), moments.largest)
    # Without any disagreement, or range of ratings, every example is equally easy.
    return np.minimum(ratio(per_pair, limit, 0.0), 1.0)  # sums of ratings are rounded


def _span(labels: CrowdLabels) -> float:
    """The range of ratings, infinite if it overflows: numbers of Python do so without a warning."""
    return float(labels.values.max()) - float(labels.values.min()) if labels.n_labels else 0.0


def _with_visible_squares(labels: CrowdLabels) -> CrowdLabels:
    """Ratings whose differences would vanish when they are squared, in a larger unit."""
    span = _span(labels)
    return replace(labels, values=labels.values / span) if 0 < span < _TINY_SPAN else labels


def pair_sums(labels: CrowdLabels) -> NDArray[np.float64]:
    """The sum over pairs of labels of their squared difference, for every example: disagreement that is not scaled."""
    if labels.classes is None:
        return _rating_pair_sums(labels)
    counts = labels._tally.astype(np.float64)
    if counts.shape[1] == 2:
        return CLASS_DISTANCE * (counts[:, 0] * counts[:, 1])
    n = labels.labels_per_example
    return CLASS_DISTANCE / 2 * (n**2 - (counts**2).sum(axis=1))


def _rating_pair_sums(labels: CrowdLabels) -> NDArray[np.float64]:
    """The sum over unordered pairs of (a - b)^2, which is n times the sum of squares around the mean."""
    n = labels.labels_per_example
    labelled = n > 0
    # Counted from the first rating of the example, equal ratings are exactly zero; their mean might be rounded.
    with np.errstate(over="ignore", invalid="ignore"):
        step = labels.values - np.repeat(labels.values[labels.indptr[:-1][labelled]], n[labelled])
        mean = labels._sum_per_example(step) / np.maximum(n, 1)
        total = n * labels._sum_per_example((step - np.repeat(mean, n)) ** 2)
    if not np.isfinite(total).all():
        raise LabelError("the ratings are too far apart for their differences to be squared: rescale them.")
    return np.asarray(total, dtype=np.float64)


def _largest_possible(n: NDArray[np.float64], n_classes: int | None, span: float) -> NDArray[np.float64]:
    """The largest mean over pairs of n labels: the classes as evenly used as they can be."""
    if n_classes is None:
        n_values, distance = 2, span**2  # half of the annotators at either end of the range
    else:
        n_values, distance = max(n_classes, 1), CLASS_DISTANCE
    per_class, extra = np.divmod(n, n_values)
    same = extra * (per_class + 1) ** 2 + (n_values - extra) * per_class**2
    return distance * np.divide(n**2 - same, n * (n - 1), out=np.zeros_like(n), where=n > 1)


def easiness(disagreement: ArrayLike, steepness: float) -> NDArray[np.float64]:
    """The weight of each example, 2 / (1 + exp(steepness * disagreement)).

    This is twice the paper's g, so that it is 1 for unanimous examples, and for all at steepness 0.

    Parameters
    ----------
    disagreement : array-like of shape (n_examples,)
        At least zero, and finite.
    steepness : float
        How fast easiness falls with disagreement (the paper's alpha); at least zero.

    Returns
    -------
    easiness : ndarray of shape (n_examples,)
        In (0, 1]; never zero, however steep.

    Examples
    --------
    >>> from crowdwise.crowd import easiness
    >>> easiness([0.0, 0.5, 1.0], steepness=2.0).round(3).tolist()
    [1.0, 0.538, 0.238]
    """
    differs = np.asarray(disagreement, dtype=np.float64)
    if differs.size and not differs.min() >= 0:
        raise ValueError(f"disagreement must be at least 0 and not NaN; got {differs.min()}.")
    if not np.isfinite(differs).all():
        raise ValueError("disagreement must be finite; got infinity.")
    factor = -check_number("steepness", steepness)
    with np.errstate(over="ignore"):  # infinite is what an overflow should be here: as hard as can be
        weight = np.asarray(2 * expit(factor * differs))
    # Below the smallest normal number a weight would vanish and take its example out of the data.
    return np.maximum(weight, np.finfo(np.float64).tiny)


def example_weights(differs: NDArray[np.float64], steepness: float) -> NDArray[np.float64]:
    """Easiness as models use it: relative to the easiest example if all of it would vanish."""
    weight = easiness(differs, steepness)
    if weight.size and weight.max() < np.finfo(np.float64).eps:
        with np.errstate(over="ignore"):
            logarithm = log_expit(-np.minimum(steepness * differs, np.finfo(np.float64).max))
        weight = np.maximum(np.exp(logarithm - logarithm.max()), np.finfo(np.float64).tiny)
    return weight
