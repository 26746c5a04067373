"""What all models promise alike: copies, interrupts, threads and memory."""

import copy
import gc
import pickle
import tracemalloc
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from all_models import (
    ANY,
    EVERYTHING,
    LEARNERS,
    LOGISTIC,
    MODELS,
    PERCEPTRONS,
    assert_same_fit,
    data_for,
    fit_quietly,
    labels_for,
    new,
    over,
    quick,
    reference,
    scores_of,
    sure_of,
)
from constants import changed
from sklearn.base import clone
from threadpoolctl import threadpool_info, threadpool_limits

from crowdwise import CrowdLabels, _threads
from crowdwise.exceptions import CrowdWarning, LabelError


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
        monkeypatch.setattr(_threads, "available_cores", lambda n=n_threads: n)
        with changed(_threads, _PARALLEL_FROM=1.0), threadpool_limits(n_threads, "blas"):
            fits.append(fit_quietly(new(name, **settings), X, y))
    return fits


@pytest.mark.parametrize(
    "shape", [(80, 4), pytest.param((560, 520), marks=pytest.mark.slow)], ids=["few columns", "many columns"]
)
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
    X, y = data_for(name, n=100)
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
    last, _ = kept_after(10)
    tracemalloc.stop()
    assert last - first < min(4 * size, 60_000)  # caches of Python grow a little; 10 models are 10 times the size


def test_aggregating_many_annotators_of_many_classes_takes_the_memory_of_a_few_of_their_matrices():
    rng = np.random.default_rng(0)
    n_annotators, n_classes = 200, 50
    truth = rng.integers(0, n_classes, 3000)
    answered = np.repeat(np.arange(3000), 5), (rng.integers(0, n_annotators, (3000, 1)) + np.arange(5)).ravel()
    label = np.where(rng.random(15_000) < 0.7, truth[answered[0]], rng.integers(0, n_classes, 15_000))
    table = {"example": answered[0], "annotator": answered[1] % n_annotators, "label": label}
    labels = CrowdLabels.from_table(table)
    tracemalloc.start()
    fit_quietly(new("aggregate", max_rounds=9), None, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * 8 * n_annotators * n_classes**2
