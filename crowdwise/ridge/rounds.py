"""Data, folds, steepnesses, l2s -> a fit each: weights, coefficients and expertise, round after round.

The sums of one pass over the rows do for all of them, where they can be kept. The plain model is one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from crowdwise._arrays import Array, Floats, Positions
from crowdwise._progress import SILENT, Reporter
from crowdwise._threads import run_parallel
from crowdwise.exceptions import CrowdConvergenceWarning, warn
from crowdwise.ridge.data import (
    MOST_CELLS,
    LevelSums,
    RidgeData,
    Route,
    choose_route,
    fits_in_memory,
    sums_are_cheap,
)
from crowdwise.ridge.problem import IterativeProblem, L2Choice, Problem, RowsProblem, SumsProblem, Weights
from crowdwise.ridge.solver import Precision
from crowdwise.ridge.statistics import Statistics
from crowdwise.ridge.targets import Votes
from crowdwise.rows.features import check_finite
from crowdwise.weights.class_weights import Leaders, check_class_weight, class_weights
from crowdwise.weights.curricula import Curriculum, Fixed, checked_weights
from crowdwise.weights.folds import Folds
from crowdwise.weights.steepness import easiest_examples, ranking

# The objective is a mean of logarithms; to have been lower by less than this is of no interest.
_NEGLIGIBLE = 1e-6


class RoundWeights:
    """The weights of one fit, round after round.

    The class of an example is the one that leads in the consensus, not a mixture by votes: where one class is rare, the
    few wrong votes on each of the many examples of the other would make up most of its votes. Its weight multiplies
    the example's sample weight, so it means what it means elsewhere in scikit-learn. `class_weight` is None,
    "balanced" or a number per class, `random_state` the seed of a curriculum that draws.
    """

    def __init__(
        self,
        data: RidgeData,
        steepness: float,
        curriculum: Curriculum | None = None,
        class_weight: Floats | str | None = None,
        random_state: Any = None,
        *,
        equally_easy: bool = False,
    ) -> None:
        self.data, self.steepness, self.class_weight = data, steepness, class_weight
        self.curriculum = Fixed() if curriculum is None else curriculum
        self.rng, self.leaders = np.random.default_rng(random_state), Leaders()
        self.first = Weights(data, steepness, data.training.sample_weight)
        never_change = isinstance(self.curriculum, Fixed) or (self.curriculum.is_mixture and equally_easy)
        self.steady = class_weight is None and never_change

    def next(self, t: int, expertise: Floats | None, theta: Floats | None) -> Weights:
        """The weights of round t, after a round that ended with `expertise` and `theta`."""
        if self.steady:
            return self.first
        data, curriculum, losses = self.data, self.curriculum, None
        if self.class_weight is None and curriculum.is_mixture:
            return replace(self.first, share=curriculum.share(t, self.rng))
        if curriculum.reads_losses and theta is not None:  # how far the last model is from the present consensus
            losses = data.targets.squared(data.consensus(expertise)[0] - data.rows.scores(theta))
        easiness, count = data.easiness(self.steepness), self.first.sample_weight
        weight = checked_weights(curriculum.weights(t, easiness, losses, self.rng, count), curriculum)
        if data.known is not None:
            weight = weight.copy()
            weight[data.known.at] = 1.0
        if self.class_weight is None:
            return replace(self.first, by_curriculum=weight)
        expertise = np.ones(data.labels.n_annotators) if expertise is None else expertise
        shares = self.leaders.shares(Votes.of(data.labels, expertise).votes)
        class_weight = class_weights(self.class_weight, shares, weight * count)
        return replace(
            self.first, sample_weight=count * (shares @ class_weight), by_curriculum=weight, class_weight=class_weight
        )


@dataclass(frozen=True, eq=False)
class Settled:
    """What the rounds arrived at."""

    theta: Floats  # (n_columns, n_targets): coefficients
    expertise: Floats  # (n_annotators,)
    errors: Floats  # (n_annotators,): weighted sums of squared errors after the last round
    precision: Precision  # how these become expertise
    objective: Floats  # (n_rounds,): lower is better
    converged: bool  # whether expertise changed by less than the tolerance in the last round, with weights that stay
    change: float  # the largest relative change of expertise in the last round
    comparable: bool  # whether all rounds had the same weights and no answer is known: then objectives can be compared
    weights: Weights  # of the last round
    l2: float  # of the last round
    rank: int  # how many directions of the features are determined
    route: Route = "sums"  # how it was solved
    fold_theta: Floats | None = None  # (n_folds, n_columns, n_targets): of all folds but one; None if there is one fold
    held_out_error: Floats | None = None  # (n_l2s,): of the last choice of l2
    agreement: Floats | None = None  # (n_annotators,): of ratings, with the scores

    @property
    def n_rounds(self) -> int:
        return len(self.objective)

    def warn(self, tol: float) -> None:
        """Warn if the rounds did not settle, or ended at a worse objective than they had been at."""
        if not self.converged and self.change < tol:
            warn(
                f"the curriculum still changes the weights after {self.n_rounds} rounds. Raise max_rounds or tol, or "
                "choose a curriculum that finishes sooner (a larger c or growth).",
                CrowdConvergenceWarning,
            )
        elif not self.converged:
            warn(
                f"expertise still changed by {self.change:.2g} (relative) after {self.n_rounds} rounds, more than "
                f"tol={tol:g}. Raise max_rounds or tol, or try a larger l2.",
                CrowdConvergenceWarning,
            )
        rise = self.objective[-1] - self.objective.min()
        if self.comparable and rise > _NEGLIGIBLE:
            best = int(self.objective.argmin()) + 1
            warn(
                f"the objective rose by {rise:.2g} after round {best}: the penalty is rescaled in every round, so that "
                f"l2 keeps its meaning, and outweighed the better fit. Set max_rounds={best} to stop there, or try "
                "another l2.",
                CrowdConvergenceWarning,
            )


def alternate(
    problem: Problem,
    weights: RoundWeights,
    max_rounds: int,
    tol: float,
    reporter: Reporter = SILENT,
    after: Settled | None = None,
) -> tuple[Settled, Problem]:
    """Coefficients and expertise in turn, from the first consensus or from where other rounds ended.

    The rounds have settled when no annotator's expertise changes by more than `tol`, relative to what it was, and when
    the weights are there to stay: then another round would change nothing. Also the problem of the last round.
    """
    report, data = reporter.rounds(f"steepness {weights.steepness:g}"), weights.data
    expertise, done = (None, 0) if after is None else (after.expertise, after.n_rounds)
    errors, roughness, objective = list[Floats](), list[float](), np.empty(0)
    change, settled = np.inf, False
    theta: Floats | None = None
    for t in range(done + 1, done + max_rounds + 1):
        current = weights.next(t, expertise, theta)
        problem = problem.at(current)
        theta = problem.solve(expertise)
        squared = problem.squared_errors(theta)
        if data.known is not None:
            squared = data.against_truth(data.known, squared, theta, current.product)
        errors.append(squared)
        roughness.append(data.roughness(theta))
        previous, expertise = expertise, problem.precision.expertise(squared)
        # Rounds are compared by the weights of the last one, unless each has weights of its own.
        compared = slice(None) if weights.steady else slice(-1, None)
        objectives = problem.precision.objective(errors[compared], roughness[compared], expertise, problem.choice.l2)
        objective = objectives if weights.steady else np.append(objective, objectives)
        if len(expertise) == 1:  # no one to be compared with
            change = 0.0
        elif previous is not None:
            change = float(np.abs(expertise / previous - 1).max())
        if report is not None:
            report(t, objective[-1], change)
        settled = change < tol and (weights.steady or weights.curriculum.settled(t, tol))
        if settled:
            break
    assert expertise is not None
    assert theta is not None
    # Errors against known answers do not depend on the model, which need not make the objective smaller then.
    comparable = weights.steady and data.known is None
    return Settled(
        theta, expertise, errors[-1], problem.precision, objective, settled, change, comparable, current,
        problem.choice.l2, problem.rank,
    ), problem  # fmt: skip


@dataclass(frozen=True, eq=False)
class Search:
    """What is solved for, and for how long."""

    steepnesses: Sequence[float]
    l2s: Floats
    curriculum: Curriculum
    class_weight: Any  # what the class of an example counts: as in the settings
    random_state: Any  # the seed of a curriculum that draws
    max_rounds: int
    tol: float
    reporter: Reporter
    tuned: bool  # whether l2 is chosen over folds, or held-out errors are needed of one l2
    every_round: bool  # whether l2 is chosen in every round


@dataclass(eq=False)
class RidgePath:
    """What the fits of some data are solved from: kept, they can be solved again at another steepness or l2.

    Folds are there to choose one of several l2, and to score examples by models that have not seen them. Where sums per
    fold cannot be kept, l2 is chosen at the first and at the settled consensus instead of in every round.
    """

    data: RidgeData
    folds: Folds
    by_level: bool  # whether sums per level are made even if the fit at hand does not need them so
    sums: LevelSums | None = None  # made once
    of_more: bool = False  # whether they are of more rows than the data, which are a sample
    sample_weight: Floats | None = None  # of all examples, those without labels too; None if each counts once

    def relabelled(self, data: RidgeData, folds: Folds, *, tuned: bool) -> RidgePath:
        """The same examples with other labels: sums go on to the new path, and are made anew here if need be.

        Few examples that enter, in the order by which folds are dealt out, change the folds of many: sums of folds are
        then added up, unless something is chosen over folds. Models of all folds but one need another pass over rows.
        """
        path = RidgePath(data, folds, by_level=True, sample_weight=self.sample_weight)
        before, after = self.data, data
        comparable = (
            np.array_equal(before.labels.annotators, after.labels.annotators)
            and before.targets.n_targets == after.targets.n_targets
            and before.labels.is_complete == after.labels.is_complete
            and before.rows.shift is after.rows.shift
        )
        if self.sums is None or self.sums.level is None or not comparable:
            return path
        was, now = (self.data, self.folds), (data, folds)
        path.sums = self.sums.relabelled(was, now)
        if path.sums is None and self.sums.n_folds > 1 and not tuned:
            path.sums = self.sums.without_folds().relabelled(was, now)
        self.sums = None
        return path

    @property
    def n_bytes(self) -> int:
        """About how much memory it takes."""
        X, labels = self.data.original.X, self.data.training.labels
        parts = [X.data if sparse.issparse(X) else X, labels.values, labels.annotator_index, labels.indptr]
        if self.data.space is not None:
            parts.append(self.data.rows.X)
        if self.sums is not None:
            parts += [self.sums.statistics.gram, self.sums.statistics.cross]
        return sum(part.nbytes for part in parts)

    def solve(self, search: Search) -> list[Settled]:
        """The fit of every steepness, in their order."""
        data, folds, steepnesses = self.data, self.folds, search.steepnesses
        if search.class_weight is not None:
            class_weight = check_class_weight(search.class_weight, data.training.classes)
            is_one = isinstance(class_weight, np.ndarray) and (class_weight == 1).all()
            search = replace(search, class_weight=None if is_one else class_weight)
        # Weights of a round may look at losses or at the consensus: then no sums can be kept of them.
        needs_rows = search.class_weight is not None or not search.curriculum.is_mixture
        n_cells = 2 * folds.n_folds if search.tuned else 1
        route: Route = "sums" if self.of_more else choose_route(data, n_cells, needs_rows=needs_rows)
        costly = route == "iterative" or (route == "rows" and not sums_are_cheap(data, n_cells))
        levels, plain = None, None
        if route != "sums":
            check_finite(data.training.X)
        else:
            unweighted = search.tuned or (not isinstance(search.curriculum, Fixed) and max(steepnesses) > 0)
            if not unweighted and not fits_in_memory(data, folds.n_folds):
                folds = Folds(np.zeros(len(data.labels), dtype=np.int16), 1)
            if self.sums is None and (len(steepnesses) > 1 or unweighted or self.by_level):
                self.sums = self._sums_per_level(folds)
            levels = self.sums
            if unweighted:
                plain = data.sums(None, folds.fold, folds.n_folds) if levels is None else levels.of_folds()
        fit = partial(self._fit, search, route, costly, folds, levels, plain)
        # Without levels each reads the rows, on all cores.
        n_multiplications = 10.0 * len(steepnesses) * self.folds.n_folds * data.rows.n_columns**3
        return list(run_parallel(fit, steepnesses, 0 if levels is None else n_multiplications))

    def _sums_per_level(self, folds: Folds) -> LevelSums | None:
        """Sums for every steepness from one pass over the rows; None if levels of disagreement are too many."""
        levels, level = np.unique(self.data.training.weighing_disagreement, return_inverse=True)
        n_cells = len(levels) * folds.n_folds
        if n_cells > MOST_CELLS or not fits_in_memory(self.data, n_cells):
            return None
        sums = self.data.sums(None, level * folds.n_folds + folds.fold, n_cells)
        return LevelSums(sums, levels, folds.n_folds, level)

    def _fit(
        self,
        search: Search,
        route: Route,
        costly: bool,
        folds: Folds,
        levels: LevelSums | None,
        plain: Statistics | None,
        steepness: float,
    ) -> Settled:
        """The fit of one steepness; where it is `costly`, l2 is chosen at the first and at the settled consensus."""
        data = self.data
        easiness = data.easiness(steepness) if levels is None else levels.easiness(steepness)
        equally_easy = bool((easiness == 1).all())
        new_weights = partial(
            RoundWeights, data, steepness, search.curriculum, search.class_weight, search.random_state,
            equally_easy=equally_easy,
        )  # fmt: skip
        weights, choice = new_weights(), L2Choice(search.l2s, search.every_round and not costly)
        if route == "sums":
            easy = plain if equally_easy else None
            if easy is None:
                easy = data.sums(easiness, folds.fold, folds.n_folds) if levels is None else levels.of_folds(easiness)
            problem: Problem = SumsProblem(data, choice, weights.first, easy, plain)
        else:
            of_rows = IterativeProblem if route == "iterative" else RowsProblem
            problem = of_rows(data, choice, weights.first, self.folds)
        limits = search.max_rounds, search.tol, search.reporter
        settled, problem = alternate(problem, weights, *limits)
        if costly and search.every_round and len(search.l2s) > 1:
            chosen, choice.l2 = choice.l2, np.nan
            problem.solve(settled.expertise)
            if choice.l2 != chosen:
                settled, problem = alternate(problem, new_weights(), *limits, after=settled)
        agreement = problem.agreement(settled.theta) if data.labels.classes is None else None
        fold_theta = None
        if self.folds.n_folds > 1:  # models that have not seen a fold, for the final consensus
            if problem.n_folds < self.folds.n_folds:
                problem = RowsProblem(data, choice, settled.weights, self.folds)
            fold_theta = problem.fold_models(settled.expertise)
            if search.tuned and len(search.l2s) == 1:  # nothing was chosen, so no error is known yet
                choice.errors = problem.held_out_error(settled.expertise, fold_theta)
        return replace(
            settled, l2=choice.l2, route=route, fold_theta=fold_theta, held_out_error=choice.errors, agreement=agreement
        )


def warn_if_undetermined(fit: Settled, data: RidgeData) -> None:
    """Warn if the data and l2 do not determine all coefficients."""
    if fit.rank < data.rows.n_features or (fit.l2 == 0 and data.space is not None):
        small = "l2 is 0" if fit.l2 == 0 else f"l2={fit.l2:g} is lost in the rounding of the features' products"
        warn(
            f"{small} and only {fit.rank} of {data.original.n_features} directions of the features are determined by "
            "the data: the solution with the smallest norm is used. Use a larger l2 for a stable solution."
        )


def examples_to_rank(data: RidgeData, criterion: str = "auto") -> tuple[str, Positions, Array]:
    """What steepnesses are compared by, "truth" or "agreement", by which examples that take part, and their classes.

    Those whose answer is known, if these are of two classes or more, else those that annotators agree on most.
    """
    training, tally = data.training, data.labels._tally
    n_classes = 0 if training.known is None else len(np.unique(training.known.answers))
    if criterion == "truth" and n_classes < 2:
        raise ValueError(
            'criterion="truth" needs fit(X, y, truth=...) with the truth of labelled examples of at least two '
            f"classes; got {0 if training.known is None else len(training.known)} of {n_classes}."
        )
    if training.known is not None and n_classes > 1 and criterion != "agreement":
        return "truth", training.known.at, training.known.answers
    examples = easiest_examples(training.used_disagreement, tally, training.sample_weight)
    return "agreement", examples, tally[examples].argmax(axis=1)


def held_out_rankings(path: RidgePath, fits: list[Settled], examples: Positions, codes: Array) -> list[float]:
    """How well some examples are ranked by models that have not seen them, for every steepness."""
    data, folds = path.data, path.folds
    scores = np.empty((len(examples), len(fits) * data.targets.n_targets))
    for k in range(folds.n_folds):
        held_out = folds.fold[examples] == k
        theta = np.hstack([fit.fold_theta[k] for fit in fits if fit.fold_theta is not None])
        scores[held_out] = data.rows.scores(theta, examples[held_out])
    weight, n_classes = data.training.sample_weight[examples], len(data.training.classes)
    return [ranking(of_fit, codes, n_classes, weight) for of_fit in np.split(scores, len(fits), axis=1)]
