"""The same problem for blocks that are read again in every round: where sums for every annotator would not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from crowdwise.arrays import Array, Codes, Floats
from crowdwise.crowd.differences import Scale
from crowdwise.crowd.easy_weights import easiness
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import smallest_integer_type
from crowdwise.out_of_core.blocks import Block, Blocks
from crowdwise.ridge.collect import row_sums, values_from
from crowdwise.ridge.data import RidgeData, Weights, first_consensus
from crowdwise.ridge.features import Rows, check_finite
from crowdwise.ridge.kept_rows import places
from crowdwise.ridge.precision import Precision
from crowdwise.ridge.problem import L2Choice
from crowdwise.ridge.rows_problem import RowsProblem, label_products
from crowdwise.ridge.solver import Factor
from crowdwise.ridge.stream_sums import StreamSums
from crowdwise.training_set import TrainingSet

# A block as features, labels and weights that are known to be right.
Check = Callable[[Block], tuple[Any, CrowdLabels, Floats]]
_NO_FOLDS: Codes = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class BlockRows:
    """All examples, block by block, in the terms of a sample of them.

    Parameters
    ----------
    blocks : Blocks
        That can be read again.
    check : callable
        Checks a block.
    stream : StreamSums
        What was found out about all labels.
    sample : RidgeData
        Says how features are shifted and labels become numbers.
    scale : {"observed", "possible"} or None
        How disagreement is scaled.
    """

    blocks: Blocks
    check: Check
    stream: StreamSums
    sample: RidgeData
    scale: Scale
    _mass: dict[float, Floats] = field(default_factory=dict, init=False)

    @property
    def answered(self) -> Floats:
        """How much each annotator labelled."""
        return self.stream.statistics.answered.sum(axis=0)

    @property
    def present(self) -> float:
        """How much there was to label."""
        return float(self.stream.statistics.present.sum())

    def data(self, steepness: float) -> Iterator[RidgeData]:
        """The examples of every block that take part, read once more."""
        like = self.sample.rows
        for block in self.blocks:
            X, labels, weight = self.check(block)
            learnt = (labels.labels_per_example > 0) & (weight > 0)
            if not learnt.any():
                continue
            X, labels, weight = X[learnt], labels[learnt], weight[learnt]
            check_finite(X)
            core = self._core(labels)
            active = np.ones(core.n_annotators, dtype=bool)
            training = TrainingSet(
                X, core, learnt[learnt], active, core, weight, self.stream.disagreement(core, self.scale)
            )
            rows = Rows(X, like.shift, like.intercept, like.far)
            first = first_consensus(core, self.sample.targets, self.stream.plan.init)
            data = RidgeData(training, X, rows, None, self.sample.targets, first)
            # Not relative to the easiest example of the block, which may be a hard one.
            data.set_easiness(steepness, easiness(training.disagreement, steepness))
            yield data

    def _core(self, labels: CrowdLabels) -> CrowdLabels:
        """Labels in the order of all annotators who have given some, and in all classes."""
        if self.stream.classes is not None:
            labels = labels.with_classes(self.stream.classes)
        labels = labels.select_annotators(labels.labels_per_annotator > 0)
        active = self.sample.labels.annotators
        who = places(labels.annotators, active)[labels.annotator_index]
        order = np.lexsort([who, labels.example_index])
        narrow = smallest_integer_type(len(active))
        return replace(
            labels,
            annotator_index=who[order].astype(narrow),
            values=labels.values[order],
            annotators=active,
            abstentions=None,
        )

    def mass(self, steepness: float) -> Floats:
        """The weight of the examples that each annotator labelled."""
        if steepness not in self._mass:
            total = np.zeros(len(self.answered))
            for data in self.data(steepness):
                weight = data.easiness(steepness) * data.training.sample_weight
                total += data.labels.sum_per_annotator(weight[data.labels.example_index])
            self._mass[steepness] = total
        return self._mass[steepness]


@dataclass(eq=False)
class BlocksProblem:
    """A problem whose every round reads all blocks, twice.

    Parameters
    ----------
    rows : BlockRows
        The examples.
    choice : L2Choice
        The l2, which is given.
    steepness : float
        How fast easiness falls with disagreement.
    share : float, default=1.0
        How much easiness counts in this round.
    """

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
        return Precision.of(mass, answered, self.rows.present, self.rows.sample.targets.span)

    def solve(self, expertise: Floats | None) -> Floats:
        """theta for an expertise."""
        alike = np.ones(len(self.rows.answered))
        average = self._average(alike if expertise is None else expertise)
        gram: Any = 0.0
        cross: Any = 0.0
        for data, weights in self._parts():
            target, total = data.consensus(expertise)
            parts = row_sums(data.rows, weights.product * (total / average), values_from(target), target.shape[1])
            gram, cross = gram + parts[0][0], cross + parts[1][0]
        factor = Factor.of(gram, self.choice.l2, intercept=self.rows.sample.rows.intercept)
        self.rank = factor.rank
        return factor.solve(cross)

    def squared_errors(self, theta: Floats) -> Floats:
        """Weighted sums of squared errors, per annotator."""
        parts = (self._of_block(data, weights).squared_errors(theta) for data, weights in self._parts())
        return np.sum(list(parts), axis=0)

    def agreement(self, theta: Floats) -> Floats:
        """Covariance of every annotator's labels with the scores; below zero is worse than chance."""
        parts = (
            label_products(data, data.labels, data.rows.scores(theta), weights.product)
            for data, weights in self._parts()
        )
        products, values, scores = (np.sum(part, axis=0) for part in zip(*parts, strict=True))
        if not self.rows.sample.rows.intercept:
            return products
        mass: Array = np.maximum(self.precision.mass, np.finfo(np.float64).tiny)
        return products - (values * scores).sum(axis=1) / mass

    def penalty(self, expertise: Floats) -> float:
        """What the squared length of coefficients is penalised with."""
        return self.choice.l2 * self._average(expertise)

    def _average(self, expertise: Floats) -> float:
        """The expertise of all who labelled the average example."""
        return float(self.rows.answered @ expertise / self.rows.present)

    def _parts(self) -> Iterator[tuple[RidgeData, Weights]]:
        for data in self.rows.data(self.steepness):
            yield data, Weights(data, self.steepness, data.training.sample_weight, share=self.share)

    def _of_block(self, data: RidgeData, weights: Weights) -> RowsProblem:
        return RowsProblem(data, _NO_FOLDS, 1, self.choice, False, weights)
