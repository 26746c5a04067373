"""Data, steepnesses, l2s, folds -> the fit of every steepness, from one pass over the rows where sums can be kept.

The plain model is the path of one steepness and one l2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from crowdwise._arrays import Array, Codes, Floats, Positions
from crowdwise._progress import Reporter
from crowdwise._threads import run_parallel
from crowdwise.crowd._disagreement import distinct_levels, example_weights
from crowdwise.exceptions import warn
from crowdwise.ridge.data import MOST_CELLS, RidgeData, choose_route, fits_in_memory, sums_are_cheap
from crowdwise.ridge.problem import L2Choice, RowsProblem, SumsProblem
from crowdwise.ridge.rounds import Settled, Weighting, WeightSequence, alternate
from crowdwise.ridge.statistics import Statistics
from crowdwise.rows.features import check_finite
from crowdwise.weights.folds import Folds
from crowdwise.weights.steepness import ranking

# With so many rows in a cell it is faster to weight the sums than the rows.
_ROWS_PER_CELL = 2**12


@dataclass(frozen=True, eq=False)
class LevelSums:
    """Sums per level of disagreement and fold: cells are the folds of the first level, then those of the second, ...

    `levels` is the disagreement of each level.
    """

    statistics: Statistics
    levels: Floats
    n_folds: int

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
    weighting: Weighting
    max_rounds: int
    tol: float
    reporter: Reporter
    tuned: bool = False  # whether held-out errors are wanted even if there is one l2 only
    every_round: bool = True  # whether l2 is chosen in every round


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
        data, steepnesses, weighting = self.data, search.steepnesses, search.weighting
        tuned = search.tuned or len(search.l2s) > 1
        n_cells = 2 * self.folds.n_folds if tuned else 1
        route = "sums" if self.of_more else choose_route(data, n_cells, needs_rows=weighting.needs_rows)
        if route != "sums":
            check_finite(data.training.X)
            costly = route == "iterative" or not sums_are_cheap(data, n_cells)
            fits = [self._from_rows(steepness, search, costly=costly) for steepness in steepnesses]
            return [replace(fit, route=route) for fit in fits]
        unweighted = tuned or (weighting.blends and max(steepnesses) > 0)
        sums = self.sums or self._collect(len(steepnesses), unweighted=unweighted)
        plain = sums.plain() if unweighted else None

        def fit(steepness: float) -> Settled:
            alike = bool((sums.easiness(steepness) == 1).all())
            easy = plain if alike and plain is not None else sums.easy(steepness)
            weights = WeightSequence(data, steepness, weighting, alike=alike)
            problem = SumsProblem(data, easy, plain, L2Choice(search.l2s, search.every_round))
            return self._finish(*_rounds(problem, weights, search), search)

        n_multiplications = 10.0 * len(steepnesses) * self.folds.n_folds * data.rows.n_columns**3
        # Without levels each reads the rows, on all cores.
        return list(run_parallel(fit, steepnesses, 0 if isinstance(sums, FoldSums) else n_multiplications))

    def _collect(self, n_steepnesses: int, *, unweighted: bool) -> LevelSums | FoldSums:
        """Sums per fold for every steepness: from one pass by levels of disagreement, or from a pass each.

        `unweighted` says whether sums that no easiness weights are needed as well.
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
                self.sums = LevelSums(data.sums(None, level * n_folds + fold, n_cells), levels, n_folds)
                return self.sums
        return FoldSums(data, fold, n_folds)

    def _from_rows(self, steepness: float, search: Search, *, costly: bool) -> Settled:
        """By a pass per round; if that is costly, l2 is chosen at the first and at the settled consensus only."""
        data, weights = self.data, WeightSequence(self.data, steepness, search.weighting)
        choice = L2Choice(search.l2s, search.every_round and not costly)
        settled, problem = _rounds(RowsProblem(data, self.folds, choice, weights.first), weights, search)
        if costly and search.every_round and len(search.l2s) > 1:
            chosen, choice.l2 = choice.l2, np.nan
            problem.solve(settled.expertise)
            if choice.l2 != chosen:
                weights, n_rounds = WeightSequence(data, steepness, search.weighting), settled.n_rounds
                settled, problem = _rounds(problem, weights, search, settled.expertise, n_rounds)
        return self._finish(settled, problem, search)

    def _finish(self, settled: Settled, problem: SumsProblem | RowsProblem, search: Search) -> Settled:
        """What a fit keeps of its problem, with models that have not seen a fold for the final consensus."""
        data, theta, choice, expertise = self.data, None, problem.choice, settled.expertise
        agreement = problem.agreement(settled.theta) if data.training.labels.classes is None else None
        if self.folds.n_folds > 1:
            if isinstance(problem, SumsProblem) and problem.sums.n_cells < self.folds.n_folds:
                problem = RowsProblem(data, self.folds, choice, settled.weights)
            theta = problem.fold_models(expertise)
            if search.tuned and len(search.l2s) == 1:  # nothing was chosen, so no error is known yet
                choice.errors = problem.held_out_error(expertise, theta)
        return replace(settled, l2=choice.l2, fold_theta=theta, held_out_error=choice.errors, agreement=agreement)


def _rounds(
    problem: SumsProblem | RowsProblem,
    weights: WeightSequence,
    search: Search,
    expertise: Floats | None = None,
    done: int = 0,
) -> tuple[Settled, SumsProblem | RowsProblem]:
    report = search.reporter.rounds(f"steepness {weights.steepness:g}")
    return alternate(
        problem, weights, max_rounds=search.max_rounds, tol=search.tol, expertise=expertise, done=done, report=report
    )


def warn_if_undetermined(fit: Settled, data: RidgeData) -> None:
    """Warn if the data and l2 do not determine all coefficients."""
    if fit.rank < data.rows.n_features or (fit.l2 == 0 and data.space is not None):
        small = "l2 is 0" if fit.l2 == 0 else f"l2={fit.l2:g} is lost in the rounding of the features' products"
        warn(
            f"{small} and only {fit.rank} of {data.original.n_features} directions of the features are determined by "
            "the data: the solution of smallest norm is taken. Use a larger l2 for a solution that is stable."
        )


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
