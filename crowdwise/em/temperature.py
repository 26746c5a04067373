"""Temperature scaling: scores of a classifier -> probabilities that are as sure as the labels bear out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from crowdwise.arrays import Floats, Positions
from crowdwise.em.posterior import expectation
from crowdwise.softmax.log_space import log_softmax
from crowdwise.threads import EXPONENTIAL, each_block

# Scores are multiplied by a number between these, on a logarithmic scale.
_SMALLEST, _LARGEST = np.log(1e-3), np.log(1e2)
# The logarithm is found by Newton's method from the best of these on, in steps of at most this length, until one is
# shorter than that: what is left then is below the last digits, and rounds settle to as many as are wanted.
_BEGINNINGS, _LONGEST, _EXACTLY = (0.0, -1.5, 1.5), 1.0, 1e-7
# More examples than this make the factor no surer.
ENOUGH = 10_000


@dataclass(frozen=True)
class ClassScores:
    """Scores of a classifier; what each class counted for it is divided out again in its probabilities.

    A class of weight 10 looks ten times as frequent to the classifier. Beside the labels that would be a prior that
    nobody believes in.
    """

    # (n_examples, 1) or (n_examples, n_classes): larger for more probable classes; one column is the second of two
    # classes compared with the first.
    scores: Floats
    class_weight: Floats  # (n_classes,): what each class counted for the classifier
    # Whether scores are logarithms of probabilities, but for what makes these sum to one. If not, their unit is unknown
    # before they have a temperature.
    are_probabilities: bool

    def log_proba(self, temperature: float) -> Floats:
        """Logarithms of probabilities when scores are multiplied by a temperature."""
        scaled, offset = self.parts()
        log_proba = np.empty((len(scaled), len(self.class_weight)))

        def task(rows: slice) -> None:
            log_proba[rows] = log_softmax(temperature * scaled[rows] + offset)

        each_block(task, len(scaled), EXPONENTIAL * log_proba.size)
        return log_proba

    def parts(self) -> tuple[Floats, Floats]:
        """What a temperature multiplies, and what it does not."""
        shift = np.log(self.class_weight)
        if self.scores.shape[1] == 1:
            shift = shift[1:] - shift[:1]
        if not self.are_probabilities:
            return self.scores, -shift
        return self.scores - shift if shift.any() else self.scores, np.zeros_like(shift)

    def at(self, some: Positions) -> ClassScores:
        """Of some examples."""
        return replace(self, scores=self.scores[some])


def best_temperature(
    scores: ClassScores,
    log_likelihood: Floats,
    weight: Floats,
    last: float | None = None,
    some: Positions | None = None,
    total: float | None = None,
) -> float:
    """The factor on a classifier's scores under which the labels are most probable.

    A prior around one keeps it finite where few examples never contradict the classifier: every doubling of a large
    factor has to be paid for by the labels. Scores are of models that have not seen the example. `last` is the factor
    of the last round, if it is likely to be near, `some` are examples that are enough and stand for all (by default
    some of many), and `total` is what all examples count together.
    """
    total = float(weight.sum()) if total is None else total
    if some is None and len(weight) > ENOUGH:
        some = np.arange(0, len(weight), len(weight) // ENOUGH + 1)
    if some is not None:
        scores, log_likelihood, weight = scores.at(some), log_likelihood[some], weight[some]
        weight = weight * (total / max(weight.sum(), np.finfo(np.float64).tiny))

    scaled, offset = scores.parts()

    def at(logarithm: float) -> tuple[float, float, float]:
        """What is maximised, its slope and how that bends, at the logarithm of a factor."""
        factor = np.exp(logarithm)
        log_prior = log_softmax(factor * scaled + offset)
        posterior, evidence = expectation(log_prior, log_likelihood)
        after, before = _moments(posterior, scaled), _moments(np.exp(log_prior), scaled)
        slope, bend = (float(weight @ (one - other)) * factor for one, other in zip(after, before, strict=True))
        return float(weight @ evidence) + logarithm - factor, slope + 1 - factor, bend * factor + slope - factor

    begin = max(_BEGINNINGS, key=lambda logarithm: at(logarithm)[0]) if last is None else float(np.log(last))
    return float(np.exp(_top(at, begin)))


def _moments(proba: Floats, scaled: Floats) -> tuple[Floats, Floats]:
    """Mean and variance of scores over the classes of each example; one column is the second of two, the other zero."""
    if scaled.shape[1] == 1:
        mean = proba[:, 1] * scaled[:, 0]
        return mean, mean * scaled[:, 0] - mean**2
    mean = np.einsum("ik,ik->i", proba, scaled)
    return mean, np.einsum("ik,ik,ik->i", proba, scaled, scaled) - mean**2


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
