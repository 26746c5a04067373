"""``crowdwise convert``: labels, or the consensus of a run -> a file for another tool."""

from __future__ import annotations

from typing import Any

import click

from crowdwise.cli import started
from crowdwise.cli.console import Console, show, show_json
from crowdwise.cli.options import FILE, console_options, json_option, reading_options

LABELS_TO = ("table", "wide", "crowd-kit", "peerannot")
RUN_TO = ("csv", "crowd-kit", "label-studio")


@click.command(
    "convert",
    epilog="""\b
Examples:
  crowdwise convert labels.csv wide.csv --to wide
  crowdwise convert export.json labels.csv
  crowdwise convert run consensus.json --to label-studio --tasks export.json
""",
)
@click.argument("source", metavar="LABELS|RUN", type=FILE)
@click.argument("target", type=FILE)
@click.option(
    "--to", type=click.Choice([*dict.fromkeys((*LABELS_TO, *RUN_TO))]), help="The format; by default a plain table."
)
@click.option("--tasks", type=FILE, metavar="FILE", help="Label Studio export that the labels came from.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@reading_options(ratings=True)
@json_option
@console_options
def command(
    source: str,
    target: str,
    to: str | None,
    tasks: str | None,
    force: bool,
    as_json: bool,
    reading: dict[str, Any],
    console: Console,
) -> None:
    """Write labels or a consensus in the format of another tool.

    Labels become a table (a row per label), wide (a column per annotator), crowd-kit or peerannot. The consensus of a
    run becomes csv, crowd-kit, or label-studio (tasks with predictions, to be imported).
    """
    from crowdwise import formats
    from crowdwise._text import count
    from crowdwise.runs import is_run, open_run

    started()
    labels_as = reading["labels_as"]
    known = RUN_TO if (of_run := is_run(source)) else LABELS_TO
    if to is not None and to not in known:
        what = "the consensus of a run" if of_run else "labels"
        raise click.UsageError(f"{what} can be written as {', '.join(known)}; got --to {to}.")
    if to == "label-studio" and tasks is None:
        raise click.UsageError("Label Studio needs the export that the labels came from: --tasks FILE.")
    with console.step("Converting"):
        if of_run:
            run = open_run(source)
            run.export(target, to or "csv", tasks=tasks, question=labels_as["question"], force=force)
            notes = [f"consensus of {source}"]
        else:
            format = labels_as.pop("format")
            file = formats.convert(
                source, target, source_format=format, target_format=to or "table", force=force, **labels_as
            )
            notes = [*file.notes, count(file.labels.n_labels, "label")]
    for note in notes:
        console.info(note)
    if as_json:
        show_json("convert", {"target": target, "format": to or known[0], "notes": notes})
    else:
        show(f"Written: {target}")
