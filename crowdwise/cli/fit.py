"""``crowdwise fit``: files -> a folder with the report, the tables and the model, and ten lines about them."""

from __future__ import annotations

import shlex
import textwrap
from typing import Any

import click

from crowdwise.cli import started
from crowdwise.cli.console import show, show_json
from crowdwise.cli.options import (
    FILE,
    NumberOrAuto,
    abstentions_option,
    console_of,
    console_options,
    features_options,
    group_option,
    json_option,
    labels_options,
    ratings_option,
    reading_of_features,
    reading_of_labels,
    scale_option,
    truth_options,
)

MODELS = ("auto", "logistic", "ridge", "labels-only")


@click.command(
    "fit",
    epilog="""\b
Examples:
  crowdwise fit labels.csv
  crowdwise fit labels.csv texts.csv --text text --out run
  crowdwise fit labels.csv features.csv --truth truth.csv --out run --force
  crowdwise fit labels.csv features.csv --model ridge --steepness 2 --curriculum fading:2
  crowdwise fit votes.csv --truth answers.csv --use-truth
  crowdwise fit votes.csv --group gpt-4o,gpt-4o-mini --group llama-8b,llama-70b
  crowdwise fit stars.csv --scale ordinal
  crowdwise fit labels.csv --abstain unsure --informative-abstentions
  crowdwise fit answers.csv --example question --annotator who --label said
  crowdwise fit labels.csv --classes no,unclear,yes --missing -1
  crowdwise fit ratings.csv features.csv --ratings
""",
)
@click.argument("labels", type=FILE)
@click.argument("features", type=FILE, required=False)
@click.option("--out", type=FILE, default="run", show_default=True, metavar="FOLDER", help="Where the results go.")
@click.option("--force", is_flag=True, help="Replace the folder of an earlier run.")
@click.option(
    "--model", type=click.Choice(MODELS), default="auto", help="auto is logistic with features, else labels-only."
)
@click.option(
    "--steepness",
    type=NumberOrAuto(),
    metavar="auto|NUMBER",
    default="auto",
    help="How fast contested examples lose weight; 0 weights all alike.",
)
@click.option(
    "--curriculum",
    metavar="NAME",
    default="fixed",
    help="How these weights change from round to round: fixed, fading:C, smooth:C or self-paced:START,GROWTH.",
)
@click.option(
    "--l2", type=NumberOrAuto(), metavar="auto|NUMBER", default="auto", help="Strength of the penalty on coefficients."
)
@truth_options
@click.option(
    "--choose-by-truth", is_flag=True, help="Learn from --truth and choose the steepness by it (model ridge)."
)
@click.option(
    "--report",
    type=click.Choice(["html", "md", "json"]),
    default="html",
    help="Form of the report; by default a page for browsers.",
)
@click.option("--show", metavar="COLUMN", help="Column with texts for the report, and not to learn from.")
@click.option("--names", is_flag=True, help="Show names that look like personal data in the report.")
@labels_options
@scale_option
@abstentions_option
@group_option
@ratings_option
@features_options
@json_option
@console_options
@click.pass_obj
def command(
    given: tuple[str, ...], /, labels: str, features: str | None, out: str, as_json: bool, **options: Any
) -> None:
    """Learn from labels, and from features if there are any.

    LABELS is a table with a row per label (CSV, TSV, JSON Lines, Parquet; - is standard input), a table with a column
    per annotator, or the export of a labelling tool. FEATURES is a table with a row per example, or a NumPy file.

    The folder --out gets report.html, consensus.csv, annotators.csv, next.csv (what to label again), the model and
    run.json.
    """
    from crowdwise.reporting import summary_lines
    from crowdwise.runs import Settings, fit

    started()
    console = console_of(options)
    labels_as, features_as = reading_of_labels(options, console), reading_of_features(options)
    names = (
        "model",
        "steepness",
        "curriculum",
        "l2",
        "choose_by_truth",
        "use_truth",
        "informative_abstentions",
        "groups",
    )
    settings = Settings(**{name: options.pop(name) for name in names})
    has_features = features is not None or bool(features_as["text"])
    try:
        # Whether there are known answers is seen later: the file of labels may have some.
        settings.settled(features=has_features, truth=True, scale=labels_as["scale"])
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    form = options["report"]
    typed = shlex.join(["crowdwise", *given])
    with console.step("Fitting"):
        run = fit(
            labels,
            features,
            out=out,
            settings=settings,
            labels_as=labels_as,
            features_as=features_as,
            command=typed,
            info=console.info,
            on_round=console.progress,
            **options,
        )
        summary = run.summary
    if as_json:
        show_json("fit", {"out": out, "summary": summary})
    else:
        lines = [*summary_lines(summary), f"Report      {out}/report.{form}"]
        show("\n".join(map(_filled, lines)))


def _filled(line: str) -> str:
    """A line in several, a number and its % in the same one."""
    together = line.replace(" %", "\N{NO-BREAK SPACE}%")
    return textwrap.fill(together, 110, subsequent_indent=" " * 12).replace("\N{NO-BREAK SPACE}%", " %")
