"""X, labels, weights, cells -> Statistics, by one pass over the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from crowdwise import _threads
from crowdwise._arrays import Array, Codes, Floats, Positions
from crowdwise._threads import run_parallel
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.ridge.statistics import Statistics
from crowdwise.ridge.targets import Targets
from crowdwise.rows.features import Rows

# Writes the values of some rows into an array made for them.
WriteValues = Callable[[Any, Floats], None]

# Rows that are sorted by cell together: gathered from further apart, they would come from all over the memory.
_SORT_ROWS = 2**19
# A cell should have this many of them, or its products are too small to be fast.
_CELL_ROWS = 2**14
# Products with a multiple of this many columns are a fifth faster: the kernels of BLAS have no rest to deal with.
_KERNEL_COLUMNS = 4


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
    cells = np.zeros(len(labels), dtype=np.int16) if cell is None else np.asarray(cell)
    by_labels = _complete_sums if labels.is_complete else _sums_per_annotator
    gram, cross, first_sums = by_labels(rows, labels, targets, first, weight, cells, n_cells)
    squares, mass = _label_sums(labels, targets, weight, cells, n_cells)
    answered = mass.copy() if easiness is None else _label_sums(labels, targets, importance, cells, n_cells)[1]
    present = sum_by(cells, importance, n_cells)
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
        some = first[at] if isinstance(at, slice) else first.take(at, axis=0)
        np.multiply(some.T, n_annotators, out=out[-n_targets:])

    gram, cross = row_sums(rows, weight, write_values, (n_annotators + 1) * n_targets, cell, n_cells)
    by_annotator = cross.reshape(n_cells, rows.n_columns, n_annotators + 1, n_targets)
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
    narrow = group.astype(np.int16) if labels.n_annotators * n_cells < 2**15 else group  # sorted faster
    order = np.argsort(narrow, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=labels.n_annotators * n_cells))])

    def task(k: int) -> tuple[int, Floats]:
        def write_values(at: slice, out: Floats) -> None:
            targets.write(labels.values[order[at], np.newaxis], out[:n_targets])
            # An example comes once per label, so its first consensus is counted as often as it has labels.
            out[n_targets:] = first[example[order[at]]].T

        sums = _Sums(rows, 2 * n_targets)
        with _quiet():
            for block in rows.blocks(range(ends[k], ends[k + 1])):
                at = example[order[block]]
                sums.add(at, weight[at], block, write_values)
        return k, sums.total()

    for k, sums in run_parallel(task, np.flatnonzero(np.diff(ends)).tolist(), labels.n_labels * n_columns**2):
        annotator, c = divmod(k, n_cells)
        gram[c, annotator], cross[c, annotator] = sums[:, :n_columns], sums[:, n_columns : n_columns + n_targets]
        with _quiet():
            firsts[c] += sums[:, n_columns + n_targets :]
    return gram, cross, firsts


def _label_sums(
    labels: CrowdLabels, targets: Targets, weight: Floats, cell: Array, n_cells: int
) -> tuple[Floats, Floats]:
    """squares and mass: sums that need labels only."""
    shape = (n_cells, labels.n_annotators)
    if labels.is_complete and targets.codebook is not None:
        mass = np.repeat(sum_by(cell, weight, n_cells)[:, np.newaxis], shape[1], axis=1)
        return targets.factor * targets.n_targets * mass, mass
    example = labels.example_index
    group = cell[example].astype(np.int64) * shape[1] + labels.annotator_index
    mass = sum_by(group, weight[example], n_cells * shape[1]).reshape(shape)
    if targets.codebook is not None:  # every target is +1 or -1
        return targets.factor * targets.n_targets * mass, mass
    squared = weight[example] * (labels.values - targets.centre) ** 2
    return sum_by(group, squared, n_cells * shape[1]).reshape(shape), mass


def sum_by(group: Array, values: Floats, n_groups: int) -> Floats:
    """Sums of the values of every group."""
    return np.bincount(group, values, minlength=n_groups).astype(np.float64, copy=False)


def _quiet() -> np.errstate:
    """A NaN or infinity is looked for, and named, after the sums."""
    return np.errstate(invalid="ignore", over="ignore")


class _Sums:
    """Running sums over blocks of rows: products of the columns of `Rows` with themselves and with values."""

    def __init__(self, rows: Rows, n_values: int) -> None:
        self.rows, self._n_columns = rows, rows.intercept + n_values
        n_padded = _whole_kernels(self._n_columns)
        self._x, self._columns = np.empty((0, rows.n_features)), np.empty((n_padded, 0))
        self._gram = np.zeros((rows.n_features, rows.n_features))
        self._cross = np.zeros((n_padded, rows.n_features))
        self._level = np.zeros(n_padded)

    def add(self, at: Any, weight: Floats | None, place: Any, write_values: WriteValues) -> None:
        """Add the sums over the rows `at`, whose values are written for `place`; no weight is a weight of one."""
        root = None if weight is None else np.sqrt(weight)
        n_rows = _n_rows(at)
        if len(self._x) < n_rows:
            self._x, self._columns = np.empty((n_rows, self._x.shape[1])), np.zeros((len(self._columns), n_rows))
        # All columns but the features, as rows: they are written and read in stretches. The last ones are zeros.
        columns = self._columns[:, :n_rows]
        columns[: self.rows.intercept] = 1.0
        write_values(place, columns[self.rows.intercept : self._n_columns])
        if root is not None:
            columns *= root
        x = self.rows.read(at, None if root is None else root[:, np.newaxis], self._x[:n_rows])
        gram = x.T @ x
        self._gram += gram if isinstance(gram, np.ndarray) else gram.toarray()
        self._cross += columns @ x
        self._level += columns @ columns[0]

    def total(self) -> Floats:
        """Products of the columns of `Rows` with themselves and with the values, of shape (n_columns, ...)."""
        cross, level = self._cross[: self._n_columns], self._level[: self._n_columns]
        features = np.hstack([self._gram, cross.T])
        if not self.rows.intercept:
            return features
        return np.vstack([features, np.concatenate([cross[0], level])])


def _whole_kernels(n_columns: int) -> int:
    """As many columns or some more."""
    return -(-n_columns // _KERNEL_COLUMNS) * _KERNEL_COLUMNS


def _n_rows(at: slice | Positions) -> int:
    return at.stop - at.start if isinstance(at, slice) else len(at)


def row_sums(
    rows: Rows,
    weight: Floats | None,
    write_values: WriteValues,
    n_values: int,
    cell: Array | None = None,
    n_cells: int = 1,
) -> tuple[Floats, Floats]:
    """Sums of weight · x xᵀ and of weight · x valuesᵀ per cell, each row read once.

    `write_values` writes the values of a block of rows into an array of shape (n_values, n_rows). The sums have the
    shapes (n_cells, n_columns, n_columns) and (n_cells, n_columns, n_values).
    """
    if weight is not None and (weight == 1).all():
        weight = None

    def task(part: tuple[int, list[Any]]) -> tuple[int, Floats]:
        sums = _Sums(rows, n_values)
        with _quiet():
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
        for span in _threads.spans(rows.n_examples):
            yield 0, list(rows.blocks(span))
        return
    narrow = cell.astype(np.int16) if n_cells < 2**15 else cell  # sorted faster
    n_sorted = min(_SORT_ROWS, max(_threads.TASK_ROWS, _CELL_ROWS * n_cells))
    for begin in range(0, rows.n_examples, n_sorted):
        part = narrow[begin : begin + n_sorted]
        order = begin + np.argsort(part, kind="stable")
        ends = np.concatenate([[0], np.cumsum(np.bincount(part, minlength=n_cells))]).tolist()
        for k in np.flatnonzero(np.diff(ends)).tolist():
            for start in range(ends[k], ends[k + 1], _threads.TASK_ROWS):
                span = range(start, min(start + _threads.TASK_ROWS, ends[k + 1]))
                yield k, [order[block] for block in rows.blocks(span)]
