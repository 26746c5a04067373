"""Data, steepnesses, l2s, folds -> the fit of every steepness, from one pass over the rows where sums can be kept.

The plain model is the path of one steepness and one l2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.model_selection import check_cv

from crowdwise._arrays import Array, Codes, Floats, Positions
from crowdwise._checks import check_whole
from crowdwise._progress import Reporter
from crowdwise._threads import run_parallel
from crowdwise.crowd._disagreement import distinct_levels, example_weights
from crowdwise.exceptions import DataError, warn
from crowdwise.ridge.data import MOST_CELLS, RidgeData, Route, choose_route, fits_in_memory, sums_are_cheap
from crowdwise.ridge.problem import L2Choice, RowsProblem, SumsProblem
from crowdwise.ridge.rounds import Settled, Weighting, WeightSequence, alternate
from crowdwise.ridge.statistics import Statistics
from crowdwise.rows.features import check_finite
from crowdwise.weights.folds import content_folds
from crowdwise.weights.steepness import ranking

# With so many rows in a cell it is faster to weight the sums than the rows.
_ROWS_PER_CELL = 2**12

# Runs the rounds of a problem with the weights of a steepness.
Turn = Callable[..., Settled[Any]]


@dataclass(frozen=True, eq=False)
class Folds:
    """Which part each example that takes part is held out with."""

    fold: Codes
    n_folds: int

    @classmethod
    def by_content(cls, X: Any, n_folds: int, seed: Any = 0) -> Folds:
        """Folds by the content of rows, so that equal rows are never in two folds."""
        fold = content_folds(X, n_folds, seed)
        drawn = np.zeros(n_folds, dtype=bool)
        drawn[fold] = True
        if not drawn.all():  # few different rows: some folds got none
            fold = np.unique(fold, return_inverse=True)[1]
        return cls(fold, max(int(drawn.sum()), 1))

    @classmethod
    def of(cls, cv: Any, data: RidgeData, seed: Any) -> Folds:
        """Folds by content for a number, else those of a scikit-learn splitter or of given splits."""
        if not isinstance(cv, str) and (hasattr(cv, "split") or hasattr(cv, "__iter__")):
            folds = cls(*_folds_of_splitter(cv, data))
        else:
            n_examples = len(data.labels)
            if check_whole("cv", cv, low=2) > max(n_examples, 10):
                raise ValueError(f"cv must not be more than the {n_examples} examples that take part; got {cv}.")
            folds = cls.by_content(data.X, int(cv), seed)
        if folds.n_folds < 2:
            raise DataError(
                "cross-validation needs at least 2 examples with different features; found "
                f"n_samples = {len(folds.fold)} all alike or in one fold."
            )
        return folds


def _folds_of_splitter(cv: Any, data: RidgeData) -> tuple[Codes, int]:
    """Folds of a scikit-learn splitter, which sees all examples, with their majority votes as y."""
    majority = data.training.labels._tally.argmax(axis=1)
    fold = np.full(len(majority), -1, dtype=np.int64)
    splits = check_cv(cv, majority, classifier=True).split(np.zeros((len(majority), 1)), majority)
    for k, (_, held_out) in enumerate(splits):
        if (fold[held_out] >= 0).any():
            raise ValueError("cv must hold every example out once; some are held out more than once.")
        fold[held_out] = k
    if (fold < 0).any():
        raise ValueError(f"cv must hold every example out once; {int((fold < 0).sum())} never are.")
    fold = np.unique(fold[data.training.used], return_inverse=True)[1]
    return fold, int(fold.max()) + 1


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


def fold_sums(data: RidgeData, folds: Folds, n_steepnesses: int, *, unweighted: bool) -> LevelSums | FoldSums:
    """Sums per fold for every steepness: from one pass by levels of disagreement, or from a pass each.

    `unweighted` says whether sums that no easiness weights are needed as well.
    """
    fold, n_folds = folds.fold, folds.n_folds
    if not unweighted and not fits_in_memory(data, n_folds):
        fold, n_folds = np.zeros(len(fold), dtype=np.int16), 1
    several = n_steepnesses > 1 or unweighted
    n_rows = len(fold) if data.labels.is_complete else data.labels.n_labels // data.labels.n_annotators
    most = MOST_CELLS if several else min(MOST_CELLS, n_rows // _ROWS_PER_CELL)
    if most >= n_folds:
        levels, level = distinct_levels(data.training.weighing_disagreement)
        n_cells = len(levels) * n_folds
        if n_cells <= most and fits_in_memory(data, n_cells):
            return LevelSums(data.sums(None, level * n_folds + fold, n_cells), levels, n_folds)
    return FoldSums(data, fold, n_folds)


MakeSums = Callable[..., LevelSums | FoldSums]


@dataclass(eq=False)
class KeptFit:
    """What is kept of a fit in memory, so that it can be solved again at another steepness or l2."""

    settings: dict[str, Any]  # of the model when it was fitted
    data: RidgeData
    folds: Folds
    by_level: bool  # whether sums per level are made even if the fit at hand does not need them so
    sums: LevelSums | None = None  # made once

    def make(self, data: RidgeData, folds: Folds, n_steepnesses: int, *, unweighted: bool) -> LevelSums | FoldSums:
        """What `fold_sums` does."""
        if self.sums is not None:
            return self.sums
        several = max(n_steepnesses, 2) if self.by_level else n_steepnesses
        found = fold_sums(data, folds, several, unweighted=unweighted)
        self.sums = found if isinstance(found, LevelSums) else None
        return found

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


def warn_if_undetermined(fit: Settled[Any], data: RidgeData) -> None:
    """Warn if the data and l2 do not determine all coefficients."""
    rank = fit.problem.rank
    if rank < data.rows.n_features or (fit.l2 == 0 and data.space is not None):
        small = "l2 is 0" if fit.l2 == 0 else f"l2={fit.l2:g} is lost in the rounding of the features' products"
        warn(
            f"{small} and only {rank} of {data.original.n_features} directions of the features are determined by "
            "the data: the solution of smallest norm is taken. Use a larger l2 for a solution that is stable."
        )


def ridge_path(
    data: RidgeData,
    steepnesses: Sequence[float],
    l2s: Floats,
    folds: Folds,
    weighting: Weighting,
    *,
    tuned: bool = False,
    every_round: bool = True,
    max_rounds: int,
    tol: float,
    reporter: Reporter,
    source: LevelSums | None = None,
    make_sums: MakeSums = fold_sums,
) -> list[Settled[Any]]:
    """The fit of every steepness, in their order.

    Folds are there to choose one of several l2, and to score examples by models that have not seen them. `tuned` says
    whether held-out errors are wanted even if there is one l2 only, `every_round` whether l2 is chosen in every round:
    where sums per fold cannot be kept, it is chosen at the first and at the settled consensus. `source` has sums of
    more rows than `data` has: the rounds are solved from them. Otherwise `make_sums` does what `fold_sums` does.
    """
    tuned = tuned or len(l2s) > 1
    n_cells = 2 * folds.n_folds if tuned else 1

    def turn(problem: Any, weights: WeightSequence, **start: Any) -> Settled[Any]:
        report = reporter.rounds(f"steepness {weights.steepness:g}")
        return alternate(problem, weights, max_rounds=max_rounds, tol=tol, report=report, **start)

    fits = _Fits(data, folds, l2s, weighting, every_round, turn)
    route = choose_route(data, n_cells, needs_rows=weighting.needs_rows) if source is None else "sums"
    if route != "sums":
        check_finite(data.training.X)
        costly = route == "iterative" or not sums_are_cheap(data, n_cells)
        path = [fits.from_rows(steepness, route, costly=costly) for steepness in steepnesses]
    else:
        unweighted = tuned or (weighting.blends and max(steepnesses) > 0)
        sums = source or make_sums(data, folds, len(steepnesses), unweighted=unweighted)
        path = fits.from_sums(steepnesses, sums, sums.plain() if unweighted else None)
    if tuned and len(l2s) == 1:  # nothing was chosen, so no error is known yet
        for fit in path:
            fit.problem.choice.errors = fit.problem.held_out_error(fit.expertise, fit.fold_theta)
    return path


@dataclass(frozen=True, eq=False)
class _Fits:
    """What the fits of all steepnesses have in common; `turn` runs the rounds of a problem."""

    data: RidgeData
    folds: Folds
    l2s: Floats
    weighting: Weighting
    every_round: bool
    turn: Turn

    def from_sums(
        self, steepnesses: Sequence[float], sums: LevelSums | FoldSums, plain: Statistics | None
    ) -> list[Settled[Any]]:
        """From the sums of one pass, if levels of disagreement can be kept apart."""
        data = self.data

        def fit(steepness: float) -> Settled[Any]:
            alike = bool((sums.easiness(steepness) == 1).all())
            easy = plain if alike and plain is not None else sums.easy(steepness)
            weights, choice = self._weights(steepness, alike=alike), L2Choice(self.l2s, self.every_round)
            settled = self.turn(SumsProblem(data, easy, plain, choice), weights)
            return self._finish(settled, "sums")

        n_multiplications = 10.0 * len(steepnesses) * self.folds.n_folds * data.rows.n_columns**3
        # Without levels each reads the rows, on all cores.
        return list(run_parallel(fit, steepnesses, 0 if isinstance(sums, FoldSums) else n_multiplications))

    def from_rows(self, steepness: float, route: Route, *, costly: bool) -> Settled[Any]:
        """By a pass per round; if that is costly, l2 is chosen at the first and at the settled consensus only."""
        weights = self._weights(steepness)
        choice = L2Choice(self.l2s, self.every_round and not costly)
        fold, n_folds = self.folds.fold, self.folds.n_folds
        problem = RowsProblem(self.data, fold, n_folds, choice, route == "iterative", weights.first)
        settled = self.turn(problem, weights)
        if costly and self.every_round and len(self.l2s) > 1:
            chosen, choice.l2 = choice.l2, np.nan
            settled.problem.solve(settled.expertise)
            if choice.l2 != chosen:
                weights = self._weights(steepness)
                settled = self.turn(settled.problem, weights, expertise=settled.expertise, done=settled.n_rounds)
        return self._finish(settled, route)

    def _weights(self, steepness: float, *, alike: bool | None = None) -> WeightSequence:
        return WeightSequence(self.data, steepness, self.weighting, alike=alike)

    def _finish(self, settled: Settled[Any], route: Route) -> Settled[Any]:
        """Models that have not seen a fold, with the final consensus."""
        problem, fold, n_folds = settled.problem, self.folds.fold, self.folds.n_folds
        if n_folds == 1:
            return replace(settled, route=route)
        if isinstance(problem, SumsProblem) and problem.sums.n_cells < n_folds:
            problem = RowsProblem(self.data, fold, n_folds, problem.choice, False, settled.weights)
        return replace(settled, route=route, fold_theta=problem.fold_models(settled.expertise))


def held_out_rankings(
    data: RidgeData, path: list[Settled[Any]], folds: Folds, examples: Positions, codes: Array, n_classes: int
) -> list[float]:
    """How well some examples are ranked by models that have not seen them, for every steepness."""
    scores = np.empty((len(examples), len(path) * data.targets.n_targets))
    for k in range(folds.n_folds):
        held_out = folds.fold[examples] == k
        theta = np.hstack([fit.fold_theta[k] for fit in path if fit.fold_theta is not None])
        scores[held_out] = data.rows.scores(theta, examples[held_out])
    weight = data.training.sample_weight[examples]
    by_steepness = np.split(scores, len(path), axis=1)
    return [ranking(of_fit, codes, n_classes, weight) for of_fit in by_steepness]
