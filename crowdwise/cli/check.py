"""``crowdwise check``: labels, perhaps features -> what is in them and what is wrong, on one screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from crowdwise.cli import started
from crowdwise.cli.console import show, show_json
from crowdwise.cli.options import (
    FILE,
    console_of,
    console_options,
    features_options,
    json_option,
    labels_options,
    ratings_option,
    reading_of_features,
    reading_of_labels,
    scale_option,
)

if TYPE_CHECKING:
    from crowdwise.runs.inputs import Join


@click.command(
    "check",
    epilog="""\b
Examples:
  crowdwise check labels.csv
  crowdwise check labels.csv texts.csv --text text
""",
)
@click.argument("labels", type=FILE)
@click.argument("features", type=FILE, required=False)
@labels_options
@scale_option
@ratings_option
@features_options
@json_option
@console_options
def command(labels: str, features: str | None, join: Join, as_json: bool, **options: Any) -> None:
    """Say what is in labels and features, and what is wrong.

    How far annotators agree, who stands out, and whether it helps to let contested examples count less.
    """
    from crowdwise.runs import check, read_inputs

    started()
    console = console_of(options)
    labels_as, features_as = reading_of_labels(options, console), reading_of_features(options)
    with console.step("Checking"):
        inputs = read_inputs(labels, features, labels_as=labels_as, features_as=features_as, join=join)
        for note in inputs.notes:
            console.info(note)
        found = check(inputs)
    if as_json:
        show_json("check", {**found.as_dict(), "notes": list(inputs.notes)})
    else:
        show(found.as_text())
