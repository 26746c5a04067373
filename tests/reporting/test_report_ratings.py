import numpy as np
import pytest

from crowdwise import CrowdLabels, aggregate
from crowdwise.reporting import render_html, summarize, summary_lines


def test_ratings_alone_have_limits_of_agreement_in_the_table_and_as_a_picture():
    rng = np.random.default_rng(0)
    ratings = rng.normal(5, 2, 60)[:, np.newaxis] + np.array([0.0, 1.0, -0.5]) + rng.normal(0, 0.5, (60, 3))
    labels = CrowdLabels.from_matrix(ratings, annotators=["ann", "bob", "cy"], scale="interval")
    results = aggregate(labels)
    summary = summarize(results, labels)
    limits = dict(zip(results.annotators.tolist(), results.raters.limits.T.tolist(), strict=True))
    for row in summary["bland_altman"]:
        assert [row["low"], row["high"]] == pytest.approx(limits[row["annotator"]])
        differences = np.array([y for _, y in row["points"]])
        assert len(differences) == 60
        assert np.mean((differences > row["low"]) & (differences < row["high"])) > 0.85
    page = render_html(summary)
    assert "Agreement of ratings" in page
    assert "limits of agreement: 95%" in page


def test_classes_have_no_such_section():
    matrix = [["a", "a"], ["b", "b"], ["a", "b"]]
    summary = summarize(aggregate(matrix), matrix)
    assert summary["bland_altman"] is None
    assert "Agreement of ratings" not in render_html(summary)


def test_a_stated_error_that_known_answers_contradict_is_reported():
    rng = np.random.default_rng(1)
    truth = rng.normal(5, 2, 80)
    shared = truth + rng.normal(0, 2, 80)  # everybody errs alike, which ratings alone cannot show
    labels = CrowdLabels.from_matrix(shared[:, np.newaxis] + rng.normal(0, 0.3, (80, 4)), scale="interval")
    results = aggregate(labels)
    summary = summarize(results, labels, truth=truth)
    assert "Overconfident: predicted error 0." in "\n".join(summary_lines(summary))
    assert "Overconfident" in render_html(summary)
    assert summary["numbers"][1]["name"] == "error of a rating"
    assert "Overconfident" not in "\n".join(summary_lines(summarize(results, labels, truth=results.label)))
