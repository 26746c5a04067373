"""What all models promise alike: the same attributes, every fault, the same result however data are written."""

import copy
import gc
import pickle
import tracemalloc
import unicodedata
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pytest
from all_models import (
    ANY,
    CLASSIFIERS,
    EVERYTHING,
    LEARNERS,
    LOGISTIC,
    MODELS,
    PERCEPTRONS,
    RIDGE,
    assert_all_finite,
    assert_same_fit,
    crowd,
    data_for,
    fit_quietly,
    kind_of,
    labels_for,
    messages_of,
    new,
    over,
    quick,
    quiet,
    reference,
    scores_of,
    steady,
    sure,
)
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_info, threadpool_limits

from crowdwise import CrowdLabels, align
from crowdwise.crowd import easiness
from crowdwise.em import Confusion, OneCoin, Shared, confusion
from crowdwise.exceptions import AlignmentError, CrowdConvergenceWarning, CrowdWarning, DataError, LabelError
from crowdwise.labels.align import as_labels
from crowdwise.model_selection import crowd_scorer
from crowdwise.ridge import features
from crowdwise.truths.known import known_answers
from crowdwise.weights import Fading, SelfPaced, Smooth

# ---------------------------------------------------------------------- attributes

OF_EXAMPLES = ["examples_", "disagreement_", "easiness_", "consensus_", "label_consensus_"]
OF_ANNOTATORS = ["annotators_", "expertise_", "expertise_share_"]
OF_CLASSES = ["consensus_proba_", "consensus_confidence_", "label_proba_", "accuracy_", "classes_"]


@pytest.fixture(scope="module")
def fitted():
    """Every model, fitted once to labels with names: {name: (X, labels, model)}."""

    def fit(name):
        X, y = data_for(name, missing=0.3)
        matrix, annotators = y.to_matrix().astype(float), ["eve", "ann", "dan", "bob", "cyd"]
        labels = labels_for(name, matrix, examples=[f"e{i}" for i in range(len(X))][::-1], annotators=annotators)
        return X, labels, fit_quietly(new(name), X, labels)

    return {name: fit(name) for name in EVERYTHING}


@over(MODELS, variants=True)
def test_every_model_has_the_same_attributes_about_its_examples_and_annotators(fitted, name):
    _, labels, model = fitted[name]
    shared = model.results_.attributes()
    assert {*OF_EXAMPLES, *OF_ANNOTATORS, "annotator_flags_", "n_rounds_", "converged_", "objective_"} <= set(shared)
    assert set(OF_CLASSES) <= set(shared) or (name == "regressor" and "consensus_std_" in shared)
    for attribute, value in shared.items():
        assert np.array_equal(getattr(model, attribute), value) or attribute in ("expertise_", "accuracy_"), attribute
    for attribute in OF_EXAMPLES:
        assert shared[attribute].shape == (len(labels),), attribute
    for attribute in OF_ANNOTATORS:
        assert shared[attribute].shape == (labels.n_annotators,), attribute
    assert model.objective_.shape == (model.n_rounds_,)
    assert isinstance(model.converged_, bool)
    assert model.n_features_in_ == 3


@over(EVERYTHING, variants=True)
def test_results_carry_the_ids_of_the_user_in_the_order_of_the_user(fitted, name):
    _, labels, model = fitted[name]
    assert model.examples_.tolist() == labels.examples.tolist()
    assert model.annotators_.tolist() == labels.annotators.tolist()
    frame = model.consensus_frame()
    assert frame["example"].tolist() == labels.examples.tolist()
    assert frame["label"].tolist() == model.consensus_.tolist()
    crowd_frame = model.annotators_frame()
    assert crowd_frame["annotator"].tolist() == labels.annotators.tolist()
    assert crowd_frame["labels"].tolist() == labels.labels_per_annotator.tolist()
    assert crowd_frame["flags"].map(bool).sum() == len(model.annotator_flags_)


@over([*CLASSIFIERS, "aggregate"], variants=True)
def test_probabilities_are_probabilities_and_the_consensus_is_the_likeliest_class(fitted, name):
    _, labels, model = fitted[name]
    for proba, label in ((model.consensus_proba_, model.consensus_), (model.label_proba_, model.label_consensus_)):
        assert proba.shape == (len(labels), 2)
        assert np.allclose(proba.sum(axis=1), 1, atol=1e-12)
        assert proba.min() >= 0
        assert np.array_equal(label, model.classes_[proba.argmax(axis=1)])
    assert np.array_equal(model.consensus_confidence_, model.consensus_proba_.max(axis=1))
    assert model.classes_.tolist() == [0, 1]
    assert model.accuracy_.shape == (5,)
    assert ((model.accuracy_ > 0) & (model.accuracy_ < 1)).all()


def test_ratings_have_a_standard_deviation_and_no_probabilities(fitted):
    _, _, model = fitted["regressor"]
    assert (model.consensus_std_ > 0).all()
    assert not any(hasattr(model, attribute) for attribute in OF_CLASSES)
    assert model.consensus_frame()["std"].tolist() == model.consensus_std_.tolist()


@over([*MODELS, "aggregate"], variants=True)
def test_expertise_easiness_and_flags_mean_the_same_in_every_model(fitted, name):
    _, _, model = fitted[name]
    assert (model.expertise_ > 0).all()
    assert isinstance(model.annotator_flags_, dict)
    assert all(isinstance(flags, tuple) for flags in model.annotator_flags_.values())
    assert set(model.annotator_flags_) <= set(model.annotators_.tolist())
    assert np.array_equal(model.easiness_, easiness(model.disagreement_, model.steepness_))
    if name != "aggregate":
        assert np.allclose(model.expertise_share_, model.expertise_ / model.expertise_.sum(), rtol=1e-12)


@over([*MODELS, "perceptron by margin", "aggregate"])
def test_expertise_is_larger_for_the_annotator_who_is_right_more_often(name):
    X, truth, _ = crowd(n=150)
    rng = np.random.default_rng(1)
    error = np.array([0.02, 0.2, 0.4])
    matrix = np.where(rng.random((150, 3)) < error, 1 - truth[:, None], truth[:, None])
    model = fit_quietly(new(name), X, labels_for(name, matrix.astype(float)))
    assert np.argsort(-model.expertise_).tolist() == [0, 1, 2]
    if hasattr(model, "accuracy_"):
        assert np.argsort(-model.accuracy_).tolist() == [0, 1, 2]
        assert np.allclose(model.accuracy_, 1 - error, atol=0.12)


@over([*RIDGE, *LOGISTIC, "any"], variants=True)
def test_linear_models_have_coefficients(fitted, name):
    X, _, model = fitted[name]
    inner = model.estimator_ if name == "any" else model
    assert inner.coef_.shape == ((3,) if name == "regressor" else (1, 3))
    expected = X @ np.ravel(inner.coef_) + np.ravel(inner.intercept_)
    assert np.allclose(scores_of(model, X), expected, atol=1e-12)


@over(CLASSIFIERS)
def test_more_than_two_classes_have_a_column_each(name):
    X, y = data_for(name, n_classes=3, missing=0.2, clarity=3.0)
    names = np.array(["ant", "bee", "cat"], dtype=object)[y.values]
    matrix = np.full(y.shape, None, dtype=object)
    matrix[y.example_index, y.annotator_index] = names
    model = fit_quietly(new(name), X, matrix)
    assert model.classes_.tolist() == ["ant", "bee", "cat"]
    assert model.consensus_proba_.shape == model.label_proba_.shape == (80, 3)
    assert scores_of(model, X).shape == (80, 3)
    assert set(model.predict(X)) <= {"ant", "bee", "cat"}
    assert model.accuracy_.shape == (5,)


@quiet
@over(MODELS, variants=True)
def test_the_labels_alone_do_not_know_the_features_and_the_consensus_does(fitted, name):
    X, labels, model = fitted[name]
    order = np.random.default_rng(0).permutation(len(X))
    alone = model.consensus(X, labels, use_model=False)
    assert np.array_equal(model.consensus(X[order], labels, use_model=False).label, alone.label)
    assert np.allclose(sure_of(alone), model.label_consensus_ if name == "regressor" else model.label_proba_)
    assert np.abs(sure_of(model.consensus(X[order], labels)) - sure_of(model.consensus(X, labels))).max() > 0.01
    clear, y = data_for(name, clarity=5.0)
    one, other = fit_quietly(new(name), clear, y), fit_quietly(new(name), clear[order], y)
    if name == "regressor":  # weighted by expertise, which features decide
        assert np.array_equal(one.label_consensus_ > 0.5, other.label_consensus_ > 0.5)
    else:
        assert np.array_equal(one.label_consensus_, other.label_consensus_)
    assert np.abs(sure(one) - sure(other)).max() > 0.01


def sure_of(consensus):
    return consensus.proba if hasattr(consensus, "proba") else consensus.label


MEMORISERS = {
    "ridge": {"l2": 1e-6},
    "ridge cv": {"l2s": (1e-6,)},
    "regressor": {"l2": 1e-6},
    "logistic": {"l2": 1e-6, "errors_in_common": False},
    "any": {"estimator": LogisticRegression(C=1e6, max_iter=10_000), "errors_in_common": False},
    "any tree": {"estimator": DecisionTreeClassifier(), "errors_in_common": False},
}


@quiet
@over(MEMORISERS)
def test_the_consensus_is_out_of_fold_so_a_model_that_memorises_does_not_confirm_the_labels(name):
    rng = np.random.default_rng(0)
    X, truth = rng.normal(size=(60, 150)), np.arange(60) % 2  # features that say nothing
    matrix = np.where(rng.random((60, 5)) < 0.25, 1 - truth[:, None], truth[:, None]).astype(float)
    labels = labels_for(name, matrix)
    model = new(name, steepness=0.0, **MEMORISERS[name]).fit(X, labels)
    alone, in_sample = model.label_consensus_, model.consensus(X, labels)
    if name == "regressor":  # a model that has seen the ratings has nothing to add to them
        assert np.abs(in_sample.label - alone).mean() < 1e-3
        assert np.abs(model.consensus_ - alone).mean() > 0.05
        return
    assert np.mean(model.predict(X) == alone) > 0.85
    assert confirmed(alone, model.label_proba_, in_sample.proba) > 0.85
    assert confirmed(alone, model.label_proba_, model.consensus_proba_) < 0.75


def confirmed(label, before, after):
    """How often a model makes the class of the labels more probable, of two."""
    return np.mean(np.where(label == 1, 1, -1) * (after - before)[:, 1] > 0)


# ---------------------------------------------------------------------- faults: features


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
@over(LEARNERS, without=["any tree"])  # trees take NaN
def test_fault_01_nan_or_infinite_feature_is_an_error_with_up_to_five_positions(name, make, bad):
    X, y, model = reference(name, n=40)
    X[10:17, 1] = bad
    if name in PERCEPTRONS and make is not np.asarray:
        pytest.skip("takes no sparse features")
    places = ", ".join(f"row {row} column 1" for row in range(10, 15))
    with pytest.raises(DataError, match=rf"infinity: 7 values, at {places}, \.\.\."):
        fit_quietly(new(name), make(X), y)
    with pytest.raises(DataError, match="row 10 column 1"):
        model.predict(make(X))
    if name in MODELS:
        with pytest.raises(DataError, match="row 10 column 1"):
            model.consensus(make(X), y)


@pytest.mark.parametrize("missing", [0.0, 0.4])
@over(LEARNERS, without=["any tree"])
def test_fault_01_infinities_of_both_signs_are_an_error_without_a_stray_warning(name, missing):
    X, y = data_for(name, missing=missing)
    X[10:17, 1], X[20:23, 2] = np.inf, -np.inf
    with pytest.raises(DataError, match="row 10 column 1"):
        fit_quietly(new(name), X, y)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@over(LEARNERS, without=[*PERCEPTRONS, "any tree"])
def test_fault_01_the_row_is_that_of_the_user_and_rows_that_take_no_part_are_looked_at(name, make):
    X, y = data_for(name, n=40)
    X[9, 0] = np.nan
    matrix = y.to_matrix().astype(float)
    matrix[[2, 5]] = np.nan
    with pytest.raises(DataError, match="1 values, at row 9 column 0"):
        fit_quietly(new(name), make(X), labels_for(name, matrix))
    matrix[9] = np.nan
    with pytest.raises(DataError, match="1 values, at row 9 column 0"):
        fit_quietly(new(name), make(X), labels_for(name, matrix))
    with pytest.raises(DataError, match="1 values, at row 9 column 0"):
        fit_quietly(new(name), make(X), y, np.where(np.arange(40) == 9, 0.0, 1.0))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@over([*RIDGE, *LOGISTIC])
def test_fault_02_features_around_1e8_give_the_result_of_centred_features(name, make):
    X, y = data_for(name)
    offset = 1e8
    far = X + offset
    centred = far - offset  # what is left of X after the offset was added
    near, distant = fit_quietly(new(name), centred, y), fit_quietly(new(name), make(far), y)
    assert np.allclose(near.coef_, distant.coef_, rtol=1e-8, atol=1e-10)
    assert_same_fit(near, distant, centred, make(far), rtol=1e-8, atol=1e-8)
    consensus = [model.consensus(rows, y) for model, rows in ((near, centred), (distant, make(far)))]
    assert np.allclose(sure_of(consensus[0]), sure_of(consensus[1]), atol=1e-8)


@pytest.mark.parametrize("value", [0.0, 3.0, 0.1, 1e8])
@over([*RIDGE, *LOGISTIC])
def test_fault_03_a_constant_feature_has_coefficient_zero(name, value):
    X, y, without = reference(name)
    model = fit_quietly(new(name), np.column_stack([X, np.full(len(X), value)]), y)
    assert np.abs(np.ravel(model.coef_)[-1]) < 1e-12
    if name in LOGISTIC:  # l2 is relative to the variance of the average feature
        model = fit_quietly(new(name, l2=without.l2_), np.column_stack([X, np.full(len(X), value)]), y)
    assert np.allclose(np.ravel(model.coef_)[:-1], np.ravel(without.coef_), atol=1e-8)


@over(LEARNERS)
def test_fault_04_fewer_examples_than_features_and_collinear_ones_are_fine(name):
    X, y = data_for(name, n=30, n_features=50)
    assert_all_finite(fit_quietly(new(name), X, y))
    assert_all_finite(fit_quietly(new(name), np.hstack([X[:, :3], X[:, :3]]), y))
    assert_all_finite(fit_quietly(new(name), X[np.arange(30) % 3], y))


@pytest.mark.parametrize("n_features", [50, 3])
def test_fault_04_without_l2_the_smallest_solution_is_taken_and_said(n_features):
    X, _, labels = crowd(n=30, n_features=n_features)
    X = X if n_features == 50 else np.hstack([X, X])
    model = new("ridge", l2=0.0, steepness=0.0, max_rounds=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, labels)
    assert any("l2 is 0 and only" in str(w.message) and w.category is CrowdWarning for w in caught)
    target = np.sign(2 * labels.counts()[:, 1] - labels.n_annotators).astype(float)
    centred = X - X.mean(axis=0)
    expected = np.linalg.pinv(centred) @ (target - target.mean())
    assert np.allclose(model.coef_[0], expected, atol=1e-6)


@quiet
@over(LOGISTIC)
def test_fault_04_without_l2_the_logistic_model_stays_finite(name):
    X, y = data_for(name, n=30, n_features=50)
    assert_all_finite(new(name, l2=0.0).fit(X, y))
    assert_all_finite(new(name, l2=0.0).fit(np.hstack([X[:, :3], X[:, :3]]), y))


# ---------------------------------------------------------------------- faults: labels that are not there


@over(EVERYTHING, variants=True)
def test_fault_05_an_example_without_labels_takes_no_part_is_predicted_and_counted(name):
    X, y = data_for(name)
    matrix = y.to_matrix().astype(float)
    matrix[[3, 7]] = np.nan
    holes = labels_for(name, matrix)
    labelled = np.delete(np.arange(len(X)), [3, 7])
    with pytest.warns(CrowdWarning, match="2 of 80 examples have no label; they take no part"):
        model = new(name).fit(X, holes)
    without = fit_quietly(new(name), X[labelled], holes[labelled])
    assert len(model.consensus_) == len(model.disagreement_) == 80
    assert_all_finite(model)
    if name == "aggregate":
        assert np.allclose(model.consensus_proba_[[3, 7]], model.found.class_prior)
        return
    assert np.allclose(scores_of(model, X), scores_of(without, X), rtol=1e-10)
    if hasattr(model, "expertise_"):
        assert np.allclose(model.expertise_, without.expertise_, rtol=1e-10)
    predicted = model.predict(X[[3, 7]])
    assert np.allclose(model.consensus_[[3, 7]], predicted)
    if name in MODELS:
        assert np.allclose(model.label_consensus_[[3, 7]], predicted)


@over(EVERYTHING)
def test_fault_06_no_label_or_no_example_is_an_error(name):
    with pytest.raises(LabelError, match="there is no label: all 4 examples are without one"):
        new(name).fit(np.zeros((4, 2)), labels_for(name, np.full((4, 3), np.nan)))
    with pytest.raises(ValueError, match=r"0 sample|no label: all 0 examples"):
        new(name).fit(np.zeros((0, 2)), labels_for(name, np.zeros((0, 3))))


@pytest.mark.parametrize("missing", [0.0, 0.4])
@over(EVERYTHING, variants=True)
def test_fault_07_an_annotator_without_labels_changes_nothing_else_to_the_bit(name, missing):
    X, y, one = reference(name, missing=missing)
    silent = labels_for(name, np.insert(y.to_matrix().astype(float), 2, np.nan, axis=1))
    other = fit_quietly(new(name), X, silent)
    assert "no labels" in other.annotator_flags_[2]
    for attribute in ("coef_", "intercept_", "disagreement_", "consensus_", "consensus_proba_", "label_proba_"):
        if hasattr(one, attribute):
            assert np.array_equal(getattr(other, attribute), getattr(one, attribute)), attribute
    assert np.array_equal(scores_of(other, X), scores_of(one, X))
    for attribute in ("expertise_", "accuracy_"):
        if hasattr(one, attribute):
            assert np.isnan(getattr(other, attribute)[2])
            assert np.array_equal(np.delete(getattr(other, attribute), 2), getattr(one, attribute))
    if name in MODELS:
        assert other.expertise_share_[2] == 0


@pytest.mark.parametrize("n_labels", [1, 2])
@over([*CLASSIFIERS, "aggregate", *PERCEPTRONS])
def test_fault_08_an_annotator_with_few_labels_is_shrunk_and_flagged(name, n_labels):
    X, truth, labels = crowd(missing=0.2)
    for right in (True, False):
        column = np.full((80, 1), np.nan)
        clear = np.argsort(-np.abs(X[:, 0]))[:n_labels]
        column[clear, 0] = truth[clear] if right else 1 - truth[clear]
        few = CrowdLabels.from_matrix(np.hstack([labels.to_matrix(), column]))
        model = fit_quietly(new(name), X, few)
        assert "few labels" in model.annotator_flags_[5]
        if name not in PERCEPTRONS:
            others = model.expertise_[:-1]
            assert others.min() / 3 < model.expertise_[-1] < others.max() * 3


@over([*CLASSIFIERS, *PERCEPTRONS, "aggregate"])
def test_fault_09_labels_of_one_class_only_are_an_error(name):
    X, _, _ = crowd()
    for y in (np.ones((80, 3)), CrowdLabels.from_matrix(np.ones((80, 3)), classes=[0, 1])):
        with pytest.raises(LabelError, match="at least two classes are needed; all labels are of the one class 1"):
            new(name).fit(X, y)


@over(EVERYTHING)
def test_fault_10_one_annotator_is_believed_with_a_note(name):
    X, truth, _ = crowd()
    settings = {"steepness": 2.0} if name == "aggregate" else {}
    with pytest.warns(CrowdWarning, match="one annotator: disagreement says nothing"):
        model = new(name, **settings).fit(X, truth)
    assert np.array_equal(model.consensus_, truth)
    if name in PERCEPTRONS:
        return
    assert model.expertise_.tolist() == [1.0]
    assert np.array_equal(model.label_consensus_, truth)
    if name in RIDGE:
        numbers = truth if name == "regressor" else 2 * truth - 1
        assert np.allclose(scores_of(model, X), Ridge(alpha=model.l2_).fit(X, numbers).predict(X), atol=1e-10)
    if name == "any":
        assert np.allclose(scores_of(model, X), LogisticRegression().fit(X, truth).decision_function(X), atol=1e-6)


@over(EVERYTHING, without=PERCEPTRONS)
def test_fault_11_annotators_who_share_no_example_make_steepness_irrelevant(name):
    X, truth, _ = crowd()
    matrix = np.full((80, 3), np.nan)
    matrix[np.arange(80), np.arange(80) % 3] = truth
    with pytest.warns(CrowdWarning, match="no two annotators share an example.*steepness has no effect"):
        model = new(name, steepness=5.0).fit(X, matrix)
    flat = fit_quietly(new(name, steepness=0.0), X, matrix)
    assert_same_fit(model, flat, X, atol=1e-12)


# ---------------------------------------------------------------------- faults: labels that are odd


@over(CLASSIFIERS, variants=True)
def test_fault_14_a_class_that_the_fit_did_not_know_is_an_error_in_the_consensus(fitted, name):
    X, _, model = fitted[name]
    with pytest.raises(LabelError, match=r"the classes \[7\] are not among those of the fit, \[0(\.0)?, 1(\.0)?\]"):
        model.consensus(X[:1], CrowdLabels.from_matrix([[7]], annotators=["ann"]))


@over([*CLASSIFIERS, *PERCEPTRONS, "aggregate"])
def test_fault_15_one_true_and_1_0_are_one_class_and_the_text_1_is_another(name):
    X, truth, _ = crowd()
    numbers = np.column_stack([truth, truth, 1 - truth])
    mixed = numbers.astype(object)
    mixed[:, 0], mixed[:, 1] = truth.astype(bool), truth.astype(float)
    assert_same_fit(fit_quietly(new(name), X, numbers), fit_quietly(new(name), X, mixed), X)
    mixed[4, 2] = "1"
    with pytest.raises(LabelError, match=r'found a mix of .*Note that 1 and "1" are different labels'):
        fit_quietly(new(name), X, mixed)


@over([*CLASSIFIERS, *PERCEPTRONS, "aggregate"])
def test_fault_16_minus_one_is_a_label_like_any_other(name):
    X, y, other = reference(name)
    signs = 2 * y.to_matrix().astype(int) - 1
    model = fit_quietly(new(name), X, signs)
    assert model.classes_.tolist() == [-1, 1]
    assert_same_fit(other, model, X, rtol=0, atol=0)


# ---------------------------------------------------------------------- faults: weights


@pytest.mark.parametrize("scale", ["observed", "possible", None])
@pytest.mark.parametrize("steepness", [1e6, 1e308])
@over(EVERYTHING, without=PERCEPTRONS)
def test_fault_17_immense_steepness_gives_a_finite_result(name, steepness, scale):
    if scale != "observed" and name in ANY:
        pytest.skip("has no scale")
    settings = {} if scale == "observed" else {"scale": scale}
    X, y = data_for(name)
    model = fit_quietly(new(name, steepness=steepness, **settings), X, y)
    assert model.easiness_.max() > 0
    assert_all_finite(model)
    nobody_agrees = labels_for(name, np.tile([0.0, 1.0], (40, 1)).repeat(2, axis=0))
    assert_all_finite(fit_quietly(new(name, steepness=steepness, **settings), X, nobody_agrees))


@pytest.mark.parametrize("steepness", [-1.0, np.nan, np.inf, "3", None, True])
@over(EVERYTHING, without=PERCEPTRONS)
def test_fault_17_negative_or_nan_steepness_is_an_error(name, steepness):
    X, y = data_for(name)
    with pytest.raises(ValueError, match=r"steepness(es)? must be a finite number >= 0"):
        new(name, steepness=steepness).fit(X, y)


@over(MODELS)
def test_fault_18_weight_on_fewer_examples_than_features_is_told_with_their_number(name):
    X, truth, _ = crowd(n_features=10)
    matrix = np.column_stack([truth, truth, 1 - truth])
    matrix[:4, 2] = truth[:4]  # four examples that all agree on
    messages = messages_of(new(name, steepness=1e4).fit, X, matrix)
    assert any("weight is on about 4.0 of 80 examples, fewer than the 10 features" in text for text in messages)


# ---------------------------------------------------------------------- faults: annotators


@pytest.mark.parametrize("missing", [0.0, 0.3])
@over([*MODELS, "perceptron by margin", "aggregate"])
def test_fault_19_a_perfect_annotator_is_finite_and_ranked_first(name, missing):
    rng = np.random.default_rng(0)
    X = np.concatenate([np.full(60, -1.0), np.full(60, 1.0)])[:, np.newaxis]  # scores can equal the labels
    truth = X[:, 0] > 0
    noisy = np.where(rng.random((120, 3)) < 0.3, ~truth[:, np.newaxis], truth[:, np.newaxis]).astype(float)
    noisy[rng.random(noisy.shape) < missing] = np.nan
    matrix = np.column_stack([noisy, truth])
    settings = {"ridge": {"l2": 1e-9}, "ridge cv": {"l2s": (1e-9,), "cv": 2}, "regressor": {"l2": 1e-9}}.get(name, {})
    if name not in ("perceptron by margin", "aggregate"):
        settings["steepness"] = 0.0
    model = fit_quietly(new(name, **settings), X, matrix)
    assert model.expertise_.argmax() == 3
    assert_all_finite(model)


@over([*CLASSIFIERS, *PERCEPTRONS, "aggregate"])
def test_fault_20_an_annotator_who_is_always_wrong_is_finite_and_flagged(name):
    clarity = 5.0 if name in ("any tree", "aggregate", *PERCEPTRONS) else 2.0  # others get more from the features
    X, _, labels = crowd(n=120, experts=1, adversaries=1, clarity=clarity)
    model = fit_quietly(new(name), X, labels)
    assert "worse than chance" in model.annotator_flags_["adversary 1"]
    assert "expert 1" not in model.annotator_flags_
    if name not in PERCEPTRONS:  # by alignment, labels and their opposite are alike
        assert np.isfinite(model.expertise_).all()
        assert model.expertise_.argmin() == labels.annotators.tolist().index("adversary 1")


@pytest.mark.parametrize("missing", [0.0, 0.3])
@over(EVERYTHING)
def test_fault_21_annotators_who_copy_each_other_are_no_singularity_and_flagged(name, missing):
    X, y = data_for(name, missing=missing)
    matrix = y.to_matrix().astype(float)
    names = ["a", "b", "c", "d", "e", "copy"]
    copied = labels_for(name, np.column_stack([matrix, matrix[:, 0]]), annotators=names)
    model = fit_quietly(new(name), X, copied)
    assert_all_finite(model)
    assert "same labels as 'a'" in model.annotator_flags_["copy"]
    assert "same labels as 'copy'" in model.annotator_flags_["a"]
    if hasattr(model, "expertise_"):
        assert model.expertise_[0] == pytest.approx(model.expertise_[5])


@pytest.mark.parametrize("seed", range(3))
@over([*CLASSIFIERS, "aggregate"])
def test_fault_22_random_labels_give_a_result_that_tells_whether_it_settled(name, seed):
    rng = np.random.default_rng(seed)
    X, labels = rng.normal(size=(80, 4)), rng.integers(0, 3, (80, 5))
    model = new(name, max_rounds=4)
    messages = messages_of(model.fit, X, labels)
    unsettled = any("expertise still changed" in text or "probabilities still changed" in text for text in messages)
    assert model.converged_ == (not unsettled)
    assert_all_finite(model)


@over([*MODELS, "aggregate"])
def test_fault_23_rounds_that_do_not_settle_are_told_with_the_last_change(name):
    X, y = data_for(name, missing=0.3)
    change = r"[\d.e-]+"
    by_model = rf"after 2 rounds the probabilities still changed by {change} per example \(tol=1e-12\)"
    by_ridge = rf"still changed by {change} \(relative\) after 2 rounds.*tol=1e-12"
    with pytest.warns(CrowdConvergenceWarning, match=by_ridge if name in RIDGE else by_model):
        model = new(name, max_rounds=2, tol=1e-12).fit(X, y)
    assert not model.converged_
    assert model.n_rounds_ == len(model.objective_) == 2


@pytest.mark.parametrize("missing", [0.0, 0.5])
@pytest.mark.parametrize("seed", range(5))
@over(["ridge", "logistic in sample", "aggregate"])
def test_fault_23_the_objective_is_never_worse_silently(name, seed, missing):
    rng = np.random.default_rng(seed)
    X, matrix = rng.normal(size=(40, 6)), rng.integers(0, 2, (40, 6)).astype(float)
    matrix[rng.random(matrix.shape) < missing] = np.nan
    model = new(name, **({"l2": 100.0} if name == "ridge" else {}))
    messages = messages_of(model.fit, X, matrix)
    objective = model.objective_ if name == "ridge" else -model.objective_  # the others maximise
    if name == "ridge":
        assert (objective[-1] - objective.min() > 1e-6) == any("the objective rose" in text for text in messages)
    else:
        assert (np.diff(objective) < 1e-8 * np.abs(objective).max()).all()


# ---------------------------------------------------------------------- faults: sizes


@pytest.mark.parametrize("n_annotators", [1001, 3000])
@over([*CLASSIFIERS, "perceptron", "aggregate"])
def test_fault_24_more_than_a_thousand_labels_on_an_example_do_not_underflow(name, n_annotators):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    right = rng.random((20, n_annotators)) < 0.7
    labels = np.where(right, (X[:, :1] > 0), (X[:, :1] <= 0)).astype(int)
    model = fit_quietly(new(name), X, labels)
    assert np.array_equal(model.consensus_, (X[:, 0] > 0).astype(int))
    assert_all_finite(model)
    if name in RIDGE:
        assert np.abs(model.coef_).max() > 0.1
    if name in CLASSIFIERS:
        assert np.ptp(scores_of(model, X)) > 0.1
        assert np.isfinite(model.consensus(X, labels).confidence).all()


@over(
    EVERYTHING, without=["perceptron by margin"], slow=["ridge", "ridge cv", "regressor", *ANY]
)  # which has all pairs of them
def test_fault_25_memory_is_in_proportion_to_labels_and_not_to_examples_times_annotators(name):
    peaks = []
    for n_examples in (200, 800):
        X, labels = labels_here_and_there(name, n_examples, n_annotators=2 * n_examples)
        settings = {} if name == "perceptron" else {"max_rounds": 3, "tol": 1.0}
        tracemalloc.start()
        fit_quietly(new(name, **settings), X, labels)
        peaks.append(tracemalloc.get_traced_memory()[1] / labels.n_labels)
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0]
    assert peaks[1] < (2500 if name == "ridge cv" else 500)  # a float per example and annotator would be 6,400


def labels_here_and_there(name, n_examples, n_annotators):
    """Five labels per example, whoever of many annotators they are from."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_examples, 2))
    first = rng.integers(0, n_annotators, n_examples)[:, np.newaxis]
    table = {
        "example": np.repeat(np.arange(n_examples), 5),
        "annotator": (first + np.arange(5)).ravel() % n_annotators,
        "label": (X[:, 0] > 0).astype(int).repeat(5) ^ (rng.random(5 * n_examples) < 0.2),
    }
    return X, CrowdLabels.from_table(table, kind=kind_of(name))


# ---------------------------------------------------------------------- faults: identity


@over(EVERYTHING)
def test_fault_26_ids_of_any_kind_are_kept_exactly_as_they_came(name):
    composed, decomposed = unicodedata.normalize("NFC", "é"), unicodedata.normalize("NFD", "é")
    ids = [
        "1",
        "01",
        "1.0",
        "1e0",
        composed,
        decomposed,
        "x" * 10_000,
        " 1",
        "1\n",
        "ﬁ",
        "\u202eid",
        "😀",
        "None",
        "nan",
    ]
    pairs = [(task, worker) for task in ids for worker in ids[::-1]]
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(len(ids), 1)), index=ids, columns=["size"])
    table = {
        "task": [task for task, _ in pairs],
        "worker": [worker for _, worker in pairs],
        "label": [int(X["size"][task] > 0) for task, _ in pairs],
    }
    labels = CrowdLabels.from_table(table, examples=ids, kind=kind_of(name))
    assert labels.examples.tolist() == ids
    assert sorted(labels.annotators.tolist()) == sorted(ids)
    model = fit_quietly(new(name), X, labels)
    assert model.annotators_.tolist() == labels.annotators.tolist()
    assert model.examples_.tolist() == ids


@over(LEARNERS)
def test_fault_27_ids_that_do_not_match_are_an_error_with_counts_and_examples(name):
    X, y = data_for(name, n=6)
    frame = pd.DataFrame(X, index=list("abcdef"), columns=["u", "v", "w"])
    named = labels_for(name, y.to_matrix().astype(float), examples=list("abcxyz"))
    words = r"3 are on both sides, 3 only in X \(such as \['d', 'e', 'f'\]\), 3 only in the labels \(such as \['x', "
    with pytest.raises(AlignmentError, match=words + r".*join=.inner"):
        new(name).fit(frame, named)
    inner, kept = align(frame, named, join="inner")
    assert inner.index.tolist() == kept.examples.tolist() == list("abc")


@over(LEARNERS, slow=ANY)
def test_fault_27_ids_in_another_order_are_matched_in_fit_score_and_consensus(name):
    X, y = data_for(name)
    ids = [f"e{i}" for i in range(80)]
    frame = pd.DataFrame(X, index=ids, columns=["u", "v", "w"])
    named = labels_for(name, y.to_matrix().astype(float), examples=ids)
    shuffled = named[np.random.default_rng(0).permutation(80)]
    one, other = fit_quietly(new(name), frame, named), fit_quietly(new(name), frame, shuffled)
    assert_same_fit(one, other, frame, rtol=0, atol=0)
    assert other.examples_.tolist() == ids
    assert one.score(frame, shuffled) == one.score(frame, named)
    if name in MODELS:
        found = [one.consensus(frame, labels) for labels in (named, shuffled)]
        assert np.array_equal(sure_of(found[0]), sure_of(found[1]))
        assert found[1].examples.tolist() == ids
        weight = pd.Series(np.linspace(0.1, 2, 80), index=ids)
        weighted = [fit_quietly(new(name), frame, named, given) for given in (weight, weight[::-1], dict(weight[::-1]))]
        assert_same_fit(weighted[0], weighted[1], frame, rtol=0, atol=0)
        assert_same_fit(weighted[0], weighted[2], frame, rtol=0, atol=0)
        assert_same_fit(weighted[0], fit_quietly(new(name), frame, named, weight.to_numpy()), frame, rtol=0, atol=0)


@over(LEARNERS, slow=ANY)
def test_fault_28_columns_in_another_order_at_prediction_get_the_feature_name_error(name):
    X, y = data_for(name)
    frame = pd.DataFrame(X, columns=["u", "v", "w"])
    model = fit_quietly(new(name), frame, y)
    assert model.feature_names_in_.tolist() == ["u", "v", "w"]
    for other in (frame[["v", "u", "w"]], frame.rename(columns={"u": "other"})):
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(other)
        if name in MODELS:
            with pytest.raises(ValueError, match="feature names should match"):
                model.consensus(other, y)
    with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 3 features"):
        fit_quietly(new(name), X, y).predict(X[:, :2])
    if name in MODELS:
        with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 3 features"):
            fit_quietly(new(name), X, y).consensus(X[:, :2], y)


def read_only(X):
    X = X.copy()
    X.setflags(write=False)
    return X


KINDS_OF_X = {
    "list": lambda X: X.tolist(),
    "integers": lambda X: X.astype(np.int16),
    "frame": lambda X: pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])]),
    "polars": lambda X: pl.DataFrame(X, schema=[f"f{j}" for j in range(X.shape[1])]),
    "columns first": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=0)[::2],
    "read-only": read_only,
    "float32": lambda X: X.astype(np.float32),
    "csr": sparse.csr_matrix,
    "csc array": sparse.csc_array,
}


@over(LEARNERS, slow=ANY)
def test_fault_29_features_of_every_kind_give_the_same_and_are_not_changed(name):
    X, y = data_for(name, n=60)
    X = np.round(X * 4)
    expected = fit_quietly(steady(name), X, y)
    for kind, make in KINDS_OF_X.items():
        if name in PERCEPTRONS and kind in ("csr", "csc array"):
            continue
        given = make(X)
        before = given.copy() if hasattr(given, "copy") else given.clone() if hasattr(given, "clone") else list(given)
        model = fit_quietly(steady(name), given, y)
        tolerance = 1e-4 if name == "any" else 1e-6  # scikit-learn computes in single precision where it is given it
        assert_same_fit(expected, model, X, given, rtol=10 * tolerance, atol=tolerance)
        if sparse.issparse(given):
            assert (given != before).nnz == 0, kind
        else:
            assert np.array_equal(np.asarray(given), np.asarray(before)), kind


@over(LEARNERS)
def test_fault_29_booleans_work(name):
    X, y = data_for(name, n=60)
    expected = fit_quietly(new(name), (X > 0).astype(float), y)
    assert_same_fit(expected, fit_quietly(new(name), X > 0, y), (X > 0).astype(float), X > 0)


@over(LEARNERS, variants=True)
def test_fault_29_zero_rows_to_predict_are_a_clear_error(fitted, name):
    X, labels, model = fitted[name]
    with pytest.raises(ValueError, match="0 sample"):
        model.predict(X[:0])
    if name in MODELS:
        with pytest.raises(ValueError, match="0 sample"):
            model.consensus(X[:0], labels[:0])


@over(EVERYTHING)
def test_fault_29_labels_are_not_changed(name):
    X, y = data_for(name, missing=0.3)
    matrix = y.to_matrix()
    before = matrix.copy()
    read = read_only(matrix)
    fit_quietly(new(name), X, matrix)
    fit_quietly(new(name), X, read)
    assert np.array_equal(matrix, before, equal_nan=True)
    assert as_labels(before, kind=y.kind) == as_labels(matrix, kind=y.kind)


@pytest.mark.parametrize("whole", [True, False], ids=["CrowdLabels", "matrix with NaN"])
@over(LEARNERS, slow=ANY)
def test_fault_30_labels_with_nan_work_in_scikit_learns_tools_with_a_splitter(name, whole):
    X, y = data_for(name, clarity=5.0, missing=0.5)
    y = y if whole else y.to_matrix().astype(float)
    tools = {"cv": KFold(3, shuffle=True, random_state=0), "error_score": "raise"}
    scorers = [None] if name == "regressor" else [crowd_scorer(), None] if whole else [crowd_scorer()]
    if name not in ("regressor", "any tree"):
        scorers.append(crowd_scorer("ranking"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        for scoring in scorers:
            scores = cross_val_score(new(name, **quick(name)), X, y, scoring=scoring, **tools)
            assert (scores > {"regressor": 0.2, "perceptron by margin": 0.1}.get(name, 0.5)).all()
        grid = {"n_epochs": [1, 5]} if name in PERCEPTRONS else {"max_rounds": [1, 20]}
        search = GridSearchCV(new(name, **quick(name)), grid, **tools).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


# ---------------------------------------------------------------------- the same, written in another way


def splits_for(name, n, order=None):
    """Splits of examples, those of another order of them if one is given; for models with folds by position."""
    fold = np.arange(n) % 5 if order is None else (np.arange(n) % 5)[order]
    splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(5)]
    return {"cv": splits} if name in ANY else {}


@pytest.mark.parametrize("n_classes", [2, 3])
@over(EVERYTHING, variants=True)
def test_permuting_examples_permutes_the_result(name, n_classes):
    if n_classes == 3 and name in ("regressor", *PERCEPTRONS):
        pytest.skip("takes no three classes")
    X, y = data_for(name, missing=0.3, n_classes=n_classes, clarity=3.0)
    order = np.random.default_rng(1).permutation(80)
    one = fit_quietly(steady(name, **splits_for(name, 80)), X, y)
    other = fit_quietly(steady(name, **splits_for(name, 80, order)), X[order], y[order])
    back = np.argsort(order)
    if name in PERCEPTRONS:  # ties keep the order of the rows, which is part of what it learns from
        assert np.array_equal(other.disagreement_[back], one.disagreement_)
        return
    tolerance = 1e-4 if name == "any" else 1e-6  # of the solver in scikit-learn
    assert_same_fit(one, other, X, X[order], rows=back, rtol=tolerance, atol=tolerance)
    assert other.examples_.tolist() == order.tolist()


@over(EVERYTHING)
def test_permuting_annotators_permutes_expertise_and_nothing_else(name):
    X, y = data_for(name, missing=0.3)
    order = np.random.default_rng(1).permutation(5)
    matrix, names = y.to_matrix().astype(float), np.array(list("abcde"))
    one = fit_quietly(steady(name), X, labels_for(name, matrix, annotators=names))
    other = fit_quietly(steady(name), X, labels_for(name, matrix[:, order], annotators=names[order]))
    assert other.annotators_.tolist() == names[order].tolist()
    assert other.annotator_flags_ == one.annotator_flags_
    assert_same_fit(one, other, X, annotators=np.argsort(order), rtol=1e-6, atol=1e-6)


@over(LEARNERS, without=["any tree"])  # which draws features at random
def test_permuting_features_changes_nothing(name):
    X, y = data_for(name, missing=0.3, n_features=4)
    order = np.array([2, 0, 3, 1])
    one, other = fit_quietly(steady(name), X, y), fit_quietly(steady(name), X[:, order], y)
    tolerance = 1e-4 if name == "any" else 1e-6
    assert_same_fit(one, other, X, X[:, order], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("n_classes", [2, 3])
@over([*CLASSIFIERS, *PERCEPTRONS, "aggregate"])
def test_permuting_the_names_of_classes_permutes_the_result(name, n_classes):
    if n_classes == 3 and name in PERCEPTRONS:
        pytest.skip("takes no three classes")
    X, y = data_for(name, missing=0.3, n_classes=n_classes, clarity=3.0)
    swapped = np.array([1, 0] if n_classes == 2 else [2, 0, 1])  # what each class is called in the other fit
    matrix = y.to_matrix().astype(float)
    renamed = np.where(np.isnan(matrix), np.nan, swapped[np.nan_to_num(matrix).astype(int)])
    one = fit_quietly(steady(name, **splits_for(name, 80)), X, matrix)
    other = fit_quietly(steady(name, **splits_for(name, 80)), X, renamed)
    if name in PERCEPTRONS:
        assert np.allclose(other.coef_, -one.coef_, rtol=1e-10)
        return
    tolerance = 1e-4 if name == "any" else 1e-6
    assert_same_fit(one, other, X, classes=swapped, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("seed", range(2))
@over(MODELS, without=["any tree"], variants=True)  # whose leaves have a least number of rows
def test_repeated_rows_are_whole_numbers_of_sample_weight(name, seed):
    X, y = data_for(name, missing=0.3, n_annotators=9, seed=seed)
    assert y.labels_per_example.min() > 1  # a single label has the mean disagreement of all
    matrix, weight = y.to_matrix().astype(float), np.random.default_rng(2).integers(1, 4, 80)
    rows = np.repeat(np.arange(80), weight)
    fold = (np.arange(80) % 5)[rows]
    repeated_splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(5)]
    settings = {} if name == "regressor" else {"steepness": "auto"}
    one = fit_quietly(steady(name, **settings, **splits_for(name, 80)), X, labels_for(name, matrix), weight)
    splits = {"cv": repeated_splits} if name in ANY else {}
    other = fit_quietly(steady(name, **settings, **splits), X[rows], labels_for(name, matrix[rows]))
    first = np.searchsorted(rows, np.arange(80))
    # An estimator's probabilities are smoothed by the number of rows that it has learnt from.
    tolerance = 5e-3 if name == "any" else 1e-6
    assert_same_fit(one, other, X, X[rows], rows=first, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_matrix])
@over([*RIDGE, *LOGISTIC, "any"])
def test_sparse_features_give_the_result_of_dense_ones(name, make):
    X, y = data_for(name, missing=0.3, n_features=6)
    X[np.abs(X) < 0.7] = 0.0
    one, other = fit_quietly(steady(name), X, y), fit_quietly(steady(name), make(X), y)
    tolerance = 1e-4 if name == "any" else 1e-7
    assert_same_fit(one, other, X, make(X), rtol=tolerance, atol=tolerance)
    found = [one.consensus(X, y), other.consensus(make(X), y)]
    assert np.allclose(sure_of(found[0]), sure_of(found[1]), atol=tolerance)


@over(LEARNERS)
def test_single_precision_gives_the_result_of_double_precision(name):
    X, y = data_for(name, missing=0.3)
    X = X.astype(np.float32)
    one, other = fit_quietly(steady(name), X.astype(np.float64), y), fit_quietly(steady(name), X, y)
    tolerance = 1e-3 if name == "any" else 1e-6  # scikit-learn then computes in single precision
    assert_same_fit(one, other, X.astype(np.float64), X, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("scale", [1e155, 1e-160, 1e60, 1e-60])
@over(LOGISTIC)
def test_features_of_any_size_give_the_result_of_features_around_one(name, scale):
    X, y, one = reference(name, missing=0.3)
    power = 2.0 ** np.round(np.log2(scale))  # so that no digit is lost
    other = fit_quietly(new(name), X * power, y)
    assert_same_fit(one, other, X, X * power, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("scale", [1e60, 1e-60])
@over(RIDGE)
def test_ridge_features_of_any_size_give_the_result_of_features_around_one_with_l2_in_their_unit(name, scale):
    X, y = data_for(name, missing=0.3)
    power = 2.0 ** np.round(np.log2(scale))
    settings = {"l2s": (power**2,)} if name == "ridge cv" else {"l2": power**2}
    plain = {"l2s": (1.0,)} if name == "ridge cv" else {"l2": 1.0}
    one, other = fit_quietly(new(name, **plain), X, y), fit_quietly(new(name, **settings), X * power, y)
    assert_same_fit(one, other, X, X * power, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("scale", [1e-160, 1e155, 1e300])
@over(LEARNERS, without=ANY)
def test_features_that_cannot_be_squared_are_learnt_from_or_refused(name, scale):
    X, y = data_for(name, missing=0.3, n=40)
    try:
        model = fit_quietly(new(name), X * scale, y)
    except DataError as error:
        refused = str(error)
    else:
        refused = None
        assert np.isfinite(scores_of(model, X * scale)).all()
    assert refused is None or "escale the features" in refused


@pytest.mark.parametrize("seed", range(2))
@over([*RIDGE, *LOGISTIC])
def test_a_jitter_of_the_last_digits_changes_next_to_nothing(name, seed):
    X, y = data_for(name, missing=0.3, seed=seed)
    settings = {} if name == "regressor" else {"steepness": "auto"}
    jitter = 1e-13 * np.random.default_rng(seed).normal(size=X.shape)
    one, other = fit_quietly(steady(name, **settings), X, y), fit_quietly(steady(name, **settings), X + jitter, y)
    assert one.steepness_ == other.steepness_
    assert_same_fit(one, other, X, rtol=1e-6, atol=1e-6)


# ---------------------------------------------------------------------- the consensus on other examples


@quiet
@over(MODELS, variants=True)
def test_the_consensus_is_that_of_the_features_and_labels_given_not_of_the_fit(fitted, name):
    X, labels, model = fitted[name]
    here = sure_of(model.consensus(X, labels))
    assert np.abs(sure_of(model.consensus(-X, labels)) - here).max() > 0.05
    opposite = labels_for(name, 1 - labels.to_matrix().astype(float), annotators=labels.annotators)
    assert np.abs(sure_of(model.consensus(X, opposite)) - here).max() > 0.5
    # With the codes of the fit, but other names of classes or annotators, it is another question.
    renamed = labels_for(name, labels.to_matrix().astype(float), annotators=labels.annotators[::-1])
    assert np.abs(sure_of(model.consensus(X, renamed)) - here).max() > 1e-3


@quiet
@over(MODELS, variants=True)
def test_annotators_are_matched_by_name_in_the_consensus(fitted, name):
    X, labels, model = fitted[name]
    matrix, order = labels.to_matrix().astype(float), np.array([3, 1, 4, 0, 2])
    here = sure_of(model.consensus(X, labels))
    moved = labels_for(name, matrix[:, order], annotators=labels.annotators[order])
    assert np.allclose(sure_of(model.consensus(X, moved)), here, atol=1e-12)
    fewer = np.where(np.arange(5) == 2, np.nan, matrix)
    by_four = labels_for(name, np.delete(matrix, 2, axis=1), annotators=np.delete(labels.annotators, 2))
    blanked = labels_for(name, fewer, annotators=labels.annotators)
    found = [sure_of(model.consensus(X, each)) for each in (by_four, blanked)]
    assert np.allclose(found[0], found[1], atol=1e-12)
    assert np.abs(found[0] - here).max() > 0.01


@quiet
@over(MODELS, variants=True)
def test_an_unknown_annotator_counts_as_the_average_of_the_crowd_and_a_crowd_of_unknown_ones_is_an_error(fitted, name):
    X, labels, model = fitted[name]
    matrix = labels.to_matrix().astype(float)
    more = labels_for(name, np.column_stack([matrix, np.ones(80)]), annotators=[*labels.annotators, "zoe"])
    found, before = model.consensus(X, more), model.consensus(X, labels)
    assert np.isfinite(sure_of(found)).all()
    towards = sure_of(found)[..., -1] - sure_of(before)[..., -1] if name != "regressor" else found.label - before.label
    assert (towards >= -1e-12 if name != "regressor" else (towards >= -1e-12) | (before.label > 1)).all()
    with pytest.raises(LabelError, match=r"none of the 5 annotators .* Name them as in the fit"):
        model.consensus(X, labels_for(name, matrix, annotators=list("vwxyz")))


@quiet
@over(MODELS, variants=True)
def test_examples_without_labels_have_the_models_score_in_the_consensus(fitted, name):
    X, labels, model = fitted[name]
    matrix = labels.to_matrix().astype(float)
    matrix[[3, 7]] = np.nan
    for use_model in (True, False):
        found = model.consensus(X, labels_for(name, matrix, annotators=labels.annotators), use_model=use_model)
        assert np.allclose(np.asarray(found.label[[3, 7]], dtype=float), model.predict(X[[3, 7]]))
        nothing = labels_for(name, np.full((80, 5), np.nan), annotators=labels.annotators)
        nothing = nothing.with_classes(model.classes_) if name != "regressor" else nothing
        assert np.allclose(np.asarray(model.consensus(X, nothing, use_model=use_model).label, float), model.predict(X))


@quiet
@over(MODELS, variants=True)
def test_what_the_consensus_gives_is_not_the_models_own(fitted, name):
    X, labels, model = fitted[name]
    found = model.consensus(X, labels)
    before = sure_of(found).copy()
    with pytest.raises(ValueError, match="read-only"):
        found.label[:] = found.label[::-1]
    with pytest.raises(ValueError, match="read-only"):
        model.consensus_[:] = model.consensus_[::-1]
    assert np.array_equal(sure_of(model.consensus(X, labels)), before)


# ---------------------------------------------------------------------- sample_weight


@over(MODELS)
def test_one_number_as_sample_weight_counts_for_all_in_fit_and_score(name):
    X, y = data_for(name)
    one, other = fit_quietly(new(name), X, y, 2.0), fit_quietly(new(name), X, y, np.full(80, 2.0))
    assert_same_fit(one, other, X, rtol=0, atol=0)
    assert np.array_equal(sure_of(one.consensus(X, y)), sure_of(other.consensus(X, y)))
    assert one.score(X, y, 2.0) == pytest.approx(one.score(X, y))


@pytest.mark.parametrize("weight", [5e-324, 1e-200, 1e308])
@over(MODELS, variants=True)
def test_tiny_and_huge_weights_give_a_finite_result_without_stray_warnings(name, weight):
    X, y, plain = reference(name, n=60)
    model = fit_quietly(new(name), X, y, np.full(60, weight))  # any other warning is an error
    assert_all_finite(model)
    assert_same_fit(plain, model, X, rtol=1e-8, atol=1e-8)
    mixed = np.ones(60)
    mixed[::7] = weight
    assert_all_finite(fit_quietly(new(name), X, y, mixed))


@over(MODELS)
def test_examples_of_weight_zero_take_no_part(name):
    X, y = data_for(name)
    weight = np.where(np.arange(80) % 8 == 3, 0.0, 1.0)
    learnt = np.flatnonzero(weight)
    model, without = fit_quietly(new(name), X, y, weight), fit_quietly(new(name), X[learnt], y[learnt])
    assert_same_fit(without, model, X[learnt], X, rows=learnt, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (-np.ones(80), "sample_weight must be finite and at least 0"),
        (np.full(80, np.nan), "sample_weight must be finite and at least 0"),
        (np.ones(79), r"sample_weight.shape == \(79,\), expected \(80,\)"),
        (["1"] * 80, "sample_weight must be numbers"),
        (np.zeros(80), "the sample_weight of every labelled example is zero"),
    ],
)
@over(MODELS)
def test_weights_that_make_no_sense_are_refused(name, weight, message):
    X, y = data_for(name)
    with pytest.raises(ValueError, match=message):
        new(name).fit(X, y, weight)


# ---------------------------------------------------------------------- copies, interrupts, threads, memory


@over(EVERYTHING, variants=True)
def test_pickles_copies_and_clones_are_the_same(fitted, name):
    X, labels, model = fitted[name]
    for same in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert_same_fit(model, same, X, rtol=0, atol=0)
        assert same.annotator_flags_ == model.annotator_flags_
        if name in MODELS:
            assert np.array_equal(sure_of(same.consensus(X, labels)), sure_of(model.consensus(X, labels)))
    if name != "aggregate":
        twin = clone(model)
        assert not any(attribute.endswith("_") for attribute in vars(twin))
        assert_same_fit(model, fit_quietly(twin, X, labels), X, rtol=0, atol=0)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@over(LEARNERS)
def test_a_refit_that_does_not_come_to_its_end_leaves_the_model_as_it_was(name, error, monkeypatch):
    X, y, model = reference(name, n=40)
    model = copy.deepcopy(model)
    before, score = dict(vars(model)), scores_of(model, X)

    def interrupted(*args, **kwargs):
        raise error

    monkeypatch.setattr(type(model), "_compare" if name in PERCEPTRONS else "_keep", interrupted)
    with pytest.raises(error):
        fit_quietly(model, -X[:, ::-1][:, :2], y[::-1])
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[attribute] is value for attribute, value in before.items())
    assert np.array_equal(scores_of(model, X), score)
    monkeypatch.undo()
    assert_same_fit(fit_quietly(new(name), -X, y), fit_quietly(model, -X, y), X, rtol=0, atol=0)


@over(EVERYTHING)
def test_a_fit_with_bad_data_leaves_the_model_as_it_was(name):
    X, _, model = reference(name, n=40)
    model = copy.deepcopy(model)
    before = dict(vars(model))
    with pytest.raises(LabelError, match="no label"):
        fit_quietly(model, X[:, :2], labels_for(name, np.full((40, 3), np.nan)))
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[attribute] is value for attribute, value in before.items())


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


@over(EVERYTHING)
def test_fits_in_four_threads_at_once_have_the_bits_of_one_after_the_other_and_give_blas_its_threads_back(name):
    data = [data_for(name, n=40 + 10 * k, seed=k) for k in range(4)]
    with warnings.catch_warnings(), threadpool_limits(2, "blas"):
        warnings.simplefilter("ignore", CrowdWarning)
        before = blas_threads()
        alone = [new(name, **quick(name)).fit(X, y) for X, y in data]
        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(lambda pair: new(name, **quick(name)).fit(*pair), data))
        assert blas_threads() == before
    for (X, _), one, other in zip(data, alone, together, strict=True):
        assert_same_fit(one, other, X, rtol=0, atol=0)


def fits_on_threads(name, X, y, monkeypatch, **settings):
    """The same fit with one and with two threads, of BLAS and of our own."""
    fits = []
    for n_threads in (1, 2):
        monkeypatch.setattr(features, "available_cores", lambda n=n_threads: n)
        monkeypatch.setattr(features, "_PARALLEL_FROM", 1.0)
        with threadpool_limits(n_threads, "blas"):
            fits.append(fit_quietly(new(name, **settings), X, y))
    return fits


@pytest.mark.parametrize("shape", [(80, 4), (560, 520)], ids=["few columns", "many columns"])
@over(EVERYTHING)
def test_threads_change_no_bit(name, shape, monkeypatch):
    X, y = data_for(name, n=shape[0], n_features=shape[1], missing=0.3)
    settings = quick(name) | ({} if name in PERCEPTRONS else {"max_rounds": 2})
    settings |= {"l2s": (100.0,), "cv": 2} if name == "ridge cv" else {}
    one, two = fits_on_threads(name, X, y, monkeypatch, **settings)
    assert_same_fit(one, two, X, rtol=0, atol=0)


@pytest.mark.slow
def test_threads_change_no_bit_of_a_large_logistic_model(monkeypatch):
    X, y = data_for("logistic", n=40_000, n_features=100, missing=0.3)
    one, two = fits_on_threads("logistic", X, y, monkeypatch, max_rounds=5)
    assert np.array_equal(one.coef_, two.coef_)
    assert np.array_equal(one.consensus_proba_, two.consensus_proba_)


@over(EVERYTHING, slow=[*LOGISTIC, *ANY, "ridge cv", "regressor", "perceptron by margin"])
def test_many_fits_take_no_more_memory_than_one(name):
    X, y = data_for(name, n=200)
    settings = quick(name) | ({} if name in PERCEPTRONS else {"max_rounds": 1})

    def kept_after(n_fits):
        for _ in range(n_fits):
            model = fit_quietly(new(name, **settings), X, y)
        size = len(pickle.dumps(model))
        del model
        gc.collect()
        return tracemalloc.get_traced_memory()[0], size

    kept_after(1)
    tracemalloc.start()
    first, size = kept_after(1)
    last, _ = kept_after(20)
    tracemalloc.stop()
    assert last - first < min(4 * size, 60_000)  # caches of Python grow a little; 20 models are 20 times the size


def test_aggregating_many_annotators_of_many_classes_takes_the_memory_of_a_few_of_their_matrices(monkeypatch):
    monkeypatch.setattr(confusion, "_BLOCK", 2**14)
    rng = np.random.default_rng(0)
    n_annotators, n_classes = 200, 50
    truth = rng.integers(0, n_classes, 3000)
    answered = np.repeat(np.arange(3000), 5), (rng.integers(0, n_annotators, (3000, 1)) + np.arange(5)).ravel()
    label = np.where(rng.random(15_000) < 0.7, truth[answered[0]], rng.integers(0, n_classes, 15_000))
    table = {"example": answered[0], "annotator": answered[1] % n_annotators, "label": label}
    labels = CrowdLabels.from_table(table)
    tracemalloc.start()
    fit_quietly(new("aggregate", hard_examples=True, max_rounds=9), None, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6 * 8 * 2 * n_annotators * n_classes**2  # on easy and on hard examples


# ---------------------------------------------------------------------- warnings and settings


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("missing", [0.0, 0.4])
@over(EVERYTHING)
def test_an_ordinary_crowd_is_no_reason_for_a_warning(name, missing, seed):
    X, y = data_for(name, n=100, n_annotators=9, missing=missing, seed=seed)
    assert messages_of(new(name).fit, X, y) == []


@over(MODELS, slow=ANY)
def test_curricula_that_settle_do_so_with_default_settings(name):
    X, y = data_for(name, n=100, missing=0.3)
    for curriculum in (Smooth(), Fading(c=3.0), SelfPaced()):
        assert messages_of(new(name, curriculum=curriculum, random_state=0).fit, X, y) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_forests_are_quiet_with_default_settings(seed):
    X, y = data_for("any", n=100, n_annotators=9, missing=0.3, seed=seed)
    forest = RandomForestClassifier(20)
    assert messages_of(new("any", estimator=forest).fit, X, y) == []


ODD = {
    "max_rounds": [1.5, "5", True, 0, None],
    "tol": [-1.0, np.nan, "a", None],
    "random_state": ["a", 1.5, -1, True],
    "l2": [-1.0, np.nan, "1", None],
    "l2s": [(-1,), (np.nan,), (), "auto", 3.0],
    "steepnesses": [(np.nan,), (-1.0,), (), 2.0],
    "cross_fit": ["5", 2.5, 1, -1, None, True],
    "class_prior": [-1.0, "a", None],
    "cv": ["5", 2.5, 1, 0, None, True, 1000],
    "hard_examples": [1, "yes", None],
    "joint": [0, "yes"],
    "init": ["mode", None, 1],
    "curriculum": ["smooth", 3.0],
    "annotator_model": ["shared", Shared],
    "class_weight": ["even", 3.0, {0: -1.0}],
    "scale": ["largest", 1.0],
    "fit_intercept": ["yes", None],
    "n_epochs": [0, 1.5, "5"],
    "max_regions": [0, 1.5],
    "order": ["size", None],
    "average": ["yes"],
}
SETTINGS = {
    "aggregate": ["max_rounds", "tol", "class_prior", "hard_examples", "annotator_model", "scale"],
    **{name: list(new(name).get_params(deep=False)) for name in LEARNERS},
}


@over(EVERYTHING)
def test_odd_settings_are_refused_under_their_own_name(name):
    X, y = data_for(name, n=40)
    for setting in SETTINGS[name]:
        for odd in ODD.get(setting, []):
            if setting == "init" and name in (*LOGISTIC, *ANY) and odd == "mode":
                odd = "majority"
            with pytest.raises(ValueError, match=setting):
                fit_quietly(new(name, **{setting: odd}), X, y)


@over([*LOGISTIC, *ANY, "aggregate"])
def test_an_odd_strength_of_an_annotator_model_is_refused_under_its_name(name):
    X, y = data_for(name, n=40)
    for model in (Shared, Confusion, OneCoin):
        for strength in (None, 0.0, -1.0, np.nan, "3"):
            with pytest.raises(ValueError, match="strength"):
                new(name, annotator_model=model(strength=strength)).fit(X, y)


# ---------------------------------------------------------------------- truths

TAKE_TRUTH = [*MODELS, "aggregate"]


def some_truth(name, n_known=12, **options):
    """Features, labels and the answers of the first examples, None for the others."""
    options = {"missing": 0.3} | options
    X, y = data_for(name, **options)
    truth = crowd(**options)[1]
    answers = [float(value) if name == "regressor" else int(value) for value in truth]
    return X, y, [*answers[:n_known], *[None] * (len(X) - n_known)]


@over(TAKE_TRUTH, slow=[*ANY, "ridge cv"])
def test_truth_that_is_missing_everywhere_changes_no_bit(name):
    X, y, _ = some_truth(name)
    one, other = (fit_quietly(new(name, **quick(name)), X, y, truth=truth) for truth in (None, [None] * len(X)))
    assert np.array_equal(sure(one), sure(other))
    assert np.array_equal(one.expertise_, other.expertise_)
    assert one.truth_check_ is None
    assert other.truth_check_ is None


@over(TAKE_TRUTH, slow=[*ANY, "ridge cv"])
def test_known_answers_are_certain_however_they_are_given(name):
    X, y, truth = some_truth(name)
    ids = [f"e{i}" for i in range(len(X))]
    labels = labels_for(name, y.to_matrix().astype(float), examples=ids)
    answers = {ids[i]: truth[i] for i in range(12)}
    backwards = pd.Series(answers).iloc[::-1]
    assert known_answers(backwards.to_frame("label"), X, labels).tolist()[0] == truth[0]
    table = pl.DataFrame({"task": [*backwards.index, "e0"], "label": [*backwards, truth[0]]})
    by_position = fit_quietly(new(name, **quick(name)), X, labels, truth=truth)
    for given in (answers, backwards, table):
        by_id = fit_quietly(new(name, **quick(name)), X, labels, truth=given)
        assert np.array_equal(sure(by_id), sure(by_position))
    assert by_position.consensus_[:12].tolist() == truth[:12]
    assert by_position.truth_check_.n == 12
    certain = by_position.consensus_std_ if name == "regressor" else 1 - by_position.consensus_confidence_
    assert (certain[:12] == 0).all()
    assert (certain[12:] > 0).any()


@over(TAKE_TRUTH, without=["any tree"], slow=[*ANY, "ridge cv"])  # trees take the first of equally good splits
def test_permuting_examples_with_truth_permutes_the_result(name):
    X, y, truth = some_truth(name, n_known=25, missing=0.0)
    order = np.random.default_rng(1).permutation(80)
    settings = steady(name, **quick(name), **splits_for(name, 80))
    one = fit_quietly(settings, X, y, truth=truth)
    other = fit_quietly(
        steady(name, **quick(name), **splits_for(name, 80, order)), X[order], y[order], truth=[truth[i] for i in order]
    )
    assert_same_fit(one, other, X, X[order], rows=np.argsort(order), rtol=1e-4, atol=1e-4)
    assert other.truth_check_.n == one.truth_check_.n == 25


@over(TAKE_TRUTH, slow=[*ANY, "ridge cv"])
def test_all_answers_may_be_known_and_may_contradict_every_annotator(name):
    X, y, truth = some_truth(name, n_known=80)
    wrong = [1 - answer for answer in truth]
    for answers in (truth, wrong):
        model = fit_quietly(new(name, **quick(name)), X, y, truth=answers)
        assert model.consensus_.tolist() == answers
        assert model.truth_check_.n == 80
        assert np.isfinite(scores_of(model, X)).all()
        assert np.isfinite(model.expertise_).all()
        if name != "regressor":
            assert (model.accuracy_.mean() > 0.5) == (answers is truth)
            assert (model.predict(X) == answers).mean() > 0.7 if name != "aggregate" else True


@over(TAKE_TRUTH, slow=[*ANY, "ridge cv"])
def test_one_truth_is_held_and_leaves_the_rest_in_order(name):
    X, y, truth = some_truth(name, n_known=1)
    model, without = (fit_quietly(new(name, **quick(name)), X, y, truth=given) for given in (truth, None))
    assert model.consensus_[0] == truth[0]
    assert model.truth_check_.n == 1
    assert np.isfinite(sure(model)).all()
    if name != "regressor":
        assert (model.consensus_ == without.consensus_).mean() > 0.9
        assert model.consensus_confidence_[1:].mean() > 0.7


@quiet
@over(TAKE_TRUTH, slow=[*ANY, "ridge cv"])
def test_the_truth_of_an_example_without_labels_is_its_consensus_and_teaches_nothing(name):
    X, y, _ = some_truth(name)
    matrix = y.to_matrix().astype(float)
    matrix[3] = np.nan
    labels = labels_for(name, matrix)
    with_truth, without = (new(name, **quick(name)).fit(X, labels, truth=truth) for truth in ({3: 1}, None))
    assert with_truth.consensus_[3] == 1
    assert with_truth.truth_check_ is None
    assert np.array_equal(np.delete(sure(with_truth), 3, axis=0), np.delete(sure(without), 3, axis=0))
    assert np.array_equal(with_truth.expertise_, without.expertise_)


@over(TAKE_TRUTH)
def test_truth_that_makes_no_sense_is_an_error(name):
    X, y, truth = some_truth(name)
    ids = [f"e{i}" for i in range(len(X))]
    labels = labels_for(name, y.to_matrix().astype(float), examples=ids)

    def fit(given):
        return new(name, **quick(name)).fit(X, labels, truth=given)

    with pytest.raises(LabelError, match="truth must be" if name == "regressor" else "found 'cat' for example 'e2'"):
        fit({"e2": "cat"})
    with pytest.raises(AlignmentError, match=r"such as .*nobody"):
        fit({"e2": 1, "nobody": 0})
    with pytest.raises(AlignmentError, match="name each example once; 1 of its ids are repeated"):
        fit(pd.Series([0, 1], index=["e1", "e1"]))
    with pytest.raises(LabelError, match="truth has two answers for example 'e1': 0 and 1"):
        fit(pd.DataFrame({"example": ["e1", "e1"], "label": [0, 1]}))
    with pytest.raises(LabelError, match=r"must have one column, .* or two"):
        fit(pd.DataFrame({"example": ["e1"], "label": [0], "kind": [1]}))
    with pytest.raises(LabelError, match="truth must be one per example, 80; got 3"):
        fit(truth[:3])


@pytest.mark.parametrize(
    "curriculum", [SelfPaced(0.5, 1.3), *(pytest.param(c, marks=pytest.mark.slow) for c in (Fading(1.5), Smooth(2.0)))]
)
@over(CLASSIFIERS, slow=[*ANY, "ridge cv"])
def test_known_examples_count_in_full_whatever_the_disagreement_and_the_curriculum(name, curriculum):
    """Annotators toss coins: all that can be learnt is in the known half, which disagreement would leave out."""
    X, y, truth = some_truth(name, n_known=40, missing=0.0)
    coins = np.random.default_rng(0).integers(0, 2, y.shape)
    settings = {**quick(name), "steepness": 100.0, "curriculum": curriculum, "random_state": 0}
    model = fit_quietly(new(name, **settings), X, labels_for(name, coins.astype(float)), truth=truth)
    assert (model.predict(X[:40]) == truth[:40]).mean() > 0.8
