"""CrowdClassifier: curricula and class weights."""

import numpy as np
import pytest
from any_classifiers import few_rounds, fit, twin_likelihood, twin_posterior
from crowds import crowd, labels_of, rare_crowd
from marks import in_slow_run
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from crowdwise import CrowdClassifier, CrowdLabels
from crowdwise.exceptions import CrowdConvergenceWarning
from crowdwise.weights import Fading, Fixed, SelfPaced, Smooth


@few_rounds
@pytest.mark.parametrize("estimator", [None, in_slow_run(SVC()), in_slow_run(RandomForestClassifier(5))])
@pytest.mark.parametrize(
    "settings",
    [
        {"curriculum": Fixed()},
        {"curriculum": SelfPaced(start=1.0)},
        {"class_weight": {0: 1, 1: 1.0}},
        {"class_weight": {}},
    ],
)
def test_settings_that_mean_nothing_change_no_bit(estimator, settings):
    X, matrix = crowd(missing=0.3)
    plain, other = (fit(X, matrix, estimator=estimator, steepness=2.0, **more) for more in ({}, settings))
    assert_array_equal(plain.consensus_proba_, other.consensus_proba_)
    assert_array_equal(plain.confusion_, other.confusion_)
    assert_array_equal(plain.predict(X), other.predict(X))
    assert (plain.temperature_, plain.n_rounds_) == (other.temperature_, other.n_rounds_)


@few_rounds
def test_the_same_seed_tosses_the_same_coins():
    X, matrix = crowd(missing=0.3)
    settings = {"steepness": 4.0, "curriculum": Fading(0.5), "cv": KFold(3), "max_rounds": 5}
    one, same, other = (fit(X, matrix, random_state=seed, **settings) for seed in (1, 1, 3))
    assert_array_equal(one.consensus_proba_, same.consensus_proba_)
    assert not np.array_equal(one.consensus_proba_, other.consensus_proba_)


class Strict(DecisionTreeClassifier):
    """A tree that will not see an example without weight."""

    def fit(self, X, y, sample_weight=None):
        if not (len(X) and np.min(sample_weight) > 0):
            raise AssertionError("an example without weight")
        return super().fit(X, y, sample_weight=sample_weight)


@few_rounds
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("start", [0.001, 0.3])
def test_examples_that_are_not_admitted_never_reach_an_estimator(n_classes, start):
    X, matrix = crowd(n_classes=n_classes, n_examples=30)
    paced = SelfPaced(start, 1.1)
    model = fit(X, matrix, n_classes, estimator=Strict(max_depth=2), curriculum=paced, steepness=3.0, max_rounds=5)
    assert model.estimator_.tree_.n_node_samples[0] < 30 * n_classes
    assert np.isfinite(model.consensus_proba_).all()
    assert set(model.estimator_.classes_) == set(range(n_classes))


@few_rounds
def test_a_part_of_which_nobody_is_admitted_is_silent():
    X, matrix = np.arange(6.0)[:, None], np.array([[0, 0, 0], [0, 1, 1], [0, 1, 0], [1, 0, 1], [1, 0, 0], [1, 1, 0]])
    splits = [(np.arange(1, 6), np.arange(1)), (np.arange(1), np.arange(1, 6))]
    model = fit(X, matrix, curriculum=SelfPaced(0.01, 1.01), steepness=5.0, cv=splits, max_rounds=1)
    # The one unanimous example is admitted, and nobody else: the model of the others has nothing to learn from.
    odds = np.prod([confusion[:, 0] for confusion in model.confusion_], axis=0) * np.exp(model.fitted_.scaling.offset)
    assert_allclose(model.consensus_proba_[0], odds / odds.sum())


def test_rounds_settle_when_the_weights_do():
    X, matrix = crowd(n_examples=100)
    settings = {"steepness": 2.0, "tol": 0.1}
    with pytest.warns(CrowdConvergenceWarning, match="curriculum still changes the weights"):
        model = fit(X, matrix, curriculum=Smooth(1.0), max_rounds=9, **settings)
    assert not model.converged_
    model = fit(X, matrix, curriculum=Smooth(1.0), max_rounds=20, **settings)
    assert (model.converged_, model.n_rounds_) == (True, 10)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", [None, RidgeClassifier(), SVC(), DecisionTreeClassifier(min_samples_leaf=20)])
def test_balanced_classes_find_more_of_the_rare_one_and_leave_the_consensus(estimator):
    X, matrix, truth = rare_crowd()
    settings = {"estimator": estimator, "tol": 0.01, "max_rounds": 30}
    plain, balanced = (fit(X, matrix, class_weight=weight, **settings) for weight in (None, "balanced"))
    recall = [np.mean(model.predict(X)[truth == 1]) for model in (plain, balanced)]
    assert recall[1] > recall[0] + 0.15
    assert np.mean(balanced.consensus_ == truth) >= np.mean(plain.consensus_ == truth) - 0.01
    assert_allclose(balanced.class_prior_, plain.class_prior_, atol=0.015)
    assert_allclose(balanced.class_prior_ * balanced.class_weight_, [0.5, 0.5], atol=0.06)  # of the last round but one


@few_rounds
def test_the_consensus_on_new_examples_has_class_weights_divided_out():
    X, matrix, _ = rare_crowd(n_examples=100)
    model = fit(X, matrix, class_weight={1: 5.0})
    few = model.consensus(X[:5], labels_of(matrix[:5]))
    scores = np.log((100 * model.predict_proba(X[:5]) + 1) / 102) - np.log([1.0, 5.0])
    likelihood = twin_likelihood(matrix[:5].tolist(), model.confusion_)
    offset = model.fitted_.scaling.offset
    assert_allclose(few.proba, twin_posterior(scores, likelihood, model.temperature_, offset)[0], rtol=1e-10)


@few_rounds
def test_a_class_that_is_declared_but_not_named_may_have_a_weight():
    X, matrix = crowd()
    declared = CrowdLabels.from_matrix(np.where(matrix == 1, "yes", "no"), classes=["maybe", "no", "yes"])
    model = CrowdClassifier(max_rounds=2, class_weight={"maybe": 7.0, "yes": 2.0}).fit(X, declared)
    assert model.class_weight_.tolist() == [1.0, 2.0]


@pytest.mark.slow
@few_rounds
@pytest.mark.parametrize(
    "estimator", [RandomForestClassifier(3), in_slow_run(None), in_slow_run(make_pipeline(StandardScaler(), SVC()))]
)
def test_folds_side_by_side_give_the_same_bits(estimator):
    X, matrix = crowd(missing=0.3, n_classes=3, n_examples=60)
    settings = {"estimator": estimator, "steepness": 2.0, "curriculum": Smooth(), "class_weight": "balanced"}
    one, two = (fit(X, matrix, 3, n_jobs=n_jobs, **settings) for n_jobs in (None, 2))
    assert_array_equal(one.consensus_proba_, two.consensus_proba_)
    assert_array_equal(one.predict(X), two.predict(X))
    assert one.temperature_ == two.temperature_
