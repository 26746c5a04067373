"""How far labels agree beyond their class, by loops over pairs, and what is made of it."""

from itertools import permutations

import numpy as np
import pytest
from crowds import labels_of
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.stats import expon, norm

from crowdwise import aggregate
from crowdwise.crowd.vote_sharing import VoteSharing
from crowdwise.em.common_errors import correlation_of, has_common_errors, residual_sums
from crowdwise.em.posterior import Counting
from crowdwise.rows.chunks import Chunk, Sums

MANY = 1e12  # labels, so that nothing is overfitted


def shown(labels, posterior, confusion, weight, sharing=None, step=1, levels=None):
    """The correlation of residuals and its standard error."""
    counting = Counting(posterior.shape[1], VoteSharing.none() if sharing is None else sharing)
    return correlation_of(residual_sums(Chunk(labels, weight), counting, posterior, confusion, weight, step, levels))


def some_crowd(seed=0, n_examples=40, n_annotators=4, n_classes=3):
    rng = np.random.default_rng(seed)
    matrix = rng.integers(0, n_classes, (n_examples, n_annotators)).astype(object)
    matrix[rng.random(matrix.shape) < 0.3] = None
    posterior = rng.dirichlet(np.ones(n_classes), n_examples)
    confusion = rng.dirichlet(np.ones(n_classes), (n_annotators, n_classes))
    return matrix, posterior, confusion, rng.integers(1, 4, n_examples).astype(float)


def by_loops(matrix, posterior, confusion, weight, codes=None):
    total, squares, scale = 0.0, 0.0, 0.0
    codes = np.eye(posterior.shape[1]) if codes is None else codes
    for row, proba, counts in zip(matrix, posterior, weight, strict=True):
        given, of_row = [j for j, label in enumerate(row) if label is not None], 0.0
        for k, probability in enumerate(proba):
            for j, other in permutations(given, 2):
                one, two = (codes[row[i]] - confusion[i, k] @ codes for i in (j, other))
                of_row += probability * (one @ two)
                off = [((codes - confusion[i, k] @ codes) ** 2).sum(axis=1) @ confusion[i, k] for i in (j, other)]
                spread = np.sqrt(off)
                scale += counts * probability * spread[0] * spread[1]
        total, squares = total + counts * of_row, squares + counts * of_row**2
    return total / scale, np.sqrt(squares) / scale


def test_products_of_residuals_given_the_class_are_those_of_loops_over_pairs():
    matrix, posterior, confusion, weight = some_crowd()
    found = shown(labels_of(matrix, 3), posterior, confusion, weight)
    assert_allclose(found, by_loops(matrix, posterior, confusion, weight), rtol=1e-10)


def test_residuals_of_levels_are_numbers_in_any_unit():
    matrix, posterior, confusion, weight = some_crowd()
    levels = np.array([1.0, 2.0, 5.0])
    found = shown(labels_of(matrix, 3), posterior, confusion, weight, levels=levels)
    assert_allclose(found, by_loops(matrix, posterior, confusion, weight, levels[:, np.newaxis]), rtol=1e-10)
    assert_allclose(shown(labels_of(matrix, 3), posterior, confusion, weight, levels=7 - 3 * levels), found, rtol=1e-10)


def test_an_example_that_counts_twice_is_two_examples():
    matrix, posterior, confusion, weight = some_crowd()
    often = np.repeat(np.arange(len(matrix)), weight.astype(int))
    one = shown(labels_of(matrix, 3), posterior, confusion, weight)
    two = shown(labels_of(matrix[often], 3), posterior[often], confusion, np.ones(len(often)))
    assert_allclose(one, two, rtol=1e-10)


def test_copies_with_one_vote_change_nothing():
    matrix, posterior, confusion, weight = some_crowd()
    matrix[:, 1] = 0  # who is copied has given all labels
    one = shown(labels_of(matrix, 3), posterior, confusion, weight)
    copied, fives = np.column_stack([matrix, matrix[:, 1]]), np.concatenate([confusion, confusion[1:2]])
    sharing = VoteSharing.of_groups(np.array([0, 1, 2, 3, 1]))
    together = shown(labels_of(copied, 3), posterior, fives, weight, sharing)
    apart = shown(labels_of(copied, 3), posterior, fives, weight)
    assert_allclose(together, one, rtol=1e-10)
    assert abs(apart[0] - one[0]) > 0.1


def test_every_third_example_is_a_crowd_of_a_third():
    matrix, posterior, confusion, weight = some_crowd()
    some = shown(labels_of(matrix, 3), posterior, confusion, weight, step=3)
    assert_allclose(some, by_loops(matrix[::3], posterior[::3], confusion, weight[::3]), rtol=1e-10)


def test_where_nothing_can_be_compared_what_is_usual_is_assumed():
    alone = labels_of([[0, None], [None, 1], [1, None]])
    assert shown(alone, np.full((3, 2), 0.5), np.full((2, 2, 2), 0.5), np.ones(3)) == (0.0, 0.0)
    assert correlation_of(Sums(product=0.0, scale=0.0, square=0.0)) == (0.0, 0.0)
    assert has_common_errors(0.0, 0.0, MANY) == 1.0
    assert aggregate(alone).fitted.discount.common == 1.0
    assert not aggregate(alone).fitted.discount.measured


@pytest.mark.parametrize(("correlation", "error"), [(-0.02, 0.01), (0.0, 0.005), (0.03, 0.02), (0.2, 0.04)])
def test_what_labels_show_is_the_posterior_mean_by_integration(correlation, error):
    def density(true):
        return expon.pdf(true, scale=0.04) * norm.pdf(correlation, true, error)

    points = [0.01, 0.04, 0.2]
    if_some = quad(density, 0, 2, points=points)[0]
    mean = quad(lambda true: min(true / 0.04, 1.0) * density(true), 0, 2, points=points)[0]
    expected = mean / (if_some + norm.pdf(correlation, 0, error))
    assert_allclose(has_common_errors(correlation, error, MANY), expected, rtol=1e-5, atol=1e-6)


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


def test_independent_annotators_are_told_from_those_who_err_together():
    def found(common):
        return [aggregate(crowd_with(common, seed)[0]).fitted.discount for seed in range(4)]

    assert np.mean([discount.common for discount in found(0.0)]) < 0.6
    assert any(discount.measured for discount in found(0.0))
    assert min(discount.common for discount in found(0.4)) > 0.99


def test_of_independent_annotators_the_consensus_is_as_sure_as_it_is_right():
    labels, truth = crowd_with(0.0, 5, n_examples=3000)
    found = aggregate(labels)
    assert abs(found.confidence.mean() - np.mean(found.label == truth)) < 0.03


def test_a_part_of_many_examples_says_the_same(set_constants):
    labels, _ = crowd_with(0.4, 0)
    whole = aggregate(labels)
    set_constants("crowdwise.em.labels_only", ENOUGH_EXAMPLES=500)
    part = aggregate(labels)
    scores = [
        {choice.name: choice.score for choice in found.choices}["discount for correlated errors"]
        for found in (whole, part)
    ]
    assert scores[0] != scores[1]
    assert_allclose(scores[1], scores[0], rtol=0.25)
    assert (part.label == whole.label).mean() > 0.99
