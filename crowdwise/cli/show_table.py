"""Labels or the folder of a run -> one of its tables, on standard output."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from crowdwise.cli import started
from crowdwise.cli.group import show
from crowdwise.cli.options import reading_of_labels, talk

if TYPE_CHECKING:
    from crowdwise.runs import ResultTable, Run, SavedRun

csv_option = click.option("--csv", "as_csv", is_flag=True, help="Print CSV on a terminal, too.")


def show_table_of(
    source: str,
    of_run: Callable[[SavedRun], ResultTable],
    of_labels: Callable[[Run], ResultTable],
    *,
    as_json: bool,
    as_csv: bool,
    **options: Any,
) -> None:
    """Print a table of a run, or of labels alone."""
    from crowdwise.runs import Settings, fit, is_run, open_run

    started()
    talking = talk(options)
    labels_as = reading_of_labels(options, talking)
    kind = options.pop("kind")
    with talking.warnings_as_notes():
        if is_run(source):
            table = of_run(open_run(source))
        else:
            with talking.step("Working"):
                settings, say, on_round = Settings(kind=kind), talking.say, talking.round_done
                run = fit(source, labels_as=labels_as, settings=settings, say=say, on_round=on_round)
                table = of_labels(run)
    show_table(table, as_json=as_json, as_csv=as_csv)


def show_table(table: ResultTable, *, as_json: bool, as_csv: bool) -> None:
    """Print a table: aligned on a terminal, CSV in a pipe or a file, or JSON."""
    if not as_json and not as_csv and sys.stdout.isatty():
        show(table.as_text())
        return
    for part in table.json_parts() if as_json else table.csv_parts():
        show(part, nl=False)
