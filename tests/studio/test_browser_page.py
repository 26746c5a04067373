"""The studio in a browser: what is dragged, drawn and typed does what it should, and nothing is complained about."""

import json
import re

import pytest
from browser_studio import write_crowd

pytestmark = pytest.mark.slow


def address_of(page):
    return re.sub(r"^http://127\.0\.0\.1:\d+", "", page.url)


def number_in(text):
    return float(re.search(r"[\d,.]+", text)[0].replace(",", ""))


def drag(page, locator, start, end, steps=12):
    """From one place of an element to another, both as shares of its size."""
    box = locator.bounding_box()
    page.mouse.move(box["x"] + start[0] * box["width"], box["y"] + start[1] * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + end[0] * box["width"], box["y"] + end[1] * box["height"], steps=steps)
    page.mouse.up()


def test_the_first_screen_says_something_and_the_token_is_nowhere_to_be_seen(opened, served):
    page = opened(served)
    sentences = page.locator(".lead p")
    sentences.nth(2).wait_for()
    assert "Next, " in sentences.nth(2).inner_text()
    assert page.locator(".numbers dd").count() == 5
    assert page.locator(".doors .door").count() == 3
    assert address_of(page) == "/"
    assert served.token not in page.content()
    assert page.evaluate("sessionStorage.getItem('crowdwise-token')") == served.token
    assert page.evaluate("document.cookie") == ""
    page.reload()
    sentences.nth(2).wait_for()


def test_without_the_token_there_is_nothing_but_what_to_do(opened, served):
    page = opened(served)
    page.evaluate("sessionStorage.clear()")
    page.goto(f"http://127.0.0.1:{served.port}/explore")
    page.get_by_text("This tab has no key").wait_for()


def test_labels_alone_have_sliders_without_a_curve(opened, serve, tmp_path):
    page = opened(serve(write_crowd(tmp_path), "labels.csv"), "/explore")
    page.locator("#weights-panel .curve").wait_for(state="attached")
    slider = page.locator("#steepness")
    slider.focus()
    page.keyboard.press("End")
    page.wait_for_url(re.compile("steepness=20"))
    page.locator(".moved .stat").first.wait_for()
    assert "Computing the curve" not in page.content()


def test_dragging_the_steepness_changes_weights_and_annotators_at_once_and_the_address_in_the_end(opened, served):
    page = opened(served, "/explore")
    page.locator(".curve-box canvas").wait_for()
    before = page.locator(".knob-side .stat b").inner_text()
    slider = page.locator("#steepness")
    box = slider.bounding_box()
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 10, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.6, y, steps=10)
    page.wait_for_function("was => document.querySelector('.knob-side .stat b').innerText !== was", arg=before)
    page.mouse.up()
    page.wait_for_url(re.compile(r"steepness="))
    assert number_in(page.locator(".knob-side .stat b").inner_text()) < number_in(before)
    shown = float(page.locator("output[for=steepness]").inner_text())
    assert shown > 1
    assert abs(float(re.search(r"[?&]steepness=([\d.]+)", page.url)[1]) - shown) < 0.01 * shown
    page.get_by_text("re-ranked").wait_for()
    page.get_by_text(re.compile(r"answers? flipped")).wait_for()


def test_back_and_forward_go_through_positions_and_views_and_an_address_is_all_there_is(opened, served):
    page = opened(served, "/explore")
    page.locator("#steepness").focus()
    page.keyboard.press("End")
    page.wait_for_url(re.compile(r"steepness=20"))
    moved = page.url
    page.locator(".tabs a", has_text="Annotators").click()
    page.locator("#annotators-panel tbody tr").first.wait_for()
    there = page.url
    assert "steepness=20" in there
    page.go_back()
    page.wait_for_url(moved)
    page.locator("#weights").wait_for()
    page.go_back()
    page.wait_for_url(re.compile(r"/explore$"))
    page.wait_for_function("() => document.querySelector('output[for=steepness]').innerText !== '20'")
    page.go_forward()
    page.wait_for_function("() => document.querySelector('output[for=steepness]').innerText === '20'")
    page.go_forward()
    page.wait_for_url(there)
    second = opened(served, re.sub(r"^http://[^/]+", "", there))
    second.locator("#annotators-panel tbody tr").first.wait_for()
    assert second.locator("output[for=steepness]").inner_text() == "20"


def test_a_rectangle_on_the_map_filters_the_list_and_the_keyboard_can_do_it_too(opened, served):
    page = opened(served, "/map")
    pager = page.locator(".pager [role=status]")
    pager.wait_for()
    assert pager.inner_text().startswith("240 examples")
    canvas = page.locator(".density canvas")
    drag(page, canvas, (0.02, 0.02), (0.4, 0.98))
    page.wait_for_url(re.compile("box="))
    page.wait_for_function("() => !document.querySelector('.pager [role=status]').innerText.startsWith('240 ')")
    inside = number_in(pager.inner_text())
    assert 0 < inside < 240
    margins = [number_in(text.split("margin")[1]) for text in page.locator(".rows .note").all_inner_texts()]
    assert max(margins) <= 0.42
    address = address_of(page)
    again = opened(served, address)
    again.locator(".pager [role=status]").wait_for()
    again.wait_for_function(
        "n => document.querySelector('.pager [role=status]').innerText.startsWith(n)", arg=f"{inside:g} "
    )
    page.get_by_label("to", exact=True).first.fill("1")
    page.keyboard.press("Tab")
    page.wait_for_function(
        "n => !document.querySelector('.pager [role=status]').innerText.startsWith(n)", arg=f"{inside:g} "
    )
    page.get_by_role("button", name="All examples").click()
    page.wait_for_function("() => document.querySelector('.pager [role=status]').innerText.startsWith('240 ')")


def test_examples_are_searched_turned_and_stepped_through_by_keyboard(opened, served):
    page = opened(served, "/examples")
    page.locator(".rows > li").nth(19).wait_for()
    first = page.locator(".rows .id").first.inner_text()
    page.keyboard.press("n")
    page.wait_for_url(re.compile("page=1"))
    page.wait_for_function("was => document.querySelector('.rows .id').innerText !== was", arg=first)
    page.keyboard.press("p")
    page.wait_for_function("was => document.querySelector('.rows .id').innerText === was", arg=first)
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert page.evaluate("[...document.querySelectorAll('.rows .id')].indexOf(document.activeElement)") == 2
    page.keyboard.press("Enter")
    page.locator("#proba").wait_for()
    page.go_back()
    page.keyboard.press("/")
    page.keyboard.type("example 17.")
    page.wait_for_function("() => document.querySelectorAll('.rows > li').length === 1")
    assert "The text of example 17." in page.locator(".rows").inner_text()


def test_an_annotator_opens_with_a_confusion_matrix_and_can_be_left_out_at_once(opened, served):
    page = opened(served, "/annotators")
    page.locator("#annotators-panel tbody a", has_text="w5").click()
    matrix = page.locator("table.confusion tbody tr")
    matrix.first.wait_for()
    shares = [[number_in(text) for text in row.locator("td").all_inner_texts()] for row in matrix.all()]
    assert all(abs(sum(row) - 100) <= 1 for row in shares)
    page.get_by_role("button", name="Leave this annotator out").click()
    page.wait_for_url(re.compile("without=w5"))
    page.locator(".chip", has_text="w5").wait_for()
    page.locator(".tabs a", has_text="Annotators").click()
    page.wait_for_function("() => document.querySelectorAll('#annotators-panel tbody tr').length === 5")
    page.locator(".chip button").click()
    page.wait_for_function("() => document.querySelectorAll('#annotators-panel tbody tr').length === 6")


def test_a_pair_opens_the_examples_on_which_the_two_differ(opened, served):
    page = opened(served, "/pairs")
    page.get_by_role("button", name=re.compile("^w4 and w5: kappa")).click()
    page.wait_for_url(re.compile("one=w4.*other=w5"))
    page.locator(".rows > li").first.wait_for()
    for given in page.locator(".rows .said").all():
        sides = [side.inner_text() for side in given.locator(":scope > span").all()]
        assert sum("w4" in side and "w5" in side for side in sides) == 0


def answers_of(studio, person):
    return [entry for entry in studio.journal if entry.get("person") == person]


def test_labelling_by_keyboard_alone(opened, served):
    page = opened(served, "/label")
    page.locator("#person").focus()
    page.keyboard.type("Ann")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("person=Ann"))
    asked = page.locator(".ask > .note bdi")
    asked.wait_for()
    shown = []
    for key in ("1", "2", " ", "2"):
        shown.append(asked.inner_text())
        page.keyboard.press(key)
        page.wait_for_function("was => document.querySelector('.ask > .note bdi').innerText !== was", arg=shown[-1])
    done = answers_of(served, "Ann")
    assert [entry["example"] for entry in done] == shown
    assert [entry.get("label") for entry in done] == ["no", "yes", None, "yes"]
    assert len(set(shown)) == 4
    page.keyboard.press("Backspace")
    page.wait_for_function("() => document.querySelectorAll('.last li').length === 3")
    assert answers_of(served, "Ann")[-1]["do"] == "undo"
    assert [one.input_value() for one in page.locator(".last select").all()] == ["", "1", "0"]
    page.locator(".last select").nth(2).select_option("1")
    page.get_by_text("Changed to yes").wait_for()
    assert answers_of(served, "Ann")[-1] == answers_of(served, "Ann")[-1] | {"example": shown[0], "label": "yes"}


def test_a_key_that_is_held_down_or_typed_into_a_field_is_no_answer(opened, served):
    page = opened(served, "/label?person=Held")
    page.locator(".ask > .note bdi").wait_for()
    page.keyboard.down("1")
    for _ in range(5):
        page.keyboard.down("1")
    page.keyboard.up("1")
    page.wait_for_function("() => document.querySelectorAll('.last li').length === 1")
    page.get_by_role("button", name="another person").click()
    page.locator("#person").fill("")
    page.locator("#person").focus()
    page.keyboard.type("12 2")
    assert len(answers_of(served, "Held")) == 1


def test_feedback_comes_on_checked_examples_if_wanted(opened, served):
    page = opened(served, "/label?person=Bob&rule=check&feedback=1")
    page.locator(".ask > .note bdi").wait_for()
    page.keyboard.press("1")
    words = page.locator(".feedback span").first
    words.wait_for()
    assert re.match(r"Correct: no|The known answer is yes; yours was no\.", words.inner_text())
    page.get_by_text("of 1 checked answer correct").wait_for()


def test_labels_and_consensus_are_saved_as_files(opened, served):
    page = opened(served, "/label?person=Cleo")
    page.get_by_role("button", name="Labels, CSV").wait_for()
    names = {}
    for name in ("Labels, CSV", "Consensus, CSV", "Label Studio"):
        with page.expect_download() as waiting:
            page.get_by_role("button", name=name).click()
        names[name] = waiting.value.path().read_text("utf-8")
    assert names["Labels, CSV"].splitlines()[0] == "example,annotator,label"
    assert len(names["Labels, CSV"].splitlines()) >= 240 * 6
    assert len(names["Consensus, CSV"].splitlines()) == 241
    assert len(json.loads(names["Label Studio"])) > 0


def test_two_people_at_once_and_a_page_that_follows(opened, served):
    one, other = opened(served, "/label?person=Dan"), opened(served, "/label?person=Dora")
    watching = opened(served, "/")
    labels = number_in(watching.locator(".first > .note >> nth=0").inner_text().split("annotators,")[1])
    for page in (one, other):
        page.locator(".ask > .note bdi").wait_for()
        page.keyboard.press("1")
    for page in (one, other):
        page.wait_for_function("() => document.querySelectorAll('.last li').length === 1")
    watching.wait_for_function(
        "n => document.querySelector('.first > .note').innerText.split('annotators,')[1].replace(/[^0-9]/g, '') == n",
        arg=labels + 2,
    )


def test_the_model_seat_shows_names_of_features_and_accuracy(opened, served):
    page = opened(served, "/model")
    page.locator("#coefficients").wait_for()
    assert "good" in page.locator("#coefficients-panel").inner_text()
    assert "Consensus, on known answers" in page.locator("#quality-panel").inner_text()
    assert page.locator("#choices-panel").count() == 1


def test_the_keys_are_listed_and_lead_to_the_seats(opened, served):
    page = opened(served, "/")
    page.locator(".lead p").first.wait_for()
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="hidden")
    for key, view in (("e", "/explore"), ("m", "/model"), ("l", "/label"), ("s", "/")):
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.wait_for_function("there => location.pathname === there", arg=view)
