import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise.em.with_features import RoundWeights, SoftTargets, curriculum_of
from crowdwise.rows.chunks import Chunk, MemoryChunks
from crowdwise.weights import Curriculum, Fading, Fixed, SelfPaced, Smooth

POSTERIOR = np.array([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.3, 0.7]])
EASINESS = np.array([1.0, 0.5, 0.2, 0.5])


class Lessons:
    """The weights of rounds over four examples in two chunks."""

    def __init__(
        self, curriculum, class_weight=None, weight=(1.0, 2.0, 1.0, 3.0), seed=0, easiness=EASINESS, truth=None
    ):
        n, place = len(easiness), np.arange(len(easiness))
        parts = [slice(0, 2), slice(2, n)]
        truth = np.full(n, -1) if truth is None else np.array(truth)
        weight = np.array(weight)
        self.chunks = MemoryChunks(
            [Chunk(None, weight[at], None, truth[at], {"position": (None, place[at])}) for at in parts]
        )
        counts = np.ones(2) if class_weight is None else class_weight
        rng = np.random.default_rng(seed)
        self.weights = RoundWeights(self.chunks, of_rows(np.array(easiness)), counts, curriculum, rng)
        self.settled = self.weights.settled

    def next(self, posterior, log_prior):
        self.weights.advance(of_rows(posterior), None if log_prior is None else of_rows(log_prior))
        return self.again(posterior)

    def again(self, posterior):
        """What the current round is fitted to, in one record."""
        targets = self.weights.targets(of_rows(posterior))
        found = [targets.of(chunk) for chunk in self.chunks.chunks]
        return SoftTargets(
            np.vstack([part.posterior for part in found]),
            np.concatenate([part.weight for part in found]),
            found[0].class_weight,
        )


def of_rows(values):
    return lambda chunk: values[chunk.memo["position"][1]]


lessons = Lessons


def test_a_fixed_curriculum_is_easiness_times_how_often_an_example_counts():
    fixed = lessons(Fixed())
    for _ in range(3):
        lesson = fixed.next(POSTERIOR, None)
        assert_array_equal(lesson.weight, [1.0, 1.0, 0.2, 1.5])
        assert_array_equal(lesson.class_weight, [1.0, 1.0])
        assert fixed.settled(0.0)
    assert fixed.weights.n_rounds == 3


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
    balanced = lessons(Fixed(), "balanced", np.ones(10), easiness=np.full(10, 0.3))
    assert_allclose(balanced.next(posterior, None).class_weight, [0.5, 5.0])  # as one of ten would count
    half = lessons(Fixed(), "balanced", np.full(5, 2.0), easiness=np.full(5, 0.3))
    assert_allclose(half.next(posterior[:5], None).class_weight, [0.5, 5.0])  # a weight of two is the row twice


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
    assert curriculum_of(curriculum, 2.0) is curriculum
    alike = lessons(curriculum_of(curriculum, 0.0), weight=np.ones(4), easiness=np.ones(4))
    assert_array_equal(alike.next(POSTERIOR, None).weight, np.ones(4))
    assert alike.settled(1e-3)


def test_every_class_has_a_threshold_of_its_own():
    paced = lessons(SelfPaced(start=0.3, growth=1.01), weight=np.ones(4))
    paced.next(POSTERIOR, None)
    voice = np.log([[0.5, 0.5], [0.9, 0.1], [0.5, 0.5], [0.999, 0.001]])
    # The last is the worst explained of all, and the only one of its class.
    assert_array_equal(paced.next(POSTERIOR, voice).weight, [0.0, 0.5, 0.0, 0.5])
    assert not paced.settled(1e-3)


def test_an_example_that_counts_twice_is_counted_twice_by_a_threshold():
    paced = lessons(SelfPaced(start=0.5, growth=1.01), weight=[3.0, 1.0, 1.0, 1.0])
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

    with pytest.raises(ValueError, match="weights of a curriculum must"):
        lessons(Strange()).next(POSTERIOR, None)


@pytest.mark.parametrize("curriculum", [SelfPaced(0.3, 1.1), Smooth(2.0), Fading(1.5)])
def test_an_example_of_known_class_weighs_one_in_every_round(curriculum):
    known = lessons(curriculum, easiness=[1.0, 0.5, 1.0, 1.0], truth=[-1, -1, 0, 1])  # with easiness one, as in a fit
    log_prior = np.log([[0.9, 0.1], [0.8, 0.2], [0.01, 0.99], [0.99, 0.01]])  # losses that would leave these out
    for _ in range(3):
        assert_array_equal(known.next(POSTERIOR, log_prior).weight[2:], [1.0, 3.0])
