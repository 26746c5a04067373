"""What sections of a report are made from: a fit, its labels and known answers; plain values, and words for them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from crowdwise._arrays import Array, Bools, Floats, Positions
from crowdwise._limits import NAME_LENGTH, NAMED
from crowdwise._text import count
from crowdwise.exceptions import DataError
from crowdwise.labels._align import match_examples
from crowdwise.labels._encode import as_column, missing_mask
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.truth import codes_of_truth
from crowdwise.results.consensus import chosen_classes
from crowdwise.results.fit_results import FitResults, fit_and_labels
from crowdwise.slices import SliceAccuracy, accuracy_over_time
from crowdwise.truths.check import share_interval
from crowdwise.weights.class_weights import leading_shares

Summary = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Fit:
    """What was found, from which labels, and known answers that judge it."""

    model: Any
    results: FitResults
    labels: CrowdLabels
    X: Any = None
    texts: Array | None = None  # None where there is none
    known: Array | None = None  # positions of classes, -1 where unknown, or ratings, NaN there
    drift: SliceAccuracy | None = None  # accuracy over time, where labels have times

    @classmethod
    def of(
        cls, model: Any, labels: Any, *, X: Any = None, texts: Any = None, truth: Any = None, times: Any = None
    ) -> Fit:
        """From a fitted model or the result of `aggregate`, the labels of the fit, and anything that names examples."""
        results, crowd = fit_and_labels(model, labels)
        if X is not None and np.ndim(X) != 2:
            raise DataError(f"X must be the features of the fit, a row per example; got {type(X).__name__}.")
        if X is not None and np.shape(X)[0] != len(crowd):
            raise DataError(f"X has {np.shape(X)[0]} rows and the fit {len(crowd)}. Pass the features of the fit.")
        known = None if truth is None else _codes_or_ratings(truth, crowd)
        drift = None
        if times is not None and crowd.classes is not None:
            # A few known answers per period show nothing that the consensus would not show better.
            many = known is not None and 2 * (known >= 0).sum() >= len(crowd)
            drift = accuracy_over_time(results, labels, times, truth if many else None)
        return cls(model, results, crowd, X, None if texts is None else _column(texts, crowd, "texts"), known, drift)

    @cached_property
    def votes(self) -> Floats:
        """For every example one over the classes that lead the vote, 0 for the others: a tie is a fair draw."""
        return leading_shares(self.labels._tally) * self.labelled[:, np.newaxis]

    @cached_property
    def tied(self) -> Bools:
        """Which examples have several classes with the most votes, so that there is no majority."""
        return np.asarray(((self.votes > 0) & (self.votes < 1)).any(axis=1))

    @cached_property
    def labelled(self) -> Bools:
        """Which examples have labels."""
        return self.labels.labels_per_example > 0

    @cached_property
    def judging(self) -> Array:
        """The answers that judge: one that the fit was given judges nothing."""
        unknown = np.full(len(self.labels), np.nan if self.results.classes is None else -1)
        return unknown if self.known is None else np.where(self.results.has_truth, unknown, self.known)

    @cached_property
    def answers(self) -> Array:
        """All answers that are known: those of the fit, and those that judge it."""
        used = self.results.truth
        return self.judging if used is None else np.where(self.results.has_truth, used, self.judging)

    @cached_property
    def model_codes(self) -> Positions | None:
        """The class of every example by the classifier alone, out of fold, chosen as the consensus is."""
        fitted, proba = self.results.fitted, self.results.model_proba
        if fitted is None or proba is None:
            return None
        return chosen_classes(proba, fitted.scale.consensus, fitted.levels)

    @cached_property
    def shown_truth(self) -> Array | None:
        """The answers that judge as rows show them; None where unknown."""
        if self.known is None or self.results.classes is None:
            return None if self.known is None else np.array([plain(value) for value in self.known], dtype=object)
        return np.array([*map(named, self.results.classes), None], dtype=object)[self.known]

    @cached_property
    def easy_to_hard(self) -> Array:
        """Positions of the examples, the easiest first: least disagreement, then the surest consensus."""
        results = self.results
        return np.lexsort((results.std if results.classes is None else -results.confidence, results.disagreement))


def _column(values: Any, labels: CrowdLabels, role: str) -> Array:
    column = as_column(match_examples(values, labels.examples, labels, role, partial=True), role).astype(object)
    if len(column) != len(labels):
        raise DataError(f"{role} must be one per example, {len(labels)}; got {len(column)}.")
    column[missing_mask(column)] = None
    return column


def _codes_or_ratings(truth: Any, labels: CrowdLabels) -> Array:
    if labels.classes is not None:
        return codes_of_truth(truth, labels.examples, labels)
    try:
        return _column(truth, labels, "truth").astype(np.float64)
    except (TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError("truth must be ratings, which are numbers, or missing.") from None


def plain(value: Any) -> Any:
    """A value as JSON has it: numbers, bools and None stay, NaN is None, all else is text."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float) else str(value)


def named(value: Any) -> str:
    """A name, cut in its middle if it is long: names that begin alike, as those of files do, often end differently."""
    text, half = str(value), NAME_LENGTH // 2
    return text if len(text) <= NAME_LENGTH else f"{text[: half - 1].rstrip()}…{text[-half:].lstrip()}"


def excerpt(text: str, length: int = NAME_LENGTH) -> str:
    """The beginning of a text."""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def listed(total: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Rows, and of how many they are a part."""
    return {"total": total, "shown": len(rows), "rows": rows}


def evenly(n: int, most: int) -> Positions:
    """Positions of at most so many of n rows, evenly spread."""
    return np.linspace(0, n - 1, min(n, most)).round().astype(np.intp)


def estimate(value: float, low: float = np.nan, high: float = np.nan) -> dict[str, Any]:
    """A number with its 95% interval; None where it is not known."""
    return {"value": plain(float(value)), "low": plain(float(low)), "high": plain(float(high))}


def accuracy_of(right: Array) -> dict[str, Any]:
    """The share that is right, with its interval; None if there is nothing."""
    if len(right) == 0:
        return estimate(np.nan)
    share = float(right.mean())
    return estimate(share, *share_interval(share, len(right)))


def percent(share: float, digits: int = 0) -> str:
    """A share as a percentage, never rounded up to 100% nor down to 0%."""
    text = f"{100 * share:.{digits}f}"
    least = 10.0**-digits
    if share < 1 and float(text) >= 100:
        return f"over {100 - least:.{digits}f}%"
    if share > 0 and float(text) <= 0:
        return f"under {least:.{digits}f}%"
    return f"{text}%"


def short_percent(share: float, digits: int = 0) -> str:
    """The same for a narrow column."""
    return percent(share, digits).replace("over ", "> ").replace("under ", "< ")


def decimal(value: float, digits: int = 2) -> str:
    """A number with the sign of typography."""
    return f"{value:.{digits}f}".replace("-", "−")


def signed(value: float) -> str:
    """The same of a difference, with its sign."""
    return f"{value:+.2f}".replace("-", "−")


def rounded(value: float) -> str:
    """A number to one digit after the point, and none where that is zero."""
    return f"{value:,.1f}".removesuffix(".0")


def some_of(names: list[str]) -> str:
    """The first few names, and how many more there are."""
    more = len(names) - NAMED
    names = names if more <= 1 else [*names[:NAMED], count(more, "other")]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def interval(part: dict[str, Any]) -> str:
    """The ends of an interval."""
    return f"{decimal(part['low'])} to {decimal(part['high'])}"


def percent_interval(part: dict[str, Any]) -> str:
    """The ends of an interval of shares."""
    return f"{100 * part['low']:.1f} to {100 * part['high']:.1f}"
