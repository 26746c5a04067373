"""Two guards: does a classifier predict the truth, and do the classes of a model mean what labels say?

What a classifier says and what annotators say -> whether it has learnt the truth, or only what annotators answer.

Features may predict the errors that annotators have in common. A classifier has then learnt these from the consensus of
labels, confirms them on examples that it has not seen, and explains labels better than the frequency of classes does:
the probability of labels alone cannot tell. But there are two ways of explaining them. Either the classifier predicts
the class, and labels depend on features through it alone. Or the class has nothing to do with what the classifier says,
and annotators are drawn towards that directly, whatever the class. Several labels of an example tell the two apart: in
the first case, all that they have in common is the class.

What annotators are estimated to do -> whether the hidden classes go by their names. Confusion matrices have many
parameters, and the hidden states that explain labels best need not be the classes: with ordered levels they are levels
of another scale, and where annotators agree no more than by chance they are nothing. Where it is the truth, a class has
to make its own label more probable than any other class does; and what the model says beyond the votes, however they
are weighed, has to be the exception.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import minimize_scalar

from crowdwise.arrays import Floats
from crowdwise.crowd.votes import vote_counts
from crowdwise.em.annotators import Annotators, Behaviour
from crowdwise.em.levels import ClassKind
from crowdwise.em.rounds import expectation
from crowdwise.em.temperature import ClassScores, best_temperature
from crowdwise.em.together import Together
from crowdwise.exceptions import warn
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.softmax.log_space import log_softmax

# The first explanation must be better by this many standard errors, or at all where the logarithm of the probability of
# an example's labels rises by so much: such features have much to give, and are no accident.
_ERRORS, _MUCH = 2.0, 0.1
# Fewer examples cannot tell. Of more, some are enough, the fewer the more classes there are.
_FEW = 200
_MOST, _FEWEST, _ENTRIES = 5000, 500, 2**23
# How strong either effect may be, relative to what the classifier says, and how exactly it is estimated.
_STRONGEST, _EXACTLY = 4.0, 0.02
# Classes do not hold if more than this share of labels speaks for another class, or if more than this share of examples
# gets a class that votes do not give, be they weighed or not. Some examples are enough to tell the latter.
_AGAINST, _BEYOND, _ENOUGH = 0.02, 0.1, 20_000
# A class with a smaller share of the labels is a stray one, such as n/a; of fewer examples, shares say little.
_STRAY, _TOO_FEW = 0.01, 50
# Where probabilities of labels differ less between classes, for every annotator, labels say nothing about the class.
_NOTHING = 0.02
# Nobody is taken to be right or wrong more surely than this when votes are weighed.
_DOUBT = 1e-3


def predicts_truth(scores: ClassScores, labels: CrowdLabels, behaviour: Behaviour, weight: Floats) -> bool:
    """Whether labels are explained better by a classifier of the truth than by one of what annotators answer.

    The evidence of the labels of examples with several, the classifier being out of fold, is compared; the behaviour is
    estimated from labels alone. If there are fewer than two hundred of these examples, too little can be said, and the
    classifier is trusted.
    """
    several = np.flatnonzero((labels.labels_per_example > 1) & (weight > 0))
    if weight[several].sum() < _FEW:
        return True
    n_entries = behaviour.confusion[0].size * labels.n_labels / len(labels)
    most = int(np.clip(_ENTRIES / n_entries, _FEWEST, _MOST))
    some = several[:: -(-len(several) // most)]
    weight = weight[some]
    told = _Told.of(scores.at(some), labels[some], behaviour, weight)
    share, as_truth = weight / weight.sum(), _at_best(told.as_truth, weight)
    gain = as_truth - _at_best(told.as_answers, weight)
    mean = float(share @ gain)
    error = np.sqrt(share @ (gain - mean) ** 2 / weight.sum())
    explains_much = share @ (as_truth - told.as_truth(0.0)) > _MUCH
    return bool(mean > (0.0 if explains_much else _ERRORS * error))


def _at_best(evidence: Callable[[float], Floats], weight: Floats) -> Floats:
    """The evidence of each example at the degree of an effect that makes all labels most probable."""
    found = minimize_scalar(
        lambda degree: -float(weight @ evidence(degree)),
        bounds=(0.0, _STRONGEST),
        method="bounded",
        options={"xatol": _EXACTLY},
    )
    return evidence(float(found.x))


@dataclass(frozen=True)
class _Told:
    """What a classifier says about examples, and what their labels are."""

    says: Floats  # (n_examples, n_classes): log-odds of the classifier's probabilities and the frequency of classes
    log_frequency: Floats  # (n_classes,): that frequency
    labels: CrowdLabels  # every example has some
    # (n_classes, n_states, n_annotators): probability of every label in every state: a difficulty and a class.
    confusion: Floats
    by_state: Floats  # (n_examples, n_difficulties, n_classes): logarithms of the probability of labels and difficulty

    @classmethod
    def of(cls, scores: ClassScores, labels: CrowdLabels, behaviour: Behaviour, weight: Floats) -> _Told:
        """With the classifier's temperature, for its scores may be in any unit."""
        by_state = behaviour.by_difficulty(behaviour.incidence(labels))
        temperature = best_temperature(scores, np.logaddexp.reduce(by_state, axis=1), weight)
        log_proba = scores.log_proba(temperature)
        log_frequency = np.log(weight @ np.exp(log_proba) / weight.sum())
        n_annotators, n_classes = len(behaviour.confusion), len(log_frequency)
        answers = behaviour.confusion[..., :n_classes]
        if behaviour.has_abstentions:  # which are no label that annotators could be drawn to
            answers = answers / answers.sum(axis=-1, keepdims=True)
        confusion = answers.reshape(n_annotators, -1, n_classes).transpose(2, 1, 0)
        return cls(log_proba - log_frequency, log_frequency, labels, np.ascontiguousarray(confusion), by_state)

    def as_truth(self, degree: float) -> Floats:
        """Evidence if frequencies of classes are multiplied by what the classifier says, to the power of a degree."""
        likelihood = np.logaddexp.reduce(self.by_state, axis=1)
        return expectation(log_softmax(self.log_frequency + degree * self.says), likelihood)[1]

    def as_answers(self, degree: float) -> Floats:
        """Evidence if probabilities of labels are, whatever the class."""
        labels, where = self.labels, self.labels.example_index
        pull = degree * (self.says - self.says.max(axis=1, keepdims=True))
        total = np.zeros((self.confusion.shape[1], labels.n_labels))  # few states of many labels: all runs along these
        for of_class, force in zip(self.confusion, np.exp(pull.T), strict=True):
            total += of_class.take(labels.annotator_index, axis=1) * force[where]
        scale = np.add.reduceat(np.log(total, out=total), labels.indptr[:-1], axis=1)  # every example has labels
        towards = np.einsum("ik,ik->i", vote_counts(labels), pull)
        change = (towards - scale).T.reshape(self.by_state.shape)
        return expectation(self.log_frequency, np.logaddexp.reduce(self.by_state + change, axis=1))[1]


def classes_hold(annotators: Annotators, log_frequency: Floats, posterior: Floats, weight: Floats) -> bool:
    """Whether the classes that annotators were estimated with, in this posterior, mean what labels say."""
    confusion = annotators.behaviour.by_class()
    if (confusion.max(axis=1) - confusion.min(axis=1)).max() < _NOTHING:
        return False
    if len(posterior) < _TOO_FEW:
        return True
    if n_common_classes(annotators, posterior.shape[1]) <= 2:  # what is not one class is the other, whatever its name
        return True
    if speaking_against(annotators, posterior, weight) > _AGAINST:
        return False
    return beyond_votes(annotators, log_frequency, posterior, weight) <= _BEYOND


def n_common_classes(annotators: Annotators, n_classes: int) -> int:
    """How many classes have more than a stray share of the labels."""
    incidence = annotators.incidence
    given = sum((matrix.sum(axis=0) for _, matrix in incidence.parts), start=np.zeros(()))
    votes = np.reshape(given, (incidence.n_annotators, -1)).sum(axis=0)[:n_classes]
    return int((votes >= _STRAY * votes.sum()).sum())


def speaking_against(annotators: Annotators, posterior: Floats, weight: Floats) -> float:
    """The share of labels that are most probable in the crowd if another class is the truth."""
    crowd, n_classes = annotators.behaviour.crowd, posterior.shape[1]
    against = crowd[..., :n_classes].argmax(axis=1) != np.arange(n_classes)  # of shape (n_difficulties, n_classes)
    if not against.any():
        return 0.0
    counts, _ = annotators.counts(posterior, weight)
    given = counts.sum(axis=0).reshape(crowd.shape).sum(axis=1)[:, :n_classes]
    return float(given[against].sum() / given.sum())


def beyond_votes(annotators: Annotators, log_frequency: Floats, posterior: Floats, weight: Floats) -> float:
    """The share of examples whose class has neither most votes nor most of the votes weighed by how one is right."""
    step, parts = max(1, len(posterior) // _ENOUGH), annotators.incidence.parts
    some = np.concatenate([np.arange(rows.start, rows.stop, step) for rows, _ in parts])
    matrix, weight = sparse.vstack([matrix[::step] for _, matrix in parts], format="csr"), weight[some]
    n_classes, chosen = posterior.shape[1], posterior[some].argmax(axis=1)
    confusion, n_answers = annotators.behaviour.by_class()[..., :n_classes], annotators.incidence.n_classes
    right = np.clip(np.einsum("lkk,k->l", confusion, np.exp(log_frequency)), _DOUBT, 1 - _DOUBT)
    log_odds = np.maximum(np.log(right * (n_classes - 1) / (1 - right)), 0.0)

    def votes(of_each: Floats) -> Floats:
        class_of = np.tile(np.arange(n_answers), len(of_each))
        counted = sparse.coo_array((np.repeat(of_each, n_answers), (np.arange(len(class_of)), class_of)))
        return np.asarray((matrix @ counted.tocsr()).toarray())[:, :n_classes]  # without abstentions

    plain, at = votes(np.ones(len(right))), np.arange(len(chosen))
    beyond = plain[at, chosen] < plain.max(axis=1) - _DOUBT
    beyond &= (votes(log_odds) + log_frequency).argmax(axis=1) != chosen
    return float(weight @ beyond / max(weight.sum(), np.finfo(np.float64).tiny))


def note_votes(together: Together, has_truths: bool, kind: ClassKind) -> None:
    """Say that the model does not decide, unless that follows from groups, which is said already."""
    if together.one_group:
        return
    then = "known answers then say what a vote counts" if has_truths else "the model decides only where they tie"
    if kind == "class":
        advice = 'If classes are levels, such as stars, say so: kind="ordinal" (--kind ordinal).'
    else:
        advice = "The default annotator_model, Ordinal(), knows the order of levels; the one that was given does not."
    warn(
        f"the consensus is that of the votes: every annotator counts alike (by_votes is true), and {then}. What a "
        "model of annotators finds in these labels are other classes than the labels name, as happens with ordered "
        f"levels, with few labels per class, or where annotators agree no more than by chance. {advice}"
    )


def note_misleading() -> None:
    """Say that features do not count in the consensus."""
    warn(
        "the classifier does not count in the consensus (model_weight_ is 0): the labels do not bear out that its "
        "features predict the truth. The consensus is that of labels alone; predict still uses the features. Are some "
        "features much larger than others? Bring them to one size first, as StandardScaler does."
    )
