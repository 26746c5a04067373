"""Ratings alone -> true ratings and annotators: a random-effects model, y_ij = m + a_j + (1 + b_j) t_i + e_ij.

Example i is t_i above the mean rating m. Annotator j rates a_j higher than others, stretches the scale by 1 + b_j, and
errs with a standard deviation of their own. Rounds of EM: true ratings by all annotators, then each annotator by a
regression on the true ratings, drawn towards the crowd.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from crowdwise._arrays import Floats, FrozenArrays
from crowdwise._limits import CROWD_STRENGTH, MOST_LABEL_ROUNDS, SLOPE_SPREAD
from crowdwise._progress import Report
from crowdwise.crowd.flags import flag_annotators
from crowdwise.exceptions import CrowdConvergenceWarning, warn
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.scale import checked_span
from crowdwise.results.consensus import RatingConsensus
from crowdwise.results.fit_results import FitResults
from crowdwise.training_set import TrainingSet
from crowdwise.truths.calibration import calibrate_ratings, folds_of_truths
from crowdwise.truths.check import HALF_WIDTH

# The least that a variance may be, in units of that of all ratings, so that nothing is divided by zero.
_LEAST = 1e-6
# The same of true ratings at the start: rounds that begin at no variance stay there.
_LEAST_TRUE = 0.05


@dataclass(frozen=True, eq=False)
class Raters(FrozenArrays):
    """How annotators rate.

    Parameters
    ----------
    mean, variance : float
        Of the true ratings.
    offset : ndarray of shape (n_annotators,)
        How much higher than the others each rates; over all ratings the mean is zero.
    slope : ndarray of shape (n_annotators,)
        By how much a rating rises if the true one rises by one; over all ratings the mean is one.
    error : ndarray of shape (n_annotators,)
        Standard deviation of the errors that are left.
    offset_std, slope_std : ndarray of shape (n_annotators,)
        Standard deviations of offset and slope.
    n_labels : ndarray of shape (n_annotators,)
        How many ratings each gave.
    error_freedom : ndarray of shape (n_annotators,)
        Degrees of freedom of each one's `error`.
    limits : ndarray of shape (2, n_annotators)
        Bland and Altman's limits of agreement: 95% of an annotator's ratings are between so much below and above the
        consensus of the others.
    log_likelihood : ndarray of shape (n_rounds,)
        The mean over all ratings, before each round.
    converged : bool
        Whether the rounds ended by themselves.
    """

    mean: float
    variance: float
    offset: Floats
    slope: Floats
    error: Floats
    offset_std: Floats
    slope_std: Floats
    n_labels: Floats
    error_freedom: Floats
    limits: Floats
    log_likelihood: Floats
    converged: bool

    @property
    def offset_variance(self) -> float:
        """The variance of offsets over annotators, those of two more being as large as the errors."""
        rated = self.n_labels > 0
        squares = self.offset[rated] ** 2 + self.offset_std[rated] ** 2
        errors = np.average(self.error**2, weights=self.n_labels)
        return float((squares.sum() + 2 * errors) / (len(squares) + 2))

    @property
    def expertise(self) -> Floats:
        """How much a rating of each annotator counts: their error in the unit of true ratings, as a precision.

        Zero where ratings do not rise with the true ones: nearly constant ratings have small errors and say nothing.
        """
        return np.where(self.n_labels > 0, (np.maximum(self.slope, 0.0) / self.error) ** 2, np.nan)

    @property
    def correlation(self) -> Floats:
        """Of each annotator's ratings with the true ones."""
        signal = self.slope * np.sqrt(self.variance)
        return np.asarray(signal / np.hypot(signal, self.error))

    def consensus(self, labels: CrowdLabels) -> tuple[Floats, Floats]:
        """The true rating of every example and its standard deviation, by labels of the same annotators."""
        above, variance = self.true_ratings(labels)
        return self.mean + above, np.sqrt(variance)

    def true_ratings(self, labels: CrowdLabels) -> tuple[Floats, Floats]:
        """How much every true rating is above the mean, and the variance of that."""
        annotator = labels.annotator_index
        weight = self.slope / self.error**2
        precision = 1 / self.variance + labels._sum_per_example((weight * self.slope)[annotator])
        return labels._sum_per_example(weight[annotator] * self._residual(labels)) / precision, 1 / precision

    def by_others(self, labels: CrowdLabels) -> tuple[Floats, Floats]:
        """The same for every label, by the other annotators of its example."""
        annotator, example = labels.annotator_index, labels.example_index
        above, variance = self.true_ratings(labels)
        weight = self.slope / self.error**2
        precision = 1 / variance[example] - (weight * self.slope)[annotator]
        of_label = weight[annotator] * self._residual(labels)
        return (above[example] / variance[example] - of_label) / precision, 1 / precision

    def error_interval(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """The interval of each annotator's `error`, by a scaled chi-squared distribution."""
        tails = stats.chi2.ppf([[(1 + confidence) / 2], [(1 - confidence) / 2]], self.error_freedom)
        low, high = self.error * np.sqrt(self.error_freedom / tails)
        return low, high

    def columns(self) -> dict[str, Floats]:
        """Columns of a table of annotators, estimates with the ends of their 95% intervals; NaN without ratings."""
        columns: dict[str, Floats] = {}
        for name, std in (("offset", self.offset_std), ("slope", self.slope_std)):
            value = getattr(self, name)
            columns |= {name: value, f"{name}_low": value - HALF_WIDTH * std, f"{name}_high": value + HALF_WIDTH * std}
        low, high = self.error_interval()
        columns |= {"spread": self.error, "spread_low": low, "spread_high": high}
        # By Fisher's transformation.
        centre, half = np.arctanh(self.correlation), HALF_WIDTH / np.sqrt(np.maximum(self.n_labels - 3, 1))
        columns |= {"correlation": self.correlation}
        columns |= {"correlation_low": np.tanh(centre - half), "correlation_high": np.tanh(centre + half)}
        columns |= {"limits_low": self.limits[0], "limits_high": self.limits[1]}
        return {name: np.where(self.n_labels > 0, column, np.nan) for name, column in columns.items()}

    def _residual(self, labels: CrowdLabels) -> Floats:
        return np.asarray(labels.values - self.mean - self.offset[labels.annotator_index])


def rating_results(training: TrainingSet, raters: Raters) -> FitResults:
    """The results of `aggregate` for ratings, in the terms of the caller: all examples and all annotators.

    Known ratings are not used in the fit: they check the consensus as it is, calibrate its standard deviations, and
    take its place afterwards.
    """
    labels = training.labels
    label, std = raters.consensus(labels)
    check, known = None, training.known
    if known is not None:
        rows = np.flatnonzero(training.used)[known.at]
        fold = folds_of_truths((label[rows] - known.answers) ** 2)
        temperature, check = calibrate_ratings(label[rows], std[rows], known.answers, fold)
        std = std * temperature**-0.5
    consensus = training.with_truth(RatingConsensus(labels.examples, label, std))
    per_example = labels.labels_per_example
    return FitResults(
        annotators=labels.annotators,
        n_labels=labels.labels_per_annotator,
        expertise=raters.expertise,
        accuracy=None,
        annotator_flags=flag_annotators(labels, raters.slope, labels.labels_per_annotator),
        offset=np.where(raters.n_labels > 0, raters.offset, np.nan),
        spread=np.where(raters.n_labels > 0, raters.error, np.nan),
        effective_votes=float(per_example[per_example > 0].mean()),
        crowd_expertise=float(np.average(np.nan_to_num(raters.expertise), weights=raters.n_labels)),
        raters=raters,
        n_examples=len(labels),
        consensus=consensus,
        label_consensus=consensus,
        disagreement=training.disagreement,
        objective=raters.log_likelihood,
        converged=raters.converged,
        truth_check=check,
        truth=training.truth,
        frame_library=labels.frame_library,
    )


def fit_ratings(
    labels: CrowdLabels, *, max_rounds: int | None = None, tol: float = 1e-5, report: Report | None = None
) -> Raters:
    """Estimate true ratings and annotators together.

    Rounds end when no true rating moves by more than `tol` standard deviations of all ratings.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        origin, unit = float(labels.values.mean()), float(labels.values.std())
    low, high = float(labels.values.min()), float(labels.values.max())
    if low == high:
        origin, unit = low, 1.0
    else:
        checked_span(unit * unit, low, high)
    standard = replace(labels, values=(labels.values - origin) / unit)
    raters = _first(standard)
    before = raters.consensus(standard)[0]
    objective: list[float] = []
    change = np.inf
    while change > tol and len(objective) < (max_rounds or MOST_LABEL_ROUNDS):
        objective.append(_log_likelihood(raters, standard) - np.log(unit))
        raters = _regressed(raters, standard)
        now = raters.consensus(standard)[0]
        change, before = float(np.abs(now - before).max(initial=0.0)), now
        if report is not None:
            report(len(objective), objective[-1], change)
    if change > tol:
        warn(
            f"after {len(objective)} rounds a rating still changed by {change:.2g} standard deviations (tol={tol:g}). "
            "Raise max_rounds or tol.",
            CrowdConvergenceWarning,
        )
    raters = _with_intervals(raters, standard)
    return replace(
        raters,
        mean=origin + unit * raters.mean,
        variance=unit**2 * raters.variance,
        offset=unit * raters.offset,
        error=unit * raters.error,
        offset_std=unit * raters.offset_std,
        limits=unit * raters.limits,
        log_likelihood=np.array(objective),
        converged=change <= tol,
    )


def _first(labels: CrowdLabels) -> Raters:
    """All annotators alike: variances within and between examples."""
    n_labels = labels._sum_per_annotator(np.ones(labels.n_labels))
    per_example = labels._sum_per_example(np.ones(labels.n_labels))
    rated = per_example > 0
    mean = float(labels.values.mean())
    above = labels._sum_per_example(labels.values - mean)[rated] / per_example[rated]
    centre = np.zeros(labels.n_examples)
    centre[rated] = above
    freedom = labels.n_labels - rated.sum()
    squares = float(((labels.values - mean - centre[labels.example_index]) ** 2).sum())
    within = max(squares / freedom if freedom else 0.5, _LEAST)
    between = max(float(np.mean(above**2)) - within * float(np.mean(1 / per_example[rated])), _LEAST_TRUE)
    ones = np.ones(labels.n_annotators)
    return Raters(
        mean=mean,
        variance=between,
        offset=0 * ones,
        slope=ones,
        error=np.sqrt(within) * ones,
        offset_std=np.sqrt(within) * ones,
        slope_std=SLOPE_SPREAD * ones,
        n_labels=n_labels,
        error_freedom=n_labels,
        limits=np.zeros((2, len(ones))),
        log_likelihood=np.empty(0),
        converged=False,
    )


def _regressed(raters: Raters, labels: CrowdLabels) -> Raters:
    """One round: true ratings, then all that describes the annotators.

    Offsets have a normal distribution around 0 whose variance is estimated, slopes around 1 with `SLOPE_SPREAD`;
    the variance of errors is that of `CROWD_STRENGTH` more ratings of the crowd's.
    """
    annotator, example = labels.annotator_index, labels.example_index
    above, variance = raters.true_ratings(labels)
    value = labels.values - raters.mean
    squared = above**2 + variance
    noise = raters.error**2
    spread = raters.offset_variance
    # The normal equations of each annotator's regression: two unknowns.
    to_offset = raters.n_labels + noise / spread
    both = labels._sum_per_annotator(above[example])
    to_slope = labels._sum_per_annotator(squared[example]) + noise / SLOPE_SPREAD**2
    sums = labels._sum_per_annotator(value)
    products = labels._sum_per_annotator(value * above[example]) + noise / SLOPE_SPREAD**2
    determinant = to_offset * to_slope - both**2
    offset = (sums * to_slope - products * both) / determinant
    slope = (products * to_offset - sums * both) / determinant
    of_slope = slope[annotator]
    squares = (value - offset[annotator] - of_slope * above[example]) ** 2 + of_slope**2 * variance[example]
    crowd = max(float(squares.mean()), _LEAST)
    error = (labels._sum_per_annotator(squares) + CROWD_STRENGTH * crowd) / (raters.n_labels + CROWD_STRENGTH)
    # Offset and slope are relative to those of the crowd.
    stretch = max(float(np.average(slope, weights=raters.n_labels)), np.sqrt(_LEAST))
    shift = float(np.average(offset, weights=raters.n_labels))
    rated = labels._sum_per_example(np.ones(labels.n_labels)) > 0
    return replace(
        raters,
        mean=raters.mean + shift,
        variance=max(float(squared[rated].mean()) * stretch**2, _LEAST),
        offset=offset - shift,
        slope=slope / stretch,
        error=np.sqrt(error),
        offset_std=np.sqrt(noise * to_slope / determinant),
        slope_std=np.sqrt(noise * to_offset / determinant) / stretch,
    )


def _with_intervals(raters: Raters, labels: CrowdLabels) -> Raters:
    """How surely annotators are known: by each one's ratings given what the others know of these examples."""
    annotator = labels.annotator_index
    others, variance = raters.by_others(labels)
    noise = raters.error**2
    total = noise[annotator] + raters.slope[annotator] ** 2 * variance
    to_offset = labels._sum_per_annotator(1 / total) + 1 / raters.offset_variance
    both = labels._sum_per_annotator(others / total)
    to_slope = labels._sum_per_annotator((others**2) / total) + 1 / SLOPE_SPREAD**2
    determinant = to_offset * to_slope - both**2
    freedom = noise**2 * labels._sum_per_annotator(1 / total**2) + CROWD_STRENGTH
    difference, number = labels.values - raters.mean - others, np.maximum(raters.n_labels, 1)
    mean = labels._sum_per_annotator(difference) / number
    spread = np.sqrt(labels._sum_per_annotator((difference - mean[annotator]) ** 2) / np.maximum(number - 1, 1))
    return replace(
        raters,
        offset_std=np.sqrt(to_slope / determinant),
        slope_std=np.sqrt(to_offset / determinant),
        error_freedom=freedom,
        limits=np.stack([mean - HALF_WIDTH * spread, mean + HALF_WIDTH * spread]),
    )


def _log_likelihood(raters: Raters, labels: CrowdLabels) -> float:
    """The mean over ratings of the logarithm of their density, true ratings integrated out."""
    above, variance = raters.true_ratings(labels)
    noise = (raters.error**2)[labels.annotator_index]
    squares = (raters._residual(labels) ** 2 / noise).sum() - (above**2 / variance).sum()
    determinants = np.log(2 * np.pi * noise).sum() + np.log(raters.variance / variance).sum()
    return float(-(squares + determinants) / 2 / labels.n_labels)
