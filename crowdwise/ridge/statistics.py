"""X, labels, weights, folds -> Statistics: sums that add, from which every round is computed without X.

Sums are kept in cells. A cell is a set of rows that are always used together: a fold, or a fold and a
level of disagreement. Combining cells with weights gives the sums for any steepness and any set of folds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdwise.arrays import Floats
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.ridge.features import Rows, run_parallel
from crowdwise.ridge.targets import Targets

# Writes the values of some rows into an array made for them.
WriteValues = Callable[[Any, Floats], None]

# Rows that one task of the pass reads; its partial sums are added in a fixed order, so threads change no bit.
_TASK_ROWS = 2**16
# Rows that are sorted by cell together: gathered from further apart, they would come from all over the memory.
_SORT_ROWS = 2**19


@dataclass(frozen=True)
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
    """

    gram: Floats
    cross: Floats
    first: Floats
    squares: Floats
    mass: Floats
    answered: Floats
    present: Floats

    def __add__(self, other: Statistics) -> Statistics:
        return Statistics(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def combine(self, use: NDArray[Any], weight: Floats | None = None) -> Statistics:
        """Sums over other sets of rows: row k of `use` says which cells make up the new cell k.

        Parameters
        ----------
        use : array of shape (n_new_cells, n_cells)
            One where a cell takes part, else zero.
        weight : ndarray of shape (n_cells,), default=None
            The weight of the examples in each cell (their easiness); one by default.
        """
        counts = np.asarray(use, dtype=np.float64)
        sums = counts if weight is None else counts * weight

        def mix(coefficients: Floats, cells: Floats) -> Floats:
            return np.tensordot(coefficients, cells, axes=1)

        return Statistics(
            gram=mix(sums, self.gram),
            cross=mix(sums, self.cross),
            first=mix(sums, self.first),
            squares=mix(sums, self.squares),
            mass=mix(sums, self.mass),
            answered=mix(counts, self.answered),
            present=mix(counts, self.present),
        )

    def blend(self, other: Statistics, share: float) -> Statistics:
        """Sums of the same rows with weights between those of two sums.

        Parameters
        ----------
        other : Statistics
            Sums with other weights.
        share : float
            How much the weights of these sums count; the other ones count the rest.
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

    def average_voice(self, expertise: Floats) -> Floats:
        """The expertise that answered to the average example, per cell."""
        return self.answered @ expertise / self.present

    def system(self, expertise: Floats) -> tuple[Floats, Floats]:
        """The gram matrices and right-hand sides of the model step, per cell.

        An example counts by the expertise that answered to it, relative to the average example.

        Parameters
        ----------
        expertise : ndarray of shape (n_annotators,)
            Of each annotator.

        Returns
        -------
        gram : ndarray of shape (n_cells, n_columns, n_columns)
        cross : ndarray of shape (n_cells, n_columns, n_targets)
        """
        voice = self.average_voice(expertise)[:, np.newaxis, np.newaxis]
        return self._mixed_gram(expertise), _over_annotators(expertise, self.cross) / voice

    def first_system(self) -> tuple[Floats, Floats]:
        """The same for the first consensus, when all annotators count alike."""
        alike = np.ones(self.cross.shape[1])
        return self._mixed_gram(alike), self.first / self.average_voice(alike)[:, np.newaxis, np.newaxis]

    def _mixed_gram(self, expertise: Floats) -> Floats:
        if self.gram.shape[1] == 1:  # complete labels: every example is average
            return self.gram[:, 0]
        voice = self.average_voice(expertise)[:, np.newaxis, np.newaxis]
        return _over_annotators(expertise, self.gram) / voice

    def squared_errors(self, theta: Floats, factor: float) -> Floats:
        """Sums of weighted squared errors of every annotator in cell 0 against the scores of `theta`."""
        quadratic = np.einsum("bpq,pt,qt->b", self.gram[0], theta, theta, optimize=True)
        linear = np.einsum("lpt,pt->l", self.cross[0], theta)
        return np.maximum(self.squares[0] + factor * (quadratic - 2 * linear), 0.0)


def _over_annotators(expertise: Floats, sums: Floats) -> Floats:
    """Sums of every cell and annotator, added up over annotators by their expertise; without a copy of the sums."""
    n_cells, n_annotators, *shape = sums.shape
    return (expertise @ sums.reshape(n_cells, n_annotators, -1)).reshape(n_cells, *shape)


def n_bytes_needed(labels: CrowdLabels, n_columns: int, n_cells: int) -> int:
    """Memory that `collect` would take for its sums."""
    n_blocks = 1 if labels.is_complete else labels.n_annotators
    n_classes = 1 if labels.classes is None else len(labels.classes)
    return 8 * n_cells * n_columns * (n_blocks * n_columns + labels.n_annotators * n_classes)


@dataclass(frozen=True)
class _Pass:
    """What one pass over the rows needs to know."""

    rows: Rows
    labels: CrowdLabels
    targets: Targets
    first: Floats
    weight: Floats
    sample_weight: Floats


@dataclass
class _Sums:
    """Running sums over blocks of rows, of features and of values with a leading column of ones."""

    gram: Floats
    cross: Floats
    level: Floats

    @classmethod
    def empty(cls, rows: Rows, n_values: int) -> _Sums:
        n_features = rows.X.shape[1]
        return cls(np.zeros((n_features, n_features)), np.zeros((n_features, 1 + n_values)), np.zeros(1 + n_values))

    def add(self, rows: Rows, at: Any, weight: Floats | None, write_values: WriteValues) -> None:
        """Add the sums over one block of rows; no weight is a weight of one."""
        root = None if weight is None else np.sqrt(weight)
        x = rows.read(at, root)
        weighted = np.empty((x.shape[0], self.cross.shape[1]))
        weighted[:, 0] = 1.0
        write_values(at, weighted[:, 1:])
        if root is not None:
            weighted *= root[:, np.newaxis]
        with np.errstate(invalid="ignore", over="ignore"):  # a NaN or infinity is looked for, and told, afterwards
            gram = x.T @ x
            self.gram += gram if isinstance(gram, np.ndarray) else gram.toarray()
            self.cross += x.T @ weighted
            self.level += weighted[:, 0] @ weighted

    def __iadd__(self, other: _Sums) -> _Sums:
        self.gram += other.gram
        self.cross += other.cross
        self.level += other.level
        return self

    def with_ones(self, *, intercept: bool) -> tuple[Floats, Floats]:
        """gram and cross over the columns of `Rows`: features and, for the intercept, ones."""
        if not intercept:
            return self.gram, self.cross[:, 1:]
        gram = np.block([[self.gram, self.cross[:, :1]], [self.cross[:, :1].T, self.level[:1]]])
        return gram, np.vstack([self.cross[:, 1:], self.level[1:]])


def row_sums(
    rows: Rows,
    weight: Floats | None,
    write_values: WriteValues,
    n_values: int,
    cell: NDArray[Any] | None = None,
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
        Writes the values of a block of rows into an array of shape (n_rows, n_values).
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

    def task(part: tuple[int, list[Any]]) -> tuple[int, _Sums]:
        sums = _Sums.empty(rows, n_values)
        for at in part[1]:
            sums.add(rows, at, None if weight is None else weight[at], write_values)
        return part[0], sums

    totals = [_Sums.empty(rows, n_values) for _ in range(n_cells)]
    for k, sums in run_parallel(task, _tasks(rows, cell, n_cells), rows.n_examples * rows.n_columns**2):
        totals[k] += sums
    both = [sums.with_ones(intercept=rows.intercept) for sums in totals]
    return np.array([gram for gram, _ in both]), np.array([cross for _, cross in both])


def values_from(array: Floats) -> WriteValues:
    """The values of rows, from an array that has them for all."""

    def write(at: Any, out: Floats) -> None:
        np.copyto(out, array[at])

    return write


def _tasks(rows: Rows, cell: NDArray[Any] | None, n_cells: int) -> Iterator[tuple[int, list[Any]]]:
    """Cells and lists of blocks of their rows: slices if there is one cell, else gathered rows in ascending order."""
    if cell is None or n_cells == 1:
        for start in range(0, rows.n_examples, _TASK_ROWS):
            yield 0, list(rows.blocks(range(start, min(start + _TASK_ROWS, rows.n_examples))))
        return
    for begin in range(0, rows.n_examples, _SORT_ROWS):
        part = cell[begin : begin + _SORT_ROWS]
        order = begin + np.argsort(part, kind="stable")
        ends = np.concatenate([[0], np.cumsum(np.bincount(part, minlength=n_cells))]).tolist()
        for k in range(n_cells):
            for start in range(ends[k], ends[k + 1], _TASK_ROWS):
                span = range(start, min(start + _TASK_ROWS, ends[k + 1]))
                yield k, [order[block] for block in rows.blocks(span)]


def collect(
    rows: Rows,
    labels: CrowdLabels,
    targets: Targets,
    *,
    first: Floats,
    easiness: Floats | None = None,
    sample_weight: Floats | None = None,
    cell: NDArray[np.integer] | None = None,
    n_cells: int = 1,
) -> Statistics:
    """The sums of all cells, from one pass over the rows.

    Parameters
    ----------
    rows : Rows
        The features.
    labels : CrowdLabels
        Every example and every annotator has a label.
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
    work = _Pass(rows, labels, targets, first, weight, importance)
    cells = np.zeros(len(labels), dtype=np.int16) if cell is None else np.asarray(cell)
    if labels.is_complete:
        gram, cross, first_sums = _complete_sums(work, cells, n_cells)
    else:
        gram, cross, first_sums = _sums_per_annotator(work, cells, n_cells)
    return Statistics(gram, cross, first_sums, *_label_sums(work, cells, n_cells))


def _complete_sums(work: _Pass, cell: NDArray[Any], n_cells: int) -> tuple[Floats, Floats, Floats]:
    """Each row once: all annotators share its part of the gram matrix."""
    n_annotators, n_targets = work.labels.n_annotators, work.targets.n_targets
    matrix = work.labels.values.reshape(work.labels.shape)

    def write_values(at: Any, out: Floats) -> None:
        n_columns = n_annotators * n_targets
        work.targets.write(matrix[at], out[:, :n_columns])
        np.multiply(work.first[at], n_annotators, out=out[:, n_columns:])

    weight = None if (work.weight == 1).all() else work.weight
    gram, cross = row_sums(work.rows, weight, write_values, (n_annotators + 1) * n_targets, cell, n_cells)
    by_annotator = cross.reshape(n_cells, -1, n_annotators + 1, n_targets)
    return gram[:, np.newaxis], by_annotator[:, :, :-1].swapaxes(1, 2).copy(), by_annotator[:, :, -1].copy()


def _sums_per_annotator(work: _Pass, cell: NDArray[Any], n_cells: int) -> tuple[Floats, Floats, Floats]:
    """Each row once per label: every annotator has a gram matrix of the rows that they labelled."""
    rows, labels, n_targets = work.rows, work.labels, work.targets.n_targets
    n_columns = rows.n_columns
    gram = np.zeros((n_cells, labels.n_annotators, n_columns, n_columns))
    cross = np.zeros((n_cells, labels.n_annotators, n_columns, n_targets))
    # Labels in the order of (annotator, cell, example): each stretch is one sum.
    example = labels.example_index
    group = labels.annotator_index.astype(np.int64) * n_cells + cell[example]
    order = np.argsort(group, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=labels.n_annotators * n_cells))])

    def task(k: int) -> tuple[int, _Sums]:
        sums = _Sums.empty(rows, n_targets)
        for block in rows.blocks(range(ends[k], ends[k + 1])):
            at = order[block]
            rows_at = example[at]

            def write_values(_: Any, out: Floats, codes: NDArray[Any] = labels.values[at]) -> None:
                work.targets.write(codes[:, np.newaxis], out)

            sums.add(rows, rows_at, work.weight[rows_at], write_values)
        return k, sums

    filled = np.flatnonzero(np.diff(ends)).tolist()
    for k, sums in run_parallel(task, filled, labels.n_labels * n_columns**2):
        annotator, c = divmod(k, n_cells)
        gram[c, annotator], cross[c, annotator] = sums.with_ones(intercept=rows.intercept)
    return gram, cross, _first_sums(work, cell, n_cells)


def _first_sums(work: _Pass, cell: NDArray[Any], n_cells: int) -> Floats:
    """Only products with the first consensus: a second reading, but without gram matrices."""
    rows = work.rows
    first = np.zeros((n_cells, rows.n_columns, work.targets.n_targets))
    weight = work.weight * work.labels.labels_per_example
    for k, blocks in _tasks(rows, cell, n_cells):
        for at in blocks:
            root = np.sqrt(weight[at])
            values = root[:, np.newaxis] * work.first[at]
            with np.errstate(invalid="ignore", over="ignore"):  # told afterwards, as in the other sums
                first[k, : rows.X.shape[1]] += rows.read(at, root).T @ values
            if rows.intercept:
                first[k, -1] += root @ values
    return first


def _label_sums(work: _Pass, cell: NDArray[Any], n_cells: int) -> tuple[Floats, Floats, Floats, Floats]:
    """squares, mass, answered and present: sums that need labels only."""
    labels, targets = work.labels, work.targets
    shape = (n_cells, labels.n_annotators)
    present = _sum_by(cell, work.sample_weight, n_cells)
    if labels.is_complete and targets.codebook is not None:
        mass = np.repeat(_sum_by(cell, work.weight, n_cells)[:, np.newaxis], shape[1], axis=1)
        answered = np.repeat(present[:, np.newaxis], shape[1], axis=1)
        return targets.factor * targets.n_targets * mass, mass, answered, present
    example = labels.example_index
    group = cell[example].astype(np.int64) * shape[1] + labels.annotator_index
    mass, answered = (
        _sum_by(group, weight[example], n_cells * shape[1]).reshape(shape)
        for weight in (work.weight, work.sample_weight)
    )
    if targets.codebook is not None:  # every target is +1 or -1
        return targets.factor * targets.n_targets * mass, mass, answered, present
    squared = work.weight[example] * (labels.values - targets.centre) ** 2
    return _sum_by(group, squared, n_cells * shape[1]).reshape(shape), mass, answered, present


def _sum_by(group: NDArray[Any], values: Floats, n_groups: int) -> Floats:
    return np.bincount(group, values, minlength=n_groups).astype(np.float64, copy=False)
