"""Do annotators disagree near the decision boundary? Whether weighting by disagreement suits a crowd, on one screen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy import sparse
from scipy.stats import norm, rankdata, spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing, check_array, indexable

from crowdwise._arrays import ROUNDING, Floats, Positions
from crowdwise._checks import check_seed
from crowdwise._limits import ENOUGH_SHARED, N_FOLDS
from crowdwise._progress import OnRound, Reporter
from crowdwise.crowd._disagreement import disagreement
from crowdwise.crowd.coefficients import krippendorff_alpha
from crowdwise.crowd.kappas import PairAgreement, cohen_kappas
from crowdwise.em.aggregate import aggregate
from crowdwise.em.estimators import EstimatorFolds, Learner, weight_parameter
from crowdwise.em.with_features import SoftTargets
from crowdwise.exceptions import LabelError
from crowdwise.labels._align import align, as_labels
from crowdwise.labels._frames import make_frame
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.truth import codes_of_truth
from crowdwise.results.fit_results import FitResults
from crowdwise.rows.features import check_finite, check_squares
from crowdwise.training_set import refuse_texts_and_times
from crowdwise.weights.class_weights import leading_shares

# Upper ends of the levels of disagreement; the first is unanimous.
_LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Correlation:
    """A rank correlation with its 95% interval.

    Parameters
    ----------
    value : float
        Spearman's rho; NaN if one side does not vary.
    low, high : float
        Ends of the interval.
    p_value : float
        Of no correlation, two-sided.
    """

    value: float
    low: float
    high: float
    p_value: float

    def __str__(self) -> str:
        if np.isnan(self.value):
            return "undefined (one side does not vary)"
        return f"{self.value:+.3f}  (95% interval {self.low:+.3f} to {self.high:+.3f}, p = {self.p_value:.1g})"


@dataclass(frozen=True)
class Level:
    """The examples of one level of disagreement.

    Parameters
    ----------
    above, up_to : float
        Which disagreement, on a scale from 0 to the largest seen.
    n_examples : int
        How many have it.
    margin_rank : float
        Their mean place when examples are ordered by margin: 0 is on the boundary, 1 farthest from it.
    majority_error : float
        Share of them whose majority is wrong, ties counted as a fair draw; NaN if no truth is known.
    """

    above: float
    up_to: float
    n_examples: int
    margin_rank: float
    majority_error: float


@dataclass(frozen=True, repr=False, eq=False)
class Diagnosis:
    """What a crowd's disagreement has to do with its examples and its annotators.

    Parameters
    ----------
    n_examples, n_annotators, n_labels : int
        Size of the crowd.
    reference : {"truth", "consensus"}
        What the cross-fitted model was trained on.
    correlation : Correlation
        Between disagreement and margin, here the distance from the boundary: the gap between the two highest class
        scores. Clearly below zero means that annotators disagree near the boundary.
    signed_correlation : Correlation
        The same with the gap between the score of the reference class and the best other: a margin below zero
        means that the model errs.
    levels : tuple of Level
        From unanimous to most disputed.
    annotator_share : float
        Share of the spread of disagreement between examples that is explained by who labelled them.
    alpha : float
        Krippendorff's.
    pairs : PairAgreement
        Cohen's kappa of every pair of annotators.
    steepness : float
        The steepness that is advised: the one of 0 and 2 with which a model ranks held-out examples that annotators
        agree on better.
    advice : str
        Whether to weight examples by disagreement, and why, in a sentence.
    """

    n_examples: int
    n_annotators: int
    n_labels: int
    reference: Literal["truth", "consensus"]
    correlation: Correlation
    signed_correlation: Correlation
    levels: tuple[Level, ...]
    annotator_share: float
    alpha: float
    pairs: PairAgreement
    steepness: float
    advice: str

    @property
    def weight(self) -> bool:
        """Whether to weight examples by disagreement."""
        return self.steepness > 0

    def __repr__(self) -> str:
        advised = f"weight, steepness {self.steepness:g}" if self.weight else "don't weight"
        return (
            f"Diagnosis: {self.n_examples:,} examples, {self.n_annotators:,} annotators; rank correlation of "
            f"disagreement and margin {self.correlation.value:+.2f}; {advised}"
        )

    def to_frame(self) -> Any:
        """A data frame with a row per level of disagreement.

        Returns
        -------
        frame : pandas.DataFrame, or polars.DataFrame where pandas is not installed
        """
        rows = [vars(level) for level in self.levels]
        return make_frame({name: np.array([row[name] for row in rows]) for name in rows[0]})

    def __str__(self) -> str:
        per_example = self.n_labels / self.n_examples
        lines = [
            f"{self.n_examples:,} examples, {self.n_annotators:,} annotators, {per_example:.1f} labels per example",
            f"Disagreement and margin of a model of the {self.reference} (out of fold), rank correlation",
            f"  distance from the boundary  {self.correlation}",
            f"  signed by the {self.reference:<9}     {self.signed_correlation}",
            "  disagreement   examples   margin rank   majority wrong",
            *(_level_line(level) for level in self.levels),
            f"Spread of disagreement explained by who labelled: {100 * self.annotator_share:.0f}%",
            f"Krippendorff's alpha {self.alpha:.3f}; {_pairs_line(self.pairs)}",
            f"Advice: {self.advice}",
        ]
        return "\n".join(lines)


def _level_line(level: Level) -> str:
    name = "none" if level.up_to == 0 else f"to {level.up_to:.2f}"
    wrong = "unknown" if np.isnan(level.majority_error) else f"{100 * level.majority_error:.1f}%"
    return f"  {name:12} {level.n_examples:10,}   {level.margin_rank:11.2f}   {wrong:>14}"


def _pairs_line(pairs: PairAgreement) -> str:
    enough = (pairs.n_shared >= ENOUGH_SHARED) & ~np.isnan(pairs.kappa)
    if not enough.any():
        return f"no two of {len(pairs):,} pairs share ten examples"
    low, middle, high = np.quantile(pairs.kappa[enough], [0.1, 0.5, 0.9])
    return (
        f"Cohen's kappa of {int(enough.sum()):,} pairs with ten shared examples: "
        f"median {middle:.2f}, from {low:.2f} to {high:.2f} (10 to 90%)"
    )


def diagnose(
    X: Any,
    labels: Any,
    truth: Any = None,
    *,
    estimator: Any = None,
    random_state: int | np.random.Generator | None = 0,
    verbose: int = 0,
    on_round: OnRound | None = None,
) -> Diagnosis:
    """Whether annotators disagree near the decision boundary, and whether to weight examples by that.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_examples, n_features)
        Features.
    labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
        Classes.
    truth : array-like of shape (n_examples,), series or mapping, default=None
        The right classes, NaN, None or left out where unknown: a mapping, or a series if X or the labels have ids, by
        the ids of the examples; else in the order of X. Without it the consensus of the labels is taken for the truth,
        which cannot show where the majority errs.
    estimator : classifier, default=None
        Classifier whose boundary is used; anything that `CrowdClassifier` takes. None is a logistic regression on
        scaled features.
    random_state : int, Generator or None, default=0
        Seed of the folds.
    verbose : int, default=0
        0 prints nothing, 1 one line at the end, 2 also one line per round, on standard error.
    on_round : callable, default=None
        Called with a `Round` after every round on the labels, and after every step that follows.

    Returns
    -------
    diagnosis : Diagnosis
        Prints as one screen of text.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from crowdwise import diagnose, simulate_annotators
    >>> X, truth = make_blobs(300, centers=2, cluster_std=3.0, random_state=0)
    >>> found = diagnose(X, simulate_annotators(X, truth, random_state=0), truth)
    >>> bool(found.correlation.high < 0)  # annotators disagree more near the boundary
    True
    """
    rng, reporter = check_seed(random_state), Reporter("diagnose", verbose, on_round)
    X, crowd = align(indexable(X)[0], as_labels(labels))
    paired = crowd.labels_per_example > 1
    if not paired.any():
        raise LabelError("no example has two labels: nothing can be said about disagreement.")
    learner = _learner(X, crowd, estimator)
    labelled = crowd.labels_per_example > 0
    core = crowd[labelled]
    results = aggregate(core, on_round=reporter.tell)
    reference: Literal["truth", "consensus"] = "consensus" if truth is None else "truth"
    if truth is None:
        codes = np.full(len(crowd), -1)
        codes[labelled] = results.codes
    else:
        codes = codes_of_truth(truth, X, crowd)
    if len(np.unique(codes[codes >= 0])) < 2:
        raise LabelError(f"a boundary lies between two classes, and the {reference} has fewer.")
    known = paired & (codes >= 0)
    differs = disagreement(crowd)
    right, ones = np.maximum(codes, 0), np.ones(len(codes))
    targets = SoftTargets(np.eye(len(learner.classes))[right], ones, np.ones(len(learner.classes)))
    distance, signed = margins(_folds(learner, codes, rng).out_of_fold(targets)[known], codes[known])
    wrong = 1 - leading_shares(crowd._tally)[np.arange(len(crowd)), right]  # a tie is decided by a fair draw
    reporter.step("margins out of fold")
    correlation = rank_correlation(differs[known], distance)
    of_core = replace(learner, X=_safe_indexing(X, np.flatnonzero(labelled)))
    folds = _folds(of_core, core._tally.argmax(axis=1), rng)
    steepness = folds.steepness(core, differs[labelled], np.ones(len(core)))
    reporter.step("steepness")
    reporter.done()
    return Diagnosis(
        n_examples=len(crowd),
        n_annotators=crowd.n_annotators,
        n_labels=crowd.n_labels,
        reference=reference,
        correlation=correlation,
        signed_correlation=rank_correlation(differs[known], signed),
        levels=_levels(differs[known], distance, wrong[known], reference),
        annotator_share=share_of_annotators(core, results),
        alpha=krippendorff_alpha(crowd),
        pairs=cohen_kappas(crowd),
        steepness=steepness,
        advice=advise(steepness, correlation, reference),
    )


def _learner(X: Any, crowd: CrowdLabels, estimator: Any) -> Learner:
    if estimator is None:
        _check_features(X)
        estimator = make_pipeline(
            StandardScaler(with_mean=not sparse.issparse(X)), LogisticRegression(C=0.1, max_iter=2000)
        )
    weight_parameter(estimator)
    assert crowd.classes is not None
    return Learner(estimator, crowd.classes, X)


def _check_features(X: Any) -> None:
    """Raise unless ridge models could take these features."""
    refuse_texts_and_times(X)
    rows = check_array(X, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False)
    check_finite(rows)
    values = rows.data if sparse.issparse(rows) else rows
    with np.errstate(over="ignore"):
        check_squares(np.vdot(values, values))


def _folds(learner: Learner, codes: Positions, rng: np.random.Generator) -> EstimatorFolds:
    """Models of the examples of known class, and the others of these that each of them scores.

    Each class is spread evenly over the folds. Unlike scikit-learn's, these may have classes of fewer examples than
    folds; there are fewer folds if there are fewer examples.
    """
    known = np.flatnonzero(codes >= 0)
    shuffled = rng.permutation(len(known))
    order = shuffled[np.argsort(codes[known][shuffled], kind="stable")]
    fold = np.empty(len(known), dtype=np.intp)
    fold[order] = np.arange(len(known)) % N_FOLDS
    splits = [(known[fold != k], known[fold == k]) for k in range(min(N_FOLDS, len(known)))]
    return EstimatorFolds(learner, splits, rng.integers(2**31 - 1, size=len(splits)).tolist())


def margins(scores: Floats, codes: Positions) -> tuple[Floats, Floats]:
    """The gap between the two highest scores, and between the score of the right class and the best other."""
    ranked = np.sort(scores, axis=1)
    rows = np.arange(len(scores))
    wrong = scores.copy()
    wrong[rows, codes] = -np.inf
    return ranked[:, -1] - ranked[:, -2], scores[rows, codes] - wrong.max(axis=1)


def rank_correlation(first: Floats, second: Floats) -> Correlation:
    """Spearman's rank correlation; its interval is by Fisher's transformation with the error of Bonett and Wright."""
    if len(first) < 4 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return Correlation(float("nan"), float("nan"), float("nan"), float("nan"))
    spearman = spearmanr(first, second)
    value = float(spearman.statistic)
    error = np.sqrt((1 + value**2 / 2) / (len(first) - 3))
    centre = np.arctanh(np.clip(value, -1 + ROUNDING, 1 - ROUNDING))
    low, high = np.tanh(centre + norm.ppf([0.025, 0.975]) * error)
    return Correlation(value, float(low), float(high), float(spearman.pvalue))


def _levels(differs: Floats, distance: Floats, wrong: Floats, reference: str) -> tuple[Level, ...]:
    place = (rankdata(distance) - 1) / max(len(distance) - 1, 1)
    levels = []
    for above, up_to in zip((-1.0, *_LEVELS), _LEVELS, strict=False):
        rows = (differs > above) & (differs <= up_to)
        if rows.any():
            error = float(wrong[rows].mean()) if reference == "truth" else float("nan")
            levels.append(Level(max(above, 0.0), up_to, int(rows.sum()), float(place[rows].mean()), error))
    return tuple(levels)


def share_of_annotators(labels: CrowdLabels, results: FitResults) -> float:
    """The share of the spread of disagreement between examples that is explained by who labelled them.

    Confusion matrices show how often two annotators differ on an average example. The mean of that over the pairs of an
    example is what its annotators alone would lead one to expect; the share is its squared correlation with the
    disagreement seen. It is zero if all examples have the same annotators.
    """
    paired = labels.labels_per_example > 1
    crowd = labels[paired]
    n_classes = results.confusion.shape[1]
    confusion = np.nan_to_num(results.confusion).reshape(labels.n_annotators, -1)
    incidence = crowd._as_sparse(np.ones(crowd.n_labels))
    agreeing = (
        ((incidence @ confusion) ** 2 - incidence @ confusion**2).reshape(len(crowd), n_classes, n_classes).sum(axis=2)
    )
    n = crowd.labels_per_example
    expected = 1 - (agreeing / (n * (n - 1))[:, np.newaxis]) @ results.class_prior
    seen = disagreement(crowd)
    if np.ptp(expected) < 1e-9 or np.ptp(seen) == 0:
        return 0.0
    return float(np.corrcoef(expected, seen)[0, 1] ** 2)


def advise(steepness: float, correlation: Correlation, reference: str) -> str:
    """Whether to weight, and why, in a sentence; a steepness of 0 is not to weight."""
    seen = f"rank correlation {correlation.value:+.2f} with the margin of a model of the {reference}"
    if np.isnan(correlation.value):
        boundary = "Disagreement, or the margin, is the same for all examples."
    elif correlation.high < 0:
        boundary = f"Annotators disagree more near the boundary ({seen})."
    else:
        boundary = f"Annotators do not clearly disagree more near the boundary ({seen})."
    ranked = "ranks held-out examples that annotators agree on"
    if steepness > 0:
        return f"Weight, with steepness {steepness:g}: a model {ranked} better with weights. {boundary}"
    return f"Don't weight: a model {ranked} no better with weights. {boundary}"
