"""The same updates for real-valued ratings: the paper's equations are a regression to begin with."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from crowdwise._arrays import Floats
from crowdwise._checks import check_number
from crowdwise._progress import OnRound, Reporter
from crowdwise.crowd._disagreement import RelativeTo
from crowdwise.exceptions import LabelError
from crowdwise.labels.align import align, as_labels
from crowdwise.mixins import all_or_nothing
from crowdwise.results.consensus import RatingConsensus
from crowdwise.ridge.base import Path, RidgeModel
from crowdwise.ridge.data import RidgeData
from crowdwise.ridge.path import Folds, PathFit
from crowdwise.ridge.rounds import Weighting
from crowdwise.ridge.sums import SumsPlan
from crowdwise.rows.features import N_FOLDS, check_new
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
    random_state : int, Generator or None, default=None
        Seed of the tosses of `Fading`.
    keep_sums : bool or "auto", default="auto"
        Whether to keep what `at` needs to solve the fit again: "auto" does up to 64 MB, the examples of the fit
        included. It is never part of a file or a pickle.
    verbose : int, default=0
        0 prints nothing, 1 one line at the end, 2 also a line per round, on standard error.

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
        How far their annotators differ.
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
        The decisions that the fit took by itself, with score, limit and reason.
    model_precision_ : float
        What the model's score counts in the consensus, in the units of `expertise_`.
    objective_ : ndarray of shape (n_rounds,)
        Mean logarithm of the annotators' squared errors plus penalty, after every round, with the weights of that
        round.
    n_rounds_ : int
        Number of rounds.
    converged_ : bool
        Whether they settled within `tol`, with weights that stay.
    truth_check_ : RatingCheck or None
        How good the consensus is by the truths that `fit` was given, each held out: how far it is off, the
        interval of that, and how many more truths would be needed. None without truths.
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

    def __init__(
        self,
        steepness: float = 2.0,
        *,
        l2: float = 1.0,
        relative_to: RelativeTo = "observed",
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
        self.fit_intercept = fit_intercept
        self.max_rounds = max_rounds
        self.tol = tol
        self.curriculum = curriculum
        self.random_state = random_state
        self.keep_sums = keep_sums
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

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
        """Learn from rated examples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_examples, n_features), Blocks or Dask collection
            Features; or what `read_blocks` makes of data that need not fit into memory. Blocks, and those of a Dask
            array or data frame, are learned from as `partial_fit` does, with the results that it has.
        y : CrowdLabels, or array-like of shape (n_examples, n_annotators) or (n_examples,), default=None
            Ratings: a column per annotator, NaN where there is none. Blocks have their own.
        sample_weight : float, or array-like, series or mapping of shape (n_examples,), default=None
            How often each example counts.
        truth : array-like of shape (n_examples,), series, mapping or frame, default=None
            The true ratings of some examples, None or NaN elsewhere; anything with ids names those of the examples.
            They take the place of these examples' ratings in the model, errors of annotators are against them, and all
            others' standard deviation is calibrated by them, each truth being held out.
        on_round : callable, default=None
            Is given a `Round` after every round: number, objective, change, seconds and stage.

        Returns
        -------
        self : CrowdRidgeRegressor
        """
        if self._fit_out_of_core(X, y, sample_weight, truth, on_round):
            return self
        self._check_settings()
        steepness, _ = self._check_numbers()
        reporter = Reporter("CrowdRidgeRegressor", self.verbose, on_round)
        data = self._data(X, y, sample_weight, truth, "interval", "mean", weighting=steepness != 0)
        self._learn(data, Folds.by_content(data.X, N_FOLDS), reporter)
        return self

    def _check_numbers(self) -> tuple[float, float]:
        """Steepness and l2."""
        return check_number("steepness", self.steepness), check_number("l2", self.l2)

    def _best_fit(self, data: RidgeData, folds: Folds, path: Path) -> PathFit:
        steepness, l2 = self._check_numbers()
        weighting = Weighting(self._check_settings(), None, self.random_state)
        (fit,) = path(steepnesses=[steepness], l2s=np.array([l2]), weighting=weighting)
        return fit

    def _keep_coefficients(self, data: RidgeData, fit: PathFit) -> None:
        self.coef_, self.intercept_ = self.fitted_.coef[0], float(self.fitted_.intercept[0])

    def _plan(self) -> SumsPlan:
        self._check_settings()
        steepness, _ = self._check_numbers()
        return SumsPlan("interval", bool(self.fit_intercept), "mean", N_FOLDS, 0, steepness != 0, False)

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

    def consensus(self, X: Any, labels: Any, use_model: bool = True) -> RatingConsensus:
        """The consensus on any examples, by their ratings and by the model.

        The model may have seen the examples of `fit`; for these, `consensus_` has the consensus with models that have
        not. An annotator that `fit` did not see counts as the crowd's average.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_examples, n_features)
            Features.
        labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
            Ratings, in any order of annotators: they are matched by name.
        use_model : bool, default=True
            Whether the model's score counts for examples that have ratings. It always does for those without.

        Returns
        -------
        consensus : RatingConsensus
            With `examples`, `label` and `std`.
        """
        return self._consensus(X, labels, use_model=use_model)
