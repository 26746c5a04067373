"""Labels or the folder of a run -> one of its tables, on standard output."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from crowdwise.cli import started
from crowdwise.cli.console import Console, show, show_data
from crowdwise.cli.options import (
    FILE,
    abstentions_option,
    console_options,
    group_option,
    json_option,
    packed,
    reading_options,
    truth_option,
    use_truth_option,
)

if TYPE_CHECKING:
    from crowdwise.runs import ResultTable

csv_option = click.option("--csv", "as_csv", is_flag=True, help="Print CSV even on a terminal.")
source_argument = click.argument("source", metavar="LABELS|RUN", type=FILE)


def table_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What `show_table_of` takes."""
    settings = packed("settings", dict, use_truth_option, abstentions_option, group_option)
    for option in (console_options, csv_option, json_option, settings, reading_options(scale=True), truth_option):
        command = option(command)
    return source_argument(command)


def show_table_of(
    source: str,
    table_of: Callable[[Any], ResultTable],
    *,
    as_json: bool,
    as_csv: bool,
    truth: str | None,
    reading: dict[str, Any],
    settings: dict[str, Any],
    console: Console,
) -> None:
    """Print a table of a run, or of labels alone, perhaps with known answers."""
    from crowdwise.reporting.consensus import quality_sentence
    from crowdwise.runs import Settings, fit, is_run, open_run

    started()
    with console.step("Working"):
        if is_run(source):
            for content, is_asked in (
                ("known answers", truth or settings["use_truth"]),
                ("groups", settings["groups"]),
            ):
                if is_asked:
                    raise click.UsageError(f"{source} is fitted already: give {content} to crowdwise fit.")
            table = table_of(open_run(source))
        else:
            reading |= {"info": console.info, "on_round": console.progress}
            run = fit(source, truth=truth, settings=Settings(**settings), **reading)
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
