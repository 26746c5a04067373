"""``crowdwise demo``: a real crowd as files, and the commands that a newcomer would type."""

from __future__ import annotations

import os
import shlex
from contextlib import chdir

import click

from crowdwise.cli import started
from crowdwise.cli.group import crowd, show


@click.command(
    "demo",
    epilog="""\b
Examples:
  crowdwise demo
  crowdwise demo somewhere/else --force
""",
)
@click.argument("folder", default="crowdwise-demo")
@click.option("--force", is_flag=True, help="Replace the folder of an earlier demonstration.")
def command(folder: str, force: bool) -> None:
    """Try it on a real crowd that comes with crowdwise.

    Writes the crowd as files into FOLDER and runs the commands that one would type there.
    """
    from crowdwise.demo import ABOUT, COMMANDS, RUN, write_demo

    started()
    written = write_demo(folder, force=force)
    show(f"{ABOUT}\n\n$ cd {shlex.quote(folder)}")
    with chdir(written):
        for typed in COMMANDS:
            show(f"$ crowdwise {shlex.join(typed)}")
            crowd.main(args=[*typed, "--quiet"], prog_name="crowdwise", standalone_mode=False, obj=typed)
            show("")
    show(f"The report: {os.path.abspath(written / RUN / 'report.html')}")
