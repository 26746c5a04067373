"""Logistic regression and confusion matrices, estimated together from the labels of a crowd."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from crowdwise._arrays import Array, Floats
from crowdwise._checks import check_choice, check_number, check_seed, check_whole
from crowdwise._progress import OnRound, Reporter
from crowdwise._threads import one_blas_thread
from crowdwise.crowd._disagreement import example_weights
from crowdwise.em.confusion import AnnotatorModel
from crowdwise.em.fitted import counting_of
from crowdwise.em.labels_only import fit_labels
from crowdwise.em.ordinal import model_of_annotators
from crowdwise.em.with_features import (
    FeaturesFit,
    RoundWeights,
    check_settings,
    curriculum_of,
    fit_with_features,
    results_with_features,
    vote_shares,
)
from crowdwise.labels._align import align, as_labels, with_ids_of
from crowdwise.labels.truth import known_answers
from crowdwise.logistic.fit import (
    FittedLogistic,
    FoldedLogistic,
    LogisticData,
    data_in_memory,
    data_of_chunks,
    easiness_of,
)
from crowdwise.mixins import CrowdMixin, all_or_nothing
from crowdwise.probabilities import log_softmax
from crowdwise.results.consensus import Consensus, chosen_classes
from crowdwise.rows.chunks import MemoryChunks, ReadChunks, Stored, chunks_of, recoded
from crowdwise.rows.features import check_finite, check_new, is_dask
from crowdwise.rows.read import Blocks
from crowdwise.rows.summary import DataSummary
from crowdwise.training_set import TrainingSet, check_features, warn_if_few_effective, warn_if_unlabelled
from crowdwise.weights.class_weights import weights_of_classes
from crowdwise.weights.curricula import Curriculum, check_curriculum

# How close to the lowest loss classifiers are fitted; few features times rows cost next to nothing, and are fitted to
# many digits: a row that counts twice is then as good as two.
_CLOSE, _CLOSER, _FEW_ENTRIES = 1e-4, 1e-11, 2**18
# Rounds at most, where they go on to convergence.
_MOST_ROUNDS = 100


class CrowdLogisticClassifier(CrowdMixin, ClassifierMixin, BaseEstimator):
    """Logistic regression and a model of each annotator, estimated together from labels of many annotators.

    After Raykar et al. (2010), for any number of classes, and made more robust: the classifier is fitted to vote shares
    and then to the consensus of labels and out-of-fold classifier, and annotators are estimated in a few rounds
    anchored at the votes. Raykar's model is ``CrowdLogisticClassifier(annotator_model=Confusion(),
    errors_in_common=False, cross_fit=0)``.

    Parameters
    ----------
    steepness : float, default=0.0
        How fast an example's weight falls with disagreement. 0 weights all equally; see `diagnose`.
    l2 : float or "auto", default="auto"
        Strength of the penalty on the coefficients; one over scikit-learn's C. "auto" takes the one, of a grid
        relative to the curvature of the loss, that predicts the vote shares of held-out examples best.
    annotator_model : Shared, Confusion, OneCoin, Ordinal or None, default=None
        What is estimated for each annotator, see `aggregate`.
    errors_in_common : bool, default=True
        Whether annotators may make the same errors, see `aggregate`. False is the model of Raykar et al., with rounds
        to convergence.
    init : {"votes", "labels"} or ndarray of shape (n_examples, n_classes), default="votes"
        What the classifier is fitted to first: vote shares, the posterior of labels only, or probabilities of the
        classes of all examples, such as `consensus_proba_` of an earlier fit.
    cross_fit : int, default=5
        Number of folds: an example's class probabilities are out of fold, from a classifier that has not seen it. 0 is
        one classifier for all, as by Raykar et al.
    curriculum : Fixed, Fading, Smooth, SelfPaced or None, default=None
        How the weights change from round to round, by an object of `crowdwise.weights`; None is `Fixed()`. `SelfPaced`
        reads how far the classifier's probabilities are from the consensus, with a threshold for every class.
    class_weight : dict, "balanced" or None, default=None
        Weight of each class for the classifier; "balanced" gives all classes of the current consensus the same
        total. `predict_proba` comes from that classifier, as in scikit-learn. In the consensus, the classifier's
        probabilities have the weights divided out: there a rare class stays rare.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is not penalised.
    max_rounds : int or None, default=None
        Maximum number of rounds, each with a fit of the classifier; by default two, or a hundred if errors are assumed
        to be independent or the curriculum changes weights.
    tol : float, default=0.0001
        Stop when the probabilities of the average example change by no more than this and the curriculum is done with
        changing weights (`Fading` with c <= 1 never is).
    random_state : int, Generator or None, default=None
        Seed for a curriculum that draws.
    verbose : int, default=0
        0 prints nothing, 1 one line at the end, 2 also one line per round, on standard error.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    classes_ : ndarray of shape (n_classes,)
        The classes.
    examples_ : ndarray of shape (n_examples,)
        Identifiers of the examples of `fit`.
    consensus_ : ndarray of shape (n_examples,)
        Their most probable classes, by labels and classifier together, the classifier's part being out of fold.
    consensus_proba_ : ndarray of shape (n_examples, n_classes)
        Probabilities of all classes.
    consensus_confidence_ : ndarray of shape (n_examples,)
        Probability of the class in `consensus_`, calibrated if `fit` was given truths; if not, allowing for errors that
        annotators have in common.
    annotators_ : ndarray of shape (n_annotators,)
        Names of the annotators.
    confusion_ : ndarray of shape (n_annotators, n_classes, n_classes)
        Probability that an annotator answers c (last axis) if the truth is k; NaN for annotators without labels.
    accuracy_ : ndarray of shape (n_annotators,)
        Probability that an annotator is right; NaN for those without labels.
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
    l2_ : float
        The l2 given, or the one found.
    class_prior_ : ndarray of shape (n_classes,)
        How frequent each class is among the examples of `fit`.
    class_weight_ : ndarray of shape (n_classes,)
        What each class counted for the classifier; ones without `class_weight`.
    temperature_ : float
        The factor on the classifier's scores that makes the labels most probable (temperature scaling); `coef_` has it
        in it. 1 with `cross_fit=0`.
    objective_ : ndarray of shape (n_rounds,)
        Log-likelihood plus log priors after every round.
    n_rounds_ : int
        Number of rounds of labels and features.
    converged_ : bool
        False if rounds should have converged within `tol` but did not.
    n_passes_ : int
        How often all blocks were read, after a fit on blocks.
    truth_check_ : TruthCheck or None
        Accuracy of the consensus on held-out truths, its interval, and how many more truths would be needed. None
        without truths.
    results_ : FitResults
        All results about the examples and annotators of `fit` in one record; about annotators, after a fit on
        blocks.
    fitted_ : FittedLogistic
        What scores and gives a consensus on other examples, in one record.
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
    >>> str(model.annotators_[model.accuracy_.argmin()])
    'adversary 1'
    """

    fitted_: FittedLogistic
    steepness_: float
    l2_: float
    n_features_in_: int
    feature_names_in_: Array

    def __init__(
        self,
        steepness: float = 0.0,
        *,
        l2: float | Literal["auto"] = "auto",
        annotator_model: AnnotatorModel | None = None,
        errors_in_common: bool = True,
        init: Any = "votes",
        cross_fit: int = 5,
        curriculum: Curriculum | None = None,
        class_weight: dict[Any, float] | str | None = None,
        fit_intercept: bool = True,
        max_rounds: int | None = None,
        tol: float = 1e-4,
        random_state: int | np.random.Generator | None = None,
        verbose: int = 0,
    ) -> None:
        self.steepness = steepness
        self.l2 = l2
        self.annotator_model = annotator_model
        self.errors_in_common = errors_in_common
        self.init = init
        self.cross_fit = cross_fit
        self.curriculum = curriculum
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.max_rounds = max_rounds
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        truth: Any = None,
        *,
        on_round: OnRound | None = None,
    ) -> Self:
        """Learn from labelled examples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_examples, n_features), Blocks or Dask collection
            Features; or what `read_blocks` makes of data that need not fit into memory. Blocks are read once per round.
            What has to be chosen is chosen on a sample of at most 20,000 examples, and results about single examples
            are not kept: `consensus` gives them.
        y : CrowdLabels, or array-like of shape (n_examples, n_annotators) or (n_examples,), default=None
            Labels: a column per annotator, NaN or None where there is none. Blocks have their own. An order of classes,
            groups of annotators and abstentions come with labels, see `aggregate`; the classifier does not use the
            order, `predict` and the consensus do.
        sample_weight : array-like of shape (n_examples,), default=None
            How often each example counts.
        truth : array-like of shape (n_examples,), series, mapping or frame, default=None
            The true classes of some examples, None or NaN elsewhere; anything with ids names those of the examples.
            The classifier is fitted to them, and the probabilities of all others are calibrated by them, each held out;
            see `aggregate`.
        on_round : callable, default=None
            Called with a `Round` after every round: number, objective, change, seconds and stage.

        Returns
        -------
        self : CrowdLogisticClassifier
        """
        self._check_settings()
        reporter = Reporter("CrowdLogisticClassifier", self.verbose, on_round)
        with one_blas_thread():  # products here are too thin to be shared, and threads must change no bit
            if is_dask(X) or isinstance(X, Blocks):
                if truth is not None:
                    raise ValueError(
                        "known answers are held out example by example, and examples of blocks and Dask collections "
                        "are not kept. Give them as the labels of one more annotator, or fit in memory."
                    )
                self._fit_chunks(chunks_of(X, y, sample_weight), reporter)
            else:
                self._fit_memory(X, y, sample_weight, truth, reporter)
        reporter.done()
        return self

    def _fit_memory(self, X: Any, y: Any, sample_weight: Any, truth: Any, reporter: Reporter) -> None:
        features, labels = check_features(self, X, y)
        check_finite(features)
        answers = known_answers(truth, X, labels)
        training = TrainingSet.of(
            features, labels, sample_weight, truth=answers, weighting=self.steepness > 0, one_class=True
        )
        data = data_in_memory(training, self.cross_fit, self.init, fit_intercept=self.fit_intercept)
        weight = example_weights(training.weighing_disagreement, self.steepness) * training.sample_weight
        warn_if_few_effective(weight, self.n_features_in_)
        fit = self._fit(data, reporter)
        assert isinstance(data.chunks, MemoryChunks)
        results = results_with_features(training, data.chunks, fit, self.fitted_.log_prior, self.steepness)
        self.fitted_ = replace(self.fitted_, annotators=results.fitted)
        self._keep(results)

    def _fit_chunks(self, chunks: ReadChunks, reporter: Reporter) -> None:
        """Learn from chunks that are read again in every pass; no example is kept."""
        if not check_curriculum(self.curriculum).is_mixture:
            raise ValueError(
                f"curriculum={self.curriculum!r} ranks the examples in every round, and blocks are not kept. Use "
                "Fixed(), Smooth(...) or Fading(...), or fit in memory."
            )
        if not isinstance(self.init, str) or self.init != "votes":
            raise ValueError("init needs examples in memory, and blocks are not kept. Use 'votes'.")
        summary = chunks.total(DataSummary.of)
        summary.check()
        warn_if_unlabelled(summary.n_unlabelled, summary.n_examples + summary.n_unlabelled)
        if summary.is_complete:
            rows = summary.with_groups()
            self._fit_memory(rows.X, rows.labels, rows.weight, None, reporter)
            results = self.results_
        else:
            data = data_of_chunks(chunks, summary, self.cross_fit, fit_intercept=self.fit_intercept)
            fit = self._fit(data, reporter)
            self.n_features_in_ = summary.n_features
            sample = recoded(data.sample.labels, summary.annotators, summary.classes)
            results = replace(
                self.fitted_.annotators.results(sample, summary.labels_per_annotator), steepness=self.steepness,
                objective=fit.objective, converged=fit.converged,
            )  # fmt: skip
        if "feature_names_in_" in vars(self):
            del self.feature_names_in_
        if summary.feature_names is not None:
            self.feature_names_in_ = np.array(summary.feature_names, dtype=object)
        self._keep(results.without_examples(summary.n_examples))
        assert summary.classes is not None
        self.n_passes_, self.classes_ = chunks.n_passes, summary.classes

    def _fit(self, data: LogisticData, reporter: Reporter) -> FeaturesFit:
        """Annotators from labels, then rounds of labels and classifier, then one classifier of all rows."""
        classes, curriculum = data.sample.labels.classes, curriculum_of(self.curriculum, self.steepness)
        assert classes is not None
        class_weight = weights_of_classes(self.class_weight, data.sample.labels, classes)
        model = model_of_annotators(self.annotator_model, data.labels)
        counting = counting_of(data.labels, data.sample.labels, independent=not self.errors_in_common)
        easiness = easiness_of(data.disagreement, float(self.steepness))
        weights = RoundWeights(data.chunks, easiness, class_weight, curriculum, check_seed(self.random_state))
        labels_fit = fit_labels(data.chunks, counting, model, tol=self.tol, report=reporter.rounds("labels"))
        chosen = self.l2 == "auto"
        l2 = data.features.variance if chosen else data.features.penalty(float(self.l2))
        close = _CLOSER if isinstance(data.chunks, MemoryChunks) and data.sample.X.size < _FEW_ENTRIES else _CLOSE
        classifier = FoldedLogistic(data.chunks, data.rows, data.sample, l2, min(close, self.tol))
        if chosen and data.rows.n_folds:
            classifier.choose_l2(weights.targets(vote_shares(counting)), data.features.variance)
        init = self.init if isinstance(self.init, str) else Stored("init")
        fit = fit_with_features(
            data, labels_fit, classifier, weights, model, init=init,
            scaled=data.rows.n_folds > 0, max_rounds=self.max_rounds, most_rounds=_MOST_ROUNDS, tol=self.tol,
            offsets=self.fit_intercept, report=reporter.rounds("labels and features"),
        )  # fmt: skip
        self.class_weight_, self.temperature_ = fit.targets.class_weight, fit.scaling.temperature
        theta = classifier.of_all_rows(fit.targets) * self.temperature_
        if self.fit_intercept:  # what classes count is not what the classifier fit, and has no temperature
            offset = fit.scaling.offset + (1 - self.temperature_) * np.log(self.class_weight_)
            theta[-1] += offset[1:] - offset[0] if theta.shape[1] == 1 else offset
        coef, intercept, shift = data.features.undo(theta)
        self.fitted_ = FittedLogistic(fit.annotators, coef, intercept, shift, self.class_weight_)
        self.coef_, self.intercept_ = coef.T, intercept if shift is None else intercept - shift @ coef
        self.confusion_, self.class_prior_ = fit.annotators.confusion, fit.annotators.class_prior
        self.l2_ = data.features.penalty_as_given(classifier.l2)
        return fit

    def _check_settings(self) -> None:
        check_settings(self)
        check_number("l2", self.l2, auto=True)
        check_choice("fit_intercept", self.fit_intercept, (True, False))
        if isinstance(self.init, str):
            check_choice("init", self.init, ("votes", "labels"))
        if check_whole("cross_fit", self.cross_fit, low=0) == 1:
            raise ValueError("cross_fit must be 0 or at least 2 folds; got 1.")

    def _classes_of(self, X: Any) -> Array:
        annotators = self.fitted_.annotators
        if annotators.levels is None:
            return super()._classes_of(X)
        return self.classes_[chosen_classes(self.predict_proba(X), annotators.scale.consensus, annotators.levels)]

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
        return np.exp(log_softmax(self.fitted_.scores(check_new(self, X))))

    def decision_function(self, X: Any) -> Floats:
        """Log-odds of the second of two classes; one column per class if there are more.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_examples, n_features)
            Features.

        Returns
        -------
        scores : ndarray of shape (n_examples,) or (n_examples, n_classes)
        """
        check_is_fitted(self)
        scores = self.fitted_.scores(check_new(self, X))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def consensus(self, X: Any, labels: Any, use_model: bool = True) -> Consensus:
        """The consensus on any labelled examples, by the annotators and the classifier of the fit.

        The consensus on the examples of `fit` is in `consensus_`, the classifier's part in it being out of fold.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_examples, n_features)
            Features.
        labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
            Labels by annotators of `fit`; one that `fit` did not see counts as the crowd's average.
        use_model : bool, default=True
            Whether the classifier counts; if not, the frequency of the classes takes its place, except on examples
            without labels.

        Returns
        -------
        consensus : Consensus
            With `examples`, `label`, `confidence` and `proba`.
        """
        check_is_fitted(self)
        X, crowd = align(X, as_labels(labels))
        return self.fitted_.consensus(check_new(self, X), with_ids_of(X, crowd), use_model=use_model)
