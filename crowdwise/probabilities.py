"""Scores of a classifier -> probabilities as sure as labels support: softmax, temperature, and an offset per class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from crowdwise._arrays import Floats
from crowdwise._limits import OFFSET_SMOOTHING

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


# Scores are multiplied by a number between these, on a logarithmic scale.
_SMALLEST, _LARGEST = np.log(1e-3), np.log(1e2)
# The logarithm is found by Newton's method from the best of these on, in steps of at most this length, until one is
# shorter than that.
_BEGINNINGS, _LONGEST, _EXACTLY = (0.0, -1.5, 1.5), 1.0, 1e-7
# Examples that are enough.
_ENOUGH = 10_000
# Rounds of EM for the offsets: within a thousandth of where they end.
_OFFSET_ROUNDS = 5


@dataclass(frozen=True, eq=False)
class Scaling:
    """How scores become log-probabilities: times a temperature, plus an offset per class."""

    temperature: float = 1.0
    offset: Floats = field(default_factory=lambda: np.zeros(1))  # (n_classes,), or one zero for all

    def log_proba(self, scores: Floats) -> Floats:
        """Logarithms of probabilities, from scores of shape (n_examples, n_classes)."""
        return log_softmax(self.temperature * scores + self.offset)


def fit_scaling(scores: Floats, log_likelihood: Floats, weight: Floats, *, offsets: bool = True) -> Scaling:
    """Temperature and offsets under which labels are most probable: offsets by EM, as class frequencies are.

    Scores, of models that have not seen the example, and logarithms of the probability of labels are of (n_examples,
    n_classes).
    """
    some = slice(None, None, max(1, len(scores) // _ENOUGH))
    scores, log_likelihood, weight = scores[some], log_likelihood[some], weight[some]
    temperature, offset = best_temperature(scores, log_likelihood, weight), np.zeros(scores.shape[1])
    share = weight / weight.sum()
    for _ in range(_OFFSET_ROUNDS if offsets else 0):
        log_prior = log_softmax(temperature * scores + offset)
        posterior = expectation(log_prior, log_likelihood)[0]
        predicted = share @ np.exp(log_prior)
        offset = offset + np.log(share @ posterior + OFFSET_SMOOTHING) - np.log(predicted + OFFSET_SMOOTHING)
        temperature = best_temperature(scores, log_likelihood, weight, offset, last=temperature)
    return Scaling(temperature, offset - offset.mean())


def best_temperature(
    scores: Floats,
    log_likelihood: Floats,
    weight: Floats,
    offset: Floats | float = 0.0,
    last: float | None = None,
) -> float:
    """The factor on scores under which labels are most probable.

    A prior around one keeps it finite where few examples never contradict the classifier: every doubling of a large
    factor has to be paid for by the labels. `last` is a factor that is likely to be near.
    """
    # Relative to the first class, a row per class: passes over rows are much faster than over many short columns.
    relative, likelihood = (np.ascontiguousarray((values - values[:, :1]).T[1:]) for values in (scores, log_likelihood))
    of_class = np.broadcast_to(offset, scores.shape[1:])
    of_class = (of_class - of_class[0])[1:, np.newaxis]

    def moments(joint: Floats) -> tuple[Floats, Floats, Floats]:
        """Logarithms of sums of probabilities that are as exp(joint), and mean and variance of scores over classes."""
        top = np.maximum(joint.max(axis=0), 0.0)
        proba = np.exp(joint - top)
        total = proba.sum(axis=0) + np.exp(-top)
        proba /= total
        mean = np.einsum("ki,ki->i", proba, relative)
        return np.log(total) + top, mean, np.einsum("ki,ki,ki->i", proba, relative, relative) - mean**2

    def at(logarithm: float) -> tuple[float, float, float]:
        """What is maximised, its slope and its curvature, at the logarithm of a factor."""
        factor = np.exp(logarithm)
        before = factor * relative + of_class
        pairs = zip(moments(before + likelihood), moments(before), strict=True)
        value, slope, bend = (float(weight @ (after - prior)) for after, prior in pairs)
        slope *= factor
        return value + logarithm - factor, slope + 1 - factor, bend * factor**2 + slope - factor

    begin = max(_BEGINNINGS, key=lambda logarithm: at(logarithm)[0]) if last is None else float(np.log(last))
    return float(np.exp(_top(at, begin)))


def expectation(log_prior: Floats, log_likelihood: Floats) -> tuple[Floats, Floats]:
    """Posterior probabilities of the classes, and the logarithm of the probability of each example's labels.

    The prior is of (n_classes,) or (n_examples, n_classes), the likelihood of the latter.
    """
    posterior = np.empty_like(log_likelihood)
    prior = log_prior[:, np.newaxis] if log_prior.ndim == 1 else log_prior.T
    joint = np.add(prior, log_likelihood.T, order="C")  # many short rows: passes over columns are much faster
    return posterior, shares_of_sum(joint, posterior.T)


def _top(at: Callable[[float], tuple[float, float, float]], where: float) -> float:
    """Where a slope changes from up to down: Newton's method between the places where it is known to be either."""
    low, high = _SMALLEST, _LARGEST
    where = min(max(where, low), high)
    while high - low > _EXACTLY:
        _, slope, bend = at(where)
        low, high = (where, high) if slope > 0 else (low, where)
        step = float(np.clip(-slope / bend, -_LONGEST, _LONGEST) if bend < 0 else np.copysign(_LONGEST, slope))
        if abs(step) < _EXACTLY:
            return where + step
        where = where + step if low < where + step < high else (low + high) / 2
    return where
