import csv
import json

import numpy as np

from crowdwise import CrowdLabels
from crowdwise.crowd import disagreement
from crowdwise.paper.reproduce import Options, reproduce
from crowdwise.paper.reproduce.paper import TABLE1


def test_the_columns_without_chance_equal_the_papers_but_for_its_slip(tmp_path):
    rows = reproduce("table1", Options(out=tmp_path)).summary["rows"]
    assert [row["f"] for row in rows] == [round(-1 + i / 10, 1) for i in range(21)]
    assert [row["truth"] for row in rows] == [-1] * 10 + [1] * 11
    differs = {row["f"]: (row["flip_score"], row["paper_flip_score"]) for row in rows if row["verdict"] != "agrees"}
    assert differs == {-0.4: (0.54, 0.55)}
    assert all(row["flip_score"] == row["paper_flip_score"] for row in rows if row["f"] != -0.4)


def test_our_disagreement_of_the_papers_labels_is_the_papers():
    signs = [[1 if sign == "+" else -1 for sign in labels] for _, labels, _ in TABLE1]
    found = disagreement(CrowdLabels.from_matrix(signs), relative_to=None)
    assert found.tolist() == [stated for _, _, stated in TABLE1]


def test_disagreement_of_our_own_labels_is_counted_right(tmp_path):
    for row in reproduce("table1", Options(out=tmp_path, seed=3)).summary["rows"]:
        signs = np.array([1 if sign == "+" else -1 for sign in row["labels"].strip("[]")])
        assert len(signs) == 10
        pairs = [(a - b) ** 2 for i, a in enumerate(signs) for b in signs[:i]]
        assert row["disagreement"] == sum(pairs)


def test_everything_is_left_in_the_folder_and_a_seed_gives_the_same_bytes(tmp_path):
    for place in ("one", "two"):
        reproduce("table1", Options(out=tmp_path / place, seed=5))
    for name in ("rows.csv", "table1.md", "table1.tex", "table1.json"):
        one, two = ((tmp_path / place / "table1" / name).read_bytes() for place in ("one", "two"))
        assert one == two
    assert json.loads((tmp_path / "one" / "table1" / "run.json").read_text())["seed"] == 5


def test_another_seed_gives_other_labels(tmp_path):
    one, two = (reproduce("table1", Options(out=tmp_path / str(seed), seed=seed)).summary["rows"] for seed in (0, 1))
    assert [row["labels"] for row in one] != [row["labels"] for row in two]


def test_no_cell_of_text_looks_like_a_formula_to_a_spreadsheet(tmp_path):
    reproduce("table1", Options(out=tmp_path))
    with open(tmp_path / "table1" / "rows.csv", newline="") as file:
        assert not any(row["labels"][0] in "=+-@" for row in csv.DictReader(file))
