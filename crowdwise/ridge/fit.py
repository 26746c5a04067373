"""A prepared task -> coefficients, expertise and consensus: what the ridge estimators have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdwise.arrays import Floats
from crowdwise.crowd.flags import flag_annotators
from crowdwise.exceptions import DataError
from crowdwise.ridge.ballot import Ballot
from crowdwise.ridge.courses import Blended, Pace, Reweighted, Steady, blend_sums
from crowdwise.ridge.features import Rows, check_finite, one_blas_thread
from crowdwise.ridge.preparation import Prepared
from crowdwise.ridge.problem import EXACT_COLUMNS, RowsProblem, SumsProblem, Task, solve_rows
from crowdwise.ridge.rounds import Settled, alternate
from crowdwise.ridge.solver import Factor
from crowdwise.ridge.statistics import Statistics, row_sums, values_from
from crowdwise.weights.folds import content_folds

# Parts that training examples are split into, so that each is scored by a model that has not seen it.
N_FOLDS = 5


@dataclass(frozen=True)
class RidgeFit:
    """A fitted ridge model and what it says about the examples and annotators of its fit."""

    settled: Settled
    route: str
    coef: Floats
    intercept: Floats
    expertise: Floats
    crowd_expertise: float
    model_precision: float
    ballot: Ballot
    flags: dict[Any, tuple[str, ...]]
    round_weights: tuple[Floats, Floats] | None
    class_weight: Floats | None


def fit_ridge(prepared: Prepared, task: Task, pace: Pace, l2: float, *, max_rounds: int, tol: float) -> RidgeFit:
    """Turn the rounds and collect the results."""
    route = task.route()
    if route == "sums" and pace.needs_rows:
        route = "rows"
    course = (sums_course if route == "sums" else rows_course)(prepared, task, pace, l2)
    with one_blas_thread(task.rows.n_columns):
        settled = alternate(course, max_rounds=max_rounds, tol=tol)
        settled.warn(tol)
        return finish(prepared, course.task, course.current, settled, route, l2, course.class_weight)


def sums_course(prepared: Prepared, task: Task, pace: Pace, l2: float) -> Steady[SumsProblem] | Blended[SumsProblem]:
    """From the sums of one pass, or of two where equal weights are blended in."""

    def problem_of(sums: Statistics) -> SumsProblem:
        return SumsProblem(sums, task.targets, task.rows.intercept, l2)

    sums = task.statistics()
    check_sums(sums.gram, prepared)
    if pace.is_steady(task):
        return Steady(task, problem_of(sums))
    return Blended(task, pace, blend_sums(sums, task.statistics(weighted=False), problem_of))


def rows_course(prepared: Prepared, task: Task, pace: Pace, l2: float) -> Steady[RowsProblem] | Reweighted[RowsProblem]:
    """By a pass a round."""
    check_finite(prepared.rows.X)
    if pace.is_steady(task):
        return Steady(task, RowsProblem(task, l2))
    return Reweighted(task, pace, lambda weighted, last: RowsProblem(weighted, l2, last.latest if last else None))


def check_sums(gram: Floats, prepared: Prepared) -> None:
    """Look for the place of a NaN or an infinity if there is one in the sums."""
    if not np.isfinite(gram).all():
        check_finite(prepared.rows.X)
        raise DataError("Input X is too large: the squares of its values overflow. Rescale the features.")


def finish(
    prepared: Prepared,
    task: Task,
    problem: SumsProblem | RowsProblem,
    settled: Settled,
    route: str,
    l2: float,
    class_weight: Floats | None,
) -> RidgeFit:
    """Results in the terms of the caller: all annotators, the original features; `task` is that of the last round."""
    coef, intercept = prepared.to_features(settled.theta)
    errors = problem.squared_errors(settled.theta)
    agreement = np.full(prepared.labels.n_annotators, np.nan)
    agreement[prepared.heard] = problem.agreement(settled.theta)
    ballot = Ballot.of(task.labels, settled.expertise)
    expertise = np.full(prepared.labels.n_annotators, np.nan)
    expertise[prepared.heard] = settled.expertise if len(settled.expertise) > 1 else 1.0
    return RidgeFit(
        settled=settled,
        route=route,
        coef=coef,
        intercept=intercept,
        expertise=expertise,
        crowd_expertise=float(problem.precision.mass.sum() / max(errors.sum(), np.finfo(float).tiny)),
        model_precision=_model_precision(prepared, task, problem, settled, errors, ballot, l2),
        ballot=ballot,
        flags=flag_annotators(prepared.labels, agreement),
        round_weights=None if settled.same_weights else (task.weight, task.sample_weight),
        class_weight=class_weight,
    )


def _model_precision(
    prepared: Prepared,
    task: Task,
    problem: SumsProblem | RowsProblem,
    settled: Settled,
    errors: Floats,
    ballot: Ballot,
    l2: float,
) -> float:
    """One over the mean squared difference of consensus and score, the score as if it had not seen the example."""
    target, voice = ballot.mean_targets(task.targets), ballot.total
    average = np.average(voice, weights=task.sample_weight)
    weight = task.weight * task.sample_weight * voice / average
    floor = 1e-8 * task.targets.span
    if isinstance(problem, SumsProblem):
        within = weight @ (_mean_squares(task, settled.expertise, voice) - task.targets.squared(target))
        seen = (settled.expertise @ errors / average - within) / weight.sum()
        # Generalised cross-validation: what was fitted away by the model's own parameters is added again.
        share = problem.degrees_of_freedom(settled.expertise) / task.sample_weight.sum()
        unseen = seen / max(1 - share, 1 / len(task.labels)) ** 2
    else:
        scores = cross_fitted_scores(task.rows, weight, target, l2, content_folds(prepared.original.X, N_FOLDS))
        unseen = weight @ task.targets.squared(target - scores) / weight.sum()
    return float(1 / max(unseen, floor))


def _mean_squares(task: Task, expertise: Floats, voice: Floats) -> Floats | float:
    """The expertise-weighted mean of the squared targets of each example."""
    if task.targets.codebook is not None:  # every target is +1 or -1
        return task.targets.factor * task.targets.n_targets
    squares = (task.labels.values - task.targets.centre) ** 2
    return task.labels.sum_per_example(expertise[task.labels.annotator_index] * squares) / voice


def cross_fitted_scores(rows: Rows, weight: Floats, target: Floats, l2: float, fold: NDArray[np.int64]) -> Floats:
    """Scores of every row by a model of the other folds, for a given consensus."""
    n_folds = int(fold.max()) + 1
    scores = np.zeros_like(target)
    if n_folds < 2:  # there is no other example to learn from
        return scores
    if rows.n_columns <= EXACT_COLUMNS:
        gram, cross = row_sums(rows, weight, values_from(target), target.shape[1], fold, n_folds)
    for k in range(n_folds):
        others = np.flatnonzero(np.arange(n_folds) != k)
        if rows.n_columns <= EXACT_COLUMNS:
            factor = Factor.of(gram[others].sum(axis=0), l2, intercept=rows.intercept)
            theta = factor.solve(cross[others].sum(axis=0))
        else:
            theta = solve_rows(rows, np.where(fold == k, 0.0, weight), target, l2, None)
        at = np.flatnonzero(fold == k)
        scores[at] = rows.scores(theta, at)
    return scores
