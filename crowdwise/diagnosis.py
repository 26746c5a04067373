"""Do annotators disagree near the decision boundary? Whether weighting by disagreement suits a crowd, on one screen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.stats import norm, rankdata, spearmanr
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import indexable

from crowdwise.arrays import Floats
from crowdwise.crowd.agreement import PairAgreement, cohen_kappas, krippendorff_alpha
from crowdwise.crowd.disagreement import disagreement
from crowdwise.em.aggregate import aggregate
from crowdwise.em.held_out import EstimatorFolds, stratified_folds
from crowdwise.em.weighted_copies import Learner, weight_parameter
from crowdwise.exceptions import LabelError
from crowdwise.labels.align import align, as_labels
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import as_column, encode_declared, missing_mask
from crowdwise.weights.round_weights import SoftTargets

# Upper ends of the levels of disagreement; the first is unanimous.
_LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0)
# Weighting is advised from this rank correlation and this many labels an example on; docs/diagnosis.md says why.
_STRONG, _MANY_LABELS = -0.2, 8
_FOLDS = 5


@dataclass(frozen=True)
class Correlation:
    """A rank correlation with its 95 % interval.

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
        return f"{self.value:+.3f}  (95 % interval {self.low:+.3f} to {self.high:+.3f}, p = {self.p_value:.1g})"


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


@dataclass(frozen=True)
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
    weight : bool
        Whether to weight examples by disagreement.
    advice : str
        The same in a sentence, with the reason.
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
    weight: bool
    advice: str

    def __str__(self) -> str:
        per_example = self.n_labels / self.n_examples
        lines = [
            f"{self.n_examples:,} examples, {self.n_annotators:,} annotators, {per_example:.1f} labels an example",
            f"Disagreement and margin of a model of the {self.reference} (out of fold), rank correlation",
            f"  distance from the boundary  {self.correlation}",
            f"  signed by the {self.reference:<9}     {self.signed_correlation}",
            "  disagreement   examples   margin rank   majority wrong",
            *(_level_line(level) for level in self.levels),
            f"Spread of disagreement explained by who labelled: {100 * self.annotator_share:.0f} %",
            f"Krippendorff's alpha {self.alpha:.3f}; {_pairs_line(self.pairs)}",
            f"Advice: {self.advice}",
        ]
        return "\n".join(lines)


def _level_line(level: Level) -> str:
    name = "none" if level.up_to == 0 else f"to {level.up_to:.2f}"
    wrong = "unknown" if np.isnan(level.majority_error) else f"{100 * level.majority_error:.1f} %"
    return f"  {name:12} {level.n_examples:10,}   {level.margin_rank:11.2f}   {wrong:>14}"


def _pairs_line(pairs: PairAgreement) -> str:
    enough = (pairs.n_shared >= 10) & ~np.isnan(pairs.kappa)
    if not enough.any():
        return f"no two of {len(pairs):,} pairs share ten examples"
    low, middle, high = np.quantile(pairs.kappa[enough], [0.1, 0.5, 0.9])
    return (
        f"Cohen's kappa of {int(enough.sum()):,} pairs with ten shared examples: "
        f"median {middle:.2f}, from {low:.2f} to {high:.2f} (10 to 90 %)"
    )


def diagnose(
    X: Any,
    labels: Any,
    truth: ArrayLike | None = None,
    *,
    estimator: Any = None,
    random_state: int | np.random.Generator | None = 0,
) -> Diagnosis:
    """Whether annotators disagree near the decision boundary, and whether to weight examples by that.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_examples, n_features)
        Features.
    labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
        Classes.
    truth : array-like of shape (n_examples,), default=None
        The right classes in the order of X, NaN or None where unknown. Without it the consensus of the labels is
        taken for the truth, which cannot show where the majority errs.
    estimator : classifier, default=None
        What finds the boundary; anything that `CrowdClassifier` takes. None is a logistic regression on scaled
        features.
    random_state : int, Generator or None, default=0
        Seed of the folds.

    Returns
    -------
    diagnosis : Diagnosis
        Prints as one screen of text.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from crowdwise import diagnose, simulate_annotators
    >>> X, truth = make_blobs(300, centers=2, cluster_std=3.0, random_state=0)
    >>> found = diagnose(X, simulate_annotators(X, truth, clarity=2.0, random_state=0), truth)
    >>> bool(found.correlation.high < 0), found.weight
    (True, True)
    """
    X, crowd = align(indexable(X)[0], as_labels(labels))
    paired = crowd.labels_per_example > 1
    if not paired.any():
        raise LabelError("no example has two labels: nothing can be said about disagreement.")
    reference, codes = _reference(crowd, truth)
    scores = _unseen_scores(X, crowd, codes, estimator, np.random.default_rng(random_state))
    known = paired & (codes >= 0)
    differs = disagreement(crowd)
    distance, signed = margins(scores[known], codes[known])
    correlation = rank_correlation(differs[known], distance)
    weight, advice = advise(correlation, reference, crowd.n_labels / max(int((~_silent(crowd)).sum()), 1))
    return Diagnosis(
        n_examples=len(crowd),
        n_annotators=crowd.n_annotators,
        n_labels=crowd.n_labels,
        reference=reference,
        correlation=correlation,
        signed_correlation=rank_correlation(differs[known], signed),
        levels=_levels(differs[known], distance, _majority_error(crowd, codes)[known], reference),
        annotator_share=share_of_annotators(crowd),
        alpha=krippendorff_alpha(crowd),
        pairs=cohen_kappas(crowd),
        weight=weight,
        advice=advice,
    )


def _silent(crowd: CrowdLabels) -> NDArray[np.bool_]:
    return crowd.labels_per_example == 0


def _reference(crowd: CrowdLabels, truth: ArrayLike | None) -> tuple[Literal["truth", "consensus"], NDArray[np.intp]]:
    """What the model learns, as positions among the classes; -1 where it is unknown."""
    assert crowd.classes is not None
    if truth is None:
        codes = aggregate(crowd).proba.argmax(axis=1)
        codes[_silent(crowd)] = -1
    else:
        values = as_column(truth, "truth")
        if len(values) != len(crowd):
            raise LabelError(f"truth must be one per example, {len(crowd)}; got {len(values)}.")
        absent = missing_mask(values)
        codes = encode_declared(values, crowd.classes).astype(np.intp)
        strange = (codes < 0) & ~absent
        if strange.any():
            raise LabelError(
                f"truth must be in the terms of the labels' classes {crowd.classes.tolist()}; found "
                f"{values[strange][:1].tolist()[0]!r} for example {int(strange.argmax())}."
            )
    if len(np.unique(codes[codes >= 0])) < 2:
        what = "consensus" if truth is None else "truth"
        raise LabelError(f"a boundary lies between two classes, and the {what} has fewer.")
    return ("consensus" if truth is None else "truth"), codes.astype(np.intp)


def _unseen_scores(
    X: Any, crowd: CrowdLabels, codes: NDArray[np.intp], estimator: Any, rng: np.random.Generator
) -> Floats:
    """Scores of every example of known class by a model of others."""
    assert crowd.classes is not None
    if estimator is None:
        estimator = make_pipeline(
            StandardScaler(with_mean=not sparse.issparse(X)), LogisticRegression(C=0.1, max_iter=2000)
        )
    weight_parameter(estimator)
    known = np.flatnonzero(codes >= 0)
    folds = stratified_folds(codes[known], _FOLDS, rng)
    splits = [(known[learn], known[held_out]) for learn, held_out in folds]
    certain = np.eye(len(crowd.classes))[np.maximum(codes, 0)]
    targets = SoftTargets(certain, np.ones(len(crowd)), np.ones(len(crowd.classes)))
    learner = Learner(estimator, crowd.classes, X)
    return (
        EstimatorFolds(learner, splits, rng.integers(2**31 - 1, size=len(splits)).tolist()).out_of_fold(targets).scores
    )


def margins(scores: Floats, codes: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """The gap between the two highest scores, and between the score of the right class and the best other.

    Parameters
    ----------
    scores : ndarray of shape (n_examples, n_classes)
        Of a model.
    codes : ndarray of shape (n_examples,)
        The right classes.

    Returns
    -------
    distance, signed : ndarray of shape (n_examples,)
    """
    ranked = np.sort(scores, axis=1)
    rows = np.arange(len(scores))
    others = scores.copy()
    others[rows, codes] = -np.inf
    return ranked[:, -1] - ranked[:, -2], scores[rows, codes] - others.max(axis=1)


def rank_correlation(one: Floats, other: Floats) -> Correlation:
    """Spearman's rank correlation; its interval is by Fisher's transformation with the error of Bonett and Wright."""
    if len(one) < 4 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return Correlation(float("nan"), float("nan"), float("nan"), float("nan"))
    found = spearmanr(one, other)
    value = float(found.statistic)
    error = np.sqrt((1 + value**2 / 2) / (len(one) - 3))
    centre = np.arctanh(np.clip(value, -1 + 1e-12, 1 - 1e-12))
    low, high = np.tanh(centre + norm.ppf([0.025, 0.975]) * error)
    return Correlation(value, float(low), float(high), float(found.pvalue))


def _majority_error(crowd: CrowdLabels, codes: NDArray[np.intp]) -> Floats:
    """Probability that the majority is wrong, a tie being decided by a fair draw."""
    tally = crowd.tally
    top = tally == tally.max(axis=1, keepdims=True)
    right = top[np.arange(len(crowd)), np.maximum(codes, 0)]
    return np.asarray(1 - right / top.sum(axis=1))


def _levels(differs: Floats, distance: Floats, wrong: Floats, reference: str) -> tuple[Level, ...]:
    place = (rankdata(distance) - 1) / max(len(distance) - 1, 1)
    found = []
    for above, up_to in zip((-1.0, *_LEVELS), _LEVELS, strict=False):
        at = (differs > above) & (differs <= up_to)
        if at.any():
            error = float(wrong[at].mean()) if reference == "truth" else float("nan")
            found.append(Level(max(above, 0.0), up_to, int(at.sum()), float(place[at].mean()), error))
    return tuple(found)


def share_of_annotators(labels: CrowdLabels) -> float:
    """The share of the spread of disagreement between examples that is explained by who labelled them.

    Confusion matrices say how often two annotators differ on an average example. The mean of that over the pairs of an
    example is what its annotators alone would lead one to expect; the share is its squared correlation with the
    disagreement seen. It is zero if all examples have the same annotators.

    Parameters
    ----------
    labels : CrowdLabels
        Classes.

    Returns
    -------
    share : float
        From 0 to 1.
    """
    found = aggregate(labels, max_rounds=1000)
    kept = labels.labels_per_example > 1
    crowd = labels[kept]
    n_classes = found.confusion.shape[1]
    confusion = np.nan_to_num(found.confusion).reshape(labels.n_annotators, -1)
    who = sparse.csr_array((np.ones(crowd.n_labels), crowd.annotator_index, crowd.indptr), shape=crowd.shape)
    both = ((who @ confusion) ** 2 - who @ confusion**2).reshape(len(crowd), n_classes, n_classes).sum(axis=2)
    n = crowd.labels_per_example
    expected = 1 - (both / (n * (n - 1))[:, np.newaxis]) @ found.class_prior
    seen = disagreement(crowd)
    if np.ptp(expected) < 1e-9 or np.ptp(seen) == 0:
        return 0.0
    return float(np.corrcoef(expected, seen)[0, 1] ** 2)


def advise(correlation: Correlation, reference: str, labels_per_example: float) -> tuple[bool, str]:
    """Whether to weight, and why, in a sentence.

    Parameters
    ----------
    correlation : Correlation
        Of disagreement with distance from the boundary.
    reference : str
        What the boundary was learnt from.
    labels_per_example : float
        On average, over examples with labels.

    Returns
    -------
    weight : bool
    advice : str
    """
    seen = f"rank correlation {correlation.value:+.2f} with the margin of a model of the {reference}"
    if np.isnan(correlation.value):
        return False, "Don't weight: disagreement, or the margin, is the same for all examples."
    if correlation.high >= 0:
        return False, f"Don't weight: annotators do not clearly disagree more near the boundary ({seen})."
    if labels_per_example < _MANY_LABELS:
        return False, (
            f"Don't weight: annotators disagree more near the boundary ({seen}), but {labels_per_example:.1f} labels "
            "an example are too few to tell hard examples from unlucky ones."
        )
    if correlation.value > _STRONG:
        return False, f"Don't weight: disagreement has little to do with the boundary ({seen})."
    return True, f"Weight, with a steepness around 2: annotators disagree near the boundary ({seen})."
