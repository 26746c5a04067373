"""Batches one after the other -> all that is kept of them: rows as long as there is room, then statistics."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crowdwise.arrays import FrozenArrays
from crowdwise.crowd.differences import Scale
from crowdwise.crowd.easy_weights import example_weights
from crowdwise.em.confusion import AnnotatorModel
from crowdwise.exceptions import DataError, LabelError
from crowdwise.labels.encode import encode_declared
from crowdwise.logistic.blocks import CheckedBlock, recoded
from crowdwise.logistic.stepwise import Levels, Stepwise
from crowdwise.logistic.survey import Survey, sample_keys
from crowdwise.ridge.data import EXACT_COLUMNS
from crowdwise.ridge.kept_rows import KeptRows
from crowdwise.streaming import Declared


@dataclass(frozen=True, eq=False)
class LogisticStream(FrozenArrays):
    """All that is kept of the examples of a stream."""

    seen: Survey  # who and what was in the batches
    kept: KeptRows  # a sample of the rows; all of them, as long as there is room
    fixed_classes: bool = False  # whether they were declared, so that there can be no others
    fixed_annotators: bool = False  # the same of annotators
    batches: tuple[Any, ...] = ()  # names of the batches
    stepwise: Stepwise | None = None  # the statistics, once there are more rows than are kept

    @classmethod
    def nothing(cls, n_features: int, declared: Declared) -> LogisticStream:
        """Of no examples, with the classes and annotators that were declared, if any were."""
        if n_features + 1 > EXACT_COLUMNS:
            raise DataError(
                f"a stream is summed up in products of its features, for at most {EXACT_COLUMNS - 1} of them; X has "
                f"{n_features}. Use fit, or fewer features."
            )
        none = np.zeros(0, dtype=np.int64)
        known = none if declared.classes is None else declared.classes
        names = none if declared.annotators is None else declared.annotators
        seen = Survey(
            n_features=n_features,
            feature_names=None,
            n_examples=0,
            n_unlabelled=0,
            classes=known,
            annotators=names,
            labels_per_class=np.zeros(len(known), dtype=np.int64),
            labels_per_annotator=np.zeros(len(names), dtype=np.int64),
            levels=none,
            examples_per_level=np.zeros(0),
            kept=(),
        )
        kept = KeptRows.none(n_features, ratings=False)
        return cls(seen, kept, declared.classes is not None, declared.annotators is not None)

    def with_batch(self, block: CheckedBlock, names: tuple[Any, ...]) -> LogisticStream:
        """The same after one more batch, from which the statistics have not been made yet."""
        self._check_batches(names)
        self._check_declared(block)
        seen = self.seen + Survey.of(block, keep=False)
        labels = recoded(block.labels, seen.annotators, seen.classes)
        rows = KeptRows.of(
            sample_keys(block.X, block.labels),
            block.X,
            labels,
            block.weight,
            np.zeros(len(block), dtype=np.int64),
            self.kept.bound,
        )
        there = self.among(seen)
        return replace(there, seen=seen, kept=there.kept + rows, batches=self.batches + names)

    def joined(self, other: LogisticStream, model: AnnotatorModel, *, fit_intercept: bool) -> LogisticStream:
        """What is kept of two streams, both of which have statistics."""
        assert self.stepwise is not None
        assert other.stepwise is not None
        self._check_batches(other.batches)
        if not np.array_equal(self.seen.classes, other.seen.classes):
            raise LabelError(
                f"streams of the classes {self.seen.classes[:3].tolist()} and {other.seen.classes[:3].tolist()} cannot "
                "be merged: declare all classes at the first call of partial_fit, classes=[...]."
            )
        seen = self.seen + other.seen
        one, two = self.among(seen), other.among(seen)
        assert one.stepwise is not None
        assert two.stepwise is not None
        stepwise = one.stepwise.joined(two.stepwise, model, fit_intercept=fit_intercept)
        batches = self.batches + other.batches
        return replace(one, seen=seen, kept=one.kept + two.kept, batches=batches, stepwise=stepwise)

    def check_declared_with(self, other: LogisticStream) -> None:
        """Raise if one of two streams has what cannot be in the other, whose classes or annotators were declared."""
        for one, two in ((self, other), (other, self)):
            for fixed, known, names, what in (
                (one.fixed_classes, one.seen.classes, two.seen.classes, "classes"),
                (one.fixed_annotators, one.seen.annotators, two.seen.annotators, "annotators"),
            ):
                if fixed and len(names) and (unknown := encode_declared(names, known) < 0).any():
                    raise LabelError(
                        f"the {what} {names[unknown][:3].tolist()} are not among those declared, {known.tolist()}."
                    )

    def declared_as(self, *streams: LogisticStream) -> LogisticStream:
        """The same, with classes and annotators declared if they were for any of these."""
        return replace(
            self,
            fixed_classes=any(stream.fixed_classes for stream in streams),
            fixed_annotators=any(stream.fixed_annotators for stream in streams),
        )

    def among(self, seen: Survey) -> LogisticStream:
        """The same rows and statistics in the terms of more annotators and classes; `seen` is that of these still."""
        who, klass = (
            encode_declared(old, new).astype(np.intp)
            for old, new in ((self.seen.annotators, seen.annotators), (self.seen.classes, seen.classes))
        )
        stepwise = None if self.stepwise is None else self.stepwise.among(who, len(seen.annotators))
        return replace(self, kept=self.kept.recoded(who, klass), stepwise=stepwise)

    def _check_batches(self, names: tuple[Any, ...]) -> None:
        if shared := set(self.batches) & set(names):
            raise DataError(
                f"the batch {sorted(map(repr, shared))[0]} has been learnt from already: adding it again would count "
                "its examples twice. Leave it out, or give it another id if it holds other examples."
            )

    def _check_declared(self, block: CheckedBlock) -> None:
        labels, seen = block.labels, self.seen
        assert labels.classes is not None
        given = labels.classes[np.unique(labels.values)] if labels.n_labels else labels.classes[:0]
        for names, known, fixed, what in (
            (labels.annotators, seen.annotators, self.fixed_annotators, "annotators"),
            (given, seen.classes, self.fixed_classes or self.stepwise is not None, "classes"),
        ):
            if fixed and len(names) and (unknown := encode_declared(names, known) < 0).any():
                raise LabelError(
                    f"the {what} {names[unknown][:3].tolist()} are not among those known, such as "
                    f"{known[:3].tolist()}. Declare all {what} at the first call of partial_fit: {what}=[...]."
                )

    @property
    def declared(self) -> Declared:
        """What was declared at the first call."""
        return Declared(
            self.seen.classes if self.fixed_classes else None, self.seen.annotators if self.fixed_annotators else None
        )

    @property
    def is_complete(self) -> bool:
        """Whether all rows so far are kept."""
        return len(self.kept) == self.seen.n_examples

    def rows(self) -> CheckedBlock:
        """The rows that are kept."""
        labels = self.kept.labels(self.seen.annotators, self.seen.classes)
        return CheckedBlock(self.kept.X, replace(labels, declared_classes=self.fixed_classes), self.kept.weight)

    def weighting(self, scale: Scale, steepness: float, label_steepness: float) -> Levels:
        """What examples of every level of disagreement count."""
        differs = self.seen.disagreement(scale)
        weights = (example_weights(differs, value) for value in (steepness, label_steepness))
        return Levels(self.seen.levels, *weights)
