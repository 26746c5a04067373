"""Probabilities calibrated by truths: temperature, the shares of a mixture, and a truth never judges itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import softmax

from crowdwise import CrowdLabels, aggregate
from crowdwise.exceptions import CrowdWarning
from crowdwise.truths.calibration import Calibration, calibrate, calibrate_ratings, folds_of_truths


def told(n, seed=0, n_classes=3, too_sure=3.0):
    """Probabilities that are too sure by a factor, the truth drawn from what they should be, and labels by chance."""
    rng = np.random.default_rng(seed)
    scores = 1.5 * rng.normal(size=(n, n_classes))
    truth = np.array([rng.choice(n_classes, p=row) for row in softmax(scores, axis=1)])
    labels = CrowdLabels.from_matrix(rng.integers(0, n_classes, (n, 4)), classes=range(n_classes))
    return softmax(too_sure * scores, axis=1), truth, labels


def test_the_temperature_undoes_what_is_too_sure():
    proba, truth, labels = told(3000)
    one_annotator = labels.select_annotators([True, False, False, False])  # no mixture
    calibration, _ = calibrate(proba, truth, one_annotator, np.arange(3000) % 5)
    assert calibration.temperature == pytest.approx(1 / 3, rel=0.15)
    assert calibration.votes == ()
    sure = calibration.apply(proba, one_annotator).max(axis=1)
    assert sure.mean() == pytest.approx((proba.argmax(axis=1) == truth).mean(), abs=0.02)


def test_the_temperature_is_the_best_one_by_a_grid():
    proba, truth, labels = told(12)
    calibration, _ = calibrate(proba, truth, labels, np.arange(12) % 5)

    def loss(t):
        tempered = np.maximum(proba, 1e-4) ** t
        right = (tempered / tempered.sum(axis=1, keepdims=True))[np.arange(12), truth]
        return np.log(t) ** 2 / 2 - np.log(right).sum()

    grid = np.exp(np.linspace(-5, 2, 20_001))
    assert calibration.temperature == pytest.approx(grid[np.argmin([loss(t) for t in grid])], rel=1e-3)


def one_sided(seed=2):
    """Labels of four who are right in 85 of 100 cases: sixty examples of no, then sixty of yes."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(["no", "yes"], 60)
    return np.where(rng.random((120, 4)) < 0.85, truth[:, np.newaxis], truth[::-1, np.newaxis])


def test_truths_of_one_class_do_not_make_every_example_one_of_it():
    said, known = one_sided(), dict.fromkeys(range(60, 120), "yes")
    with pytest.warns(CrowdWarning, match="unlike the others: by their labels 9.% of them are 'yes'"):
        result = aggregate(said, truth=known)
    assert (result.label[:60] == "no").mean() > 0.8  # regressions on the votes would make it 0.48
    assert result.fitted.calibration.votes == ()


@pytest.mark.parametrize(("n_yes", "n_no", "mixed"), [(60, 1, False), (60, 4, False), (60, 5, True), (16, 4, True)])
def test_votes_are_weighted_only_with_some_truths_outside_the_most_frequent_class(n_yes, n_no, mixed):
    labels = CrowdLabels.from_matrix(one_sided())
    rows, truth = np.r_[0:n_no, 60 : 60 + n_yes], np.repeat([0, 1], [n_no, n_yes])
    calibration, _ = calibrate(labels.tally[rows] / 4, truth, labels[rows], np.arange(len(rows)) % 5)
    assert (calibration.votes != ()) == mixed


@pytest.mark.filterwarnings("ignore:the known answers are of examples unlike the others")
@pytest.mark.parametrize(("n_yes", "n_no"), [(60, 1), (60, 4), (60, 5), (16, 4)])
def test_truths_of_one_class_for_the_most_part_do_not_turn_others_into_it(n_yes, n_no):
    known = dict.fromkeys(range(60, 60 + n_yes), "yes") | dict.fromkeys(range(n_no), "no")
    result = aggregate(one_sided(), truth=known)
    assert (result.label[n_no:60] == "no").mean() > 0.75  # regressions would make it 0.47 with 60 and 1


@settings(max_examples=25)
@given(st.lists(st.booleans(), min_size=1, max_size=6))
def test_few_truths_change_confidence_within_reason_and_no_answer(right):
    proba = np.tile([0.95, 0.03, 0.02], (len(right), 1))
    truth = np.where(right, 0, 1)
    labels = CrowdLabels.from_matrix(np.zeros((len(right), 3), dtype=int), classes=range(3))
    calibration, held_out = calibrate(proba, truth, labels, np.arange(len(right)) % 5)
    assert 0.05 < calibration.temperature <= 3
    found = calibration.apply(proba, labels)
    assert (found.argmax(axis=1) == 0).all()
    assert_allclose(found.sum(axis=1), 1)
    assert np.isfinite(held_out).all()
    assert calibration.apply(np.eye(3), labels[[0, 0, 0]]).max() < 1  # only what is known is certain


def test_votes_are_mixed_in_where_the_model_says_nothing():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 100)
    matrix = np.column_stack([truth, rng.integers(0, 2, (100, 3))])
    labels = CrowdLabels.from_matrix(matrix, classes=range(2))
    calibration, held_out = calibrate(np.full((100, 2), 0.5), truth, labels, np.arange(100) % 5)
    assert len(calibration.votes) == 2
    assert calibration.shares[0] < 0.1
    assert calibration.shares.sum() == pytest.approx(1)
    assert (held_out.argmax(axis=1) == truth).mean() > 0.95
    nobody = CrowdLabels.from_matrix([[None] * 4, [1, 0, 0, 0]], classes=range(2))
    assert_allclose(calibration.apply(np.array([[0.7, 0.3], [0.5, 0.5]]), nobody)[0], [0.7, 0.3], atol=0.2)


@pytest.mark.parametrize(("n", "most"), [(14, 1e-12), (60, 0.03)])
def test_a_truth_never_judges_itself(n, most):
    """What is said about an example when it is held out is the same whatever its class is, but for the shares of the
    mixture: these see it through predictions of others."""
    proba, truth, labels = told(n, n_classes=2)
    fold = np.arange(n) % 5
    other = truth.copy()
    other[7] = 1 - truth[7]
    one, two = (calibrate(proba, classes, labels, fold)[1][7] for classes in (truth, other))
    assert np.abs(one - two).max() <= most


def test_truths_are_dealt_out_by_how_probable_they_are():
    right = np.random.default_rng(0).random(23)
    fold = folds_of_truths(right)
    assert_array_equal(np.bincount(fold), [5, 5, 5, 4, 4])
    order = np.random.default_rng(1).permutation(23)
    assert_array_equal(folds_of_truths(right[order]), fold[order])
    assert folds_of_truths(np.array([0.3])).tolist() == [0]


def test_ratings_by_hand():
    rating, std, truth = np.array([1.0, 2.0]), np.array([0.5, 1.0]), np.array([2.0, 2.0])
    calibration, check = calibrate_ratings(rating, std, truth, np.array([0, 1]))
    assert calibration.temperature == pytest.approx((2 + 3) / (4 + 0 + 3))
    assert check.error == pytest.approx(np.sqrt(0.5))
    held_out = [0.25 / ((1 + 3) / (0 + 3)), 1.0 / ((1 + 3) / (4 + 3))]
    assert check.std == pytest.approx(np.sqrt(np.mean(held_out)))
    assert isinstance(calibration, Calibration)
