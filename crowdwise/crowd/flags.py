"""Labels, agreement with a model -> warnings per annotator."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdwise._arrays import Array, Bools, Floats
from crowdwise._limits import COPY_EXAMPLES
from crowdwise.crowd.vote_sharing import VoteSharing
from crowdwise.labels._encode import shown
from crowdwise.labels.crowd_labels import CrowdLabels

ALWAYS_SAME = "always the same answer"
# With fewer labels than this, an annotator is flagged: their expertise is mostly the crowd's.
_FEW_LABELS = 3
# An annotator gives always the same answer if there are this many of them, and others who labelled the same examples
# give another one at least this often. Most annotators differ within the first labels already.
_SAME, _OTHERWISE, _FIRST_LABELS = 20, 0.25, 2**16
# How many examples are enough to distinguish most annotators.
_FIRST_EXAMPLES = 1000


def flag_annotators(
    labels: CrowdLabels,
    agreement: Floats,
    n_labels: NDArray[np.int64] | None = None,
    copies: VoteSharing | None = None,
) -> dict[Any, tuple[str, ...]]:
    """Warnings per annotator; annotators without any are left out.

    An agreement with the scores below zero is worse than chance. `n_labels` is how many labels each gave, if these
    are a sample of all; `copies` were found to copy each other.
    """
    same = np.zeros(labels.n_annotators, dtype=bool) if labels.classes is None else same_answer(labels)
    twins, near = _copies(labels, labels.labels_per_annotator), _near_copies(labels, copies)
    n_labels = labels.labels_per_annotator if n_labels is None else n_labels
    flags: dict[Any, tuple[str, ...]] = {}
    for i, name in enumerate(labels.annotators.tolist()):
        found = []
        if n_labels[i] == 0:
            found.append("no labels")
        elif n_labels[i] < _FEW_LABELS:
            found.append("few labels")
        if same[i]:
            found.append(ALWAYS_SAME)
        if n_labels[i] and agreement[i] < 0:
            found.append("worse than chance")
        if i in twins:
            found.append(f"same labels as {shown(labels.annotators[twins[i]])}")
        elif i in near:
            found.append(near[i])
        if found:
            flags[name] = tuple(found)
    return flags


def _near_copies(labels: CrowdLabels, copies: VoteSharing | None) -> dict[int, str]:
    """The warning for annotators who were found to copy each other, by position: each beside the first other one."""
    flags: dict[int, str] = {}
    for first, second in [] if copies is None else zip(copies.first.tolist(), copies.second.tolist(), strict=True):
        shared, same = _same_answers(labels, first, second)
        for one, other in ((first, second), (second, first)):
            if shared and one not in flags:
                often = f"{100 * same / shared:.0f}% of {shared:,} examples"
                flags[one] = f"answers like {shown(labels.annotators[other])} on {often}: shares a vote"
    return flags


def _same_answers(labels: CrowdLabels, i: int, j: int) -> tuple[int, int]:
    """On how many examples both gave a label, and the same one."""
    one, other = np.flatnonzero(labels.annotator_index == i), np.flatnonzero(labels.annotator_index == j)
    examples = labels.example_index
    _, at_one, at_other = np.intersect1d(examples[one], examples[other], assume_unique=True, return_indices=True)
    return len(at_one), int((labels.values[one[at_one]] == labels.values[other[at_other]]).sum())


def _copies(labels: CrowdLabels, n_labels: NDArray[np.int64]) -> dict[int, int]:
    """Annotators who gave exactly the same labels to the same examples as another one."""
    many = np.flatnonzero(n_labels >= COPY_EXAMPLES)
    keys: list[Array] = [n_labels]
    for n_examples in sorted({min(_FIRST_EXAMPLES, labels.n_examples), labels.n_examples}):
        keys += _keys(labels if n_examples == labels.n_examples else labels[:n_examples])
        found = np.column_stack(keys)[many]
        if len(np.unique(found, axis=0)) == len(many):  # most annotators differ in the first examples already
            return {}
        if labels.is_complete:  # all labelled the first examples, and are compared label by label below
            break
    seen: dict[tuple[float, ...], int] = {}
    twins: dict[int, int] = {}
    for i, key in zip(many.tolist(), found.tolist(), strict=True):
        other = seen.setdefault(tuple(key), i)
        if other != i and _same_labels(labels, i, other):
            twins[i], twins[other] = other, i
    return twins


def _keys(labels: CrowdLabels) -> list[Floats]:
    """Two numbers per annotator that are the same for the same labels: random sums, exact in any order of addition."""
    n_values = 1 if labels.classes is None else len(labels.classes)
    largest = max(2**52 // max(labels.n_examples * n_values, 1), 2)
    key = np.random.default_rng(0).integers(1, largest, labels.n_examples).astype(np.float64)
    at = key[labels.example_index]
    return [labels._sum_per_annotator(at * labels.values), labels._sum_per_annotator(at)]


def _same_labels(labels: CrowdLabels, i: int, j: int) -> bool:
    if labels.is_complete:
        matrix = labels.values.reshape(labels.shape)
        return np.array_equal(matrix[:, i], matrix[:, j])
    one, other = labels.annotator_index == i, labels.annotator_index == j
    example = labels.example_index
    return np.array_equal(example[one], example[other]) and np.array_equal(labels.values[one], labels.values[other])


def same_answer(labels: CrowdLabels) -> Bools:
    """Which annotators give always the same class, where those who labelled the same examples do not.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise import CrowdLabels
    >>> from crowdwise.crowd.flags import same_answer
    >>> given = np.column_stack([np.arange(40) % 2, np.arange(40) % 3 % 2, np.ones(40)])
    >>> same_answer(CrowdLabels.from_matrix(given)).tolist()
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
    alike = np.bincount(who, labels._tally[example, labels.values[of_same]] - 1.0, labels.n_annotators)
    others = np.bincount(who, labels.labels_per_example[example] - 1.0, labels.n_annotators)
    return same & (others >= _SAME) & (alike <= (1 - _OTHERWISE) * others)
