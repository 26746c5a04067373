"""Values as people write them -> small integer codes and the list of distinct values.

One rule decides when two values are the same: Python's equality. So 1, 1.0 and True are one class and
"1" is another; numbers and strings cannot be mixed in one set of labels, because they cannot be sorted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdwise.exceptions import LabelError

Array = NDArray[Any]

# Lookup tables for integer values may be this much longer than the values themselves.
_TABLE_SLACK = 4
# Up to this range, integers are found by comparing rather than by a lookup table.
_FEW = 16


def smallest_integer_type(n_values: int) -> np.dtype[Any]:
    """The narrowest signed integer type that holds ``range(n_values)``."""
    for kind in (np.int8, np.int16, np.int32):
        if n_values <= np.iinfo(kind).max:
            return np.dtype(kind)
    return np.dtype(np.int64)


def is_missing(value: object) -> bool:
    """Whether a single object stands for "no label": None, NaN, ``pandas.NA`` or ``NaT``."""
    if value is None:
        return True
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return type(value).__name__ in ("NAType", "NaTType")


def missing_mask(values: Array, missing: object = np.nan) -> NDArray[np.bool_]:
    """Where `values` holds no label; `missing` is one more value that says so."""
    if values.dtype.kind == "f":
        mask = np.isnan(values)
    elif values.dtype == object:
        mask = np.asarray(np.frompyfunc(is_missing, 1, 1)(values), dtype=bool)
    else:
        mask = np.zeros(values.shape, dtype=bool)
    if not is_missing(missing):
        mask |= np.asarray(values == missing, dtype=bool)
    return mask


def as_array(values: Any) -> Array:
    """An array that keeps Python objects apart which NumPy would turn into strings."""
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "to_numpy"):
        return np.asarray(values.to_numpy())
    if hasattr(values, "__array__"):
        return np.asarray(values)
    objects = np.array(values if isinstance(values, Sequence) else list(values), dtype=object)
    kinds = {type(value) for value in objects.ravel()}
    if kinds and kinds <= {int, bool, float} and kinds != {bool, int}:
        return np.array(objects.tolist())
    return objects


def _as_whole_numbers(values: Array) -> Array | None:
    """Floats that are all whole numbers, as integers; None where they are not."""
    whole = np.abs(values) < 2**53
    if not whole.all():
        return None
    integers = values.astype(np.int64)
    return integers if np.array_equal(integers, values) else None


def _present(values: Array, low: int, high: int) -> NDArray[np.bool_]:
    """Which of the integers from `low` to `high` occur."""
    if high - low < _FEW:  # one comparison a value is faster than one write a label
        between = [bool((values == value).any()) for value in range(low + 1, high)]
        return np.array([True, *between, True][: high - low + 1])
    present = np.zeros(high - low + 1, dtype=bool)
    present[values.astype(np.int64) - low] = True
    return present


def _encode_integers(values: Array) -> tuple[Array, Array]:
    low, high = int(values.min()), int(values.max())
    if high - low > _TABLE_SLACK * len(values) + 1024:
        distinct, codes = np.unique(values, return_inverse=True)
        return codes.astype(smallest_integer_type(len(distinct))), distinct
    present = _present(values, low, high)
    distinct = np.flatnonzero(present) + low
    kind = smallest_integer_type(len(distinct))
    offsets = values if low == 0 else values - np.int64(low)
    if present.all():  # already consecutive: no lookup needed
        return offsets.astype(kind), distinct
    return (np.cumsum(present) - 1).astype(kind)[offsets], distinct


def _as_objects(values: Sequence[object]) -> Array:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _encode_objects(values: Iterable[object], *, sort: bool) -> tuple[Array, Array]:
    index: dict[object, int] = {}
    codes = np.fromiter((index.setdefault(value, len(index)) for value in values), dtype=np.int64)
    distinct = list(index)
    try:
        order = sorted(range(len(distinct)), key=distinct.__getitem__)  # type: ignore[arg-type]
    except TypeError:
        if sort:
            kinds = ", ".join(sorted({type(value).__name__ for value in distinct}))
            raise LabelError(
                f"labels must be of one sortable kind; found a mix of {kinds}. "
                'Note that 1 and "1" are different labels: convert them to one kind first.'
            ) from None
        order = list(range(len(distinct)))
    rank = np.empty(len(order), dtype=smallest_integer_type(len(order)))
    rank[order] = np.arange(len(order))
    return rank[codes], tidy([distinct[i] for i in order])


def tidy(distinct: Sequence[Any]) -> Array:
    """Distinct values as an array: numbers and bools get their own type, all else stays as it came."""
    kinds = {type(value) for value in distinct}
    if kinds <= {bool, np.bool_} and kinds:
        return np.array(distinct, dtype=bool)
    if kinds and all(issubclass(kind, int | np.integer | bool | np.bool_) for kind in kinds):
        try:
            return np.array([int(value) for value in distinct], dtype=np.int64)
        except OverflowError:
            return _as_objects(distinct)
    if kinds and all(issubclass(kind, int | float | np.number | bool | np.bool_) for kind in kinds):
        floats = np.array(distinct, dtype=np.float64)
        whole = _as_whole_numbers(floats)
        return floats if whole is None else whole
    return _as_objects(distinct)


def encode(values: Array, *, sort: bool = True) -> tuple[Array, Array]:
    """Codes and the distinct values they point to, sorted.

    Parameters
    ----------
    values : ndarray of shape (n,)
        No value is missing.
    sort : bool, default=True
        Whether values that cannot be sorted are an error; if not, they stay in order of appearance.

    Returns
    -------
    codes : ndarray of shape (n,)
        In the smallest integer type that fits.
    distinct : ndarray
        Integers and whole numbers as ``int64``, other kinds as they came.
    """
    if len(values) == 0:
        return np.zeros(0, dtype=np.int8), np.zeros(0, dtype=object)
    if values.dtype.kind == "b":
        codes, distinct = _encode_integers(values.astype(np.int8))
        return codes, distinct.astype(bool)
    if values.dtype.kind in "iu":
        return _encode_integers(values)
    if values.dtype.kind == "f":
        whole = _as_whole_numbers(values)
        if whole is not None:
            return _encode_integers(whole)
        distinct, codes = np.unique(values, return_inverse=True)
        return codes.astype(smallest_integer_type(len(distinct))), distinct
    return _encode_objects(values.tolist(), sort=sort)


def encode_declared(values: Array, declared: Array) -> Array:
    """Codes of `values` in `declared`; -1 where a value was not declared."""
    codes, distinct = encode(values, sort=False)
    position = {value: i for i, value in enumerate(declared.tolist())}
    table = np.array([position.get(value, -1) for value in distinct.tolist()], dtype=np.int64)
    return table[codes].astype(smallest_integer_type(len(declared)))


def as_ids(values: Any, what: str) -> Array:
    """Identifiers, each different from the others, kept exactly as they came."""
    array = as_array(values)
    if array.ndim != 1:
        raise LabelError(f"{what} must be one-dimensional; got an array of shape {array.shape}.")
    ids = array.astype(np.int64) if array.dtype.kind in "iu" else _as_objects(array.tolist())
    distinct = len(np.unique(ids)) if ids.dtype != object else len(set(ids.tolist()))
    if distinct < len(ids):
        seen: set[object] = set()
        repeated = next(value for value in ids.tolist() if value in seen or seen.add(value))  # type: ignore[func-returns-value]
        raise LabelError(f"{what} must be different from each other; {repeated!r} occurs more than once.")
    return ids
