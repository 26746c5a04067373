"""Who errs together, and what that makes of votes: known answers, naive twins and invariances."""

from math import comb

import numpy as np
import pytest
from crowds import crowd, labels_of
from crowdwise.crowd.votes import effective_number, mean_effective_number, n_votes, tempered, vote_counts, vote_parts
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise import CrowdLabels
from crowdwise.crowd.groups import check_groups
from crowdwise.crowd.pairs import (
    _nearly_same,
    copies,
    enough_pairs,
    groups_of_pairs,
    numbered,
    one_hot,
    residual_pairs,
    suspects,
)
from crowdwise.exceptions import CrowdWarning, LabelError


def judges(seed=0, *, n_examples=300, n_judges=6, n_classes=3, accuracy=0.7):
    """Labels of judges who err independently, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_examples)
    wrong = (truth[:, None] + rng.integers(1, n_classes, (n_examples, n_judges))) % n_classes
    return np.where(rng.random((n_examples, n_judges)) < accuracy, truth[:, None], wrong), truth


def slow_correlation(matrix, expected, added=7.0):
    """{pair: shrunk correlation of deviations}, one example after the other."""
    codes = np.eye(3)
    away = {}
    for i, row in enumerate(matrix.tolist()):
        for one, other in [(a, b) for a in range(len(row)) for b in range(a + 1, len(row))]:
            if row[one] is not None and row[other] is not None:
                expects = expected(i, one, other)
                away.setdefault((one, other), []).append((codes[row[one]] - expects, codes[row[other]] - expects))
    every = [vector for both in away.values() for pair in both for vector in pair]
    usual = np.mean([vector @ vector for vector in every])
    return {
        pair: sum(a @ b for a, b in both)
        / (np.sqrt(sum(a @ a for a, _ in both) * sum(b @ b for _, b in both)) + added * usual)
        for pair, both in away.items()
    }


def as_dict(pairs, values):
    return dict(zip(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True), values.tolist(), strict=True))


@given(st.lists(st.tuples(st.integers(1, 150), st.floats(0, 1)), min_size=1, max_size=30))
def test_who_nearly_always_agrees_by_a_loop_over_pairs(met):
    shared = np.array([n for n, _ in met], dtype=float)
    n_same = np.round([n * (1 - share**4) for n, share in met])  # most agree often
    found = _nearly_same(shared, n_same / shared)
    for n, same, is_same in zip(shared.tolist(), n_same.tolist(), found.tolist(), strict=True):
        by_chance = sum(comb(int(n), k) * 0.9**k * 0.1 ** (n - k) for k in range(int(same), int(n) + 1)) * len(met)
        assert is_same == (same / n >= 0.9 and (n >= 100 or by_chance < 0.01))


def test_residual_correlations_equal_the_slow_twin():
    _, matrix = crowd(n_classes=3, missing=0.4)
    labels, rng = labels_of(matrix, 3), np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), len(labels))
    found = residual_pairs(labels, one_hot(labels) - proba[labels.example_index])
    slow = slow_correlation(matrix, lambda i, *_: proba[i])
    fast = as_dict(found, found.correlation)
    assert fast.keys() == slow.keys()
    assert_allclose([fast[pair] for pair in slow], list(slow.values()))
    agreed = {
        pair: np.mean([row[pair[0]] == row[pair[1]] for row in matrix if None not in row[list(pair)]]) for pair in slow
    }
    assert_allclose([as_dict(found, found.agreement)[pair] for pair in slow], list(agreed.values()))


def test_deviations_from_the_others_equal_the_slow_twin(monkeypatch):
    monkeypatch.setattr("crowdwise.crowd.pairs._SUSPECT", -1.0)
    monkeypatch.setattr("crowdwise.crowd.pairs._SAME", 0.0)
    monkeypatch.setattr("crowdwise.crowd.pairs._FEWEST", 0)
    monkeypatch.setattr("crowdwise.crowd.pairs._NEVER", 0)
    matrix, _ = judges(n_examples=30, n_judges=4)
    matrix = matrix.astype(object)

    def others(i, *pair):
        return np.mean([np.eye(3)[matrix[i, k]] for k in range(4) if k not in pair], axis=0)

    found, slow = suspects(labels_of(matrix, 3)), slow_correlation(matrix, others)
    assert_allclose([as_dict(found, found.correlation)[pair] for pair in slow], list(slow.values()))


def test_a_copy_is_suspected_and_independent_judges_are_not():
    matrix, _ = judges()
    assert len(suspects(labels_of(matrix, 3))) == 0
    found = suspects(labels_of(np.column_stack([matrix, matrix[:, 1]]), 3))
    assert (found.first.tolist(), found.second.tolist()) == ([1], [6])
    assert found.agreement.tolist() == [1.0]


@pytest.mark.parametrize("n_others", [0, 1])
def test_two_judges_cannot_be_suspected_beside_fewer_than_two_others(n_others):
    matrix, _ = judges(n_judges=1 + n_others)
    assert len(suspects(labels_of(np.column_stack([matrix, matrix[:, 0]]), 3))) == 0


def test_good_annotators_among_bad_ones_are_suspects_but_no_copies():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 400)
    good = np.where(rng.random((400, 2)) < 0.98, truth[:, None], 1 - truth[:, None])
    labels = labels_of(np.column_stack([good, rng.integers(0, 2, (400, 2))]))
    suspected = suspects(labels)
    assert len(suspected) == 1
    residual = one_hot(labels) - np.eye(2)[truth][labels.example_index]
    residual[labels.annotator_index >= 2] = 0.0  # nothing can be expected of who guesses
    assert len(copies(labels, residual, suspected)) == 0
    twice = labels_of(np.column_stack([good[:, [0, 0]], rng.integers(0, 2, (400, 2))]))
    residual = one_hot(twice) - np.eye(2)[truth][twice.example_index]
    assert len(copies(twice, residual, suspects(twice))) == 1


@pytest.mark.parametrize(("others", "found"), [(0.75, 1), (0.5, 0)])
def test_near_copies_are_copies_if_others_know_better(others, found):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 400)
    said = np.where(rng.random((400, 4)) < [0.75, *[others] * 3], truth[:, None], 1 - truth[:, None])
    near = np.where(rng.random(400) < 0.05, 1 - said[:, 0], said[:, 0])
    labels = labels_of(np.column_stack([said, near]))
    residual = one_hot(labels) - np.eye(2)[truth][labels.example_index]
    assert len(copies(labels, residual, suspects(labels))) == found


def test_ratings_have_pairs_too():
    rng = np.random.default_rng(0)
    ratings = rng.normal(size=(120, 1)) + rng.normal(size=(120, 4))
    labels = CrowdLabels.from_matrix(np.column_stack([ratings, ratings[:, 0]]), kind="rating")
    found = suspects(labels)
    assert (found.first.tolist(), found.second.tolist()) == ([0], [4])


@pytest.mark.parametrize("square", [0, 2**20])
def test_pairs_of_many_annotators_are_found_without_a_square(square, monkeypatch):
    monkeypatch.setattr("crowdwise.crowd.pairs._SQUARE", square)
    matrix, _ = judges()
    found = suspects(labels_of(np.column_stack([matrix, matrix[:, 1]]), 3))
    assert (found.first.tolist(), found.second.tolist()) == ([1], [6])


def test_of_many_pairs_some_are_enough(monkeypatch):
    labels = labels_of(judges()[0], 3)
    assert enough_pairs(labels) is None
    monkeypatch.setattr("crowdwise.crowd.pairs._MOST_PAIRS", 150)
    assert len(enough_pairs(labels)) == 10
    assert len(np.unique(enough_pairs(labels))) == 10


@given(st.lists(st.integers(0, 5), min_size=1, max_size=12))
def test_groups_are_numbered_in_the_order_of_their_first_members(group):
    found = numbered(np.array(group))
    first = [group.index(value) for value in dict.fromkeys(group)]
    assert found[first].tolist() == list(range(len(first)))
    assert all((found[i] == found[j]) == (group[i] == group[j]) for i in range(len(group)) for j in range(len(group)))


def test_groups_are_what_pairs_connect():
    matrix, _ = judges()
    labels = labels_of(np.column_stack([matrix, matrix[:, 1], matrix[:, 4], matrix[:, 1]]), 3)
    assert groups_of_pairs(suspects(labels), 9).tolist() == [0, 1, 2, 3, 4, 5, 1, 4, 1]


def test_members_who_labelled_an_example_share_one_vote():
    labels = labels_of([[0, 0, 1, 1], [1, None, 0, None], [None, 1, None, 0]])
    assert vote_parts(labels, np.array([0, 0, 1, 0])).tolist() == [1 / 3, 1 / 3, 1, 1 / 3, 1, 1, 0.5, 0.5]
    assert vote_parts(labels, None) is None
    assert vote_parts(labels, np.arange(4)) is None
    assert_allclose(vote_counts(labels, vote_parts(labels, np.array([0, 0, 1, 0])))[0], [2 / 3, 4 / 3])
    assert_array_equal(vote_counts(labels), labels.tally)


def test_the_effective_number_by_hand():
    assert effective_number(np.array([6.0, 1.0]), 0.36).round(2).tolist() == [2.14, 1.0]
    assert effective_number(np.array([6.0]), 0.0).tolist() == [6.0]
    assert effective_number(np.array([6.0]), 1.0).tolist() == [1.0]


def test_votes_that_say_nothing_and_copies_make_no_more_votes():
    labels = labels_of([[0, 0, 1, 1], [1, None, 0, None]])
    assert_allclose(n_votes(labels, np.ones(4)), [4, 2])
    assert_allclose(n_votes(labels, np.array([1.0, 0.0, 0.0, 1.0])), [2, 1])
    assert_allclose(n_votes(labels, np.zeros(4)), [1, 1])
    assert_allclose(n_votes(labels, np.array([2.0, 1.0, 1.0, 1.0])), [25 / 7, 9 / 5])
    group = np.array([0, 1, 1, 1])
    assert_allclose(n_votes(labels, np.ones(4), vote_parts(labels, group)), [2, 2])
    assert mean_effective_number(labels, np.ones(4), group, 1.0) == 1.0
    assert mean_effective_number(labels, np.ones(4), None, 0.0) == 3.0


@given(st.integers(1, 40), st.floats(0, 1), st.integers(0, 1000))
def test_tempering_keeps_the_order_of_classes_and_makes_nobody_surer(n, common, seed):
    proba = np.random.default_rng(seed).dirichlet(np.ones(4), 5)
    proba[0] = [0.0, 0.25, 0.75, 0.0]
    found = tempered(proba, np.full(5, float(n)), common)
    powers = proba ** (1 / (1 + (n - 1) * common))
    assert_allclose(found, powers / powers.sum(axis=1, keepdims=True))
    assert_array_equal(found.argsort(axis=1), proba.argsort(axis=1))
    assert (found.max(axis=1) <= proba.max(axis=1) + 1e-12).all()
    if n == 1 or common == 0:
        assert_allclose(found, proba)


# ---------------------------------------------------------------------- groups that are given


def test_groups_are_given_by_name_or_in_order():
    pd = pytest.importorskip("pandas")
    names = np.array(["ann", "bob", "cem"])
    for groups in ({"cem": "x", "ann": "x"}, pd.Series(["x", "x"], index=["cem", "ann"]), ["x", None, "x"], [1, 2, 1]):
        assert check_groups(groups, names).tolist() == [0, 1, 0]
    assert check_groups(None, names) is None
    assert check_groups({"ann": None}, names).tolist() == [0, 1, 2]


@pytest.mark.parametrize("groups", ["openai", ["x", "y"], 3])
def test_groups_that_are_none_are_refused(groups):
    with pytest.raises(LabelError, match="groups must be a mapping"):
        check_groups(groups, np.array(["ann", "bob", "cem"]))


def test_groups_of_strangers_are_refused_or_noted():
    with pytest.raises(LabelError, match=r"groups names 1 annotator \(such as .*\), and none of those who gave labels"):
        check_groups({"Ann": "x"}, np.array(["ann", "bob"]))
    with pytest.raises(LabelError, match=r"each with its group: \{'ann': 'a', ...\}"):
        check_groups({"people": ["ann", "bob"]}, np.array(["ann", "bob"]))
    with pytest.warns(CrowdWarning, match=r"such as 'gpt4o-mini' \(is 'gpt-4o-mini' meant\?\)"):
        check_groups({"gpt-4o": "x", "gpt4o-mini": "x"}, np.array(["gpt-4o", "gpt-4o-mini"]))
    with pytest.warns(CrowdWarning, match=r"groups names 1 annotator who has no labels, such as 'dan'\."):
        assert check_groups({"ann": "x", "bob": "x", "dan": "x"}, np.array(["ann", "bob"])).tolist() == [0, 0]


@pytest.mark.parametrize(("n_examples", "n_judges", "found"), [(85, 6, True), (50, 6, False), (85, 40, False)])
def test_few_shared_examples_show_a_copy_only_if_no_pair_would_agree_so_by_chance(n_examples, n_judges, found):
    matrix, _ = judges(n_examples=n_examples, n_judges=n_judges)
    labels = labels_of(np.column_stack([matrix, matrix[:, 0]]), 3)
    n_pairs = (n_judges + 1) * n_judges // 2
    assert (0.9**n_examples * n_pairs < 0.05) == found
    pairs = suspects(labels)
    assert list(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)) == ([(0, n_judges)] if found else [])
