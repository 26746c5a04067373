import json
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from all_models import crowd, fit_quietly

import crowdwise
from crowdwise import CrowdLabels, CrowdRidgeRegressor, aggregate
from crowdwise.exceptions import MissingExtraError, OutputError
from crowdwise.reporting import render_html, render_json, render_markdown, summarize
from crowdwise.reporting._svg import tag
from crowdwise.reporting.report import embedded_json, markdown_cell

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(1)>",
    "\"quoted' & <b>",
    "שלום ‮",
    "🐦",
    "|`*_[a](b)",
]


class Elements(HTMLParser):
    """The tags of a page, and the attributes that could do or load something."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.handlers, self.addresses = [], [], []
        self.feed(page)

    def handle_starttag(self, name, attributes):
        self.tags.append(name)
        for key, value in attributes:
            if key.startswith("on") or key == "style":
                self.handlers.append((name, key))
            if key in ("src", "href", "action", "srcset", "data", "xlink:href"):
                self.addresses.append(value)


def hostile_crowd():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, len(HOSTILE), 60)
    matrix = np.where(rng.random((60, 6)) < 0.6, truth[:, None], rng.integers(0, 6, (60, 6)))
    values = np.array(HOSTILE, dtype=object)[matrix]
    return CrowdLabels.from_matrix(
        values, annotators=[f"{name} by" for name in HOSTILE], examples=[f"{HOSTILE[i % 6]} {i}" for i in range(60)]
    )


@pytest.fixture(scope="module")
def hostile():
    labels = hostile_crowd()
    texts = [HOSTILE[i % 6] * (2000 if i == 0 else 1) for i in range(60)]
    return summarize(aggregate(labels), labels, texts=texts, command=HOSTILE[0])


def test_a_page_has_no_element_that_came_from_the_data(hostile):
    page = Elements(render_html(hostile))
    assert page.tags.count("script") == 2
    assert "img" not in page.tags
    assert not page.handlers
    assert all(address.startswith(("#", "data:,")) for address in page.addresses)


def test_a_page_refers_to_nothing_outside(hostile):
    page = render_html(hostile)
    assert not re.search(r"https?://", page)
    assert "default-src 'none'" in page
    assert "url(" not in page
    assert "@import" not in page


def test_texts_of_the_data_are_there_as_text(hostile):
    texts = []
    parser = Elements(render_html(hostile))
    parser.handle_data = texts.append
    parser.feed(render_html(hostile))
    joined = " ".join(texts)
    for value in HOSTILE:
        assert value in joined


def test_json_in_a_page_cannot_end_its_element():
    text = embedded_json({"a": "</script><!--\u2028&"})
    assert "<" not in text
    assert ">" not in text
    assert "\u2028" not in text
    assert json.loads(text) == {"a": "</script><!--\u2028&"}


def test_attributes_and_children_of_pictures_are_escaped():
    assert str(tag("text", "<b>", aria_label='"x"')) == '<text aria-label="&quot;x&quot;">&lt;b&gt;</text>'


def test_tables_in_markdown_begin_after_an_empty_line(hostile):
    tied = [["a", "b", None], ["a", "a", "b"], ["b", "b", "a"], ["b", "a", "a"]] * 5
    for summary in (hostile, summarize(aggregate(tied), tied)):
        lines = render_markdown(summary).splitlines()
        starts = [i - 1 for i, line in enumerate(lines) if line.startswith("|---")]
        assert len(starts) >= 3
        assert all(lines[i - 1] == "" for i in starts)


def test_markdown_keeps_texts_as_text(hostile):
    page = render_markdown(hostile)
    marked = [line for line in page.splitlines() if "<" in line]
    assert marked == [f"    {HOSTILE[0]}"]  # the command, which is a block of code
    assert markdown_cell("a|b\n*c*") == "a\\|b \\*c\\*"
    table = [line for line in page.splitlines() if line.startswith("| ")]
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table if "by |" in line}) == 1


def test_a_page_of_ratings_has_no_word_of_classes():
    X, _, labels = crowd(n=60, missing=0.3)
    ratings = CrowdLabels.from_matrix(labels.to_matrix().astype(float), scale="interval")
    page = render_html(summarize(fit_quietly(CrowdRidgeRegressor(), X, ratings), ratings, X=X))
    shown = re.sub(r"<(style|script)[^>]*>.*?</\1>", "", page, flags=re.DOTALL)
    assert "ajority" not in shown
    assert "accuracy" not in shown.lower().split("what these numbers")[0]


def test_a_report_is_written_in_one_call_in_the_form_of_its_ending(tmp_path):
    _, truth, labels = crowd(n=60, missing=0.3)
    found = aggregate(labels)
    for ending, begin in ((".html", "<!doctype html>"), (".md", "# 60 examples"), (".json", "{")):
        path = crowdwise.report(found, labels, truth=truth, path=tmp_path / f"report{ending}")
        assert path.read_text(encoding="utf-8").lstrip().startswith(begin)
    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["version"] == 1
    assert render_json(summarize(found, labels, truth=truth)) == (tmp_path / "report.json").read_text(encoding="utf-8")


def test_the_same_fit_gives_the_same_page():
    _, _, labels = crowd(n=60, missing=0.3)
    one, other = (render_html(summarize(aggregate(labels), labels)) for _ in range(2))
    assert one == other


def test_a_path_that_cannot_be_is_an_error_before_anything_is_done(tmp_path):
    with pytest.raises(ValueError, match=r"\.html, \.md, \.json"):
        crowdwise.report(None, None, path="report.pdf")
    with pytest.raises(OutputError, match="there is no directory"):
        crowdwise.report(None, None, path=tmp_path / "nowhere" / "report.html")


def test_without_jinja_the_summary_works_and_a_page_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    labels = [["a", "a", "b"], ["b", "b", "b"], ["a", "a", "a"]]
    summary = summarize(aggregate(labels), labels)
    assert render_json(summary).startswith("{")
    with pytest.raises(MissingExtraError, match="a report needs Jinja2"):
        render_html(summary)
