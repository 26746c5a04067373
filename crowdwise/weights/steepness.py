"""Features and labels -> how good a steepness is, and the better of no weights and the paper's.

Weights leave out what could be learned from contested examples. That helps where most annotators err on hard examples,
as in the paper's simulation at its noisiest, and costs elsewhere.

The squared error against the consensus cannot compare steepnesses: the consensus itself depends on the steepness, and
one that flatters the model has a small error. Ranking held-out examples on which annotators agree, or those whose truth
is known, can.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdwise._arrays import TIED, Floats
from crowdwise._limits import EASIEST_SHARE, ENOUGH_EXAMPLES, STEEPNESSES
from crowdwise.crowd._disagreement import example_weights
from crowdwise.labels.crowd_labels import CrowdLabels


def counts_of(weight: Floats) -> Floats:
    """How often each example counts where numbers of examples matter, by its sample weight.

    Whole numbers stay as they are, so that repeated examples give the same; others are relative to their mean.
    """
    return weight if (weight == np.rint(weight)).all() else weight / weight.mean()


def ranking(scores: Floats, codes: NDArray[Any], n_classes: int, weight: Floats | None = None) -> float:
    """The probability that an example of a class is scored above one of another; 0.5 is chance.

    The mean over the classes that occur, each against all others; NaN if fewer than two occur. Scores have one column
    for two classes, else one per class; each example counts once by default.
    """
    one_column, count = scores.shape[1] == 1, np.ones(len(codes)) if weight is None else weight
    areas = []
    for k in [1] if one_column else range(n_classes):
        positive = codes == k
        if positive.any() and not positive.all():
            areas.append(_area(scores[:, 0 if one_column else k], count * positive, count * ~positive))
    return float(np.mean(areas)) if areas else float("nan")


def _area(score: Floats, positive: Floats, negative: Floats) -> float:
    """The share of pairs in which the positive one has the higher score, ties by half, by how often each counts."""
    value = np.unique(score, return_inverse=True)[1]
    n_positive, n_negative = np.bincount(value, positive), np.bincount(value, negative)
    below = np.cumsum(n_negative) - n_negative / 2
    return float(n_positive @ below / (n_positive.sum() * n_negative.sum()))


def easiest_examples(disagreement: Floats, tally: NDArray[Any], weight: Floats | None = None) -> NDArray[np.intp]:
    """The examples that annotators agree on most: whole levels of disagreement, a quarter of all or more.

    Those without a clear majority are left out; each example counts once by default.
    """
    clear = _clear_majority(tally)
    count = np.ones(len(tally)) if weight is None else weight
    easiest = clear[_lowest(disagreement[clear], count[clear], EASIEST_SHARE)]
    if len(easiest) > ENOUGH_EXAMPLES:
        easiest = np.sort(np.random.default_rng(0).choice(easiest, ENOUGH_EXAMPLES, replace=False))
    return easiest


def _lowest(values: Floats, weight: Floats, share: float) -> NDArray[np.bool_]:
    """The lowest values that are, ties included, this share of all or more."""
    if len(values) == 0:
        return np.zeros(0, dtype=bool)
    _, level = np.unique(values, return_inverse=True)
    total = np.cumsum(np.bincount(level, weight))
    return np.asarray(level <= np.searchsorted(total, share * total[-1]))


def _clear_majority(tally: NDArray[Any]) -> NDArray[np.intp]:
    """Examples with one class that has more labels than any other."""
    columns = list(tally.T)  # a few passes over columns are faster than many short ones over rows
    top = reduce(np.maximum, columns)
    n_at_top = sum((column == top).astype(np.int16) for column in columns)
    return np.flatnonzero(n_at_top == 1)


def choose_steepness(
    scores_of: Callable[[Floats], Floats], labels: CrowdLabels, disagreement: Floats, weight: Floats | None = None
) -> float:
    """The steepness with which held-out examples that annotators agree on are ranked best; the least of equal ones.

    `scores_of` makes of weights of the examples scores of models that have not seen the example, one column for two
    classes, else one per class. `weight` is how often each example counts in the rankings. Whole numbers are counts:
    the choice is that of repeated examples. Of others only ratios matter.
    """
    count, tally = np.ones(len(labels)) if weight is None else counts_of(weight), labels._tally
    easiest = easiest_examples(disagreement, tally, count)
    ranked = []
    for steepness in STEEPNESSES:
        scores = scores_of(example_weights(disagreement, steepness))[easiest]
        scores = np.round(scores / (float(np.abs(scores).max(initial=0.0)) * TIED or 1.0))
        ranked.append(ranking(scores, tally[easiest].argmax(axis=1), tally.shape[1], count[easiest]))
    return STEEPNESSES[int(np.argmax(np.nan_to_num(ranked, nan=-np.inf)))]
