"""``crowdwise reproduce``: arguments -> one library call -> the printed summary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from crowdwise.cli import started
from crowdwise.cli.console import show
from crowdwise.paper.reproduce import EXPERIMENTS, PROTOCOL, Options, Report, module_of, reproduce
from crowdwise.paper.reproduce.paper import TABLE3


class ManyOf(click.ParamType):  # type: ignore[type-arg]
    """Several values with commas between them, each of one kind."""

    def __init__(self, kind: Any, name: str) -> None:
        self.kind, self.name = kind, name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Any, ...]:
        """The values, each once."""
        parts = value.split(",") if isinstance(value, str) else value
        return tuple(dict.fromkeys(self.kind.convert(part, param, ctx) for part in parts))


_POSITIVE = click.FloatRange(min=0, min_open=True)
_STEEPNESSES = ManyOf(_POSITIVE, "A,B,...")
_CLARITIES = ManyOf(click.FloatRange(min=0), "P,Q,...")
_DATASETS = ManyOf(click.Choice(list(TABLE3)), "NAME,NAME,...")
_DIRECTORY = click.Path(path_type=Path, file_okay=False)
_COUNT = click.IntRange(min=1)


@click.command(
    "reproduce",
    epilog="""\b
Examples:
  crowdwise reproduce all --quick
  crowdwise reproduce table2 --seeds 10 --out results
  crowdwise reproduce table3 --datasets heart,sonar --jobs 2
  crowdwise reproduce protocol --data mine.libsvm
  crowdwise reproduce protocol --data mine.csv --truth class --versions 20 --clarity 1,2
""",
)
@click.argument("what", type=click.Choice([*EXPERIMENTS, "all", PROTOCOL]), metavar="WHAT")
@click.option(
    "--trials",
    "--versions",
    "trials",
    type=_COUNT,
    help="Repetitions of every setting, or noisy versions of the data; by default 100, as in the paper.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the experiment.")
@click.option(
    "--seeds", type=_COUNT, default=1, show_default=True, help="For table2: number of seeds, starting at --seed."
)
@click.option("--jobs", type=_COUNT, help="Number of processes; by default one per core.")
@click.option("--no-redraw", is_flag=True, help="Keep overly noisy data, which the paper's software redraws.")
@click.option("--steepness", "steepnesses", type=_STEEPNESSES, help="Steepnesses to compare with 0.")
@click.option("--datasets", type=_DATASETS, help="Data sets of tables 3 and 4; by default all.")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="For protocol: a LIBSVM or CSV file with features and the true classes.",
)
@click.option("--truth", metavar="COLUMN", help="Column of --data with the true classes, if not recognised.")
@click.option(
    "--clarity",
    "clarities",
    type=_CLARITIES,
    help="For protocol: the paper's p, 1 by default; larger means less noise.",
)
@click.option("--out", type=_DIRECTORY, default=Path("results"), show_default=True, help="Where the results go.")
@click.option("--data-home", type=_DIRECTORY, help="The data directory; by default CROWDWISE_DATA.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.option("--quick", is_flag=True, help="Only a few trials: everything in about a minute.")
@click.option("--progress/--no-progress", default=None, help="Show progress; by default only on a terminal.")
def command(what: str, jobs: int | None, no_redraw: bool, as_json: bool, **settings: Any) -> None:
    """Reproduce the paper, or run its protocol on your data.

    WHAT is table1, table2, table3, table4, figure1, figure2, figure3, all, or protocol: noisy versions of --data, each
    split, balanced and labelled by twelve simulated annotators, and how often weights by disagreement win.

    Each leaves a directory in --out with the rows (CSV), the table (Markdown, LaTeX, JSON) or the picture (PNG, PDF)
    and a run.json that records what was run. Killed and started again, it goes on where it was.
    """
    if (what == PROTOCOL) != (settings["data"] is not None):
        raise click.UsageError(
            "protocol needs your own data, and --data is only for protocol: crowdwise reproduce protocol --data FILE."
        )
    try:
        options = Options(jobs=jobs or -1, redraw=not no_redraw, **settings)
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    names = EXPERIMENTS if what == "all" else (what,)
    for name in names:
        module_of(name)
    started()
    reports = [reproduce(name, options) for name in names]
    show(_as_json(reports) if as_json else "\n\n".join(report.as_text() for report in reports))


def _as_json(reports: list[Report]) -> str:
    texts = [report.as_json(ascii_only=True) for report in reports]
    return texts[0] if len(texts) == 1 else "[" + ",\n".join(texts) + "]"
