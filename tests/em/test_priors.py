"""How frequent classes are, and how frequent they may be."""

import numpy as np
import pytest
from crowdwise.em.priors import ClassFrequencies, within
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from crowdwise import CrowdLabels, aggregate


@given(st.integers(2, 6), st.integers(0, 1000))
def test_limited_shares_sum_to_one_keep_their_limits_and_the_proportions_of_the_others(n_classes, seed):
    rng = np.random.default_rng(seed)
    share, most = rng.dirichlet(np.ones(n_classes)), n_classes * rng.dirichlet(np.ones(n_classes))
    found = within(share, most)
    assert_allclose(found.sum(), 1)
    assert (found <= most + 1e-12).all()
    free = found < most - 1e-9
    assert_allclose(found[free] * share[free].sum(), share[free] * found[free].sum(), atol=1e-12)


def test_limited_shares_make_the_counts_most_probable(rng):
    share, most = rng.dirichlet(np.ones(4)), np.array([0.1, 0.2, 0.9, 0.9])
    best = minimize(
        lambda x: -share @ np.log(x), np.full(4, 0.2), bounds=[(1e-6, limit) for limit in most],
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1}, options={"ftol": 1e-12},
    )  # fmt: skip
    assert_allclose(within(share, most), best.x, atol=1e-4)


def test_a_class_is_at_most_as_frequent_as_its_votes_times_the_number_of_classes():
    votes, weight = np.array([[1.0, 0.0, 0.0], [0.75, 0.25, 0.0]]), np.array([2.0, 1.0])
    assert_allclose(ClassFrequencies.of_votes(1.0, votes, weight).most, [9.25 / 6, 1.75 / 6, 1 / 6])


@pytest.mark.parametrize("seed", range(3))
def test_two_stray_labels_do_not_take_over_the_contested_examples(seed):
    rng = np.random.default_rng(seed)
    truth, hard = rng.integers(0, 2, 300), rng.random(300) < 0.35
    right = rng.random((300, 9)) < np.where(hard, 0.5, 0.95)[:, np.newaxis]
    matrix = np.where(right, truth[:, np.newaxis], 1 - truth[:, np.newaxis])
    stray = matrix.copy()
    stray[:2, 0] = 2
    clean, found = (aggregate(CrowdLabels.from_matrix(labels)) for labels in (matrix, stray))
    assert (found.label == 2).sum() <= 2
    assert (found.label == truth).mean() > (clean.label == truth).mean() - 0.02
