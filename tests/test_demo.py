import sys

import pytest

from crowdwise import demo


def test_the_demo_prints_a_table_and_draws_a_picture(tmp_path, monkeypatch, capsys):
    picture = tmp_path / "demo.png"
    monkeypatch.setattr(sys, "argv", ["demo", "--trials", "3", "--out", str(picture)])
    demo.main()
    out = capsys.readouterr().out
    assert all(name in out for name in demo.METHODS)
    assert "best annotator found:  expert 1 (right on 100 %)" in out
    assert "worst annotator found: adversary 1 (right on 0 %)" in out
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_truth_is_the_best_teacher():
    trials = [demo.run_trial(seed) for seed in range(3)]
    for trial in trials:
        assert trial.auc["the truth itself"] == max(trial.auc.values())
    weighted = sum(trial.auc["all labels, easy first"] for trial in trials)
    assert weighted > sum(trial.auc["majority vote"] for trial in trials)


def test_a_picture_without_a_folder_is_told_before_the_work(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["demo", "--out", "no/such/folder/demo.png"])
    with pytest.raises(SystemExit):
        demo.main()
    assert "there is no folder" in capsys.readouterr().err
