"""Annotators and a classifier -> the consensus of both: one loop for logistic regression, any classifier and ridge.

The classifier is fitted to soft classes, first the vote shares, then the consensus. Its scores for an example are from
a model that has not seen it. With a temperature and offsets under which labels are most probable, they take the place
of the class frequencies in the posterior. Annotators are estimated from that posterior, anchored at the vote shares as
in rounds over labels only, so that a classifier cannot confirm itself. An example's only label is judged by the
classifier, as far as that predicts such labels, and by how often such labels are right: both are estimated together.
How much every example and every class counts in a round is sample weight, easiness by curriculum, and class weights.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from sklearn.utils import _safe_indexing

from crowdwise._arrays import Array, Bools, Floats
from crowdwise._checks import check_choice, check_number, check_rounds
from crowdwise._limits import ASSUMED_LABELS, ASSUMED_RIGHT, FEATURE_ROUNDS, SHARES_RIGHT
from crowdwise._progress import Report
from crowdwise.em.confusion import AnnotatorModel, check_annotator_model
from crowdwise.em.fitted import FittedAnnotators, calibrated, fit_results, fitted_annotators
from crowdwise.em.labels_only import LabelsOnlyFit, anchored, tally, warn_if_not_converged
from crowdwise.em.posterior import Annotators, Counting, OfChunk, Posterior
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.probabilities import Scaling, best_temperature, expectation, fit_scaling, log_softmax
from crowdwise.results.fit_results import FitResults
from crowdwise.rows.chunks import Chunk, Chunks, MemoryChunks, Stored
from crowdwise.training_set import TrainingSet
from crowdwise.weights.class_weights import class_weights
from crowdwise.weights.curricula import Curriculum, Fixed, check_curriculum, checked_weights


def check_settings(estimator: Any) -> None:
    """Raise if a setting that all models with rounds of labels and features share makes no sense."""
    check_number("steepness", estimator.steepness)
    check_choice("errors_in_common", estimator.errors_in_common, (True, False))
    check_rounds(estimator.max_rounds, estimator.tol)
    check_annotator_model(estimator.annotator_model)
    check_curriculum(estimator.curriculum)


def curriculum_of(curriculum: Curriculum | None, steepness: float) -> Curriculum:
    """The curriculum, checked; a fixed one if it only mixes weights that are one for all."""
    curriculum = check_curriculum(curriculum)
    return Fixed() if steepness == 0 and curriculum.is_mixture else curriculum


@dataclass(frozen=True)
class SoftTargets:
    """What a classifier and the annotators' matrices are estimated from in one round."""

    posterior: Floats  # (n_examples, n_classes): probability of every class
    weight: Floats  # (n_examples,): how much each example counts; zero for those that the curriculum leaves out
    class_weight: Floats  # (n_classes,): how much each class counts for the classifier; ones if all count alike

    def by_class(self) -> tuple[Floats, Floats]:
        """Soft classes and weights of the examples in which each class counts by its weight; rows still sum to one."""
        if (self.class_weight == 1).all():
            return self.posterior, self.weight
        counted = self.posterior * self.class_weight
        total = counted.sum(axis=1)
        return counted / total[:, np.newaxis], self.weight * total


@dataclass(frozen=True, eq=False)
class Targets:
    """What a classifier is fitted to in a round."""

    posterior_of: OfChunk
    weight_of: OfChunk
    class_weight: Floats

    def of(self, chunk: Chunk) -> SoftTargets:
        """Posterior and weights of the examples of a chunk."""
        return SoftTargets(self.posterior_of(chunk), self.weight_of(chunk), self.class_weight)

    def __call__(self, chunk: Chunk) -> tuple[Floats, Floats]:
        """Soft classes and weights in which each class counts by its weight."""
        return chunk.keep("targets", lambda: self.of(chunk).by_class(), owner=self)


@dataclass
class RoundWeights:
    """The weights of one fit, round after round."""

    chunks: Chunks
    easiness_of: OfChunk  # weights by disagreement
    class_weight: Floats | str  # (n_classes,): what each class counts for the classifier, or "balanced"
    curriculum: Curriculum = field(default_factory=Fixed)  # how the weights change
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))  # for curricula that draw
    n_rounds: int = field(default=0, init=False)
    weight_of: OfChunk = field(init=False)  # how much each example of a chunk counts in the current round

    def __post_init__(self) -> None:
        self._mix(1.0)

    def advance(self, posterior_of: OfChunk, log_prior_of: OfChunk | None) -> None:
        """Go on to the weights of the next round, by the consensus and what a classifier predicted, if there is one."""
        self.n_rounds += 1
        if self.curriculum.is_mixture:
            self._mix(self.curriculum.share(self.n_rounds, self.rng))
            return
        assert isinstance(self.chunks, MemoryChunks)
        posterior, easiness = self.chunks.gather(posterior_of), self.chunks.gather(self.easiness_of)
        counts, losses = self.chunks.gather(lambda chunk: chunk.weight), None
        if log_prior_of is not None and self.curriculum.reads_losses:
            losses = -np.einsum("ik,ik->i", posterior, self.chunks.gather(log_prior_of))
        weight = checked_weights(self._ranked(posterior, easiness, counts, losses), self.curriculum).copy()
        weight[self.chunks.gather(_has_truth)] = 1.0  # examples whose class is known are never left out
        self.weight_of = lambda chunk: weight[Stored("position")(chunk)] * chunk.weight

    def _mix(self, share: float) -> None:
        """Let easiness count by its share, the rest being one for all."""
        easiness_of, rest = self.easiness_of, 1 - share
        self.weight_of = lambda chunk: chunk.weight * (share * easiness_of(chunk) + rest)

    def targets(self, posterior_of: OfChunk) -> Targets:
        """What is fitted to a consensus with the current weights."""
        weight_of = self.weight_of
        if not isinstance(self.class_weight, str):
            return Targets(posterior_of, weight_of, self.class_weight)
        mass = self.chunks.total(lambda chunk: weight_of(chunk) @ posterior_of(chunk))
        n_used = self.chunks.total(lambda chunk: float(chunk.weight @ (weight_of(chunk) > 0)))
        balanced = class_weights(self.class_weight, mass[np.newaxis], np.ones(1))
        # No class is blown up from less than one example.
        return Targets(posterior_of, weight_of, np.minimum(balanced, n_used / len(mass)))

    def settled(self, tol: float) -> bool:
        """Whether later rounds may be taken to have the weights of the last; else two equal rounds mean nothing."""
        return isinstance(self.curriculum, Fixed) or self.curriculum.settled(self.n_rounds, tol)

    def _ranked(self, posterior: Floats, easiness: Floats, counts: Floats, losses: Floats | None) -> Floats:
        if losses is None:
            return self.curriculum.weights(self.n_rounds, easiness, None, self.rng, counts)
        # Under one threshold for all, a rare class would stay outside until the model has forgotten it.
        weights, likeliest = np.empty_like(easiness), posterior.argmax(axis=1)
        for k in np.unique(likeliest):
            rows = likeliest == k
            weights[rows] = self.curriculum.weights(self.n_rounds, easiness[rows], losses[rows], self.rng, counts[rows])
        return weights


def _has_truth(chunk: Chunk) -> Array:
    return np.zeros(len(chunk), dtype=bool) if chunk.truth is None else chunk.truth >= 0


class OutOfFold(Protocol):
    """A classifier that scores every example by a model of other examples."""

    def fit(self, targets: Targets) -> OfChunk:
        """Fit the models of all folds; what gives the scores of a chunk, each by a model that has not seen the row."""
        ...


def vote_shares(counting: Counting) -> OfChunk:
    """Shares of the votes, known classes being certain."""
    return lambda chunk: with_truth(counting.vote_shares(chunk), chunk)


def soft_consensus(posterior: Posterior) -> OfChunk:
    """The probabilities of a posterior, known classes being certain."""
    return lambda chunk: with_truth(posterior(chunk)[0], chunk)


def _log_proba(scores_of: OfChunk, scaling: Scaling) -> OfChunk:
    """The classifier's part of a posterior: logarithms of its probabilities."""
    return lambda chunk: scaling.log_proba(scores_of(chunk))


def _first_consensus(counting: Counting, log_prior: OfChunk) -> OfChunk:
    """A classifier of the vote shares, times smoothed votes."""

    def consensus(chunk: Chunk) -> Floats:
        votes = counting.votes(chunk)
        smoothed = (votes + 1 / votes.shape[1]) / (votes.sum(axis=1, keepdims=True) + 1)
        return np.exp(log_softmax(log_prior(chunk) + np.log(smoothed)))

    return consensus


def _judging_only_votes(counting: Counting, consensus: OfChunk, confusion: Floats, log_prior: OfChunk) -> OfChunk:
    """A consensus in which the posterior of an example's only vote is that of one matrix for all and a classifier."""

    def judging(chunk: Chunk) -> Floats:
        posterior, only = consensus(chunk), _is_only_vote(counting, chunk)
        if not only.any():
            return posterior
        of_vote = np.log(np.maximum(counting.votes(chunk) @ confusion.T, np.finfo(np.float64).tiny))
        by_both = with_truth(expectation(log_prior(chunk), of_vote)[0], chunk)
        return np.where(only[:, np.newaxis], by_both, posterior)

    return judging


def _is_only_vote(counting: Counting, chunk: Chunk) -> Bools:
    n_votes = counting.n_votes(chunk)
    return (n_votes > 0) & (n_votes < 1 + np.sqrt(np.finfo(np.float64).eps))  # of copies, up to rounding


def only_votes(
    labels_fit: LabelsOnlyFit, sample: Chunk, scores_of: OfChunk, consensus: OfChunk, *, offsets: bool
) -> OfChunk:
    """A consensus by which annotators are judged, an example's only vote by how often such votes are right.

    Labels are right beyond guessing by the frequency of classes with the probability, and scores have the scaling,
    under which the only votes of the sample and the agreement of others on shared examples are most probable, together
    with labels that are assumed before any is seen. A classifier that predicts no more than some of the labels may be
    weak, or the labels: only how the labels' frequency depends on the scores can show which.
    """
    counting = labels_fit.posterior.counting
    only = _is_only_vote(counting, sample)
    if not only.any():
        return consensus
    votes, scores, weight = counting.votes(sample)[only], scores_of(sample)[only], sample.weight[only]
    frequency = labels_fit.class_counts / labels_fit.class_counts.sum()
    chance, seen, agreed = float(frequency @ frequency), labels_fit.n_compared, labels_fit.n_agreed
    right = np.array(SHARES_RIGHT)
    agree = chance + (1 - chance) * right**2
    of_others = agreed * np.log(agree) + (seen - agreed) * np.log(np.maximum(1 - agree, np.finfo(np.float64).tiny))
    of_others += ASSUMED_LABELS * (ASSUMED_RIGHT * np.log(right) + (1 - ASSUMED_RIGHT) * np.log(1 - right))
    confusion = (
        right[:, np.newaxis, np.newaxis] * np.eye(len(frequency)) + np.outer(1 - right, frequency)[:, np.newaxis]
    )
    of_votes = [np.log(np.maximum(votes @ matrix.T, np.finfo(np.float64).tiny)) for matrix in confusion]
    # No scaling makes a vote more probable than its most probable class does: most shares need no fit.
    most = of_others + [weight @ logarithms.max(axis=1) for logarithms in of_votes]
    best, judging = -np.inf, consensus
    for k in np.argsort(-most, kind="stable").tolist():
        if most[k] <= best:
            break
        scaling = fit_scaling(scores, of_votes[k], weight, offsets=offsets)
        evidence = of_others[k] + float(weight @ expectation(scaling.log_proba(scores), of_votes[k])[1])
        if evidence > best:
            best, log_prior = evidence, _log_proba(scores_of, scaling)
            judging = _judging_only_votes(counting, consensus, confusion[k], log_prior)
    return judging


def with_truth(posterior: Floats, chunk: Chunk) -> Floats:
    """A posterior in which known classes are certain: what a classifier is fitted to."""
    if chunk.truth is None or not (chunk.truth >= 0).any():
        return posterior
    clamped, known = posterior.copy(), np.flatnonzero(chunk.truth >= 0)
    clamped[known] = np.eye(posterior.shape[1])[chunk.truth[known]]
    return clamped


@dataclass(frozen=True, eq=False)
class FitData:
    """What a fit with features reads, whatever its source."""

    chunks: Chunks
    sample: Chunk  # some rows: scaling, and the change of a round, are found from these
    labels: CrowdLabels  # with the names of all annotators
    active: Bools  # (n_annotators,): who has labels


@dataclass(frozen=True, eq=False)
class FeaturesFit:
    """What the rounds of labels and classifier arrived at."""

    posterior: Posterior  # of labels and classifier
    log_prior: OfChunk  # the classifier's part of it
    annotators: FittedAnnotators  # classes are as frequent as in the consensus
    targets: Targets  # what the classifiers of the last round were fitted to
    scaling: Scaling  # what makes probabilities of their scores
    objective: Floats  # (n_rounds,)
    converged: bool
    settled: bool  # whether the weights of examples had come to rest
    change: float  # how far the probabilities of the average example moved in the last round


def fit_with_features(
    data: FitData,
    labels_fit: LabelsOnlyFit,
    classifier: OutOfFold,
    weights: RoundWeights,
    model: AnnotatorModel,
    *,
    init: str | OfChunk = "votes",
    max_rounds: int | None = None,
    most_rounds: int = 1,
    tol: float = 0.0,
    scaled: bool = True,
    offsets: bool = True,
    report: Report | None = None,
) -> FeaturesFit:
    """Rounds of fitting the classifier to the consensus, and the consensus to labels and classifier.

    The first soft classes are vote shares, the posterior of labels alone, or what `init` gives. Scores are `scaled` if
    they are out of fold. By default rounds are few and need not converge; if errors are independent or weights change,
    there are at most `most_rounds`. Without `offsets`, scaling is a temperature.
    """
    chunks, sample, counting, scaling = data.chunks, data.sample, labels_fit.posterior.counting, Scaling()
    consensus = vote_shares(counting) if init == "votes" else soft_consensus(labels_fit.posterior)
    if callable(init):
        first_classes = init
        consensus = lambda chunk: with_truth(first_classes(chunk), chunk)  # noqa: E731
    objective, change, last, log_prior = list[float](), np.inf, consensus(sample), None
    few = max_rounds is None and not counting.independent and isinstance(weights.curriculum, Fixed)
    most = FEATURE_ROUNDS if few else max_rounds or most_rounds
    if alone := len(labels_fit.merit) == 1:  # no one can be compared: the consensus is the labels of one annotator
        most, few = 1, True
    while len(objective) < most and not (change <= tol and weights.settled(tol)):
        weights.advance(consensus, log_prior)
        targets = weights.targets(consensus)
        scores_of = classifier.fit(targets)
        if not objective and scaled:
            likelihood = labels_fit.posterior.log_likelihood(sample)
            temperature = best_temperature(scores_of(sample), likelihood, sample.weight)
            consensus = _first_consensus(counting, _log_proba(scores_of, Scaling(temperature)))
        judging = only_votes(labels_fit, sample, scores_of, consensus, offsets=offsets) if scaled else consensus
        sums = tally(chunks, counting, judging, with_classifier=True)
        sums = anchored(sums, labels_fit.votes, labels_fit.anchor)
        annotators = Annotators.of_counts(
            sums.counts, model, labels_fit.vote_weight, None, labels_fit.compared, with_classifier=True
        )
        if scaled:
            likelihood = counting.incidence(sample).log_likelihood(annotators.confusion)
            scaling = fit_scaling(scores_of(sample), likelihood, sample.weight, offsets=offsets)
        log_prior = _log_proba(scores_of, scaling)
        posterior = Posterior(counting, annotators, log_prior)
        consensus = soft_consensus(posterior)
        evidence = chunks.total(posterior.evidence)
        of_classifier = getattr(scores_of, "log_prior", 0.0)
        of_annotators = labels_fit.vote_weight @ model.log_prior(annotators.confusion, annotators.crowd)
        objective.append(evidence + float(of_annotators) + of_classifier)
        before, last = last, consensus(sample)
        change = mean_change(last, before, sample.weight)
        if report is not None:
            report(len(objective), objective[-1], change)
    assert log_prior is not None  # there is at least one round
    if alone:
        posterior, consensus = labels_fit.posterior, soft_consensus(labels_fit.posterior)
    settled = weights.settled(tol)
    fit = FeaturesFit(
        posterior, log_prior, _annotators(data, labels_fit, posterior, consensus), targets, scaling,
        np.array(objective), few or (change <= tol and settled), settled, change,
    )  # fmt: skip
    warn_if_not_converged(fit, tol)
    return fit


def _annotators(data: FitData, labels_fit: LabelsOnlyFit, posterior: Posterior, consensus: OfChunk) -> FittedAnnotators:
    """How annotators answer by the rounds with a classifier; classes are as frequent as in their consensus."""
    mass = data.chunks.total(lambda chunk: chunk.weight @ consensus(chunk))
    frequencies = np.log(np.maximum(mass / mass.sum(), np.finfo(np.float64).tiny))
    by_frequency = replace(posterior, log_prior=frequencies)
    return fitted_annotators(data.labels, data.active, replace(labels_fit, posterior=by_frequency))


def results_with_features(
    training: TrainingSet,
    chunks: MemoryChunks,
    fit: FeaturesFit,
    log_proba: Callable[[Any], Floats],
    steepness: float,
) -> FitResults:
    """Results of a fit on all of its examples, calibrated by known answers.

    Examples that did not take part have the posterior of their labels and the final classifier, whose `log_proba` are
    of any features.
    """
    labels, used, others = training.labels, training.used, training.others
    merit, log_frequency = fit.annotators.merit[training.active], fit.annotators.log_class_prior
    of_frequency = replace(fit.posterior, log_prior=log_frequency)
    stated = chunks.gather(lambda chunk: fit.annotators.stated(chunk, fit.posterior, merit))
    by_labels_only = chunks.gather(lambda chunk: fit.annotators.stated(chunk, of_frequency, merit))
    annotators, stated, check = calibrated(fit.annotators, stated, training)
    proba, by_labels, model_proba = np.empty((3, len(labels), len(annotators.classes)))
    proba[used], by_labels[used], model_proba[used] = stated, by_labels_only, np.exp(chunks.gather(fit.log_prior))
    if len(others):
        log_prior = log_proba(_safe_indexing(training.X, others))
        model_proba[others] = np.exp(log_prior)
        proba[others] = annotators.consensus(labels[others], log_prior).proba
        by_labels[others] = annotators.proba(labels[others], calibrated=False)
        unlabelled = labels.labels_per_example == 0
        by_labels[unlabelled] = proba[unlabelled]
    return fit_results(
        training, annotators, fit, proba, check, steepness=steepness, by_labels=by_labels, model_proba=model_proba
    )


def mean_change(posterior: Floats, last: Floats, weight: Floats) -> float:
    """How far the probabilities of the average example moved: half the sum of absolute differences."""
    moved = np.abs(posterior - last).sum(axis=1)
    return float(weight @ moved / max(weight.sum(), np.finfo(np.float64).tiny)) / 2
