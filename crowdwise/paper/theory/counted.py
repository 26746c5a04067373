"""Counted mistakes -> the bound for a perceptron that has run, and the steps of its proof as numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from crowdwise._arrays import Floats
from crowdwise._checks import check_number, check_whole
from crowdwise.exceptions import BoundError
from crowdwise.paper.theory.bounds import deviation, noisy_bound, regions


@dataclass(frozen=True)
class MistakeBound:
    """A bound on the mistakes of one perceptron, with the numbers that went in.

    Parameters
    ----------
    value : float
        Theorem 2 (theorem 3 if `deviation` is positive) at the counted spread.
    novikoff : float
        The bound that knows nothing of regions, with `near_deviation` in place of `deviation`.
    n_mistakes : int
        The mistakes counted.
    n_regions : int
        The paper's K.
    spread : float
        Standard deviation of the mistakes over the regions.
    margin : float
        The width of a region.
    radius : float
        The largest norm of an example.
    norm : float
        The norm of the vector that margins are measured along.
    deviation : float
        How far the mistaken examples fall short of the lower edge of their own regions, as a length.
    near_deviation : float
        How far they fall short of the edge of the first region.

    Examples
    --------
    >>> from crowdwise.paper.theory import mistake_bound
    >>> bound = mistake_bound([0.9, 0.6, 0.3], mistakes=[0], radius=1.0)
    >>> bound.n_mistakes <= bound.value
    True
    """

    value: float
    novikoff: float
    n_mistakes: int
    n_regions: int
    spread: float
    margin: float
    radius: float
    norm: float
    deviation: float
    near_deviation: float


def mistake_bound(
    signed_margins: ArrayLike,
    mistakes: ArrayLike,
    radius: float,
    *,
    estimates: ArrayLike | None = None,
    n_regions: int = 1000,
) -> MistakeBound:
    """The bound for a perceptron that has run: it is never below the number of its mistakes.

    Whatever the labels, estimates and order, the mistakes that fall short of their region are accounted for in
    the deviation. For separated examples without estimates there is none, and this is theorem 2.

    Parameters
    ----------
    signed_margins : array-like of shape (n_examples,)
        Label times score along a unit vector.
    mistakes : array-like of int
        Which examples were mistakes, repeated as often as they were.
    radius : float
        The largest norm of an example.
    estimates : array-like of shape (n_examples,), default=None
        Estimated margins that decide the regions, instead of `signed_margins`.
    n_regions : int, default=1000
        The most regions. A smallest margin that would make more of them is replaced by the width of this many.

    Returns
    -------
    bound : MistakeBound

    Examples
    --------
    >>> from crowdwise.paper.theory import mistake_bound
    >>> bound = mistake_bound([0.9, 0.6, 0.3], mistakes=[0, 2], radius=1.0)
    >>> bound.n_mistakes, bound.n_regions, round(bound.value, 2), round(bound.novikoff, 2)
    (2, 3, 6.12, 11.11)
    """
    check_whole("n_regions", n_regions)
    if not (np.isfinite(radius) and radius > 0):
        raise BoundError(f"radius must be a finite number > 0; got {radius!r}.")
    signed = np.asarray(signed_margins, dtype=np.float64)
    believed = signed if estimates is None else np.asarray(estimates, dtype=np.float64)
    width = region_width(believed, radius, n_regions)
    split = regions(believed, radius, margin=width)
    made = np.asarray(mistakes, dtype=np.intp)
    counts = np.bincount(split.region[made] - 1, minlength=split.n_regions)
    spread = float(counts.std())
    by_region = deviation(signed[made], split.region[made] * width)
    by_first_region = deviation(signed[made], width)
    return MistakeBound(
        value=noisy_bound(width, by_region, spread=spread, radius=radius, n_regions=split.n_regions),
        novikoff=((radius + by_first_region) / width) ** 2,
        n_mistakes=len(made),
        n_regions=split.n_regions,
        spread=spread,
        margin=width,
        radius=radius,
        norm=1.0,
        deviation=by_region,
        near_deviation=by_first_region,
    )


def region_width(margins: Floats, radius: float, n_regions: int) -> float:
    """The smallest positive margin, if it makes at most `n_regions` regions; else the width of so many."""
    least = radius / (n_regions + 1)
    positive = margins[margins > 0]
    return max(float(positive.min()), least) if len(positive) else least


def laguerre_samuelson(values: ArrayLike) -> tuple[float, float]:
    """The lemma of theorem 2: what n numbers lie between, from their mean and standard deviation alone.

    Parameters
    ----------
    values : array-like of shape (n,)
        Finite numbers.

    Returns
    -------
    low, high : float
        The mean less and plus ``sqrt(n - 1)`` standard deviations.

    Examples
    --------
    >>> from crowdwise.paper.theory import laguerre_samuelson
    >>> [round(end, 9) for end in laguerre_samuelson([0, 0, 0, 4])]
    [-2.0, 4.0]
    """
    numbers = _finite("values", values)
    reach = float(numbers.std()) * math.sqrt(len(numbers) - 1)
    return float(numbers.mean()) - reach, float(numbers.mean()) + reach


def progress(mistakes_per_region: ArrayLike, margin: float) -> tuple[float, float]:
    """How far mistakes have moved the weights along u, and what the lemma leaves of it.

    A mistake in region k moves them by at least k margins. Theorem 2 replaces the mistakes of every region by the low
    end that `laguerre_samuelson` gives, which can be below zero.

    Parameters
    ----------
    mistakes_per_region : array-like of shape (n_regions,)
        Mistakes in every region, the nearest to the boundary first.
    margin : float
        The width of a region.

    Returns
    -------
    counted, bounded : float
        The sum over regions of k times mistakes times margin, and the smaller number that the proof goes on with.

    Examples
    --------
    >>> from crowdwise.paper.theory import progress
    >>> [round(end, 4) for end in progress([3, 1, 2], margin=0.5)]
    [5.5, 2.5359]
    """
    check_number("margin", margin, above=True)
    mistakes = _finite("mistakes_per_region", mistakes_per_region)
    K = len(mistakes)
    counted = float(mistakes @ np.arange(1, K + 1)) * margin
    return counted, laguerre_samuelson(mistakes)[0] * K * (K + 1) / 2 * margin


def noise_factors(margins: ArrayLike, estimates: ArrayLike) -> tuple[float, float]:
    """The largest noise factors of theorem 3, epsilon_u and epsilon_l, that true and estimated margins allow.

    They are the largest numbers of at most 1 with ``estimate / epsilon_l >= margin >= epsilon_u * estimate`` for all
    examples.

    Parameters
    ----------
    margins, estimates : array-like of shape (n_examples,)
        True and estimated margins, all positive.

    Returns
    -------
    overestimation, underestimation : float
        epsilon_u, which `noisy_bound` takes, and epsilon_l, which divides the paper's target of `deviation`.

    Examples
    --------
    >>> from crowdwise.paper.theory import noise_factors
    >>> noise_factors([0.5, 0.2, 0.4], estimates=[0.4, 0.4, 0.4])
    (0.5, 0.8)
    """
    true, estimated = _finite("margins", margins), _finite("estimates", estimates)
    if true.shape != estimated.shape or min(true.min(), estimated.min()) <= 0:
        raise BoundError(
            f"margins and estimates must be as many positive numbers each; got {len(true)} of at least {true.min()} "
            f"and {len(estimated)} of at least {estimated.min()}."
        )
    return min(1.0, float((true / estimated).min())), min(1.0, float((estimated / true).min()))


def _finite(name: str, values: ArrayLike) -> Floats:
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.ndim != 1 or not len(numbers) or not np.isfinite(numbers).all():
        raise BoundError(f"{name} must be finite numbers in one dimension; got shape {numbers.shape}.")
    return numbers
