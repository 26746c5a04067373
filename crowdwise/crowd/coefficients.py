"""Labels per example -> coefficients of agreement, for the examples as they are and for resamples of them.

Every coefficient is a function of sums over examples. A resample is a vector that states how often each example counts,
so one product of matrices gives the sums of many resamples. Examples with the same labels, given by anyone, are one
pattern that counts as often as there are such examples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crowdwise._arrays import ROUNDING, Array, Bools, Floats, FrozenArrays, ratio
from crowdwise.crowd._disagreement import disagreement
from crowdwise.exceptions import LabelError
from crowdwise.labels._align import as_labels
from crowdwise.labels.crowd_labels import CrowdLabels

# Counts of resamples that are held at a time.
_BLOCK = 2**22
# Drawing how often a pattern occurs costs as much as drawing this many examples.
_DRAWS_PER_PATTERN = 10


def krippendorff_alpha(labels: Any) -> float:
    """Krippendorff's alpha: agreement corrected for chance, whatever labels are missing.

    One minus the disagreement within examples over the disagreement between any two labels of the crowd. Classes differ
    or do not (nominal); ratings differ by the square of their difference (interval).

    Parameters
    ----------
    labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
        Classes or ratings. Examples with fewer than two labels carry no information and are left out.

    Returns
    -------
    alpha : float
        1 for perfect agreement, around 0 for chance, below 0 for less than that. NaN if all labels are the same: no one
        can show then whether annotators agree or know one answer only.

    Examples
    --------
    >>> from crowdwise import CrowdLabels
    >>> from crowdwise.crowd import krippendorff_alpha
    >>> labels = CrowdLabels.from_matrix([["a", "a", None], ["b", "b", "b"], ["a", "b", "a"], ["b", None, "b"]])
    >>> round(krippendorff_alpha(labels), 3)
    0.625
    """
    labels = as_labels(labels, scale=None)
    n = labels.labels_per_example
    paired = n > 1
    if not paired.any():
        raise LabelError("no example has two labels: there is nothing to compare.")
    compared = labels[paired]
    within = float((disagreement(compared, relative_to=None) / (n[paired] - 1)).sum()) / compared.n_labels
    at_random = _pair_sum_of_all(compared) / (compared.n_labels * (compared.n_labels - 1))
    return float(1 - within / at_random) if at_random > 0 else float("nan")


def _pair_sum_of_all(labels: CrowdLabels) -> float:
    """What `disagreement` would be if all labels were of one example: the sum over unordered pairs."""
    if labels.classes is None:
        return float(labels.n_labels * ((labels.values - labels.values.mean()) ** 2).sum())
    counts = labels._tally.sum(axis=0, dtype=np.float64)
    return 2.0 * (counts.sum() ** 2 - (counts**2).sum())  # four for a pair that differs


@dataclass(frozen=True)
class Estimate:
    """A number with the ends of its interval; NaN if it is undefined."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        if np.isnan(self.value):
            return "undefined"
        return f"{self.value:.3f}  ({self.low:.3f} to {self.high:.3f})"

    def of_mean(self, k: float) -> Estimate:
        """Spearman and Brown: the correlation of a mean of `k` ratings, if this is that of one."""
        return Estimate(*(_of_mean(x, k) for x in (self.value, self.low, self.high)))


def _of_mean(single: float, k: float) -> float:
    below = 1 + (k - 1) * single
    return k * single / below if below > 0 else -np.inf


@dataclass(frozen=True, eq=False)
class Patterns(FrozenArrays):
    """Patterns of labels that examples have, without who gave them."""

    times: Floats  # (n_patterns,): how many examples have the pattern
    n_labels: Floats  # (n_patterns,): how many labels such an example has; at least one
    same: Floats  # (n_patterns,): how many ordered pairs of these are the same
    total: Floats  # (n_patterns,): sums of the labels' places on the scale
    squares: Floats  # (n_patterns,): sums of the squares of these
    counts: Floats | None  # (n_patterns, n_levels): how many labels of each level; None where there are too many levels

    @property
    def paired(self) -> Bools:
        """Whether there are two labels to compare."""
        return self.n_labels > 1

    def only_paired(self) -> Patterns:
        """The patterns with two labels or more."""
        keep = self.paired
        counts = None if self.counts is None else self.counts[keep]
        parts = {name: getattr(self, name)[keep] for name in ("times", "n_labels", "same", "total", "squares")}
        return replace(self, counts=counts, **parts)


Coefficient = Callable[[Floats, Patterns], Floats]


def patterns_of_levels(labels: CrowdLabels, places: Floats) -> Patterns:
    """Patterns of labels that are of a few levels; `places` is where the levels are on the scale."""
    tally, times = np.unique(labels._tally[labels.labels_per_example > 0], axis=0, return_counts=True)
    counts = tally.astype(np.float64)
    return Patterns(
        times=times.astype(np.float64),
        n_labels=counts.sum(axis=1),
        same=(counts * (counts - 1)).sum(axis=1),
        total=counts @ places,
        squares=counts @ places**2,
        counts=counts,
    )


def patterns_of_numbers(labels: CrowdLabels, codes: Array, places: Floats) -> Patterns:
    """Patterns of ratings of many values, an example each; codes are the same where ratings are."""
    filled = labels.labels_per_example > 0
    key = labels.example_index.astype(np.int64) * (int(codes.max()) + 1) + codes
    _, first, times = np.unique(key, return_index=True, return_counts=True)
    same = np.bincount(labels.example_index[first], times * (times - 1), minlength=len(labels))
    return Patterns(
        times=np.ones(int(filled.sum())),
        n_labels=labels.labels_per_example[filled].astype(np.float64),
        same=same[filled].astype(np.float64),
        total=labels._sum_per_example(places)[filled],
        squares=labels._sum_per_example(places**2)[filled],
        counts=None,
    )


def percent_agreement(times: Floats, patterns: Patterns) -> Floats:
    """Share of the pairs of labels of an example that are the same, averaged over examples with two labels or more."""
    n = patterns.n_labels
    return _pair_mean(times, patterns, patterns.same / np.maximum(n * (n - 1), 1))


def _pair_mean(times: Floats, patterns: Patterns, values: Floats) -> Floats:
    return ratio(times @ np.where(patterns.paired, values, 0.0), times @ patterns.paired.astype(np.float64))


def alpha_nominal(times: Floats, patterns: Patterns) -> Floats:
    """Krippendorff's alpha where classes differ or do not."""
    part, weight = patterns.only_paired(), times[:, patterns.paired]
    assert part.counts is not None
    within = weight @ (part.n_labels - part.same / (part.n_labels - 1))
    use = weight @ part.counts
    n = use.sum(axis=1)
    return 1 - ratio(within * (n - 1), n**2 - (use**2).sum(axis=1))


def alpha_interval(times: Floats, patterns: Patterns) -> Floats:
    """Krippendorff's alpha where labels differ by the square of the difference of their places."""
    part, weight = patterns.only_paired(), times[:, patterns.paired]
    within = weight @ ((part.n_labels * part.squares - part.total**2) / (part.n_labels - 1))
    n, squares = weight @ part.n_labels, weight @ part.squares
    between = n * squares - (weight @ part.total) ** 2
    return 1 - ratio(within * (n - 1), np.where(between > ROUNDING * n * squares, between, 0.0))


def alpha_ordinal(times: Floats, patterns: Patterns) -> Floats:
    """Krippendorff's alpha where labels differ by the square of the number of labels between them.

    That is the difference of mean ranks, so every resample has its own places.
    """
    part, weight = patterns.only_paired(), times[:, patterns.paired]
    assert part.counts is not None
    use = weight @ part.counts
    place = 2 * np.cumsum(use, axis=1) - use  # twice the mean rank: a whole number
    total, squares = place @ part.counts.T, place**2 @ part.counts.T
    within = (weight * (part.n_labels * squares - total**2) / (part.n_labels - 1)).sum(axis=1)
    n = use.sum(axis=1)
    return 1 - ratio(within * (n - 1), n * (use * place**2).sum(axis=1) - (use * place).sum(axis=1) ** 2)


# From the shares of levels, a row per resample, and the weight of each two levels: how far two labels agree by chance.
Chance = Callable[[Floats, Floats], Floats]


def chance_corrected(distance: Floats, chance: Chance) -> Coefficient:
    """Agreement less what chance would give, over what it leaves; `distance` is that of any two levels."""
    n_levels = len(distance)
    weight = 1 - distance / distance.max() if n_levels > 1 else np.ones((n_levels, n_levels))

    def coefficient(times: Floats, patterns: Patterns) -> Floats:
        assert patterns.counts is not None
        counts, n = patterns.counts, patterns.n_labels
        alike = (counts * (counts @ weight)).sum(axis=1) - n
        observed = _pair_mean(times, patterns, alike / np.maximum(n * (n - 1), 1))
        share = times @ (counts / n[:, np.newaxis]) / times.sum(axis=1, keepdims=True)
        by_chance = chance(share, weight) if n_levels > 1 else np.ones(len(times))
        return 1 - ratio(1 - observed, 1 - by_chance)

    return coefficient


def gwet_chance(share: Floats, weight: Floats) -> Floats:
    """Of Gwet's AC1 (all different levels are as far apart) and AC2: two labels, one of which is a guess."""
    n_levels = len(weight)
    return np.asarray(weight.sum() * (share * (1 - share)).sum(axis=1) / (n_levels * (n_levels - 1)))


def fleiss_chance(share: Floats, weight: Floats) -> Floats:
    """Of Fleiss' kappa: two labels drawn from those of all."""
    return np.asarray(((share @ weight) * share).sum(axis=1))


def uniform_chance(share: Floats, weight: Floats) -> Floats:
    """Of Brennan and Prediger's kappa: two levels drawn evenly."""
    return np.full(len(share), weight.mean())


def resamples(times: Floats, n_resamples: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Blocks of resamples: how often each pattern occurs among as many examples, drawn with replacement.

    Each block has some of the resamples as rows, and the patterns as columns.
    """
    n, n_patterns = int(times.sum()), len(times)
    pattern_of = np.repeat(np.arange(n_patterns), times.astype(np.intp))
    step = max(_BLOCK // n_patterns, 1)
    for start in range(0, n_resamples, step):
        size = min(step, n_resamples - start)
        if n_patterns * _DRAWS_PER_PATTERN < n:
            block = rng.multinomial(n, times / n, size=size)
        else:
            draws = (pattern_of[rng.integers(0, n, n)] for _ in range(size))
            block = np.stack([np.bincount(drawn, minlength=n_patterns) for drawn in draws])
        yield block.astype(np.float64)
