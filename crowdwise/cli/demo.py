"""``crowdwise demo``: a real crowd as files, and the commands that a newcomer would type."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from contextlib import chdir, redirect_stdout
from io import StringIO
from typing import Any

import click

from crowdwise.cli import started
from crowdwise.cli.console import show, show_json
from crowdwise.cli.group import crowd
from crowdwise.cli.options import json_option


@click.command(
    "demo",
    epilog="""\b
Examples:
  crowdwise demo
  crowdwise demo somewhere/else --force --json
""",
)
@click.argument("folder", default="crowdwise-demo")
@click.option("--force", is_flag=True, help="Replace the folder of an earlier demo.")
@json_option
def command(folder: str, force: bool, as_json: bool) -> None:
    """Try it on an included data set.

    Writes the crowd as files into FOLDER and runs the commands that one would type there.
    """
    from crowdwise.demo import ABOUT, COMMANDS, RUN, write_demo

    started()
    written = write_demo(folder, force=force)
    report = os.path.abspath(written / RUN / "report.html")
    if as_json:
        with chdir(written):
            done = [{"command": shlex.join(["crowdwise", *typed]), "result": _result_of(typed)} for typed in COMMANDS]
        show_json("demo", {"folder": folder, "about": ABOUT, "commands": done, "report": report})
        return
    show(f"{ABOUT}\n\n$ cd {shlex.quote(folder)}")
    with chdir(written):
        for typed in COMMANDS:
            show(f"$ crowdwise {shlex.join(typed)}")
            _run(typed)
            show("")
    show(f"The report: {report}")


def _run(typed: Sequence[str], *options: str) -> None:
    """Run a command as if it were typed; the options are not noted in what it leaves."""
    crowd.main(args=[*typed, "--quiet", *options], prog_name="crowdwise", standalone_mode=False, obj=tuple(typed))


def _result_of(typed: Sequence[str]) -> Any:
    """What a command prints as JSON."""
    with redirect_stdout(StringIO()) as printed:
        _run(typed, "--json")
    return json.loads(printed.getvalue())
