"""``crowdwise check``: labels, perhaps features -> what is in them and what is wrong, on one screen."""

from __future__ import annotations

from typing import Any

import click

from crowdwise.cli import started
from crowdwise.cli.console import Console, show, show_json
from crowdwise.cli.options import FILE, console_options, json_option, reading_options


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
@reading_options(scale=True, ratings=True, features=True)
@json_option
@console_options
def command(labels: str, features: str | None, as_json: bool, reading: dict[str, Any], console: Console) -> None:
    """Check labels and features: sizes, agreement, problems.

    How far annotators agree, who stands out, and whether it helps to let contested examples count less.
    """
    from crowdwise.runs import check, read_inputs

    started()
    with console.step("Checking"):
        inputs = read_inputs(labels, features, **reading)
        for note in inputs.notes:
            console.info(note)
        result = check(inputs)
    if as_json:
        show_json("check", {**result.as_dict(), "notes": list(inputs.notes)})
    else:
        show(result.as_text())
