"""Logarithms of positive numbers -> the logarithm of their sum, and the share of each in it."""

from __future__ import annotations

from functools import reduce

import numpy as np

from crowdwise._arrays import Floats

# Further apart than this, one of two logarithms does not count beside the other.
_FAR = 700.0


def log_softmax(scores: Floats) -> Floats:
    """Logarithms of probabilities that are as exp(score); a few passes over columns are much faster than over rows.

    One column is the second of two classes compared with the first; there are as many columns as classes in what comes
    out.
    """
    if scores.shape[1] == 1:
        return _of_log_odds(scores[:, 0])
    shifted = scores - reduce(np.maximum, scores.T)[:, np.newaxis]
    return np.asarray(shifted - np.log(reduce(np.add, np.exp(shifted).T))[:, np.newaxis])


def _of_log_odds(away: Floats) -> Floats:
    """The same of two classes, from how much higher the second one's score is."""
    result = np.empty((len(away), 2))
    rest = np.abs(away)
    np.log1p(np.exp(np.negative(rest, out=rest), out=rest), out=rest)
    np.subtract(np.minimum(-away, 0.0), rest, out=result[:, 0])
    np.subtract(np.minimum(away, 0.0), rest, out=result[:, 1])
    return result


def shares_of_sum(logarithms: Floats, shares: Floats) -> Floats:
    """The logarithm of a sum of exponentials over the first axis; `shares` is given the share of each term in it.

    The logarithms of the terms are overwritten.
    """
    if len(logarithms) == 2:
        return _of_two(logarithms, shares)
    top = np.maximum.reduce(logarithms)
    logarithms -= top
    np.exp(logarithms, out=logarithms)
    total = np.add.reduce(logarithms)
    np.divide(logarithms, total, out=shares)
    return np.add(top, np.log(total, out=total), out=top)


def _of_two(logarithms: Floats, shares: Floats) -> Floats:
    """The same with one exponential: how much larger the first term is than the second."""
    first, second = logarithms
    away = np.subtract(first, second, out=first)
    far = max(away.max(initial=0.0), -away.min(initial=0.0)) > _FAR
    ratio = np.exp(np.clip(away, -_FAR, _FAR)) if far else np.exp(away)
    total = ratio + 1
    np.reciprocal(total, out=shares[1])
    np.multiply(ratio, shares[1], out=shares[0])
    np.log(total, out=total)
    if far:
        np.maximum(total, away, out=total)
    return np.add(total, second, out=total)
