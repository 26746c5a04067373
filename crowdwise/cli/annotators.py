"""``crowdwise annotators``: labels, or a run -> one row per annotator."""

from __future__ import annotations

from typing import Any

import click

from crowdwise.cli.options import FILE, abstentions_option, json_option, kind_option, labels_options, talk_options
from crowdwise.cli.show_table import csv_option, show_table_of


@click.command(
    "annotators",
    epilog="""\b
Examples:
  crowdwise annotators labels.csv
  crowdwise annotators run --json
""",
)
@click.argument("source", metavar="LABELS|RUN", type=FILE)
@labels_options
@kind_option
@abstentions_option
@json_option
@csv_option
@talk_options
def command(source: str, **options: Any) -> None:
    """Print how good each annotator is.

    From a file of labels, or from the folder of a run of crowdwise fit.
    """
    show_table_of(source, lambda run: run.table("annotators"), lambda run: run.annotators(), **options)
