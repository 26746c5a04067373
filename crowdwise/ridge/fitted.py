"""A fit -> FittedRidge: a linear model and the annotators' expertise, which score examples and find their consensus."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from crowdwise.arrays import Array, Floats, Positions, in_c_order
from crowdwise.cluster.blocks import is_dask
from crowdwise.consensus import Consensus, RatingConsensus
from crowdwise.crowd.flags import flag_annotators
from crowdwise.crowd.groups import check_groups
from crowdwise.crowd.pairs import copies, enough_pairs, groups_of_pairs, numbered, one_hot, suspects
from crowdwise.crowd.votes import COMMON_ERRORS, mean_effective_number, vote_parts
from crowdwise.exceptions import LabelError
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import encode_declared
from crowdwise.results import AnnotatorResults, FitResults
from crowdwise.ridge.data import KnownRows, RidgeData
from crowdwise.ridge.expertise import SMALLEST_ERROR, Votes, estimated_accuracy
from crowdwise.ridge.features import check_finite
from crowdwise.ridge.path import Folds, PathFit
from crowdwise.ridge.problem import label_agreement
from crowdwise.threads import run_parallel, spans
from crowdwise.truths.calibration import Calibration, calibrate, calibrate_ratings, folds_of_truths
from crowdwise.truths.check import RatingCheck, TruthCheck, check_classes
from crowdwise.truths.draw import Draw, some_others

# What a weighted squared difference costs, in multiplications.
_SQUARING = 20.0


@dataclass(frozen=True, eq=False)
class FittedRidge:
    """All that was learnt: enough to score any examples and to find the consensus of any labels.

    Parameters
    ----------
    coef : ndarray of shape (n_targets, n_features)
        Coefficients.
    intercept : ndarray of shape (n_targets,)
        Intercepts.
    shift : ndarray of shape (n_features,) or None
        Subtracted from features before they are scored, if they are so far from zero that digits would be lost.
    classes : ndarray of shape (n_classes,) or None
        The classes; None for ratings.
    annotators : ndarray of shape (n_annotators,)
        Names of the annotators.
    expertise : ndarray of shape (n_annotators,)
        Of each annotator; NaN for those without labels.
    crowd_expertise : float
        What an annotator that the fit did not see is taken to have.
    model_precision : float
        One over the mean squared difference of the consensus of labels and the model's scores out of fold.
    group : ndarray of shape (n_annotators,) or None, default=None
        Annotators of the same number have one vote together in the consensus; None if nobody shares one.
    calibration : Calibration or None, default=None
        How truths calibrate the consensus of labels and model, if there were any; the precision of ratings is
        multiplied by its temperature.
    """

    coef: Floats
    intercept: Floats
    shift: Floats | None
    classes: Array | None
    annotators: Array
    expertise: Floats
    crowd_expertise: float
    model_precision: float
    group: Positions | None = None
    calibration: Calibration | None = None

    def scores(self, X: Any) -> Floats:
        """Scores of examples, of shape (n_examples, n_targets); features must be finite."""
        if self.shift is None:
            return np.asarray(X @ self.coef.T) + self.intercept
        offset = self.intercept + self.coef @ self.shift
        if not sparse.issparse(X):
            return (X - self.shift) @ self.coef.T + offset
        far = np.flatnonzero(self.shift)  # the other columns are not shifted, and stay sparse
        near = self.coef.copy()
        near[:, far] = 0.0
        return np.asarray(X @ near.T) + (X[:, far].toarray() - self.shift[far]) @ self.coef[:, far].T + offset

    def consensus(self, X: Any, labels: CrowdLabels, *, use_model: bool = True) -> Consensus | RatingConsensus:
        """The consensus of labels, and of the model's scores for all examples or for those without labels.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n_examples, n_features)
            Features; finite.
        labels : CrowdLabels
            Labels of the same rows, in the classes of the fit. Annotators are matched by name; those that the fit did
            not see count as the crowd's average.
        use_model : bool, default=True
            Whether the model counts for examples that have labels.

        Returns
        -------
        consensus : Consensus, or RatingConsensus for ratings
        """
        return self.combine(self.votes(labels), labels, self.scores(X), use_model=use_model)

    def votes(self, labels: CrowdLabels) -> Votes:
        """Labels counted by expertise, a group of annotators having one vote together."""
        expertise, part = self.expertise_of(labels), None
        if self.group is not None:
            position = encode_declared(labels.annotators, self.annotators).astype(np.int64)
            alone = len(self.group) + np.arange(len(position))
            part = vote_parts(labels, np.where(position < 0, alone, self.group[np.maximum(position, 0)]))
        return Votes.of(labels, expertise, part)

    def combine(
        self, votes: Votes, labels: CrowdLabels, scores: Floats, *, use_model: bool
    ) -> Consensus | RatingConsensus:
        """The same from votes and scores; a single annotator is taken at their word."""
        found = self._combined(votes, labels, scores, use_model=use_model)
        if self.calibration is None or not use_model:
            return found
        if isinstance(found, RatingConsensus):
            return replace(found, std=found.std / np.sqrt(self.calibration.temperature))
        return replace(found, proba=self.calibration.apply(found.proba, labels))

    def _combined(
        self, votes: Votes, labels: CrowdLabels, scores: Floats, *, use_model: bool
    ) -> Consensus | RatingConsensus:
        """Before it is calibrated."""
        precision: Floats | float = self.model_precision
        if not use_model or np.isfinite(self.expertise).sum() == 1:
            unlabelled = labels.labels_per_example == 0
            if not unlabelled.any():
                return votes.consensus(labels)
            precision = np.where(unlabelled, self.model_precision, 0.0)
        return votes.consensus(labels, scores, precision)

    def expertise_of(self, labels: CrowdLabels) -> Floats:
        """The expertise of the annotators of some labels, the crowd's for those that the fit did not see."""
        position = encode_declared(labels.annotators, self.annotators).astype(np.int64)
        gave = labels.labels_per_annotator > 0
        if gave.any() and (position[gave] < 0).all():
            raise LabelError(
                f"none of the {int(gave.sum())} annotators of these labels (such as "
                f"{labels.annotators[gave][:3].tolist()}) is among those of the fit "
                f"(such as {self.annotators[:3].tolist()}). Name them as in the fit."
            )
        expertise = np.where(position >= 0, self.expertise[np.maximum(position, 0)], np.nan)
        return np.where(np.isnan(expertise), self.crowd_expertise, expertise)


def check_new(estimator: Any, X: Any) -> Any:
    """Features for a fitted estimator, finite."""
    if is_dask(X):
        raise TypeError(
            "predictions are of examples in memory, and X is a Dask collection. Map the method over its blocks: "
            "X.map_blocks(model.predict, drop_axis=1, dtype=...), or X.map_partitions for a data frame."
        )
    X = validate_data(
        estimator, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=False
    )
    check_finite(X)
    return X


@dataclass(frozen=True, eq=False)
class RidgeResults:
    """What a ridge model keeps of its fit.

    Parameters
    ----------
    fitted : FittedRidge
        The model.
    results : FitResults
        What it says about the examples and annotators of its fit.
    label_score : ndarray of shape (n_examples, n_targets)
        The paper's consensus: the expertise-weighted mean of the labels, the model's score for examples without any.
    """

    fitted: FittedRidge
    results: FitResults
    label_score: Floats


def ridge_results(
    data: RidgeData, folds: Folds, fit: PathFit, groups: Any = None, n_labels: Array | None = None
) -> RidgeResults:
    """The fitted model, and the consensus on all examples of its fit.

    Each example is scored by the model of the other folds. `groups` of annotators have one vote together; by default
    those who copy each other are found. `n_labels` says how many labels each annotator gave, if the data are a sample
    of all.
    """
    training, settled = data.training, fit.settled
    votes = Votes.of(data.labels, settled.expertise)
    target, unseen = votes.mean_targets(data.targets), _unseen_scores(data, folds, fit)
    precision = _model_precision(data, fit, votes, target, unseen)
    fitted, check = _fitted(data, fit, precision, groups), None
    if data.known is not None:
        calibration, check = calibrate_by_truths(data, data.known, fit, fitted, unseen)
        fitted, votes = replace(fitted, calibration=calibration), Votes.of(training.core, settled.expertise)
        target = votes.mean_targets(data.targets)
    if len(training.core.annotators) == 1:  # in units of this one annotator's expertise
        votes = Votes.of(training.core, np.ones(1))
    elif fitted.group is not None:
        votes = fitted.votes(training.core)
    scores, label_score = data.targets.uncentred(unseen), data.targets.uncentred(target)
    if not training.learnt.all():
        votes = fitted.votes(training.labels)
        scores = np.empty((len(training.learnt), unseen.shape[1]))
        scores[training.learnt] = data.targets.uncentred(unseen)
        scores[training.others] = fitted.scores(training.X[training.others])
        by_expertise = Votes.of(training.labels, fitted.expertise_of(training.labels))
        label_score = data.targets.uncentred(by_expertise.mean_targets(data.targets))
        unlabelled = training.labels.labels_per_example == 0
        label_score[unlabelled] = scores[unlabelled]
    labels = training.labels
    consensus = training.with_truth(fitted.combine(votes, labels, scores, use_model=True))
    results = FitResults(
        consensus=consensus,
        label_consensus=fitted.combine(votes, labels, scores, use_model=False),
        annotators=_annotator_results(data, fit, fitted, consensus, groups, n_labels),
        disagreement=training.disagreement,
        steepness=fit.steepness,
        objective=settled.objective,
        converged=settled.converged,
        truth_check=check.beside(consensus.confidence[training.unknown]) if isinstance(check, TruthCheck) else check,
    )
    return RidgeResults(fitted, results, label_score)


def calibrate_by_truths(
    data: RidgeData, known: KnownRows, fit: PathFit, fitted: FittedRidge, unseen: Floats
) -> tuple[Calibration, TruthCheck | RatingCheck]:
    """How truths calibrate the consensus of other examples, and how good it is on examples of known answer.

    Each truth is held out. Scores of all examples, `unseen`, are out of fold already. Truths are left out in parts, and
    the errors of annotators on a part are against these scores then.
    """
    weight, answers, scores = fit.settled.weights.product[known.at], known.known.answers, unseen[known.at]
    fold = folds_of_truths(known.targets.squared(known.answers - scores))
    told: Floats = np.empty((len(answers), 2 if fitted.classes is None else len(fitted.classes)))
    for k in range(int(fold.max()) + 1):
        held_out, rows = np.where(fold == k, weight, 0.0), np.flatnonzero(fold == k)
        errors = fit.settled.errors - known.errors(held_out) + known.errors(held_out, scores)
        expertise = fit.settled.problem.precision.expertise(np.maximum(errors, 0.0))
        votes = Votes.of(known.labels[rows], np.ones(1) if len(expertise) == 1 else expertise)
        found = fitted.combine(votes, known.labels[rows], data.targets.uncentred(scores[rows]), use_model=True)
        told[rows] = found.proba if isinstance(found, Consensus) else np.column_stack([found.label, found.std])
    if fitted.classes is None:
        return calibrate_ratings(told[:, 0], told[:, 1], answers, fold)
    draw = _draw(data, known, fitted, unseen)
    calibration, calibrated = calibrate(told, answers, known.labels, fold, draw)
    return calibration, check_classes(calibrated, answers, at_random=draw.at_random)


def _draw(data: RidgeData, known: KnownRows, fitted: FittedRidge, unseen: Floats) -> Draw:
    """How the examples of known class differ from the others, as if none were known."""
    others = some_others(known.at, len(unseen))
    rows = np.concatenate([known.at, others])
    labels, scores = data.training.core[rows], data.targets.uncentred(unseen[rows])
    found = fitted.combine(fitted.votes(labels), labels, scores, use_model=True)
    assert isinstance(found, Consensus)
    return Draw.of(len(known.at), found.proba, data.training.sample_weight[others])


def _unseen_scores(data: RidgeData, folds: Folds, fit: PathFit) -> Floats:
    """Scores of the examples that take part by models that have not seen them."""
    if folds.n_folds < 2:  # there is no other example to learn from
        return np.zeros((len(data.labels), data.targets.n_targets))
    return data.rows.fold_scores(fit.fold_theta, folds.fold)


def _model_precision(data: RidgeData, fit: PathFit, votes: Votes, target: Floats, unseen: Floats) -> float:
    """One over the mean squared difference of consensus and unseen score."""
    weights = fit.settled.weights

    def sums(span: range) -> Floats:
        some = slice(span.start, span.stop)
        weight = weights.example[some] * weights.sample_weight[some] * votes.total[some]
        return np.array([weight @ data.targets.squared(target[some] - unseen[some]), weight.sum()])

    error, total = sum(run_parallel(sums, spans(len(target)), _SQUARING * len(target)), start=np.zeros(2))
    return 1 / max(float(error / total), SMALLEST_ERROR * data.targets.span)


def _group(data: RidgeData, expertise: Floats, groups: Any) -> Positions | None:
    """The groups that were given or found, among all annotators; None if nobody shares a vote."""
    given = check_groups(groups, data.training.labels.annotators)
    if given is not None:
        return None if given.max() + 1 == len(given) else given
    rows = enough_pairs(data.labels)
    some = data.labels if rows is None else data.labels[rows]
    suspected = suspects(some)
    if not len(suspected):
        return None
    part = vote_parts(some, groups_of_pairs(suspected, some.n_annotators))
    consensus = Votes.of(some, expertise, part).consensus(some)
    if isinstance(consensus, RatingConsensus):
        residual = (some.values - consensus.label[some.example_index])[:, np.newaxis]
    else:
        residual = one_hot(some) - consensus.proba[some.example_index]
    found = copies(some, residual, suspected)
    if not len(found):
        return None
    active = data.training.active
    group = np.arange(len(active)) + len(active)
    group[active] = groups_of_pairs(found, some.n_annotators)
    return numbered(group)


def _fitted(data: RidgeData, fit: PathFit, precision: float, groups: Any) -> FittedRidge:
    settled, original = fit.settled, data.original
    coef, intercept = data.to_features(settled.theta)
    expertise = settled.expertise
    crowd = settled.problem.precision.crowd_expertise(settled.errors)
    if len(expertise) == 1:  # nobody to be compared with
        expertise, crowd, precision = np.ones(1), 1.0, precision / float(expertise[0])
    return FittedRidge(
        coef=in_c_order(coef),
        intercept=in_c_order(intercept),
        shift=original.shift if original.far else None,
        classes=data.labels.classes,
        annotators=data.training.labels.annotators,
        expertise=data.training.among_all(expertise),
        crowd_expertise=crowd,
        model_precision=precision,
        group=_group(data, settled.expertise, groups),
    )


def _annotator_results(
    data: RidgeData,
    fit: PathFit,
    fitted: FittedRidge,
    consensus: Consensus | RatingConsensus,
    groups: Any,
    n_labels: Array | None,
) -> AnnotatorResults:
    training, problem = data.training, fit.settled.problem
    if data.known is None:
        agreement = problem.agreement(fit.settled.theta)
    else:
        answers, core = data.rows.scores(fit.settled.theta), training.core
        answers[data.known.at] = data.known.answers
        agreement = label_agreement(data, core, answers, fit.settled.weights.product)
    agreement = training.among_all(agreement)
    accuracy = None
    if isinstance(consensus, Consensus):
        proba = consensus.proba if training.learnt.all() else consensus.proba[training.learnt]
        accuracy = training.among_all(estimated_accuracy(training.core, proba, training.sample_weight))
    labels = training.labels
    n_labels = labels.labels_per_annotator if n_labels is None else n_labels
    flags = flag_annotators(labels, agreement, n_labels, fitted.group if groups is None else None)
    group = np.arange(labels.n_annotators) if fitted.group is None else fitted.group
    strength = np.sqrt(np.nan_to_num(fitted.expertise))
    number = mean_effective_number(labels, strength, fitted.group, COMMON_ERRORS)
    return AnnotatorResults(
        fitted.annotators, n_labels, fitted.expertise, accuracy, flags, group=group, effective_number=number
    ).against(labels, training.truth)
