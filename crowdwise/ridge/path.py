"""Data, steepnesses, l2s, folds -> the fit of every steepness, from one pass over the rows where sums can be kept.

The plain model is the path of one steepness and one l2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from crowdwise._arrays import Array, Bools, Codes, Floats, Positions
from crowdwise._progress import Reporter
from crowdwise._threads import run_parallel
from crowdwise.crowd._disagreement import distinct_levels, example_weights
from crowdwise.exceptions import warn
from crowdwise.ridge.data import MOST_CELLS, RidgeData, Route, choose_route, fits_in_memory, sums_are_cheap
from crowdwise.ridge.problem import IterativeProblem, L2Choice, Problem, RowsProblem, SumsProblem
from crowdwise.ridge.rounds import RoundWeights, Settled, alternate
from crowdwise.ridge.statistics import Statistics
from crowdwise.rows.features import check_finite
from crowdwise.weights.curricula import Curriculum, Fixed
from crowdwise.weights.folds import Folds
from crowdwise.weights.steepness import easiest_examples, ranking

# With so many rows in a cell it is faster to weight the sums than the rows.
_ROWS_PER_CELL = 2**12
# Sums are made anew if more than this share of the rows count otherwise than before.
_MOVED_SHARE = 0.1


@dataclass(frozen=True, eq=False)
class LevelSums:
    """Sums per level of disagreement and fold: cells are the folds of the first level, then those of the second, ...

    `levels` is the disagreement of each level, `level` that of each example, if these are known.
    """

    statistics: Statistics
    levels: Floats
    n_folds: int
    level: Codes | None = None

    def plain(self) -> Statistics:
        """Sums per fold that no easiness weights."""
        return self.statistics.combine(self._folds_of_cells())

    def easy(self, steepness: float) -> Statistics:
        """Sums per fold, weighted by easiness."""
        weight = np.repeat(self.easiness(steepness), self.n_folds)
        return self.statistics.combine(self._folds_of_cells(), weight)

    def easiness(self, steepness: float) -> Floats:
        """The weight of each level."""
        return example_weights(self.levels, steepness)

    def _folds_of_cells(self) -> Floats:
        return np.tile(np.eye(self.n_folds), len(self.levels))

    def examples_per_level(self) -> tuple[Floats, Floats]:
        """The levels that occur, ascending, and how often the examples of each count."""
        levels, place = np.unique(self.levels, return_inverse=True)
        present = self.statistics.present.reshape(-1, self.n_folds).sum(axis=1)
        count = np.bincount(place, present).astype(np.float64)
        return levels[count > 0], count[count > 0]

    def without_folds(self) -> LevelSums:
        """The folds of each level added up."""
        use = np.repeat(np.eye(len(self.levels)), self.n_folds, axis=1)
        return replace(self, statistics=self.statistics.combine(use), n_folds=1)

    def relabelled(self, before: RidgePath, after: RidgePath) -> LevelSums | None:
        """The sums after some labels have changed, from those of the rows concerned; None if these are many.

        The arrays of these sums are written over. With other labels, the disagreement of a level may be another, but
        rows that stayed as they were are still of one level.
        """
        was, now = before.data.training.used, after.data.training.used
        assert self.level is not None
        value, level = _of_all(now, after.data.training.weighing_disagreement), _of_all(was, self.level)
        stay = was & now & ~_relabelled(before.data, after.data)
        if self.n_folds > 1:
            stay &= _of_all(was, before.folds.fold) == _of_all(now, after.folds.fold)
        levels = np.full(len(self.levels), np.nan)  # of levels that no row stays at
        levels[level[stay]] = value[stay]
        stay &= levels[level] == value
        moved = np.flatnonzero((was | now) & ~stay)
        if len(moved) > _MOVED_SHARE * len(now):
            return None
        new = np.setdiff1d(value[moved[now[moved]]], levels)
        levels = np.append(levels, np.full(max(len(new) - int(np.isnan(levels).sum()), 0), np.nan))
        levels[np.flatnonzero(np.isnan(levels))[: len(new)]] = new
        order = np.argsort(levels)
        place = order[np.minimum(np.searchsorted(levels[order], value), len(order) - 1)]
        statistics = self.statistics
        if len(levels) > len(self.levels):
            statistics = statistics.with_cells(len(levels) * self.n_folds)
        for path, of_row, sign in ((before, level, -1.0), (after, np.where(stay, level, place), 1.0)):
            used = path.data.training.used
            at = of_row[used]
            cell = at if self.n_folds == 1 else at * self.n_folds + path.folds.fold
            some = (np.cumsum(used) - 1)[moved[used[moved]]]
            if len(some):
                statistics.add_to_cells(*path.data.sums_of(some, cell[some]), sign)
        statistics.clear(np.bincount(cell, minlength=statistics.n_cells) == 0)
        levels = np.nan_to_num(levels, nan=value[now][0])  # of no row, whatever it is
        return LevelSums(replace(statistics, targets=after.data.targets), levels, self.n_folds, at)


def _of_all(used: Bools, values: Array) -> Array:
    """Values of the examples that take part among all; 0 for the others."""
    of_all = np.zeros(len(used), dtype=values.dtype)
    of_all[used] = values
    return of_all


def _relabelled(before: RidgeData, after: RidgeData) -> Bools:
    """Which of all examples have other labels, or another first consensus."""
    changed: Bools = np.ones(len(before.training.used), dtype=bool)
    both = before.training.used & after.training.used
    old, new = (np.flatnonzero(both[data.training.used]) for data in (before, after))
    one, other = before.labels[old], after.labels[new]
    n_one, n_other = one.labels_per_example, other.labels_per_example
    alike = (n_one == n_other) & (before.first[old] == after.first[new]).all(axis=1)
    as_many = np.repeat(n_one == n_other, n_one), np.repeat(n_one == n_other, n_other)
    differs = (one.annotator_index[as_many[0]] != other.annotator_index[as_many[1]]) | (
        one.values[as_many[0]] != other.values[as_many[1]]
    )
    alike[one.example_index[as_many[0]][differs]] = False
    changed[np.flatnonzero(both)] = ~alike
    return changed


@dataclass(frozen=True, eq=False)
class FoldSums:
    """Sums per fold, by a pass over the rows for every steepness: where levels of disagreement are too many."""

    data: RidgeData
    fold: Codes
    n_folds: int

    def plain(self) -> Statistics:
        """Sums that no easiness weights."""
        return self.data.sums(None, self.fold, self.n_folds)

    def easy(self, steepness: float) -> Statistics:
        """Sums weighted by easiness."""
        return self.data.sums(self.easiness(steepness), self.fold, self.n_folds)

    def easiness(self, steepness: float) -> Floats:
        """The weight of each example."""
        return self.data.easiness(steepness)


@dataclass(frozen=True, eq=False)
class Search:
    """What is solved for, and for how long."""

    steepnesses: Sequence[float]
    l2s: Floats
    curriculum: Curriculum
    class_weight: Floats | str | None  # what the class of an example counts; a number each, or "balanced"
    random_state: Any  # the seed of a curriculum that draws
    max_rounds: int
    tol: float
    reporter: Reporter
    tuned: bool = False  # whether held-out errors are wanted even if there is one l2 only
    every_round: bool = True  # whether l2 is chosen in every round

    @property
    def needs_rows(self) -> bool:
        """Whether the weights of a round look at losses or at the consensus, so that no sums can be kept of them."""
        return self.class_weight is not None or not self.curriculum.is_mixture

    def weights(self, data: RidgeData, steepness: float, alike: bool | None) -> RoundWeights:
        """The weights of the rounds of a steepness."""
        return RoundWeights(data, steepness, self.curriculum, self.class_weight, self.random_state, alike=alike)


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
        path.sums = self.sums.relabelled(self, path)
        if path.sums is None and self.sums.n_folds > 1 and not tuned:
            path.sums = self.sums.without_folds().relabelled(self, path)
        self.sums = None
        return path

    @property
    def n_bytes(self) -> int:
        """About how much memory it takes."""
        X, labels = self.data.X, self.data.training.labels
        parts = [X.data if sparse.issparse(X) else X, labels.values, labels.annotator_index, labels.indptr]
        if self.data.space is not None:
            parts.append(self.data.rows.X)
        if self.sums is not None:
            parts += [self.sums.statistics.gram, self.sums.statistics.cross]
        return sum(part.nbytes for part in parts)

    def solve(self, search: Search) -> list[Settled]:
        """The fit of every steepness, in their order."""
        data, steepnesses, l2s = self.data, search.steepnesses, search.l2s
        tuned = search.tuned or len(l2s) > 1
        n_cells = 2 * self.folds.n_folds if tuned else 1
        route: Route = "sums" if self.of_more else choose_route(data, n_cells, needs_rows=search.needs_rows)
        costly = route == "iterative" or (route == "rows" and not sums_are_cheap(data, n_cells))
        sums, plain = None, None
        if route != "sums":
            check_finite(data.training.X)
        else:
            fades = not isinstance(search.curriculum, Fixed) and max(steepnesses) > 0
            sums = self.sums or self._collect(len(steepnesses), unweighted=tuned or fades)
            plain = sums.plain() if tuned or fades else None

        def fit(steepness: float) -> Settled:
            alike = None if sums is None else bool((sums.easiness(steepness) == 1).all())
            choice = L2Choice(l2s, search.every_round and not costly)
            weights = search.weights(data, steepness, alike)
            if sums is not None:
                easy = plain if alike and plain is not None else sums.easy(steepness)
                problem: Problem = SumsProblem(data, choice, weights.first, easy, plain)
            else:
                of_rows = IterativeProblem if route == "iterative" else RowsProblem
                problem = of_rows(data, choice, weights.first, self.folds)
            settled, problem = alternate(problem, weights, search.max_rounds, search.tol, search.reporter)
            if costly and search.every_round and len(l2s) > 1:
                chosen, choice.l2 = choice.l2, np.nan
                problem.solve(settled.expertise)
                if choice.l2 != chosen:
                    weights = search.weights(data, steepness, alike)
                    settled, problem = alternate(
                        problem, weights, search.max_rounds, search.tol, search.reporter, after=settled
                    )
            return replace(self._finish(settled, problem, search), route=route)

        # Without levels each reads the rows, on all cores.
        n_multiplications = 10.0 * len(steepnesses) * self.folds.n_folds * data.rows.n_columns**3
        return list(run_parallel(fit, steepnesses, n_multiplications if isinstance(sums, LevelSums) else 0))

    def _collect(self, n_steepnesses: int, *, unweighted: bool) -> LevelSums | FoldSums:
        """Sums per fold for every steepness: from one pass by levels of disagreement, or from a pass each.

        `unweighted` is whether sums that no easiness weights are needed as well.
        """
        data, fold, n_folds, labels = self.data, self.folds.fold, self.folds.n_folds, self.data.labels
        if not unweighted and not fits_in_memory(data, n_folds):
            fold, n_folds = np.zeros(len(fold), dtype=np.int16), 1
        n_rows = len(fold) if labels.is_complete else labels.n_labels // labels.n_annotators
        several = n_steepnesses > 1 or unweighted or self.by_level
        most = MOST_CELLS if several else min(MOST_CELLS, n_rows // _ROWS_PER_CELL)
        if most >= n_folds:
            levels, level = distinct_levels(data.training.weighing_disagreement)
            n_cells = len(levels) * n_folds
            if n_cells <= most and fits_in_memory(data, n_cells):
                self.sums = LevelSums(data.sums(None, level * n_folds + fold, n_cells), levels, n_folds, level)
                return self.sums
        return FoldSums(data, fold, n_folds)

    def _finish(self, settled: Settled, problem: Problem, search: Search) -> Settled:
        """What a fit keeps of its problem, with models that have not seen a fold for the final consensus."""
        data, theta, choice, expertise = self.data, None, problem.choice, settled.expertise
        agreement = problem.agreement(settled.theta) if data.training.labels.classes is None else None
        if self.folds.n_folds > 1:
            if problem.n_folds < self.folds.n_folds:
                problem = RowsProblem(data, choice, settled.weights, self.folds)
            theta = problem.fold_models(expertise)
            if search.tuned and len(search.l2s) == 1:  # nothing was chosen, so no error is known yet
                choice.errors = problem.held_out_error(expertise, theta)
        return replace(settled, l2=choice.l2, fold_theta=theta, held_out_error=choice.errors, agreement=agreement)


def warn_if_undetermined(fit: Settled, data: RidgeData) -> None:
    """Warn if the data and l2 do not determine all coefficients."""
    if fit.rank < data.rows.n_features or (fit.l2 == 0 and data.space is not None):
        small = "l2 is 0" if fit.l2 == 0 else f"l2={fit.l2:g} is lost in the rounding of the features' products"
        warn(
            f"{small} and only {fit.rank} of {data.original.n_features} directions of the features are determined by "
            "the data: the solution of smallest norm is taken. Use a larger l2 for a solution that is stable."
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
