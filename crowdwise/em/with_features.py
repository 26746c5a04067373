"""Annotators and a classifier -> the consensus of both: one loop for logistic regression and for any classifier.

The classifier is fitted to soft classes, first the shares of the votes, then the consensus; its probabilities for an
example are always from a model that has not seen it, with the temperature under which labels are most probable, and
take the place of the class frequencies. Annotators are estimated from labels alone, so that a classifier which has
learned the errors that annotators have in common cannot confirm itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from crowdwise.arrays import Floats
from crowdwise.em.confusion import AnnotatorModel
from crowdwise.em.labels_only import LabelsOnlyFit, estimate
from crowdwise.em.posterior import Posterior
from crowdwise.em.round_weights import OfChunk, RoundWeights, Targets
from crowdwise.em.temperature import ClassScores, best_temperature
from crowdwise.progress import Report
from crowdwise.rows.chunks import Chunk, Chunks


class OutOfFold(Protocol):
    """A classifier that scores every example by a model of other examples."""

    def fit(self, targets: Targets) -> Callable[[Chunk], ClassScores]:
        """Fit the models of all folds; what gives the scores of a chunk, each by a model that has not seen the row."""
        ...


@dataclass(frozen=True, eq=False)
class Prior:
    """The classifier's part of a posterior: logarithms of its probabilities, with their temperature."""

    scores: Callable[[Chunk], ClassScores]
    temperature: float

    def __call__(self, chunk: Chunk) -> Floats:
        return self.scores(chunk).log_proba(self.temperature)


@dataclass(frozen=True, eq=False)
class FeaturesFit:
    """What the rounds of labels and classifier arrived at."""

    posterior: Posterior  # of labels and classifier
    targets: Targets  # what the classifier of all examples is fitted to
    temperature: float  # the factor on the classifier's scores
    objective: Floats  # (n_rounds,)
    converged: bool
    change: float  # how far the probabilities of the average example moved in the last round


def fit_with_features(
    chunks: Chunks,
    sample: Chunk,
    labels_fit: LabelsOnlyFit,
    classifier: OutOfFold,
    weights: RoundWeights,
    model: AnnotatorModel,
    *,
    start: OfChunk,
    joint: bool,
    tempered: bool,
    max_rounds: int,
    tol: float,
    report: Report | None = None,
) -> FeaturesFit:
    """Rounds of fitting the classifier to the consensus, and the consensus to labels and classifier.

    `start` gives the first soft classes. With `joint`, annotators are estimated from the consensus of labels and
    classifier in every round, as by Raykar et al. The temperature and the change of a round are found from a `sample`
    of the rows.
    """
    annotators, counting = labels_fit.annotators, labels_fit.posterior.counting
    posterior_of, temperature, log_prior = start, 1.0, None
    objective, change, last = list[float](), np.inf, start(sample)
    while len(objective) < max_rounds and not (change <= tol and weights.settled(tol)):
        weights.advance(posterior_of, log_prior)
        targets = weights.targets(posterior_of)
        if joint:
            annotators = estimate(chunks, counting, model, targets, labels_fit.anchor)
        scores = classifier.fit(targets)
        if tempered:
            likelihood = Posterior(counting, annotators, np.zeros(counting.n_classes)).log_likelihood(sample)
            temperature = best_temperature(scores(sample), likelihood, weights.current(sample))
        log_prior = Prior(scores, temperature)
        posterior = Posterior(counting, annotators, log_prior)
        posterior_of = _Consensus(posterior)
        evidence = chunks.total(lambda chunk, current=weights.current: float(current(chunk) @ posterior(chunk)[1]))
        objective.append(evidence + model.log_prior(annotators.confusion, annotators.crowd))
        change, last = mean_change(posterior_of(sample), last, weights.current(sample)), posterior_of(sample)
        if report is not None:
            report(len(objective), objective[-1], change)
    converged = change <= tol and weights.settled(tol)
    return FeaturesFit(
        posterior, weights.targets(posterior_of), temperature, np.array(objective), converged, change
    )


@dataclass(frozen=True, eq=False)
class _Consensus:
    """The probabilities of a posterior."""

    posterior: Posterior

    def __call__(self, chunk: Chunk) -> Floats:
        return self.posterior(chunk)[0]


def mean_change(posterior: Floats, last: Floats, weight: Floats) -> float:
    """How far the probabilities of the average example moved: half the sum of absolute differences."""
    moved = np.abs(posterior - last).sum(axis=1)
    return float(weight @ moved / max(weight.sum(), np.finfo(np.float64).tiny)) / 2
