import numpy as np
import pytest
from crowdwise.weights.round_weights import RoundWeights, SoftTargets
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise.weights import Curriculum, Fading, Fixed, SelfPaced, Smooth

POSTERIOR = np.array([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.3, 0.7]])
EASINESS = np.array([1.0, 0.5, 0.2, 0.5])


def lessons(curriculum, class_weight=None, sample_weight=(1.0, 2.0, 1.0, 3.0), seed=0):
    return RoundWeights(curriculum, EASINESS, np.array(sample_weight), class_weight, np.random.default_rng(seed))


def test_a_fixed_curriculum_is_easiness_times_how_often_an_example_counts():
    fixed = lessons(Fixed())
    for _ in range(3):
        lesson = fixed.next(POSTERIOR, None)
        assert_array_equal(lesson.weight, [1.0, 1.0, 0.2, 1.5])
        assert_array_equal(lesson.class_weight, [1.0, 1.0])
        assert fixed.settled(0.0)
    assert fixed.n_rounds == 3


def test_a_class_that_counts_double_is_as_if_its_share_of_each_example_were_there_twice():
    posterior, weight = SoftTargets(POSTERIOR, np.ones(4), np.array([1.0, 2.0])).by_class()
    assert_allclose(posterior.sum(axis=1), 1)
    assert_allclose(posterior * weight[:, None], POSTERIOR * [1.0, 2.0])


def test_classes_that_count_alike_leave_every_bit():
    lesson = SoftTargets(POSTERIOR / 3, np.ones(4), np.ones(2))
    assert lesson.by_class()[0] is lesson.posterior
    assert lesson.by_class()[1] is lesson.weight


def test_balanced_classes_get_the_same_total_by_the_weights_of_the_round():
    lesson = lessons(Fixed(), "balanced").next(POSTERIOR, None)
    posterior, weight = lesson.by_class()
    assert_allclose(weight @ posterior, [1.85, 1.85])
    other = lessons(Fixed(), np.array([3.0, 5.0])).next(POSTERIOR, None)
    assert_array_equal(other.class_weight, [3.0, 5.0])


def test_a_class_of_less_than_one_example_is_not_blown_up():
    posterior = np.array([[1 - 1e-9, 1e-9]] * 10)
    balanced = RoundWeights(Fixed(), np.full(10, 0.3), np.ones(10), "balanced", np.random.default_rng(0))
    assert_allclose(balanced.next(posterior, None).class_weight, [0.5, 5.0])  # as one of ten would count


def test_the_same_round_again_has_the_same_weights_and_new_class_weights():
    fading = lessons(Fading(), "balanced", seed=3)
    for _ in range(5):
        lesson = fading.next(POSTERIOR, None)
        again = fading.again(POSTERIOR[:, ::-1])
        assert_array_equal(again.weight, lesson.weight)
        assert_allclose(again.class_weight, lesson.class_weight[::-1])


@pytest.mark.parametrize("curriculum", [Fading(0.5), Smooth(0.5)])
def test_weights_that_cannot_change_have_settled(curriculum):
    changing = lessons(curriculum)
    changing.next(POSTERIOR, None)
    assert not changing.settled(1e-3)
    alike = RoundWeights(curriculum, np.ones(4), np.ones(4), None, np.random.default_rng(0))
    assert_array_equal(alike.next(POSTERIOR, None).weight, np.ones(4))
    assert alike.settled(1e-3)


def test_every_class_has_a_threshold_of_its_own():
    paced = lessons(SelfPaced(start=0.3, growth=1.01), sample_weight=np.ones(4))
    paced.next(POSTERIOR, None)
    voice = np.log([[0.5, 0.5], [0.9, 0.1], [0.5, 0.5], [0.999, 0.001]])
    # The last is the worst explained of all, and the only one of its class.
    assert_array_equal(paced.next(POSTERIOR, voice).weight, [0.0, 0.5, 0.0, 0.5])
    assert not paced.settled(1e-3)


def test_an_example_that_counts_twice_is_counted_twice_by_a_threshold():
    paced = lessons(SelfPaced(start=0.5, growth=1.01), sample_weight=[3.0, 1.0, 1.0, 1.0])
    paced.next(POSTERIOR, None)
    voice = np.log([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.3, 0.7]])
    # The first three are of a class; the first alone is more than half of it, the last all of its class.
    assert_array_equal(paced.next(POSTERIOR, voice).weight, [3.0, 0.0, 0.0, 0.5])


def test_the_loss_is_the_cross_entropy_of_consensus_and_voice():
    seen = []

    class Listening(Curriculum):
        reads_losses = True

        def weights(self, t, easiness, losses, rng, sample_weight=None):
            seen.append(losses)
            return easiness

    listening, voice = lessons(Listening()), np.log([[0.5, 0.5], [0.9, 0.1], [0.2, 0.8], [0.3, 0.7]])
    listening.next(POSTERIOR, None)
    listening.next(POSTERIOR, voice)
    by_hand = [
        -sum(p * np.log(q) for p, q in zip(*rows, strict=True)) for rows in zip(POSTERIOR, np.exp(voice), strict=True)
    ]
    assert seen[0] is None
    assert_allclose(np.concatenate(seen[1:]), by_hand)  # the likeliest classes are in the order of the examples


@pytest.mark.parametrize("strange", [np.zeros(4), np.full(4, np.nan), np.array([1.0, -1.0, 1.0, 1.0])])
def test_weights_that_nothing_can_be_learnt_with_are_told(strange):
    class Strange(Curriculum):
        def weights(self, t, easiness, losses, rng, sample_weight=None):
            return strange

    with pytest.raises(ValueError, match="weights of a curriculum must be finite"):
        lessons(Strange()).next(POSTERIOR, None)


@pytest.mark.parametrize("curriculum", [SelfPaced(0.3, 1.1), Smooth(2.0), Fading(1.5)])
def test_an_example_of_known_class_weighs_one_in_every_round(curriculum):
    known = RoundWeights(
        curriculum, EASINESS, np.array([1.0, 2.0, 1.0, 3.0]), None, np.random.default_rng(0), np.array([2, 3])
    )
    log_prior = np.log([[0.9, 0.1], [0.8, 0.2], [0.01, 0.99], [0.99, 0.01]])  # losses that would leave these out
    for _ in range(3):
        assert_array_equal(known.next(POSTERIOR, log_prior).weight[2:], [1.0, 3.0])
