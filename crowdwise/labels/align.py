"""The door of every ``fit(X, y)``: what may be given as labels, and features and labels brought to the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from crowdwise.arrays import Array
from crowdwise.exceptions import AlignmentError, LabelError, warn
from crowdwise.labels.build import Kind
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import as_array, encode_declared, shown
from crowdwise.labels.frames import is_frame, row_ids


def as_labels(y: Any, *, kind: Kind = "class") -> CrowdLabels:
    """What ``fit(X, y)`` takes as `y`, as `CrowdLabels`.

    Parameters
    ----------
    y : CrowdLabels, or array, list or data frame of shape (n_examples, n_annotators) or (n_examples,)
        A column per annotator; one dimension means one annotator.
    kind : {"class", "rating"}, default="class"
        What is wanted. Labels of the other kind are an error.

    Returns
    -------
    labels : CrowdLabels

    Examples
    --------
    >>> from crowdwise.labels.align import as_labels
    >>> as_labels([0, 1, 1]).n_annotators
    1
    """
    if isinstance(y, CrowdLabels):
        if y.kind != kind:
            raise LabelError(f'labels of kind="{kind}" are needed here; these are of kind="{y.kind}".')
        return y
    if is_frame(y):
        labels = CrowdLabels.from_matrix(y, kind=kind)
    else:
        values = as_array(y)
        if values.ndim not in (1, 2):
            raise LabelError(f"y must have one or two dimensions (a column per annotator); got shape {values.shape}.")
        columns = values[:, np.newaxis] if values.ndim == 1 else values
        labels = CrowdLabels.from_matrix(columns, examples=row_ids(y), kind=kind)
    if labels.classes is not None and labels.classes.dtype.kind == "f":
        fractions = labels.classes[labels.classes != np.round(labels.classes)]
        if len(fractions):
            raise LabelError(
                f"Unknown label type: continuous. Classes were expected and {fractions[0]} came; for real-valued "
                "labels use CrowdRidgeRegressor, or declare the classes with CrowdLabels.from_matrix(..., classes=...)."
            )
    return labels


def align(X: Any, labels: CrowdLabels, *, join: Literal["exact", "inner", "left"] = "exact") -> tuple[Any, CrowdLabels]:
    """Features and labels of the same examples in the same order.

    If X is a pandas object and the labels carry identifiers, rows are matched by identifier and the
    order of X is kept. Otherwise they are matched by position.

    Parameters
    ----------
    X : data frame or array of shape (n_examples, n_features)
        The features.
    labels : CrowdLabels
        The labels.
    join : {"exact", "inner", "left"}, default="exact"
        What to do when the identifiers differ: stop with an error, keep the examples that are on both
        sides, or keep all rows of X (those without labels then have none).

    Returns
    -------
    X : data frame or array
        The rows kept.
    labels : CrowdLabels
        Their labels.

    Examples
    --------
    >>> import pandas as pd
    >>> from crowdwise import CrowdLabels, align
    >>> X = pd.DataFrame({"size": [1.0, 2.0]}, index=["b", "c"])
    >>> labels = CrowdLabels.from_table({"item": ["a", "b"], "worker": [0, 0], "label": [1, 0]})
    >>> X, labels = align(X, labels, join="inner")
    >>> labels.examples.tolist()
    ['b']
    """
    if join not in ("exact", "inner", "left"):
        raise ValueError(f'join must be "exact", "inner" or "left"; got {join!r}.')
    ids = _index_of(X) if labels.named_examples else None
    if ids is None:
        if len(labels) != (n_rows := _n_rows(X)):
            raise AlignmentError(
                f"X has {n_rows} examples and the labels have {len(labels)}: inconsistent numbers of samples. Give "
                "both in the same order, or let both carry identifiers (an index on X, ids on the labels)."
            )
        if labels.sorted_examples:
            warn(
                "rows are matched by position: X carries no identifiers, and the examples of these labels were sorted "
                f"(row 0 of X is taken for example {shown(labels.examples[0])}). Say which example each row of X is "
                "with CrowdLabels.from_table(..., examples=ids), or give X as a pandas frame with the ids as index."
            )
        return X, labels
    if np.array_equal(ids, labels.examples):
        return X, labels
    position = encode_declared(ids, labels.examples).astype(np.int64)
    known = position >= 0
    if join == "exact" and not np.array_equal(np.sort(position), np.arange(len(labels))):
        raise AlignmentError(_describe_mismatch(ids, labels.examples, position))
    if join == "left":
        return X, _with_empty_rows(labels, position, ids)
    if known.all():
        return X, labels[position]
    return X[known] if not hasattr(X, "iloc") else X.iloc[np.flatnonzero(known)], labels[position[known]]


def match_examples(
    values: Any, X: Any, labels: CrowdLabels | None = None, what: str = "values", *, partial: bool = False
) -> Any:
    """Values that belong to examples, in the order of the rows of X.

    A mapping, or a series with an index of its own, is matched by identifier: with the index of X, else with the
    identifiers of the labels, else with positions. Anything else is taken by position.

    Parameters
    ----------
    values : array-like, series or mapping
        One value per example.
    X : array-like
        Features.
    labels : CrowdLabels, default=None
        Labels of the rows of X, which may carry identifiers.
    what : str, default="values"
        What the values are, for messages.
    partial : bool, default=False
        Whether examples may be without a value; they get None then.

    Returns
    -------
    values : array-like
    """
    own = np.array(list(values), dtype=object) if isinstance(values, Mapping) else _index_of(values)
    rows = _index_of(X)
    if rows is None and labels is not None and labels.named_examples:
        rows = labels.examples
    if isinstance(values, Mapping):
        rows = np.arange(_n_rows(X)) if rows is None else rows
        values = np.fromiter(values.values(), dtype=object, count=len(values))
    if rows is None or own is None or np.array_equal(rows, own):
        return values
    position = encode_declared(rows, own).astype(np.int64)
    absent, n_found = position < 0, len(np.unique(position[position >= 0]))
    if n_found < len(own) and (absent.any() or partial):
        raise AlignmentError(
            f"{len(own) - n_found} of the examples that {what} names (such as {own[:3].tolist()}) are not among those "
            f"of the fit (such as {rows[:3].tolist()})."
        )
    if absent.any() and not partial:
        raise AlignmentError(
            f"{int(absent.sum())} examples (such as {rows[absent][:3].tolist()}) have no {what}; it names others, such "
            f"as {own[:3].tolist()}. Give {what} the ids of the examples as its index, or an array in their order."
        )
    taken = np.asarray(values)[position]
    if absent.any():
        taken = taken.astype(object)
        taken[absent] = None
    return taken


def _n_rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _index_of(X: Any) -> Array | None:
    """The index of a pandas object, a default one too."""
    index = getattr(X, "index", None)
    return None if index is None or not hasattr(index, "to_numpy") else np.asarray(index.to_numpy())


def _with_empty_rows(labels: CrowdLabels, position: Array, ids: Array) -> CrowdLabels:
    table = labels[position[position >= 0]].to_table()
    return CrowdLabels.from_table(
        table, examples=ids, annotators=labels.annotators, classes=labels.classes, kind=labels.kind
    )


def _describe_mismatch(ids: Array, examples: Array, position: Array) -> str:
    unlabelled = ids[position < 0]
    found = np.zeros(len(examples), dtype=bool)
    found[position[position >= 0]] = True
    unknown = examples[~found]
    if len(set(ids.tolist())) < len(ids):
        return (
            f"the identifiers of X must be different from each other; {len(ids) - len(set(ids.tolist()))} are repeated."
        )
    if not found.any():
        return (
            f"no identifier of X (such as {unlabelled[:3].tolist()}) is among those of the labels (such as "
            f"{unknown[:3].tolist()}). Give X the examples' ids as index, of the same type: X.set_index(...)."
        )
    return (
        f"the identifiers of X and of the labels do not match: {int(found.sum())} are on both sides, "
        f"{len(unlabelled)} only in X (such as {unlabelled[:3].tolist()}), "
        f"{len(unknown)} only in the labels (such as {unknown[:3].tolist()}). "
        'Use crowdwise.align(X, labels, join="inner") to keep what is on both sides, or join="left" to keep all of X.'
    )
