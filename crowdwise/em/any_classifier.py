"""Any scikit-learn classifier that takes weights, fitted to the labels of a crowd."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from crowdwise._arrays import Array, Floats
from crowdwise._checks import check_seed
from crowdwise._progress import OnRound, Reporter
from crowdwise._threads import one_blas_thread
from crowdwise.crowd._disagreement import example_weights
from crowdwise.em.confusion import AnnotatorModel
from crowdwise.em.estimators import (
    EstimatorFolds,
    EstimatorModels,
    Learner,
    check_numbers,
    class_scores,
    has_probabilities,
    probabilities_by_class,
    scores_by_class,
    soft_targets,
    splits_of,
    taught_classes,
    usable_weights,
    weight_parameter,
    with_places_of_nan,
)
from crowdwise.em.fitted import FittedAnnotators, counting_of
from crowdwise.em.labels_only import fit_labels
from crowdwise.em.ordinal import model_of_annotators
from crowdwise.em.with_features import (
    FitData,
    RoundWeights,
    check_settings,
    curriculum_of,
    fit_with_features,
    results_with_features,
)
from crowdwise.labels._align import align, as_labels, with_ids_of
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.truth import known_answers
from crowdwise.mixins import CrowdMixin, all_or_nothing
from crowdwise.probabilities import Scaling
from crowdwise.results.consensus import Consensus
from crowdwise.rows.chunks import MemoryChunks, Stored
from crowdwise.training_set import TrainingSet, check_y, warn_if_few_effective
from crowdwise.weights.class_weights import weights_of_classes
from crowdwise.weights.curricula import Curriculum
from crowdwise.weights.steepness import counts_of

# Rounds at most, where they go on to convergence.
_MOST_ROUNDS = 15


def _has(method: str) -> Callable[[Any], bool]:
    """Whether the estimator, the fitted one if there is one, has a method; raises its own error if not."""

    def check(self: Any) -> bool:
        getattr(getattr(self, "estimator_", self._base()), method)
        return True

    return check


@dataclass(frozen=True, eq=False)
class FittedEstimator:
    """Everything that a fitted model needs to give a consensus on examples.

    Parameters
    ----------
    annotators : FittedAnnotators
        How the annotators of the fit answer.
    estimator : classifier
        Fitted on all examples.
    class_weight : ndarray of shape (n_classes,)
        What each class counted for the estimator.
    scaling : Scaling
        What makes log-probabilities of its scores.
    n_used : float
        How many examples it was fitted to, each as often as it counted.
    """

    annotators: FittedAnnotators
    estimator: Any
    class_weight: Floats
    scaling: Scaling
    n_used: float

    def log_prior(self, X: Any) -> Floats:
        """Logarithms of the estimator's probabilities as the consensus uses them."""
        scores = class_scores(self.estimator, X, self.annotators.classes, self.n_used)
        if has_probabilities(self.estimator):
            scores = scores - np.log(self.class_weight)
        return self.scaling.log_proba(scores)

    def consensus(self, X: Any, labels: CrowdLabels, *, use_model: bool = True) -> Consensus:
        """The consensus on any labelled examples."""
        return self.annotators.consensus(labels, self.log_prior(X), use_model=use_model)


class CrowdClassifier(CrowdMixin, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Any classifier that takes `sample_weight`, learned from the labels of many annotators.

    Each round estimates how every annotator answers, fits the classifier on weighted copies of the examples, one for
    every class that an example may be of, and combines the annotators' labels and the classifier's probabilities into a
    new consensus. The probabilities are always out of fold, from a clone that has not seen the example. They have the
    temperature that makes the labels most probable: scores (the logarithm of `predict_proba`; without that
    `decision_function`; without that one for the class of `predict`) are multiplied by a common factor, then turned
    into probabilities by a softmax.

    Parameters
    ----------
    estimator : classifier, default=None
        Anything with `fit(X, y, sample_weight)` and `predict`, or a pipeline that ends with it. None is a
        `LogisticRegression` that copes with features far from zero. Is cloned; a `random_state` of None is replaced by
        a seed made of `random_state`.
    steepness : float, default=0.0
        How fast an example's weight falls with disagreement. 0 weights all equally; see `diagnose`.
    curriculum : Fixed, Fading, Smooth, SelfPaced or None, default=None
        How the weights change from round to round, by an object of `crowdwise.weights`; None is `Fixed()`. `SelfPaced`
        reads how far the classifier's probabilities are from the consensus, and has a threshold for every class, lest
        a rare one never enter.
    class_weight : dict, "balanced" or None, default=None
        Weight of each class for the classifier; "balanced" gives all classes of the current consensus the same
        total. Predictions come from that classifier, as in scikit-learn. In the consensus, its probabilities have the
        weights divided out: there a rare class stays rare. A `class_weight` of the estimator itself is not divided out.
    cv : int, splitter or iterable of splits, default=5
        How examples are held out; all of them once. A number of folds is dealt out by the content of the rows.
    annotator_model : Shared, Confusion, OneCoin, Ordinal or None, default=None
        What is estimated for each annotator: a confusion matrix shrunk towards the crowd's (`Shared`, the default), a
        separate one, how often they are right, or how far they are above or below the truth (`Ordinal`). See
        `crowdwise.em`.
    errors_in_common : bool, default=True
        Whether annotators may make the same errors, see `aggregate`.
    max_rounds : int or None, default=None
        Maximum number of rounds, each with a fit of the classifier per fold; by default two, or fifteen if errors are
        assumed to be independent or the curriculum changes weights.
    tol : float, default=0.01
        Stop when the probabilities of the average example change by no more than this and the curriculum is done with
        changing weights (`Fading` with c <= 1 never is).
    random_state : int, Generator or None, default=0
        Seed of the folds, of the estimator and of a curriculum that draws.
    n_jobs : int or None, default=None
        How many folds are fitted at the same time, by joblib; -1 uses all cores. Results are bit-identical. An
        estimator that is parallel itself, such as a forest with `n_jobs`, gains little.
    verbose : int, default=0
        0 prints nothing, 1 one line at the end, 2 also one line per round, on standard error.

    Attributes
    ----------
    estimator_ : classifier
        Fitted on all examples. Knows positions in `classes_` if scikit-learn takes no such classes: dates, fractions.
    classes_ : ndarray of shape (n_classes,)
        The classes that have labels.
    examples_ : ndarray of shape (n_examples,)
        Identifiers of the examples of `fit`.
    consensus_ : ndarray of shape (n_examples,)
        Their most probable classes, by labels and classifier together, the classifier's part being out of fold.
    consensus_proba_ : ndarray of shape (n_examples, n_classes)
        Probability of every class.
    consensus_confidence_ : ndarray of shape (n_examples,)
        Probability of the class in `consensus_`, calibrated if `fit` was given truths; if not, allowing for errors that
        annotators have in common.
    annotators_ : ndarray of shape (n_annotators,)
        Names of the annotators.
    confusion_ : ndarray of shape (n_annotators, n_classes, n_classes)
        Probability of a label (last axis) when this is the truth (middle axis); NaN for annotators without labels.
    accuracy_ : ndarray of shape (n_annotators,)
        Probability that an annotator is right; NaN for those without labels, and for all if no two share an example.
    expertise_ : ndarray of shape (n_annotators,)
        A precision: one over the mean squared error that goes with the accuracy.
    annotator_flags_ : dict
        Warnings per annotator.
    choices_ : tuple of Choice
        Automatic decisions of the fit, with score, limit and reason.
    disagreement_ : ndarray of shape (n_examples,)
        How much the annotators of each example disagree.
    steepness_ : float
        The steepness.
    class_prior_ : ndarray of shape (n_classes,)
        How frequent each class is in the consensus.
    class_weight_ : ndarray of shape (n_classes,)
        Weight of each class for `estimator_`; ones without `class_weight`.
    temperature_ : float
        The factor on the classifier's scores.
    objective_ : ndarray of shape (n_rounds,)
        Log-likelihood plus log priors after every round. Being out of fold, it may fall.
    n_rounds_ : int
        Number of rounds.
    converged_ : bool
        False if rounds should have converged within `tol` but did not.
    truth_check_ : TruthCheck or None
        Accuracy of the consensus on held-out truths, its interval, and how many more truths would be needed. None
        without truths.
    results_ : FitResults
        All results about the examples and annotators of `fit` in one record.
    fitted_ : FittedEstimator
        What is needed for a consensus on other examples.
    n_features_in_ : int
        Number of features, if the estimator has it.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the estimator has it.

    See Also
    --------
    CrowdRidgeClassifier : The paper's linear model; much faster.

    Notes
    -----
    An estimator that sets examples aside by itself, such as one with `early_stopping`, may find copies of one example
    on both sides: switch that off. A forest of few trees may not converge, because each round grows other trees from
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

    fitted_: FittedEstimator

    def __init__(
        self,
        estimator: Any = None,
        *,
        steepness: float = 0.0,
        curriculum: Curriculum | None = None,
        class_weight: dict[Any, float] | str | None = None,
        cv: Any = 5,
        annotator_model: AnnotatorModel | None = None,
        errors_in_common: bool = True,
        max_rounds: int | None = None,
        tol: float = 0.01,
        random_state: int | np.random.Generator | None = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.steepness = steepness
        self.curriculum = curriculum
        self.class_weight = class_weight
        self.cv = cv
        self.annotator_model = annotator_model
        self.errors_in_common = errors_in_common
        self.max_rounds = max_rounds
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _base(self) -> Any:
        return LogisticRegression(max_iter=1000) if self.estimator is None else self.estimator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self._base())
        tags.input_tags = inner.input_tags
        tags.non_deterministic = inner.non_deterministic
        return tags

    @all_or_nothing
    @with_places_of_nan
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        truth: Any = None,
        *,
        on_round: OnRound | None = None,
    ) -> Self:
        """Learn from labelled examples.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_examples, n_features)
            Features: whatever the estimator takes.
        y : CrowdLabels, or array-like of shape (n_examples, n_annotators) or (n_examples,)
            Labels: a column per annotator, NaN or None where there is none. An order of classes, groups of annotators
            and abstentions come with them, see `aggregate`; the estimator itself does not use the order.
        sample_weight : array-like of shape (n_examples,), default=None
            How often each example counts.
        truth : array-like of shape (n_examples,), series, mapping or frame, default=None
            The true classes of some examples, None or NaN elsewhere; anything with ids names those of the examples.
            They are learned from as certain, and all others' confidence is calibrated by them, each truth being held
            out; see `aggregate`.
        on_round : callable, default=None
            Called with a `Round` after every round: number, objective, change, seconds and stage.

        Returns
        -------
        self : CrowdClassifier
        """
        weight_parameter(self._base())  # raises before work starts
        check_settings(self)
        reporter = Reporter("CrowdClassifier", self.verbose, on_round)
        X, labels = align(indexable(X)[0], check_y(self, y))
        check_numbers(X, self._base())
        answers = known_answers(truth, X, labels)
        training = TrainingSet.of(
            X, labels, sample_weight, truth=answers, weighting=self.steepness > 0, one_class=True
        ).of_named_classes()
        with one_blas_thread():  # threads must change no bit
            self._fit(training, labels, reporter)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        reporter.done()
        return self

    def _fit(self, training: TrainingSet, declared: CrowdLabels, reporter: Reporter) -> None:
        """Annotators from labels, then rounds of labels and classifier, then one classifier of all examples."""
        rng = check_seed(self.random_state)
        last_seed = int(rng.integers(2**31 - 1))
        learner = Learner(
            self._base(), training.classes, training.rows, self.n_jobs, counts_of(training.sample_weight),
            around_mean=self.estimator is None, one_class=len(training.named_classes) == 1,
        )  # fmt: skip
        splits = splits_of(self.cv, training)
        folds = EstimatorFolds(learner, splits, rng.integers(2**31 - 1, size=len(splits)).tolist())
        labels, curriculum = training.used_labels, curriculum_of(self.curriculum, self.steepness)
        chunks = MemoryChunks.of(labels, training.sample_weight, None, training.used_truth, whole=True)
        easiness = usable_weights(example_weights(training.weighing_disagreement, self.steepness))
        for name, values in (("position", np.arange(len(labels))), ("easiness", easiness)):
            chunks.put(name, values)
        n_features = training.X.shape[1] if getattr(training.X, "ndim", 1) == 2 else 0
        warn_if_few_effective(easiness * training.sample_weight, n_features)
        class_weight = weights_of_classes(self.class_weight, declared, training.classes)
        weights = RoundWeights(chunks, Stored("easiness"), class_weight, curriculum, rng)
        model = model_of_annotators(self.annotator_model, training.labels)
        counting = counting_of(training.labels, labels, independent=not self.errors_in_common)
        labels_fit = fit_labels(chunks, counting, model, report=reporter.rounds("labels"))
        fit = fit_with_features(
            FitData(chunks, chunks.chunks[0], training.labels, training.active), labels_fit,
            EstimatorModels(folds, chunks), weights, model, max_rounds=self.max_rounds, most_rounds=_MOST_ROUNDS,
            tol=self.tol, report=reporter.rounds("labels and features"),
        )  # fmt: skip
        targets, everyone = soft_targets(chunks, fit.targets), np.arange(len(labels))
        self.estimator_ = learner.fit(targets, everyone, last_seed) or learner.of_one_class(targets)
        n_used = learner.n_used(targets.weight, everyone)
        fitted = FittedEstimator(fit.annotators, self.estimator_, targets.class_weight, fit.scaling, n_used)
        results = results_with_features(training, chunks, fit, fitted.log_prior, self.steepness)
        self.fitted_ = replace(fitted, annotators=results.fitted)
        self._keep(results)
        self.temperature_, self.class_weight_ = fit.scaling.temperature, targets.class_weight
        self.confusion_, self.class_prior_ = fit.annotators.confusion, fit.annotators.class_prior

    def predict(self, X: Any) -> Array:
        """The class that the estimator predicts.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_examples, n_features)
            Features.

        Returns
        -------
        classes : ndarray of shape (n_examples,)
        """
        predicted, taught = self._asked(X, "predict"), taught_classes(self.classes_)
        return predicted if taught is self.classes_ else self.classes_[predicted]

    @available_if(_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Probability of every class in the order of `classes_`, if the estimator has it.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_examples, n_features)
            Features.

        Returns
        -------
        probability : ndarray of shape (n_examples, n_classes)
        """
        return probabilities_by_class(self._asked(X, "predict_proba"), self.estimator_, self.classes_)

    @available_if(_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Floats:
        """Scores, if the estimator has them, in the order of `classes_`; those of pairs of classes are in its own.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_examples, n_features)
            Features.

        Returns
        -------
        scores : ndarray of shape (n_examples,) or (n_examples, n_classes)
        """
        return scores_by_class(self._asked(X, "decision_function"), self.estimator_, self.classes_)

    @with_places_of_nan
    def _asked(self, X: Any, method: str) -> Array:
        """What the fitted estimator answers for examples."""
        check_is_fitted(self)
        check_numbers(X, self._base())
        return np.asarray(getattr(self.estimator_, method)(X))

    @with_places_of_nan
    def consensus(self, X: Any, labels: Any, use_model: bool = True) -> Consensus:
        """The consensus on any labelled examples, by the annotators and the estimator of the fit.

        The consensus on the examples of `fit` is in `consensus_`, the estimator's part in it being out of fold.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_examples, n_features)
            Features.
        labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
            Labels by annotators of `fit`; one that `fit` did not see counts as the crowd's average.
        use_model : bool, default=True
            Whether the estimator counts; if not, the frequency of the classes takes its place, except on examples
            without labels.

        Returns
        -------
        consensus : Consensus
            With `examples`, `label`, `confidence` and `proba`.
        """
        check_is_fitted(self)
        X, crowd = align(indexable(X)[0], as_labels(labels))
        check_numbers(X, self._base())
        return self.fitted_.consensus(X, with_ids_of(X, crowd), use_model=use_model)
