"""Labels and expertise -> sums of expertise per class or rating: the paper's consensus, and that of ratings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdwise.arrays import Floats
from crowdwise.consensus import RatingConsensus
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.ridge.targets import Targets
from crowdwise.threads import each_block

# What a difference and a quotient cost, in multiplications.
_DIVIDING = 30.0


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
        if labels.classes is None:
            precision = _precision(labels, expertise, part)
            sums = labels.sum_per_example(precision * labels.values)
            return cls(sums[:, np.newaxis], labels.sum_per_example(precision))
        votes = np.empty((len(labels), len(labels.classes)))
        if labels.is_complete and part is None:
            total = np.broadcast_to(expertise.sum(), len(labels))
            for k in range(1, votes.shape[1]):
                votes[:, k] = labels.weigh_complete(expertise, k)
        else:
            precision = _precision(labels, expertise, part)
            total = labels.sum_per_example(precision)
            for k in range(1, votes.shape[1]):
                votes[:, k] = labels.sum_per_example(np.where(labels.values == k, precision, 0.0))
        not_first = votes[:, 1] if votes.shape[1] == 2 else votes[:, 1:].sum(axis=1)
        np.maximum(total - not_first, 0.0, out=votes[:, 0])
        return cls(votes, total)

    def mean_targets(self, targets: Targets) -> Floats:
        """The expertise-weighted mean of each example's targets, of shape (n_examples, n_targets)."""
        tiny = np.finfo(float).tiny  # there may be examples without labels
        if targets.n_targets == 1 and targets.codebook is not None and targets.codebook[0, 0] == -1:
            mean = np.empty((len(self.votes), 1))

            def write(block: slice) -> None:
                difference = self.votes[block, 1] - self.votes[block, 0]
                np.divide(difference, np.maximum(self.total[block], tiny), out=mean[block, 0])

            each_block(write, len(mean), _DIVIDING * len(mean))
            return mean
        share = self.votes / np.maximum(self.total, tiny)[:, np.newaxis]
        return share - targets.centre if targets.codebook is None else share @ targets.codebook

    def rating_consensus(self, labels: CrowdLabels, scores: Floats, precision: Floats | float) -> RatingConsensus:
        """The consensus of these ratings and of a model's scores, which have a precision, for all or per example."""
        precisions = np.maximum(self.total + precision, np.finfo(float).tiny)
        mean = (self.votes + np.reshape(precision, (-1, 1)) * scores)[:, 0] / precisions
        return RatingConsensus(labels.examples, mean, precisions**-0.5)


def _precision(labels: CrowdLabels, expertise: Floats, part: Floats | None) -> Floats:
    """What each label counts."""
    precision = expertise[labels.annotator_index]
    return precision if part is None else precision * part
