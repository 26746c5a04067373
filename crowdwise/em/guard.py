"""What a classifier says and what annotators say -> whether it has learnt the truth, or only what annotators answer.

Features may predict the errors that annotators have in common. A classifier has then learnt these from the consensus of
labels, confirms them on examples that it has not seen, and explains the labels better than the frequency of classes
does: the probability of labels alone cannot tell. But there are two ways of explaining them. Either the classifier
predicts the class, and labels depend on features through it alone. Or the class has nothing to do with what the
classifier says, and annotators are drawn towards it directly, whatever the class. Several labels of an example tell the
two apart: in the first case, all that they have in common is the class.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar

from crowdwise.arrays import Floats
from crowdwise.em.annotators import Behaviour
from crowdwise.em.confusion import Incidence
from crowdwise.em.rounds import expectation
from crowdwise.em.softmax import log_softmax
from crowdwise.em.temperature import ClassScores
from crowdwise.exceptions import warn
from crowdwise.labels.crowd_labels import CrowdLabels

# The first explanation must be better by this many standard errors.
_ERRORS = 2.0
# Examples that are enough to tell, and fewer where there are many classes.
_MOST, _FEWEST, _ENTRIES = 5000, 500, 2**23
# How strong either effect may be, relative to what the classifier says, and how exactly it is estimated.
_STRONGEST, _EXACTLY = 4.0, 0.02


def predicts_truth(scores: ClassScores, labels: CrowdLabels, behaviour: Behaviour, weight: Floats) -> bool:
    """Whether labels are explained better by a classifier of the truth than by one of what annotators answer.

    The evidence of the labels of examples with several, the classifier being out of fold, is compared. If no example
    has several, nothing can be said, and the classifier is trusted.

    Parameters
    ----------
    scores : ClassScores
        What classifiers say about examples that they have not seen.
    labels : CrowdLabels
        Labels of these examples.
    behaviour : Behaviour
        How the annotators answer, estimated from labels alone.
    weight : ndarray of shape (n_examples,)
        How much each example counts.

    Returns
    -------
    predicts_truth : bool
    """
    n_states = behaviour.confusion[0, :, :, 0].size
    several = np.flatnonzero((labels.labels_per_example > 1) & (weight > 0))
    if len(several) == 0:
        return True
    cost = n_states * behaviour.confusion.shape[-1] * labels.n_labels / len(labels)
    most = int(np.clip(_ENTRIES / cost, _FEWEST, _MOST))
    some = several[:: -(-len(several) // most)]
    log_proba, weight = scores.log_proba(1.0)[some], weight[some]
    share = weight / weight.sum()
    log_frequency = np.log(share @ np.exp(log_proba))
    gain = _explained(_Explanations(log_proba - log_frequency, log_frequency, labels[some], behaviour), weight)
    mean = float(share @ gain)
    error = np.sqrt(share**2 @ (gain - mean) ** 2)
    return bool(mean > _ERRORS * error)


class _Explanations:
    """Evidence of labels if the classifier predicts the truth, or what annotators answer, to some degree."""

    def __init__(self, says: Floats, log_frequency: Floats, labels: CrowdLabels, behaviour: Behaviour) -> None:
        self.says, self.log_frequency = says, log_frequency
        self.share = np.log(behaviour.share).ravel()
        self.n_difficulties, n_classes = behaviour.share.shape
        self.table = np.ascontiguousarray(behaviour.confusion.reshape(-1, self.n_difficulties * n_classes, n_classes).transpose(0, 2, 1))
        self.by_state = behaviour.by_difficulty(Incidence.of(labels))
        self.who, self.where = labels.annotator_index, labels.example_index
        self.said = labels.sum_per_example(says[self.where, labels.values])
        self.labels = labels
        self.likelihood = self._over_difficulties(self.by_state)

    def of_truth(self, degree: float) -> Floats:
        """Class frequencies are multiplied by what the classifier says, to the power of the degree."""
        return expectation(log_softmax(self.log_frequency + degree * self.says), self.likelihood)[1]

    def of_answers(self, degree: float) -> Floats:
        """Probabilities of labels are, whatever the class."""
        top = self.says.max(axis=1)
        pull = np.exp(degree * (self.says - top[:, np.newaxis]))[self.where]
        total = sum(self.table[:, c][self.who] * pull[:, c, np.newaxis] for c in range(pull.shape[1]))
        logs = np.log(np.maximum(total, np.finfo(np.float64).tiny))
        scale = np.column_stack([self.labels.sum_per_example(column) for column in logs.T])
        change = degree * (self.said - self.labels.labels_per_example * top)[:, np.newaxis] - scale
        return expectation(self.log_frequency, self._over_difficulties(self.by_state + change.reshape(self.by_state.shape)))[1]

    def _over_difficulties(self, by_state: Floats) -> Floats:
        return np.logaddexp.reduce(by_state, axis=1)


def _explained(explanations: _Explanations, weight: Floats) -> Floats:
    """By how much each example's labels are more probable by the first explanation than by the second, both at best."""

    def best(evidence: Callable[[float], Floats]) -> Floats:
        found = minimize_scalar(
            lambda degree: -float(weight @ evidence(degree)), bounds=(0.0, _STRONGEST), method="bounded",
            options={"xatol": _EXACTLY},
        )  # fmt: skip
        return evidence(found.x)

    return best(explanations.of_truth) - best(explanations.of_answers)


def note_misleading() -> None:
    """Say that features do not count in the consensus."""
    warn(
        "features do not count in the consensus (model_weight_ is 0): they do not predict the truth better than they "
        "predict what annotators answer whatever the truth. It is that of labels alone; predict uses the features."
    )
