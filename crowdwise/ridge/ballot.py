"""Labels, expertise, scores -> one answer per example, with its confidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from crowdwise.arrays import Floats
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.ridge.targets import Targets


@dataclass(frozen=True)
class Consensus:
    """What a crowd, and perhaps a model, say about every example.

    Parameters
    ----------
    label : ndarray of shape (n_examples,)
        The class, or the rating.
    confidence : ndarray of shape (n_examples,)
        The probability of that class if annotators err independently of each other, which real ones do not: use it to
        sort examples. For ratings, the standard error.
    score : ndarray of shape (n_examples,) or (n_examples, n_classes)
        Expertise-weighted mean of the labels (-1 to +1 for two classes), and of the model's score if it has a voice.
    uses_model : bool
        Whether the model had a voice.
    """

    label: NDArray[Any]
    confidence: Floats
    score: Floats
    uses_model: bool


@dataclass(frozen=True)
class Ballot:
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
    def of(cls, labels: CrowdLabels, expertise: Floats) -> Ballot:
        """Count labels; `expertise` is of each annotator."""
        if labels.classes is None:
            voice = expertise[labels.annotator_index]
            sums = labels.sum_per_example(voice * labels.values)
            return cls(sums[:, np.newaxis], labels.sum_per_example(voice))
        votes = np.empty((len(labels), len(labels.classes)))
        if labels.is_complete:
            total = np.full(len(labels), expertise.sum())
            for k in range(1, votes.shape[1]):
                votes[:, k] = labels.weigh_complete(expertise, k)
        else:
            voice = expertise[labels.annotator_index]
            total = labels.sum_per_example(voice)
            for k in range(1, votes.shape[1]):
                votes[:, k] = labels.sum_per_example(np.where(labels.values == k, voice, 0.0))
        np.maximum(total - votes[:, 1:].sum(axis=1), 0.0, out=votes[:, 0])
        return cls(votes, total)

    def mean_targets(self, targets: Targets) -> Floats:
        """The expertise-weighted mean of each example's targets, of shape (n_examples, n_targets)."""
        if targets.codebook is None:
            return self.votes / self.total[:, np.newaxis] - targets.centre
        if targets.n_targets == 1:
            return ((self.votes[:, 1] - self.votes[:, 0]) / self.total)[:, np.newaxis]
        return (self.votes / self.total[:, np.newaxis]) @ targets.codebook


def consensus_of(
    ballot: Ballot,
    classes: NDArray[Any] | None,
    scores: Floats | None = None,
    precision: Floats | float = 0.0,
) -> Consensus:
    """The consensus of classes, or of ratings, with the model's scores as one more voice if they are given.

    Classes: if the truth is class k, an annotator's label is taken to lie around its +1/-1 code with the
    annotator's expertise as precision, and the model's score likewise with `precision`. The score is the mean of
    these voices; the confidence is the posterior probability of the class, all classes alike beforehand. Ratings: the
    mean of these voices, with its standard error as confidence.

    Parameters
    ----------
    ballot : Ballot
        The labels, counted.
    classes : ndarray of shape (n_classes,) or None
        The classes; None for ratings.
    scores : ndarray of shape (n_examples,) or (n_examples, n_classes), default=None
        The model's voice.
    precision : float or ndarray of shape (n_examples,), default=0.0
        Its precision.

    Returns
    -------
    consensus : Consensus
    """
    counted, total = ballot.votes, ballot.total
    uses_model = scores is not None
    voice = np.broadcast_to(precision if uses_model else 0.0, total.shape)
    spoken = np.zeros(1) if scores is None else (voice if scores.ndim == 1 else voice[:, np.newaxis]) * scores
    together = np.maximum(total + voice, np.finfo(float).tiny)
    if classes is None:
        score = (counted[:, 0] + spoken) / together
        return Consensus(score, 1 / np.sqrt(together), score, uses_model)
    if len(classes) == 2:
        balance = counted[:, 1] - counted[:, 0] + spoken
        chosen = classes[(balance > 0).astype(np.intp)]
        return Consensus(chosen, expit(2 * np.abs(balance)), balance / together, uses_model)
    logits = 2 * counted + spoken
    score = (logits - total[:, np.newaxis]) / together[:, np.newaxis]
    return Consensus(classes[logits.argmax(axis=1)], softmax(logits, axis=1).max(axis=1), score, uses_model)
