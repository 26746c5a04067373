"""A fitted ridge classifier -> what every steepness would give: one pass over the rows for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crowdwise._arrays import Array, Floats
from crowdwise._limits import EASIEST_SHARE
from crowdwise._progress import OnRound
from crowdwise._threads import one_blas_thread
from crowdwise.crowd._disagreement import example_weights
from crowdwise.results.fit_results import FitResults
from crowdwise.ridge.data import LevelSums
from crowdwise.ridge.rounds import RidgePath, Settled, examples_to_rank, held_out_rankings
from crowdwise.training_set import effective_examples

# From equal weights to weights that leave little more than the unanimous examples.
STEEPNESSES = tuple(round(20 * (k / 19) ** 2, 1) for k in range(20))

# Its name, what it is, whether higher is better, and a value for every steepness.
Criterion = tuple[str, str, bool, Floats]


@dataclass(frozen=True, eq=False)
class SteepnessCurve:
    """Fits at many steepnesses and one l2.

    Parameters
    ----------
    l2 : float
        The same for all.
    steepness : ndarray of shape (n_steepnesses,)
        Where they are.
    effective : ndarray of shape (n_steepnesses,)
        The effective number of examples.
    annotators : ndarray of shape (n_annotators,)
        Their names.
    expertise : ndarray of shape (n_steepnesses, n_annotators)
        How much each annotator counts.
    criteria : tuple of (name, title, higher_is_better, values)
        Measures against something that the steepness does not change, so that they can be compared between
        steepnesses. All are of models that have not seen the examples.
    """

    l2: float
    steepness: Floats
    effective: Floats
    annotators: Array
    expertise: Floats
    criteria: tuple[Criterion, ...]


@dataclass(frozen=True, eq=False)
class Refit:
    """What a fit weighs and whom it trusts, without results of single examples.

    Parameters
    ----------
    steepness, l2 : float
        Where it is; l2 is NaN if the model has none.
    annotators : ndarray of shape (n_annotators,)
        Their names.
    expertise : ndarray of shape (n_annotators,)
        How much each counts.
    coef : ndarray of shape (n_scores, n_features)
        Coefficients; no score without features.
    levels : ndarray of shape (n_levels,)
        The levels of disagreement that there are.
    n_each : ndarray of shape (n_levels,)
        How many examples have each, or how often these count.
    weight : ndarray of shape (n_levels,)
        What each of these weighs.
    """

    steepness: float
    l2: float
    annotators: Array
    expertise: Floats
    coef: Floats
    levels: Floats
    n_each: Floats
    weight: Floats

    @classmethod
    def of_sums(cls, model: Any, steepness: float | None = None, l2: float | None = None) -> Refit:
        """The model solved again from its sums: no pass over the rows.

        Parameters
        ----------
        model : CrowdRidgeClassifier or CrowdRidgeClassifierCV
            Fitted in memory, with its sums kept.
        steepness, l2 : float, default=None
            Where; by default those of the model.

        Returns
        -------
        refit : Refit
        """
        path, (fit,) = solve_again(model, [model.steepness_ if steepness is None else steepness], l2)
        training = path.data.training
        if path.sums is None:
            levels, at = np.unique(training.weighing_disagreement, return_inverse=True)
            n_each: Floats = np.bincount(at, training.sample_weight, minlength=len(levels)).astype(np.float64)
        else:
            levels, n_each = path.sums.examples_per_level()
        return cls(
            fit.weights.steepness,
            fit.l2,
            training.labels.annotators,
            training.among_all(fit.expertise),
            path.data.to_features(fit.theta)[0],
            levels,
            n_each,
            example_weights(levels, fit.weights.steepness),
        )

    @classmethod
    def of_results(cls, model: Any, results: FitResults) -> Refit:
        """That of any model with its results.

        Parameters
        ----------
        model : estimator or FitResults
            Fitted.
        results : FitResults
            Its results.

        Returns
        -------
        refit : Refit
        """
        levels, at = np.unique(results.disagreement, return_inverse=True)
        return cls(
            float(results.steepness),
            float(getattr(model, "l2_", np.nan)),
            results.annotators,
            results.expertise,
            np.asarray(getattr(model, "coef_", np.zeros((0, 0)))),
            levels,
            np.bincount(at, minlength=len(levels)).astype(np.float64),
            example_weights(levels, results.steepness),
        )

    @property
    def effective(self) -> float:
        """The effective number of examples."""
        return effective_examples(self.weight, self.n_each)


def steepness_curve(
    model: Any,
    steepnesses: Sequence[float] = STEEPNESSES,
    l2: float | None = None,
    *,
    on_round: OnRound | None = None,
) -> SteepnessCurve:
    """What a fit at every steepness gives, from the sums of one fit.

    Parameters
    ----------
    model : CrowdRidgeClassifier or CrowdRidgeClassifierCV
        Fitted in memory, with its sums kept.
    steepnesses : sequence of float, default=STEEPNESSES
        Where.
    l2 : float, default=None
        That of all fits; by default that of the model.
    on_round : callable, default=None
        Is given a `Round` after every round of every fit. What it raises ends all of them.

    Returns
    -------
    curve : SteepnessCurve

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from crowdwise import CrowdRidgeClassifier, simulate_annotators
    >>> from crowdwise.ridge.curve import steepness_curve
    >>> X, truth = make_blobs(200, centers=2, cluster_std=2.0, random_state=0)
    >>> labels = simulate_annotators(X, truth, experts=1, adversaries=1, random_state=0)
    >>> curve = steepness_curve(CrowdRidgeClassifier().fit(X, labels), [0.0, 2.0, 5.0])
    >>> [name for name, _, _, _ in curve.criteria], curve.effective.round().tolist()[0]
    (['label_error', 'easy_error', 'ranking'], 200.0)
    """
    path, fits = solve_again(model, steepnesses, l2, by_fold=True, on_round=on_round)
    data = path.data
    with one_blas_thread():
        has_folds = path.sums is not None and path.sums.n_folds == path.folds.n_folds
        criteria = _from_sums(path.sums, fits) if path.sums is not None and has_folds else []
        criteria.append(_ranking(path, fits))
    weight = data.training.sample_weight
    return SteepnessCurve(
        fits[0].l2,
        np.array(steepnesses, dtype=np.float64),
        np.array([effective_examples(data.easiness(steepness) * weight) for steepness in steepnesses]),
        data.training.labels.annotators,
        np.array([data.training.among_all(fit.expertise) for fit in fits]),
        tuple(criteria),
    )


def solve_again(
    model: Any,
    steepnesses: Sequence[float],
    l2: float | None = None,
    *,
    by_fold: bool = False,
    on_round: OnRound | None = None,
) -> tuple[RidgePath, list[Settled]]:
    """What a fitted model keeps, and the rounds solved from that at other steepnesses and an l2: no pass over rows.

    Sums `by_fold` are made anew if labels that came later left those of all folds together; the model has its own until
    then, for others who solve it meanwhile.
    """
    kept: RidgePath = model._path()
    kept.by_level = True
    path, sums = kept, kept.sums
    if by_fold and sums is not None and sums.n_folds < kept.folds.n_folds:
        path = replace(kept, sums=None)
    settings = model._settings_at(0.0, float(model.l2_ if l2 is None else l2))
    search = replace(model._new(settings)._search(on_round), steepnesses=list(steepnesses), tuned=False)
    with one_blas_thread():
        fits = path.solve(search)
    if kept.sums is sums:
        kept.sums = path.sums
    return path, fits


def _from_sums(sums: LevelSums, fits: list[Settled]) -> list[Criterion]:
    """Mean squared errors of labels that count alike, on all examples and on easy ones, by models of other folds."""
    levels, present = sums.examples_per_level()
    easy = sums.levels <= levels[np.cumsum(present) - present < EASIEST_SHARE * present.sum()].max()
    title = "held-out squared error against every label"
    return [
        ("label_error", title, False, _label_errors(sums, np.ones(len(easy), dtype=bool), fits)),
        ("easy_error", f"{title} of easy examples", False, _label_errors(sums, easy, fits)),
    ]


def _label_errors(sums: LevelSums, levels: Array, fits: list[Settled]) -> Floats:
    total, n_labels = np.zeros(len(fits)), 0.0
    for k in range(sums.n_folds):
        cells = np.zeros((len(levels), sums.n_folds))
        cells[levels, k] = 1.0
        held_out = sums.statistics.combine(cells.reshape(1, -1))
        total += [held_out.squared_errors(fit.fold_theta[k]).sum() for fit in fits if fit.fold_theta is not None]
        n_labels += held_out.answered.sum()
    return total / n_labels


def _ranking(path: RidgePath, fits: list[Settled]) -> Criterion:
    criterion, examples, codes = examples_to_rank(path.data)
    title = f"held-out ranking of {'known answers' if criterion == 'truth' else 'easy examples'}"
    return "ranking", title, True, np.array(held_out_rankings(path, fits, examples, codes))
