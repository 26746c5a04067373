"""Results on standard output; notes on standard error, quietly or in detail, progress only on a terminal."""

from __future__ import annotations

import sys
import textwrap
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import click

from crowdwise._text import printable


@dataclass(frozen=True)
class Console:
    """How much is printed besides the result: nothing, or how long each step takes, too."""

    quiet: bool = False
    verbose: bool = False

    def info(self, text: str) -> None:
        """A line that is worth knowing."""
        if not self.quiet:
            self.progress("")
            click.echo(printable(text), err=True)

    def progress(self, doing: Any) -> None:
        """What is being done, in place of what was shown before; on a terminal only."""
        if not self.quiet and sys.stderr is not None and sys.stderr.isatty():
            click.echo(f"\r\033[K{doing} ..." if doing else "\r\033[K", err=True, nl=False)

    @contextmanager
    def step(self, doing: str) -> Iterator[None]:
        """Show what is being done while it is, and warnings as plain lines, each once."""
        began = time.monotonic()
        shown: set[str] = set()

        def show_warning(message: Any, category: Any, *_: Any, **__: Any) -> None:
            from crowdwise.exceptions import CrowdWarning

            text = str(message)
            if text not in shown and (self.verbose or issubclass(category, CrowdWarning)):
                shown.add(text)
                self.info(f"note: {text}")

        self.progress(doing)
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.showwarning = show_warning
            try:
                yield
            finally:
                self.progress("")
        if self.verbose:
            self.info(f"{doing}: {time.monotonic() - began:.1f} s")


def show_json(name: str, content: dict[str, Any]) -> None:
    """Print a result as JSON, with the version of its shape."""
    from crowdwise.runs.result_table import as_json

    show(as_json(name, content))


def show(text: str) -> None:
    """Print a result for people on standard output."""
    show_data(printable(text) + "\n")


def show_lines(lines: Iterable[str]) -> None:
    """Print lines that begin with a word of at most eleven letters, none longer than a screen is wide."""
    show("\n".join(textwrap.fill(line, 110, subsequent_indent=" " * 12) for line in lines))


def show_data(text: str) -> None:
    """Print a result for programs on standard output; signs that its encoding lacks are escaped."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    click.echo(text.encode(encoding, "backslashreplace").decode(encoding), nl=False)
