"""A summary -> a page, a text or JSON. Templates only format; text from the data is always text."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from typing import Any

from crowdwise._text import count, how_to_install
from crowdwise.exceptions import MissingExtraError
from crowdwise.reporting import words

_TEMPLATES = files("crowdwise.reporting") / "templates"
# What would be mark-up, in JSON inside a page and in Markdown.
_MARKS = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_MARKDOWN = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_{}[]#|~!"} | {"<": "&lt;", ">": "&gt;"})


def render_html(summary: dict[str, Any]) -> str:
    """The report as one page that loads nothing from elsewhere.

    Parameters
    ----------
    summary : dict
        What `summarize` gives.

    Returns
    -------
    page : str
    """
    environment = _environment(autoescape=True)
    from crowdwise.reporting import pictures  # which needs what comes with Jinja2

    style, script = _source("report.css"), _source("report.js")
    return environment.get_template("report.html").render(
        summary=summary,
        style=pictures.Markup(style),
        script=pictures.Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
        data=pictures.Markup(embedded_json(_details(summary))),
        pictures=pictures,
    )


def render_markdown(summary: dict[str, Any]) -> str:
    """The report as Markdown, without pictures.

    Parameters
    ----------
    summary : dict
        What `summarize` gives.

    Returns
    -------
    text : str
    """
    environment = _environment(autoescape=False)
    environment.filters["cell"] = markdown_cell
    return environment.get_template("report.md").render(summary=summary)


def render_json(summary: dict[str, Any]) -> str:
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


def _details(summary: dict[str, Any]) -> dict[str, Any]:
    """What the page's script shows when an annotator is opened."""
    keys = ("confusion", "mixed_up", "alone")
    rows = [{key: row[key] for key in keys if row.get(key)} for row in summary["annotators"]["rows"]]
    return {"classes": summary["classes"], "annotators": rows}


def _environment(*, autoescape: bool) -> Any:
    """What finds and fills templates; escaping is off for Markdown only, which has marks of its own."""
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
    named = (
        "calibration_sentence",
        "chance_sentence",
        "changed_words",
        "classifier_sentence",
        "decimal",
        "percent",
        "rare_class_sentence",
        "rounded",
        "short_percent",
    )
    environment.globals.update({"count": count} | {name: getattr(words, name) for name in named})
    return environment


def _source(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    """What a content security policy calls a script or style that may be used."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
