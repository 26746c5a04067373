"""Labels, perhaps features -> what is in them, what is wrong, how far annotators agree, and whether to weight."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdwise._arrays import Array
from crowdwise._limits import RARE_AMONG_LABELS
from crowdwise._text import count, some_names
from crowdwise.crowd.flags import ALWAYS_SAME
from crowdwise.diagnosis import diagnose
from crowdwise.em.aggregate import aggregate
from crowdwise.exceptions import DataError
from crowdwise.formats._names import shell_word
from crowdwise.labels._mistakes import perhaps_no_answers, spelt_alike
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.reporting.agreement import agreement_words, alpha_interval, alpha_name, pairs
from crowdwise.reporting.annotators import WHAT_CHANCE_IS
from crowdwise.reporting.fit import percent
from crowdwise.results.fit_results import FitResults
from crowdwise.runs.inputs import Inputs

# Labels of one annotator that are worth a line if all are the same, and levels that are all named; examples that show
# whether to weight as well as more would; and consecutive whole numbers that may be levels with an order.
_MANY, _MOST_ROWS, _FEWEST_LEVELS = 10, 20_000, 5
_LEVEL = re.compile(r"(-?\d{1,9})(,0+)?([^\d,]*)")  # 1, "1,0", "1 star"
_NEXT = (
    "crowdwise fit LABELS: the consensus, the accuracy of each annotator, what to check next",
    "crowdwise fit LABELS --truth ANSWERS --use-truth: the same, with known answers for a few dozen examples",
    "  drawn at random; only these reveal errors of the whole crowd",
    "crowdwise check LABELS FEATURES: whether down-weighting contested examples helps",
)


@dataclass(frozen=True)
class Check:
    """What a look at labels and features found.

    Parameters
    ----------
    size : dict
        How many examples, annotators, labels and, if labels are classes, classes.
    classes : dict from class to share, or None
        How often each was given; None for ratings.
    ratings : dict or None
        For ratings the least, median and most.
    labels_per_example, labels_per_annotator : dict
        Least, median and most.
    alpha : float or None
        Krippendorff's; None if there is nothing to compare.
    kappas : dict or None
        Of pairs with ten shared examples: how many, and the 10, 50 and 90% quantiles.
    unanimous : float or None
        Share of the examples with two or more labels on which all agree; None for ratings.
    problems : tuple of str
        What to look at.
    weighting : str or None
        Whether weighting suits this crowd, and why; None without features.
    ordered : bool, default=False
        Whether classes have an order, which alpha and the kappas then know.
    """

    size: dict[str, int]
    classes: dict[str, float] | None
    ratings: dict[str, float] | None
    labels_per_example: dict[str, float]
    labels_per_annotator: dict[str, float]
    alpha: float | None
    kappas: dict[str, float] | None
    unanimous: float | None
    problems: tuple[str, ...]
    weighting: str | None
    ordered: bool = False

    def as_text(self) -> str:
        """One screen for a person."""
        size = self.size
        n_labels, n_examples, n_annotators = (
            count(size[f"{name}s"], name) for name in ("label", "example", "annotator")
        )
        parts = {
            f"{n_labels} of {n_examples} by {n_annotators}": [
                self._classes_or_ratings(),
                _row("labels per example", _span(self.labels_per_example)),
                _row("labels per annotator", _span(self.labels_per_annotator)),
            ],
            "Agreement (1 is perfect, 0 is chance)": self._agreement(),
            "To look at": list(self.problems) or ["nothing: no problems found"],
        }
        if self.weighting is None:
            parts["What next"] = list(_NEXT)
        else:
            parts["Does down-weighting contested examples help?"] = textwrap.wrap(self.weighting, 96)
        return "\n\n".join("\n  ".join([title, *rows]) for title, rows in parts.items())

    def _classes_or_ratings(self) -> str:
        if self.classes is not None:
            shares = [f"{_as_shown(name)}: {percent(share)}" for name, share in self.classes.items()]
            return _row("classes", some_names(shares))
        assert self.ratings is not None
        return _row("ratings", "{least:g} to {most:g}, median {median:g}".format(**self.ratings))

    def _agreement(self) -> list[str]:
        overall = "unknown: no example has two labels, or all labels are the same"
        if self.alpha is not None:
            words = agreement_words({"value": self.alpha})
            overall = f"annotators {words}: {alpha_name(ordered=self.ordered)} {self.alpha:.2f}"
        rows = [_row("all together", overall)]
        if self.kappas is not None:
            n, low, middle, high = (self.kappas[key] for key in ("pairs", "low", "median", "high"))
            span = f"80% of {n:,.0f} pairs are between {low:.2f} and {high:.2f}"
            name = "weighted kappa" if self.ordered else "Cohen's kappa"
            of_pairs = f"{name} {middle:.2f}" if n == 1 else f"median {name} {middle:.2f}; {span}"
            rows.append(_row("two at a time", of_pairs))
        if self.unanimous is not None:
            rows.append(_row("unanimous", f"{100 * self.unanimous:.0f}% of the examples with two or more labels"))
        return rows

    def as_dict(self) -> dict[str, Any]:
        """All of it, for JSON."""
        return vars(self) | {"problems": list(self.problems)}


def check(inputs: Inputs) -> Check:
    """A look at labels and features; nothing is fitted for long.

    Parameters
    ----------
    inputs : Inputs
        What `read_inputs` read.

    Returns
    -------
    check : Check
        `check.as_text()` is one screen.

    Examples
    --------
    >>> from crowdwise import CrowdLabels
    >>> from crowdwise.runs import Inputs, check
    >>> result = check(Inputs(CrowdLabels.from_matrix([["a", "a"], ["b", "b"], ["a", "b"]])))
    >>> result.size["labels"], round(result.alpha, 2)
    (6, 0.44)
    """
    labels = inputs.labels
    size = {"examples": labels.n_examples, "annotators": labels.n_annotators, "labels": labels.n_labels}
    classes, kappas, unanimous, results = None, None, None, None
    if labels.classes is not None:
        size["classes"] = len(labels.classes)
        shares = (labels._tally.sum(axis=0) / max(labels.n_labels, 1)).tolist()
        classes = {str(name): share for name, share in zip(labels.classes.tolist(), shares, strict=True)}
        several = labels._tally[labels.labels_per_example > 1]
        unanimous = float(((several > 0).sum(axis=1) == 1).mean()) if len(several) else None
        if of_pairs := pairs(labels):
            kappas = {"pairs": of_pairs["total"], **{name: of_pairs[name] for name in ("low", "median", "high")}}
        if labels.n_annotators > 1 and len(np.unique(labels.values)) > 1:
            results = aggregate(labels[labels.labels_per_example > 0])
    return Check(
        size=size,
        classes=classes,
        ratings=_spread(labels.values) if classes is None else None,
        labels_per_example=_spread(labels.labels_per_example),
        labels_per_annotator=_spread(labels.labels_per_annotator),
        alpha=alpha_interval(labels)["value"],
        kappas=kappas,
        unanimous=unanimous,
        problems=tuple(_problems(labels, results)),
        weighting=_weighting(inputs),
        ordered=labels.scale.name == "ordinal",
    )


def _problems(labels: CrowdLabels, results: FitResults | None) -> Iterator[str]:
    """What a person should look at before trusting these labels, in words."""
    for names in [] if labels.classes is None else spelt_alike(labels.classes):
        yield f"different classes with nearly the same spelling: {some_names(list(map(repr, names)))}"
    per_example = labels.labels_per_example
    if n := int((per_example == 0).sum()):
        yield f"{count(n, 'example')} without a label"
    if n := int((per_example == 1).sum()):
        yield f"{count(n, 'example')} with one label"
    if rare := _rare_classes(labels):
        yield f"rare labels, perhaps typos or missing answers: {some_names(rare)}"
    flags = {} if results is None else results.annotator_flags
    if same := [name for name in _single_minded(labels) if ALWAYS_SAME not in flags.get(name, ())]:
        yield f"the same label every time, {_MANY} times or more: {some_names(list(map(str, same)))}"
    if labels.classes is None:
        return
    if labels.scale.name == "nominal" and (levels := _may_be_levels(labels.classes)):
        yield _ask_for_order(levels, labels.declared_classes)
    if not labels.declared_classes and (values := perhaps_no_answers(labels.classes)):
        means = "if this means no answer" if len(values) == 1 else "if these mean no answer"
        option = "--missing" if values == [-1] else "--abstain"
        options = " ".join(f"{option} {shell_word(str(value))}" for value in values)
        yield f"{' and '.join(map(repr, values))}: {means}, add {options}"
    yield from _flags(labels, results)


def _may_be_levels(classes: Array) -> list[Any]:
    """Classes in their order, if they are five or more consecutive whole numbers, perhaps of something; else none."""
    names = classes.tolist()
    parts = [match.groups() for match in map(_LEVEL.fullmatch, map(str, names)) if match]
    units = {unit.strip().casefold().rstrip("s") for *_, unit in parts}  # 1 star, 2 stars
    if not _FEWEST_LEVELS <= len(parts) == len(names) or len(units) > 1:
        return []
    numbers = np.array([int(number) for number, *_ in parts])
    order = np.argsort(numbers)
    return [names[k] for k in order] if (np.diff(numbers[order]) == 1).all() else []


def _ask_for_order(levels: list[Any], declared: bool) -> str:
    span, levels_are = f"classes {levels[0]!r} to {levels[-1]!r}", "if these are levels, such as stars,"
    if any("," in str(level) for level in levels):
        return f"{span} have a decimal comma: {levels_are} write them with a point, and add --scale ordinal"
    advice = f"{span}: {levels_are} add --scale ordinal"
    if declared or not isinstance(levels[0], str):
        return advice
    shown = levels if len(levels) <= _MANY else [*levels[:3], "..."]
    return f"{advice} --classes {shell_word(','.join(shown))}"


def _flags(labels: CrowdLabels, results: FitResults | None) -> list[str]:
    if results is None:
        only = "one annotator" if labels.n_annotators < 2 else "one class"
        return [f"there is only {only}: annotators cannot be compared"]
    if not results.fitted.comparable:
        return ["no two annotators share an example: their accuracies cannot be compared"]
    by_flag: dict[str, list[str]] = {}
    for name, flags in results.annotator_flags.items():
        for flag in flags:
            by_flag.setdefault(flag, []).append(str(name))
    meaning = {"worse than chance": f" (they {WHAT_CHANCE_IS})", ALWAYS_SAME: " (where others differ)"}
    return [f"{flag}: {some_names(names)}{meaning.get(flag, '')}" for flag, names in by_flag.items()]


def _rare_classes(labels: CrowdLabels) -> list[str]:
    """Classes that were given, but far less often than others, each with how often."""
    if labels.classes is None:
        return []
    n_given = labels._tally.sum(axis=0)
    rare = np.flatnonzero((n_given > 0) & (n_given < RARE_AMONG_LABELS * labels.n_labels / len(n_given)))
    return [f"{_as_shown(str(labels.classes[k]))} ({count(int(n_given[k]), 'time')})" for k in rare]


def _single_minded(labels: CrowdLabels) -> list[Any]:
    """Annotators who gave one and the same label many times, those with the most labels first."""
    different = np.unique(np.column_stack([labels.annotator_index, labels.values]), axis=0)[:, 0].astype(np.intp)
    n_labels, n_different = labels.labels_per_annotator, np.bincount(different, minlength=labels.n_annotators)
    same = np.flatnonzero((n_different == 1) & (n_labels >= _MANY))
    return labels.annotators[same[np.argsort(-n_labels[same], kind="stable")]].tolist()


def _weighting(inputs: Inputs) -> str | None:
    if inputs.labels.classes is None:
        return "unknown: only for classes"
    if inputs.X is None:
        return None
    X, labels = inputs.X, inputs.labels
    if len(labels) > _MOST_ROWS:
        rows = np.sort(np.random.default_rng(0).choice(len(labels), _MOST_ROWS, replace=False))
        X, labels = X[rows], labels[rows]
    try:
        return diagnose(X, labels).advice
    except DataError as error:
        return f"unknown: {error}"


def _spread(numbers: Any) -> dict[str, float]:
    if len(numbers) == 0:
        return {"least": 0, "median": 0.0, "most": 0}
    return {"least": numbers.min().item(), "median": float(np.median(numbers)), "most": numbers.max().item()}


def _as_shown(name: str) -> str:
    """A class as it is, in quotes if one could not see where it begins and ends."""
    plain = name == name.strip() and name.isprintable() and not set(name) & set(",:")
    return name if name and plain else repr(name)


def _row(name: str, value: str) -> str:
    return f"{name:22}{value}"


def _span(spread: dict[str, float]) -> str:
    if spread["least"] == spread["most"]:
        return f"{spread['least']:,.0f} each"
    return f"{spread['least']:,.0f} to {spread['most']:,.0f}, median {spread['median']:,.4g}"
