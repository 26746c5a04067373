"""A training set -> RidgeData: features and labels in the solver's terms; the route; sums per level of disagreement."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from crowdwise._arrays import Array, Bools, Codes, Floats, Positions
from crowdwise.crowd._disagreement import example_weights
from crowdwise.labels._encode import as_column, encode_declared
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.truth import Known
from crowdwise.ridge.statistics import Statistics, collect
from crowdwise.ridge.targets import Targets, Votes, first_consensus
from crowdwise.rows.features import EXACT_COLUMNS, Rows, RowSpace, check_finite, check_squares, row_space
from crowdwise.training_set import TrainingSet
from crowdwise.weights.folds import Folds

Route = Literal["sums", "rows", "iterative"]

# Sums are kept per annotator while they take no more memory than this.
MEMORY_BUDGET = 2**29
# Cells of levels of disagreement and folds beyond this many cost more in calls than they save in reading.
MOST_CELLS = 2000
# Larger sums per annotator are kept only if they take no more memory than the features.
_SMALL_SUMS = 2**26
# With more labels per example than this, a pass over the rows in every round is cheaper than sums per annotator.
_LABELS_PER_EXAMPLE = 25
# Sums are made anew if more than this share of the rows count otherwise than before.
_MOVED_SHARE = 0.1


@dataclass(frozen=True, eq=False)
class RidgeData:
    """What is to be learned from: the features and labels of a training set in the solver's terms.

    Parameters
    ----------
    training : TrainingSet
        Examples and annotators that take part.
    labels : CrowdLabels
        Theirs; where the answer is known, all of them are that answer.
    rows : Rows
        The features of the examples that take part as the solver sees them, or their coordinates.
    space : RowSpace or None
        How to come back from coordinates, if they are used.
    targets : Targets
        How labels become numbers.
    first : ndarray of shape (n_examples, n_targets)
        The first consensus.
    """

    training: TrainingSet
    labels: CrowdLabels
    rows: Rows
    space: RowSpace | None
    targets: Targets
    first: Floats

    @classmethod
    def of(cls, training: TrainingSet, *, intercept: bool, init: Any, before: RidgeData | None = None) -> RidgeData:
        """From checked examples; the first consensus is "majority", "mean", or a value for every example.

        `before` has other labels of the same features, which are shifted, and ratings centred, as they were there.
        """
        known, labels = training.known, training.used_labels
        labels = labels if known is None else known.as_labels(labels)
        targets = Targets.of(labels, intercept=intercept)
        if before is not None:
            targets = replace(targets, centre=before.targets.centre)
        rows, space = _features(training, intercept, before)
        first = first_consensus(labels, targets, init if isinstance(init, str) else "mean")
        if not isinstance(init, str):
            unknown = training.unknown[training.used]
            first[unknown] = targets.of_values(_consensus_of_init(init, training))[unknown]
        return cls(training, labels, rows, space, targets, first)

    @cached_property
    def known(self) -> KnownRows | None:
        """The examples whose answer is known, with the labels that they were given."""
        known = self.training.known
        if known is None:
            return None
        return KnownRows(
            known, self.targets.of_values(known.answers), self.training.used_labels[known.at], self.targets
        )

    @property
    def original(self) -> Rows:
        """The features as the solver would see them without coordinates."""
        return self.rows if self.space is None else self.space.original

    def easiness(self, steepness: float) -> Floats:
        """The weights that come from disagreement."""
        return example_weights(self.training.weighing_disagreement, steepness)

    def consensus(self, expertise: Floats | None) -> tuple[Floats, Floats]:
        """The consensus of the labels, and the expertise of all who labelled each example."""
        votes = Votes.of(self.labels, np.ones(self.labels.n_annotators) if expertise is None else expertise)
        return self.first if expertise is None else votes.mean_targets(self.targets), votes.total

    def sums(self, easiness: Floats | None = None, cell: Codes | None = None, n_cells: int = 1) -> Statistics:
        """The sums of one pass over the rows."""
        weight = self.training.sample_weight
        sums = collect(
            self.rows, self.labels, self.targets, first=self.first, easiness=easiness, sample_weight=weight,
            cell=cell, n_cells=n_cells,
        )  # fmt: skip
        check_squares(sums.gram, self.training.X)
        return sums

    def sums_of(self, rows: Positions, cell: Codes) -> tuple[Statistics, Codes]:
        """The sums over some rows, and the cells that they are in."""
        cells, place = np.unique(cell, return_inverse=True)
        sums = collect(
            replace(self.rows, X=self.rows.X[rows]), self.labels[rows], self.targets, first=self.first[rows],
            sample_weight=self.training.sample_weight[rows], cell=place, n_cells=len(cells),
        )  # fmt: skip
        return sums, cells

    def against_truth(self, known: KnownRows, errors: Floats, theta: Floats, weight: Floats) -> Floats:
        """Squared errors of annotators, those on examples whose answer is known being against that answer.

        `errors` are weighted sums against the model, as sums know them: known answers are taken for labels. Their
        errors against the model are taken out.
        """
        weight, scores = weight[known.at], self.rows.scores(theta, known.at)
        return np.maximum(errors - known.errors_of_answers(weight, scores) + known.errors(weight), 0.0)

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


def _features(training: TrainingSet, intercept: bool, before: RidgeData | None) -> tuple[Rows, RowSpace | None]:
    """Features of the examples that take part, as the solver sees them."""
    if before is not None and np.array_equal(training.used, before.training.used):
        return before.rows, before.space
    if before is not None and before.space is None and not before.rows.is_sparse:
        return replace(before.rows, X=training.rows), None
    rows = Rows.of(training.rows, intercept=intercept)
    if rows.is_sparse or rows.n_examples < rows.n_features:
        check_finite(training.X)
    elif len(training.others):
        check_finite(training.X[training.others], training.others)
    space = row_space(rows)
    return (rows, None) if space is None else (space.rows, space)


def _consensus_of_init(init: Any, training: TrainingSet) -> Array:
    """What `init` has for the examples that take part: positions of classes, or ratings."""
    labels, values = training.labels, as_column(init, "init")
    if len(values) != len(labels):
        raise ValueError(f"init must have one value for each of the {len(labels)} examples; got {len(values)}.")
    values = values[training.used]
    if labels.classes is None:
        ratings = np.asarray(values, dtype=np.float64)
        bad = ~np.isfinite(ratings)
    else:
        codes = encode_declared(values, labels.classes)
        bad = codes < 0
    if bad.any():
        usable = "finite ratings" if labels.classes is None else f"classes among {labels.classes.tolist()}"
        raise ValueError(f"init must be {usable}, one for every example with labels; got {values[bad].tolist()[0]!r}.")
    return ratings if labels.classes is None else codes


@dataclass(frozen=True, eq=False)
class KnownRows:
    """Examples whose answer is known.

    Parameters
    ----------
    known : Known
        Which they are among the examples that take part, and their answers.
    answers : ndarray of shape (n_known, n_targets)
        Their answers in the solver's terms.
    labels : CrowdLabels
        The labels that they were given.
    targets : Targets
        How labels become numbers.
    """

    known: Known
    answers: Floats
    labels: CrowdLabels
    targets: Targets

    @property
    def at(self) -> Positions:
        """Their positions among the examples that take part."""
        return self.known.at

    def errors(self, weight: Floats, scores: Floats | None = None) -> Floats:
        """Weighted sums of squared errors of the labels, per annotator, against the answers or against scores."""
        example = self.labels.example_index
        right = (self.answers if scores is None else scores)[example]
        squared = self.targets.squared(self.targets.of_values(self.labels.values) - right)
        return self.labels._sum_per_annotator(weight[example] * squared)

    def errors_of_answers(self, weight: Floats, scores: Floats) -> Floats:
        """The same of the answers against scores, summed over the examples that each annotator labelled."""
        squared = weight * self.targets.squared(self.answers - scores)
        return self.labels._sum_per_annotator(squared[self.labels.example_index])


def choose_route(data: RidgeData, n_cells: int, *, needs_rows: bool) -> Route:
    """How it is solved: "sums" (one pass), "rows" (a pass per round) or "iterative" (no gram matrix)."""
    if data.rows.n_columns > EXACT_COLUMNS:
        return "iterative"
    return "rows" if needs_rows or not sums_are_cheap(data, n_cells) else "sums"


def sums_are_cheap(data: RidgeData, n_cells: int) -> bool:
    """Whether sums can be kept for every annotator and cell, and cost less than the rows and a pass per round."""
    labels, n_columns = data.labels, data.rows.n_columns
    many = labels.n_labels > _LABELS_PER_EXAMPLE * len(labels)
    large = 8 * labels.n_annotators * n_columns**2 > max(_SMALL_SUMS, 8 * len(labels) * n_columns)
    return labels.is_complete or (fits_in_memory(data, n_cells) and not many and not large)


def fits_in_memory(data: RidgeData, n_cells: int) -> bool:
    """Whether sums can be kept for this many cells."""
    n_annotators, complete = data.labels.n_annotators, data.labels.is_complete
    return n_cells * cell_bytes(n_annotators, complete, data.rows.n_columns, data.targets.n_targets) <= MEMORY_BUDGET


def cell_bytes(n_annotators: int, complete: bool, n_columns: int, n_targets: int) -> int:
    """About how much memory the sums of one cell take."""
    return 8 * n_columns * ((1 if complete else n_annotators) * n_columns + n_annotators * n_targets)


# ---------------------------------------------------------------------------------------------------------------------
# Sums of any steepness

# Data, and the folds of their examples.
InFolds = tuple[RidgeData, Folds]


@dataclass(frozen=True, eq=False)
class LevelSums:
    """Sums per level of disagreement and fold: cells are the folds of the first level, then those of the second, ...

    `levels` is the disagreement of each level, `level` that of each example, if these are known.
    """

    statistics: Statistics
    levels: Floats
    n_folds: int
    level: Codes | None = None

    def of_folds(self, easiness: Floats | None = None) -> Statistics:
        """Sums per fold, weighted by the easiness of each level if that is given."""
        weight = None if easiness is None else np.repeat(easiness, self.n_folds)
        return self.statistics.combine(np.tile(np.eye(self.n_folds), len(self.levels)), weight)

    def easiness(self, steepness: float) -> Floats:
        """The weight of each level."""
        return example_weights(self.levels, steepness)

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

    def relabelled(self, before: InFolds, after: InFolds) -> LevelSums | None:
        """The sums after some labels have changed, from those of the rows concerned; None if these are many.

        The arrays of these sums are written over. With other labels, the disagreement of a level may be another, but
        rows that stayed as they were are still of one level.
        """
        was, now = before[0].training.used, after[0].training.used
        assert self.level is not None
        value, level = _of_all(now, after[0].training.weighing_disagreement), _of_all(was, self.level)
        stay = was & now & ~_relabelled(before[0], after[0])
        if self.n_folds > 1:
            stay &= _of_all(was, before[1].fold) == _of_all(now, after[1].fold)
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
        for (data, folds), level_of_row, sign in ((before, level, -1.0), (after, np.where(stay, level, place), 1.0)):
            used = data.training.used
            level_of_used = level_of_row[used]
            cell = level_of_used if self.n_folds == 1 else level_of_used * self.n_folds + folds.fold
            rows = (np.cumsum(used) - 1)[moved[used[moved]]]
            if len(rows):
                statistics.add_to_cells(*data.sums_of(rows, cell[rows]), sign)
        statistics.clear(np.bincount(cell, minlength=statistics.n_cells) == 0)
        levels = np.nan_to_num(levels, nan=value[now][0])  # of no row, whatever it is
        return LevelSums(replace(statistics, targets=after[0].targets), levels, self.n_folds, level_of_used)


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
    labels, new_labels = before.labels[old], after.labels[new]
    n_labels, n_new_labels = labels.labels_per_example, new_labels.labels_per_example
    as_many = n_labels == n_new_labels
    same = as_many & (before.first[old] == after.first[new]).all(axis=1)
    compared, new_compared = np.repeat(as_many, n_labels), np.repeat(as_many, n_new_labels)
    differs = (labels.annotator_index[compared] != new_labels.annotator_index[new_compared]) | (
        labels.values[compared] != new_labels.values[new_compared]
    )
    same[labels.example_index[compared][differs]] = False
    changed[np.flatnonzero(both)] = ~same
    return changed
