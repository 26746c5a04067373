import csv
import io
import json

import numpy as np
import pytest

from crowdwise.exceptions import DataError
from crowdwise.runs.result_table import ResultTable, as_json, read_table

ODD = ["=1+1", "+1x", "-x", "@SUM(A1)", "\tx", "\rx", "a,b", 'say "x"', "two\nlines", "'quoted", "ß", "<b>"]
ODD += ["'=1+1", "''=1+1", "'-1", "'", "''"]


def test_cells_that_look_like_formulas_stay_text_and_come_back_as_they_were(tmp_path):
    table = ResultTable("consensus", {"example": ODD, "label": ["x"] * len(ODD)})
    rows = list(csv.reader(io.StringIO(table.as_csv(), newline="")))[1:]
    for (cell, _), value in zip(rows, ODD, strict=True):
        assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
        assert cell in (value, "'" + value)
    (tmp_path / "consensus.csv").write_text(table.as_csv(), encoding="utf-8", newline="")
    assert read_table(tmp_path / "consensus.csv", "consensus").columns["example"] == ODD


def test_numbers_are_written_short_and_what_is_not_there_is_empty():
    gain, labels = np.array([1 / 3, np.nan]), np.array([-1, 2])
    table = ResultTable("next", {"gain": gain, "labels": labels, "label": ["-1", "1e5"]})
    assert table.as_csv() == "gain,labels,label\n0.333333,-1,-1\n,2,1e5\n"
    rows = json.loads("".join(table.json_parts()))["rows"]
    assert rows == [{"gain": 1 / 3, "labels": -1, "label": "-1"}, {"gain": None, "labels": 2, "label": "1e5"}]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["7", "12"], [7, 12]),
        (["7", "1e5"], ["7", "1e5"]),
        (["007", "12"], ["007", "12"]),
        (["nan", "inf"], ["nan", "inf"]),
        (["", "3"], [None, 3]),
    ],
)
def test_ids_are_whole_numbers_only_if_all_of_them_are(tmp_path, ids, expected):
    (tmp_path / "next.csv").write_text(f"example,gain,labels\n{ids[0]},0.5,3\n{ids[1]},1,4\n")
    table = read_table(tmp_path / "next.csv", "next")
    assert table.columns == {"example": expected, "gain": [0.5, 1.0], "labels": [3, 4]}
    assert isinstance(table.columns["gain"][1], float)


@pytest.mark.parametrize("content", ["", "example,gain\n1\n", 'example\n"1\n', "example,gain\n1,x\n"])
def test_a_damaged_table_is_a_data_error(tmp_path, content):
    (tmp_path / "next.csv").write_text(content)
    with pytest.raises(DataError, match=r"next\.csv is damaged"):
        read_table(tmp_path / "next.csv", "next")


def test_text_is_aligned_and_tells_a_terminal_nothing_but_letters():
    names = ["ann", "\x1b[31mbob\n"]
    table = ResultTable("annotators", {"annotator": names, "labels": [5, 12], "accuracy": [0.5, None]})
    assert table.as_text().splitlines() == [
        "annotator  labels  accuracy",
        "ann             5     0.500",
        "�[31mbob       12",
    ]


def test_the_shape_of_json_has_a_version():
    assert json.loads(as_json("check", {"alpha": 0.5})) == {"schema": "crowdwise.check/1", "alpha": 0.5}
    table = ResultTable("next", {"example": list(range(25_000))})
    read = json.loads("".join(table.json_parts()))
    assert read["schema"] == "crowdwise.next/1"
    assert [row["example"] for row in read["rows"]] == list(range(25_000))
    assert json.loads("".join(ResultTable("next", {"example": []}).json_parts()))["rows"] == []
