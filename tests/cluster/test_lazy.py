"""Predictions and consensus on Dask collections are those of the same rows in memory, and computed late."""

import pickle

import numpy as np
import pandas as pd
import pytest
from crowds import crowd
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from crowdwise import CrowdLogisticClassifier, CrowdRidgeClassifier, CrowdRidgeRegressor
from crowdwise.cluster.lazy import _for_workers
from crowdwise.exceptions import AlignmentError

needs_dask = "needs Dask: pip install 'crowdwise[dask]'"
dask = pytest.importorskip("dask", reason=needs_dask)
da = pytest.importorskip("dask.array", reason=needs_dask)
dd = pytest.importorskip("dask.dataframe", reason=needs_dask)


@pytest.fixture(autouse=True)
def _one_after_the_other():
    with dask.config.set(scheduler="synchronous"):
        yield


def fitted(n_classes=2, names=None):
    """A model, features, labels, and both as data frames."""
    X, y = crowd(n_examples=60, n_classes=n_classes, missing=0.3)
    if names is not None:
        y = np.where(y == None, None, np.array(names, dtype=object)[np.where(y == None, 0, y).astype(int)])  # noqa: E711
    frame = pd.DataFrame(X, columns=list("abc"), index=[f"row {i:02}" for i in range(60)])
    labels = pd.DataFrame(y if names else y.astype(float), index=frame.index)  # Dask makes strings of objects
    return CrowdRidgeClassifier().fit(X, y), X, y, frame, labels


@pytest.mark.parametrize(("n_classes", "names"), [(2, None), (3, ["low", "mid", "high"])])
def test_arrays_give_lazy_arrays_with_the_same_values(n_classes, names):
    model, X, y, _, _ = fitted(n_classes, names)
    chunks = da.from_array(X, chunks=((25, 0, 35), (2, 1)))
    for method in ("predict", "decision_function"):
        expected = getattr(model, method)(X)
        found = getattr(model, method)(chunks)
        assert isinstance(found, da.Array)
        assert (found.shape, found.dtype, found.chunks[0]) == (expected.shape, expected.dtype, (25, 0, 35))
        assert_array_equal(found.compute(), expected)
        assert_array_equal(found[30:40].compute(), expected[30:40])
    expected = model.consensus(X, y)
    for labels in (y, da.from_array(y, chunks=(20, 2))):
        found = model.consensus(chunks, labels)
        for name in ("label", "confidence", "proba"):
            values = getattr(found, name)
            assert values.dtype == getattr(expected, name).dtype
            assert_array_equal(values.compute(), getattr(expected, name))
    assert_array_equal(found.classes, expected.classes)
    by_labels = model.consensus(chunks, y, use_model=False)
    assert_array_equal(by_labels.proba.compute(), model.consensus(X, y, use_model=False).proba)


def test_blocks_of_unknown_length_stay_so():
    model, X, y, _, _ = fitted()
    keep = X[:, 0] > 1
    chunks, chosen = da.from_array(X, chunks=(25, -1)), da.from_array(keep, chunks=25)
    found = model.predict(chunks[chosen])
    assert np.isnan(found.shape[0])
    assert_array_equal(found.compute(), model.predict(X[keep]))
    consensus = model.consensus(chunks[chosen], da.from_array(y, chunks=(25, -1))[chosen])
    assert_array_equal(consensus.label.compute(), model.consensus(X[keep], y[keep]).label)
    assert_array_equal(consensus.proba.compute(), model.consensus(X[keep], y[keep]).proba)


@pytest.mark.parametrize(("n_classes", "names"), [(2, ["no", "yes"]), (3, None)])
def test_frames_give_lazy_series_with_their_index(n_classes, names):
    _, _, _, frame, labels = fitted(n_classes, names)
    model = CrowdRidgeClassifier().fit(frame, labels)
    X, y = dd.from_pandas(frame, npartitions=3), dd.from_pandas(labels, npartitions=3)
    predicted = model.predict(X).compute()
    assert_array_equal(predicted, model.predict(frame))
    assert predicted.index.tolist() == frame.index.tolist()
    scores = model.decision_function(X).compute()
    assert_allclose(scores, model.decision_function(frame), rtol=1e-12, atol=1e-12)
    if n_classes == 3:
        assert scores.columns.tolist() == model.classes_.tolist()
    found, expected = model.consensus(X, y), model.consensus(frame, labels)
    for name in ("label", "confidence", "proba"):
        values = getattr(found, name)
        assert values.divisions == X.divisions
        (assert_array_equal if name == "label" else assert_allclose)(values.compute(), getattr(expected, name))
        assert values.compute().index.tolist() == frame.index.tolist()
    assert found.proba.columns.tolist() == expected.to_frame().columns[3:].tolist()


def test_ratings_have_a_lazy_standard_deviation():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = X[:, :1] + rng.normal(size=(60, 4))
    model = CrowdRidgeRegressor().fit(X, y)
    chunks = da.from_array(X, chunks=(25, 2))
    assert_array_equal(model.predict(chunks).compute(), model.predict(X))
    found, expected = model.consensus(chunks, y), model.consensus(X, y)
    assert_array_equal(found.label.compute(), expected.label)
    assert_array_equal(found.std.compute(), expected.std)
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abc")), npartitions=2)
    named = CrowdRidgeRegressor().fit(pd.DataFrame(X, columns=list("abc")), y)
    assert_array_equal(named.consensus(frame, da.from_array(y, chunks=(30, -1))).std.compute(), expected.std)


def test_the_logistic_model_has_lazy_probabilities():
    _, X, y, frame, labels = fitted(3)
    model = CrowdLogisticClassifier().fit(X, y)
    chunks = da.from_array(X, chunks=(25, 2))
    assert_array_equal(model.predict(chunks).compute(), model.predict(X))
    assert_array_equal(model.predict_proba(chunks).compute(), model.predict_proba(X))
    assert_array_equal(model.consensus(chunks, y).proba.compute(), model.consensus(X, y).proba)
    named = CrowdLogisticClassifier().fit(frame, labels)
    found = named.predict_proba(dd.from_pandas(frame, npartitions=2)).compute()
    assert_allclose(found, named.predict_proba(frame), rtol=1e-12)
    assert found.columns.tolist() == [0, 1, 2]


def test_classes_with_an_order_are_read_as_in_memory():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 3, (60, 2))
    model = CrowdLogisticClassifier(kind="ordinal", consensus_by="mean", tol=0.1).fit(X, y)
    chunks = da.from_array(X, chunks=(25, -1))
    found, expected = model.consensus(chunks, y), model.consensus(X, y)
    assert (expected.label != expected.classes[expected.proba.argmax(axis=1)]).any()
    for name in ("label", "confidence", "mean"):
        assert_array_equal(getattr(found, name).compute(), getattr(expected, name))
    assert_array_equal(model.predict(chunks).compute(), model.predict(X))


def test_nothing_is_computed_before_it_is_asked_for():
    model, X, y, _, _ = fitted()
    read = []

    def reading(block):
        read.append(len(block))
        return block

    chunks = da.from_array(X, chunks=(20, -1)).map_blocks(reading, meta=np.empty((0, 3)))
    found, consensus = model.predict(chunks), model.consensus(chunks, y)
    assert not read
    found[:5].compute()
    assert read == [20]
    consensus.label[-5:].compute()
    assert read == [20, 20]


def test_a_model_that_is_not_fitted_says_so():
    with pytest.raises(NotFittedError):
        CrowdRidgeClassifier().predict(da.ones((4, 2)))
    with pytest.raises(NotFittedError):
        CrowdRidgeClassifier().consensus(da.ones((4, 2)), np.ones((4, 2)))


def test_wrong_columns_are_told_at_once():
    model, X, y, frame, labels = fitted()
    with pytest.raises(ValueError, match="X has 2 features, but CrowdRidgeClassifier is expecting 3"):
        model.predict(da.from_array(X[:, :2]))
    named = CrowdRidgeClassifier().fit(frame, labels)
    with pytest.raises(ValueError, match="feature names"):
        named.predict(dd.from_pandas(frame.rename(columns={"a": "z"}), npartitions=2))
    with pytest.raises(AlignmentError, match="X has 60 examples and the labels have 59"):
        model.consensus(da.from_array(X, chunks=(20, -1)), y[:-1])


def test_examples_of_the_fit_do_not_travel_with_the_model():
    X, y = crowd(n_examples=2000)
    model = CrowdRidgeClassifier().fit(X, y)
    streamed = CrowdRidgeClassifier().partial_fit(X, y)
    streamed.predict(X[:1])
    for one in (model, streamed):
        light = _for_workers(one)
        assert len(pickle.dumps(light)) < 10_000
        assert_array_equal(light.predict(X), one.predict(X))
    assert len(pickle.dumps(model)) > 100_000
