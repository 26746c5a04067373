"""A training set -> RidgeData: features and labels in the solver's terms, the weights of a round, the route."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from crowdwise.arrays import Array, Codes, Floats
from crowdwise.crowd.easiness import example_weights
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.ridge.collect import collect
from crowdwise.ridge.features import Rows, RowSpace, check_finite, check_squares, row_space
from crowdwise.ridge.statistics import Statistics
from crowdwise.ridge.targets import Targets, majority_targets
from crowdwise.ridge.votes import Votes
from crowdwise.training_set import TrainingSet

Route = Literal["sums", "rows", "iterative"]

# Sums are kept per annotator while they take no more memory than this.
MEMORY_BUDGET = 2**29
# With more labels per example than this, a pass over the rows in every round is cheaper than sums per annotator.
_LABELS_PER_EXAMPLE = 25
# Up to this many columns a gram matrix is factorised; beyond, the solver iterates.
EXACT_COLUMNS = 3000


@dataclass(frozen=True, eq=False)
class RidgeData:
    """What is to be learnt from: the features and labels of a training set in the solver's terms.

    Parameters
    ----------
    training : TrainingSet
        Examples and annotators that take part.
    X : ndarray or sparse matrix
        Features of the examples that take part.
    rows : Rows
        The same as the solver sees them, or their coordinates.
    space : RowSpace or None
        How to come back from coordinates, if they are used.
    targets : Targets
        How labels become numbers.
    first : ndarray of shape (n_examples, n_targets)
        The first consensus.
    """

    training: TrainingSet
    X: Array
    rows: Rows
    space: RowSpace | None
    targets: Targets
    first: Floats
    _easiness: dict[float, Floats] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, training: TrainingSet, *, intercept: bool, init: str) -> RidgeData:
        """From checked examples; the first consensus is the "majority" vote or the "mean" of the labels."""
        X, core = training.rows, training.core
        targets = Targets.of(core, intercept=intercept)
        rows = Rows.of(X, intercept=intercept)
        if rows.is_sparse or rows.n_examples < rows.n_features:
            check_finite(training.X)
        elif len(training.others):
            check_finite(training.X[training.others], training.others)
        space = row_space(rows)
        first = first_consensus(core, targets, init)
        return cls(training, X, rows if space is None else space.rows, space, targets, first)

    @property
    def labels(self) -> CrowdLabels:
        """Of the examples and annotators that take part."""
        return self.training.core

    @property
    def classes(self) -> Array:
        """Of labels that are known to have some."""
        assert self.labels.classes is not None
        return self.labels.classes

    @property
    def original(self) -> Rows:
        """The features as the solver would see them without coordinates."""
        return self.rows if self.space is None else self.space.original

    def easiness(self, steepness: float) -> Floats:
        """The weights that come from disagreement."""
        if steepness not in self._easiness:
            self._easiness[steepness] = example_weights(self.training.core_disagreement, steepness)
        return self._easiness[steepness]

    def set_easiness(self, steepness: float, weight: Floats) -> None:
        """Say what these weights are, where the examples are a part of more."""
        self._easiness[steepness] = weight

    def consensus(self, expertise: Floats | None) -> tuple[Floats, Floats]:
        """The consensus of the labels, and the expertise of all who labelled each example."""
        votes = Votes.of(self.labels, np.ones(self.labels.n_annotators) if expertise is None else expertise)
        return self.first if expertise is None else votes.mean_targets(self.targets), votes.total

    def sums(self, easiness: Floats | None = None, cell: Codes | None = None, n_cells: int = 1) -> Statistics:
        """The sums of one pass over the rows."""
        sums = collect(
            self.rows,
            self.labels,
            self.targets,
            first=self.first,
            easiness=easiness,
            sample_weight=self.training.sample_weight,
            cell=cell,
            n_cells=n_cells,
        )
        if not np.isfinite(sums.gram).all():
            check_finite(self.training.X)
            check_squares(sums.gram)
        return sums

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


def first_consensus(labels: CrowdLabels, targets: Targets, init: str) -> Floats:
    """The "majority" vote or the "mean" of the labels, of shape (n_examples, n_targets)."""
    if init == "majority":
        return majority_targets(labels, targets)
    return Votes.of(labels, np.ones(labels.n_annotators)).mean_targets(targets)


def choose_route(data: RidgeData, n_cells: int, *, needs_rows: bool) -> Route:
    """How it is solved: "sums" (one pass), "rows" (a pass per round) or "iterative" (no gram matrix)."""
    if data.rows.n_columns > EXACT_COLUMNS:
        return "iterative"
    return "rows" if needs_rows or not sums_are_cheap(data, n_cells) else "sums"


def sums_are_cheap(data: RidgeData, n_cells: int) -> bool:
    """Whether sums can be kept for every annotator and cell, and cost less than a pass per round."""
    many = data.labels.n_labels > _LABELS_PER_EXAMPLE * len(data.labels)
    return data.labels.is_complete or (fits_in_memory(data, n_cells) and not many)


def fits_in_memory(data: RidgeData, n_cells: int) -> bool:
    """Whether sums can be kept for this many cells."""
    labels, n_columns = data.labels, data.rows.n_columns
    n_blocks = 1 if labels.is_complete else labels.n_annotators
    n_numbers = n_cells * n_columns * (n_blocks * n_columns + labels.n_annotators * data.targets.n_targets)
    return 8 * n_numbers <= MEMORY_BUDGET


@dataclass(frozen=True, eq=False)
class Weights:
    """The weights of the examples in one round.

    Parameters
    ----------
    data : RidgeData
        What is to be learnt from.
    steepness : float
        How fast easiness falls with disagreement.
    sample_weight : ndarray of shape (n_examples,)
        How often each example counts, times the weight of its class.
    given : ndarray of shape (n_examples,), default=None
        What the curriculum gave, if it is not easiness or between easiness and equal weights.
    share : float, default=1.0
        How much easiness counts; the rest of the weight is the same for all.
    class_weight : ndarray of shape (n_classes,), default=None
        What each class counted.
    """

    data: RidgeData
    steepness: float
    sample_weight: Floats
    given: Floats | None = None
    share: float = 1.0
    class_weight: Floats | None = None

    @cached_property
    def example(self) -> Floats:
        """The weight of every example, sample weights aside."""
        if self.given is not None:
            return self.given
        easiness = self.data.easiness(self.steepness)
        return easiness if self.share == 1 else self.share * easiness + (1 - self.share)

    @property
    def product(self) -> Floats:
        """Sample weights included."""
        return self.example * self.sample_weight
