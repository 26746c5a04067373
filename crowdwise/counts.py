"""A number -> the number and what it counts; many names -> the first few; a text -> what a terminal may show of it."""

from __future__ import annotations

import re
from collections.abc import Sequence

_MOST_NAMES = 8


def count(n: int, one: str, many: str | None = None) -> str:
    """A number and what it counts; several are called by what a single one is with an s, unless `many` says otherwise.

    Examples
    --------
    >>> from crowdwise.counts import count
    >>> count(1, "label"), count(2000, "class is", "classes are")
    ('1 label', '2,000 classes are')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def some_names(names: Sequence[str]) -> str:
    """Names with commas; of many the first few, and how many more there are.

    Examples
    --------
    >>> from crowdwise.counts import some_names
    >>> some_names(["ann", "bob"]), some_names("abcdefghij")
    ('ann, bob', 'a, b, c, d, e, f, g, h and 2 more')
    """
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")


def printable(text: str) -> str:
    """A text that tells a terminal nothing but its letters and the ends of lines.

    Examples
    --------
    >>> from crowdwise.counts import printable
    >>> printable("\\x1b[31mré\\n")
    '�[31mré\\n'
    """
    return re.sub(r"[^ -~\n]", lambda sign: sign[0] if sign[0].isprintable() else "\N{REPLACEMENT CHARACTER}", text)
