"""Any scikit-learn classifier that takes weights, taught by a crowd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from crowdwise.arrays import Floats
from crowdwise.crowd.easiness import check_auto_steepness, example_weights
from crowdwise.crowd.flags import flag_annotators
from crowdwise.em.aggregate import expectation, probability_right
from crowdwise.em.confusion import Incidence
from crowdwise.em.first_annotators import Init, Joint
from crowdwise.em.hard_examples import Kinds
from crowdwise.em.held_out import HeldOut
from crowdwise.em.named_classes import labels_of_named, named_classes, weights_of_named
from crowdwise.em.soft_rounds import SoftFit, alternate, taken_at_their_word
from crowdwise.em.temperature import Voice
from crowdwise.em.weighted_copies import Learner, class_scores, has_probabilities, usable_weights, weight_parameter
from crowdwise.exceptions import warn
from crowdwise.labels.align import align, as_labels
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import encode_declared
from crowdwise.mixins import CrowdClassifierMixin
from crowdwise.ridge.preparation import Consensus, disagreement_of_all, participants
from crowdwise.weights.curricula import Curriculum, check_curriculum
from crowdwise.weights.round_weights import Lesson, Lessons


def _has(method: str) -> Callable[[Any], bool]:
    """Whether the estimator, the fitted one if there is one, has a method; raises its own error if not."""

    def check(self: Any) -> bool:
        getattr(getattr(self, "estimator_", self._base()), method)
        return True

    return check


class CrowdClassifier(CrowdClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Any classifier that takes `sample_weight`, learnt from the labels of many annotators.

    Each round estimates a confusion matrix for every annotator (drawn towards that of the crowd where labels are few),
    fits the classifier on weighted copies of the examples, one for every class that an example may be of, and
    weighs the annotators' labels and the classifier's probabilities into a new consensus. The classifier's voice is
    always that of a clone that has not seen the example, else a forest would agree with itself. It is as loud as makes
    the labels likeliest: scores (the logarithm of `predict_proba`; without that `decision_function`; without that one
    for the class of `predict`) are multiplied by a common factor, then turned into probabilities by a softmax.

    Parameters
    ----------
    estimator : classifier, default=None
        Anything with `fit(X, y, sample_weight)` and `predict`, or a pipeline that ends with it. None is a
        `LogisticRegression`. Is cloned; a `random_state` of None is replaced by a seed made of `random_state`.
    steepness : float or "auto", default="auto"
        How fast an example's weight falls with disagreement. 0 weights all alike; "auto" is 0 if contested labels can
        be told from the features by the classifier, as on most real crowds, else 3 to 6.
    curriculum : Fixed, Fading, Smooth, SelfPaced or None, default=None
        How the weights change from round to round; None is `Fixed()`. `SelfPaced` reads how far the classifier's
        probabilities are from the consensus, and has a threshold for every class, lest a rare one never enter.
    class_weight : dict, "balanced" or None, default=None
        What each class counts for the classifier; "balanced" gives all classes of the current consensus the same
        total. Predictions are of that classifier, as in scikit-learn. In the consensus, its probabilities have the
        weights divided out: there a rare class stays rare. A `class_weight` of the estimator itself is not divided out.
    cv : int, splitter or iterable of splits, default=5
        How examples are held out; all of them once. A number of folds deals out each class over the folds.
    strength : float, default=3.0
        How many labels of the crowd's quality are added to every row of an annotator's confusion matrix.
    kinds : int or "auto", default="auto"
        How many kinds of examples every class has, from easy to hard, see `aggregate`.
    joint : bool or "auto", default="auto"
        Whether annotators are judged by the consensus of labels and classifier, as by Raykar et al., or by labels
        alone. "auto" judges by labels alone if there are hard examples (`kinds` is above 1): features often tell what
        tempts annotators, and a classifier that has learnt their common errors would confirm them. The classifier has
        a voice in the consensus either way.
    init : {"labels", "votes"}, default="labels"
        The first consensus: that of labels alone, or the shares of the votes as by Raykar et al.
    max_rounds : int, default=15
        The most rounds; each fits the classifier once a fold.
    tol : float, default=0.01
        Stop when a round moves the consensus by no more than this, in probability, of the average example, and
        the curriculum is done with changing weights (`Fading` with c <= 1 never is).
    random_state : int, Generator or None, default=0
        Seed of the folds, of the estimator and of a curriculum that draws.
    n_jobs : int or None, default=None
        How many folds are learnt at the same time, by joblib; -1 is as many as there are cores. It changes no bit. An
        estimator that is parallel itself, such as a forest with `n_jobs`, gains little.

    Attributes
    ----------
    estimator_ : classifier
        Fitted on all examples.
    classes_ : ndarray of shape (n_classes,)
        The classes that have labels.
    annotators_ : ndarray of shape (n_annotators,)
        Names of the annotators.
    confusion_ : ndarray of shape (n_annotators, n_classes, n_classes)
        Probability of a label (last axis) when this is the truth (middle axis); NaN for annotators without labels.
    expertise_ : ndarray of shape (n_annotators,)
        Probability that an annotator is right on an average example; NaN for those without labels. A single annotator
        is taken at their word.
    annotator_flags_ : dict
        Annotators of whom something is remarkable: "no labels", "few labels", "worse than chance" or
        "same labels as ...".
    steepness_ : float
        The steepness given, or the one found.
    disagreement_ : ndarray of shape (n_examples,)
        Of the examples of `fit`.
    easiness_ : ndarray of shape (n_examples,)
        Their weights, as far as they come from disagreement.
    consensus_ : ndarray of shape (n_examples,)
        Their likeliest classes, by labels and classifier together.
    consensus_proba_ : ndarray of shape (n_examples, n_classes)
        Probability of every class.
    consensus_confidence_ : ndarray of shape (n_examples,)
        Probability of the class in `consensus_`.
    consensus_uses_model_ : bool
        Whether the classifier has a voice in it: always, unless there is one annotator.
    class_prior_ : ndarray of shape (n_classes,)
        How frequent each class is in the consensus.
    class_weight_ : ndarray of shape (n_classes,)
        What each class counted for `estimator_`; ones without `class_weight`.
    temperature_ : float
        The factor on the classifier's scores.
    n_rounds_ : int
        Rounds turned; none if there is one annotator.
    converged_ : bool
        Whether they settled within `tol`, with weights that stay.
    n_features_in_ : int
        Number of features, if the estimator tells.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the estimator tells.

    See Also
    --------
    CrowdRidgeClassifier : The paper's linear model; much faster.

    Notes
    -----
    An estimator that sets examples aside by itself, such as one with `early_stopping`, may find copies of one example
    on both sides: switch that off. A forest of few trees need not settle, because each round grows other trees from
    slightly other weights; more trees, or a larger `tol`, help.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from crowdwise import CrowdClassifier, simulate_annotators
    >>> X, truth = make_moons(200, noise=0.1, random_state=0)
    >>> labels = simulate_annotators(X, truth, 3, clarity=5.0, adversaries=1, random_state=0)
    >>> model = CrowdClassifier(RandomForestClassifier(20, min_samples_leaf=5)).fit(X, labels)
    >>> model.annotator_flags_
    {'adversary 1': ('worse than chance',)}
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        steepness: float | Literal["auto"] = "auto",
        curriculum: Curriculum | None = None,
        class_weight: dict[Any, float] | str | None = None,
        cv: Any = 5,
        strength: float = 3.0,
        kinds: Kinds = "auto",
        joint: Joint = "auto",
        init: Init = "labels",
        max_rounds: int = 15,
        tol: float = 0.01,
        random_state: int | np.random.Generator | None = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.steepness = steepness
        self.curriculum = curriculum
        self.class_weight = class_weight
        self.cv = cv
        self.strength = strength
        self.kinds = kinds
        self.joint = joint
        self.init = init
        self.max_rounds = max_rounds
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _base(self) -> Any:
        return LogisticRegression(max_iter=1000) if self.estimator is None else self.estimator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._base())
        tags.input_tags = inner.input_tags
        tags.non_deterministic = inner.non_deterministic
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from labelled examples.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_examples, n_features)
            Features: whatever the estimator takes.
        y : CrowdLabels, or array-like of shape (n_examples, n_annotators) or (n_examples,)
            Labels: a column per annotator, NaN or None where there is none.
        sample_weight : array-like of shape (n_examples,), default=None
            How often each example counts.

        Returns
        -------
        self : CrowdClassifier
        """
        base = self._base()
        weight_parameter(base)  # raises before work starts
        given = self._check_settings()
        curriculum = check_curriculum(self.curriculum)
        X, labels = _aligned(self, X, y)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        _, learnt, heard, core = participants(labels, weight, given or 0.0)
        classes = named_classes(core)
        class_weight = weights_of_named(self.class_weight, core, classes)
        core = core.with_classes(classes)
        differs = disagreement_of_all(labels, core, learnt, "observed")
        rows = X if learnt.all() else _safe_indexing(X, np.flatnonzero(learnt))
        learner = Learner(base, classes, rows, self.n_jobs)
        rng = np.random.default_rng(self.random_state)
        last_seed = int(rng.integers(2**31 - 1))
        held_out = HeldOut.of(self.cv, X, labels, learnt, core, rng)
        self.steepness_ = held_out.steepness(learner, core, differs[learnt], weight[learnt]) if given is None else given
        easiness = example_weights(differs, self.steepness_)
        easiness[learnt] = usable_weights(example_weights(differs[learnt], self.steepness_))
        lessons = Lessons(curriculum, easiness[learnt], weight[learnt], class_weight, rng)
        fitted = self._turn_rounds(learner, lessons, core, held_out)
        lesson = lessons.again(fitted.posterior)
        self.classes_ = classes
        self.estimator_ = learner.fit(lesson, np.arange(len(core)), last_seed)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        self.disagreement_, self.easiness_ = differs, easiness
        self._keep_annotators(labels, heard, fitted, lesson)
        self._keep_consensus(X, labels, learnt, fitted)
        return self

    def _check_settings(self) -> float | None:
        if not (np.isfinite(self.strength) and self.strength > 0):
            raise ValueError(f"strength must be a finite number of labels > 0; got {self.strength!r}.")
        if self.max_rounds < 1:
            raise ValueError(f"max_rounds must be at least 1; got {self.max_rounds!r}.")
        if not self.tol >= 0:
            raise ValueError(f"tol must be at least 0; got {self.tol!r}.")
        return check_auto_steepness(self.steepness)

    def _turn_rounds(self, learner: Learner, lessons: Lessons, core: CrowdLabels, held_out: HeldOut) -> SoftFit:
        if core.n_annotators == 1:
            return taken_at_their_word(core)
        return alternate(
            learner, lessons, core, held_out,
            strength=self.strength, kinds=self.kinds, joint=self.joint, init=self.init,
            max_rounds=self.max_rounds, tol=self.tol,
        )  # fmt: skip

    def _keep_annotators(self, labels: CrowdLabels, heard: NDArray[np.bool_], fitted: SoftFit, lesson: Lesson) -> None:
        self.annotators_ = labels.annotators
        self.class_prior_ = np.average(fitted.posterior, axis=0, weights=lesson.weight)
        self.class_weight_, self._n_learnt = lesson.class_weight, int((lesson.weight > 0).sum())
        self._behaviour = fitted.behaviour.among(heard)
        self.confusion_ = self._behaviour.by_class()
        self.expertise_ = probability_right(self.confusion_, self.class_prior_)
        by_chance = np.einsum("lkc,k,c->l", self.confusion_, self.class_prior_, self.class_prior_)
        self.annotator_flags_ = flag_annotators(labels, self.expertise_ - by_chance)
        self.temperature_ = fitted.temperature
        self.n_rounds_, self.converged_ = fitted.n_rounds, fitted.converged

    def _keep_consensus(self, X: Any, labels: CrowdLabels, learnt: NDArray[np.bool_], fitted: SoftFit) -> None:
        """The posterior of all examples; those that took no part have the voice of the final estimator."""
        labels = labels_of_named(labels, self.classes_)
        self._fingerprint = labels.fingerprint()
        proba = np.zeros((len(labels), len(self.classes_)))
        proba[learnt] = fitted.posterior
        others = np.flatnonzero(~learnt)
        if len(others):
            proba[others] = self._posterior(self._final_voice(_safe_indexing(X, others)), labels[others])
        self.consensus_proba_ = proba
        self.consensus_ = self.classes_[proba.argmax(axis=1)]
        self.consensus_confidence_ = proba.max(axis=1)
        self.consensus_uses_model_ = self.n_rounds_ > 0

    def _final_voice(self, X: Any) -> Floats:
        scores = class_scores(self.estimator_, X, self.classes_, self._n_learnt)
        return Voice(scores, self.class_weight_, has_probabilities(self.estimator_)).at(self.temperature_)

    def _posterior(self, log_prior: Floats, labels: CrowdLabels) -> Floats:
        """The probability of every class; annotators whom the fit does not know are like the crowd."""
        position = encode_declared(labels.annotators, self.annotators_).astype(np.int64)
        return expectation(log_prior, self._behaviour.of(position).log_likelihood(Incidence.of(labels)))[0]

    def predict(self, X: Any) -> NDArray[Any]:
        """The class that the estimator predicts.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_examples, n_features)
            Features.

        Returns
        -------
        classes : ndarray of shape (n_examples,)
        """
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict(X))

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Probability of every class, if the estimator has it.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_examples, n_features)
            Features.

        Returns
        -------
        probability : ndarray of shape (n_examples, n_classes)
        """
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict_proba(X))

    @available_if(_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Floats:
        """Scores, if the estimator has them.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_examples, n_features)
            Features.

        Returns
        -------
        scores : ndarray of shape (n_examples,) or (n_examples, n_classes)
        """
        check_is_fitted(self)
        return np.asarray(self.estimator_.decision_function(X))

    def consensus(self, X: Any, labels: Any, use_model: bool = True) -> Consensus:
        """The consensus on any labelled examples, with the estimator as one more voice.

        The examples of `fit` are recognised by their labels; each then has the voice of an estimator that has not seen
        it. An annotator that `fit` did not see counts as the crowd does.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_examples, n_features)
            Features.
        labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
            Labels by annotators of `fit`.
        use_model : bool, default=True
            Whether the estimator has a voice; if not, classes are as frequent beforehand as in the consensus of `fit`.
            Examples without labels always have the estimator's voice.

        Returns
        -------
        consensus : Consensus
            With `label`, `confidence`, `score` (the probability of every class) and `uses_model`.
        """
        check_is_fitted(self)
        X, crowd = align(indexable(X)[0], as_labels(labels))
        crowd = crowd.with_classes(self.classes_)
        if use_model and crowd.fingerprint() == self._fingerprint:
            proba = self.consensus_proba_
        elif use_model:
            proba = self._posterior(self._final_voice(X), crowd)
        else:
            proba = self._posterior(np.log(self.class_prior_), crowd)
            silent = np.flatnonzero(crowd.labels_per_example == 0)
            if len(silent):
                proba[silent] = np.exp(self._final_voice(_safe_indexing(X, silent)))
        return Consensus(self.classes_[proba.argmax(axis=1)], proba.max(axis=1), proba, use_model)


def _aligned(estimator: Any, X: Any, y: Any) -> tuple[Any, CrowdLabels]:
    """Features that rows can be taken from and the labels of the same rows."""
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None."
        )
    if isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] == 1:
        warn(
            "A column-vector y was passed when a 1d array was expected: it is taken as the labels of one annotator.",
            DataConversionWarning,
        )
    return align(indexable(X)[0], as_labels(y))
