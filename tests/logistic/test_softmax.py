import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from crowdwise.logistic.fit import LogisticFeatures
from crowdwise.logistic.softmax import SoftmaxModels, SoftmaxRows, classes_of, normalisers, outputs_of
from crowdwise.probabilities import log_softmax, shares_of_sum
from crowdwise.rows.chunks import Chunk, MemoryChunks
from crowdwise.rows.features import Rows

EXACTLY = {"max_steps": 1000, "tol": 1e-9}


def chunks_of(X, weight, fold=None, cuts=(), **kept):
    """Rows between cuts, with their folds and whatever else a chunk keeps."""
    kept = kept | ({} if fold is None else {"fold": fold})
    parts = []
    for a, b in zip([0, *cuts], [*cuts, X.shape[0]], strict=True):
        memo = {name: (None, values[a:b]) for name, values in kept.items()}
        parts.append(Chunk(None, weight[a:b], X[a:b], None, memo))
    return MemoryChunks(parts)


def kept_targets(chunk):
    return chunk.memo["posterior"][1], chunk.weight


def models_of(X, posterior, weight, l2, *, fold=None, cuts=(), theta=None, **options):
    """Models that leave a fold out each, or one of all rows."""
    rows = SoftmaxRows(X.shape[1], n_folds=0 if fold is None else int(fold.max()) + 1, **options)
    chunks = chunks_of(X, weight, fold, cuts, posterior=posterior)
    return SoftmaxModels(chunks, rows, rows.read(X), l2, theta)


def fit_softmax(X, posterior, weight, *, l2, **options):
    """Coefficients of one model of all rows."""
    return models_of(X, posterior, weight, l2, **options).fit(kept_targets, weight, **EXACTLY)[:, 0]


def with_added(X, posterior, weight):
    """The rows, and the example evenly of all classes that models add at their mean."""
    n_classes = posterior.shape[1]
    middle = np.average(X, axis=0, weights=weight)
    return np.vstack([X, middle]), np.vstack([posterior, np.full(n_classes, 1 / n_classes)]), np.append(weight, 1.0)


def log_probabilities(X, theta):
    return log_softmax(X @ theta[:-1] + theta[-1])


def weighted_copies(X, posterior, weight, l2, *, fit_intercept=True):
    """Scikit-learn's model of every row once as each class, weighted by its probability."""
    n_rows, n_classes = posterior.shape
    model = LogisticRegression(C=1 / l2, tol=1e-11, max_iter=10_000, fit_intercept=fit_intercept, solver="newton-cg")
    copies = np.tile(X, (n_classes, 1)), np.repeat(np.arange(n_classes), n_rows)
    return model.fit(*copies, sample_weight=(posterior * weight[:, None]).T.ravel())


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("cuts", [(), (7, 8, 40)], ids=["one chunk", "four chunks"])
def test_soft_classes_equal_weighted_copies_in_scikit_learn(n_classes, fit_intercept, cuts, rng):
    X = rng.normal(size=(60, 3)) + 1
    posterior, weight = rng.dirichlet(np.ones(n_classes), 60), rng.uniform(0.2, 2, 60)
    theta = fit_softmax(X, posterior, weight, l2=0.7, fit_intercept=fit_intercept, cuts=cuts)
    copies = weighted_copies(*with_added(X, posterior, weight), 0.7, fit_intercept=fit_intercept)
    assert_allclose(np.exp(log_probabilities(X, theta)), copies.predict_proba(X), atol=1e-7)
    assert fit_intercept or (theta[-1] == 0).all()


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_several_chunks_are_one_chunk(n_classes, make, rng):
    X = rng.normal(size=(90, 4)).astype(np.float32).astype(float)
    posterior, weight, fold = rng.dirichlet(np.ones(n_classes), 90), rng.uniform(0.2, 2, 90), rng.integers(0, 3, 90)
    whole = models_of(make(X), posterior, weight, 0.3, fold=fold)
    parts = models_of(make(X), posterior, weight, 0.3, fold=fold, cuts=[1, 2, 50])
    theta = whole.fit(kept_targets, weight, **EXACTLY)
    assert_allclose(parts.fit(kept_targets, weight, **EXACTLY), theta, rtol=1e-7, atol=1e-8)
    held_out = parts.chunks.gather(lambda chunk: parts.rows.held_out_scores(chunk, theta))
    for i in range(90):
        of_row = theta[:, fold[i]]
        scores = X[i] @ of_row[:-1] + of_row[-1]
        assert_allclose(held_out[i], [0, *scores] if n_classes == 2 else scores, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_threads_change_no_bit(n_classes, rng, monkeypatch, set_constants):
    X, posterior = rng.normal(size=(300, 5)), rng.dirichlet(np.ones(n_classes), 300)
    weight, fold = rng.uniform(0.1, 2, 300), rng.integers(0, 3, 300)
    cuts = range(30, 300, 30)
    one = models_of(X, posterior, weight, 0.5, fold=fold, cuts=cuts).fit(kept_targets, weight, **EXACTLY)
    set_constants("crowdwise._threads", _PARALLEL_FROM=0)
    monkeypatch.setattr("crowdwise._threads.available_cores", lambda: 3)
    three = models_of(X, posterior, weight, 0.5, fold=fold, cuts=cuts).fit(kept_targets, weight, **EXACTLY)
    assert_array_equal(three, one)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_features", [3, 40])
def test_another_penalty_on_the_same_models_gives_what_new_models_give(n_classes, n_features, rng):
    X, posterior = rng.normal(size=(60, n_features)), rng.dirichlet(np.ones(n_classes), 60)
    weight, fold = rng.uniform(0.1, 2, 60), np.arange(60) % 3
    models = models_of(X, posterior, weight, 0.01, fold=fold)
    models.fit(kept_targets, weight, **EXACTLY)
    models.set_l2(5.0)
    again = models.step(**EXACTLY)
    new = models_of(X, posterior, weight, 5.0, fold=fold).fit(kept_targets, weight, **EXACTLY)
    assert_allclose(again, new, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, lambda X: X.astype(np.float32)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_models_fitted_at_once_equal_models_fitted_one_by_one(n_classes, make, rng):
    X = rng.normal(size=(90, 4)).astype(np.float32).astype(float)
    posterior, weight = rng.dirichlet(np.ones(n_classes), 90), rng.uniform(0.2, 2, 90)
    fold = np.arange(90) % 3
    theta = models_of(make(X), posterior, weight, 0.3, fold=fold).fit(kept_targets, weight, **EXACTLY)
    for k in range(3):
        kept = fold != k
        alone = fit_softmax(X[kept], posterior[kept], weight[kept], l2=0.3)
        assert_allclose(theta[:, k], alone, atol=1e-6)


def test_a_model_all_of_whose_rows_weigh_nothing_says_nothing(rng):
    X, posterior, fold = rng.normal(size=(40, 2)), rng.dirichlet(np.ones(2), 40), np.arange(40) % 2
    weight = (fold == 0).astype(float)
    theta = models_of(X, posterior, weight, 0.3, fold=fold).fit(kept_targets, weight, **EXACTLY)
    assert_array_equal(theta[:, 0], np.zeros((3, 1)))  # all that it may look at is in the other fold
    assert np.abs(theta[:, 1]).max() > 0


def test_rows_of_one_class_have_finite_intercepts(rng):
    X, posterior = rng.normal(size=(40, 2)), np.tile([1.0, 0.0, 0.0], (40, 1))
    theta = fit_softmax(X, posterior, np.ones(40), l2=1.0)
    proba = np.exp(log_probabilities(X.mean(axis=0, keepdims=True), theta))[0]
    assert_allclose(proba, [40 + 1 / 3, 1 / 3, 1 / 3] / np.float64(41), atol=1e-6)  # one example more, of all classes


def test_many_columns_are_fitted_without_a_matrix_of_their_size(rng, set_constants):
    X = rng.normal(size=(60, 12)) * np.geomspace(0.01, 100, 12)
    posterior, weight = rng.dirichlet(np.ones(3), 60), rng.uniform(0.2, 2, 60)
    exact = fit_softmax(X, posterior, weight, l2=0.1)
    set_constants("crowdwise.logistic.descent", _EXACT_COLUMNS=5)
    assert_allclose(
        log_probabilities(X, fit_softmax(X, posterior, weight, l2=0.1)), log_probabilities(X, exact), atol=1e-4
    )


def test_sums_of_folds_by_hand(rng):
    X, fold, posterior = rng.normal(size=(50, 3)), rng.integers(0, 4, 50), rng.dirichlet(np.ones(3), 50)
    weight = rng.uniform(0, 2, 50)
    rows = SoftmaxRows(3, unit=2.0, shift=np.ones(3), n_folds=4)
    chunks = chunks_of(X, weight, fold, [20], posterior=posterior)
    sums = chunks.total(lambda chunk: rows.fold_sums(chunk, *kept_targets(chunk)))
    values = np.column_stack([weight, posterior * weight[:, np.newaxis]])
    for k in range(4):
        read = np.column_stack([X / 2 - 1, np.ones(50)])[fold == k]
        assert_allclose(sums[:, k], values[fold == k].T @ read, atol=1e-12)


def test_blocks_of_rows_change_next_to_nothing(rng, set_constants):
    X, posterior, weight = rng.normal(size=(300, 8)), rng.dirichlet(np.ones(3), 300), rng.uniform(0.2, 2, 300)
    whole = fit_softmax(X, posterior, weight, l2=0.1)
    set_constants("crowdwise.logistic.softmax", _BLOCK_BYTES=2**10)
    assert_allclose(fit_softmax(X, posterior, weight, l2=0.1), whole, rtol=1e-7, atol=1e-8)


def test_one_output_is_the_second_of_two_classes(rng):
    scores = rng.normal(size=(5, 1))
    assert_array_equal(classes_of(scores), np.column_stack([np.zeros(5), scores]))
    assert_array_equal(outputs_of(classes_of(scores)), scores)
    three = rng.normal(size=(5, 3))
    assert classes_of(three) is three
    assert_array_equal(outputs_of(three), three)


# ---------------------------------------------------------------------- units


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("power", [-1000, -540, -20, 0, 20, 520, 1000, 1021])
def test_features_of_any_size_are_read_around_one_and_their_coefficients_come_back(power, centred, rng):
    X = np.ldexp(rng.uniform(-1, 1, (40, 3)), power)
    for given in (X, sparse.csr_array(X)):
        features = LogisticFeatures.of(given, np.ones(40), centred=centred)
        read = SoftmaxRows(3, shift=features.shift).read(features.X)
        assert 1e-4 < np.abs(read).max() < 1e7
        assert 0 < features.variance < 1e14
        theta = rng.normal(size=(4, 1))
        coef, intercept, shift = features.undo(theta)
        away = given if shift is None else given - shift
        assert_allclose(away @ coef + intercept, read @ theta[:-1] + theta[-1], rtol=1e-9, atol=1e-9)


def test_features_below_the_smallest_unit_are_next_to_nothing_and_their_coefficients_finite(rng):
    X = np.ldexp(rng.uniform(-1, 1, (40, 3)), -1070)  # with the few digits that are left there
    for given in (X, sparse.csr_array(X)):
        features = LogisticFeatures.of(given, np.ones(40), centred=True)
        coef, intercept, _ = features.undo(rng.normal(size=(4, 1)))
        assert np.isfinite(coef).all()
        assert np.isfinite(given @ coef + intercept).all()


def test_undoing_by_hand():
    theta = np.array([[2.0], [4.0], [1.0]])

    def undo(*shift):
        X = shift + np.array([[1.0, -1.0], [-1.0, 1.0]])  # one away from it
        return LogisticFeatures(4.0, Rows(X, np.array(shift), True), None, 1.0).undo(theta)

    coef, intercept, shift = undo(0.5, 0.0)
    assert_array_equal(coef, [[0.5], [1.0]])
    assert_array_equal(intercept, [1.0 - 2.0 * 0.5])  # (x / 4 - 0.5) * 2 + ... = x * 0.5 - 1 + ...
    assert shift is None
    assert undo(1e9, 0.0)[2].tolist() == [4e9, 0.0]


# ---------------------------------------------------------------------- logarithms


FAR = np.array([0.0, 1.5, -40.0, 690.0, -690.0, 710.0, -750.0, 1e5, -1e5])


@pytest.mark.parametrize("scores", [FAR[:5], FAR], ids=["near", "far"])
def test_logarithms_of_two_classes_equal_those_of_logaddexp(scores):
    second, first = -np.logaddexp(0, -scores), -np.logaddexp(0, scores)
    assert_allclose(log_softmax(scores[:, np.newaxis]), np.column_stack([first, second]), rtol=1e-14)
    total, proba = normalisers(scores[np.newaxis, np.newaxis])
    assert_allclose(total[0], np.logaddexp(0, scores), rtol=1e-14, atol=1e-15)
    assert_allclose(proba[0, 0], np.exp(second), rtol=1e-13, atol=1e-300)
    shares = np.stack([scores, np.full_like(scores, 3.0)])
    assert_allclose(shares_of_sum(shares), np.logaddexp(scores, 3.0))
    assert_allclose(shares, np.exp([scores, np.full_like(scores, 3.0)] - np.logaddexp(scores, 3.0)), atol=1e-300)
