"""Options that commands share, and what they stand for."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from typing import Any, TypeVar

import click

from crowdwise.cli.console import Console

Command = TypeVar("Command", bound=Callable[..., Any])
FILE = click.Path()  # not looked at here: it lets a shell complete names of files
_LABELS = (
    "format",
    "example",
    "annotator",
    "label",
    "wide",
    "question",
    "missing",
    "abstain",
    "on_duplicate",
    "classes",
    "strip",
    "encoding",
)
_FEATURES = ("id", "ids", "text", "embedding", "columns")


# ParamType is generic in later versions of click only: with 8.2 it cannot be given its types.


class NumberOrAuto(click.ParamType):  # type: ignore[type-arg]
    """A number that is not negative, or the word auto."""

    name = "auto|NUMBER"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        """The number, or "auto"."""
        if value == "auto":
            return "auto"
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not 0 <= number < math.inf:
            self.fail(f"{value!r} is neither auto nor a number of at least 0.", param, ctx)
        return number


class Names(click.ParamType):  # type: ignore[type-arg]
    """Names with commas between them; one with a comma in it is in quotes, as in a CSV file."""

    name = "A,B,..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """The names, in their order."""
        if not isinstance(value, str):
            return tuple(value)
        names = tuple(name.strip() for name in next(csv.reader([value], skipinitialspace=True), []))
        if not all(names) or len(set(names)) < max(len(names), 1):
            self.fail(f"different names with commas between them were expected; got {value!r}.", param, ctx)
        return names


class Encoding(click.ParamType):  # type: ignore[type-arg]
    """The name of an encoding of text."""

    name = "encoding"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name, if Python knows it."""
        from crowdwise.tables import check_encoding

        try:
            check_encoding(value)
        except ValueError:
            self.fail(f"{value!r} is no encoding that is known here; utf-8 and latin-1 are, for example.", param, ctx)
        return str(value)


def in_order(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one decorator; the help lists them in this order."""

    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


encoding_option = click.option(
    "--encoding", type=Encoding(), metavar="NAME", help="Of the files, such as latin-1; by default UTF-8 or UTF-16."
)
labels_options = in_order(
    click.option("--example", metavar="COLUMN", help="Column with the example's id, if its name does not say so."),
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
        help="The tool that wrote the file, such as label-studio; by default it is recognised.",
    ),
    encoding_option,
    click.option("--question", metavar="NAME", help="Which question, if annotators answered several."),
    click.option(
        "--missing", metavar="VALUE", multiple=True, help="A label that means no label, such as -1; may be repeated."
    ),
    click.option("--abstain", metavar="VALUE", multiple=True, help="A label that means: cannot tell; may be repeated."),
    click.option("--classes", type=Names(), help="Every class there is, in this order; any other label is an error."),
    click.option("--strip", is_flag=True, help="yes, Yes and ' yes' are one label."),
    click.option(
        "--on-duplicate",
        type=click.Choice(["error", "first", "last", "runs"]),
        default="error",
        help="Which of two labels of an annotator for one example counts; runs: all, as runs that share a vote.",
    ),
)
scale_option = click.option(
    "--scale",
    type=click.Choice(["nominal", "ordinal"]),
    default="nominal",
    help="ordinal: labels have an order, as stars do; give the order of words with --classes.",
)
group_option = click.option(
    "--group",
    "groups",
    type=Names(),
    multiple=True,
    metavar="A,B,...",
    help="Annotators who share one vote, such as models of one family; may be repeated.",
)
abstentions_option = click.option(
    "--informative-abstentions",
    is_flag=True,
    help="Abstaining (--abstain) depends on the class, so learn from it; by default abstentions are left out.",
)
ratings_option = click.option("--ratings", is_flag=True, help="Labels are numbers, such as 3.5, and not classes.")
ids_option = click.option("--ids", type=FILE, metavar="FILE", help="Ids of the rows of a NumPy file, one per line.")
features_options = in_order(
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
truth_options = in_order(
    click.option("--truth", type=FILE, metavar="FILE", help="Right answers of some examples, to measure the result."),
    click.option("--use-truth", is_flag=True, help="Learn from --truth too, and calibrate confidence by it."),
)
console_options = in_order(
    click.option("-q", "--quiet", is_flag=True, help="Print nothing but the result."),
    click.option("-v", "--verbose", is_flag=True, help="Print how long each step takes, too."),
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


def reading_of_labels(options: dict[str, Any], console: Console) -> dict[str, Any]:
    """Takes the options about labels out of all options: settings of `crowdwise.formats.read`."""
    given = {name: options.pop(name) for name in _LABELS} | {"on_rows": lambda n: console.progress(f"{n:,} rows read")}
    if given["format"] is not None:
        from crowdwise.formats import FORMATS

        if given["format"] not in FORMATS:
            raise click.UsageError(f"--format must be one of {', '.join(FORMATS)}; got {given['format']}.")
    if given["missing"]:
        from crowdwise.formats._answers import MISSING

        given["missing"] = (*MISSING, *given["missing"])
    else:
        del given["missing"]
    given["scale"] = options.pop("scale", "nominal")
    if options.pop("ratings", False):
        if given["classes"]:
            raise click.UsageError("--classes names classes, and --ratings says that labels are numbers: one of them.")
        if given["scale"] == "ordinal":
            raise click.UsageError("labels are ratings or levels, not both: leave out --ratings or --scale ordinal.")
        given["scale"] = "interval"
    if given["wide"] and given["annotator"]:
        given["annotator"] = Names().convert(given["annotator"], None, None)
    return given


def reading_of_features(options: dict[str, Any]) -> dict[str, Any]:
    """Takes the options about features out of all options: settings of `crowdwise.features.read_features`."""
    given = {name: options.pop(name) for name in _FEATURES}
    if given["columns"] is not None:
        given["columns"] = [name.strip() for name in given["columns"].split(",")]
    return given


def console_of(options: dict[str, Any]) -> Console:
    """Takes the options about the console out of all options."""
    return Console(options.pop("quiet"), options.pop("verbose"))
