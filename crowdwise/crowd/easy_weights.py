"""Disagreement -> a weight for every example."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit

from crowdwise._checks import check_number
from crowdwise._threads import EXPONENTIAL, each_block

# If even the easiest example would weigh less than this, weights are taken relative to it.
_VANISHING = 1e-12


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
    factor, flat = -check_number("steepness", steepness), differs.ravel()
    weight = np.empty(len(flat))

    def weigh(some: slice) -> None:
        with np.errstate(over="ignore"):  # infinite is what an overflow should be here: as hard as can be
            part = 2 * expit(factor * flat[some])
        # Below the smallest normal number a weight would vanish and take its example out of the data.
        np.maximum(part, np.finfo(np.float64).tiny, out=weight[some])

    each_block(weigh, len(flat), EXPONENTIAL * len(flat))
    return weight.reshape(differs.shape)


def example_weights(differs: NDArray[np.float64], steepness: float) -> NDArray[np.float64]:
    """Easiness as models use it: relative to the easiest example if all of it would vanish."""
    weight = easiness(differs, steepness)
    if weight.size and weight.max() < _VANISHING:
        with np.errstate(over="ignore"):
            logarithm = log_expit(-np.minimum(steepness * differs, np.finfo(np.float64).max))
        weight = np.maximum(np.exp(logarithm - logarithm.max()), np.finfo(np.float64).tiny)
    return weight
