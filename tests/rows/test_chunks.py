"""Chunks: whatever source rows come from, a task finds the same in all of them together."""

import numpy as np
import pytest
from crowds import clear_crowd, crowd, labels_of
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from crowdwise import CrowdLabels, read_blocks
from crowdwise.exceptions import DataError, LabelError
from crowdwise.rows import chunks as of_chunks
from crowdwise.rows.chunks import Chunk, MemoryChunks, ReadChunks, Sums, chunks_of, recoded


def blocks_of(X, labels, cuts):
    between = zip([0, *cuts], [*cuts, len(labels)], strict=True)
    return [(X[a:b], labels[slice(a, b)]) for a, b in between]


def column_sums(chunk):
    return Sums(
        X=np.asarray(chunk.X.sum(axis=0)).ravel(), weight=chunk.weight.sum(), tally=chunk.labels._tally.sum(axis=0)
    )


def test_sums_add_by_name_and_have_no_other():
    total = Sums(a=1, b=np.ones(2)) + Sums(a=2, b=np.arange(2.0))
    assert total.a == 3
    assert_array_equal(total.b, [1.0, 2.0])
    with pytest.raises(AttributeError, match="c"):
        total.c  # noqa: B018


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_memory_blocks_and_dask_give_the_same_sums(make, set_constants):
    set_constants(of_chunks, _CHUNK_LABELS=200)
    X, labels, _ = clear_crowd(1, n_examples=300, n_classes=3)
    X = np.where(np.abs(X) < 0.3, 0.0, X)
    weight = np.random.default_rng(0).integers(1, 4, 300).astype(float)
    memory = MemoryChunks.of(labels, weight, make(X))
    assert (len(memory.chunks) > 1) == (make is np.asarray)  # sparse rows are one chunk
    names = labels.annotators, labels.classes
    given = [(make(x), part, weight[a : a + len(part)]) for a, (x, part) in
             zip([0, 7, 100], blocks_of(X, labels, [7, 100]), strict=True)]  # fmt: skip
    found = [memory.total(column_sums), ReadChunks(read_blocks(given), names).total(column_sums)]
    if make is np.asarray:
        da = pytest.importorskip("dask.array", reason="needs Dask: pip install 'crowdwise[dask]'")
        matrix = labels.to_matrix().astype(float)
        collections = [da.from_array(values, chunks=60) for values in (X, weight)]
        source = chunks_of(collections[0], da.from_array(matrix, chunks=(60, -1)), collections[1])
        found.append(source.total(column_sums))
    for sums in found:
        assert_allclose(sums.X, X.T @ np.ones(300), atol=1e-9)
        assert sums.weight == weight.sum()
        assert_array_equal(sums.tally, labels._tally.sum(axis=0))


def test_chunks_in_memory_are_all_rows_in_order_and_keep_what_was_computed(set_constants):
    set_constants(of_chunks, _CHUNK_LABELS=300)
    X, matrix = crowd(n_examples=500)
    chunks = MemoryChunks.of(labels_of(matrix), np.ones(500), X, np.arange(500) % 2)
    assert len(chunks.chunks) > 3
    assert_array_equal(chunks.gather(lambda chunk: chunk.X), X)
    assert_array_equal(chunks.gather(lambda chunk: chunk.truth), np.arange(500) % 2)
    chunks.put("place", np.arange(500))
    assert_array_equal(chunks.gather(lambda chunk: chunk.memo["place"][1]), np.arange(500))
    computed = []

    def make():
        computed.append(1)
        return len(computed)

    first, owner, other = chunks.chunks[0], object(), object()
    assert [first.keep("it", make), first.keep("it", make)] == [1, 1]
    assert [first.keep("own", make, owner), first.keep("own", make, owner)] == [2, 2]
    assert first.keep("own", make, other) == 3  # of another owner
    unkept = Chunk(labels_of(matrix), np.ones(500))
    assert [unkept.keep("it", make), unkept.keep("it", make)] == [4, 5]


def test_results_are_added_in_the_order_of_chunks_by_any_number_of_threads(monkeypatch):
    X, matrix = crowd(n_examples=400)
    blocks = blocks_of(X, labels_of(matrix), range(10, 400, 10))
    monkeypatch.setattr(of_chunks, "available_cores", lambda: 3)
    found = ReadChunks(read_blocks(blocks)).total(lambda chunk: chunk.X[:, 0].tolist())
    assert found == X[:, 0].tolist()


def test_examples_without_label_or_weight_are_left_out_and_counted():
    X, matrix = crowd(n_examples=20)
    matrix[3] = None
    weight = np.where(np.arange(20) == 5, 0.0, 2.0)
    chunk = Chunk.of((X, CrowdLabels.from_matrix(matrix), weight))
    assert (len(chunk), chunk.n_unlabelled) == (18, 1)
    assert_array_equal(chunk.X, np.delete(X, [3, 5], axis=0))
    assert_array_equal(chunk.weight, np.full(18, 2.0))
    assert_array_equal(chunk.labels.to_matrix(), np.delete(matrix, [3, 5], axis=0))


def test_blocks_that_change_between_passes_are_an_error():
    X, matrix = crowd(n_examples=20)
    passes = []

    def shrinking():
        passes.append(None)
        yield X[len(passes) :], labels_of(matrix)[slice(len(passes), None)]

    source = ReadChunks(read_blocks(shrinking))
    source.total(len)
    with pytest.raises(DataError, match="same in every pass; the"):
        source.total(len)
    with pytest.raises(DataError, match="no blocks to learn from"):
        ReadChunks(read_blocks([])).total(len)
    source = ReadChunks(read_blocks(blocks_of(X, labels_of(matrix), [10])), (np.array([0, 1]), np.array([0, 1])))
    with pytest.raises(LabelError, match=r"annotators .* are not among"):
        source.total(len)


def test_labels_are_coded_by_the_names_of_all_chunks():
    labels = CrowdLabels.from_matrix([["b", None, "a"], [None, "a", "b"]], annotators=["x", "y", "z"])
    coded = recoded(labels, np.array(["z", "w", "x", "y"], dtype=object), np.array(["c", "b", "a"], dtype=object))
    assert coded.annotators.tolist() == ["z", "w", "x", "y"]
    assert [dict(given) for _, given in coded] == [{"z": "a", "x": "b"}, {"z": "b", "y": "a"}]
    assert coded.values.tolist() == [2, 1, 1, 2]  # in the order of the annotators
    assert recoded(labels, labels.annotators, labels.classes).annotators is labels.annotators


def test_labels_beside_blocks_are_refused():
    X, matrix = crowd()
    with pytest.raises(ValueError, match="y, sample_weight cannot be given"):
        chunks_of(read_blocks([(X, matrix)]), matrix, np.ones(40))
