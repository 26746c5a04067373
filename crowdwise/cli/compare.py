"""``crowdwise compare``: two runs -> what changed."""

from __future__ import annotations

import click

from crowdwise.cli import started
from crowdwise.cli.console import show_json, show_lines
from crowdwise.cli.options import FILE, json_option
from crowdwise.cli.show_table import csv_option, show_table


@click.command(
    "compare",
    epilog="""\b
Examples:
  crowdwise compare week1 week2
  crowdwise compare week1 week2 --changed > changed.csv
""",
)
@click.argument("first", metavar="RUN1", type=FILE)
@click.argument("second", metavar="RUN2", type=FILE)
@click.option("--changed", is_flag=True, help="Print the examples whose consensus changed, as a table.")
@json_option
@csv_option
def command(first: str, second: str, changed: bool, as_json: bool, as_csv: bool) -> None:
    """Print what changed between two runs.

    Which annotators and examples changed, how frequent each class is, and how far annotators agree, before and after.
    Runs are folders of crowdwise fit; examples and annotators are matched by their ids.
    """
    from crowdwise.runs import ResultTable, compare_runs

    started()
    comparison = compare_runs(first, second)
    if changed:
        show_table(ResultTable("compare", comparison.examples), as_json=as_json, as_csv=as_csv)
    elif as_json:
        columns = {name: [*map(_plain, column.tolist())] for name, column in comparison.annotators.items()}
        alpha = None if comparison.alpha is None else list(comparison.alpha)
        added, removed = ([*map(str, names)] for names in (comparison.added, comparison.removed))
        shares = {str(name): list(pair) for name, pair in comparison.shares.items()}
        counts = dict(zip(("before", "after", "both"), comparison.n_examples, strict=True))
        n_changed = len(comparison.examples["example"])
        show_json(
            "compare",
            {
                "examples": counts | {"changed": n_changed},
                "alpha": alpha,
                "classes": shares,
                "annotators": columns,
                "added": added,
                "removed": removed,
            },
        )
    else:
        show_lines(comparison.lines())


def _plain(value: object) -> object:
    return None if isinstance(value, float) and value != value else value
