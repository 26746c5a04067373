"""One test for each fault that labels and the ridge estimators promise to survive, or to name."""

import tracemalloc
import unicodedata
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from crowdwise import (
    CrowdLabels,
    CrowdRidgeClassifier,
    CrowdRidgeClassifierCV,
    CrowdRidgeRegressor,
    align,
    crowd_scorer,
    disagreement,
    easiness,
    simulate_annotators,
)
from crowdwise.exceptions import AlignmentError, CrowdConvergenceWarning, CrowdWarning, DataError, LabelError
from crowdwise.labels.align import as_labels

CLASSIFIERS = [CrowdRidgeClassifier, CrowdRidgeClassifierCV]
ESTIMATORS = [*CLASSIFIERS, CrowdRidgeRegressor]


def crowd(n=120, n_annotators=5, n_features=3, missing=0.0, seed=0, **options):
    """Features, truth and labels of annotators who err near the boundary."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    truth = (X[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(int)
    options = {"clarity": 2.0, "random_state": seed, "missing": missing} | options
    return X, truth, simulate_annotators(X, truth, n_annotators, **options)


def ratings_of(labels):
    return CrowdLabels.from_matrix(labels.to_matrix().astype(float), annotators=labels.annotators, kind="rating")


def data_for(estimator, **options):
    X, _, labels = crowd(**options)
    return X, ratings_of(labels) if estimator is CrowdRidgeRegressor else labels


def scores_of(model, X):
    return model.predict(X) if isinstance(model, CrowdRidgeRegressor) else model.decision_function(X)


def fit_quietly(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        return model.fit(X, y)


def assert_all_finite(model):
    for name, value in vars(model).items():
        if name.endswith("_") and isinstance(value, np.ndarray) and value.dtype.kind == "f":
            assert np.isfinite(value).all(), name


# ---------------------------------------------------------------------- features


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fault_01_nan_or_infinite_feature_is_an_error_with_up_to_five_positions(estimator, make, bad):
    X, y = data_for(estimator)
    X[10:17, 1] = bad
    places = ", ".join(f"row {row} column 1" for row in range(10, 15))
    with pytest.raises(DataError, match=rf"infinity: 7 values, at {places}, \.\.\."):
        fit_quietly(estimator(), make(X), y)
    with pytest.raises(DataError, match="row 10 column 1"):
        scores_of(fit_quietly(estimator(), np.nan_to_num(X, posinf=0, neginf=0), y), make(X))


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("estimator", [CrowdRidgeClassifier, CrowdRidgeRegressor])
def test_fault_01_infinities_of_both_signs_are_an_error_without_a_stray_warning(estimator, missing):
    X, y = data_for(estimator, missing=missing)
    X[10:17, 1], X[20:23, 2] = np.inf, -np.inf
    with pytest.raises(DataError, match="row 10 column 1"):
        fit_quietly(estimator(), X, y)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fault_02_features_around_1e8_give_the_result_of_centred_features(estimator):
    X, y = data_for(estimator)
    offset = 1e8
    far = X + offset
    centred = far - offset  # what is left of X after the offset was added
    near, distant = fit_quietly(estimator(), centred, y), fit_quietly(estimator(), far, y)
    assert np.allclose(near.coef_, distant.coef_, rtol=1e-8, atol=1e-10)
    assert np.allclose(near.expertise_, distant.expertise_, rtol=1e-8)
    assert np.allclose(scores_of(near, centred), scores_of(distant, far), atol=1e-8)


@pytest.mark.parametrize("value", [0.0, 3.0, 0.1, 1e8])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fault_03_a_constant_feature_has_coefficient_zero(estimator, value):
    X, y = data_for(estimator)
    model = fit_quietly(estimator(), np.column_stack([X, np.full(len(X), value)]), y)
    assert np.abs(np.ravel(model.coef_)[-1]) < 1e-12
    assert np.allclose(np.ravel(model.coef_)[:-1], np.ravel(fit_quietly(estimator(), X, y).coef_), atol=1e-8)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fault_04_fewer_examples_than_features_are_fine_with_l2(estimator):
    X, y = data_for(estimator, n=30, n_features=50)
    assert_all_finite(fit_quietly(estimator(), X, y))
    assert_all_finite(fit_quietly(estimator(), np.hstack([X[:, :3], X[:, :3]]), y))


@pytest.mark.parametrize("n_features", [50, 3])
def test_fault_04_without_l2_the_smallest_solution_is_taken_and_said(n_features):
    X, _, labels = crowd(n=30, n_features=n_features)
    X = X if n_features == 50 else np.hstack([X, X])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = CrowdRidgeClassifier(l2=0.0, steepness=0.0, max_rounds=1).fit(X, labels)
    assert any("l2 is 0 and only" in str(w.message) and w.category is CrowdWarning for w in caught)
    target = np.sign(2 * labels.counts()[:, 1] - labels.n_annotators).astype(float)
    centred = X - X.mean(axis=0)
    expected = np.linalg.pinv(centred) @ (target - target.mean())
    assert np.allclose(model.coef_[0], expected, atol=1e-6)


# ---------------------------------------------------------------------- labels that are not there


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fault_05_an_example_without_labels_takes_no_part_is_predicted_and_counted(estimator):
    X, y = data_for(estimator)
    matrix = y.to_matrix().astype(float)
    matrix[[3, 7]] = np.nan
    holes = CrowdLabels.from_matrix(matrix, kind=y.kind)
    labelled = np.delete(np.arange(len(X)), [3, 7])
    with pytest.warns(CrowdWarning, match="2 of 120 examples have no label; they take no part"):
        model = estimator().fit(X, holes)
    without = fit_quietly(estimator(), X[labelled], holes[labelled])
    assert np.allclose(model.coef_, without.coef_, rtol=1e-10)
    assert np.allclose(model.expertise_, without.expertise_, rtol=1e-10)
    assert len(model.consensus_) == len(model.easiness_) == 120
    assert_all_finite(model)
    predicted = model.predict(X[[3, 7]])
    assert np.allclose(model.consensus_[[3, 7]], predicted)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fault_06_no_label_or_no_example_is_an_error(estimator):
    kind = "rating" if estimator is CrowdRidgeRegressor else "class"
    with pytest.raises(LabelError, match="there is no label: all 4 examples are without one"):
        estimator().fit(np.zeros((4, 2)), CrowdLabels.from_matrix(np.full((4, 3), np.nan), kind=kind))
    with pytest.raises(ValueError, match="0 sample"):
        estimator().fit(np.zeros((0, 2)), CrowdLabels.from_matrix(np.zeros((0, 3)), kind=kind))


@pytest.mark.parametrize("missing", [0.0, 0.4])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fault_07_an_annotator_without_labels_changes_nothing_else_to_the_bit(estimator, missing):
    X, y = data_for(estimator, missing=missing)
    silent = CrowdLabels.from_matrix(np.insert(y.to_matrix().astype(float), 2, np.nan, axis=1), kind=y.kind)
    one, other = fit_quietly(estimator(), X, y), fit_quietly(estimator(), X, silent)
    assert np.isnan(other.expertise_[2])
    assert other.expertise_share_[2] == 0
    assert "no labels" in other.annotator_flags_[2]
    assert np.array_equal(np.delete(other.expertise_, 2), one.expertise_)
    assert np.array_equal(other.coef_, one.coef_)
    assert np.array_equal(other.intercept_, one.intercept_)
    assert np.array_equal(other.disagreement_, one.disagreement_)
    assert np.array_equal(other.consensus_, one.consensus_)


@pytest.mark.parametrize("n_labels", [1, 2])
@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_fault_08_an_annotator_with_few_labels_is_shrunk_and_flagged(estimator, n_labels):
    X, truth, labels = crowd(missing=0.2)
    for right in (True, False):
        column = np.full((120, 1), np.nan)
        clear = np.argsort(-np.abs(X[:, 0]))[:n_labels]
        column[clear, 0] = truth[clear] if right else 1 - truth[clear]
        few = CrowdLabels.from_matrix(np.hstack([labels.to_matrix(), column]))
        model = fit_quietly(estimator(), X, few)
        others = model.expertise_[:-1]
        assert others.min() / 3 < model.expertise_[-1] < others.max() * 3
        assert "few labels" in model.annotator_flags_[5]


@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_fault_09_labels_of_one_class_only_are_an_error(estimator):
    X, _, _ = crowd()
    for y in (np.ones((120, 3)), CrowdLabels.from_matrix(np.ones((120, 3)), classes=[0, 1])):
        with pytest.raises(LabelError, match="at least two classes are needed; all labels are of the one class 1"):
            estimator().fit(X, y)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fault_10_one_annotator_is_ordinary_ridge_with_a_note(estimator):
    X, truth, _ = crowd()
    with pytest.warns(CrowdWarning, match="one annotator: disagreement says nothing"):
        model = estimator().fit(X, truth)
    assert model.expertise_.tolist() == [1.0]
    numbers = truth if estimator is CrowdRidgeRegressor else 2 * truth - 1
    l2 = model.l2_
    assert np.allclose(scores_of(model, X), Ridge(alpha=l2).fit(X, numbers).predict(X), atol=1e-10)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fault_11_annotators_who_share_no_example_make_steepness_irrelevant(estimator):
    X, truth, _ = crowd()
    matrix = np.full((120, 3), np.nan)
    matrix[np.arange(120), np.arange(120) % 3] = truth
    steep = {"steepnesses": (5.0,)} if estimator is CrowdRidgeClassifierCV else {"steepness": 5.0}
    flat = {"steepnesses": (0.0,)} if estimator is CrowdRidgeClassifierCV else {"steepness": 0.0}
    with pytest.warns(CrowdWarning, match="no two annotators share an example.*steepness has no effect"):
        model = estimator(**steep).fit(X, matrix)
    assert np.allclose(model.coef_, fit_quietly(estimator(**flat), X, matrix).coef_, atol=1e-12)


# ---------------------------------------------------------------------- labels that are odd


def test_fault_12_same_pair_twice_with_the_same_label_counts_once_and_is_reported():
    table = {"task": ["a", "b", "a", "a"], "worker": ["w", "w", "w", "v"], "label": [1, 0, 1, 1]}
    with pytest.warns(CrowdWarning, match=r"1 labels repeat an \(example, annotator\) and count once\."):
        labels = CrowdLabels.from_table(table)
    assert labels.n_labels == 3
    assert labels.counts().tolist() == [[0, 2], [1, 0]]


def test_fault_13_same_pair_twice_with_different_labels_is_an_error_that_names_them():
    table = {"task": ["a", "b", "a"], "worker": ["w", "w", "w"], "label": ["x", "x", "y"]}
    with pytest.raises(LabelError, match=r"annotator 'w' on example 'a': 'x' and 'y'.*on_duplicate=.first"):
        CrowdLabels.from_table(table)
    numbers = {name: np.array([7, 8, 7]) for name in ("task", "worker")} | {"label": np.array([0, 1, 1])}
    with pytest.raises(LabelError, match="annotator 7 on example 7: 0 and 1"):
        CrowdLabels.from_table(numbers)
    for which, kept in (("first", "x"), ("last", "y")):
        with pytest.warns(CrowdWarning, match=f"the {which} was kept"):
            assert CrowdLabels.from_table(table, on_duplicate=which).to_matrix().tolist() == [[kept], ["x"]]


def test_fault_14_a_label_outside_the_declared_classes_is_an_error():
    with pytest.raises(LabelError, match=r"declared classes \['a', 'b'\]; found 'c' for example 1, annotator 'w'"):
        CrowdLabels.from_matrix([["a"], ["c"]], classes=["a", "b"], annotators=["w"])
    table = {"task": [5], "worker": ["w"], "label": [2]}
    with pytest.raises(LabelError, match=r"declared classes \[0, 1\]; found 2 for example 5, annotator 'w'"):
        CrowdLabels.from_table(table, classes=[0, 1])
    X, _, labels = crowd()
    with pytest.raises(LabelError, match=r"the classes \[7\] are not among those of the fit, \[0, 1\]"):
        CrowdRidgeClassifier().fit(X, labels).consensus(
            X[:1], CrowdLabels.from_matrix([[7]], annotators=["annotator 1"])
        )


def test_fault_15_one_true_and_1_0_are_one_class_and_the_text_1_is_another():
    labels = CrowdLabels.from_matrix([[1, 1.0, True, 0]])
    assert labels.classes.tolist() == [0, 1]
    assert labels.counts().tolist() == [[1, 3]]
    with pytest.raises(LabelError, match=r'found a mix of int, str\. Note that 1 and "1" are different labels'):
        CrowdLabels.from_matrix([[1, "1"]])


def test_fault_16_minus_one_is_a_label_unless_it_is_said_to_be_missing():
    matrix = np.array([[1, -1], [-1, 1]])
    assert CrowdLabels.from_matrix(matrix).classes.tolist() == [-1, 1]
    assert CrowdLabels.from_matrix(matrix, missing=-1).n_labels == 2
    X, truth, _ = crowd()
    assert fit_quietly(CrowdRidgeClassifier(), X, 2 * truth - 1).classes_.tolist() == [-1, 1]


# ---------------------------------------------------------------------- weights


@pytest.mark.parametrize("scale", ["observed", "possible", None])
@pytest.mark.parametrize("steepness", [1e6, 1e308])
def test_fault_17_immense_steepness_gives_finite_weights_that_do_not_all_vanish(steepness, scale):
    X, _, labels = crowd()
    weight = easiness(disagreement(labels, scale=scale), steepness)
    assert np.isfinite(weight).all()
    assert weight.max() > 0
    assert_all_finite(fit_quietly(CrowdRidgeClassifier(steepness, scale=scale), X, labels))
    nobody_agrees = CrowdLabels.from_matrix(np.tile([0, 1], (60, 1)).repeat(2, axis=0))
    assert_all_finite(fit_quietly(CrowdRidgeClassifier(steepness, scale=scale), X, nobody_agrees))


@pytest.mark.parametrize("steepness", [-1.0, np.nan, np.inf])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fault_17_negative_or_nan_steepness_is_an_error(estimator, steepness):
    X, y = data_for(estimator)
    model = estimator((steepness,)) if estimator is CrowdRidgeClassifierCV else estimator(steepness)
    with pytest.raises(ValueError, match=r"steepness(es)? must be a finite number >= 0"):
        model.fit(X, y)


@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_fault_18_weight_on_fewer_examples_than_features_is_told_with_their_number(estimator):
    X, truth, _ = crowd(n_features=10)
    matrix = np.column_stack([truth, truth, 1 - truth])
    matrix[:4, 2] = truth[:4]  # four examples that all agree on
    model = estimator((1e4,)) if estimator is CrowdRidgeClassifierCV else estimator(1e4)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, matrix)
    assert any("weight is on about 4.0 of 120 examples, fewer than the 10 features" in str(w.message) for w in caught)


# ---------------------------------------------------------------------- annotators


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_fault_19_a_perfect_annotator_is_finite_and_ranked_first(missing):
    rng = np.random.default_rng(0)
    X = np.concatenate([np.full(60, -1.0), np.full(60, 1.0)])[:, np.newaxis]  # scores can equal the labels
    truth = X[:, 0] > 0
    noisy = np.where(rng.random((120, 3)) < 0.3, ~truth[:, np.newaxis], truth[:, np.newaxis]).astype(float)
    noisy[rng.random(noisy.shape) < missing] = np.nan
    matrix = np.column_stack([noisy, truth])
    for model in (CrowdRidgeClassifier(0.0, l2=1e-9), CrowdRidgeRegressor(0.0, l2=1e-9)):
        fit_quietly(model, X, matrix)
        assert np.isfinite(model.expertise_).all()
        assert model.expertise_.argmax() == 3
        assert_all_finite(model)


@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_fault_20_an_annotator_who_is_always_wrong_is_finite_and_flagged(estimator):
    X, _, labels = crowd(experts=1, adversaries=1)
    model = fit_quietly(estimator(), X, labels)
    assert np.isfinite(model.expertise_).all()
    assert model.expertise_.argmin() == labels.annotators.tolist().index("adversary 1")
    assert "worse than chance" in model.annotator_flags_["adversary 1"]
    assert "expert 1" not in model.annotator_flags_


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fault_21_annotators_who_copy_each_other_are_no_singularity_and_flagged(estimator, missing):
    X, y = data_for(estimator, missing=missing)
    matrix = y.to_matrix().astype(float)
    names = ["a", "b", "c", "d", "e", "copy"]
    copied = CrowdLabels.from_matrix(np.column_stack([matrix, matrix[:, 0]]), annotators=names, kind=y.kind)
    model = fit_quietly(estimator(), X, copied)
    assert_all_finite(model)
    assert model.expertise_[0] == pytest.approx(model.expertise_[5])
    assert "same labels as 'a'" in model.annotator_flags_["copy"]
    assert "same labels as 'copy'" in model.annotator_flags_["a"]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("estimator", CLASSIFIERS)
def test_fault_22_random_labels_give_a_result_that_tells_whether_it_settled(estimator, seed):
    rng = np.random.default_rng(seed)
    X, labels = rng.normal(size=(80, 4)), rng.integers(0, 3, (80, 5))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = estimator(max_rounds=4).fit(X, labels)
    unsettled = any("expertise still changed" in str(w.message) for w in caught)
    assert model.converged_ == (not unsettled)
    assert_all_finite(model)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fault_23_rounds_that_do_not_settle_are_told_with_the_last_change(estimator):
    X, y = data_for(estimator)
    with pytest.warns(
        CrowdConvergenceWarning, match=r"still changed by [\d.e-]+ \(relative\) after 2 rounds.*tol=1e-12"
    ):
        model = estimator(max_rounds=2, tol=1e-12).fit(X, y)
    assert not model.converged_
    assert model.n_rounds_ == len(model.objective_) == 2


@pytest.mark.parametrize("missing", [0.0, 0.5])
@pytest.mark.parametrize("seed", range(5))
def test_fault_23_the_objective_never_rises_silently(seed, missing):
    rng = np.random.default_rng(seed)
    X, matrix = rng.normal(size=(40, 6)), rng.integers(0, 2, (40, 6)).astype(float)
    matrix[rng.random(matrix.shape) < missing] = np.nan
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = CrowdRidgeClassifier(l2=100.0).fit(X, matrix)
    rose = model.objective_[-1] - model.objective_.min() > 1e-6
    assert rose == any("the objective rose" in str(w.message) for w in caught)


# ---------------------------------------------------------------------- sizes


@pytest.mark.parametrize("n_annotators", [1001, 3000])
def test_fault_24_more_than_a_thousand_labels_on_an_example_do_not_underflow(n_annotators):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    right = rng.random((20, n_annotators)) < 0.7
    labels = np.where(right, (X[:, :1] > 0), (X[:, :1] <= 0)).astype(int)
    model = fit_quietly(CrowdRidgeClassifier(), X, labels)
    assert np.abs(model.coef_).max() > 0.1
    assert np.array_equal(model.consensus_, (X[:, 0] > 0).astype(int))
    assert_all_finite(model)
    agreed = model.consensus(X, labels)
    assert np.isfinite(agreed.confidence).all()


def test_fault_25_memory_is_in_proportion_to_labels_and_not_to_examples_times_annotators():
    n_examples, n_annotators = 5_000, 10_000
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_examples, 2))
    table = {
        "example": np.repeat(np.arange(n_examples), 5),
        "annotator": (rng.integers(0, n_annotators, n_examples)[:, np.newaxis] + np.arange(5)).ravel() % n_annotators,
        "label": (X[:, 0] > 0).astype(int).repeat(5) ^ (rng.random(5 * n_examples) < 0.2),
    }
    tracemalloc.start()
    labels = CrowdLabels.from_table(table)
    fit_quietly(CrowdRidgeClassifier(max_rounds=3, tol=1.0), X, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 500 * labels.n_labels  # a byte a cell would be 2,000 a label


# ---------------------------------------------------------------------- identity


def test_fault_26_ids_of_any_kind_are_kept_exactly_as_they_came():
    composed, decomposed = unicodedata.normalize("NFC", "é"), unicodedata.normalize("NFD", "é")
    ids = [
        "1",
        "01",
        "1.0",
        "1e0",
        composed,
        decomposed,
        "x" * 100_000,
        " 1",
        "1\n",
        "ﬁ",
        "\u202eid",
        "😀",
        "None",
        "nan",
    ]
    table = {"task": ids, "worker": ids[::-1], "label": [k % 2 for k in range(len(ids))]}
    labels = CrowdLabels.from_table(table, examples=ids)
    assert labels.examples.tolist() == ids
    assert sorted(labels.annotators.tolist()) == sorted(ids)
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(len(ids), 1)), index=ids, columns=["size"])
    model = fit_quietly(CrowdRidgeClassifier(), X, labels)
    assert model.annotators_.tolist() == labels.annotators.tolist()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fault_27_ids_that_do_not_match_are_an_error_with_counts_and_examples(estimator):
    X, y = data_for(estimator, n=6)
    frame = pd.DataFrame(X, index=list("abcdef"), columns=["u", "v", "w"])
    named = CrowdLabels.from_matrix(y.to_matrix().astype(float), examples=list("abcxyz"), kind=y.kind)
    words = r"3 are on both sides, 3 only in X \(such as \['d', 'e', 'f'\]\), 3 only in the labels \(such as \['x', "
    with pytest.raises(AlignmentError, match=words + r".*join=.inner"):
        estimator().fit(frame, named)
    inner, kept = align(frame, named, join="inner")
    assert inner.index.tolist() == kept.examples.tolist() == list("abc")


def test_fault_27_ids_in_another_order_are_matched():
    X, _, labels = crowd()
    ids = [f"e{i}" for i in range(120)]
    frame = pd.DataFrame(X, index=ids, columns=["u", "v", "w"])
    named = CrowdLabels.from_matrix(labels.to_matrix(), examples=ids)
    shuffled = named[np.random.default_rng(0).permutation(120)]
    one, other = CrowdRidgeClassifier().fit(frame, named), CrowdRidgeClassifier().fit(frame, shuffled)
    assert np.array_equal(one.coef_, other.coef_)
    assert np.array_equal(one.consensus_, other.consensus_)


def test_fault_27_scores_are_matched_by_id_as_well():
    X, _, labels = crowd()
    ids = [f"e{i}" for i in range(120)]
    frame = pd.DataFrame(X, index=ids, columns=["u", "v", "w"])
    named = CrowdLabels.from_matrix(labels.to_matrix(), examples=ids)
    model = CrowdRidgeClassifier().fit(frame, named)
    assert model.score(frame, named[::-1]) == model.score(frame, named)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fault_28_columns_in_another_order_at_prediction_get_the_feature_name_error(estimator):
    X, y = data_for(estimator)
    frame = pd.DataFrame(X, columns=["u", "v", "w"])
    model = fit_quietly(estimator(), frame, y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["v", "u", "w"]])
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={"u": "other"}))


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


@pytest.mark.parametrize("name", KINDS_OF_X)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fault_29_features_of_every_kind_give_the_same_and_are_not_changed(estimator, name):
    X, y = data_for(estimator)
    X = np.round(X * 4)
    expected = fit_quietly(estimator(), X, y)
    given = KINDS_OF_X[name](X)
    before = given.copy() if hasattr(given, "copy") else given.clone() if hasattr(given, "clone") else list(given)
    settings = {
        "cv": [(np.flatnonzero(np.arange(120) % 4 != k), np.flatnonzero(np.arange(120) % 4 == k)) for k in range(4)]
    }
    settings = settings if estimator is CrowdRidgeClassifierCV else {}
    expected = fit_quietly(estimator(**settings), X, y)
    model = fit_quietly(estimator(**settings), given, y)
    assert np.allclose(model.coef_, expected.coef_, rtol=1e-5, atol=1e-6)
    assert np.allclose(scores_of(model, given), scores_of(expected, X), rtol=1e-5, atol=1e-5)
    same = (
        (given != before).nnz == 0 if sparse.issparse(given) else np.array_equal(np.asarray(given), np.asarray(before))
    )
    assert same


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fault_29_booleans_work(estimator):
    X, y = data_for(estimator)
    expected = fit_quietly(estimator(), (X > 0).astype(float), y)
    assert np.allclose(fit_quietly(estimator(), X > 0, y).coef_, expected.coef_)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fault_29_zero_rows_to_predict_are_a_clear_error(estimator):
    X, y = data_for(estimator)
    model = fit_quietly(estimator(), X, y)
    with pytest.raises(ValueError, match="0 sample"):
        model.predict(X[:0])


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_fault_29_labels_are_not_changed(estimator):
    X, y = data_for(estimator, missing=0.3)
    matrix = y.to_matrix()
    before = matrix.copy()
    read = read_only(matrix)
    fit_quietly(estimator(), X, matrix)
    fit_quietly(estimator(), X, read)
    assert np.array_equal(matrix, before, equal_nan=True)
    assert as_labels(before, kind=y.kind) == as_labels(matrix, kind=y.kind)


@pytest.mark.parametrize("whole", [True, False], ids=["CrowdLabels", "matrix with NaN"])
def test_fault_30_labels_with_nan_work_in_scikit_learns_tools_with_a_splitter_and_our_scorer(whole):
    X, _, labels = crowd(clarity=5.0, missing=0.5)
    y = labels if whole else labels.to_matrix()
    search = GridSearchCV(
        CrowdRidgeClassifier(),
        {"l2": [0.1, 10.0], "steepness": [0.0, 2.0]},
        cv=KFold(3, shuffle=True, random_state=0),
        scoring=crowd_scorer("ranking"),
        error_score="raise",
    )
    fit_quietly(search, X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        scores = cross_val_score(
            CrowdRidgeClassifier(),
            X,
            y,
            cv=KFold(3, shuffle=True, random_state=0),
            scoring=crowd_scorer(),
            error_score="raise",
        )
    assert (scores > 0.5).all()
