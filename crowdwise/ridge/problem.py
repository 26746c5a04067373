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

import numpy as np

from crowdwise._arrays import Codes, Floats, Positions
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.ridge.collect import row_sums, values_from
from crowdwise.ridge.data import RidgeData, is_wide
from crowdwise.ridge.rounds import Precision, Weights
from crowdwise.ridge.solver import Factor, Spectrum, held_out_errors, leave_one_out, solve_iteratively
from crowdwise.ridge.statistics import Statistics
from crowdwise.rows.features import Rows, check_squares
from crowdwise.weights.folds import Folds


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

    def solve(self, spectrum: Spectrum, crosses: Floats, held_out: tuple[Floats, Floats], factor: float) -> Floats:
        """theta of all folds with the best l2, from systems of all folds but one and sums over the one held out."""
        theta = spectrum.solve(crosses, self.l2s)
        return theta[-1, :, self.take(held_out_errors(*held_out, theta[:-1], factor))]


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
    # With complete labels the same in every round.
    _factor: Factor | None = field(default=None, init=False)
    _spectrum: Spectrum | None = field(default=None, init=False)

    @property
    def l2(self) -> float:
        return self.choice.l2

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
        intercept, complete = self.data.rows.intercept, self.sums.is_complete
        if not self.choice.is_due:
            if self._factor is None or not complete:
                self._factor = Factor.of(self.whole.grams(expertise)[0], self.choice.l2, intercept=intercept)
            self.rank = self._factor.rank
            return self._factor.solve(self.whole.crosses(expertise)[0])
        assert self.plain is not None
        training = leave_one_out(self.sums.n_cells)
        if self._spectrum is None or not complete:
            self._spectrum = Spectrum.of(self.sums.grams(expertise, training), intercept=intercept)
        held_out = self.plain.grams(expertise), self.plain.crosses(expertise)
        crosses = self.sums.crosses(expertise, training)
        theta = self.choice.solve(self._spectrum, crosses, held_out, self.data.targets.factor)
        self.rank = self._spectrum.rank(self.choice.l2)
        return theta

    def squared_errors(self, theta: Floats) -> Floats:
        """Weighted sums of squared errors, per annotator."""
        return self.whole.squared_errors(theta)

    def agreement(self, theta: Floats) -> Floats:
        """Covariance of every annotator's labels with the scores; below zero is worse than chance."""
        return self.whole.agreement(theta)

    def fold_models(self, expertise: Floats) -> Floats:
        """Models of all folds but one, of shape (n_folds, n_columns, n_targets)."""
        training = leave_one_out(self.sums.n_cells)
        crosses = self.sums.crosses(expertise, training)
        if self._spectrum is not None and self.sums.is_complete:  # was needed to choose l2
            return self._spectrum.solve(crosses, np.array([self.choice.l2]))[:-1, :, 0]
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


@dataclass(eq=False)
class RowsProblem:
    """A problem whose every round reads the rows.

    If they are too wide for a gram matrix, each solution starts from the `latest`.
    """

    data: RidgeData
    folds: Folds
    choice: L2Choice
    weights: Weights
    latest: Floats | None = None
    rank: int = 0

    @property
    def l2(self) -> float:
        return self.choice.l2

    def at(self, weights: Weights) -> RowsProblem:
        """The same problem with the weights of a round."""
        return self if weights is self.weights else replace(self, weights=weights)

    @cached_property
    def precision(self) -> Precision:
        labels, sample_weight, weight = self.data.labels, self.weights.sample_weight, self.weights.product
        answered = labels._sum_in_blocks(lambda at, example: sample_weight[example])
        mass = labels._sum_in_blocks(lambda at, example: weight[example])
        return Precision.of(mass, answered, sample_weight.sum(), self.data.targets.span)

    def solve(self, expertise: Floats | None) -> Floats:
        """theta for an expertise, with an l2 that is chosen if it is time to."""
        target, total = self.data.consensus(expertise)
        rows = self.data.rows
        if self.choice.is_due and not is_wide(rows):
            self.latest = self._choose(target, total)
            return self.latest
        if self.choice.is_due:
            self._choose_iteratively(target, total)
        average = np.average(total, weights=self.weights.sample_weight)
        weight, l2 = self.weights.product * (total / average), self.choice.l2
        if is_wide(rows):
            self.latest = solve_iteratively(rows, weight, target, l2, self.latest)
            self.rank = rows.n_features if l2 > 0 else min(rows.n_features, rows.n_examples - rows.intercept)
            return self.latest
        gram, cross = row_sums(rows, weight, values_from(target), target.shape[1])
        factor = Factor.of(gram[0], l2, intercept=rows.intercept)
        self.latest, self.rank = factor.solve(cross[0]), factor.rank
        return self.latest

    def _choose(self, target: Floats, total: Floats) -> Floats:
        """theta with the l2 that has the smallest held-out error for one consensus."""
        rows, use = self.data.rows, leave_one_out(self.folds.n_folds)
        gram, cross = self._fold_sums(target, self.weights.product * total)
        average = self._averages(total, use)[:, np.newaxis, np.newaxis]
        spectrum = Spectrum.of(np.tensordot(use, gram, axes=1) / average, intercept=rows.intercept)
        held_out = self._fold_sums(target, self._held_out_weight(total))
        crosses = np.tensordot(use, cross, axes=1) / average
        theta = self.choice.solve(spectrum, crosses, held_out, self.data.targets.factor)
        self.rank = spectrum.rank(self.choice.l2)
        return theta

    def _choose_iteratively(self, target: Floats, total: Floats) -> None:
        """Without gram matrices: from the largest l2 to the smallest, each solution the start of the next."""
        errors, held_out = np.zeros(len(self.choice.l2s)), self._held_out_weight(total)
        for k, average in enumerate(self._averages(total, leave_one_out(self.folds.n_folds)[:-1])):
            weight = np.where(self.folds.fold == k, 0.0, self.weights.product * (total / average))
            at = np.flatnonzero(self.folds.fold == k)
            start = None
            for s in np.argsort(-self.choice.l2s):
                start = solve_iteratively(self.data.rows, weight, target, float(self.choice.l2s[s]), start, tol=1e-6)
                differences = target[at] - self.data.rows.scores(start, at)
                errors[s] += held_out[at] @ self.data.targets.squared(differences)
        self.choice.take(errors)

    def _fold_sums(self, target: Floats, weight: Floats) -> tuple[Floats, Floats]:
        return row_sums(
            self.data.rows, weight, values_from(target), target.shape[1], self.folds.fold, self.folds.n_folds
        )

    def _averages(self, total: Floats, use: Floats) -> Floats:
        """The expertise of all who labelled the average example, per set of folds."""
        weight = self.weights.sample_weight
        labelled = np.bincount(self.folds.fold, weight * total, minlength=self.folds.n_folds)
        present = np.bincount(self.folds.fold, weight, minlength=self.folds.n_folds)
        return (use @ labelled) / (use @ present)

    def _held_out_weight(self, total: Floats) -> Floats:
        average = self._averages(total, np.eye(self.folds.n_folds))
        return self.weights.sample_weight * total / average[self.folds.fold]

    def fold_models(self, expertise: Floats) -> Floats:
        """Models of all folds but one, of shape (n_folds, n_columns, n_targets)."""
        target, total = self.data.consensus(expertise)
        weight = self.weights.product * (total / np.average(total, weights=self.weights.sample_weight))
        return fold_models(self.data.rows, weight, target, self.choice.l2, self.folds.fold, self.latest)

    def held_out_error(self, expertise: Floats, theta: Floats) -> Floats:
        """The error of the models of a given l2, as an array of one."""
        target, total = self.data.consensus(expertise)
        squared = self.data.targets.squared
        differences = squared(target - self.data.rows.fold_scores(theta, self.folds.fold)) - squared(target)
        return np.array([self._held_out_weight(total) @ differences])

    def squared_errors(self, theta: Floats) -> Floats:
        """Weighted sums of squared errors, per annotator."""
        labels, targets = self.data.labels, self.data.targets
        scores, weight = self.data.rows.scores(theta), self.weights.product

        def squared(at: slice, example: Positions) -> Floats:
            return weight[example] * targets.squared(targets.of_values(labels.values[at]) - scores[example])

        return labels._sum_in_blocks(squared)

    def agreement(self, theta: Floats) -> Floats:
        """Covariance of every annotator's labels with the scores; below zero is worse than chance."""
        return label_agreement(self.data, self.data.labels, self.data.rows.scores(theta), self.weights.product)


def label_agreement(data: RidgeData, labels: CrowdLabels, scores: Floats, weight: Floats) -> Floats:
    """Covariance of every annotator's ratings with scores of the examples, of shape (n_examples, 1)."""
    weight, ratings = weight[labels.example_index], labels.values - data.targets.centre
    scored = scores[labels.example_index, 0]
    products = labels._sum_per_annotator(weight * ratings * scored)
    if not data.rows.intercept:
        return products
    mass = np.maximum(labels._sum_per_annotator(weight), np.finfo(np.float64).tiny)
    return products - labels._sum_per_annotator(weight * ratings) * labels._sum_per_annotator(weight * scored) / mass


def fold_models(
    rows: Rows,
    weight: Floats,
    target: Floats,
    l2: float,
    fold: Codes,
    start: Floats | None = None,
    *,
    tol: float = 1e-10,
) -> Floats:
    """Models of all folds but one, of shape (n_folds, n_columns, n_targets): by one pass over the rows.

    Too many columns for a gram matrix are solved iteratively, from a `start`.
    """
    n_folds = int(fold.max()) + 1
    if is_wide(rows):
        held_in = (np.where(fold == k, 0.0, weight) for k in range(n_folds))
        return np.array([solve_iteratively(rows, part, target, l2, start) for part in held_in])
    sums = row_sums(rows, weight, values_from(target), target.shape[1], fold, n_folds)
    check_squares(sums[0])
    systems = zip(*(np.tensordot(leave_one_out(n_folds)[:-1], cells, axes=1) for cells in sums), strict=True)
    return np.array([Factor.of(gram, l2, intercept=rows.intercept).solve(cross) for gram, cross in systems])
