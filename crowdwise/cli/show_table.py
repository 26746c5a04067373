"""Labels or the folder of a run -> one of its tables, on standard output."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from crowdwise.cli import started
from crowdwise.cli.group import show, show_data
from crowdwise.cli.options import (
    FILE,
    abstentions_option,
    group_option,
    in_order,
    json_option,
    kind_option,
    labels_options,
    reading_of_labels,
    talk,
    talk_options,
    truth_options,
)

if TYPE_CHECKING:
    from crowdwise.runs import ResultTable, Run, SavedRun

csv_option = click.option("--csv", "as_csv", is_flag=True, help="Print CSV on a terminal, too.")
table_options = in_order(
    click.argument("source", metavar="LABELS|RUN", type=FILE),
    truth_options,
    labels_options,
    kind_option,
    abstentions_option,
    group_option,
    json_option,
    csv_option,
    talk_options,
)


def show_table_of(
    source: str,
    of_run: Callable[[SavedRun], ResultTable],
    of_labels: Callable[[Run], ResultTable],
    *,
    as_json: bool,
    as_csv: bool,
    truth: str | None = None,
    use_truth: bool = False,
    **options: Any,
) -> None:
    """Print a table of a run, or of labels alone, perhaps with known answers."""
    from crowdwise.reporting.consensus import quality_sentence
    from crowdwise.runs import Settings, fit, is_run, open_run

    started()
    talking = talk(options)
    labels_as = reading_of_labels(options, talking)
    reading = {name: options.pop(name) for name in ("kind", "informative_abstentions", "groups")}
    with talking.warnings_as_notes():
        if is_run(source):
            if truth is not None or use_truth:
                raise click.UsageError(f"{source} is fitted already: give known answers to crowdwise fit.")
            if reading["groups"]:
                raise click.UsageError(f"{source} is fitted already: give groups to crowdwise fit.")
            table = of_run(open_run(source))
        else:
            with talking.step("Working"):
                run = fit(
                    source,
                    truth=truth,
                    settings=Settings(use_truth=use_truth, **reading),
                    labels_as=labels_as,
                    say=talking.say,
                    on_round=talking.round_done,
                )
                table = of_labels(run)
            if run.inputs.truth is not None:
                talking.say(quality_sentence(run.summary))
    show_table(table, as_json=as_json, as_csv=as_csv)


def show_table(table: ResultTable, *, as_json: bool, as_csv: bool) -> None:
    """Print a table: aligned on a terminal, CSV in a pipe or a file, or JSON."""
    if not as_json and not as_csv and sys.stdout.isatty():
        show(table.as_text())
        return
    for part in table.json_parts() if as_json else table.csv_parts():
        show_data(part)
