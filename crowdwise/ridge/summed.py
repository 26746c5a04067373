"""RidgeSums -> what the rounds are solved from: sums per level and fold, and the data of the sample that was kept."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from crowdwise._arrays import Array
from crowdwise.crowd._disagreement import RelativeTo
from crowdwise.exceptions import DataError, LabelError
from crowdwise.labels.groups import groups_in_order
from crowdwise.results.fit_results import FitResults
from crowdwise.ridge.data import RidgeData, first_consensus
from crowdwise.ridge.fitted import FittedRidge, ridge_results
from crowdwise.ridge.path import Folds, LevelSums, PathFit
from crowdwise.ridge.statistics import Statistics
from crowdwise.ridge.sums import RidgeSums
from crowdwise.ridge.targets import Targets, checked_span
from crowdwise.rows.features import N_FOLDS, Rows, distant_offset
from crowdwise.training_set import (
    TrainingSet,
    check_named,
    warn_if_few_effective,
    warn_if_no_disagreement,
    warn_if_unlabelled,
)


@dataclass(frozen=True, eq=False)
class SummedData:
    """Examples of which sums and a sample are left.

    Rounds, l2 and the models of folds come from the sums of all examples. The precision of the model, the accuracy of
    annotators, who copies whom and what ranks steepnesses come from the sample.
    """

    data: RidgeData  # the sample, in the terms of the sums
    folds: Folds  # of the sample
    levels: LevelSums  # of all examples
    sums: RidgeSums  # what they were made from

    @classmethod
    def of(cls, sums: RidgeSums, relative_to: RelativeTo) -> SummedData:
        """From sums, with disagreement on the scale of all."""
        _check(sums)
        warn_if_unlabelled(sums.n_unlabelled, sums.n_given)
        if sums.plan.by_level:
            warn_if_no_disagreement(sums.statistics.n_annotators, sums.most_labels)
        n_labels, totals = sums.levels.T
        differs = sums.scaled(totals, n_labels, relative_to)
        levels, folds = _folds(sums, LevelSums(_for_model(sums), differs, sums.n_folds))
        return cls(_data(sums, levels.statistics, relative_to), folds, levels, sums)

    def results(self, fit: PathFit) -> tuple[FittedRidge, FitResults]:
        """The fitted model, and what it found out about annotators."""
        found = ridge_results(self.data, self.folds, fit, self.sums.labels_per_annotator)
        return found.fitted, found.results.without_examples(self.sums.n_examples)

    def warn_if_few_effective(self, steepness: float) -> None:
        """Warn if nearly all weight rests on fewer examples than there are features."""
        present = self.levels.statistics.present.reshape(len(self.levels.levels), -1).sum(axis=1)
        count = self.sums.examples_per_level
        weight = self.levels.easiness(steepness) * present / count
        warn_if_few_effective(weight, self.data.rows.n_features, count)


def _check(sums: RidgeSums) -> None:
    if sums.n_examples == 0:
        raise LabelError("there is no label yet: no example so far has one.")
    if sums.classes is not None and len(sums.classes) < 2:
        check_named(sums.classes, sums.labels_per_class > 0)


def _for_model(sums: RidgeSums) -> Statistics:
    """The sums in the targets and columns of the model."""
    statistics, moments = sums.statistics, sums.moments
    if sums.classes is None:
        span = checked_span(moments.squares / moments.count, moments.low, moments.high)
        statistics = replace(statistics, targets=replace(statistics.targets, span=span))
    else:
        targets = Targets.of_classes(len(sums.classes))
        cross, first = statistics.counts_of_classes()
        cross, first = cross @ targets.codes, first @ targets.codes
        squares = targets.factor * targets.n_targets * statistics.mass
        statistics = replace(statistics, cross=cross, first=first, squares=squares, targets=targets)
    return statistics if sums.plan.intercept else statistics.without_intercept()


def _folds(sums: RidgeSums, levels: LevelSums) -> tuple[LevelSums, Folds]:
    """The sums without folds that have no example, and the folds of the sample."""
    if levels.n_folds < sums.plan.n_folds:  # more were not kept: the sample's own have to do
        return levels, Folds.by_content(sums.kept.X, N_FOLDS)
    of_fold = levels.statistics.present.reshape(-1, levels.n_folds).sum(axis=0)
    used = np.flatnonzero(of_fold > 0)
    if sums.plan.tuned and len(used) < 2:
        raise DataError(
            "cross-validation needs at least 2 examples with different features; found "
            f"n_samples = {sums.n_examples} all alike or in one fold."
        )
    fold = np.searchsorted(used, sums.kept.fold)
    if len(used) < levels.n_folds:
        cells = (np.arange(len(levels.levels))[:, np.newaxis] * levels.n_folds + used).ravel()
        use = np.eye(levels.statistics.n_cells)[cells]
        levels = LevelSums(levels.statistics.combine(use), levels.levels, len(used))
    return levels, Folds(fold, len(used))


def _data(sums: RidgeSums, statistics: Statistics, relative_to: RelativeTo) -> RidgeData:
    """The sample, as if it had been given to `fit`, but centred and scaled as all examples are."""
    kept = sums.kept
    labels = replace(kept.labels(sums.annotators, sums.classes), groups=groups_in_order(sums.groups, sums.annotators))
    active = sums.labels_per_annotator > 0
    core = labels.select_annotators(active)
    everyone = np.ones(len(kept), dtype=bool)
    training = TrainingSet(kept.X, labels, everyone, active, core, kept.weight, sums.disagreement(core, relative_to))
    rows = Rows(kept.X, statistics.shift, statistics.intercept, _is_far(sums.statistics))
    first = first_consensus(core, statistics.targets, sums.plan.init)
    return RidgeData(training, kept.X, rows, None, statistics.targets, first)


def _is_far(sums: Statistics) -> bool:
    """Whether scores would lose digits if the features were not shifted."""
    gram: Array = sums.gram.sum(axis=(0, 1))
    mean = gram[:-1, -1] / gram[-1, -1]
    variance = np.maximum(np.diag(gram)[:-1] / gram[-1, -1] - mean**2, 0.0)
    return distant_offset(sums.shift, np.sqrt(variance)) is not None
