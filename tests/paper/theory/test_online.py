import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from marks import many_examples

from crowdwise.paper.theory import feed
from crowdwise.paper.theory.online import weight_sum


def loop(signed, weights):
    mistakes, total = [], np.zeros(signed.shape[1])
    for i in range(len(signed)):
        if signed[i] @ weights <= 0:
            weights += signed[i]
            mistakes.append(i)
        total += weights
    return mistakes, total


def assert_same(signed, start):
    fast, slow = start.copy(), start.copy()
    mistakes = feed(signed, fast)
    expected, total = loop(signed, slow)
    assert mistakes.tolist() == expected
    assert np.array_equal(fast, slow)
    scale = max(np.abs(total).max(initial=0.0), 1.0)
    assert np.allclose(weight_sum(signed, mistakes, start), total, rtol=1e-9, atol=1e-9 * scale)


@many_examples(100)
@given(
    arrays(np.float64, st.tuples(st.integers(0, 200), st.integers(1, 4)), elements=st.integers(-2, 2).map(float)),
    st.booleans(),
)
def test_whole_numbers_with_many_exact_ties(signed, warm):
    assert_same(signed, np.ones(signed.shape[1]) if warm else np.zeros(signed.shape[1]))


@many_examples(200)
@given(st.integers(0, 2**32 - 1), st.integers(1, 400), st.sampled_from([1, 2, 3, 40, 700, 3000]), st.floats(-2, 2))
def test_real_numbers_of_any_width(seed, n_examples, n_features, bias):
    rng = np.random.default_rng(seed)
    signed = rng.normal(bias / np.sqrt(n_features), 1, size=(min(n_examples, 60_000 // n_features), n_features))
    assert_same(signed, np.zeros(n_features))


@pytest.mark.parametrize("seed", range(20))
def test_scores_that_cancel_to_rounding(seed):
    """Rows that repeat with opposite signs: scores are zero but for rounding, and rounding decides."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(40, 7)) * 10.0 ** rng.integers(-8, 8, size=(40, 1))
    signed = rows[rng.integers(40, size=500)] * rng.choice([-1.0, 1.0], size=(500, 1))
    assert_same(signed, np.zeros(7))


def test_strided_and_transposed_rows():
    signed = np.random.default_rng(0).normal(0.1, 1, size=(6, 300)).T
    assert_same(signed, np.zeros(6))
    assert_same(signed[::-2], np.zeros(6))
