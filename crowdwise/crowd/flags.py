"""Labels, agreement with a model -> warnings per annotator."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdwise._arrays import Array, Bools, Codes, Floats
from crowdwise._limits import COPY_EXAMPLES, FEW_LABELS, OTHER_ANSWERS, SAME_ANSWERS
from crowdwise.crowd.vote_sharing import VoteSharing
from crowdwise.labels._encode import shown
from crowdwise.labels.crowd_labels import CrowdLabels

ALWAYS_SAME = "always the same answer"


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
        warnings = []
        if n_labels[i] == 0:
            warnings.append("no labels")
        elif n_labels[i] < FEW_LABELS:
            warnings.append("few labels")
        if same[i]:
            warnings.append(ALWAYS_SAME)
        if n_labels[i] and agreement[i] < 0:
            warnings.append("worse than chance")
        if i in twins:
            warnings.append(f"same labels as {shown(labels.annotators[twins[i]])}")
        elif i in near:
            warnings.append(near[i])
        if warnings:
            flags[name] = tuple(warnings)
    return flags


def _near_copies(labels: CrowdLabels, copies: VoteSharing | None) -> dict[int, str]:
    """The warning for annotators who were found to copy each other, by position: each beside the first other one."""
    flags: dict[int, str] = {}
    for first, second in [] if copies is None else zip(copies.first.tolist(), copies.second.tolist(), strict=True):
        shared, same = _same_answers(labels, first, second)
        for annotator, twin in ((first, second), (second, first)):
            if shared and annotator not in flags:
                often = f"{100 * same / shared:.0f}% of {shared:,} examples"
                flags[annotator] = f"answers like {shown(labels.annotators[twin])} on {often}: shares a vote"
    return flags


def _same_answers(labels: CrowdLabels, first: int, second: int) -> tuple[int, int]:
    """On how many examples both gave a label, and the same one."""
    of_first, of_second = (np.flatnonzero(labels.annotator_index == annotator) for annotator in (first, second))
    examples, values = labels.example_index, labels.values
    _, at_first, at_second = np.intersect1d(
        examples[of_first], examples[of_second], assume_unique=True, return_indices=True
    )
    return len(at_first), int((values[of_first[at_first]] == values[of_second[at_second]]).sum())


def _copies(labels: CrowdLabels, n_labels: NDArray[np.int64]) -> dict[int, int]:
    """Annotators who gave exactly the same labels to the same examples as another one."""
    many = np.flatnonzero(n_labels >= COPY_EXAMPLES)
    if labels.classes is not None and len(np.unique(class_counts(labels, labels.values)[many], axis=0)) == len(many):
        return {}  # most annotators differ in that already
    seen: dict[tuple[int, float], int] = {}
    twins: dict[int, int] = {}
    keys = _keys(labels)
    for i in many.tolist():
        first = seen.setdefault((int(n_labels[i]), float(keys[i])), i)
        if first != i and _same_answers(labels, first, i) == (n_labels[i], n_labels[i]):
            twins[i], twins[first] = first, i
    return twins


def class_counts(labels: CrowdLabels, codes: Array) -> Codes:
    """How often each annotator has each class; `codes` has a class per label."""
    assert labels.classes is not None
    shape = (labels.n_annotators, len(labels.classes))
    cell = labels.annotator_index.astype(np.int64) * shape[1] + codes
    return np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)


def _keys(labels: CrowdLabels) -> Floats:
    """A number per annotator that is the same for the same labels: a random sum, exact in any order of addition."""
    n_values = 1 if labels.classes is None else len(labels.classes) + 1
    largest = max(2**52 // max(labels.n_examples * n_values, 1), 2)
    key = np.random.default_rng(0).integers(1, largest, labels.n_examples).astype(np.float64)
    return labels._sum_per_annotator(key[labels.example_index] * (labels.values + 1.0))


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
    n_labels = labels.labels_per_annotator
    same: Bools = (n_labels >= SAME_ANSWERS) & (class_counts(labels, labels.values).max(axis=1) == n_labels)
    if not same.any():
        return same
    rows = np.flatnonzero(same[labels.annotator_index])
    annotator, example = labels.annotator_index[rows], labels.example_index[rows]
    agreeing = np.bincount(annotator, labels._tally[example, labels.values[rows]] - 1.0, labels.n_annotators)
    comparisons = np.bincount(annotator, labels.labels_per_example[example] - 1.0, labels.n_annotators)
    return same & (comparisons >= SAME_ANSWERS) & (agreeing <= (1 - OTHER_ANSWERS) * comparisons)
