"""The page's own functions, by node's own runner."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

STATIC = Path(__file__).parents[2] / "crowdwise" / "studio" / "static"
NODE = shutil.which("node")


@pytest.mark.skipif(NODE is None, reason="needs node, whose runner has these tests: apt-get install nodejs")
def test_the_functions_of_the_page_do_what_they_promise():
    asked = [NODE, "--test", str(Path(__file__).parent / "js")]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert int(re.search(r"^# pass (\d+)", done.stdout, flags=re.MULTILINE)[1]) >= 13


def own_files():
    return [
        path for path in STATIC.rglob("*") if path.suffix in (".js", ".css", ".html") and "vendor" not in path.parts
    ]


def test_modules_are_imported_by_address_so_that_nothing_has_to_be_built():
    for path in STATIC.rglob("*.js"):
        for name in re.findall(
            r"(?:^|[;}\s])(?:import|export)[^;'\"(]*?from\s*[\"']([^\"']+)", path.read_text("utf-8")
        ):
            assert name.startswith(("./", "../")), (path, name)
            assert (path.parent / name).exists(), (path, name)


def test_nothing_comes_from_elsewhere_and_no_text_becomes_markup():
    for path in own_files():
        text = path.read_text("utf-8")
        elsewhere = set(re.findall(r"https?://[^\s\"'`)]+", text)) - {"http://www.w3.org/2000/svg"}
        assert not elsewhere, (path, elsewhere)
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), (
            path
        )


def test_what_others_wrote_stands_beside_its_licence():
    names = {path.name for path in (STATIC / "vendor").iterdir()}
    assert {"LICENSE.preact", "LICENSE.htm", "LICENSE.uplot", "README.md"} <= names
