import numpy as np
import pandas as pd
import polars as pl
import pytest

from crowdwise import CrowdLabels
from crowdwise.exceptions import LabelError
from crowdwise.labels._frames import find_column, is_frame, make_frame, row_ids

NUMBERS = {"ann": [1, None], "bob": [2, 1]}
TEXTS = {"ann": ["x", None], "bob": ["y", "x"]}
BOOLS = {"ann": [True, None], "bob": [True, False]}


def pandas_frame(columns, kind):
    return pd.DataFrame({name: pd.array(values, dtype=kind) for name, values in columns.items()})


FRAMES = {
    "pandas float": (pd.DataFrame(NUMBERS), NUMBERS),
    "pandas Int64": (pandas_frame(NUMBERS, "Int64"), NUMBERS),
    "pandas UInt8": (pandas_frame(NUMBERS, "UInt8"), NUMBERS),
    "pandas categories of numbers": (pandas_frame(NUMBERS, "category"), NUMBERS),
    "pandas text": (pd.DataFrame(TEXTS), TEXTS),
    "pandas object": (pd.DataFrame(TEXTS, dtype=object), TEXTS),
    "pandas string": (pandas_frame(TEXTS, "string"), TEXTS),
    "pandas categories": (pandas_frame(TEXTS, "category"), TEXTS),
    "pandas boolean": (pandas_frame(BOOLS, "boolean"), BOOLS),
    "pandas objects of bool": (pd.DataFrame(BOOLS), BOOLS),
    "polars numbers": (pl.DataFrame(NUMBERS), NUMBERS),
    "polars UInt8": (pl.DataFrame(NUMBERS, schema=dict.fromkeys(NUMBERS, pl.UInt8)), NUMBERS),
    "polars text": (pl.DataFrame(TEXTS), TEXTS),
    "polars categories": (pl.DataFrame(TEXTS, schema=dict.fromkeys(TEXTS, pl.Categorical)), TEXTS),
    "polars enum": (pl.DataFrame(TEXTS, schema=dict.fromkeys(TEXTS, pl.Enum(["y", "x"]))), TEXTS),
    "polars bool": (pl.DataFrame(BOOLS), BOOLS),
}


def plain_matrix(columns):
    return [list(row) for row in zip(*columns.values(), strict=True)]


@pytest.mark.parametrize("name", FRAMES)
def test_frames_of_every_kind_equal_the_plain_matrix(name):
    frame, columns = FRAMES[name]
    labels = CrowdLabels.from_matrix(frame)
    expected = CrowdLabels.from_matrix(plain_matrix(columns), annotators=["ann", "bob"])
    assert labels == expected
    assert labels.classes.dtype == expected.classes.dtype
    assert labels.n_labels == 3


@pytest.mark.parametrize("columns", [NUMBERS, TEXTS, BOOLS], ids=["numbers", "texts", "bools"])
def test_pyarrow_tables_equal_the_plain_matrix(columns):
    pa = pytest.importorskip("pyarrow")
    expected = CrowdLabels.from_matrix(plain_matrix(columns), annotators=["ann", "bob"])
    assert CrowdLabels.from_matrix(pa.table(columns)) == expected
    coded = pa.table({name: pa.array(values).dictionary_encode() for name, values in columns.items()})
    assert CrowdLabels.from_matrix(coded) == expected


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, dict], ids=["pandas", "polars", "mapping"])
def test_long_tables_of_every_kind_are_read_alike(make):
    table = make({"Task": ["b", "a", "a"], "worker": [7, 7, 3], "ANSWER": ["x", "y", None]})
    labels = CrowdLabels.from_table(table)
    assert labels.examples.tolist() == ["a", "b"]
    assert labels.annotators.tolist() == [7]
    assert labels.to_matrix().tolist() == [["y"], ["x"]]


def test_column_names_of_pandas_may_be_anything():
    names = [("a", 1), ("b", 2)]
    frame = pd.DataFrame([[1, 2], [2, 1]], columns=pd.MultiIndex.from_tuples(names))
    assert CrowdLabels.from_matrix(frame).annotators.tolist() == names
    assert CrowdLabels.from_matrix(pd.DataFrame([[1, 2]], columns=["a", 2])).annotators.tolist() == ["a", 2]
    long = pd.DataFrame([["a", 5, 0], ["a", 6, 1]])
    assert CrowdLabels.from_table(long, example=0, annotator=1, label=2).annotators.tolist() == [5, 6]
    mapping = {0: ["a", "a"], 1: [5, 6], 2: [0, 1]}
    assert CrowdLabels.from_table(mapping, example=0, annotator=1, label=2).n_labels == 2


def test_repeated_column_names_are_an_error():
    frame = pd.DataFrame([[1, 2]], columns=["a", "a"])
    with pytest.raises(LabelError, match=r"must have different names.*'a' 2 times"):
        is_frame(frame)
    with pytest.raises(LabelError, match="must have different names"):
        CrowdLabels.from_matrix(frame)


def test_integers_too_large_for_a_float_survive_missing_ones():
    expected = [[2**53 + 1, 2**53], [None, 1]]
    for frame in (
        pd.DataFrame({"a": pd.array([2**53 + 1, None], dtype="Int64"), "b": [2**53, 1]}),
        pl.DataFrame({"a": [2**53 + 1, None], "b": [2**53, 1]}),
    ):
        assert CrowdLabels.from_matrix(frame).to_matrix().tolist() == expected
    beside_floats = pd.DataFrame({"a": [2**53 + 1, 2**53], "b": [1.0, np.nan]})
    assert CrowdLabels.from_matrix(beside_floats).classes.tolist() == [1, 2**53, 2**53 + 1]


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_times_with_gaps_stay_times(unit):
    times = pd.to_datetime(["2020-01-01", None, "2020-01-02"]).as_unit(unit)
    for frame in (pd.DataFrame({"a": times, "b": times}), pd.DataFrame({"a": times, "b": times.as_unit("s")})):
        labels = CrowdLabels.from_matrix(frame)
        assert labels.n_labels == 4
        assert labels.classes.tolist() == [np.datetime64("2020-01-01"), np.datetime64("2020-01-02")]


def test_a_default_index_names_nobody():
    assert row_ids(pd.DataFrame({"a": [1, 2]})) is None
    assert row_ids(pl.DataFrame({"a": [1, 2]})) is None
    assert row_ids([1, 2]) is None
    assert row_ids(pd.DataFrame({"a": [1, 2]})[1:]).tolist() == [1]
    assert row_ids(pd.Series([1, 2], index=["u", "v"])).tolist() == ["u", "v"]


INDEXES = [
    pd.Index(["u", "v"]),
    pd.Index([2**63, 6], dtype="uint64"),
    pd.Index([5, 6], dtype="Int64"),
    pd.Index([1.0, 2.0]),
    pd.CategoricalIndex(["u", "v"]),
    pd.MultiIndex.from_tuples([("a", 1), ("b", 2)]),
    pd.date_range("2020", periods=2, unit="ns"),
    pd.date_range("2020", periods=2, tz="UTC"),
    pd.period_range("2020", periods=2, freq="D"),
    pd.interval_range(0, 2),
]


@pytest.mark.parametrize("index", INDEXES, ids=lambda index: f"{type(index).__name__} {index.dtype}")
def test_an_index_of_any_kind_names_the_examples(index):
    labels = CrowdLabels.from_matrix(pd.DataFrame([[1, 2], [2, 1]], index=index))
    assert labels._named_examples
    assert all(mine == theirs for mine, theirs in zip(labels.examples, index, strict=True))


def test_empty_frames_have_no_labels():
    assert CrowdLabels.from_matrix(pd.DataFrame()).shape == (0, 0)
    assert CrowdLabels.from_matrix(pd.DataFrame(columns=["a", "b"])).shape == (0, 2)
    assert CrowdLabels.from_matrix(pl.DataFrame({"a": [None, None]})).n_labels == 0


def test_columns_are_found_by_their_usual_names_or_the_error_lists_them():
    assert find_column(["x", "Item", "task"], "example", None) == "task"
    assert find_column(["x", "Item"], "example", "x") == "x"
    with pytest.raises(LabelError, match="no column looks like label"):
        find_column(["x", 3], "label", None)
    with pytest.raises(LabelError, match="there is no column 'y'"):
        find_column(["x"], "label", "y")


def test_what_is_no_table_is_named():
    for wrong in ([{"task": 1}], pl.DataFrame({"task": [1]}).lazy(), np.zeros((2, 3))):
        with pytest.raises(TypeError, match=f"data frame or a mapping of columns; got {type(wrong).__name__}"):
            CrowdLabels.from_table(wrong)
    with pytest.raises(LabelError, match="array, a list or a"):
        CrowdLabels.from_matrix(pl.DataFrame({"a": [1]}).lazy())
    with pytest.raises(LabelError, match="one-dimensional"):
        CrowdLabels.from_table({"task": np.zeros((2, 2)), "worker": [1, 2], "label": [1, 2]})


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_keep_text_that_is_not_utf_8_and_escape_it_in_names(library):
    values = np.array(["\ud800", "b"], dtype=object)
    frame = make_frame({"label": values, "proba_\ud800": np.zeros(2)}, library)
    assert list(frame.columns) == ["label", "proba_\\ud800"]
    assert frame["label"].to_list() == ["\ud800", "b"]


def test_whole_numbers_of_128_bits_are_classes():
    frame = pl.DataFrame({"a": [2**100, 2**100 + 1], "b": [2**100, None]}, schema={"a": pl.Int128, "b": pl.Int128})
    labels = CrowdLabels.from_matrix(frame)
    assert labels.classes.tolist() == [2**100, 2**100 + 1]
    assert labels.n_labels == 3
