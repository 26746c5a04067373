"""Temperature scaling: scores of a classifier -> probabilities that are as sure as the labels bear out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from crowdwise.arrays import Floats, Positions
from crowdwise.em.rounds import expectation
from crowdwise.em.softmax_rows import log_softmax

# Scores are multiplied by a number between these, on a logarithmic scale.
_SMALLEST, _LARGEST = np.log(1e-3), np.log(1e2)
# The logarithm is first looked for not further from the last one than this; else everywhere, so exactly, and then in so
# many times that distance around, where it is found to the last digits: rounds then settle to as many as are wanted.
_NEAR, _ABOUT, _AROUND, _EXACTLY = 0.1, 1e-4, 10.0, 1e-14
# More examples than this make the factor no surer.
ENOUGH = 10_000


@dataclass(frozen=True)
class ClassScores:
    """Scores of a classifier; what each class counted for it is divided out again in its probabilities.

    A class of weight 10 looks ten times as frequent to the classifier. Beside the labels that would be a prior that
    nobody believes in.

    Parameters
    ----------
    scores : ndarray of shape (n_examples, n_classes)
        Larger for more probable classes.
    class_weight : ndarray of shape (n_classes,)
        What each class counted for the classifier.
    are_probabilities : bool
        Whether scores are logarithms of probabilities. If not, their unit is unknown before they have a temperature.
    """

    scores: Floats
    class_weight: Floats
    are_probabilities: bool

    def log_proba(self, temperature: float) -> Floats:
        """Logarithms of probabilities when scores are multiplied by a temperature."""
        if self.are_probabilities:
            return log_softmax(temperature * self.heated)
        return log_softmax(temperature * self.scores - np.log(self.class_weight))

    @property
    def heated(self) -> Floats:
        """What is multiplied by a temperature."""
        return self.scores - np.log(self.class_weight) if self.are_probabilities else self.scores


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
    factor has to be paid for by the labels.

    Parameters
    ----------
    scores : ClassScores
        Of models that have not seen the example.
    log_likelihood : ndarray of shape (n_examples, n_classes)
        Logarithm of the probability of the example's labels for every true class.
    weight : ndarray of shape (n_examples,)
        Of each example.
    last : float, default=None
        That of the last round, if it is likely to be near.
    some : ndarray of positions, default=None
        Examples that are enough and stand for all; by default some of many.
    total : float, default=None
        What all examples count together; by default the sum of the weights.

    Returns
    -------
    temperature : float
    """
    total = float(weight.sum()) if total is None else total
    if some is None and len(weight) > ENOUGH:
        some = np.arange(0, len(weight), len(weight) // ENOUGH + 1)
    if some is not None:
        scores, log_likelihood, weight = replace(scores, scores=scores.scores[some]), log_likelihood[some], weight[some]
        weight = weight * (total / max(weight.sum(), np.finfo(np.float64).tiny))

    def loss(logarithm: float) -> float:
        prior = logarithm - np.exp(logarithm)
        return -float(weight @ expectation(scores.log_proba(np.exp(logarithm)), log_likelihood)[1] + prior)

    @cache
    def fall(logarithm: float) -> float:
        """How fast the loss falls: zero where it is lowest."""
        temperature = float(np.exp(logarithm))
        log_proba = scores.log_proba(temperature)
        away = expectation(log_proba, log_likelihood)[0] - np.exp(log_proba)
        return temperature * (float(weight @ np.einsum("ik,ik->i", away, scores.heated)) - 1) + 1

    def lowest(low: float, high: float) -> float | None:
        """Where the loss is lowest between two points, if it falls at the first and rises at the second."""
        return float(brentq(fall, low, high, xtol=_EXACTLY)) if fall(low) > 0 > fall(high) else None

    if last is not None and (near := lowest(np.log(last) - _NEAR, np.log(last) + _NEAR)) is not None:
        return float(np.exp(near))
    bounds = (_SMALLEST, _LARGEST)
    about = float(minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": _ABOUT}).x)
    found = lowest(about - _AROUND * _ABOUT, about + _AROUND * _ABOUT)
    return float(np.exp(about if found is None else found))
