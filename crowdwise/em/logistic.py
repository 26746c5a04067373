"""The classification model of Raykar et al.: logistic regression and confusion matrices, estimated together."""

from __future__ import annotations

from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from crowdwise.arrays import Floats
from crowdwise.crowd.disagreement import Scale
from crowdwise.crowd.easiness import check_auto_steepness, easiness, example_weights
from crowdwise.em.aggregate import expectation, probability_right
from crowdwise.em.confusion import AnnotatorModelName, Incidence
from crowdwise.em.first_annotators import Init, Joint, first_annotators
from crowdwise.em.hard_examples import Behaviour, Kinds
from crowdwise.em.logistic_rounds import LogisticRounds
from crowdwise.em.softmax import Scaling, log_probabilities
from crowdwise.em.temperature import Voice
from crowdwise.exceptions import CrowdConvergenceWarning, warn
from crowdwise.labels.align import align, as_labels
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import encode_declared
from crowdwise.mixins import CrowdClassifierMixin
from crowdwise.ridge.auto_steepness import auto_steepness
from crowdwise.ridge.features import check_finite
from crowdwise.ridge.preparation import (
    N_FOLDS,
    Consensus,
    Prepared,
    check_rounds,
    checked,
    note_effective_number,
    prepare,
)
from crowdwise.weights.class_weights import check_class_weight
from crowdwise.weights.curricula import Curriculum, check_curriculum
from crowdwise.weights.folds import content_folds
from crowdwise.weights.round_weights import Lessons


class CrowdLogisticClassifier(CrowdClassifierMixin, BaseEstimator):
    """Logistic regression for the true class, and how each annotator answers when that is the truth.

    The model of Raykar et al. (2010), for any number of classes: rounds of estimating annotators and classifier from
    the posterior probabilities of the classes, and these from both, every example weighted by its easiness. By default
    it looks for examples that are hard for all annotators and is more careful if there are any; their own model is
    `kinds=1, joint=True, init="votes", cross_fit=0`.

    Parameters
    ----------
    steepness : float or "auto", default="auto"
        How fast an example's weight falls with disagreement. 0 weights all alike; "auto" is 0 if contested labels can
        be told from the features, as on most real crowds, else 3 to 6.
    l2 : float or "auto", default="auto"
        Strength of the penalty on the coefficients; one over scikit-learn's C. "auto" takes the power of ten, relative
        to the variance of the features, that foretells the first consensus of held-out examples best; a larger one if
        it does so within a standard error.
    annotator_model : {"shared", "confusion", "one-coin"}, default="shared"
        What is estimated of an annotator: a confusion matrix drawn towards the crowd's, one of their own, or how often
        they are right.
    strength : float, default=3.0
        How many labels the prior of an annotator is worth.
    kinds : int or "auto", default="auto"
        How many kinds of examples every class has, from easy to hard, see `aggregate`; 1 is the model of Raykar et al.
    joint : bool or "auto", default="auto"
        Whether annotators are judged by the consensus of labels and classifier, as by Raykar et al., or by labels
        alone. "auto" judges by labels alone if there are hard examples (`kinds` is above 1): features often tell what
        tempts annotators, and a classifier that has learnt their common errors would confirm them. The classifier has
        a voice in the consensus either way.
    init : {"labels", "votes"}, default="labels"
        The first consensus: that of labels alone, or the shares of the votes as by Raykar et al.
    class_prior : float, default=1.0
        Examples of average features added, evenly of all classes.
    cross_fit : int, default=5
        Folds: an example's class probabilities come from a classifier that has not seen it, so that the classifier
        does not agree with itself. 0 uses one classifier for all, as Raykar et al.; the objective then never falls.
    curriculum : Fixed, Fading, Smooth, SelfPaced or None, default=None
        How the weights change from round to round; None is `Fixed()`. `SelfPaced` reads how far the classifier's
        probabilities are from the consensus, and has a threshold for every class, lest a rare one never enter.
    class_weight : dict, "balanced" or None, default=None
        What each class counts for the classifier; "balanced" gives all classes of the current consensus the same
        total. `predict_proba` is of that classifier, as in scikit-learn. In the consensus, the classifier's
        probabilities have the weights divided out: there a rare class stays rare.
    scale : {"observed", "possible"} or None, default="observed"
        How disagreement is scaled, see `disagreement`.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is not penalised.
    max_rounds : int, default=100
        The most rounds.
    tol : float, default=1e-3
        Stop when no posterior probability changes by more than this and the curriculum is done with changing weights
        (`Fading` with c <= 1 never is).
    warm_start : bool, default=False
        Whether `fit` begins with the annotators and the classifier of the last fit, if they are of the same crowd.
    random_state : int, Generator or None, default=None
        For a curriculum that draws.

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
    confusion_ : ndarray of shape (n_annotators, n_classes, n_classes)
        Probability that an annotator says c (last axis) if the truth is k; NaN for annotators without labels.
    expertise_ : ndarray of shape (n_annotators,)
        Probability that an annotator is right; NaN for those without labels.
    steepness_ : float
        The steepness given, or the one found.
    l2_ : float
        The l2 given, or the one found.
    class_prior_ : ndarray of shape (n_classes,)
        How frequent each class is among the examples of `fit`.
    class_weight_ : ndarray of shape (n_classes,)
        What each class counted for the classifier; ones without `class_weight`.
    temperature_ : float
        The factor on the classifier's scores that makes the labels most probable: what l2 took from them and labels
        bear out comes back. `coef_` has it in it; 1 with `cross_fit=0`.
    disagreement_ : ndarray of shape (n_examples,)
        Of the examples of `fit`.
    easiness_ : ndarray of shape (n_examples,)
        Their weights, as far as they come from disagreement.
    consensus_ : ndarray of shape (n_examples,)
        Their most probable classes, by labels and classifier together (out of fold if `cross_fit`).
    consensus_proba_ : ndarray of shape (n_examples, n_classes)
        Probabilities of all classes.
    consensus_confidence_ : ndarray of shape (n_examples,)
        Probability of the class in `consensus_` if annotators err independently: use it to sort examples.
    consensus_uses_model_ : bool
        True: the classifier has a voice in these.
    objective_ : ndarray of shape (n_rounds,)
        Log-likelihood plus log priors after every round. With `class_weight`, or a curriculum other than `Fixed`,
        every round has a problem of its own, and it may fall.
    n_rounds_ : int
        Rounds turned.
    converged_ : bool
        Whether they settled within `tol`, with weights that stay.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had any.

    References
    ----------
    V. C. Raykar et al.: Learning from Crowds. Journal of Machine Learning Research 11, 2010.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from crowdwise import CrowdLogisticClassifier, simulate_annotators
    >>> X, truth = make_blobs(200, centers=3, random_state=0)
    >>> labels = simulate_annotators(X, truth, clarity=3.0, adversaries=1, missing=0.5, random_state=0)
    >>> model = CrowdLogisticClassifier().fit(X, labels)
    >>> str(model.annotators_[model.expertise_.argmin()])
    'adversary 1'
    """

    confusion_: Floats
    class_weight_: Floats
    _theta: Floats
    _behaviour: Behaviour

    def __init__(
        self,
        steepness: float | Literal["auto"] = "auto",
        *,
        l2: float | Literal["auto"] = "auto",
        annotator_model: AnnotatorModelName = "shared",
        strength: float = 3.0,
        kinds: Kinds = "auto",
        joint: Joint = "auto",
        init: Init = "labels",
        class_prior: float = 1.0,
        cross_fit: int = 5,
        curriculum: Curriculum | None = None,
        class_weight: dict[Any, float] | str | None = None,
        scale: Scale = "observed",
        fit_intercept: bool = True,
        max_rounds: int = 100,
        tol: float = 1e-3,
        warm_start: bool = False,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.steepness = steepness
        self.l2 = l2
        self.annotator_model = annotator_model
        self.strength = strength
        self.kinds = kinds
        self.joint = joint
        self.init = init
        self.class_prior = class_prior
        self.cross_fit = cross_fit
        self.curriculum = curriculum
        self.class_weight = class_weight
        self.scale = scale
        self.fit_intercept = fit_intercept
        self.max_rounds = max_rounds
        self.tol = tol
        self.warm_start = warm_start
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
        self : CrowdLogisticClassifier
        """
        given = check_auto_steepness(self.steepness)
        curriculum = check_curriculum(self.curriculum)
        self._check_settings()
        prepared = prepare(
            self, X, y, sample_weight,
            kind="class", scale=self.scale, fit_intercept=False, steepest=given or 0.0,
        )  # fmt: skip
        check_finite(prepared.original.X)
        own = (prepared.sample_weight, prepared.disagreement[prepared.learnt])
        self.steepness_ = auto_steepness(prepared.original.X, prepared.core, *own) if given is None else given
        lessons = Lessons(
            curriculum,
            example_weights(prepared.disagreement[prepared.learnt], self.steepness_),
            prepared.sample_weight,
            check_class_weight(self.class_weight, prepared.classes),
            np.random.default_rng(self.random_state),
        )
        note_effective_number(lessons.easiness * prepared.sample_weight, self.n_features_in_)
        rounds = self._first_round(prepared, lessons)
        objective, change = self._turn(rounds)
        self._store(prepared, rounds)
        self.objective_ = np.array(objective)
        self.n_rounds_ = len(objective)
        self.converged_ = change < self.tol and lessons.settled(self.tol)
        if not self.converged_:
            self._warn(change, lessons)
        return self

    def _warn(self, change: float, lessons: Lessons) -> None:
        if change < self.tol:
            message = lessons.still_changing()
        else:
            message = (
                f"probabilities still changed by {change:.2g} after {self.n_rounds_} rounds, more than "
                f"tol={self.tol:g}. Raise max_rounds or tol."
            )
        warn(message, CrowdConvergenceWarning)

    def _check_settings(self) -> None:
        is_auto = isinstance(self.l2, str) and self.l2 == "auto"
        if not (is_auto or (isinstance(self.l2, Real) and np.isfinite(float(self.l2)) and self.l2 >= 0)):
            raise ValueError(f'l2 must be a finite number >= 0 or "auto"; got {self.l2!r}.')
        if not (np.isfinite(self.class_prior) and self.class_prior >= 0):
            raise ValueError(f"class_prior must be a finite number >= 0; got {self.class_prior!r}.")
        if self.cross_fit != 0 and self.cross_fit < 2:
            raise ValueError(f"cross_fit must be 0 or at least 2 folds; got {self.cross_fit!r}.")
        check_rounds(self.max_rounds, self.tol)

    def _first_round(self, prepared: Prepared, lessons: Lessons) -> LogisticRounds:
        fold = content_folds(prepared.original.X, self.cross_fit) if self.cross_fit else None
        if fold is not None and (prepared.core.n_annotators == 1 or fold.max() == 0):
            fold = None  # one annotator's labels are the consensus, and one example cannot be left out
        annotators, posterior, joint = first_annotators(
            prepared.core, lessons.easiness * prepared.sample_weight, self.annotator_model, self.strength,
            kinds=self.kinds, joint=self.joint, init=self.init,
        )  # fmt: skip
        # Coordinates of a row space may be turned; what is found must not depend on how.
        scaling = Scaling.of(
            prepared.rows.X,
            prepared.sample_weight,
            centred=self.fit_intercept,
            alike=prepared.space is not None,
        )
        rounds = LogisticRounds(
            X=scaling.apply(prepared.rows.X),
            lessons=lessons,
            annotators=annotators,
            joint=joint,
            l2=np.zeros_like(scaling.size),
            class_prior=self.class_prior,
            fit_intercept=self.fit_intercept,
            fold=fold,
            posterior=posterior,
        )
        if self.warm_start and self._is_same_crowd(prepared):
            rounds.posterior = self._posterior(self._voice(prepared.original.X), prepared.core)
        if isinstance(self.l2, str):
            original = prepared.original.X
            variance = float((scaling.size**2).sum() / original.shape[1])  # however many coordinates stand for it
            self.l2_ = rounds.best_l2(content_folds(original, N_FOLDS), variance, scaling.size**-2)
        else:
            self.l2_ = float(self.l2)
        rounds.l2 = self.l2_ / scaling.size**2
        self._scaling = scaling
        return rounds

    def _is_same_crowd(self, prepared: Prepared) -> bool:
        return (
            hasattr(self, "confusion_")
            and np.array_equal(self.annotators_, prepared.labels.annotators)
            and np.array_equal(self.classes_, prepared.classes)
            and len(self._theta) == prepared.original.X.shape[1] + 1
            and not np.isnan(self.confusion_[prepared.heard]).any()
        )

    def _turn(self, rounds: LogisticRounds) -> tuple[list[float], float]:
        """Turn rounds until the posterior settles; one annotator has nobody to be compared with."""
        objective: list[float] = []
        change = np.inf
        alone = rounds.annotators.incidence.n_annotators == 1
        while len(objective) < self.max_rounds and not (change < self.tol and rounds.lessons.settled(self.tol)):
            votes = rounds.posterior
            value, change = rounds.turn()
            objective.append(value)
            if alone:
                rounds.posterior, change = votes, 0.0
        return objective, change

    def _store(self, prepared: Prepared, rounds: LogisticRounds) -> None:
        """Store what was learnt."""
        lesson = rounds.lessons.again(rounds.posterior)
        theta = self._scaling.undo(rounds.settled_classifier())
        self._theta = theta if prepared.space is None else prepared.space.to_features(theta)
        self.coef_, self.intercept_ = self._theta[:-1].T, self._theta[-1]
        self.classes_ = prepared.classes
        self.annotators_ = prepared.labels.annotators
        self._behaviour = rounds.annotators.behaviour.among(prepared.heard)
        self.confusion_ = self._behaviour.by_class()
        self.class_weight_ = lesson.class_weight
        self.temperature_ = rounds.temperature
        frequency = lesson.weight @ rounds.posterior
        self.class_prior_ = frequency / frequency.sum()
        self.expertise_ = probability_right(self.confusion_, self.class_prior_)
        self.disagreement_ = prepared.disagreement
        self.easiness_ = easiness(prepared.disagreement, self.steepness_)
        self._fingerprint = prepared.labels.fingerprint()
        self.consensus_proba_ = self._consensus_proba(prepared, rounds)
        self.consensus_ = self.classes_[self.consensus_proba_.argmax(axis=1)]
        self.consensus_confidence_ = self.consensus_proba_.max(axis=1)
        self.consensus_uses_model_ = True

    def _consensus_proba(self, prepared: Prepared, rounds: LogisticRounds) -> Floats:
        """Of all examples: those without labels have the classifier's probabilities."""
        if prepared.learnt.all():
            return rounds.posterior
        proba = np.empty((len(prepared.labels), len(self.classes_)))
        labelled = prepared.labels.labels_per_example > 0
        if not labelled.all():
            check_finite(prepared.unlabelled)
            proba[~labelled] = np.exp(self._voice(prepared.unlabelled))
        ignored = labelled & ~prepared.learnt
        if ignored.any():
            proba[ignored] = self._posterior(np.log(self.class_prior_), prepared.labels[ignored])
        proba[prepared.learnt] = rounds.posterior
        return proba

    def _voice(self, X: Any) -> Floats:
        """Logarithms of the classifier's probabilities as the consensus uses them."""
        return Voice(log_probabilities(X, self._theta), self.class_weight_, are_probabilities=True).at(1.0)

    def _posterior(self, log_prior: Floats, labels: CrowdLabels) -> Floats:
        """Probabilities of the classes by labels of annotators of the fit; unknown ones count as the crowd."""
        position = encode_declared(labels.annotators, self.annotators_).astype(np.int64)
        return expectation(log_prior, self._behaviour.of(position).log_likelihood(Incidence.of(labels)))[0]

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_examples, n_features)
            Features.

        Returns
        -------
        proba : ndarray of shape (n_examples, n_classes)
        """
        check_is_fitted(self)
        return np.exp(log_probabilities(checked(self, X), self._theta))

    def decision_function(self, X: Any) -> Floats:
        """Log-odds of the second of two classes; one column a class if there are more.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_examples, n_features)
            Features.

        Returns
        -------
        scores : ndarray of shape (n_examples,) or (n_examples, n_classes)
        """
        check_is_fitted(self)
        scores = np.asarray(checked(self, X) @ self._theta[:-1]) + self._theta[-1]
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def consensus(self, X: Any, labels: Any, use_model: bool = True) -> Consensus:
        """The consensus on any labelled examples; those of `fit` are recognised and have their fitted one.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_examples, n_features)
            Features.
        labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
            Labels by annotators of `fit`; one that `fit` did not see counts as the crowd's average.
        use_model : bool, default=True
            Whether the classifier has a voice; if not, the frequency of the classes takes its place.

        Returns
        -------
        consensus : Consensus
            With `label`, `confidence`, `score` (probabilities of all classes) and `uses_model`.
        """
        check_is_fitted(self)
        X, crowd = align(X, as_labels(labels))
        crowd = crowd.with_classes(self.classes_)
        log_prior = self._voice(checked(self, X))
        if use_model and crowd.fingerprint() == self._fingerprint:
            proba = self.consensus_proba_
        elif use_model:
            proba = self._posterior(log_prior, crowd)
        else:
            proba = self._posterior(np.log(self.class_prior_), crowd)
            silent = crowd.labels_per_example == 0
            proba[silent] = np.exp(log_prior[silent])
        return Consensus(self.classes_[proba.argmax(axis=1)], proba.max(axis=1), proba, use_model)
