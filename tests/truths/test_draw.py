"""Are the known examples a random draw? Known answers by hand, weights as repetitions, and how often chance is taken
for choice."""

import numpy as np
import pytest
from crowdwise.truths.draw import Draw, some_others
from hypothesis import given
from hypothesis import strategies as st

from crowdwise.exceptions import CrowdWarning


def two_classes(confidence):
    """Probabilities of two classes with this confidence, of the first class and of the second in turn."""
    confidence = np.asarray(confidence, dtype=float)
    proba = np.column_stack([confidence, 1 - confidence])
    proba[1::2] = proba[1::2, ::-1]
    return proba


def drawn(known, others, weight=None):
    weight = np.ones(len(others)) if weight is None else weight
    return Draw.of(len(known), two_classes(np.concatenate([known, others])), weight)


ALL = np.repeat(np.linspace(0.5, 0.95, 10), 10)


def test_truths_of_the_least_sure_fifth_leave_four_fifths_uncovered():
    found = drawn(ALL[:20], ALL)
    assert found.uncovered == pytest.approx(0.8)
    assert not found.at_random
    assert not found.carries_over
    assert found.confidence == pytest.approx((ALL[:20].mean(), ALL.mean()))


def test_half_at_random_is_enough_to_carry_over():
    found = drawn(np.concatenate([ALL[:25], ALL[2::4]]), ALL)
    assert not found.at_random
    assert found.carries_over


def test_every_fifth_example_may_be_a_random_draw():
    found = drawn(ALL[::5], ALL)
    assert found.at_random
    assert found.carries_over
    assert found.uncovered == 0


def test_truths_of_one_class_do_not_carry_over_where_the_others_are_of_two():
    proba = two_classes(np.concatenate([ALL[::5], ALL]) + 0.01)
    proba[:20] = np.sort(proba[:20], axis=1)[:, ::-1]
    found = Draw.of(20, proba, np.ones(100))
    assert found.class_distance == pytest.approx(0.5)
    assert found.uncovered == 0
    assert not found.at_random
    assert not found.carries_over
    with pytest.warns(CrowdWarning, match=r"by their labels 100% of them are 'no', and 50% of the others\. Known"):
        found.note(np.array(["no", "yes"]))


def test_the_warning_names_both_confidences():
    with pytest.warns(CrowdWarning, match=r"would be 0\.53 on average on these, and is 0\.72 on the others"):
        drawn(ALL[:20], ALL).note(np.array(["no", "yes"]))


def test_four_truths_are_too_few_to_say_anything():
    assert drawn(ALL[:4], ALL).at_random


def test_a_weight_is_a_number_of_repetitions():
    rng = np.random.default_rng(0)
    known, times = rng.choice(ALL, 30), rng.integers(1, 4, 50)
    others = np.repeat(rng.choice(ALL, 25), 2)  # of both classes
    weighted = drawn(known, others, weight=times.astype(float))
    proba = two_classes(np.concatenate([known, others]))
    repeated = Draw.of(30, np.concatenate([proba[:30], np.repeat(proba[30:], times, axis=0)]), np.ones(times.sum()))
    assert weighted.uncovered == pytest.approx(repeated.uncovered)
    assert weighted.confidence == pytest.approx(repeated.confidence)
    assert weighted.at_random == repeated.at_random
    assert weighted.classes == pytest.approx(repeated.classes)


def test_of_a_thousand_random_draws_hardly_any_is_taken_for_chosen():
    rng = np.random.default_rng(1)
    chosen = 0
    for _ in range(1000):
        confidence = rng.beta(4, 1, 400) / 2 + 0.5
        chosen += not drawn(confidence[:50], confidence[50:]).at_random
    assert chosen <= 5


def test_confidence_that_is_nearly_the_same_everywhere_is_no_reason_to_doubt():
    found = drawn(np.linspace(0.91, 0.92, 30), np.linspace(0.88, 0.90, 70))
    assert found.at_random
    assert found.carries_over


def test_where_all_is_known_there_is_nothing_to_compare_with():
    found = drawn(ALL, [])
    assert found.at_random
    assert found.carries_over


@given(st.integers(1, 40), st.integers(1, 12_000), st.randoms(use_true_random=False))
def test_some_others_are_not_known_and_not_too_many(n_known, n_others, random):
    at = np.sort(random.sample(range(n_known + n_others), n_known))
    others = some_others(at, n_known + n_others)
    assert not set(others) & set(at)
    assert min(n_others, 2500) <= len(others) <= 5000
