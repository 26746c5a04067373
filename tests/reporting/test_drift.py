import numpy as np
import pytest

from crowdwise import CrowdLabels, aggregate, slice_accuracy
from crowdwise.exceptions import DataError, LabelError
from crowdwise.reporting import render_html, summarize, summary_lines
from crowdwise.runs import compare_runs, fit, read_inputs
from crowdwise.slices import accuracy_over_time

DAYS = np.datetime64("2026-01-01") + np.arange(400)


@pytest.fixture(scope="module")
def crowd():
    """Three annotators who stay as they are, and one who gets worse after half of the time."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 400)
    wrong = rng.random((400, 4)) < np.column_stack([np.full((400, 3), 0.1), np.where(np.arange(400) < 200, 0.05, 0.45)])
    labels = CrowdLabels.from_matrix(
        np.where(wrong, 1 - truth[:, None], truth[:, None]), annotators=["a", "b", "c", "d"]
    )
    return labels, truth, np.repeat(DAYS, 4)


def test_accuracy_over_time_is_that_of_slices_if_examples_are_labelled_in_their_order(crowd):
    labels, truth, times = crowd
    found = accuracy_over_time(aggregate(labels), labels, times, truth)
    expected = slice_accuracy(labels, np.arange(400) // 100, truth)
    for name in ("annotator", "n_labels", "accuracy", "low", "high", "elsewhere", "p_adjusted"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    assert set(found.annotator[found.differs].tolist()) == {"d"}
    assert found.slice[:4].tolist() == [str(DAYS[k]) for k in (0, 100, 200, 300)]
    unknown = times.copy()
    unknown[::2] = np.datetime64("NaT", "s")
    assert accuracy_over_time(aggregate(labels), labels, unknown, truth).n_labels.sum() == 800
    with pytest.raises(LabelError, match="times must be one per label"):
        accuracy_over_time(aggregate(labels), labels, times[:5])


def test_who_changed_is_in_the_report_and_on_the_terminal(crowd):
    labels, truth, times = crowd
    for known in (None, truth):
        summary = summarize(aggregate(labels), labels, times=times, truth=known)
        assert summary["drift"]["changed"] == ["d"]
        assert summary["drift"]["rows"][0]["annotator"] == "d"
        line = next(line for line in summary_lines(summary) if line.startswith("Drift"))
        assert ("on known answers" if known is not None else "against the consensus") in line
        assert "Accuracy over time" in render_html(summary)
    steady = summarize(aggregate(labels), labels, times=np.tile(DAYS[:4], 400))
    assert "no clear change" in "\n".join(summary_lines(steady))
    without = summarize(aggregate(labels), labels)
    assert without["drift"] is None
    assert "Accuracy over time" not in render_html(without)


@pytest.mark.parametrize(
    "form", [str, lambda day: f"{day}T12:00:00+02:00", lambda day: str(day.astype("M8[ms]").astype(int))]
)
def test_times_are_read_from_a_table_and_compared_between_runs(crowd, form, tmp_path):
    labels, _, times = crowd
    table = labels.to_table()
    rows = list(zip(table["example"], table["annotator"], table["label"], map(form, times), strict=True))
    order = np.random.default_rng(1).permutation(len(rows))
    text = "".join(",".join(map(str, rows[i])) + "\n" for i in order)
    (tmp_path / "labels.csv").write_text("task,worker,label,created_at\n" + text)
    inputs = read_inputs(tmp_path / "labels.csv")
    read = inputs.times.astype("M8[D]")
    given = {(str(e), str(w)): day for e, w, day in zip(table["example"], table["annotator"], times, strict=True)}
    kept = inputs.labels.to_table()
    assert read.tolist() == [
        given[str(e), str(w)].tolist() for e, w in zip(kept["example"], kept["annotator"], strict=True)
    ]
    if form is str:
        pytest.importorskip("jinja2")
        fit(tmp_path / "labels.csv", out=tmp_path / "run")
        assert "Drift       after: accuracy against" in repr(compare_runs(tmp_path / "run", tmp_path / "run"))


def test_a_column_that_is_no_time_is_left_alone_unless_it_is_named(tmp_path):
    (tmp_path / "labels.csv").write_text("task,worker,label,date,spent\n1,a,x,soon,3s\n1,b,y,later,4s\n2,a,x,now,5s\n")
    assert read_inputs(tmp_path / "labels.csv").times is None
    for column, words in (("spent", "is not a time"), ("when", "has no column 'when'")):
        with pytest.raises(DataError, match=words):
            read_inputs(tmp_path / "labels.csv", time=column)
    (tmp_path / "wide.csv").write_text("task,a,b\n1,x,y\n2,y,y\n")
    with pytest.raises(DataError, match="needs a table with a row per label"):
        read_inputs(tmp_path / "wide.csv", time="a")
