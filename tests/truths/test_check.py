"""How good a consensus is by truths: by hand, against SciPy, and what more truths would give."""

import numpy as np
import pytest
from scipy import stats

from crowdwise.truths.check import RatingCheck, TruthCheck, check_classes, share_interval


@pytest.mark.parametrize(("n", "right"), [(1, 0), (1, 1), (50, 40), (200, 199)])
def test_the_interval_is_wilsons(n, right):
    expected = stats.binomtest(right, n).proportion_ci(method="wilson")
    assert TruthCheck(n, right, 0.9).interval == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("right", [25, 40])
def test_with_as_many_more_truths_the_interval_is_as_narrow_as_wanted(right):
    check = TruthCheck(50, right, 0.9)
    n = 50 + check.needed(within=0.04)
    centre = (right + 1.92) / 53.84  # of Wilson's interval, which stays
    low, high = TruthCheck(n, round(centre * (n + 3.84) - 1.92), 0.9).interval
    assert (high - low) / 2 == pytest.approx(0.04, rel=0.02)
    assert TruthCheck(5000, 4000, 0.9).needed(within=0.05) == 0
    with pytest.raises(ValueError, match="within must be"):
        check.needed(within=0)


def test_classes_are_compared_one_by_one():
    check = check_classes(np.array([[0.9, 0.1], [0.4, 0.6], [0.7, 0.3]]), np.array([0, 0, 0]))
    assert (check.n, check.right) == (3, 2)
    assert check.accuracy == pytest.approx(2 / 3)
    assert check.confidence == pytest.approx(2.2 / 3)
    assert check.plain()["needed"] == check.needed()
    assert "accuracy 67% on 3 known answers" in repr(check)


def test_the_interval_of_an_error_covers_it_as_often_as_it_says():
    rng = np.random.default_rng(0)
    errors = np.sqrt((rng.normal(size=(2000, 20)) ** 2).mean(axis=1))
    covered = [low <= 1 <= high for low, high in (RatingCheck(20, error, 1.0).interval for error in errors)]
    assert np.mean(covered) == pytest.approx(0.95, abs=0.015)
    n = 20 + RatingCheck(20, 1.0, 1.0).needed(within=0.1)
    low, high = RatingCheck(n, 1.0, 1.0).interval
    assert (high - low) / 2 == pytest.approx(0.1, rel=0.05)


def test_known_answers_are_counted_by_tenth_of_confidence():
    held_out = np.array([[0.95, 0.05], [0.35, 0.65], [0.62, 0.38], [0.0, 1.0]])
    check = check_classes(held_out, np.array([0, 0, 0, 1]))
    assert check.tenths == ((2, pytest.approx(0.635), 0.5), (2, pytest.approx(0.975), 1.0))
    assert sum(row["n"] for row in check.plain()["reliability"]) == check.n
    low, high = share_interval(0.5, 2)
    first = check.plain()["reliability"][0]
    assert (first["low"], first["high"]) == (low, high)
