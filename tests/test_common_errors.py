"""How alike annotators err, from labels and results of any model, with truth and without."""

import numpy as np
import pytest
from all_models import EVERYTHING, MODELS, fit_quietly, new, over, reference
from crowds import crowd, labels_of
from numpy.testing import assert_allclose

from crowdwise import CrowdLabels, CrowdRidgeRegressor, aggregate, errors_in_common
from crowdwise.crowd.votes import COMMON_ERRORS
from crowdwise.exceptions import LabelError


def binary(errors, truth):
    return labels_of(np.where(errors, 1 - truth[:, None], truth[:, None]))


def test_the_correlation_of_errors_against_truth_by_hand():
    rng = np.random.default_rng(0)
    truth, alone = rng.integers(0, 2, 1000), rng.random((1000, 2)) < 0.3
    errors = np.column_stack([alone, alone[:, 0]])
    labels = binary(errors, truth)
    found = errors_in_common(labels, aggregate(labels, errors_in_common=False), truth)
    pairs = np.corrcoef(errors.T.astype(float))[np.triu_indices(3, 1)]
    usual = np.mean(errors.mean(axis=0) * (1 - errors.mean(axis=0)))
    spread = errors.std(axis=0)
    weight = [1000 * spread[a] * spread[b] for a, b in ((0, 1), (0, 2), (1, 2))]
    assert_allclose(found.correlation, pairs * weight / (np.array(weight) + 7 * usual), rtol=1e-9)
    assert_allclose(found.common, (1000 * pairs.mean() + 20 * COMMON_ERRORS) / 1020, rtol=1e-9)
    assert found.n_truths == 1000
    assert_allclose(found.effective_number, found.n_votes / (1 + (found.n_votes - 1) * found.common), rtol=1e-3)


@pytest.mark.filterwarnings("ignore:the consensus is that of the votes")  # of the labels that say nothing
def test_a_few_truths_are_enough_and_none_say_what_is_usual():
    _, matrix = crowd(n_examples=100)
    labels = labels_of(matrix)
    result = aggregate(labels)
    some = errors_in_common(labels, result, dict.fromkeys(range(7), 0))
    assert some.n_truths == 7
    assert 0 < some.common < 1
    none = errors_in_common(labels, result)
    assert (none.n_truths, none.common) == (0, result.fitted.together.common)
    assert_allclose(errors_in_common(labels, aggregate(labels, errors_in_common=False)).common, none.common, rtol=1e-3)
    assert_allclose(none.effective_number, result.effective_annotators)
    with pytest.raises(LabelError, match="none of them with two"):
        errors_in_common(
            labels_of([[0, None], [1, None], [None, 1], [1, 0]]),
            aggregate([[0, np.nan], [1, np.nan], [np.nan, 1], [1, 0]]),
            [0, 1, None, None],
        )


def test_truths_that_the_fit_learnt_from_are_taken_by_default():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300)
    labels = binary((rng.random((300, 1)) < 0.25) & (rng.random((300, 5)) < 0.9), truth)
    known = dict(enumerate(truth[:60].tolist()))
    told = errors_in_common(labels, aggregate(labels, truth=known))
    assert told.n_truths == 60
    assert told.common == errors_in_common(labels, aggregate(labels), known).common
    assert told.effective_number < errors_in_common(labels, aggregate(labels)).effective_number
    alone = labels_of([[0, None], [1, None], [None, 1], [1, 0]])  # nobody can be compared where truth is known
    assert errors_in_common(alone, aggregate(alone, truth={0: 0, 1: 1})).n_truths == 0


def test_copies_are_one_group_worth_one_vote():
    _, matrix = crowd(n_examples=200, n_classes=3)
    labels = labels_of(np.column_stack([matrix, matrix[:, 1]]), 3)
    found = errors_in_common(labels, aggregate(labels))
    assert found.groups == [(1, 6)]
    assert 1 <= found.effective_number_by_group[(1, 6)] < 1.05
    frame = found.to_frame()
    assert frame["one vote"].tolist() == [True] + [False] * 20
    assert frame.iloc[0][["annotator", "other", "shared", "agreement"]].tolist() == [1, 6, 200, 1.0]
    assert "1 group shares a vote" in repr(found)


def test_residuals_of_independent_annotators_are_hardly_correlated():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 2000)
    labels = binary(rng.random((2000, 8)) < 0.2, truth)
    found = errors_in_common(labels, aggregate(labels))
    assert np.abs(found.correlation).max() < 0.1
    assert abs(errors_in_common(labels, aggregate(labels), truth).common) < 0.02


@over(EVERYTHING)
def test_every_model_says_how_alike_annotators_err(name):
    if name.startswith("perceptron"):
        pytest.skip("finds no consensus of annotators")
    _, y, model = reference(name)
    found = errors_in_common(y, getattr(model, "found", model))
    assert 1 <= found.effective_number <= found.n_votes <= len(found.annotators)
    assert (np.abs(found.correlation) <= 1).all()
    assert found.to_frame().shape[0] == len(found.pairs)


@over(MODELS)
def test_every_model_gives_copies_one_vote(name):
    if name.startswith("perceptron"):
        pytest.skip("finds no consensus of annotators")
    X, matrix = crowd(n_examples=120)
    four = np.column_stack([matrix, *[matrix[:, 0]] * 3]).astype(float)
    y = four if name == "regressor" else labels_of(four.astype(int))
    model = fit_quietly(new(name), X, y)
    assert model.annotator_group_.tolist() == [0, 1, 2, 3, 4, 5, 0, 0, 0]
    given = new(name)
    given.fit(X, y, groups=[0, 1, 2, 3, 4, 5, 0, 0, 0])
    if name == "regressor":
        assert_allclose(given.label_consensus_, model.label_consensus_)
    else:
        assert_allclose(given.label_proba_, model.label_proba_)


def test_a_group_counts_as_one_in_the_consensus_of_ratings():
    X, ratings = np.zeros((30, 1)), np.random.default_rng(0).normal(size=(30, 2))
    four = np.column_stack([ratings, *[ratings[:, 0]] * 2])
    model = CrowdRidgeRegressor().fit(X, four, groups=[0, 1, 0, 0])
    precision = model.expertise_
    mine = (precision[0] * ratings[:, 0] + precision[1] * ratings[:, 1]) / (precision[0] + precision[1])
    assert_allclose(model.label_consensus_, mine)


def test_the_correlation_of_errors_of_ratings_is_measured_on_known_ones():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    truth, common = X[:, 0], rng.normal(size=(400, 1))
    ratings = truth[:, None] + [0.0, 1.0, -2.0, 0.5] + 0.6 * common + 0.8 * rng.normal(size=(400, 4))
    labels = CrowdLabels.from_matrix(ratings, kind="rating")
    model = CrowdRidgeRegressor().fit(X, labels)
    known = np.where(np.arange(400) < 300, truth, np.nan)
    found = errors_in_common(labels, model, truth=known)
    errors = np.corrcoef((ratings - truth[:, None])[:300].T)[np.triu_indices(4, 1)].mean()
    assert found.common == pytest.approx((300 * errors + 20 * COMMON_ERRORS) / 320)
    assert errors == pytest.approx(0.36, abs=0.1)
    assert found.n_truths == 300


def test_truths_that_show_no_errors_measure_nothing():
    truth = np.arange(40) % 2
    said = np.column_stack([truth] * 3)
    found = errors_in_common(said, aggregate(said), truth=truth)
    assert found.common == COMMON_ERRORS
    assert "as usual, with no errors to compare in 40 known truths" in repr(found)
    alone = said[:, :1]
    assert repr(errors_in_common(alone, aggregate(alone))).startswith("ErrorsInCommon: 1 annotator,")


@pytest.mark.filterwarnings("ignore:the known answers are of examples unlike the others")
def test_truths_of_chosen_examples_do_not_measure_errors_in_common_by_default():
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, 300)
    wrong = rng.random((300, 6)) < np.repeat([0.05, 0.5], [200, 100])[:, None]
    matrix = np.where(wrong, 1 - truth[:, None], truth[:, None])
    known = {i: int(truth[i]) for i in range(200, 250)}
    result = aggregate(matrix, truth=known)
    assert errors_in_common(matrix, result).n_truths == 0
    assert errors_in_common(matrix, result, truth=known).n_truths == 50
