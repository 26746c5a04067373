import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from crowdwise.probabilities.log_space import log_softmax, shares_of_sum
from crowdwise.softmax.models import SoftmaxModels, normalisers
from crowdwise.softmax.rows import SoftmaxRows


def fit_softmax(X, posterior, weight, *, l2, **options):
    """Coefficients of one model of all rows."""
    rows = SoftmaxRows(X, None, np.zeros(X.shape[0], dtype=int), **options)
    return SoftmaxModels(rows, np.array([-1]), l2).fit(posterior, weight, max_steps=500)[:, 0]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_features", [3, 40])
def test_another_penalty_on_the_same_models_gives_what_new_models_give(n_classes, n_features, rng):
    X, posterior = rng.normal(size=(60, n_features)), rng.dirichlet(np.ones(n_classes), 60)
    weight, fold = rng.uniform(0.1, 2, 60), np.arange(60) % 3
    models = SoftmaxModels(SoftmaxRows(X, None, fold, True), np.arange(3), 0.01)
    models.fit(posterior, weight, max_steps=500)
    models.penalise(5.0)
    again = models.fit(posterior, weight, max_steps=500)
    new = SoftmaxModels(SoftmaxRows(X, None, fold, True), np.arange(3), 5.0).fit(posterior, weight, max_steps=500)
    assert_allclose(again, new, rtol=1e-4, atol=1e-5)


def log_probabilities(X, theta):
    return log_softmax(X @ theta[:-1] + theta[-1])


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_soft_classes_equal_weighted_copies_in_scikit_learn(n_classes, fit_intercept, rng):
    X = rng.normal(size=(60, 3)) + 1
    posterior, weight = rng.dirichlet(np.ones(n_classes), 60), rng.uniform(0.2, 2, 60)
    theta = fit_softmax(X, posterior, weight, l2=0.7, fit_intercept=fit_intercept)
    copies = LogisticRegression(C=1 / 0.7, tol=1e-10, max_iter=5000, fit_intercept=fit_intercept).fit(
        np.tile(X, (n_classes, 1)),
        np.repeat(np.arange(n_classes), 60),
        sample_weight=(posterior * weight[:, None]).T.ravel(),
    )
    assert_allclose(np.exp(log_probabilities(X, theta)), copies.predict_proba(X), atol=1e-5)


def test_a_prior_on_the_classes_is_examples_in_the_middle(rng):
    X = rng.normal(size=(40, 2))
    posterior, weight = rng.dirichlet(np.ones(3), 40), rng.uniform(0.2, 2, 40)
    theta = fit_softmax(X, posterior, weight, l2=1.0, class_prior=6.0)
    middle = np.average(X, axis=0, weights=weight)
    added = fit_softmax(
        np.vstack([X, middle]), np.vstack([posterior, np.full(3, 1 / 3)]), np.append(weight, 6.0), l2=1.0
    )
    assert_allclose(log_probabilities(X, theta), log_probabilities(X, added), atol=1e-4)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_models_fitted_at_once_equal_models_fitted_one_by_one(n_classes, make, rng):
    X = rng.normal(size=(90, 4)).astype(np.float32).astype(float)
    posterior, weight = rng.dirichlet(np.ones(n_classes), 90), rng.uniform(0.2, 2, 90)
    fold = np.arange(90) % 3
    rows = SoftmaxRows(make(X), None, fold, class_prior=1.5)
    left_out = np.array([0, 1, 2, -1])
    models = SoftmaxModels(rows, left_out, 0.3)
    theta = models.fit(posterior, weight, max_steps=500)
    for j, k in enumerate(left_out):
        kept = fold != k
        alone = fit_softmax(X[kept], posterior[kept], weight[kept], l2=0.3, class_prior=1.5)
        assert_allclose(theta[:, j], alone, atol=1e-6)
    for i in range(90):
        of_row = theta[:, fold[i]]
        assert_allclose(models.held_out_scores[i], X[i] @ of_row[:-1] + of_row[-1], rtol=1e-10, atol=1e-12)


def test_many_columns_are_fitted_without_a_matrix_of_their_size(rng, monkeypatch):
    X = rng.normal(size=(60, 12)) * np.geomspace(0.01, 100, 12)
    posterior, weight = rng.dirichlet(np.ones(3), 60), rng.uniform(0.2, 2, 60)
    exact = fit_softmax(X, posterior, weight, l2=0.1)
    monkeypatch.setattr("crowdwise.softmax.curvature._EXACT_COLUMNS", 5)
    assert_allclose(
        log_probabilities(X, fit_softmax(X, posterior, weight, l2=0.1)), log_probabilities(X, exact), atol=1e-4
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_model_of_all_rows_after_those_of_folds_is_a_model_of_its_own(n_classes, rng):
    X, posterior = rng.normal(size=(90, 4)), rng.dirichlet(np.ones(n_classes), 90)
    weight, fold = rng.uniform(0.2, 2, 90), np.arange(90) % 3
    models = SoftmaxModels(SoftmaxRows(X, None, fold, class_prior=1.5), np.arange(3), 0.3)
    models.fit(posterior, weight, max_steps=3)
    last = models.of_all_rows().fit(posterior, weight, max_steps=500)[:, 0]
    assert_allclose(last, fit_softmax(X, posterior, weight, l2=0.3, class_prior=1.5), atol=1e-6)


def test_scores_before_a_step_are_those_of_the_coefficients(rng):
    X, fold, theta = rng.normal(size=(50, 3)), rng.integers(0, 4, 50), rng.normal(size=(4, 4, 1))
    models = SoftmaxModels(SoftmaxRows(X, None, fold), np.arange(4), 1.0, theta)
    by_hand = [X[i] @ theta[:-1, fold[i], 0] + theta[-1, fold[i], 0] for i in range(50)]
    assert_allclose(models.scores_as_they_are(np.ones(50))[:, 0], by_hand)


FAR = np.array([0.0, 1.5, -40.0, 690.0, -690.0, 710.0, -750.0, 1e5, -1e5])


@pytest.mark.parametrize("scores", [FAR[:5], FAR], ids=["near", "far"])
def test_logarithms_of_two_classes_equal_those_of_logaddexp(scores):
    second, first = -np.logaddexp(0, -scores), -np.logaddexp(0, scores)
    assert_allclose(log_softmax(scores[:, np.newaxis]), np.column_stack([first, second]), rtol=1e-14)
    total, proba = normalisers(scores[np.newaxis, np.newaxis])
    assert_allclose(total[0], np.logaddexp(0, scores), rtol=1e-14, atol=1e-15)
    assert_allclose(proba[0, 0], np.exp(second), rtol=1e-13, atol=1e-300)
    shares = np.empty((2, len(scores)))
    assert_allclose(shares_of_sum(np.stack([scores, np.full_like(scores, 3.0)]), shares), np.logaddexp(scores, 3.0))
    assert_allclose(shares, np.exp([scores, np.full_like(scores, 3.0)] - np.logaddexp(scores, 3.0)), atol=1e-300)


def test_sums_of_folds_by_hand(rng):
    X, values, fold = rng.normal(size=(50, 3)), rng.normal(size=(50, 2)), rng.integers(0, 4, 50)
    sums = SoftmaxRows(X, np.ones(3), fold).fold_sums(values)
    for k in range(4):
        of_fold = np.column_stack([X - 1, np.ones(50)])[fold == k].T @ values[fold == k]
        assert_allclose(sums[:, k], of_fold, atol=1e-12)
