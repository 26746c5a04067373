"""How good a steepness is, in numbers that can be compared between steepnesses.

The squared error against the consensus cannot: the consensus itself depends on the steepness, and one that flatters the
model has a small error. Ranking held-out examples on which annotators agree, or those whose truth is known, can.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from crowdwise.arrays import Floats

# Examples are taken from the lowest disagreement upwards until they are this share of all.
EASIEST_SHARE = 0.25
# And from the highest downwards until they are this share.
_CONTESTED_SHARE = 0.25
# More examples than this make the ranking no sharper than its own noise.
_ENOUGH = 20_000


def ranking(scores: Floats, codes: NDArray[Any], n_classes: int) -> float:
    """The probability that an example of a class is scored above one of another; 0.5 is chance.

    Parameters
    ----------
    scores : ndarray of shape (n_examples, 1) or (n_examples, n_classes)
        One column for two classes, else one per class.
    codes : ndarray of shape (n_examples,)
        The classes that the examples are taken to have.
    n_classes : int
        Number of classes.

    Returns
    -------
    ranking : float
        Mean over the classes that occur, each against all others; NaN if fewer than two occur.
    """
    one_column = scores.shape[1] == 1
    areas = []
    for k in [1] if one_column else range(n_classes):
        positive = codes == k
        n_positive = int(positive.sum())
        n_negative = len(codes) - n_positive
        if n_positive and n_negative:
            ranks = rankdata(scores[:, 0 if one_column else k])
            above = ranks[positive].sum() - n_positive * (n_positive + 1) / 2
            areas.append(above / (n_positive * n_negative))
    return float(np.mean(areas)) if areas else float("nan")


def standard_errors_above_chance(scores: Floats, codes: NDArray[Any], n_classes: int) -> float:
    """How many standard errors the ranking is above chance.

    Parameters
    ----------
    scores, codes, n_classes
        As in `ranking`.

    Returns
    -------
    n_errors : float
        NaN if fewer than two classes occur.
    """
    n_positive = np.bincount(codes, minlength=n_classes).astype(np.float64)[1 if scores.shape[1] == 1 else 0 :]
    n_negative = len(codes) - n_positive
    occurs = (n_positive > 0) & (n_negative > 0)
    # Of an area under scores that have nothing to do with the classes; the classes' areas taken as independent.
    variance = (len(codes) + 1) / (12 * n_positive[occurs] * n_negative[occurs])
    error = np.sqrt(variance.sum()) / max(occurs.sum(), 1)
    return (ranking(scores, codes, n_classes) - 0.5) / error if occurs.any() else float("nan")


def contested_examples(disagreement: Floats, tally: NDArray[Any]) -> NDArray[np.intp]:
    """The examples that annotators agree on least: whole levels of disagreement, a quarter of all or more.

    Parameters
    ----------
    disagreement : ndarray of shape (n_examples,)
        Of each example; those without any are not contested.
    tally : ndarray of shape (n_examples, n_classes)
        How many labels of each class it has; examples without a clear majority are left out.

    Returns
    -------
    examples : ndarray of indices, ascending
    """
    clear = _clear_majority(tally)
    if len(clear) == 0:
        return clear
    limit = np.quantile(disagreement[clear], 1 - _CONTESTED_SHARE, method="higher")
    return clear[(disagreement[clear] >= limit) & (disagreement[clear] > 0)]


def easiest_examples(disagreement: Floats, tally: NDArray[Any], seed: int = 0) -> NDArray[np.intp]:
    """The examples that annotators agree on most: whole levels of disagreement, a quarter of all or more.

    Parameters
    ----------
    disagreement : ndarray of shape (n_examples,)
        Of each example.
    tally : ndarray of shape (n_examples, n_classes)
        How many labels of each class it has; examples without a clear majority are left out.
    seed : int, default=0
        For the choice among more examples than are needed.

    Returns
    -------
    examples : ndarray of indices, ascending
    """
    clear = _clear_majority(tally)
    if len(clear) == 0:
        return clear
    limit = np.quantile(disagreement[clear], EASIEST_SHARE, method="higher")
    easiest = clear[disagreement[clear] <= limit]
    if len(easiest) > _ENOUGH:
        easiest = np.sort(np.random.default_rng(seed).choice(easiest, _ENOUGH, replace=False))
    return easiest


def _clear_majority(tally: NDArray[Any]) -> NDArray[np.intp]:
    """Examples with one class that has more labels than any other."""
    columns = list(tally.T)  # a few passes over columns are faster than many short ones over rows
    top = reduce(np.maximum, columns)
    n_at_top = sum((column == top).astype(np.int16) for column in columns)
    return np.flatnonzero(n_at_top == 1)
