"""The paper's classifier: a linear model and the annotators' expertise, estimated together, easy examples first."""

from __future__ import annotations

from typing import Any, Literal

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from crowdwise._arrays import Floats
from crowdwise.crowd._disagreement import RelativeTo
from crowdwise.mixins import CrowdClassifierMixin
from crowdwise.ridge.base import RidgeModel, flat
from crowdwise.rows.features import check_new
from crowdwise.weights.curricula import Curriculum


class CrowdRidgeClassifier(RidgeModel, CrowdClassifierMixin, BaseEstimator):
    """Linear classifier and expertise from the labels of many annotators, easy examples first.

    Each round solves a ridge regression on the expertise-weighted mean of the labels (coded +1 and -1), with every
    example weighted by how much its annotators agree, and then sets each annotator's expertise to one over their
    weighted mean squared difference from the scores. With complete labels a round needs sums only and does not
    read the data again.

    Parameters
    ----------
    steepness : float, default=2.0
        How fast an example's weight falls with disagreement (the paper's alpha). 0 weights all alike.
    l2 : float, default=1.0
        Ridge strength (the paper's lambda); 0 gives the solution of smallest norm.
    relative_to : {"observed", "possible"} or None, default="observed"
        What disagreement is measured by: the largest in the data or the largest possible; see `disagreement`.
    init : {"majority", "mean"} or array-like of shape (n_examples,), default="majority"
        The first consensus: the majority vote, the mean of the labels, or a class for every example, such as
        `consensus_` of another model.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is not penalised.
    max_rounds : int, default=100
        The most rounds.
    tol : float, default=1e-6
        Stop when no expertise changes by more than this, relative to what it was, and the curriculum is done with
        changing weights (`Fading` with c <= 1 never is).
    curriculum : Curriculum, default=None
        How the weights change from round to round: `Fixed()`, `Fading(c)`, `Smooth(c)` or `SelfPaced(...)` of
        `crowdwise.weights`; None is `Fixed()`. With the first three, rounds that could be solved from sums still are.
    class_weight : dict or "balanced", default=None
        How much each class counts, by the class that leads in the consensus of the round, in the model, in expertise
        and where l2 is chosen: numbers (1 for classes that a dict does not name), or the same total for every class.
        Each round then reads the rows.
    random_state : int, Generator or None, default=None
        Seed of the tosses of `Fading`.
    keep_sums : bool or "auto", default="auto"
        Whether to keep what `at` needs to solve the fit again: "auto" does up to 64 MB, the examples of the fit
        included. It is never part of a file or a pickle.
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
    l2_ : float
        The ridge strength.
    steepness_ : float
        The steepness of the weights.
    examples_ : ndarray of shape (n_examples,)
        Identifiers of the examples of `fit`, in the order of all results about examples.
    disagreement_ : ndarray of shape (n_examples,)
        How far their annotators differ.
    consensus_ : ndarray of shape (n_examples,)
        Their classes by labels and model, each example being scored by a model that has not seen it. If there is one
        annotator, that annotator's labels.
    consensus_proba_ : ndarray of shape (n_examples, n_classes)
        Probability of every class, calibrated if `fit` was given truths. If not, it supposes that annotators err
        independently, which real ones do not: use it to sort examples.
    consensus_confidence_ : ndarray of shape (n_examples,)
        Probability of the class in `consensus_`.
    label_score_ : ndarray of shape (n_examples,) or (n_examples, n_classes)
        The paper's consensus: the expertise-weighted mean of the labels, from -1 to +1.
    annotators_ : ndarray of shape (n_annotators,)
        Names of the annotators.
    expertise_ : ndarray of shape (n_annotators,)
        One over the mean squared error of each annotator; NaN for those without labels; 1 if there is one annotator.
        With labels missing it is shrunk towards the crowd's by the strength of three labels.
    accuracy_ : ndarray of shape (n_annotators,)
        Estimated probability of being right; NaN for annotators without labels, and for all if no two share an example.
    annotator_flags_ : dict
        Warnings per annotator.
    choices_ : tuple of Choice
        The decisions that the fit took by itself, with score, limit and reason.
    temperature_ : float
        The factor on the model's scores that makes the labels most probable.
    class_weight_ : ndarray of shape (n_classes,)
        What each class counted in the last round.
    objective_ : ndarray of shape (n_rounds,)
        Mean logarithm of the annotators' squared errors plus penalty, after every round, with the weights of that
        round.
    n_rounds_ : int
        Number of rounds.
    converged_ : bool
        Whether they settled within `tol`, with weights that stay.
    truth_check_ : TruthCheck or None
        How good the consensus is by the truths that `fit` was given, each held out: how often it is right, the
        interval of that, and how many more truths would be needed. None without truths.
    route_ : {"sums", "rows", "iterative"}
        How it was solved: from the sums of one pass, by a pass per round, or without a gram matrix.
    fitted_ : FittedRidge
        All that is needed to score examples and to find the consensus of labels.
    results_ : FitResults
        All results about the examples and annotators of `fit`.
    sums_ : RidgeSums
        After `partial_fit` or a fit on blocks: the sums that further blocks are added to. There are no results about
        single examples then.
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
        steepness: float = 2.0,
        *,
        l2: float = 1.0,
        relative_to: RelativeTo = "observed",
        init: Any = "majority",
        fit_intercept: bool = True,
        max_rounds: int = 100,
        tol: float = 1e-6,
        curriculum: Curriculum | None = None,
        class_weight: dict[Any, float] | str | None = None,
        random_state: Any = None,
        keep_sums: Literal["auto"] | bool = "auto",
        verbose: int = 0,
    ) -> None:
        self.steepness = steepness
        self.l2 = l2
        self.relative_to = relative_to
        self.init = init
        self.fit_intercept = fit_intercept
        self.max_rounds = max_rounds
        self.tol = tol
        self.curriculum = curriculum
        self.class_weight = class_weight
        self.random_state = random_state
        self.keep_sums = keep_sums
        self.verbose = verbose

    def decision_function(self, X: Any) -> Floats:
        """Scores: around -1 for the first and +1 for the second of two classes; one column per class if there are more.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_examples, n_features)
            Features.

        Returns
        -------
        scores : ndarray of shape (n_examples,) or (n_examples, n_classes)
        """
        check_is_fitted(self)
        return flat(self.fitted_.scores(check_new(self, X)))
