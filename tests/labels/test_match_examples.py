"""Truth, weights and slices are matched with examples by the rule that labels are matched by."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdwise import CrowdLabels
from crowdwise.exceptions import AlignmentError, LabelError
from crowdwise.labels._align import match_examples

IDS = ["a", "b", "c", "d"]
TRUTH = dict(zip(IDS, ["w", "x", "y", "z"], strict=True))


def frame(ids):
    return pd.DataFrame({"size": np.zeros(len(ids))}, index=list(ids))


def series(ids):
    return pd.Series([TRUTH[name] for name in ids], index=list(ids))


def named(ids):
    """Labels that carry ids."""
    return CrowdLabels.from_matrix([[0]] * len(ids), examples=list(ids))


def matched(*args, **kwargs):
    return list(match_examples(*args, **kwargs))


@given(st.permutations(IDS), st.permutations(IDS))
def test_series_and_mappings_are_matched_by_id_with_x_or_else_with_the_labels(rows, order):
    wanted = [TRUTH[name] for name in rows]
    for values in (series(order), {name: TRUTH[name] for name in order}):
        assert matched(values, frame(rows)) == wanted
        assert matched(values, frame(rows), named(order)) == wanted  # the index of X comes first
        assert matched(values, np.zeros((4, 1)), named(rows)) == wanted
        assert matched(values, pl.DataFrame({"size": np.zeros(4)}), named(rows)) == wanted


@given(st.permutations(IDS), st.lists(st.sampled_from(IDS), min_size=1))
def test_rows_drawn_repeatedly_have_the_value_of_their_id_each(order, rows):
    wanted = [TRUTH[name] for name in rows]
    assert matched(series(order), frame(rows)) == wanted
    assert matched(TRUTH, np.zeros((len(rows), 1)), named(IDS)[[IDS.index(name) for name in rows]]) == wanted


@given(st.permutations(IDS), st.sets(st.sampled_from(IDS), min_size=1))
def test_a_partial_truth_leaves_none_where_there_is_no_value(rows, known):
    wanted = [TRUTH[name] if name in known else None for name in rows]
    given_ids = [name for name in IDS if name in known]
    for values in (series(given_ids), {name: TRUTH[name] for name in given_ids}):
        assert matched(values, frame(rows), partial=True) == wanted
        if len(known) < 4:
            absent = next(name for name in rows if name not in known)
            with pytest.raises(
                AlignmentError, match=rf"{4 - len(known)} examples \(such as \['{absent}'.*no truth. Give"
            ):
                match_examples(values, frame(rows), None, "truth")


@pytest.mark.parametrize("make", [list, np.array, pl.Series, tuple], ids=["list", "array", "polars", "tuple"])
def test_values_without_an_index_are_taken_by_position(make):
    values = make(["w", "x", "y", "z"])
    for X in (frame("dcba"), np.zeros((4, 1)), pl.DataFrame({"size": np.zeros(4)})):
        assert match_examples(values, X, named("dcba")) is values


def test_where_nothing_carries_ids_an_index_counts_for_nothing():
    values = series("dcba")
    assert match_examples(values, np.zeros((4, 1))) is values
    assert match_examples(values, np.zeros((4, 1)), CrowdLabels.from_matrix([[0]] * 4)) is values


@given(st.permutations(range(4)), st.permutations(range(4)))
def test_a_permuted_default_index_is_matched_by_id(rows, order):
    X = pd.DataFrame({"size": np.zeros(4)}).iloc[rows]
    values = pd.Series([f"v{i}" for i in order], index=order)
    assert matched(values, X) == [f"v{i}" for i in rows]
    default = CrowdLabels.from_matrix(pd.DataFrame({"ann": [0] * 4}))[rows]
    assert matched(values, np.zeros((4, 1)), default) == [f"v{i}" for i in rows]


def test_a_default_index_that_meets_as_many_other_ids_is_matched_by_position():
    values = pd.Series(["w", "x", "y", "z"])
    assert match_examples(values, frame("dcba")) is values
    assert match_examples(values, np.zeros((4, 1)), named("dcba")) is values
    X = pd.DataFrame({"size": np.zeros(4)})
    for index in (list("dcba"), [7, 2, 5, 6], [3, 2, 1, 4]):
        other = values.set_axis(index)
        assert match_examples(other, X) is other


def test_a_default_index_of_another_length_is_matched_by_id():
    X = pd.DataFrame({"size": np.zeros(3)})
    assert matched(pd.Series(["w", "x"]), X, partial=True) == ["w", "x", None]
    assert matched(pd.Series(["w", "x", "y", "z"]), X) == ["w", "x", "y"]
    with pytest.raises(AlignmentError, match=r"1 examples \(such as \[2\]\) have no truth"):
        match_examples(pd.Series(["w", "x"]), X, None, "truth")
    with pytest.raises(AlignmentError, match=r"3 examples.*2 of the examples"):
        match_examples(pd.Series(["w", "x"]), frame("abc"), None, "truth", partial=True)


def test_mappings_name_rows_without_ids_by_position():
    assert matched({2: "y", 0: "w", 1: "x"}, np.zeros((3, 1))) == ["w", "x", "y"]
    assert matched({2: "y"}, np.zeros((3, 1)), partial=True) == [None, None, "y"]
    fold = CrowdLabels.from_matrix([[0]] * 4)[[3, 1]]  # selected rows keep their position in the whole
    assert matched({1: "x", 3: "z"}, np.zeros((2, 1)), fold) == ["z", "x"]
    with pytest.raises(AlignmentError, match=r"3 examples.*the examples that weight"):
        match_examples({"0": 1, "1": 2}, np.zeros((3, 1)), None, "weight", partial=True)


def test_values_of_other_examples_are_passed_over_where_every_row_has_one():
    for partial in (False, True):
        assert matched(series("dcba"), frame("bd"), partial=partial) == ["x", "z"]
        assert matched(TRUTH, frame("bd"), partial=partial) == ["x", "z"]


@pytest.mark.parametrize("partial", [False, True])
def test_unknown_ids_are_counted_and_shown(partial):
    for values in (series("ab").rename({"a": "A", "b": "B"}), {"A": "w", "B": "x"}):
        with pytest.raises(
            AlignmentError,
            match=r"2 examples \(such as \['a', 'b'\]\) have no truth, and 2 .* \(such as \['A', 'B'\]\) are not among",
        ):
            match_examples(values, frame("ab"), None, "truth", partial=partial)
    what_to_do = "If none is known, leave truth out" if partial else "Give one value per example"
    with pytest.raises(AlignmentError, match=rf"2 examples .*have no truth. {what_to_do}"):
        match_examples({}, frame("ab"), None, "truth", partial=partial)


def test_values_of_some_examples_may_not_name_others():
    with pytest.raises(
        AlignmentError, match=r"truth names 1 id \(such as \['B'\]\) of none of the 3 .* Leave these out"
    ):
        match_examples({"a": "w", "B": "x"}, frame("abc"), None, "truth", partial=True)
    with pytest.raises(AlignmentError, match="Examples may be without truth,"):
        match_examples({"B": "x"}, frame("abc"), None, "truth", partial=True)


def test_repeated_ids_are_an_error_unless_the_rows_repeat_alike():
    values = series("aab")
    with pytest.raises(AlignmentError, match="sample_weight must name each example"):
        match_examples(values, frame("ab"), None, "sample_weight")
    assert match_examples(values, frame("aab")) is values


def test_ids_may_be_anything_that_an_index_holds():
    pairs = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)])
    days = pd.to_datetime(["2020-01-01", "2020-01-02"])
    for index in (pairs, days, days.tz_localize("UTC"), pd.CategoricalIndex(["u", "v"]), pd.Index([0.5, 1.5])):
        X = pd.DataFrame({"size": [0.0, 1.0]}, index=index)
        assert matched(pd.Series(["w", "x"], index=index)[::-1], X) == ["w", "x"]
    assert matched({("b", 2): "x", ("a", 1): "w"}, pd.DataFrame({"size": [0.0, 1.0]}, index=pairs)) == ["w", "x"]


def test_values_keep_their_type_where_none_is_absent():
    weights = pd.Series([1.5, 2.5], index=["b", "a"])
    assert match_examples(weights, frame("ab")).dtype == np.float64
    assert match_examples(weights, frame("abc"), partial=True).tolist() == [2.5, 1.5, None]


def test_the_name_of_a_file_is_not_taken_for_values():
    with pytest.raises(LabelError, match=r"truth must be values.*got 'truth.csv'.*pandas.read_csv\('truth.csv'"):
        match_examples("truth.csv", [[1.0], [2.0]], None, "truth")


def test_ids_with_spaces_are_the_reason_why_values_do_not_match():
    words = r"not among these\.* 2 ids would match but for spaces at the ends, such as 'a' and ' a'"
    with pytest.raises(AlignmentError, match=words):
        match_examples({" a": "x", " b": "y"}, frame(["a", "b"]), name="truth")
