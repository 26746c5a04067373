"""Files -> columns of text: every kind of table, and what is said of broken ones."""

import csv
import gzip
import io
import json
import os
import sys
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdwise.exceptions import BusyError, DataError, MissingDataError, MissingExtraError
from crowdwise.tables import Source, open_table
from crowdwise.tables import _source as lines_module

ROWS = "task,worker,label\na,ann,yes\nb,bob,no\n"
COLUMNS = {"task": ["a", "b"], "worker": ["ann", "bob"], "label": ["yes", "no"]}


@pytest.fixture
def saved(tmp_path):
    """Writes content to a file and gives its path."""

    def save(content, name="labels.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return save


def typed(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


@pytest.mark.parametrize(
    ("content", "notes"),
    [
        (ROWS.encode(), ()),
        (ROWS.replace("\n", "\r\n").encode(), ()),
        (ROWS.replace("\n", "\r").encode(), ()),
        (ROWS.rstrip().encode(), ()),
        (("\n" + ROWS.replace("\nb", "\n\n\nb")).encode(), ()),
        (ROWS.replace(",", ";").encode(), ("delimiter: semicolon",)),
        (ROWS.replace(",", "\t").encode(), ("delimiter: tab",)),
        (ROWS.replace(",", "|").encode(), ("delimiter: pipe",)),
        (ROWS.encode("utf-8-sig"), ("encoding: UTF-8",)),
        (ROWS.encode("utf-16"), ("encoding: UTF-16",)),
        (b"\xfe\xff" + ROWS.encode("utf-16-be"), ("encoding: UTF-16",)),
        (ROWS.encode("utf-32"), ("encoding: UTF-32",)),
        (gzip.compress(ROWS.encode(), mtime=0), ()),
        (ROWS.replace("ann", '"ann"').encode(), ()),
    ],
)
def test_tables_of_text_are_read_whatever_their_delimiter_encoding_or_line_ends(saved, monkeypatch, content, notes):
    table = open_table(saved(content))
    assert (table.header, table.notes) == (("task", "worker", "label"), notes)
    assert table.columns() == COLUMNS
    assert list(table.rows()) == [("a", "ann", "yes"), ("b", "bob", "no")]
    typed(monkeypatch, content)
    table = open_table("-")
    assert table.columns() == COLUMNS == table.columns(), "standard input can be read twice"


def test_a_pipe_is_read_and_closed_standard_input_is_told(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_text, args=[ROWS])
    writer.start()
    table = open_table(tmp_path / "pipe")
    writer.join()
    assert table.columns() == COLUMNS == table.columns()
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(MissingDataError, match="standard input is closed"):
        open_table("-")


def test_a_delimiter_is_the_one_that_cuts_all_rows_alike(saved):
    table = open_table(saved("item;rater;rating\n1;ann;3,5\n2;bob;4,0\n"))
    assert table.columns()["rating"] == ["3,5", "4,0"]
    assert open_table(saved("a,b\n1|2,3|4\n")).header == ("a", "b")
    assert open_table(saved("text\none\n")).columns() == {"text": ["one"]}
    assert open_table(saved("a:b\n1:2\n"), delimiter=":").columns() == {"a": ["1"], "b": ["2"]}
    for delimiter in (None, "\t", "\\t", "tab"):
        assert open_table(saved("a,b\tc\n1,2\t3\n", "x.tsv"), delimiter=delimiter).header == ("a,b", "c")


def test_a_line_of_spreadsheets_that_names_the_delimiter_is_no_header(saved):
    for delimiter in (";", ",", "\t", ":"):
        content = f"sep={delimiter}\ntask;worker\na;b\nc\n".replace(";", delimiter)
        table = open_table(saved(content))
        assert table.header == ("task", "worker")
        with pytest.raises(DataError, match="line 4: expected 2 cells"):
            table.columns()
        assert open_table(saved(content.removesuffix("c\n"))).columns() == {"task": ["a"], "worker": ["b"]}


def test_cells_may_hold_delimiters_quotes_and_line_ends(saved):
    table = open_table(saved('id,text\n1,"one, ""two""\nthree"\n2,=1+1\n'))
    assert table.columns()["text"] == ['one, "two"\nthree', "=1+1"]


def test_json_lines_and_lists_of_records_are_tables(saved):
    records = [{"task": "a", "label": 1}, {"task": "b", "label": None, "more": [1, "x"]}]
    expected = {"task": ["a", "b"], "label": ["1", ""], "more": ["", '[1, "x"]']}
    lines = "\n".join(map(json.dumps, records))
    for content in (lines, lines + "\n\n", json.dumps(records), json.dumps(records, indent=2)):
        table = open_table(saved(content, "labels.jsonl"))
        assert table.columns() == expected
        assert table.notes == ("format: JSON",)
    assert open_table(saved(lines.encode("utf-16"))).columns() == expected
    assert open_table(saved(gzip.compress(lines.encode(), mtime=0))).columns() == expected


def test_parquet_is_read_and_whole_numbers_stay_whole(saved, tmp_path):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"task": [1, 2], "worker": ["ann", None], "label": [1.0, None], "score": [0.5, 1.0]})
    frame.write_parquet(tmp_path / "labels.parquet")
    table = open_table(tmp_path / "labels.parquet")
    assert table.columns() == {"task": ["1", "2"], "worker": ["ann", ""], "label": ["1", ""], "score": ["0.5", "1"]}
    assert table.notes == ("format: Parquet",)
    content = (tmp_path / "labels.parquet").read_bytes()
    for broken in (content[:-20], content[: len(content) // 2], b"PAR1" + b"\xff" * 100 + b"PAR1"):
        with pytest.raises(DataError, match=r"labels\.csv.*cut off or damaged"):
            open_table(saved(broken)).columns()


@pytest.mark.parametrize(
    ("name", "decoy"),
    [("labels[1]", "labels1"), ("label*", "label-2"), ("label?", "labels"), ("task=7/~/labels", "labels")],
)
def test_signs_of_patterns_in_the_path_of_a_parquet_file_are_letters(name, decoy, tmp_path):
    polars = pytest.importorskip("polars")
    for task, path in (("mine", tmp_path / f"{name}.parquet"), ("other", tmp_path / f"{decoy}.parquet")):
        path.parent.mkdir(parents=True, exist_ok=True)
        polars.DataFrame({"task": [task], "label": ["yes"]}).write_parquet(path)
    assert open_table(tmp_path / f"{name}.parquet").columns() == {"task": ["mine"], "label": ["yes"]}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_table_that_is_replaced_before_all_of_it_is_read_is_busy(kind, tmp_path, set_constants):
    polars = pytest.importorskip("polars")
    set_constants("crowdwise.tables._table", N_ROWS=1)
    path = tmp_path / f"labels.{kind}"

    def save(first, second):
        frame = polars.DataFrame({first: ["a"] * 9, second: ["yes"] * 9})
        frame.write_csv(tmp_path / "new") if kind == "csv" else frame.write_parquet(tmp_path / "new")
        os.replace(tmp_path / "new", path)

    save("task", "label")
    table = open_table(path)
    save("label", "task")
    with pytest.raises(BusyError, match="changed while it was read"):
        table.columns(["task"])


def test_parquet_without_its_package_names_the_extra(saved, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingExtraError, match=r"crowdwise\[parquet\]"):
        open_table(saved(b"PAR1 and so on"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty; a header"),
        ("\n\n", "is empty; a header"),
        ("a,b\n1,2\n\n1,2,3\n", r"line 4: expected 2 cells, as in the header, got 3"),
        ('a,b\n"1\n2",3\n4\n', r"line 4: expected 2 cells, as in the header, got 1"),
        ('a,b\n1,2\n\n3,"4\n5,6\n', r"line 4: a quote that opens there is not closed"),
        ('a,b\n1,"2"3\n', r"line 2: quotes that are not those of a table"),
        ("a,b\n1,2\n3,\0\n", r"line 3: a NUL character"),
        (ROWS.encode("utf-16-le"), r"line 1: this looks like UTF-16 without a mark.*--encoding utf-16-le"),
        (ROWS.encode("utf-16-be"), r"--encoding utf-16-be"),
        (ROWS.encode("utf-16")[:-1], r"this is not UTF-16"),
        ("a,b\n1,2\ncafé,3\n".encode("latin-1"), r"line 3: this is not UTF-8 .*--encoding latin-1"),
        ("a,a,b\n1,2,3\n", "'a' occurs more than once"),
        (gzip.compress(ROWS.encode() * 9, mtime=0)[:-9], "cut off or damaged"),
        (gzip.compress(ROWS.encode() * 9, mtime=0)[:40] + b"x" * 40, "cut off or damaged"),
        (b"PK\x03\x04 and so on", "is a zip archive"),
        ('{"a": 1}\n{"a": \n', r"line 2: this is not JSON"),
        ('{"a": 1}\n[2]\n', r"line 2: a record with names and values was expected"),
        ('[{"a": 1}, 5]', r"record 2: a record"),
        ('[{"a": 1},\n{"a" 1}]', r"line 2, column 6: this is not JSON"),
        ("[", r"line 1, column 2: this is not JSON"),
        ("[" * 100_000, "cannot be read"),
        ('{"a": Infinity}\n{"a": 1}\n', "line 1: this is not JSON"),
        ('[{"a": "caf\xe9"}]'.encode("latin-1"), "line 1: this is not UTF-8"),
    ],
)
def test_broken_files_are_refused_with_the_file_and_the_line(saved, content, message):
    path = saved(content)
    with pytest.raises(DataError, match=message) as error:
        open_table(path).columns()
    assert str(path) in str(error.value)


def test_latin_1_is_read_if_it_is_named(saved):
    path = saved("a,b\ncafé,2\n".encode("latin-1"))
    assert open_table(path, encoding="latin-1").columns()["a"] == ["café"]
    with pytest.raises(ValueError, match="encoding must be one that"):
        open_table(path, encoding="latin-99")


def test_files_that_are_not_there_and_folders_are_told_apart(tmp_path):
    with pytest.raises(MissingDataError, match="there is no file"):
        open_table(tmp_path / "none.csv")
    with pytest.raises(DataError, match="is a folder"):
        open_table(tmp_path)
    with pytest.raises(DataError, match="cannot be the name"):
        open_table("a\0b")


@pytest.mark.parametrize("delimiter", ["", ",,", '"', "\n"])
def test_a_delimiter_is_one_character(saved, delimiter):
    with pytest.raises(ValueError, match="delimiter must be one character"):
        open_table(saved(ROWS), delimiter=delimiter)


def test_a_column_that_is_not_there_is_answered_with_those_that_are(saved):
    with pytest.raises(DataError, match="no column 'x'; its columns"):
        open_table(saved(ROWS)).columns(["x"])


def test_a_small_file_that_swells_is_refused_before_it_fills_the_memory(saved, set_constants):
    set_constants(lines_module, LONGEST=2**20)
    bomb = saved(gzip.compress(b"0" * 2**23, mtime=0))
    with pytest.raises(DataError, match="a line of more than"):
        open_table(bomb)
    set_constants("crowdwise.tables._source", _LARGE=2**20)
    with pytest.raises(DataError, match="which is unusual"):
        Source(str(bomb)).read()


def test_lines_of_rows_are_known_after_cells_with_line_ends_and_empty_lines(saved):
    path = saved('a,b\n\n"1\n1",2\n\n\n3,4\r\n"5\r\n5\r5",6\n7,8\n')
    (block,) = open_table(path).blocks()
    assert [block.line_of(i) for i in range(4)] == [3, 7, 8, 11]


def test_columns_without_a_name_get_their_number(saved):
    assert open_table(saved(",task\n0,a\n")).header == ("column 1", "task")


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)


@settings(max_examples=40)
@given(st.lists(st.tuples(texts, texts), max_size=6), st.sampled_from(",;\t|"), st.sampled_from(["utf-8", "utf-16"]))
def test_whatever_is_written_comes_back(tmp_path_factory, rows, delimiter, encoding):
    path = tmp_path_factory.mktemp("tables") / "any.csv"
    with path.open("w", newline="", encoding=encoding) as file:
        csv.writer(file, delimiter=delimiter).writerows([("first", "second"), *rows])
    assert list(open_table(path, delimiter=delimiter).rows()) == rows
