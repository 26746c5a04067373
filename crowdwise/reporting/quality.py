"""A fit and its labels -> how far the crowd agrees, and how good consensus and majority vote are likely to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from crowdwise._arrays import Bools, Floats, Positions
from crowdwise.crowd.agreement_measures import agreement
from crowdwise.crowd.coefficients import krippendorff_alpha
from crowdwise.crowd.differences import disagreement
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.reporting.record import FitRecord
from crowdwise.weights.class_weights import leading_shares

# How many standard errors there are from the middle of a 95% interval to its ends.
_HALF_WIDTH = float(ndtri(0.975))


@dataclass(frozen=True)
class Estimate:
    """A number with its 95% interval; NaN where it is not known."""

    value: float
    low: float = float("nan")
    high: float = float("nan")

    def plain(self) -> dict[str, Any]:
        """The same as a dict that JSON can hold; None where it is not known."""
        return {name: None if np.isnan(part) else float(part) for name, part in vars(self).items()}


def alpha_interval(labels: CrowdLabels, *, ordered: bool = False) -> Estimate:
    """Krippendorff's alpha with an interval over examples that might have been drawn instead.

    All NaN if no example has two labels. If classes have an order (`ordered`), it is the one that knows it.

    Examples
    --------
    >>> from crowdwise import CrowdLabels
    >>> from crowdwise.reporting.quality import alpha_interval
    >>> alpha_interval(CrowdLabels.from_matrix([[0, 0], [1, 1], [0, 1], [1, 1]] * 25)).plain()["value"] > 0.4
    True
    """
    paired = labels.labels_per_example > 1
    if not paired.any():
        return Estimate(float("nan"))
    kept = labels[paired]
    if ordered:
        found = agreement(kept, "ordinal", min_shared=len(kept) + 1).alpha
        return Estimate(found.value, found.low, found.high)
    alpha = krippendorff_alpha(kept)
    n, n_labels = kept.labels_per_example, kept.n_labels
    within = disagreement(kept, relative_to=None) / (n - 1)
    if kept.classes is None:
        spread = (kept.values - kept.values.mean()) ** 2
        at_random, moved = spread.mean(), spread - spread.mean()
    else:
        share = kept.tally.sum(axis=0) / n_labels
        at_random, moved = 2 * (1 - (share**2).sum()), 4 * ((share**2).sum() - share[kept.values])
    if not at_random > 0:
        return Estimate(alpha)
    # How far one example more of each kind would move alpha, which is a ratio of two means.
    mean_within = within.sum() / n_labels
    influence = mean_within / at_random * kept.sum_per_example(moved) - (within - mean_within * n)
    error = float(np.sqrt((influence**2).sum())) / (n_labels * at_random)
    return Estimate(alpha, alpha - _HALF_WIDTH * error, min(alpha + _HALF_WIDTH * error, 1.0))


def share_interval(share: Any, n: Any) -> tuple[Floats, Floats]:
    """Wilson's 95% interval of shares of n cases each; from 0 to 1 where there is no case.

    Examples
    --------
    >>> from crowdwise.reporting.quality import share_interval
    >>> [round(float(end), 3) for end in share_interval(0.9, 10)]
    [0.596, 0.982]
    """
    share, n = np.asarray(share, dtype=np.float64), np.asarray(n, dtype=np.float64)
    square = _HALF_WIDTH**2
    with np.errstate(invalid="ignore"):
        centre = (n * share + square / 2) / (n + square)
        half = _HALF_WIDTH * np.sqrt(n * share * (1 - share) + square / 4) / (n + square)
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)


def majority_shares(labels: CrowdLabels) -> Floats:
    """For every example one over the classes that lead the vote, 0 for the others: a tie is a fair draw."""
    return leading_shares(labels.tally) * (labels.labels_per_example > 0)[:, np.newaxis]


@dataclass(frozen=True)
class Comparison:
    """How often the consensus and the majority vote are right, and the difference, on n examples that have labels."""

    n: int
    consensus: Estimate
    majority: Estimate
    difference: Estimate
    stated: Estimate  # how often the consensus is right by its own probabilities

    def plain(self) -> dict[str, Any]:
        """The same as a dict that JSON can hold."""
        return {"n": self.n} | {k: v.plain() for k, v in vars(self).items() if k != "n"}


def known_accuracy(record: FitRecord, truth: Positions) -> Comparison:
    """How often each is right on the labelled examples of known truth: positions of classes, -1 where it is unknown."""
    known = np.flatnonzero((truth >= 0) & (record.labels.labels_per_example > 0))
    if len(known) == 0:
        return Comparison(0, *[Estimate(float("nan"))] * 4)
    one = (record.codes[known] == truth[known]).astype(np.float64)
    other = majority_shares(record.labels[known])[np.arange(len(known)), truth[known]]
    gap = one - other
    half = _HALF_WIDTH * float(gap.std()) / len(known) ** 0.5
    difference = Estimate(float(gap.mean()), float(gap.mean() - half), float(gap.mean() + half))
    stated = float(record.proba[known, record.codes[known]].mean())
    return Comparison(len(known), accuracy_of(one), accuracy_of(other), difference, Estimate(stated))


def known_accuracies(quality: dict[str, Any], classifier: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
    """Accuracies on known answers by what has them; nothing without known answers."""
    known = quality["known"]
    if not known or not known["n"]:
        return {}
    found = {"consensus": known["consensus"], "majority vote": known["majority"]}
    return found | ({"classifier": classifier["truth"]} if classifier and classifier["n_truths"] else {})


def accuracy_of(right: Floats) -> Estimate:
    """The share that is right, with its interval; NaN if there is nothing."""
    if len(right) == 0:
        return Estimate(float("nan"))
    share = float(right.mean())
    return Estimate(share, *map(float, share_interval(share, len(right))))


def changed_examples(record: FitRecord) -> tuple[Bools, Bools]:
    """Which examples have a consensus that is not the majority's, and which had a tie that the consensus decides.

    Of those whose answer the fit was given neither.
    """
    votes = majority_shares(record.labels)
    of_consensus = votes[np.arange(len(votes)), record.codes]
    found = (record.labels.labels_per_example > 0) & ~record.has_truth
    return found & (of_consensus == 0), found & (of_consensus > 0) & (of_consensus < 1)
