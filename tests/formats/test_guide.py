"""The guide about files."""

from pathlib import Path

from pages import run_code

from crowdwise import formats

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "formats.md"


def test_the_code_of_the_guide_runs_as_pasted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = GUIDE.read_text(encoding="utf-8")
    assert run_code(text, GUIDE.name)[0] == text
    assert (tmp_path / "wide.csv").read_text() == "example,ann,bob\nt1,yes,no\nt2,yes,yes\nt3,no,no\n"


def test_every_format_is_in_the_guide():
    text = GUIDE.read_text(encoding="utf-8")
    assert [name for name in formats.FORMATS if name not in ("table", "wide") and f"`{name}`" not in text] == []
