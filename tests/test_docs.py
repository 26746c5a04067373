"""The code, links and tables of README.md and docs/."""

import importlib
import re
from pathlib import Path

import pytest
from pages import consoles, run_code, run_commands

import crowdwise

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("[!_]*/*.md"))]
COMMANDS = [page for page in PAGES if consoles(page.read_text(encoding="utf-8"))]


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def names(pages):
    return [name_of(page) for page in pages]


def blocks(page):
    """What follows "python" on the first line of every code block, and the code."""
    return re.findall(
        r"^```python([^\n]*)\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where there is none of a reader's files."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


OTHERS = [page for page in PAGES if page not in COMMANDS]


@pytest.mark.parametrize("page", OTHERS, ids=names(OTHERS))
def test_code_runs_as_pasted_and_prints_what_is_shown(page, folder):
    text = page.read_text(encoding="utf-8")
    if "import dask" in text:
        pytest.importorskip("dask", reason=f"{page.name} needs Dask: pip install 'crowdwise[dask]'")
    assert run_code(text, page.name)[0] == text, "python tests/pages.py PAGE writes what is printed now"


def rough(text):
    """The text with numbers of two digits: other machines round the rest differently."""
    return re.sub(r"\d+\.\d{3,}", lambda number: f"{float(number[0]):.2g}", text)


@pytest.mark.slow
@pytest.mark.parametrize("page", COMMANDS, ids=names(COMMANDS))
def test_commands_run_as_typed_and_print_what_is_shown(page, folder, monkeypatch):
    text = page.read_text(encoding="utf-8")
    printed = run_commands(text)
    if (folder / "crowdwise-demo").exists():  # the commands went there
        monkeypatch.chdir(folder / "crowdwise-demo")
    assert rough(run_code(printed, page.name)[0]) == rough(text), (
        "python tests/pages.py PAGE writes what is printed now"
    )


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_code_that_is_not_run_says_why(page):
    for info, code in blocks(page):
        compile(code, page.name, "exec")
        assert re.fullmatch(r"| no-run: \w.*", info), f"```python{info} must be ```python or ```python no-run: REASON"


def test_broken_code_commands_and_outputs_are_noticed(folder):
    with pytest.raises(AttributeError, match="nothing"):
        run_code("```python\nx = 1\n```\ntext\n```python\nx.nothing\n```\n")
    with pytest.raises(AssertionError, match="failed"):
        run_commands("```console\n$ false\n```\n")
    shown = "```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n"
    assert run_code(shown)[0] == shown.replace("3", "2")
    assert run_commands("```console\n$ echo 2\n3\n```\n") == "```console\n$ echo 2\n2\n```\n"


def test_pages_that_are_linked_exist():
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize(
    "package",
    [
        f"crowdwise{room}"
        for room in (
            *("", ".crowd", ".datasets", ".em", ".formats", ".model_selection", ".paper.reproduce", ".paper.theory"),
            *(".plots", ".results", ".weights"),
        )
    ],
)
def test_the_reference_has_all_public_functions_and_classes(package):
    lines = {line.strip() for line in (DOCS / "api.rst").read_text(encoding="utf-8").splitlines()}
    module = importlib.import_module(package)
    prefix = package.removeprefix("crowdwise").lstrip(".")
    known = lines | set(crowdwise.__all__) if prefix else lines  # everyday names are there once, without a module
    names = [name for name in module.__all__ if callable(getattr(module, name))]
    assert [name for name in names if not {name, f"{prefix}.{name}"} & known] == []


def numbers_outside(text):
    """Rows of tables with two measured numbers or more that stand outside the comments of a benchmark."""
    outside = re.sub(r"<!-- table: .*?<!-- end -->|`[^`\n]+`", "", text, flags=re.DOTALL)
    rows = [line for line in outside.splitlines() if line.startswith("|")]
    return [row for row in rows if len(re.findall(r"\b\d+\.\d+\b|\d %", row)) > 1]


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_measured_numbers_are_written_by_a_benchmark(page):
    assert numbers_outside(page.read_text(encoding="utf-8")) == []


def test_a_table_made_by_hand_is_noticed():
    row = "| music | 0.819 | 0.650 |"
    assert numbers_outside(f"| set | ours | theirs |\n|---|---|---|\n{row}\n") == [row]
    assert numbers_outside(f"<!-- table: x -->\n{row}\n<!-- end -->") == []


TABLES = re.compile(r"<!-- table: .*?<!-- end -->", flags=re.DOTALL)
CODE = re.compile(r"^```.*?^```|`[^`\n]+`|\]\([^)]*\)", flags=re.DOTALL | re.MULTILINE)
# Decimals, percentages, points, and so many of so many: what was measured looks like one of these.
NUMBERS = re.compile(
    r"(?<![\w.])\d*\.\d+\b(?!\.)|\b\d+(?=%| %| points?\b)|\b\d+(?= of \d)|(?<= of )\d+\b|\b\d+(?= to \d+ ?%)"
)


def numbers(text):
    return [float(number) for number in NUMBERS.findall(text)]


def not_in_tables(text):
    """Numbers in the sentences of a page that none of its tables has: nothing wrote them, or they are stale."""
    known = {float(number) for table in TABLES.findall(text) for number in re.findall(r"\d*\.?\d+", table)}
    return [number for number in numbers(CODE.sub("", TABLES.sub("", text))) if number not in known]


# What pages define or quote; everything else in their sentences must be in one of their tables.
DEFINED = {
    "README.md": {3.11},
    "docs/first-steps.md": {3.11, 3.13, 95.0},
    "docs/paper.md": {4.1, 4.2, 0.4, 0.54},  # sections, and a row of its Table 1
    "docs/evidence/data.md": {2.0},  # Apache 2.0
    "docs/evidence/ordinal.md": {5.0, 95.0},  # labels at random in simulated crowds, and the level of intervals
    "docs/evidence/reproduction.md": {0.01, 0.02},  # the level of tests, and how near to the boundary no example is
    "docs/evidence/trust.md": {70.0},  # share of the examples in a part of a set
    "docs/evidence/weighting.md": {30.0},  # share of the examples that mislead
    "docs/guide/agreement.md": {0.8, 0.667, 0.2, 0.15, 0.1},  # what authors recommend
    "docs/guide/choosing.md": {2.0},
    "docs/guide/command-line.md": {95.0},
    "docs/guide/judges.md": {5.0},
    "docs/guide/labels.md": {1.0},
    "docs/guide/ordered.md": {3.7},
}
# Their numbers are constants of the code, see below.
OF_CODE = {"docs/method.md": set(), "docs/results.md": {0.9, 0.05, 95.0, 90.0, 0.3}}  # quoted, or examples
SENTENCES = [page for page in PAGES if name_of(page) not in OF_CODE]


@pytest.mark.parametrize("page", SENTENCES, ids=names(SENTENCES))
def test_numbers_in_sentences_are_those_of_the_tables(page):
    found = not_in_tables(page.read_text(encoding="utf-8"))
    assert [number for number in found if number not in DEFINED.get(name_of(page), ())] == []


def test_a_stale_number_in_a_sentence_is_noticed():
    table = "<!-- table: x -->\n| a | 0.81 | 12 of 20 | 7% |\n<!-- end -->"
    assert not_in_tables(f"It is 0.81 on 12 of 20, and 7% off.\n{table}") == []
    assert not_in_tables(f"It is 0.82 on 13 of 20, and 8% off, .5 here.\n{table}") == [0.82, 13.0, 8.0, 0.5]


@pytest.mark.parametrize("name", sorted(OF_CODE))
def test_constants_on_pages_are_those_of_the_code(name):
    limits = (ROOT / "crowdwise" / "_limits.py").read_text(encoding="utf-8")
    known = {float(number) for number in re.findall(r"\d*\.?\d+(?:e-?\d+)?", limits)}
    found = numbers(CODE.sub("", (ROOT / name).read_text(encoding="utf-8")))
    assert [number for number in found if number not in known | OF_CODE[name]] == []


def test_every_page_is_linked_from_the_first_pages_on():
    reached, todo = set(), [ROOT / "README.md", DOCS / "index.md"]
    while todo:
        page = todo.pop()
        if page not in reached:
            reached.add(page)
            text = re.sub(r"```\{toctree\}.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
            links = re.findall(r"\]\(([^)#:]+\.md)(?:#[^)]*)?\)", text)
            todo += [(page.parent / link).resolve() for link in links]
    assert [name_of(page) for page in PAGES if page.resolve() not in reached] == []


MADE = re.compile(
    r"<sub>`python (?P<script>\S+)[^`]*`, \d{4}-\d\d-\d\d, (no commit|commit [0-9a-f]{10}( with later changes)?), "
    r"\d+ s</sub>"
)


@pytest.mark.parametrize("page", PAGES, ids=names(PAGES))
def test_every_table_of_a_benchmark_says_how_it_was_made(page):
    text = page.read_text(encoding="utf-8")
    for name, inside in re.findall(r"<!-- table: (.*?) -->(.*?)<!-- end -->", text, flags=re.DOTALL):
        script = f"benchmarks/{name.split()[0]}.py"
        assert (ROOT / script).exists(), f"{name}: there is no {script}"
        made = MADE.search(inside)
        assert made, f"{name} does not say how it was made"
        assert made["script"] == script


MOST_WORDS = 20_000


def test_pages_are_short_enough_to_be_read():
    pages = [
        *DOCS.glob("*.md"),
        *DOCS.glob("*.rst"),
        *(path for room in ("guide", "evidence") for path in (DOCS / room).glob("*.md")),
    ]
    # The bars between the cells of tables are no words.
    words = {name_of(page): len(re.findall(r"\S*\w\S*", page.read_text(encoding="utf-8"))) for page in pages}
    assert sum(words.values()) <= MOST_WORDS, f"all pages of docs/ have {sum(words.values()):,} words: {words}"
