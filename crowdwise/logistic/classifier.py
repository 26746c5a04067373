"""The classification model of Raykar et al.: logistic regression and confusion matrices, estimated together."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from crowdwise.arrays import Array, Floats
from crowdwise.checks import check_choice, check_number, check_rounds, check_whole
from crowdwise.consensus import Consensus, ConsensusBy, chosen_classes
from crowdwise.crowd.differences import Scale
from crowdwise.em.confusion import AnnotatorModel, check_annotator_model
from crowdwise.em.labels_alone import HardExamples
from crowdwise.em.levels import ClassKind, check_abstentions, check_kind
from crowdwise.em.with_features import Init, Joint
from crowdwise.labels.align import align, as_labels, with_ids_of
from crowdwise.logistic.fitted import FittedLogistic
from crowdwise.logistic.in_memory import LogisticInMemoryMixin
from crowdwise.logistic.out_of_core import LogisticOutOfCoreMixin
from crowdwise.mixins import all_or_nothing
from crowdwise.progress import OnRound, Reporter
from crowdwise.ridge.features import check_finite
from crowdwise.ridge.fitted import check_new
from crowdwise.softmax.log_space import log_softmax
from crowdwise.threads import one_blas_thread
from crowdwise.training_set import TrainingSet, check_features
from crowdwise.truths.known import known_answers
from crowdwise.weights.curricula import Curriculum, check_curriculum


class CrowdLogisticClassifier(LogisticInMemoryMixin, LogisticOutOfCoreMixin, BaseEstimator):
    """Logistic regression for the true class, and how each annotator answers when that is the truth.

    The model of Raykar et al. (2010), for any number of classes: rounds of estimating annotators and classifier from
    the posterior probabilities of the classes, and these from both, every example weighted by its easiness. By default
    it looks for examples that are hard for all annotators and is more careful if there are any. Their own model is
    ``CrowdLogisticClassifier(steepness=0, annotator_model=Confusion(), hard_examples=False, errors_in_common=False,
    joint=True, init="votes", cross_fit=0)``.

    Parameters
    ----------
    steepness : float or "auto", default="auto"
        How fast an example's weight falls with disagreement. 0 weights all alike; "auto" is 0 if features predict
        contested labels better than chance, as on most real crowds, else 3 to 6.
    l2 : float or "auto", default="auto"
        Strength of the penalty on the coefficients; one over scikit-learn's C. "auto" takes a power of ten,
        relative to the variance of the features, by cross-validation: the largest one that predicts the first consensus
        of held-out examples within a standard error of the best.
    kind : {"class", "ordinal"}, default="class"
        Whether classes have an order, as stars do; see `aggregate`. The classifier itself does not use the order.
    consensus_by : {"mode", "median", "mean"} or None, default=None
        What is taken of probabilities as the label, in the consensus and in `predict`: the most probable class; for
        classes with an order also the median (the default there), or the level nearest to the mean.
    informative_abstentions : bool, default=False
        Whether abstaining is an answer of annotators that depends on the class, see `aggregate`.
    annotator_model : Shared, Confusion, OneCoin, Ordinal or None, default=None
        What is estimated of an annotator: a confusion matrix drawn towards the crowd's (`Shared`, the default), one of
        their own, how often they are right, or how far they are above or below the truth (`Ordinal`, the default for
        classes with an order). See `crowdwise.em`.
    hard_examples : bool or "auto", default="auto"
        Whether every class may have hard examples, on which annotators err in another way, see `aggregate`; False is
        the model of Raykar et al.
    errors_in_common : bool, default=True
        Whether annotators may err together, see `aggregate`; False is the model of Raykar et al.
    joint : bool or "auto", default="auto"
        Whether annotators are estimated from the consensus of labels and classifier, as by Raykar et al., or from
        labels alone. "auto" is labels alone if there are hard examples: features often predict what misleads
        annotators, and a classifier that has learnt their common errors would confirm them. The classifier counts in
        the consensus either way.
    init : {"labels", "votes"}, default="labels"
        The first consensus: that of labels alone, or the shares of the votes as by Raykar et al.
    class_prior : float, default=1.0
        Examples of average features added, evenly of all classes.
    cross_fit : int, default=5
        Number of folds: an example's class probabilities are out of fold, from a classifier that has not seen it. 0 is
        one classifier for all, as by Raykar et al.
    curriculum : Fixed, Fading, Smooth, SelfPaced or None, default=None
        How the weights change from round to round, by an object of `crowdwise.weights`; None is `Fixed()`. `SelfPaced`
        reads how far the classifier's probabilities are from the consensus, and has a threshold for every class, lest
        a rare one never enter.
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
    tol : float, default=0.0001
        Stop when the probabilities of the average example change by no more than this and the curriculum is done with
        changing weights (`Fading` with c <= 1 never is).
    warm_start : bool, default=False
        Whether `fit` begins with the annotators and the classifier of the last fit, if they are of the same crowd.
    random_state : int, Generator or None, default=None
        For a curriculum that draws.
    verbose : int, default=0
        0 prints nothing, 1 one line at the end, 2 also a line per round, on standard error.

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
    label_consensus_, label_proba_ : ndarray
        The same by labels alone (examples without labels have the classifier's).
    annotators_ : ndarray of shape (n_annotators,)
        Names of the annotators.
    consensus_mean_ : ndarray of shape (n_examples,)
        For classes with an order: the mean level, which may be between two levels.
    offset_, spread_ : ndarray of shape (n_annotators,)
        For classes with an order: how many levels above the truth an annotator's labels are on average, and their
        standard deviation around that.
    abstention_ : ndarray of shape (n_annotators, n_classes)
        Probability that an annotator abstains if the truth is k; with informative abstentions only.
    confusion_ : ndarray of shape (n_annotators, n_classes, n_classes)
        Probability that an annotator says c (last axis) if the truth is k; NaN for annotators without labels.
    accuracy_ : ndarray of shape (n_annotators,)
        Probability that an annotator is right; NaN for those without labels.
    expertise_, expertise_share_ : ndarray of shape (n_annotators,)
        A precision: one over the mean squared error that goes with the accuracy; and its share of the sum.
    annotator_flags_ : dict
        Annotators of whom something is remarkable.
    annotator_group_ : ndarray of shape (n_annotators,)
        Annotators of the same number share one vote.
    effective_annotators_ : float
        How many independent votes the labels of an average example are worth.
    by_votes_ : bool
        Whether the consensus is the majority vote and the model only breaks ties, because its classes do not
        correspond to the labels.
    disagreement_, easiness_ : ndarray of shape (n_examples,)
        Of the examples of `fit`.
    steepness_ : float
        The steepness given, or the one found.
    l2_ : float
        The l2 given, or the one found.
    class_prior_ : ndarray of shape (n_classes,)
        How frequent each class is among the examples of `fit`.
    class_weight_ : ndarray of shape (n_classes,)
        What each class counted for the classifier; ones without `class_weight`.
    model_weight_ : float
        1 if the classifier counts in the consensus; 0 if labels are explained better by a classifier of what annotators
        answer than by one of the truth. Then the consensus is that of `aggregate`, a note says so, and `predict` still
        uses the features. Always 1 with `cross_fit=0`.
    temperature_ : float
        The factor on the classifier's scores that makes the labels most probable (temperature scaling): what l2 took
        from them and labels bear out comes back. `coef_` has it in it; 1 with `cross_fit=0`.
    objective_ : ndarray of shape (n_rounds,)
        Log-likelihood plus log priors after every round. It never falls with `cross_fit=0` and `Confusion` or
        `OneCoin`. It may fall with `Shared` and `Ordinal`, which make the crowd's matrix anew in every round, and with
        `class_weight` or a curriculum other than `Fixed`: then every round has a problem of its own.
    n_rounds_ : int
        Number of rounds; 0 if there is one annotator.
    converged_ : bool
        Whether they settled within `tol`, with weights that stay.
    n_passes_ : int
        How often all blocks were read, after a fit on blocks.
    truth_check_ : TruthCheck or None
        How good the consensus is by the truths that `fit` was given, each held out: how often it is right, the
        interval of that, and how many more truths would be needed. None without truths.
    results_ : FitResults or StreamResults
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
        steepness: float | Literal["auto"] = "auto",
        *,
        l2: float | Literal["auto"] = "auto",
        kind: ClassKind = "class",
        consensus_by: ConsensusBy | None = None,
        informative_abstentions: bool = False,
        annotator_model: AnnotatorModel | None = None,
        hard_examples: HardExamples = "auto",
        errors_in_common: bool = True,
        joint: Joint = "auto",
        init: Init = "labels",
        class_prior: float = 1.0,
        cross_fit: int = 5,
        curriculum: Curriculum | None = None,
        class_weight: dict[Any, float] | str | None = None,
        scale: Scale = "observed",
        fit_intercept: bool = True,
        max_rounds: int = 100,
        tol: float = 1e-4,
        warm_start: bool = False,
        random_state: int | np.random.Generator | None = None,
        verbose: int = 0,
    ) -> None:
        self.steepness = steepness
        self.l2 = l2
        self.kind = kind
        self.consensus_by = consensus_by
        self.informative_abstentions = informative_abstentions
        self.annotator_model = annotator_model
        self.hard_examples = hard_examples
        self.errors_in_common = errors_in_common
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
        self.verbose = verbose

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        truth: Any = None,
        *,
        groups: Any = None,
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
            Labels: a column per annotator, NaN or None where there is none. Blocks have their own.
        sample_weight : array-like of shape (n_examples,), default=None
            How often each example counts.
        truth : array-like of shape (n_examples,), series, mapping or frame, default=None
            The true classes of some examples, None or NaN elsewhere; anything with ids names those of the examples.
            They are learnt from as certain, and all others' confidence is calibrated by them, each truth being held
            out; see `aggregate`.
        groups : mapping, series or array-like, default=None
            Annotators who share one vote, see `aggregate`. By default those who copy each other are detected.
        on_round : callable, default=None
            Is given a `Round` after every round: number, objective, change, seconds and stage.

        Returns
        -------
        self : CrowdLogisticClassifier
        """
        steepness, reporter = self._check_settings(), Reporter("CrowdLogisticClassifier", self.verbose, on_round)
        warm = self.fitted_ if self.warm_start and hasattr(self, "fitted_") else None
        self._forget_stream()
        if self._fit_out_of_core(X, y, sample_weight, truth, groups, on_round):
            return self
        given = X
        X, labels = check_features(self, X, y)
        check_finite(X)
        check_abstentions(labels, self.informative_abstentions)
        answers = known_answers(truth, given, labels)
        training = TrainingSet.of(X, labels, sample_weight, truth=answers, scale=self.scale, weighting=steepness != 0)
        with one_blas_thread():  # products here are too thin to be shared, and threads must change no bit
            self._fit(training, steepness, groups, reporter, warm)
        self._keep_record()
        reporter.done()
        return self

    def _check_settings(self) -> float:
        check_number("l2", self.l2, auto=True)
        check_number("class_prior", self.class_prior)
        check_choice("fit_intercept", self.fit_intercept, (True, False))
        check_choice("warm_start", self.warm_start, (True, False))
        check_rounds(self.max_rounds, self.tol)
        check_annotator_model(self.annotator_model)
        check_kind(self.kind, self.consensus_by)
        check_curriculum(self.curriculum)
        if check_whole("cross_fit", self.cross_fit, low=0) == 1:
            raise ValueError("cross_fit must be 0 or at least 2 folds; got 1.")
        return check_number("steepness", self.steepness, auto=True)

    def _classes_of(self, X: Any) -> Array:
        annotators = self.fitted_.annotators
        if annotators.levels is None:
            return super()._classes_of(X)
        return annotators.classes[chosen_classes(self.predict_proba(X), annotators.by, annotators.levels)]

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
