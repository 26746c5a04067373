"""A posterior over classes -> what is believed of each example before its labels are looked at.

Either how frequent classes are, or a classifier's probabilities. A classifier that has seen an example would agree with
its labels, so by default its probabilities are out of fold.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from crowdwise.arrays import Floats
from crowdwise.em.softmax_rows import log_softmax
from crowdwise.em.temperature import ClassScores, best_temperature
from crowdwise.weights.round_weights import SoftTargets

# Rounds that take back more than this share of the last one's step are damped.
_BACK = 0.5
# How many examples are enough to tell.
_ENOUGH = 20_000


@dataclass
class ClassFrequencies:
    """How frequent each class is, the same for all examples.

    Parameters
    ----------
    added : float
        Examples of every class that are added to those seen.
    """

    added: float
    log_frequency: Floats = field(init=False)

    def update(self, targets: SoftTargets, log_likelihood: Floats) -> Floats:
        counts = targets.weight @ targets.posterior + self.added
        share = np.maximum(counts / counts.sum(), np.finfo(np.float64).tiny)  # a class that nobody names
        self.log_frequency = np.log(share)
        return self.log_frequency

    @property
    def frequency(self) -> Floats:
        return np.exp(self.log_frequency)

    def log_density(self) -> float:
        return self.log_density_at(self.log_frequency)

    def log_density_at(self, log_prior: Floats) -> float:
        return self.added * float(log_prior.sum())

    def parameters(self) -> Floats:
        return self.log_frequency

    def at(self, parameters: Floats) -> Floats:
        return log_softmax(parameters[np.newaxis])[0]


class OutOfFoldScorer(Protocol):
    """Something that scores every example by a model of other examples."""

    def out_of_fold(self, targets: SoftTargets) -> ClassScores: ...


@dataclass
class OutOfFold:
    """A classifier's probabilities, each example's by a classifier that has not seen it, with a temperature.

    Parameters
    ----------
    scorer : OutOfFoldScorer
        Fits classifiers and scores the examples held out.
    damping : float, default=0.0
        Share of the last round's logarithms that is kept once rounds do not come closer by themselves: two examples may
        otherwise change each other's probabilities in turn for ever.
    first : ClassScores, default=None
        Those of the first round, if they are known.
    """

    scorer: OutOfFoldScorer
    damping: float = 0.0
    first: ClassScores | None = None
    temperature: float = field(default=1.0, init=False)
    _last: Floats | None = field(default=None, init=False)
    _last_step: Floats | None = field(default=None, init=False)
    _is_damped: bool = field(default=False, init=False)

    def update(self, targets: SoftTargets, log_likelihood: Floats) -> Floats:
        scores = self.scorer.out_of_fold(targets) if self.first is None else self.first
        self.first = None
        last = None if self._last is None else self.temperature
        self.temperature = best_temperature(scores, log_likelihood, targets.weight, last)
        log_prior = scores.log_proba(self.temperature)
        if self._last is not None and self.damping:
            self._is_damped = self._is_damped or self._turns_back(log_prior, self._last)
            if self._is_damped:
                log_prior = log_softmax((1 - self.damping) * log_prior + self.damping * self._last)
        self._last = log_prior
        return log_prior

    def _turns_back(self, log_prior: Floats, last: Floats) -> bool:
        """Whether the probabilities go back most of the way that they came in the last round."""
        some = slice(None, None, max(1, len(last) // _ENOUGH))
        step = np.exp(log_prior[some]) - np.exp(last[some])
        before, self._last_step = self._last_step, step
        if before is None:
            return False
        return float(np.vdot(step, before)) < -_BACK * float(np.vdot(before, before))

    def log_density(self) -> float:
        return 0.0
