"""Labels or the folder of a run -> one of its tables, on standard output."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from crowdwise.cli import started
from crowdwise.cli.console import show, show_data
from crowdwise.cli.options import (
    FILE,
    abstentions_option,
    console_of,
    console_options,
    group_option,
    in_order,
    json_option,
    labels_options,
    reading_of_labels,
    scale_option,
    truth_options,
)

if TYPE_CHECKING:
    from crowdwise.runs import ResultTable

csv_option = click.option("--csv", "as_csv", is_flag=True, help="Print CSV on a terminal, too.")
table_options = in_order(
    click.argument("source", metavar="LABELS|RUN", type=FILE),
    truth_options,
    labels_options,
    scale_option,
    abstentions_option,
    group_option,
    json_option,
    csv_option,
    console_options,
)


def show_table_of(
    source: str,
    table_of: Callable[[Any], ResultTable],
    *,
    as_json: bool,
    as_csv: bool,
    truth: str | None,
    use_truth: bool,
    **options: Any,
) -> None:
    """Print a table of a run, or of labels alone, perhaps with known answers."""
    from crowdwise.reporting.consensus import quality_sentence
    from crowdwise.runs import Settings, fit, is_run, open_run

    started()
    console = console_of(options)
    labels_as = reading_of_labels(options, console)
    reading = {name: options.pop(name) for name in ("informative_abstentions", "groups")}
    with console.step("Working"):
        if is_run(source):
            for what, given in (("known answers", truth or use_truth), ("groups", reading["groups"])):
                if given:
                    raise click.UsageError(f"{source} is fitted already: give {what} to crowdwise fit.")
            table = table_of(open_run(source))
        else:
            run = fit(
                source,
                truth=truth,
                settings=Settings(use_truth=use_truth, **reading),
                labels_as=labels_as,
                info=console.info,
                on_round=console.progress,
            )
            table = table_of(run)
            if run.inputs.truth is not None:
                console.info(quality_sentence(run.summary))
    show_table(table, as_json=as_json, as_csv=as_csv)


def show_table(table: ResultTable, *, as_json: bool, as_csv: bool) -> None:
    """Print a table: aligned on a terminal, CSV in a pipe or a file, or JSON."""
    if not as_json and not as_csv and sys.stdout.isatty():
        show(table.as_text())
        return
    for part in table.json_parts() if as_json else table.csv_parts():
        show_data(part)
