"""How correlated the errors of annotators are, from labels and results of any model, with truth and without."""

import numpy as np
import pytest
from all_models import EVERYTHING, over, reference
from crowds import crowd, labels_of
from numpy.testing import assert_allclose

from crowdwise import CrowdLabels, CrowdRidgeRegressor, aggregate, error_correlation
from crowdwise.exceptions import LabelError


def binary(errors, truth):
    return labels_of(np.where(errors, 1 - truth[:, None], truth[:, None]))


def test_the_correlation_of_errors_against_truth_by_hand():
    rng = np.random.default_rng(0)
    truth, alone = rng.integers(0, 2, 1000), rng.random((1000, 2)) < 0.3
    errors = np.column_stack([alone, alone[:, 0]])
    labels = binary(errors, truth)
    found = error_correlation(aggregate(labels, errors_in_common=False), labels, truth)
    pairs = np.corrcoef(errors.T.astype(float))[np.triu_indices(3, 1)]
    usual = np.mean(errors.mean(axis=0) * (1 - errors.mean(axis=0)))
    spread = errors.std(axis=0)
    weight = [1000 * spread[a] * spread[b] for a, b in ((0, 1), (0, 2), (1, 2))]
    assert_allclose(found.pairs.correlation, pairs * weight / (np.array(weight) + 7 * usual), rtol=1e-9)
    assert_allclose(found.correlation, pairs.mean(), rtol=1e-9)
    assert (found.n_truths, found.n_votes) == (1000, 3)
    assert_allclose(found.effective_votes, 3 / (1 + 2 * found.correlation), rtol=1e-9)


def test_truths_of_the_fit_are_taken_by_default():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300)
    labels = binary((rng.random((300, 1)) < 0.25) & (rng.random((300, 5)) < 0.9), truth)
    known = dict(enumerate(truth[:60].tolist()))
    found = error_correlation(aggregate(labels, truth=known), labels)
    assert found.n_truths == 60
    assert found.correlation == error_correlation(aggregate(labels), labels, known).correlation
    assert found.effective_votes < error_correlation(aggregate(labels), labels).effective_votes
    alone = labels_of([[0, None], [1, None], [None, 1], [1, 0]])  # nobody can be compared where truth is known
    assert error_correlation(aggregate(alone, truth={0: 0, 1: 1}), alone).n_truths == 0


def test_residuals_of_independent_annotators_are_hardly_correlated():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 2000)
    labels = binary(rng.random((2000, 8)) < 0.2, truth)
    found = error_correlation(aggregate(labels), labels)
    assert np.abs(found.pairs.correlation).max() < 0.1
    assert abs(error_correlation(aggregate(labels), labels, truth).correlation) < 0.02


def test_without_truths_it_is_assumed_and_truths_need_two_labels():
    _, matrix = crowd(n_examples=100)
    labels = labels_of(matrix)
    result = aggregate(labels)
    assert error_correlation(result, labels, dict.fromkeys(range(7), 0)).n_truths == 7
    none = error_correlation(result, labels)
    assert none.n_truths == 0
    assert np.isnan(none.correlation)
    assert none.effective_votes == result.effective_votes
    assert "assumed" in repr(none)
    with pytest.raises(LabelError, match="truth is known for 2 examples"):
        error_correlation(
            aggregate([[0, np.nan], [1, np.nan], [np.nan, 1], [1, 0]]),
            labels_of([[0, None], [1, None], [None, 1], [1, 0]]),
            [0, 1, None, None],
        )


def test_copies_share_a_vote():
    _, matrix = crowd(n_examples=200, n_classes=3)
    labels = labels_of(np.column_stack([matrix, matrix[:, 1]]), 3)
    found = error_correlation(aggregate(labels), labels)
    assert found.n_votes == pytest.approx(6, abs=0.05)
    frame = found.to_frame()
    assert frame.iloc[0][["annotator", "other", "shared", "agreement"]].tolist() == [1, 6, 200, 1.0]


def test_truths_without_errors_show_no_correlation():
    truth = np.arange(40) % 2
    labels = np.column_stack([truth] * 3)
    assert error_correlation(aggregate(labels), labels, truth=truth).correlation == 0
    alone = labels[:, :1]
    assert repr(error_correlation(aggregate(alone), alone)).startswith("ErrorCorrelation: 1 annotator,")


@over(EVERYTHING)
def test_every_model_has_correlations_of_errors(name):
    if name.startswith("perceptron"):
        pytest.skip("does not estimate a consensus of annotators")
    _, y, model = reference(name)
    found = error_correlation(model.results_, y)
    assert 1 <= found.effective_votes <= found.n_votes <= len(found.annotators)
    assert (np.abs(found.pairs.correlation) <= 1).all()
    assert found.to_frame().shape[0] == len(found.pairs)


def test_a_group_counts_as_one_in_the_consensus_of_ratings():
    X, ratings = np.zeros((30, 1)), np.random.default_rng(0).normal(size=(30, 2))
    four = np.column_stack([ratings, *[ratings[:, 0]] * 2])
    model = CrowdRidgeRegressor().fit(X, CrowdLabels.from_matrix(four, scale="interval").with_groups([0, 1, 0, 0]))
    precision = model.expertise_
    mine = (precision[0] * ratings[:, 0] + precision[1] * ratings[:, 1]) / (precision[0] + precision[1])
    assert_allclose(model.results_.label_consensus.label, mine)


def test_the_correlation_of_errors_of_ratings_is_measured_on_known_ones():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    truth, common = X[:, 0], rng.normal(size=(400, 1))
    ratings = truth[:, None] + [0.0, 1.0, -2.0, 0.5] + 0.6 * common + 0.8 * rng.normal(size=(400, 4))
    labels = CrowdLabels.from_matrix(ratings, scale="interval")
    model = CrowdRidgeRegressor().fit(X, labels)
    known = np.where(np.arange(400) < 300, truth, np.nan)
    found = error_correlation(model, labels, truth=known)
    errors = np.corrcoef((ratings - truth[:, None])[:300].T)[np.triu_indices(4, 1)].mean()
    assert found.correlation == pytest.approx(errors)
    assert errors == pytest.approx(0.36, abs=0.1)
    assert found.n_truths == 300


@pytest.mark.filterwarnings("ignore:the examples with known answers differ from the others")
def test_truths_of_chosen_examples_do_not_measure_errors_in_common_by_default():
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, 300)
    wrong = rng.random((300, 6)) < np.repeat([0.05, 0.5], [200, 100])[:, None]
    matrix = np.where(wrong, 1 - truth[:, None], truth[:, None])
    known = {i: int(truth[i]) for i in range(200, 250)}
    result = aggregate(matrix, truth=known)
    assert error_correlation(result, matrix).n_truths == 0
    assert error_correlation(result, matrix, truth=known).n_truths == 50
