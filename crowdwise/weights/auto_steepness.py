"""Features and labels -> the steepness: are contested labels misleading?

Weights leave out what could be learned from contested examples. That helps where most annotators err on hard examples,
as in the paper's simulation at its noisiest, and costs elsewhere. The burden of proof is on weights: a model of the
easy examples has to rank the majority among contested ones surely below chance.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from crowdwise._arrays import Floats
from crowdwise._limits import MISLED_ERRORS, MISLED_STEEPNESS
from crowdwise.crowd.easy_weights import example_weights
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.weights.criteria import contested_examples, counts_of, standard_errors_above_chance

# With fewer contested examples nothing can be concluded either way.
_FEWEST = 20
# Scores that differ by less than this share of their range are tied: rounding decides nothing.
_TIED = 1e-9


def choose_steepness(
    scores_of: Callable[[Floats], Floats], labels: CrowdLabels, disagreement: Floats, weight: Floats | None = None
) -> float:
    """The steepness that suits a crowd: 0 unless the majority among contested examples is ranked below chance.

    `scores_of` makes of weights of the examples scores of models that have not seen the example, one column for two
    classes, else one per class. `weight` says how often each example counts in the rankings. Whole numbers are counts:
    the choice is that of repeated examples. Of others only ratios matter.
    """
    count = np.ones(len(labels)) if weight is None else counts_of(weight)
    tally = labels.tally
    contested = contested_examples(disagreement, tally, count)
    if count[contested].sum() < _FEWEST:
        return 0.0
    majority, n_classes = tally.argmax(axis=1), tally.shape[1]
    scores = scores_of(example_weights(disagreement, MISLED_STEEPNESS))
    scores = np.round(scores / (float(np.abs(scores).max()) * _TIED or 1.0))
    above = standard_errors_above_chance(scores[contested], majority[contested], n_classes, count[contested])
    return MISLED_STEEPNESS if above < -MISLED_ERRORS else 0.0
