"""``crowdwise next``: labels, or a run -> the examples to check or label next, and why."""

from __future__ import annotations

from operator import methodcaller
from typing import Any

import click

from crowdwise.cli.show_table import show_table_of, table_options


@click.command(
    "next",
    epilog="""\b
Examples:
  crowdwise next labels.csv -n 10
  crowdwise next run
  crowdwise next labels.csv --crowd
  crowdwise next labels.csv -n 50 --at-random > to-answer.csv
""",
)
@click.option("-n", "n", type=click.IntRange(min=1), default=50, show_default=True, help="How many examples.")
@click.option("--crowd", is_flag=True, help="List where one more label from the crowd would add most.")
@click.option("--at-random", is_flag=True, help="Draw examples at random, to get answers for --truth.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the random draw.")
@table_options
def command(source: str, n: int, crowd: bool, at_random: bool, seed: int, **options: Any) -> None:
    """Print what an expert should check next, and why.

    The examples of which the consensus is least sure come first; with --crowd those where one more label by an average
    annotator is expected to add most. From a file of labels, or from the folder of a run of crowdwise fit.
    """
    table_of = methodcaller("next", n, crowd=crowd, at_random=at_random, seed=seed)
    show_table_of(source, table_of, **options)
