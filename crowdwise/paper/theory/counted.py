"""Margins and counted mistakes -> the bound for a perceptron that has run, on any data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from crowdwise._arrays import Floats
from crowdwise._checks import check_whole
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
