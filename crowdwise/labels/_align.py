"""The door of every ``fit(X, y)``: what may be given as labels, and features and labels brought to the same rows.

One rule decides which rows belong together, for labels as for everything else that has a value per example (truth,
weights, slices); see `align`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from scipy import sparse

from crowdwise._arrays import Array, Positions
from crowdwise._checks import check_choice
from crowdwise._text import count
from crowdwise.exceptions import AlignmentError, LabelError, warn
from crowdwise.labels._encode import as_array, encode_declared, id_array, shown
from crowdwise.labels._frames import index_of, is_default, is_frame, named_values, row_ids
from crowdwise.labels._mistakes import ids_shifted, ids_spelt_otherwise
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.scale import LabelScale, ScaleName


def as_labels(y: Any, *, scale: ScaleName | None = "nominal") -> CrowdLabels:
    """What ``fit(X, y)`` takes as `y`, as `CrowdLabels`: one dimension means one annotator.

    Numbers where classes are needed are an error, and so are classes where numbers are (``scale="interval"``). With
    None labels may be either; plain arrays are classes.

    Examples
    --------
    >>> from crowdwise.labels._align import as_labels
    >>> as_labels([0, 1, 1]).n_annotators
    1
    """
    if isinstance(y, CrowdLabels):
        if scale is not None and LabelScale.of(scale).has_classes != y.scale.has_classes:
            needed, present = ("numbers", "classes") if y.scale.has_classes else ("classes", "numbers")
            raise LabelError(
                f'{needed} are needed here, and these labels are {present}: labels.with_scale("{scale}"), or read them '
                f'with read_labels(..., scale="{scale}").'
            )
        return y
    if isinstance(y, str | os.PathLike):
        raise LabelError(
            f"an array, a list or a data frame was expected; got {type(y).__name__}. If this is the name of a file, "
            f"read it: read_labels({os.fspath(y)!r})."
        )
    scale = scale or "nominal"
    if is_frame(y):
        return CrowdLabels.from_matrix(y, scale=scale)
    values = as_array(y)
    if values.ndim not in (1, 2):
        raise LabelError(f"y must have one or two dimensions (a column per annotator); got shape {values.shape}.")
    columns = values[:, np.newaxis] if values.ndim == 1 else values
    return with_ids_of(y, CrowdLabels.from_matrix(columns, examples=row_ids(y), scale=scale))


def with_ids_of(X: Any, labels: CrowdLabels) -> CrowdLabels:
    """The same labels, named by the index of X if they have no ids of their own."""
    ids = index_of(X) if labels.id_source == "position" else None
    if ids is None:
        return labels
    return replace(labels, examples=id_array(ids), id_source="default" if is_default(ids) else "given")


def align(X: Any, labels: Any, *, join: Literal["exact", "inner", "left"] = "exact") -> tuple[Any, CrowdLabels]:
    """Features and labels of the same examples in the same order.

    Rows are matched by id if both sides carry ids: X by its index (pandas), labels by the ids they were made with or
    the index of the frame they were made from. The order of X is kept. Rows are matched by position if a side carries
    no ids (arrays, lists, polars), or if the default index 0, 1, 2, ... meets as many other ids: a default index
    was not chosen, so it counts as ids only where the other side holds the same ones, in whatever order.

    Parameters
    ----------
    X : data frame or array of shape (n_examples, n_features)
        The features.
    labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
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
    check_choice("join", join, ("exact", "inner", "left"))
    labels = as_labels(labels, scale=None)
    ids, label_ids = index_of(X), None if labels.id_source == "position" else labels.examples
    if ids is None or label_ids is None:
        return X, _by_position(X, labels)
    if np.array_equal(ids, label_ids):
        return X, _in_order_of_X(labels)
    place = encode_declared(ids, label_ids).astype(np.intp)
    if join == "exact":
        if _is_permutation(place, len(label_ids)):
            return X, _in_order_of_X(labels[place])
        if _by_default(ids, label_ids, other_is_index=labels.id_source == "default"):
            return X, _by_position(X, labels)
        raise AlignmentError(_describe_mismatch(ids, label_ids, place))
    if _n_repeated(ids) or _n_repeated(label_ids) or (join == "inner" and (place < 0).all()):
        raise AlignmentError(_describe_mismatch(ids, label_ids, place))
    if join == "left":
        return X, with_empty_rows(labels, place, ids)
    known = np.flatnonzero(place >= 0)
    return X.iloc[known], labels[place[known]]


def match_examples(
    values: Any, X: Any, labels: CrowdLabels | None = None, name: str = "values", *, partial: bool = False
) -> Any:
    """Values that belong to examples (truth, weights, slices), in the order of the rows of X.

    They are matched by the rule of `align`: a series by its index, a mapping by its keys, anything else by position.
    The ids of the rows are the index of X, else those of the labels; a mapping may name rows without ids by position.
    Values of examples that are not in X are passed over if every row of X has one; if `partial`, rows without one get
    None. What is matched by position comes back as it came, and its length is not checked. `name` is what messages
    call the values.
    """
    if isinstance(values, str | os.PathLike):
        raise LabelError(
            f"{name} must be values: a list or an array in the order of the examples, or a series or mapping by their "
            f"ids; got {os.fspath(values)!r}. If this is the name of a file, read it first, such as "
            f"pandas.read_csv({os.fspath(values)!r}, index_col=0).squeeze()."
        )
    rows = index_of(X)
    if rows is None and labels is not None and labels.id_source != "position":
        rows = labels.examples
    value_ids, array = named_values(values)
    is_mapping = isinstance(values, Mapping)
    if is_mapping and rows is None:  # rows are named by their positions, in the whole from which labels were taken
        rows = np.arange(_n_rows(X)) if labels is None else labels.examples
    if value_ids is None or rows is None or (not is_mapping and _by_default(rows, value_ids)):
        return values
    place = encode_declared(rows, value_ids).astype(np.intp)
    absent = place < 0
    all_known = len(np.unique(place[~absent])) == len(value_ids)
    if _n_repeated(value_ids) or (absent.any() and (not partial or absent.all() or not all_known)):
        raise AlignmentError(_describe_values(rows, value_ids, place, name, partial=partial))
    matched = np.asarray(array)[place]
    if absent.any():
        matched = matched.astype(object)
        matched[absent] = None
    return matched


def _in_order_of_X(labels: CrowdLabels) -> CrowdLabels:
    """Labels whose ids are those of X, row by row: from now on their positions are known."""
    return replace(labels, id_source="given") if labels.id_source == "sorted" else labels


def _by_position(X: Any, labels: CrowdLabels) -> CrowdLabels:
    """The labels as they are, if there are as many as rows."""
    if len(labels) != (n_rows := _n_rows(X)):
        raise AlignmentError(
            f"X has {n_rows} examples and the labels have {len(labels)}: inconsistent numbers of samples. Give "
            "both in the same order, or let both carry identifiers (an index on X, ids on the labels)."
        )
    if labels.id_source == "sorted" and len(labels) and "position" not in labels._warned:
        labels._warned.add("position")
        warn(
            "rows are matched by position: X carries no identifiers of its own, and the examples of these labels were "
            f"sorted (row 0 of X is example {shown(labels.examples[0])}). Say which example each row of X is "
            "with CrowdLabels.from_table(..., examples=ids), or give X as a pandas frame with the ids as index. A "
            'pipeline keeps the index after pipeline.set_output(transform="pandas"); before a grid search, also put '
            "the labels in the order of X: X, labels = crowdwise.align(X, labels)."
        )
    return labels


def _by_default(rows: Array, other_ids: Array, *, other_is_index: bool = True) -> bool:
    """Whether a default index meets as many other ids, or the same ids in the same order: position decides then."""
    if np.array_equal(rows, other_ids):
        return True
    if len(rows) != len(other_ids) or not (is_default(rows) or (other_is_index and is_default(other_ids))):
        return False
    return not _is_permutation(encode_declared(rows, other_ids).astype(np.intp), len(other_ids))


def _is_permutation(place: Positions, n: int) -> bool:
    return np.array_equal(np.sort(place), np.arange(n))


def _n_repeated(ids: Array) -> int:
    return len(ids) - len(set(id_array(ids).tolist()))


def _n_rows(X: Any) -> int:
    if isinstance(X, str | os.PathLike):
        raise AlignmentError(
            f"X must be features, a row per example; got {os.fspath(X)!r}. If this is the name of a file, load it, "
            "or learn from its blocks: fit(read_blocks(...))."
        )
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def with_empty_rows(labels: CrowdLabels, position: Array, ids: Array) -> CrowdLabels:
    """The labels of the examples at some positions under new ids; of those at -1, there are none."""
    n, abstentions, truth = len(labels), labels.abstentions, labels.truth
    if abstentions is not None:
        abstentions = sparse.vstack([abstentions, sparse.csr_array((1, labels.n_annotators))], format="csr")
    and_an_empty_one = replace(
        labels,
        indptr=np.append(labels.indptr, labels.indptr[-1]),
        examples=np.arange(n + 1),
        abstentions=abstentions,
        truth=None if truth is None else np.append(truth, labels.scale.no_answers(1)),
    )
    rows = and_an_empty_one[np.where(position < 0, n, position)]
    return replace(rows, examples=id_array(ids), id_source="given")


def _describe_mismatch(ids: Array, label_ids: Array, place: Positions) -> str:
    for side, repeated in (("X", _n_repeated(ids)), ("the labels", _n_repeated(label_ids))):
        if repeated:
            return (
                f"the identifiers of {side} must be different from each other; {repeated} are repeated. Give each row "
                "an identifier of its own, or both sides as arrays in the same order."
            )
    unlabelled, unknown = ids[place < 0], np.delete(label_ids, place[place >= 0])
    advice = ids_spelt_otherwise(unlabelled, unknown) or ids_shifted(ids, label_ids)
    if len(unknown) == len(label_ids):
        advice = advice or "Give X the examples' ids as index, of the same type: X.set_index(...)."
        return (
            f"no identifier of X (such as {unlabelled[:3].tolist()}) is among those of the labels (such as "
            f"{unknown[:3].tolist()}). {advice}"
        )
    advice = advice or (
        'Use crowdwise.align(X, labels, join="inner") to keep what is on both sides, or join="left" to keep all of X.'
    )
    return (
        f"the identifiers of X and of the labels do not match: {len(label_ids) - len(unknown)} are on both sides, "
        f"{len(unlabelled)} only in X (such as {unlabelled[:3].tolist()}), "
        f"{len(unknown)} only in the labels (such as {unknown[:3].tolist()}). {advice}"
    )


def _describe_values(rows: Array, value_ids: Array, place: Positions, name: str, *, partial: bool) -> str:
    if repeated := _n_repeated(value_ids):
        return f"{name} must name each example once; {repeated} of its ids are repeated."
    absent = place < 0
    without = f"{int(absent.sum())} examples (such as {rows[absent][:3].tolist()}) have no {name}"
    unknown = np.delete(value_ids, place[~absent])
    if len(unknown) == 0:
        return f"{without}. " + (f"If none is known, leave {name} out." if partial else "Give one value per example.")
    advice = ids_spelt_otherwise(rows[absent], unknown) or ids_shifted(value_ids, rows)
    if partial and not absent.all():
        return (
            f"{name} names {count(len(unknown), 'id', 'ids')} (such as {unknown[:3].tolist()}) of none of the "
            f"{len(rows):,} examples (such as {rows[:3].tolist()}). {advice or 'Leave these out.'}"
        )
    may = f" Examples may be without {name}, but those that it names must be there." if partial else ""
    advice = advice or f"Give {name} the ids of the examples as its index or keys, or an array in their order."
    return (
        f"{without}, and {len(unknown)} of the examples that {name} names (such as {unknown[:3].tolist()}) are not "
        f"among these.{may} {advice}"
    )
