"""StreamSums -> what the rounds solve: sums per level and fold, and the data of the sample that was kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crowdwise.arrays import Array
from crowdwise.crowd.differences import Scale
from crowdwise.exceptions import DataError, LabelError
from crowdwise.results import StreamResults
from crowdwise.ridge.data import RidgeData, first_consensus
from crowdwise.ridge.features import N_FOLDS, Rows, distant_offset
from crowdwise.ridge.fitted import FittedRidge, ridge_results
from crowdwise.ridge.levels import LevelSums
from crowdwise.ridge.path import Folds, PathFit
from crowdwise.ridge.statistics import Statistics
from crowdwise.ridge.stream_sums import StreamSums
from crowdwise.ridge.targets import Targets, checked_span
from crowdwise.training_set import (
    TrainingSet,
    check_named,
    note_disagreement,
    note_effective_number,
    note_unlabelled,
)


@dataclass(frozen=True, eq=False)
class Stream:
    """A stream that is about to be solved.

    Rounds, l2 and the models of folds come from the sums of all examples. The precision of the model, the accuracy of
    annotators, who copies whom and what ranks steepnesses come from a sample of them.

    Parameters
    ----------
    data : RidgeData
        The sample, in the terms of the sums.
    folds : Folds
        Of the sample.
    sums : LevelSums
        Of all examples.
    stream : StreamSums
        What they were made from.
    groups : mapping, series, array-like or None, default=None
        Annotators who have one vote together; by default those who copy each other are found.
    """

    data: RidgeData
    folds: Folds
    sums: LevelSums
    stream: StreamSums
    groups: Any = None

    @classmethod
    def of(cls, stream: StreamSums, groups: Any = None, *, scale: Scale, weighting: bool) -> Stream:
        """From the sums of a stream; `weighting` says whether disagreement is going to be used."""
        _check(stream)
        note_unlabelled(stream.n_unlabelled, stream.n_given)
        if weighting:
            note_disagreement(stream.statistics.n_annotators, stream.most_labels)
        n_labels, totals = stream.levels.T
        differs = stream.scaled(totals, n_labels, scale)
        sums, folds = _folds(stream, LevelSums(_for_model(stream), differs, stream.n_folds))
        return cls(_data(stream, sums.statistics, scale), folds, sums, stream, groups=groups)

    def results(self, fit: PathFit) -> tuple[FittedRidge, StreamResults]:
        """The fitted model, and what it says about annotators."""
        found = ridge_results(self.data, self.folds, fit, self.groups, self.stream.labels_per_annotator)
        results = found.results
        return found.fitted, StreamResults(
            results.annotators, self.stream.n_examples, results.steepness, results.objective, results.converged
        )

    def note_effective_number(self, steepness: float) -> None:
        """Say so if nearly all weight rests on fewer examples than there are features."""
        present = self.sums.statistics.present.reshape(len(self.sums.levels), -1).sum(axis=1)
        count = self.stream.examples_per_level
        weight = self.sums.easiness(steepness) * present / count
        note_effective_number(weight, self.data.rows.n_features, count)


def _check(stream: StreamSums) -> None:
    if stream.n_examples == 0:
        raise LabelError("there is no label yet: no example of the stream so far has one.")
    if stream.classes is not None:
        check_named(stream.classes, stream.labels_per_class > 0)


def _for_model(stream: StreamSums) -> Statistics:
    """The sums in the targets and columns of the model."""
    sums, moments = stream.statistics, stream.moments
    if stream.classes is None:
        span = checked_span(moments.squares / moments.count, moments.low, moments.high)
        sums = replace(sums, targets=replace(sums.targets, span=span))
    else:
        targets = Targets.of_classes(len(stream.classes))
        cross, first = sums.counts_of_classes()
        cross, first = cross @ targets.codes, first @ targets.codes
        squares = targets.factor * targets.n_targets * sums.mass
        sums = replace(sums, cross=cross, first=first, squares=squares, targets=targets)
    if stream.plan.intercept:
        return sums
    return replace(
        sums, gram=sums.gram[..., :-1, :-1], cross=sums.cross[..., :-1, :], first=sums.first[:, :-1], intercept=False
    )


def _folds(stream: StreamSums, sums: LevelSums) -> tuple[LevelSums, Folds]:
    """The sums without folds that have no example, and the folds of the sample."""
    if sums.n_folds < stream.plan.n_folds:  # more were not kept: the sample's own have to do
        return sums, Folds.by_content(stream.kept.X, N_FOLDS)
    of_fold = sums.statistics.present.reshape(-1, sums.n_folds).sum(axis=0)
    used = np.flatnonzero(of_fold > 0)
    if stream.plan.tuned and len(used) < 2:
        raise DataError(
            "cross-validation needs at least 2 examples with different features; found "
            f"n_samples = {stream.n_examples} all alike or in one fold."
        )
    fold = np.searchsorted(used, stream.kept.fold)
    if len(used) < sums.n_folds:
        cells = (np.arange(len(sums.levels))[:, np.newaxis] * sums.n_folds + used).ravel()
        use = np.eye(sums.statistics.n_cells)[cells]
        sums = LevelSums(sums.statistics.combine(use), sums.levels, len(used))
    return sums, Folds(fold, len(used))


def _data(stream: StreamSums, sums: Statistics, scale: Scale) -> RidgeData:
    """The sample, as if it had been given to `fit`, but centred and scaled as all examples are."""
    kept = stream.kept
    labels = kept.labels(stream.annotators, stream.classes)
    active = stream.labels_per_annotator > 0
    core = labels.select_annotators(active)
    everyone = np.ones(len(kept), dtype=bool)
    training = TrainingSet(kept.X, labels, everyone, active, core, kept.weight, stream.disagreement(core, scale))
    rows = Rows(kept.X, sums.shift, sums.intercept, _is_far(stream.statistics))
    return RidgeData(training, kept.X, rows, None, sums.targets, first_consensus(core, sums.targets, stream.plan.init))


def _is_far(sums: Statistics) -> bool:
    """Whether scores would lose digits if the features were not shifted."""
    gram: Array = sums.gram.sum(axis=(0, 1))
    mean = gram[:-1, -1] / gram[-1, -1]
    variance = np.maximum(np.diag(gram)[:-1] / gram[-1, -1] - mean**2, 0.0)
    return distant_offset(sums.shift, np.sqrt(variance)) is not None
