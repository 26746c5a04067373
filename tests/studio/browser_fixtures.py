"""A studio that is served, and pages of it in a browser that complain about nothing: a plugin of tests."""

import pytest
from browser_studio import CHROMIUM, Served, write_crowd

WAIT = 20_000


@pytest.fixture(scope="module")
def chromium():
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    pytest.importorskip("uvicorn", reason="needs uvicorn: pip install 'crowdwise[studio]'")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    process = Served(
        write_crowd(tmp_path_factory.mktemp("crowd")), "labels.csv", "features.csv", "--show", "text", "--truth",
        "truth.csv", "--expert", "eve",
    )  # fmt: skip
    yield process
    process.kill()


@pytest.fixture
def serve():
    """A function that serves a studio of its own; it ends after all pages are closed."""
    started = []

    def start(folder, *arguments):
        started.append(Served(folder, *arguments))
        return started[-1]

    yield start
    for one in started:
        one.kill()


@pytest.fixture
def opened(chromium, serve):
    """A function that opens a page; in the end nothing may have been complained about or asked for elsewhere."""
    complaints, contexts = [], []

    def open_page(studio, path="/", expected=(), **settings):
        settings = {"viewport": {"width": 1280, "height": 900}} | settings
        context = chromium.new_context(**settings)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(WAIT)
        home = f"http://127.0.0.1:{studio.port}/"
        page.on("console", lambda said: any(known in said.text for known in expected) or complaints.append(said.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda asked: asked.url.startswith((home, f"blob:{home}")) or complaints.append(asked.url))
        page.on("dialog", lambda dialog: complaints.append(f"a script ran: {dialog.message}"))
        context.add_init_script(
            "addEventListener('securitypolicyviolation', (event) => console.error('refused', event.blockedURI))"
        )
        page.goto(studio.address(path))
        page.locator("main h1").first.wait_for(state="attached")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not complaints, complaints
