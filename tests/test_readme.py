import re
from pathlib import Path


def test_the_example_of_the_readme_runs():
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", readme, flags=re.DOTALL)
    names = {}
    exec(example, names)
    assert names["model"].score(names["X"], names["truth"]) > 0.9


def test_pages_that_are_linked_exist():
    root = Path(__file__).parents[1]
    for page in [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
