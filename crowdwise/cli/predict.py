"""``crowdwise predict``: a run and new features -> one row per example."""

from __future__ import annotations

import click

from crowdwise.cli import started
from crowdwise.cli.console import Console
from crowdwise.cli.options import FILE, console_options, encoding_option, ids_option, json_option
from crowdwise.cli.show_table import csv_option, show_table


@click.command(
    "predict",
    epilog="""\b
Examples:
  crowdwise predict run new.csv
  crowdwise predict run new.csv --json > predictions.json
""",
)
@click.argument("run", type=FILE)
@click.argument("features", type=FILE)
@click.option("--id", metavar="COLUMN", help="Column of FEATURES with the example's id.")
@ids_option
@encoding_option
@json_option
@csv_option
@console_options
def command(run: str, features: str, as_json: bool, as_csv: bool, console: Console, **reading: str | None) -> None:
    """Predict the classes of new examples with a run.

    RUN is the folder of a run of crowdwise fit. FEATURES has the same columns as the features of the fit.
    """
    from crowdwise.runs import open_run

    started()
    with console.step("Predicting"):
        table = open_run(run).predict(features, **reading, info=console.info)
    show_table(table, as_json=as_json, as_csv=as_csv)
