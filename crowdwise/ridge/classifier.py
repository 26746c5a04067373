"""The paper's classifier, and the same with l2 and steepness chosen by cross-validation from one pass over the data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from crowdwise._arrays import Floats
from crowdwise._checks import check_choice, check_number, check_whole
from crowdwise._limits import STEEPNESSES
from crowdwise.crowd._disagreement import RelativeTo
from crowdwise.ridge.base import flat
from crowdwise.ridge.data import RidgeData
from crowdwise.ridge.partial import RidgeModel
from crowdwise.ridge.rounds import RidgePath, Search, Settled, examples_to_rank, held_out_rankings
from crowdwise.ridge.sums import check_folds
from crowdwise.rows.features import check_new
from crowdwise.weights.curricula import Curriculum
from crowdwise.weights.folds import Folds

# The grid of the paper's experiments: 2^-14, 2^-12, ..., 2^14, and 2^-1 and 2^1.
PAPER_L2S = tuple(2.0**k for k in (-14, -12, -10, -8, -6, -4, -2, -1, 0, 1, 2, 4, 6, 8, 10, 12, 14))


class CrowdRidgeClassifier(RidgeModel, ClassifierMixin, BaseEstimator):
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
        Maximum number of rounds.
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
        0 prints nothing, 1 one line at the end, 2 also one line per round, on standard error.

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
        How much their annotators disagree.
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
        Automatic decisions of the fit, with score, limit and reason.
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
        Whether they converged within `tol`, with weights that no longer change.
    truth_check_ : TruthCheck or None
        Accuracy of the consensus on held-out truths, its interval, and how many more truths would be needed. None
        without truths.
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


class CrowdRidgeClassifierCV(CrowdRidgeClassifier):
    """`CrowdRidgeClassifier` with l2, and if several are given the steepness, chosen by cross-validation.

    As in the paper's experiments, l2 is chosen again in every round by the held-out squared error against the
    present consensus, and that error is not weighted by easiness (it is by class, if `class_weight` is given). The
    steepness cannot be chosen by it: another steepness makes
    another consensus, so the errors are measured against different things. It is chosen by how well held-out
    examples are ranked: those whose truth is known, if `fit` is given any, else those that annotators agree on most.

    Parameters
    ----------
    steepnesses : sequence of float, default=(0.0, 2.0)
        To choose from: by default no weights, and the paper's steepness.
    l2s : sequence of float, default=PAPER_L2S
        To choose from; by default 2**-14, 2**-12, ..., 2**14, and 2**-1 and 2**1, as in the paper's experiments.
    cv : int, splitter or iterable of splits, default=10
        The folds. A number makes folds by the content of rows, so that equal rows are never in two folds.
    criterion : {"auto", "truth", "agreement"}, default="auto"
        How the steepness is chosen: "truth" ranks examples of known truth, "agreement" the quarter (or more) of
        examples with the least disagreement against their majority; "auto" is "truth" if `fit` is given some
        of two classes or more.
    tune : {"every round", "once"}, default="every round"
        Whether l2 is chosen in every round or for the first consensus only. Where sums per fold do not fit into memory,
        "every round" chooses at the first and at the settled consensus; `route_` then states "rows" or "iterative".
    relative_to : {"observed", "possible"} or None, default="observed"
        What disagreement is measured by: the largest in the data or the largest possible; see `disagreement`.
    init : {"majority", "mean"} or array-like of shape (n_examples,), default="majority"
        The first consensus: the majority vote, the mean of the labels, or a class for every example, such as
        `consensus_` of another model.
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
    class_weight : dict or "balanced", default=None
        How much each class counts, by the class that leads in the consensus of the round, in the model, in expertise
        and where l2 is chosen: numbers (1 for classes that a dict does not name), or the same total for every class.
        Each round then reads the rows.
    random_state : int, default=0
        Seed of the folds, and of the tosses of `Fading`.
    keep_sums : bool or "auto", default="auto"
        Whether to keep what `at` needs to solve the fit again: "auto" does up to 64 MB, the examples of the fit
        included. It is never part of a file or a pickle.
    verbose : int, default=0
        0 prints nothing, 1 one line at the end, 2 also one line per round, on standard error.

    Attributes
    ----------
    steepness_ : float
        The steepness chosen.
    l2_ : float
        The l2 chosen in the last round of that steepness.
    criterion_ : {"truth", "agreement"}
        What the steepness was chosen by.
    cv_results_ : dict
        For every steepness, in the order given: "steepness", "l2", "criterion" (higher is better; NaN if it could not
        be computed), "held_out_error" (sums against the last consensus for every l2, up to a constant; not to be
        compared between steepnesses), "coef", "intercept", "expertise", "n_rounds" and "converged".
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients; this and all further attributes are those of `CrowdRidgeClassifier`. The folds of `cv` are those
        that examples are scored out of.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from crowdwise import CrowdRidgeClassifierCV, simulate_annotators
    >>> X, truth = make_blobs(200, centers=2, cluster_std=2.0, random_state=0)
    >>> labels = simulate_annotators(X, truth, experts=1, adversaries=1, random_state=0)
    >>> model = CrowdRidgeClassifierCV(steepnesses=(0.0, 1.0, 2.0, 5.0)).fit(X, labels)
    >>> model.steepness_ in (0.0, 1.0, 2.0, 5.0)
    True
    """

    _tuned = True

    def __init__(
        self,
        steepnesses: Sequence[float] = STEEPNESSES,
        *,
        l2s: Sequence[float] = PAPER_L2S,
        cv: int | Iterable[Any] | Any = 10,
        criterion: Literal["auto", "truth", "agreement"] = "auto",
        tune: Literal["every round", "once"] = "every round",
        relative_to: RelativeTo = "observed",
        init: Any = "majority",
        fit_intercept: bool = True,
        max_rounds: int = 100,
        tol: float = 1e-6,
        curriculum: Curriculum | None = None,
        class_weight: dict[Any, float] | str | None = None,
        random_state: int = 0,
        keep_sums: Literal["auto"] | bool = "auto",
        verbose: int = 0,
    ) -> None:
        self.steepnesses = steepnesses
        self.l2s = l2s
        self.cv = cv
        self.criterion = criterion
        self.tune = tune
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

    def _folds(self, data: RidgeData) -> Folds:
        """Folds by content for a number, else those of a scikit-learn splitter or of given splits."""
        training, n_examples = data.training, len(data.labels)
        if self._is_splitter():
            folds = Folds.of_splitter(self.cv, training.labels._tally.argmax(axis=1), training.used)
        else:
            n_folds = check_whole("cv", self.cv, low=2)
            if n_folds > max(n_examples, 10):
                raise ValueError(f"cv must not be more than the {n_examples} examples that take part; got {n_folds}.")
            folds = Folds.by_content(training.rows, n_folds, self.random_state)
        check_folds(folds.n_folds, n_examples)
        return folds

    def _is_splitter(self) -> bool:
        return not isinstance(self.cv, str) and (hasattr(self.cv, "split") or hasattr(self.cv, "__iter__"))

    def _best_fit(self, path: RidgePath, search: Search) -> Settled:
        """The fit of the steepness that ranks examples best."""
        self.criterion_, examples, codes = examples_to_rank(path.data, self.criterion)
        fits = path.solve(search)
        ranked = held_out_rankings(path, fits, examples, codes)
        self.cv_results_ = _results(path.data, fits, ranked)
        return fits[int(np.argmax(np.nan_to_num(ranked, nan=-np.inf)))]

    def _settings_at(self, steepness: Any, l2: float | None) -> dict[str, Any]:
        settings: dict[str, Any] = {} if l2 is None else {"l2s": (l2,)}
        return settings if steepness is None else settings | {"steepnesses": (steepness,)}

    def _why_no_sums(self) -> str | None:
        if self._is_splitter():
            return f"the folds of a stream are drawn by the content of rows, so cv must be a number; it is {self.cv!r}."
        return super()._why_no_sums()

    def _fold_plan(self) -> tuple[int, int]:
        # The same folds for every block.
        return check_whole("cv", self.cv, low=2), check_whole("random_state", self.random_state, low=0)

    def _grid(self) -> tuple[list[float], Floats]:
        check_choice("criterion", self.criterion, ("auto", "truth", "agreement"))
        check_choice("tune", self.tune, ("every round", "once"))
        return _check_values("steepnesses", self.steepnesses), np.array(_check_values("l2s", self.l2s))


def _check_values(name: str, values: Any) -> list[float]:
    if not (hasattr(values, "__len__") and len(values) > 0) or isinstance(values, str):
        raise ValueError(f"{name} must be a sequence with at least one value to choose from; got {values!r}.")
    return [check_number(name, value) for value in values]


def _results(data: RidgeData, fits: list[Settled], ranked: list[float]) -> dict[str, Any]:
    features = [data.to_features(fit.theta) for fit in fits]
    return {
        "steepness": np.array([fit.weights.steepness for fit in fits]),
        "l2": np.array([fit.l2 for fit in fits]),
        "criterion": np.array(ranked),
        "held_out_error": np.array([fit.held_out_error for fit in fits]),
        "coef": np.array([coef for coef, _ in features]),
        "intercept": np.array([intercept for _, intercept in features]),
        "expertise": np.array([fit.expertise for fit in fits]),
        "n_rounds": np.array([fit.n_rounds for fit in fits]),
        "converged": np.array([fit.converged for fit in fits]),
    }
