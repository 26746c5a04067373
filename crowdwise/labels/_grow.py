"""Labels that grow: where new labels go among those that are there, and what is left without some of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from crowdwise._arrays import Array, Positions
from crowdwise.exceptions import LabelError
from crowdwise.labels._encode import as_column, as_ids, encode, encode_declared, shown, smallest_integer_type
from crowdwise.labels._frames import find_column, is_frame, table_columns
from crowdwise.labels._label_rows import LabelRows


def new_rows(table: Any, example: Any, annotator: Any, label: Any) -> tuple[Array, Array, Array]:
    """The columns of examples, annotators and labels: of a table, or of one label."""
    if isinstance(table, Mapping) or is_frame(table):
        columns = table_columns(table) if is_frame(table) else dict(table)
        names = {"example": example, "annotator": annotator, "label": label}
        found = [columns[find_column(list(columns), role, given)] for role, given in names.items()]
        example, annotator, label = (as_column(column, "labels") for column in found)
        return example, annotator, label
    if table is not None:
        raise TypeError(f"append takes a table of labels, or example=, annotator= and label=; got {table!r}.")
    one, other, given = (as_column([value], "labels") for value in (example, annotator, label))
    return one, other, given


def with_names(known: Array, given: Array, what: str, *, new: bool) -> Array:
    """Names that include those given; an error if some are unknown and may not be new."""
    unknown = given[encode_declared(given, known) < 0]
    if not len(unknown):
        return known
    if not new:
        raise LabelError(
            f"{what} {shown(unknown[0])} is not among those of the labels (such as {known[:3].tolist()}). If it is "
            "new: append(..., new=True)."
        )
    return as_ids([*known.tolist(), *encode(unknown, ids=True)[1].tolist()], what)


def inserted(labels: LabelRows, example: Positions, annotator: Positions, values: Array) -> dict[str, Array]:
    """The arrays of labels with some more of them, which are not there yet."""
    order = np.lexsort([annotator, example])
    example, annotator, values = example[order], annotator[order], values[order]
    at = np.empty(len(example), dtype=np.intp)
    for i, (row, who) in enumerate(zip(example.tolist(), annotator.tolist(), strict=True)):
        begin, end = int(labels.indptr[row]), int(labels.indptr[row + 1])
        at[i] = begin + np.searchsorted(labels.annotator_index[begin:end], who)
        if at[i] < end and labels.annotator_index[at[i]] == who:
            raise _twice(labels, row, who)
    if (repeated := (np.diff(example) == 0) & (np.diff(annotator) == 0)).any():
        first = int(repeated.argmax())
        raise _twice(labels, int(example[first]), int(annotator[first]))
    lengths = labels.labels_per_example + np.bincount(example, minlength=labels.n_examples)
    kind = smallest_integer_type(max(int(annotator.max(initial=0)) + 1, labels.n_annotators))
    return {
        "indptr": np.concatenate([[0], np.cumsum(lengths)]),
        "annotator_index": np.insert(labels.annotator_index.astype(kind, copy=False), at, annotator),
        "values": np.insert(labels.values, at, values),
    }


def _twice(labels: LabelRows, row: int, who: int) -> LabelError:
    return LabelError(
        f"annotator {shown(labels.annotators[who])} has labelled example {shown(labels.examples[row])} already. Take "
        "the label back first: labels.without(example=..., annotator=...)."
    )


def left(labels: LabelRows, gone: Array) -> dict[str, Array]:
    """The arrays of labels without some of them (a mask)."""
    return {
        "indptr": np.concatenate([[0], np.cumsum(~gone)])[labels.indptr],
        "annotator_index": labels.annotator_index[~gone],
        "values": labels.values[~gone],
    }
