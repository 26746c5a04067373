"""What a command says besides its result: on standard error, quietly or in detail, progress only on a terminal."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import click

from crowdwise._text import printable


@dataclass(frozen=True)
class Talk:
    """How much is said: nothing but errors, or how long each step takes, too."""

    quiet: bool = False
    verbose: bool = False

    def say(self, text: str) -> None:
        """A line that is worth knowing."""
        if not self.quiet:
            self.progress("")
            click.echo(printable(text), err=True)

    def progress(self, text: str) -> None:
        """What is being done, in place of what was shown before; on a terminal only."""
        if not self.quiet and sys.stderr is not None and sys.stderr.isatty():
            click.echo(f"\r\033[K{text}", err=True, nl=False)

    def rows_read(self, n_rows: int) -> None:
        """How far a large file has been read."""
        self.progress(f"{n_rows:,} rows read ...")

    def round_done(self, done: Any) -> None:
        """How far a fit has come."""
        self.progress(f"{done} ...")

    @contextmanager
    def step(self, doing: str) -> Iterator[None]:
        """Show what is being done while it is; and how long it took if that is asked for."""
        began = time.monotonic()
        self.progress(f"{doing} ...")
        try:
            yield
        finally:
            self.progress("")
        if self.verbose:
            self.say(f"{doing}: {time.monotonic() - began:.1f} s")

    @contextmanager
    def warnings_as_notes(self) -> Iterator[None]:
        """Warnings of the library as plain lines, each once."""
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            said: set[str] = set()

            def show(message: Any, category: Any, *_: Any, **__: Any) -> None:
                from crowdwise.exceptions import CrowdWarning

                text = str(message)
                if text not in said and (self.verbose or issubclass(category, CrowdWarning)):
                    said.add(text)
                    self.say(f"note: {text}")

            warnings.showwarning = show
            yield
