"""Squared errors of annotators -> their expertise; labels and expertise -> the paper's consensus, and that of ratings.

Expertise is one over the mean squared error against the model, floored and shrunk.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crowdwise._arrays import Floats
from crowdwise._threads import each_block
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.results.consensus import RatingConsensus
from crowdwise.ridge.targets import Targets

# With labels missing, this many labels of the crowd's average quality are added to those of an annotator.
PRIOR_LABELS = 3.0
# A perfect annotator would get infinite expertise; no mean squared error is taken to be smaller than this.
SMALLEST_ERROR = 1e-8
# What a difference and a quotient cost, in multiplications.
_DIVIDING = 30.0


@dataclass(frozen=True, eq=False)
class Precision:
    """How squared errors become expertise: one over the mean squared error, shrunk where labels are missing.

    Parameters
    ----------
    mass : ndarray of shape (n_annotators,)
        Total weight of the examples that each annotator labelled.
    answered : ndarray of shape (n_annotators,)
        The same without easiness: how much each annotator labelled.
    present : float
        How much there was to label.
    floor : float
        The smallest mean squared error.
    """

    mass: Floats
    answered: Floats
    present: float
    floor: float

    @classmethod
    def of(cls, mass: Floats, answered: Floats, present: float, span: float) -> Precision:
        """From the weights that were labelled, and that there were to label."""
        return cls(mass, answered, present, SMALLEST_ERROR * span)

    @cached_property
    def prior(self) -> Floats:
        """Weight of the crowd's average error in each annotator's.

        It is zero for those who labelled everything, so that complete labels give the paper's expertise exactly.
        """
        return PRIOR_LABELS * (1 - np.minimum(self.answered / self.present, 1.0))

    def average(self, expertise: Floats) -> float:
        """The expertise of all who labelled the average example."""
        return float(self.answered @ expertise / self.present)

    def expertise(self, errors: Floats) -> Floats:
        """Expertise from sums of squared errors."""
        return 1.0 / self._shrunk(errors, self._crowd_error(errors))

    def crowd_expertise(self, errors: Floats) -> float:
        """The expertise of the crowd as a whole: what an unknown annotator is taken to have."""
        return 1.0 / max(self._crowd_error(errors), self.floor)

    def objective(self, errors: Floats, penalties: Floats) -> Floats:
        """Minus the mean log-likelihood of the labels, up to constants, plus the ridge penalty, for every round.

        The crowd's error, and the scale of the penalty, are set anew in each round from the expertise then; here all
        rounds are measured as in the last one, so that they can be compared. `errors` are (n_rounds, n_annotators).
        """
        strength = self.mass + self.prior
        logarithms = np.log(self._shrunk(errors, self._crowd_error(errors[-1])))
        return (logarithms @ strength + penalties) / strength.sum()

    def _crowd_error(self, errors: Floats) -> float:
        return float(errors.sum() / self.mass.sum())

    def _shrunk(self, errors: Floats, crowd: float) -> Floats:
        return np.maximum((errors + self.prior * crowd) / (self.mass + self.prior), self.floor)


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
            sums = labels._sum_per_example(precision * labels.values)
            return cls(sums[:, np.newaxis], labels._sum_per_example(precision))
        votes = np.empty((len(labels), len(labels.classes)))
        if labels.is_complete and part is None:
            total = np.broadcast_to(expertise.sum(), len(labels))
            for k in range(1, votes.shape[1]):
                votes[:, k] = labels._weigh_complete(expertise, k)
        else:
            precision = _precision(labels, expertise, part)
            total = labels._sum_per_example(precision)
            for k in range(1, votes.shape[1]):
                votes[:, k] = labels._sum_per_example(np.where(labels.values == k, precision, 0.0))
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
