import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.utils import Bunch

from crowdwise.exceptions import BusyError, MissingDataError
from crowdwise.paper.reproduce import Options, reproduce, table4
from crowdwise.paper.reproduce.paper import TABLE4
from crowdwise.paper.reproduce.table3 import fetch
from crowdwise.paper.reproduce.table4 import fingerprint, summarize, table, trial_rows

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


def test_without_any_data_it_says_what_to_put_where(tmp_path, set_constants):
    set_constants("crowdwise.datasets._libsvm", SITE=(tmp_path / "nowhere").as_uri() + "/")
    with pytest.raises(MissingDataError, match="Put the file there"):
        reproduce("table4", Options(out=tmp_path / "out", datasets=("heart",), data_home=tmp_path))
    assert not (tmp_path / "out").exists()  # found out before anything was made


@pytest.mark.slow
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
def test_a_missing_set_is_left_out_and_named(tmp_path, set_constants):
    set_constants("crowdwise.datasets._libsvm", SITE=(tmp_path / "nowhere").as_uri() + "/")
    from crowdwise.datasets import data_directory

    (tmp_path / "libsvm").mkdir()
    (tmp_path / "libsvm" / "heart_scale.xz").symlink_to(data_directory() / "libsvm" / "heart_scale.xz")
    options = Options(out=tmp_path / "out", datasets=("heart", "sonar"), trials=1, data_home=tmp_path)
    report = reproduce("table4", options)
    assert list(report.summary["missing"]) == ["sonar"]
    assert "Missing: sonar." in report.as_text()


@pytest.mark.usefixtures("libsvm_data")
def test_a_set_has_the_same_rows_whichever_others_are_run():
    key = ("sonar", fingerprint(fetch("sonar", None)), 2)
    alone = trial_rows(key, Options(datasets=("sonar",)), [2.0])
    assert alone == trial_rows(key, Options(datasets=("heart", "sonar")), [2.0])
    with pytest.raises(BusyError, match="the data of sonar changed"):
        trial_rows(("sonar", "other data", 2), Options(), [2.0])


def test_the_fingerprint_minds_every_part_and_nothing_else():
    data = Bunch(X=np.eye(3), truth=np.array([1, -1, 1]), X_test=None, truth_test=None)
    own = fingerprint(data)
    assert own == fingerprint(Bunch(**{**data, "X": np.asfortranarray(np.eye(3)), "name": "another"}))
    others = {"X": -np.eye(3), "truth": np.array([1, 1, -1]), "X_test": np.eye(3), "truth_test": np.array([1])}
    prints = [fingerprint(Bunch(**{**data, name: value})) for name, value in others.items()]
    prints.append(fingerprint(Bunch(**{**data, "X": csr_array(np.eye(3))})))
    assert len({own, *prints}) == 6


def test_rows_of_the_stand_in_and_of_the_original_are_not_mixed(tmp_path, monkeypatch):
    """The original turns up between two runs: its trials are run, and those of the stand-in do not count."""

    def data(stand_in):
        rng = np.random.default_rng(int(stand_in))
        truth = np.repeat([1, -1], 40)
        X = rng.normal(size=(80, 3)) + truth[:, np.newaxis]
        return Bunch(X=X, truth=truth, X_test=None, truth_test=None, stand_in=stand_in)

    def run(out, stand_in, trials):
        table4._load.cache_clear()
        monkeypatch.setattr(table4, "fetch", lambda *_: data(stand_in))
        options = Options(out=out, datasets=("w4a",), trials=trials, steepnesses=(2.0,), redraw=False)
        return table4.reproduce(options)

    first = run(tmp_path / "both", True, 2)
    assert first.summary["datasets"][0]["dataset"] == "w4a (stand-in)"
    both = run(tmp_path / "both", False, 3).summary
    assert both == run(tmp_path / "alone", False, 3).summary
    assert both["datasets"][0]["dataset"] == "w4a"
    rows = (tmp_path / "both" / "table4" / "rows.csv").read_text().splitlines()[1:]
    assert len(rows) == 2 * (2 + 3)
    assert {tuple(row.split(",")[1:3]) for row in rows} == {
        (fingerprint(data(stand_in)), str(int(stand_in))) for stand_in in (True, False)
    }
    again = run(tmp_path / "both", True, 2).summary  # nothing was lost
    assert again == first.summary
    table4._load.cache_clear()
