import csv
import io
import json

import numpy as np

from crowdwise.runs.result_table import ResultTable, as_json

ODD = ["=1+1", "+1x", "-x", "@SUM(A1)", "\tx", "\rx", "a,b", 'say "x"', "two\nlines", "'quoted", "ß", "<b>"]
ODD += ["'=1+1", "''=1+1", "'-1", "'", "''"]


def test_cells_that_look_like_formulas_stay_text():
    table = ResultTable("consensus", {"example": ODD, "label": ["x"] * len(ODD)})
    rows = list(csv.reader(io.StringIO(table.as_csv(), newline="")))[1:]
    for (cell, _), value in zip(rows, ODD, strict=True):
        assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
        assert cell in (value, "'" + value)


def test_numbers_are_written_short_and_what_is_not_there_is_empty():
    gain, labels = np.array([1 / 3, np.nan]), np.array([-1, 2])
    table = ResultTable("next", {"gain": gain, "labels": labels, "label": ["-1", "1e5"]})
    assert table.as_csv() == "gain,labels,label\n0.333333,-1,-1\n,2,1e5\n"
    rows = json.loads("".join(table.json_parts()))["rows"]
    assert rows == [{"gain": 1 / 3, "labels": -1, "label": "-1"}, {"gain": None, "labels": 2, "label": "1e5"}]


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
