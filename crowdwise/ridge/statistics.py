"""X, labels, weights, folds -> Statistics: sums that add, from which every round is computed without X.

Sums are kept in cells. A cell is a set of rows that are always used together: a fold, or a fold and a
level of disagreement. Combining cells with weights gives the sums for any steepness and any set of folds.
Sums know what was subtracted from features and ratings before they were taken, so that sums of different blocks of
rows, each around its own centre, can be added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crowdwise.arrays import Array, Codes, Floats
from crowdwise.exceptions import DataError
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.ridge import features
from crowdwise.ridge.features import Rows, run_parallel
from crowdwise.ridge.targets import Targets

# Writes the values of some rows into an array made for them.
WriteValues = Callable[[Any, Floats], None]

# Rows that are sorted by cell together: gathered from further apart, they would come from all over the memory.
_SORT_ROWS = 2**19
# A cell should have this many of them, or its products are too small to be fast.
_CELL_ROWS = 2**12


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

    def __add__(self, other: Statistics) -> Statistics:
        """The sums over the rows of both, around the centre of the first."""
        self._check_same_kind(other)
        other = other.around(self.shift, self.targets.centre)
        gram, other_gram = self.gram, other.gram
        if gram.shape[1] != other_gram.shape[1]:  # complete labels in one of them: all annotators share a block
            gram, other_gram = (
                np.broadcast_to(g, (len(g), self.n_annotators, *g.shape[2:])) for g in (gram, other_gram)
            )
        return replace(
            self,
            gram=gram + other_gram,
            cross=self.cross + other.cross,
            first=self.first + other.first,
            squares=self.squares + other.squares,
            mass=self.mass + other.mass,
            answered=self.answered + other.answered,
            present=self.present + other.present,
            targets=replace(self.targets, span=max(self.targets.span, other.targets.span)),
        )

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
        """The same sums with other numbers subtracted from features and ratings; this is exact but for rounding.

        Parameters
        ----------
        shift : ndarray of shape (n_features,)
            To be subtracted from every row.
        centre : float
            To be subtracted from ratings.

        Returns
        -------
        statistics : Statistics
        """
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

    def _check_same_kind(self, other: Statistics) -> None:
        if not np.array_equal(self.annotators, other.annotators):
            raise DataError(
                "only sums over labels of the same annotators, in the same order, can be added; these are of "
                f"{self.annotators[:3].tolist()} and {other.annotators[:3].tolist()}, ... Declare all annotators."
            )
        mine, theirs = self.targets.codebook, other.targets.codebook
        same = mine is theirs or (mine is not None and theirs is not None and np.array_equal(mine, theirs))
        if not same or self.intercept != other.intercept or self.cross.shape != other.cross.shape:
            raise DataError("only sums over the same features, classes and cells can be added. Declare all classes.")

    def combine(self, use: Array, weight: Floats | None = None) -> Statistics:
        """Sums over other sets of rows: row k of `use` says which cells make up the new cell k.

        Parameters
        ----------
        use : array of shape (n_new_cells, n_cells)
            One where a cell takes part, else zero.
        weight : ndarray of shape (n_cells,), default=None
            The weight of the examples in each cell (their easiness); one by default.

        Returns
        -------
        statistics : Statistics
        """
        counts = np.asarray(use, dtype=np.float64)
        sums = counts if weight is None else counts * weight
        return replace(
            self,
            gram=_sets(sums, self.gram),
            cross=_sets(sums, self.cross),
            first=_sets(sums, self.first),
            squares=_sets(sums, self.squares),
            mass=_sets(sums, self.mass),
            answered=_sets(counts, self.answered),
            present=_sets(counts, self.present),
        )

    def blend(self, other: Statistics, share: float) -> Statistics:
        """Sums of the same rows with weights between those of two sums.

        Parameters
        ----------
        other : Statistics
            Sums with other weights.
        share : float
            How much the weights of these sums count; the other ones count the rest.

        Returns
        -------
        statistics : Statistics
        """

        def between(one: Floats, two: Floats) -> Floats:
            return share * one + (1 - share) * two

        return replace(
            self,
            gram=between(self.gram, other.gram),
            cross=between(self.cross, other.cross),
            first=between(self.first, other.first),
            squares=between(self.squares, other.squares),
            mass=between(self.mass, other.mass),
        )

    def grams(self, expertise: Floats | None = None, use: Floats | None = None) -> Floats:
        """The gram matrices of the model step. An example counts by the expertise of those who labelled it, relative
        to the average example of its set.

        Parameters
        ----------
        expertise : ndarray of shape (n_annotators,), default=None
            Of each annotator; None stands for the first consensus, when all count alike.
        use : ndarray of shape (n_sets, n_cells), default=None
            Which cells make up each set of rows; by default every cell is one.

        Returns
        -------
        gram : ndarray of shape (n_sets, n_columns, n_columns)
        """
        if self.is_complete:  # every example is average
            return _sets(use, self.gram[:, 0])
        precision = np.ones(self.n_annotators) if expertise is None else expertise
        average = self.average_expertise(precision, use)[:, np.newaxis, np.newaxis]
        return _sets(use, _over_annotators(precision, self.gram)) / average

    def crosses(self, expertise: Floats | None = None, use: Floats | None = None) -> Floats:
        """The right-hand sides that go with `grams`, of shape (n_sets, n_columns, n_targets)."""
        precision = np.ones(self.n_annotators) if expertise is None else expertise
        sums = self.first if expertise is None else _over_annotators(precision, self.cross)
        return _sets(use, sums) / self.average_expertise(precision, use)[:, np.newaxis, np.newaxis]

    def average_expertise(self, expertise: Floats, use: Floats | None = None) -> Floats:
        """The expertise of all who labelled the average example, per set of cells."""
        return _sets(use, self.answered @ expertise) / _sets(use, self.present)

    def squared_errors(self, theta: Floats) -> Floats:
        """Sums of weighted squared errors of every annotator in cell 0 against the scores of `theta`."""
        quadratic = np.einsum("bpq,pt,qt->b", self.gram[0], theta, theta, optimize=True)
        linear = np.einsum("lpt,pt->l", self.cross[0], theta)
        return np.maximum(self.squares[0] + self.targets.factor * (quadratic - 2 * linear), 0.0)

    def agreement(self, theta: Floats) -> Floats:
        """Covariance of every annotator's labels in cell 0 with the scores; below zero is worse than chance."""
        together = np.einsum("lpt,pt->l", self.cross[0], theta)
        if not self.intercept:
            return together
        scores = np.einsum("bp,pt->bt", self.gram[0][:, :, -1], theta)
        return together - (scores * self.cross[0][:, -1]).sum(axis=1) / self.mass[0]


def _sets(use: Floats | None, cells: Floats) -> Floats:
    """Sums over sets of cells; by default every cell is one."""
    return cells if use is None else np.tensordot(use, cells, axes=1)


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

    Parameters
    ----------
    rows : Rows
        The features.
    labels : CrowdLabels
        Every example has a label.
    targets : Targets
        How labels become numbers.
    first : ndarray of shape (n_examples, n_targets)
        The first consensus.
    easiness : ndarray of shape (n_examples,), default=None
        Weights; leave out if cells are levels of disagreement that are weighted later.
    sample_weight : ndarray of shape (n_examples,), default=None
        One by default.
    cell : ndarray of shape (n_examples,), default=None
        The cell of each row; all in cell 0 by default.
    n_cells : int, default=1
        Number of cells.

    Returns
    -------
    statistics : Statistics
    """
    importance = np.ones(len(labels)) if sample_weight is None else sample_weight
    weight = importance if easiness is None else importance * easiness
    cells = np.zeros(len(labels), dtype=np.int16) if cell is None else np.asarray(cell)
    by_labels = _complete_sums if labels.is_complete else _sums_per_annotator
    gram, cross, first_sums = by_labels(rows, labels, targets, first, weight, cells, n_cells)
    squares, mass = _label_sums(labels, targets, weight, cells, n_cells)
    present = _sum_by(cells, importance, n_cells)
    if labels.is_complete:
        answered = np.repeat(present[:, np.newaxis], labels.n_annotators, axis=1)
    else:
        answered = mass if easiness is None else _label_sums(labels, targets, importance, cells, n_cells)[1]
    return Statistics(
        gram,
        cross,
        first_sums,
        squares,
        mass,
        answered,
        present,
        rows.shift,
        rows.intercept,
        targets,
        labels.annotators,
    )


def _complete_sums(
    rows: Rows, labels: CrowdLabels, targets: Targets, first: Floats, weight: Floats, cell: Array, n_cells: int
) -> tuple[Floats, Floats, Floats]:
    """Each row once: all annotators share its part of the gram matrix."""
    n_annotators, n_targets = labels.n_annotators, targets.n_targets
    matrix = labels.values.reshape(labels.shape)

    def write_values(at: Any, out: Floats) -> None:
        targets.write(matrix[at] if isinstance(at, slice) else matrix.take(at, axis=0), out[:-n_targets])
        np.multiply(first[at].T, n_annotators, out=out[-n_targets:])

    gram, cross = row_sums(rows, weight, write_values, (n_annotators + 1) * n_targets, cell, n_cells)
    by_annotator = cross.reshape(n_cells, -1, n_annotators + 1, n_targets)
    return gram[:, np.newaxis], by_annotator[:, :, :-1].swapaxes(1, 2).copy(), by_annotator[:, :, -1].copy()


def _sums_per_annotator(
    rows: Rows, labels: CrowdLabels, targets: Targets, first: Floats, weight: Floats, cell: Array, n_cells: int
) -> tuple[Floats, Floats, Floats]:
    """Each row once per label: every annotator has a gram matrix of the rows that they labelled."""
    n_columns, n_targets = rows.n_columns, targets.n_targets
    gram = np.zeros((n_cells, labels.n_annotators, n_columns, n_columns))
    cross = np.zeros((n_cells, labels.n_annotators, n_columns, n_targets))
    firsts = np.zeros((n_cells, n_columns, n_targets))
    # Labels in the order of (annotator, cell, example): each stretch is one sum.
    example = labels.example_index
    group = labels.annotator_index.astype(np.int64) * n_cells + cell[example]
    order = np.argsort(group, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=labels.n_annotators * n_cells))])

    def task(k: int) -> tuple[int, Floats]:
        def write_values(at: slice, out: Floats) -> None:
            targets.write(labels.values[order[at], np.newaxis], out[:n_targets])
            # An example comes once per label, so its first consensus is counted as often as it has labels.
            out[n_targets:] = first[example[order[at]]].T

        sums = _Sums(rows, 2 * n_targets)
        for block in rows.blocks(range(ends[k], ends[k + 1])):
            at = example[order[block]]
            sums.add(at, weight[at], block, write_values)
        return k, sums.total()

    for k, sums in run_parallel(task, np.flatnonzero(np.diff(ends)).tolist(), labels.n_labels * n_columns**2):
        annotator, c = divmod(k, n_cells)
        gram[c, annotator], cross[c, annotator] = sums[:, :n_columns], sums[:, n_columns : n_columns + n_targets]
        firsts[c] += sums[:, n_columns + n_targets :]
    return gram, cross, firsts


def _label_sums(
    labels: CrowdLabels, targets: Targets, weight: Floats, cell: Array, n_cells: int
) -> tuple[Floats, Floats]:
    """squares and mass: sums that need labels only."""
    shape = (n_cells, labels.n_annotators)
    if labels.is_complete and targets.codebook is not None:
        mass = np.repeat(_sum_by(cell, weight, n_cells)[:, np.newaxis], shape[1], axis=1)
        return targets.factor * targets.n_targets * mass, mass
    example = labels.example_index
    group = cell[example].astype(np.int64) * shape[1] + labels.annotator_index
    mass = _sum_by(group, weight[example], n_cells * shape[1]).reshape(shape)
    if targets.codebook is not None:  # every target is +1 or -1
        return targets.factor * targets.n_targets * mass, mass
    squared = weight[example] * (labels.values - targets.centre) ** 2
    return _sum_by(group, squared, n_cells * shape[1]).reshape(shape), mass


def _sum_by(group: Array, values: Floats, n_groups: int) -> Floats:
    return np.bincount(group, values, minlength=n_groups).astype(np.float64, copy=False)


class _Sums:
    """Running sums over blocks of rows: products of the columns of `Rows` with themselves and with values."""

    def __init__(self, rows: Rows, n_values: int) -> None:
        self.rows = rows
        self._x, self._rest = np.empty((0, rows.n_features)), np.empty((rows.intercept + n_values, 0))
        self._gram = np.zeros((rows.n_features, rows.n_features))
        self._cross = np.zeros((rows.intercept + n_values, rows.n_features))
        self._level = np.zeros(rows.intercept + n_values)

    def add(self, at: Any, weight: Floats | None, place: Any, write_values: WriteValues) -> None:
        """Add the sums over the rows `at`, whose values are written for `place`; no weight is a weight of one."""
        root = None if weight is None else np.sqrt(weight)
        n_rows = at.stop - at.start if isinstance(at, slice) else len(at)
        if len(self._x) < n_rows:
            self._x, self._rest = np.empty((n_rows, self._x.shape[1])), np.empty((len(self._rest), n_rows))
        rest = self._rest[:, :n_rows]  # all columns but the features, as rows: they are written and read in stretches
        rest[: self.rows.intercept] = 1.0
        write_values(place, rest[self.rows.intercept :])
        if root is not None:
            rest *= root
        with np.errstate(invalid="ignore", over="ignore"):  # a NaN or infinity is looked for, and named, afterwards
            x = self.rows.read(at, None if root is None else root[:, np.newaxis], self._x[:n_rows])
            gram = x.T @ x
            self._gram += gram if isinstance(gram, np.ndarray) else gram.toarray()
            self._cross += rest @ x
            self._level += rest @ rest[0]

    def total(self) -> Floats:
        """Products of the columns of `Rows` with themselves and with the values, of shape (n_columns, ...)."""
        features = np.hstack([self._gram, self._cross.T])
        if not self.rows.intercept:
            return features
        return np.vstack([features, np.concatenate([self._cross[0], self._level])])


def row_sums(
    rows: Rows,
    weight: Floats | None,
    write_values: WriteValues,
    n_values: int,
    cell: Array | None = None,
    n_cells: int = 1,
) -> tuple[Floats, Floats]:
    """Sums of weight · x xᵀ and of weight · x valuesᵀ per cell, each row read once.

    Parameters
    ----------
    rows : Rows
        The features.
    weight : ndarray of shape (n_examples,) or None
        Weights; None if all are one.
    write_values : callable
        Writes the values of a block of rows into an array of shape (n_values, n_rows).
    n_values : int
        Number of columns of values.
    cell : ndarray of shape (n_examples,), default=None
        The cell of each row; all in cell 0 by default.
    n_cells : int, default=1
        Number of cells.

    Returns
    -------
    gram : ndarray of shape (n_cells, n_columns, n_columns)
    cross : ndarray of shape (n_cells, n_columns, n_values)
    """
    if weight is not None and (weight == 1).all():
        weight = None

    def task(part: tuple[int, list[Any]]) -> tuple[int, Floats]:
        sums = _Sums(rows, n_values)
        for at in part[1]:
            sums.add(at, None if weight is None else weight[at], at, write_values)
        return part[0], sums.total()

    total = np.zeros((n_cells, rows.n_columns, rows.n_columns + n_values))
    # Sums of tasks are added in a fixed order, so threads change no bit.
    for k, sums in run_parallel(task, _tasks(rows, cell, n_cells), rows.n_examples * rows.n_columns**2):
        total[k] += sums
    return total[:, :, : rows.n_columns].copy(), total[:, :, rows.n_columns :].copy()


def values_from(array: Floats) -> WriteValues:
    """The values of rows, from an array that has them for all."""

    def write(at: Any, out: Floats) -> None:
        np.copyto(out, array[at].T)

    return write


def _tasks(rows: Rows, cell: Array | None, n_cells: int) -> Iterator[tuple[int, list[Any]]]:
    """Cells and lists of blocks of their rows: slices if there is one cell, else gathered rows in ascending order."""
    if cell is None or n_cells == 1:
        for span in features.spans(rows.n_examples):
            yield 0, list(rows.blocks(span))
        return
    narrow = cell.astype(np.int16) if n_cells < 2**15 else cell  # sorted faster
    n_sorted = min(_SORT_ROWS, max(features.TASK_ROWS, _CELL_ROWS * n_cells))
    for begin in range(0, rows.n_examples, n_sorted):
        part = narrow[begin : begin + n_sorted]
        order = begin + np.argsort(part, kind="stable")
        ends = np.concatenate([[0], np.cumsum(np.bincount(part, minlength=n_cells))]).tolist()
        for k in np.flatnonzero(np.diff(ends)).tolist():
            for start in range(ends[k], ends[k + 1], features.TASK_ROWS):
                span = range(start, min(start + features.TASK_ROWS, ends[k + 1]))
                yield k, [order[block] for block in rows.blocks(span)]
