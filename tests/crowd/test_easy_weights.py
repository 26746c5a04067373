import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdwise.crowd import easiness
from crowdwise.crowd._disagreement import example_weights

DISAGREEMENTS = st.lists(st.floats(0, 1), min_size=1, max_size=20)


def test_known_values():
    assert easiness([0.0, 1.0], 0.0).tolist() == [1.0, 1.0]
    assert easiness([0.0, 1.0], math.log(3)).tolist() == pytest.approx([1.0, 0.5])
    assert easiness([0.5], 2.0)[0] == pytest.approx(2 / (1 + math.e))


@given(DISAGREEMENTS, st.floats(0, 50))
def test_it_is_the_formula(disagreement, steepness):
    expected = [2 / (1 + math.exp(steepness * d)) for d in disagreement]
    assert np.allclose(easiness(disagreement, steepness), expected, rtol=1e-12, atol=0)


@given(DISAGREEMENTS, st.floats(0, 1e308))
def test_it_is_above_zero_at_most_one_and_falls_with_disagreement(disagreement, steepness):
    weight = easiness(sorted(disagreement), steepness)
    assert (weight > 0).all()
    assert (weight <= 1).all()
    assert (np.diff(weight) <= 0).all()


@pytest.mark.parametrize("disagreement", [[-0.1], [np.nan], [0.0, np.inf]], ids=str)
def test_impossible_disagreement_is_an_error(disagreement):
    with pytest.raises(ValueError, match="disagreement must be"):
        easiness(disagreement, 1.0)


@pytest.mark.parametrize("steepness", [-1e-9, math.nan, math.inf, True, "2", None, [1.0]], ids=repr)
def test_impossible_steepness_is_an_error(steepness):
    with pytest.raises(ValueError, match=rf"steepness must be a finite number >= 0.*got {re.escape(repr(steepness))}"):
        easiness([0.5], steepness)


def test_nothing_has_no_easiness():
    assert easiness([], 1.0).shape == (0,)


def test_weights_are_taken_relative_to_the_easiest_where_all_would_vanish():
    weight = example_weights(np.array([0.9, 1.0]), 100.0)
    assert weight == pytest.approx([1.0, math.exp(-10)])
    assert example_weights(np.array([0.5, 1.0]), 1e308).tolist()[0] == 1.0
