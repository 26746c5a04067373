"""The paper's classifier: a linear model and the annotators' expertise, estimated together, easy examples first."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from crowdwise.arrays import Floats
from crowdwise.crowd.disagreement import Scale
from crowdwise.crowd.easiness import check_auto_steepness, easiness
from crowdwise.mixins import CrowdClassifierMixin
from crowdwise.ridge.auto_steepness import auto_steepness
from crowdwise.ridge.ballot import Ballot, Consensus, consensus_of
from crowdwise.ridge.courses import Pace
from crowdwise.ridge.features import check_finite
from crowdwise.ridge.fit import RidgeFit, fit_ridge
from crowdwise.ridge.preparation import Prepared, check_settings, note_effective_number, prepare
from crowdwise.ridge.problem import Task
from crowdwise.ridge.scoring import (
    consensus_with_model,
    known_expertise,
    linear_scores,
    raw_scores,
    spoken_for,
)
from crowdwise.weights.curricula import Curriculum, check_curriculum


class CrowdRidgeClassifier(CrowdClassifierMixin, BaseEstimator):
    """Linear classifier and expertise from the labels of many annotators, easy examples first.

    Each round solves a ridge regression on the expertise-weighted mean of the labels (coded +1 and -1), with every
    example weighted by how much its annotators agree, and then sets each annotator's expertise to one over their
    weighted mean squared difference from the scores. With complete labels a round needs sums only and does not
    read the data again.

    Parameters
    ----------
    steepness : float or "auto", default=2.0
        How fast an example's weight falls with disagreement (the paper's alpha). 0 weights all alike; "auto" is 0 if
        contested labels can be told from the features, as on most real crowds, else 3 to 6.
    l2 : float, default=1.0
        Ridge strength (the paper's lambda); 0 gives the solution of smallest norm.
    scale : {"observed", "possible"} or None, default="observed"
        How disagreement is scaled, see `disagreement`.
    init : {"majority", "mean"}, default="majority"
        The first consensus: the majority vote, or the mean of the labels.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is not penalised.
    max_rounds : int, default=100
        The most rounds.
    tol : float, default=1e-6
        Stop when no expertise changes by more than this, relative to what it was, and the curriculum is done with
        changing weights (`Fading` with c <= 1 never is).
    curriculum : Curriculum, default=None
        How the weights change from round to round: `Fixed()`, `Fading(c)`, `Smooth(c)` or `SelfPaced(...)`; None is
        `Fixed()`. With the first three, rounds that could be solved from sums still are.
    class_weight : dict or "balanced", default=None
        How much each class counts, by the class that leads in the consensus of the round, in the model, in expertise
        and where l2 is chosen: numbers (1 for classes that a dict does not name), or the same total for every class.
        Each round then reads the rows.
    random_state : int, Generator or None, default=None
        Seed of the tosses of `Fading`.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    classes_ : ndarray of shape (n_classes,)
        The classes.
    annotators_ : ndarray of shape (n_annotators,)
        Names of the annotators.
    expertise_ : ndarray of shape (n_annotators,)
        One over the mean squared error of each annotator; NaN for those without labels; 1 if there is one annotator.
        With labels missing it is shrunk towards the crowd's by the strength of three labels.
    expertise_share_ : ndarray of shape (n_annotators,)
        Expertise divided by its sum; 0 for annotators without labels.
    annotator_flags_ : dict
        Annotators of whom something is remarkable: "no labels", "few labels", "worse than chance" or
        "same labels as ...".
    steepness_ : float
        The steepness of these weights: the one given, or the one found.
    disagreement_ : ndarray of shape (n_examples,)
        Of the examples of `fit`.
    easiness_ : ndarray of shape (n_examples,)
        Their weights, as far as they come from disagreement.
    class_weight_ : ndarray of shape (n_classes,)
        What each class was worth in the last round.
    consensus_ : ndarray of shape (n_examples,)
        Their classes by the labels alone: the paper's consensus, in which the model has no voice of its own (examples
        without labels have the model's). For the model's voice see `consensus`.
    consensus_score_ : ndarray of shape (n_examples,) or (n_examples, n_classes)
        Expertise-weighted mean of the labels, from -1 to +1.
    consensus_confidence_ : ndarray of shape (n_examples,)
        Probability of the class in `consensus_` if annotators err independently, which real ones do not: use it to
        sort examples.
    consensus_uses_model_ : bool
        False: the model has no voice in these.
    model_precision_ : float
        The precision of the model's voice in `consensus`, in the units of `expertise_`.
    objective_ : ndarray of shape (n_rounds,)
        Mean logarithm of the annotators' squared errors plus penalty, after every round, with the weights of that
        round.
    n_rounds_ : int
        Rounds turned.
    converged_ : bool
        Whether they settled within `tol`, with weights that stay.
    route_ : {"sums", "rows", "iterative"}
        How it was solved: from the sums of one pass, by a pass a round, or without a gram matrix.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had any.

    References
    ----------
    S. Vembu and S. Zilles: Interactive Learning from Multiple Noisy Labels. ECML-PKDD 2016.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from crowdwise import CrowdRidgeClassifier, simulate_annotators
    >>> X, truth = make_blobs(200, centers=2, random_state=0)
    >>> labels = simulate_annotators(X, truth, experts=1, adversaries=1, random_state=0)
    >>> model = CrowdRidgeClassifier().fit(X, labels)
    >>> str(model.annotators_[model.expertise_.argmax()])
    'expert 1'
    """

    def __init__(
        self,
        steepness: float | Literal["auto"] = 2.0,
        *,
        l2: float = 1.0,
        scale: Scale = "observed",
        init: str = "majority",
        fit_intercept: bool = True,
        max_rounds: int = 100,
        tol: float = 1e-6,
        curriculum: Curriculum | None = None,
        class_weight: dict[Any, float] | str | None = None,
        random_state: Any = None,
    ) -> None:
        self.steepness = steepness
        self.l2 = l2
        self.scale = scale
        self.init = init
        self.fit_intercept = fit_intercept
        self.max_rounds = max_rounds
        self.tol = tol
        self.curriculum = curriculum
        self.class_weight = class_weight
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from labelled examples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_examples, n_features)
            Features.
        y : CrowdLabels, or array-like of shape (n_examples, n_annotators) or (n_examples,)
            Labels: a column per annotator, NaN or None where there is none.
        sample_weight : array-like of shape (n_examples,), default=None
            How often each example counts.

        Returns
        -------
        self : CrowdRidgeClassifier
        """
        steepness, curriculum = check_auto_steepness(self.steepness), check_curriculum(self.curriculum)
        check_settings(l2=self.l2, init=self.init, max_rounds=self.max_rounds, tol=self.tol)
        prepared = prepare(
            self, X, y, sample_weight,
            kind="class", scale=self.scale, fit_intercept=self.fit_intercept, steepest=steepness or 0.0,
        )  # fmt: skip
        pace = Pace.of(curriculum, self.class_weight, prepared.classes, self.random_state)
        task = prepared.task(
            auto_steepness(
                prepared.original.X, prepared.core, prepared.sample_weight, prepared.disagreement[prepared.learnt]
            )
            if steepness is None
            else steepness,
            self.init,
        )
        note_effective_number(task.easiness * task.sample_weight, self.n_features_in_)
        fitted = fit_ridge(prepared, task, pace, self.l2, max_rounds=self.max_rounds, tol=self.tol)
        self.classes_ = prepared.classes
        keep_fit(self, prepared, task, fitted, l2=self.l2, sample_weight=sample_weight)
        keep_classes(self, prepared, fitted)
        return self

    def decision_function(self, X: Any) -> Floats:
        """Scores: around -1 for the first and +1 for the second of two classes; one column a class if there are more.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_examples, n_features)
            Features.

        Returns
        -------
        scores : ndarray of shape (n_examples,) or (n_examples, n_classes)
        """
        check_is_fitted(self)
        return linear_scores(self, X)

    def consensus(self, X: Any, labels: Any, use_model: bool = True) -> Consensus:
        """The consensus on any labelled examples, with the model as one more voice.

        The examples of `fit` are recognised if all of them are given in the same order; each is then scored by a
        model of other examples, so that the model does not agree with itself. An annotator that `fit` did not see
        counts as the crowd's average.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_examples, n_features)
            Features.
        labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
            Labels by annotators of `fit`.
        use_model : bool, default=True
            Whether the model has a voice. Examples without labels always have the model's score.

        Returns
        -------
        consensus : Consensus
            With `label`, `confidence`, `score` and `uses_model`.
        """
        check_is_fitted(self)
        return consensus_with_model(self, X, labels, use_model=use_model)


def keep_fit(
    estimator: Any, prepared: Prepared, task: Task, fitted: RidgeFit, *, l2: float, sample_weight: Any
) -> None:
    """Store what was learnt, in the attributes that all ridge models share."""
    labels = prepared.labels
    estimator.coef_ = fitted.coef
    estimator.intercept_ = fitted.intercept
    estimator.annotators_ = labels.annotators
    estimator.expertise_ = fitted.expertise
    estimator.expertise_share_ = np.nan_to_num(fitted.expertise) / np.nansum(fitted.expertise)
    estimator.annotator_flags_ = fitted.flags
    estimator.disagreement_ = prepared.disagreement
    estimator.easiness_ = example_easiness(prepared, task)
    estimator.model_precision_ = fitted.model_precision
    estimator.objective_ = fitted.settled.objective
    estimator.n_rounds_ = fitted.settled.n_rounds
    estimator.converged_ = fitted.settled.converged
    estimator.route_ = fitted.route
    # What `consensus` needs to recognise the examples of the fit and to score them out of fold.
    estimator._crowd_expertise = fitted.crowd_expertise
    estimator._fingerprint = labels.fingerprint()
    estimator._shift = prepared.distant_shift()
    estimator.steepness_ = task.steepness
    estimator._round_weights = fitted.round_weights
    estimator._l2 = l2
    estimator._sample_weight = None if sample_weight is None else np.array(sample_weight, dtype=np.float64)


def example_easiness(prepared: Prepared, task: Task) -> Floats:
    """The weights of all examples, those that took no part too."""
    if prepared.learnt.all():
        return task.easiness
    weights = easiness(prepared.disagreement, task.steepness)
    weights[prepared.learnt] = task.easiness
    return weights


def fitted_consensus(estimator: Any, prepared: Prepared, fitted: RidgeFit) -> Consensus:
    """The consensus of the labels of the fit; examples without labels have the model's score."""
    labels = prepared.labels
    if prepared.learnt.all():
        return consensus_of(fitted.ballot, labels.classes)
    ballot = Ballot.of(labels, known_expertise(estimator, labels))
    if prepared.unlabelled.shape[0] == 0:
        return consensus_of(ballot, labels.classes)
    check_finite(prepared.unlabelled)
    few = raw_scores(estimator, prepared.unlabelled)
    scores = np.zeros((len(labels), *few.shape[1:]))
    scores[labels.labels_per_example == 0] = few
    return spoken_for(labels, ballot, scores, estimator.model_precision_, use_model=False)


def keep_classes(estimator: Any, prepared: Prepared, fitted: RidgeFit) -> None:
    """Store the consensus of the examples of the fit."""
    consensus = fitted_consensus(estimator, prepared, fitted)
    estimator.class_weight_ = np.ones(len(prepared.classes)) if fitted.class_weight is None else fitted.class_weight
    estimator.consensus_ = consensus.label
    estimator.consensus_score_ = consensus.score
    estimator.consensus_confidence_ = consensus.confidence
    estimator.consensus_uses_model_ = consensus.uses_model
