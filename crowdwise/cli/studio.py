"""``crowdwise studio``: a run, or labels -> a local page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crowdwise.cli import started
from crowdwise.cli.console import Console, show, show_json
from crowdwise.cli.options import FILE, console_options, json_option, reading_options


@click.command(
    "studio",
    epilog="""\b
Examples:
  crowdwise studio run
  crowdwise studio labels.csv
  crowdwise studio labels.csv texts.csv --text text --out studio
  crowdwise studio labels.csv --show text --expert eve
""",
)
@click.argument("labels", type=FILE, metavar="RUN|LABELS")
@click.argument("features", type=FILE, required=False)
@click.option(
    "--out",
    type=FILE,
    default="studio",
    show_default=True,
    metavar="FOLDER",
    help="Folder for answers, unless RUN is given.",
)
@click.option("--port", type=click.IntRange(1, 65535), help="By default the last one used, or any free one.")
@click.option("--no-browser", is_flag=True, help="Print the address without opening a browser.")
@click.option(
    "--model",
    type=click.Choice(["auto", "logistic", "ridge", "labels-only"]),
    default="auto",
    help="auto is the model of RUN; for files, ridge if features are numbers, else as in fit.",
)
@click.option(
    "--truth", type=FILE, metavar="FILE", help="Known answers for some examples: used in the fit and to measure people."
)
@click.option("--expert", "experts", multiple=True, metavar="NAME", help="A person whose answers count as known.")
@click.option("--show", "shown", metavar="COLUMN", help="Column with texts to show, not to learn from.")
@click.option(
    "--pictures", type=FILE, metavar="FOLDER", help="The texts to show are file names of pictures in this folder."
)
@reading_options(scale=True, features=True)
@json_option
@console_options
def command(
    labels: str,
    features: str | None,
    out: str,
    as_json: bool,
    reading: dict[str, Any],
    console: Console,
    **options: Any,
) -> None:
    """Open a local page to explore labels and add your own.

    RUN is the folder of a run of crowdwise fit; LABELS and FEATURES are files as for crowdwise fit. The page is served
    to this computer alone. Answers are kept in a journal, so that the same command goes on after any end.
    """
    from crowdwise.studio._listen import listen

    run = Path(labels) / "run.json"
    listening = listen(run.parent if run.is_file() else Path(out), options["port"])

    def announce() -> None:
        show_json("studio", {"address": listening.address}) if as_json else show(listening.address)

    # Imports take longer than all else: the address comes first, unless the command will fail for want of a file.
    can_be_read = all(path is None or Path(path).exists() for path in (labels, features, options["truth"]))
    if can_be_read:
        announce()

    from crowdwise.runs import Settings, is_run, read_inputs
    from crowdwise.studio import serve
    from crowdwise.studio._open import of_inputs, of_run

    started()
    pictures = None if options["pictures"] is None else Path(options["pictures"])
    about = {"pictures": pictures, "experts": options["experts"]}
    with console.step("Starting"):
        if is_run(labels):
            studio, folder = of_run(labels, options["model"], **about)
        else:
            inputs = read_inputs(labels, features, truth=options["truth"], show=options["shown"], **reading)
            for note in inputs.notes:
                console.info(note)
            folder = Path(out)
            folder.mkdir(exist_ok=True)
            studio = of_inputs(inputs, folder, Settings(model=options["model"]), title=Path(labels).name, **about)
            _ = studio.session.result  # labels of which nothing can be learned are an error here, not on the page

    if not can_be_read:
        announce()
    with studio.session:
        serve(studio, folder, listening, browser=not options["no_browser"])
