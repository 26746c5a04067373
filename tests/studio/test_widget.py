"""The widget: what a notebook gets, and a notebook's kernel played by this process."""

import json

import pytest
from studios import make_studio

from crowdwise import CrowdRidgeClassifier
from crowdwise.studio._routes import STATIC

widget = pytest.importorskip("crowdwise.studio.widget", reason="needs anywidget: pip install anywidget")


def asked(studio, method, address, **sent):
    found = widget.answer(studio, method, address, json.dumps(sent).encode())
    return found.status_code, json.loads(found.body)


def test_the_widget_answers_as_the_server_does(tmp_path):
    studio = make_studio(tmp_path, model=CrowdRidgeClassifier(keep_sums=True))
    with studio.session:
        status, start = asked(studio, "GET", "/start.json")
        assert (status, start["title"]) == (200, studio.title)
        assert asked(studio, "POST", "/answer.json", person="Ann", row=3, code=1)[0] == 200
        status, label = asked(studio, "GET", "/label.json?person=Ann")
        assert label["last"][0]["row"] == 3
        assert asked(studio, "GET", "/refit.json?steepness=-1")[0] == 422
        assert asked(studio, "GET", "/nothing.json")[0] == 404
        assert asked(studio, "DELETE", "/start.json")[0] == 404


def test_modules_of_the_widget_are_all_that_it_imports_and_styles_stay_inside(tmp_path):
    studio = make_studio(tmp_path)
    with studio.session:
        shown = studio.session.widget()
        assert "app.js" not in shown.modules
        assert shown.modules["widget.js"] == (STATIC / "widget.js").read_text("utf-8")
        assert shown._css.startswith("@scope (.crowdwise-studio)")
        assert "body {" not in shown._css
        assert ":root" not in shown._css


PAGE = """<!doctype html><title>notebook</title><style>body { margin: 40px; }</style><div id=cell></div>
<script type=module>
const {default: widget} = await import(URL.createObjectURL(new Blob([LOADER], {type: "text/javascript"})));
const heard = [];
const model = {
  get: () => (MODULES),
  on: (name, listener) => heard.push(listener),
  send: async (message) => {
    const [status, headers, text] = await kernel(message);
    heard.forEach((listener) => listener({id: message.id, status, headers}, [new TextEncoder().encode(text)]));
  },
};
window.typed = [];
document.addEventListener("keydown", (event) => window.typed.push(event.key));
await widget.render({model, el: document.querySelector("#cell")});
</script>"""


@pytest.mark.slow
def test_in_a_notebook_the_sliders_and_the_label_seat_work_and_keys_do_not_leave_the_widget(chromium, tmp_path):
    studio = make_studio(tmp_path, model=CrowdRidgeClassifier(keep_sums=True))
    with studio.session:
        shown = studio.session.widget()
        page = chromium.new_page()
        complaints = []
        page.on("console", lambda said: complaints.append(said.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))

        def kernel(message):
            content = (message.get("body") or "").encode()
            found = widget.answer(studio, message["method"], message["address"], content)
            return [found.status_code, dict(found.headers), bytes(found.body).decode()]

        page.expose_function("kernel", kernel)
        style = f"<style>{shown._css}</style>"
        loader, modules = (json.dumps(part).replace("</", "<\\/") for part in (shown._esm, shown.modules))
        page.set_content(style + PAGE.replace("LOADER", loader).replace("MODULES", modules))

        page.locator("#steepness").wait_for()
        page.locator("#steepness").focus()
        page.keyboard.press("End")
        page.get_by_text("re-ranked").wait_for()
        assert page.locator("output[for=steepness]").inner_text() == "20"
        page.get_by_role("button", name="Label", exact=True).click()
        page.locator("#person").fill("Ann")
        page.keyboard.press("Enter")
        page.locator(".ask > .note bdi").wait_for()
        page.locator(".ask .what").focus()
        page.keyboard.press("2")
        page.wait_for_function("() => document.querySelectorAll('.last li').length === 1")
        assert len(studio.session.done_by("Ann")) == 1
        assert page.evaluate("window.typed") == []
        assert page.evaluate("getComputedStyle(document.body).marginLeft") == "40px"
        page.close()
    assert complaints == []
