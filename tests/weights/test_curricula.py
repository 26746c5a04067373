import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdwise.weights import Fading, Fixed, SelfPaced, Smooth
from crowdwise.weights.curricula import Curriculum, check_curriculum

EASINESS = np.array([1.0, 0.9, 0.5, 0.1])
LOSSES = np.array([0.3, 0.1, 4.0, 0.2])


def weights(curriculum, t, losses=None, seed=0, sample_weight=None):
    return curriculum.weights(t, EASINESS, losses, np.random.default_rng(seed), sample_weight).tolist()


def test_fixed_gives_easiness_itself_in_every_round():
    rng = np.random.default_rng(0)
    assert all(Fixed().weights(t, EASINESS, LOSSES, rng) is EASINESS for t in (1, 2, 100))
    assert Fixed().settled(1, 0.0)


def test_smooth_by_hand():
    assert weights(Smooth(c=1), 1) == EASINESS.tolist()
    np.testing.assert_allclose(weights(Smooth(c=1), 2), [1.0, 0.95, 0.75, 0.55])
    np.testing.assert_allclose(weights(Smooth(c=2), 2), [1.0, 0.975, 0.875, 0.775])


def test_fading_is_easiness_or_equal_weights_and_easiness_in_the_first_round():
    for seed in range(20):
        assert weights(Fading(), 1, seed=seed) == EASINESS.tolist()
        assert weights(Fading(), 3, seed=seed) in (EASINESS.tolist(), [1.0] * 4)


@pytest.mark.parametrize(("c", "t"), [(0.5, 4), (1.0, 3), (2.0, 2)])
def test_smooth_is_the_expectation_of_fading(c, t):
    rng = np.random.default_rng(0)
    shares = [Fading(c).share(t, rng) for _ in range(20_000)]
    error = np.std(shares) / np.sqrt(len(shares))
    assert abs(np.mean(shares) - Smooth(c).share(t, rng)) < 4 * error


def test_the_coin_falls_on_easiness_for_ever_unless_c_is_above_one():
    assert not Fading(c=1.0).settled(10**9, 1e-6)
    assert not Fading(c=2.0).settled(99, 1e-6)
    assert Fading(c=2.0).settled(100, 1e-6)  # the sum of 1 / s**2 over s > 100 is 0.00995
    assert Fading(c=3.0).settled(7, 1e-6)  # the sum of 1 / s**3 over s > 7 is 0.0089; over s > 6 it is 0.0118
    assert not Fading(c=3.0).settled(6, 1e-6)


def test_smooth_settles_when_the_way_that_is_left_is_negligible():
    assert not Smooth(c=1.0).settled(999, 1e-3)
    assert Smooth(c=1.0).settled(1000, 1e-3)
    assert Smooth(c=2.0).settled(1000, 1e-6)


def test_self_paced_by_hand():
    paced = SelfPaced(start=0.5, growth=1.4)
    assert weights(paced, 1) == [1.0, 0.9, 0.0, 0.0]  # the easiest half
    assert weights(paced, 1, LOSSES) == [0.0, 0.9, 0.0, 0.1]
    assert weights(paced, 2, LOSSES) == [1.0, 0.9, 0.0, 0.1]  # 0.7 of four: three
    assert weights(paced, 4, LOSSES) == EASINESS.tolist()
    assert [paced.settled(t, 1e-6) for t in (1, 2, 3, 4)] == [False, False, False, True]


def test_self_paced_with_everything_from_the_start_is_fixed():
    assert weights(SelfPaced(start=1.0), 1, LOSSES) == EASINESS.tolist()
    assert SelfPaced(start=1).settled(1, 1e-6)


def test_self_paced_admits_those_who_tie_with_the_last_one_admitted():
    rng = np.random.default_rng(0)
    assert SelfPaced(start=0.25).weights(1, np.ones(4), None, rng).tolist() == [1.0] * 4


def test_self_paced_does_not_overflow_in_late_rounds():
    assert SelfPaced(growth=1e300).admitted(10**6) == 1.0


def test_self_paced_never_leaves_all_without_weight():
    rng = np.random.default_rng(0)
    assert SelfPaced(start=0.5).weights(2, np.array([1.0, 0.0]), np.array([9.0, 1.0]), rng).tolist() == [1.0, 0.0]


@given(st.lists(st.integers(1, 3), min_size=2, max_size=12), st.floats(0.01, 1.0), st.integers(0, 2**32 - 1))
def test_repeating_an_example_equals_doubling_its_weight(counts, start, seed):
    rng = np.random.default_rng(seed)
    easiness, losses = rng.random(len(counts)), rng.random(len(counts))
    paced = SelfPaced(start=start)
    once = paced.weights(1, easiness, losses, rng, np.array(counts, dtype=float))
    repeated = paced.weights(1, np.repeat(easiness, counts), np.repeat(losses, counts), rng)
    np.testing.assert_array_equal(np.repeat(once, counts), repeated)


def test_none_is_fixed_and_own_curricula_are_welcome():
    class Own(Curriculum):
        pass

    assert check_curriculum(None) == Fixed()
    own = Own()
    assert check_curriculum(own) is own


@pytest.mark.parametrize(
    ("curriculum", "message"),
    [
        ("fixed", "curriculum must be"),
        (Fading, "curriculum must be"),
        (Fading(0), "c must be a finite number above 0; got 0"),
        (Smooth(-1.0), "c must be"),
        (Smooth(float("nan")), "c must be"),
        (Fading(float("inf")), "c must be"),
        (Fading("fast"), "c must be"),
        (SelfPaced(start=0), "start must be"),
        (SelfPaced(start=1.5), "at most 1"),
        (SelfPaced(growth=1.0), "never enter"),
        (SelfPaced(growth=None), "growth must be"),
    ],
)
def test_settings_that_make_no_sense_are_told(curriculum, message):
    with pytest.raises(ValueError, match=message):
        check_curriculum(curriculum)
