"""The model step and the squared errors of the annotators, from sums or from the rows themselves.

Both problems answer the same questions, so the rounds do not know which one they solve: given the expertise
(None for the first consensus), what are the coefficients; given the coefficients, how wrong is each annotator?
`problem.at(weights)` is the problem with the weights of a round. If there are several l2 to choose from, the one with
the smallest held-out squared error against the present consensus is taken. That error is not weighted by easiness, as
in the paper's experiments, but by class if the model is, or a rare class would not count in the choice.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol, Self

import numpy as np

from crowdwise.arrays import Floats
from crowdwise.ridge.data import RidgeData, Weights
from crowdwise.ridge.precision import Precision
from crowdwise.ridge.solver import Factor, Spectrum, held_out_errors, leave_one_out
from crowdwise.ridge.statistics import Statistics


@dataclass(eq=False)
class L2Choice:
    """The l2 of a fit: given, chosen from `l2s` in every round, or chosen for the first consensus only."""

    l2s: Floats
    every_round: bool
    l2: float = field(default=np.nan, init=False)
    errors: Floats = field(default_factory=lambda: np.empty(0), init=False)

    def __post_init__(self) -> None:
        if len(self.l2s) == 1:
            self.l2 = float(self.l2s[0])

    @property
    def is_due(self) -> bool:
        """Whether an l2 has to be chosen now."""
        return len(self.l2s) > 1 and (self.every_round or np.isnan(self.l2))

    def take(self, errors: Floats) -> int:
        """Take the l2 with the smallest held-out error; its position."""
        best = int(errors.argmin())
        self.l2, self.errors = float(self.l2s[best]), errors
        return best


class Problem(Protocol):
    """What the rounds ask."""

    rank: int

    @property
    def precision(self) -> Precision: ...

    def at(self, weights: Weights) -> Self: ...

    def solve(self, expertise: Floats | None) -> Floats: ...

    def squared_errors(self, theta: Floats) -> Floats: ...

    def penalty(self, expertise: Floats) -> float: ...


@dataclass(eq=False)
class SumsProblem:
    """A problem solved from sums per fold: no round reads a row.

    Parameters
    ----------
    data : RidgeData
        What the sums are of.
    easy : Statistics
        Sums weighted by easiness, one cell per fold.
    plain : Statistics or None
        Sums that are not; needed to choose l2, and for weights between easiness and equal ones.
    choice : L2Choice
        The l2.
    share : float, default=1.0
        How much easiness counts in this round.
    """

    data: RidgeData
    easy: Statistics
    plain: Statistics | None
    choice: L2Choice
    share: float = 1.0
    rank: int = 0

    def at(self, weights: Weights) -> SumsProblem:
        """The same problem with the weights of a round, which lie between easiness and equal ones."""
        return self if weights.share == self.share else replace(self, share=weights.share)

    @cached_property
    def sums(self) -> Statistics:
        """With the weights of this round, one cell per fold."""
        if self.share == 1:
            return self.easy
        assert self.plain is not None
        return self.plain if self.share == 0 else self.easy.blend(self.plain, self.share)

    @cached_property
    def whole(self) -> Statistics:
        """The sums of all folds together."""
        return self.sums if self.sums.n_cells == 1 else self.sums.combine(np.ones((1, self.sums.n_cells)))

    @cached_property
    def precision(self) -> Precision:
        sums = self.whole
        return Precision.of(sums.mass[0], sums.answered[0], sums.present[0], self.data.targets.span)

    def solve(self, expertise: Floats | None) -> Floats:
        """theta for an expertise, with an l2 that is chosen if it is time to."""
        if not self.choice.is_due:
            factor = self._factor(expertise)
            self.rank = factor.rank
            return factor.solve(self.whole.crosses(expertise)[0])
        assert self.plain is not None
        training = leave_one_out(self.sums.n_cells)
        spectrum = self._spectrum(expertise)
        theta = spectrum.solve(self.sums.crosses(expertise, training), self.choice.l2s)
        held_out = self.plain.grams(expertise), self.plain.crosses(expertise)
        best = self.choice.take(held_out_errors(*held_out, theta[:-1], self.data.targets.factor))
        self.rank = spectrum.rank(self.choice.l2)
        return theta[-1, :, best]

    def _factor(self, expertise: Floats | None) -> Factor:
        """With complete labels the same one in every round."""
        if self.whole.is_complete:
            return self._fixed_factor
        return Factor.of(self.whole.grams(expertise)[0], self.choice.l2, intercept=self.data.rows.intercept)

    @cached_property
    def _fixed_factor(self) -> Factor:
        return Factor.of(self.whole.gram[0, 0], self.choice.l2, intercept=self.data.rows.intercept)

    def _spectrum(self, expertise: Floats | None) -> Spectrum:
        if self.sums.is_complete:
            return self._fixed_spectrum
        grams = self.sums.grams(expertise, leave_one_out(self.sums.n_cells))
        return Spectrum.of(grams, intercept=self.data.rows.intercept)

    @cached_property
    def _fixed_spectrum(self) -> Spectrum:
        grams = self.sums.grams(None, leave_one_out(self.sums.n_cells))
        return Spectrum.of(grams, intercept=self.data.rows.intercept)

    def squared_errors(self, theta: Floats) -> Floats:
        """Weighted sums of squared errors, per annotator."""
        return self.whole.squared_errors(theta)

    def agreement(self, theta: Floats) -> Floats:
        """Covariance of every annotator's labels with the scores; below zero is worse than chance."""
        return self.whole.agreement(theta)

    def penalty(self, expertise: Floats) -> float:
        """What the squared length of coefficients is penalised with."""
        return float(self.choice.l2 * self.whole.average_expertise(expertise)[0])

    def fold_models(self, expertise: Floats) -> Floats:
        """Models of all folds but one, of shape (n_folds, n_columns, n_targets)."""
        training = leave_one_out(self.sums.n_cells)
        crosses = self.sums.crosses(expertise, training)
        if "_fixed_spectrum" in vars(self):  # was needed to choose l2
            return self._fixed_spectrum.solve(crosses, np.array([self.choice.l2]))[:-1, :, 0]
        grams, average = self.sums.grams(expertise, training), self.sums.average_expertise(expertise, training)
        # An example counts relative to the average of all folds, as in the model of all.
        systems = zip(grams[:-1], crosses[:-1], self.choice.l2 * average[-1] / average[:-1], strict=True)
        intercept = self.data.rows.intercept
        return np.array([Factor.of(gram, float(l2), intercept=intercept).solve(cross) for gram, cross, l2 in systems])

    def held_out_error(self, expertise: Floats, theta: Floats) -> Floats:
        """The error of the models of a given l2, as an array of one."""
        if self.plain is None:
            return np.empty(0)
        held_out = self.plain.grams(expertise), self.plain.crosses(expertise)
        return held_out_errors(*held_out, theta[:, :, np.newaxis], self.data.targets.factor)
