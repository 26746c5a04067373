"""How missing extras are told."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest

import crowdwise
from crowdwise._text import how_to_install

ROOT = Path(__file__).parents[1]


def sources():
    return {path: path.read_text(encoding="utf-8") for path in (ROOT / "crowdwise").rglob("*.py")}


def test_all_sentences_about_extras_are_made_in_one_place():
    found = [path.name for path, text in sources().items() if re.search(r"pip install '(crowdwise|\.)\[", text)]
    assert found == ["_text.py"]


def test_the_extras_that_are_named_exist():
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    named = {name for text in sources().values() for name in re.findall(r"how_to_install\(['\"](\w+)", text)}
    assert {"cli", "plot"} <= named <= known.keys()


def test_what_to_type_works_in_a_checkout_too():
    assert "'.[cli]'" in how_to_install("cli")


def test_the_metadata_name_the_licences_of_the_data_and_the_system_that_is_tested():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    of_data = {"LICENSE.apache-2.0.txt": "Apache-2.0", "LICENSE.clear-bsd.txt": "BSD-3-Clause-Clear"}
    shipped = sorted(path.name for path in (ROOT / "crowdwise" / "datasets" / "shipped").glob("LICENSE*"))
    assert shipped == sorted(of_data)
    assert project["license"].split(" AND ") == ["BSD-3-Clause", *of_data.values(), "MIT"]  # of the page
    systems = [name for name in project["classifiers"] if name.startswith("Operating System")]
    assert systems == ["Operating System :: POSIX :: Linux"]
    assert {"jinja2>=3.1.6"} == {
        one for extra in project["optional-dependencies"].values() for one in extra if one.startswith("jinja2")
    }


def test_the_version_is_written_in_one_place():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in project["project"]
    assert project["tool"]["hatch"]["version"] == {"path": "crowdwise/__init__.py"}
    assert crowdwise.__version__ not in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    elsewhere = [path.name for path, text in sources().items() if f'"{crowdwise.__version__}"' in text]
    assert elsewhere == ["__init__.py"]


def test_every_extra_for_users_is_tried_before_a_release():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    script = runpy.run_path(str(ROOT / "scripts" / "release-check"))
    assert set(script["PROBES"]) == {"plain", *extras} - {"test", "check", "docs"}
    assert script["arguments"]([]).extras == list(script["PROBES"])
    assert script["arguments"](["plain", "cli"]).extras == ["plain", "cli"]
    with pytest.raises(SystemExit):
        script["arguments"](["nothing"])
