import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdwise.exceptions import BoundError
from crowdwise.paper.theory import (
    count_regions,
    feed,
    laguerre_samuelson,
    noise_factors,
    noisy_bound,
    novikoff_bound,
    progress,
    regions,
    spread_bound,
)

numbers = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=12)
counts = st.lists(st.integers(0, 50), min_size=1, max_size=12)


def test_hand_cases():
    # Mean 1, standard deviation sqrt(3), three other numbers: the largest number is the upper end itself.
    assert laguerre_samuelson([0, 0, 0, 4]) == pytest.approx((-2, 4))
    assert laguerre_samuelson([7]) == (7, 7)
    assert progress([2, 2, 2], margin=0.1) == pytest.approx((1.2, 1.2))  # equal mistakes: nothing is lost
    # Mean 2, standard deviation 1: (2 - 1 * sqrt(1)) * (1 + 2) margins.
    assert progress([3, 1], margin=1.0) == pytest.approx((5, 3))
    assert noise_factors([1.0, 3.0], [2.0, 2.0]) == pytest.approx((1 / 2, 2 / 3))
    assert noise_factors([0.3, 0.2], [0.3, 0.2]) == (1, 1)


@given(numbers)
def test_all_numbers_are_within_the_lemma(values):
    low, high = laguerre_samuelson(values)
    rounding = 1e-9 * (1 + max(map(abs, values)))
    assert low - rounding <= min(values) <= max(values) <= high + rounding


@given(st.floats(-100, 100), st.floats(0.01, 100), st.integers(2, 12))
def test_the_lemma_is_tight_where_all_numbers_but_one_are_equal(value, step, n):
    values = [value] * (n - 1) + [value - step]
    assert laguerre_samuelson(values)[0] == pytest.approx(value - step, abs=1e-9 * (1 + abs(value) + step))


@given(counts, st.floats(0.001, 10))
def test_the_proof_loses_and_never_gains(mistakes, margin):
    counted, bounded = progress(mistakes, margin)
    assert bounded <= counted + 1e-9 * (1 + counted)


@given(st.floats(0.01, 1.0), st.floats(0, 20))
def test_theorem_2_is_where_both_ends_of_the_proof_meet(margin, spread):
    """At the bound, what the lemma leaves of the progress is as long as the weights can be."""
    K, bound = count_regions(margin), spread_bound(margin, spread)
    least = (bound / K - spread * math.sqrt(K - 1)) * K * (K + 1) / 2 * margin
    assert least == pytest.approx(math.sqrt(bound), rel=1e-6)


@given(st.integers(0, 2**31))
def test_weights_move_at_least_as_far_as_counted(seed):
    rng = np.random.default_rng(seed)
    X, u = rng.normal(size=(60, 3)), rng.normal(size=3)
    u /= np.linalg.norm(u)
    signed = X * np.sign(X @ u)[:, np.newaxis]
    signed = signed[signed @ u > 0.2]
    radius, weights = np.linalg.norm(signed, axis=1).max(), np.zeros(3)
    made = feed(signed, weights)
    split = regions(signed @ u, radius)
    counted, bounded = progress(np.bincount(split.region[made] - 1, minlength=split.n_regions), split.margin)
    assert bounded <= counted + 1e-9
    assert counted <= weights @ u + 1e-9
    assert weights @ u <= np.linalg.norm(weights) <= radius * math.sqrt(len(made)) + 1e-9


positive = st.floats(0.01, 100)


@given(st.lists(st.tuples(positive, positive), min_size=1, max_size=10))
def test_noise_factors_satisfy_the_theorem_and_larger_ones_do_not(pairs):
    true, estimated = np.array(pairs).T
    over, under = noise_factors(true, estimated)
    assert 0 < over <= 1
    assert 0 < under <= 1
    near = 1 + 1e-12
    assert (estimated / under * near >= true).all()
    assert (true * near >= over * estimated).all()
    assert over == 1 or not (true >= over * 1.001 * estimated).all()
    assert under == 1 or not (estimated / (under * 1.001) >= true).all()
    assert (over, under) == noise_factors(estimated, true)[::-1]


def test_overestimated_margins_make_the_bound_of_theorem_3_larger():
    over, _ = noise_factors([0.1, 0.3], [0.2, 0.3])
    assert noisy_bound(0.2, 0.0, overestimation=over) == pytest.approx(noisy_bound(0.2, 0.0) / over**2)
    assert noisy_bound(0.2, 0.0, overestimation=over) < novikoff_bound(0.1)


@pytest.mark.parametrize("values", [[], [[1.0]], [np.nan], [np.inf, 1.0]])
def test_impossible_numbers_are_named(values):
    with pytest.raises(BoundError, match="values must be finite numbers"):
        laguerre_samuelson(values)
    with pytest.raises(BoundError, match="mistakes_per_region must be finite"):
        progress(values, 0.1)


@pytest.mark.parametrize(("true", "estimated"), [([1.0], [1.0, 2.0]), ([0.0], [1.0]), ([1.0], [-1.0])])
def test_margins_that_have_no_factor_are_an_error(true, estimated):
    with pytest.raises(BoundError, match="margins and estimates must be"):
        noise_factors(true, estimated)
