"""``crowdwise fit``: files -> a folder with the report, the tables and the model, and ten lines about them."""

from __future__ import annotations

import shlex
from typing import Any

import click

from crowdwise.cli import started
from crowdwise.cli.console import Console, show, show_json, show_lines
from crowdwise.cli.options import (
    FILE,
    abstentions_option,
    console_options,
    group_option,
    json_option,
    number_or_auto,
    packed,
    reading_options,
    truth_option,
    use_truth_option,
)

_MODEL = (
    click.option(
        "--model",
        type=click.Choice(["auto", "logistic", "ridge", "labels-only"]),
        default="auto",
        help="auto is logistic with features, else labels-only.",
    ),
    click.option(
        "--steepness",
        type=number_or_auto,
        metavar="auto|NUMBER",
        default="auto",
        help="How fast contested examples lose weight; 0 weights all equally.",
    ),
    click.option(
        "--curriculum",
        metavar="NAME",
        default="fixed",
        help="How these weights change from round to round: fixed, fading:C, smooth:C or self-paced:START,GROWTH.",
    ),
    click.option(
        "--l2",
        type=number_or_auto,
        metavar="auto|NUMBER",
        default="auto",
        help="Strength of the penalty on coefficients.",
    ),
    use_truth_option,
    click.option(
        "--choose-by-truth", is_flag=True, help="Use --truth in the fit and to choose the steepness (model ridge)."
    ),
    abstentions_option,
    group_option,
)


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
  crowdwise fit export.json --question all
""",
)
@click.argument("labels", type=FILE)
@click.argument("features", type=FILE, required=False)
@click.option("--out", type=FILE, default="run", show_default=True, metavar="FOLDER", help="Where the results go.")
@click.option("--force", is_flag=True, help="Replace the folder of an earlier run.")
@truth_option
@packed("settings", dict, *_MODEL)
@click.option(
    "--report",
    type=click.Choice(["html", "md", "json"]),
    default="html",
    help="Format of the report; html by default.",
)
@click.option("--show", metavar="COLUMN", help="Column with texts to show in the report, not to learn from.")
@click.option("--time", metavar="COLUMN", help="Column of LABELS with the time of each label, if not recognised.")
@click.option("--names", is_flag=True, help="Show names that look like personal data in the report.")
@reading_options(scale=True, ratings=True, features=True)
@json_option
@console_options
@click.pass_obj
def command(
    typed: tuple[str, ...],
    /,
    labels: str,
    features: str | None,
    out: str,
    as_json: bool,
    settings: dict[str, Any],
    reading: dict[str, Any],
    console: Console,
    **options: Any,
) -> None:
    """Learn from labels, and from features if there are any.

    LABELS is a table with a row per label (CSV, TSV, JSON Lines, Parquet; - is standard input), a table with a column
    per annotator, or the export of a labelling tool. FEATURES is a table with a row per example, or a NumPy file.

    The folder --out gets report.html, consensus.csv, annotators.csv, next.csv (what to label again), the model and
    run.json.
    """
    from crowdwise.reporting import summary_lines
    from crowdwise.runs import Settings, fit
    from crowdwise.runs.questions import fit_questions

    started()
    model = Settings(**settings)
    has_features = features is not None or bool(reading["features_as"]["text"])
    try:
        # Whether there are known answers is seen later: the file of labels may have some.
        model.settled(features=has_features, truth=True, scale=reading["labels_as"]["scale"])
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    options |= {"info": console.info, "on_round": console.progress, "command": shlex.join(["crowdwise", *typed])}
    options |= {"settings": model, **reading}
    if reading["labels_as"]["question"] == "all":
        with console.step("Fitting"):
            runs = fit_questions(labels, features, out=out, **options)
        _show_all(runs, out, as_json)
        return
    with console.step("Fitting"):
        run = fit(labels, features, out=out, **options)
        summary = run.summary
    if as_json:
        show_json("fit", {"out": out, "summary": summary})
    else:
        show_lines([*summary_lines(summary), f"Report      {out}/report.{options['report']}"])


def _show_all(runs: dict[str, Any], out: str, as_json: bool) -> None:
    """What every question gave, or the reason why it gave nothing."""
    from crowdwise.reporting import summary_lines

    if as_json:
        summaries = {name: {"error": run} if isinstance(run, str) else run.summary for name, run in runs.items()}
        show_json("fit", {"out": out, "questions": summaries})
        return
    for name, run in runs.items():
        lines = [f"Caution     not fitted: {run}"] if isinstance(run, str) else summary_lines(run.summary)
        show(name)
        show_lines([*lines, ""])
    show(f"Reports     {out}/index.html")
