"""The tuned fit of every steepness, from one pass over the rows where sums can be kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv

from crowdwise.arrays import Floats
from crowdwise.crowd.easiness import example_weights
from crowdwise.exceptions import DataError
from crowdwise.ridge.courses import Blended, Pace, Reweighted, Steady
from crowdwise.ridge.features import check_finite, run_parallel
from crowdwise.ridge.fit import check_sums
from crowdwise.ridge.preparation import Prepared
from crowdwise.ridge.problem import MEMORY_BUDGET, RowsProblem, SumsProblem, Task
from crowdwise.ridge.rounds import Settled, alternate
from crowdwise.ridge.statistics import Statistics, n_bytes_needed
from crowdwise.ridge.tuning import Choice, TunedRows, TunedSums, choose_l2
from crowdwise.weights.criteria import ranking
from crowdwise.weights.folds import content_folds

# Cells of levels and folds beyond this many cost more in calls than they save in reading.
_MOST_CELLS = 2000


TunedCourse = Steady[TunedSums] | Blended[TunedSums] | Reweighted[TunedRows]


@dataclass(frozen=True)
class TunedFit:
    """The settled rounds of one steepness, with the l2 that was chosen."""

    task: Task
    problem: SumsProblem | RowsProblem
    settled: Settled
    route: str
    l2: float
    errors: Floats
    fold_theta: Floats
    class_weight: Floats | None = None

    @classmethod
    def of(cls, course: TunedCourse, settled: Settled, route: str) -> TunedFit:
        """After the last round of a course."""
        last = course.current
        whole = last.with_chosen_l2()
        return cls(course.task, whole, settled, route, last.l2, last.errors, last.fold_theta, course.class_weight)


@dataclass(frozen=True)
class Folds:
    """Which part each learnt example is held out with."""

    fold: NDArray[np.int64]
    n_folds: int

    @classmethod
    def of(cls, cv: Any, prepared: Prepared, seed: int) -> Folds:
        """Folds by content for a number, else those of a scikit-learn splitter or of given splits."""
        if isinstance(cv, int | np.integer):
            if cv < 2:
                raise ValueError(f"cv must be at least 2 folds; got {cv}.")
            fold = content_folds(prepared.original.X, int(cv), seed)
        else:
            fold = _folds_of_splitter(cv, prepared)
        if not np.bincount(fold).all():  # few different rows: some folds got none
            fold = np.unique(fold, return_inverse=True)[1]
        n_folds = int(fold.max()) + 1
        if n_folds < 2:
            raise DataError(
                "cross-validation needs at least 2 examples with different features; found "
                f"n_samples = {len(fold)} all alike or in one fold."
            )
        return cls(fold, n_folds)


def _folds_of_splitter(cv: Any, prepared: Prepared) -> NDArray[np.int64]:
    """Folds of a scikit-learn splitter, which sees all examples, with their majority votes as y."""
    majority = prepared.labels.tally.argmax(axis=1)
    fold = np.full(len(majority), -1, dtype=np.int64)
    splits = check_cv(cv, majority, classifier=True).split(np.zeros((len(majority), 1)), majority)
    for k, (_, held_out) in enumerate(splits):
        if (fold[held_out] >= 0).any():
            raise ValueError("cv must hold every example out once; some are held out more than once.")
        fold[held_out] = k
    if (fold < 0).any():
        raise ValueError(f"cv must hold every example out once; {int((fold < 0).sum())} never are.")
    return np.unique(fold[prepared.learnt], return_inverse=True)[1]


class LevelSums:
    """The sums of all steepnesses: per level of disagreement while that is possible, else pass by pass."""

    def __init__(self, prepared: Prepared, folds: Folds, base: Task) -> None:
        self.folds = folds
        self.levels, level = np.unique(base.disagreement, return_inverse=True)
        n_cells = len(self.levels) * folds.n_folds
        fits = n_bytes_needed(base.labels, base.rows.n_columns, n_cells) <= MEMORY_BUDGET
        self.by_level = fits and n_cells <= _MOST_CELLS
        cell = level * folds.n_folds + folds.fold if self.by_level else folds.fold
        n_cells = n_cells if self.by_level else folds.n_folds
        narrow = cell.astype(np.int16) if n_cells < 2**15 else cell  # sorted faster
        self.sums = base.statistics(weighted=False, cell=narrow, n_cells=n_cells)
        check_sums(self.sums.gram, prepared)

    @property
    def held_out(self) -> Statistics:
        """Sums per fold that no easiness weights."""
        return self.sums.combine(self._folds_of_cells()) if self.by_level else self.sums

    def weighted(self, task: Task) -> Statistics:
        """Sums per fold, weighted by easiness."""
        if not self.by_level:
            return task.statistics(cell=self.folds.fold, n_cells=self.folds.n_folds)
        weight = np.repeat(example_weights(self.levels, task.steepness), self.folds.n_folds)
        return self.sums.combine(self._folds_of_cells(), weight)

    def _folds_of_cells(self) -> Floats:
        return np.tile(np.eye(self.folds.n_folds), len(self.levels))


def tune_path(
    prepared: Prepared,
    folds: Folds,
    steepnesses: Sequence[float],
    pace: Pace,
    l2s: Floats,
    *,
    init: str,
    every_round: bool,
    max_rounds: int,
    tol: float,
) -> list[TunedFit]:
    """The tuned fit of every steepness, from one pass where sums can be kept."""
    base = prepared.task(0.0, init)
    route = base.route(2 * folds.n_folds)
    common: dict[str, Any] = {
        "targets": base.targets,
        "intercept": base.rows.intercept,
        "l2s": l2s,
        "every_round": every_round,
    }
    if route == "sums" and pace.needs_rows:
        check_finite(prepared.rows.X)
        return [_tune_reweighted(replace(base, steepness=s), folds, pace, common, max_rounds, tol) for s in steepnesses]
    if route != "sums":
        check_finite(prepared.rows.X)
        return [
            _tune_rows(replace(base, steepness=s), folds, pace, l2s, route, every_round, max_rounds, tol)
            for s in steepnesses
        ]
    sums = LevelSums(prepared, folds, base)
    held_out = sums.held_out

    def tune(steepness: float) -> TunedFit:
        task = replace(base, steepness=steepness)
        easy = sums.weighted(task)

        def make(share: float, last: TunedSums | None) -> TunedSums:
            blended = easy if share == 1 else easy.blend(held_out, share)
            return TunedSums(folds=blended, held_out=held_out, **common).after(last)

        steady = pace.is_steady(task)
        course = Steady(task, make(1.0, None)) if steady else Blended(task, pace, make)
        return TunedFit.of(course, alternate(course, max_rounds=max_rounds, tol=tol), route)

    if not sums.by_level:  # each reads the rows, on all cores
        return [tune(steepness) for steepness in steepnesses]
    n_multiplications = 10 * len(steepnesses) * folds.n_folds * base.rows.n_columns**3
    return list(run_parallel(tune, steepnesses, n_multiplications))


def _tune_reweighted(
    task: Task, folds: Folds, pace: Pace, common: dict[str, Any], max_rounds: int, tol: float
) -> TunedFit:
    """l2 chosen in every round, for weights that need a pass a round."""

    def make(weighted: Task, last: TunedRows | None) -> TunedRows:
        return TunedRows(task=weighted, fold=folds.fold, n_folds=folds.n_folds, **common).after(last)

    course = Reweighted(task, pace, make)
    return TunedFit.of(course, alternate(course, max_rounds=max_rounds, tol=tol), "rows")


def _tune_rows(
    task: Task,
    folds: Folds,
    pace: Pace,
    l2s: Floats,
    route: str,
    again: bool,
    max_rounds: int,
    tol: float,
) -> TunedFit:
    """l2 chosen at the first consensus and, if it is to be chosen again, at the settled one."""

    def choice_for(weighted: Task, expertise: Floats | None, among: Floats) -> Choice:
        return choose_l2(weighted, expertise, folds.fold, folds.n_folds, among)

    def make(weighted: Task, last: RowsProblem | None) -> RowsProblem:
        if last is None:
            return RowsProblem(weighted, choice_for(weighted, None, l2s).l2)
        return RowsProblem(weighted, last.l2, last.latest)

    def course_of(l2: float | None) -> Steady[RowsProblem] | Reweighted[RowsProblem]:
        if pace.is_steady(task):
            return Steady(task, make(task, None) if l2 is None else RowsProblem(task, l2))
        return Reweighted(task, pace, make if l2 is None else lambda weighted, _: RowsProblem(weighted, l2))

    course = course_of(None)
    settled = alternate(course, max_rounds=max_rounds, tol=tol)
    chosen = course.current.l2
    choice = choice_for(course.task, settled.expertise, l2s if again else l2s[l2s == chosen])
    if choice.l2 != chosen:
        course = course_of(choice.l2)
        settled = alternate(course, max_rounds=max_rounds, tol=tol, expertise=settled.expertise, done=settled.n_rounds)
    return TunedFit(
        course.task, course.current, settled, route, choice.l2, choice.errors, choice.fold_theta, course.class_weight
    )


def held_out_rankings(
    path: list[TunedFit], folds: Folds, examples: NDArray[np.intp], codes: NDArray[Any], n_classes: int
) -> list[float]:
    """How well some examples are ranked by models that have not seen them, for every steepness."""
    n_targets = path[0].settled.theta.shape[1]
    scores = np.empty((len(examples), len(path) * n_targets))
    for k in range(folds.n_folds):
        here = folds.fold[examples] == k
        theta = np.hstack([fit.fold_theta[k] for fit in path])
        scores[here] = path[0].task.rows.scores(theta, examples[here])
    return [ranking(scores[:, s * n_targets : (s + 1) * n_targets], codes, n_classes) for s in range(len(path))]
