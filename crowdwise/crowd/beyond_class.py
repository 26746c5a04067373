"""Labels, and how annotators answer -> how far labels of an example agree beyond its class, and what to make of that.

If annotators err independently, all that two labels of an example have in common is its class: given the class, what
one says beyond what was expected is uncorrelated with what another does. The class is hidden, but averaged over its
probabilities the product of the two is still zero in the mean, for that is the slope of the log-likelihood towards
errors in common. So labels can show that annotators do not err independently.

How far they do not, labels cannot show: errors that mislead most annotators look like the truth. On public crowds whose
truth is known, what can be seen is a small part of the whole and does not tell how large that is. So where labels show
errors in common, as many are assumed as are usual; where they would show them and do not, hardly any.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.special import expit, log_ndtr

from crowdwise.arrays import Floats, Positions
from crowdwise.crowd.votes import COMMON_ERRORS, vote_parts
from crowdwise.labels.crowd_labels import CrowdLabels

# Examples that are enough, and entries that are worked on at most: of many classes fewer examples have to do.
_ENOUGH, _MOST_ENTRIES = 20_000, 2e7
# The mean correlation that labels of public crowds show. Beforehand, annotators who err together and others are equally
# probable.
_USUALLY_SHOWN = 0.06
# With so many labels per annotator and class, half of what labels show is what the fit has learnt by heart.
_BY_HEART = 30.0


def estimated_common(
    labels: CrowdLabels, posterior: Floats, confusion: Floats, weight: Floats, group: Positions | None = None
) -> float:
    """The correlation of errors of two votes, from 0 to what is usual, by what labels show and by what is usual.

    The posterior is that of annotators who err independently; those of the same `group` have one vote together.
    """
    step = _step(labels)
    some, counted = (labels, weight) if step == 1 else (labels[::step], weight[::step])
    part = vote_parts(some, group)
    shown = errors_are_shown(*beyond_class(some, posterior[::step], confusion, counted, part))
    votes = step * float(counted @ (some.labels_per_example if part is None else some.sum_per_example(part)))
    n_annotators = len(confusion) if group is None else int(group.max()) + 1
    per_class = votes / (n_annotators * posterior.shape[1])
    return COMMON_ERRORS * (1 - (1 - shown) * per_class / (_BY_HEART + per_class))


def beyond_class(
    labels: CrowdLabels, posterior: Floats, confusion: Floats, weight: Floats, part: Floats | None = None
) -> tuple[float, float]:
    """The mean correlation of two labels of an example given its class, and its standard error if it is none.

    `part` is what each label counts, if some annotators share a vote. Both are 0 if no two labels can be compared.
    """
    n_classes = posterior.shape[1]
    given = np.ones(labels.n_labels) if part is None else part
    votes = sparse.csr_array((given, labels.annotator_index, labels.indptr), shape=labels.shape)
    columns = labels.annotator_index.astype(np.int64) * n_classes + labels.values
    answers = sparse.csr_array((given, columns, labels.indptr), shape=(len(labels), labels.n_annotators * n_classes))
    tally = answers @ np.tile(np.eye(n_classes), (labels.n_annotators, 1))
    products, scale = np.zeros((2, len(labels)))
    for k in range(n_classes):
        expected = np.ascontiguousarray(confusion[:, k])
        length = np.einsum("lc,lc->l", expected, expected)
        spread = np.sqrt(np.maximum(1 - length, 0.0))
        together = ((tally - votes @ expected) ** 2).sum(axis=1)
        alone = votes @ (1 + length) - 2 * (answers @ expected.ravel())
        products += posterior[:, k] * (together - alone)
        scale += posterior[:, k] * ((votes @ spread) ** 2 - votes @ spread**2)
    total = float(weight @ scale)
    if total <= 0:
        return 0.0, 0.0
    return float(weight @ products) / total, float(np.sqrt(weight @ products**2)) / total


def errors_are_shown(correlation: float, error: float) -> float:
    """The probability that annotators err together, given the correlation that labels show and its standard error.

    That correlation is then exponentially distributed around what public crowds show, else zero. The probability is 1
    if there was nothing to compare: what is usual is then all that is known.

    Examples
    --------
    >>> from crowdwise.crowd.beyond_class import errors_are_shown
    >>> [round(errors_are_shown(shown, 0.01), 2) for shown in (0.0, 0.02, 0.05)]
    [0.16, 0.68, 1.0]
    """
    if error <= 0:
        return 1.0
    mean, distance = _USUALLY_SHOWN, correlation / error
    if_some = error**2 / (2 * mean**2) - correlation / mean + log_ndtr(distance - error / mean) - np.log(mean)
    if_none = -0.5 * distance**2 - np.log(error * np.sqrt(2 * np.pi))
    return float(expit(if_some - if_none))


def _step(labels: CrowdLabels) -> int:
    """Every so many of the examples are enough."""
    assert labels.classes is not None
    entries = len(labels.classes) ** 2 * labels.n_labels / max(len(labels), 1)
    enough = min(_ENOUGH, int(_MOST_ENTRIES / max(entries, 1.0)))
    return max(1, -(-len(labels) // max(enough, 1)))
