"""``crowdwise next``: labels, or a run -> the examples to label next, and why."""

from __future__ import annotations

from typing import Any

import click

from crowdwise.cli.options import FILE, abstentions_option, json_option, kind_option, labels_options, talk_options
from crowdwise.cli.show_table import csv_option, show_table_of


@click.command(
    "next",
    epilog="""\b
Examples:
  crowdwise next labels.csv -n 10
  crowdwise next run
""",
)
@click.argument("source", metavar="LABELS|RUN", type=FILE)
@click.option("-n", "n", type=click.IntRange(min=1), default=50, show_default=True, help="How many examples.")
@labels_options
@kind_option
@abstentions_option
@json_option
@csv_option
@talk_options
def command(source: str, n: int, **options: Any) -> None:
    """Print what to label next, and why.

    The examples first for which one more answer by an average annotator is expected to say most.
    From a file of labels, or from the folder of a run of crowdwise fit.
    """
    show_table_of(source, lambda run: run.table("next").first(n), lambda run: run.next(n), **options)
