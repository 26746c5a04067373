"""A model at another steepness or l2, from what a fit kept: what a new fit gives."""

import pickle

import numpy as np
import pytest
from all_models import quiet
from crowds import crowd
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

import crowdwise
from crowdwise import CrowdLabels, CrowdRidgeClassifier, CrowdRidgeClassifierCV, CrowdRidgeRegressor, read_blocks
from crowdwise.exceptions import DataError
from crowdwise.ridge import base
from crowdwise.ridge.data import RidgeData
from crowdwise.weights import SelfPaced, Smooth

TIGHT = {"tol": 1e-11, "max_rounds": 300}
RESULTS = (
    "coef_", "intercept_", "expertise_", "accuracy_", "consensus_proba_", "consensus_std_", "label_score_",
    "disagreement_", "model_precision_", "steepness_", "l2_",
)  # fmt: skip


def assert_same(one, other, rtol=1e-8):
    for name in RESULTS:
        assert hasattr(one, name) == hasattr(other, name), name
        if hasattr(other, name):
            right = np.asarray(getattr(other, name))
            atol = rtol * max(np.nanmax(np.abs(right)), 1e-3)
            assert_allclose(getattr(one, name), right, rtol=0, atol=atol, err_msg=name)
    assert one.annotator_flags_ == other.annotator_flags_
    assert one.route_ == other.route_


def data_of(kind, n_classes=2, missing=0.0):
    X, matrix = crowd(3, n_examples=80, n_classes=n_classes, missing=missing)
    if kind == "rating":
        return X, CrowdLabels.from_matrix(np.where(matrix == None, np.nan, matrix).astype(float), scale="interval")  # noqa: E711
    return X, CrowdLabels.from_matrix(matrix)


@quiet
@pytest.mark.parametrize("keep_sums", ["auto", True])
@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("kind", ["two classes", "three classes", "rating"])
def test_another_steepness_and_l2_are_those_of_a_new_fit(kind, missing, keep_sums):
    X, y = data_of(kind, 3 if kind == "three classes" else 2, missing)
    make = CrowdRidgeRegressor if kind == "rating" else CrowdRidgeClassifier
    model = make(keep_sums=keep_sums, **TIGHT).fit(X, y)
    before = model.coef_.copy()
    for settings in ({"steepness": 6.0}, {"l2": 30.0}, {"steepness": 0.0, "l2": 0.01}, {}):
        found = model.at(**settings)
        assert_same(found, make(**settings, **TIGHT).fit(X, y))
        assert found.get_params() == model.get_params() | settings
    assert_array_equal(model.coef_, before)
    assert_same(model.at(steepness=1.0).at(l2=3.0), make(1.0, l2=3.0, **TIGHT).fit(X, y))


@quiet
@pytest.mark.parametrize(
    ("settings", "given"),
    [
        ({}, {"truth": np.where(np.arange(80) % 3 == 0, np.arange(80) % 2, np.nan)}),
        ({}, {"sample_weight": np.arange(80) % 3 + 0.5}),
        ({}, {"groups": [0, 0, 1, 2, 3, 4]}),
        ({"curriculum": Smooth(2.0), "tol": 1e-3}, {}),
        ({"curriculum": SelfPaced(), "tol": 1e-3}, {}),
        ({"class_weight": "balanced"}, {}),
        ({"fit_intercept": False, "init": "mean", "relative_to": "possible"}, {}),
    ],
)
def test_whatever_else_was_given_still_counts(settings, given):
    X, y = data_of("class", missing=0.3)
    y = y.with_groups(given.get("groups"))
    given = {name: value for name, value in given.items() if name != "groups"}
    model = CrowdRidgeClassifier(**TIGHT | settings)
    found = clone(model).fit(X, y, **given).at(steepness=4.0, l2=2.0)
    assert_same(found, clone(model).set_params(steepness=4.0, l2=2.0).fit(X, y, **given))


@quiet
def test_sparse_and_wide_features_are_solved_again():
    X, y = data_of("class")
    wide = np.random.default_rng(0).normal(size=(80, 120))
    for features in (sparse.csr_array(X), wide):
        found = CrowdRidgeClassifier(**TIGHT).fit(features, y).at(l2=5.0)
        assert_same(found, CrowdRidgeClassifier(l2=5.0, **TIGHT).fit(features, y))


def test_a_tuned_model_has_one_steepness_or_l2_to_choose_from():
    X, y = data_of("class", missing=0.3)
    model = CrowdRidgeClassifierCV((0.0, 2.0), l2s=(0.1, 1.0), cv=4, **TIGHT).fit(X, y)
    found = model.at(steepness=2.0)
    assert_same(found, CrowdRidgeClassifierCV((2.0,), l2s=(0.1, 1.0), cv=4, **TIGHT).fit(X, y))
    assert found.l2s == (0.1, 1.0)
    assert_same(model.at(l2=10.0), CrowdRidgeClassifierCV((0.0, 2.0), l2s=(10.0,), cv=4, **TIGHT).fit(X, y))


@pytest.mark.parametrize(("keep_sums", "n_passes"), [("auto", 2), (True, 1)])
def test_rows_are_summed_up_once(keep_sums, n_passes, monkeypatch):
    X, y = data_of("class", missing=0.3)
    passes, sums = [], RidgeData.sums
    monkeypatch.setattr(RidgeData, "sums", lambda *given: passes.append(1) or sums(*given))
    model = CrowdRidgeClassifier(keep_sums=keep_sums).fit(X, y)
    for steepness in (0.0, 1.0, 3.0):
        model.at(steepness=steepness).at(l2=0.5)
    assert len(passes) == n_passes


@quiet
@pytest.mark.parametrize("make", [CrowdRidgeClassifier, CrowdRidgeRegressor])
def test_sums_of_blocks_are_solved_again(make):
    X, y = data_of("rating" if make is CrowdRidgeRegressor else "class", missing=0.3)
    blocks = make(**TIGHT).fit(read_blocks([(X[:30], y[:30]), (X[30:], y[30:])]))
    found, expected = blocks.at(steepness=5.0, l2=3.0), make(5.0, l2=3.0, **TIGHT).fit(X, y)
    for name in ("coef_", "intercept_", "expertise_"):
        assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-8)
    assert found.at(steepness=0.0).steepness_ == 0.0
    groups = [0, 0, 1, 2, 3, 4]
    together = make(**TIGHT).fit(read_blocks([(X, y.with_groups(groups))])).at(l2=3.0)
    assert_array_equal(
        together.results_.vote_weight, make(l2=3.0, **TIGHT).fit(X, y.with_groups(groups)).results_.vote_weight
    )
    alike = make(0.0).partial_fit(X, y)
    assert alike.at(l2=2.0).l2_ == 2.0
    with pytest.raises(DataError, match="sums of this model are"):
        alike.at(steepness=2.0)


def test_where_nothing_was_kept_the_error_says_how_to_keep_it(tmp_path, set_constants):
    X, y = data_of("class")
    model = CrowdRidgeClassifier().fit(X, y)
    model.save(tmp_path / "model.crowdwise")
    saved = crowdwise.load(tmp_path / "model.crowdwise")
    assert model.at(l2=2.0).l2_ == 2.0
    without = [saved, pickle.loads(pickle.dumps(model)), CrowdRidgeClassifier(keep_sums=False).fit(X, y)]
    set_constants(base, _MOST_KEPT=2000)
    without.append(CrowdRidgeClassifier().fit(X, y))
    for one in without:
        with pytest.raises(DataError, match="the sums of this fit"):
            one.at(l2=2.0)
    assert CrowdRidgeClassifier(keep_sums=True).fit(X, y).at(l2=2.0).l2_ == 2.0
    assert len(pickle.dumps(model)) == len(pickle.dumps(without[2].set_params(keep_sums="auto")))


def test_settings_are_those_of_the_fit_whatever_was_set_since():
    X, y = data_of("class", missing=0.3)
    model = CrowdRidgeClassifier(l2=3.0, **TIGHT).fit(X, y).set_params(l2=50.0, init="mean", relative_to="possible")
    assert_same(model.at(steepness=4.0), CrowdRidgeClassifier(4.0, l2=3.0, **TIGHT).fit(X, y))
    blocks = CrowdRidgeClassifier().partial_fit(X, y).set_params(init="mean")
    with pytest.raises(DataError, match="a setting that the sums"):
        blocks.at(l2=2.0)


def test_settings_that_make_no_sense_are_refused():
    X, y = data_of("class")
    with pytest.raises(ValueError, match="keep_sums"):
        CrowdRidgeClassifier(keep_sums="yes").fit(X, y)
    with pytest.raises(ValueError, match="l2 must"):
        CrowdRidgeClassifier().fit(X, y).at(l2=-1.0)
