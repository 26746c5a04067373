import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from crowdwise.weights.folds import content_folds

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix, np.asfortranarray, lambda X: X.astype(np.float32)])
def test_equal_rows_are_in_one_fold_and_others_are_spread_evenly(make):
    X = np.repeat(RNG.integers(0, 50, (100, 12)), 3, axis=0).astype(float)
    fold = content_folds(make(X), 10)
    assert (fold.reshape(100, 3) == fold.reshape(100, 3)[:, :1]).all()
    assert np.bincount(fold).tolist() == [30] * 10


@given(st.integers(2, 8), st.integers(0, 3), st.randoms(use_true_random=False))
def test_order_and_repetition_change_nothing(n_folds, seed, random):
    X = np.random.default_rng(seed).integers(0, 3, (40, 10)).astype(float)
    order = random.sample(range(40), 40)
    fold = content_folds(X, n_folds, seed)
    assert np.array_equal(content_folds(X[order], n_folds, seed), fold[order])
    assert np.array_equal(content_folds(np.vstack([X, X[order]]), n_folds, seed)[:40], fold)
    assert fold.max() < n_folds


def test_rows_that_differ_only_in_late_columns_are_told_apart_in_any_order():
    X = np.zeros((6000, 9))
    X[:, 0] = np.arange(6000)
    X[3, 0], X[3, 8] = X[0, 0], 1.0  # the first eight columns of these two are the same
    fold = content_folds(X, 5)
    for shift in range(4):
        assert np.array_equal(content_folds(np.roll(X, shift, axis=0), 5), np.roll(fold, shift))


def test_signed_and_stored_zeros_are_zeros():
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [2.0, 3.0]])
    assert content_folds(X, 3)[0] == content_folds(X, 3)[1]
    stored = sparse.csr_matrix(([0.0, 1.0, 1.0, 2.0], [0, 1, 1, 0], [0, 2, 3, 4]), shape=(3, 2))
    assert content_folds(stored, 3)[0] == content_folds(stored, 3)[1]


def test_another_seed_gives_other_folds():
    X = RNG.normal(size=(200, 3))
    assert not np.array_equal(content_folds(X, 5), content_folds(X, 5, seed=1))


def test_many_rows_are_spread_nearly_evenly_and_equal_ones_stay_together():
    X = np.repeat(RNG.normal(size=(15_000, 3)), 2, axis=0)
    fold = content_folds(X, 10)
    assert np.array_equal(fold[::2], fold[1::2])
    assert np.abs(np.bincount(fold) / len(X) - 0.1).max() < 0.01


def test_fewer_different_rows_than_folds_give_fewer_folds():
    assert sorted(set(content_folds(np.array([[1.0], [1.0], [2.0]]), 5).tolist())) == [0, 1]
    assert content_folds(np.zeros((0, 3)), 5).shape == (0,)
    assert content_folds(np.zeros((4, 3)), 5).tolist() == [0, 0, 0, 0]


@given(st.integers(0, 10**6), st.sampled_from([1, 3, 20]))
def test_nothing_about_the_way_features_are_written_changes_folds(seed, n_features):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, n_features))
    fold = content_folds(X, 5)
    order = rng.permutation(n_features)
    assert np.array_equal(content_folds(X[:, order], 5), fold)
    assert np.array_equal(content_folds(sparse.csr_array(X), 5), fold)
    assert np.array_equal(content_folds(X * rng.choice([1e-160, 1e-3, 7.0, 1e150], n_features), 5), fold)
    assert np.array_equal(content_folds(X + 2.0 ** rng.integers(0, 20, n_features), 5), fold)
    assert np.array_equal(content_folds(X + 1e-13 * rng.normal(size=X.shape), 5), fold)


def test_sparse_features_with_many_zeros_have_the_folds_of_dense_ones():
    rng = np.random.default_rng(0)
    X = sparse.csr_array(np.where(rng.random((300, 40)) < 0.1, rng.random((300, 40)) - 0.5, 0.0))
    assert np.array_equal(content_folds(X, 7), content_folds(X.toarray(), 7))
    assert np.bincount(content_folds(X, 7)).max() < 60


def test_rows_of_one_hot_features_are_spread_although_no_feature_differs_from_another():
    fold = content_folds(np.repeat(np.eye(10), 4, axis=0), 5)
    assert np.bincount(fold).tolist() == [8] * 5


@given(st.integers(0, 10**6), st.sampled_from([1, 3, 12]))
def test_rows_of_whole_numbers_that_differ_in_signs_are_told_apart(seed, n_features):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (60, n_features)) * rng.choice([0.5, 1.0, 8.0])
    fold, order = content_folds(X, 5), rng.permutation(60)
    assert np.array_equal(content_folds(X[order], 5), fold[order])
    assert np.array_equal(content_folds(sparse.csr_array(X[order]), 5), fold[order])
