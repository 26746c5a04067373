import json
import shutil

import numpy as np
import pytest
from crowd_files import write_crowd

pytest.importorskip("jinja2")
pytest.importorskip("filelock")

from crowdwise import CrowdLabels, load
from crowdwise.exceptions import DataError, MissingDataError, MissingExtraError, OutputError
from crowdwise.runs import Inputs, Settings, fit, fit_inputs, open_run

FILES = ["annotators.csv", "consensus.csv", "features.json", "labels.crowdwise", "model.crowdwise"]
FILES += ["next.csv", "report.html", "run.json"]


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    """Files, and a run of them in "run"."""
    folder = write_crowd(tmp_path_factory.mktemp("crowd"))
    settings = {"features_as": {"columns": ["size", "colour"]}, "truth": folder / "truth.csv", "command": "as typed"}
    fit(folder / "labels.csv", folder / "features.csv", out=folder / "run", **settings)
    return folder


def truth_of(folder):
    return [line.split(",")[1] for line in (folder / "truth.csv").read_text().splitlines()[1:]]


def test_a_run_leaves_all_its_files(crowd):
    assert sorted(path.name for path in (crowd / "run").iterdir()) == FILES
    note = json.loads((crowd / "run" / "run.json").read_text())
    assert note["command"] == "as typed"
    assert "as typed" in (crowd / "run" / "report.html").read_text(encoding="utf-8")
    assert note["files"] == FILES
    assert note["found"]["model"] == "logistic"
    assert note["found"]["steepness"] >= 0
    assert [given["what"] for given in note["inputs"]] == ["labels", "features", "truth"]
    assert all(len(given["sha256"]) == 64 for given in note["inputs"])
    assert note["versions"]["crowdwise"]


def test_the_tables_say_who_is_right_and_who_is_not(crowd):
    run = open_run(crowd / "run")
    consensus, annotators = run.table("consensus").columns, run.table("annotators").columns
    assert np.mean([a == b for a, b in zip(consensus["label"], truth_of(crowd), strict=True)]) > 0.85
    assert sorted(consensus["order"]) == list(range(1, 61))
    assert {"p(no)", "p(yes)", "majority", "disagreement", "easiness", "confidence"} <= {*consensus}
    assert annotators["annotator"][-1] == "eve"
    assert "worse than chance" in annotators["flags"][-1]
    assert (np.diff(annotators["expertise"]) <= 0).all()
    next_ones = run.table("next").columns
    assert (np.diff(next_ones["gain"]) <= 0).all()
    assert all(next_ones["reason"])


@pytest.mark.parametrize("how", [{}, {"crowd": True}, {"at_random": True}])
def test_a_run_that_was_kept_has_the_tables_that_it_had(crowd, how):
    files = crowd / "labels.csv", crowd / "features.csv"
    before = fit(*files, truth=crowd / "truth.csv", features_as={"columns": ["size", "colour"]})
    kept = open_run(crowd / "run")
    assert kept.kept.truth == before.inputs.truth
    assert kept.kept.labels == before.inputs.labels
    assert kept.next(5, **how).as_csv() == before.next(5, **how).as_csv()
    for name in ("consensus", "annotators", "next"):
        assert kept.table(name).as_csv() == before.table(name).as_csv() == (crowd / "run" / f"{name}.csv").read_text()


def test_the_same_files_make_the_same_bytes(crowd, tmp_path):
    settings = {"features_as": {"columns": ["size", "colour"]}, "truth": crowd / "truth.csv", "command": "as typed"}
    fit(crowd / "labels.csv", crowd / "features.csv", out=tmp_path / "again", **settings)
    for name in FILES[:-1]:
        assert (tmp_path / "again" / name).read_bytes() == (crowd / "run" / name).read_bytes(), name


def test_predictions_of_the_saved_run_are_those_of_the_model(crowd):
    table = open_run(crowd / "run").predict(crowd / "features.csv")
    assert np.mean([a == b for a, b in zip(table.columns["label"], truth_of(crowd), strict=True)]) > 0.7
    p = np.array([table.columns["p(no)"], table.columns["p(yes)"]])
    np.testing.assert_allclose(p.sum(axis=0), 1)
    np.testing.assert_allclose(p.max(axis=0), table.columns["confidence"])


def test_a_run_of_labels_alone_has_no_predictions(crowd, tmp_path):
    settings = Settings("labels-only")  # though there are features
    fit(crowd / "labels.csv", crowd / "features.csv", out=tmp_path / "run", settings=settings)
    assert not (tmp_path / "run" / "features.json").exists()
    assert load(tmp_path / "run" / "model.crowdwise").n_rounds > 0
    with pytest.raises(DataError, match="fitted to labels alone"):
        open_run(tmp_path / "run").predict(crowd / "features.csv")


def test_an_earlier_run_is_replaced_only_if_asked_and_only_if_nothing_else_is_in_it(crowd, tmp_path):
    shutil.copytree(crowd / "run", tmp_path / "run")
    with pytest.raises(OutputError, match="already exists"):
        fit(crowd / "labels.csv", out=tmp_path / "run")
    (tmp_path / "run" / "mine.txt").write_text("precious")
    with pytest.raises(OutputError, match="not replaced because it also holds"):
        fit(crowd / "labels.csv", out=tmp_path / "run", force=True)
    (tmp_path / "run" / "mine.txt").unlink()
    fit(crowd / "labels.csv", out=tmp_path / "run", force=True)
    assert "features.json" not in [path.name for path in (tmp_path / "run").iterdir()]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("precious")
    with pytest.raises(OutputError, match="not a run of crowdwise fit"):
        fit(crowd / "labels.csv", out=tmp_path / "other", force=True)


@pytest.mark.parametrize(
    ("note", "words"),
    [
        (None, r"not a run of crowdwise fit: it has no run\.json"),
        ("{", r"run\.json is damaged"),
        ("[]", "not the note of a run"),
        (
            '{"schema": "crowdwise.run/9", "versions": {"crowdwise": "7.0"}}',
            r"written by crowdwise 7\.0 as crowdwise\.run/9",
        ),
    ],
)
def test_a_folder_that_is_no_run_of_this_version_is_told(tmp_path, note, words):
    if note is not None:
        (tmp_path / "run.json").write_text(note)
    with pytest.raises(DataError, match=words):
        open_run(tmp_path)


def test_a_run_that_is_not_there_is_told(tmp_path):
    with pytest.raises(MissingDataError, match="there is no folder"):
        open_run(tmp_path / "run")


def test_a_missing_extra_is_told_before_the_work(crowd, tmp_path, monkeypatch):
    monkeypatch.setattr("crowdwise.runs.run.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"needs Jinja2: pip install 'crowdwise\[cli\]'"):
        fit(crowd / "no such file.csv", out=tmp_path / "run")


LABELS = CrowdLabels.from_matrix([["a", "a", "b"], ["b", "b", "b"], ["a", "a", "a"], ["b", "a", "b"]] * 5)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"model": "ridge"}, "learns from features"),
        ({"model": "cubist"}, "model must be"),
        ({"l2": 3.0}, "has no l2"),
        ({"steepness": -1.0}, "steepness must be"),
        ({"choose_by_truth": True}, "not of labels-only"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        fit_inputs(Inputs(LABELS), Settings(**settings))


def test_known_answers_choose_only_if_asked(crowd, monkeypatch):
    given = []
    from crowdwise.runs import models

    fit_ridge = models.CrowdRidgeClassifierCV.fit

    def spy(self, X, y, truth=None, **others):
        given.append(truth)
        return fit_ridge(self, X, y, truth=truth, **others)

    monkeypatch.setattr(models.CrowdRidgeClassifierCV, "fit", spy)
    files = {"labels": crowd / "labels.csv", "features": crowd / "features.csv", "truth": crowd / "truth.csv"}
    fit(**files, settings=Settings("ridge", 1.0, 1.0), features_as={"columns": ["size"]})
    fit(**files, settings=Settings(choose_by_truth=True), features_as={"columns": ["size"]})
    assert given[0] is None
    assert len(given[1]) == 60
