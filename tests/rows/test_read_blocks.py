"""Arrays, files and iterators as blocks, and fits from them."""

import os
import threading

import numpy as np
import pandas as pd
import pytest
from crowds import crowd
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from crowdwise import (
    CrowdLabels,
    CrowdLogisticClassifier,
    CrowdRidgeClassifier,
    CrowdRidgeClassifierCV,
    CrowdRidgeRegressor,
    aggregate,
    read_blocks,
)
from crowdwise.exceptions import (
    AlignmentError,
    BusyError,
    CrowdWarning,
    DataError,
    LabelError,
    MissingDataError,
    MissingExtraError,
)
from crowdwise.features import read_features
from crowdwise.rows import tables as arrow
from crowdwise.rows.read import Blocks, read_ahead, rows_per_block

TIGHT = {"tol": 1e-11, "max_rounds": 300}
# So few bytes that a block of three features in double precision has ten rows.
SMALL = 10 * 4 * 3 * 8


def assert_same(one, other, rtol=1e-10):
    for name in ("coef_", "intercept_", "expertise_"):
        right = np.asarray(getattr(other, name))
        assert_allclose(getattr(one, name), right, rtol=0, atol=rtol * np.abs(right).max(), err_msg=name)


@pytest.fixture
def saved(tmp_path):
    """Features and labels as .npy files, and as arrays."""
    X, matrix = crowd(1, n_examples=64)
    y = matrix.astype(np.int8)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    return tmp_path, X, y


# ------------------------------------------------------------------ arrays


def test_files_of_arrays_give_what_fit_gives(saved):
    folder, X, y = saved
    whole = CrowdRidgeClassifier(**TIGHT).fit(X, y)
    blocks = read_blocks(folder / "X.npy", str(folder / "y.npy"), max_bytes=SMALL)
    assert [len(block.X) for block in blocks] == [10] * 6 + [4]
    model = CrowdRidgeClassifier(**TIGHT).fit(blocks)
    assert_same(model, whole)
    assert_allclose(model.accuracy_, whole.accuracy_, rtol=1e-9)
    assert_same(CrowdRidgeClassifier(**TIGHT).fit(read_blocks(X, CrowdLabels.from_matrix(y), max_bytes=SMALL)), whole)


@pytest.mark.parametrize("part", [slice(None), slice(None, None, 2), slice(3, 40), slice(0, 0)])
@pytest.mark.parametrize("mode", ["r", "c"])
def test_memory_mapped_arrays_are_read_as_they_are(saved, part, mode):
    folder, X, y = saved
    mapped = np.load(folder / "X.npy", mmap_mode=mode)[part]
    blocks = list(read_blocks(mapped, y[part], max_bytes=SMALL))
    assert_array_equal(np.concatenate([np.empty((0, 3)), *(block.X for block in blocks)]), X[part])
    assert not any(isinstance(block.X, np.memmap) for block in blocks)


def test_weights_belong_to_rows(saved):
    folder, X, y = saved
    weight = np.random.default_rng(0).uniform(0.5, 2, 64)
    blocks = read_blocks(folder / "X.npy", y, sample_weight=weight, max_bytes=SMALL)
    assert_same(CrowdRidgeClassifier(**TIGHT).fit(blocks), CrowdRidgeClassifier(**TIGHT).fit(X, y, weight))


def test_the_other_models_learn_from_blocks(saved):
    _, X, y = saved
    tuned = CrowdRidgeClassifierCV((0.0, 2.0), l2s=(0.1, 1.0), cv=3, **TIGHT)
    blocks = read_blocks(X, y, max_bytes=SMALL)
    assert_same(clone(tuned).fit(blocks), clone(tuned).partial_fit(X, y))
    ratings = np.round(X[:, :1] + y)
    rated = CrowdRidgeRegressor(**TIGHT)
    assert_same(clone(rated).fit(read_blocks(X, ratings, max_bytes=SMALL)), clone(rated).fit(X, ratings))


def test_threads_change_no_bit(saved, monkeypatch, set_constants):
    _, X, y = saved
    set_constants("crowdwise.rows.summary", ENOUGH_EXAMPLES=15)
    models = []
    for n_threads in (1, 2):
        monkeypatch.setattr("crowdwise.rows.chunks.available_cores", lambda n=n_threads: n)
        models.append(CrowdRidgeClassifier().fit(read_blocks(X + 5, y, max_bytes=SMALL)))
    one, two = models
    for name in ("coef_", "intercept_", "expertise_", "accuracy_", "temperature_"):
        assert_array_equal(getattr(one, name), getattr(two, name))
    assert_array_equal(one.sums_.summary.sample.X, two.sums_.summary.sample.X)


def test_a_fit_on_blocks_goes_on_with_partial_fit(saved):
    _, X, y = saved
    model = CrowdRidgeClassifier(**TIGHT).fit(read_blocks(X[:40], y[:40], max_bytes=SMALL)).partial_fit(X[40:], y[40:])
    assert_same(model, CrowdRidgeClassifier(**TIGHT).fit(X, y))
    assert_same(model.fit(read_blocks(X[:40], y[:40])), CrowdRidgeClassifier(**TIGHT).fit(X[:40], y[:40]))


# ------------------------------------------------------------------ blocks as such


def test_functions_lists_and_iterators_give_what_fit_gives(saved):
    _, X, y = saved
    whole = CrowdRidgeClassifier(**TIGHT).fit(X, y)
    pairs = [(X[:20], y[:20]), (X[20:20], y[20:20]), (X[20:], y[20:], np.ones(44))]
    for source in (pairs, lambda: iter(pairs)):
        blocks = read_blocks(source)
        assert_same(CrowdRidgeClassifier(**TIGHT).fit(blocks), whole)
        assert_same(CrowdRidgeClassifier(**TIGHT).fit(blocks), whole)
    once = read_blocks(iter(pairs))
    assert_same(CrowdRidgeClassifier(**TIGHT).fit(once), whole)
    with pytest.raises(DataError, match="Give a function that begins"):
        CrowdRidgeClassifier().fit(once)


def test_rows_of_a_block_are_matched_by_id(saved):
    _, X, y = saved
    frame, labels = pd.DataFrame(X), CrowdLabels.from_matrix(y, examples=range(64))
    mixed = np.random.default_rng(0).permutation(30)
    blocks = read_blocks([(frame.iloc[:30], labels[mixed]), (frame.iloc[30:], labels[30:])])
    assert_same(CrowdRidgeClassifier(**TIGHT).fit(blocks), CrowdRidgeClassifier(**TIGHT).fit(X, y))


def test_an_error_in_a_block_ends_the_fit_and_leaves_the_model_as_it_was(saved):
    _, X, y = saved

    def broken():
        yield X[:20], y[:20]
        raise OSError("the disk is gone")

    model = CrowdRidgeClassifier().partial_fit(X, y)
    sums, n_threads = model.sums_, threading.active_count()
    with pytest.raises(OSError, match="the disk is gone"):
        model.fit(read_blocks(broken))
    assert model.sums_ is sums
    assert threading.active_count() == n_threads


@pytest.mark.parametrize("model", [CrowdRidgeClassifier(), CrowdLogisticClassifier()])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_rows_of_an_error_can_be_found_in_the_file(saved, monkeypatch, model, n_threads):
    _, X, y = saved
    monkeypatch.setattr("crowdwise.rows.chunks.available_cores", lambda: n_threads)
    for row, place in ((5, "row 5 column 1. Fill them in or leave these examples out.$"), (37, "begins with row 30.$")):
        gap = X.copy()
        gap[row, 1] = np.nan
        with pytest.raises(DataError, match=place) as caught:
            clone(model).fit(read_blocks(gap, y, max_bytes=SMALL))
        assert f"1 value, at row {row % 10 if row > 9 else row} column 1" in str(caught.value)


@pytest.mark.parametrize(
    ("blocks", "error", "message"),
    [
        ([(np.zeros((3, 2)),)], DataError, r"block 0 \(from 0\) is of type tuple"),
        ([np.zeros((3, 2))], DataError, "a pair \\(X, y\\)"),
        ([], DataError, "no blocks to learn from"),
        ([(np.zeros((3, 2)), [[0], [1]])], AlignmentError, "X has 3 examples and the labels have 2"),
        (
            [(np.zeros((2, 2)), [0, 1]), (np.zeros((2, 3)), [0, 1])],
            ValueError,
            "one has 2 and another 3",
        ),
        ([(np.zeros((2, 2)), [0, 0])], LabelError, "all labels are of the one class 0"),
    ],
)
def test_wrong_blocks_are_refused(blocks, error, message):
    with pytest.raises(error, match=message):
        CrowdRidgeClassifier().fit(read_blocks(blocks))


def test_an_error_in_the_first_block_ends_the_thread_that_reads_ahead():
    n_threads = threading.active_count()
    with pytest.raises(LabelError) as told:  # whose traceback still knows the iterator
        CrowdRidgeClassifier().fit(read_blocks([(np.ones((2, 1)), [["a"], [1]])] * 3))
    assert threading.active_count() == n_threads
    assert told.value is not None


def test_a_file_that_is_not_there_is_told_as_by_other_readers(saved, tmp_path):
    _, X, y = saved
    with pytest.raises(MissingDataError, match=r"there is no file .*absent\.npy\."):
        read_blocks(tmp_path / "absent.npy", y)
    with pytest.raises(MissingDataError, match=r"there is no file .*absent\.npy\."):
        read_blocks(X, tmp_path / "absent.npy")
    with pytest.raises(MissingDataError, match=r"there is no file .*absent\."):
        read_blocks(tmp_path / "absent", labels=["ann"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="empty is not a file type"):
        read_blocks(tmp_path / "empty", labels=["ann"])
    pytest.importorskip("pyarrow")
    (tmp_path / "there.csv").write_text("x,ann\n1,0\n")
    for source in (tmp_path / "absent.csv", [tmp_path / "there.csv", tmp_path / "absent.csv"]):
        with pytest.raises(MissingDataError, match=r"there is no file .*absent\.csv\."):
            read_blocks(source, labels=["ann"])


@pytest.mark.parametrize("how", ["replaced", "written", "cut", "removed"])
@pytest.mark.parametrize("when", ["between passes", "between blocks"])
@pytest.mark.parametrize("name", ["X.npy", "y.npy", "X.csv"])
def test_a_file_that_changes_is_never_read_as_a_mixture(saved, name, when, how):
    folder, X, _ = saved
    if name == "X.csv":
        pytest.importorskip("pyarrow")
        np.savetxt(folder / name, X, delimiter=",", header="a,b,c", comments="")
    blocks = read_blocks(folder / ("X.csv" if name == "X.csv" else "X.npy"), folder / "y.npy", max_bytes=SMALL)
    if when == "between passes":
        list(blocks)
    reading = iter(blocks)
    if when == "between blocks":
        next(reading)
    path = folder / name
    content = path.read_bytes()
    if how != "written":
        path.unlink()
    if how != "removed":
        path.write_bytes(content[:-100] if how == "cut" else content)
        os.utime(path, ns=(0, 1))
    with pytest.raises(BusyError, match=f"{name} changed while it was read"):
        list(reading)


@pytest.mark.parametrize("read", [lambda path, y: read_blocks(path, y), lambda path, y: read_features(path)])
@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, 3)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999999, 3)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (True, 3)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': ()}",
        "{'descr': '|V0', 'fortran_order': False, 'shape': (3, 2)}",
        "{'descr': ",
        None,
    ],
)
def test_headers_of_arrays_that_cannot_be_are_data_errors(tmp_path, header, read):
    text = "" if header is None else header.ljust(118)
    start = b"" if header is None else b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little")
    (tmp_path / "X.npy").write_bytes(start + text.encode() + bytes(0 if header is None else 800))
    with pytest.raises(DataError, match=r"X\.npy (cannot be read as an array|is empty)"):
        read(tmp_path / "X.npy", np.zeros((3, 2)))


def test_wrong_sources_are_refused(saved):
    folder, X, y = saved
    with pytest.raises(AlignmentError, match="X has 64 rows and"):
        read_blocks(X, y[:60])
    with pytest.raises(ValueError, match="y is needed"):
        read_blocks(X)
    (folder / "features.xlsx").write_bytes(b"")
    with pytest.raises(DataError, match=r"use \.npy, \.parquet"):
        read_blocks(folder / "features.xlsx", y)
    with pytest.raises(ValueError, match="blocks have their own labels"):
        read_blocks([(X, y)], y)
    with pytest.raises(ValueError, match="name columns of a table,"):
        read_blocks(X, y, example="id")
    with pytest.raises(TypeError, match="got int"):
        read_blocks(3)
    with pytest.raises(ValueError, match="y cannot be given with blocks"):
        CrowdRidgeClassifier().fit(read_blocks(X, y), y)
    with pytest.raises(ValueError, match="looks at the consensus"):
        CrowdRidgeClassifier(class_weight="balanced").fit(read_blocks(X, y))
    (folder / "bad.npy").write_bytes(b"nothing")
    with pytest.raises(DataError, match="cannot be read as an array"):
        read_blocks(folder / "bad.npy", y)


def test_blocks_are_reported(saved, capsys):
    _, X, y = saved
    stages = []
    CrowdRidgeClassifier(verbose=1).fit(
        read_blocks(X, y, max_bytes=SMALL * 3), on_round=lambda r: stages.append(r.stage)
    )
    assert stages[:3] == ["block 1: 30 examples", "block 2: 60 examples", "block 3: 64 examples"]
    assert stages[3] == "steepness 2"
    assert "CrowdRidgeClassifier:" in capsys.readouterr().err


def test_the_next_block_is_read_while_one_is_used():
    read = []

    def items():
        for i in range(4):
            read.append(i)
            yield i

    n_threads = threading.active_count()
    ahead = read_ahead(items())
    next(ahead)
    for _ in range(1000):
        if len(read) == 2:
            break
        threading.Event().wait(0.005)
    assert read == [0, 1]  # one ahead and no more
    ahead.close()
    assert threading.active_count() == n_threads


def test_blocks_say_whether_they_can_be_read_again():
    assert repr(read_blocks([])) == "Blocks that can be read again and again"
    assert repr(read_blocks(iter([]))) == "Blocks that can be read once"
    assert isinstance(read_blocks([]), Blocks)
    assert rows_per_block(10**9, 1) == 1
    assert rows_per_block(8, 2**40) == 2**17  # what is made of more does not stay in the cache


# ------------------------------------------------------------------ tables


@pytest.fixture
def table(saved):
    pyarrow = pytest.importorskip("pyarrow")
    _, X, y = saved
    columns = {"id": [f"e{i}" for i in range(64)], **{f"x{j}": X[:, j] for j in range(3)}}
    votes = {f"ann {j}": [None if (i + j) % 7 == 0 else int(v) for i, v in enumerate(y[:, j])] for j in range(6)}
    return pyarrow.table(columns | votes), X, pd.DataFrame(votes)


def written(table, folder, kind):
    if kind == "csv":
        from pyarrow import csv

        csv.write_csv(table, folder / "all.csv")
        return folder / "all.csv"
    if kind == "arrow":
        from pyarrow import feather

        feather.write_feather(table, folder / "all.arrow")
        return folder / "all.arrow"
    from pyarrow import parquet

    (folder / "parts").mkdir()
    parquet.write_table(table.slice(0, 40), folder / "parts" / "0.parquet", row_group_size=3)
    parquet.write_table(table.slice(40), folder / "parts" / "1.parquet")
    return folder / "parts"


@pytest.mark.parametrize("kind", ["parquet", "csv", "arrow", "table", "dataset"])
def test_tables_with_a_column_per_annotator_give_what_fit_gives(table, tmp_path, kind):
    data, X, votes = table
    if kind == "table":
        source = data
    elif kind == "dataset":
        source = pytest.importorskip("pyarrow.dataset").dataset(written(data, tmp_path, "parquet"))
    else:
        source = written(data, tmp_path, kind)
    whole = CrowdRidgeClassifier(**TIGHT).fit(X, CrowdLabels.from_matrix(votes))
    names = list(votes.columns)
    blocks = read_blocks(source, labels=names, features=["x0", "x1", "x2"], max_bytes=10 * 4 * 9 * 8)
    assert all(len(block.X) < 20 for block in blocks) or kind == "csv"
    model = CrowdRidgeClassifier(**TIGHT).fit(blocks)
    assert_same(model, whole)
    assert model.annotators_.tolist() == names


@pytest.mark.parametrize("by", ["order", "id"])
def test_labels_from_elsewhere_are_matched_by_order_or_id(table, tmp_path, by):
    data, X, votes = table
    path = written(data, tmp_path, "parquet")
    features = {"features": ["x0", "x1", "x2"], "max_bytes": 10 * 4 * 4 * 8}
    labels = CrowdLabels.from_matrix(votes, examples=data["id"].to_pylist())
    whole = CrowdRidgeClassifier(**TIGHT).fit(X, labels)
    if by == "order":
        blocks = read_blocks(path, labels, **features)
    else:
        blocks = read_blocks(path, labels[::-1], example="id", **features)
    assert_same(CrowdRidgeClassifier(**TIGHT).fit(blocks), whole)
    weighted = read_blocks(path, labels, sample_weight="x0", **features)
    with pytest.raises(ValueError, match="sample_weight must be finite and"):
        CrowdRidgeClassifier().fit(weighted)


@pytest.mark.parametrize("numbers", [True, False])
def test_ids_on_one_side_only_are_an_error_unless_joined(table, tmp_path, numbers):
    data, X, votes = table
    if numbers:
        data = data.set_column(0, "id", [np.arange(64)])
    path = written(data, tmp_path, "parquet")
    ids = data["id"].to_pylist()
    given = {"example": "id", "features": ["x0", "x1", "x2"], "max_bytes": 10 * 4 * 4 * 8}
    labels = CrowdLabels.from_matrix(votes, examples=ids)
    for some, message in ((labels[:60], "4 of 4 rows of a block"), (labels, "64 of 64 examples with labels")):
        source = path if len(some) < 64 else data.slice(0, 0)
        with pytest.raises(AlignmentError, match=message):
            CrowdRidgeClassifier().fit(read_blocks(source, some, **given))
    spaced = CrowdLabels.from_matrix(votes, examples=[f" {name}" for name in ids])
    with pytest.raises(AlignmentError, match=r"12 of 12 rows .*"):
        CrowdRidgeClassifier().fit(read_blocks(path, spaced, **given))
    part = CrowdLabels.from_matrix(votes[5:60], examples=ids[5:60])
    inner = CrowdRidgeClassifier(**TIGHT).fit(read_blocks(data.slice(0, 50), part, join="inner", **given))
    assert_same(inner, CrowdRidgeClassifier(**TIGHT).fit(X[5:50], CrowdLabels.from_matrix(votes[5:50])))
    twice = pytest.importorskip("pyarrow").concat_tables([data, data.slice(3, 1)])
    with pytest.raises(AlignmentError, match="comes twice"):
        CrowdRidgeClassifier().fit(read_blocks(twice, labels, **given))
    with pytest.raises(AlignmentError, match="more rows than the 40"):
        CrowdRidgeClassifier().fit(read_blocks(data, labels[:40], features=["x0"]))
    with pytest.raises(AlignmentError, match="fewer rows than the 64"):
        CrowdRidgeClassifier().fit(read_blocks(data.slice(0, 9), labels, features=["x0"]))
    assert np.all(inner.sums_.summary.n_given == 45)


def test_the_index_that_pandas_writes_is_no_feature(table, tmp_path):
    data, _, votes = table
    frame = data.to_pandas().drop(columns="id").sample(frac=1, random_state=0)
    names = list(votes.columns)
    frame.to_parquet(tmp_path / "shuffled.parquet")  # has a column __index_level_0__ beside the others
    assert all(block.X.shape[1] == 3 for block in read_blocks(tmp_path / "shuffled.parquet", labels=names))
    frame.rename_axis("task").to_parquet(tmp_path / "named.parquet")
    labels = CrowdLabels.from_matrix(votes, examples=np.arange(64))
    blocks = read_blocks(tmp_path / "named.parquet", labels, example="task", features=["x0", "x1", "x2"])
    whole = CrowdRidgeClassifier(**TIGHT).fit(frame[["x0", "x1", "x2"]], labels)
    assert_same(CrowdRidgeClassifier(**TIGHT).fit(blocks), whole)


def test_numbers_that_look_like_ids_are_not_taken_for_features_without_a_word(table):
    data, _, votes = table
    data = data.set_column(0, "Task_ID", [np.arange(64)])
    names = list(votes.columns)
    with pytest.warns(CrowdWarning, match="the column 'Task_ID' is used"):
        read_blocks(data, labels=names)
    assert next(iter(read_blocks(data, labels=names, example="Task_ID"))).X.shape[1] == 3
    assert next(iter(read_blocks(data, labels=names, features=["Task_ID", "x0"]))).X.shape[1] == 2


@pytest.mark.parametrize("source", ["array", "table"])
def test_labels_in_a_file_of_another_kind_are_read_first(saved, table, source):
    folder, X, _ = saved
    with pytest.raises(DataError, match="y as a file must"):
        read_blocks(X if source == "array" else table[0], folder / "labels.csv")


def test_the_name_of_one_column_is_one_column(table):
    (block,) = read_blocks(table[0], labels="ann 0", features="x0")
    assert block.X.shape == (64, 1)
    assert block.y.column_names == ["ann 0"]


def test_only_fit_takes_blocks_and_says_how_to_go_on_with_others(saved):
    folder, X, y = saved
    model = CrowdRidgeClassifier().fit(X, y)
    blocks = read_blocks(X, y)
    for wrong in (lambda: model.predict(blocks), lambda: aggregate(blocks)):
        with pytest.raises(TypeError, match=r"blocks are for fit.*\[model\.predict\(block\.X\) for block in blocks\]"):
            wrong()
    with pytest.raises(AlignmentError, match=r"X must be features.*X\.npy'.*fit\(read_blocks\(\.\.\.\)\)"):
        CrowdRidgeClassifier().fit(str(folder / "X.npy"), y)


def test_wrong_columns_are_named(table):
    data, _, votes = table
    names = list(votes.columns)
    with pytest.raises(DataError, match="there is no column 'size';"):
        read_blocks(data, labels=names, features=["size"])
    with pytest.raises(DataError, match="the column 'id' is of"):
        CrowdRidgeClassifier().fit(read_blocks(data, labels=names))
    with pytest.raises(ValueError, match="say where the labels are"):
        read_blocks(data)
    with pytest.raises(ValueError, match="the name of a column"):
        read_blocks(data, labels=names, sample_weight=[1.0])
    with pytest.raises(ValueError, match="give y as CrowdLabels"):
        read_blocks(data, np.zeros((64, 2)), example="id")
    with pytest.raises(DataError, match="no column is left"):
        read_blocks(data.select(["x0"]), labels=["x0"])


def test_without_pyarrow_tables_say_what_to_install(monkeypatch, tmp_path):
    def gone(name):
        raise ImportError(name)

    monkeypatch.setattr(arrow.importlib, "import_module", gone)
    with pytest.raises(MissingExtraError, match=r"crowdwise\[arrow\]"):
        read_blocks(tmp_path / "table.parquet", labels=["ann"])
