"""Values as people write them -> small integer codes and the list of distinct values.

One rule decides when two values are the same: Python's equality. So 1, 1.0 and True are one class and
"1" is another; numbers and strings cannot be mixed in one set of labels, because they cannot be sorted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdwise._arrays import Array
from crowdwise.exceptions import LabelError

# Lookup tables for integer values may be this much longer than the values themselves.
_TABLE_SLACK = 4
# From here on, floats skip whole numbers.
_LARGEST_EXACT = 2 / np.finfo(np.float64).eps


def smallest_integer_type(n_values: int) -> np.dtype[Any]:
    """The narrowest signed integer type that holds `n_values` and what is below."""
    return np.min_scalar_type(-n_values - 1)


def is_missing(value: object) -> bool:
    """Whether a single object stands for "no label": None, NaN of any kind, ``pandas.NA`` or ``NaT``."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, Number | np.generic) and bool(value != value)


def missing_mask(values: Array, missing: object = np.nan) -> NDArray[np.bool_]:
    """Where `values` holds no label; `missing` is one more value that means it."""
    if values.dtype.kind == "f":
        mask = np.isnan(values)
    elif values.dtype.kind in "Mm":
        mask = np.isnat(values)
    elif values.dtype == object:
        # Not np.frompyfunc: from Python 3.12 on it warns about invalid values where NaN is compared.
        mask = np.fromiter(map(is_missing, values.ravel().tolist()), bool, values.size).reshape(values.shape)
    else:
        mask = np.zeros(values.shape, dtype=bool)
    if np.ndim(missing) or isinstance(missing, set | Mapping):  # type: ignore[arg-type]
        raise LabelError(f"missing must be a single value, such as -1; got {missing!r}.")
    if not is_missing(missing):
        mask |= np.asarray(values == missing, dtype=bool)
    return mask


def loses_digits(values: Array) -> bool:
    """Whether some of the numbers are so large that floats skip their neighbours."""
    return values.size > 0 and bool((np.abs(values.astype(np.float64)) >= _LARGEST_EXACT).any())


def shown(value: object) -> str:
    """A value as messages write it: 1 rather than np.int64(1)."""
    return repr(value.item() if isinstance(value, np.generic) and value.dtype.kind not in "Mm" else value)


def _is_plain(values: object) -> bool:
    """Whether these are Python's own sequences and iterators, which hold one value after the other."""
    return (
        isinstance(values, Iterable)
        and not isinstance(values, str | bytes | Mapping)
        and not hasattr(values, "__array__")
    )


def as_array(values: Any) -> Array:
    """An array that keeps Python objects apart which NumPy would turn into strings or round."""
    if isinstance(values, np.ma.MaskedArray):
        objects = np.array(values.data, dtype=object)
        objects[np.ma.getmaskarray(values)] = None
        return objects
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "__array__"):
        array = np.asarray(values)
        if array.dtype.kind == "f" and loses_digits(array):  # perhaps integers with some missing
            return as_objects(values.to_pylist() if hasattr(values, "to_pylist") else list(values))
        return array
    if not _is_plain(values):
        raise LabelError(f"an array, a list or a data frame was expected; got {type(values).__name__}.")
    return _as_numbers(np.array(values if isinstance(values, Sequence) else list(values), dtype=object))


def _as_numbers(objects: Array) -> Array:
    """Python's numbers as NumPy's where no digit is lost; bools and integers together stay objects."""
    types = set(map(type, objects.ravel().tolist()))
    if not types or not types <= {int, bool, float} or types == {bool, int}:
        return objects
    try:
        numbers: Array = objects.astype(np.float64 if len(types) > 1 else next(iter(types)))
    except OverflowError:
        return objects
    return objects if len(types) > 1 and loses_digits(numbers) else numbers


def as_column(values: Any, name: str) -> Array:
    """An array with one value per row; a tuple is a value, not a row."""
    if _is_plain(values):
        values = list(values)
        if any(isinstance(value, tuple) for value in values):
            return as_objects(values)
    array = as_array(values)
    if array.ndim != 1:
        raise LabelError(f"{name} must be one-dimensional; got an array of shape {array.shape}.")
    return array


def _as_whole_numbers(values: Array) -> Array | None:
    """Floats that are all whole numbers, as integers; None where they are not."""
    if not (np.abs(values.astype(np.float64)) < _LARGEST_EXACT).all():
        return None
    integers = values.astype(np.int64)
    return integers if np.array_equal(integers, values) else None


def renumbered(mask: NDArray[np.bool_]) -> Array:
    """The new position of each of those in a mask, in the smallest type."""
    return (np.cumsum(mask) - 1).astype(smallest_integer_type(int(mask.sum())))


def _encode_numbers(values: Array) -> tuple[Array, Array]:
    """Integers that are close together are looked up in a table, which is faster than to sort them."""
    if values.dtype.kind == "i" and int(values.max()) - int(values.min()) <= _TABLE_SLACK * len(values):
        offsets = values - values.min()
        present = np.bincount(offsets) > 0
        return renumbered(present)[offsets], np.flatnonzero(present) + values.min()
    distinct, codes = np.unique(values, return_inverse=True)
    return codes.astype(smallest_integer_type(len(distinct))), distinct


def as_objects(values: Sequence[object]) -> Array:
    """The values as they are, in an array; a tuple is a value, not a row."""
    return np.fromiter(values, dtype=object, count=len(values))


def _elements(values: Array) -> list[Any]:
    """The values as Python has them; times stay NumPy's, which Python would round or turn into numbers."""
    return list(values) if values.dtype.kind in "Mm" else values.tolist()


def _in_one_unit(values: list[Any]) -> list[Any]:
    """The values; times of several units in the finest of them, for equal ones have different hashes in NumPy 2.0."""
    is_time = bool(values) and type(values[0]) in (np.datetime64, np.timedelta64)
    if is_time and len({value.dtype if isinstance(value, np.generic) else None for value in values}) > 1:
        times = np.array(values)
        return list(times) if times.dtype.kind in "Mm" else values
    return values


def _encode_objects(values: list[Any], *, ids: bool) -> tuple[Array, Array]:
    values = _in_one_unit(values)
    index: dict[object, int] = {}
    try:
        codes = np.fromiter((index.setdefault(value, len(index)) for value in values), dtype=np.int64)
    except TypeError as error:
        raise LabelError(
            f"every label and identifier must be a single value, such as a number or a string: {error}."
        ) from None
    distinct = list(index)
    try:
        order = sorted(range(len(distinct)), key=distinct.__getitem__)  # type: ignore[arg-type]
    except (TypeError, ArithmeticError):  # the NaN of decimals has no order
        if not ids:
            types = ", ".join(sorted({type(value).__name__ for value in distinct}))
            raise LabelError(
                f"labels must be of one sortable kind; found a mix of {types}. "
                'Note that 1 and "1" are different labels: convert them to one kind first. If this is a table with a '
                "row per label, use CrowdLabels.from_table(table, example=..., annotator=..., label=...)."
            ) from None
        order = list(range(len(distinct)))
    rank = np.empty(len(order), dtype=smallest_integer_type(len(order)))
    rank[order] = np.arange(len(order))
    ordered = [distinct[i] for i in order]
    return rank[codes], _as_id_array(ordered) if ids else tidy(ordered)


def _as_id_array(ids: Sequence[Any]) -> Array:
    """Identifiers as they came; only integers get a type of their own."""
    if ids and all(issubclass(kind, int | np.integer) and kind is not bool for kind in set(map(type, ids))):
        try:
            return np.array(ids, dtype=np.int64)
        except OverflowError:
            pass
    return as_objects(ids)


def tidy(distinct: Sequence[Any]) -> Array:
    """Distinct values as an array: numbers and bools get their own type, all else stays as it came."""
    types = set(map(type, distinct))
    if types and types <= {bool, np.bool_}:
        return np.array(distinct, dtype=bool)
    if not types or not all(issubclass(kind, int | float | np.integer | np.floating | np.bool_) for kind in types):
        return as_objects(distinct)
    is_whole = not any(issubclass(kind, float | np.floating) for kind in types)
    try:
        numbers = np.array(distinct, dtype=np.int64 if is_whole else np.float64)
    except OverflowError:
        return as_objects(distinct)
    if is_whole:
        return numbers
    whole = _as_whole_numbers(numbers)
    if whole is not None:
        return whole
    return numbers if numbers.tolist() == list(distinct) else as_objects(distinct)


def encode(values: Array, *, ids: bool = False) -> tuple[Array, Array]:
    """Codes, in the smallest integer type that fits, and the distinct values they point to, sorted; none is missing.

    Integers (and whole numbers, if they are not identifiers) become ``int64``, other kinds stay as they came.
    Identifiers are kept exactly as they came, and in order of appearance if they cannot be sorted; classes that cannot
    are an error.
    """
    if len(values) == 0:
        return np.zeros(0, dtype=np.int8), np.zeros(0, dtype=object)
    if values.dtype.kind == "f":
        whole = None if ids else _as_whole_numbers(values)
        return _encode_numbers(values if whole is None else whole)
    if values.dtype.kind in "biu" and int(values.max()) <= np.iinfo(np.int64).max:
        codes, distinct = _encode_numbers(values.astype(np.int64, copy=False))
        return codes, distinct.astype(bool) if values.dtype.kind == "b" else distinct
    return _encode_objects(_elements(values), ids=ids)


def encode_declared(values: Array, declared: Array) -> Array:
    """Codes of `values` in `declared`; -1 where a value was not declared."""
    codes, distinct = encode(values, ids=True)
    elements = _in_one_unit([*_elements(declared), *_elements(distinct)])
    position = {value: i for i, value in enumerate(elements[: len(declared)])}
    table = np.array([position.get(value, -1) for value in elements[len(declared) :]], dtype=np.int64)
    return table[codes].astype(smallest_integer_type(len(declared)))


def find_ids(values: Array, ids: Array) -> NDArray[np.intp]:
    """Where each value is among different ids; -1 where it is not. One is looked for without an index of all."""
    if len(values) == 1:
        (value,) = _elements(values)
        is_whole = ids.dtype.kind in "iu" and isinstance(value, int | np.integer)
        return np.append(np.flatnonzero(ids == (value if is_whole else as_objects([value]))), -1)[:1]
    return encode_declared(values, ids).astype(np.intp)


def id_array(values: Array) -> Array:
    """Identifiers as they came, of which some may be the same."""
    return _as_id_array(_elements(values))


def as_ids(values: Any, name: str) -> Array:
    """Identifiers, each different from the others, kept exactly as they came; `name` is for messages."""
    elements = list(values) if _is_plain(values) else _elements(as_column(values, name))
    try:
        n_distinct = len(set(elements))
    except TypeError as error:
        raise LabelError(f"{name} must be single values, such as numbers or strings: {error}.") from None
    ids = _as_id_array(elements)
    if ids.dtype == object and any(map(is_missing, elements)):
        absent = next(i for i, value in enumerate(elements) if is_missing(value))
        raise LabelError(f"{name} must not be missing; number {absent} (from 0) is {elements[absent]!r}.")
    if n_distinct < len(ids):
        seen: set[object] = set()
        repeated = next(value for value in elements if value in seen or seen.add(value))  # type: ignore[func-returns-value]
        raise LabelError(f"{name} must be different from each other; {shown(repeated)} occurs more than once.")
    return ids
