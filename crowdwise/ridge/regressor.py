"""The same updates for real-valued ratings: the paper's equations are a regression to begin with."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from crowdwise.arrays import Floats
from crowdwise.crowd.disagreement import Scale
from crowdwise.crowd.easiness import check_steepness
from crowdwise.exceptions import LabelError
from crowdwise.labels.align import align, as_labels
from crowdwise.ridge.ballot import Consensus
from crowdwise.ridge.classifier import fitted_consensus, keep_fit
from crowdwise.ridge.courses import Pace
from crowdwise.ridge.fit import fit_ridge
from crowdwise.ridge.preparation import check_settings, note_effective_number, prepare
from crowdwise.ridge.scoring import consensus_with_model, linear_scores
from crowdwise.weights.curricula import Curriculum, check_curriculum


class CrowdRidgeRegressor(RegressorMixin, BaseEstimator):
    """Linear regression and expertise from the ratings of many annotators, easy examples first.

    Parameters
    ----------
    steepness : float, default=2.0
        How fast an example's weight falls with disagreement. 0 weights all alike.
    l2 : float, default=1.0
        Ridge strength; 0 gives the solution of smallest norm.
    scale : {"observed", "possible"} or None, default="observed"
        How disagreement (the sum of squared differences between ratings) is scaled, see `disagreement`.
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
    random_state : int, Generator or None, default=None
        Seed of the tosses of `Fading`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients.
    intercept_ : float
        Intercept.
    annotators_ : ndarray of shape (n_annotators,)
        Names of the annotators.
    expertise_ : ndarray of shape (n_annotators,)
        One over the mean squared error of each annotator; NaN for those without ratings; 1 if there is one annotator.
    expertise_share_ : ndarray of shape (n_annotators,)
        Expertise divided by its sum; 0 for annotators without ratings.
    annotator_flags_ : dict
        Annotators of whom something is remarkable.
    disagreement_, easiness_ : ndarray of shape (n_examples,)
        Of the examples of `fit`.
    consensus_ : ndarray of shape (n_examples,)
        Expertise-weighted mean of their ratings (the model's score for examples without any).
    consensus_std_ : ndarray of shape (n_examples,)
        Its standard error.
    model_precision_ : float
        The precision of the model's voice in `consensus`.
    objective_ : ndarray of shape (n_rounds,)
        Mean logarithm of the annotators' squared errors plus penalty, after every round, with the weights of that
        round.
    n_rounds_ : int
        Rounds turned.
    converged_ : bool
        Whether they settled within `tol`, with weights that stay.
    route_ : {"sums", "rows", "iterative"}
        How it was solved.
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
        scale: Scale = "observed",
        fit_intercept: bool = True,
        max_rounds: int = 100,
        tol: float = 1e-6,
        curriculum: Curriculum | None = None,
        random_state: Any = None,
    ) -> None:
        self.steepness = steepness
        self.l2 = l2
        self.scale = scale
        self.fit_intercept = fit_intercept
        self.max_rounds = max_rounds
        self.tol = tol
        self.curriculum = curriculum
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rated examples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_examples, n_features)
            Features.
        y : CrowdLabels, or array-like of shape (n_examples, n_annotators) or (n_examples,)
            Ratings: a column per annotator, NaN where there is none.
        sample_weight : array-like of shape (n_examples,), default=None
            How often each example counts.

        Returns
        -------
        self : CrowdRidgeRegressor
        """
        steepness, curriculum = check_steepness(self.steepness), check_curriculum(self.curriculum)
        check_settings(l2=self.l2, init="mean", max_rounds=self.max_rounds, tol=self.tol)
        prepared = prepare(
            self, X, y, sample_weight,
            kind="rating", scale=self.scale, fit_intercept=self.fit_intercept, steepest=steepness,
        )  # fmt: skip
        task = prepared.task(steepness, "mean")
        note_effective_number(task.easiness * task.sample_weight, self.n_features_in_)
        pace = Pace(curriculum, None, self.random_state)
        fitted = fit_ridge(prepared, task, pace, self.l2, max_rounds=self.max_rounds, tol=self.tol)
        keep_fit(self, prepared, task, fitted, l2=self.l2, sample_weight=sample_weight)
        consensus = fitted_consensus(self, prepared, fitted)
        self.consensus_, self.consensus_std_ = consensus.label, consensus.confidence
        self.coef_, self.intercept_ = fitted.coef[0], float(fitted.intercept[0])
        return self

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
        return linear_scores(self, X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of the variance of all ratings that the model explains.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_examples, n_features)
            Features.
        y : CrowdLabels, or array-like of shape (n_examples, n_annotators) or (n_examples,)
            Ratings, or the truth.
        sample_weight : array-like of shape (n_examples,), default=None
            How often each example counts.

        Returns
        -------
        score : float
            R².
        """
        _, labels = align(X, as_labels(y, kind="rating"))
        if labels.n_labels == 0:
            raise LabelError("there is no rating to compare predictions with.")
        predicted = self.predict(X)
        weight = _check_sample_weight(sample_weight, predicted, dtype=np.float64)
        example = labels.example_index
        return float(r2_score(labels.values, predicted[example], sample_weight=weight[example]))

    def consensus(self, X: Any, labels: Any, use_model: bool = True) -> Consensus:
        """The consensus on any rated examples, with the model as one more voice.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_examples, n_features)
            Features.
        labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
            Ratings by annotators of `fit`.
        use_model : bool, default=True
            Whether the model has a voice. Examples without ratings always have the model's score.

        Returns
        -------
        consensus : Consensus
            With `label`, `confidence` (the standard error), `score` and `uses_model`.
        """
        check_is_fitted(self)
        return consensus_with_model(self, X, labels, use_model=use_model)
