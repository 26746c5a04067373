"""``crowdwise next``: labels, or a run -> the examples to label next, and why."""

from __future__ import annotations

from typing import Any

import click

from crowdwise.cli.show_table import show_table_of, table_options


@click.command(
    "next",
    epilog="""\b
Examples:
  crowdwise next labels.csv -n 10
  crowdwise next run
""",
)
@click.option("-n", "n", type=click.IntRange(min=1), default=50, show_default=True, help="How many examples.")
@table_options
def command(source: str, n: int, **options: Any) -> None:
    """Print what to label next, and why.

    The examples first for which one more answer is expected to say most: by an average annotator, or, if known answers
    were learnt from, one more of these.
    From a file of labels, or from the folder of a run of crowdwise fit.
    """
    show_table_of(source, lambda run: run.table("next").first(n), lambda run: run.next(n), **options)
