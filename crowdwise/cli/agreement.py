"""``crowdwise agreement``: labels -> the numbers that are usually reported of how far annotators agree."""

from __future__ import annotations

from typing import Any

import click

from crowdwise.cli import started
from crowdwise.cli.console import Console, show, show_json
from crowdwise.cli.options import FILE, console_options, json_option, reading_options


@click.command(
    "agreement",
    epilog="""\b
Examples:
  crowdwise agreement labels.csv
  crowdwise agreement stars.csv --scale ordinal
  crowdwise agreement scores.csv --ratings --json
""",
)
@click.argument("labels", type=FILE)
@reading_options(scale=True, ratings=True)
@json_option
@console_options
def command(labels: str, as_json: bool, reading: dict[str, Any], console: Console) -> None:
    """Print how well annotators agree.

    Krippendorff's alpha, Gwet's AC, Fleiss' and Brennan-Prediger's kappa, percent agreement, Cohen's kappas of pairs
    and, for numbers, intraclass correlations: all that apply, each with a 95% interval.
    """
    from crowdwise import agreement
    from crowdwise.runs import read_inputs

    started()
    with console.step("Comparing"):
        table = agreement(read_inputs(labels, **reading).labels)
    if as_json:
        show_json("agreement", table.as_dict())
    else:
        show(repr(table))
