"""The models by name, crowds for them and how to compare two fits: for tests that run over all models."""

import warnings
from functools import cache, partial

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from crowdwise import (
    CrowdClassifier,
    CrowdLabels,
    CrowdLogisticClassifier,
    CrowdRidgeClassifier,
    CrowdRidgeClassifierCV,
    CrowdRidgeRegressor,
    aggregate,
    simulate_annotators,
)
from crowdwise.exceptions import CrowdWarning
from crowdwise.labels._align import as_labels
from crowdwise.paper.theory import EasyFirstPerceptron


class LabelsAlone:
    """`aggregate` with the methods and attributes of an estimator; it does not look at features."""

    def __init__(self, **settings):
        self.settings = settings

    def fit(self, X, y, truth=None):
        found = aggregate(as_labels(y), truth=truth, **self.settings)
        self.results_ = found
        vars(self).update(found.attributes())
        return self

    def consensus_frame(self):
        return self.results_.consensus_frame()

    def annotators_frame(self):
        return self.results_.annotators_frame()


_MAKERS = {
    "ridge": CrowdRidgeClassifier,
    "ridge cv": CrowdRidgeClassifierCV,
    "regressor": CrowdRidgeRegressor,
    "logistic": CrowdLogisticClassifier,
    "logistic in sample": partial(CrowdLogisticClassifier, cross_fit=0),
    "any": CrowdClassifier,
    "any tree": partial(CrowdClassifier, estimator=DecisionTreeClassifier(min_samples_leaf=5)),
    "perceptron": EasyFirstPerceptron,
    "perceptron by margin": partial(EasyFirstPerceptron, order="margin"),
    "aggregate": LabelsAlone,
}
RIDGE = ["ridge", "ridge cv", "regressor"]
LOGISTIC = ["logistic", "logistic in sample"]
ANY = ["any", "any tree"]
PERCEPTRONS = ["perceptron", "perceptron by margin"]
# Those with the attributes of FitResults, `sample_weight` and `consensus`.
MODELS = [*RIDGE, *LOGISTIC, *ANY]
CLASSIFIERS = [name for name in MODELS if name != "regressor"]
# Those that look at features.
LEARNERS = [*MODELS, *PERCEPTRONS]
EVERYTHING = [*LEARNERS, "aggregate"]

quiet = pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdWarning")


# Variants of another model: most tests of them are for the slow run.
_VARIANTS = {"logistic in sample": "logistic", "any tree": "any"}


def over(names, *, without=(), variants=False, slow=()):
    """Run a test with each of some models as `name`, with variants of models in quick runs too if `variants`."""
    names = [name for name in names if name not in without]
    later = {name for name in names if _VARIANTS.get(name) in names and not variants} | set(slow)
    marked = [pytest.param(name, marks=pytest.mark.slow) if name in later else name for name in names]
    return pytest.mark.parametrize("name", marked)


def quick(name):
    """Settings with which a model has less to find out, for tests that are not about what it finds."""
    if name in LOGISTIC:
        return {"l2": 1.0}
    return {"max_rounds": 1} if name in ANY else {}


def new(name, **settings):
    """An unfitted model. `steepness` is `steepnesses` for one that chooses it."""
    if name == "ridge cv" and "steepness" in settings:
        settings["steepnesses"] = (settings.pop("steepness"),)
    return _MAKERS[name](**settings)


def steady(name, **settings):
    """A model that arrives at the same result to many digits, however it gets there.

    Folds are by content, or given by `cv` as splits; what scikit-learn solves is solved to many digits.
    """
    if name == "any":
        settings = {"estimator": LogisticRegression(tol=1e-10, max_iter=10_000)} | settings
    if name in LOGISTIC:
        settings = {"tol": 1e-8, "max_rounds": 1000} | settings
    return new(name, **settings)


def crowd(n=80, n_annotators=5, n_features=3, missing=0.0, seed=0, n_classes=2, **options):
    """Features, truth and labels of annotators who err near the boundary."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    if n_classes == 2:
        truth = (X[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(int)
    else:
        truth = (X @ rng.normal(size=(n_features, n_classes))).argmax(axis=1)
    options = {"clarity": 2.0, "random_state": seed, "missing": missing} | options
    return X, truth, simulate_annotators(X, truth, n_annotators, **options)


def scale_of(name):
    return "interval" if name == "regressor" else "nominal"


def labels_for(name, matrix, **names):
    """Labels of the kind that a model learns from."""
    return CrowdLabels.from_matrix(matrix, scale=scale_of(name), **names)


def data_for(name, **options):
    """Features and labels; classes are ratings of 0 and 1 for a regressor."""
    X, _, labels = crowd(**options)
    if name == "regressor":
        return X, labels_for(name, labels.to_matrix().astype(float), annotators=labels.annotators)
    return X, labels


def fit_quietly(model, X, y, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        return model.fit(X, y, *args, **kwargs)


def reference(name, **options):
    """Features, labels and a model with default settings that was fitted to them once for all tests."""
    X, y, model = _reference(name, **options)
    return X.copy(), y, model


@cache
def _reference(name, **options):
    X, y = data_for(name, **options)
    return X, y, fit_quietly(new(name), X, y)


def messages_of(call, *args, **kwargs):
    """The warnings of a call, as text."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(*args, **kwargs)
    return [str(warning.message) for warning in caught]


def scores_of(model, X):
    """Numbers that say what a fitted model has learned; none for `aggregate`."""
    if isinstance(model, LabelsAlone):
        return np.zeros(len(model.examples_))
    for method in ("decision_function", "predict_proba"):
        if hasattr(model, method):
            return np.asarray(getattr(model, method)(X))
    return model.predict(X)


def sure(model):
    """How sure the consensus is, in numbers; the consensus itself for ratings and where there are no probabilities."""
    return getattr(model, "consensus_proba_", model.consensus_)


def assert_all_finite(model):
    for name, value in vars(model).items():
        if name.endswith("_") and isinstance(value, np.ndarray) and value.dtype.kind == "f":
            assert np.isfinite(value).all(), name


def assert_same_fit(one, other, X, X_of_other=None, *, rtol=1e-8, atol=1e-10, annotators=None, rows=None, classes=None):
    """The same scores, expertise and consensus.

    `annotators`, `rows` and `classes` say where those of `one` are in `other`; all in the same places by default.
    """
    close = partial(np.testing.assert_allclose, rtol=rtol, atol=atol)
    annotators, rows = (slice(None) if places is None else places for places in (annotators, rows))
    columns = slice(None) if classes is None else classes
    score, again = scores_of(one, X), scores_of(other, X if X_of_other is None else X_of_other)
    sign = -1 if classes is not None and score.ndim == 1 and list(classes) == [1, 0] else 1
    close(sign * again[rows] if again.ndim == 1 else again[rows][:, columns], score, err_msg="scores")
    for attribute in ("expertise_", "accuracy_"):
        if hasattr(one, attribute):
            close(getattr(other, attribute)[annotators], getattr(one, attribute), err_msg=attribute)
    if hasattr(one, "consensus_proba_"):
        close(other.consensus_proba_[rows][:, columns], one.consensus_proba_, err_msg="consensus_proba_")
        proba, again = (model.results_.label_consensus.proba for model in (one, other))
        close(again[rows][:, columns], proba, err_msg="label_consensus")
    if np.asarray(one.consensus_).dtype.kind == "f" and not hasattr(one, "consensus_proba_"):
        close(other.consensus_[rows], one.consensus_, err_msg="consensus_")
    elif not hasattr(one, "consensus_proba_") and np.array_equal(one.classes_, other.classes_):
        np.testing.assert_array_equal(other.consensus_[rows], one.consensus_)


class FittedModels(dict):
    """Every model, fitted when it is first asked for to labels with names: {name: (X, labels, model)}."""

    def __missing__(self, name):
        X, y = data_for(name, missing=0.3)
        matrix, annotators = y.to_matrix().astype(float), ["eve", "ann", "dan", "bob", "cyd"]
        labels = labels_for(name, matrix, examples=[f"e{i}" for i in range(len(X))][::-1], annotators=annotators)
        self[name] = X, labels, fit_quietly(new(name), X, labels)
        return self[name]


def sure_of(consensus):
    return consensus.proba if hasattr(consensus, "proba") else consensus.label


def splits_for(name, n, order=None):
    """Splits of examples, those of another order of them if one is given; for models with folds by position."""
    fold = np.arange(n) % 5 if order is None else (np.arange(n) % 5)[order]
    splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(5)]
    return {"cv": splits} if name in ANY else {}
