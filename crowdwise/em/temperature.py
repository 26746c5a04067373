"""Temperature scaling: scores of a classifier -> probabilities that are as sure as the labels bear out."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar

from crowdwise.arrays import Floats
from crowdwise.em.rounds import expectation
from crowdwise.em.softmax_rows import log_softmax

# Scores are multiplied by a number between these, on a logarithmic scale.
_SMALLEST, _LARGEST = np.log(1e-3), np.log(1e2)
# The logarithm is found so exactly, at first not further from the last one than this.
_EXACTLY, _NEAR = 1e-5, 0.1
# More examples than this make the factor no surer.
_ENOUGH = 10_000


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
        shift = np.log(self.class_weight)
        if self.are_probabilities:
            return log_softmax(temperature * (self.scores - shift))
        return log_softmax(temperature * self.scores - shift)


def best_temperature(scores: ClassScores, log_likelihood: Floats, weight: Floats, last: float | None = None) -> float:
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

    Returns
    -------
    temperature : float
    """

    if len(weight) > _ENOUGH:  # a part is enough, and stands for all
        some = slice(None, None, len(weight) // _ENOUGH + 1)
        share = weight.sum() / max(weight[some].sum(), np.finfo(np.float64).tiny)
        scores, log_likelihood, weight = replace(scores, scores=scores.scores[some]), log_likelihood[some], weight[some]
        weight = weight * share

    def loss(logarithm: float) -> float:
        prior = logarithm - np.exp(logarithm)
        return -float(weight @ expectation(scores.log_proba(np.exp(logarithm)), log_likelihood)[1] + prior)

    def search(low: float, high: float) -> float:
        return float(minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": _EXACTLY}).x)

    if last is not None:
        low, high = np.log(last) - _NEAR, np.log(last) + _NEAR
        found = search(low, high)
        if low + 10 * _EXACTLY < found < high - 10 * _EXACTLY:
            return float(np.exp(found))
    return float(np.exp(search(_SMALLEST, _LARGEST)))
