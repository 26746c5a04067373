"""Scores of a classifier -> probabilities as sure as labels support: softmax, temperature, and an offset per class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial, reduce

import numpy as np

from crowdwise._arrays import Floats
from crowdwise._limits import OFFSET_SMOOTHING, SCALING_EXAMPLES


def log_softmax(scores: Floats) -> Floats:
    """Logarithms of probabilities that are as exp(score); a few passes over columns are much faster than over rows.

    One column is the second of two classes compared with the first; there are as many columns as classes in what comes
    out.
    """
    if scores.shape[1] == 1:
        return -np.logaddexp(0, np.column_stack([scores, -scores]))
    shifted = scores - reduce(np.maximum, scores.T)[:, np.newaxis]
    return np.asarray(shifted - np.log(reduce(np.add, np.exp(shifted).T))[:, np.newaxis])


def shares_of_sum(logarithms: Floats) -> Floats:
    """The logarithm of a sum of exponentials over the first axis; the share of each term in it overwrites its own."""
    top = np.maximum.reduce(logarithms)
    logarithms -= top
    np.exp(logarithms, out=logarithms)
    total = np.add.reduce(logarithms)
    logarithms /= total
    return np.add(top, np.log(total, out=total), out=top)


def expectation(log_prior: Floats, log_likelihood: Floats) -> tuple[Floats, Floats]:
    """Posterior probabilities of the classes, and the logarithm of the probability of each example's labels.

    The prior is of (n_classes,) or (n_examples, n_classes), the likelihood of the latter.
    """
    prior = log_prior[:, np.newaxis] if log_prior.ndim == 1 else log_prior.T
    joint = np.add(prior, log_likelihood.T, order="C")  # many short rows: passes over columns are much faster
    evidence = shares_of_sum(joint)
    return np.ascontiguousarray(joint.T), evidence


# Scores are multiplied by a number between these, on a logarithmic scale.
_SMALLEST, _LARGEST = np.log(1e-3), np.log(1e2)
# The logarithm is found by Newton's method from the best of these on, in steps of at most this length, until one is
# shorter than that.
_BEGINNINGS, _LONGEST, _EXACTLY = (0.0, -1.5, 1.5), 1.0, 1e-7
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
    every = slice(None, None, max(1, len(scores) // SCALING_EXAMPLES))
    scores, log_likelihood, weight = scores[every], log_likelihood[every], weight[every]
    curve = _TemperatureCurve.of(scores, log_likelihood, weight)
    temperature, offset = curve.best(), np.zeros(scores.shape[1])
    share = weight / weight.sum()
    for _ in range(_OFFSET_ROUNDS if offsets else 0):
        log_prior = log_softmax(temperature * scores + offset)
        posterior = expectation(log_prior, log_likelihood)[0]
        predicted = share @ np.exp(log_prior)
        offset = offset + np.log(share @ posterior + OFFSET_SMOOTHING) - np.log(predicted + OFFSET_SMOOTHING)
        temperature = curve.best(offset, last=temperature)
    return Scaling(temperature, offset - offset.mean())


def best_temperature(
    scores: Floats, log_likelihood: Floats, weight: Floats, offset: Floats | float = 0.0, last: float | None = None
) -> float:
    """The factor on scores under which labels are most probable.

    A prior around one keeps it finite where few examples never contradict the classifier: every doubling of a large
    factor has to be paid for by the labels. `last` is a factor that is likely to be near.
    """
    return _TemperatureCurve.of(scores, log_likelihood, weight).best(offset, last)


@dataclass(frozen=True, eq=False)
class _TemperatureCurve:
    """How probable labels are at every factor on scores; a row per class, passes over rows being much faster."""

    scores: Floats  # (n_classes, n_examples): relative to those of the first class
    likelihood: Floats  # (n_classes, n_examples): logarithms of the probability of labels
    weight: Floats  # (n_examples,)

    @classmethod
    def of(cls, scores: Floats, log_likelihood: Floats, weight: Floats) -> _TemperatureCurve:
        """That of scores and log-likelihoods of shape (n_examples, n_classes)."""
        relative = np.ascontiguousarray((scores - scores[:, :1]).T)
        return cls(relative, np.ascontiguousarray(log_likelihood.T), weight)

    def best(self, offset: Floats | float = 0.0, last: float | None = None) -> float:
        """The best factor beside an offset per class; `last` is one that is likely to be near."""
        of_class = np.broadcast_to(offset, len(self.scores))[:, np.newaxis]

        def height(logarithm: float) -> float:
            before = np.exp(logarithm) * self.scores + of_class
            gain = shares_of_sum(before + self.likelihood) - shares_of_sum(before)
            return float(self.weight @ gain) + logarithm - np.exp(logarithm)

        begin = max(_BEGINNINGS, key=height) if last is None else float(np.log(last))
        return float(np.exp(_top(partial(self._slope, of_class), begin)))

    def _slope(self, of_class: Floats, logarithm: float) -> tuple[float, float]:
        """The slope and the curvature at the logarithm of a factor."""
        factor = np.exp(logarithm)
        before = factor * self.scores + of_class
        (mean, variance), (mean_before, variance_before) = map(self._moments, (before + self.likelihood, before))
        slope = float(self.weight @ (mean - mean_before)) * factor
        return slope + 1 - factor, float(self.weight @ (variance - variance_before)) * factor**2 + slope - factor

    def _moments(self, proba: Floats) -> tuple[Floats, Floats]:
        """Mean and variance of scores over classes, from logarithms of their probabilities up to a constant."""
        shares_of_sum(proba)
        proba *= self.scores
        mean = np.add.reduce(proba)
        proba *= self.scores
        return mean, np.add.reduce(proba) - mean**2


def _top(derivatives: Callable[[float], tuple[float, float]], where: float) -> float:
    """Where a slope changes from up to down: Newton's method between the places where it is known to be either."""
    low, high = _SMALLEST, _LARGEST
    where = min(max(where, low), high)
    while high - low > _EXACTLY:
        slope, curvature = derivatives(where)
        low, high = (where, high) if slope > 0 else (low, where)
        step = float(np.copysign(_LONGEST, slope))
        if curvature < 0:
            step = float(np.clip(-slope / curvature, -_LONGEST, _LONGEST))
        if abs(step) < _EXACTLY:
            return where + step
        where = where + step if low < where + step < high else (low + high) / 2
    return where
