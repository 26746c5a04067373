"""The same problem for more annotators or features than sums can be kept for: every round reads the rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from crowdwise.arrays import Codes, Floats, Positions
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.ridge.collect import row_sums, values_from
from crowdwise.ridge.data import RidgeData, Weights
from crowdwise.ridge.features import Rows
from crowdwise.ridge.precision import Precision
from crowdwise.ridge.problem import L2Choice
from crowdwise.ridge.solver import Factor, Spectrum, held_out_errors, leave_one_out, solve_iteratively


@dataclass(eq=False)
class RowsProblem:
    """A problem whose every round reads the rows.

    If it is `iterative`, there are too many columns for a gram matrix, and each solution starts from the `latest`.
    """

    data: RidgeData
    fold: Codes
    n_folds: int
    choice: L2Choice
    iterative: bool
    weights: Weights
    latest: Floats | None = None
    rank: int = 0

    def at(self, weights: Weights) -> RowsProblem:
        """The same problem with the weights of a round."""
        return self if weights is self.weights else replace(self, weights=weights)

    @cached_property
    def precision(self) -> Precision:
        labels, sample_weight, weight = self.data.labels, self.weights.sample_weight, self.weights.product
        answered = labels.sum_in_blocks(lambda at, example: sample_weight[example])
        mass = labels.sum_in_blocks(lambda at, example: weight[example])
        return Precision.of(mass, answered, sample_weight.sum(), self.data.targets.span)

    def solve(self, expertise: Floats | None) -> Floats:
        """theta for an expertise, with an l2 that is chosen if it is time to."""
        target, total = self.data.consensus(expertise)
        rows = self.data.rows
        if self.choice.is_due and not self.iterative:
            self.latest = self._choose(target, total)
            return self.latest
        if self.choice.is_due:
            self._choose_iteratively(target, total)
        average = np.average(total, weights=self.weights.sample_weight)
        weight, l2 = self.weights.product * (total / average), self.choice.l2
        if self.iterative:
            self.latest = solve_iteratively(rows, weight, target, l2, self.latest)
            self.rank = rows.n_features if l2 > 0 else min(rows.n_features, rows.n_examples - rows.intercept)
            return self.latest
        gram, cross = row_sums(rows, weight, values_from(target), target.shape[1])
        factor = Factor.of(gram[0], l2, intercept=rows.intercept)
        self.latest, self.rank = factor.solve(cross[0]), factor.rank
        return self.latest

    def _choose(self, target: Floats, total: Floats) -> Floats:
        """theta with the l2 that has the smallest held-out error for one consensus."""
        rows, use = self.data.rows, leave_one_out(self.n_folds)
        gram, cross = self._fold_sums(target, self.weights.product * total)
        average = self._averages(total, use)[:, np.newaxis, np.newaxis]
        spectrum = Spectrum.of(np.tensordot(use, gram, axes=1) / average, intercept=rows.intercept)
        theta = spectrum.solve(np.tensordot(use, cross, axes=1) / average, self.choice.l2s)
        held_out = self._fold_sums(target, self._held_out_weight(total))
        best = self.choice.take(held_out_errors(*held_out, theta[:-1], self.data.targets.factor))
        self.rank = spectrum.rank(self.choice.l2)
        return theta[-1, :, best]

    def _choose_iteratively(self, target: Floats, total: Floats) -> None:
        """Without gram matrices: from the largest l2 to the smallest, each solution the start of the next."""
        errors, held_out = np.zeros(len(self.choice.l2s)), self._held_out_weight(total)
        for k, average in enumerate(self._averages(total, leave_one_out(self.n_folds)[:-1])):
            weight = np.where(self.fold == k, 0.0, self.weights.product * (total / average))
            at = np.flatnonzero(self.fold == k)
            start = None
            for s in np.argsort(-self.choice.l2s):
                start = solve_iteratively(self.data.rows, weight, target, float(self.choice.l2s[s]), start, tol=1e-6)
                differences = target[at] - self.data.rows.scores(start, at)
                errors[s] += held_out[at] @ self.data.targets.squared(differences)
        self.choice.take(errors)

    def _fold_sums(self, target: Floats, weight: Floats) -> tuple[Floats, Floats]:
        return row_sums(self.data.rows, weight, values_from(target), target.shape[1], self.fold, self.n_folds)

    def _averages(self, total: Floats, use: Floats) -> Floats:
        """The expertise of all who labelled the average example, per set of folds."""
        weight = self.weights.sample_weight
        labelled = np.bincount(self.fold, weight * total, minlength=self.n_folds)
        present = np.bincount(self.fold, weight, minlength=self.n_folds)
        return (use @ labelled) / (use @ present)

    def _held_out_weight(self, total: Floats) -> Floats:
        average = self._averages(total, np.eye(self.n_folds))
        return self.weights.sample_weight * total / average[self.fold]

    def fold_models(self, expertise: Floats) -> Floats:
        """Models of all folds but one, of shape (n_folds, n_columns, n_targets)."""
        target, total = self.data.consensus(expertise)
        weight = self.weights.product * (total / np.average(total, weights=self.weights.sample_weight))
        if not self.iterative:
            return fold_models(self.data.rows, weight, target, self.choice.l2, self.fold)
        held_in = (np.where(self.fold == k, 0.0, weight) for k in range(self.n_folds))
        l2, begin = self.choice.l2, self.latest
        return np.array([solve_iteratively(self.data.rows, part, target, l2, begin) for part in held_in])

    def held_out_error(self, expertise: Floats, theta: Floats) -> Floats:
        """The error of the models of a given l2, as an array of one."""
        target, total = self.data.consensus(expertise)
        squared = self.data.targets.squared
        differences = squared(target - self.data.rows.fold_scores(theta, self.fold)) - squared(target)
        return np.array([self._held_out_weight(total) @ differences])

    def squared_errors(self, theta: Floats) -> Floats:
        """Weighted sums of squared errors, per annotator."""
        labels, targets = self.data.labels, self.data.targets
        scores, weight = self.data.rows.scores(theta), self.weights.product

        def squared(at: slice, example: Positions) -> Floats:
            return weight[example] * targets.squared(targets.of_values(labels.values[at]) - scores[example])

        return labels.sum_in_blocks(squared)

    def agreement(self, theta: Floats) -> Floats:
        """Covariance of every annotator's labels with the scores; below zero is worse than chance."""
        return label_agreement(self.data, self.data.labels, self.data.rows.scores(theta), self.weights.product)

    def penalty(self, expertise: Floats) -> float:
        """What the squared length of coefficients is penalised with."""
        answered = self.data.labels.sum_in_blocks(lambda at, example: self.weights.sample_weight[example])
        return float(self.choice.l2 * (answered @ expertise) / self.weights.sample_weight.sum())


def label_agreement(data: RidgeData, labels: CrowdLabels, scores: Floats, weight: Floats) -> Floats:
    """Covariance of every annotator's labels with scores of the examples, of shape (n_examples, n_targets)."""
    products, of_values, of_scores = label_products(data, labels, scores, weight)
    if not data.rows.intercept:
        return products
    mass = np.maximum(labels.sum_in_blocks(lambda at, example: weight[example]), np.finfo(np.float64).tiny)
    return products - (of_values * of_scores).sum(axis=1) / mass


def label_products(
    data: RidgeData, labels: CrowdLabels, scores: Floats, weight: Floats
) -> tuple[Floats, Floats, Floats]:
    """Weighted sums of labels times scores, of labels and of scores, per annotator; the last two per target."""

    def products(at: slice, example: Positions) -> Floats:
        return weight[example] * (data.targets.of_values(labels.values[at]) * scores[example]).sum(axis=1)

    def values(at: slice, example: Positions) -> Floats:
        return weight[example] * data.targets.of_values(labels.values[at])[:, t]

    def scored(at: slice, example: Positions) -> Floats:
        return weight[example] * scores[example, t]

    of_values, of_scores = np.empty((2, labels.n_annotators, data.targets.n_targets))
    for t in range(data.targets.n_targets):
        of_values[:, t], of_scores[:, t] = labels.sum_in_blocks(values), labels.sum_in_blocks(scored)
    return labels.sum_in_blocks(products), of_values, of_scores


def fold_models(rows: Rows, weight: Floats, target: Floats, l2: float, fold: Codes) -> Floats:
    """Models of all folds but one, by one pass over the rows; of shape (n_folds, n_columns, n_targets)."""
    n_folds = int(fold.max()) + 1
    sums = row_sums(rows, weight, values_from(target), target.shape[1], fold, n_folds)
    systems = zip(*(np.tensordot(leave_one_out(n_folds)[:-1], cells, axes=1) for cells in sums), strict=True)
    return np.array([Factor.of(gram, l2, intercept=rows.intercept).solve(cross) for gram, cross in systems])
