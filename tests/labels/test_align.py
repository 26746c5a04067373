from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdwise import CrowdLabels, align
from crowdwise.exceptions import AlignmentError, CrowdWarning, LabelError
from crowdwise.labels._align import as_labels, with_ids_of

TABLE = {"task": ["a", "b", "c"], "worker": [0, 0, 1], "label": ["x", "y", "x"]}


def features(*ids):
    return pd.DataFrame({"size": np.arange(len(ids), dtype=float)}, index=list(ids))


ONE_ANNOTATOR = {
    "list": ["a", None, "b"],
    "array": np.array(["a", None, "b"], dtype=object),
    "pandas text": pd.Series(["a", None, "b"]),
    "pandas string": pd.Series(["a", None, "b"], dtype="string"),
    "pandas category": pd.Series(["a", None, "b"], dtype="category"),
    "pandas array": pd.array(["a", None, "b"]),
    "polars": pl.Series(["a", None, "b"]),
    "polars category": pl.Series(["a", None, "b"], dtype=pl.Categorical),
    "masked": np.ma.array(["a", "?", "b"], mask=[False, True, False]),
}


@pytest.mark.parametrize("name", ONE_ANNOTATOR)
def test_one_dimension_is_one_annotator(name):
    labels = as_labels(ONE_ANNOTATOR[name])
    assert labels == CrowdLabels.from_matrix([["a"], [None], ["b"]])


def test_pyarrow_arrays_are_one_annotator():
    pa = pytest.importorskip("pyarrow")
    assert as_labels(pa.array([1, None, 2])) == CrowdLabels.from_matrix([[1], [None], [2]])
    assert as_labels(pa.array([2**53 + 1, None])).classes.tolist() == [2**53 + 1]
    assert as_labels(pa.chunked_array([["a", None]])) == CrowdLabels.from_matrix([["a"], [None]])


def test_two_dimensions_are_a_column_per_annotator():
    assert as_labels([[1, 2], [2, None]]) == CrowdLabels.from_matrix([[1, 2], [2, None]])
    assert as_labels(pd.DataFrame({"u": [1, 2]})).annotators.tolist() == ["u"]
    labels = CrowdLabels.from_matrix([[1, 2]])
    assert as_labels(labels) is labels


def test_an_index_names_examples_and_a_default_one_does_not():
    assert as_labels(pd.Series([1, 2], index=["u", "v"])).examples.tolist() == ["u", "v"]
    assert not as_labels(pd.Series([1, 2]))._named_examples


@pytest.mark.parametrize("path", ["labels.csv", Path("labels.csv")])
def test_the_name_of_a_file_in_place_of_labels_is_told_how_it_is_read(path):
    with pytest.raises(LabelError, match=r"expected; got .*read_labels\('labels.csv'\)"):
        as_labels(path)


def test_the_scale_must_be_the_one_wanted():
    ratings = CrowdLabels.from_matrix([[0.5, 1.5]], scale="interval")
    assert as_labels(ratings, scale="interval") is ratings
    with pytest.raises(LabelError, match="classes are needed here, and"):
        as_labels(ratings)
    with pytest.raises(LabelError, match=r"continuous. Expected classes, got 0.5"):
        as_labels([0.5, 1.0])
    assert as_labels([1e300, 1.0]).classes.tolist() == [1.0, 1e300]


@pytest.mark.parametrize("y", [None, 3, "abc", {"a": 1}], ids=repr)
def test_what_is_no_label_is_named(y):
    with pytest.raises(LabelError, match=f"expected; got {type(y).__name__}"):
        as_labels(y)


def test_wrong_shapes_are_named():
    with pytest.raises(LabelError, match=r"one or two dimensions.*got shape"):
        as_labels(np.zeros((1, 1, 1)))
    with pytest.raises(LabelError, match="single value"):
        as_labels([[1], [1, 2]])


@given(st.permutations(["a", "b", "c"]))
def test_rows_are_matched_by_identifier_in_the_order_of_x(order):
    labels = CrowdLabels.from_table(TABLE)
    X, aligned = align(features(*order), labels)
    assert X.index.tolist() == order
    assert aligned.examples.tolist() == list(order)
    assert aligned.majority().tolist() == [dict(zip("abc", "xyx", strict=True))[name] for name in order]
    assert aligned.annotators.tolist() == [0, 1]


def test_without_identifiers_position_counts():
    labels = CrowdLabels.from_matrix([[1], [2]])
    for X in (np.zeros((2, 1)), [[0.0], [1.0]], features("p", "q"), pl.DataFrame({"size": [1.0, 2.0]})):
        same, aligned = align(X, labels)
        assert same is X
        assert aligned is labels
    named = CrowdLabels.from_table(TABLE)
    with pytest.warns(CrowdWarning, match="row 0 of X is"):
        assert align(np.zeros((3, 1)), named)[1] is named
    said = CrowdLabels.from_table(TABLE, examples=["a", "b", "c"])  # the caller knows the order
    assert align(np.zeros((3, 1)), said)[1] is said
    with pytest.raises(AlignmentError, match="X has 4 examples and"):
        align(np.zeros((4, 1)), named)


def test_a_default_index_is_matched_with_ids_that_are_numbers():
    labels = CrowdLabels.from_table({"task": [1, 0], "worker": [0, 0], "label": ["x", "y"]}, examples=[1, 0])
    assert align(pd.DataFrame({"size": [0.0, 1.0]}), labels)[1].majority().tolist() == ["y", "x"]


def test_mismatch_is_counted_and_shown():
    with pytest.raises(AlignmentError, match="2 are on both sides,"):
        align(features("a", "b", "p", "q"), CrowdLabels.from_table(TABLE))
    with pytest.raises(AlignmentError, match=r"no identifier of X .*"):  # 1 and "1" are different
        align(features("1"), CrowdLabels.from_table({"task": [1], "worker": [0], "label": [0]}))


def test_a_repeated_row_of_x_does_not_stand_for_another_example():
    with pytest.raises(AlignmentError, match="must be different from each"):
        align(features("a", "a", "c"), CrowdLabels.from_table(TABLE))


def test_the_same_examples_drawn_repeatedly_on_both_sides_stay_together():
    drawn = [0, 0, 2]
    X, labels = features("a", "b", "c").iloc[drawn], CrowdLabels.from_table(TABLE)[drawn]
    assert align(X, labels)[1] == labels


@pytest.mark.parametrize("join", ["inner", "left"])
def test_joins_do_not_repeat_rows(join):
    with pytest.raises(AlignmentError, match="identifiers of X must be"):
        align(features("a", "a", "c"), CrowdLabels.from_table(TABLE), join=join)
    with pytest.raises(AlignmentError, match="identifiers of the labels must"):
        align(features("a", "b", "c"), CrowdLabels.from_table(TABLE)[[0, 0, 1]], join=join)


def test_an_inner_join_of_nothing_is_an_error():
    with pytest.raises(
        AlignmentError, match=r"no identifier of X \(such as \['p', 'q'\]\) is among those of the labels"
    ):
        align(features("p", "q"), CrowdLabels.from_table(TABLE), join="inner")


DEFAULT = {"size": [0.0, 1.0, 2.0]}
Y = pd.DataFrame({"ann": ["x", "y", "z"]})


@given(st.permutations([0, 1, 2]), st.permutations([0, 1, 2]))
def test_a_permuted_default_index_is_matched_by_id_on_either_side(order_of_x, order_of_y):
    X, y = pd.DataFrame(DEFAULT).iloc[order_of_x], Y.iloc[order_of_y]
    for labels in (as_labels(y), as_labels(y["ann"]), CrowdLabels.from_matrix(Y)[order_of_y]):
        assert align(X, labels)[1].majority().tolist() == ["xyz"[i] for i in order_of_x]
        assert align(X.to_numpy(), labels)[1].majority().tolist() == ["xyz"[i] for i in order_of_y]
    for plain in (
        y.to_numpy(),
        y["ann"].tolist(),
        pl.Series(y["ann"].tolist()),
        pl.DataFrame({"ann": y["ann"].tolist()}),
    ):
        assert align(X, as_labels(plain))[1].majority().tolist() == ["xyz"[i] for i in order_of_y]


def test_a_default_index_that_meets_as_many_other_ids_is_matched_by_position():
    for y in (Y, Y["ann"]):
        assert align(features("p", "q", "r"), as_labels(y))[1].majority().tolist() == ["x", "y", "z"]
    for index in (["p", "q", "r"], [7, 5, 6], [2, 1, 3]):
        assert align(pd.DataFrame(DEFAULT), as_labels(Y.set_index(pd.Index(index))))[1].majority().tolist() == list(
            "xyz"
        )
    with pytest.warns(CrowdWarning, match="X carries no identifiers of"):
        align(pd.DataFrame(DEFAULT), CrowdLabels.from_table(TABLE))
    numbers = CrowdLabels.from_table({**TABLE, "task": [0, 1, 2]})  # ids that somebody gave are no default index
    with pytest.raises(AlignmentError, match="no identifier of X"):
        align(features("p", "q", "r"), numbers)


def test_a_default_index_of_another_length_is_an_error():
    with pytest.raises(AlignmentError, match="2 are on both sides,"):
        align(pd.DataFrame(DEFAULT)[:2], as_labels(Y))
    assert align(pd.DataFrame(DEFAULT)[:2], as_labels(Y), join="inner")[1].majority().tolist() == ["x", "y"]
    with pytest.raises(AlignmentError, match="X has 2 examples and"):
        align(pd.DataFrame(DEFAULT)[:2], as_labels(Y.to_numpy()))


def test_labels_without_ids_take_those_of_x():
    labels = as_labels([1, 2])
    assert with_ids_of(features("p", "q"), labels).examples.tolist() == ["p", "q"]
    assert with_ids_of(features("p", "q"), labels)._named_examples
    assert with_ids_of(features("p", "p"), labels).examples.tolist() == ["p", "p"]  # drawn twice
    assert with_ids_of(np.zeros((2, 1)), labels) is labels
    assert not with_ids_of(pd.DataFrame({"size": [1, 2]}), labels)._named_examples
    named = CrowdLabels.from_matrix([[1], [2]], examples=["u", "v"])
    assert with_ids_of(features("p", "q"), named) is named


def test_joins_keep_what_they_say():
    X, labels = features("p", "c", "a"), CrowdLabels.from_table(TABLE)
    inner_X, inner = align(X, labels, join="inner")
    assert inner_X.index.tolist() == inner.examples.tolist() == ["c", "a"]
    left_X, left = align(X, labels, join="left")
    assert left_X is X
    assert left.to_matrix().tolist() == [[None, None], [None, "x"], ["x", None]]
    assert left.classes.tolist() == ["x", "y"]
    ratings = CrowdLabels.from_table({**TABLE, "label": [1.5, 2.0, 3.0]}, scale="interval")
    assert align(X, ratings, join="left")[1].labels_per_example.tolist() == [0, 1, 1]
    with pytest.raises(ValueError, match='join must be "exact", "inner"'):
        align(X, labels, join="outer")


def test_times_are_matched_whatever_their_unit():
    days = ["2020-01-01", "2020-01-02"]
    X = pd.DataFrame({"size": [0.0, 1.0]}, index=pd.to_datetime(days).as_unit("ns"))
    labels = CrowdLabels.from_table(
        {"task": np.array(days[::-1], dtype="M8[D]"), "worker": [0, 0], "label": ["x", "y"]}
    )
    assert align(X, labels)[1].majority().tolist() == ["y", "x"]


@pytest.mark.parametrize("known", [[], ["100"]])
def test_ids_without_their_zeros_are_the_reason_why_they_do_not_match(known):
    labels = CrowdLabels.from_matrix([[0]] * (2 + len(known)), examples=["001", "002", *known])
    with pytest.raises(AlignmentError, match="2 ids would match but") as said:
        align(features("1", "2", *known), labels)
    assert "join=" not in str(said.value)
    assert "set_index" not in str(said.value)


def test_rows_without_labels_are_without_truth_too():
    labels = CrowdLabels.from_table({"item": ["a", "b"], "worker": [0, 0], "label": [1, 0]}).with_truth({"a": 1})
    X = pd.DataFrame({"size": [1.0, 2.0, 3.0]}, index=["b", "c", "a"])
    assert align(X, labels, join="left")[1].truth.tolist() == [-1, -1, 1]
    ratings = labels.with_scale("interval")
    assert align(X, ratings, join="left")[1].truth[2] == 1
    assert np.isnan(align(X, ratings, join="left")[1].truth[:2]).all()


def test_no_examples_match_no_rows():
    empty = CrowdLabels.from_table({"item": [], "worker": [], "label": []})
    assert len(align(np.zeros((0, 2)), empty)[1]) == 0
