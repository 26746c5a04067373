"""Rows of values -> a small table for notebooks; everything that comes from the data is text in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

_LONGEST = 60


def table(rows: Iterable[Sequence[Any]], *, head: Sequence[Any] = (), title: str = "") -> str:
    """A table as HTML; None is an empty cell.

    Examples
    --------
    >>> from crowdwise.html_tables import table
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
    return escape(text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…")
