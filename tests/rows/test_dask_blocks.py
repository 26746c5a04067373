"""A fit on Dask collections is the fit on the same rows in memory."""

import re

import numpy as np
import pandas as pd
import pytest
from crowds import clear_crowd, crowd
from marks import in_slow_run
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from crowdwise import (
    CrowdLabels,
    CrowdLogisticClassifier,
    CrowdRidgeClassifier,
    CrowdRidgeClassifierCV,
    CrowdRidgeRegressor,
    read_blocks,
)
from crowdwise.exceptions import AlignmentError, DataError, LabelError, WorkerError
from crowdwise.ridge import sums
from crowdwise.rows.dask_blocks import DaskBlocks
from crowdwise.rows.features import is_dask
from crowdwise.rows.summary import DataSummary
from crowdwise.weights import SelfPaced

needs_dask = "needs Dask: pip install 'crowdwise[dask]'"
dask = pytest.importorskip("dask", reason=needs_dask)
da = pytest.importorskip("dask.array", reason=needs_dask)
dd = pytest.importorskip("dask.dataframe", reason=needs_dask)

TIGHT = {"tol": 1e-11, "max_rounds": 300}
NAMES = ["ann", "bob", "cid", "dee", "eve", "fay"]


@pytest.fixture(autouse=True)
def _one_after_the_other():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def rounds_over_blocks(monkeypatch):
    """The logistic model reads blocks in every round even if the sample has all rows."""
    monkeypatch.setattr(DataSummary, "is_complete", False)


def chunked(values, rows):
    return da.from_array(values, chunks=(rows, -1))


def assert_same(one, other, tolerance=1e-10):
    for name in ("coef_", "intercept_", "expertise_"):
        left, right = np.asarray(getattr(one, name)), np.asarray(getattr(other, name))
        assert_allclose(left, right, rtol=0, atol=tolerance * np.nanmax(np.abs(right)), err_msg=name)


def numbers(seed=0, n_examples=90, **options):
    """Features far from zero, and labels as numbers with NaN."""
    X, matrix = crowd(seed, n_examples=n_examples, **options)
    return X + np.array([0.0, 1e4, -3.0]), matrix.astype(float)


def frames(X, y, n_partitions=4):
    features = pd.DataFrame(X, columns=["size", "age", "length"], index=np.arange(len(X)) + 100)
    labels = pd.DataFrame(y, columns=NAMES, index=features.index)
    return features, labels, dd.from_pandas(features, npartitions=n_partitions), dd.from_pandas(labels, n_partitions)


MODELS = [
    CrowdRidgeClassifier(**TIGHT),
    CrowdRidgeClassifier(steepness=0.0, fit_intercept=False, **TIGHT),
    CrowdRidgeClassifierCV(steepnesses=[0.0, 2.0], l2s=[1.0], **TIGHT),
    CrowdRidgeRegressor(**TIGHT),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_arrays_in_any_chunks_give_the_fit_in_memory(model, missing):
    X, y = numbers(n_classes=3, missing=missing)
    expected = clone(model).fit(X, y)
    found = clone(model).fit(da.from_array(X, chunks=(20, 2)), da.from_array(y, chunks=(31, 4)))
    assert_same(found, expected)
    assert found.n_features_in_ == 3
    assert_array_equal(found.annotators_, expected.annotators_)


def test_data_frames_keep_the_names_of_features_and_annotators():
    features, labels, X, y = frames(*numbers(missing=0.3))
    expected = CrowdRidgeClassifier(**TIGHT).fit(features, labels)
    found = CrowdRidgeClassifier(**TIGHT).fit(X, y)
    assert_same(found, expected)
    assert found.feature_names_in_.tolist() == ["size", "age", "length"]
    found.fit(X.to_dask_array(lengths=True), labels.to_numpy())
    assert not hasattr(found, "feature_names_in_")
    found.fit(X, y)
    assert found.annotators_.tolist() == NAMES


def test_the_sums_are_those_of_partial_fit_over_the_same_blocks():
    X, y = numbers(missing=0.3)
    found = CrowdRidgeClassifier(**TIGHT).fit(chunked(X, 20), chunked(y, 20))
    expected = CrowdRidgeClassifier(**TIGHT)
    for start in range(0, 90, 20):
        expected.partial_fit(X[start : start + 20], y[start : start + 20])
    assert_same(found, expected, 1e-12)
    assert found.temperature_ == pytest.approx(expected.temperature_, rel=1e-9)
    assert_array_equal(found.sums_.summary.sample.X, expected.sums_.summary.sample.X)
    more = crowd(1)[0], crowd(1)[1].astype(float)
    assert_same(found.partial_fit(*more), expected.partial_fit(*more), 1e-12)


def test_the_same_chunks_give_the_same_bits_whoever_works_on_them():
    X, y = numbers(n_examples=300)
    given = chunked(X, 11), chunked(y, 11)
    one = CrowdRidgeClassifier().fit(*given)
    for workers in (1, 4):
        with dask.config.set(scheduler="threads", num_workers=workers):
            again = CrowdRidgeClassifier().fit(*given)
        assert_array_equal(again.coef_, one.coef_)
        assert_array_equal(again.expertise_, one.expertise_)


def test_the_logistic_model_gives_the_fit_in_memory():
    X, y = numbers(n_classes=3, missing=0.4)
    expected = CrowdLogisticClassifier().fit(X, y)
    found = CrowdLogisticClassifier().fit(da.from_array(X, chunks=(20, 2)), da.from_array(y, chunks=(31, 4)))
    assert_same(found, expected)
    assert_allclose(found.confusion_, expected.confusion_, rtol=1e-10)
    assert_allclose(found.predict_proba(X), expected.predict_proba(X), rtol=1e-10)


@pytest.mark.parametrize("n_classes", [2, in_slow_run(3)])
def test_the_logistic_model_in_rounds_over_blocks_gives_the_fit_in_memory(n_classes, rounds_over_blocks, set_constants):
    set_constants("crowdwise.weights.folds", ENOUGH_EXAMPLES=0)  # the folds of many examples
    X, labels, _ = clear_crowd(n_examples=200, n_classes=n_classes)
    settings = {"tol": 1e-13, "max_rounds": 500, "l2": 1.0, "steepness": 1.0}
    expected = CrowdLogisticClassifier(**settings).fit(X, labels)
    found = CrowdLogisticClassifier(**settings).fit(chunked(X, 30), labels)
    assert found.n_passes_ > 2
    assert_same(found, expected)
    assert_allclose(found.confusion_, expected.confusion_, rtol=1e-10)
    assert_allclose(found.predict_proba(X), expected.predict_proba(X), rtol=1e-10)


def test_the_logistic_model_is_that_of_the_same_blocks_on_one_machine(rounds_over_blocks):
    X, labels, _ = clear_crowd(n_examples=200, n_classes=3)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    rows = [slice(start, start + 25) for start in range(0, 200, 25)]  # few enough to be added one after the other
    expected = CrowdLogisticClassifier().fit(read_blocks([(X[at], labels[at], weight[at]) for at in rows]))
    found = CrowdLogisticClassifier().fit(da.from_array(X, chunks=(25, 2)), labels, weight)
    assert_same(found, expected, 1e-14)
    assert_allclose(found.confusion_, expected.confusion_, rtol=1e-14)
    assert found.annotators_.tolist() == labels.annotators.tolist()
    assert found.n_passes_ == expected.n_passes_
    with pytest.raises(ValueError, match="ranks the examples in every round"):
        CrowdLogisticClassifier(curriculum=SelfPaced()).fit(chunked(X, 50), labels)


@pytest.mark.parametrize("model", [CrowdRidgeClassifier, CrowdLogisticClassifier])
def test_where_a_block_lies_in_memory_changes_no_bit(model, rounds_over_blocks):
    """Arrays that came over a network may begin at any byte, and NumPy multiplies such arrays without BLAS."""
    X, labels, _ = clear_crowd(n_examples=120)
    expected = model().fit(chunked(X, 40), labels)
    for moved in (at_an_odd_byte, np.asfortranarray):
        found = model().fit(chunked(X, 40).map_blocks(moved, meta=np.empty((0, 2))), labels)
        assert_array_equal(found.coef_, expected.coef_)
        assert_array_equal(found.expertise_, expected.expertise_)


def at_an_odd_byte(array):
    memory = np.empty(array.nbytes + 1, dtype=np.uint8)
    moved = memory[1:].view(array.dtype).reshape(array.shape)
    moved[...] = array
    return moved


def test_labels_and_weights_in_memory_are_split_as_the_features_are():
    X, y = numbers(missing=0.3)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    expected = CrowdRidgeClassifier(**TIGHT).fit(X, y, weight)
    chunks = chunked(X, 40)
    labels = CrowdLabels.from_matrix(y, annotators=NAMES)
    for given in (y, labels, da.from_array(y, chunks=7)):
        for weights in (weight, da.from_array(weight, chunks=9)):
            assert_same(CrowdRidgeClassifier(**TIGHT).fit(chunks, given, weights), expected)
    assert CrowdRidgeClassifier().fit(chunks, labels).annotators_.tolist() == NAMES
    assert_same(CrowdRidgeClassifier(**TIGHT).fit(chunks, y, 2.0), CrowdRidgeClassifier(**TIGHT).fit(X, y, 2.0))


def test_labels_of_one_annotator_have_one_dimension():
    X, y = numbers()
    with pytest.warns(match="one annotator"):
        expected = CrowdRidgeClassifier().fit(X, y[:, 0])
    for given in (da.from_array(y[:, 0], chunks=25), y[:, 0]):
        with pytest.warns(match="one annotator"):
            assert_same(CrowdRidgeClassifier().fit(chunked(X, 25), given), expected)


def test_blocks_of_unknown_length_are_matched_one_by_one():
    X, y = numbers()
    keep = X[:, 0] > 1
    chunks, labels = da.from_array(X, chunks=(20, 2)), da.from_array(y, chunks=(20, 3))
    chosen = da.from_array(keep, chunks=20)
    expected = CrowdRidgeClassifier(**TIGHT).fit(X[keep], y[keep])
    assert np.isnan(chunks[chosen].shape[0])
    assert_same(CrowdRidgeClassifier(**TIGHT).fit(chunks[chosen], labels[chosen]), expected)
    with pytest.raises(AlignmentError, match=r"in block \d of X"):
        CrowdRidgeClassifier().fit(chunks[chosen], labels)
    with pytest.raises(AlignmentError, match="X has 5 blocks of"):
        CrowdRidgeClassifier().fit(chunks[chosen], da.from_array(y, chunks=(45, 3)))
    with pytest.raises(DataError, match=re.escape("y is in memory and X has blocks of unknown length")):
        CrowdRidgeClassifier().fit(chunks[chosen], y[keep])
    known = chunks[chosen]
    known.compute_chunk_sizes()
    assert_same(CrowdRidgeClassifier(**TIGHT).fit(known, y[keep]), expected)


def test_other_numbers_of_rows_are_told_before_anything_is_computed():
    X, y = numbers()
    chunks = chunked(X, 20)
    with pytest.raises(AlignmentError, match="X has 90 rows and"):
        CrowdRidgeClassifier().fit(chunks, da.from_array(y[:-1], chunks=20))
    with pytest.raises(AlignmentError, match="X has 90 examples and"):
        CrowdRidgeClassifier().fit(chunks, y[:-1])
    with pytest.raises(AlignmentError, match="sample_weight must be 90 numbers"):
        CrowdRidgeClassifier().fit(chunks, y, np.ones(89))
    with pytest.raises(ValueError, match="y is needed"):
        CrowdRidgeClassifier().fit(chunks)


def test_partitions_of_a_frame_are_matched_by_their_ids():
    features, labels, X, y = frames(*numbers())
    expected = CrowdRidgeClassifier(**TIGHT).fit(features, labels)
    others = dd.from_pandas(labels, npartitions=7)
    assert others.divisions != X.divisions
    assert_same(CrowdRidgeClassifier(**TIGHT).fit(X, others), expected)
    shuffled = y.map_partitions(lambda part: part[::-1], meta=labels.iloc[:0])
    assert_same(CrowdRidgeClassifier(**TIGHT).fit(X, shuffled), expected)
    with pytest.raises(AlignmentError, match=r"in block \d of X"):
        CrowdRidgeClassifier().fit(X, dd.from_pandas(labels.set_index(labels.index + 50), npartitions=4))
    with pytest.raises(AlignmentError, match="X has 4 blocks of"):
        CrowdRidgeClassifier().fit(X, dd.from_pandas(labels.reset_index(drop=True), npartitions=3))
    with pytest.raises(DataError, match="give y as a Dask collection"):
        CrowdRidgeClassifier().fit(X, labels)


def test_labels_of_an_array_may_be_in_a_frame_and_the_other_way_round():
    X, y = numbers(missing=0.2)
    _, _, frame, label_frame = frames(X, y, 3)
    expected = CrowdRidgeClassifier(**TIGHT).fit(X, y)
    chunks, labels = chunked(X, 30), da.from_array(y, chunks=(30, 2))
    by_name = CrowdRidgeClassifier(**TIGHT).fit(chunks, label_frame)
    assert_same(by_name, expected)
    assert by_name.annotators_.tolist() == NAMES
    assert_same(CrowdRidgeClassifier(**TIGHT).fit(frame, labels), expected)


def test_blocks_without_rows_labels_annotators_or_classes_change_nothing():
    X, y = numbers(n_classes=3)
    y[:20] = np.where(y[:20] == 2, 0, y[:20])  # no class 2 in the first block
    y[20:40, 1:] = np.nan  # one annotator in the second
    y[40:60] = np.nan  # no label in the third
    with pytest.warns(match="20 of 90 examples have"):
        expected = CrowdRidgeClassifier(**TIGHT).fit(X, y)
    rows = (20, 20, 20, 0, 30, 0)
    with pytest.warns(match="20 of 90 examples have"):
        found = CrowdRidgeClassifier(**TIGHT).fit(
            da.from_array(X, chunks=(rows, 3)), da.from_array(y, chunks=(rows, 6))
        )
    assert_same(found, expected)
    assert found.classes_.tolist() == [0, 1, 2]


def test_classes_with_names_come_together_from_all_blocks():
    X, y = crowd(n_examples=60, missing=0.3)
    y[y == 0], y[y == 1] = "no", "yes"
    found = CrowdRidgeClassifier(**TIGHT).fit(chunked(X, 25), chunked(y, 25))
    assert_same(found, CrowdRidgeClassifier(**TIGHT).fit(X, y))
    assert found.classes_.tolist() == ["no", "yes"]


def test_sparse_blocks_are_learnt_from_as_dense_ones():
    X, y = crowd(n_examples=60)
    X = np.where(X > 1, X, 0.0)
    chunks = chunked(X, 25).map_blocks(sparse.csr_array, meta=sparse.csr_array((0, 0)))
    found = CrowdRidgeClassifier(**TIGHT).fit(chunks, y.astype(int))
    assert_same(found, CrowdRidgeClassifier(**TIGHT).fit(X, y.astype(int)))


def test_errors_say_which_block_they_are_about():
    X, y = numbers()
    X[50, 1] = np.nan
    with pytest.raises(DataError, match="in block 2 of X"):
        CrowdRidgeClassifier().fit(chunked(X, 20), y)
    with pytest.raises(LabelError, match=r"in block \d of X.*got 0.5"):
        CrowdRidgeClassifier().fit(chunked(numbers()[0], 20), chunked(y + 0.5, 20))
    with pytest.raises(DataError, match="two dimensions"):
        CrowdRidgeClassifier().fit(da.from_array(X[:, 0], chunks=20), y)


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    X, y = numbers()
    model = CrowdRidgeClassifier().fit(X, y)
    before = model.coef_.copy()
    with pytest.raises(LabelError, match="one class"):
        model.fit(chunked(X, 20), np.ones_like(y))
    assert_array_equal(model.coef_, before)
    assert len(model.consensus_) == 90


def test_settings_that_need_single_examples_are_refused():
    X, y = numbers()
    chunks = chunked(X, 20)
    with pytest.raises(ValueError, match="there are no sums for"):
        CrowdRidgeClassifier(curriculum=SelfPaced()).fit(chunks, y)
    for model in (*map(clone, MODELS), CrowdLogisticClassifier()):
        with pytest.raises(ValueError, match="held out example by example"):
            model.fit(chunks, y, truth=y[:, 0])


@pytest.mark.parametrize("model", [CrowdRidgeClassifier, CrowdRidgeRegressor, CrowdLogisticClassifier])
def test_predictions_are_mapped_over_blocks(model):
    X, y = numbers()
    chunks = chunked(X, 20)
    fitted = model().fit(X, y)
    found = chunks.map_blocks(fitted.predict, drop_axis=1, dtype=y.dtype)
    assert_array_equal(found.compute(), fitted.predict(X))
    for call in (fitted.predict, lambda few: fitted.consensus(few, y)):
        with pytest.raises(TypeError, match="predictions are of examples in memory"):
            call(chunks)


@pytest.mark.parametrize("model", [CrowdRidgeClassifier, CrowdRidgeRegressor, CrowdLogisticClassifier])
def test_groups_have_one_vote_together_as_in_memory(model):
    X, y = numbers(missing=0.3)
    scale = "interval" if model is CrowdRidgeRegressor else "nominal"
    labels = CrowdLabels.from_matrix(y, scale=scale).with_groups(["a", "a", "b", "b", None, "a"])
    expected, alone = model().fit(X, labels), model().fit(X, y)
    assert (expected.results_.vote_weight < 1).tolist() == [True, True, True, True, False, True]
    blocks = read_blocks([(X[:40], labels[:40]), (X[40:], labels[40:])])
    for found in (model().fit(chunked(X, 20), labels), model().fit(blocks)):
        assert_allclose(found.results_.vote_weight, expected.results_.vote_weight)
        assert found.results_.effective_votes == pytest.approx(expected.results_.effective_votes, rel=1e-3)
        assert found.results_.effective_votes < alone.results_.effective_votes - 0.1
    with pytest.raises(LabelError, match="one group for each of"):
        labels.with_groups(["a", "b"])


def test_sums_that_do_not_fit_are_refused(set_constants):
    set_constants(sums, MEMORY_BUDGET=2000)
    _, _, X, y = frames(*numbers(missing=0.3))
    for model in (CrowdRidgeClassifier(), CrowdRidgeRegressor(), CrowdRidgeClassifierCV()):
        with pytest.raises(DataError, match="do not fit into 0 MiB"):
            model.fit(X, y)


def test_results_of_blocks_are_added_in_their_order():
    X, y = np.arange(300.0).reshape(100, 3), np.zeros((100, 2))
    for rows in (100, 13, 1):  # of one block, of one group, of a tree
        blocks = DaskBlocks.of(da.from_array(X, chunks=(rows, -1)), da.from_array(y, chunks=(rows, -1)))
        assert blocks.total(lambda block: block.X[:, 0].tolist()) == X[:, 0].tolist()


def test_a_killed_worker_is_told_as_a_block_that_is_too_large():
    class KilledWorker(Exception):
        def __init__(self, task):
            self.task = task

    blocks = DaskBlocks.of(da.ones((2_000_000, 50), chunks=(1_000_000, 50)), da.ones((2_000_000, 10), chunks=10**6))

    def killed(block):
        raise KilledWorker("rechunk-merge-0")

    with pytest.raises(WorkerError, match="a block of 1,000,000 rows") as told:
        blocks_of_nothing(blocks).total(killed)
    assert type(told.value.__cause__).__name__ == "KilledWorker"


def blocks_of_nothing(blocks):
    """The same lengths, with blocks that take no memory."""
    return DaskBlocks(tuple(part._replace(X=None, y=None) for part in blocks.parts), blocks.n_rows, blocks.row_bytes)


def test_dask_is_known_by_its_collections_only():
    assert is_dask(da.ones(3))
    assert is_dask(dd.from_pandas(pd.Series([1]), npartitions=1))
    for other in (np.ones(3), pd.DataFrame(), dask.delayed(1), None):
        assert not is_dask(other)
