"""Rows -> a table in Markdown, printed, and written into its page with a line that says how it was made.

A page has two comments where a table belongs; everything between them is replaced:

    <!-- table: curricula p=1 steepness=2 -->
    <!-- end -->

The name begins with that of the benchmark, so a reader of the page knows what to run.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from types import TracebackType

from timing import environment

from crowdwise.exceptions import MissingDataError

ROOT = Path(__file__).resolve().parents[1]


class MarkerError(ValueError):
    """A page has no place for a table, or more than one."""


@dataclass(frozen=True)
class Place:
    """Where a table belongs.

    Parameters
    ----------
    page : str
        The page, from the root of the repository.
    name : str
        The table's name in the page's comment.
    """

    page: str
    name: str

    @property
    def begin(self) -> str:
        """The comment above the table."""
        return f"<!-- table: {self.name} -->"

    def replaced(self, text: str, content: str) -> str:
        """The text of the page with this content between the comments."""
        if text.count(self.begin) != 1:
            raise MarkerError(
                f"{self.page} must have {self.begin} once, above the place of the table; found it "
                f"{text.count(self.begin)} times. Nothing was written."
            )
        before, _, rest = text.partition(self.begin)
        inside, end, after = rest.partition(END)
        if not end or "<!-- table:" in inside:
            raise MarkerError(f"{self.page} must have {END} after {self.begin}. Nothing was written.")
        return f"{before}{self.begin}\n{content.strip()}\n{END}{after}"

    def write(self, content: str) -> None:
        """Replace what the page has there."""
        path = ROOT / self.page
        path.write_text(self.replaced(path.read_text(encoding="utf-8"), content), encoding="utf-8")


END = "<!-- end -->"


def markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; every row must have a cell per column.

    >>> print(markdown(("data", "AUC"), [("a", "0.9")]))
    | data | AUC |
    |---|---|
    | a | 0.9 |
    """
    return "\n".join([_line(columns), "|" + "---|" * len(columns), *(_line(row, len(columns)) for row in rows)])


def _line(cells: Sequence[str], n_columns: int | None = None) -> str:
    if n_columns not in (None, len(cells)):
        raise ValueError(f"a row must have {n_columns} cells, as the table has columns; got {list(cells)}.")
    if any("|" in cell or "\n" in cell for cell in cells):
        raise ValueError(f"a cell must not have | or a new line in it; got {list(cells)}.")
    return "| " + " | ".join(cells) + " |"


def bold_best(cells: Sequence[str]) -> list[str]:
    """The same with the largest number, as it is shown, in bold; all of them if there are several.

    >>> bold_best(["0.91", "-", "0.93"])
    ['0.91', '-', '**0.93**']
    """
    numbers = [float(cell) if re.fullmatch(r"[+-]?[\d.]+", cell) else float("-inf") for cell in cells]
    if not numbers or max(numbers) == float("-inf"):
        return list(cells)
    return [f"**{cell}**" if number == max(numbers) else cell for cell, number in zip(cells, numbers, strict=True)]


@dataclass(frozen=True)
class Found:
    """A table of a page: its name, and its columns (none if it is text)."""

    name: str
    columns: list[str]


def tables_in(text: str) -> Iterator[Found]:
    """The tables that stand between comments."""
    for name, inside in re.findall(rf"<!-- table: (.*?) -->\n(.*?){END}", text, flags=re.DOTALL):
        head = next((line for line in inside.splitlines() if line.startswith("|")), "")
        columns = [cell.strip() for cell in head.strip("|").split("|")] if head else []
        yield Found(name, columns)


def parser(doc: str, parts: Iterable[str] = (), *, writes: bool = True) -> argparse.ArgumentParser:
    """Arguments that every benchmark takes; `doc` is shown by --help, all parts are run if none is named."""
    made = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    either = made.add_mutually_exclusive_group()
    either.add_argument("--quick", action="store_true", help="small data, seconds: to see that it runs; never written")
    if writes:
        either.add_argument("--write", action="store_true", help="write the tables into their pages")
    if known := list(parts):

        def part(name: str) -> str:
            if name not in known:
                raise argparse.ArgumentTypeError(f"must be one of {', '.join(known)}; got {name!r}")
            return name

        # As choices, argparse would look for the default, a list, among them.
        made.add_argument("parts", nargs="*", type=part, default=known, metavar="part", help=", ".join(known))
    return made


class Run:
    """One run of a benchmark: prints its tables and, if asked to, writes them.

    Parameters
    ----------
    options : Namespace
        What `parser` read.
    places : iterable of Place, default=()
        Where tables will be written; a missing comment is found before the work starts.
    """

    def __init__(self, options: argparse.Namespace, places: Iterable[Place] = ()) -> None:
        self.quick, self.writes = options.quick, getattr(options, "write", False)
        self.began = time.perf_counter()
        self.source = commit()  # of the code that runs, not of what is there at the end
        if self.writes:
            for place in places:
                place.replaced((ROOT / place.page).read_text(encoding="utf-8"), "")
        sys.excepthook = _without_data
        print(environment(), flush=True)
        if self.quick:
            print("Quick run on small data: it shows that the benchmark works, its numbers mean nothing.", flush=True)

    def table(self, place: Place, columns: Sequence[str], rows: Iterable[Sequence[str]], note: str = "") -> None:
        """Show a table, a note below it if there is one, and how it was made."""
        rows = list(rows)
        if self.writes and not rows:
            raise SystemExit(f"nothing was measured for {place.begin}: the page is as it was. Are the data there?")
        self.text(place, markdown(columns, rows), note)

    def text(self, place: Place, content: str, note: str = "") -> None:
        """The same for anything that is no table."""
        content = "\n\n".join(part for part in (content, note, self._made()) if part)
        print(f"\n{place.begin}\n{content}\n{END}", flush=True)
        if self.writes:
            place.write(content)
            print(f"written into {place.page}", flush=True)
        self.began = time.perf_counter()

    def _made(self) -> str:
        if self.quick:
            return "*Quick run, not for a page.*"
        seconds = time.perf_counter() - self.began
        command = " ".join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]])
        return f"<sub>`{command}`, {date.today()}, {self.source}, {seconds:.0f} s</sub>"


def _without_data(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Data that are not there are a message; anything else is a traceback."""
    if not isinstance(error, (MissingDataError, FileNotFoundError)):
        sys.__excepthook__(kind, error, trace)
        return
    print(f"{error}\nThis benchmark needs data: CROWDWISE_DATA names their directory.", file=sys.stderr)


def commit() -> str:
    """The commit of the code, and whether it was changed since."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()

    try:
        # Results that are kept are no code.
        changed = git("status", "--porcelain", "--", "crowdwise", "benchmarks", ":!benchmarks/results")
        return f"commit {git('rev-parse', '--short=10', 'HEAD')}" + (" with later changes" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "no commit"
