"""``crowdwise next``: labels, or a run -> the examples to label next, and why."""

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
  crowdwise next votes.csv --expert
  crowdwise next labels.csv -n 50 --at-random > to-answer.csv
""",
)
@click.option("-n", "n", type=click.IntRange(min=1), default=50, show_default=True, help="How many examples.")
@click.option("--expert", is_flag=True, default=None, help="An expert answers, who knows the right answer.")
@click.option("--at-random", is_flag=True, help="Draw the examples at random: for answers to be given as --truth.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the draw.")
@table_options
def command(source: str, n: int, expert: bool | None, at_random: bool, seed: int, **options: Any) -> None:
    """Print what to label next, and why.

    The examples first for which one more answer is expected to add most information: by an average annotator, or by
    an expert (--expert; also if the fit had known answers). From a file of labels,
    or from the folder of a run of crowdwise fit.
    """
    table_of = methodcaller("next", n, expert=expert, at_random=at_random, seed=seed)
    show_table_of(source, table_of, **options)
