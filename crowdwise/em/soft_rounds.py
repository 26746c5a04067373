"""Labels and an estimator -> consensus, confusion matrices and the model's voice, in alternating rounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdwise.arrays import Floats
from crowdwise.em.aggregate import expectation, vote_shares
from crowdwise.em.first_annotators import Init, Joint, first_annotators
from crowdwise.em.hard_examples import Behaviour, Kinds
from crowdwise.em.held_out import HeldOut
from crowdwise.em.temperature import Voice, best_temperature
from crowdwise.em.weighted_copies import Learner, has_probabilities
from crowdwise.exceptions import CrowdConvergenceWarning, warn
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.weights.round_weights import Lessons


@dataclass(frozen=True)
class SoftFit:
    """What the rounds found.

    Parameters
    ----------
    posterior : ndarray of shape (n_examples, n_classes)
        Probability of every class, by labels and out-of-fold model together.
    behaviour : Behaviour
        How annotators answer.
    temperature : float
        Factor on the model's scores.
    n_rounds : int
        Rounds turned.
    converged : bool
        Whether they settled.
    """

    posterior: Floats
    behaviour: Behaviour
    temperature: float
    n_rounds: int
    converged: bool


def alternate(
    learner: Learner,
    lessons: Lessons,
    labels: CrowdLabels,
    held_out: HeldOut,
    *,
    strength: float,
    kinds: Kinds,
    joint: Joint,
    init: Init,
    max_rounds: int,
    tol: float,
) -> SoftFit:
    """Turn rounds until the consensus settles.

    M-step: a classifier for every fold, and the annotators if they are to be judged by it too, from the current
    posterior. E-step: the posterior from the annotators' likelihoods and the out-of-fold classifiers.
    """
    weight = lessons.easiness * lessons.sample_weight
    annotators, posterior, again = first_annotators(
        labels, weight, "shared", strength, kinds=kinds, joint=joint, init=init
    )
    log_likelihood = None if again else annotators.log_likelihood()
    prior = None
    change = np.inf
    while lessons.n_rounds < max_rounds and not (change <= tol and lessons.settled(tol)):
        lesson = lessons.next(posterior, prior)
        if again or log_likelihood is None:
            annotators.estimate(posterior, lesson.weight)
            log_likelihood = annotators.log_likelihood()
        scores = learner.out_of_fold(lesson, held_out.splits, held_out.seeds)
        voice = Voice(scores, lesson.class_weight, has_probabilities(learner.estimator))
        temperature = best_temperature(voice, log_likelihood, lesson.weight)
        prior = voice.at(temperature)
        previous, posterior = posterior, expectation(prior, log_likelihood)[0]
        change = float(np.abs(posterior - previous).sum(axis=1).mean() / 2)
    converged = change <= tol and lessons.settled(tol)
    if not converged:
        still = f"after {max_rounds} rounds the consensus still changes by {change:.2g} an example (tol={tol:g}). "
        message = lessons.still_changing() if change <= tol else still + "Allow more rounds or a larger tol."
        warn(message, CrowdConvergenceWarning)
    return SoftFit(posterior, annotators.behaviour, temperature, lessons.n_rounds, converged)


def taken_at_their_word(labels: CrowdLabels) -> SoftFit:
    """What one annotator alone says: nobody is there to doubt it."""
    posterior = vote_shares(labels)
    n_classes = posterior.shape[1]
    word = np.eye(n_classes)[np.newaxis]
    behaviour = Behaviour(word[np.newaxis], np.ones((1, n_classes)), word)
    return SoftFit(posterior, behaviour, 1.0, 0, True)
