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
from typing import Literal, Protocol, Self

import numpy as np

from crowdwise.arrays import Array, Codes, Floats
from crowdwise.crowd.easiness import example_weights
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.ridge.features import Rows, RowSpace, check_finite, check_squares, row_space
from crowdwise.ridge.precision import Precision
from crowdwise.ridge.solver import Factor, Spectrum, held_out_errors, leave_one_out, solve_iteratively
from crowdwise.ridge.statistics import Statistics, collect, row_sums, values_from
from crowdwise.ridge.targets import Targets, majority_targets
from crowdwise.ridge.votes import Votes
from crowdwise.training_set import TrainingSet

Route = Literal["sums", "rows", "iterative"]

# Sums are kept per annotator while they take no more memory than this.
MEMORY_BUDGET = 2**29
# With more labels per example than this, a pass over the rows in every round is cheaper than sums per annotator.
_LABELS_PER_EXAMPLE = 25
# Up to this many columns a gram matrix is factorised; beyond, the solver iterates.
EXACT_COLUMNS = 3000


@dataclass(frozen=True, eq=False)
class RidgeData:
    """What is to be learnt from: the features and labels of a training set in the solver's terms.

    Parameters
    ----------
    training : TrainingSet
        Examples and annotators that take part.
    X : ndarray or sparse matrix
        Features of the examples that take part.
    rows : Rows
        The same as the solver sees them, or their coordinates.
    space : RowSpace or None
        How to come back from coordinates, if they are used.
    targets : Targets
        How labels become numbers.
    first : ndarray of shape (n_examples, n_targets)
        The first consensus.
    """

    training: TrainingSet
    X: Array
    rows: Rows
    space: RowSpace | None
    targets: Targets
    first: Floats
    _easiness: dict[float, Floats] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, training: TrainingSet, *, intercept: bool, init: str) -> RidgeData:
        """From checked examples; the first consensus is the "majority" vote or the "mean" of the labels."""
        X, core = training.rows, training.core
        targets = Targets.of(core, intercept=intercept)
        rows = Rows.of(X, intercept=intercept)
        if rows.is_sparse or rows.n_examples < rows.n_features:
            check_finite(training.X)
        elif len(training.others):
            check_finite(training.X[training.others], training.others)
        space = row_space(rows)
        if init == "majority":
            first = majority_targets(core, targets)
        else:
            first = Votes.of(core, np.ones(core.n_annotators)).mean_targets(targets)
        return cls(training, X, rows if space is None else space.rows, space, targets, first)

    @property
    def labels(self) -> CrowdLabels:
        """Of the examples and annotators that take part."""
        return self.training.core

    @property
    def classes(self) -> Array:
        """Of labels that are known to have some."""
        assert self.labels.classes is not None
        return self.labels.classes

    @property
    def original(self) -> Rows:
        """The features as the solver would see them without coordinates."""
        return self.rows if self.space is None else self.space.original

    def easiness(self, steepness: float) -> Floats:
        """The weights that come from disagreement."""
        if steepness not in self._easiness:
            self._easiness[steepness] = example_weights(self.training.core_disagreement, steepness)
        return self._easiness[steepness]

    def consensus(self, expertise: Floats | None) -> tuple[Floats, Floats]:
        """The consensus of the labels, and the expertise of all who labelled each example."""
        votes = Votes.of(self.labels, np.ones(self.labels.n_annotators) if expertise is None else expertise)
        return self.first if expertise is None else votes.mean_targets(self.targets), votes.total

    def sums(self, easiness: Floats | None = None, cell: Codes | None = None, n_cells: int = 1) -> Statistics:
        """The sums of one pass over the rows."""
        sums = collect(
            self.rows,
            self.labels,
            self.targets,
            first=self.first,
            easiness=easiness,
            sample_weight=self.training.sample_weight,
            cell=cell,
            n_cells=n_cells,
        )
        if not np.isfinite(sums.gram).all():
            check_finite(self.training.X)
            check_squares(sums.gram)
        return sums

    def to_features(self, theta: Floats) -> tuple[Floats, Floats]:
        """coef of shape (n_targets, n_features) and intercept of shape (n_targets,) from a solution."""
        original = self.original
        theta = theta if self.space is None else self.space.to_features(theta)
        coef = theta[: original.n_features]
        offset = theta[original.n_features] if original.intercept else np.zeros(theta.shape[1])
        return coef.T, offset - original.shift @ coef + self.targets.centre

    def roughness(self, theta: Floats) -> float:
        """The squared length of the coefficients, which l2 penalises."""
        return float(self.targets.squared((theta[:-1] if self.rows.intercept else theta).T).sum())


def choose_route(data: RidgeData, n_cells: int, *, needs_rows: bool) -> Route:
    """How it is solved: "sums" (one pass), "rows" (a pass per round) or "iterative" (no gram matrix)."""
    if data.rows.n_columns > EXACT_COLUMNS:
        return "iterative"
    return "rows" if needs_rows or not sums_are_cheap(data, n_cells) else "sums"


def sums_are_cheap(data: RidgeData, n_cells: int) -> bool:
    """Whether sums can be kept for every annotator and cell, and cost less than a pass per round."""
    many = data.labels.n_labels > _LABELS_PER_EXAMPLE * len(data.labels)
    return data.labels.is_complete or (fits_in_memory(data, n_cells) and not many)


def fits_in_memory(data: RidgeData, n_cells: int) -> bool:
    """Whether sums can be kept for this many cells."""
    labels, n_columns = data.labels, data.rows.n_columns
    n_blocks = 1 if labels.is_complete else labels.n_annotators
    n_numbers = n_cells * n_columns * (n_blocks * n_columns + labels.n_annotators * data.targets.n_targets)
    return 8 * n_numbers <= MEMORY_BUDGET


@dataclass(frozen=True, eq=False)
class Weights:
    """The weights of the examples in one round.

    Parameters
    ----------
    data : RidgeData
        What is to be learnt from.
    steepness : float
        How fast easiness falls with disagreement.
    sample_weight : ndarray of shape (n_examples,)
        How often each example counts, times the weight of its class.
    given : ndarray of shape (n_examples,), default=None
        What the curriculum gave, if it is not easiness or between easiness and equal weights.
    share : float, default=1.0
        How much easiness counts; the rest of the weight is the same for all.
    class_weight : ndarray of shape (n_classes,), default=None
        What each class counted.
    """

    data: RidgeData
    steepness: float
    sample_weight: Floats
    given: Floats | None = None
    share: float = 1.0
    class_weight: Floats | None = None

    @cached_property
    def example(self) -> Floats:
        """The weight of every example, sample weights aside."""
        if self.given is not None:
            return self.given
        easiness = self.data.easiness(self.steepness)
        return easiness if self.share == 1 else self.share * easiness + (1 - self.share)

    @property
    def product(self) -> Floats:
        """Sample weights included."""
        return self.example * self.sample_weight


@dataclass(eq=False)
class L2Choice:
    """The l2 of a fit: given, chosen once, or chosen in every round.

    Parameters
    ----------
    l2s : ndarray of shape (n_l2s,)
        To choose from.
    every_round : bool
        Whether to choose in every round, or for the first consensus only.
    """

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


@dataclass(eq=False)
class RowsProblem:
    """A problem whose every round reads the rows: for more annotators or features than sums can be kept for.

    Parameters
    ----------
    data : RidgeData
        What is to be learnt from.
    fold : ndarray of shape (n_examples,)
        The fold of each row.
    n_folds : int
        Number of folds.
    choice : L2Choice
        The l2.
    iterative : bool
        Whether there are too many columns for a gram matrix.
    weights : Weights
        Of this round.
    latest : ndarray of shape (n_columns, n_targets) or None
        The last solution, from which the next iteration starts.
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
        labels, weights = self.data.labels, self.weights
        answered = labels.sum_per_annotator(weights.sample_weight[labels.example_index])
        mass = labels.sum_per_annotator(self._label_weight)
        return Precision.of(mass, answered, weights.sample_weight.sum(), self.data.targets.span)

    @cached_property
    def _label_weight(self) -> Floats:
        return self.weights.product[self.data.labels.example_index]

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
        own = self.weights.sample_weight
        labelled, present = (np.bincount(self.fold, weight, minlength=self.n_folds) for weight in (own * total, own))
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
        others = (np.where(self.fold == k, 0.0, weight) for k in range(self.n_folds))
        return np.array([
            solve_iteratively(self.data.rows, held_in, target, self.choice.l2, self.latest) for held_in in others
        ])  # fmt: skip

    def held_out_error(self, expertise: Floats, theta: Floats) -> Floats:
        """The error of the models of a given l2, as an array of one."""
        target, total = self.data.consensus(expertise)
        squared = self.data.targets.squared
        differences = squared(target - self.data.rows.fold_scores(theta, self.fold)) - squared(target)
        return np.array([self._held_out_weight(total) @ differences])

    def squared_errors(self, theta: Floats) -> Floats:
        """Weighted sums of squared errors, per annotator."""
        labels, targets = self.data.labels, self.data.targets
        scores = self.data.rows.scores(theta)[labels.example_index]
        squared = targets.squared(targets.of_values(labels.values) - scores)
        return labels.sum_per_annotator(self._label_weight * squared)

    def agreement(self, theta: Floats) -> Floats:
        """Covariance of every annotator's labels with the scores; below zero is worse than chance."""
        labels, weight = self.data.labels, self._label_weight
        scores = self.data.rows.scores(theta)[labels.example_index]
        values = self.data.targets.of_values(labels.values)
        together = labels.sum_per_annotator(weight * (values * scores).sum(axis=1))
        if not self.data.rows.intercept:
            return together
        apart = sum(
            labels.sum_per_annotator(weight * values[:, t]) * labels.sum_per_annotator(weight * scores[:, t])
            for t in range(values.shape[1])
        )
        return together - apart / np.maximum(self.precision.mass, np.finfo(np.float64).tiny)

    def penalty(self, expertise: Floats) -> float:
        """What the squared length of coefficients is penalised with."""
        total = self.data.labels.sum_per_example(expertise[self.data.labels.annotator_index])
        return float(self.choice.l2 * np.average(total, weights=self.weights.sample_weight))


def fold_models(rows: Rows, weight: Floats, target: Floats, l2: float, fold: Codes) -> Floats:
    """Models of all folds but one, by one pass over the rows.

    Parameters
    ----------
    rows : Rows
        The features.
    weight : ndarray of shape (n_examples,)
        Weights of the squared errors.
    target : ndarray of shape (n_examples, n_targets)
        What the scores should be.
    l2 : float
        Ridge strength.
    fold : ndarray of shape (n_examples,)
        The fold of each row.

    Returns
    -------
    theta : ndarray of shape (n_folds, n_columns, n_targets)
    """
    n_folds = int(fold.max()) + 1
    sums = row_sums(rows, weight, values_from(target), target.shape[1], fold, n_folds)
    systems = zip(*(np.tensordot(leave_one_out(n_folds)[:-1], cells, axes=1) for cells in sums), strict=True)
    return np.array([Factor.of(gram, l2, intercept=rows.intercept).solve(cross) for gram, cross in systems])
