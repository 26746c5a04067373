"""The paper's classifier with l2 and steepness chosen by cross-validation, from one pass over the data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crowdwise.arrays import Floats
from crowdwise.crowd.disagreement import Scale
from crowdwise.crowd.easiness import check_steepness
from crowdwise.exceptions import LabelError
from crowdwise.labels.align import match_examples
from crowdwise.labels.encode import as_array, encode_declared, missing_mask
from crowdwise.ridge.auto_steepness import auto_steepness
from crowdwise.ridge.classifier import CrowdRidgeClassifier, keep_classes, keep_fit
from crowdwise.ridge.courses import Pace
from crowdwise.ridge.features import one_blas_thread
from crowdwise.ridge.fit import finish
from crowdwise.ridge.path import Folds, TunedFit, held_out_rankings, tune_path
from crowdwise.ridge.preparation import Prepared, check_settings, note_effective_number, prepare
from crowdwise.weights.criteria import easiest_examples
from crowdwise.weights.curricula import Curriculum, check_curriculum

# The grid of the paper's experiments: 2^-14, 2^-12, ..., 2^14, and 2^-1 and 2^1.
PAPER_L2S = tuple(2.0**k for k in (-14, -12, -10, -8, -6, -4, -2, -1, 0, 1, 2, 4, 6, 8, 10, 12, 14))


class CrowdRidgeClassifierCV(CrowdRidgeClassifier):
    """`CrowdRidgeClassifier` with l2, and if several are given the steepness, chosen by cross-validation.

    As in the paper's experiments, l2 is chosen again in every round by the held-out squared error against the
    present consensus, and that error is not weighted by easiness (it is by class, if `class_weight` is given). The
    steepness cannot be chosen by it: another steepness makes
    another consensus, so the errors are measured against different things. It is chosen by how well held-out
    examples are ranked: those whose truth is known, if `fit` is given any, else those that annotators agree on most.

    Parameters
    ----------
    steepnesses : sequence of float, or "auto", default=(2.0,)
        To choose from; "auto" is 0 if contested labels can be told from the features, as on most real crowds, else 3
        to 6.
    l2s : sequence of float, default=PAPER_L2S
        To choose from; by default 2**-14, 2**-12, ..., 2**14, and 2**-1 and 2**1, as in the paper's experiments.
    cv : int, splitter or iterable of splits, default=10
        The folds. A number makes folds by the content of rows, so that equal rows are never in two folds.
    criterion : {"auto", "truth", "agreement"}, default="auto"
        How the steepness is chosen: "truth" ranks examples of known truth, "agreement" the quarter (or more) of
        examples with the least disagreement against their majority; "auto" is "truth" if `fit` is given some.
    tune : {"every round", "once"}, default="every round"
        Whether l2 is chosen in every round or for the first consensus only. Where sums per fold do not fit into memory,
        "every round" chooses at the first and at the settled consensus; `route_` then says "rows" or "iterative".
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
    random_state : int, default=0
        Seed of the folds, and of the tosses of `Fading`.

    Attributes
    ----------
    best_steepness_ : float
        The steepness chosen.
    best_l2_ : float
        The l2 chosen in the last round of that steepness.
    criterion_ : {"truth", "agreement"}
        What the steepness was chosen by.
    cv_results_ : dict
        For every steepness, in the order given: "steepness", "l2", "criterion" (higher is better; NaN if it could not
        be computed), "held_out_error" (sums against the last consensus for every l2, up to a constant; not to be
        compared between steepnesses), "coef", "intercept", "expertise", "n_rounds" and "converged".
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients; this and all further attributes are those of `CrowdRidgeClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from crowdwise import CrowdRidgeClassifierCV, simulate_annotators
    >>> X, truth = make_blobs(200, centers=2, cluster_std=2.0, random_state=0)
    >>> labels = simulate_annotators(X, truth, experts=1, adversaries=1, random_state=0)
    >>> model = CrowdRidgeClassifierCV(steepnesses=(0.0, 1.0, 2.0, 5.0)).fit(X, labels)
    >>> model.best_steepness_ in (0.0, 1.0, 2.0, 5.0)
    True
    """

    def __init__(
        self,
        steepnesses: Sequence[float] | Literal["auto"] = (2.0,),
        *,
        l2s: Sequence[float] = PAPER_L2S,
        cv: int | Iterable[Any] | Any = 10,
        criterion: Literal["auto", "truth", "agreement"] = "auto",
        tune: Literal["every round", "once"] = "every round",
        scale: Scale = "observed",
        init: str = "majority",
        fit_intercept: bool = True,
        max_rounds: int = 100,
        tol: float = 1e-6,
        curriculum: Curriculum | None = None,
        class_weight: dict[Any, float] | str | None = None,
        random_state: int = 0,
    ) -> None:
        self.steepnesses = steepnesses
        self.l2s = l2s
        self.cv = cv
        self.criterion = criterion
        self.tune = tune
        self.scale = scale
        self.init = init
        self.fit_intercept = fit_intercept
        self.max_rounds = max_rounds
        self.tol = tol
        self.curriculum = curriculum
        self.class_weight = class_weight
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None, truth: ArrayLike | None = None) -> Self:
        """Learn from labelled examples.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_examples, n_features)
            Features.
        y : CrowdLabels, or array-like of shape (n_examples, n_annotators) or (n_examples,)
            Labels: a column per annotator, NaN or None where there is none.
        sample_weight : array-like of shape (n_examples,), default=None
            How often each example counts.
        truth : array-like of shape (n_examples,), default=None
            The true classes of some examples, NaN or None elsewhere; a pandas series is matched with the index of X
            if X has one. Used to choose the steepness, not to learn from.

        Returns
        -------
        self : CrowdRidgeClassifierCV
        """
        given, l2s = self._check_grid()
        curriculum = check_curriculum(self.curriculum)
        prepared = prepare(
            self, X, y, sample_weight,
            kind="class", scale=self.scale, fit_intercept=self.fit_intercept, steepest=max(given, default=0.0),
        )  # fmt: skip
        steepnesses = given or [
            auto_steepness(
                prepared.original.X, prepared.core, prepared.sample_weight, prepared.disagreement[prepared.learnt]
            )
        ]
        self.classes_ = prepared.classes
        pace = Pace.of(curriculum, self.class_weight, self.classes_, self.random_state)
        examples, codes = self._examples_to_rank(
            prepared, match_examples(truth, X, prepared.labels, "truth", partial=True)
        )
        folds = Folds.of(self.cv, prepared, self.random_state)
        with one_blas_thread(prepared.rows.n_columns):
            path = tune_path(
                prepared, folds, steepnesses, pace, l2s,
                init=self.init, every_round=self.tune == "every round", max_rounds=self.max_rounds, tol=self.tol,
            )  # fmt: skip
            ranked = held_out_rankings(path, folds, examples, codes, len(self.classes_))
        best = path[int(np.argmax(np.nan_to_num(ranked, nan=-1.0)))]
        best.settled.warn(self.tol)
        note_effective_number(best.task.easiness * prepared.sample_weight, self.n_features_in_)
        self.cv_results_ = _results(prepared, path, ranked)
        self.best_steepness_, self.best_l2_ = best.task.steepness, best.l2
        fitted = finish(prepared, best.task, best.problem, best.settled, best.route, best.l2, best.class_weight)
        keep_fit(self, prepared, best.task, fitted, l2=best.l2, sample_weight=sample_weight)
        keep_classes(self, prepared, fitted)
        return self

    def _check_grid(self) -> tuple[list[float], Floats]:
        auto = isinstance(self.steepnesses, str) and self.steepnesses == "auto"
        for name in ("l2s",) if auto else ("steepnesses", "l2s"):
            values = getattr(self, name)
            if not (hasattr(values, "__len__") and len(values) > 0) or isinstance(values, str):
                raise ValueError(f"{name} must be a sequence with at least one value to choose from; got {values!r}.")
        steepnesses = (
            [] if auto else [check_steepness(steepness) for steepness in cast(Sequence[float], self.steepnesses)]
        )
        l2s = np.array(self.l2s, dtype=np.float64)
        for l2 in l2s:
            check_settings(l2=float(l2), init=self.init, max_rounds=self.max_rounds, tol=self.tol)
        if self.criterion not in ("auto", "truth", "agreement"):
            raise ValueError(f'criterion must be "auto", "truth" or "agreement"; got {self.criterion!r}.')
        if self.tune not in ("every round", "once"):
            raise ValueError(f'tune must be "every round" or "once"; got {self.tune!r}.')
        return steepnesses, l2s

    def _examples_to_rank(self, prepared: Prepared, truth: ArrayLike | None) -> tuple[NDArray[np.intp], NDArray[Any]]:
        """Positions among the learnt examples, and the classes that they should be ranked by."""
        if self.criterion == "truth" and truth is None:
            raise ValueError('criterion="truth" needs fit(X, y, truth=...) with the truth of some examples.')
        if truth is None or self.criterion == "agreement":
            self.criterion_ = "agreement"
            differs = prepared.disagreement[prepared.learnt]
            examples = easiest_examples(differs, prepared.core.tally)
            return examples, prepared.core.tally[examples].argmax(axis=1)
        self.criterion_ = "truth"
        return _known_truth(as_array(truth), prepared, self.classes_)


def _known_truth(
    truth: NDArray[Any], prepared: Prepared, classes: NDArray[Any]
) -> tuple[NDArray[np.intp], NDArray[Any]]:
    if truth.shape != (len(prepared.labels),):
        raise LabelError(f"truth must have one entry per example, {len(prepared.labels)}; got shape {truth.shape}.")
    truth = truth[prepared.learnt]
    examples = np.flatnonzero(~missing_mask(truth))
    codes = encode_declared(truth[examples], classes)
    if (codes < 0).any():
        unknown = truth[examples][codes < 0][:3].tolist()
        raise LabelError(f"truth must be among the classes {classes.tolist()}; found {unknown}.")
    if len(np.unique(codes)) < 2:
        raise LabelError(
            f"truth is needed for examples of at least two classes; {len(examples)} examples with truth are of "
            f"{len(np.unique(codes))}."
        )
    return examples, codes


def _results(prepared: Prepared, path: list[TunedFit], ranked: list[float]) -> dict[str, Any]:
    features = [prepared.to_features(fit.settled.theta) for fit in path]
    return {
        "steepness": np.array([fit.task.steepness for fit in path]),
        "l2": np.array([fit.l2 for fit in path]),
        "criterion": np.array(ranked),
        "held_out_error": np.array([fit.errors for fit in path]),
        "coef": np.array([coef for coef, _ in features]),
        "intercept": np.array([intercept for _, intercept in features]),
        "expertise": np.array([fit.settled.expertise for fit in path]),
        "n_rounds": np.array([fit.settled.n_rounds for fit in path]),
        "converged": np.array([fit.settled.converged for fit in path]),
    }
