"""The model step and the squared errors of the annotators, from sums or from the rows themselves.

Both kinds of problem answer the same questions, so the rounds do not know which one they turn: given the expertise
(None for the first consensus), what are the coefficients; given the coefficients, how wrong is each annotator?
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from crowdwise.arrays import Floats
from crowdwise.crowd.easiness import example_weights
from crowdwise.crowd.flags import Precision
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.ridge.ballot import Ballot
from crowdwise.ridge.features import Rows
from crowdwise.ridge.solver import Factor, solve_iteratively
from crowdwise.ridge.statistics import Statistics, collect, n_bytes_needed, row_sums, values_from
from crowdwise.ridge.targets import Targets

# Sums are kept per annotator while they take no more memory than this.
MEMORY_BUDGET = 2**29
# With more labels an example than this, a pass over the rows in every round is cheaper than sums per annotator.
_LABELS_PER_EXAMPLE = 25
# Up to this many columns a gram matrix is factorised; beyond, the solver iterates.
EXACT_COLUMNS = 3000


@dataclass(frozen=True)
class Task:
    """What is to be learnt: checked features and labels, every example and annotator with a label.

    Parameters
    ----------
    rows : Rows
        The features.
    labels : CrowdLabels
        The labels.
    targets : Targets
        How labels become numbers.
    first : ndarray of shape (n_examples, n_targets)
        The first consensus.
    sample_weight : ndarray of shape (n_examples,)
        The weights that the caller gave.
    disagreement : ndarray of shape (n_examples,)
        What the other weights come from.
    steepness : float
        How fast they fall with it.
    round_weight : ndarray of shape (n_examples,), default=None
        The weights of one round, if they are not those that come from disagreement.
    """

    rows: Rows
    labels: CrowdLabels
    targets: Targets
    first: Floats
    sample_weight: Floats
    disagreement: Floats
    steepness: float
    round_weight: Floats | None = None

    @cached_property
    def easiness(self) -> Floats:
        """The weights that come from disagreement."""
        return example_weights(self.disagreement, self.steepness)

    @property
    def weight(self) -> Floats:
        """The weights of this round, besides those that the caller gave."""
        return self.easiness if self.round_weight is None else self.round_weight

    def route(self, n_cells: int = 1) -> str:
        """How it is solved: "sums" (one pass), "rows" (a pass a round) or "iterative" (no gram matrix)."""
        if self.rows.n_columns > EXACT_COLUMNS:
            return "iterative"
        many = self.labels.n_labels > _LABELS_PER_EXAMPLE * len(self.labels)
        fits = n_bytes_needed(self.labels, self.rows.n_columns, n_cells) <= MEMORY_BUDGET
        return "sums" if self.labels.is_complete or (fits and not many) else "rows"

    def statistics(
        self, *, weighted: bool = True, cell: NDArray[np.integer] | None = None, n_cells: int = 1
    ) -> Statistics:
        """The sums of one pass over the rows."""
        return collect(
            self.rows,
            self.labels,
            self.targets,
            first=self.first,
            easiness=self.easiness if weighted else None,
            sample_weight=self.sample_weight,
            cell=cell,
            n_cells=n_cells,
        )


class Problem(Protocol):
    """What the rounds ask."""

    @property
    def precision(self) -> Precision: ...

    def solve(self, expertise: Floats | None) -> Floats: ...

    def squared_errors(self, theta: Floats) -> Floats: ...

    def roughness(self, theta: Floats) -> float: ...

    def penalty_scale(self, expertise: Floats) -> float: ...


@dataclass(frozen=True)
class SumsProblem:
    """A problem solved from sums over one cell: no round reads a row."""

    statistics: Statistics
    targets: Targets
    intercept: bool
    l2: float

    @cached_property
    def precision(self) -> Precision:
        sums = self.statistics
        return Precision.of(sums.mass[0], sums.answered[0], sums.present[0], self.targets.span)

    def factor(self, gram: Floats) -> Factor:
        """The factorised system; with complete labels the same one in every round."""
        if self.statistics.gram.shape[1] == 1:
            return self._only_factor
        return Factor.of(gram, self.l2, intercept=self.intercept)

    @cached_property
    def _only_factor(self) -> Factor:
        return Factor.of(self.statistics.gram[0, 0], self.l2, intercept=self.intercept)

    def solve(self, expertise: Floats | None) -> Floats:
        sums = self.statistics
        gram, cross = sums.first_system() if expertise is None else sums.system(expertise)
        return self.factor(gram[0]).solve(cross[0])

    def squared_errors(self, theta: Floats) -> Floats:
        return self.statistics.squared_errors(theta, self.targets.factor)

    def roughness(self, theta: Floats) -> float:
        return _roughness(theta, self.targets, intercept=self.intercept)

    def penalty_scale(self, expertise: Floats) -> float:
        return float(self.l2 * self.statistics.average_voice(expertise)[0])

    def agreement(self, theta: Floats) -> Floats:
        """Covariance of every annotator's labels with the scores; below zero is worse than chance."""
        sums = self.statistics
        together = np.einsum("lpt,pt->l", sums.cross[0], theta)
        if not self.intercept:
            return together
        scores = np.einsum("bp,pt->bt", sums.gram[0][:, :, -1], theta)
        return together - (scores * sums.cross[0][:, -1]).sum(axis=1) / sums.mass[0]

    def degrees_of_freedom(self, expertise: Floats) -> float:
        """How many parameters the fitted model really has."""
        return self.factor(self.statistics.system(expertise)[0][0]).degrees_of_freedom()


@dataclass
class RowsProblem:
    """A problem whose every round reads the rows: for more annotators or features than sums can be kept for."""

    task: Task
    l2: float
    latest: Floats | None = None

    @cached_property
    def precision(self) -> Precision:
        labels, task = self.task.labels, self.task
        example = labels.example_index
        mass = labels.sum_per_annotator((task.weight * task.sample_weight)[example])
        answered = labels.sum_per_annotator(task.sample_weight[example])
        return Precision.of(mass, answered, task.sample_weight.sum(), task.targets.span)

    def target(self, expertise: Floats | None) -> tuple[Floats, Floats]:
        """The consensus, and how much each example counts for the expertise that answered to it."""
        voice = np.ones(self.task.labels.n_annotators) if expertise is None else expertise
        ballot = Ballot.of(self.task.labels, voice)
        total = ballot.total
        consensus = self.task.first if expertise is None else ballot.mean_targets(self.task.targets)
        return consensus, total / np.average(total, weights=self.task.sample_weight)

    def solve(self, expertise: Floats | None) -> Floats:
        target, voice = self.target(expertise)
        weight = self.task.weight * self.task.sample_weight * voice
        self.latest = solve_rows(self.task.rows, weight, target, self.l2, self.latest)
        return self.latest

    def squared_errors(self, theta: Floats) -> Floats:
        labels, targets = self.task.labels, self.task.targets
        scores = self.task.rows.scores(theta)[labels.example_index]
        squared = targets.squared(targets.of_values(labels.values) - scores)
        return labels.sum_per_annotator(self._label_weight * squared)

    @property
    def _label_weight(self) -> Floats:
        return (self.task.weight * self.task.sample_weight)[self.task.labels.example_index]

    def agreement(self, theta: Floats) -> Floats:
        """Covariance of every annotator's labels with the scores; below zero is worse than chance."""
        labels, weight = self.task.labels, self._label_weight
        scores = self.task.rows.scores(theta)[labels.example_index]
        values = self.task.targets.of_values(labels.values)
        together = labels.sum_per_annotator(weight * (values * scores).sum(axis=1))
        if not self.task.rows.intercept:
            return together
        apart = sum(
            labels.sum_per_annotator(weight * values[:, t]) * labels.sum_per_annotator(weight * scores[:, t])
            for t in range(values.shape[1])
        )
        return together - apart / np.maximum(self.precision.mass, np.finfo(np.float64).tiny)

    def roughness(self, theta: Floats) -> float:
        return _roughness(theta, self.task.targets, intercept=self.task.rows.intercept)

    def penalty_scale(self, expertise: Floats) -> float:
        total = self.task.labels.sum_per_example(expertise[self.task.labels.annotator_index])
        return float(self.l2 * np.average(total, weights=self.task.sample_weight))


def _roughness(theta: Floats, targets: Targets, *, intercept: bool) -> float:
    """The squared length of the coefficients, which l2 penalises."""
    return float(targets.squared((theta[:-1] if intercept else theta).T).sum())


def solve_rows(rows: Rows, weight: Floats, target: Floats, l2: float, start: Floats | None) -> Floats:
    """theta for one weighted target per row, by one pass or by iterating."""
    if rows.n_columns > EXACT_COLUMNS:
        return solve_iteratively(rows, weight, target, l2, start)
    gram, cross = row_sums(rows, weight, values_from(target), target.shape[1])
    return Factor.of(gram[0], l2, intercept=rows.intercept).solve(cross[0])
