"""A number -> the number and what it counts, in the singular or the plural."""

from __future__ import annotations


def count(n: int, one: str, many: str | None = None) -> str:
    """A number and what it counts.

    Parameters
    ----------
    n : int
        How many.
    one : str
        What a single one is called, perhaps with its verb.
    many : str, default=None
        What several are called; by default the same with an s.

    Returns
    -------
    words : str

    Examples
    --------
    >>> from crowdwise.counts import count
    >>> count(1, "label"), count(2000, "class is", "classes are")
    ('1 label', '2,000 classes are')
    """
    return f"{n:,} {one if n == 1 else many or one + 's'}"
