from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge

from crowdwise import CrowdLabels, CrowdRidgeRegressor
from crowdwise.exceptions import CrowdConvergenceWarning, LabelError
from crowdwise.weights.folds import content_folds


def ratings(seed=0, missing=0.0, offset=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3))
    Y = (X @ [1.0, -2.0, 0.5])[:, None] + rng.normal(size=(60, 5)) * [0.2, 0.5, 1.0, 1.5, 3.0] + offset
    absent = rng.random(Y.shape) < missing
    absent[:, 0] = False
    return X, np.where(absent, np.nan, Y)


def twin(X, Y, steepness, l2, n_rounds):
    """The updates with loops over examples and annotators."""
    n_annotators = Y.shape[1]
    d = []
    for row in Y:
        pairs = list(combinations(row[~np.isnan(row)], 2))
        d.append(sum((a - b) ** 2 for a, b in pairs) / len(pairs) if pairs else None)
    n_pairs = [len(list(combinations(row[~np.isnan(row)], 2))) for row in Y]
    mean = sum(v * n for v, n in zip(d, n_pairs, strict=True) if n) / sum(n_pairs)
    top = max(v for v in d if v is not None)
    easy = np.array([2 / (1 + np.exp(steepness * (mean if v is None else v) / top)) for v in d])
    z = np.ones(n_annotators)
    given = ~np.isnan(Y)
    for _ in range(n_rounds):
        target = np.array([(z * np.nan_to_num(row))[g].sum() / z[g].sum() for row, g in zip(Y, given, strict=True)])
        voice = np.array([z[g].sum() for g in given])
        model = Ridge(alpha=l2).fit(X, target, sample_weight=easy * voice / voice.mean())
        f = model.predict(X)
        errors = np.array([(easy * (Y[:, j] - f) ** 2)[given[:, j]].sum() for j in range(n_annotators)])
        mass = np.array([easy[given[:, j]].sum() for j in range(n_annotators)])
        prior = 3 * (1 - given.mean(axis=0))
        z = (mass + prior) / (errors + prior * errors.sum() / mass.sum())
    return model, z


@pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdConvergenceWarning")
@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("steepness", [0.0, 2.0])
def test_equals_the_slow_twin(missing, steepness):
    X, Y = ratings(missing=missing)
    model = CrowdRidgeRegressor(steepness, l2=0.5, max_rounds=4, tol=0.0).fit(X, Y)
    slow, expertise = twin(X, Y, steepness, 0.5, 4)
    assert_allclose(model.coef_, slow.coef_, rtol=1e-8)
    assert_allclose(model.intercept_, slow.intercept_, rtol=1e-8)
    assert_allclose(model.expertise_, expertise, rtol=1e-8)


def test_a_large_offset_of_the_ratings_costs_no_digits():
    X, Y = ratings()
    near, far = CrowdRidgeRegressor().fit(X, Y), CrowdRidgeRegressor().fit(X, Y + 2.0**30)
    assert_allclose(far.coef_, near.coef_, rtol=1e-6)
    assert_allclose(far.expertise_, near.expertise_, rtol=1e-6)


def test_the_best_annotator_leads_and_consensus_has_a_standard_error():
    X, Y = ratings(missing=0.3)
    alone = CrowdLabels.from_matrix(Y, scale="interval").with_groups(list("abcde"))  # no two share a vote
    model = CrowdRidgeRegressor().fit(X, alone)
    assert model.expertise_.argmax() == 0
    given = ~np.isnan(Y)
    total = given @ model.expertise_
    gamma = model.model_precision_
    assert_allclose(model.results_.label_consensus.label, (np.nan_to_num(Y) @ model.expertise_) / total)
    assert_allclose(model.label_score_, model.results_.label_consensus.label)
    assert_allclose(model.consensus_std_, 1 / np.sqrt(total + gamma))
    found = model.consensus(X[:3], Y[:3])
    expected = (total[:3] * model.results_.label_consensus.label[:3] + gamma * model.predict(X[:3])) / (
        total[:3] + gamma
    )
    assert_allclose(found.label, expected)
    assert_allclose(found.std, model.consensus_std_[:3])
    fold, target = content_folds(X, 5), model.results_.label_consensus.label
    for k in range(5):  # each example by a model of the others
        others = fold != k
        weight = (model.results_.easiness * total / total.mean())[others]
        unseen = Ridge(alpha=1.0).fit(X[others], target[others], sample_weight=weight).predict(X[~others])
        together = (total * target)[~others] + gamma * unseen
        assert_allclose(model.consensus_[~others], together / (total + gamma)[~others], rtol=1e-8)


def test_score_is_the_share_of_variance_explained():
    X, Y = ratings()
    model = CrowdRidgeRegressor().fit(X, Y)
    f = np.repeat(model.predict(X), 5)
    assert model.score(X, Y) == pytest.approx(1 - ((Y.ravel() - f) ** 2).sum() / ((Y - Y.mean()) ** 2).sum())


def test_classes_are_refused():
    X, _ = ratings()
    with pytest.raises(ValueError, match="numbers are needed here"):
        CrowdRidgeRegressor().fit(X, CrowdLabels.from_matrix(np.ones((60, 2), dtype=int)))


def test_permuting_annotators_permutes_expertise():
    X, Y = ratings(missing=0.2)
    order = [3, 1, 4, 0, 2]
    one, other = CrowdRidgeRegressor().fit(X, Y), CrowdRidgeRegressor().fit(X, Y[:, order])
    assert_allclose(other.expertise_, one.expertise_[order], rtol=1e-8)
    assert_array_equal(other.annotators_, one.annotators_)


def test_rounds_begin_with_the_ratings_that_are_given():
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(40, 2)), rng.normal(size=(40, 3))
    first = rng.normal(size=40)
    one_round = {"max_rounds": 1, "steepness": 0.0, "tol": 0.0}
    with pytest.warns(CrowdConvergenceWarning):
        model = CrowdRidgeRegressor(init=first, **one_round).fit(X, X[:, :1] + noise)
    assert_allclose(model.coef_, Ridge(1.0).fit(X, first).coef_, rtol=1e-8)
    with pytest.raises(ValueError, match="finite ratings, one for every"):
        CrowdRidgeRegressor(init=np.full(40, np.nan)).fit(X, X[:, :1] + noise)


@pytest.mark.parametrize("rating", [1e160, 1.7e308])
def test_ratings_that_are_all_the_same_and_too_large_are_refused(rating):
    with pytest.raises(LabelError, match="rescale them"):
        CrowdRidgeRegressor().fit(np.eye(6), np.full((6, 3), rating))
