import numpy as np
import pytest

from crowdwise.exceptions import BoundError
from crowdwise.paper.theory import mistake_bound, novikoff_bound, spread_bound
from crowdwise.paper.theory.counted import region_width


def test_separated_examples_give_theorem_2_and_novikoff():
    bound = mistake_bound([0.9, 0.45, 0.2], mistakes=[0, 1, 2, 2], radius=1.0)
    spread = np.std([2, 1, 0, 1])
    assert (bound.n_mistakes, bound.n_regions, bound.deviation, bound.near_deviation) == (4, 4, 0.0, 0.0)
    assert bound.spread == pytest.approx(spread)
    assert bound.value == pytest.approx(spread_bound(0.2, spread))
    assert bound.novikoff == pytest.approx(novikoff_bound(0.2))


def test_only_mistakes_fall_short():
    calm = mistake_bound([0.9, 0.45, -0.2], mistakes=[0, 1], radius=1.0)
    assert calm.deviation == 0.0
    short = mistake_bound([0.9, 0.45, -0.2], mistakes=[0, 2, 2], radius=1.0)
    assert short.margin == 0.45
    assert short.deviation == short.near_deviation == pytest.approx(np.sqrt(2) * 0.65)


def test_estimates_decide_the_regions_and_the_truth_what_is_short_of_them():
    bound = mistake_bound([0.5, 0.3], mistakes=[0, 1], radius=1.0, estimates=[0.6, 0.2])
    assert bound.margin == 0.2
    assert bound.deviation == pytest.approx(0.1)  # 0.5 is in region 3, which begins at 0.6
    assert bound.near_deviation == 0.0


def test_the_number_of_regions_is_limited_by_a_wider_region():
    assert region_width(np.array([1e-9, 0.5]), 1.0, 9) == pytest.approx(0.1)
    assert region_width(np.array([-1.0, 0.0]), 1.0, 9) == pytest.approx(0.1)
    assert mistake_bound([1e-9, 0.5], [0, 1], 1.0, n_regions=9).n_regions == 9


def test_no_mistakes_and_no_radius():
    assert mistake_bound([0.5], mistakes=[], radius=1.0, estimates=[3.0]).n_mistakes == 0
    with pytest.raises(BoundError, match="radius must be a finite"):
        mistake_bound([0.5], mistakes=[], radius=0.0)
