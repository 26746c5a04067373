"""Steps of the proofs of theorems 2 and 3 -> numbers: how far weights have moved, and how noisy margins are."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from crowdwise._arrays import Floats
from crowdwise._checks import check_number
from crowdwise.exceptions import BoundError


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
