import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from crowdwise.weights.steepness import counts_of, easiest_examples, ranking


def naive_ranking(scores, positive):
    """Pairs of a positive and a negative example in the right order; ties count half."""
    pairs = [
        (s, t)
        for s, p in zip(scores, positive, strict=True)
        if p
        for t, q in zip(scores, positive, strict=True)
        if not q
    ]
    return sum((s > t) + 0.5 * (s == t) for s, t in pairs) / len(pairs)


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 1)), min_size=2, max_size=25))
def test_two_classes_equal_the_count_of_pairs(examples):
    scores, codes = (np.array(column, dtype=float) for column in zip(*examples, strict=True))
    assume(0 < codes.sum() < len(codes))
    area = ranking(scores[:, np.newaxis], codes.astype(int), 2)
    assert area == pytest.approx(naive_ranking(scores, codes == 1))
    assert area == pytest.approx(roc_auc_score(codes, scores))


def test_more_classes_are_the_mean_over_those_that_occur():
    rng = np.random.default_rng(0)
    scores, codes = rng.normal(size=(60, 4)), rng.integers(0, 3, 60)  # class 3 does not occur
    expected = np.mean([naive_ranking(scores[:, k], codes == k) for k in range(3)])
    assert ranking(scores, codes, 4) == pytest.approx(expected)


@pytest.mark.parametrize("n_columns", [1, 3])
def test_weights_count_as_repeated_examples_do(rng, n_columns):
    scores, codes = rng.integers(0, 9, (40, n_columns)).astype(float), rng.integers(0, max(n_columns, 2), 40)
    differs = rng.permutation(40) // 2 / 20
    weight = np.where(np.abs(differs - 0.5) < 0.4, 1.0, rng.integers(8, 10, 40))
    tally = np.eye(3, dtype=int)[codes]
    rows = np.repeat(np.arange(40), weight.astype(int))
    assert ranking(scores, codes, 3, weight) == pytest.approx(ranking(scores[rows], codes[rows], 3), rel=1e-12)
    assert ranking(scores, codes, 3, weight) != pytest.approx(ranking(scores, codes, 3))
    of_repeated = np.unique(rows[easiest_examples(differs[rows], tally[rows])])
    assert easiest_examples(differs, tally, weight).tolist() == of_repeated.tolist()
    assert easiest_examples(differs, tally, weight / 7).tolist() == of_repeated.tolist()
    assert easiest_examples(differs, tally).tolist() != of_repeated.tolist()


def test_whole_numbers_are_counts_and_of_other_weights_only_ratios_matter():
    assert counts_of(np.array([3.0, 2.0])).tolist() == [3.0, 2.0]
    assert counts_of(np.array([0.75, 0.25])).tolist() == [1.5, 0.5]


def test_one_class_cannot_be_ranked():
    assert np.isnan(ranking(np.zeros((3, 1)), np.ones(3, dtype=int), 2))


def test_the_easiest_quarter_comes_in_whole_levels():
    differs = np.array([0.0, 0.5, 0.5, 0.5, 1.0, 1.0, 1.0, 1.0])
    tally = np.tile([2, 1], (8, 1))
    assert easiest_examples(differs, tally).tolist() == [0, 1, 2, 3]


def test_examples_without_a_clear_majority_are_left_out():
    tally = np.array([[1, 1], [2, 1], [0, 0], [0, 3], [1, 2]])
    assert easiest_examples(np.zeros(5), tally).tolist() == [1, 3, 4]
    assert easiest_examples(np.zeros(1), np.array([[1, 1]])).tolist() == []


def test_of_very_many_examples_the_same_ones_are_drawn_every_time():
    n = 60_000
    tally = np.tile([1, 0], (n, 1))
    chosen = easiest_examples(np.zeros(n), tally)
    assert len(chosen) == len(set(chosen.tolist())) == 20_000
    assert (np.diff(chosen) > 0).all()
    assert np.array_equal(chosen, easiest_examples(np.zeros(n), tally))
