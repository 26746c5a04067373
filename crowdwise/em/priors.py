"""A posterior over classes -> what is believed of each example before its labels are looked at.

Either how frequent classes are, or a classifier's probabilities. A classifier that has seen an example would agree with
its labels, so by default its probabilities are out of fold.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from crowdwise.arrays import Floats, Positions
from crowdwise.em.temperature import ClassScores, best_temperature
from crowdwise.softmax.log_space import log_softmax
from crowdwise.weights.round_weights import SoftTargets

# Rounds that take back more than this share of the last one's step are damped.
_BACK = 0.5
# How many examples are enough to tell.
_ENOUGH = 20_000


@dataclass
class ClassFrequencies:
    """How frequent each class is, the same for all examples."""

    added: float  # examples of every class that are added to those seen
    most: Floats | None = None  # (n_classes,): how frequent each class may be at most; they sum to one or more
    log_frequency: Floats = field(init=False)

    @classmethod
    def of_votes(cls, added: float, votes: Floats, weight: Floats) -> ClassFrequencies:
        """With limits that keep a class which hardly anybody gives from taking over the contested examples.

        Where a class is the truth, the crowd is taken to give it at least as often as one that guesses: a class of
        K is then at most K times as frequent as the votes for it.
        """
        n_classes = votes.shape[1]
        return cls(added, (n_classes * (weight @ votes) + added) / (weight.sum() + n_classes * added))

    def update(self, targets: SoftTargets, log_likelihood: Floats) -> Floats:
        return self.estimate(targets)

    def estimate(self, targets: SoftTargets) -> Floats:
        counts = targets.weight @ targets.posterior + self.added
        self.log_frequency = self._limited(counts / counts.sum())
        return self.log_frequency

    def move(self, parameters: Floats) -> Floats:
        self.log_frequency = self._limited(np.exp(log_softmax(parameters[np.newaxis])[0]))
        return self.log_frequency

    def _limited(self, share: Floats) -> Floats:
        """Logarithms of shares, in the same proportions but none above its limit."""
        if self.most is not None and (share > self.most).any():
            share = within(share, self.most)
        return np.log(np.maximum(share, np.finfo(np.float64).tiny))  # there may be a class that nobody names

    @property
    def frequency(self) -> Floats:
        return np.exp(self.log_frequency)

    def log_density(self) -> float:
        return self.added * float(self.log_frequency.sum())


def within(share: Floats, most: Floats) -> Floats:
    """Shares with a sum of one, in the given proportions but for those that would be above their limits.

    The limits have a sum of one or more. This maximises the likelihood of counts in the given proportions.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise.em.priors import within
    >>> within(np.array([0.5, 0.4, 0.1]), np.array([0.2, 1.0, 1.0])).round(2).tolist()
    [0.2, 0.64, 0.16]
    """
    at_limit = np.zeros(len(share), dtype=bool)
    scaled = share
    while (above := ~at_limit & (scaled > most)).any():
        at_limit |= above
        free = share[~at_limit].sum()
        scaled = share * ((1 - most[at_limit].sum()) / free if free > 0 else 0.0)
    return np.where(at_limit, most, scaled)


class OutOfFoldScorer(Protocol):
    """Something that scores every example by a model of other examples."""

    def out_of_fold(self, targets: SoftTargets) -> ClassScores: ...


@dataclass
class OutOfFold:
    """A classifier's probabilities, each example's by a classifier that has not seen it, with a temperature."""

    scorer: OutOfFoldScorer  # fits classifiers and scores the examples held out
    # Share of the last round's logarithms that is kept once rounds do not come closer by themselves: two examples may
    # otherwise change each other's probabilities in turn for ever.
    damping: float = 0.0
    first: ClassScores | None = None  # those of the first round, if they are known
    some: Positions | None = None  # examples that the temperature is found from; by default some of many
    total: float | None = None  # what all examples count together; by default the sum of the weights
    temperature: float = field(default=1.0, init=False)
    _last: Floats | None = field(default=None, init=False)
    _last_step: Floats | None = field(default=None, init=False)
    is_damped: bool = field(default=False, init=False)

    def update(self, targets: SoftTargets, log_likelihood: Floats) -> Floats:
        scores = self.scorer.out_of_fold(targets) if self.first is None else self.first
        self.first = None
        last = None if self._last is None else self.temperature
        self.temperature = best_temperature(scores, log_likelihood, targets.weight, last, self.some, self.total)
        log_prior = scores.log_proba(self.temperature)
        if self._last is not None and self.damping:
            self.is_damped = self.is_damped or self._turns_back(log_prior, self._last)
            if self.is_damped:
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
