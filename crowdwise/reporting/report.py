"""A fit and its labels -> a report on disk: a page, a text or JSON. Templates only format; text of users stays text."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from itertools import count as count_from
from pathlib import Path
from typing import Any

from crowdwise._files import write_file
from crowdwise._text import count, how_to_install
from crowdwise.exceptions import MissingExtraError, OutputError
from crowdwise.formats._write import safe_cell
from crowdwise.reporting import fit as values
from crowdwise.reporting._svg import Markup
from crowdwise.reporting.fit import Fit, Summary, named
from crowdwise.reporting.summarize import PAGES, SECTIONS, summary_of

_TEMPLATES = files("crowdwise.reporting") / "templates"
# What would be mark-up, in JSON inside a page and in Markdown.
_MARKS = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})
_MARKDOWN = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_{}[]#|~!"} | {"<": "&lt;", ">": "&gt;"})
# An e-mail address, an id of Mechanical Turk, which leads to a public profile, and one of Prolific.
_PERSONAL = re.compile(r"[^\s@'\"]+@[^\s@'\"]+\.[^\s@'\"]+|\bA(?=[A-Z]*[0-9])[0-9A-Z]{11,13}\b|\b[0-9a-f]{24}\b")


def report(
    model: Any,
    labels: Any,
    *,
    X: Any = None,
    texts: Any = None,
    truth: Any = None,
    times: Any = None,
    command: str | None = None,
    title: str | None = None,
    names: bool = False,
    path: str | os.PathLike[str] = "report.html",
) -> Path:
    """Write a report on a fit: one page that opens anywhere and loads nothing.

    Parameters
    ----------
    model : estimator or FitResults
        A fitted model, or the result of `aggregate`.
    labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
        The labels that it was fitted to.
    X : array-like or sparse matrix of shape (n_examples, n_features), default=None
        The features that it was fitted to, for margins.
    texts : sequence of str, series or mapping, default=None
        Texts to show: a mapping or a series by the ids of the examples, else one per example in the order of the fit.
    truth : array-like, series or mapping, default=None
        Known answers for some or all examples, in the same way.
    times : array-like of shape (n_labels,), default=None
        When each label was given, see `crowdwise.slices.accuracy_over_time`.
    command : str, default=None
        The command that makes the report again.
    title : str, default=None
        Title of the report, such as the name of a file and a date.
    names : bool, default=False
        Whether to show names of annotators that look like personal data (e-mail addresses, ids of Mechanical Turk and
        Prolific). By default these are A1, A2, ..., in the order of the labels' annotators.
    path : str or path, default="report.html"
        Where to write it. The suffix sets the format: ".html", ".md" or ".json".

    Returns
    -------
    path : Path
        Where it is. An existing file is replaced.

    Examples
    --------
    >>> import tempfile
    >>> from crowdwise import aggregate, report
    >>> labels = [["a", "a", "b"], ["b", "b", "b"], ["a", "a", "a"], ["b", "b", "a"]]
    >>> report(aggregate(labels), labels, path=f"{tempfile.mkdtemp()}/report.json").name
    'report.json'
    """
    place = Path(path)
    if place.suffix not in RENDERERS:
        raise ValueError(f"path must end in {', '.join(RENDERERS)}, which says what to write; got {str(path)!r}.")
    if not place.parent.is_dir():
        raise OutputError(f"there is no directory {str(place.parent)!r} to write {place.name} to.")
    fit = Fit.of(model, labels, X=X, texts=texts, truth=truth, times=times)
    aliases = {} if names else aliases_of(fit.results.annotators.tolist())
    page = RENDERERS[place.suffix](with_aliases(summary_of(fit, command, title), aliases))
    write_file(Path(os.path.realpath(place)), page)
    return place


def aliases_of(annotators: Iterable[Any]) -> dict[str, str]:
    """A name to show in place of each annotator's own, where that looks like personal data; others are left out.

    Examples
    --------
    >>> from crowdwise.reporting.report import aliases_of
    >>> aliases_of(["ann@example.org", "gpt-4o", "A2XJ8OQ0BBB7C1"])
    {'ann@example.org': 'A1', 'A2XJ8OQ0BBB7C1': 'A2'}
    """
    names = [named(name) for name in annotators]
    taken = set(names)
    free = (alias for alias in (f"A{i}" for i in count_from(1)) if alias not in taken)
    return {name: next(free) for name in names if _PERSONAL.fullmatch(name)}


def with_aliases(summary: dict[str, Any], aliases: Mapping[str, str]) -> dict[str, Any]:
    """A summary in which annotators have the aliases that `aliases_of` gives, also inside sentences and options."""
    if not aliases:
        return summary
    names = re.compile("|".join(map(re.escape, sorted(aliases, key=len, reverse=True))))

    def hidden(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: hidden(part) for key, part in value.items()}
        if isinstance(value, list):
            return [hidden(part) for part in value]
        if isinstance(value, str) and _PERSONAL.search(value):  # much faster than a search for all names
            return names.sub(lambda name: aliases[name[0]], value)
        return value

    command = summary["command"] and names.sub(lambda name: aliases[name[0]], summary["command"])
    return {key: hidden(value) for key, value in summary.items()} | {"command": command}


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
        autoescape=True,
        summary=summary,
        classes=summary["kind"] == "class",
        pages=[page for page in PAGES if summary.get(page[0], True)],
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
        data=Markup(embedded_json(_page_data(summary))),
    )


def render_index(rows: list[dict[str, Any]], title: str) -> str:
    """A page that leads to several reports, each with its first numbers, or with the reason why there is none."""
    style = _source("report.css")
    return _render("index.html", autoescape=True, rows=rows, title=title, style=Markup(style), style_hash=_hash(style))


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
    return _render("report.md", autoescape=False, summary=summary, classes=summary["kind"] == "class")


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
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(_MARKS)


def markdown_cell(value: Any) -> str:
    """Text that stays text in a cell of a table: no mark-up, one line."""
    return " ".join(str(value).split()).translate(_MARKDOWN)


def _page_data(summary: Summary) -> dict[str, Any]:
    """What the page's script shows when an annotator is opened, and tables that it saves.

    These are rows of cells under a header; text that a spreadsheet would run stays text.
    """
    examples, annotators = summary["order"]["rows"], summary["annotators"]["rows"]
    names = {"example": "example", "label": "label", "sure": "confidence" if summary["classes"] else "std"}
    names |= {"first": "majority" if summary["classes"] else "mean", "labels": "labels", "disagreement": "disagreement"}
    if any(row.get("truth") is not None for row in examples):
        names["truth"] = "truth"
    details = ("confusion", "mixed_up", "alone")
    columns = [key for key in (annotators[0] if annotators else {}) if key not in ("bar", *details)]
    rows = [{**row, "flags": "; ".join(row["flags"])} for row in annotators]
    tables = {
        "consensus": [[*names.values()], *([safe_cell(row[key]) for key in names] for row in examples)],
        "annotators": [columns, *([safe_cell(row[key]) for key in columns] for row in rows)],
    }
    shown = [{key: row[key] for key in details if row.get(key)} for row in annotators]
    return {"classes": summary["classes"], "annotators": shown, "tables": tables}


def _render(template: str, *, autoescape: bool, **parts: Any) -> str:
    """Fill a template; escaping is off for Markdown only, which has marks of its own."""
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
    environment.globals.update(sections, count=count, words=values, **parts)
    return environment.get_template(template).render()


def _source(name: str) -> str:
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    """What a content security policy calls a script or style that may be used."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


RENDERERS = {".html": render_html, ".md": render_markdown, ".json": render_json}
