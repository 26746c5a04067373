"""What can go wrong under a page: the server is killed, names are hostile, the page is narrow, dark or only heard."""

import re
from pathlib import Path

import pytest
from browser_studio import write_crowd, write_table

pytestmark = pytest.mark.slow
AXE = (Path(__file__).parents[1] / "reporting" / "axe" / "axe.min.js").read_text(encoding="utf-8")
HOSTILE = (
    "<script>alert(1)</script>", "<img src=x onerror=alert(2)>", "\"'><svg onload=alert(3)>", "javascript:alert(4)",
    "{{7*7}}${alert(5)}", "../../etc/passwd?&#=%00", "\u202egnp.exe", "<style>*{display:none}</style>",
)  # fmt: skip
VIEWS = (
    "/", "/explore", "/annotators", "/annotator?name=w0", "/pairs?one=w0&other=w1", "/map?box=0,0.5,0,1", "/examples",
    "/example?row=0", "/label", "/label?person=Ann", "/model",
)  # fmt: skip
GONE = ("ERR_CONNECTION_REFUSED", "ERR_EMPTY_RESPONSE", "ERR_CONNECTION_RESET", "ERR_CONNECTION_CLOSED")


def settled(page):
    page.wait_for_function(
        "() => !document.querySelector('[aria-busy=true]') && "
        "!/^Loading/m.test(document.querySelector('main').innerText)"
    )
    page.wait_for_timeout(200)


def test_a_page_goes_on_after_the_server_was_killed_and_nothing_acknowledged_is_lost(opened, serve, tmp_path):
    served = serve(write_crowd(tmp_path / "crowd", n=80), "labels.csv", "features.csv", "--show", "text")
    page = opened(served, "/label?person=Ann", expected=GONE)
    asked = page.locator(".ask > .note bdi")
    asked.wait_for()
    acknowledged = []
    for _ in range(10):
        before = asked.inner_text()
        page.keyboard.press("1")
        page.wait_for_function("was => document.querySelector('.ask > .note bdi').innerText !== was", arg=before)
        acknowledged.append(before)
        before = asked.inner_text()
        served.kill()
        page.keyboard.press("2")  # into nothing: it is kept, and sent when the server is back
        page.get_by_text("Reconnecting").wait_for()
        served.start()
        page.wait_for_function("was => document.querySelector('.ask > .note bdi').innerText !== was", arg=before)
        acknowledged.append(before)
        page.get_by_text("Connected").wait_for()
    done = [(entry["example"], entry["label"]) for entry in served.journal]
    assert done == [(example, ("no", "yes")[at % 2]) for at, example in enumerate(acknowledged)]


def test_hostile_names_ids_classes_and_texts_are_inert(opened, serve, tmp_path):
    classes = (HOSTILE[1], HOSTILE[0])
    labels = [
        [f"{HOSTILE[i % 8]}{i}", name, classes[(i + (j == i % 8)) % 2]]
        for i in range(64)
        for j, name in enumerate(HOSTILE)
    ]
    write_table(tmp_path / "labels.csv", ["example", "annotator", "label"], labels)
    rows = [[f"{HOSTILE[i % 8]}{i}", HOSTILE[(i + 3) % 8], i % 7, (i % 2) * 2 - 1] for i in range(64)]
    write_table(tmp_path / "texts.csv", ["example", "text", HOSTILE[2], HOSTILE[0]], rows)
    served = serve(tmp_path, "labels.csv", "texts.csv", "--show", "text")
    page = opened(served, "/annotators")
    page.locator("#annotators-panel tbody tr").nth(7).wait_for()
    names = page.locator("#annotators-panel tbody th").all_inner_texts()
    assert sorted(name.strip() for name in names) == sorted(HOSTILE)
    page.locator("#annotators-panel tbody a", has_text="<img").click()
    page.locator("table.confusion").wait_for()
    page.get_by_role("button", name="Leave this annotator out").click()
    page.locator(".chip").wait_for()
    assert HOSTILE[1] in page.locator(".chip").inner_text()
    for path in ("/", "/explore", "/pairs", "/map", "/examples", "/example?row=3", "/model"):
        other = opened(served, path)
        settled(other)
        assert other.locator("img, script:not([src]), style, iframe").count() == 0
        assert other.locator("main").is_visible()
    page = opened(served, "/label")
    page.locator("#person").fill(f"new {HOSTILE[0]}")
    page.keyboard.press("Enter")
    page.locator(".ask > .note bdi").wait_for()
    page.keyboard.press("1")
    page.wait_for_function("() => document.querySelectorAll('.last li').length === 1")
    assert served.journal[-1]["person"] == f"new {HOSTILE[0]}"
    assert served.journal[-1]["label"] in classes
    assert page.locator("#progress").inner_text() == f"new {HOSTILE[0]}"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wider_than_the_screen_and_axe_finds_no_fault(opened, served, scheme, width):
    page = opened(served, "/", color_scheme=scheme, viewport={"width": width, "height": 844}, reduced_motion="reduce")
    for path in VIEWS:
        page.goto(f"http://127.0.0.1:{served.port}{path}")
        page.locator("main h1").first.wait_for(state="attached")
        settled(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
        page.evaluate(AXE)  # not a script of the page, which its policy would refuse
        found = page.evaluate("axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'best-practice']})")
        faults = [(path, fault["id"], fault["nodes"][0]["html"][:200]) for fault in found["violations"]]
        assert faults == []


def test_every_control_is_reached_by_the_tab_key_and_its_focus_is_seen(opened, served):
    page = opened(served, "/explore")
    settled(page)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "Skip to the content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id || document.activeElement.innerText"))
        seen = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert seen != "none", reached[-1]
        if "Examples" in reached:
            break
    assert {"steepness", "l2", "Annotators", "Pairs", "Map", "Examples"} <= set(reached)


def test_light_and_dark_follow_the_system_charts_included(opened, served):
    page = opened(served, "/explore", expected=("Canvas2D: Multiple readback",), color_scheme="light")
    page.locator(".density canvas").wait_for()
    settled(page)
    darkest = """() => {
        const canvas = document.querySelector('.density canvas');
        const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        let best = null;
        for (let k = 0; k < data.length; k += 4)
            if (data[k + 3] && (!best || data[k] < best[0])) best = [...data.slice(k, k + 3)];
        return [best, getComputedStyle(document.body).backgroundColor];
    }"""
    light = page.evaluate(darkest)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("was => getComputedStyle(document.body).backgroundColor !== was", arg=light[1])
    page.wait_for_timeout(300)
    assert page.evaluate(darkest)[0] != light[0]


def test_an_address_with_nonsense_in_it_still_opens(opened, served):
    refused = re.compile("422|404")
    for path in (
        "/explore?steepness=NaN&l2=-1",
        "/map?box=1,0,2",
        "/examples?page=-3",
        "/label?person=A&rule=x&check=9",
    ):
        page = opened(served, path, expected=("422", "404"))
        settled(page)
        assert not refused.search(page.locator("main").inner_text())
    page = opened(served, "/annotator?name=nobody", expected=("404",))
    page.get_by_role("alert").wait_for()
