"""Rounds that go straight on are extrapolated to where they are heading, and no others."""

import numpy as np
import pytest
from crowds import crowd, labels_of
from crowdwise.em.acceleration import StraightOn
from numpy.testing import assert_allclose

from crowdwise import CrowdLogisticClassifier
from crowdwise.em import rounds


def two_rounds(rng, factor):
    """Probabilities of two rounds, each of which leaves a factor of the way to a limit; and the limit."""
    limit, begin = rng.dirichlet(np.ones(3), 40), rng.dirichlet(np.ones(3), 40)
    return [limit + factor**n * (begin - limit) for n in range(3)], limit


@pytest.mark.parametrize("factor", [0.3, 0.8])
def test_rounds_that_leave_the_same_part_of_the_way_end_at_once(rng, factor):
    (begin, middle, end), limit = two_rounds(rng, factor)
    ahead, weight = StraightOn(), rng.uniform(0.5, 2, 40)
    assert ahead.propose(begin, middle, weight) is middle
    assert_allclose(ahead.propose(middle, end, weight), limit, atol=1e-12)


@pytest.mark.parametrize("factor", [-0.5, 0.95, 1.5])
def test_rounds_that_turn_back_or_hardly_settle_are_left_alone(rng, factor):
    (begin, middle, end), _ = two_rounds(rng, factor)
    ahead = StraightOn()
    ahead.propose(begin, middle, np.ones(40))
    assert ahead.propose(middle, end, np.ones(40)) is end


def test_no_probability_is_extrapolated_below_zero():
    begin, middle, end = (np.array([[share, 1 - share], [0.5, 0.5]]) for share in (0.4, 0.2, 0.05))
    ahead = StraightOn()
    ahead.propose(begin, middle, np.ones(2))
    assert_allclose(ahead.propose(middle, end, np.ones(2)), [[0, 1], [0.5, 0.5]])


def test_weights_say_whose_steps_count():
    steps = [np.array([[way, -way], [other, -other]]) for way, other in ((0.1, 0.1), (0.05, -0.05))]
    begin = np.full((2, 2), 0.5)
    middle, end = begin + steps[0], begin + steps[0] + steps[1]
    for weight, goes_on in (([1.0, 0.0], True), ([0.0, 1.0], False), ([1.0, 1.0], False)):
        ahead = StraightOn()
        ahead.propose(begin, middle, np.array(weight))
        assert (ahead.propose(middle, end, np.array(weight)) is not end) == goes_on


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_extrapolated_rounds_are_fewer_and_settle_in_the_same_place(monkeypatch, joint, n_classes):
    X, matrix = crowd(n_examples=300, missing=0.5, n_classes=n_classes, seed=1)
    model = CrowdLogisticClassifier(steepness=0, l2=1.0, joint=joint, hard_examples=False, tol=1e-9, max_rounds=1000)
    ahead = model.fit(X, labels_of(matrix, n_classes)).results_
    monkeypatch.setattr(rounds, "StraightOn", lambda: None)
    plain = model.fit(X, labels_of(matrix, n_classes)).results_
    assert len(ahead.objective) < len(plain.objective) + (not joint)  # with annotators as they are, rounds are few
    assert_allclose(ahead.consensus.proba, plain.consensus.proba, atol=1e-7)
