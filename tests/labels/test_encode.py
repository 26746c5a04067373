import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from marks import many_examples

from crowdwise import CrowdLabels
from crowdwise.exceptions import LabelError
from crowdwise.labels._encode import (
    as_array,
    as_column,
    as_ids,
    encode,
    encode_declared,
    is_missing,
    missing_mask,
    shown,
    smallest_integer_type,
    tidy,
)

WHOLE = st.integers(-(2**70), 2**70)
FRACTIONS = st.floats(allow_nan=False, allow_infinity=False)
KINDS = [WHOLE, st.integers(-300, 300), FRACTIONS, st.text(max_size=3), st.booleans(), st.dates()]
ONE_KIND = st.sampled_from(KINDS).flatmap(lambda kind: st.lists(kind, min_size=1, max_size=30))


def naive_codes(values):
    distinct = sorted(set(values))
    return [distinct.index(value) for value in values], distinct


@given(ONE_KIND)
def test_codes_point_to_the_sorted_distinct_values(values):
    codes, distinct = encode(as_array(values))
    expected_codes, expected = naive_codes(values)
    assert codes.tolist() == expected_codes
    assert distinct.tolist() == expected


@given(ONE_KIND)
def test_identifiers_come_back_equal_and_of_the_type_they_had(values):
    codes, distinct = encode(as_column(values, "ids"), ids=True)
    back = [distinct.tolist()[code] for code in codes]
    assert back == values
    assert {type(value) for value in back} == {type(value) for value in values}


INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


@many_examples(400)
@given(st.sampled_from(INTEGERS), st.data())
def test_every_integer_type_is_coded_alike(kind, data):
    limits = np.iinfo(kind)
    low = data.draw(st.sampled_from([limits.min, 0, 3, limits.max // 2 + 1, limits.max - 40]))
    values = data.draw(st.lists(st.integers(low, min(low + 40, limits.max)), min_size=1, max_size=20))
    if data.draw(st.booleans()):
        values.append(data.draw(st.integers(limits.min, limits.max)))
    codes, distinct = encode(np.array(values, dtype=kind))
    assert (codes.tolist(), distinct.tolist()) == naive_codes(values)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.longdouble])
def test_whole_floats_are_integers_and_fractions_stay(kind):
    codes, distinct = encode(np.array([3.0, 1.0, 3.0], dtype=kind))
    assert distinct.dtype == np.int64
    assert (codes.tolist(), distinct.tolist()) == ([1, 0, 1], [1, 3])
    assert encode(np.array([0.5, 1.0], dtype=kind))[1].tolist() == [0.5, 1.0]
    assert encode(np.array([3.0, 1.0], dtype=kind), ids=True)[1].dtype == kind


def test_codes_take_as_little_space_as_they_can():
    assert encode(np.arange(100))[0].dtype == np.int8
    assert encode(np.arange(1000))[0].dtype == np.int16
    assert encode(np.arange(100_000))[0].dtype == np.int32
    assert [smallest_integer_type(n) for n in (127, 128, 32768, 2**31)] == [np.int8, np.int16, np.int32, np.int64]


def test_widely_spread_integers_need_no_table():
    codes, distinct = encode(np.array([10**12, -(10**12), 0]))
    assert (codes.tolist(), distinct.tolist()) == ([2, 0, 1], [-(10**12), 0, 10**12])


def test_equality_decides_what_is_one_class():
    assert encode(as_array([1, 1.0, True]))[1].tolist() == [1]
    assert encode(as_array([True, 0, 2]))[1].tolist() == [0, 1, 2]
    assert encode(as_array([True, False]))[1].dtype == bool


def test_classes_that_cannot_be_sorted_are_an_error_and_ids_are_not():
    mixed = as_array([1, "1"])
    with pytest.raises(LabelError, match=r"mix of int, str.*1 and"):
        encode(mixed)
    assert encode(mixed, ids=True)[1].tolist() == [1, "1"]


def test_times_stay_times_whatever_their_unit():
    days = np.array(["2020-01-02", "2020-01-01"], dtype="M8[D]")
    for unit in ("D", "us", "ns"):
        codes, distinct = encode(days.astype(f"M8[{unit}]"))
        assert codes.tolist() == [1, 0]
        assert isinstance(distinct[0], np.datetime64)
        assert encode_declared(days.astype(f"M8[{unit}]"), as_ids(days, "days")).tolist() == [0, 1]


def test_values_without_a_hash_are_named():
    with pytest.raises(LabelError, match=r"single value.*unhashable type: 'dict'"):
        encode(np.array([{}, {}], dtype=object))


@given(ONE_KIND, st.data())
def test_declared_codes_are_positions_or_minus_one(values, data):
    declared = data.draw(st.permutations(sorted(set(values))))[: data.draw(st.integers(0, 5))]
    codes = encode_declared(as_array(values), as_ids(declared, "classes"))
    assert codes.tolist() == [declared.index(value) if value in declared else -1 for value in values]


MISSING = [None, float("nan"), np.nan, np.float32("nan"), pd.NA, pd.NaT, np.datetime64("NaT", "s"), Decimal("nan")]
PRESENT = [0, -1, "", "nan", "None", False, float("inf"), (), np.str_("NA"), dt.date(2020, 1, 1), Decimal(0), b""]


@pytest.mark.parametrize("value", MISSING, ids=repr)
def test_every_kind_of_nothing_is_missing(value):
    assert is_missing(value)


@pytest.mark.parametrize("value", PRESENT, ids=repr)
def test_nothing_else_is_missing(value):
    assert not is_missing(value)


def test_missing_is_found_in_arrays_of_every_kind():
    assert missing_mask(np.array([1.0, np.nan])).tolist() == [False, True]
    assert missing_mask(np.array(["2020", "NaT"], dtype="M8[D]")).tolist() == [False, True]
    assert missing_mask(np.array([3, "NaT"], dtype="m8[D]")).tolist() == [False, True]
    assert missing_mask(np.array(["a", None, pd.NA], dtype=object)).tolist() == [False, True, True]
    assert missing_mask(np.array([-1, 0])).tolist() == [False, False]
    assert missing_mask(np.array([-1, 0]), -1).tolist() == [True, False]
    assert missing_mask(np.array([-1, np.nan]), -1).tolist() == [True, True]
    assert missing_mask(np.array([["a", np.nan], [None, float("nan")]], dtype=object)).tolist() == [
        [False, True],
        [True, True],
    ]
    assert missing_mask(np.array(["", "a"]), "").tolist() == [True, False]
    assert missing_mask(np.array([1, 2]), "a").tolist() == [False, False]


@pytest.mark.parametrize("missing", [[-1, -9], (-1,), {-1}, np.array([1, 2])], ids=repr)
def test_only_one_value_can_mean_missing(missing):
    with pytest.raises(LabelError, match="missing must be a single value"):
        missing_mask(np.array([-1, 0]), missing)


def test_python_numbers_become_arrays_only_if_no_digit_is_lost():
    assert as_array([1, 2]).dtype == np.int64
    assert as_array([1, 2.5]).dtype == np.float64
    assert as_array([True, False]).dtype == bool
    for values in ([2**53 + 1, 0.5], [2**63, -1], [10**400, 0.5], ["a", 1], [True, 2]):
        array = as_array(values)
        assert array.dtype == object
        assert array.tolist() == values


def test_masked_values_are_missing():
    assert as_array(np.ma.array([[1, 2]], mask=[[False, True]])).tolist() == [[1, None]]


def test_integers_beside_missing_ones_are_not_rounded():
    assert as_array(pd.Series([2**53 + 1, 1, None], dtype="Int64")).tolist()[:2] == [2**53 + 1, 1]


@pytest.mark.parametrize("value", [None, 3, "abc", b"abc", {"a": [1]}], ids=repr)
def test_what_is_no_array_is_named(value):
    with pytest.raises(LabelError, match=f"array, a list or a data frame was expected; got {type(value).__name__}"):
        as_array(value)


def test_columns_hold_tuples_as_values():
    assert as_column([(1, 2), (1, 3)], "ids").tolist() == [(1, 2), (1, 3)]
    with pytest.raises(LabelError, match="ids must be one-dimensional; got"):
        as_column(np.zeros((2, 2)), "ids")


@pytest.mark.parametrize(
    "ids",
    [
        [1, 2.5, 3],
        [1.0, 2.0],
        [True, 2],
        [2**64, -1],
        ["1", "01", "1.0", "x" * 10_000],
        ["\u00e9", "e\u0301"],
        [("a", 1), ("b", 2)],
        [dt.date(2020, 1, 1), dt.datetime(2020, 1, 1)],
        [1, "1", b"1"],
    ],
    ids=lambda ids: str(ids)[:30],
)
def test_ids_are_kept_exactly_as_they_came(ids):
    kept = as_ids(ids, "ids").tolist()
    assert kept == ids
    assert list(map(type, kept)) == list(map(type, ids))


def test_ids_of_mixed_kinds_in_a_column_are_kept():
    kept = encode(as_column([2, True], "ids"), ids=True)[1].tolist()
    assert (kept, list(map(type, kept))) == ([True, 2], [bool, int])


def test_unsigned_ids_stay_positive():
    assert as_ids(np.array([2**63, 1], dtype=np.uint64), "ids").tolist() == [2**63, 1]
    assert as_ids(np.array([7, 1], dtype=np.uint64), "ids").dtype == np.int64


def test_bad_ids_are_named():
    with pytest.raises(LabelError, match="annotators must be different from"):
        as_ids(["a", "b", "a"], "annotators")
    with pytest.raises(LabelError, match="different from each other; 1 occurs"):
        as_ids([True, 1], "annotators")
    with pytest.raises(LabelError, match="examples must not be missing;"):
        as_ids([1.0, float("nan")], "examples")
    with pytest.raises(LabelError, match=r"single values.*unhashable type: 'list'"):
        as_ids([["a"], ["b"]], "examples")
    with pytest.raises(LabelError, match="one-dimensional"):
        as_ids(np.zeros((2, 2)), "examples")


def test_tidy_never_rounds():
    assert tidy([1, 2]).dtype == np.int64
    assert tidy([1, 2.0]).tolist() == [1, 2]
    assert tidy([1, 2.5]).tolist() == [1.0, 2.5]
    assert tidy([0.5, 2**53 + 1]).tolist() == [0.5, 2**53 + 1]
    assert tidy([1, 2**64]).tolist() == [1, 2**64]
    assert tidy([False, True]).dtype == bool
    assert tidy([]).shape == (0,)


def test_values_are_shown_as_people_write_them():
    assert [shown(value) for value in (np.int64(1), np.str_("a"), "a", 0.5)] == ["1", "'a'", "'a'", "0.5"]
    assert "2020-01-01" in shown(np.datetime64("2020-01-01", "ns"))


def test_a_truth_of_decimals_is_unknown_where_it_is_not_a_number():
    labels = CrowdLabels.from_matrix([[Decimal(1)] * 3, [Decimal(2)] * 3, [Decimal(2)] * 3])
    assert labels.with_truth([Decimal(1), Decimal("NaN"), Decimal(2)]).truth.tolist() == [0, -1, 1]
