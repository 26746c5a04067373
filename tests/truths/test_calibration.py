"""Probabilities calibrated by truths: temperature, the shares of a mixture, and a truth never judges itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from crowdwise import CrowdLabels, aggregate
from crowdwise.exceptions import CrowdWarning
from crowdwise.labels.truth import Known
from crowdwise.truths.calibration import Calibration, _own_share, calibrate, calibrate_ratings, folds_of_truths
from crowdwise.truths.representativeness import Representativeness


def told(n, seed=0, n_classes=3, too_sure=3.0):
    """Probabilities that are too sure by a factor, the truth drawn from what they should be, and labels by chance."""
    rng = np.random.default_rng(seed)
    scores = 1.5 * rng.normal(size=(n, n_classes))
    truth = np.array([rng.choice(n_classes, p=row) for row in softmax(scores, axis=1)])
    labels = CrowdLabels.from_matrix(rng.integers(0, n_classes, (n, 4)), classes=range(n_classes))
    return softmax(too_sure * scores, axis=1), truth, labels


def calibrated(proba, truth, labels):
    return calibrate(proba, labels, Known(np.arange(len(truth)), truth))


def test_the_temperature_undoes_what_is_too_sure():
    proba, truth, labels = told(3000)
    found = calibrated(proba, truth, labels).calibration
    assert found.temperature == pytest.approx(1 / 3, rel=0.15)
    sure = found.apply(proba, labels).max(axis=1)
    assert sure.mean() == pytest.approx((proba.argmax(axis=1) == truth).mean(), abs=0.02)


def test_the_temperature_is_the_best_one_by_a_grid():
    proba, truth, labels = told(12)
    found = calibrated(proba, truth, labels).calibration

    def loss(t):
        tempered = np.maximum(proba, 1e-4) ** t
        right = (tempered / tempered.sum(axis=1, keepdims=True))[np.arange(12), truth]
        return t - np.log(t) - np.log(right).sum()

    grid = np.exp(np.linspace(-5, 2, 20_001))
    assert found.temperature == pytest.approx(grid[np.argmin([loss(t) for t in grid])], rel=1e-3)


def slow_regression(proba, truth, matrix, n_classes, class_hold=1.0):
    """Penalised multinomial regression with loops, minimised without a gradient of our own."""
    n_annotators = matrix.shape[1]

    def scores(at, i):
        table = at[1 + n_classes :].reshape(n_annotators, n_classes, n_classes)
        total = [np.exp(at[0]) * np.log(max(proba[i, k], 1e-4)) + at[1 + k] for k in range(n_classes)]
        for j, answer in enumerate(matrix[i]):
            for k in range(n_classes):
                total[k] += table[j, answer, k]
        return np.array(total)

    def loss(at):
        hold = at[0] ** 2 + class_hold * (at[1 : 1 + n_classes] ** 2).sum() + 10 * (at[1 + n_classes :] ** 2).sum()
        told = [scores(at, i) for i in range(len(truth))]
        return hold / 2 - sum(row[k] - logsumexp(row) for row, k in zip(told, truth, strict=True))

    found = minimize(loss, np.zeros(1 + n_classes + n_annotators * n_classes**2), options={"gtol": 1e-6}).x
    return np.exp(found[0]), found[1 : 1 + n_classes], found[1 + n_classes :].reshape(n_annotators, n_classes, -1)


def test_the_regression_equals_the_slow_twin():
    rng = np.random.default_rng(0)
    matrix, truth = rng.integers(0, 2, (15, 3)), rng.integers(0, 2, 15)
    labels, proba = CrowdLabels.from_matrix(matrix, classes=range(2)), rng.dirichlet(np.ones(2), 15)
    found = calibrated(proba, truth, labels).calibration
    factor, class_terms, table = slow_regression(proba, truth, matrix, 2)
    assert found.factor == pytest.approx(factor, abs=1e-3)
    assert_allclose(found.class_terms, class_terms, atol=1e-3)
    assert_allclose(found.table, table, atol=1e-3)
    assert np.abs(table).max() > 0.05


def test_a_calibration_by_hand():
    table = np.array([[[0.5, 0.0], [0.0, 1.0]], [[0.2, 0.0], [0.0, 0.0]]])
    calibration = Calibration(2.0, 0.25, 1.5, np.array([0.1, -0.1]), np.array(["a", "b"]), table)
    labels = CrowdLabels.from_matrix([[1, 0, 1], [None] * 3], annotators=["a", "new", "b"], classes=[0, 1])
    proba = np.array([[0.6, 0.4], [0.3, 0.7]])
    own = proba**2 / (proba**2).sum(axis=1, keepdims=True)
    odds = proba**1.5 * np.exp([[0.1, -0.1 + 1.0], [0.1, -0.1]])
    expected = 0.25 * own + 0.75 * odds / odds.sum(axis=1, keepdims=True)
    assert_allclose(calibration.apply(proba, labels), expected)


def one_sided(seed=2):
    """Labels of four who are right in 85 of 100 cases: sixty examples of no, then sixty of yes."""
    rng = np.random.default_rng(seed)
    truth = np.repeat(["no", "yes"], 60)
    return np.where(rng.random((120, 4)) < 0.85, truth[:, np.newaxis], truth[::-1, np.newaxis])


def test_truths_of_one_class_do_not_make_every_example_one_of_it():
    said, known = one_sided(), dict.fromkeys(range(60, 120), "yes")
    with pytest.warns(CrowdWarning) as words:
        result = aggregate(said, truth=known)
    told = [str(word.message) for word in words]
    assert any("the examples with known answers differ from the others" in text for text in told)
    assert any("all 60 known answers are 'yes'" in text for text in told)
    assert (result.label[:60] == "no").mean() > 0.8
    assert not result.truth_check.at_random


@pytest.mark.filterwarnings("ignore:the examples with known answers differ from the others")
@pytest.mark.parametrize(("n_yes", "n_no"), [(60, 1), (60, 4), (60, 5), (16, 4)])
def test_truths_of_one_class_for_the_most_part_do_not_turn_others_into_it(n_yes, n_no):
    known = dict.fromkeys(range(60, 60 + n_yes), "yes") | dict.fromkeys(range(n_no), "no")
    result = aggregate(one_sided(), truth=known)
    assert (result.label[n_no:60] == "no").mean() > 0.75  # regressions would make it 0.47 with 60 and 1


@settings(max_examples=25)
@given(st.lists(st.booleans(), min_size=1, max_size=6))
def test_few_truths_change_confidence_within_reason_and_no_answer_unless_most_contradict(right):
    proba = np.tile([0.95, 0.03, 0.02], (len(right), 1))
    truth = np.where(right, 0, 1)
    labels = CrowdLabels.from_matrix(np.zeros((len(right), 3), dtype=int), classes=range(3))
    found = calibrated(proba, truth, labels)
    assert 0.05 < found.calibration.temperature <= 3
    after = found.calibration.apply(proba, labels)
    assert (after.argmax(axis=1) == 0).all() or sum(right) < len(right) / 2
    assert_allclose(after.sum(axis=1), 1)
    assert np.isfinite(found.held_out).all()
    assert found.calibration.apply(np.eye(3), labels[[0, 0, 0]]).max() < 1  # only what is known is certain


def test_votes_decide_where_the_model_says_nothing():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 100)
    matrix = np.column_stack([truth, rng.integers(0, 2, (100, 3))])
    labels = CrowdLabels.from_matrix(matrix, classes=range(2))
    found = calibrated(np.full((100, 2), 0.5), truth, labels)
    assert found.calibration.own_share < 0.1
    assert (found.held_out.argmax(axis=1) == truth).mean() > 0.95
    nobody = CrowdLabels.from_matrix([[None] * 4, [1, 0, 0, 0]], classes=range(2))
    assert_allclose(found.calibration.apply(np.array([[0.7, 0.3], [0.5, 0.5]]), nobody)[0], [0.7, 0.3], atol=0.2)


def test_members_are_averaged_by_the_odds_of_held_out_answers():
    right = np.random.default_rng(0).random((2, 30))
    odds = 20 * np.prod(right[0] / right[1])
    assert _own_share(right) == pytest.approx(odds / (1 + odds), rel=1e-9)
    assert _own_share(right[[0, 0]]) == pytest.approx(20 / 21)  # nothing is shown
    assert _own_share(np.array([[0.9] * 5000, [0.1] * 5000])) == 1.0
    assert _own_share(np.array([[0.1] * 5000, [0.9] * 5000])) == 0.0


@pytest.mark.parametrize("chosen", [False, True])
def test_a_truth_never_judges_itself(chosen, monkeypatch):
    """What is said about an example that is held out is the same whatever its class is, but for the shares of the
    mixture: these see it through predictions of others."""
    monkeypatch.setattr("crowdwise.truths.calibration.folds_of_truths", lambda right: np.arange(len(right)) % 5)
    monkeypatch.setattr("crowdwise.truths.calibration._own_share", lambda right: 0.3)
    monkeypatch.setattr(Representativeness, "is_representative", not chosen)
    monkeypatch.setattr(Representativeness, "warn_if_chosen", lambda *_: None)
    proba, truth, labels = told(60, n_classes=2)
    other = truth.copy()
    other[7] = 1 - truth[7]
    one, two = (calibrated(proba, classes, labels).held_out for classes in (truth, other))
    assert_allclose(one[7], two[7], atol=1e-12)
    assert np.abs(one - two).max() > 1e-4  # but others learn from it


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_annotators_and_classes_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    matrix, truth, proba = rng.integers(0, 3, (40, 3)), rng.integers(0, 3, 40), rng.dirichlet(np.ones(3), 40)
    names, columns = rng.permutation(3), rng.permutation(3)
    labels = CrowdLabels.from_matrix(matrix, classes=range(3))
    renamed = CrowdLabels.from_matrix(names[matrix][:, columns], classes=range(3), annotators=columns)
    one, other = calibrated(proba, truth, labels), calibrated(proba[:, np.argsort(names)], names[truth], renamed)
    assert_allclose(other.held_out[:, names], one.held_out, atol=1e-3)


def test_truths_are_dealt_out_by_how_probable_they_are():
    right = np.random.default_rng(0).random(23)
    fold = folds_of_truths(right)
    assert_array_equal(np.bincount(fold), [5, 5, 5, 4, 4])
    order = np.random.default_rng(1).permutation(23)
    assert_array_equal(folds_of_truths(right[order]), fold[order])
    assert folds_of_truths(np.array([0.3])).tolist() == [0]


def test_ratings_by_hand():
    rating, std, truth = np.array([1.0, 2.0]), np.array([0.5, 1.0]), np.array([2.0, 2.0])
    temperature, check = calibrate_ratings(rating, std, truth, np.array([0, 1]))
    assert temperature == pytest.approx((2 + 3) / (4 + 0 + 3))
    assert check.error == pytest.approx(np.sqrt(0.5))
    held_out = [0.25 / ((1 + 3) / (0 + 3)), 1.0 / ((1 + 3) / (4 + 3))]
    assert check.std == pytest.approx(np.sqrt(np.mean(held_out)))
