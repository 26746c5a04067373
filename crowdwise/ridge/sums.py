"""Chunks of features and labels -> RidgeSums, which add: all that is kept of their examples.

The sum over two chunks is the sums of one added to those of the other, wherever they were computed and in whatever
order: `RidgeSums.of` is what is mapped over chunks, ``+`` is what joins the results. Classes and annotators may differ
from chunk to chunk. An annotator who is not in a chunk has labelled nothing in it: their labels there are missing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from crowdwise._arrays import Array, Floats, FrozenArrays, Positions
from crowdwise._limits import N_FOLDS
from crowdwise.crowd._disagreement import CLASS_DISTANCE, RelativeTo, pair_sums
from crowdwise.exceptions import DataError
from crowdwise.labels._encode import encode_declared, smallest_integer_type
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.scale import ScaleName, checked_span
from crowdwise.ridge.data import MEMORY_BUDGET, MOST_CELLS, LevelSums, RidgeData, cell_bytes
from crowdwise.ridge.statistics import Placed, Statistics, add_placed, collect
from crowdwise.ridge.targets import Targets, first_consensus
from crowdwise.rows.chunks import Chunk
from crowdwise.rows.features import EXACT_COLUMNS, Rows, check_finite, check_squares, is_far
from crowdwise.rows.summary import DataSummary, Sample, label_keys
from crowdwise.training_set import TrainingSet
from crowdwise.weights.folds import Folds, joint_keys, stored_keys

# Bits of a sum over pairs of ratings that depend on the order in which they were added.
_ROUNDED_BITS = 12
# With more features than this, the folds of the sample have too few rows to stand for those of all examples.
_WIDE = 300


class SumsTooLargeError(DataError):
    """Sums would take too much memory: no row of a block is to blame."""


@dataclass(frozen=True)
class SumsPlan:
    """What sums depend on, besides features and labels."""

    scale: ScaleName  # of labels
    intercept: bool  # whether the model has one
    init: str  # the first consensus: "majority" or "mean"
    n_folds: int
    seed: int  # of the folds
    by_level: bool  # whether levels of disagreement are kept apart: they are not if all examples count alike anyway
    tuned: bool  # whether something is chosen over folds, so that they are needed

    def folds_that_fit(
        self, n_folds: int, n_levels: int, n_annotators: int, complete: bool, shape: tuple[int, int]
    ) -> int:
        """How many folds can be kept apart: as many as asked for, or one if nothing is chosen over folds.

        `shape` is the number of columns and targets.
        """
        n_bytes = n_levels * cell_bytes(n_annotators, complete, *shape)
        most = MEMORY_BUDGET // n_bytes if n_bytes else n_folds
        if most >= n_folds and (n_folds == self.n_folds or not self.tuned):
            return n_folds
        if self.tuned or most < 1:
            raise SumsTooLargeError(
                f"sums for {n_annotators} annotators and {n_levels} levels of disagreement do not fit into "
                f"{MEMORY_BUDGET / 2**20:.0f} MiB: with labels missing, each annotator needs sums of their own. Use "
                "fewer features or folds, steepness=0 (one level), or fit in memory, which can do without sums."
            )
        return 1


@dataclass(frozen=True, eq=False)
class RidgeSums(FrozenArrays):
    """All that is kept of the examples of chunks.

    Sums have a column of ones, whatever the model; of classes they are counts. Cells are the folds of the first level,
    then those of the second, and so on.
    """

    plan: SumsPlan
    statistics: Statistics  # of the annotators who have given a label
    # Folds that are kept apart: those of the plan; one if nothing is chosen over folds and there are few features, so
    # that models of the sample are as good, or where more take too much memory.
    n_folds: int
    levels: Floats  # (n_levels, 2): levels of disagreement, as number of labels and sum over pairs
    examples_per_level: NDArray[np.int64]
    summary: DataSummary
    batches: tuple[Any, ...] = ()  # names of the batches that are in the sums

    @classmethod
    def of(cls, plan: SumsPlan, chunk: Chunk, batches: tuple[Any, ...] = ()) -> RidgeSums:
        """The sums over one chunk."""
        X, n_features = chunk.X, chunk.X.shape[1]
        if n_features + 1 > EXACT_COLUMNS:
            raise DataError(
                f"blocks are summed up in products of features, for at most {EXACT_COLUMNS - 1} of them; X has "
                f"{n_features}. Use fit, or fewer features."
            )
        keys = stored_keys(X, plan.seed)
        fold = (keys % np.uint64(plan.n_folds)).astype(smallest_integer_type(plan.n_folds))
        sample = Sample.of(joint_keys(keys, label_keys(chunk.labels)), chunk, fold, dense=True)
        summary = DataSummary.of(chunk, sample)
        used = _padded(chunk.labels.select_annotators(summary.labels_per_annotator > 0))
        targets, levels = _targets(used, plan), np.zeros((min(len(chunk), 1), 2))
        n_folds, level = plan.n_folds if plan.tuned or n_features > _WIDE else 1, np.zeros(len(chunk), dtype=np.intp)
        if len(chunk) and plan.by_level:
            levels, level = _levels(used)
        shape = n_features + 1, targets.n_targets
        n_folds = plan.folds_that_fit(n_folds, len(levels), used.n_annotators, used.is_complete, shape)
        if sparse.issparse(X):
            check_finite(X)
        statistics = collect(
            _rows(X, plan), used, targets, first=first_consensus(used, targets, plan.init), sample_weight=chunk.weight,
            cell=level if n_folds == 1 else level * n_folds + fold, n_cells=len(levels) * n_folds,
        )  # fmt: skip
        check_squares(statistics.gram, X)
        count = np.bincount(level, minlength=len(levels))
        return cls(plan, statistics, n_folds, levels, count, summary, batches)

    @property
    def n_examples(self) -> int:
        """How many examples took part."""
        return self.summary.n_examples

    def weight_of_levels(self, levels: LevelSums | None, steepness: float) -> tuple[Floats, Array]:
        """What an example of each level counts, and how many there are."""
        assert levels is not None
        count = self.examples_per_level
        present = levels.statistics.present.reshape(len(count), -1).sum(axis=1)
        return levels.easiness(steepness) * present / count, count

    def __add__(self, other: RidgeSums) -> RidgeSums:
        """The sums over the examples of both."""
        self.check_mergeable(other.plan)
        if shared := set(self.batches) & set(other.batches):
            raise DataError(
                f"the batch {sorted(map(repr, shared))[0]} was already learned from: adding it again would count "
                "its examples twice. Leave it out, or give it another id if it holds other examples."
            )
        summary, sides = self.summary + other.summary, (self, other)
        levels, place = np.unique(np.concatenate([self.levels, other.levels]), axis=0, return_inverse=True)
        _check_levels(len(levels))
        at = np.split(place.ravel(), [len(self.levels)])
        active = summary.active
        parts = [side.statistics for side in sides if side.statistics.n_cells]
        complete = all(part.is_complete and part.n_annotators == len(active) for part in parts)
        recoded_sides = [side._recoded(summary.classes) for side in sides]
        n_folds = self.plan.folds_that_fit(
            min(self.n_folds, other.n_folds), len(levels), len(active), complete,
            recoded_sides[0].statistics.first.shape[1:],
        )  # fmt: skip
        first, second = (side._placed(n_folds, place, active) for side, place in zip(recoded_sides, at, strict=True))
        if other.n_examples > self.n_examples:  # around the centre of most
            first, second = second, first
        count = np.zeros(len(levels), dtype=np.int64)
        for side, levels_of_side in zip(sides, at, strict=True):
            count[levels_of_side] += side.examples_per_level
        statistics = add_placed(first, second, len(levels) * n_folds, active)
        return RidgeSums(self.plan, statistics, n_folds, levels, count, summary, self.batches + other.batches)

    def _recoded(self, classes: Array | None) -> RidgeSums:
        """The same with counts of more classes."""
        if classes is None or self.summary.classes is None:
            return self
        statistics = self.statistics.recoded(_places(self.summary.classes, classes), max(len(classes), 2))
        return replace(self, statistics=statistics)

    def _placed(self, n_folds: int, at: Positions, active: Array) -> Placed:
        """The statistics, and where they are among those of the levels `at` and of all annotators with labels."""
        statistics = self.statistics
        if n_folds < self.n_folds:  # added up, which takes less memory; the sample keeps its folds
            statistics = statistics.combine(np.repeat(np.eye(len(self.levels)), self.n_folds, axis=1))
        cell = (at[:, np.newaxis] * n_folds + np.arange(n_folds)).ravel()
        return Placed(statistics, cell, _places(statistics.annotators, active))

    def checked(self, plan: SumsPlan) -> RidgeSums:
        """The same; raises if they are for another plan."""
        if plan != self.plan:
            raise DataError(
                "a setting that the sums of this stream depend on was changed after its first block: they are for "
                f"{self.plan}, not for {plan}. Start with a new model."
            )
        return self

    def check_mergeable(self, plan: SumsPlan) -> None:
        """Raise if these cannot be added to sums for another plan."""
        if plan != self.plan:
            raise DataError(
                f"only sums for the same settings can be added; these are for {plan} and {self.plan}. Fit both models "
                "with the same settings."
            )


def _padded(labels: CrowdLabels) -> CrowdLabels:
    """Labels whose codes are of two classes at least: sums have a column for every class but the first."""
    if labels.classes is None or len(labels.classes) > 1:
        return labels
    return replace(labels, classes=np.arange(2))


def _targets(labels: CrowdLabels, plan: SumsPlan) -> Targets:
    if labels.classes is not None:
        return Targets.counting(len(labels.classes))
    return Targets(None, float(labels.values.mean()) if plan.intercept and labels.n_labels else 0.0, 1.0, 1.0)


def _levels(labels: CrowdLabels) -> tuple[Floats, Positions]:
    """The levels of disagreement that occur, as number of labels and sum over pairs, and that of every example."""
    totals = pair_sums(labels)
    if labels.classes is None:
        bits = totals.view(np.uint64) + np.uint64(2 ** (_ROUNDED_BITS - 1))
        totals = (bits >> np.uint64(_ROUNDED_BITS) << np.uint64(_ROUNDED_BITS)).view(np.float64)
        values, place = np.unique(totals, return_inverse=True)
    else:  # multiples of what two different classes are apart
        place = (totals / CLASS_DISTANCE).astype(np.intp)
        values = CLASS_DISTANCE * np.arange(place.max() + 1)
    code = place if labels.is_complete else labels.labels_per_example * len(values) + place
    present = np.bincount(code) > 0
    codes = np.flatnonzero(present)
    _check_levels(len(codes))
    n_labels = codes // len(values) if not labels.is_complete else np.full(len(codes), labels.n_annotators)
    return np.column_stack([n_labels, values[codes % len(values)]]), (np.cumsum(present) - 1)[code]


def _check_levels(n_levels: int) -> None:
    if n_levels > MOST_CELLS:
        raise SumsTooLargeError(
            f"the disagreement of the examples takes more than {MOST_CELLS} different values, and sums "
            "are kept for each. Round the ratings (to half points, say), weight all examples equally with steepness=0, "
            "or fit in memory, which can do without sums."
        )


def check_folds(n_folds: int, n_examples: int) -> None:
    """Raise if there are too few folds to choose something."""
    if n_folds < 2:
        raise DataError(
            "cross-validation needs at least 2 examples with different features; found "
            f"n_samples = {n_examples} all the same or in one fold."
        )


def _rows(X: Any, plan: SumsPlan) -> Rows:
    if plan.intercept and X.shape[0]:
        return Rows.of(X, intercept=True)
    X = sparse.csr_array(X) if sparse.issparse(X) else X
    return Rows(X, np.zeros(X.shape[1]), True)  # the model goes through the origin, but its sums have a column of ones


def _places(names: Array, among: Array) -> Positions:
    """Where each name is among others, which have them all."""
    return encode_declared(names, among).astype(np.intp)


# ---------------------------------------------------------------------------------------------------------------------
# What the rounds are solved from


def sums_to_solve(sums: RidgeSums, relative_to: RelativeTo) -> tuple[RidgeData, Folds, LevelSums]:
    """The sample as data of a fit, its folds, and the sums per level and fold of all examples.

    Rounds, l2 and the models of folds come from the sums of all examples. The precision of the model, the accuracy of
    annotators, near copies and what ranks steepnesses come from the sample.
    """
    sample = sums.summary.with_groups().in_order()
    n_labels, totals = sums.levels.T
    differs = sums.summary.disagreement(totals, n_labels, relative_to)
    levels, folds = _with_folds(sums, sample, LevelSums(_for_model(sums), differs, sums.n_folds))
    return _data(sums, sample, levels.statistics, relative_to), folds, levels


def _for_model(sums: RidgeSums) -> Statistics:
    """The sums in the targets and columns of the model."""
    statistics, summary = sums.statistics, sums.summary
    if summary.classes is None:
        ratings = summary.ratings
        span = checked_span(ratings.squares / ratings.count, ratings.low, ratings.high)
        statistics = replace(statistics, targets=replace(statistics.targets, span=span))
    else:
        targets = Targets.of_classes(len(summary.classes))
        cross, first = (counts @ targets.codes for counts in statistics.counts_of_classes())
        squares = targets.factor * targets.n_targets * statistics.mass
        statistics = replace(statistics, cross=cross, first=first, squares=squares, targets=targets)
    return statistics if sums.plan.intercept else statistics.without_intercept()


def _with_folds(sums: RidgeSums, sample: Sample, levels: LevelSums) -> tuple[LevelSums, Folds]:
    """The sums without folds that have no example, and the folds of the sample."""
    if levels.n_folds < sums.plan.n_folds:  # more were not kept: the sample's own have to do
        return levels, Folds.by_content(sample.X, N_FOLDS)
    of_fold = levels.statistics.present.reshape(-1, levels.n_folds).sum(axis=0)
    used = np.flatnonzero(of_fold > 0)
    if sums.plan.tuned:
        check_folds(len(used), sums.n_examples)
    if len(used) < levels.n_folds:
        cells = (np.arange(len(levels.levels))[:, np.newaxis] * levels.n_folds + used).ravel()
        use = np.eye(levels.statistics.n_cells)[cells]
        levels = LevelSums(levels.statistics.combine(use), levels.levels, len(used))
    assert sample.fold is not None
    return levels, Folds(np.searchsorted(used, sample.fold), len(used))


def _data(sums: RidgeSums, sample: Sample, statistics: Statistics, relative_to: RelativeTo) -> RidgeData:
    """The sample, as if it had been given to `fit`, but centred and scaled as all examples are."""
    summary = sums.summary
    active = summary.labels_per_annotator > 0
    used = sample.labels.select_annotators(active)
    differs = summary.disagreement(pair_sums(used), used.labels_per_example, relative_to)
    everyone = np.ones(len(sample), dtype=bool)
    training = TrainingSet(sample.X, sample.labels, everyone, active, used, sample.weight, differs)
    gram: Array = sums.statistics.gram.sum(axis=(0, 1))
    mean = gram[:-1, -1] / gram[-1, -1]
    spread = np.sqrt(np.maximum(np.diag(gram)[:-1] / gram[-1, -1] - mean**2, 0.0))
    far = is_far(sums.statistics.shift, spread)
    rows = Rows(sample.X, statistics.shift, statistics.intercept, far)
    first = first_consensus(used, statistics.targets, sums.plan.init)
    return RidgeData(training, used, rows, None, statistics.targets, first)
