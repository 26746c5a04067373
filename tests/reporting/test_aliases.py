import json

import numpy as np
import pytest

from crowdwise import CrowdLabels, CrowdRidgeRegressor, aggregate, report
from crowdwise.reporting import render_html, summarize
from crowdwise.reporting.report import aliases_of, with_aliases

TURKER, MAIL, PROLIFIC = "A2XJ8OQ0BBB7C1", "ann@example.org", "5f3a1c9e8b7d6a5f4e3d2c1b"


@pytest.fixture(scope="module")
def labels():
    """Four annotators, two of whom give the same labels, and one who stands alone."""
    rows = [[i % 2, i % 2, i // 2 % 2, int(i % 3 == 0)] for i in range(40)]
    return CrowdLabels.from_matrix(rows, annotators=[TURKER, MAIL, PROLIFIC, "A1"])


def test_personal_names_have_aliases_that_nobody_else_has():
    assert aliases_of([TURKER, "A1", MAIL, "gpt-4o", PROLIFIC, 7]) == {TURKER: "A2", MAIL: "A3", PROLIFIC: "A4"}


@pytest.mark.parametrize("name", ["w12", "ANNOTATORONE", "A123", "ann @ home", "5f3a", "annotator_2024", "@ann"])
def test_other_names_are_kept(name):
    assert aliases_of([name]) == {}


def test_no_personal_name_is_left_on_the_page(labels):
    summary = summarize(aggregate(labels), labels)
    assert all(name in json.dumps(summary) for name in (TURKER, MAIL, PROLIFIC))
    hidden = with_aliases(summary, aliases_of(labels.annotators.tolist()))
    for text in (json.dumps(hidden), render_html(hidden)):
        assert not any(name in text for name in (TURKER, MAIL, PROLIFIC))
    flags = {row["annotator"]: row["flags"] for row in hidden["annotators"]["rows"]}
    assert set(flags) == {"A1", "A2", "A3", "A4"}
    assert flags["A2"] == ["same labels as 'A3'"]
    assert {name for row in hidden["next"]["rows"] for said in row["said"] for name in said["annotators"]} == {*flags}
    assert hidden["numbers"] == summary["numbers"]


@pytest.mark.parametrize("form", ["html", "md", "json"])
def test_no_personal_name_is_left_in_the_command(labels, form, tmp_path):
    command = f"crowdwise fit '{MAIL} 2.csv' --group {TURKER},{MAIL} --group={PROLIFIC},A1 --out run-of-{MAIL}"
    page = report(aggregate(labels), labels, command=command, path=tmp_path / f"report.{form}").read_text(
        encoding="utf-8"
    )
    assert not any(name in page.replace("\\", "") for name in (TURKER, MAIL, PROLIFIC))
    assert "--group A2,A3 --group=A4,A1 --out run-of-A3" in page.replace("\\", "")


def test_a_report_shows_personal_names_only_if_asked_to(labels, tmp_path):
    model = aggregate(labels)
    assert MAIL not in report(model, labels, path=tmp_path / "report.html").read_text(encoding="utf-8")
    assert MAIL in report(model, labels, names=True, path=tmp_path / "report.md").read_text(encoding="utf-8").replace(
        "\\", ""
    )


@pytest.mark.parametrize("names", [False, True])
def test_ratings_are_reported_whether_names_are_shown_or_not(names, tmp_path):
    X, rows = np.arange(40.0)[:, np.newaxis], [[i % 5, i % 5 + 0.5, 4 - i % 5] for i in range(40)]
    labels = CrowdLabels.from_matrix(rows, annotators=[MAIL, "bob", "cy"], scale="interval")
    model = CrowdRidgeRegressor().fit(X, labels)
    page = report(model, labels, names=names, path=tmp_path / "report.json").read_text(encoding="utf-8")
    assert (MAIL in page) == names
    unnamed = CrowdRidgeRegressor().fit(X, np.array(rows))
    assert report(unnamed, np.array(rows), names=names, path=tmp_path / "plain.html").is_file()
