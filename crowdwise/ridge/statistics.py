"""One pass over the rows -> Statistics: sums that add, from which every round is computed without X.

Sums are kept in cells. A cell is a set of rows that are always used together: a fold, or a fold and a
level of disagreement. Combining cells with weights gives the sums for any steepness and any set of folds.
Sums know what was subtracted from features and ratings before they were taken, so that sums of different blocks of
rows, each around its own centre, can be added.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crowdwise import _threads
from crowdwise._arrays import Array, Codes, Floats, Positions
from crowdwise._threads import run_parallel
from crowdwise.exceptions import DataError
from crowdwise.labels._encode import smallest_integer_type
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.ridge.solver import Systems, sets
from crowdwise.ridge.targets import Targets
from crowdwise.rows.features import Rows

# Values of some rows (a slice or positions), or of some labels, of shape (n_rows, n_values).
ValuesOf = Callable[[Any], Floats]

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
        arrays: dict[str, Any] = {name: sets(sums, getattr(self, name)) for name in _WEIGHTED}
        arrays |= {name: sets(counts, getattr(self, name)) for name in _COUNTED}
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


def _over_annotators(expertise: Floats, sums: Floats) -> Floats:
    """Sums of every cell and annotator, added up over annotators by their expertise; without a copy of the sums."""
    n_cells, n_annotators, *shape = sums.shape
    return (expertise @ sums.reshape(n_cells, n_annotators, -1)).reshape(n_cells, *shape)


def collect(
    rows: Rows,
    labels: CrowdLabels,
    targets: Targets,
    *,
    first: Floats,
    easiness: Floats | None = None,
    sample_weight: Floats | None = None,
    cell: Codes | None = None,
    n_cells: int = 1,
) -> Statistics:
    """The sums of all cells, from one pass over the rows.

    Every example has a label. `first` is the first consensus, of shape (n_examples, n_targets). Without `easiness`
    examples are not weighted by it: cells may be levels of disagreement that are weighted later.
    """
    importance = np.ones(len(labels)) if sample_weight is None else sample_weight
    weight = importance if easiness is None else importance * easiness
    cells: Codes = np.zeros(len(labels), dtype=np.int16) if cell is None else np.asarray(cell)
    n_annotators, example = labels.n_annotators, labels.example_index
    group = cells[example].astype(np.int64) * n_annotators + labels.annotator_index

    def per_annotator(of_labels: Floats) -> Floats:
        return sum_by(group, of_labels, n_cells * n_annotators).reshape(n_cells, n_annotators)

    mass = per_annotator(weight[example])
    if labels.is_complete:
        gram, cross, of_first = _complete_sums(rows, labels, targets, first, weight, cells, n_cells)
    else:
        gram, cross, of_first = _sums_per_annotator(rows, labels, targets, first, weight, group, n_cells)
    return Statistics(
        gram,
        cross,
        of_first,
        targets.factor * targets.n_targets * mass  # every target is +1 or -1
        if targets.codebook is not None
        else per_annotator(weight[example] * (labels.values - targets.centre) ** 2),
        mass,
        mass.copy() if easiness is None else per_annotator(importance[example]),
        sum_by(cells, importance, n_cells),
        rows.shift,
        rows.intercept,
        targets,
        labels.annotators,
    )


def _complete_sums(
    rows: Rows, labels: CrowdLabels, targets: Targets, first: Floats, weight: Floats, cell: Codes, n_cells: int
) -> tuple[Floats, Floats, Floats]:
    """Each row once: all annotators share its part of the gram matrix."""
    n_annotators, n_targets = labels.n_annotators, targets.n_targets
    matrix = labels.values.reshape(labels.shape)

    def values_of(at: Any) -> Floats:
        of_labels = targets.of_values(matrix[at])
        return np.hstack([of_labels.reshape(len(of_labels), -1), n_annotators * first[at]])

    gram, cross = row_sums(rows, weight, values_of, (n_annotators + 1) * n_targets, cell, n_cells)
    by_annotator = cross.reshape(n_cells, rows.n_columns, n_annotators + 1, n_targets)
    return gram[:, np.newaxis], by_annotator[:, :, :-1].swapaxes(1, 2).copy(), by_annotator[:, :, -1].copy()


def _sums_per_annotator(
    rows: Rows, labels: CrowdLabels, targets: Targets, first: Floats, weight: Floats, group: Codes, n_cells: int
) -> tuple[Floats, Floats, Floats]:
    """Each row once per label: every annotator has a gram matrix of the rows that they labelled."""
    n_annotators, n_targets, example = labels.n_annotators, targets.n_targets, labels.example_index

    def values_of(at: Positions) -> Floats:
        # An example comes once per label, so its first consensus is counted as often as it has labels.
        return np.hstack([targets.of_values(labels.values[at]), first[example[at]]])

    gram, cross = row_sums(rows, weight, values_of, 2 * n_targets, group, n_cells * n_annotators, example)
    gram, cross = (sums.reshape(n_cells, n_annotators, *sums.shape[1:]) for sums in (gram, cross))
    with _quiet():
        return gram, cross[..., :n_targets].copy(), cross[..., n_targets:].sum(axis=1)


def sum_by(group: Codes, values: Floats, n_groups: int) -> Floats:
    """Sums of the values of every group."""
    return np.bincount(group, values, minlength=n_groups).astype(np.float64, copy=False)


def _quiet() -> np.errstate:
    """A NaN or infinity is looked for, and named, after the sums."""
    return np.errstate(invalid="ignore", over="ignore")


def row_sums(
    rows: Rows,
    weight: Floats | None,
    values_of: ValuesOf,
    n_values: int,
    cell: Codes | None = None,
    n_cells: int = 1,
    row_of: Codes | None = None,
) -> tuple[Floats, Floats]:
    """Sums of weight · x xᵀ and of weight · x valuesᵀ per cell, of shapes (n_cells, n_columns, n_columns or n_values).

    Each row is read once; or, if `row_of` has the row of every label, once per label: cells and values are then those
    of labels.
    """
    if weight is not None and (weight == 1).all():
        weight = None
    order, ends = None, np.array([0, rows.n_examples])
    if cell is not None and (n_cells > 1 or row_of is not None):
        order = np.argsort(cell.astype(smallest_integer_type(n_cells)), kind="stable")  # short integers sort faster
        ends = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=n_cells))])

    def task(part: tuple[int, range]) -> tuple[int, Floats]:
        blocks = (block if order is None else order[block] for block in rows.blocks(part[1]))
        return part[0], _sums_of_blocks(rows, weight, values_of, n_values, blocks, row_of)

    tasks = (
        (k, range(start, min(start + _threads.TASK_ROWS, ends[k + 1])))
        for k in range(n_cells)
        for start in range(ends[k], ends[k + 1], _threads.TASK_ROWS)
    )
    gram, cross = np.zeros((n_cells, rows.n_columns, rows.n_columns)), np.zeros((n_cells, rows.n_columns, n_values))
    # Sums of tasks are added in a fixed order, so threads change no bit.
    for k, sums in run_parallel(task, tasks, ends[-1] * rows.n_columns**2):
        gram[k] += sums[:, : rows.n_columns]
        cross[k] += sums[:, rows.n_columns :]
    return gram, cross


def _sums_of_blocks(
    rows: Rows, weight: Floats | None, values_of: ValuesOf, n_values: int, blocks: Any, row_of: Codes | None
) -> Floats:
    """Products of the columns of `Rows` with themselves and with values, of shape (n_columns, n_columns + n_values)."""
    n_features, n_columns = rows.n_features, rows.intercept + n_values
    gram, cross = np.zeros((n_features, n_features)), np.zeros((n_columns, n_features))
    of_first = np.zeros(n_columns)  # products with the column of ones
    for block in blocks:
        at = block if row_of is None else row_of[block]
        root = None if weight is None else np.sqrt(weight[at])
        values = values_of(block)
        # All columns but the features, as rows: they are written and read in stretches.
        columns = np.ones((n_columns, len(values)))
        columns[rows.intercept :] = values.T
        if root is not None:
            columns *= root
        with _quiet():
            x = rows.read(at, root)
            products = x.T @ x
            gram += products if isinstance(products, np.ndarray) else products.toarray()
            cross += columns @ x
            of_first += columns @ columns[0]
    both = np.hstack([gram, cross.T])
    return np.vstack([both, np.concatenate([cross[0], of_first])]) if rows.intercept else both
