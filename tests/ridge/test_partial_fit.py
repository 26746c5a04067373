"""Many blocks give what one fit on all of their examples gives."""

import pickle
import re
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from all_models import quiet
from crowds import crowd, labels_of
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import in_slow_run
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import crowdwise
from crowdwise import CrowdLabels, CrowdRidgeClassifier, CrowdRidgeClassifierCV, CrowdRidgeRegressor, read_blocks
from crowdwise.crowd import disagreement
from crowdwise.crowd._disagreement import RatingMoments
from crowdwise.exceptions import AlignmentError, CrowdWarning, DataError, LabelError
from crowdwise.ridge import sums
from crowdwise.rows import summary as label_hash
from crowdwise.weights import SelfPaced, Smooth
from crowdwise.weights.folds import stored_keys

LEARNT = ("coef_", "intercept_", "expertise_")
TIGHT = {"tol": 1e-11, "max_rounds": 300}


def in_blocks(model, X, y, cuts, **arguments):
    """The model after partial_fit of the rows between cuts; all classes are declared.

    What is remarkable about the first few rows alone is not told.
    """
    declared = {} if isinstance(model, CrowdRidgeRegressor) else {"classes": CrowdLabels.from_matrix(y).classes}
    for start, stop in zip([0, *cuts], [*cuts, X.shape[0]], strict=True):
        weight = {name: value[start:stop] for name, value in arguments.items()}
        with warnings.catch_warnings():
            if stop < X.shape[0]:
                warnings.simplefilter("ignore", CrowdWarning)
            model.partial_fit(X[start:stop], y[start:stop], **weight, **declared)
        declared = {}
    return model


def assert_same(one, other, rtol=1e-10):
    for name in LEARNT:
        left, right = np.asarray(getattr(one, name)), np.asarray(getattr(other, name))
        assert_allclose(left, right, rtol=0, atol=rtol * np.nanmax(np.abs(right)), err_msg=name)
    assert_allclose(one.objective_[-1], other.objective_[-1], rtol=rtol, atol=rtol)
    assert one.converged_ == other.converged_


def stars(seed=0, n_examples=90, missing=0.0):
    """Features and ratings of one to five stars, NaN where there is none."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_examples, 3))
    noise = rng.normal(size=(n_examples, 5)) * [0.2, 0.5, 1.0, 1.0, 2.0]
    ratings = np.clip(np.round(3 + X[:, :1] + noise), 1, 5)
    ratings[rng.random(ratings.shape) < missing] = np.nan
    ratings[:, 0] = np.where(np.isnan(ratings).all(axis=1), 3.0, ratings[:, 0])
    return X, ratings


# ------------------------------------------------------------------ the same as one fit


@settings(max_examples=15)
@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=4).map(sorted),
    st.sampled_from([2, 3]),
    st.sampled_from([0.0, 0.4]),
    st.sampled_from([0.0, 1e8]),
    st.booleans(),
)
def test_blocks_give_what_one_fit_gives(cuts, n_classes, missing, offset, weighted):
    X, matrix = crowd(1, n_examples=60, n_classes=n_classes, missing=missing)
    X = X + offset
    weight = {"sample_weight": np.random.default_rng(0).uniform(0.5, 2, len(X))} if weighted else {}
    whole = CrowdRidgeClassifier(**TIGHT).fit(X, matrix, **weight)
    assert_same(in_blocks(CrowdRidgeClassifier(**TIGHT), X, matrix, cuts, **weight), whole)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("relative_to", ["observed", "possible", None])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_ratings_in_few_levels_give_what_one_fit_gives(missing, relative_to, offset):
    X, ratings = stars(missing=missing)
    model = CrowdRidgeRegressor(relative_to=relative_to, **TIGHT)
    assert_same(in_blocks(clone(model), X, ratings + offset, [7, 8, 50]), clone(model).fit(X, ratings + offset))


@pytest.mark.parametrize(
    "settings",
    [
        {"fit_intercept": False},
        {"init": "mean"},
        {"relative_to": "possible"},
        {"relative_to": None, "steepness": 0.1},
        {"steepness": 0.0},
        {"curriculum": Smooth(2.0), "max_rounds": 20, "tol": 1e-2},
        {"l2": 30.0},
    ],
    ids=repr,
)
@pytest.mark.parametrize("missing", [0.3, in_slow_run(0.0)])
def test_settings_give_what_one_fit_gives(settings, missing):
    X, matrix = crowd(2, n_examples=80, n_classes=3, missing=missing)
    model = CrowdRidgeClassifier(**(TIGHT | settings))
    assert_same(in_blocks(clone(model), X, matrix, [20, 21, 60]), clone(model).fit(X, matrix))


def test_sparse_features_and_single_precision_give_what_one_fit_gives():
    X, matrix = crowd(3, n_examples=80, n_features=6)
    X[np.abs(X) < 1] = 0
    model = CrowdRidgeClassifier(**TIGHT)
    assert_same(in_blocks(clone(model), sparse.csr_array(X), matrix, [30]), clone(model).fit(X, matrix))
    assert_same(in_blocks(clone(model), X.astype(np.float32), matrix, [30]), clone(model).fit(X.astype("f4"), matrix))
    both = clone(model).partial_fit(X[:30], matrix[:30]).partial_fit(sparse.csr_array(X[30:]), matrix[30:])
    assert_same(both, clone(model).fit(X, matrix))


def test_examples_without_label_or_weight_take_no_part():
    X, matrix = crowd(4, n_examples=40)
    matrix[5:8] = None
    weight = np.ones(40)
    weight[20:25] = 0
    with pytest.warns(CrowdWarning, match="3 of 40 examples have"):
        whole = CrowdRidgeClassifier(**TIGHT).fit(X, matrix, weight)
    with pytest.warns(CrowdWarning, match="3 of 40 examples have"):
        blocks = in_blocks(CrowdRidgeClassifier(**TIGHT), X, matrix, [6, 22], sample_weight=weight)
    assert_same(blocks, whole)


def test_a_sample_that_is_everything_gives_the_accuracy_and_flags_of_fit():
    X, matrix = crowd(5, n_examples=400)
    matrix[:, 3] = matrix[:, 1]
    whole, blocks = CrowdRidgeClassifier().fit(X, matrix), in_blocks(CrowdRidgeClassifier(), X, matrix, [100, 250])
    assert blocks.annotator_flags_ == whole.annotator_flags_ == {1: ("same labels as 3",), 3: ("same labels as 1",)}
    assert_allclose(blocks.accuracy_, whole.accuracy_, rtol=1e-9)
    assert_allclose(blocks.temperature_, whole.temperature_, rtol=1e-9)
    assert_array_equal(blocks.annotators_frame()["labels"], np.full(6, 400))
    assert blocks.route_ == "sums"


# ------------------------------------------------------------------ tuned


def splits_of_stream(X, n_folds, seed):
    fold = (stored_keys(X, seed) % np.uint64(n_folds)).astype(int)
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_folds)]


@pytest.mark.parametrize("missing", [0.0, in_slow_run(0.4)])
def test_tuning_on_a_stream_equals_fit_with_the_same_folds_and_does_not_depend_on_blocks(missing):
    X, matrix = crowd(6, n_examples=120, missing=missing)
    grid = {"steepnesses": (0.0, 2.0), "l2s": (0.1, 1.0, 10.0), "random_state": 3, **TIGHT}
    blocks = in_blocks(CrowdRidgeClassifierCV(cv=4, **grid), X, matrix, [17, 80])
    at_once = CrowdRidgeClassifierCV(cv=4, **grid).partial_fit(X, matrix)
    whole = CrowdRidgeClassifierCV(cv=splits_of_stream(X, 4, 3), **grid).fit(X, matrix)
    for other in (at_once, whole):
        assert_same(blocks, other)
        assert (blocks.l2_, blocks.steepness_) == (other.l2_, other.steepness_)
        for name in ("held_out_error", "criterion", "l2"):
            assert_allclose(blocks.cv_results_[name], other.cv_results_[name], rtol=1e-9)
    assert_allclose(blocks.temperature_, whole.temperature_, rtol=1e-9)  # the sample is everything
    assert blocks.criterion_ == "agreement"


def test_steepness_is_found_on_a_stream():
    X, matrix = crowd(7, n_examples=200)
    whole, blocks = (CrowdRidgeClassifierCV(cv=3) for _ in range(2))
    assert in_blocks(blocks, X, matrix, [50]).steepness_ == whole.fit(X, matrix).steepness_


def test_a_stream_of_equal_rows_cannot_be_cross_validated():
    with pytest.raises(DataError, match="all the same or in one fold"):
        CrowdRidgeClassifierCV(cv=3).partial_fit(np.ones((4, 2)), [[0, 1], [1, 1], [0, 0], [1, 0]])


# ------------------------------------------------------------------ classes and annotators that are declared


def test_a_new_annotator_has_left_out_what_came_before():
    X, matrix = crowd(8, n_examples=60)
    matrix[:25, 4:] = None
    names = np.array(["a", "b", "c", "d", "e", "f"])
    model = CrowdRidgeClassifier(**TIGHT)
    model.partial_fit(X[:25], CrowdLabels.from_matrix(matrix[:25, :4], annotators=names[:4]), annotators=names)
    assert model.annotators_.tolist() == names.tolist()
    assert np.isnan(model.expertise_[4:]).all()
    model.partial_fit(X[25:], CrowdLabels.from_matrix(matrix[25:], annotators=names))
    whole = CrowdRidgeClassifier(**TIGHT).fit(X, CrowdLabels.from_matrix(matrix, annotators=names))
    assert model.annotators_.tolist() == names.tolist()
    assert_same(model, whole)


def test_annotators_are_matched_by_name_in_any_order_and_company():
    X, matrix = crowd(9, n_examples=60)
    matrix[:30, 0], matrix[30:, 5] = None, None
    one = CrowdLabels.from_matrix(matrix[:30, [3, 1, 2, 5, 4]], annotators=list("dbcfe"))
    two = CrowdLabels.from_matrix(matrix[30:, :5], annotators=list("abcde"))
    model = CrowdRidgeClassifier(**TIGHT).partial_fit(X[:30], one, annotators=list("fedcba")).partial_fit(X[30:], two)
    whole = CrowdRidgeClassifier(**TIGHT).fit(X, CrowdLabels.from_matrix(matrix, annotators=list("abcdef")))
    assert_allclose(model.coef_, whole.coef_, rtol=1e-10)
    assert model.annotators_.tolist() == list("fedcba")
    found = dict(zip(model.annotators_, model.expertise_, strict=True))
    assert_allclose([found[name] for name in whole.annotators_], whole.expertise_, rtol=1e-10)


def test_declared_annotators_without_labels_change_nothing_else():
    X, matrix = crowd(10, n_examples=50)
    names = [0, 1, 2, 3, 4, 5, "late"]
    model = CrowdRidgeClassifier(**TIGHT).partial_fit(X, matrix, annotators=names)
    whole = CrowdRidgeClassifier(**TIGHT).fit(X, matrix)
    assert_array_equal(model.coef_, CrowdRidgeClassifier(**TIGHT).partial_fit(X, matrix).coef_)
    assert_allclose(model.coef_, whole.coef_, rtol=1e-10)
    assert np.isnan(model.expertise_[-1])
    assert model.annotator_flags_["late"] == ("no labels",)


def test_classes_come_as_they_are_named():
    X, matrix = crowd(11, n_examples=60, n_classes=3)
    names = np.array(["b", "c", "a"], dtype=object)
    words = names[matrix.astype(int)]
    order = np.argsort((words == "a").any(axis=1), kind="stable")  # the class that sorts first comes last
    X, words = X[order], words[order]
    n_without = int((words != "a").all(axis=1).sum())
    model = in_blocks(CrowdRidgeClassifier(**TIGHT), X, words, [1, 2, n_without])
    assert model.classes_.tolist() == ["a", "b", "c"]
    with pytest.raises(LabelError, match=re.escape("the classes ['a'] are not among")):
        CrowdRidgeClassifier().partial_fit(X[:n_without], words[:n_without]).partial_fit(X, words)
    assert_same(model, CrowdRidgeClassifier(**TIGHT).fit(X, words))


@quiet
@pytest.mark.parametrize("model", [CrowdRidgeClassifier(), CrowdRidgeClassifierCV(cv=2, l2s=[1.0])], ids=repr)
def test_a_block_of_one_class_is_enough_if_classes_are_declared(model):
    X, _ = crowd(12)
    with pytest.raises(LabelError, match="labels of at least two"):
        clone(model).partial_fit(X[:8], np.ones((8, 2)))
    model.partial_fit(X[:8], np.ones((8, 2)), classes=[0, 1, 2])
    assert model.predict(X).tolist() == [1] * len(X)
    assert_allclose(model.accuracy_, 1.0, atol=0.01)
    assert np.isfinite(model.consensus(X[:2], [[1, 1], [0, 2]]).proba).all()
    model.partial_fit(X[8:10], np.zeros((2, 2)))
    assert model.predict(X[:1]).tolist() == [1]
    assert model.classes_.tolist() == [0, 1, 2]


@quiet
def test_one_label_is_enough_if_classes_are_declared():
    X, _ = crowd(12)
    model = CrowdRidgeClassifier().partial_fit(X[:1], [["no"]], classes=["no", "yes"])
    assert model.predict(X[:3]).tolist() == ["no"] * 3
    assert model.expertise_.tolist() == [1.0]


def test_declared_classes_are_all_there_are():
    X, matrix = crowd(13, n_classes=3)
    model = CrowdRidgeClassifier().partial_fit(X[:20], matrix[:20], classes=[2, 1, 0])
    model.partial_fit(X[20:], matrix[20:], classes=[2, 1, 0])
    assert model.classes_.tolist() == [2, 1, 0]
    with pytest.raises(LabelError, match=re.escape("the classes [7] are not among")):
        model.partial_fit(X[:1], [[7, 7]])
    with pytest.raises(ValueError, match="at the first call"):
        model.partial_fit(X, matrix, classes=[0, 1, 2])
    with pytest.raises(LabelError, match=r"annotators \[2, 3, 4\] are not among those declared"):
        CrowdRidgeClassifier().partial_fit(X, matrix, annotators=[0, 1])
    with pytest.raises(LabelError, match=r"annotators \[2, 3, 4\] are not among those declared"):
        CrowdRidgeClassifier().partial_fit(X, matrix[:, :2]).partial_fit(X, matrix)


# ------------------------------------------------------------------ merging


def test_models_merge_in_any_order_to_what_one_fit_gives():
    X, matrix = crowd(14, n_examples=90, n_classes=3, missing=0.3)
    parts = [slice(0, 10), slice(10, 45), slice(45, 90)]
    models = [CrowdRidgeClassifier(**TIGHT).partial_fit(X[part], matrix[part]) for part in parts]
    whole = CrowdRidgeClassifier(**TIGHT).fit(X, matrix)
    for order in ([0, 1, 2], [2, 0, 1], [1, 2, 0]):
        first, *others = (pickle.loads(pickle.dumps(models[i])) for i in order)
        for other in others:
            first.merge(other)
        assert_same(first, whole)
    assert_same(models[1].merge(models[2]), CrowdRidgeClassifier(**TIGHT).fit(X[10:], matrix[10:]))


def test_the_sample_does_not_depend_on_the_order_of_blocks(set_constants):
    set_constants("crowdwise.rows.summary", ENOUGH_EXAMPLES=25)
    X, matrix = crowd(15, n_examples=90, missing=0.3)
    X[10:40] = X[10]  # equal features, different labels
    samples = []
    for cuts in ([], [30], [3, 4, 88]):
        kept = in_blocks(CrowdRidgeClassifier(), X, matrix, cuts).sums_.summary.sample.in_order()
        again = in_blocks(CrowdRidgeClassifier(), X[::-1], matrix[::-1], cuts).sums_.summary.sample.in_order()
        samples += [kept, again]
    for kept in samples:
        assert len(kept) == 25
        for name in ("key", "X"):
            assert_array_equal(getattr(kept, name), getattr(samples[0], name))
        for name in ("indptr", "annotator_index", "values"):
            assert_array_equal(getattr(kept.labels, name), getattr(samples[0].labels, name))
    n_equal = sum(row == X[10].tolist() for row in samples[0].X.tolist())
    assert 1 < n_equal < 20  # about a third of all


def test_a_sample_is_enough_for_what_sums_cannot_say(set_constants):
    X, matrix = crowd(16, n_examples=3000)
    everything = CrowdRidgeClassifier().partial_fit(X, matrix)
    set_constants("crowdwise.rows.summary", ENOUGH_EXAMPLES=500)
    sampled = CrowdRidgeClassifier().partial_fit(X, matrix)
    assert len(sampled.sums_.summary.sample) == 500
    assert_array_equal(sampled.coef_, everything.coef_)
    assert_array_equal(sampled.expertise_, everything.expertise_)
    assert_allclose(sampled.accuracy_, everything.accuracy_, atol=0.05)
    assert 1 / 3 < sampled.temperature_ / everything.temperature_ < 3


def test_what_cannot_be_merged_is_refused():
    X, matrix = crowd(17)
    model = CrowdRidgeClassifier().partial_fit(X, matrix, batch="monday")
    with pytest.raises(DataError, match="'monday' was already learned from"):
        model.merge(CrowdRidgeClassifier().partial_fit(X[:5], matrix[:5], batch="monday"))
    with pytest.raises(DataError, match=r"l2 is 1.0 and 2.0"):
        model.merge(CrowdRidgeClassifier(l2=2.0).partial_fit(X, matrix))
    with pytest.raises(DataError, match="the other model was not"):
        model.merge(CrowdRidgeClassifier().fit(X, matrix))
    with pytest.raises(TypeError, match="got CrowdRidgeRegressor"):
        model.merge(CrowdRidgeRegressor())
    with pytest.raises(DataError, match="same features"):
        model.merge(CrowdRidgeClassifier().partial_fit(X[:, :2], matrix))
    named = CrowdRidgeClassifier().partial_fit(pd.DataFrame(X, columns=list("abc")), matrix)
    with pytest.raises(DataError, match="the same names"):
        model.merge(named)
    with pytest.raises(DataError, match="the same names"):
        named.merge(model)
    assert model.sums_.batches == ("monday",)
    assert model.sums_.n_examples == len(X)


# ------------------------------------------------------------------ what is refused, and what stays


def test_the_same_batch_twice_is_refused_and_nothing_is_lost():
    X, matrix = crowd(18)
    model = CrowdRidgeClassifier().partial_fit(X[:20], matrix[:20], batch=("2026", 1))
    before = model.coef_.copy()
    with pytest.raises(DataError, match=re.escape("('2026', 1) was already learned from")):
        model.partial_fit(X[:20], matrix[:20], batch=("2026", 1))
    assert_array_equal(model.coef_, before)
    assert model.partial_fit(X[20:], matrix[20:], batch=("2026", 2)).sums_.batches == (("2026", 1), ("2026", 2))
    with pytest.raises(TypeError, match="batch must be a name"):
        model.partial_fit(X, matrix, batch=["2026"])


def test_empty_blocks_change_nothing():
    X, matrix = crowd(19)
    with pytest.raises(LabelError, match="no label yet"):
        CrowdRidgeClassifier().partial_fit(X[:0], matrix[:0], classes=[0, 1])
    model = CrowdRidgeClassifier(**TIGHT).partial_fit(X, matrix).partial_fit(X[:0], matrix[:0])
    assert_same(model, CrowdRidgeClassifier(**TIGHT).fit(X, matrix))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (lambda X, y: (X[:, :2], y), ValueError, "X has 2 features, but CrowdRidgeClassifier is expecting 3"),
        (lambda X, y: (X[:5], y), AlignmentError, "X has 5 examples and the labels have 40"),
        (lambda X, y: (np.where(X > 2, np.nan, X), y), DataError, "contains NaN or infinity"),
        (lambda X, y: (X, np.full(y.shape, "yes")), LabelError, "the classes"),
        (lambda X, y: (X, y, np.full(40, 1e60)), ValueError, "Divide the weights of all blocks by the same number"),
        (lambda X, y: (pd.DataFrame(X, index=range(90, 130)), CrowdLabels.from_matrix(y, examples=range(200, 240))),
         AlignmentError, "no identifier of X"),
    ],
)  # fmt: skip
def test_a_block_that_is_wrong_is_refused_and_the_model_stays_as_it_was(arguments, error, message):
    X, matrix = crowd(20)
    model = CrowdRidgeClassifier().partial_fit(X, matrix)
    before, coef = model.sums_, model.coef_
    with pytest.raises(error, match=message):
        model.partial_fit(*arguments(X, matrix))
    assert model.sums_ is before
    assert model.coef_ is coef


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (CrowdRidgeClassifier(curriculum=SelfPaced()), "looks at the examples in every round"),
        (CrowdRidgeRegressor(curriculum=SelfPaced()), "looks at the examples in every round"),
        (CrowdRidgeClassifier(class_weight="balanced"), "class_weight='balanced' looks at the consensus"),
        (CrowdRidgeClassifierCV(cv=[([0], [1])]), "cv must be a number"),
    ],
)
def test_settings_that_need_the_examples_again_have_no_partial_fit(model, message):
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError, match=message):
        model.partial_fit([[0.0]], [[1]])


def test_sums_that_would_not_fit_are_refused(set_constants):
    X, matrix = crowd(21, missing=0.3)
    with pytest.raises(DataError, match="at most 2999 of them;"):
        CrowdRidgeClassifier().partial_fit(np.zeros((2, 3000)), [[0], [1]])
    rng = np.random.default_rng(0)
    with pytest.raises(DataError, match="Round the ratings"):
        CrowdRidgeRegressor().partial_fit(rng.normal(size=(3000, 2)), rng.normal(size=(3000, 3)))
    set_constants(sums, MEMORY_BUDGET=2**10)
    with pytest.raises(DataError, match="6 annotators and 11 levels"):
        CrowdRidgeClassifier().partial_fit(X, matrix)
    for model in (CrowdRidgeClassifier(), CrowdRidgeClassifierCV(cv=3)):
        with pytest.raises(DataError, match="do not fit into 0"):
            model.fit(read_blocks(X, matrix))


def test_folds_are_given_up_where_sums_take_too_much_memory(set_constants):
    X, matrix = crowd(22, n_examples=300, missing=0.3)
    whole = CrowdRidgeClassifier(**TIGHT).fit(X, matrix)
    set_constants(sums, MEMORY_BUDGET=2**14)
    blocks = in_blocks(CrowdRidgeClassifier(**TIGHT), X, matrix, [3, 200])
    assert blocks.sums_.n_folds == 1
    assert_same(blocks, whole)
    assert_allclose(blocks.temperature_, whole.temperature_, rtol=1e-9)  # the folds of the sample, as in fit
    with pytest.raises(DataError, match="fewer features or folds"):
        CrowdRidgeClassifierCV(cv=5).partial_fit(X, matrix)


def test_results_about_single_examples_are_not_kept_and_say_so():
    X, matrix = crowd(23)
    model = CrowdRidgeClassifier().partial_fit(X, matrix)
    for name in ("consensus_", "disagreement_", "label_score_", "examples_"):
        assert not hasattr(model, name)
        with pytest.raises(AttributeError, match=f"{name} is about single examples.*consensus\\(X, labels\\)"):
            getattr(model, name)
    with pytest.raises(DataError, match="examples of blocks are not kept"):
        model.consensus_frame()
    with pytest.raises(TypeError, match="this CrowdRidgeClassifier was fitted to blocks"):
        crowdwise.suggest_labels(model, CrowdLabels.from_matrix(matrix))
    assert len(model.consensus(X, matrix)) == len(X)
    assert repr(model.results_).startswith("FitResults: 40 examples (of blocks, not kept), 6 annotators")
    assert not hasattr(model, "nonsense_")


# ------------------------------------------------------------------ solving, and life as an estimator


def test_results_are_there_after_every_block_and_no_attribute_solves(monkeypatch):
    X, matrix = crowd(24)
    calls = []
    solve = CrowdRidgeClassifier._learn
    monkeypatch.setattr(CrowdRidgeClassifier, "_learn", lambda *given: calls.append(1) or solve(*given))
    model = in_blocks(CrowdRidgeClassifier(), X, matrix, [10, 20])
    assert "coef_" in vars(model)
    model.predict(X), model.coef_, model.consensus(X, matrix), clone(model), hasattr(model, "nonsense_")
    assert calls == [1, 1, 1]


def test_settings_that_change_later_count_from_the_next_block_on():
    X, matrix = crowd(25)
    model = CrowdRidgeClassifier().partial_fit(X[:20], matrix[:20])
    model.set_params(l2=30.0)
    assert_array_equal(model.coef_, CrowdRidgeClassifier().partial_fit(X[:20], matrix[:20]).coef_)
    model.partial_fit(X[20:], matrix[20:])
    assert_array_equal(model.coef_, in_blocks(CrowdRidgeClassifier(l2=30.0), X, matrix, [20]).coef_)
    with pytest.raises(DataError, match="changed after its first block"):
        model.set_params(init="mean").partial_fit(X, matrix)


def test_fit_and_partial_fit_begin_anew_after_each_other():
    X, matrix = crowd(26)
    model = CrowdRidgeClassifier().partial_fit(X[:10], matrix[:10]).fit(X, matrix)
    assert not hasattr(model, "sums_")
    assert_array_equal(model.consensus_, CrowdRidgeClassifier().fit(X, matrix).consensus_)
    with pytest.warns(CrowdWarning, match="a stream begins with this block"):
        model.partial_fit(X[:10], matrix[:10])
    assert_array_equal(model.coef_, CrowdRidgeClassifier().partial_fit(X[:10], matrix[:10]).coef_)
    assert not hasattr(model, "consensus_")
    with pytest.raises(NotFittedError):
        CrowdRidgeClassifier().predict(X)


@pytest.mark.parametrize(
    "model", [CrowdRidgeClassifier(), CrowdRidgeClassifierCV((0.0, 2.0), l2s=(0.1, 1.0), cv=3), CrowdRidgeRegressor()]
)
def test_a_stream_that_was_saved_goes_on_with_the_same_bits(model, tmp_path):
    X, y = stars(missing=0.3)
    begun = clone(model).partial_fit(X[:50], y[:50], batch="first")
    begun.save(tmp_path / "model.crowdwise")
    loaded = crowdwise.load(tmp_path / "model.crowdwise")
    assert_array_equal(loaded.predict(X), begun.predict(X))
    for one in (begun, loaded):
        one.partial_fit(X[50:], y[50:])
    precision = "model_precision_" if isinstance(model, CrowdRidgeRegressor) else "temperature_"
    for name in (*LEARNT, precision, "annotators_"):
        assert_array_equal(getattr(begun, name), getattr(loaded, name))
    with pytest.raises(DataError, match="'first' was already learned from"):
        loaded.partial_fit(X, y, batch="first")


# ------------------------------------------------------------------ a fit on blocks


def test_blocks_of_other_annotators_and_classes_and_of_nothing_come_together():
    X, matrix = crowd(2, n_examples=60, n_classes=3, missing=0.3)
    names = np.array(list("abcdef"))
    matrix[:20, 3:], matrix[20:, 0] = None, None
    matrix[:20, :3] = np.where(matrix[:20, :3] == 2, 1, matrix[:20, :3])
    matrix[:20, 0] = 0
    matrix[25] = None
    blocks = [
        (X[:20], CrowdLabels.from_matrix(matrix[:20, :3], annotators=names[:3])),
        (X[:0], CrowdLabels.from_matrix(matrix[:0], annotators=names)),
        (X[20:], CrowdLabels.from_matrix(matrix[20:][:, [5, 1, 2, 4, 3]], annotators=names[[5, 1, 2, 4, 3]])),
    ]
    with pytest.warns(CrowdWarning, match="1 of 60 examples has"):
        read = CrowdRidgeClassifier(**TIGHT).fit(read_blocks(blocks))
    with pytest.warns(CrowdWarning, match="1 of 60 examples has"):
        whole = CrowdRidgeClassifier(**TIGHT).fit(X, CrowdLabels.from_matrix(matrix, annotators=names))
    assert_allclose(read.coef_, whole.coef_, rtol=1e-9)
    found = dict(zip(read.annotators_.tolist(), read.expertise_, strict=True))
    assert_allclose([found[name] for name in whole.annotators_.tolist()], whole.expertise_, rtol=1e-9)


def test_a_block_of_contested_examples_alone_weighs_as_little_as_among_others():
    X, matrix = crowd(5, n_examples=80, n_annotators=4, missing=0.2)
    labels = CrowdLabels.from_matrix(matrix)
    order = np.argsort(disagreement(labels), kind="stable")
    model = CrowdRidgeClassifier(60.0, **TIGHT)
    read = clone(model).fit(read_blocks(X[order], labels[order], max_bytes=960))
    assert_same(read, clone(model).fit(X, labels), rtol=1e-9)


# ------------------------------------------------------------------ the sums


def test_sums_of_blocks_are_mapped_and_added_by_anyone():
    X, matrix = crowd(27, n_examples=60, missing=0.2)
    frame, model = pd.DataFrame(X, columns=list("abc")), CrowdRidgeClassifier(**TIGHT)
    blocks = [slice(0, 20), slice(20, 25), slice(25, 60)]
    with ThreadPoolExecutor(2) as pool:
        sums = list(pool.map(lambda at: model.block_sums(frame.iloc[at], matrix[at]), blocks))
    pairs = sums[0] + (sums[1] + sums[2])
    assert not hasattr(model, "sums_")
    assert_same(model.merge(pairs), CrowdRidgeClassifier(**TIGHT).fit(X, matrix))
    assert model.n_features_in_ == 3
    assert model.feature_names_in_.tolist() == list("abc")
    one = in_blocks(CrowdRidgeClassifier(), X, matrix, [20, 25]).sums_
    assert_allclose(pairs.statistics.gram, one.statistics.around(pairs.statistics.shift, 0.0).gram, atol=1e-11)
    assert_array_equal(pairs.levels, one.levels)
    assert_array_equal(pairs.examples_per_level, one.examples_per_level)
    assert_array_equal(pairs.summary.labels_per_annotator, one.summary.labels_per_annotator)


def test_sums_for_other_settings_are_refused():
    X, matrix = crowd(28)
    with pytest.raises(DataError, match="only sums for the same"):
        CrowdRidgeClassifier().merge(CrowdRidgeClassifier(init="mean").block_sums(X, matrix))
    with pytest.raises(ValueError, match="looks at the consensus"):
        CrowdRidgeClassifier(class_weight="balanced").block_sums(X, matrix)
    model = CrowdRidgeClassifier()
    twice = model.block_sums(X, matrix, batch=1)
    with pytest.raises(DataError, match="batch 1 was already learned"):
        twice + twice


def test_keys_of_rows_spread_and_are_those_of_equal_rows():
    rng = np.random.default_rng(0)
    for X in (
        rng.integers(0, 2, (5000, 41)).astype(float),
        rng.integers(0, 2, (5000, 41)).astype(np.float32),
        rng.integers(0, 3, (5000, 20)).astype(np.float32),
        np.arange(5000.0)[:, np.newaxis],
    ):
        keys = stored_keys(X, 0)
        assert len(np.unique(keys)) == len(np.unique(X, axis=0))
        counts = np.bincount((keys % np.uint64(5)).astype(int), minlength=5)
        assert counts.min() > 900
        assert_array_equal(stored_keys(np.asfortranarray(X)[[7, 7]], 0), keys[[7, 7]])
        assert np.mean(stored_keys(X, 1) == keys) < 0.01


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_keys_of_labels_are_sums_over_the_labels(n_classes, missing):
    _, matrix = crowd(3, missing=missing, n_classes=n_classes)
    labels = labels_of(matrix, n_classes)
    who = label_hash._named_factors(labels.annotators, label_hash._ANNOTATOR_BITS)
    klass = label_hash._named_factors(labels.classes, label_hash._CLASS_BITS)
    place = {name: k for k, name in enumerate(labels.classes.tolist())}
    column = {name: k for k, name in enumerate(labels.annotators.tolist())}
    by_hand = [sum(who[column[a]] * klass[place[value]] for a, value in given.items()) for _, given in labels]
    assert label_hash.label_keys(labels).view(np.float64).tolist() == by_hand


def test_moments_of_ratings_add():
    ratings = np.random.default_rng(0).normal(size=50) + 1e6
    whole = RatingMoments.of(ratings[:13]) + RatingMoments() + RatingMoments.of(ratings[13:])
    assert whole.count == 50
    assert_allclose(whole.mean, ratings.mean(), rtol=1e-15)
    assert_allclose(whole.squares / 50, ratings.var(), rtol=1e-10)
    assert (whole.low, whole.high) == (ratings.min(), ratings.max())


@pytest.mark.parametrize("scale", ["nominal", "interval"])
def test_keys_of_labels_are_the_same_some_at_a_time(scale, set_constants):
    rng = np.random.default_rng(0)
    matrix = np.where(rng.random((50, 6)) < 0.4, np.nan, rng.integers(0, 3, (50, 6)))
    matrix[:, 0] = 1
    labels = CrowdLabels.from_matrix(matrix, scale=scale)
    whole = label_hash.label_keys(labels)
    set_constants(label_hash, TASK_ROWS=7)
    assert_array_equal(label_hash.label_keys(labels), whole)
    assert len(set(whole.tolist())) > 30
    set_constants("crowdwise.labels._label_rows", _MOST_STORED=7)
    again = CrowdLabels.from_matrix(matrix, scale=scale)
    assert_array_equal(again.labels_per_annotator, (~np.isnan(matrix)).sum(axis=0))
