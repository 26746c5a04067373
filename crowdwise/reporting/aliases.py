"""Names of annotators that look like personal data -> A1, A2, ... in what is shown to others."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any

from crowdwise.reporting.fit import named
from crowdwise.reporting.summarize import headline

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
    """A summary in which annotators have the aliases that `aliases_of` gives."""
    if not aliases:
        return summary

    def alias(name: str) -> str:
        return aliases.get(name, name)

    def flag(text: str) -> str:  # which may name another annotator
        return _PERSONAL.sub(lambda found: alias(found[0]), text)

    def example(row: dict[str, Any]) -> dict[str, Any]:
        return row | {"said": [answer | {"annotators": [*map(alias, answer["annotators"])]} for answer in row["said"]]}

    def pair(row: dict[str, Any]) -> dict[str, Any]:
        return row | {"first": alias(row["first"]), "second": alias(row["second"])}

    hidden = dict(summary)
    for name in sorted(aliases, key=len, reverse=True):  # in options, and in names of files
        hidden["command"] = hidden["command"] and hidden["command"].replace(name, aliases[name])
    for part in ("changed", "contested", "next"):
        hidden[part] = summary[part] | {"rows": [example(row) for row in summary[part]["rows"]]}
    rows = [
        row | {"annotator": alias(row["annotator"]), "flags": [*map(flag, row["flags"])]}
        for row in summary["annotators"]["rows"]
    ]
    hidden["annotators"] = summary["annotators"] | {"rows": rows}
    if pairs := summary["pairs"]:
        grid = pairs["grid"] | {"annotators": [*map(alias, pairs["grid"]["annotators"])]}
        hidden["pairs"] = pairs | {"grid": grid} | {end: [*map(pair, pairs[end])] for end in ("least", "most")}
    return hidden | {"headline": headline(hidden)}
