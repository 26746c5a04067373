"""Numbers -> how many mistakes a perceptron can make: Novikoff's bound, the paper's theorems 2 and 3.

All of them bound the length of the weights from both sides. After n mistakes it is at most ``radius * sqrt(n)``,
and along a vector u the weights have moved by the sum of the margins of the mistakes. A *region* is how many times
the smallest margin fits into an example's own: a mistake in region k moves the weights by at least k margins.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdwise._arrays import Floats
from crowdwise._checks import check_number, check_whole
from crowdwise.exceptions import BoundError

# A quotient this close to a whole number (relative) is one: 0.3 / 0.1 is 3, not a little less.
_WHOLE = 1e-12


@dataclass(frozen=True)
class Regions:
    """The regions of a set of examples.

    Parameters
    ----------
    n_regions : int
        The paper's K, at least 1.
    margin : float
        The width of a region: the smallest margin, unless another was given.
    region : ndarray of shape (n_examples,)
        From 1 (nearest to the boundary) to `n_regions`.

    Examples
    --------
    >>> from crowdwise.paper.theory import regions
    >>> found = regions([0.3, 0.1], radius=0.4)
    >>> found.n_regions, found.region.tolist()
    (3, [3, 1])
    """

    n_regions: int
    margin: float
    region: NDArray[np.int64]


def count_regions(margin: float, radius: float = 1.0) -> int:
    """The number of regions K = ceil(radius / margin) - 1, but at least 1.

    The paper's formula gives 0 when the margin reaches the radius, and its theorem then divides by zero.
    One region, with which theorem 2 is Novikoff's bound, is what its proof supports there.

    Parameters
    ----------
    margin : float
        The smallest margin, positive.
    radius : float, default=1.0
        The largest norm of an example, positive.

    Returns
    -------
    n_regions : int

    Examples
    --------
    >>> from crowdwise.paper.theory import count_regions
    >>> [count_regions(margin) for margin in (0.1, 0.3, 0.5, 0.7, 1.0)]
    [9, 3, 1, 1, 1]
    """
    quotient = _positive(radius, "radius") / _positive(margin, "margin")
    if not math.isfinite(quotient):
        raise BoundError(
            f"margin {margin!r} is too small compared with radius {radius!r}: the number of regions overflows."
        )
    nearest = round(quotient)
    whole = nearest if math.isclose(quotient, nearest, rel_tol=_WHOLE) else math.ceil(quotient)
    return max(1, whole - 1)


def regions(margins: ArrayLike, radius: float, *, margin: float | None = None) -> Regions:
    """How many regions there are, and the region of every example.

    Example i is in region k if its margin is at least k times the smallest margin and less than k + 1 times;
    everything beyond the last edge is in the last region.

    Parameters
    ----------
    margins : array-like of shape (n_examples,)
        Label times score, divided by the norm of the weights.
    radius : float
        The largest norm of an example.
    margin : float, default=None
        The width of a region, instead of the smallest margin. Examples with less than that are in region 1.

    Returns
    -------
    regions : Regions

    Examples
    --------
    >>> from crowdwise.paper.theory import regions
    >>> regions([0.3, 0.1, 0.25, 0.4], radius=0.4)
    Regions(n_regions=3, margin=0.1, region=array([3, 1, 2, 3]))
    """
    values = np.asarray(margins, dtype=np.float64)
    if values.ndim != 1 or len(values) == 0 or not np.isfinite(values).all():
        raise BoundError(f"margins must be finite numbers, one per example; got an array of shape {values.shape}.")
    if margin is None:
        margin = float(values.min())
        if margin <= 0:
            at = int(values.argmin())
            raise BoundError(
                f"margins must be positive to divide space by the smallest; example {at} has {margin}. "
                "Give the width of a region as margin=... if the examples are not separated."
            )
    n_regions = count_regions(margin, radius)
    with np.errstate(over="ignore"):
        quotient = values / margin
    nearest = np.round(quotient)
    whole = np.where(np.isclose(quotient, nearest, rtol=_WHOLE, atol=0), nearest, np.floor(quotient))
    return Regions(n_regions, float(margin), np.clip(whole, 1, n_regions).astype(np.int64))


def novikoff_bound(margin: float, *, radius: float = 1.0, norm: float = 1.0) -> float:
    """The most mistakes a perceptron can make on separable examples in any order, (radius * norm / margin)².

    Parameters
    ----------
    margin : float
        Smallest label times score of the separating vector; at most ``radius * norm``.
    radius : float, default=1.0
        The largest norm of an example.
    norm : float, default=1.0
        Norm of the separating vector.

    Returns
    -------
    bound : float

    Examples
    --------
    >>> from crowdwise.paper.theory import novikoff_bound
    >>> novikoff_bound(0.25)
    16.0
    """
    _check_margin(margin, radius, norm)
    return (radius * norm / margin) ** 2


def spread_bound(
    margin: float, spread: float, *, radius: float = 1.0, norm: float = 1.0, n_regions: int | None = None
) -> float:
    """Theorem 2: the most mistakes, given how unevenly they spread over the regions.

    It holds for every order of the examples, because the proof only adds up the margins of the mistakes. It is
    not a forecast: the spread is known when the mistakes have been counted.

    Parameters
    ----------
    margin : float
        Smallest label times score of the separating vector.
    spread : float
        Standard deviation of the mistakes over all regions, those without mistakes included.
    radius : float, default=1.0
        The largest norm of an example.
    norm : float, default=1.0
        Norm of the separating vector. The number of regions does not look at it, as printed in the paper:
        use a unit vector if the value is to be the same for a vector twice as long.
    n_regions : int, default=None
        By default `count_regions`; the bound holds for any other number of regions too.

    Returns
    -------
    bound : float

    Examples
    --------
    >>> from crowdwise.paper.theory import spread_bound
    >>> round(spread_bound(0.1, spread=1.0), 2)
    37.74
    """
    _check_margin(margin, radius, norm)
    return noisy_bound(margin, 0.0, spread=spread, radius=radius, norm=norm, n_regions=n_regions)


def equal_mistakes_bound(margin: float, *, radius: float = 1.0, norm: float = 1.0) -> float:
    """Theorem 2 when every region has the same number of mistakes: (2 radius norm / (margin (K + 1)))².

    For a unit vector this is at most 4, since ``(K + 1) * margin >= radius``: with K > 4 regions the same
    positive number of mistakes in each of them cannot happen.

    Parameters
    ----------
    margin : float
        Smallest label times score of the separating vector.
    radius : float, default=1.0
        The largest norm of an example.
    norm : float, default=1.0
        Norm of the separating vector.

    Returns
    -------
    bound : float

    Examples
    --------
    >>> from crowdwise.paper.theory import equal_mistakes_bound
    >>> equal_mistakes_bound(0.125), equal_mistakes_bound(0.5)
    (4.0, 4.0)
    """
    return spread_bound(margin, 0.0, radius=radius, norm=norm)


def noisy_bound(
    margin: float,
    deviation: float,
    *,
    overestimation: float = 1.0,
    spread: float = 0.0,
    radius: float = 1.0,
    norm: float = 1.0,
    n_regions: int | None = None,
) -> float:
    """Theorem 3: the most mistakes when margins are estimates and some labels are wrong.

    The paper has it for spread 0; the same quadratic gives it for any spread. As printed it also assumes that `u`
    separates the examples, and then it follows from theorem 2, which is smaller. Without that assumption it depends on
    what examples fall short of, the target in `deviation`. With the lower edge of each example's own region it holds
    for any regions: a mistake in region k moves the weights along `u` by at least k margins less what it falls short,
    and these add up to at most ``sqrt(mistakes) * deviation``. With the paper's target, the edge of the first region,
    it holds if regions are cut by label times score, and can be exceeded if they are cut by its absolute value.

    Parameters
    ----------
    margin : float
        Smallest estimated margin, or any width of a region.
    deviation : float
        How far labels times scores fall short, as `deviation` gives it.
    overestimation : float, default=1.0
        In (0, 1]: true margins are at least this times the estimates.
    spread : float, default=0.0
        Standard deviation of the mistakes over all regions.
    radius : float, default=1.0
        The largest norm of an example.
    norm : float, default=1.0
        Norm of the vector that margins are measured along.
    n_regions : int, default=None
        By default `count_regions`.

    Returns
    -------
    bound : float

    Examples
    --------
    >>> from crowdwise.paper.theory import noisy_bound
    >>> noisy_bound(0.125, deviation=1.0)
    16.0
    """
    _check(check_number, "overestimation", overestimation, above=True, high=1.0)
    _check(check_number, "deviation", deviation)
    _check(check_number, "spread", spread)
    K = count_regions(margin, radius) if n_regions is None else int(_check(check_whole, "n_regions", n_regions))
    reach = radius * norm + deviation
    step = overestimation * margin * (K + 1)
    return ((reach + math.sqrt(reach**2 + spread * K * math.sqrt(K - 1) * step**2)) / step) ** 2


def deviation(signed_margins: ArrayLike, targets: ArrayLike) -> float:
    """How far examples fall short of their targets, as a length: sqrt(sum of max(0, target - margin)²).

    Parameters
    ----------
    signed_margins : array-like of shape (n_examples,)
        Label times score, negative where the label is on the wrong side. Only examples that became mistakes
        need to be given, once for every mistake.
    targets : array-like of shape (n_examples,) or float
        ``overestimation * region * margin`` of each example for a bound that holds with any regions; the paper's
        definition is ``margin / underestimation`` for all, which is enough if regions are cut by label times score.

    Returns
    -------
    deviation : float

    Examples
    --------
    >>> from crowdwise.paper.theory import deviation
    >>> deviation([0.5, -0.2, 0.1], targets=[0.4, 0.2, 0.4])
    0.5
    """
    short = np.asarray(targets, dtype=np.float64) - np.asarray(signed_margins, dtype=np.float64)
    return float(np.linalg.norm(np.maximum(short, 0.0)))


def improvement(margin: float, spread: ArrayLike, *, radius: float = 1.0, norm: float = 1.0) -> Floats:
    """The bound of theorem 2 as a share of Novikoff's: below 1 where it is the smaller one.

    Parameters
    ----------
    margin : float
        Smallest label times score of the separating vector.
    spread : array-like
        Standard deviations of the mistakes over the regions.
    radius : float, default=1.0
        The largest norm of an example.
    norm : float, default=1.0
        Norm of the separating vector.

    Returns
    -------
    improvement : ndarray
        Of the shape of `spread`. Exactly 1 for margins from half the radius on, where there is one region.

    Examples
    --------
    >>> from crowdwise.paper.theory import improvement
    >>> improvement(0.1, [0.0, 1.0, 10.0]).round(3)
    array([0.04 , 0.377, 2.885])
    """
    spreads = np.asarray(spread, dtype=np.float64)
    plain = novikoff_bound(margin, radius=radius, norm=norm)
    each = [spread_bound(margin, float(value), radius=radius, norm=norm) / plain for value in spreads.ravel()]
    return np.array(each, dtype=np.float64).reshape(spreads.shape)


def break_even_spread(margin: float, *, radius: float = 1.0, norm: float = 1.0) -> float:
    """The spread up to which theorem 2 is no larger than Novikoff's bound.

    Parameters
    ----------
    margin : float
        Smallest label times score of the separating vector.
    radius : float, default=1.0
        The largest norm of an example.
    norm : float, default=1.0
        Norm of the separating vector.

    Returns
    -------
    spread : float
        About the square root of ``radius / margin`` for a unit vector; 0 with one region, where both are the same.

    Examples
    --------
    >>> from crowdwise.paper.theory import break_even_spread
    >>> round(break_even_spread(0.1), 3)
    3.143
    """
    K = count_regions(margin, radius)
    return novikoff_bound(margin, radius=radius, norm=norm) * math.sqrt(K - 1) / (K * (K + 1))


def _check(check: Callable[..., float], name: str, value: Any, **limits: Any) -> float:
    """A number that a sequence of examples can have, or the error of this module."""
    try:
        return check(name, value, **limits)
    except ValueError as error:
        raise BoundError(str(error)) from None


def _positive(value: float, name: str) -> float:
    return _check(check_number, name, value, above=True)


def _check_margin(margin: float, radius: float, norm: float) -> None:
    longest = _positive(radius, "radius") * _positive(norm, "norm")
    if _positive(margin, "margin") > longest * (1 + _WHOLE):
        raise BoundError(
            f"margin {margin!r} exceeds radius * norm = {longest!r}, which no example of that radius can have. "
            "Divide label times score by the norm of the vector, or pass that norm."
        )
