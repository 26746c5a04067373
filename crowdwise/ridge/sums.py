"""Blocks of features and labels -> RidgeSums, which add: all that is kept of their examples.

The sum over two blocks is the sums of one added to those of the other, whoever computed them and in whatever order:
`RidgeSums.of` is what is mapped over blocks, ``+`` is what joins the results. Classes and annotators may differ from
block to block. An annotator who is not in a block has labelled nothing in it: their labels there are missing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from crowdwise._arrays import Array, Floats, FrozenArrays, Positions
from crowdwise.crowd._disagreement import (
    CLASS_DISTANCE,
    PairMoments,
    RatingMoments,
    RelativeTo,
    distinct_levels,
    pair_sums,
    scaled_pair_sums,
)
from crowdwise.exceptions import DataError
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import as_objects, encode, encode_declared, smallest_integer_type
from crowdwise.labels.groups import groups_by_name, joined_groups
from crowdwise.labels.scale import ScaleName
from crowdwise.ridge.collect import collect
from crowdwise.ridge.data import EXACT_COLUMNS, MEMORY_BUDGET, MOST_CELLS, first_consensus
from crowdwise.ridge.kept_rows import KeptRows, places
from crowdwise.ridge.statistics import Placed, Statistics, add_placed, no_statistics
from crowdwise.ridge.targets import Targets
from crowdwise.rows.features import Rows, check_finite, check_gram
from crowdwise.rows.keys import label_keys
from crowdwise.weights.folds import joint_keys, stored_keys

# Bits of a sum over pairs of ratings that depend on the order in which they were added.
_ROUNDED_BITS = 12
# With more features than this, the folds of the sample have too few rows to stand for those of all examples.
_WIDE = 300
# A block is summed around the centre of the stream unless it is this many times its own width away from it.
_FAR = 10.0


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

    def folds_that_fit(self, wanted: int, n_levels: int, n_annotators: int, complete: bool, like: Statistics) -> int:
        """How many folds can be kept apart: as many as wanted, or one if nothing is chosen over folds.

        Columns and targets of the sums are those of `like`.
        """
        n_columns, n_targets = like.first.shape[1:]
        n_numbers = n_columns * ((1 if complete else n_annotators) * n_columns + n_annotators * n_targets)
        most = MEMORY_BUDGET // (8 * n_levels * n_numbers) if n_levels * n_numbers else wanted
        if most >= wanted and (wanted == self.n_folds or not self.tuned):
            return wanted
        if self.tuned or most < 1:
            raise SumsTooLargeError(
                f"sums for {n_annotators} annotators and {n_levels} levels of disagreement do not fit into "
                f"{MEMORY_BUDGET / 2**20:.0f} MiB: with labels missing, each annotator needs sums of their own. Use "
                "fewer features or folds, steepness=0 (one level), or fit in memory, which can do without sums."
            )
        return 1


@dataclass(frozen=True, eq=False)
class RidgeSums(FrozenArrays):
    """All that is kept of the examples of blocks.

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
    classes: Array | None  # None for ratings
    labels_per_class: NDArray[np.int64]  # none for ratings
    annotators: Array  # all names
    labels_per_annotator: NDArray[np.int64]
    moments: RatingMoments  # of ratings
    pairs: PairMoments  # what disagreement is scaled by
    most_labels: int  # of an example
    n_given: int  # how many examples there were, with those that take no part
    n_unlabelled: int  # how many of them had no label
    kept: KeptRows  # a sample of rows
    feature_names: Array | None = None
    batches: tuple[Any, ...] = ()  # names of the batches that are in the sums
    groups: dict[Any, Any] | None = None  # of annotators, by their names

    @classmethod
    def nothing(
        cls, plan: SumsPlan, n_features: int, classes: Array | None = None, annotators: Array | None = None
    ) -> RidgeSums:
        """The sums over no examples, with the classes and annotators that were declared, if any were."""
        if n_features + 1 > EXACT_COLUMNS:
            raise DataError(
                f"blocks are summed up in products of features, for at most {EXACT_COLUMNS - 1} of them; X has "
                f"{n_features}. Use fit, or fewer features."
            )
        ratings = plan.scale == "interval"
        known = np.zeros(0, dtype=np.int64) if classes is None else classes
        targets = Targets(None, 0.0, 1.0, 1.0) if ratings else Targets.counting(max(len(known), 2))
        names = np.zeros(0, dtype=np.int64) if annotators is None else annotators
        return cls(
            plan=plan,
            statistics=no_statistics(n_features, targets),
            n_folds=plan.n_folds if plan.tuned or n_features > _WIDE else 1,
            levels=np.zeros((0, 2)),
            examples_per_level=np.zeros(0, dtype=np.int64),
            classes=None if ratings else known,
            labels_per_class=np.zeros(0 if ratings else len(known), dtype=np.int64),
            annotators=names,
            labels_per_annotator=np.zeros(len(names), dtype=np.int64),
            moments=RatingMoments(),
            pairs=PairMoments(),
            most_labels=0,
            n_given=0,
            n_unlabelled=0,
            kept=KeptRows.none(n_features, ratings=ratings),
        )

    @classmethod
    def of(
        cls, plan: SumsPlan, X: Any, labels: CrowdLabels, sample_weight: Floats, near: RidgeSums | None = None
    ) -> RidgeSums:
        """The sums over one block of rows.

        That is quicker, and takes less memory, if the sums `near` that they are going to be added to are known.
        """
        labelled = labels.labels_per_example > 0
        used = labelled & (sample_weight > 0)
        sums = cls.nothing(plan, X.shape[1], labels.classes, labels.annotators)
        groups = groups_by_name(labels.groups, labels.annotators)
        sums = replace(sums, n_given=len(labels), n_unlabelled=int((~labelled).sum()), groups=groups)
        if not used.all():
            check_finite(X)
            X, labels, sample_weight = X[used], labels[used], sample_weight[used]
        return sums if len(labels) == 0 else sums._of_learnt(X, labels, sample_weight, near)

    def _of_learnt(self, X: Any, labels: CrowdLabels, weight: Floats, near: RidgeSums | None) -> RidgeSums:
        """The sums over examples that all take part."""
        plan, given = self.plan, labels.labels_per_annotator
        core = _padded(labels.select_annotators(given > 0))
        keys = stored_keys(X, plan.seed)
        fold = (keys % np.uint64(plan.n_folds)).astype(smallest_integer_type(plan.n_folds))
        totals = pair_sums(core)
        one_level = np.zeros((1, 2)), np.zeros(len(core), dtype=np.intp)
        levels, level = _levels(core, totals) if plan.by_level else one_level
        count = np.bincount(level, minlength=len(levels))
        if plan.by_level:
            moments = PairMoments.of(levels[:, 1], levels[:, 0], np.bincount(level, weight, len(levels)))
        else:
            moments = PairMoments.of(totals, core.labels_per_example, weight)
        wanted = self.n_folds if near is None else near.n_folds
        n_folds = plan.folds_that_fit(wanted, len(levels), core.n_annotators, core.is_complete, self.statistics)
        cell = level if n_folds == 1 else level * n_folds + fold
        statistics = self._collect(X, core, weight, cell, len(levels) * n_folds, near)
        return replace(
            self,
            statistics=statistics,
            n_folds=n_folds,
            levels=levels,
            examples_per_level=count,
            labels_per_class=_labels_per_class(core, len(self.labels_per_class)),
            labels_per_annotator=np.array(given),
            moments=RatingMoments.of(labels.values) if labels.classes is None else RatingMoments(),
            pairs=moments,
            most_labels=int(labels.labels_per_example.max()),
            kept=KeptRows.of(
                joint_keys(keys, label_keys(labels)), X, labels, weight, fold, None if near is None else near.kept.bound
            ),
        )

    def _collect(
        self, X: Any, core: CrowdLabels, weight: Floats, cell: Positions, n_cells: int, near: RidgeSums | None
    ) -> Statistics:
        plan = self.plan
        rows = _rows(X, plan, near.statistics.shift if near is not None and near.n_examples else None)
        centre = 0.0
        if core.classes is None and plan.intercept:
            known = near is not None and near.moments.count > 0
            centre = near.statistics.targets.centre if near is not None and known else float(core.values.mean())
        targets = Targets(None, centre, 1.0, 1.0) if core.classes is None else Targets.counting(len(core.classes))
        first = first_consensus(core, targets, plan.init)
        if rows.is_sparse:
            check_finite(X)
        sums = collect(rows, core, targets, first=first, sample_weight=weight, cell=cell, n_cells=n_cells)
        check_gram(sums.gram, X)
        return sums

    @property
    def n_examples(self) -> int:
        """How many examples took part."""
        return int(self.examples_per_level.sum())

    def __add__(self, other: RidgeSums) -> RidgeSums:
        """The sums over the examples of both."""
        self._check_same_kind(other)
        annotators = _union(self.annotators, other.annotators)
        classes = self.classes
        if self.classes is not None and other.classes is not None:
            classes = _union_of_classes(self.classes, other.classes)
        levels, at = _union_of_levels(self.levels, other.levels)
        one, two = (side._moved(annotators, classes) for side in (self, other))
        active = annotators[one.labels_per_annotator + two.labels_per_annotator > 0]
        parts = [side.statistics for side in (one, two) if side.statistics.n_cells]
        complete = all(part.is_complete and part.n_annotators == len(active) for part in parts)
        wanted = min(self.n_folds, other.n_folds)
        n_folds = self.plan.folds_that_fit(wanted, len(levels), len(active), complete, one.statistics)
        one, two = (side if side.n_folds == n_folds else side.with_one_fold() for side in (one, two))
        placed = one._placed(at[0], active), two._placed(at[1], active)
        if other.n_examples > self.n_examples:  # around the centre of most
            placed = placed[::-1]
        return replace(
            one,
            statistics=add_placed(*placed, len(levels) * n_folds, active),
            levels=levels,
            examples_per_level=_added(len(levels), at, [one.examples_per_level, two.examples_per_level]),
            labels_per_class=one.labels_per_class + two.labels_per_class,
            labels_per_annotator=one.labels_per_annotator + two.labels_per_annotator,
            moments=one.moments + two.moments,
            pairs=one.pairs + two.pairs,
            most_labels=max(one.most_labels, two.most_labels),
            n_given=one.n_given + two.n_given,
            n_unlabelled=one.n_unlabelled + two.n_unlabelled,
            kept=one.kept + two.kept,
            feature_names=one.feature_names if two.feature_names is None else two.feature_names,
            batches=one.batches + two.batches,
            groups=joined_groups(one.groups, two.groups),
        )

    def disagreement(self, labels: CrowdLabels, relative_to: RelativeTo) -> Floats:
        """Of some examples, on the scale of all."""
        return self.scaled(pair_sums(labels), labels.labels_per_example, relative_to)

    def scaled(self, totals: Floats, n_labels: Array, relative_to: RelativeTo) -> Floats:
        """Disagreement from sums over pairs and numbers of labels, on the scale of all examples."""
        n_classes = None if self.classes is None else len(self.classes)
        span = self.moments.high - self.moments.low if n_classes is None else 0.0
        return scaled_pair_sums(totals, n_labels, relative_to, self.pairs, n_classes=n_classes, span=span)

    def with_one_fold(self) -> RidgeSums:
        """The same sums with folds added up, which takes less memory; the sample keeps its folds."""
        n_levels = len(self.levels)
        use = np.repeat(np.eye(n_levels), self.n_folds, axis=1)
        return replace(self, statistics=self.statistics.combine(use), n_folds=1)

    def _moved(self, annotators: Array, classes: Array | None) -> RidgeSums:
        """The same in the terms of more annotators and classes; the statistics keep those annotators that they have."""
        who, statistics, klass = places(self.annotators, annotators), self.statistics, None
        labels_per_class = self.labels_per_class
        if classes is not None and self.classes is not None:
            klass = places(self.classes, classes)
            statistics = statistics.recoded(klass, max(len(classes), 2))
            labels_per_class = _added(len(classes), [klass], [labels_per_class])
        return replace(
            self,
            statistics=statistics,
            classes=classes,
            labels_per_class=labels_per_class,
            annotators=annotators,
            labels_per_annotator=_added(len(annotators), [who], [self.labels_per_annotator]),
            kept=self.kept.recoded(who, klass),
        )

    def _placed(self, at: Positions, active: Array) -> Placed:
        """The statistics, and where they are among those of the levels `at` and of all annotators with labels."""
        cell = (at[:, np.newaxis] * self.n_folds + np.arange(self.n_folds)).ravel()
        return Placed(self.statistics, cell, places(self.statistics.annotators, active))

    def _check_same_kind(self, other: RidgeSums) -> None:
        if self.plan != other.plan:
            raise DataError(
                f"only sums for the same settings can be added; these are for {self.plan} and {other.plan}. Fit both "
                "models with the same settings."
            )
        if self.statistics.shift.shape != other.statistics.shift.shape:
            raise DataError(
                f"only sums over the same features can be added; one side has {len(self.statistics.shift)} and the "
                f"other {len(other.statistics.shift)}."
            )
        names, other_names = (
            () if some is None else some.tolist() for some in (self.feature_names, other.feature_names)
        )
        if self.n_given and other.n_given and list(names) != list(other_names):
            raise DataError("only sums over features with the same names, in the same order, can be added.")
        self.check_batches(other.batches)

    def check_batches(self, names: tuple[Any, ...]) -> None:
        """Raise if one of these batches is in the sums already."""
        if shared := set(self.batches) & set(names):
            raise DataError(
                f"the batch {sorted(map(repr, shared))[0]} has been learned from already: adding it again would count "
                "its examples twice. Leave it out, or give it another id if it holds other examples."
            )


def _padded(labels: CrowdLabels) -> CrowdLabels:
    """Labels whose codes are of two classes at least: sums have a column for every class but the first."""
    if labels.classes is None or len(labels.classes) > 1:
        return labels
    return replace(labels, classes=np.arange(2))


def _labels_per_class(labels: CrowdLabels, n_classes: int) -> NDArray[np.int64]:
    if labels.classes is None:
        return np.zeros(0, dtype=np.int64)
    return np.array([column.sum(dtype=np.int64) for column in labels._tally.T[:n_classes]], dtype=np.int64)


def _levels(labels: CrowdLabels, totals: Floats) -> tuple[Floats, Positions]:
    """The levels of disagreement that occur, as number of labels and sum over pairs, and that of every example."""
    if labels.classes is None:
        bits = totals.view(np.uint64) + np.uint64(2 ** (_ROUNDED_BITS - 1))
        totals = (bits >> np.uint64(_ROUNDED_BITS) << np.uint64(_ROUNDED_BITS)).view(np.float64)
        values, place = distinct_levels(totals)
    else:  # multiples of what two different classes are apart
        place = (totals / CLASS_DISTANCE).astype(np.intp)
        values = CLASS_DISTANCE * np.arange(place.max() + 1)
    code = place if labels.is_complete else labels.labels_per_example * len(values) + place
    present = np.bincount(code) > 0
    codes = np.flatnonzero(present)
    _check_levels(len(codes))
    n_labels = codes // len(values) if not labels.is_complete else np.full(len(codes), labels.n_annotators)
    return np.column_stack([n_labels, values[codes % len(values)]]), (np.cumsum(present) - 1)[code]


def _rows(X: Any, plan: SumsPlan, shift: Floats | None) -> Rows:
    """The rows of a block, shifted as those before them if that is near enough."""
    if not plan.intercept:  # the model has to go through the origin, but its sums have a column of ones
        X = sparse.csr_array(X) if sparse.issparse(X) else X
        return Rows(X, np.zeros(X.shape[1]), True)
    rows = Rows.of(X, intercept=True)
    if shift is None or rows.is_sparse:
        return rows
    sample = X[:: max(1, len(X) // 101)][:101]
    with np.errstate(invalid="ignore", over="ignore"):
        width = np.abs(sample - rows.shift).max(axis=0)
        near = bool((np.abs(rows.shift - shift) <= _FAR * width).all())
    return Rows(X, shift, True, rows.far) if near else rows


def _union(one: Array, other: Array) -> Array:
    """All names; those of the first side first, unless the other side has them all."""
    if np.array_equal(one, other):
        return one
    in_one = encode_declared(other, one) >= 0
    if in_one.all():
        return one
    has_all = (encode_declared(one, other) >= 0).all()
    return other if has_all else as_objects([*one.tolist(), *other[~in_one].tolist()])


def _union_of_classes(one: Array, other: Array) -> Array:
    """All classes: the larger side as it is, else sorted."""
    union = _union(one, other)
    return union if union is one or union is other else encode(union)[1]


def _union_of_levels(one: Floats, other: Floats) -> tuple[Floats, list[Positions]]:
    """The levels of both sides, ascending, and where those of each side are."""
    levels, place = np.unique(np.concatenate([one, other]), axis=0, return_inverse=True)
    _check_levels(len(levels))
    place = place.ravel().astype(np.intp)
    return levels, [place[: len(one)], place[len(one) :]]


def _added(n: int, at: list[Positions], counts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Counts in other places, added."""
    total = np.zeros(n, dtype=np.int64)
    for where, count in zip(at, counts, strict=True):
        total[where] += count
    return total


def _check_levels(n_levels: int) -> None:
    if n_levels > MOST_CELLS:
        raise SumsTooLargeError(
            f"the disagreement of the examples takes more than {MOST_CELLS} different values, and sums "
            "are kept for each. Round the ratings (to half points, say), weight all examples alike with steepness=0, "
            "or fit in memory, which can do without sums."
        )
