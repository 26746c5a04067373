"""Labels of annotators who err together -> what their votes count, and how many independent ones they amount to.

Members of a group have one vote on an example, each an equal part of it. And all votes have errors in common, from
examples that mislead everybody. With a correlation of r, n votes say as much as n / (1 + (n - 1) r) independent ones,
and logarithms of probabilities are scaled by 1 / (1 + (n - 1) r). On public crowds whose truth is known, stated
probabilities are right in the mean with an r of .14 to 1, the median being .42 and the mean .46; `beyond_class` says
whether labels show that there is any.

Votes of annotators who guess say nothing, so they do not make n larger: with strengths a, n is (sum of a)² / sum of a².
The strength of a vote is the square root of the information that it carries about the class, for log-odds add up as
normal variables do whose means, in standard deviations, are the strengths.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from crowdwise.arrays import Bools, Floats, Positions
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.label_rows import sparse_blocks
from crowdwise.threads import EXPONENTIAL, each_block

# The correlation of errors of two annotators that is usual.
COMMON_ERRORS = 0.43
# From this part of it on, labels do not say that errors in common are fewer than is usual.
_NEARLY = 0.9
CommonSource = Literal["independent", "labels", "usual"]
# How many examples are enough for a mean.
_ENOUGH = 20_000
# An annotator gives always the same answer if there are this many of them, and others who labelled the same examples
# give another one at least this often. Most annotators differ within the first labels already.
_SAME, _OTHERWISE, _FIRST_LABELS = 20, 0.25, 2**16


def vote_parts(labels: CrowdLabels, group: Positions | None) -> Floats | None:
    """What each label counts if members of a group who labelled an example share one vote; None if all are alone."""
    if group is None or len(group) == 0 or group.max() + 1 == len(group):
        return None
    place = labels.example_index.astype(np.int64) * (int(group.max()) + 1) + group[labels.annotator_index]
    _, which, members = np.unique(place, return_inverse=True, return_counts=True)
    return 1.0 / members[which]


def same_answer(labels: CrowdLabels) -> Bools:
    """Which annotators give always the same class, where those who labelled the same examples do not.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise import CrowdLabels
    >>> from crowdwise.crowd.votes import same_answer
    >>> said = np.column_stack([np.arange(40) % 2, np.arange(40) % 3 % 2, np.ones(40)])
    >>> same_answer(CrowdLabels.from_matrix(said)).tolist()
    [False, False, True]
    """
    same: Bools = labels.labels_per_annotator >= _SAME
    for some in (slice(_FIRST_LABELS), slice(None)):
        who, what = labels.annotator_index[some], labels.values[some]
        answer = np.zeros(labels.n_annotators, dtype=what.dtype)
        answer[who] = what
        same[who[what != answer[who]]] = False
        if not same.any():
            return same
    of_same = np.flatnonzero(same[labels.annotator_index])
    who, example = labels.annotator_index[of_same], labels.example_index[of_same]
    alike = np.bincount(who, labels.tally[example, labels.values[of_same]] - 1.0, labels.n_annotators)
    others = np.bincount(who, labels.labels_per_example[example] - 1.0, labels.n_annotators)
    return same & (others >= _SAME) & (alike <= (1 - _OTHERWISE) * others)


def n_votes(labels: CrowdLabels, strength: Floats, part: Floats | None = None) -> Floats:
    """How many votes each example has, weak ones counting less beside strong ones; at least one.

    `strength` is that of each annotator's votes, `part` what each label counts, if some annotators share a vote.
    """
    number, powers = np.ones(len(labels)), np.column_stack([strength, strength**2])
    for rows, votes in sparse_blocks(labels.indptr, labels.annotator_index, part, labels.n_annotators):
        total, squares = (votes @ powers).T
        np.divide(total**2, squares, out=number[rows], where=squares > 0)
    return np.maximum(number, 1.0, out=number)


def common_source(common: float) -> CommonSource:
    """Where a correlation of errors that was not measured is from: nowhere, what labels show, or what is usual."""
    if common == 0:
        return "independent"
    return "usual" if common > _NEARLY * COMMON_ERRORS else "labels"


def effective_number(n_votes: Floats, common: float) -> Floats:
    """The number of independent votes that say as much as these."""
    return n_votes / (1 + (n_votes - 1) * common)


def mean_effective_number(labels: CrowdLabels, strength: Floats, group: Positions | None, common: float) -> float:
    """How many independent votes the labels of an average example amount to; there is at least one label.

    `strength` is that of each annotator's votes, `common` the correlation of the errors of two votes.
    """
    if labels.is_complete:  # all examples have the same votes
        labels = labels[:1]
    else:
        some = np.flatnonzero(labels.labels_per_example > 0)
        some = some[:: max(1, len(some) // _ENOUGH)]
        labels = labels if len(some) == len(labels) else labels[some]
    return float(effective_number(n_votes(labels, strength, vote_parts(labels, group)), common).mean())


def tempered(posterior: Floats, n_votes: Floats, common: float) -> Floats:
    """Probabilities to the power of what a vote counts beside others whose errors are correlated with its own.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise.crowd.votes import tempered
    >>> tempered(np.array([[0.9, 0.1]]), np.array([5.0]), 0.25).round(2).tolist()  # the square root of each
    [[0.75, 0.25]]
    """
    proba = np.empty(posterior.shape)

    def task(rows: slice) -> None:
        with np.errstate(divide="ignore"):
            shares = np.log(posterior[rows].T, order="C")
        shares *= effective_number(n_votes[rows], common) / n_votes[rows]
        np.exp(shares, out=shares)  # much faster than a power, and zero stays zero
        np.divide(shares, np.add.reduce(shares), out=proba[rows].T)

    each_block(task, len(posterior), 2 * EXPONENTIAL * posterior.size)
    return proba


def vote_counts(labels: CrowdLabels, part: Floats | None = None) -> Floats:
    """The votes for each class, of shape (n_examples, n_classes); `part` is what each label counts."""
    if part is None:
        return labels.tally.astype(np.float64)
    assert labels.classes is not None
    columns = [labels.sum_per_example(np.where(labels.values == k, part, 0.0)) for k in range(len(labels.classes))]
    return np.column_stack(columns)
