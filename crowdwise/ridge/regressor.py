"""The same updates for real-valued ratings: the paper's equations are a regression to begin with."""

from __future__ import annotations

from typing import Any, Literal

from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from crowdwise._arrays import Floats
from crowdwise.crowd._disagreement import RelativeTo
from crowdwise.exceptions import LabelError
from crowdwise.labels._align import align, as_labels
from crowdwise.ridge.partial import RidgeModel
from crowdwise.rows.features import check_new
from crowdwise.training_set import check_sample_weight
from crowdwise.weights.curricula import Curriculum


class CrowdRidgeRegressor(RidgeModel, RegressorMixin, BaseEstimator):
    """Linear regression and expertise from the ratings of many annotators, easy examples first.

    Parameters
    ----------
    steepness : float, default=2.0
        How fast an example's weight falls with disagreement. 0 weights all alike.
    l2 : float, default=1.0
        Ridge strength; 0 gives the solution of smallest norm.
    relative_to : {"observed", "possible"} or None, default="observed"
        What disagreement (the sum of squared differences between ratings) is relative to, see `disagreement`.
    init : "mean" or array-like of shape (n_examples,), default="mean"
        The first consensus: the mean of the ratings, or a rating for every example, such as `consensus_` of another
        model.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is not penalised.
    max_rounds : int, default=100
        Maximum number of rounds.
    tol : float, default=1e-6
        Stop when no expertise changes by more than this, relative to what it was, and the curriculum is done with
        changing weights (`Fading` with c <= 1 never is).
    curriculum : Curriculum, default=None
        How the weights change from round to round: `Fixed()`, `Fading(c)`, `Smooth(c)` or `SelfPaced(...)` of
        `crowdwise.weights`; None is `Fixed()`. With the first three, rounds that could be solved from sums still are.
    random_state : int, Generator or None, default=None
        Seed of the tosses of `Fading`.
    keep_sums : bool or "auto", default="auto"
        Whether to keep what `at` needs to solve the fit again: "auto" does up to 64 MB, the examples of the fit
        included. It is never part of a file or a pickle.
    verbose : int, default=0
        0 prints nothing, 1 one line at the end, 2 also one line per round, on standard error.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients.
    intercept_ : float
        Intercept.
    l2_ : float
        The ridge strength.
    steepness_ : float
        The steepness of the weights.
    examples_ : ndarray of shape (n_examples,)
        Identifiers of the examples of `fit`, in the order of all results about examples.
    disagreement_ : ndarray of shape (n_examples,)
        How much their annotators disagree.
    consensus_ : ndarray of shape (n_examples,)
        Their ratings by labels and model, each example being scored by a model that has not seen it. If there is one
        annotator, that annotator's ratings.
    consensus_std_ : ndarray of shape (n_examples,)
        Standard deviation of `consensus_`, calibrated if `fit` was given truths; if not, as if annotators erred
        independently. 0 where the rating is known.
    label_score_ : ndarray of shape (n_examples,)
        The paper's consensus: the expertise-weighted mean of the ratings (the model's score for examples without any).
    annotators_ : ndarray of shape (n_annotators,)
        Names of the annotators.
    expertise_ : ndarray of shape (n_annotators,)
        One over the mean squared error of each annotator; NaN for those without ratings; 1 if there is one annotator.
    annotator_flags_ : dict
        Warnings per annotator.
    choices_ : tuple of Choice
        Automatic decisions of the fit, with score, limit and reason.
    model_precision_ : float
        What the model's score counts in the consensus, in the units of `expertise_`.
    objective_ : ndarray of shape (n_rounds,)
        Mean logarithm of the annotators' squared errors plus penalty, after every round, with the weights of that
        round.
    n_rounds_ : int
        Number of rounds.
    converged_ : bool
        Whether they converged within `tol`, with weights that no longer change.
    truth_check_ : RatingCheck or None
        Error of the consensus on held-out truths, its interval, and how many more truths would be needed. None
        without truths.
    route_ : {"sums", "rows", "iterative"}
        How it was solved.
    fitted_ : FittedRidge
        All that is needed to score examples and to find the consensus of ratings.
    results_ : FitResults
        All results about the examples and annotators of `fit`.
    sums_ : RidgeSums
        After `partial_fit` or a fit on blocks: the sums that further blocks are added to. There are no results about
        single examples then.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X had any.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise import CrowdRidgeRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 1))
    >>> ratings = 3 * X + rng.normal(size=(200, 4)) * [0.1, 0.5, 1.0, 2.0]
    >>> model = CrowdRidgeRegressor().fit(X, ratings)
    >>> model.coef_.round(1).tolist(), int(model.expertise_.argmax())
    ([3.0], 0)
    """

    _scale = "interval"
    _inits = ("mean",)

    def __init__(
        self,
        steepness: float = 2.0,
        *,
        l2: float = 1.0,
        relative_to: RelativeTo = "observed",
        init: Any = "mean",
        fit_intercept: bool = True,
        max_rounds: int = 100,
        tol: float = 1e-6,
        curriculum: Curriculum | None = None,
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
        self.random_state = random_state
        self.keep_sums = keep_sums
        self.verbose = verbose

    def predict(self, X: Any) -> Floats:
        """The score of each example.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_examples, n_features)
            Features.

        Returns
        -------
        scores : ndarray of shape (n_examples,)
        """
        check_is_fitted(self)
        return self.fitted_.scores(check_new(self, X))[:, 0]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of the variance of all ratings that the model explains.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_examples, n_features)
            Features.
        y : CrowdLabels, or array-like of shape (n_examples, n_annotators) or (n_examples,)
            Ratings, or the truth.
        sample_weight : float, or array-like, series or mapping of shape (n_examples,), default=None
            How often each example counts.

        Returns
        -------
        score : float
            R².
        """
        _, labels = align(X, as_labels(y, scale="interval"))
        if labels.n_labels == 0:
            raise LabelError("there is no rating to compare predictions with.")
        predicted = self.predict(X)
        weight = check_sample_weight(sample_weight, X, labels)
        example = labels.example_index
        return float(r2_score(labels.values, predicted[example], sample_weight=weight[example]))
