"""What all models promise alike: ids and columns are matched, and data of every kind are taken as they come."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from all_models import (
    ANY,
    EVERYTHING,
    LEARNERS,
    MODELS,
    PERCEPTRONS,
    assert_same_fit,
    data_for,
    fit_quietly,
    labels_for,
    new,
    over,
    quick,
    scale_of,
    steady,
    sure_of,
)
from crowds import odd_ids
from scipy import sparse
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from crowdwise import CrowdLabels, align
from crowdwise.exceptions import AlignmentError, CrowdWarning
from crowdwise.labels._align import as_labels
from crowdwise.model_selection import crowd_scorer


@over(EVERYTHING)
def test_fault_26_ids_of_any_kind_are_kept_exactly_as_they_came(name):
    ids = odd_ids(longest=10_000)
    pairs = [(task, worker) for task in ids for worker in ids[::-1]]
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(len(ids), 1)), index=ids, columns=["size"])
    table = {
        "task": [task for task, _ in pairs],
        "worker": [worker for _, worker in pairs],
        "label": [int(X["size"][task] > 0) for task, _ in pairs],
    }
    labels = CrowdLabels.from_table(table, examples=ids, scale=scale_of(name))
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
    with pytest.raises(ValueError, match="X has 2 features, but"):
        fit_quietly(new(name), X, y).predict(X[:, :2])
    if name in MODELS:
        with pytest.raises(ValueError, match="X has 2 features, but"):
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
        if name in (*PERCEPTRONS, "any tree") and kind in ("csr", "csc array"):
            continue  # trees take other ones of equally good splits
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
    assert as_labels(before, scale=y.scale.name) == as_labels(matrix, scale=y.scale.name)


@pytest.mark.parametrize("whole", [True, False], ids=["CrowdLabels", "matrix with NaN"])
@over(LEARNERS, slow=[*ANY, "ridge cv"])
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
