"""How far labels agree beyond their class, by loops over pairs, and what is made of it."""

from itertools import permutations

import numpy as np
import pytest
from crowds import labels_of
from crowdwise.crowd.beyond_class import beyond_class, errors_are_shown, estimated_common
from crowdwise.crowd.votes import COMMON_ERRORS
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import expon, norm

from crowdwise import aggregate


def some_crowd(seed=0, n_examples=40, n_annotators=4, n_classes=3):
    rng = np.random.default_rng(seed)
    matrix = rng.integers(0, n_classes, (n_examples, n_annotators)).astype(object)
    matrix[rng.random(matrix.shape) < 0.3] = None
    posterior = rng.dirichlet(np.ones(n_classes), n_examples)
    confusion = rng.dirichlet(np.ones(n_classes), (n_annotators, n_classes))
    return matrix, posterior, confusion, rng.integers(1, 4, n_examples).astype(float)


def by_loops(matrix, posterior, confusion, weight):
    total, squares, scale = 0.0, 0.0, 0.0
    for row, proba, counts in zip(matrix, posterior, weight, strict=True):
        given, of_row = [j for j, label in enumerate(row) if label is not None], 0.0
        for k, probability in enumerate(proba):
            for j, other in permutations(given, 2):
                one, two = (np.eye(len(proba))[row[i]] - confusion[i, k] for i in (j, other))
                of_row += probability * (one @ two)
                spread = [np.sqrt(1 - (confusion[i, k] ** 2).sum()) for i in (j, other)]
                scale += counts * probability * spread[0] * spread[1]
        total, squares = total + counts * of_row, squares + counts * of_row**2
    return total / scale, np.sqrt(squares) / scale


def test_products_of_residuals_given_the_class_are_those_of_loops_over_pairs():
    matrix, posterior, confusion, weight = some_crowd()
    found = beyond_class(labels_of(matrix, 3), posterior, confusion, weight)
    assert_allclose(found, by_loops(matrix, posterior, confusion, weight), rtol=1e-10)


def test_an_example_that_counts_twice_is_two_examples():
    matrix, posterior, confusion, weight = some_crowd()
    often = np.repeat(np.arange(len(matrix)), weight.astype(int))
    one = beyond_class(labels_of(matrix, 3), posterior, confusion, weight)
    two = beyond_class(labels_of(matrix[often], 3), posterior[often], confusion, np.ones(len(often)))
    assert_allclose(one, two, rtol=1e-10)


def test_copies_with_one_vote_change_nothing():
    matrix, posterior, confusion, weight = some_crowd()
    matrix[:, 1] = 0  # who is copied has given all labels
    group = np.array([0, 1, 2, 3, 1])
    one = estimated_common(labels_of(matrix, 3), posterior, confusion, weight)
    copied, fives = np.column_stack([matrix, matrix[:, 1]]), np.concatenate([confusion, confusion[1:2]])
    assert_allclose(estimated_common(labels_of(copied, 3), posterior, fives, weight, group), one, rtol=1e-10)
    assert estimated_common(labels_of(copied, 3), posterior, fives, weight) > one


def test_where_nothing_can_be_compared_what_is_usual_is_assumed():
    alone = labels_of([[0, None], [None, 1], [1, None]])
    assert beyond_class(alone, np.full((3, 2), 0.5), np.full((2, 2, 2), 0.5), np.ones(3)) == (0.0, 0.0)
    assert estimated_common(alone, np.full((3, 2), 0.5), np.full((2, 2, 2), 0.5), np.ones(3)) == COMMON_ERRORS


@pytest.mark.parametrize(("shown", "error"), [(-0.02, 0.01), (0.0, 0.005), (0.03, 0.02), (0.2, 0.04)])
def test_the_probability_of_errors_in_common_is_that_of_bayes(shown, error):
    if_some = quad(lambda true: expon.pdf(true, scale=0.06) * norm.pdf(shown, true, error), 0, 2, points=[0.01, 0.2])[0]
    expected = if_some / (if_some + norm.pdf(shown, 0, error))
    assert_allclose(errors_are_shown(shown, error), expected, rtol=1e-6)


def crowd_with(common, seed, n_examples=1500, n_annotators=20, per_example=6, n_classes=3):
    """Labels whose errors go along with one hidden variable of the example."""
    rng = np.random.default_rng(seed)
    truth, accuracy = rng.integers(0, n_classes, n_examples), rng.uniform(0.6, 0.8, n_annotators)
    hidden, own = rng.normal(size=(n_examples, 1)), rng.normal(size=(n_examples, n_annotators))
    wrong = np.sqrt(common) * hidden + np.sqrt(1 - common) * own > norm.ppf(accuracy)
    other = (truth[:, None] + rng.integers(1, n_classes, wrong.shape)) % n_classes
    matrix = np.where(wrong, other, truth[:, None]).astype(object)
    for row in matrix:
        row[rng.permutation(n_annotators)[per_example:]] = None
    return labels_of(matrix, n_classes), truth


@pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdWarning")  # votes may decide
def test_independent_annotators_are_told_from_those_who_err_together():
    def found(common):
        return [aggregate(crowd_with(common, seed)[0]).fitted.together.common for seed in range(4)]

    assert np.mean(found(0.0)) < 0.6 * COMMON_ERRORS
    assert min(found(0.4)) > 0.99 * COMMON_ERRORS


def test_of_independent_annotators_the_consensus_is_as_sure_as_it_is_right():
    labels, truth = crowd_with(0.0, 5, n_examples=3000)
    found = aggregate(labels)
    assert abs(found.confidence.mean() - np.mean(found.label == truth)) < 0.03


def test_a_part_of_many_examples_says_the_same(monkeypatch):
    labels, _ = crowd_with(0.4, 0)
    fit = aggregate(labels, errors_in_common=False)
    all_of_them = fit.fitted.estimated_common(labels)
    monkeypatch.setattr("crowdwise.crowd.beyond_class._ENOUGH", 500)
    assert_allclose(fit.fitted.estimated_common(labels), all_of_them, rtol=0.05)
