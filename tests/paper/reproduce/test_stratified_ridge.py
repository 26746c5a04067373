import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold

from crowdwise.paper.reproduce.tuning import stratified_folds, tuned_ridge
from crowdwise.ridge.classifier import PAPER_L2S


@given(st.lists(st.sampled_from([-1, 0, 1]), min_size=1, max_size=60), st.integers(2, 10))
def test_every_stratum_is_cut_as_scikit_learn_cuts_rows_that_it_does_not_shuffle(strata, n_folds):
    strata = np.array(strata)
    fold = stratified_folds(strata, n_folds)
    for stratum in (-1, 0, 1):
        members = np.flatnonzero(strata == stratum)
        if len(members) >= n_folds:
            for k, (_, held_out) in enumerate(KFold(n_folds).split(members)):
                np.testing.assert_array_equal(np.flatnonzero((fold == k) & (strata == stratum)), members[held_out])
        else:  # one each in the first folds
            np.testing.assert_array_equal(fold[members], np.arange(len(members)))


def plain_ridge(X, target):
    """One scikit-learn ridge per fold and l2."""
    fold = stratified_folds(np.sign(target))
    error = np.zeros(len(PAPER_L2S))
    for k in range(10):
        train, held_out = fold != k, fold == k
        for i, l2 in enumerate(PAPER_L2S):
            model = Ridge(alpha=l2, solver="cholesky").fit(X[train], target[train])
            error[i] += ((model.predict(X[held_out]) - target[held_out]) ** 2).sum()
    return Ridge(alpha=PAPER_L2S[error.argmin()], solver="cholesky").fit(X, target)


@pytest.mark.parametrize("n_features", [4, 90], ids=["narrow", "wide"])
def test_the_model_is_that_of_a_plain_loop(n_features):
    rng = np.random.default_rng(n_features)
    X = rng.normal(size=(60, n_features)) * (rng.random((60, n_features)) < 0.4) + 0.5
    target = np.sign((X[:, :4].sum(axis=1) + rng.normal(size=60)).round() - 2)
    assert 0 in target  # a tie, a stratum of its own
    expected = plain_ridge(X, target)
    for features in (X, sparse.csr_array(X)):
        model = tuned_ridge(features, target)
        assert model.l2 == expected.alpha
        np.testing.assert_allclose(model.coef, expected.coef_, rtol=1e-8, atol=1e-12)
        assert model.intercept == pytest.approx(expected.intercept_, rel=1e-8)
        np.testing.assert_allclose(model.scores(features), expected.predict(X), rtol=1e-8, atol=1e-10)
