"""Annotators and a classifier -> the consensus of both: one loop for logistic regression, any classifier and ridge.

The classifier is fitted to soft classes, first the vote shares, then the consensus. Its scores for an example are from
a model that has not seen it. With a temperature and offsets under which labels are most probable, they take the place
of the class frequencies in the posterior. Annotators are estimated from that posterior, anchored at the vote shares as
in rounds over labels only, so that a classifier cannot confirm itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from crowdwise._arrays import Floats
from crowdwise._limits import FEATURE_ROUNDS
from crowdwise._progress import Report
from crowdwise.em.annotators import Annotators
from crowdwise.em.confusion import AnnotatorModel
from crowdwise.em.labels_only import LabelsOnlyFit, anchored, tally
from crowdwise.em.posterior import Counting, Posterior
from crowdwise.em.round_weights import OfChunk, RoundWeights, Targets, own_weight
from crowdwise.probabilities.log_space import log_softmax
from crowdwise.probabilities.temperature import Scaling, best_temperature, fit_scaling
from crowdwise.rows.chunks import Chunk, Chunks


class OutOfFold(Protocol):
    """A classifier that scores every example by a model of other examples."""

    def fit(self, targets: Targets) -> OfChunk:
        """Fit the models of all folds; what gives the scores of a chunk, each by a model that has not seen the row."""
        ...


@dataclass(frozen=True, eq=False)
class Prior:
    """The classifier's part of a posterior: logarithms of its probabilities."""

    scores_of: OfChunk
    scaling: Scaling

    def __call__(self, chunk: Chunk) -> Floats:
        return self.scaling.log_proba(self.scores_of(chunk))


@dataclass(frozen=True, eq=False)
class _Start:
    """The first consensus: a classifier of the vote shares, times smoothed votes."""

    counting: Counting
    prior: Prior

    def __call__(self, chunk: Chunk) -> Floats:
        votes = self.counting.votes(chunk)
        smoothed = (votes + 1 / votes.shape[1]) / (votes.sum(axis=1, keepdims=True) + 1)
        return np.exp(log_softmax(self.prior(chunk) + np.log(smoothed)))


@dataclass(frozen=True, eq=False)
class VoteShares:
    """Shares of the votes, known classes being certain."""

    counting: Counting

    def __call__(self, chunk: Chunk) -> Floats:
        return with_truth(self.counting.vote_shares(chunk), chunk)


@dataclass(frozen=True, eq=False)
class SoftConsensus:
    """The probabilities of a posterior, known classes being certain."""

    posterior: Callable[[Chunk], tuple[Floats, Floats]]

    def __call__(self, chunk: Chunk) -> Floats:
        return with_truth(self.posterior(chunk)[0], chunk)


def with_truth(posterior: Floats, chunk: Chunk) -> Floats:
    """A posterior in which known classes are certain: what a classifier is fitted to."""
    if chunk.truth is None or not (chunk.truth >= 0).any():
        return posterior
    clamped, known = posterior.copy(), np.flatnonzero(chunk.truth >= 0)
    clamped[known] = np.eye(posterior.shape[1])[chunk.truth[known]]
    return clamped


@dataclass(frozen=True, eq=False)
class FeaturesFit:
    """What the rounds of labels and classifier arrived at."""

    posterior: Posterior  # of labels and classifier
    prior: Prior  # the classifier's part of it
    targets: Targets  # what the classifiers of the last round were fitted to
    scaling: Scaling  # what makes probabilities of their scores
    objective: Floats  # (n_rounds,)
    converged: bool
    settled: bool  # whether the weights of examples had come to rest
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
    max_rounds: int,
    tol: float = 0.0,
    few: bool = False,
    scaled: bool = True,
    offsets: bool = True,
    report: Report | None = None,
) -> FeaturesFit:
    """Rounds of fitting the classifier to the consensus, and the consensus to labels and classifier.

    `start` gives the first soft classes. Scores are `scaled` if they are out of fold. Scaling and the change of a round
    are found from a `sample` of the rows. `few` rounds need not converge. Without `offsets`, scaling is a temperature.
    """
    counting, log_prior = labels_fit.posterior.counting, None
    if len(labels_fit.merit) == 1:  # there is nobody to be compared with: more rounds would only confirm the classifier
        max_rounds, few = min(max_rounds, FEATURE_ROUNDS), True
    consensus, scaling = start, Scaling()
    objective, change, last = list[float](), np.inf, start(sample)
    if alone := len(labels_fit.merit) == 1:  # nobody can be compared: the consensus is the labels of one annotator
        max_rounds, few = 1, True
    while len(objective) < max_rounds and not (change <= tol and weights.settled(tol)):
        weights.advance(consensus, log_prior)
        targets = weights.targets(consensus)
        scores_of = classifier.fit(targets)
        if not objective and scaled:
            likelihood = labels_fit.posterior.log_likelihood(sample)
            first = best_temperature(scores_of(sample), likelihood, sample.weight)
            consensus = _Start(counting, Prior(scores_of, Scaling(first)))
        sums = tally(chunks, counting, own_weight, consensus, with_classifier=True)
        sums = anchored(sums, labels_fit.votes, labels_fit.anchor)
        annotators = Annotators.of_counts(sums.counts, model)
        if scaled:
            likelihood = counting.incidence(sample).log_likelihood(annotators.confusion)
            scaling = fit_scaling(scores_of(sample), likelihood, sample.weight, offsets=offsets)
        log_prior = Prior(scores_of, scaling)
        posterior = Posterior(counting, annotators, log_prior)
        consensus = SoftConsensus(posterior)
        evidence = chunks.total(_Evidence(posterior))
        of_classifier = getattr(scores_of, "log_prior", 0.0)
        objective.append(evidence + model.log_prior(annotators.confusion, annotators.crowd) + of_classifier)
        before, last = last, consensus(sample)
        change = mean_change(last, before, sample.weight)
        if report is not None:
            report(len(objective), objective[-1], change)
    assert log_prior is not None  # there is at least one round
    settled = weights.settled(tol)
    converged = few or (change <= tol and settled)
    return FeaturesFit(
        labels_fit.posterior if alone else posterior,
        log_prior,
        targets,
        scaling,
        np.array(objective),
        converged,
        settled,
        change,
    )


@dataclass(frozen=True, eq=False)
class _Evidence:
    """The sum over a chunk of the logarithms of the probabilities of its labels."""

    posterior: Posterior

    def __call__(self, chunk: Chunk) -> float:
        return float(chunk.weight @ self.posterior(chunk)[1])


def mean_change(posterior: Floats, last: Floats, weight: Floats) -> float:
    """How far the probabilities of the average example moved: half the sum of absolute differences."""
    moved = np.abs(posterior - last).sum(axis=1)
    return float(weight @ moved / max(weight.sum(), np.finfo(np.float64).tiny)) / 2
