"""Scores of a classifier -> its voice beside the labels: probabilities, as loud as the labels bear out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from crowdwise.arrays import Floats
from crowdwise.em.aggregate import expectation
from crowdwise.em.softmax import log_softmax

# The model's scores are multiplied by a number between these, on a logarithmic scale.
_COLDEST, _WARMEST = np.log(1e-3), np.log(1e2)


@dataclass(frozen=True)
class Voice:
    """What a model says about examples beside their labels; what each class counted for it is divided out again.

    A class of weight 10 looks ten times as frequent to the model. Beside the labels that would be a prior that nobody
    believes in.

    Parameters
    ----------
    scores : ndarray of shape (n_examples, n_classes)
        Of a model that has not seen the example.
    class_weight : ndarray of shape (n_classes,)
        What each class counted for it.
    are_probabilities : bool
        Whether scores are logarithms of probabilities. If not, their unit is unknown before they have a temperature.
    """

    scores: Floats
    class_weight: Floats
    are_probabilities: bool

    def at(self, temperature: float) -> Floats:
        """Logarithms of probabilities when scores are multiplied by a temperature."""
        shift = np.log(self.class_weight)
        if self.are_probabilities:
            return log_softmax(temperature * (self.scores - shift))
        return log_softmax(temperature * self.scores - shift)


def best_temperature(voice: Voice, log_likelihood: Floats, weight: Floats) -> float:
    """The factor on the model's scores under which the labels are likeliest: how loud its voice should be.

    A prior around one keeps it finite where few examples never contradict the model: every doubling of a loud voice has
    to be paid for by the labels.

    Parameters
    ----------
    voice : Voice
        Of models that have not seen the example.
    log_likelihood : ndarray of shape (n_examples, n_classes)
        Logarithm of the probability of the example's labels for every true class.
    weight : ndarray of shape (n_examples,)
        Of each example.

    Returns
    -------
    temperature : float
    """

    def badness(logarithm: float) -> float:
        prior = logarithm - np.exp(logarithm)
        return -float(weight @ expectation(voice.at(np.exp(logarithm)), log_likelihood)[1] + prior)

    found = minimize_scalar(badness, bounds=(_COLDEST, _WARMEST), method="bounded", options={"xatol": 1e-6})
    return float(np.exp(found.x))
