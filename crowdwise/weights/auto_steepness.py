"""Features and labels -> the steepness: do contested labels follow from anything?

Weights leave out what could be learnt from contested examples. Where most annotators err together on hard examples, as
in the paper's simulation, that is noise or worse, and leaving it out is a great gain. On the real crowds that we know
it is not: contested labels are less often right, but features can still predict them, and leaving them out costs. Both
can be seen without any truth: learn from the easy examples, and see whether the majority among the contested ones is
ranked better than by chance. How steep the weights should be can be seen in the same way: a model that is misled
predicts contested labels, and easy ones less well.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crowdwise.arrays import Floats
from crowdwise.crowd.easy_weights import example_weights
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.weights.criteria import (
    contested_examples,
    counts_of,
    easiest_examples,
    ranking,
    standard_errors_above_chance,
)

# The steepness that is tried first: in the paper's simulation the best for all data sets together.
_FIRST = 4.0
# Those to choose from where contested labels carry no information. Less leaves too much of them, more too few examples.
_STEEP = (3.0, _FIRST, 5.0, 6.0)
# By how many standard errors contested labels have to be predicted better than by chance.
_SURE = 2.0
# With fewer contested examples nothing can be concluded either way.
_FEWEST = 20
# Scores that differ by less than this share of their range are tied, and so are steepnesses whose gaps differ by less:
# the first of those is taken, and rounding decides nothing.
_TIED = 1e-9


def choose_steepness(
    scores_of: Callable[[Floats], Floats], labels: CrowdLabels, disagreement: Floats, weight: Floats | None = None
) -> float:
    """The steepness that suits a crowd.

    0 if the majority among contested examples is ranked surely better than by chance; else the steepness under which it
    is ranked worst, compared with the majority among easy examples (the smallest of those that tie). `scores_of` makes
    of weights of the examples scores of models that have not seen the example, one column for two classes, else one per
    class. `weight` says how often each example counts in the rankings. Whole numbers are counts: the choice is that of
    repeated examples. Of others only ratios matter.
    """
    count = np.ones(len(labels)) if weight is None else counts_of(weight)
    tally = labels.tally
    contested, easy = contested_examples(disagreement, tally, count), easiest_examples(disagreement, tally, count)
    if count[contested].sum() < _FEWEST:
        return 0.0
    majority, n_classes = tally.argmax(axis=1), tally.shape[1]

    def scored(steepness: float) -> Floats:
        scores = scores_of(example_weights(disagreement, steepness))
        unit = float(np.abs(scores).max()) * _TIED or 1.0
        return np.round(scores / unit)

    def gap(scores: Floats) -> float:
        on_easy, on_contested = (
            ranking(scores[rows], majority[rows], n_classes, count[rows]) for rows in (easy, contested)
        )
        return np.nan_to_num(on_easy, nan=0.5) - on_contested  # easy examples may be of one class

    first = scored(_FIRST)
    above = standard_errors_above_chance(first[contested], majority[contested], n_classes, count[contested])
    if not above < _SURE:
        return 0.0
    gaps = {steepness: gap(first if steepness == _FIRST else scored(steepness)) for steepness in _STEEP}
    widest = max(gaps.values())
    return next(steepness for steepness in _STEEP if gaps[steepness] >= widest - _TIED)
