"""Faults that concern the ridge models only; those of all models are tested elsewhere."""

import threading
import warnings

import numpy as np
import pytest
from crowds import crowd, labels_of
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from threadpoolctl import threadpool_info, threadpool_limits

from crowdwise import (
    CrowdLabels,
    CrowdRidgeClassifier,
    CrowdRidgeClassifierCV,
    CrowdRidgeRegressor,
    _threads,
    simulate_annotators,
)
from crowdwise._threads import one_blas_thread
from crowdwise.exceptions import CrowdWarning, DataError, LabelError
from crowdwise.weights import Curriculum, SelfPaced, Smooth

quiet = pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdWarning")


def warnings_of(fit):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    return [str(warning.message) for warning in caught]


# ---------------------------------------------------------------------- l2 of 0


@quiet
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("n_features", [2, 7])
def test_equal_rows_without_l2_are_scored_by_the_mean_of_their_labels(container, n_features):
    row = np.random.default_rng(0).normal(size=(1, n_features)) * 100
    X = container(np.repeat(row, 3, axis=0))
    model = CrowdRidgeClassifier(l2=0.0).fit(X, [1, 1, 0])
    assert_allclose(model.decision_function(X), 1 / 3, rtol=1e-12)
    twice = CrowdRidgeClassifier(l2=0.0, steepness=0.0, max_rounds=1).fit(X[:2], [[0, 1, 0], [1, 0, 0]])
    assert np.isfinite(twice.decision_function(X)).all()
    assert np.isfinite(twice.consensus_proba_).all()


@pytest.mark.parametrize("n_kinds", [1, 2, 4])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_fewer_different_rows_than_features_give_the_smallest_solution_and_one_warning(n_kinds, missing):
    X, matrix = crowd(missing=missing, n_features=6)
    X = X[np.arange(len(X)) % n_kinds] + 50.0
    labels, model = labels_of(matrix), CrowdRidgeClassifier(l2=0.0)
    messages = [text for text in warnings_of(lambda: model.fit(X, labels)) if "l2" in text]
    assert len(messages) == 1
    assert f"l2 is 0 and only {n_kinds - 1} of 6 directions" in messages[0]
    total = np.array([[v is not None for v in row] for row in matrix]) @ model.expertise_
    weight = model.results_.easiness * total
    centred = X - weight @ X / weight.sum()
    assert np.abs(model.coef_).max() < 10
    # In the space of the rows, and no other direction.
    projector = np.linalg.pinv(centred, rcond=1e-10) @ centred
    assert_allclose(model.coef_ @ projector, model.coef_, atol=1e-9)


def test_it_is_not_said_that_l2_is_0_when_it_is_not_or_when_all_is_determined():
    X, matrix = crowd(missing=0.3)
    assert not warnings_of(lambda: CrowdRidgeClassifier(l2=0.0).fit(X, labels_of(matrix)))
    doubled = np.hstack([X, X])
    (message,) = warnings_of(lambda: CrowdRidgeClassifier(l2=1e-30).fit(doubled, labels_of(matrix)))
    assert message.startswith("l2=1e-30 is lost in the rounding of the features' products and only 3 of 6 directions")
    assert not warnings_of(lambda: CrowdRidgeClassifier(l2=1e-3).fit(doubled, labels_of(matrix)))


def test_a_tuned_l2_of_0_is_warned_of_once():
    X, matrix = crowd(missing=0.3)
    model = CrowdRidgeClassifierCV((0.0, 2.0), l2s=(0.0, 1e-30))
    messages = warnings_of(lambda: model.fit(np.hstack([X, X]), labels_of(matrix)))
    assert len([text for text in messages if "3 of 6 directions" in text]) == 1


# ---------------------------------------------------------------------- numbers far from one


@pytest.mark.parametrize("estimator", [CrowdRidgeClassifier, CrowdRidgeClassifierCV])
def test_sparse_features_around_1e8_give_the_result_of_centred_ones(estimator):
    X, matrix = crowd(missing=0.3, n_examples=120)
    far = X + 1e8
    near = far - 1e8  # what is left of X after the offset was added
    for thin in (sparse.csr_array(far), sparse.hstack([far, sparse.csr_array((120, 1))], format="csr")):
        extra = np.zeros((120, thin.shape[1] - 3))
        one, other = (
            estimator().fit(np.hstack([near, extra]), labels_of(matrix)),
            estimator().fit(thin, labels_of(matrix)),
        )
        assert_allclose(other.coef_, one.coef_, rtol=1e-8, atol=1e-10)
        assert_allclose(other.expertise_, one.expertise_, rtol=1e-8)
        assert_allclose(other.decision_function(thin), one.decision_function(np.hstack([near, extra])), atol=1e-8)
        assert_allclose(other.decision_function(thin.toarray()), other.decision_function(thin), atol=1e-12)


def everything_finite(model, X, labels):
    new = CrowdLabels.from_matrix(np.ones((2, 2)), annotators=[labels.annotators[0], "new"], scale="interval")
    found = model.consensus(X[:2], new)
    arrays = (model.coef_, model.expertise_, model.consensus_, model.consensus_std_, model.objective_)
    return all(np.isfinite(array).all() for array in (*arrays, found.label, found.std, model.predict(X)))


@pytest.mark.parametrize("change", ["constant", "tiny", "large", "one extreme"])
def test_ratings_of_any_size_are_learnt_from(change):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    Y = X[:, :1] + rng.normal(size=(60, 4))
    if change == "constant":
        Y[:] = 3.7
    elif change == "one extreme":
        Y[5, 2] = 1e50
    else:
        Y *= {"tiny": 1e-100, "large": 1e100}[change]
    labels = CrowdLabels.from_matrix(Y, scale="interval")
    model = CrowdRidgeRegressor().fit(X, labels)
    assert everything_finite(model, X, labels)
    if change == "constant":
        assert_allclose(model.predict(X), 3.7)
        assert_allclose(model.consensus_, 3.7)


@pytest.mark.parametrize("size", [1e-160, 1e130])
def test_ratings_that_cannot_be_squared_are_refused(size):
    rng = np.random.default_rng(0)
    with pytest.raises(LabelError, match="rescale them"):
        CrowdRidgeRegressor().fit(rng.normal(size=(30, 2)), rng.normal(size=(30, 3)) * size)
    Y = rng.normal(size=(30, 3))
    Y[4, 1] = 1 / size if size < 1 else size
    with pytest.raises(LabelError, match="rescale them"):
        CrowdRidgeRegressor().fit(rng.normal(size=(30, 2)), Y)


@pytest.mark.parametrize("seed", range(6))
def test_an_unknown_annotator_has_a_finite_expertise_under_any_curriculum(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(100, 3))
    truth = (X[:, 0] > 0).astype(int)
    labels = simulate_annotators(X, truth, 4, clarity=5.0, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        model = CrowdRidgeClassifier(curriculum=SelfPaced(), max_rounds=1 + seed).fit(X, labels)
    new = CrowdLabels.from_matrix([[0, 1]], annotators=[labels.annotators[0], "new"])
    assert np.isfinite(model.fitted_.crowd_expertise)
    assert np.isfinite(model.consensus(X[:1], new).proba).all()


def test_annotators_who_are_all_perfect_without_l2_leave_an_unknown_one_finite():
    X = np.array([[-1.0], [1.0]] * 10)
    model = CrowdRidgeClassifier(l2=0.0).fit(X, np.repeat((X > 0).astype(int), 3, axis=1))
    found = model.consensus(X[:2], CrowdLabels.from_matrix([[0, 1], [1, 1]], annotators=[0, "new"]))
    assert np.isfinite(model.expertise_).all()
    assert np.isfinite(found.proba).all()


# ---------------------------------------------------------------------- settings and weights


@pytest.mark.parametrize("strange", [-0.5, np.nan])
def test_a_curriculum_with_weights_nothing_can_be_learnt_with_is_refused(strange):
    class Strange(Curriculum):
        def weights(self, t, easiness, losses, rng, sample_weight=None):
            return np.where(np.arange(len(easiness)) == 3, strange, easiness)

    X, matrix = crowd()
    for model in (CrowdRidgeClassifier(curriculum=Strange()), CrowdRidgeClassifierCV(curriculum=Strange())):
        with pytest.raises(ValueError, match="weights of a curriculum must"):
            model.fit(X, labels_of(matrix))


def test_smooth_comes_to_its_end_with_default_settings():
    X, matrix = crowd()
    assert not warnings_of(lambda: CrowdRidgeClassifier(curriculum=Smooth()).fit(X, labels_of(matrix)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_rounds": 1.5}, "max_rounds must be a whole number >= 1; got 1.5"),
        ({"max_rounds": True}, "max_rounds must be"),
        ({"random_state": "a"}, "random_state must be"),
        ({"l2": np.nan}, "l2 must be a finite number >= 0; got nan"),
        ({"l2": "1"}, "l2 must be"),
        ({"tol": -1.0}, "tol must be"),
        ({"steepness": None}, "steepness must be"),
    ],
)
@pytest.mark.parametrize("estimator", [CrowdRidgeClassifier, CrowdRidgeRegressor])
def test_settings_that_cannot_be_used_are_refused_by_their_own_name(estimator, settings, message):
    with pytest.raises(ValueError, match=message):
        estimator(**settings).fit([[0.0], [1.0], [2.0]], [[0, 1], [1, 1], [0, 0]])


@pytest.mark.parametrize("estimator", [CrowdRidgeClassifier, CrowdRidgeClassifierCV, CrowdRidgeRegressor])
def test_one_number_as_sample_weight_counts_for_all(estimator):
    X, matrix = crowd()
    y = matrix.astype(float)
    one, other = estimator().fit(X, y, 2.0), estimator().fit(X, y, np.full(len(X), 2.0))
    assert_array_equal(one.coef_, other.coef_)
    assert_array_equal(one.consensus(X, y).label, other.consensus(X, y).label)


# ---------------------------------------------------------------------- NaN


@quiet
@pytest.mark.parametrize("n_copies", [1, 30], ids=["narrow", "wide"])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("model", [CrowdRidgeClassifier(), CrowdRidgeClassifierCV()], ids=str)
def test_nan_is_named_by_the_users_row_wherever_it_stands(model, make, n_copies):
    X, matrix = crowd()
    X = np.hstack([X] * n_copies)
    X[7, 1] = np.nan
    matrix[[2, 5]] = None
    with pytest.raises(DataError, match="1 value, at row 7"):
        model.fit(make(X), labels_of(matrix))
    matrix[7] = None  # takes no part
    with pytest.raises(DataError, match="1 value, at row 7"):
        model.fit(make(X), labels_of(matrix))
    X, matrix = np.hstack([crowd()[0]] * n_copies), crowd()[1]
    X[9, 0] = np.inf
    with pytest.raises(DataError, match="1 value, at row 9"):
        model.fit(make(X), labels_of(matrix), np.where(np.arange(40) == 9, 0.0, 1.0))


# ---------------------------------------------------------------------- threads


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_the_last_fit_in_any_thread_gives_blas_its_threads_back():
    X, matrix = crowd(n_examples=400)
    labels = labels_of(matrix)
    with threadpool_limits(2, "blas"):
        before = blas_threads()
        threads = [
            threading.Thread(target=lambda: [CrowdRidgeClassifier().fit(X, labels) for _ in range(5)]) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert blas_threads() == before
        with one_blas_thread(), one_blas_thread():
            assert set(blas_threads()) == {1}
        assert blas_threads() == before


@pytest.mark.parametrize("shape", [(900, 600), (300, 800)], ids=["gram", "coordinates"])
def test_threads_of_blas_change_no_bit_of_wide_features(shape):
    rng = np.random.default_rng(0)
    X, matrix = rng.normal(size=shape), rng.integers(0, 2, (shape[0], 4))
    coefs = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads, "blas"):
            coefs.append(CrowdRidgeClassifierCV(l2s=(1.0, 100.0), cv=3, max_rounds=20, tol=1e-3).fit(X, matrix).coef_)
    assert_array_equal(*coefs)


# ---------------------------------------------------------------------- steepness


@quiet
@pytest.mark.parametrize("seed", range(4))
def test_jitter_does_not_change_the_steepness_that_is_found(seed):
    rng = np.random.default_rng(seed)
    truth = np.repeat([0, 1], 150)
    X = rng.normal(size=(300, 5)) + truth[:, None] - 0.5
    labels = simulate_annotators(X, truth, 10, clarity=1.0, random_state=rng)
    steepness = CrowdRidgeClassifierCV().fit(X, labels).steepness_
    for _ in range(3):
        jittered = X + 1e-13 * rng.normal(size=X.shape)
        assert CrowdRidgeClassifierCV().fit(jittered, labels).steepness_ == steepness
    order = rng.permutation(5)
    assert CrowdRidgeClassifierCV().fit(X[:, order], labels).steepness_ == steepness
    assert CrowdRidgeClassifierCV().fit(sparse.csr_array(X), labels).steepness_ == steepness


def test_large_work_is_shared_between_threads_and_small_work_is_not(monkeypatch):
    monkeypatch.setattr(_threads, "available_cores", lambda: 4)

    def works_alone(n_multiplications):
        threads = _threads.run_parallel(lambda _: threading.get_ident(), range(8), n_multiplications)
        return set(threads) == {threading.get_ident()}

    assert works_alone(1e3)
    assert not works_alone(1e12)


@quiet
def test_an_immense_l2_leaves_the_objective_a_number():
    same = np.full((3, 2), 3.3)  # no coefficient to penalize
    labels = CrowdLabels.from_matrix([["a", "a", "b"]] * 3)
    assert np.isfinite(CrowdRidgeClassifier(steepness=0, l2=1e305).fit(same, labels).objective_).all()
