"""Who shares a vote, and what labels count then: naive twins, known answers and invariances."""

import numpy as np
import pytest
from crowds import crowd, labels_of
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise import CrowdLabels
from crowdwise.crowd.vote_sharing import VoteSharing, near_copies, numbered, probably_copies


def judges(seed=0, *, n_examples=300, n_judges=6, n_classes=3, accuracy=0.7):
    """Labels of judges who err independently, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_examples)
    wrong = (truth[:, None] + rng.integers(1, n_classes, (n_examples, n_judges))) % n_classes
    return np.where(rng.random((n_examples, n_judges)) < accuracy, truth[:, None], wrong), truth


def found_pairs(labels):
    first, second, _ = near_copies(labels)
    return list(zip(first.tolist(), second.tolist(), strict=True))


def test_an_exact_copy_is_found_and_independent_judges_are_not():
    matrix, _ = judges()
    assert found_pairs(labels_of(matrix, 3)) == []
    assert found_pairs(labels_of(np.column_stack([matrix, matrix[:, 1]]), 3)) == [(1, 6)]


def integrated(shared, differ, expected, n_pairs):
    """The probability of near copies by sums over a fine grid of how often two disagree."""
    often = expected / shared

    def evidence(low, high):
        rates = low + (high - low) * (np.arange(200_000) + 0.5) / 200_000
        return (rates**differ * (1 - rates) ** (shared - differ)).mean()

    near, other = evidence(0, 0.05 * often), evidence(0.05 * often, often)
    independent = often**differ * (1 - often) ** (shared - differ)
    prior = np.array([0.5 / n_pairs, 0.5 / n_pairs, 1 - 1 / n_pairs])
    return prior[0] * near / (prior @ [near, other, independent])


@pytest.mark.parametrize("counts", [(20, 0, 8.0, 10), (40, 0, 20.0, 1), (200, 3, 90.0, 300), (60, 4, 30.0, 15)])
def test_the_probability_of_copies_is_that_of_bayes(counts):
    assert_allclose(probably_copies(*counts), integrated(*counts), rtol=1e-6)


def test_two_alone_by_hand():
    # Nobody else labels: the votes of others are the frequencies, and two answer alike in half of the cases by chance.
    said = np.arange(40) % 2
    _, _, proba = near_copies(labels_of(np.column_stack([said, said])))
    assert_allclose(proba, integrated(40, 0, 20.0, 1), rtol=1e-6)


def test_disagreements_show_that_two_are_no_copies():
    matrix, _ = judges()
    near = matrix[:, 1].copy()
    near[::100] = (near[::100] + 1) % 3
    sharing = VoteSharing.of_copies(labels_of(np.column_stack([matrix, near]), 3))
    assert (sharing.first.tolist(), sharing.second.tolist(), sharing.given) == ([1], [6], False)
    assert 0.9 < sharing.share[0] < 1
    near[::15] = (near[::15] + 1) % 3
    assert found_pairs(labels_of(np.column_stack([matrix, near]), 3)) == []
    # However many examples there are: it is how seldom two disagree that counts.
    many, _ = judges(n_examples=3000)
    near = many[:, 1].copy()
    near[::20] = (near[::20] + 1) % 3
    assert found_pairs(labels_of(np.column_stack([many, near]), 3)) == []


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("share", [0.02, 0.05])
def test_many_random_annotators_who_share_few_examples_are_no_copies(share, n_classes):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        matrix = np.where(rng.random((500, 200)) < share, rng.integers(0, n_classes, (500, 200)), -1).astype(object)
        matrix[matrix == -1] = None
        assert found_pairs(CrowdLabels.from_matrix(matrix, classes=range(n_classes))) == []


@pytest.mark.parametrize(("n_examples", "found"), [(8, False), (40, True)])
def test_few_shared_examples_show_no_copy(n_examples, found):
    matrix, _ = judges(n_examples=n_examples)
    assert (found_pairs(labels_of(np.column_stack([matrix, matrix[:, 0]]), 3)) == [(0, 6)]) == found


def test_two_who_hardly_ever_err_are_no_copies_if_others_are_good():
    matrix, _ = judges(accuracy=0.97, n_examples=600)
    assert found_pairs(labels_of(matrix, 3)) == []


def test_annotators_who_always_give_the_same_class_are_no_copies():
    """They agree because each of them expects nothing else."""
    matrix, _ = judges()
    matrix[:, :2] = 1
    assert found_pairs(labels_of(matrix, 3)) == []


def test_copies_of_ratings_are_found_if_they_are_equal():
    rng = np.random.default_rng(0)
    ratings = rng.normal(size=(120, 1)) + rng.normal(size=(120, 4))
    copied = np.where(np.arange(120) < 3, 0.0, ratings[:, 0])
    labels = CrowdLabels.from_matrix(np.column_stack([ratings, copied]), scale="interval")
    assert found_pairs(labels) == [(0, 4)]
    assert found_pairs(CrowdLabels.from_matrix(ratings, scale="interval")) == []


def test_two_good_raters_are_no_copies():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(200, 1))
    good, poor = truth + 0.05 * rng.normal(size=(200, 2)), truth + 2 * rng.normal(size=(200, 3))
    assert found_pairs(CrowdLabels.from_matrix(np.column_stack([good, poor]), scale="interval")) == []
    stars = np.clip(np.round(3 + np.column_stack([good, poor])), 1, 5)
    assert found_pairs(CrowdLabels.from_matrix(stars[:, 2:], scale="interval")) == []


@pytest.mark.parametrize(("origin", "unit"), [(100.0, 1.0), (0.0, 0.5)])
def test_neither_origin_nor_unit_of_ratings_matters(origin, unit):
    rng = np.random.default_rng(0)
    ratings = rng.integers(0, 20, (60, 3)).astype(float)
    ratings = np.column_stack([ratings, ratings[:, 0]])
    one, other = (near_copies(CrowdLabels.from_matrix(r, scale="interval")) for r in (ratings, origin + unit * ratings))
    assert len(one[2]) == 1
    assert_allclose(other[2], one[2], rtol=1e-6)


@given(st.integers(0, 10**6))
def test_the_order_of_examples_annotators_and_classes_changes_nothing(seed):
    _, matrix = crowd(seed, n_classes=3, missing=0.3, n_examples=60)
    matrix = np.column_stack([matrix, matrix[:, 0]])
    rng = np.random.default_rng(seed)
    rows, columns, names = rng.permutation(60), rng.permutation(7), rng.permutation(3)
    renamed = np.array([[None if v is None else names[v] for v in row] for row in matrix], dtype=object)
    one, other = near_copies(labels_of(matrix, 3)), near_copies(labels_of(renamed[rows][:, columns], 3))
    expected = {frozenset(pair): kappa for *pair, kappa in zip(*(part.tolist() for part in one), strict=True)}
    found = {
        frozenset(columns[pair].tolist()): kappa
        for *pair, kappa in zip(*(part.tolist() for part in other), strict=True)
    }
    assert found.keys() == expected.keys()
    assert_allclose([found[pair] for pair in expected], list(expected.values()), rtol=1e-9)


def test_of_many_examples_some_are_enough(set_constants):
    matrix, _ = judges(n_examples=2000)
    labels = labels_of(np.column_stack([matrix, matrix[:, 1]]), 3)
    set_constants("crowdwise.crowd.vote_sharing", _MOST_PAIRS=3000)
    assert found_pairs(labels) == [(1, 6)]


def random_sharing(rng, n_annotators):
    first, second = np.triu_indices(n_annotators, 1)
    some = rng.random(len(first)) < 0.4
    return VoteSharing(first[some], second[some], rng.random(some.sum()))


@given(st.integers(0, 10**6))
def test_what_labels_count_by_loops(seed):
    _, matrix = crowd(seed, missing=0.4)
    rng = np.random.default_rng(seed)
    labels, sharing, values = labels_of(matrix), random_sharing(rng, 6), rng.normal(size=240)
    shares = {}
    for a, b, share in zip(sharing.first, sharing.second, sharing.share, strict=True):
        shares[a, b] = shares[b, a] = share
    weights, sums, at = [], [], 0
    for row in matrix:
        given_by = [j for j, value in enumerate(row) if value is not None]
        for j in given_by:
            weights.append(1 / (1 + sum(shares.get((i, j), 0.0) for i in given_by)))
            sums.append(sum(shares.get((i, j), 0.0) * values[at + place] for place, i in enumerate(given_by)))
        at += len(given_by)
    found = sharing.label_weights(labels)
    assert_allclose(np.ones(at) if found is None else found, weights)
    assert_allclose(sharing.pairs(labels).sums(values[:at]), sums, atol=1e-12)
    mean = [np.mean([w for w, j in zip(weights, labels.annotator_index, strict=True) if j == a]) for a in range(6)]
    assert_allclose(sharing.vote_weights(labels), mean)


def test_members_of_a_group_who_labelled_an_example_share_one_vote():
    labels = labels_of([[0, 0, 1, 1], [1, None, 0, None], [None, 1, None, 0]])
    sharing = VoteSharing.of_groups(np.array([0, 0, 1, 0]))
    assert_allclose(sharing.label_weights(labels), [1 / 3, 1 / 3, 1, 1 / 3, 1, 1, 0.5, 0.5])
    for alone in (VoteSharing.none(), VoteSharing.of_groups(np.arange(4))):
        assert (alone.label_weights(labels) == 1).all()
    assert sharing.given


def test_an_annotator_without_labels_has_a_whole_vote():
    labels = labels_of([[0, None, 1], [1, None, 1]])
    assert_allclose(VoteSharing.of_groups(np.array([0, 0, 1])).vote_weights(labels), [1, 1, 1])


def test_unknown_annotators_are_alone_and_others_keep_their_pairs():
    sharing = VoteSharing(np.array([0, 1]), np.array([1, 2]), np.array([0.5, 1.0]))
    found = sharing.at(np.array([1, -1, 0, -1]))
    assert (found.first.tolist(), found.second.tolist(), found.share.tolist()) == ([2], [0], [0.5])
    assert len(sharing.at(np.array([-1, -1]))) == 0


def test_groups_are_what_pairs_connect():
    matrix, _ = judges()
    labels = labels_of(np.column_stack([matrix, matrix[:, 1], matrix[:, 4], matrix[:, 1]]), 3)
    assert VoteSharing.of_copies(labels).groups(9).tolist() == [0, 1, 2, 3, 4, 5, 1, 4, 1]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12))
def test_groups_are_numbered_in_the_order_of_their_first_members(group):
    found = numbered(np.array(group))
    first = [group.index(value) for value in dict.fromkeys(group)]
    assert found[first].tolist() == list(range(len(first)))
    assert all((found[i] == found[j]) == (group[i] == group[j]) for i in range(len(group)) for j in range(len(group)))
    assert_array_equal(VoteSharing.of_groups(found).groups(len(group)), found)
