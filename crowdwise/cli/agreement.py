"""``crowdwise agreement``: labels -> the numbers that are usually reported of how far annotators agree."""

from __future__ import annotations

from typing import Any

import click

from crowdwise.cli import started
from crowdwise.cli.console import show, show_json
from crowdwise.cli.options import (
    FILE,
    console_of,
    console_options,
    json_option,
    labels_options,
    ratings_option,
    reading_of_labels,
    scale_option,
)


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
@labels_options
@scale_option
@ratings_option
@json_option
@console_options
def command(labels: str, as_json: bool, **options: Any) -> None:
    """Print how far annotators agree.

    Krippendorff's alpha, Gwet's AC, Fleiss' and Brennan-Prediger's kappa, percent agreement, Cohen's kappas of pairs
    and, for numbers, intraclass correlations: all that apply, each with a 95% interval.
    """
    from crowdwise import agreement
    from crowdwise.runs import read_inputs

    started()
    console = console_of(options)
    with console.step("Comparing"):
        found = agreement(read_inputs(labels, labels_as=reading_of_labels(options, console)).labels)
    if as_json:
        show_json("agreement", found.as_dict())
    else:
        show(repr(found))
