"""Matrices and tables as people have them -> the checked parts that `CrowdLabels` is made of."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from crowdwise._arrays import Array
from crowdwise._checks import check_choice
from crowdwise._text import count
from crowdwise.exceptions import LabelError, warn
from crowdwise.labels._encode import (
    as_array,
    as_ids,
    encode,
    encode_declared,
    missing_mask,
    shown,
    smallest_integer_type,
    tidy,
)
from crowdwise.labels._frames import find_column, frame_matrix, index_of, is_default, is_frame, table_columns
from crowdwise.labels._label_rows import IdSource
from crowdwise.labels._mistakes import (
    note_never_given,
    note_no_answers,
    note_spellings,
    refuse_fractions,
    refuse_id_column,
    refuse_long_table,
)
from crowdwise.labels.scale import INTERVAL, NOMINAL, SCALES, LabelScale, ScaleName

# Codes, and the distinct values that they point to.
Coded = tuple[Array, Array]


class Parts(TypedDict):
    """The fields of `CrowdLabels`."""

    indptr: NDArray[np.int64]
    annotator_index: Array
    values: Array
    annotators: Array
    examples: Array
    classes: Array | None
    id_source: IdSource
    abstentions: Any
    declared_classes: bool
    scale: LabelScale


def parts_of_matrix(
    values: ArrayLike,
    *,
    annotators: ArrayLike | None,
    examples: ArrayLike | None,
    classes: ArrayLike | None,
    missing: object,
    abstain: ArrayLike | None,
    scale: ScaleName,
) -> Parts:
    """Parts from a matrix with a column per annotator; see `CrowdLabels.from_matrix`."""
    check_choice("scale", scale, SCALES)
    names: list[object] | None = None
    if is_frame(values):
        matrix, names = frame_matrix(values)
        refuse_long_table(names)
    elif sparse.issparse(values):
        raise LabelError(
            "a sparse matrix does not say whether zero is a label or means that there is none: "
            "use CrowdLabels.from_table with a row for every label."
        )
    else:
        matrix = as_array(values)
    if matrix.ndim != 2:
        raise LabelError(
            f"values must be a matrix with a row per example and a column per annotator; got shape {matrix.shape}."
        )
    if classes is None:
        refuse_id_column(matrix, names, ratings=scale == "interval")
    n_examples, n_annotators = matrix.shape
    ids, id_source = _matrix_ids(values, examples)
    absent = missing_mask(matrix, missing)
    if absent.any():
        rows, index = np.nonzero(~absent)
        flat = matrix[~absent]
        counts = np.bincount(rows, minlength=n_examples)
    else:
        index = np.tile(np.arange(n_annotators, dtype=smallest_integer_type(n_annotators)), n_examples)
        flat = np.ascontiguousarray(matrix).ravel()
        counts = np.full(n_examples, n_annotators)
    return _checked(
        _starts(counts),
        index,
        flat,
        annotators=_names(names if annotators is None else annotators, n_annotators, "annotators"),
        examples=_names(ids, n_examples, "examples"),
        classes=classes,
        abstained=None if abstain is None else _is_abstention(flat, abstain, classes),
        scale=scale,
        id_source=id_source,
    )


def _matrix_ids(values: object, examples: ArrayLike | None) -> tuple[object, IdSource]:
    """The ids of the rows of a matrix, and where they come from."""
    if examples is not None:
        return examples, "given"
    index = index_of(values)
    if index is None:
        return None, "position"
    return index, "default" if is_default(index) else "given"


def parts_of_table(
    table: object,
    *,
    columns: dict[str, Hashable | None],
    on_duplicate: str,
    examples: ArrayLike | None,
    annotators: ArrayLike | None,
    classes: ArrayLike | None,
    missing: object,
    abstain: ArrayLike | None,
    scale: ScaleName,
) -> Parts:
    """Parts from a long table with a row per label; see `CrowdLabels.from_table`."""
    check_choice("scale", scale, SCALES)
    check_choice("on_duplicate", on_duplicate, ("error", "first", "last"))
    found = table_columns(table)
    rows, who, what = (found[find_column(list(found), role, given)] for role, given in columns.items())
    if not len(rows) == len(who) == len(what):
        raise LabelError(f"columns must be of one length; got {len(rows)}, {len(who)} and {len(what)}.")
    for column, role in ((rows, "example"), (who, "annotator")):
        if (absent := missing_mask(column)).any():
            at = int(np.flatnonzero(absent)[0])
            raise LabelError(f"every label needs its {role}; row {at} of the table has none.")
    given = ~missing_mask(what, missing)
    row_codes, example_ids = _identify(rows[given], examples, "example")
    who_codes, annotator_ids = _identify(who[given], annotators, "annotator")
    return _parts_of_rows(
        (row_codes, example_ids),
        (who_codes, annotator_ids),
        what[given],
        on_duplicate=on_duplicate,
        classes=classes,
        abstained=None if abstain is None else _is_abstention(what[given], abstain, classes),
        scale=scale,
        id_source="sorted" if examples is None and not is_default(example_ids) else "given",
    )


def parts_of_codes(columns: list[Coded], *, on_duplicate: str, scale: ScaleName, classes: Array | None = None) -> Parts:
    """Parts from a long table whose columns were coded while it was read, which takes the least memory.

    The columns are the examples, the annotators and the labels: for every row of the table the position of its value,
    which is never missing, and the values in any order. The list is emptied, so that its memory is free. Classes are by
    default those found, sorted; for `on_duplicate` see `CrowdLabels.from_table`.
    """
    check_choice("scale", scale, SCALES)
    check_choice("on_duplicate", on_duplicate, ("error", "first", "last"))
    codes, labels = columns.pop()
    declared = None if classes is None else as_ids(classes, "classes")
    if declared is not None and scale != "interval":
        codes, labels = encode_declared(labels, declared)[codes], declared
    elif scale != "interval":
        rank, labels = encode(labels)
        refuse_fractions(labels)
        note_spellings(labels)
        note_no_answers(labels)
        codes = rank[codes]
    else:
        codes = labels[codes]
    who, rows = _ranked(*columns.pop()), _ranked(*columns.pop())
    parts = _parts_of_rows(
        rows,
        who,
        codes,
        names=labels if scale != "interval" else None,
        on_duplicate=on_duplicate,
        classes=None if declared is None else np.arange(len(declared)),
        scale=scale,
        id_source="given" if is_default(rows[1]) else "sorted",
    )
    if parts["classes"] is not None:  # so far the positions of those that are left
        parts["classes"] = labels[parts["classes"].astype(np.intp)]
    return parts


def _ranked(codes: Array, ids: Array) -> Coded:
    rank, ordered = encode(ids, ids=True)
    return rank[codes], ordered


def _parts_of_rows(
    rows: Coded,
    who: Coded,
    what: Array,
    *,
    names: Array | None = None,
    on_duplicate: str,
    classes: ArrayLike | None,
    abstained: NDArray[np.bool_] | None = None,
    scale: ScaleName,
    id_source: IdSource,
) -> Parts:
    """Parts from rows in any order, examples and annotators coded; labels too if `names` has what the codes mean."""
    examples, annotators, n_annotators = rows[1], who[1], max(len(who[1]), 1)
    key = rows[0].astype(np.int64) * n_annotators + who[0]
    del rows, who  # all that is deleted here is as long as the table
    order = np.argsort(key, kind="stable")
    key, what = key[order], what[order]
    abstained = None if abstained is None else abstained[order]
    del order
    keep = _Answers(key, what, examples, annotators, names).settle(on_duplicate)
    key, what = key[keep], what[keep]
    return _checked(
        _starts(np.bincount(key // n_annotators, minlength=len(examples))),
        key % n_annotators,
        what,
        annotators=annotators,
        examples=examples,
        classes=classes,
        abstained=None if abstained is None else abstained[keep],
        scale=scale,
        id_source=id_source,
    )


def _starts(counts: Array) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts, dtype=np.int64)])


def _names(names: object, n: int, what: str) -> Array:
    if names is None:
        return np.arange(n)
    ids = as_ids(names, what)
    if len(ids) != n:
        raise LabelError(f"there are {n} {what} in the matrix, but {len(ids)} names for them.")
    return ids


def _identify(values: Array, declared: ArrayLike | None, what: str) -> tuple[Array, Array]:
    """Codes of the identifiers in a column, and the identifiers: those declared, or those found."""
    if declared is None:
        return encode(values, ids=True)
    ids = as_ids(declared, f"{what}s")
    codes = encode_declared(values, ids)
    if (codes < 0).any():
        unknown = values[codes < 0]
        raise LabelError(
            f"{count(len(unknown), 'label is', 'labels are')} of an {what} that is not among the {len(ids)} declared, "
            f"for instance {unknown[:3].tolist()}."
        )
    return codes, ids


@dataclass(frozen=True)
class _Answers:
    """Labels sorted by (example, annotator), in which a pair may still occur more than once."""

    key: Array
    what: Array
    examples: Array
    annotators: Array
    names: Array | None  # of the labels, if `what` holds codes

    def settle(self, on_duplicate: str) -> NDArray[np.intp] | slice:
        """Positions to keep, one per (example, annotator)."""
        repeats = self.key[1:] == self.key[:-1]
        if not repeats.any():
            return slice(None)
        differs = repeats & np.asarray(self.what[1:] != self.what[:-1], dtype=bool)
        if differs.any() and on_duplicate == "error":
            raise LabelError(self._describe(int(np.flatnonzero(differs)[0]), int(differs.sum())))
        dropped = f", {int(differs.sum())} of them different: the {on_duplicate} was kept" if differs.any() else ""
        pair = "an (example, annotator) and"
        said = count(int(repeats.sum()), f"label repeats {pair} counts", f"labels repeat {pair} count")
        warn(f"{said} once{dropped}.")
        is_last = np.concatenate([~repeats, [True]])
        is_first = np.concatenate([[True], ~repeats])
        return np.flatnonzero(is_last if on_duplicate == "last" else is_first)

    def _describe(self, at: int, n_differ: int) -> str:
        row, column = divmod(int(self.key[at]), len(self.annotators))
        first, second = self.what[at : at + 2] if self.names is None else self.names[self.what[at : at + 2]]
        return (
            f"{'once' if n_differ == 1 else f'{n_differ} times'} an annotator gave one example two different labels, "
            f"for instance annotator {shown(self.annotators[column])} on example {shown(self.examples[row])}: "
            f'{shown(first)} and {shown(second)}. Choose one with on_duplicate="first" or "last" (--on-duplicate '
            'last); several runs of one model: read_labels(..., on_duplicate="runs") (--on-duplicate runs).'
        )


def _checked(
    indptr: NDArray[np.int64],
    annotator_index: Array,
    values: Array,
    *,
    annotators: Array,
    examples: Array,
    classes: ArrayLike | None,
    abstained: NDArray[np.bool_] | None = None,
    scale: ScaleName,
    id_source: IdSource,
) -> Parts:
    """Labels in their final order, checked and coded; abstentions are taken out."""
    abstentions = None
    if abstained is not None:
        abstentions = sparse.csr_array(
            (np.ones(int(abstained.sum()), dtype=np.int8), annotator_index[abstained], _starts(abstained)[indptr]),
            shape=(len(examples), len(annotators)),
        )
        indptr, annotator_index, values = _starts(~abstained)[indptr], annotator_index[~abstained], values[~abstained]

    def place(at: int) -> str:
        row = int(np.searchsorted(indptr, at, side="right")) - 1
        return f"example {shown(examples[row])}, annotator {shown(annotators[annotator_index[at]])}"

    if values.dtype.kind == "c":
        raise LabelError("Complex data not supported: labels must be classes or real numbers.")
    if scale == "interval":
        codes, declared = _ratings(values, classes, place), None
        finite = np.isfinite(codes)
    else:
        codes, declared = encode(values) if classes is None else _declared(values, classes, place)
        finite = np.isfinite(declared)[codes] if declared.dtype.kind == "f" else np.ones(1, dtype=bool)
    if not finite.all():
        at = int(np.flatnonzero(~finite)[0])
        raise LabelError(f"Input y contains infinity or a value too large for dtype('float64'): {place(at)}.")
    if declared is not None and classes is None:
        refuse_fractions(declared)
        note_spellings(declared)
        if abstentions is None:
            note_no_answers(declared)
    return Parts(
        indptr=indptr,
        annotator_index=annotator_index.astype(smallest_integer_type(len(annotators))),
        values=codes,
        annotators=annotators,
        examples=examples,
        classes=declared,
        id_source=id_source,
        abstentions=abstentions,
        declared_classes=classes is not None,
        scale=INTERVAL if declared is None else NOMINAL,
    )


def _is_abstention(values: Array, abstain: ArrayLike, classes: ArrayLike | None) -> NDArray[np.bool_]:
    """Which answers are among those that were declared to be none."""
    if isinstance(abstain, str | bytes):  # which are sequences too
        raise LabelError(f"abstain must be a list of answers, such as [{abstain!r}]; got {abstain!r}.")
    declared = as_ids(abstain, "abstain")
    if classes is not None and (both := set(declared.tolist()) & set(as_ids(classes, "classes").tolist())):
        raise LabelError(
            f"an answer is a class or an abstention, not both; classes and abstain both name {list(both)}."
        )
    codes = encode_declared(values, declared)
    if classes is None:  # a batch may well be without; and where classes are declared, another spelling is an error
        note_never_given(values, np.delete(declared, codes[codes >= 0]))
    return codes >= 0


def _declared(values: Array, classes: ArrayLike, place: Callable[[int], str]) -> tuple[Array, Array]:
    declared = tidy(as_ids(classes, "classes").tolist())
    codes = encode_declared(values, declared)
    if (codes < 0).any():
        at = int(np.flatnonzero(codes < 0)[0])
        raise LabelError(
            f"labels must be among the declared classes {declared.tolist()}; found {shown(values[at])} for {place(at)}."
        )
    return codes, declared


def _ratings(values: Array, classes: ArrayLike | None, place: Callable[[int], str]) -> NDArray[np.float64]:
    if classes is not None:
        raise LabelError('ratings have no classes: leave out classes, or use scale="nominal".')
    if values.dtype.kind not in "biuf":  # strings and times would become numbers without a word
        is_number = np.fromiter((isinstance(value, Real | Decimal | np.bool_) for value in values), bool, len(values))
        if not is_number.all():
            at = int(np.flatnonzero(~is_number)[0])
            raise LabelError(
                f"ratings must be numbers; found {shown(values[at])} for {place(at)}. "
                'Convert them first, or use scale="nominal".'
            )
    try:
        return values.astype(np.float64)
    except OverflowError:
        raise LabelError("ratings must be numbers that a float can hold; some are too large.") from None
