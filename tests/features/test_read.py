import numpy as np
import polars as pl
import pytest

from crowdwise.exceptions import DataError, MissingDataError
from crowdwise.features import read_features


def table(tmp_path, text, name="features.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    "content",
    [
        "id,size\n7,1\n8,2\n",
        "\ufeffid;size\r\n7;1\r\n8;2\r\n",
        "id\tsize\n7\t1\n8\t2\n",
        '{"id": 7, "size": 1}\n{"id": 8, "size": 2}\n',
        "id,size\n7,1\n8,2\n".encode("utf-16"),
    ],
    ids=["csv", "semicolons", "tabs", "json lines", "utf-16"],
)
def test_tables_of_any_kind_are_read(tmp_path, content):
    features = read_features(table(tmp_path, content))
    assert features.ids.tolist() == ["7", "8"]
    assert features.X.tolist() == [[-1.0], [1.0]]


def test_a_numpy_file_has_the_numbers_of_its_rows_as_ids(tmp_path):
    np.save(tmp_path / "X.npy", np.array([[0.0, 5.0], [2.0, 5.0]], dtype=np.float32))
    features = read_features(tmp_path / "X.npy")
    assert features.ids.tolist() == ["0", "1"]
    assert features.X.tolist() == [[-1.0, 0.0], [1.0, 0.0]]
    again = read_features(tmp_path / "X.npy", recipe=features.recipe)
    assert again.X.tolist() == features.X.tolist()


def test_a_pickle_in_a_numpy_file_is_never_run(tmp_path):
    np.save(tmp_path / "X.npy", np.array([[{}]]), allow_pickle=True)
    with pytest.raises(DataError, match="cannot be read as an array"):
        read_features(tmp_path / "X.npy")


def test_a_header_that_claims_terabytes_is_a_data_error(tmp_path):
    np.save(tmp_path / "X.npy", np.zeros((2, 2)))
    claims = (tmp_path / "X.npy").read_bytes().replace(b"(2, 2), }" + 6 * b" ", b"(999999999, 2)}")
    assert b"(999999999, 2)}" in claims
    (tmp_path / "X.npy").write_bytes(claims)
    with pytest.raises(DataError, match="cannot be read as an array"):
        read_features(tmp_path / "X.npy")


@pytest.mark.parametrize("values", [np.zeros(3), np.array([["a"]]), np.zeros((0, 2))])
def test_a_numpy_file_without_a_matrix_of_numbers_is_a_data_error(tmp_path, values):
    np.save(tmp_path / "X.npy", values)
    with pytest.raises(DataError, match="were expected"):
        read_features(tmp_path / "X.npy")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n", r"which column holds the ids.*are a, b.*--id COLUMN"),
        ("task,item,b\n1,2,3\n", r"'task' and 'item' may both hold the ids.*--id task"),
        ("id,b\n1,2\n1,3\n", "row 2 .*'1' occurs a second time, after .*row 1"),
        ("id,b\n1,2\n,3\n", "row 2 .*it is empty"),
        ("id,b\n", "no rows"),
        ("id\n1\n", "no column can be used"),
    ],
)
def test_a_doubt_is_an_error_that_says_what_to_do(tmp_path, text, words):
    with pytest.raises(DataError, match=words):
        read_features(table(tmp_path, text))


def test_a_file_that_is_not_there_is_told(tmp_path):
    with pytest.raises(MissingDataError, match=r"no file .*features\.csv"):
        read_features(tmp_path / "features.csv")


def test_texts_are_kept_to_be_shown(tmp_path):
    features = read_features(table(tmp_path, "id,text\n1,a film\n2,a film too\n"), text=["text"])
    assert features.texts == ["a film", "a film too"]
    again = read_features(table(tmp_path, "id,text\n3,film\n", "new.csv"), recipe=features.recipe)
    assert again.texts == ["film"]


def test_new_rows_come_as_those_of_the_fit_did(tmp_path):
    np.save(tmp_path / "fit.npy", np.eye(2))
    of_matrix = read_features(tmp_path / "fit.npy").recipe
    of_table = read_features(table(tmp_path, "id,size\n7,1\n8,2\n")).recipe
    with pytest.raises(DataError, match="is no NumPy file; the"):
        read_features(tmp_path / "features.csv", recipe=of_matrix)
    with pytest.raises(DataError, match="is a NumPy file; the"):
        read_features(tmp_path / "fit.npy", recipe=of_table)


@pytest.mark.parametrize(
    ("name", "content"),
    [("ids.txt", "u\nv\n"), ("ids.csv", "name\nu\nv\n"), ("ids.csv", "size,id\n1,u\n2,v\n"), ("ids.npy", None)],
)
def test_a_numpy_file_can_have_ids_of_its_own(tmp_path, name, content):
    np.save(tmp_path / "X.npy", np.eye(2))
    if content is None:
        np.save(tmp_path / name, np.array(["u", "v"]))
    else:
        (tmp_path / name).write_text(content)
    assert read_features(tmp_path / "X.npy", ids=tmp_path / name).ids.tolist() == ["u", "v"]


def test_ids_of_another_number_of_rows_are_an_error(tmp_path):
    np.save(tmp_path / "X.npy", np.eye(2))
    (tmp_path / "ids.txt").write_text("a\nb\nc\nd\n")
    with pytest.raises(DataError, match="has 3 ids, and the"):
        read_features(tmp_path / "X.npy", ids=tmp_path / "ids.txt")
    (tmp_path / "twice.txt").write_text("a\na\n")
    with pytest.raises(DataError, match="'a' occurs a second time"):
        read_features(tmp_path / "X.npy", ids=tmp_path / "twice.txt")
    path = table(tmp_path, "id,size\n7,1\n8,2\n")
    with pytest.raises(DataError, match="--id COLUMN"):
        read_features(path, ids=tmp_path / "ids.txt")


@pytest.mark.parametrize("of", [pl.List(pl.Float32), pl.Array(pl.Float64, 2), pl.List(pl.Int64)])
def test_lists_of_numbers_in_parquet_are_those_of_text(tmp_path, of):
    vectors = [[1, 2], [3, 5], [2, 2]]
    frame = pl.DataFrame({"id": ["a", "b", "c"], "v": pl.Series(vectors, dtype=of)})
    frame.write_parquet(tmp_path / "v.parquet")
    features = read_features(tmp_path / "v.parquet", embedding=["v"])
    rows = "".join(f'{name},"{vector}"\n' for name, vector in zip("abc", vectors, strict=True))
    text = read_features(table(tmp_path, f"id,v\n{rows}"), embedding=["v"])
    assert features.X.tolist() == text.X.tolist()
    assert read_features(tmp_path / "v.parquet", recipe=text.recipe).X.tolist() == text.X.tolist()


def test_lists_in_parquet_of_several_lengths_are_an_error_and_gaps_are_filled(tmp_path):
    pl.DataFrame({"id": ["a", "b"], "v": [[1.0, 2.0], [1.0]]}).write_parquet(tmp_path / "v.parquet")
    with pytest.raises(DataError, match="must be of one length"):
        read_features(tmp_path / "v.parquet", embedding=["v"])
    pl.DataFrame({"id": ["a", "b", "c"], "v": [[1.0, 2.0], None, [3.0, 4.0]]}).write_parquet(tmp_path / "v.parquet")
    assert "1 gap in 'v' was filled with the median" in read_features(tmp_path / "v.parquet", embedding=["v"]).notes
