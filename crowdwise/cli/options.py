"""Options that commands share, and what they stand for."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from crowdwise.cli.console import Console

Option = Callable[[Callable[..., Any]], Callable[..., Any]]  # a decorator of a command
FILE = click.Path()  # not looked at here: it lets a shell complete names of files


def number_or_auto(value: str) -> float | str:
    """A number that is not negative, or the word auto."""
    if value == "auto":
        return "auto"
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise click.BadParameter(f"{value!r} is neither auto nor a number of at least 0.")
    return number


def names(value: str) -> tuple[str, ...]:
    """Names with commas between them; one with a comma in it is in quotes, as in a CSV file."""
    parts = tuple(name.strip() for name in next(csv.reader([value], skipinitialspace=True), []))
    if not all(parts) or len(set(parts)) < max(len(parts), 1):
        raise click.BadParameter(f"different names with commas between them were expected; got {value!r}.")
    return parts


def encoding(value: str) -> str:
    """The name of an encoding of text, if Python knows it."""
    from crowdwise.tables import check_encoding

    try:
        check_encoding(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a known encoding; try utf-8 or latin-1, for example.") from None
    return value


def packed(name: str, make: Callable[..., Any], *options: Option) -> Option:
    """Several options, listed in this order in the help, as one argument of the command: what `make` makes of them."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_record(*arguments: Any, **values: Any) -> Any:
            record = make(**{key: values.pop(key) for key in keys})
            return command(*arguments, **values, **{name: record})

        before = list(getattr(command, "__click_params__", ()))
        for option in reversed(options):
            option(with_record)
        keys = [param.name for param in with_record.__click_params__ if param not in before]  # type: ignore[attr-defined]
        return with_record

    return add


encoding_option = click.option(
    "--encoding",
    type=encoding,
    metavar="NAME",
    help="Encoding of the files, such as latin-1; by default UTF-8 or UTF-16.",
)
_LABELS = (
    click.option("--example", metavar="COLUMN", help="Column with the example's id, if not recognised."),
    click.option(
        "--annotator",
        metavar="COLUMN",
        help="Column with the annotator's name; with --wide the annotators' columns: A,B,...",
    ),
    click.option("--label", metavar="COLUMN", help="Column with the label."),
    click.option("--wide", is_flag=True, default=None, help="The table has a column per annotator."),
    click.option(
        "--format",
        metavar="NAME",
        help="The tool that wrote the file, such as label-studio; recognised by default.",
    ),
    encoding_option,
    click.option(
        "--question",
        metavar="NAME",
        help="Which question, if annotators answered several; with fit, 'all' makes a run each.",
    ),
    click.option(
        "--missing", metavar="VALUE", multiple=True, help="A value that means no label, such as -1; may be repeated."
    ),
    click.option(
        "--abstain",
        metavar="VALUE",
        multiple=True,
        help="A value that means the annotator abstained, such as unsure; may be repeated.",
    ),
    click.option(
        "--classes",
        type=names,
        metavar="A,B,...",
        help="All classes, in this order; any other label is an error.",
    ),
    click.option("--strip", is_flag=True, help="Treat yes, Yes and ' yes' as one label."),
    click.option(
        "--on-duplicate",
        type=click.Choice(["error", "first", "last", "runs"]),
        default="error",
        help="Which label counts if an annotator labelled an example twice; runs: all, as runs that share a vote.",
    ),
)
_SCALE = click.option(
    "--scale",
    type=click.Choice(["nominal", "ordinal"]),
    default="nominal",
    help="ordinal: labels have an order, such as stars; for words, give the order with --classes.",
)
group_option = click.option(
    "--group",
    "groups",
    type=names,
    multiple=True,
    metavar="A,B,...",
    help="Annotators who share one vote, such as models of one family; may be repeated.",
)
abstentions_option = click.option(
    "--informative-abstentions",
    is_flag=True,
    help="Abstaining (--abstain) depends on the class, so learn from it; by default abstentions are left out.",
)
_RATINGS = click.option("--ratings", is_flag=True, help="Labels are numbers, such as 3.5, not classes.")
ids_option = click.option("--ids", type=FILE, metavar="FILE", help="Ids of the rows of a NumPy file, one per line.")
_FEATURES = (
    click.option("--id", metavar="COLUMN", help="Column of FEATURES with the example's id."),
    ids_option,
    click.option("--text", metavar="COLUMN", multiple=True, help="Column with texts."),
    click.option("--embedding", metavar="COLUMN", multiple=True, help="Column with lists of numbers."),
    click.option("--columns", metavar="A,B,...", help="Columns with numbers or categories; by default all."),
    click.option(
        "--join",
        type=click.Choice(["exact", "inner"]),
        default="exact",
        help="inner leaves out labelled examples without features; by default they are an error.",
    ),
)
truth_option = click.option(
    "--truth", type=FILE, metavar="FILE", help="Known answers for some examples, to measure the result."
)
use_truth_option = click.option(
    "--use-truth", is_flag=True, help="Also use --truth in the fit, to calibrate confidence."
)
console_options = packed(
    "console",
    Console,
    click.option("-q", "--quiet", is_flag=True, help="Print only the result."),
    click.option("-v", "--verbose", is_flag=True, help="Also print how long each step takes."),
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


def reading_options(*, scale: bool = False, ratings: bool = False, features: bool = False) -> Option:
    """How files are read, as `reading`: named arguments of `crowdwise.runs.read_inputs`."""
    options = [*_LABELS, *([_SCALE] * scale), *([_RATINGS] * ratings), *(_FEATURES if features else ())]
    return packed("reading", _reading, *options)


def _reading(*, join: str = "exact", columns: str | None = None, **values: Any) -> dict[str, Any]:
    features_as: dict[str, Any] = {
        name: values.pop(name) for name in ("id", "ids", "text", "embedding") if name in values
    }
    if columns is not None:
        features_as["columns"] = [name.strip() for name in columns.split(",")]
    return {"labels_as": _labels_as(**values), "features_as": features_as, "join": join}


def _labels_as(
    *, scale: str = "nominal", ratings: bool = False, missing: tuple[str, ...], **labels_as: Any
) -> dict[str, Any]:
    if labels_as["format"] is not None:
        from crowdwise.formats import FORMATS

        if labels_as["format"] not in FORMATS:
            raise click.UsageError(f"--format must be one of {', '.join(FORMATS)}; got {labels_as['format']}.")
    if missing:
        from crowdwise.formats._answers import MISSING

        labels_as["missing"] = (*MISSING, *missing)
    if ratings and labels_as["classes"]:
        raise click.UsageError("--classes is for classes and --ratings for numbers: use one of them.")
    if ratings and scale == "ordinal":
        raise click.UsageError("labels are ratings or levels, not both: leave out --ratings or --scale ordinal.")
    if labels_as["wide"] and labels_as["annotator"]:
        labels_as["annotator"] = names(labels_as["annotator"])
    console = Console(quiet=click.get_current_context().params.get("quiet", False))
    labels_as["on_rows"] = lambda n: console.progress(f"{n:,} rows read")
    return labels_as | {"scale": "interval" if ratings else scale}
