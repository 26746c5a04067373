"""The commands by name, each imported only when it is called."""

from __future__ import annotations

import os
import shlex
from importlib import import_module

import click

import crowdwise

# A module of this package, and the first line of its help.
COMMANDS = {
    "fit": "Learn from labels, and from features if there are any.",
    "check": "Check labels and features: sizes, agreement, problems.",
    "consensus": "Print the consensus, one row per example.",
    "annotators": "Print the estimated accuracy of each annotator.",
    "agreement": "Print how well annotators agree.",
    "rate": "Print how frequent a class is, with an interval.",
    "next": "Print what an expert should check next, and why.",
    "compare": "Print what changed between two runs.",
    "predict": "Predict the classes of new examples with a run.",
    "studio": "Open a local page to explore labels and add your own.",
    "convert": "Write labels or a consensus in the format of another tool.",
    "simulate": "Write the files of a simulated crowd.",
    "demo": "Try it on an included data set.",
    "reproduce": "Reproduce the paper, or run its protocol on your data.",
}

# Modules of other names: one called "next" would hide Python's own in this package.
_MODULES = {"next": "label_next"}


class LazyGroup(click.Group):
    """Commands that are imported when they are called: the list of them is shown at once."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, or None."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"crowdwise.cli.{_MODULES.get(cmd_name, cmd_name)}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that was typed; an error with what may have been meant."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(f"No such command {name!r}. {_meant(name)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands in the help, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _meant(name: str) -> str:
    """What someone may have meant by a word that is no command."""
    if os.path.exists(name):
        return f"To learn from a file: crowdwise fit {shlex.quote(name)}"
    from difflib import get_close_matches  # slow to import, so not before there is an error

    near = get_close_matches(name.lower(), COMMANDS)
    return f"Did you mean {' or '.join(map(repr, near))}?" if near else f"The commands are {', '.join(COMMANDS)}."


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(crowdwise.__version__, prog_name="crowdwise")
def crowd() -> None:
    """Learn from annotators who disagree."""
