"""The model step and the squared errors of the annotators, from sums that are kept or made anew in every round.

All problems answer the same questions, so the rounds do not know which one they solve: given the expertise
(None for the first consensus), what are the coefficients; given the coefficients, how wrong is each annotator?
`problem.at(weights)` is the problem with the weights of a round. If there are several l2 to choose from, the one with
the smallest held-out squared error against the present consensus is taken. That error is not weighted by easiness, as
in the paper's experiments, but by class if the model is, or a rare class would not count in the choice.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Self

import numpy as np

from crowdwise._arrays import Floats, Positions
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.ridge.data import RidgeData
from crowdwise.ridge.solver import (
    Factor,
    Precision,
    Spectrum,
    Systems,
    held_out_errors,
    leave_one_out,
    solve_iteratively,
)
from crowdwise.ridge.statistics import Statistics, row_sums, sum_by
from crowdwise.rows.features import check_squares
from crowdwise.weights.folds import Folds


@dataclass(frozen=True, eq=False)
class Weights:
    """The weights of the examples in one round."""

    data: RidgeData
    steepness: float  # how fast easiness falls with disagreement
    sample_weight: Floats  # (n_examples,): how often each example counts, times the weight of its class
    by_curriculum: Floats | None = None  # where they are not between easiness and equal weights
    share: float = 1.0  # how much easiness counts; the rest of the weight is the same for all
    class_weight: Floats | None = None  # (n_classes,): what each class counted

    @cached_property
    def example(self) -> Floats:
        """The weight of every example, sample weights aside."""
        if self.by_curriculum is not None:
            return self.by_curriculum
        easiness = self.data.easiness(self.steepness)
        return easiness if self.share == 1 else self.share * easiness + (1 - self.share)

    @property
    def product(self) -> Floats:
        """Sample weights included."""
        return self.example * self.sample_weight


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


@dataclass(eq=False)
class Problem(ABC):
    """What is solved in every round: systems of all folds together, or of all but one."""

    data: RidgeData
    choice: L2Choice
    weights: Weights
    rank: int = field(default=0, init=False)
    # With sums of complete labels the same in every round.
    _factor: Factor | None = field(default=None, init=False)
    _spectrum: Spectrum | None = field(default=None, init=False)

    def at(self, weights: Weights) -> Self:
        """The same problem with the weights of a round."""
        return self if weights is self.weights else replace(self, weights=weights)

    @property
    @abstractmethod
    def precision(self) -> Precision:
        """How squared errors become expertise."""

    @property
    @abstractmethod
    def n_folds(self) -> int:
        """How many folds are known apart."""

    @abstractmethod
    def systems(self, expertise: Floats | None, *, folds: bool, held_out: bool = False) -> Systems:
        """Of each fold, or of all rows together; of `held_out` rows, easiness aside."""

    @abstractmethod
    def squared_errors(self, theta: Floats) -> Floats:
        """Weighted sums of squared errors, per annotator."""

    @abstractmethod
    def agreement(self, theta: Floats) -> Floats:
        """Covariance of every annotator's labels with the scores; below zero is worse than chance."""

    def solve(self, expertise: Floats | None) -> Floats:
        """theta for an expertise, with an l2 that is chosen if it is time to."""
        if self.choice.is_due:
            return self.choose(expertise)
        systems = self.systems(expertise, folds=False)
        if self._factor is None or not systems.lasting:
            self._factor = Factor.of(systems.grams()[0], self.choice.l2, intercept=self.data.rows.intercept)
        self.rank = self._factor.rank
        return self._factor.solve(systems.crosses()[0])

    def choose(self, expertise: Floats | None) -> Floats:
        """theta with the l2 that has the smallest held-out error for one consensus."""
        systems, training = self.systems(expertise, folds=True), leave_one_out(self.n_folds)
        if self._spectrum is None or not systems.lasting:
            self._spectrum = Spectrum.of(systems.grams(training), intercept=self.data.rows.intercept)
        theta = self._spectrum.solve(systems.crosses(training), self.choice.l2s)
        best = self.choice.take(self._errors(expertise, theta[:-1]))
        self.rank = self._spectrum.rank(self.choice.l2)
        return theta[-1, :, best]

    def _errors(self, expertise: Floats | None, theta: Floats) -> Floats:
        held_out = self.systems(expertise, folds=True, held_out=True)
        return held_out_errors(held_out.grams(), held_out.crosses(), theta, self.data.targets.factor)

    def fold_models(self, expertise: Floats) -> Floats:
        """Models of all folds but one, of shape (n_folds, n_columns, n_targets)."""
        systems, training = self.systems(expertise, folds=True), leave_one_out(self.n_folds)
        crosses = systems.crosses(training)
        if self._spectrum is not None and systems.lasting:  # was needed to choose l2
            return self._spectrum.solve(crosses, np.array([self.choice.l2]))[:-1, :, 0]
        grams, average = systems.grams(training), systems.average(training)
        # An example counts relative to the average of all folds, as in the model of all.
        systems_of_folds = zip(grams[:-1], crosses[:-1], self.choice.l2 * average[-1] / average[:-1], strict=True)
        factor_of = partial(Factor.of, intercept=self.data.rows.intercept)
        return np.array([factor_of(gram, float(l2)).solve(cross) for gram, cross, l2 in systems_of_folds])

    def held_out_error(self, expertise: Floats, theta: Floats) -> Floats:
        """The error of the models of a given l2, as an array of one."""
        return self._errors(expertise, theta[:, :, np.newaxis])


@dataclass(eq=False)
class SumsProblem(Problem):
    """A problem solved from sums per fold: no round reads a row.

    `easy` are sums weighted by easiness, `plain` sums that are not, which are needed to choose l2 and for weights
    between easiness and equal ones.
    """

    easy: Statistics
    plain: Statistics | None

    @cached_property
    def sums(self) -> Statistics:
        """With the weights of this round, one cell per fold."""
        share = self.weights.share
        if share == 1:
            return self.easy
        assert self.plain is not None
        return self.plain if share == 0 else self.easy.blend(self.plain, share)

    @cached_property
    def whole(self) -> Statistics:
        """The sums of all folds together."""
        return self.sums if self.sums.n_cells == 1 else self.sums.combine(np.ones((1, self.sums.n_cells)))

    @cached_property
    def precision(self) -> Precision:
        sums = self.whole
        return Precision(sums.mass[0], sums.answered[0], sums.present[0], self.data.targets.span)

    @property
    def n_folds(self) -> int:
        return self.sums.n_cells

    def systems(self, expertise: Floats | None, *, folds: bool, held_out: bool = False) -> Systems:
        sums = self.plain if held_out else self.sums if folds else self.whole
        assert sums is not None
        return sums.systems(expertise)

    def squared_errors(self, theta: Floats) -> Floats:
        return self.whole.squared_errors(theta)

    def agreement(self, theta: Floats) -> Floats:
        return self.whole.agreement(theta)


@dataclass(eq=False)
class RowsProblem(Problem):
    """A problem whose every round reads the rows."""

    folds: Folds

    @cached_property
    def precision(self) -> Precision:
        labels, sample_weight, weight = self.data.labels, self.weights.sample_weight, self.weights.product
        answered = labels._sum_in_blocks(lambda at, example: sample_weight[example])
        mass = labels._sum_in_blocks(lambda at, example: weight[example])
        return Precision(mass, answered, sample_weight.sum(), self.data.targets.span)

    @property
    def n_folds(self) -> int:
        return self.folds.n_folds

    def systems(self, expertise: Floats | None, *, folds: bool, held_out: bool = False) -> Systems:
        target, total = self.data.consensus(expertise)
        count, n_cells = self.weights.sample_weight, self.n_folds if folds else 1
        cell = self.folds.fold if folds else np.zeros(len(total), dtype=np.intp)
        weight = (count if held_out else self.weights.product) * total
        gram, cross = row_sums(self.data.rows, weight, target.__getitem__, target.shape[1], cell, n_cells)
        check_squares(gram)
        present, labelled = (sum_by(cell, part, n_cells) for part in (count, count * total))
        return Systems(gram, cross, labelled, present)

    def squared_errors(self, theta: Floats) -> Floats:
        labels, targets = self.data.labels, self.data.targets
        scores, weight = self.data.rows.scores(theta), self.weights.product

        def squared(at: slice, example: Positions) -> Floats:
            return weight[example] * targets.squared(targets.of_values(labels.values[at]) - scores[example])

        return labels._sum_in_blocks(squared)

    def agreement(self, theta: Floats) -> Floats:
        return label_agreement(self.data, self.data.labels, self.data.rows.scores(theta), self.weights.product)


@dataclass(eq=False)
class IterativeProblem(RowsProblem):
    """Rows that are too wide for a gram matrix: each solution starts from the latest."""

    latest: Floats | None = None

    def solve(self, expertise: Floats | None) -> Floats:
        if self.choice.is_due:
            self.choice.take(self._errors_of_l2s(expertise))
        rows = self.data.rows
        weight, target = self._weighted(expertise)
        self.latest = solve_iteratively(rows, weight, target, self.choice.l2, self.latest)
        self.rank = rows.n_features if self.choice.l2 > 0 else min(rows.n_features, rows.n_examples - rows.intercept)
        return self.latest

    def _weighted(self, expertise: Floats | None) -> tuple[Floats, Floats]:
        """The weights of the rows, relative to the average example, and their consensus."""
        target, total = self.data.consensus(expertise)
        return self.weights.product * (total / np.average(total, weights=self.weights.sample_weight)), target

    def _errors_of_l2s(self, expertise: Floats | None) -> Floats:
        """The held-out error of every l2: from the largest to the smallest, each solution the start of the next."""
        (target, total), l2s = self.data.consensus(expertise), self.choice.l2s
        errors, fold, count = np.zeros(len(l2s)), self.folds.fold, self.weights.sample_weight
        held_out = self._held_out_weight(total)
        for k in range(self.n_folds):
            training, at, theta = fold != k, np.flatnonzero(fold == k), None
            average = np.average(total[training], weights=count[training])
            weight = np.where(training, self.weights.product * (total / average), 0.0)
            for s in np.argsort(-l2s):
                theta = solve_iteratively(self.data.rows, weight, target, float(l2s[s]), theta, tol=1e-6)
                differences = target[at] - self.data.rows.scores(theta, at)
                errors[s] += held_out[at] @ self.data.targets.squared(differences)
        return errors

    def _held_out_weight(self, total: Floats) -> Floats:
        """What held-out rows count, relative to the average one of their fold."""
        fold, count = self.folds.fold, self.weights.sample_weight
        return count * total / (np.bincount(fold, count * total) / np.bincount(fold, count))[fold]

    def fold_models(self, expertise: Floats) -> Floats:
        weight, target = self._weighted(expertise)
        held_in = (np.where(self.folds.fold == k, 0.0, weight) for k in range(self.n_folds))
        return np.array(
            [solve_iteratively(self.data.rows, part, target, self.choice.l2, self.latest) for part in held_in]
        )

    def held_out_error(self, expertise: Floats, theta: Floats) -> Floats:
        target, total = self.data.consensus(expertise)
        squared = self.data.targets.squared
        differences = squared(target - self.data.rows.fold_scores(theta, self.folds.fold)) - squared(target)
        return np.array([self._held_out_weight(total) @ differences])


def label_agreement(data: RidgeData, labels: CrowdLabels, scores: Floats, weight: Floats) -> Floats:
    """Covariance of every annotator's ratings with scores of the examples, of shape (n_examples, 1)."""
    weight, ratings = weight[labels.example_index], labels.values - data.targets.centre
    scored = scores[labels.example_index, 0]
    products = labels._sum_per_annotator(weight * ratings * scored)
    if not data.rows.intercept:
        return products
    mass = np.maximum(labels._sum_per_annotator(weight), np.finfo(np.float64).tiny)
    return products - labels._sum_per_annotator(weight * ratings) * labels._sum_per_annotator(weight * scored) / mass
