import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.linear_model import Ridge

from crowdwise.ridge.solver import Factor, Spectrum, solve_iteratively
from crowdwise.ridge.statistics import row_sums
from crowdwise.rows.features import Rows, RowSpace


def problem(seed=0, n_rows=30, n_features=4, n_targets=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) + 5
    return X, rng.normal(size=(n_rows, n_targets)), rng.uniform(0.1, 2, n_rows)


def expected(X, y, weight, l2, intercept):
    model = Ridge(alpha=l2, fit_intercept=intercept, solver="cholesky").fit(X, y, sample_weight=weight)
    return model.coef_.T, model.intercept_ if intercept else np.zeros(y.shape[1])


def to_features(theta, rows):
    coef = theta[: rows.X.shape[1]]
    return coef, (theta[-1] if rows.intercept else 0.0) - rows.shift @ coef


@pytest.mark.parametrize("intercept", [True, False])
def test_one_and_all_l2_equal_scikit_learn(intercept):
    X, y, weight = problem()
    rows = Rows.of(X, intercept=intercept)
    gram, cross = row_sums(rows, weight, y.__getitem__, 2)
    l2s = np.array([1e-3, 1.0, 50.0])
    spectrum = Spectrum.of(gram, intercept=intercept).solve(cross, l2s)
    for s, l2 in enumerate(l2s):
        coef, offset = expected(X, y, weight, l2, intercept)
        for theta in (Factor.of(gram[0], l2, intercept=intercept).solve(cross[0]), spectrum[0, :, s]):
            got_coef, got_offset = to_features(theta, rows)
            assert_allclose(got_coef, coef, rtol=1e-8)
            assert_allclose(got_offset, offset, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("intercept", [True, False])
def test_the_iterative_solver_equals_scikit_learn_from_any_start(intercept):
    X, y, weight = problem()
    rows = Rows.of(sparse.csr_array(X), intercept=intercept)
    coef, offset = expected(X, y, weight, 0.5, intercept)
    for start in (None, np.random.default_rng(1).normal(size=(rows.n_columns, 2))):
        theta = solve_iteratively(rows, weight, y, 0.5, start)
        assert_allclose(theta[:4], coef, rtol=1e-6)
        if intercept:
            assert_allclose(theta[4], offset, rtol=1e-6)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_coordinates_of_the_row_space_lose_nothing(container):
    X, y, weight = problem(n_rows=8, n_features=20)
    space = RowSpace.of(Rows.of(container(X), intercept=True))
    assert space.rows.n_columns <= 9
    gram, cross = row_sums(space.rows, weight, y.__getitem__, 2)
    theta = space.to_features(Factor.of(gram[0], 0.5, intercept=True).solve(cross[0]))
    coef, offset = expected(X, y, weight, 0.5, True)
    got_coef, got_offset = to_features(theta, space.original)
    assert_allclose(got_coef, coef, rtol=1e-7, atol=1e-10)
    assert_allclose(got_offset, offset, rtol=1e-7)


def test_without_l2_the_solution_of_smallest_norm_is_taken():
    X, y, weight = problem(n_features=3)
    X = np.column_stack([X, X[:, 0]])  # collinear
    rows = Rows.of(X, intercept=False)
    gram, cross = row_sums(rows, weight, y.__getitem__, 2)
    factor = Factor.of(gram[0], 0.0, intercept=False)
    theta = factor.solve(cross[0])
    assert factor.rank == Spectrum.of(gram, intercept=False).rank(0.0) == 3
    root = np.sqrt(weight)[:, None]
    assert_allclose(theta, np.linalg.lstsq(root * X, root * y, rcond=None)[0], rtol=1e-6)


@pytest.mark.parametrize("l2", [0.0, 1e-300, 1e-40])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_an_l2_below_the_rounding_of_the_sums_is_as_none(l2, container):
    X, y, weight = problem(n_features=3)
    X = np.column_stack([X, X[:, 0], X[:, 1] - X[:, 2]])
    rows = Rows.of(container(X), intercept=True)
    gram, cross = row_sums(rows, weight, y.__getitem__, 2)
    factor = Factor.of(gram[0], l2, intercept=True)
    centred, root = X - weight @ X / weight.sum(), np.sqrt(weight)[:, None]
    expected = np.linalg.lstsq(root * centred, root * (y - weight @ y / weight.sum()), rcond=1e-10)[0]
    assert factor.rank == 3
    assert_allclose(factor.solve(cross[0])[:-1], expected, rtol=1e-6)
    assert_allclose(Spectrum.of(gram, intercept=True).solve(cross, np.array([l2]))[0, :-1, 0], expected, rtol=1e-6)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_rows_that_are_all_alike_determine_nothing(container):
    X = np.repeat(np.random.default_rng(0).normal(size=(1, 4)) * 1e3, 9, axis=0)
    rows = Rows.of(container(X), intercept=True)
    gram, cross = row_sums(rows, np.linspace(0.1, 1, 9), np.arange(9.0)[:, None].__getitem__, 1)
    factor = Factor.of(gram[0], 0.0, intercept=True)
    assert factor.rank == 0
    assert (factor.solve(cross[0])[:-1] == 0).all()


@pytest.mark.parametrize("n_features", [3, 60])
def test_sparse_features_far_from_zero_equal_dense_ones(n_features):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, n_features)) * (rng.random((40, n_features)) < 0.5)
    X[:, :2] = 1e8 + rng.normal(size=(40, 2))  # in every row; the others are sparse
    y, weight = rng.normal(size=(40, 1)), rng.uniform(0.1, 2, 40)
    thin, dense = Rows.of(sparse.csr_array(X), intercept=True), Rows.of(X, intercept=True)
    assert thin.far
    assert dense.far
    assert thin.X.nnz == np.count_nonzero(X)
    systems = [row_sums(rows, weight, y.__getitem__, 1) for rows in (thin, dense)]
    thetas = [Factor.of(gram[0], 0.3, intercept=True).solve(cross[0]) for gram, cross in systems]
    assert_allclose(thetas[0][:n_features], thetas[1][:n_features], rtol=1e-8, atol=1e-12)
    assert_allclose(thin.scores(thetas[0]), dense.scores(thetas[1]), rtol=1e-8, atol=1e-12)
    assert_allclose(solve_iteratively(thin, weight, y, 0.3, None), thetas[0], rtol=1e-6, atol=1e-8)
    if n_features > 40:
        space = RowSpace.of(thin)
        gram, cross = row_sums(space.rows, weight, y.__getitem__, 1)
        lifted = space.to_features(Factor.of(gram[0], 0.3, intercept=True).solve(cross[0]))
        assert_allclose(lifted[:n_features], thetas[0][:n_features], rtol=1e-7, atol=1e-10)
