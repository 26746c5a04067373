"""Ratings alone: against the joint normal distribution, known answers and simulated crowds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from crowdwise import CrowdLabels, aggregate
from crowdwise.em.ratings import Raters, _log_likelihood, fit_ratings
from crowdwise.exceptions import LabelError


def of(matrix: np.ndarray) -> CrowdLabels:
    return CrowdLabels.from_matrix(matrix, scale="interval")


def simulated(seed: int, n_examples: int = 300, n_annotators: int = 5, missing: float = 0.0) -> tuple:
    rng = np.random.default_rng(seed)
    truth = rng.normal(3, 1, n_examples)
    offset, slope = rng.normal(0, 0.5, n_annotators), np.exp(rng.normal(0, 0.2, n_annotators))
    error = np.exp(rng.uniform(np.log(0.3), np.log(1.5), n_annotators))
    matrix = offset + slope * truth[:, np.newaxis] + error * rng.normal(size=(n_examples, n_annotators))
    matrix[rng.random(matrix.shape) < missing] = np.nan
    return matrix, truth, offset, slope, error


def dense(raters: Raters, matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Consensus, variances and log-likelihood of complete ratings by the joint normal distribution."""
    covariance = raters.variance * np.outer(raters.slope, raters.slope) + np.diag(raters.error**2)
    mean = raters.mean + raters.offset
    gain = raters.variance * raters.slope @ np.linalg.inv(covariance)
    variance = raters.variance - gain @ raters.slope * raters.variance
    density = stats.multivariate_normal(mean, covariance).logpdf(matrix)
    return raters.mean + (matrix - mean) @ gain, np.full(len(matrix), variance), float(density.sum() / matrix.size)


def test_consensus_and_likelihood_are_those_of_the_joint_normal_distribution() -> None:
    matrix, *_ = simulated(0, 60, 4)
    labels = of(matrix)
    raters = fit_ratings(labels, tol=0.1)
    label, std = raters.consensus(labels)
    expected, variance, density = dense(raters, matrix)
    np.testing.assert_allclose(label, expected, rtol=1e-12)
    np.testing.assert_allclose(std**2, variance, rtol=1e-12)
    assert _log_likelihood(raters, labels) == pytest.approx(density, rel=1e-12)


def test_by_others_is_the_consensus_without_this_annotator() -> None:
    matrix, *_ = simulated(1, 40, 4)
    labels = of(matrix)
    raters = fit_ratings(labels)
    others, variance = raters.by_others(labels)
    alone = matrix.copy()
    alone[:, 2] = np.nan
    label, std = raters.consensus(of(alone))
    rows = labels.annotator_index == 2
    np.testing.assert_allclose(raters.mean + others[rows], label, rtol=1e-10)
    np.testing.assert_allclose(variance[rows], std**2, rtol=1e-10)


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_annotators_are_found(missing: float) -> None:
    matrix, _, offset, slope, error = simulated(2, 3000, 6, missing)
    labels = of(matrix)
    raters = fit_ratings(labels)
    assert raters.converged
    scale = np.average(slope, weights=raters.n_labels)
    np.testing.assert_allclose(raters.slope, slope / scale, atol=0.06)
    shifted = offset + slope * raters_origin(raters, offset, scale)
    shifted -= np.average(shifted, weights=raters.n_labels)
    np.testing.assert_allclose(raters.offset, shifted, atol=0.12)
    np.testing.assert_allclose(raters.error, error, atol=0.06)


def test_consensus_beats_the_mean_of_uneven_annotators() -> None:
    for seed in range(5):
        matrix, truth, offset, slope, _ = simulated(10 + seed)
        label, _ = fit_ratings(of(matrix)).consensus(of(matrix))
        on_their_scale = offset.mean() + slope.mean() * truth
        errors = [np.sqrt(np.mean((guess - on_their_scale) ** 2)) for guess in (label, matrix.mean(axis=1))]
        assert errors[0] < errors[1]


def test_intervals_cover() -> None:
    """At least nine in ten, of intervals of 95%, over crowds whose annotators are drawn as the model has it."""
    covered: dict[str, list[float]] = {"truth": [], "offset": [], "slope": [], "error": []}
    for seed in range(30):
        matrix, truth, offset, slope, error = simulated(100 + seed, 200, 6, 0.3)
        labels = of(matrix)
        raters = fit_ratings(labels)
        label, std = raters.consensus(labels)
        scale = np.average(slope, weights=raters.n_labels)
        at_mean = offset + slope * raters_origin(raters, offset, scale)
        shift = np.average(at_mean, weights=raters.n_labels)
        true = np.average(offset, weights=raters.n_labels) + scale * truth
        covered["truth"].append(float(np.mean(np.abs(label - true) < 1.96 * std)))
        covered["offset"].append(float(np.mean(np.abs(raters.offset - (at_mean - shift)) < 1.96 * raters.offset_std)))
        covered["slope"].append(float(np.mean(np.abs(raters.slope - slope / scale) < 1.96 * raters.slope_std)))
        low, high = raters.error_interval()
        covered["error"].append(float(np.mean((low <= error) & (error <= high))))
    assert {name: np.mean(shares) > 0.89 for name, shares in covered.items()} == dict.fromkeys(covered, True), covered


def raters_origin(raters: Raters, offset: np.ndarray, scale: float) -> float:
    """The true rating at which offsets are measured: that of the mean rating."""
    return float((raters.mean - np.average(offset, weights=raters.n_labels)) / scale)


def test_units_and_shifts_change_nothing_but_themselves() -> None:
    matrix, *_ = simulated(3, 50, 4, 0.3)
    once, twice = fit_ratings(of(matrix)), fit_ratings(of(10 + 1000 * matrix))
    label, std = once.consensus(of(matrix))
    scaled, scaled_std = twice.consensus(of(10 + 1000 * matrix))
    np.testing.assert_allclose(scaled, 10 + 1000 * label, rtol=1e-8)
    np.testing.assert_allclose(scaled_std, 1000 * std, rtol=1e-8)
    np.testing.assert_allclose(twice.slope, once.slope, rtol=1e-8)


def test_order_of_examples_and_annotators_does_not_matter() -> None:
    matrix, *_ = simulated(4, 50, 5, 0.3)
    rows, columns = np.random.default_rng(0).permutation(50), np.array([3, 1, 4, 0, 2])
    label, _ = fit_ratings(of(matrix)).consensus(of(matrix))
    moved = of(matrix[rows][:, columns])
    np.testing.assert_allclose(fit_ratings(moved).consensus(moved)[0], label[rows], rtol=1e-9)


@pytest.mark.parametrize(
    "matrix",
    [np.full((4, 3), 2.0), np.array([[1.0]]), np.array([[1.0, 2.0]]), np.array([[1.0, np.nan], [np.nan, 4.0]])],
)
def test_little_is_no_failure(matrix: np.ndarray) -> None:
    labels = of(matrix)
    label, std = fit_ratings(labels).consensus(labels)
    assert np.isfinite(label).all()
    assert np.isfinite(std).all()
    assert (label >= np.nanmin(matrix)).all()
    assert (label <= np.nanmax(matrix)).all()


def test_limits_of_agreement_hold_most_differences() -> None:
    matrix, *_ = simulated(5, 2000, 5)
    labels = of(matrix)
    raters = fit_ratings(labels)
    low, high = raters.limits
    others, _ = raters.by_others(labels)
    difference = labels.values - raters.mean - others
    who = labels.annotator_index
    inside = (low[who] <= difference) & (difference <= high[who])
    assert 0.93 < inside.mean() < 0.97


@pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdWarning")
@pytest.mark.parametrize("n_annotators", [1, 3])
@pytest.mark.parametrize("size", [5e-324, 1e-300, 1e-120, 1e120, 1e160, 1e300])
def test_ratings_of_any_size_are_fitted_or_refused_in_words(size: float, n_annotators: int) -> None:
    matrix = simulated(3, 20, n_annotators)[0]
    if 1e-120 <= size <= 1e120:
        expected = aggregate(of(matrix)).label
        assert aggregate(of(matrix * size)).label / size == pytest.approx(expected, rel=1e-9)
        return
    with pytest.raises(LabelError, match=r"squared.*: rescale them"):
        aggregate(of(matrix * size))


@pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdWarning")
@pytest.mark.parametrize("rating", [0.0, 0.1, 1e-320, 1e300])
def test_ratings_that_are_all_the_same_are_the_consensus(rating: float) -> None:
    results = aggregate(of(np.full((10, 3), rating)))
    assert results.label.tolist() == [rating] * 10
    assert np.isfinite(results.std).all()
