"""Accuracy per annotator and slice: counted by hand, against SciPy, aligned by id, and what chance alone gives."""

import numpy as np
import pandas as pd
import pytest
from crowds import crowd, labels_of
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from crowdwise import CrowdLabels, aggregate, slice_accuracy
from crowdwise.exceptions import AlignmentError, LabelError
from crowdwise.slices import accuracy_over_time
from crowdwise.truths.check import share_interval


def counted(matrix, slices, truth):
    """{(annotator, slice): (right, all)}, one label after the other."""
    found = {}
    for i, row in enumerate(matrix.tolist()):
        for j, value in enumerate(row):
            if value is not None and slices[i] is not None and truth[i] is not None:
                right, n = found.get((j, slices[i]), (0, 0))
                found[j, slices[i]] = right + (value == truth[i]), n + 1
    return found


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1))
def test_it_equals_what_loops_count(seed):
    _, matrix = crowd(seed, n_examples=40, n_annotators=4, n_classes=3, missing=0.3)
    rng = np.random.default_rng(seed)
    slices = [None if kind == 3 else "xyz"[kind] for kind in rng.integers(0, 4, 40)]
    truth = [None if kind == 3 else int(kind) for kind in rng.integers(0, 4, 40)]
    expected = counted(matrix, slices, truth)
    found = slice_accuracy(labels_of(matrix, 3), slices, truth)
    assert list(zip(found.annotator.tolist(), found.slice.tolist(), strict=True)) == sorted(expected)
    for i, key in enumerate(sorted(expected)):
        right, n = expected[key]
        rest = [expected[other] for other in expected if other[0] == key[0] and other != key]
        rest_right, rest_n = sum(one[0] for one in rest), sum(one[1] for one in rest)
        assert (found.n_labels[i], found.accuracy[i]) == (n, right / n)
        interval = stats.binomtest(right, n).proportion_ci(method="wilson")
        assert_allclose([found.low[i], found.high[i]], interval, atol=1e-12)
        if rest_n == 0:
            assert np.isnan([found.elsewhere[i], found.p_value[i], found.p_adjusted[i]]).all()
            continue
        table = [[right, n - right], [rest_right, rest_n - rest_right]]
        tails = [stats.fisher_exact(table, alternative=side).pvalue for side in ("less", "greater")]
        assert_allclose(found.elsewhere[i], rest_right / rest_n)
        assert_allclose(found.p_value[i], min(1, 2 * min(tails)), atol=1e-10)
    known = ~np.isnan(found.p_value)
    assert_allclose(found.p_adjusted[known], stats.false_discovery_control(found.p_value[known]))


def judged(n=120, seed=0):
    """Two judges who are right in nine of ten, but for one of them in German; languages and truth."""
    rng = np.random.default_rng(seed)
    truth, language = rng.integers(0, 2, n), np.array(["de", "en", "fr"])[np.arange(n) % 3]
    right = rng.random((n, 2)) < 0.9
    right[language == "de", 1] = rng.random((language == "de").sum()) < 0.4
    return np.where(right, truth[:, None], 1 - truth[:, None]), language, truth


def test_where_a_judge_fails_is_said_in_words():
    matrix, language, truth = judged()
    labels = CrowdLabels.from_matrix(matrix, annotators=["ann", "model"])
    found = slice_accuracy(labels, language, truth)
    worse = found.differs & (found.accuracy < found.elsewhere)
    assert (found.annotator[worse].tolist(), found.slice[worse].tolist()) == (["model"], ["de"])
    assert repr(found).startswith("SliceAccuracy against the truth: 2 annotators in 3 slices; accuracy lower")
    assert "model in de: " in repr(found)
    frame = found.to_frame()
    assert len(frame) == len(found) == 6
    assert frame.loc[frame["differs"] & (frame["accuracy"] < frame["elsewhere"]), "slice"].tolist() == ["de"]


def test_slices_and_truth_are_matched_by_id():
    matrix, language, truth = judged()
    ids = [f"e{i}" for i in range(len(truth))]
    labels = CrowdLabels.from_matrix(matrix, examples=ids)
    expected = slice_accuracy(labels, language, truth)
    order = np.random.default_rng(1).permutation(len(ids))
    series = pd.Series(language, index=ids).iloc[order]
    known = dict(zip(ids, truth.tolist(), strict=True))
    for slices in (series, series.to_dict()):
        found = slice_accuracy(labels, slices, known)
        assert_array_equal(found.accuracy, expected.accuracy)
        assert_array_equal(found.p_adjusted, expected.p_adjusted)
    shuffled = slice_accuracy(labels[order], series, known)
    assert_array_equal(shuffled.accuracy, expected.accuracy)
    with pytest.raises(AlignmentError, match="slices"):
        slice_accuracy(labels, pd.Series(language, index=[f"x{i}" for i in range(len(ids))]), truth)


def test_without_truth_the_consensus_is_the_reference():
    _, matrix = crowd(1, n_examples=60, missing=0.5)
    labels, slices = labels_of(matrix), np.arange(60) % 3
    found = slice_accuracy(labels, slices)
    assert found.reference == "consensus"
    several = labels.labels_per_example > 1
    assert not several.all()
    consensus = np.where(several, aggregate(labels).label.astype(object), None)
    assert_array_equal(found.accuracy, slice_accuracy(labels, slices, consensus).accuracy)


def test_a_label_is_not_judged_by_itself():
    # Nobody is better anywhere; the examples of one slice have one label each, those of the other five.
    rng = np.random.default_rng(0)
    truth, slices = rng.integers(0, 2, 400), rng.integers(0, 2, 400)
    said = np.where(rng.random((400, 6)) < 0.8, truth[:, None], 1 - truth[:, None]).astype(float)
    order = rng.random(said.shape).argsort(axis=1).argsort(axis=1)
    said[order >= np.where(slices == 0, 1, 5)[:, None]] = np.nan
    found = slice_accuracy(CrowdLabels.from_matrix(said), slices)
    assert found.slice.tolist() == [1] * 6
    assert not found.differs.any()
    with pytest.raises(LabelError, match="a slice and two labels"):
        slice_accuracy(CrowdLabels.from_matrix(said[slices == 0]), slices[slices == 0])


def test_only_examples_with_a_known_truth_and_a_slice_count():
    matrix, language, truth = judged()
    known = truth.astype(object)
    known[::2] = None
    some = language.astype(object)
    some[:30] = None
    found = slice_accuracy(CrowdLabels.from_matrix(matrix), some, known)
    assert found.n_labels.sum() == 2 * np.sum((np.arange(120) % 2 == 1) & (np.arange(120) >= 30))


def test_chance_alone_is_hardly_ever_remarkable():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 500)
    said = np.where(rng.random((500, 60)) < 0.8, truth[:, None], 1 - truth[:, None])
    found = slice_accuracy(CrowdLabels.from_matrix(said), rng.integers(0, 5, 500), truth)
    assert (found.p_value < 0.05).sum() > 3  # of 300, uncorrected
    assert found.differs.sum() == 0


def test_one_slice_has_no_elsewhere():
    found = slice_accuracy(CrowdLabels.from_matrix([[0, 1], [1, 1]]), ["all", "all"], [0, 1])
    assert_array_equal(found.accuracy, [1, 0.5])
    assert np.isnan(found.p_adjusted).all()
    assert not found.differs.any()
    assert "2 annotators in 1 slice;" in repr(slice_accuracy([[1, 1], [0, 0], [1, 0]], ["a", "a", "a"], [1, 0, 1]))


def test_wilsons_interval_by_hand():
    # Eight of ten: (0.8 + z²/20 ± z·sqrt(0.016 + z²/400)) / (1 + z²/10) with z = 1.96.
    low, high = share_interval(np.array([0.8, 0.0, 1.0]), np.array([10, 10, 10]))
    assert_allclose([low[0], high[0]], [0.4902, 0.9433], atol=1e-4)
    assert_allclose([low[1], high[2]], [0, 1], atol=1e-15)


def test_what_cannot_be_counted_is_an_error():
    labels = CrowdLabels.from_matrix([[0, 1], [1, 1]])
    with pytest.raises(LabelError, match="slices must be one per"):
        slice_accuracy(labels, ["a", "b", "c"])
    with pytest.raises(LabelError, match="nothing to count"):
        slice_accuracy(labels, ["a", "b"], [None, None])
    with pytest.raises(LabelError, match="classes are needed"):
        slice_accuracy(CrowdLabels.from_matrix([[0.5, 1]], scale="interval"), ["a"])
    with pytest.raises(LabelError, match="truth must use the"):
        slice_accuracy(labels, ["a", "b"], ["yes", "no"])
    with pytest.raises(ValueError, match="fdr must be a finite"):
        slice_accuracy(labels, ["a", "b"], fdr=0)


@pytest.mark.parametrize("by", ["median", "mean"])
def test_levels_are_compared_with_the_consensus_that_their_scale_asks_for(by):
    rng = np.random.default_rng(1)
    said = np.clip(np.rint(rng.integers(1, 6, (80, 1)) + 1.5 * rng.normal(size=(80, 3))), 1, 5)
    labels = CrowdLabels.from_matrix(said).with_scale("ordinal", consensus=by)
    results, slices = aggregate(labels), np.repeat(["x", "y"], 40)
    assert (results.codes != results.proba.argmax(axis=1)).any()
    found, expected = slice_accuracy(labels, slices), slice_accuracy(labels, slices, results.label)
    assert_array_equal(found.accuracy, expected.accuracy)
    over_time = accuracy_over_time(results, labels, labels.to_table()["example"], periods=2)
    assert_array_equal(over_time.accuracy, expected.accuracy)
