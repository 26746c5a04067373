"""The page in a real browser: nothing fails, nothing is loaded, and what can be clicked works."""

import csv
import shutil
from pathlib import Path

import numpy as np
import pytest
from all_models import crowd, fit_quietly
from crowds import clear_crowd
from test_report import HOSTILE, hostile_crowd

from crowdwise import CrowdLabels, CrowdLogisticClassifier, CrowdRidgeRegressor, aggregate
from crowdwise.formats._write import safe_cell
from crowdwise.reporting import render_html, summarize

pytestmark = pytest.mark.slow
AXE = (Path(__file__).parent / "axe" / "axe.min.js").read_text(encoding="utf-8")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser, tmp_path):
    """A function that opens a page; in the end nothing may have been complained about or asked for."""
    complaints, contexts = [], []

    def open_page(html, **settings):
        settings = {"viewport": {"width": 1280, "height": 900}} | settings
        path = tmp_path / f"{len(contexts)}.html"
        path.write_text(html, encoding="utf-8")
        contexts.append(browser.new_context(**settings))
        page = contexts[-1].new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda asked: asked.url in (path.as_uri(), "data:,") or complaints.append(asked.url))
        page.goto(path.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture(scope="module")
def html():
    X, labels, truth = clear_crowd(n_examples=300, n_annotators=40, n_classes=3, missing=0.8)
    model = fit_quietly(CrowdLogisticClassifier(steepness=2.0), X, labels)
    texts = [f"the text of example {i}" for i in range(300)]
    return render_html(summarize(model, labels, X=X, texts=texts, truth=truth, command="crowdwise fit labels.csv"))


def shown_cells(page, table, column):
    """Texts of a column of the rows that can be seen."""
    cells = page.locator(f"#{table} > tbody:not([hidden]) > tr:first-child > :nth-child({column})")
    return [text.strip() for text in cells.all_inner_texts()]


def numbers(texts):
    return [float(text.replace(",", "").split(" ")[0].strip("%>")) for text in texts]


def test_tables_are_sorted_by_a_click_on_their_heads_and_by_the_keyboard(opened, html):
    page = opened(html)
    head = page.locator("#annotator-table thead th", has_text="Labels")
    head.locator("button").click()
    labels = numbers(shown_cells(page, "annotator-table", 2))
    assert labels == sorted(labels, reverse=True)
    assert head.get_attribute("aria-sort") == "descending"
    head.locator("button").press("Enter")
    labels = numbers(shown_cells(page, "annotator-table", 2))
    assert labels == sorted(labels)
    assert head.get_attribute("aria-sort") == "ascending"
    page.locator("#annotator-table thead button", has_text="Annotator").click()
    names = shown_cells(page, "annotator-table", 1)
    assert names[:3] == ["annotator 0", "annotator 1", "annotator 2"]  # by number, not by spelling


def test_rows_are_found_by_what_is_typed(opened, html):
    page = opened(html)
    page.locator('[data-filter="annotator-table"]').fill("annotator 17")
    assert shown_cells(page, "annotator-table", 1) == ["annotator 17"]
    page.locator('[data-filter="annotator-table"]').fill("")
    page.locator('[data-flagged="annotator-table"]').check()
    flagged = shown_cells(page, "annotator-table", 1)
    assert "annotator 2" in flagged
    assert len(flagged) < 20
    page.locator('[data-filter="order-table"]').fill("text of example 299")
    assert len(shown_cells(page, "order-table", 1)) == 1


def test_an_annotator_opens_with_a_confusion_matrix_and_closes_again(opened, html):
    page = opened(html)
    button = page.locator("#annotator-table [data-open]").first
    button.focus()
    button.press("Enter")
    assert button.get_attribute("aria-expanded") == "true"
    matrix = page.locator("#annotator-table .confusion")
    assert matrix.locator("tbody td").count() == 9
    rows = [row.locator("td").all_inner_texts() for row in matrix.locator("tbody tr").all()]
    assert all(abs(sum(numbers(row)) - 100) <= 2 for row in rows)
    assert page.locator("#annotator-table .detail").inner_text()
    page.locator("#annotator-table thead button", has_text="Labels").click()
    assert page.locator("#annotator-table .detail").count() == 1  # it goes where its annotator goes
    button = page.locator('#annotator-table [aria-expanded="true"]')
    button.click()
    assert page.locator("#annotator-table .detail").count() == 0


def test_lists_show_their_first_rows_and_more_when_asked(opened, html):
    page = opened(html)
    assert len(shown_cells(page, "order-table", 1)) == 20
    page.locator("#order button.more").click()
    assert len(shown_cells(page, "order-table", 1)) == 220
    page.locator("#order button.more").click()
    assert len(shown_cells(page, "order-table", 1)) == 300
    assert not page.locator("#order button.more").is_visible()
    page.locator("#order-table thead button", has_text="Order").click()
    assert shown_cells(page, "order-table", 1)[0] == "300"
    assert len(shown_cells(page, "order-table", 1)) == 20
    cards = page.locator("#next .cards > li")
    assert cards.evaluate_all("all => all.filter(one => !one.hidden).length") == 10
    assert "the text of example" in cards.first.inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wider_than_the_screen_and_axe_finds_no_fault(opened, html, scheme, width):
    page = opened(html, color_scheme=scheme, viewport={"width": width, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.locator("#annotator-table [data-open]").first.click()
    page.evaluate(AXE)  # not a script of the page, which its policy would refuse
    found = page.evaluate("axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'best-practice']})")
    faults = [(fault["id"], fault["nodes"][0]["html"][:200]) for fault in found["violations"]]
    assert faults == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_dark_page_is_dark_and_a_printed_one_is_light(opened, html, scheme):
    page = opened(html, color_scheme=scheme)
    brightness = "sum(getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number))"
    measure = f"() => {{ const sum = (all) => all.reduce((a, b) => a + b); return {brightness}; }}"
    assert (page.evaluate(measure) > 600) == (scheme == "light")
    page.emulate_media(media="print")
    assert page.evaluate(measure) > 600
    assert not page.locator("nav").is_visible()


def test_hostile_names_and_texts_stay_text(opened):
    labels = hostile_crowd()
    texts = [HOSTILE[i % 6] + (" long" * 20_000 if i == 1 else "") for i in range(60)]
    page = opened(render_html(summarize(aggregate(labels), labels, texts=texts, command=HOSTILE[1])))
    page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
    names = shown_cells(page, "annotator-table", 1)
    assert sorted(names) == sorted(f"{name} by" for name in HOSTILE)
    for button in page.locator("#annotator-table [data-open]").all():
        button.click()
    assert page.locator("#annotator-table .confusion").count() == 6
    heads = page.locator("#annotator-table .confusion").first.locator("thead th").all_inner_texts()
    assert sorted(head.strip() for head in heads) == sorted(HOSTILE)
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert page.locator("#command").inner_text() == HOSTILE[1]


def test_a_page_of_ratings_works_too(opened):
    X, _, labels = crowd(n=60, missing=0.3)
    ratings = CrowdLabels.from_matrix(labels.to_matrix().astype(float), scale="interval")
    page = opened(render_html(summarize(fit_quietly(CrowdRidgeRegressor(), X, ratings), ratings, X=X)))
    page.locator("#annotator-table [data-open]").first.click()
    assert "Furthest from the consensus" in page.locator(".detail").inner_text()
    page.locator("#order-table thead button", has_text="Consensus").click()
    values = [float(text) for text in shown_cells(page, "order-table", 3)]
    assert values == sorted(values, reverse=True)


def test_five_thousand_rows_stay_fluid_and_a_million_examples_stay_small(opened):
    rng = np.random.default_rng(0)
    n = 1_000_000
    truth = rng.integers(0, 2, n)
    matrix = np.where(rng.random((n, 3)) < 0.8, truth[:, None], 1 - truth[:, None])
    labels = CrowdLabels.from_matrix(matrix)
    summary = summarize(aggregate(labels), labels, texts=np.full(n, "a sentence of some length, as they are " * 5))
    page_text = render_html(summary)
    assert len(page_text.encode()) < 5_000_000
    page = opened(page_text)
    assert "5,000 of 1,000,000 examples" in page.locator("#order").inner_text()
    page.locator("#order button.more").click()
    milliseconds = page.evaluate(
        """() => {
            const began = performance.now();
            document.querySelector("#order-table thead button").click();
            const search = document.querySelector('[data-filter="order-table"]');
            search.value = "99999";
            search.dispatchEvent(new Event("input"));
            return document.body.offsetHeight && performance.now() - began;
        }"""
    )
    assert milliseconds < 1000


def test_tables_can_be_saved_from_the_page_alone(opened, tmp_path):
    labels = hostile_crowd()
    summary = summarize(aggregate(labels), labels)
    page = opened(render_html(summary), accept_downloads=True)
    for name, key in (("consensus", "order"), ("annotators", "annotators")):
        with page.expect_download() as saved:
            page.click(f"[data-save={name}]")
        assert saved.value.suggested_filename == f"{name}.csv"
        saved.value.save_as(tmp_path / "saved.csv")
        with open(tmp_path / "saved.csv", encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        shown = summary[key]["rows"]
        column = "example" if name == "consensus" else "annotator"
        assert [row[column] for row in rows] == [safe_cell(row[column]) for row in shown]
    assert [float(row["accuracy"]) for row in rows] == [row["accuracy"] for row in shown]
