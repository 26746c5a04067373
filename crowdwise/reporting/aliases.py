"""Names of annotators that look like personal data -> A1, A2, ... in what is shown to others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any

from crowdwise.reporting.fit import named

# An e-mail address, an id of Mechanical Turk, which leads to a public profile, and one of Prolific.
_PERSONAL = re.compile(r"[^\s@'\"]+@[^\s@'\"]+\.[^\s@'\"]+|\bA(?=[A-Z]*[0-9])[0-9A-Z]{11,13}\b|\b[0-9a-f]{24}\b")


def aliases_of(annotators: Iterable[Any]) -> dict[str, str]:
    """A name to show in place of each annotator's own, where that looks like personal data; others are left out.

    Examples
    --------
    >>> from crowdwise.reporting.aliases import aliases_of
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
