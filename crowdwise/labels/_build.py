"""Matrices and tables as people have them -> the checked parts that `CrowdLabels` is made of.

Matrices, tables, and tables that were coded while they were read, all become coded labels, one after the other, with
the positions of their examples and annotators: `_coded` checks the labels, `_in_order` sorts rows, `_packed` stores.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
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
from crowdwise.labels._frames import (
    find_column,
    frame_matrix,
    index_of,
    is_default,
    is_frame,
    library_of,
    table_columns,
)
from crowdwise.labels._label_rows import IdSource
from crowdwise.labels._mistakes import (
    note_never_given,
    note_no_answers,
    note_spellings,
    refuse_fractions,
    refuse_id_column,
    refuse_long_table,
)
from crowdwise.labels.scale import INTERVAL, NOMINAL, ScaleName

# Codes, and the distinct values that they point to.
Coded = tuple[Array, Array]
# Codes of labels and their classes. An abstention has the code -1; ratings are their own codes and have no classes,
# and an abstention among them is minus infinity.
CodedLabels = tuple[Array, Array | None]
Parts = dict[str, Any]  # the fields of `CrowdLabels`


@dataclass(frozen=True)
class Declared:
    """What is known of labels before they are looked at; see `CrowdLabels.from_table`."""

    scale: ScaleName
    classes: Any = None
    abstain: Any = None
    missing: object = np.nan
    examples: Any = None
    annotators: Any = None
    on_duplicate: str = "error"

    def __post_init__(self) -> None:
        check_choice("on_duplicate", self.on_duplicate, ("error", "first", "last"))


def parts_of_matrix(values: Any, declared: Declared) -> Parts:
    """Parts from a matrix with a column per annotator."""
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
    if declared.classes is None:
        refuse_id_column(matrix, names, ratings=declared.scale == "interval")
    n_examples, n_annotators = matrix.shape
    ids = index_of(values) if declared.examples is None else declared.examples
    id_source: IdSource = "position" if ids is None else "given"
    if declared.examples is None and ids is not None and is_default(ids):
        id_source = "default"
    examples = _names(ids, n_examples, "examples")
    annotators = _names(names if declared.annotators is None else declared.annotators, n_annotators, "annotators")
    absent = missing_mask(matrix, declared.missing)
    if absent.any():
        rows, index = np.nonzero(~absent)
        flat = matrix[~absent]
        indptr = _starts(np.bincount(rows, minlength=n_examples))
    else:
        index = np.tile(np.arange(n_annotators, dtype=smallest_integer_type(n_annotators)), n_examples)
        flat = np.ascontiguousarray(matrix).ravel()
        indptr = _starts(np.full(n_examples, n_annotators))

    def place(label: int) -> str:
        row = np.searchsorted(indptr, [label], side="right") - 1
        return _place((row, examples), (index[label : label + 1], annotators), 0)

    labels = _coded(flat, declared, place)
    parts = _packed(indptr, index, labels, examples, annotators, declared, id_source)
    return parts | {"frame_library": library_of(values)}


def parts_of_table(table: object, columns: dict[str, Hashable | None], declared: Declared) -> Parts:
    """Parts from a long table with a row per label; `columns` are the names of those that were given by role."""
    arrays = table_columns(table)
    example, annotator, label = (arrays[find_column(list(arrays), role, name)] for role, name in columns.items())
    if not len(example) == len(annotator) == len(label):
        raise LabelError(f"columns must be of one length; got {len(example)}, {len(annotator)} and {len(label)}.")
    for column, role in ((example, "example"), (annotator, "annotator")):
        if (absent := missing_mask(column)).any():
            raise LabelError(f"every label needs its {role}; row {int(absent.argmax())} of the table has none.")
    labelled = ~missing_mask(label, declared.missing)
    examples = _identify(example[labelled], declared.examples, "example")
    annotators = _identify(annotator[labelled], declared.annotators, "annotator")
    labels = _coded(label[labelled], declared, lambda row: _place(examples, annotators, row))
    id_source: IdSource = "sorted" if declared.examples is None and not is_default(examples[1]) else "given"
    return _in_order(examples, annotators, labels, declared, id_source) | {"frame_library": library_of(table)}


def parts_of_codes(columns: list[Coded], declared: Declared) -> Parts:
    """Parts from a long table whose columns were coded while it was read, which takes the least memory.

    The columns are the examples, the annotators and the labels: for every row of the table the position of its value,
    which is never missing, and the values in any order. The list is emptied, so that its memory is free.
    """
    codes, values = columns.pop()
    code_of, classes = _coded(
        values, declared, lambda code: _place(columns[0], columns[1], int(np.argmax(codes == code)))
    )
    codes = code_of[codes]
    annotators, examples = _ranked(*columns.pop()), _ranked(*columns.pop())
    id_source: IdSource = "given" if is_default(examples[1]) else "sorted"
    return _in_order(examples, annotators, (codes, classes), declared, id_source)


def _ranked(codes: Array, ids: Array) -> Coded:
    rank, ordered = encode(ids, ids=True)
    return rank[codes], ordered


def _starts(counts: Array) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts, dtype=np.int64)])


def _names(names: object, n: int, role: str) -> Array:
    if names is None:
        return np.arange(n)
    ids = as_ids(names, role)
    if len(ids) != n:
        raise LabelError(f"there are {n} {role} in the matrix, but {len(ids)} names for them.")
    return ids


def _identify(values: Array, declared: Any, role: str) -> Coded:
    """Codes of the identifiers in a column, and the identifiers: those declared, or those found."""
    if declared is None:
        return encode(values, ids=True)
    ids = as_ids(declared, f"{role}s")
    codes = encode_declared(values, ids)
    if (codes < 0).any():
        unknown = values[codes < 0]
        raise LabelError(
            f"{count(len(unknown), 'label is', 'labels are')} of an {role} that is not among the {len(ids)} declared, "
            f"for instance {unknown[:3].tolist()}."
        )
    return codes, ids


def _place(examples: Coded, annotators: Coded, label: int) -> str:
    """Where a label is, in words."""
    example, annotator = (shown(ids[codes[label]]) for codes, ids in (examples, annotators))
    return f"example {example}, annotator {annotator}"


# ---------------------------------------------------------------------- labels


def _coded(values: Array, declared: Declared, place: Callable[[int], str]) -> CodedLabels:
    """Labels as codes, checked; `place` is where one of them is, in words."""
    if values.dtype.kind == "c":
        raise LabelError("Complex data not supported: labels must be classes or real numbers.")
    if declared.abstain is None:
        return _coded_answers(values, declared, place)
    answered = np.flatnonzero(~_is_abstention(values, declared))
    codes, classes = _coded_answers(values[answered], declared, lambda label: place(int(answered[label])))
    all_codes = np.full(len(values), -np.inf if classes is None else -1, dtype=codes.dtype)
    all_codes[answered] = codes
    return all_codes, classes


def _coded_answers(values: Array, declared: Declared, place: Callable[[int], str]) -> CodedLabels:
    """The same without abstentions."""
    codes: Array
    classes: Array | None
    if declared.scale == "interval":
        codes, classes = _ratings(values, declared.classes, place), None
        finite = np.isfinite(codes)
    else:
        codes, classes = encode(values) if declared.classes is None else _of_declared(values, declared.classes, place)
        finite = np.isfinite(classes)[codes] if classes.dtype.kind == "f" else np.ones(1, dtype=bool)
    if not finite.all():
        where = place(int(finite.argmin()))
        raise LabelError(f"Input y contains infinity or a value too large for dtype('float64'): {where}.")
    if classes is not None and declared.classes is None:
        refuse_fractions(classes)
        note_spellings(classes)
        if declared.abstain is None:
            note_no_answers(classes)
    return codes, classes


def _is_abstention(values: Array, declared: Declared) -> NDArray[np.bool_]:
    """Which answers are among those that were declared to be none."""
    abstain, classes = declared.abstain, declared.classes
    if isinstance(abstain, str | bytes):  # which are sequences too
        raise LabelError(f"abstain must be a list of answers, such as [{abstain!r}]; got {abstain!r}.")
    answers = as_ids(abstain, "abstain")
    if classes is not None and (both := set(answers.tolist()) & set(as_ids(classes, "classes").tolist())):
        raise LabelError(
            f"an answer is a class or an abstention, not both; classes and abstain both name {list(both)}."
        )
    codes = encode_declared(values, answers)
    if classes is None:  # a batch may well be without; and where classes are declared, another spelling is an error
        note_never_given(values, np.delete(answers, codes[codes >= 0]))
    return codes >= 0


def _of_declared(values: Array, classes: Any, place: Callable[[int], str]) -> Coded:
    declared = tidy(as_ids(classes, "classes").tolist())
    codes = encode_declared(values, declared)
    if (codes < 0).any():
        unknown = int(np.argmax(codes < 0))
        raise LabelError(
            f"labels must be among the declared classes {declared.tolist()}; found {shown(values[unknown])} for "
            f"{place(unknown)}. Declare it too, or declare that it means no label: --missing, --abstain (missing=..., "
            "abstain=...)."
        )
    return codes, declared


def _ratings(values: Array, classes: Any, place: Callable[[int], str]) -> NDArray[np.float64]:
    if classes is not None:
        raise LabelError('ratings have no classes: leave out classes, or use scale="nominal".')
    if values.dtype.kind not in "biuf":  # strings and times would become numbers without a word
        is_number = np.fromiter((isinstance(value, Real | Decimal | np.bool_) for value in values), bool, len(values))
        if not is_number.all():
            first = int(is_number.argmin())
            raise LabelError(
                f"ratings must be numbers; found {shown(values[first])} for {place(first)}. "
                'Convert them first, or use scale="nominal" for classes.'
            )
    try:
        return values.astype(np.float64)
    except OverflowError:
        raise LabelError("ratings must be numbers that a float can hold; some are too large.") from None


# ---------------------------------------------------------------------- rows


def _in_order(example: Coded, annotator: Coded, labels: CodedLabels, declared: Declared, id_source: IdSource) -> Parts:
    """Parts from rows in any order, in which an annotator may have labelled an example more than once."""
    (codes, classes), examples, annotators = labels, example[1], annotator[1]
    n_annotators = max(len(annotators), 1)
    key = example[0].astype(np.int64) * n_annotators + annotator[0]
    del example, annotator, labels  # all that is deleted here is as long as the table
    order = np.argsort(key, kind="stable")
    key, codes = key[order], codes[order]
    del order
    repeats = key[1:] == key[:-1]
    if repeats.any():
        differs = repeats & (codes[1:] != codes[:-1])
        if differs.any() and declared.on_duplicate == "error":
            first = int(differs.argmax())
            row, column = divmod(int(key[first]), n_annotators)
            answers = " and ".join(_in_words(code, classes) for code in codes[first : first + 2])
            times = "once" if differs.sum() == 1 else f"{differs.sum()} times"
            raise LabelError(
                f"{times} an annotator gave one example two different labels, for instance annotator "
                f"{shown(annotators[column])} on example {shown(examples[row])}: {answers}. Choose one with "
                'on_duplicate="first" or "last" (--on-duplicate last); several runs of one model: '
                'read_labels(..., on_duplicate="runs") (--on-duplicate runs).'
            )
        _warn_of_repeats(repeats, differs, declared.on_duplicate)
        only = [[True], ~repeats] if declared.on_duplicate != "last" else [~repeats, [True]]
        keep = np.concatenate(only)
        key, codes = key[keep], codes[keep]
        if classes is not None and declared.classes is None:  # a class of dropped labels only is none
            used = np.unique(codes[codes >= 0])
            codes, classes = np.append(np.searchsorted(used, range(len(classes))), -1)[codes], classes[used]
    indptr = _starts(np.bincount(key // n_annotators, minlength=len(examples)))
    return _packed(indptr, key % n_annotators, (codes, classes), examples, annotators, declared, id_source)


def _in_words(code: Any, classes: Array | None) -> str:
    return shown(code) if classes is None else "an abstention" if code < 0 else shown(classes[code])


def _warn_of_repeats(repeats: Array, differs: Array, on_duplicate: str) -> None:
    dropped = f", {int(differs.sum())} of them different: the {on_duplicate} was kept" if differs.any() else ""
    pair = "an (example, annotator) and"
    repeated = count(int(repeats.sum()), f"label repeats {pair} counts", f"labels repeat {pair} count")
    warn(f"{repeated} once{dropped}.")


def _packed(
    indptr: NDArray[np.int64],
    annotator_index: Array,
    labels: CodedLabels,
    examples: Array,
    annotators: Array,
    declared: Declared,
    id_source: IdSource,
) -> Parts:
    """Labels in their final order; abstentions are taken out."""
    (values, classes), abstentions = labels, None
    if declared.abstain is not None:
        abstained = np.isneginf(values) if classes is None else values < 0
        abstentions = sparse.csr_array(
            (np.ones(int(abstained.sum()), dtype=np.int8), annotator_index[abstained], _starts(abstained)[indptr]),
            shape=(len(examples), len(annotators)),
        )
        indptr, annotator_index, values = _starts(~abstained)[indptr], annotator_index[~abstained], values[~abstained]
    return {
        "indptr": indptr,
        "annotator_index": annotator_index.astype(smallest_integer_type(len(annotators))),
        "values": values if classes is None else values.astype(smallest_integer_type(len(classes)), copy=False),
        "annotators": annotators,
        "examples": examples,
        "classes": classes,
        "id_source": id_source,
        "abstentions": abstentions,
        "declared_classes": declared.classes is not None,
        "scale": INTERVAL if classes is None else NOMINAL,
    }
