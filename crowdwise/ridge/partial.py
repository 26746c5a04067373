"""What may be added to what: names that were declared, batches, models that are merged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from crowdwise._arrays import Array
from crowdwise.exceptions import DataError, LabelError
from crowdwise.labels._encode import as_column, as_ids, encode_declared, tidy
from crowdwise.ridge.sums import RidgeSums
from crowdwise.rows.chunks import Chunk, recoded


def with_declared(chunk: Chunk, classes: Any, annotators: Any, before: RidgeSums | None) -> Chunk:
    """Labels coded by what was declared, now or for the sums so far; raises if there are others."""
    labels = chunk.labels
    if classes is not None and labels.classes is None:
        raise ValueError("ratings are numbers and have no classes to declare.")
    declared: dict[str, Array | None] = {
        "classes": None if classes is None else _class_names(classes),
        "annotators": None if annotators is None else as_ids(annotators, "annotators"),
    }
    for what, now in declared.items() if before is not None else ():
        known = getattr(before.summary, what)  # type: ignore[union-attr]
        if now is not None and not np.array_equal(now, known):
            raise ValueError(f"{what} can be declared at the first call of partial_fit, and later only the same.")
        declared[what] = known
    names, who = declared["classes"], declared["annotators"]
    declare = "Declare all of them at the first call of partial_fit:"
    if who is not None and len(unknown := labels.annotators[encode_declared(labels.annotators, who) < 0]):
        raise LabelError(
            f"the annotators {unknown[:3].tolist()} are not among those declared or in the first block, such as "
            f"{who[:3].tolist()}. {declare} annotators=... They are the columns of y, named by "
            "CrowdLabels.from_matrix(y, annotators=...)."
        )
    try:
        return replace(chunk, labels=recoded(labels, labels.annotators if who is None else who, names))
    except LabelError as error:
        raise LabelError(f"{error} {declare} classes=...") from None


def _class_names(classes: Any) -> Array:
    values = as_column(classes, "classes")
    as_ids(values, "classes")
    return tidy(values.tolist())


def batch_names(batch: Any) -> tuple[Any, ...]:
    """The name of a batch, if it has one."""
    try:
        hash(batch)
    except TypeError:
        raise TypeError(f"batch must be a name, such as a string or a number; got {batch!r}.") from None
    return () if batch is None else (batch,)


def check_mergeable(one: Any, other: Any) -> None:
    """Raise unless another model learned from batches of the same kind, with the same settings."""
    if type(other) is not type(one):
        raise TypeError(f"a {type(one).__name__} can be merged with another one; got {type(other).__name__}.")
    for model, whose in ((one, "this model"), (other, "the other model")):
        if "sums_" not in vars(model):
            raise DataError(f"merge joins models fitted by partial_fit, and {whose} was not.")
    mine, theirs = (model.get_params(deep=False) for model in (one, other))
    for name in sorted(mine.keys() - {"verbose"}):
        if repr(mine[name]) != repr(theirs[name]):
            raise DataError(
                f"models with other settings cannot be merged: {name} is {mine[name]!r} and {theirs[name]!r}."
            )
