import pytest

from crowdwise.exceptions import MissingDataError
from crowdwise.reproduce import Options, reproduce
from crowdwise.reproduce.paper import TABLE4
from crowdwise.reproduce.table4 import summarize, table, trial_rows

RUN = {"seed": 0, "redraw": True, "trials": 100, "missing": {}}


def rows_with(name, wins_of_each, stand_in=0):
    """Rows of 100 trials in which every steepness wins as often as told, in both measures."""
    return [
        {"dataset": name, "trial": trial, "stand_in": stand_in, "steepness": steepness, "roc": value, "prc": value,
         "converged": 1, "redrawn": 1}
        for trial in range(100)
        for steepness, value in [(0.0, 0.5), *((a, 0.6 if trial < n else 0.4) for a, n in wins_of_each.items())]
    ]  # fmt: skip


def test_cells_are_counted_and_those_outside_are_named():
    assert TABLE4["diabetes"][1.0].roc_wins == 84
    assert TABLE4["diabetes"][1.0].prc_wins == 80
    summary = summarize(rows_with("diabetes", {1.0: 96, 2.0: 80, 5.0: 66}), RUN)
    assert (summary["cells"], summary["within"]) == (6, 5)
    assert summary["outside"] == ["diabetes, α=1, AU-PRC: 96 (paper: 80, +16)"]
    assert summary["datasets"][0]["verdict"] == "1 of 6 cells off"
    assert summary["datasets"][0]["redrawn"] == 100


def test_the_table_marks_the_stand_in_and_speaks_of_the_patients_number():
    summary = summarize(rows_with("w4a", {1.0: 50}, stand_in=1) + rows_with("breast-cancer", {1.0: 50}), RUN)
    text = table(summary).markdown()
    assert "| w4a (stand-in) | 50* / 50* (85 / 81) | 100 |" in text
    assert "Stand-in: not the original" in text
    assert "patient's number" in text
    assert "w4a (stand-in), α=1" in " ".join(summary["outside"])


def test_without_any_data_it_says_what_to_put_where(tmp_path, monkeypatch):
    monkeypatch.setattr("crowdwise.datasets.libsvm.SITE", (tmp_path / "nowhere").as_uri() + "/")
    with pytest.raises(MissingDataError, match="Put the file there"):
        reproduce("table4", Options(out=tmp_path / "out", datasets=("heart",), data_home=tmp_path))
    assert not (tmp_path / "out").exists()  # found out before anything was made


@pytest.mark.usefixtures("libsvm_data")
def test_quick_version_shows_the_strong_effect_and_the_same_bytes_whatever_the_processes(tmp_path):
    sets = ("splice", "heart")
    for place, jobs in (("one", 1), ("two", 2)):
        report = reproduce("table4", Options(out=tmp_path / place, datasets=sets, trials=6, jobs=jobs))
    for name in ("rows.csv", "table4.md", "table4.tex", "table4.json"):
        one, two = ((tmp_path / place / "table4" / name).read_bytes() for place in ("one", "two"))
        assert one == two
    splice = report.summary["datasets"][0]["cells"]
    assert [cell["steepness"] for cell in splice] == [1.0, 2.0, 5.0]
    assert splice[0]["roc"]["wins"] >= 5  # 93 of 100 in the paper
    assert splice[1]["roc"]["mean"] > splice[1]["roc"]["mean_unweighted"]


@pytest.mark.usefixtures("libsvm_data")
def test_a_missing_set_is_left_out_and_named(tmp_path, monkeypatch):
    monkeypatch.setattr("crowdwise.datasets.libsvm.SITE", (tmp_path / "nowhere").as_uri() + "/")
    from crowdwise.datasets import data_directory

    (tmp_path / "libsvm").mkdir()
    (tmp_path / "libsvm" / "heart_scale.xz").symlink_to(data_directory() / "libsvm" / "heart_scale.xz")
    options = Options(out=tmp_path / "out", datasets=("heart", "sonar"), trials=1, data_home=tmp_path)
    report = reproduce("table4", options)
    assert list(report.summary["missing"]) == ["sonar"]
    assert "Missing: sonar." in report.as_text()


@pytest.mark.usefixtures("libsvm_data")
def test_a_set_has_the_same_rows_whichever_others_are_run():
    alone = trial_rows(("sonar", 2), Options(datasets=("sonar",)), [2.0])
    assert alone == trial_rows(("sonar", 2), Options(datasets=("heart", "sonar")), [2.0])
