"""Batches one after the other: exact while all examples are kept, then near what one fit gives."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from crowds import clear_crowd, with_copies
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

import crowdwise
from crowdwise import CrowdLabels, CrowdLogisticClassifier, read_blocks
from crowdwise.em import Confusion
from crowdwise.exceptions import DataError, LabelError
from crowdwise.ridge import kept_rows
from crowdwise.weights import Smooth

SETTINGS = {"l2": 1.0, "steepness": 0.0}
LEARNT = ("coef_", "intercept_", "confusion_", "class_prior_", "temperature_", "expertise_")


@pytest.fixture
def few_are_kept(monkeypatch):
    monkeypatch.setattr(kept_rows, "_MOST_ROWS", 100)


def in_batches(model, X, labels, cuts, **arguments):
    """The model after partial_fit of the rows between cuts."""
    for a, b in zip([0, *cuts], [*cuts, X.shape[0]], strict=True):
        given = {name: value[a:b] for name, value in arguments.items()}
        model.partial_fit(X[a:b], labels[slice(a, b)], batch=(a, b), **given)
    return model


def assert_same(one, other, **tolerance):
    for name in LEARNT:
        assert_allclose(getattr(one, name), getattr(other, name), err_msg=name, **tolerance)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_while_all_examples_are_kept_it_is_fit(n_classes):
    X, labels, _ = clear_crowd(0, n_examples=200, n_classes=n_classes)
    weight = np.random.default_rng(0).uniform(0.5, 2, 200)
    whole = CrowdLogisticClassifier(tol=1e-7, max_rounds=300).fit(X, labels, weight)
    stream = CrowdLogisticClassifier(tol=1e-7, max_rounds=300)
    in_batches(stream, X, labels, [0, 1, 60, 150], sample_weight=weight)
    assert_same(stream, whole, atol=1e-6)
    assert stream.results_.n_examples == 200
    assert_allclose(stream.consensus(X, labels).proba, whole.consensus(X, labels).proba, atol=1e-5)


@pytest.mark.parametrize(
    ("n_classes", "settings"),
    [
        (2, {}),
        (3, {"annotator_model": Confusion()}),
        (2, {"hard_examples": True, "steepness": 1.0}),
        (2, {"cross_fit": 0, "fit_intercept": False}),
    ],
    ids=repr,
)
def test_beyond_that_it_is_near_fit(n_classes, settings, few_are_kept):
    X, labels, _ = clear_crowd(1, n_examples=600, n_classes=n_classes)
    model = CrowdLogisticClassifier(**SETTINGS | settings, errors_in_common=False)
    whole = clone(model).fit(X, labels)
    stream = in_batches(model, X, labels, range(50, 600, 50))
    assert stream.stream_.stepwise.n_examples == 600
    assert np.abs(stream.predict_proba(X) - whole.predict_proba(X)).mean() < 0.02
    assert np.abs(stream.consensus(X, labels).proba - whole.consensus(X, labels).proba).mean() < 0.01
    assert_allclose(stream.confusion_, whole.confusion_, atol=0.05)
    assert_array_equal(stream.results_.annotators.n_labels, labels.labels_per_annotator)


def test_copies_share_a_vote_as_in_fit(monkeypatch, tmp_path):
    monkeypatch.setattr(kept_rows, "_MOST_ROWS", 300)
    X, labels = with_copies(6, n_examples=900, missing=0.0)
    whole = CrowdLogisticClassifier(**SETTINGS).fit(X, labels)
    stream = in_batches(CrowdLogisticClassifier(**SETTINGS), X, labels, range(150, 900, 150))
    alone = in_batches(CrowdLogisticClassifier(**SETTINGS, errors_in_common=False), X, labels, range(150, 900, 150))
    assert_array_equal(stream.annotator_group_, whole.annotator_group_)
    assert len(set(stream.annotator_group_)) == 7

    def away(model):
        return np.abs(model.consensus(X, labels).proba - whole.consensus(X, labels).proba).mean()

    assert away(stream) < 0.01 < away(alone)
    assert_allclose(stream.confusion_, whole.confusion_, atol=0.05)
    # Annotators who come later are alone, and what is kept can be saved, merged and continued.
    other = CrowdLogisticClassifier(**SETTINGS)
    for start in range(0, 900, 150):
        other.partial_fit(X[start : start + 150], labels[slice(start, start + 150)])
    other.save(tmp_path / "model")
    later = CrowdLabels.from_matrix(np.zeros((40, 1)), annotators=["late"], classes=labels.classes)
    merged = stream.merge(crowdwise.load(tmp_path / "model")).partial_fit(X[:40], later)
    assert len(set(merged.annotator_group_)) == 8
    same = [merged.annotators_.tolist().index(name) for name in labels.annotators]
    assert_allclose(merged.confusion_[same], whole.confusion_, atol=0.05)


def test_who_always_answers_the_same_has_no_say_as_in_fit(few_are_kept):
    X, labels, _ = clear_crowd(6, n_examples=400, missing=0.2)
    matrix = labels.to_matrix().astype(object)
    matrix[:, 1] = 1
    labels = CrowdLabels.from_matrix(matrix)
    whole = CrowdLogisticClassifier(**SETTINGS).fit(X, labels)
    stream = in_batches(CrowdLogisticClassifier(**SETTINGS), X, labels, range(50, 400, 50))
    assert stream.stream_.stepwise.together.silent.tolist() == [i == 1 for i in range(7)]
    assert_allclose(stream.confusion_, whole.confusion_, atol=0.1)
    assert [stream.stream_.stepwise.n_voters(n) for n in (7, 9)] == [6, 8]  # whoever is new has a vote
    late = CrowdLabels.from_matrix(np.arange(40)[:, np.newaxis] % 2, annotators=["late"])
    assert stream.partial_fit(X[:40], late).stream_.stepwise.together.silent.tolist() == [i == 1 for i in range(8)]


def test_a_first_batch_larger_than_what_is_kept_is_learnt_from_as_a_whole(few_are_kept):
    X, labels, _ = clear_crowd(2, n_examples=500)
    whole = CrowdLogisticClassifier(**SETTINGS).fit(X, labels)
    stream = CrowdLogisticClassifier(**SETTINGS).partial_fit(X, labels)
    assert stream.stream_.stepwise.n_examples == 500
    assert len(stream.stream_.kept) == 100
    assert np.abs(stream.predict_proba(X) - whole.predict_proba(X)).mean() < 0.02
    assert np.abs(stream.stream_.stepwise.counts.sum() - labels.n_labels) < 1e-6  # every label is counted once


def test_saved_loaded_and_continued_gives_the_same_bits(few_are_kept, tmp_path):
    X, labels, _ = clear_crowd(3, n_examples=300)
    for cut in (60, 200):  # all examples are kept at the first, not at the second
        at_once = in_batches(CrowdLogisticClassifier(**SETTINGS), X, labels, [60, 200])
        before = in_batches(CrowdLogisticClassifier(**SETTINGS), X[:cut], labels[:cut], [60] if cut > 60 else [])
        before.save(tmp_path / "model")
        later = crowdwise.load(tmp_path / "model")
        for a, b in [(60, 200), (200, 300)] if cut == 60 else [(200, 300)]:
            later.partial_fit(X[a:b], labels[slice(a, b)], batch=(a, b))
        for name in LEARNT:
            assert_array_equal(getattr(later, name), getattr(at_once, name), err_msg=name)
        with pytest.raises(DataError, match=r"the batch \(0, 60\) has been learnt from already"):
            later.partial_fit(X[:10], labels[:10], batch=(0, 60))


def test_annotators_may_come_later_and_classes_only_while_all_examples_are_kept(few_are_kept):
    X, labels, truth = clear_crowd(4, n_examples=300, n_classes=3)
    early = CrowdLabels.from_matrix(np.where(truth[:80, None] < 2, truth[:80, None], 0) * np.ones(3, dtype=int))
    stream = CrowdLogisticClassifier(**SETTINGS).partial_fit(X[:80], early)
    assert stream.classes_.tolist() == [0, 1]
    stream.partial_fit(X[80:200], labels[80:200])
    assert stream.classes_.tolist() == [0, 1, 2]
    assert stream.stream_.stepwise is not None
    good = CrowdLabels.from_matrix(truth[200:, None] * np.ones(2, dtype=int), annotators=["new", "annotator 1"])
    good = CrowdLabels.from_matrix(
        np.hstack([good.to_matrix().astype(object), np.full((100, 1), None)]),
        annotators=["new", "annotator 1", "idle"],
    )
    stream.partial_fit(X[200:], good)
    assert len(stream.annotators_) == 12
    assert np.isnan(stream.accuracy_[-1])  # nothing is known of the one without labels
    assert stream.accuracy_[stream.annotators_.tolist().index("new")] > 0.8
    more = CrowdLabels.from_matrix([[3, 1], [3, 0]], annotators=["new", "annotator 1"])
    with pytest.raises(LabelError, match=r"the classes \[3\] are not among those known.*Declare all classes"):
        stream.partial_fit(X[:2], more)
    assert stream.stream_.seen.n_examples == 300  # nothing of it was learnt


def test_what_was_declared_holds():
    X, labels, _ = clear_crowd(5, n_examples=60)
    model = CrowdLogisticClassifier(**SETTINGS)
    declared = {"classes": [0, 1], "annotators": labels.annotators}
    model.partial_fit(X, labels, **declared).partial_fit(X[:0], labels[:0], **declared)
    with pytest.raises(LabelError, match=r"the annotators \['somebody'\] are not among those known"):
        model.partial_fit(X[:1], CrowdLabels.from_matrix([[1]], annotators=["somebody"]))
    with pytest.raises(LabelError, match=r"the classes \[7\] are not among those known"):
        model.partial_fit(X[:1], CrowdLabels.from_matrix([[7]], annotators=["annotator 1"]))
    with pytest.raises(ValueError, match="classes can be declared at the first call"):
        model.partial_fit(X, labels, classes=[0, 1, 2])


def test_sparse_features_single_precision_and_unlabelled_rows(few_are_kept):
    X, labels, _ = clear_crowd(6, n_examples=300)
    X = np.where(np.abs(X) < 0.3, 0.0, X)
    dense = in_batches(CrowdLogisticClassifier(**SETTINGS), X, labels, [120])
    single = in_batches(CrowdLogisticClassifier(**SETTINGS), X.astype(np.float32), labels, [120])
    assert np.abs(single.predict_proba(X) - dense.predict_proba(X)).mean() < 0.02  # another sample of rows is kept
    thin = in_batches(CrowdLogisticClassifier(**SETTINGS), sparse.csr_array(X), labels, [120])
    assert np.abs(thin.predict_proba(X) - dense.predict_proba(X)).mean() < 0.02
    nobody = CrowdLabels.from_matrix(np.full((5, 7), None), annotators=labels.annotators, classes=[0, 1])
    before = dense.coef_
    dense.partial_fit(X[:5], nobody)
    assert_array_equal(dense.coef_, before)
    assert dense.stream_.seen.n_unlabelled == 5


def test_examples_are_not_kept_and_settings_that_need_them_are_told():
    X, labels, _ = clear_crowd(7, n_examples=60)
    model = CrowdLogisticClassifier(**SETTINGS).partial_fit(X, labels)
    with pytest.raises(AttributeError, match="consensus_ is about single examples, which neither partial_fit"):
        model.consensus_  # noqa: B018
    with pytest.raises(DataError, match="keeps no single examples"):
        model.consensus_frame()
    for setting in ({"class_weight": "balanced"}, {"curriculum": Smooth(1.0)}):
        with pytest.raises(AttributeError, match=f"no partial_fit with these settings: {next(iter(setting))}"):
            CrowdLogisticClassifier(**setting).partial_fit(X, labels)
    with pytest.raises(LabelError, match="there is no label yet"):
        CrowdLogisticClassifier().partial_fit(X[:0], labels[:0]).predict(X)
    with pytest.raises(TypeError, match="batch must be a name"):
        model.partial_fit(X, labels, batch=[1])
    with pytest.raises(DataError, match="for at most 2999 of them; X has 3000"):
        CrowdLogisticClassifier().partial_fit(np.zeros((2, 3000)), [0, 1])


def test_fit_ends_a_stream_and_a_stream_does_not_go_on_from_fit():
    X, labels, _ = clear_crowd(8, n_examples=60)
    model = CrowdLogisticClassifier(**SETTINGS).partial_fit(X, labels).fit(X, labels)
    assert not hasattr(model, "stream_")
    assert len(model.consensus_) == 60
    with pytest.warns(UserWarning, match="a stream begins with this block"):
        model.partial_fit(X[:30], labels[:30])
    assert model.results_.n_examples == 30
    model.fit(read_blocks([(X, labels)]))
    assert model.results_.n_examples == 60
    assert not hasattr(model, "stream_")


def test_annotators_in_another_order_are_the_same_annotators(few_are_kept):
    X, labels, _ = clear_crowd(1, n_examples=400)
    matrix, names = labels.to_matrix(), labels.annotators

    def batch(rows, columns):
        return X[rows], CrowdLabels.from_matrix(matrix[rows][:, columns], annotators=names[columns])

    some, turned = slice(0, 150), slice(150, 400)
    one = CrowdLogisticClassifier(**SETTINGS).partial_fit(*batch(some, [0, 1, 2, 3, 4]))
    one.partial_fit(*batch(turned, [6, 5, 4, 3, 2, 1, 0]))
    other = CrowdLogisticClassifier(**SETTINGS).partial_fit(*batch(some, [0, 1, 2, 3, 4]))
    other.partial_fit(*batch(turned, [0, 1, 2, 3, 4, 5, 6]))
    at = [one.annotators_.tolist().index(name) for name in other.annotators_]
    assert_allclose(one.accuracy_[at], other.accuracy_, rtol=1e-9)
    assert_allclose(one.coef_, other.coef_, rtol=1e-9)


# ------------------------------------------------------------------ two streams


def halves(X, labels, n_batches=3, **settings):
    """Two models, each of the batches of one half."""
    middle = len(X) // 2
    models = []
    for start, stop in ((0, middle), (middle, len(X))):
        model, cuts = (
            CrowdLogisticClassifier(**SETTINGS | settings),
            np.linspace(start, stop, n_batches + 1).astype(int),
        )
        for a, b in pairwise(cuts):
            model.partial_fit(X[a:b], labels[slice(a, b)], batch=(int(a), int(b)))
        models.append(model)
    return models


def test_streams_whose_examples_are_all_kept_are_merged_to_a_fit():
    X, labels, _ = clear_crowd(5, n_examples=200, n_classes=3)
    one, other = halves(X, labels, tol=1e-12, max_rounds=500)
    before = other.coef_.copy()
    merged = one.merge(other)
    assert merged is one
    assert_same(merged, CrowdLogisticClassifier(**SETTINGS, tol=1e-12, max_rounds=500).fit(X, labels), rtol=1e-9)
    assert_array_equal(other.coef_, before)
    with pytest.raises(DataError, match=r"the batch .* has been learnt from already"):
        one.merge(other)


@pytest.mark.parametrize("n_examples", [60, 400], ids=["kept", "beyond"])
@pytest.mark.parametrize("declares", ["first", "second"])
def test_what_was_declared_for_one_stream_holds_for_both(declares, n_examples, few_are_kept):
    X, labels, _ = clear_crowd(6, n_examples=2 * n_examples)
    names = labels.annotators
    others = np.array(["somebody", *names[1:]], dtype=object)

    def merged(of_second, **declared):
        """Two streams, the second one with labels by these annotators."""
        parts = labels[:n_examples], dataclasses.replace(labels[n_examples:], annotators=of_second)
        given = ({}, declared) if declares == "second" else (declared, {})
        one, other = (
            CrowdLogisticClassifier(**SETTINGS).partial_fit(X[k * n_examples :][:n_examples], part, **given[k])
            for k, part in enumerate(parts)
        )
        return one.merge(other)

    both = merged(names, classes=[0, 1], annotators=names)
    with pytest.raises(LabelError, match=r"the annotators \['somebody'\] are not among those known"):
        both.partial_fit(X[:1], CrowdLabels.from_matrix([[1]], annotators=["somebody"]))
    with pytest.raises(LabelError, match=r"the annotators .* are not among those declared"):
        merged(others, annotators=names if declares == "first" else others)


@pytest.mark.parametrize("sizes", [(60, 400), (400, 60)])
def test_a_stream_that_is_kept_is_a_batch_of_the_other(sizes, few_are_kept):
    X, labels, _ = clear_crowd(6, n_examples=460)
    small, large = sorted([slice(0, sizes[0]), slice(sizes[0], 460)], key=lambda rows: rows.stop - rows.start)
    models = [CrowdLogisticClassifier(**SETTINGS).partial_fit(X[rows], labels[rows]) for rows in (small, large)]
    assert [model.stream_.stepwise is None for model in models] == [True, False]
    expected = CrowdLogisticClassifier(**SETTINGS).partial_fit(X[large], labels[large])
    kept = models[0].stream_.rows()
    expected.partial_fit(kept.X, kept.labels)
    merged = models[0].merge(models[1]) if sizes[0] == 60 else models[1].merge(models[0])
    assert_same(merged, expected, rtol=1e-12)


@pytest.mark.parametrize(("n_classes", "settings"), [(2, {}), (3, {"hard_examples": True, "steepness": 1.0})], ids=repr)
def test_statistics_of_two_streams_are_added(n_classes, settings, few_are_kept):
    X, labels, _ = clear_crowd(7, n_examples=800, n_classes=n_classes)
    X += 50  # so that each stream has a shift of its own
    whole = CrowdLogisticClassifier(**SETTINGS | settings, errors_in_common=False).fit(X, labels)
    one, other = halves(X, labels, 4, errors_in_common=False, **settings)
    assert np.abs(one.stream_.stepwise.shift - other.stream_.stepwise.shift).max() > 0
    counts = one.stream_.stepwise.counts.sum() + other.stream_.stepwise.counts.sum()
    merged = one.merge(other)
    assert merged.stream_.stepwise.n_examples == merged.results_.n_examples == 800
    assert merged.stream_.stepwise.counts.sum() == pytest.approx(counts)
    assert np.abs(merged.predict_proba(X) - whole.predict_proba(X)).mean() < 0.02
    assert np.abs(merged.consensus(X, labels).proba - whole.consensus(X, labels).proba).mean() < 0.01
    assert_allclose(merged.confusion_, whole.confusion_, atol=0.05)
    merged.partial_fit(X[:50], labels[:50], batch="more")  # the stream goes on
    assert merged.stream_.seen.n_examples == 850


def test_a_parabola_is_the_same_around_another_shift(few_are_kept, rng):
    X, labels, _ = clear_crowd(8, n_examples=300)
    kept = CrowdLogisticClassifier(**SETTINGS).partial_fit(X, labels).stream_.stepwise
    unit, shift = 4.0, rng.normal(size=2)
    gram, pull = kept._around(unit, shift)
    there = rng.normal(size=(3, 1))
    x = rng.normal(size=(5, 2))
    scores = (x / unit - shift) @ there[:-1] + there[-1]
    # The same scores by coefficients for features in the unit and around the shift of before.
    here = np.vstack([there[:-1] * kept.unit / unit, there[-1] + (kept.shift * kept.unit / unit - shift) @ there[:-1]])
    assert_allclose((x / kept.unit - kept.shift) @ here[:-1] + here[-1], scores)

    def loss(gram, pull, theta):
        return (theta.T @ gram[0] @ theta / 2 - pull.T @ theta).item()

    assert loss(gram, pull, there) == pytest.approx(loss(kept.gram, kept.pull, here))


def test_streams_that_do_not_fit_together_are_told(few_are_kept):
    X, labels, _ = clear_crowd(9, n_examples=300)
    one = CrowdLogisticClassifier(**SETTINGS).partial_fit(X, labels)
    with pytest.raises(TypeError, match="can be merged with another one; got CrowdRidgeClassifier"):
        one.merge(crowdwise.CrowdRidgeClassifier().partial_fit(X, labels))
    with pytest.raises(DataError, match="fitted by partial_fit, and the other model was not"):
        one.merge(CrowdLogisticClassifier(**SETTINGS).fit(X, labels))
    with pytest.raises(DataError, match=r"other settings cannot be merged: l2 is 1\.0 and 2\.0"):
        one.merge(CrowdLogisticClassifier(**SETTINGS | {"l2": 2.0}).partial_fit(X, labels))
    with pytest.raises(DataError, match="the same features, with the same names"):
        one.merge(CrowdLogisticClassifier(**SETTINGS).partial_fit(X[:, :1], labels))
    words = CrowdLabels.from_matrix(np.where(labels.to_matrix() == 1, "yes", "no"))
    with pytest.raises(LabelError, match=r"streams of the classes \[0, 1\] and \['no', 'yes'\] cannot be merged"):
        one.merge(CrowdLogisticClassifier(**SETTINGS).partial_fit(X, words))
    other = CrowdLogisticClassifier(**SETTINGS).partial_fit(X, labels)
    other.stream_ = dataclasses.replace(
        other.stream_,
        stepwise=dataclasses.replace(
            other.stream_.stepwise, chosen=dataclasses.replace(other.stream_.stepwise.chosen, model_weight=0.0)
        ),
    )
    with pytest.raises(DataError, match="found hard examples, estimates annotators from labels"):
        one.merge(other)
    assert one.stream_.seen.n_examples == 300
