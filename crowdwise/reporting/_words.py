"""Numbers and names -> words."""

from __future__ import annotations

from typing import Any

from crowdwise._text import count

NAMED = 3  # names that a sentence has at most


def percent(share: float, digits: int = 0) -> str:
    """A share as a percentage, never rounded up to 100% nor down to 0%."""
    text = f"{100 * share:.{digits}f}"
    least = 10.0**-digits
    if share < 1 and float(text) >= 100:
        return f"over {100 - least:.{digits}f}%"
    if share > 0 and float(text) <= 0:
        return f"under {least:.{digits}f}%"
    return f"{text}%"


def short_percent(share: float, digits: int = 0) -> str:
    """The same for a narrow column."""
    return percent(share, digits).replace("over ", "> ").replace("under ", "< ")


def decimal(value: float, digits: int = 2) -> str:
    """A number with the sign of typography."""
    return f"{value:.{digits}f}".replace("-", "−")


def rounded(value: float) -> str:
    """A number to one digit after the point, and none where that is zero."""
    return f"{value:,.1f}".removesuffix(".0")


def some_of(names: list[str]) -> str:
    """The first few names, and how many more there are."""
    more = len(names) - NAMED
    names = names if more <= 1 else [*names[:NAMED], count(more, "other")]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def interval(part: dict[str, Any], scale: float = 1.0, digits: int = 2) -> str:
    """The ends of an interval."""
    return f"{decimal(scale * part['low'], digits)} to {decimal(scale * part['high'], digits)}"
