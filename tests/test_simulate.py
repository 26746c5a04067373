import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from crowdwise import simulate_annotators
from crowdwise.exceptions import LabelError
from crowdwise.simulate import flip_score

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
TRUTH = (X[:, 0] > 0).astype(int)


def test_the_curve_of_the_paper():
    expected = [0.15, 0.19, 0.24, 0.30, 0.36, 0.45, 0.54, 0.64, 0.76, 0.88, 1.0]
    scores = np.linspace(1.0, 0.0, 11)
    assert flip_score(scores).round(2).tolist() == expected
    assert flip_score(-scores).round(2).tolist() == expected


@given(st.floats(-1, 1), st.floats(0, 20))
def test_the_curve_is_the_formula(f, clarity):
    expected = 2 * (1 - 1 / (1 + math.exp(-2.5 * clarity * abs(f))))
    assert float(flip_score(f, clarity)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("clarity", [-1.0, math.nan, math.inf])
def test_impossible_clarity_is_an_error(clarity):
    with pytest.raises(ValueError, match="clarity must be a finite"):
        flip_score([0.5], clarity)


def test_no_nan_comes_out_of_the_curve():
    assert flip_score([0.0, 1.0], 1e308).tolist() == [1.0, 0.0]
    with pytest.raises(ValueError, match="scores must be finite"):
        flip_score([0.0, np.nan])


def test_the_papers_crowd_under_one_flag():
    labels = simulate_annotators(X, TRUTH, paper=True, clarity=2.0, random_state=3)
    spelt_out = simulate_annotators(X, TRUTH, 10, experts=1, adversaries=1, clarity=2.0, random_state=3)
    assert labels == spelt_out
    for other in ({"n_annotators": 9}, {"experts": 1}, {"adversaries": 2}, {"missing": 0.5}):
        with pytest.raises(ValueError, match="paper=True is ten annotators, an"):
            simulate_annotators(X, TRUTH, paper=True, **other)


def test_labels_far_from_the_boundary_are_right_if_things_are_clear():
    scores = np.where(TRUTH == 1, 1.0, -1.0)
    labels = simulate_annotators(None, TRUTH, 5, scores=scores, clarity=100.0, random_state=0)
    assert (labels.to_matrix() == TRUTH[:, np.newaxis]).all()


def test_on_the_boundary_every_label_is_a_coin_and_majorities_are_wrong():
    n = 20_000
    truth = np.repeat([0, 1], n // 2)
    right = simulate_annotators(None, truth, 5, scores=np.zeros(n), random_state=1).to_matrix() == truth[:, np.newaxis]
    # Flipped with probability 1/2 each, and then all again wherever most were right: no majority is right.
    assert (2 * right.sum(axis=1) < 5).all()
    # Of the two kinds with the same distance from even, both end on the wrong side: P(k right) doubles for k < 2.5.
    share = [np.mean(right.sum(axis=1) == k) for k in range(3)]
    assert np.allclose(share, np.array([2, 10, 20]) / 32, atol=0.02)


def test_single_flips_come_with_half_the_score_and_whole_ones_with_all_of_it():
    n, f = 40_000, 0.6
    truth = np.repeat([0, 1], n // 2)
    labels = simulate_annotators(None, truth, 1, scores=np.full(n, f), random_state=2)
    flip = float(flip_score(f))
    right = np.mean(labels.to_matrix()[:, 0] == truth)
    assert right == pytest.approx((1 - flip / 2) * (1 - flip), abs=0.01)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_experts_are_right_adversaries_wrong_and_both_come_last(n_classes):
    truth = RNG.integers(0, n_classes, 400)
    labels = simulate_annotators(X, truth, 3, experts=2, adversaries=2, random_state=0)
    names = ["annotator 1", "annotator 2", "annotator 3", "expert 1", "expert 2", "adversary 1", "adversary 2"]
    assert labels.annotators.tolist() == names
    right = labels.to_matrix() == truth[:, np.newaxis]
    assert right[:, 3:5].all()
    assert not right[:, 5:].any()
    wrong = labels.to_matrix()[:, 5]
    assert all(((wrong == k) & (truth == j)).any() for j in range(n_classes) for k in range(n_classes) if j != k)


def test_with_more_classes_a_whole_flip_keeps_who_agrees_with_whom():
    truth = np.repeat(np.arange(3), 200)
    labels = simulate_annotators(None, truth, 3, scores=np.full(600, 0.01), random_state=0).to_matrix()
    assert set(np.unique(labels)) == {0, 1, 2}
    # Without noise in single labels everybody says the same, right or wrong.
    unanimous = simulate_annotators(None, truth, 3, scores=np.ones(600), clarity=3.0, random_state=0).to_matrix()
    assert np.mean((unanimous == unanimous[:, :1]).all(axis=1)) > 0.99


def test_labels_are_left_out_at_random():
    labels = simulate_annotators(X, TRUTH, 50, missing=0.3, random_state=0)
    assert 1 - labels.n_labels / (400 * 50) == pytest.approx(0.3, abs=0.02)
    assert labels.classes.tolist() == [0, 1]


def test_seeds_decide_everything():
    first = simulate_annotators(X, TRUTH, missing=0.2, random_state=5)
    assert simulate_annotators(X, TRUTH, missing=0.2, random_state=5) == first
    assert simulate_annotators(X, TRUTH, missing=0.2, random_state=np.random.default_rng(5)) == first
    assert simulate_annotators(X, TRUTH, missing=0.2, random_state=6) != first


def test_classes_keep_their_names_and_features_their_kind():
    names = np.where(TRUTH, "yes", "no")
    labels = simulate_annotators(X, names, random_state=0)
    assert labels.classes.tolist() == ["no", "yes"]
    numbers = simulate_annotators(X, TRUTH, random_state=0)
    assert np.array_equal(labels.values, numbers.values)
    for same in (pd.DataFrame(X), sparse.csr_matrix(X), X.tolist()):
        assert np.mean(simulate_annotators(same, pd.Series(TRUTH), random_state=0).values == numbers.values) > 0.99


def test_bad_truths_and_counts_are_errors():
    with pytest.raises(LabelError, match="every example needs its truth;"):
        simulate_annotators(X[:3], [0, None, 1])
    with pytest.raises(LabelError, match="every example needs its truth"):
        simulate_annotators(X[:3], [0.0, 1.0, np.nan])
    with pytest.raises(LabelError, match="truth must be one-dimensional"):
        simulate_annotators(X, TRUTH[:, np.newaxis])
    with pytest.raises(ValueError, match=r"at least two classes; found \[1\]"):
        simulate_annotators(X[:2], [1, 1])
    with pytest.raises(ValueError, match="scores must be one per"):
        simulate_annotators(None, [0, 1, 1], scores=[0.5])
    with pytest.raises(ValueError, match="scores must be finite"):
        simulate_annotators(None, [0, 1], scores=[0.5, np.nan])
    with pytest.raises(ValueError, match="missing must be less than 1"):
        simulate_annotators(X, TRUTH, missing=1.0)
    for counts, match in (
        ({"experts": -1}, "experts must be a whole number >= 0; got -1"),
        ({"n_annotators": 0}, "one of n_annotators, experts and adversaries must be at least 1"),
        ({"n_annotators": -2, "experts": 3}, "n_annotators must be a whole number >= 0; got -2"),
        ({"n_annotators": 2.5}, "n_annotators must be a whole number >= 0; got 2.5"),
        ({"missing": "half"}, "missing must be a finite number >= 0 and <= 1; got 'half'"),
        ({"random_state": "a"}, "random_state must be"),
    ):
        with pytest.raises(ValueError, match=match):
            simulate_annotators(X, TRUTH, **counts)


def test_truth_is_matched_with_the_ids_of_the_features():
    frame = pd.DataFrame(X, index=[f"e{i}" for i in range(len(X))])
    truth = pd.Series(TRUTH, index=frame.index)
    expected = simulate_annotators(X, TRUTH, random_state=0)
    for matched in (truth, truth[::-1], dict(truth[::-1])):
        assert simulate_annotators(frame, matched, random_state=0) == expected
