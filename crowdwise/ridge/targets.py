"""Labels -> the numbers that the squared loss sees, and their mean: +1 and -1 for classes, ratings as they are.

Two classes have one column, -1 for the first class and +1 for the second. More classes have one column each, +1
where the class is meant and -1 elsewhere; squared differences then count half, so that two different classes are
always 4 apart and two classes as two columns give the same numbers as one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdwise._arrays import Array, Floats
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.scale import checked_span
from crowdwise.results.consensus import RatingConsensus
from crowdwise.weights.class_weights import leading_shares


@dataclass(frozen=True, eq=False)
class Targets:
    """How labels become numbers.

    Parameters
    ----------
    codebook : ndarray of shape (n_classes, n_targets) or None
        The numbers of each class; None for ratings, which are their own.
    centre : float
        Subtracted from ratings, so that a large offset costs no digits; 0 for classes.
    factor : float
        What a squared difference summed over targets is multiplied with.
    span : float
        The squared size of a typical difference between labels; what is negligible is measured by it.
    """

    codebook: Floats | None
    centre: float
    factor: float
    span: float

    @classmethod
    def of(cls, labels: CrowdLabels, *, intercept: bool = True) -> Targets:
        """The targets for some labels."""
        if labels.classes is None:
            span = _span(labels.values)  # raises if a mean would overflow
            centre = float(labels.values.mean()) if intercept and labels.n_labels else 0.0
            return cls(None, centre, 1.0, span)
        return cls.of_classes(len(labels.classes))

    @classmethod
    def of_classes(cls, n_classes: int) -> Targets:
        """The targets of classes."""
        if n_classes == 2:
            return cls(np.array([[-1.0], [1.0]]), 0.0, 1.0, 1.0)
        return cls(2 * np.eye(n_classes) - 1, 0.0, 0.5, 1.0)

    @classmethod
    def counting(cls, n_classes: int) -> Targets:
        """One column for every class but the first, with a one where it is meant: sums of these are counts.

        With the sums over all labels, the targets of any classes follow from them, also of classes that come later.
        """
        return cls(np.eye(n_classes)[:, 1:], 0.0, 1.0, 1.0)

    @property
    def codes(self) -> Floats:
        """The codebook of labels that are known to be classes."""
        assert self.codebook is not None
        return self.codebook

    @property
    def n_targets(self) -> int:
        return 1 if self.codebook is None else self.codebook.shape[1]

    def of_values(self, values: Array) -> Floats:
        """Targets of label values (codes or ratings), with one more axis of n_targets."""
        if self.codebook is None:
            return np.asarray(values, dtype=np.float64)[..., np.newaxis] - self.centre
        return self.codebook.take(values, axis=0)

    def uncentred(self, scores: Floats) -> Floats:
        """Scores as the labels are."""
        return scores + self.centre if self.centre else scores

    def squared(self, differences: Floats) -> Floats:
        """Squared length of differences along their last axis."""
        if differences.shape[-1] == 1:  # much faster than a sum over one
            return self.factor * differences[..., 0] ** 2
        return self.factor * np.einsum("...t,...t->...", differences, differences)


def _span(ratings: Floats) -> float:
    """Their variance; 1 if they are all the same."""
    if not len(ratings):
        return 1.0
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        return checked_span(float(np.var(ratings)), ratings.min(), ratings.max())


@dataclass(frozen=True, eq=False)
class Votes:
    """The labels of every example, counted with the expertise of those who gave them.

    Parameters
    ----------
    votes : ndarray of shape (n_examples, n_classes), or (n_examples, 1) for ratings
        Sums of expertise per class, or of expertise times rating.
    total : ndarray of shape (n_examples,)
        Sums of expertise.
    """

    votes: Floats
    total: Floats

    @classmethod
    def of(cls, labels: CrowdLabels, expertise: Floats, part: Floats | None = None) -> Votes:
        """Count labels; `expertise` is of each annotator, `part` what each label counts if some share a vote."""
        precision = expertise[labels.annotator_index]
        precision = precision if part is None else precision * part
        if labels.classes is None:
            sums = labels._sum_per_example(precision * labels.values)
            return cls(sums[:, np.newaxis], labels._sum_per_example(precision))
        shape = len(labels), len(labels.classes)
        place = np.repeat(np.arange(0, shape[0] * shape[1], shape[1]), labels.labels_per_example) + labels.values
        votes = np.bincount(place, precision, minlength=shape[0] * shape[1]).astype(np.float64, copy=False)
        return cls(votes.reshape(shape), votes.reshape(shape).sum(axis=1))

    def mean_targets(self, targets: Targets) -> Floats:
        """The expertise-weighted mean of each example's targets, of shape (n_examples, n_targets)."""
        tiny = np.finfo(float).tiny  # there may be examples without labels
        share = self.votes / np.maximum(self.total, tiny)[:, np.newaxis]
        return share - targets.centre if targets.codebook is None else share @ targets.codebook

    def rating_consensus(self, labels: CrowdLabels, scores: Floats, precision: Floats | float) -> RatingConsensus:
        """The consensus of these ratings and of a model's scores, which have a precision, for all or per example."""
        precisions = np.maximum(self.total + precision, np.finfo(float).tiny)
        mean = (self.votes + np.reshape(precision, (-1, 1)) * scores)[:, 0] / precisions
        return RatingConsensus(labels.examples, mean, precisions**-0.5)


def first_consensus(labels: CrowdLabels, targets: Targets, init: str) -> Floats:
    """The "majority" vote, tied classes sharing it evenly, or the "mean" of the labels: (n_examples, n_targets)."""
    if init == "majority":
        return leading_shares(labels._tally) @ targets.codes
    return Votes.of(labels, np.ones(labels.n_annotators)).mean_targets(targets)
