"""``crowdwise annotators``: labels, or a run -> one row per annotator."""

from __future__ import annotations

from operator import methodcaller
from typing import Any

import click

from crowdwise.cli.show_table import show_table_of, table_options


@click.command(
    "annotators",
    epilog="""\b
Examples:
  crowdwise annotators labels.csv
  crowdwise annotators votes.csv --truth answers.csv --use-truth
  crowdwise annotators run --json
""",
)
@table_options
def command(source: str, **options: Any) -> None:
    """Print the estimated accuracy of each annotator.

    From a file of labels, or from the folder of a run of crowdwise fit.
    """
    show_table_of(source, methodcaller("table", "annotators"), **options)
