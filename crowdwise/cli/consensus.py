"""``crowdwise consensus``: labels, or a run -> one row per example."""

from __future__ import annotations

from typing import Any

import click

from crowdwise.cli.options import FILE, abstentions_option, json_option, kind_option, labels_options, talk_options
from crowdwise.cli.show_table import csv_option, show_table_of


@click.command(
    "consensus",
    epilog="""\b
Examples:
  crowdwise consensus labels.csv
  crowdwise consensus votes.csv --truth answers.csv --use-truth
  crowdwise consensus run --json
""",
)
@click.argument("source", metavar="LABELS|RUN", type=FILE)
@click.option("--truth", type=FILE, metavar="FILE", help="Known answers of some examples: they judge the result.")
@click.option("--use-truth", is_flag=True, help="They are learnt from too, and confidence is calibrated by them.")
@labels_options
@kind_option
@abstentions_option
@json_option
@csv_option
@talk_options
def command(source: str, **options: Any) -> None:
    """Print the consensus, one row per example.

    From a file of labels, or from the folder of a run of crowdwise fit.
    """
    show_table_of(source, lambda run: run.table("consensus"), lambda run: run.consensus(), **options)
