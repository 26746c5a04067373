import pytest

from crowdwise.datasets import LIBSVM_NAMES
from crowdwise.exceptions import MissingDataError
from crowdwise.paper.reproduce import Options, reproduce
from crowdwise.paper.reproduce.paper import TABLE3, TABLE4
from crowdwise.paper.reproduce.table3 import file_name


def test_every_set_of_the_paper_can_be_fetched_scaled_where_that_exists():
    assert list(TABLE3) == list(TABLE4)
    assert all(file_name(name) in LIBSVM_NAMES for name in TABLE3)
    assert file_name("diabetes") == "diabetes_scale"
    assert file_name("sonar") == "sonar_scale"
    assert file_name("a1a") == "a1a"


@pytest.mark.slow
@pytest.mark.usefixtures("libsvm_data")
def test_sizes_agree_but_for_the_papers_slip_and_the_stand_in_is_marked(tmp_path):
    report = reproduce("table3", Options(out=tmp_path))
    rows = {row["dataset"]: row for row in report.summary["rows"]}
    assert list(rows) == list(TABLE3)
    off = [name for name, row in rows.items() if not row["verdict"].startswith("agrees")]
    assert off == ["fourclass"]
    assert rows["fourclass"]["n_features"] == 2
    assert all(row["n_negative"] + row["n_positive"] == row["n_train"] for row in rows.values())
    assert "stand-in" in rows["w4a"]["verdict"]
    for name in ("table3.md", "table3.tex", "table3.json", "rows.csv"):
        assert "stand-in" in (tmp_path / "table3" / name).read_text()
    assert "patient" in rows["breast-cancer"]["verdict"]


def test_without_data_it_says_what_to_put_where(tmp_path, set_constants):
    set_constants("crowdwise.datasets._libsvm", SITE=(tmp_path / "nowhere").as_uri() + "/")
    with pytest.raises(MissingDataError, match="Put the file there"):
        reproduce("table3", Options(out=tmp_path, datasets=("heart",), data_home=tmp_path))
