"""Known answers in the ridge model: by the slow twin, whichever way it is solved."""

import numpy as np
import pytest
import twin
from crowds import crowd, labels_of
from numpy.testing import assert_allclose
from sklearn.linear_model import Ridge

import crowdwise.ridge.data
from crowdwise import CrowdRidgeClassifier, CrowdRidgeClassifierCV, CrowdRidgeRegressor

few_rounds = pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdConvergenceWarning")


def known_of(n_examples, n_classes, n_known=15):
    rng = np.random.default_rng(2)
    return {int(i): int(rng.integers(n_classes)) for i in rng.permutation(n_examples)[:n_known]}


@few_rounds
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("missing", [0.0, 0.5])
@pytest.mark.parametrize("route", ["sums", "rows"])
def test_known_answers_equal_the_slow_twin(n_classes, missing, route, monkeypatch):
    X, matrix = crowd(n_classes=n_classes, missing=missing)
    known, sample_weight = known_of(len(X), n_classes), np.random.default_rng(1).uniform(0.5, 2, len(X))
    if route == "rows":
        monkeypatch.setattr(crowdwise.ridge.data, "sums_are_cheap", lambda data, n_cells: False)
    model = CrowdRidgeClassifier(2.0, l2=0.7, max_rounds=5, tol=0.0)
    model.fit(X, labels_of(matrix, n_classes), sample_weight, truth=known)
    slow = twin.fit(
        X, matrix.tolist(), list(range(n_classes)),
        steepness=2.0, l2=0.7, sample_weight=sample_weight, n_rounds=5, known=known,
    )  # fmt: skip
    assert model.route_ == route
    assert_allclose(model.coef_.T, slow["coef"], rtol=1e-8, atol=1e-10)
    assert_allclose(model.intercept_, slow["intercept"], rtol=1e-8, atol=1e-10)
    assert_allclose(model.expertise_, slow["expertise"], rtol=1e-8)


@few_rounds
@pytest.mark.parametrize("class_weight", [{0: 1.0, 1: 3.0}, "balanced"])
def test_known_answers_equal_the_slow_twin_with_class_weights(class_weight):
    X, matrix = crowd(missing=0.3)
    known = known_of(len(X), 2)
    model = CrowdRidgeClassifier(1.0, class_weight=class_weight, max_rounds=3, tol=0.0)
    model.fit(X, labels_of(matrix), truth=known)
    weights = [1.0, 3.0] if class_weight != "balanced" else class_weight
    slow = twin.fit(X, matrix.tolist(), [0, 1], steepness=1.0, n_rounds=3, class_weight=weights, known=known)
    assert_allclose(model.coef_.T, slow["coef"], rtol=1e-8)
    assert_allclose(model.expertise_, slow["expertise"], rtol=1e-8)


@few_rounds
def test_sums_and_rows_choose_the_same_l2_with_known_answers(monkeypatch):
    X, matrix = crowd(missing=0.3)
    known = known_of(len(X), 2)
    models = []
    for cheap in (True, False):
        if not cheap:
            monkeypatch.setattr("crowdwise.ridge.rounds.choose_route", lambda *args, **kwargs: "rows")
            monkeypatch.setattr("crowdwise.ridge.rounds.sums_are_cheap", lambda *args: True)
        models.append(CrowdRidgeClassifierCV(cv=4, max_rounds=4, tol=0.0).fit(X, labels_of(matrix), truth=known))
    assert [model.route_ for model in models] == ["sums", "rows"]
    assert models[0].l2_ == models[1].l2_
    assert_allclose(models[0].coef_, models[1].coef_, rtol=1e-7)
    assert_allclose(models[0].expertise_, models[1].expertise_, rtol=1e-7)


@few_rounds
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_known_ratings_equal_a_slow_twin(missing):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    Y = (X @ [1.0, -2.0, 0.5])[:, None] + rng.normal(size=(60, 5)) * [0.2, 0.5, 1.0, 1.5, 3.0] + 4
    Y[rng.random(Y.shape) < missing] = np.nan
    Y[:, 0] = np.nan_to_num(Y[:, 0], nan=1.0)
    truth = {i: float(X[i] @ [1.0, -2.0, 0.5] + 4) for i in range(0, 60, 4)}
    model = CrowdRidgeRegressor(0.0, l2=0.5, max_rounds=4, tol=0.0).fit(X, Y, truth=truth)
    given, z = ~np.isnan(Y), np.ones(5)
    for _ in range(4):
        target = [truth.get(i, (z * np.nan_to_num(Y[i]))[given[i]].sum() / z[given[i]].sum()) for i in range(60)]
        voice = np.array([z[g].sum() for g in given])
        slow = Ridge(alpha=0.5).fit(X, target, sample_weight=voice / voice.mean())
        right = np.array([truth.get(i, f) for i, f in enumerate(slow.predict(X))])
        errors = np.array([((Y[:, j] - right) ** 2)[given[:, j]].sum() for j in range(5)])
        mass, prior = given.sum(axis=0), 3 * (1 - given.mean(axis=0))
        z = (mass + prior) / (errors + prior * errors.sum() / mass.sum())
    assert_allclose(model.coef_, slow.coef_, rtol=1e-8)
    assert_allclose(model.expertise_, z, rtol=1e-8)
    assert model.consensus_[::4] == pytest.approx(list(truth.values()))


def test_few_known_ratings_calibrate_the_standard_deviation():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 2))
    right = X @ [2.0, 1.0]
    common = rng.normal(size=400)  # an error that all annotators share: they are surer than they should be
    Y = right[:, None] + common[:, None] + 0.3 * rng.normal(size=(400, 5))
    truth = np.where(np.arange(400) < 60, right, np.nan)
    before, after = CrowdRidgeRegressor().fit(X, Y), CrowdRidgeRegressor().fit(X, Y, truth=truth)

    def surprise(model):
        return np.sqrt((((model.consensus_ - right)[60:] / model.consensus_std_[60:]) ** 2).mean())

    assert surprise(before) > 1.9
    assert 0.75 < surprise(after) < 1.3
    assert after.truth_check_.std == pytest.approx(after.truth_check_.error, rel=0.2)
