"""How frequent a class is among examples, corrected for errors of the consensus by known answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import sqrt
from typing import Any

import numpy as np
from scipy import stats

from crowdwise._arrays import Array, Bools
from crowdwise._checks import check_number
from crowdwise._text import count, some_names
from crowdwise.em.aggregate import aggregate
from crowdwise.exceptions import DataError, LabelError, warn
from crowdwise.labels._align import match_examples
from crowdwise.labels._encode import as_column, shown
from crowdwise.labels._frames import make_frame
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.truth import known_answers
from crowdwise.results.fit_results import FitResults, fit_and_labels, is_representative, results_of


@dataclass(frozen=True)
class RateDifference:
    """How much more frequent a class is in one group of examples than in another.

    Parameters
    ----------
    first, second : object
        The groups.
    value, low, high : float
        The rate of the first less that of the second, and its interval.
    """

    first: Any
    second: Any
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        clear = "" if self.low > 0 or self.high < 0 else ": no clear difference"
        return (
            f"{self.first} - {self.second}: {100 * self.value:+.1f} points "
            f"({100 * self.low:+.1f} to {100 * self.high:+.1f}){clear}"
        )


@dataclass(frozen=True, repr=False)
class Rate:
    """The share of examples that are of a class; prints as a line or two of text.

    Parameters
    ----------
    target : object
        The class.
    value, low, high : float
        The share and its interval.
    uncorrected : float
        The share by the consensus alone.
    n_examples, n_known : int
        Examples with labels, and those of them whose answer is known.
    confidence : float
        Level of the intervals.
    groups : dict from group to Rate
        The same for each group of examples.
    differences : tuple of RateDifference
        Every two groups that follow each other.
    """

    target: Any
    value: float
    low: float
    high: float
    uncorrected: float
    n_examples: int
    n_known: int
    confidence: float = 0.95
    groups: Mapping[Any, Rate] = field(default_factory=dict)
    differences: tuple[RateDifference, ...] = ()

    def __str__(self) -> str:
        span = f"{100 * self.value:.1f}% ({100 * self.low:.1f}% to {100 * self.high:.1f}%)"
        if not self.n_known:
            return f"{span} of {count(self.n_examples, 'example')} by the consensus"
        return (
            f"{span} of {count(self.n_examples, 'example')}, corrected by {count(self.n_known, 'known answer')}; "
            f"{100 * self.uncorrected:.1f}% by the consensus alone"
        )

    def __repr__(self) -> str:
        lines = [f"Rate of {self.target!r}: {self}"]
        lines += [f"  {name}: {rate}" for name, rate in self.groups.items()]
        lines += [f"  {difference}" for difference in self.differences]
        if not self.n_known:
            lines.append("  not corrected for errors of the consensus, which only known answers show")
        return "\n".join(lines)

    def to_frame(self, library: str | None = None) -> Any:
        """A data frame with a row for all examples and one per group.

        Parameters
        ----------
        library : {"pandas", "polars"} or None, default=None
            What makes the frame; None is pandas, or polars where that is not installed.

        Returns
        -------
        frame : pandas.DataFrame or polars.DataFrame
        """
        rates = [self, *self.groups.values()]
        names = ("value", "low", "high", "uncorrected", "n_examples", "n_known")
        columns = {name: np.array([getattr(rate, name) for rate in rates]) for name in names}
        return make_frame({"group": np.array(["all", *map(str, self.groups)], dtype=object)} | columns, library)


def rate(
    model: Any, labels: Any = None, truth: Any = None, *, target: Any = None, by: Any = None, confidence: float = 0.95
) -> Rate:
    """The share of a class, such as a pass rate, with an interval that allows for errors of the consensus.

    Known answers of examples that were drawn at random show how often the consensus is right where it gives the class
    and where it does not; both shares are corrected by that (post-stratification, the simplest prediction-powered
    estimate). The interval is Bayesian, with half an answer of either kind added to both, and holds for further
    examples of the same kind.

    Parameters
    ----------
    model : estimator or FitResults
        A fitted model, or the result of `aggregate`. If it was fitted with known answers, the consensus of the labels
        without them is used, so that no answer is counted twice.
    labels : CrowdLabels, or array-like of shape (n_examples, n_annotators), default=None
        The labels of the fit. Needed if it was given known answers, or if some examples have no labels, which do not
        count.
    truth : array-like of shape (n_examples,), series or mapping, default=None
        Known answers, missing where they are not known; by default those that the fit was given. Without any, the
        rate is that of the consensus, and its interval that of a sample of examples whose consensus is right.
    target : object, default=None
        The class; by default the second of two.
    by : array-like of shape (n_examples,), series or mapping, default=None
        A group for each example, such as the system that was evaluated: rates of groups and their differences.
    confidence : float, default=0.95
        Level of the intervals.

    Returns
    -------
    rate : Rate
        With `value`, `low`, `high` and `uncorrected`; `groups` and `differences` with `by`.

    References
    ----------
    Angelopoulos and others (2023), Prediction-powered inference.

    Examples
    --------
    >>> from crowdwise import aggregate, rate
    >>> Y = [["pass", "pass", "fail"], ["fail", "fail", "fail"], ["fail", "pass", "fail"]] * 50
    >>> print(rate(aggregate(Y), Y, truth={0: "pass", 1: "fail", 2: "pass", 3: "pass", 5: "fail", 7: "fail"}))
    47.8% (21.1% to 75.2%) of 150 examples, corrected by 6 known answers; 33.3% by the consensus alone
    """
    check_number("confidence", confidence, above=True, high=1.0)
    results, crowd = (results_of(model), None) if labels is None else fit_and_labels(model, labels)
    if results.classes is None:
        raise LabelError("a rate is the share of a class, and these are ratings. Cut them into classes first.")
    position = _position(target, results.classes)
    codes = results.codes
    if results.has_truth.any():
        if crowd is None:
            raise LabelError(
                "this fit used known answers: pass its labels too, so that a consensus without them can be computed."
            )
        codes = aggregate(crowd.with_truth(None)).codes
    examples = examples_of(results) if crowd is None else crowd
    answers = results.truth if truth is None else known_answers(truth, examples.examples, examples)
    if answers is None:
        answers = np.full(results.n_examples, -1)
    labelled = np.ones(len(codes), dtype=bool) if crowd is None else crowd.labels_per_example > 0
    known = labelled & (answers >= 0)
    if known.any() and not is_representative(results, labelled, answers):
        warn("the known answers are not a random draw: the rate holds only for examples like these.")
    is_target, right = codes == position, answers == position
    name = results.classes[position : position + 1].tolist()[0]

    def estimate(rows: Bools, **parts: Any) -> Rate:
        share = post_stratified(is_target[rows], known[rows], right[rows], confidence)
        return Rate(
            name, *share, float(is_target[rows].mean()), int(rows.sum()), int(known[rows].sum()), confidence, **parts
        )

    if by is None:
        return estimate(labelled)
    group = _groups(by, examples, labelled)
    groups = {value: estimate(labelled & (group == value)) for value in dict.fromkeys(group[labelled].tolist())}
    return estimate(labelled, groups=groups, differences=_differences(groups))


def examples_of(results: FitResults) -> CrowdLabels:
    """The examples and classes of a fit, without labels."""
    nothing: dict[str, Any] = {name: np.zeros(0, dtype=object) for name in ("example", "annotator", "label")}
    return CrowdLabels.from_table(nothing, examples=results.examples, classes=results.classes)


def _position(target: Any, classes: Array) -> int:
    names = classes.tolist()
    if target is None:
        if len(names) != 2:
            raise DataError(f"target must be one of the classes {some_names(list(map(str, names)))} (--target).")
        return 1
    if target not in names:
        raise DataError(f"target must be one of the classes {some_names(list(map(str, names)))}; got {target!r}.")
    return int(names.index(target))


def _groups(by: Any, labels: CrowdLabels, labelled: Bools) -> Array:
    group = as_column(match_examples(by, labels.examples, labels, "by"), "by")
    if len(group) != len(labels):
        raise LabelError(f"by must have one group per example, {len(labels)}; got {len(group)}.")
    missing = [row for row in np.flatnonzero(labelled) if group[row] is None or group[row] != group[row]]
    if missing:
        raise LabelError(
            f"by must have a group for every example; example {shown(labels.examples[missing[0]])} has none."
        )
    return group


def post_stratified(is_target: Bools, known: Bools, right: Bools, confidence: float) -> tuple[float, float, float]:
    """The share of a class and its interval.

    The consensus divides examples into two parts, and known answers are a sample of each. The share of each part has
    the posterior of a Beta distribution with Jeffreys' prior; that of all has the Beta distribution of the same mean
    and variance. Where nothing is known at all, the consensus is taken to be right.
    """
    n = len(is_target)
    tails = ((1 - confidence) / 2, (1 + confidence) / 2)
    if not known.any():
        low, high = stats.beta.ppf(tails, is_target.sum() + 0.5, n - is_target.sum() + 0.5)
        return float(is_target.mean()), float(low), float(high)
    mean = variance = 0.0
    shares: list[float] = []
    for part in (is_target, ~is_target):
        number, hits = int((known & part).sum()), int((known & part & right).sum())
        share, weight = (hits + 0.5) / (number + 1), float(part.mean())
        mean += weight * share
        variance += weight**2 * share * (1 - share) / (number + 2)
        shares.append(share)
    variance += (shares[0] - shares[1]) ** 2 * is_target.mean() * (1 - is_target.mean()) / n
    strength = mean * (1 - mean) / variance - 1
    low, high = stats.beta.ppf(tails, mean * strength, (1 - mean) * strength)
    return mean, float(low), float(high)


def _differences(groups: dict[Any, Rate]) -> tuple[RateDifference, ...]:
    """Each group less the next one, with the interval that those of both give (MOVER)."""
    differences = []
    for (first, minuend), (second, subtrahend) in pairwise(groups.items()):
        below = sqrt((minuend.value - minuend.low) ** 2 + (subtrahend.high - subtrahend.value) ** 2)
        above = sqrt((minuend.high - minuend.value) ** 2 + (subtrahend.value - subtrahend.low) ** 2)
        value = minuend.value - subtrahend.value
        differences.append(RateDifference(first, second, value, value - below, value + above))
    return tuple(differences)
