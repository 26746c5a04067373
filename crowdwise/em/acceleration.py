"""Where the last rounds began and ended -> where they are heading (Anderson 1965; Walker and Ni 2011).

EM is slow where labels say little: a round goes only a part of the way that is left. How the steps of the last rounds
differ tells how a step depends on where it begins, and so about where no step would be left. What is found there counts
only if the objective is not lower than before, with what annotators are drawn towards being the same. Rounds with a
classifier out of fold have no objective that always rises: they are extrapolated only while they go straight on.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

import numpy as np

from crowdwise.arrays import Floats
from crowdwise.em.annotators import Annotators, Behaviour
from crowdwise.weights.round_weights import SoftTargets

# Rounds are extrapolated from this change on: before that, they may end at another, worse optimum.
NEAR = 0.005
# Differences between rounds that are looked at.
_MOST_DIFFERENCES = 5
# With more parameters than this, what is kept of the rounds would take more memory than all else.
MOST_PARAMETERS = 2**18
# Added to their products, relative to the largest: directions in which steps hardly differ say nothing.
_RIDGE = 1e-8
# Steps whose directions have at least this cosine go straight on, and nobody goes on for more than so many such steps.
_STRAIGHT, _FURTHEST = 0.7, 10.0
# How many examples are enough to tell.
_ENOUGH = 20_000


class Prior(Protocol):
    """What is believed of examples before their labels are looked at."""

    def update(self, targets: SoftTargets, log_likelihood: Floats) -> Floats:
        """Logarithms of class probabilities, of shape (n_classes,) or (n_examples, n_classes), estimated anew."""
        ...

    def log_density(self) -> float:
        """Logarithm of the prior of what was estimated, up to a constant."""
        ...


@runtime_checkable
class MovablePrior(Prior, Protocol):
    """One that can be moved along with the annotators when rounds are accelerated."""

    def estimate(self, targets: SoftTargets) -> Floats:
        """What `update` does, without the likelihood: logarithms, of shape (n_classes,)."""
        ...

    def move(self, parameters: Floats) -> Floats:
        """The same at other logarithms, scaled to be probabilities."""
        ...


@dataclass
class Anderson:
    """Where the last round ended and the step that led there, and how far rounds before it differ in both."""

    _last: tuple[Floats, Floats] | None = field(default=None, init=False)
    _ends: list[Floats] = field(default_factory=list, init=False)
    _steps: list[Floats] = field(default_factory=list, init=False)

    def propose(self, begin: Floats, end: Floats) -> Floats | None:
        """Where the rounds are heading; None after the first.

        Both are logarithms: of the parameters that a round began with, and of those that it estimated.
        """
        step, last, self._last = end - begin, self._last, None
        if last is not None:
            self._ends = [*self._ends, end - last[0]][-_MOST_DIFFERENCES:]
            self._steps = [*self._steps, step - last[1]][-_MOST_DIFFERENCES:]
        self._last = end, step
        if last is None:
            return None
        products = np.array([[one @ other for other in self._steps] for one in self._steps])
        products[np.diag_indices_from(products)] += _RIDGE * products.diagonal().max() + np.finfo(np.float64).tiny
        shares = np.linalg.solve(products, [turn @ step for turn in self._steps])
        proposal = end.copy()
        for share, turn in zip(shares, self._ends, strict=True):
            proposal -= share * turn
        return proposal

    def forget(self) -> None:
        """Begin anew: the last proposal was worse than where its round began."""
        self._last = None
        self._ends.clear()
        self._steps.clear()


@dataclass
class Extrapolation:
    """Moves annotators and prior to where the rounds are heading, and back."""

    annotators: Annotators
    prior: MovablePrior
    _anderson: Anderson = field(default_factory=Anderson, init=False)
    _begin: Floats | None = field(default=None, init=False)
    _estimated: tuple[Behaviour, Floats] = field(init=False)
    _last: Behaviour | None = field(default=None, init=False)
    _drift: float = field(default=0.0, init=False)

    def propose(self, targets: SoftTargets) -> Floats | None:
        """Move on from what this round estimated; the prior's logarithms there, None if it is too early to tell."""
        estimated, last = self.annotators.behaviour, self._last
        if estimated.confusion.size > MOST_PARAMETERS:
            return None
        of_prior = self.prior.estimate(targets)
        end = self.annotators.parameters(of_prior)
        ahead = None if self._begin is None else self._anderson.propose(self._begin, end)
        self._begin, self._estimated = end if ahead is None else ahead, (estimated, end)
        if ahead is not None:
            n_own = len(ahead) - len(of_prior)
            self.annotators.move(ahead[:n_own])
            ahead = self.prior.move(ahead[n_own:])
        if last is not None:
            drawn_anew = replace(last, crowd=estimated.crowd)
            self._drift = self.annotators.log_prior(drawn_anew) - self.annotators.log_prior(last)
        self._last = self.annotators.behaviour
        return ahead

    def is_worse(self, value: float, before: float) -> bool:
        """Whether the objective is lower than in the round before, had the crowd been there what it is now."""
        return value < before + self._drift

    def take_back(self) -> None:
        """Return the annotators to what the round estimated."""
        self.annotators.behaviour, self._begin = self._estimated
        self._last = self.annotators.behaviour
        self._anderson.forget()


@dataclass
class StraightOn:
    """Extrapolates probabilities while rounds go straight on, each step being shorter than the last."""

    _last: tuple[Floats, Floats] | None = field(default=None, init=False)

    def propose(self, begin: Floats, end: Floats, weight: Floats) -> Floats:
        """What the next round begins with: where rounds are heading if that can be told, else where they are.

        All are probabilities of (n_examples, n_classes): those that a round began and ended with.
        """
        some = slice(None, None, max(1, len(end) // _ENOUGH))
        step = (end[some] - begin[some]) * np.sqrt(weight[some])[:, np.newaxis]
        last, self._last = self._last, (end, step)
        if last is None:
            return end
        last_end, before = last
        along, lengths = np.vdot(step, before), np.vdot(step, step) * np.vdot(before, before)
        if not along > _STRAIGHT * np.sqrt(lengths):
            return end
        turn = before - step
        further = float(np.vdot(step, turn) / np.vdot(turn, turn))
        if not 0 < further < _FURTHEST:
            return end
        ahead = end - last_end
        ahead *= further
        ahead += end
        np.maximum(ahead, 0.0, out=ahead)
        ahead /= ahead.sum(axis=1, keepdims=True)
        return ahead
