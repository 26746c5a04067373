import math
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from crowdwise._checks import check_choice, check_number, check_rounds, check_seed, check_whole

NO_NUMBERS = [None, "5", "", True, False, np.True_, [1.0], {}, 1j, math.nan, math.inf, -math.inf, np.nan, 10**400]


def got(value):
    return f"; got {re.escape(repr(value))}"


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: repr(value)[:12])
def test_what_is_no_finite_number_is_refused_by_name(value):
    with pytest.raises(ValueError, match="^l2 must be a finite number >= 0" + got(value)):
        check_number("l2", value)
    with pytest.raises(ValueError, match='^steepness must be a finite number >= 0 or "auto"' + got(value)):
        check_number("steepness", value, auto=True)


@pytest.mark.parametrize(
    "value", [0, 3, 2.5, np.float32(2.5), np.int8(3), Fraction(1, 2), np.float64(1e-320)], ids=repr
)
def test_numbers_of_every_type_become_floats(value):
    number = check_number("l2", value)
    assert (type(number), number) == (float, float(value))


def test_the_range_of_a_number_is_kept_and_said():
    assert check_number("share", 1, low=0.5, high=1) == 1.0
    assert check_number("share", 0.5, low=0.5, high=1) == 0.5
    for value in (0.4, 1.1, -1):
        with pytest.raises(ValueError, match=r"^share must be a finite number >= 0.5 and <= 1" + got(value)):
            check_number("share", value, low=0.5, high=1)
    with pytest.raises(ValueError, match=r"^growth must be a finite"):
        check_number("growth", 1, low=1, above=True)
    assert check_number("growth", 1.0001, low=1, above=True) == 1.0001


def test_auto_is_nan_where_it_is_allowed_and_refused_elsewhere():
    assert math.isnan(check_number("steepness", "auto", auto=True))
    assert math.isnan(check_number("steepness", np.str_("auto"), auto=True))
    with pytest.raises(ValueError, match="got 'auto'"):
        check_number("steepness", "auto")


@pytest.mark.parametrize("value", [*NO_NUMBERS[:-1], 1.5, 2.0, np.float64(3), Decimal(2), 0, -3], ids=repr)
def test_what_is_no_whole_number_is_refused_by_name(value):
    with pytest.raises(ValueError, match="^max_rounds must be a whole number >= 1" + got(value)):
        check_whole("max_rounds", value)


def test_whole_numbers_of_every_type_become_ints():
    for value in (5, np.int64(5), np.uint8(5)):
        assert type(check_whole("cv", value)) is int
    assert check_whole("cross_fit", 0, low=0) == 0
    with pytest.raises(ValueError, match=r"^cv must be a whole"):
        check_whole("cv", 1, low=2)


def test_choices_are_listed_where_none_was_made():
    assert check_choice("relative_to", None, ("observed", None)) is None
    assert check_choice("init", "mean", ("majority", "mean")) == "mean"
    with pytest.raises(ValueError, match=r'^init must be "majority" or'):
        check_choice("init", "median", ("majority", "mean"))
    with pytest.raises(ValueError, match=r"^hard_examples must be True, False"):
        check_choice("hard_examples", 1, (True, False, "auto"))
    for value in (None, 3, [1], np.array(["mean", "mean"]), math.nan):
        with pytest.raises(ValueError, match="init must be"):
            check_choice("init", value, ("majority", "mean"))


def test_choices_out_of_an_array_are_the_plain_ones():
    for value in np.array(["majority", "mean"]):
        assert type(check_choice("init", value, ("majority", "mean"))) is str
    assert check_choice("hard_examples", np.True_, (True, False, "auto")) is True


def test_rounds_need_a_whole_number_and_a_tolerance():
    check_rounds(1, 0)
    with pytest.raises(ValueError, match="max_rounds must be a whole"):
        check_rounds(1.5, 1e-6)
    with pytest.raises(ValueError, match="tol must be a finite"):
        check_rounds(5, math.nan)


@pytest.mark.parametrize("value", ["a", -1, 1.5, True, np.False_, [1.5], object], ids=repr)
def test_what_is_no_seed_is_refused(value):
    with pytest.raises(
        ValueError, match="random_state must be a whole number >= 0, a numpy Generator or None" + got(value)
    ):
        check_seed(value)


def test_seeds_give_the_numbers_of_numpy():
    expected = np.random.default_rng(7).random()
    for seed in (7, np.int64(7), np.random.SeedSequence(7), np.random.default_rng(7)):
        assert check_seed(seed).random() == expected
    rng = np.random.default_rng(0)
    assert check_seed(rng) is rng
    assert check_seed(None).random() != check_seed(None).random()
