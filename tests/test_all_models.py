"""What all models promise alike: the same attributes, every fault, the same result however data are written."""

import tracemalloc
import unicodedata
import warnings

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
    quiet,
    scores_of,
    steady,
    sure,
)
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.tree import DecisionTreeClassifier

from crowdwise import CrowdLabels, align, crowd_scorer, easiness
from crowdwise.exceptions import AlignmentError, CrowdConvergenceWarning, CrowdWarning, DataError, LabelError
from crowdwise.labels.align import as_labels

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


@over(MODELS)
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


@over(EVERYTHING)
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


@over([*CLASSIFIERS, "aggregate"])
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


@over([*MODELS, "aggregate"])
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


@over([*RIDGE, *LOGISTIC, "any"])
def test_linear_models_have_coefficients(fitted, name):
    X, _, model = fitted[name]
    inner = model.estimator_ if name == "any" else model
    assert inner.coef_.shape == ((3,) if name == "regressor" else (1, 3))
    expected = X @ np.ravel(inner.coef_) + np.ravel(inner.intercept_)
    assert np.allclose(scores_of(model, X), expected, atol=1e-12)


@over([name for name in CLASSIFIERS])
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
@over(MODELS)
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
    "logistic": {"l2": 1e-6},
    "any": {"estimator": LogisticRegression(C=1e6, max_iter=10_000)},
    "any tree": {"estimator": DecisionTreeClassifier()},
}


@quiet
@over(MEMORISERS)
def test_the_consensus_is_out_of_fold_so_a_model_that_memorises_does_not_confirm_the_labels(name):
    rng = np.random.default_rng(0)
    X, matrix = rng.normal(size=(60, 150)), rng.integers(0, 2, (60, 5)).astype(float)
    labels = labels_for(name, matrix)
    model = new(name, steepness=0.0, **MEMORISERS[name]).fit(X, labels)
    alone, towards = sign_of(model.label_consensus_), "consensus_" if name == "regressor" else "consensus_proba_"
    share = lambda found, before: np.mean(alone * (found - before) > 1e-9)  # noqa: E731 # how often the label is confirmed
    if name == "regressor":
        out_of_fold = share(model.consensus_, model.label_consensus_)
        in_sample = share(model.consensus(X, labels).label, model.label_consensus_)
        # A model that reproduces labels draws the consensus nowhere.
        assert np.abs(model.predict(X) - model.label_consensus_).max() < 1e-3
        assert np.abs(model.consensus_ - model.label_consensus_).mean() > 100 * np.abs(
            model.consensus(X, labels).label - model.label_consensus_
        ).mean()
        return
    assert np.array_equal(model.predict(X), model.label_consensus_)
    out_of_fold = share(getattr(model, towards)[:, 1], model.label_proba_[:, 1])
    in_sample = share(model.consensus(X, labels).proba[:, 1], model.label_proba_[:, 1])
    assert in_sample > 0.9
    assert out_of_fold < 0.75


def sign_of(label):
    return np.where(np.asarray(label, dtype=float) > 0.5, 1, -1)
