"""What a first pass finds out does not depend on how rows are cut into chunks, or on their order."""

from functools import reduce
from operator import add

import numpy as np
import pytest
from crowds import clear_crowd, crowd, labels_of
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from crowdwise import CrowdLabels
from crowdwise.crowd import disagreement
from crowdwise.crowd._disagreement import pair_sums
from crowdwise.exceptions import DataError, LabelError
from crowdwise.rows import summary
from crowdwise.rows.chunks import Chunk
from crowdwise.rows.summary import DataSummary, first_of_sample, stacked


def summary_of(X, labels, cuts=(), order=None):
    between = list(zip([0, *cuts], [*cuts, len(labels)], strict=True))
    between = between if order is None else [between[i] for i in order]
    return reduce(add, [DataSummary.of(Chunk.of((X[a:b], labels[slice(a, b)]))) for a, b in between])


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_neither_cuts_nor_order_of_chunks_change_the_summary(make, set_constants):
    set_constants(summary, ENOUGH_EXAMPLES=30)
    X, labels, _ = clear_crowd(10, n_examples=200, n_classes=3)
    X = make(X)
    whole = summary_of(X, labels)
    for cuts, order in (([3, 60, 61], [3, 1, 0, 2]), ([0, 100, 200], [2, 0, 3, 1])):
        found = summary_of(X, labels, cuts, order)
        one, other = found.sample.in_order(), whole.sample.in_order()
        assert len(one) == 30
        assert_array_equal(_dense(one.X), _dense(other.X))
        assert_array_equal(one.labels.values, other.labels.values)
        assert (found.n_examples, found.n_unlabelled) == (200, 0)
        assert_array_equal(found.labels_per_class, labels._tally.sum(axis=0))
        assert_array_equal(found.labels_per_annotator, labels.labels_per_annotator)
        for relative_to in ("observed", "possible", None):
            differs = found.disagreement(pair_sums(labels), labels.labels_per_example, relative_to)
            assert_allclose(differs, disagreement(labels, relative_to=relative_to))
    assert not whole.is_complete


def _dense(X):
    return X.toarray() if sparse.issparse(X) else X


def test_the_sample_begins_with_the_rows_that_a_fit_in_memory_takes(set_constants):
    X, labels, _ = clear_crowd(3, n_examples=200)
    set_constants(summary, ENOUGH_EXAMPLES=60)
    sample = summary_of(X, labels, [50, 90]).sample.in_order()
    for most in (10, 60):
        some = first_of_sample(X, labels, most)
        assert_array_equal(sample.X[:most], X[some])
        assert_array_equal(sample.labels[:most].values, labels[some].values)
    assert first_of_sample(X, labels, 200) is None


def test_few_rows_are_all_kept_in_their_order():
    X, labels, _ = clear_crowd(4, n_examples=50)
    found = summary_of(X, labels, [20])
    assert found.is_complete
    assert_array_equal(found.sample.X, X)
    assert_array_equal(found.sample.labels.values, labels.values)
    assert_array_equal(np.sort(found.sample.in_order().X, axis=0), np.sort(X, axis=0))


def test_rows_with_equal_features_are_not_kept_or_left_out_together(set_constants):
    set_constants(summary, ENOUGH_EXAMPLES=100)
    rng = np.random.default_rng(0)
    X, matrix = np.repeat([[0.0], [1.0]], 500, axis=0), rng.integers(0, 2, (1000, 12))
    sample = summary_of(X, labels_of(matrix)).sample
    assert 30 < (sample.X == 0).sum() < 70


def test_other_annotators_and_classes_are_joined():
    X = np.arange(6.0)[:, np.newaxis]
    one = DataSummary.of(Chunk.of((X[:3], CrowdLabels.from_matrix([["b"], ["a"], ["b"]], annotators=["x"]))))
    matrix = [["c", None], ["a", "c"], [None, None]]
    other = DataSummary.of(Chunk.of((X[3:], CrowdLabels.from_matrix(matrix, annotators=["y", "x"]))))
    both = one + other
    assert both.annotators.tolist() == ["y", "x"]  # those of one side, if it has them all
    assert both.labels_per_annotator.tolist() == [2, 4]
    assert both.classes.tolist() == ["a", "b", "c"]
    assert both.labels_per_class.tolist() == [2, 2, 2]
    assert (both.n_examples, both.n_unlabelled) == (5, 1)
    assert both.active.tolist() == ["y", "x"]
    assert [dict(given) for _, given in both.sample.labels] == [
        {"x": "b"}, {"x": "a"}, {"x": "b"}, {"y": "c"}, {"y": "a", "x": "c"},
    ]  # fmt: skip


def test_what_cannot_be_learnt_from_is_told():
    X, matrix = crowd()
    whole = DataSummary.of(Chunk.of((X, labels_of(matrix))))
    with pytest.raises(DataError, match="same features; one has 3"):
        whole + DataSummary.of(Chunk.of((X[:, :2], labels_of(matrix))))
    with pytest.raises(DataError, match="NaN or infinity"):
        DataSummary.of(Chunk.of((np.where(X > 2, np.inf, X), labels_of(matrix))))
    with pytest.raises(LabelError, match="these labels are numbers"):
        DataSummary.of(Chunk.of((X, CrowdLabels.from_matrix(matrix.astype(float), scale="interval"))))
    with pytest.raises(LabelError, match="all 40 examples so far"):
        DataSummary.of(Chunk.of((X, labels_of(np.full((40, 2), None))))).check()
    with pytest.raises(LabelError, match="at least two classes"):
        DataSummary.of(Chunk.of((X, labels_of(np.zeros((40, 2), dtype=int))))).check()


def test_labels_are_stacked_in_order():
    _, labels, _ = clear_crowd(2, n_examples=30)
    again = stacked([labels[:7], labels[7:7], labels[7:]])
    assert_array_equal(again.values, labels.values)
    assert_array_equal(again.labels_per_example, labels.labels_per_example)
    assert_array_equal(again.annotator_index, labels.annotator_index)


def test_no_rows_are_kept_of_nothing():
    X, matrix = crowd()
    nothing = DataSummary.of(Chunk.of((X[:0], labels_of(matrix)[:0])))
    assert len((nothing + nothing).sample) == 0
    assert len((nothing + DataSummary.of(Chunk.of((X, labels_of(matrix))))).sample) == len(X)
