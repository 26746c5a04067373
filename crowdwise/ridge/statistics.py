"""Statistics: sums that add, from which every round is computed without X.

Sums are kept in cells. A cell is a set of rows that are always used together: a fold, or a fold and a
level of disagreement. Combining cells with weights gives the sums for any steepness and any set of folds.
Sums know what was subtracted from features and ratings before they were taken, so that sums of different blocks of
rows, each around its own centre, can be added.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from crowdwise._arrays import Array, Floats, Positions
from crowdwise._limits import PRIOR_LABELS, SMALLEST_ERROR
from crowdwise.exceptions import DataError
from crowdwise.ridge.targets import Targets

# Sums that easiness weights, and sums that it does not.
_WEIGHTED, _COUNTED = ("gram", "cross", "first", "squares", "mass"), ("answered", "present")


@dataclass(frozen=True, eq=False)
class Statistics:
    """Weighted sums over rows, per cell and annotator.

    With complete labels all annotators see the same rows, so `gram` has one block for all of them;
    otherwise a block each. Columns are those of `Rows`: features and the column of ones.

    Parameters
    ----------
    gram : ndarray of shape (n_cells, n_blocks, n_columns, n_columns)
        Sums of weight · x xᵀ.
    cross : ndarray of shape (n_cells, n_annotators, n_columns, n_targets)
        Sums of weight · x yᵀ.
    first : ndarray of shape (n_cells, n_columns, n_targets)
        Sums of weight · (labels of the row) · x times the first consensus.
    squares : ndarray of shape (n_cells, n_annotators)
        Sums of weight · y².
    mass : ndarray of shape (n_cells, n_annotators)
        Sums of weights.
    answered : ndarray of shape (n_cells, n_annotators)
        Sums of sample weights alone: how much each annotator labelled.
    present : ndarray of shape (n_cells,)
        Sums of sample weights over rows: how much there was to label.
    shift : ndarray of shape (n_features,)
        What was subtracted from every row.
    intercept : bool
        Whether the last column is one of ones.
    targets : Targets
        How labels became numbers, and what was subtracted from ratings.
    annotators : ndarray of shape (n_annotators,)
        Their names.
    """

    gram: Floats
    cross: Floats
    first: Floats
    squares: Floats
    mass: Floats
    answered: Floats
    present: Floats
    shift: Floats
    intercept: bool
    targets: Targets
    annotators: Array

    @property
    def n_cells(self) -> int:
        return len(self.present)

    @property
    def n_annotators(self) -> int:
        return self.cross.shape[1]

    @property
    def is_complete(self) -> bool:
        """Whether all annotators labelled the same rows, and share a block."""
        return self.gram.shape[1] == 1

    def around(self, shift: Floats, centre: float) -> Statistics:
        """The same sums with other numbers subtracted from features and ratings; this is exact but for rounding."""
        step, rise = self.shift - shift, self.targets.centre - centre
        if not step.any() and rise == 0:
            return self
        if not self.intercept:
            raise DataError("sums of a model without an intercept cannot be shifted: they do not know their means.")
        gram, cross, first, squares = self.gram, self.cross, self.first, self.squares
        if rise:
            squares = squares + 2 * rise * cross[..., -1, 0] + rise**2 * self.mass
            cross = cross + rise * gram[..., -1:]
            ones = gram[..., -1:].sum(axis=1) * (self.n_annotators if self.is_complete else 1)
            first = first + rise * ones
        move = np.eye(len(shift) + 1)
        move[:-1, -1] = step  # x - shift is (x - old shift) + step times one
        return replace(
            self,
            gram=move @ gram @ move.T,
            cross=move @ cross,
            first=move @ first,
            squares=squares,
            shift=np.array(shift, dtype=np.float64),
            targets=replace(self.targets, centre=centre),
        )

    def recoded(self, position: Positions, n_classes: int) -> Statistics:
        """Sums that count classes (`Targets.counting`), as counts of other classes, each at its new `position`."""
        targets = Targets.counting(n_classes)
        same_first = len(position) > 0 and position[0] == 0
        if same_first and targets.n_targets == self.cross.shape[-1] and (np.diff(position) == 1).all():
            return self
        of_all, of_first = self.counts_of_classes()
        place = np.zeros((of_all.shape[-1], n_classes))
        place[np.arange(len(position)), position] = 1.0
        return replace(self, cross=of_all @ place[:, 1:], first=of_first @ place[:, 1:], targets=targets)

    def counts_of_classes(self) -> tuple[Floats, Floats]:
        """`cross` and `first` with a column for every class, from counts of all classes but the first."""
        ones = self.gram[..., -1:]
        labelled = ones.sum(axis=1) * (self.n_annotators if self.is_complete else 1)
        cross = np.concatenate([ones - self.cross.sum(axis=-1, keepdims=True), self.cross], axis=-1)
        first = np.concatenate([labelled - self.first.sum(axis=-1, keepdims=True), self.first], axis=-1)
        return cross, first

    def without_intercept(self) -> Statistics:
        """The same without the column of ones."""
        gram, cross, first = self.gram[..., :-1, :-1], self.cross[..., :-1, :], self.first[:, :-1]
        return replace(self, gram=gram, cross=cross, first=first, intercept=False)

    def combine(self, use: Array, weight: Floats | None = None) -> Statistics:
        """Sums over other sets of rows: row k of `use` has ones where cells make up the new cell k, else zeros.

        `weight` is that of the examples in each cell (their easiness); one by default.
        """
        counts = np.asarray(use, dtype=np.float64)
        sums = counts if weight is None else counts * weight
        arrays: dict[str, Any] = {name: _sets(sums, getattr(self, name)) for name in _WEIGHTED}
        arrays |= {name: _sets(counts, getattr(self, name)) for name in _COUNTED}
        return replace(self, **arrays)

    def add_to_cells(self, sums: Statistics, cells: Array, sign: float = 1.0) -> None:
        """Add sums over other rows to some cells of these, in place; or take them away."""
        for name in (*_WEIGHTED, *_COUNTED):
            getattr(self, name)[cells] += sign * getattr(sums, name)

    def clear(self, cells: Array) -> None:
        """Cells that no row is in have sums of nothing, in place: no rounding is left of what was taken away."""
        for name in (*_WEIGHTED, *_COUNTED):
            getattr(self, name)[cells] = 0.0

    def with_cells(self, n_cells: int) -> Statistics:
        """The same with more cells, which are empty."""
        arrays = {name: getattr(self, name) for name in (*_WEIGHTED, *_COUNTED)}
        more: dict[str, Any] = {
            name: np.concatenate([array, np.zeros((n_cells - len(array), *array.shape[1:]))])
            for name, array in arrays.items()
        }
        return replace(self, **more)

    def blend(self, other: Statistics, share: float) -> Statistics:
        """Sums of the same rows with weights between those of two sums: a `share` of these, the rest of the others."""
        between: dict[str, Any] = {
            name: share * getattr(self, name) + (1 - share) * getattr(other, name) for name in _WEIGHTED
        }
        return replace(self, **between)

    def systems(self, expertise: Floats | None = None) -> Systems:
        """What the model step solves, a cell each; no expertise stands for the first consensus."""
        precision = np.ones(self.n_annotators) if expertise is None else expertise
        gram = self.gram[:, 0] if self.is_complete else _over_annotators(precision, self.gram)
        cross = self.first if expertise is None else _over_annotators(precision, self.cross)
        return Systems(gram, cross, self.answered @ precision, self.present, lasting=self.is_complete)

    def squared_errors(self, theta: Floats) -> Floats:
        """Sums of weighted squared errors of every annotator in cell 0 against the scores of `theta`."""
        quadratic = np.einsum("bpt,pt->b", self.gram[0] @ theta, theta)
        linear = np.einsum("lpt,pt->l", self.cross[0], theta)
        return np.maximum(self.squares[0] + self.targets.factor * (quadratic - 2 * linear), 0.0)

    def agreement(self, theta: Floats) -> Floats:
        """Covariance of every annotator's labels in cell 0 with the scores; below zero is worse than chance."""
        products = np.einsum("lpt,pt->l", self.cross[0], theta)
        if not self.intercept:
            return products
        scores = np.einsum("bp,pt->bt", self.gram[0][:, :, -1], theta)
        return products - (scores * self.cross[0][:, -1]).sum(axis=1) / self.mass[0]


@dataclass(frozen=True, eq=False)
class Systems:
    """Gram matrices and right-hand sides of cells for one consensus, and what combines them to sets of cells.

    An example counts by the expertise of those who labelled it, relative to the average example of its set. Where all
    labelled the same rows, every example is average: gram matrices are `lasting`, the same for any expertise.
    """

    gram: Floats  # (n_cells, n_columns, n_columns)
    cross: Floats  # (n_cells, n_columns, n_targets)
    labelled: Floats  # (n_cells,): the expertise of all who labelled the examples
    present: Floats  # (n_cells,): how many there are
    lasting: bool = False

    def average(self, use: Floats | None = None) -> Floats:
        """The expertise of all who labelled the average example; sets are rows of `use`, by default the cells."""
        return _sets(use, self.labelled) / _sets(use, self.present)

    def grams(self, use: Floats | None = None) -> Floats:
        """Of shape (n_sets, n_columns, n_columns)."""
        grams = _sets(use, self.gram)
        return grams if self.lasting else grams / self.average(use)[:, np.newaxis, np.newaxis]

    def crosses(self, use: Floats | None = None) -> Floats:
        """Of shape (n_sets, n_columns, n_targets)."""
        return _sets(use, self.cross) / self.average(use)[:, np.newaxis, np.newaxis]


@dataclass(frozen=True, eq=False)
class Precision:
    """How squared errors become expertise: one over the mean squared error, shrunk where labels are missing."""

    mass: Floats  # (n_annotators,): total weight of the examples that each annotator labelled
    answered: Floats  # (n_annotators,): the same without easiness: how much each annotator labelled
    present: float  # how much there was to label
    span: float  # the squared size of a typical difference between labels

    @cached_property
    def prior(self) -> Floats:
        """Weight of the crowd's average error in each annotator's.

        It is zero for those who labelled everything, so that complete labels give the paper's expertise exactly.
        """
        return PRIOR_LABELS * (1 - np.minimum(self.answered / self.present, 1.0))

    def expertise(self, errors: Floats) -> Floats:
        """Expertise from sums of squared errors."""
        return 1.0 / self._shrunk(errors, self._crowd_error(errors))

    def crowd_expertise(self, errors: Floats) -> float:
        """The expertise of the crowd as a whole: what an unknown annotator is taken to have."""
        return 1.0 / max(self._crowd_error(errors), SMALLEST_ERROR * self.span)

    def objective(self, errors: list[Floats], roughness: list[float], expertise: Floats, l2: float) -> Floats:
        """Minus the mean log-likelihood of the labels, up to constants, plus the ridge penalty, for every round.

        The crowd's error, and the scale of the penalty, are set anew in each round from the expertise then; here all
        rounds are measured as in the last one, so that they can be compared. `roughness` is the squared length of the
        coefficients.
        """
        penalties = l2 * float(self.answered @ expertise / self.present) * np.array(roughness)
        strength = self.mass + self.prior
        logarithms = np.log(self._shrunk(np.array(errors), self._crowd_error(errors[-1])))
        return (logarithms @ strength + penalties) / strength.sum()

    def _crowd_error(self, errors: Floats) -> float:
        return float(errors.sum() / self.mass.sum())

    def _shrunk(self, errors: Floats, crowd: float) -> Floats:
        floor = SMALLEST_ERROR * self.span
        return np.maximum((errors + self.prior * crowd) / (self.mass + self.prior), floor)


@dataclass(frozen=True, eq=False)
class Placed:
    """Sums, and the places of their cells and annotators among those of a larger whole."""

    sums: Statistics
    cell: Positions
    annotator: Positions


def add_placed(first: Placed, second: Placed, n_cells: int, annotators: Array) -> Statistics:
    """Sums of other cells and annotators added, around the centre of the first; what a side lacks is zero there.

    An annotator that a side does not know has labelled nothing in it. Columns and targets of both are the same.
    """
    near = second.sums.around(first.sums.shift, first.sums.targets.centre)
    parts = [part for part in (first, replace(second, sums=near)) if part.sums.n_cells]
    shared = all(part.sums.is_complete and len(part.annotator) == len(annotators) for part in parts)
    arrays: dict[str, Any] = {}
    for name in (*_WEIGHTED, *_COUNTED):
        by_annotator, block = name not in ("first", "present"), shared and name == "gram"
        n_blocks = (1 if block else len(annotators),) if by_annotator else ()
        arrays[name] = np.zeros((n_cells, *n_blocks, *getattr(first.sums, name).shape[1 + by_annotator :]))
        for part in parts:
            annotator = np.zeros(1, dtype=np.intp) if block else part.annotator
            place = (part.cell[:, np.newaxis], annotator) if by_annotator else (part.cell,)
            arrays[name][place] += getattr(part.sums, name)
    return replace(first.sums, **arrays, annotators=annotators)


def _sets(use: Floats | None, cells: Floats) -> Floats:
    """Sums over sets of cells; by default every cell is one."""
    return cells if use is None else np.tensordot(use, cells, axes=1)


def _over_annotators(expertise: Floats, sums: Floats) -> Floats:
    """Sums of every cell and annotator, added up over annotators by their expertise; without a copy of the sums."""
    n_cells, n_annotators, *shape = sums.shape
    return (expertise @ sums.reshape(n_cells, n_annotators, -1)).reshape(n_cells, *shape)
