"""``crowdwise consensus``: labels, or a run -> one row per example."""

from __future__ import annotations

from operator import methodcaller
from typing import Any

import click

from crowdwise.cli.show_table import show_table_of, table_options


@click.command(
    "consensus",
    epilog="""\b
Examples:
  crowdwise consensus labels.csv
  crowdwise consensus votes.csv --truth answers.csv --use-truth
  crowdwise consensus run --json
""",
)
@table_options
def command(source: str, **options: Any) -> None:
    """Print the consensus, one row per example.

    From a file of labels, or from the folder of a run of crowdwise fit.
    """
    show_table_of(source, methodcaller("table", "consensus"), **options)
