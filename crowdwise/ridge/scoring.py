"""A fitted linear model -> scores of new examples, accuracy on labels, and consensus with the model's voice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from crowdwise.arrays import Floats
from crowdwise.crowd.easiness import example_weights
from crowdwise.exceptions import LabelError
from crowdwise.labels.align import align, as_labels
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import encode_declared
from crowdwise.ridge.ballot import Ballot, Consensus, consensus_of
from crowdwise.ridge.features import Rows, check_finite, row_space
from crowdwise.ridge.fit import N_FOLDS, cross_fitted_scores
from crowdwise.ridge.targets import Targets
from crowdwise.weights.folds import content_folds


def checked(estimator: Any, X: Any) -> Any:
    """Features for a fitted estimator."""
    X = validate_data(
        estimator, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=False
    )
    check_finite(X)
    return X


def linear_scores(estimator: Any, X: Any) -> Floats:
    """X times the coefficients; one dimension if there is one target."""
    return raw_scores(estimator, checked(estimator, X))


def raw_scores(estimator: Any, X: Any) -> Floats:
    """The same for features that are known to be clean."""
    coef, intercept, shift = np.atleast_2d(estimator.coef_), estimator.intercept_, estimator._shift
    if shift is not None and not sparse.issparse(X):
        scores = (X - shift) @ coef.T + (intercept + coef @ shift)
    else:
        scores = np.asarray(X @ coef.T) + intercept
    return scores[:, 0] if scores.shape[1] == 1 else scores


def known_expertise(estimator: Any, labels: CrowdLabels) -> Floats:
    """The expertise of the annotators of `labels`; the crowd's for those whom the model does not know."""
    position = encode_declared(labels.annotators, estimator.annotators_).astype(np.int64)
    if (position < 0).all():
        raise LabelError(
            f"none of the {labels.n_annotators} annotators of these labels (such as "
            f"{labels.annotators[:3].tolist()}) is among those of the fit "
            f"(such as {estimator.annotators_[:3].tolist()}). Name them as in the fit."
        )
    expertise = np.where(position >= 0, estimator.expertise_[np.maximum(position, 0)], np.nan)
    return np.where(np.isnan(expertise), estimator._crowd_expertise, expertise)


def consensus_with_model(estimator: Any, X: Any, y: Any, *, use_model: bool) -> Consensus:
    """The consensus of labels by the annotators of a fit, with or without the model's voice."""
    classes = getattr(estimator, "classes_", None)
    labels = as_labels(y, kind="rating" if classes is None else "class")
    X, labels = align(X, labels)
    if classes is not None:
        labels = labels.with_classes(classes)
    X = checked(estimator, X)
    scores = raw_scores(estimator, X)
    if use_model and labels.fingerprint() == estimator._fingerprint:
        scores = _unseen_scores(estimator, X, labels, scores)
    labels = labels.select_annotators(labels.labels_per_annotator > 0)
    ballot = Ballot.of(labels, known_expertise(estimator, labels))
    return spoken_for(labels, ballot, scores, estimator.model_precision_, use_model=use_model)


def spoken_for(labels: CrowdLabels, ballot: Ballot, scores: Floats, precision: float, *, use_model: bool) -> Consensus:
    """The consensus in which the model speaks for examples without labels, and for all if `use_model`."""
    if use_model:
        return consensus_of(ballot, labels.classes, scores, precision)
    silent = labels.labels_per_example == 0
    if not silent.any():
        return consensus_of(ballot, labels.classes)
    return replace(consensus_of(ballot, labels.classes, scores, np.where(silent, precision, 0.0)), uses_model=False)


def _unseen_scores(estimator: Any, X: Any, labels: CrowdLabels, scores: Floats) -> Floats:
    """Scores of the examples of the fit, each by a model of other examples."""
    learnt = labels.labels_per_example > 0
    weight = np.ones(len(labels)) if estimator._sample_weight is None else estimator._sample_weight
    learnt &= weight > 0
    if estimator._round_weights is None:
        easiness, own = example_weights(estimator.disagreement_[learnt], estimator.steepness_), weight[learnt]
    else:
        easiness, own = estimator._round_weights
    core = labels[learnt]
    targets = Targets.of(core, intercept=estimator.fit_intercept)
    ballot = Ballot.of(core, known_expertise(estimator, core))
    target, voice = ballot.mean_targets(targets), ballot.total
    original = Rows.of(X[learnt], intercept=estimator.fit_intercept)
    space = row_space(original)
    weight = easiness * own * voice / np.average(voice, weights=own)
    rows = original if space is None else space.rows
    fold = content_folds(original.X, N_FOLDS)
    unseen = cross_fitted_scores(rows, weight, target, estimator._l2, fold) + targets.centre
    scores = scores.copy()
    scores[learnt] = unseen[:, 0] if scores.ndim == 1 else unseen
    return scores
