"""A fit and its labels -> a report on disk, in one call; names that look like personal data become A1, A2, ..."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

from crowdwise._files import write_file
from crowdwise.exceptions import OutputError
from crowdwise.reporting.fit import Fit, named
from crowdwise.reporting.render import render_html, render_json, render_markdown
from crowdwise.reporting.summarize import summary_of

RENDERERS = {".html": render_html, ".md": render_markdown, ".json": render_json}
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
    """Write what a fit found out as one page that opens anywhere and loads nothing.

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
        Right answers, as far as they are known, in the same way.
    times : array-like of shape (n_labels,), default=None
        When each label was given, see `crowdwise.slices.accuracy_over_time`.
    command : str, default=None
        What to type to do this again.
    title : str, default=None
        What the report is called, such as the name of a file and a date.
    names : bool, default=False
        Whether to show names of annotators that look like personal data (e-mail addresses, ids of Mechanical Turk and
        Prolific). By default these are A1, A2, ..., in the order of the labels' annotators.
    path : str or path, default="report.html"
        Where to write it. The ending states what: ".html", ".md" or ".json".

    Returns
    -------
    path : Path
        Where it is. A file that was there is replaced.

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
    free = (alias for alias in (f"A{i}" for i in count(1)) if alias not in taken)
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
