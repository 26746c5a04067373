"""l2 chosen over folds: by the held-out squared error against the present consensus, for every l2 at once.

The held-out error is not weighted by easiness, as in the paper's experiments. It is weighted by class if the model is,
or a rare class would have no say in the choice. It is a quadratic form in the sums of the held-out fold, so nothing is
predicted while tuning.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from crowdwise.arrays import Floats
from crowdwise.crowd.flags import Precision
from crowdwise.ridge.problem import EXACT_COLUMNS, RowsProblem, SumsProblem, Task
from crowdwise.ridge.solver import Spectrum, solve_iteratively
from crowdwise.ridge.statistics import Statistics, row_sums, values_from
from crowdwise.ridge.targets import Targets


def leave_one_out(n_folds: int) -> Floats:
    """Which folds each training set is made of; the last one is made of all."""
    return np.vstack([1 - np.eye(n_folds), np.ones(n_folds)])


def held_out_errors(gram: Floats, cross: Floats, theta: Floats, factor: float) -> Floats:
    """Sums of squared errors of held-out folds for every l2, up to a constant that no l2 changes.

    Parameters
    ----------
    gram : ndarray of shape (n_folds, n_columns, n_columns)
        Of the held-out rows.
    cross : ndarray of shape (n_folds, n_columns, n_targets)
        Of the held-out rows with the consensus.
    theta : ndarray of shape (n_folds, n_columns, n_l2s, n_targets)
        Models of the other folds.
    factor : float
        What squared differences are multiplied with.

    Returns
    -------
    errors : ndarray of shape (n_l2s,)
    """
    scored = (gram @ theta.reshape(*theta.shape[:2], -1)).reshape(theta.shape)
    return factor * ((scored - 2 * cross[:, :, np.newaxis, :]) * theta).sum(axis=(0, 1, 3))


@dataclass(kw_only=True)
class Tuned:
    """What is chosen over folds: anew in every round, or in the first one only.

    Parameters
    ----------
    targets : Targets
        How labels become numbers.
    intercept : bool
        Whether the last column is the intercept's.
    l2s : ndarray of shape (n_l2s,)
        To choose from.
    every_round : bool
        Whether l2 is chosen in every round.
    """

    targets: Targets
    intercept: bool
    l2s: Floats
    every_round: bool
    l2: float = field(default=np.nan, init=False)
    fold_theta: Floats = field(default_factory=lambda: np.empty(0), init=False)
    errors: Floats = field(default_factory=lambda: np.empty(0), init=False)

    def after(self, last: Self | None) -> Self:
        """The same, knowing what was chosen in the round before."""
        if last is not None:
            self.l2, self.errors = last.l2, last.errors
        return self

    def _choose(self, spectrum: Spectrum, cross: Floats, held_out: tuple[Floats, Floats], *, fixed: bool) -> Floats:
        """theta of all folds with the best l2, from the systems of the training sets; the last set is all folds."""
        theta = spectrum.solve(cross, np.array([self.l2]) if fixed else self.l2s)
        errors = held_out_errors(*held_out, theta[:-1], self.targets.factor)
        best = int(errors.argmin())
        if not fixed:
            self.l2, self.errors = float(self.l2s[best]), errors
        self.fold_theta = theta[:-1, :, best]
        return theta[-1, :, best]


@dataclass(kw_only=True)
class TunedSums(Tuned):
    """A problem solved from sums per fold.

    Parameters
    ----------
    folds : Statistics
        Sums weighted by easiness, a cell a fold.
    held_out : Statistics
        Sums that are not, a cell a fold.
    """

    folds: Statistics
    held_out: Statistics

    @cached_property
    def _training(self) -> Statistics:
        return self.folds.combine(leave_one_out(len(self.folds.present)))

    @cached_property
    def _only_spectrum(self) -> Spectrum:
        return Spectrum.of(self._training.gram[:, 0], intercept=self.intercept)

    @cached_property
    def whole(self) -> SumsProblem:
        """The problem of all folds together, its l2 not chosen yet."""
        everything = self.folds.combine(np.ones((1, len(self.folds.present))))
        return SumsProblem(everything, self.targets, self.intercept, 0.0)

    def with_chosen_l2(self) -> SumsProblem:
        """The problem of all folds together, with the l2 that was chosen last."""
        return replace(self.whole, l2=self.l2)

    @property
    def precision(self) -> Precision:
        return self.whole.precision

    def solve(self, expertise: Floats | None) -> Floats:
        if expertise is None:
            (gram, cross), held_out = self._training.first_system(), self.held_out.first_system()
        else:
            (gram, cross), held_out = self._training.system(expertise), self.held_out.system(expertise)
        complete = self._training.gram.shape[1] == 1
        spectrum = self._only_spectrum if complete else Spectrum.of(gram, intercept=self.intercept)
        return self._choose(spectrum, cross, held_out, fixed=expertise is not None and not self.every_round)

    def squared_errors(self, theta: Floats) -> Floats:
        return self.whole.squared_errors(theta)

    def roughness(self, theta: Floats) -> float:
        return self.whole.roughness(theta)

    def penalty_scale(self, expertise: Floats) -> float:
        return float(self.l2 * self.whole.statistics.average_voice(expertise)[0])


@dataclass(kw_only=True)
class TunedRows(Tuned):
    """A problem whose every round reads the rows, for weights of which no sums can be kept.

    Parameters
    ----------
    task : Task
        With the weights of its round.
    fold : ndarray of shape (n_examples,)
        The fold of each row.
    n_folds : int
        Number of folds.
    """

    task: Task
    fold: NDArray[np.int64]
    n_folds: int

    @cached_property
    def whole(self) -> RowsProblem:
        """The problem of all folds together, its l2 not chosen yet."""
        return RowsProblem(self.task, 0.0)

    def with_chosen_l2(self) -> RowsProblem:
        """The problem of all folds together, with the l2 that was chosen last."""
        return RowsProblem(self.task, self.l2)

    @property
    def precision(self) -> Precision:
        return self.whole.precision

    def solve(self, expertise: Floats | None) -> Floats:
        target, voice = self.whole.target(expertise)
        plain = self.task.sample_weight * voice
        answered, present = (np.bincount(self.fold, weight) for weight in (plain, self.task.sample_weight))
        training = leave_one_out(self.n_folds)

        def sums(weight: Floats, use: Floats) -> tuple[Floats, Floats]:
            """An example counts by the expertise that answered to it, relative to the average of its set."""
            gram, cross = row_sums(
                self.task.rows, weight, values_from(target), target.shape[1], self.fold, self.n_folds
            )
            average = (use @ answered / (use @ present))[:, np.newaxis, np.newaxis]
            return np.tensordot(use, gram, axes=1) / average, np.tensordot(use, cross, axes=1) / average

        gram, cross = sums(plain * self.task.weight, training)
        held_out = sums(plain, np.eye(self.n_folds))
        spectrum = Spectrum.of(gram, intercept=self.intercept)
        return self._choose(spectrum, cross, held_out, fixed=expertise is not None and not self.every_round)

    def squared_errors(self, theta: Floats) -> Floats:
        return self.whole.squared_errors(theta)

    def roughness(self, theta: Floats) -> float:
        return self.whole.roughness(theta)

    def penalty_scale(self, expertise: Floats) -> float:
        return self.with_chosen_l2().penalty_scale(expertise)


@dataclass(frozen=True)
class Choice:
    """An l2 chosen for one consensus, with the models that chose it."""

    l2: float
    errors: Floats
    fold_theta: Floats


def choose_l2(task: Task, expertise: Floats | None, fold: NDArray[np.int64], n_folds: int, l2s: Floats) -> Choice:
    """The l2 with the smallest held-out error for one consensus, from the rows themselves."""
    target, voice = RowsProblem(task, 0.0).target(expertise)
    plain = task.sample_weight * voice
    if task.rows.n_columns > EXACT_COLUMNS:
        return _choose_iteratively(task, target, plain, fold, n_folds, l2s)
    n_targets = target.shape[1]
    gram, cross = row_sums(task.rows, plain * task.weight, values_from(target), n_targets, fold, n_folds)
    training = leave_one_out(n_folds)[:-1]
    spectrum = Spectrum.of(np.tensordot(training, gram, axes=1), intercept=task.rows.intercept)
    theta = spectrum.solve(np.tensordot(training, cross, axes=1), l2s)
    held_out = row_sums(task.rows, plain, values_from(target), n_targets, fold, n_folds)
    errors = held_out_errors(*held_out, theta, task.targets.factor)
    best = int(errors.argmin())
    return Choice(float(l2s[best]), errors, theta[:, :, best])


def _choose_iteratively(
    task: Task, target: Floats, plain: Floats, fold: NDArray[np.int64], n_folds: int, l2s: Floats
) -> Choice:
    """The same without gram matrices: from the largest l2 to the smallest, each solution the start of the next."""
    errors = np.zeros(len(l2s))
    theta = np.empty((n_folds, len(l2s), task.rows.n_columns, target.shape[1]))
    for k in range(n_folds):
        weight = np.where(fold == k, 0.0, plain * task.weight)
        at = np.flatnonzero(fold == k)
        start = None
        for s in np.argsort(-l2s):
            start = solve_iteratively(task.rows, weight, target, float(l2s[s]), start, tol=1e-6)
            theta[k, s] = start
            differences = target[at] - task.rows.scores(start, at)
            errors[s] += plain[at] @ task.targets.squared(differences)
    best = int(errors.argmin())
    return Choice(float(l2s[best]), errors, theta[:, best].copy())
