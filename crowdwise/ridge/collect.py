"""X, labels, weights, cells -> Statistics, by one pass over the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from crowdwise import _threads
from crowdwise._arrays import Codes, Floats, Positions
from crowdwise._threads import run_parallel
from crowdwise.labels._encode import smallest_integer_type
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.ridge.statistics import Statistics
from crowdwise.ridge.targets import Targets
from crowdwise.rows.features import Rows

# Values of some rows (a slice or positions), or of some labels, of shape (n_rows, n_values).
ValuesOf = Callable[[Any], Floats]


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
