"""Words for messages: counts, names, what a terminal may show, how to install an extra, versions, small tables."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib import import_module
from typing import Any

_MOST_NAMES = 8
_LONGEST_CELL = 60


def count(n: int, one: str, many: str | None = None) -> str:
    """A number and what it counts; several are called by what a single one is with an s, unless `many` is given.

    Examples
    --------
    >>> from crowdwise._text import count
    >>> count(1, "label"), count(2000, "class is", "classes are")
    ('1 label', '2,000 classes are')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def some_names(names: Sequence[str]) -> str:
    """Names with commas; of many the first few, and how many more there are.

    Examples
    --------
    >>> from crowdwise._text import some_names
    >>> some_names(["ann", "bob"]), some_names("abcdefghij")
    ('ann, bob', 'a, b, c, d, e, f, g, h and 2 more')
    """
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")


def printable(text: str) -> str:
    """A text that is nothing but letters and ends of lines to a terminal.

    Examples
    --------
    >>> from crowdwise._text import printable
    >>> printable("\\x1b[31mré\\n")
    '�[31mré\\n'
    """
    return re.sub(r"[^ -~\n]", lambda sign: sign[0] if sign[0].isprintable() else "\N{REPLACEMENT CHARACTER}", text)


def how_to_install(extra: str) -> str:
    """What to type for a name of ``[project.optional-dependencies]``, from a package index and in a checkout.

    Examples
    --------
    >>> how_to_install("plot")
    "pip install 'crowdwise[plot]' (in a checkout of crowdwise: pip install '.[plot]')"
    """
    return f"pip install 'crowdwise[{extra}]' (in a checkout of crowdwise: pip install '.[{extra}]')"


def versions() -> dict[str, str]:
    """The versions of everything that a result may depend on.

    Examples
    --------
    >>> from crowdwise._text import versions
    >>> list(versions())
    ['python', 'platform', 'crowdwise', 'numpy', 'scipy', 'scikit-learn']
    """
    from importlib.metadata import PackageNotFoundError, version  # which takes a while to import

    ours = import_module("crowdwise").__version__  # whose modules import this one
    known = {"python": platform.python_version(), "platform": platform.platform(), "crowdwise": ours}
    for package in ("numpy", "scipy", "scikit-learn"):
        try:
            known[package] = version(package)
        except PackageNotFoundError:  # installed in some other way
            known[package] = "unknown"
    return known


def table(rows: Iterable[Sequence[Any]], *, head: Sequence[Any] = (), title: str = "") -> str:
    """A table as HTML; None is an empty cell.

    Examples
    --------
    >>> from crowdwise._text import table
    >>> table([["<b>", 1]])
    '<table><tbody><tr><td>&lt;b&gt;</td><td>1</td></tr></tbody></table>'
    """
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    top = f"<thead>{_row(head, 'th')}</thead>" if head else ""
    return f"<table>{caption}{top}<tbody>{''.join(_row(row, 'td') for row in rows)}</tbody></table>"


def _row(cells: Iterable[Any], name: str) -> str:
    return "<tr>" + "".join(f"<{name}>{_cell(cell)}</{name}>" for cell in cells) + "</tr>"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = f"{value:.3g}" if isinstance(value, float) else str(value)
    return escape(text if len(text) <= _LONGEST_CELL else text[: _LONGEST_CELL - 1] + "…")
