"""The same problem for blocks that are read again in every round: where sums for every annotator would not fit.

A round maps a function over blocks and adds the results, wherever the blocks are: only sums travel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from crowdwise.arrays import Array, Codes, Floats
from crowdwise.crowd.differences import Scale
from crowdwise.crowd.easy_weights import easiness
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import smallest_integer_type
from crowdwise.out_of_core.blocks import Block
from crowdwise.ridge.collect import row_sums, values_from
from crowdwise.ridge.data import RidgeData, Weights, first_consensus
from crowdwise.ridge.features import Rows, check_finite
from crowdwise.ridge.kept_rows import KeptRows, places
from crowdwise.ridge.precision import Precision
from crowdwise.ridge.problem import L2Choice
from crowdwise.ridge.rows_problem import RowsProblem, label_products
from crowdwise.ridge.solver import Factor
from crowdwise.ridge.stream_sums import StreamSums
from crowdwise.ridge.targets import Targets
from crowdwise.threads import one_blas_thread
from crowdwise.training_set import TrainingSet

# A block as features, labels and weights that are known to be right.
Check = Callable[[Block], tuple[Any, CrowdLabels, Floats]]
# What is found in the examples of a block with the weights of a round.
Task = Callable[[RidgeData, Weights], tuple[Floats, ...]]
_NO_FOLDS: Codes = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Added:
    """Several sums; none where there is no example."""

    parts: tuple[Floats, ...] = ()

    def __add__(self, other: Added) -> Added:
        if not self.parts or not other.parts:
            return self if self.parts else other
        return Added(tuple(one + two for one, two in zip(self.parts, other.parts, strict=True)))


# From a function of one block to the sum of its results over all blocks.
Total = Callable[[Callable[[Block], Added]], Added]


@dataclass(frozen=True, eq=False)
class BlockReader:
    """What makes data of a block, in the terms of all: it holds no examples, for it may travel to where blocks are.

    Parameters
    ----------
    check : callable
        Checks a block.
    stream : StreamSums
        What was found out about all labels, without the sample.
    annotators : ndarray of shape (n_annotators,)
        Those who have given a label.
    shift : ndarray of shape (n_features,)
        Subtracted from features.
    intercept, far : bool
        As in `Rows`.
    targets : Targets
        How labels become numbers.
    scale : {"observed", "possible"} or None
        How disagreement is scaled.
    """

    check: Check
    stream: StreamSums
    annotators: Array
    shift: Floats
    intercept: bool
    far: bool
    targets: Targets
    scale: Scale

    @classmethod
    def of(cls, check: Check, stream: StreamSums, sample: RidgeData, scale: Scale) -> BlockReader:
        """In the terms of a sample."""
        rows = sample.rows
        none = KeptRows.none(stream.kept.X.shape[1], ratings=stream.classes is None)
        light = replace(stream, kept=none)
        return cls(check, light, sample.labels.annotators, rows.shift, rows.intercept, rows.far, sample.targets, scale)

    def data(self, block: Block, steepness: float) -> RidgeData | None:
        """The examples of a block that take part; None if there are none."""
        X, labels, weight = self.check(block)
        learnt = (labels.labels_per_example > 0) & (weight > 0)
        if not learnt.any():
            return None
        X, labels, weight = X[learnt], labels[learnt], weight[learnt]
        check_finite(X)
        core = self._core(labels)
        active = np.ones(core.n_annotators, dtype=bool)
        training = TrainingSet(
            X, core, learnt[learnt], active, core, weight, self.stream.disagreement(core, self.scale)
        )
        rows = Rows(X, self.shift, self.intercept, self.far)
        data = RidgeData(
            training, X, rows, None, self.targets, first_consensus(core, self.targets, self.stream.plan.init)
        )
        # Not relative to the easiest example of the block, which may be a hard one.
        data.set_easiness(steepness, easiness(training.disagreement, steepness))
        return data

    def _core(self, labels: CrowdLabels) -> CrowdLabels:
        """Labels in the order of all annotators who have given some, and in all classes."""
        if self.stream.classes is not None:
            labels = labels.with_classes(self.stream.classes)
        labels = labels.select_annotators(labels.labels_per_annotator > 0)
        who = places(labels.annotators, self.annotators)[labels.annotator_index]
        order = np.lexsort([who, labels.example_index])
        narrow = smallest_integer_type(len(self.annotators))
        return replace(
            labels,
            annotator_index=who[order].astype(narrow),
            values=labels.values[order],
            annotators=self.annotators,
            abstentions=None,
        )


@dataclass(frozen=True, eq=False)
class BlockRows:
    """All examples, block by block: `total` adds up what a function finds in every block, and can do so again."""

    total: Total
    reader: BlockReader
    _mass: dict[float, Floats] = field(default_factory=dict, init=False)

    @property
    def answered(self) -> Floats:
        """How much each annotator labelled."""
        return self.reader.stream.statistics.answered.sum(axis=0)

    @property
    def present(self) -> float:
        """How much there was to label."""
        return float(self.reader.stream.statistics.present.sum())

    def sums(self, task: Task, steepness: float, share: float = 1.0) -> tuple[Floats, ...]:
        """What a task finds in all blocks, with weights between easiness and equal ones."""
        return self.total(partial(_of_block, self.reader, task, steepness, share)).parts

    def mass(self, steepness: float) -> Floats:
        """The weight of the examples that each annotator labelled."""
        if steepness not in self._mass:
            self._mass[steepness] = self.sums(_label_mass, steepness)[0]
        return self._mass[steepness]


def _of_block(reader: BlockReader, task: Task, steepness: float, share: float, block: Block) -> Added:
    data = reader.data(block, steepness)
    if data is None:
        return Added()
    with one_blas_thread():
        return Added(task(data, Weights(data, steepness, data.training.sample_weight, share=share)))


def _label_mass(data: RidgeData, weights: Weights) -> tuple[Floats]:
    """The weight of the labels of each annotator."""
    return (data.labels.sum_per_annotator(weights.product[data.labels.example_index]),)


def _normal_equations(
    expertise: Floats | None, average: float, data: RidgeData, weights: Weights
) -> tuple[Floats, Floats]:
    """Features times features, and times the consensus by an expertise."""
    target, total = data.consensus(expertise)
    gram, cross = row_sums(data.rows, weights.product * (total / average), values_from(target), target.shape[1])
    return gram[0], cross[0]


def _squared_errors(theta: Floats, data: RidgeData, weights: Weights) -> tuple[Floats]:
    no_choice = L2Choice(np.zeros(1), every_round=False)
    return (RowsProblem(data, _NO_FOLDS, 1, no_choice, False, weights).squared_errors(theta),)


def _label_products(theta: Floats, data: RidgeData, weights: Weights) -> tuple[Floats, Floats, Floats]:
    return label_products(data, data.labels, data.rows.scores(theta), weights.product)


@dataclass(eq=False)
class BlocksProblem:
    """A problem whose every round reads all blocks, twice; `share` says how much easiness counts in the round."""

    rows: BlockRows
    choice: L2Choice
    steepness: float
    share: float = 1.0
    rank: int = 0

    def at(self, weights: Weights) -> BlocksProblem:
        """The same problem with the weights of a round, which lie between easiness and equal ones."""
        return self if weights.share == self.share else replace(self, share=weights.share)

    @property
    def precision(self) -> Precision:
        answered = self.rows.answered
        mass = self.share * self.rows.mass(self.steepness) + (1 - self.share) * answered
        return Precision.of(mass, answered, self.rows.present, self.rows.reader.targets.span)

    def solve(self, expertise: Floats | None) -> Floats:
        """theta for an expertise."""
        average = self._average(np.ones(len(self.rows.answered)) if expertise is None else expertise)
        gram, cross = self._sums(partial(_normal_equations, expertise, average))
        factor = Factor.of(gram, self.choice.l2, intercept=self.rows.reader.intercept)
        self.rank = factor.rank
        return factor.solve(cross)

    def squared_errors(self, theta: Floats) -> Floats:
        """Weighted sums of squared errors, per annotator."""
        return self._sums(partial(_squared_errors, theta))[0]

    def agreement(self, theta: Floats) -> Floats:
        """Covariance of every annotator's labels with the scores; below zero is worse than chance."""
        products, values, scores = self._sums(partial(_label_products, theta))
        if not self.rows.reader.intercept:
            return products
        mass: Array = np.maximum(self.precision.mass, np.finfo(np.float64).tiny)
        return products - (values * scores).sum(axis=1) / mass

    def penalty(self, expertise: Floats) -> float:
        """What the squared length of coefficients is penalised with."""
        return self.choice.l2 * self._average(expertise)

    def _average(self, expertise: Floats) -> float:
        """The expertise of all who labelled the average example."""
        return float(self.rows.answered @ expertise / self.rows.present)

    def _sums(self, task: Task) -> tuple[Floats, ...]:
        return self.rows.sums(task, self.steepness, self.share)
