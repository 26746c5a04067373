"""``crowdwise simulate``: settings -> the files of a simulated crowd."""

from __future__ import annotations

from typing import Any

import click

from crowdwise.cli import started
from crowdwise.cli.console import show, show_json
from crowdwise.cli.options import json_option

_COUNT = click.IntRange(min=0)


def _defaults_of_the_paper(context: click.Context, option: click.Parameter, paper: bool) -> bool:
    if paper:
        from dataclasses import asdict

        from crowdwise.runs.simulated import PAPER

        context.default_map = asdict(PAPER)
    return paper


@click.command(
    "simulate",
    epilog="""\b
Examples:
  crowdwise simulate crowd
  crowdwise simulate crowd --paper
  crowdwise simulate crowd --examples 2000 --annotators 20 --missing 0.8 --adversaries 1
""",
)
@click.argument("out", metavar="FOLDER")
@click.option(
    "--paper",
    is_flag=True,
    is_eager=True,
    callback=_defaults_of_the_paper,
    help="Defaults of the paper: 1000 examples of two Gaussians in 10 dimensions, 10 annotators with clarity 1, an "
    "expert and an adversary, no label missing.",
)
@click.option("--examples", type=click.IntRange(min=2), default=500, show_default=True, help="How many examples.")
@click.option("--features", type=click.IntRange(min=1), default=5, show_default=True, help="How many features.")
@click.option("--classes", type=click.IntRange(min=2), default=2, show_default=True, help="How many classes.")
@click.option("--annotators", type=_COUNT, default=10, show_default=True, help="Annotators who err on hard examples.")
@click.option("--experts", type=_COUNT, default=0, show_default=True, help="Annotators who are always right.")
@click.option("--adversaries", type=_COUNT, default=0, show_default=True, help="Annotators who are always wrong.")
@click.option(
    "--clarity", type=click.FloatRange(min=0), default=5.0, show_default=True, help="Higher means less noise."
)
@click.option(
    "--missing",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.5,
    show_default=True,
    help="Share of labels left out.",
)
@click.option("--seed", type=_COUNT, default=0, show_default=True, help="The same seed gives the same crowd.")
@click.option("--force", is_flag=True, help="Replace the folder of an earlier simulation.")
@json_option
def command(out: str, force: bool, as_json: bool, **settings: Any) -> None:
    """Write the files of a simulated crowd.

    The folder gets labels.csv, features.csv and truth.csv.
    """
    from crowdwise._text import count
    from crowdwise.runs.simulated import FILES, Simulation, write_simulation

    started()
    if settings["annotators"] + settings["experts"] + settings["adversaries"] == 0:
        raise click.UsageError("a crowd needs an annotator, an expert or an adversary.")
    if settings["paper"] and settings["classes"] != 2:
        raise click.UsageError("the paper's data have two classes: leave out --classes or --paper.")
    labels = write_simulation(out, Simulation(**settings), force=force)
    if as_json:
        show_json("simulate", {"out": out, "files": list(FILES), "settings": settings, "labels": labels.n_labels})
    else:
        n_labels, n_examples = count(labels.n_labels, "label"), count(labels.n_examples, "example")
        show(f"{out}: {n_labels} of {n_examples} by {count(labels.n_annotators, 'annotator')}")
        show(f"Try: crowdwise fit {out}/labels.csv {out}/features.csv --truth {out}/truth.csv --out {out}-run")
