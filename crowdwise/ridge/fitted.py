"""A fit -> FittedRidge: a linear model and the annotators, which score examples and find their consensus.

The consensus of classes is that of all models: the model's scores out of fold, with a temperature and offsets, take the
place of class frequencies beside confusion matrices. Ratings are the mean of labels and score, weighted by precision.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from crowdwise._arrays import Array, Floats, in_c_order
from crowdwise._limits import ENOUGH_EXAMPLES, LABELS_PER_CLASS, LEAST_MODEL_ERROR, SMALLEST_ERROR
from crowdwise.crowd.flags import flag_annotators
from crowdwise.crowd.vote_sharing import VoteSharing
from crowdwise.em.confusion import Shared
from crowdwise.em.fitted import FittedAnnotators, sharing_of
from crowdwise.em.labels_only import fit_labels
from crowdwise.em.posterior import Counting
from crowdwise.em.with_features import FitData, RoundWeights, Targets, fit_with_features, results_with_features
from crowdwise.exceptions import LabelError
from crowdwise.labels._encode import encode_declared
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.scale import NOMINAL
from crowdwise.probabilities import Scaling
from crowdwise.results.consensus import Consensus, RatingConsensus
from crowdwise.results.fit_results import FitResults
from crowdwise.ridge.data import KnownRows, RidgeData
from crowdwise.ridge.problem import label_agreement
from crowdwise.ridge.rounds import RidgePath, Settled
from crowdwise.ridge.targets import Votes
from crowdwise.rows.chunks import MemoryChunks, Stored
from crowdwise.rows.features import linear_scores
from crowdwise.truths.calibration import calibrate_ratings, folds_of_truths
from crowdwise.truths.check import RatingCheck


@dataclass(frozen=True, eq=False)
class FittedRidge:
    """All that was learned: enough to score any examples and to find the consensus of any labels.

    Parameters
    ----------
    coef : ndarray of shape (n_targets, n_features)
        Coefficients.
    intercept : ndarray of shape (n_targets,)
        Intercepts.
    shift : ndarray of shape (n_features,) or None
        Subtracted from features before they are scored, if they are so far from zero that digits would be lost.
    names : ndarray of shape (n_annotators,)
        Names of the annotators.
    expertise : ndarray of shape (n_annotators,)
        Of each annotator; NaN for those without labels.
    crowd_expertise : float
        What an annotator that the fit did not see is taken to have.
    annotators : FittedAnnotators or None, default=None
        How annotators answer, for classes; None for ratings.
    scaling : Scaling or None, default=None
        What makes log-probabilities of scores, for classes.
    sharing : VoteSharing, default=VoteSharing.none()
        For ratings: who shares a vote; of classes, `annotators` know it.
    model_precision : float, default=nan
        For ratings: one over the variance of the model's scores out of fold around the truth.
    std_factor : float, default=1.0
        For ratings: what known answers make of standard deviations.
    """

    coef: Floats
    intercept: Floats
    shift: Floats | None
    names: Array
    expertise: Floats
    crowd_expertise: float
    annotators: FittedAnnotators | None = None
    scaling: Scaling | None = None
    sharing: VoteSharing = field(default_factory=VoteSharing.none)
    model_precision: float = float("nan")
    std_factor: float = 1.0

    @property
    def classes(self) -> Array | None:
        """The classes; None for ratings."""
        return None if self.annotators is None else self.annotators.classes

    def scores(self, X: Any) -> Floats:
        """Scores of examples, of shape (n_examples, n_targets); features must be finite."""
        offset = self.intercept if self.shift is None else self.intercept + self.coef @ self.shift
        return linear_scores(X, self.coef.T, offset, self.shift)

    def log_prior(self, X: Any) -> Floats:
        """Logarithms of the model's probabilities of classes, as the consensus uses them."""
        assert self.scaling is not None
        return self.scaling.log_proba(class_scores(self.scores(X)))

    def consensus(self, X: Any, labels: CrowdLabels, *, use_model: bool = True) -> Consensus | RatingConsensus:
        """The consensus of labels, and of the model's scores for all examples or for those without labels.

        Labels are of the same rows as the features, in the classes of the fit. Annotators are matched by name; those
        that the fit did not see count as the crowd's average.
        """
        if self.annotators is not None:
            return self.annotators.consensus(labels, self.log_prior(X), use_model=use_model)
        return self.rating_consensus(self.votes(labels), labels, self.scores(X), use_model=use_model)

    def votes(self, labels: CrowdLabels) -> Votes:
        """Ratings counted by expertise, near copies sharing a vote."""
        position = encode_declared(labels.annotators, self.names).astype(np.intp)
        return Votes.of(labels, self.expertise_of(labels), self.sharing.at(position).label_weights(labels))

    def rating_consensus(
        self, votes: Votes, labels: CrowdLabels, scores: Floats, *, use_model: bool
    ) -> RatingConsensus:
        """The consensus of ratings from votes and scores; a single annotator's ratings are taken as they are."""
        precision: Floats | float = self.model_precision
        if not use_model or np.isfinite(self.expertise).sum() == 1:
            precision = np.where(labels.labels_per_example == 0, self.model_precision, 0.0)
        consensus = votes.rating_consensus(labels, scores, precision)
        return replace(consensus, std=consensus.std * self.std_factor) if use_model else consensus

    def expertise_of(self, labels: CrowdLabels) -> Floats:
        """The expertise of the annotators of some labels, the crowd's for those that the fit did not see."""
        position = encode_declared(labels.annotators, self.names).astype(np.int64)
        has_labels = labels.labels_per_annotator > 0
        if has_labels.any() and (position[has_labels] < 0).all():
            raise LabelError(
                f"none of the {int(has_labels.sum())} annotators of these labels (such as "
                f"{labels.annotators[has_labels][:3].tolist()}) is among those of the fit "
                f"(such as {self.names[:3].tolist()}). Name them as in the fit."
            )
        expertise = np.where(position >= 0, self.expertise[np.maximum(position, 0)], np.nan)
        return np.where(np.isnan(expertise), self.crowd_expertise, expertise)


def class_scores(scores: Floats) -> Floats:
    """Scores of all classes; one column is that of the second of two classes, coded -1 and +1."""
    return np.column_stack([-scores, scores]) if scores.shape[1] == 1 else scores


def ridge_results(
    path: RidgePath, fit: Settled, n_labels: Array | None = None
) -> tuple[FittedRidge, FitResults, Floats]:
    """The fitted model, the consensus on all examples of its fit, and the paper's consensus.

    The latter, of shape (n_examples, n_targets), is the expertise-weighted mean of the labels, the model's score for
    examples without any. Each example is scored by the model of the other folds. `n_labels` is how many labels each
    annotator gave, if the data are a sample of all.
    """
    data, training = path.data, path.data.training
    unseen = np.zeros((len(data.labels), data.targets.n_targets))  # if there is no other example to learn from
    if fit.fold_theta is not None:
        unseen = data.rows.fold_scores(fit.fold_theta, path.folds.fold)
    fitted = _fitted(data, fit)
    scores = np.empty((len(training.used), unseen.shape[1]))
    scores[training.used] = data.targets.uncentred(unseen)
    if len(training.others):
        scores[training.others] = fitted.scores(training.X[training.others])
    has_labels = training.labels.labels_per_annotator > 0  # others change no bit
    labels = training.labels if has_labels.all() else training.labels.select_annotators(has_labels)
    by_expertise = Votes.of(labels, fitted.expertise_of(labels))
    label_score = data.targets.uncentred(by_expertise.mean_targets(data.targets))
    unlabelled = training.labels.labels_per_example == 0
    label_score[unlabelled] = scores[unlabelled]
    of_fit = {"steepness": fit.weights.steepness, "objective": fit.objective, "converged": fit.converged}
    if training.labels.classes is None:
        active = training.active
        sharing = sharing_of(training.used_labels, independent=False).at(np.where(active, np.cumsum(active) - 1, -1))
        fitted, results = _rating_results(data, fit, replace(fitted, sharing=sharing), unseen, scores, of_fit)
    else:
        fitted, results = _class_results(data, fit, fitted, scores, of_fit)
    results = replace(results, expertise=fitted.expertise)
    return fitted, results if n_labels is None else replace(results, n_labels=n_labels), label_score


def _class_results(
    data: RidgeData, fit: Settled, fitted: FittedRidge, scores: Floats, of_fit: dict[str, Any]
) -> tuple[FittedRidge, FitResults]:
    """The consensus of classes: annotators, and the model's scores out of fold as their prior."""
    training = data.training
    # Annotators are judged by all examples: those on which they agree would flatter them.
    labels, weight, truth = training.used_labels, training.sample_weight, training.used_truth
    unseen, n_classes = class_scores(scores[training.used]), len(training.classes)
    # Evenly spread examples are enough to estimate annotators and the scaling of scores, if there are many.
    enough = LABELS_PER_CLASS * n_classes * labels.n_annotators * len(labels) / labels.n_labels
    step = max(1, int(len(labels) / max(enough, ENOUGH_EXAMPLES)))
    chunks = sample = MemoryChunks.of(labels, weight, None, truth, whole=step == 1)
    chunks.put("scores", unseen)
    if step > 1:
        at = slice(None, None, step)
        sample = MemoryChunks.of(labels[at], weight[at], None, None if truth is None else truth[at], whole=True)
        sample.put("scores", unseen[at])
    counting = Counting(n_classes, sharing_of(labels, independent=False))
    labels_fit = fit_labels(sample, counting, Shared())
    weights = RoundWeights(sample, lambda chunk: np.ones(len(chunk)), np.ones(n_classes))
    data_of_classes = FitData(sample, sample.chunks[0], replace(training.labels, scale=NOMINAL), training.active)
    class_fit = fit_with_features(data_of_classes, labels_fit, _StoredScores(), weights, Shared())
    fitted = replace(fitted, annotators=class_fit.annotators, scaling=class_fit.scaling)
    results = results_with_features(training, chunks, class_fit, fitted.log_prior, fit.weights.steepness)
    return replace(fitted, annotators=results.fitted), replace(results, **of_fit)


class _StoredScores:
    """A classifier that is not fitted again: scores stay those of the paper's rounds, out of fold."""

    def fit(self, targets: Targets) -> Any:
        return Stored("scores")


def _fitted(data: RidgeData, fit: Settled) -> FittedRidge:
    original, expertise = data.original, fit.expertise
    coef, intercept = data.to_features(fit.theta)
    crowd = fit.precision.crowd_expertise(fit.errors)
    if len(expertise) == 1:  # no one to be compared with
        expertise, crowd = np.ones(1), 1.0
    return FittedRidge(
        coef=in_c_order(coef),
        intercept=in_c_order(intercept),
        shift=original.shift if original.far else None,
        names=data.training.labels.annotators,
        expertise=data.training.among_all(expertise),
        crowd_expertise=crowd,
    )


# ---------------------------------------------------------------------------------------------------------------------
# Ratings


def _rating_results(
    data: RidgeData, fit: Settled, fitted: FittedRidge, unseen: Floats, scores: Floats, of_fit: dict[str, Any]
) -> tuple[FittedRidge, FitResults]:
    """The consensus of ratings: the mean of labels and the model's score out of fold, weighted by precision."""
    training, labels = data.training, data.training.labels
    fitted = replace(fitted, model_precision=_model_precision(data, fit, fitted, unseen))
    check = None
    if data.known is not None:
        factor, check = _calibrate_ratings(data, data.known, fit, fitted, unseen)
        fitted = replace(fitted, std_factor=factor)
    votes = fitted.votes(labels)
    consensus = training.with_truth(fitted.rating_consensus(votes, labels, scores, use_model=True))
    agreement = fit.agreement
    if data.known is not None:
        answers = data.rows.scores(fit.theta)
        answers[data.known.at] = data.known.answers
        agreement = label_agreement(data, training.used_labels, answers, fit.weights.product)
    assert agreement is not None
    counted = np.where(training.active, labels.labels_per_annotator, 0)
    copies = None if fitted.sharing.given else fitted.sharing
    flags = flag_annotators(labels, training.among_all(agreement), counted, copies)
    per_example = labels._sum_per_example(fitted.sharing.label_weights(labels))
    return fitted, FitResults(
        annotators=labels.annotators,
        n_labels=labels.labels_per_annotator,
        expertise=fitted.expertise,
        accuracy=None,
        annotator_flags=flags,
        vote_weight=fitted.sharing.vote_weights(labels),
        effective_votes=float(per_example[per_example > 0].mean()),
        crowd_expertise=fitted.crowd_expertise,
        n_examples=len(labels),
        consensus=consensus,
        label_consensus=fitted.rating_consensus(votes, labels, scores, use_model=False),
        disagreement=training.disagreement,
        truth_check=check,
        truth=training.truth,
        **of_fit,
    )


def _model_precision(data: RidgeData, fit: Settled, fitted: FittedRidge, unseen: Floats) -> float:
    """One over the mean squared difference of labels' mean and unseen score, less what is noise of the labels."""
    expertise = fit.expertise if len(fit.expertise) > 1 else np.ones(1)
    votes = Votes.of(data.labels, expertise)
    weight = fit.weights.product * votes.total
    apart = data.targets.squared(votes.mean_targets(data.targets) - unseen)
    noise = 1 / np.maximum(votes.total, np.finfo(np.float64).tiny)
    total = float(weight @ apart / weight.sum())
    error = total if len(expertise) == 1 else total - float(weight @ noise / weight.sum())
    return 1 / max(error, LEAST_MODEL_ERROR * total, SMALLEST_ERROR * data.targets.span)


def _calibrate_ratings(
    data: RidgeData, known: KnownRows, fit: Settled, fitted: FittedRidge, unseen: Floats
) -> tuple[float, RatingCheck]:
    """The factor on standard deviations, and how far the consensus is off on examples of known rating.

    Each known rating is held out. Scores of all examples, `unseen`, are out of fold already; the errors of annotators
    on the held-out part are against these scores then.
    """
    weight, scores = fit.weights.product[known.at], unseen[known.at]
    fold = folds_of_truths(known.targets.squared(known.answers - scores))
    held_out_consensus = np.empty((2, len(known.known)))
    for k in range(int(fold.max()) + 1):
        held_out, rows = np.where(fold == k, weight, 0.0), np.flatnonzero(fold == k)
        errors = fit.errors - known.errors(held_out) + known.errors(held_out, scores)
        expertise = fit.precision.expertise(np.maximum(errors, 0.0))
        votes = Votes.of(known.labels[rows], np.ones(1) if len(expertise) == 1 else expertise)
        of_rows = data.targets.uncentred(scores[rows])
        consensus = fitted.rating_consensus(votes, known.labels[rows], of_rows, use_model=True)
        held_out_consensus[:, rows] = consensus.label, consensus.std
    rating, std = held_out_consensus
    temperature, check = calibrate_ratings(rating, std, known.known.answers, fold)
    return float(temperature**-0.5), check
