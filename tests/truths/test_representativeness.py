"""Are the known examples a random draw? Known answers by hand, and how often chance is taken for choice."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from crowdwise.exceptions import CrowdWarning
from crowdwise.truths.representativeness import Representativeness, _distance


def two_classes(confidence):
    """Probabilities of two classes with this confidence, of the first class and of the second in turn."""
    confidence = np.asarray(confidence, dtype=float)
    proba = np.column_stack([confidence, 1 - confidence])
    proba[1::2] = proba[1::2, ::-1]
    return proba


def drawn(known, others):
    proba = two_classes(np.concatenate([known, others]))
    return Representativeness.of(proba, np.arange(len(known)), proba[: len(known)].argmax(axis=1))


ALL = np.repeat(np.linspace(0.51, 0.96, 10), 10)


def test_the_distance_is_kolmogorovs(rng):
    one, other = rng.normal(size=30), rng.normal(size=50) + 0.3
    assert _distance(one, other) == pytest.approx(ks_2samp(one, other).statistic)
    assert _distance(one, one + 1e-12) == 0.0


def test_truths_of_the_least_sure_fifth_are_no_random_draw():
    found = drawn(ALL[:20], ALL)
    assert found.distance == pytest.approx(0.8)
    assert not found.is_representative
    assert (found.column, found.known, found.others) == (0, pytest.approx(ALL[:20].mean()), pytest.approx(ALL.mean()))
    with pytest.warns(CrowdWarning, match=r"their mean confidence is 0\.5.,"):
        found.warn_if_chosen(np.array(["no", "yes"]))


def test_truths_of_the_most_confident_are_no_random_draw():
    found = drawn(ALL[-20:], ALL[:-20])
    assert not found.is_representative
    assert found.known > found.others


def test_every_fifth_example_may_be_a_random_draw():
    found = drawn(ALL[::5], ALL)
    assert found.is_representative
    found.warn_if_chosen(None)  # nothing to say


def test_truths_of_one_class_do_not_carry_over_where_the_others_are_of_two():
    proba = two_classes(np.concatenate([ALL[::5], ALL]))
    proba[:20] = np.sort(proba[:20], axis=1)[:, ::-1]
    found = Representativeness.of(proba, np.arange(20), np.zeros(20, dtype=int))
    assert not found.is_representative
    assert found.column in (1, 2)


def test_answers_of_one_class_are_chosen_also_where_labels_do_not_show_it():
    proba = two_classes(ALL)
    found = Representativeness.of(proba, np.arange(0, 100, 3), np.ones(34, dtype=int))
    assert (found.column, found.known) == (2, 1.0)
    assert not found.is_representative
    with pytest.warns(CrowdWarning, match="their share of 'yes' is"):
        found.warn_if_chosen(np.array(["no", "yes"]))


def test_a_class_that_nobody_gave_is_no_reason_to_doubt():
    proba = np.column_stack([two_classes(ALL), np.zeros(len(ALL))])
    found = Representativeness.of(proba, np.arange(0, 100, 5), np.full(20, 2))
    assert found.is_representative


def test_few_truths_are_too_few_to_say_anything():
    assert drawn(ALL[:4], ALL).is_representative


def test_of_a_thousand_random_draws_hardly_any_is_taken_for_chosen():
    rng = np.random.default_rng(1)
    chosen = 0
    for _ in range(1000):
        confidence = rng.beta(4, 1, 400) / 2 + 0.5
        chosen += not drawn(confidence[:50], confidence[50:]).is_representative
    assert chosen <= 5


def test_half_of_the_most_confident_are_nearly_always_taken_for_chosen():
    rng = np.random.default_rng(1)
    chosen = 0
    for _ in range(200):
        confidence = np.sort(rng.beta(4, 1, 400) / 2 + 0.5)
        most = 200 + rng.permutation(200)  # among the more confident half
        chosen += not drawn(confidence[most[:50]], np.delete(confidence, most[:50])).is_representative
    assert chosen >= 190


def test_where_all_is_known_there_is_nothing_to_compare_with():
    assert drawn(ALL, []).is_representative


def test_some_of_many_others_are_enough(set_constants):
    others = np.random.default_rng(0).permutation(np.tile(ALL, 5))
    whole = drawn(ALL[::5], others)
    set_constants("crowdwise.truths.representativeness", COMPARED_EXAMPLES=200)  # every third
    part = drawn(ALL[::5], others)
    assert part.distance != whole.distance
    assert part.is_representative
    assert part.distance == pytest.approx(whole.distance, abs=0.1)


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_examples_and_classes_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    proba, at = rng.dirichlet(np.ones(3), 60), np.arange(20)
    answers = rng.integers(0, 3, 20)
    order, names = rng.permutation(60), rng.permutation(3)
    place = np.argsort(order)[at]
    one = Representativeness.of(proba, at, answers)
    other = Representativeness.of(proba[order][:, np.argsort(names)], place, names[answers])
    assert other.distance == pytest.approx(one.distance)
    assert other.limit == pytest.approx(one.limit)
