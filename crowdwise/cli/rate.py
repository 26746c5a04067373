"""``crowdwise rate``: labels or a run, and known answers -> the share of a class with its interval."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from crowdwise.cli import started
from crowdwise.cli.console import Console, show, show_json
from crowdwise.cli.options import FILE, console_options, json_option, reading_options


@click.command(
    "rate",
    epilog="""\b
Examples:
  crowdwise rate votes.csv --truth answers.csv --target pass
  crowdwise rate run --truth answers.csv --by systems.csv
""",
)
@click.argument("source", metavar="LABELS|RUN", type=FILE)
@click.option("--truth", type=FILE, metavar="FILE", help="Known answers for examples drawn at random.")
@click.option("--target", metavar="CLASS", help="The class to count; with two classes, the second by default.")
@click.option("--by", type=FILE, metavar="FILE", help="Groups to compare: a column of examples and one of groups.")
@reading_options()
@json_option
@console_options
def command(source: str, as_json: bool, reading: dict[str, Any], console: Console, **options: str | None) -> None:
    """Print how frequent a class is, with an interval.

    Such as a pass rate: the share of the consensus, corrected for its errors by known answers (--truth), and the
    difference between groups of examples (--by). Without known answers it is not corrected.
    """
    from crowdwise.runs.saved_run import rate_of

    started()
    with console.step("Working"):
        rate = rate_of(source, **options, labels_as=reading["labels_as"], info=console.info)
    if as_json:
        show_json("rate", asdict(rate))
    else:
        show(repr(rate))
