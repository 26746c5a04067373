"""A summary -> a page, a text or JSON. Templates only format; text from the data is always text."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from typing import Any

from crowdwise._text import count, how_to_install
from crowdwise.exceptions import MissingExtraError
from crowdwise.formats._write import safe_cell
from crowdwise.reporting import _svg, _words
from crowdwise.reporting._svg import Markup
from crowdwise.reporting.fit import Summary
from crowdwise.reporting.summarize import SECTIONS

_TEMPLATES = files("crowdwise.reporting") / "templates"
# What would be mark-up, in JSON inside a page and in Markdown.
_MARKS = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_MARKDOWN = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_{}[]#|~!"} | {"<": "&lt;", ">": "&gt;"})


def render_html(summary: Summary) -> str:
    """The report as one page that loads nothing from elsewhere.

    Parameters
    ----------
    summary : dict
        What `summarize` gives.

    Returns
    -------
    page : str
    """
    style, script = _source("report.css"), _source("report.js")
    return _render(
        "report.html",
        summary,
        autoescape=True,
        pages=[page for section in SECTIONS for page in section.PAGES if summary.get(page[0], True)],
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
        data=Markup(embedded_json(_details(summary))),
    )


def render_index(rows: list[dict[str, Any]], title: str) -> str:
    """A page that leads to several reports, each with its first numbers, or with the reason why there is none."""
    style = _source("report.css")
    given = {"rows": rows, "title": title, "style": Markup(style), "style_hash": _hash(style)}
    return _environment(autoescape=True).get_template("index.html").render(**given)


def render_markdown(summary: Summary) -> str:
    """The report as Markdown, without pictures.

    Parameters
    ----------
    summary : dict
        What `summarize` gives.

    Returns
    -------
    text : str
    """
    return _render("report.md", summary, autoescape=False)


def render_json(summary: Summary) -> str:
    """The summary as JSON.

    Parameters
    ----------
    summary : dict
        What `summarize` gives.

    Returns
    -------
    text : str
    """
    return json.dumps(summary, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def embedded_json(value: Any) -> str:
    """JSON that may stand inside an element of a page: nothing in it can end the element."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for mark, escaped in _MARKS.items():
        text = text.replace(mark, escaped)
    return text


def markdown_cell(value: Any) -> str:
    """Text that stays text in a cell of a table: no mark-up, one line."""
    return " ".join(str(value).split()).translate(_MARKDOWN)


def _details(summary: Summary) -> dict[str, Any]:
    """What the page's script shows when an annotator is opened, and the tables that it saves."""
    keys = ("confusion", "mixed_up", "alone")
    rows = [{key: row[key] for key in keys if row.get(key)} for row in summary["annotators"]["rows"]]
    return {"classes": summary["classes"], "annotators": rows, "tables": _tables(summary)}


def _tables(summary: Summary) -> dict[str, list[list[Any]]]:
    """Examples and annotators as rows of cells under a header; text that a spreadsheet would run stays text."""
    names = {"example": "example", "label": "label", "sure": "confidence" if summary["classes"] else "std"}
    names |= {"first": "majority" if summary["classes"] else "mean", "labels": "labels", "disagreement": "disagreement"}
    if any(row.get("truth") is not None for row in summary["order"]["rows"]):
        names["truth"] = "truth"
    people = [{**row, "flags": "; ".join(row["flags"])} for row in summary["annotators"]["rows"]]
    plain = [key for key in (people[0] if people else {}) if key not in ("bar", "confusion", "mixed_up", "alone")]
    return {
        "consensus": [[*names.values()], *([safe_cell(row[key]) for key in names] for row in summary["order"]["rows"])],
        "annotators": [plain, *([safe_cell(row[key]) for key in plain] for row in people)],
    }


def _render(template: str, summary: Summary, *, autoescape: bool, **given: Any) -> str:
    """Fill a template with a summary."""
    environment = _environment(autoescape=autoescape)
    environment.globals.update(summary=summary, classes=summary["kind"] == "class")
    return environment.get_template(template).render(**given)


def _environment(*, autoescape: bool) -> Any:
    """What templates can use; escaping is off for Markdown only, which has marks of its own."""
    try:
        import jinja2
    except ImportError:
        raise MissingExtraError(f"a report needs Jinja2: {how_to_install('report')}.") from None
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        autoescape=autoescape,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["cell"] = markdown_cell
    sections = {section.__name__.rpartition(".")[2]: section for section in SECTIONS}
    environment.globals.update(sections, count=count, svg=_svg, words=_words)
    return environment


def _source(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    """What a content security policy calls a script or style that may be used."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
