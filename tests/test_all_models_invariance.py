"""What all models promise alike: the same result however data are written."""

import numpy as np
import pytest
from all_models import (
    ANY,
    CLASSIFIERS,
    EVERYTHING,
    LEARNERS,
    LOGISTIC,
    MODELS,
    PERCEPTRONS,
    RIDGE,
    assert_all_finite,
    assert_same_fit,
    data_for,
    fit_quietly,
    labels_for,
    new,
    over,
    reference,
    scores_of,
    splits_for,
    steady,
    sure_of,
)
from marks import in_slow_run
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from crowdwise.exceptions import DataError

# ---------------------------------------------------------------------- the same, written in another way


@pytest.mark.parametrize("n_classes", [in_slow_run(2), 3])
@over(EVERYTHING)
def test_permuting_examples_permutes_the_result(name, n_classes):
    if n_classes == 3 and name in ("regressor", *PERCEPTRONS):
        pytest.skip("takes no three classes")
    X, y = data_for(name, missing=0.3, n_classes=n_classes, clarity=3.0)
    order = np.random.default_rng(1).permutation(80)
    # Not deep: of splits that are equally good scikit-learn takes the first, which depends on the order of rows.
    tree = {"estimator": DecisionTreeClassifier(max_depth=2, min_samples_leaf=5)} if name == "any tree" else {}
    one = fit_quietly(steady(name, **tree, **splits_for(name, 80)), X, y)
    other = fit_quietly(steady(name, **tree, **splits_for(name, 80, order)), X[order], y[order])
    back = np.argsort(order)
    if name in PERCEPTRONS:  # ties keep the order of the rows, which is part of what it learns from
        assert np.array_equal(other.disagreement_[back], one.disagreement_)
        return
    tolerance = 1e-4 if name == "any" else 1e-6  # of the solver in scikit-learn
    assert_same_fit(one, other, X, X[order], rows=back, rtol=tolerance, atol=tolerance)
    assert other.examples_.tolist() == order.tolist()


@pytest.mark.parametrize("n_classes", [in_slow_run(2), 3])
@pytest.mark.parametrize("estimator", [LogisticRegression(tol=1e-10, max_iter=10_000), GaussianNB()], ids=repr)
def test_folds_of_any_classifier_do_not_depend_on_the_order_of_rows_and_classes(estimator, n_classes):
    X, y = data_for("any", missing=0.3, n_classes=n_classes, clarity=3.0)
    matrix, order = y.to_matrix().astype(float), np.random.default_rng(1).permutation(80)
    one = fit_quietly(new("any", estimator=estimator), X, matrix)
    other = fit_quietly(new("any", estimator=estimator), X[order], matrix[order])
    assert_same_fit(one, other, X, X[order], rows=np.argsort(order), rtol=1e-6, atol=1e-6)
    swapped = np.array([1, 0] if n_classes == 2 else [2, 0, 1])
    renamed = np.where(np.isnan(matrix), np.nan, swapped[np.nan_to_num(matrix).astype(int)])
    other = fit_quietly(new("any", estimator=estimator), X, renamed)
    assert_same_fit(one, other, X, classes=swapped, rtol=1e-6, atol=1e-6)


@over(EVERYTHING)
def test_permuting_annotators_permutes_expertise_and_nothing_else(name):
    X, y = data_for(name, missing=0.3)
    order = np.random.default_rng(1).permutation(5)
    matrix, names = y.to_matrix().astype(float), np.array(list("abcde"))
    one = fit_quietly(steady(name), X, labels_for(name, matrix, annotators=names))
    other = fit_quietly(steady(name), X, labels_for(name, matrix[:, order], annotators=names[order]))
    assert other.annotators_.tolist() == names[order].tolist()
    assert other.annotator_flags_ == one.annotator_flags_
    assert_same_fit(one, other, X, annotators=np.argsort(order), rtol=1e-6, atol=1e-6)


@over(LEARNERS, without=["any tree"])  # which draws features at random
def test_permuting_features_changes_nothing(name):
    X, y = data_for(name, missing=0.3, n_features=4)
    order = np.array([2, 0, 3, 1])
    one, other = fit_quietly(steady(name), X, y), fit_quietly(steady(name), X[:, order], y)
    tolerance = 1e-4 if name == "any" else 1e-6
    assert_same_fit(one, other, X, X[:, order], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("n_classes", [in_slow_run(2), 3])
@over([*CLASSIFIERS, *PERCEPTRONS, "aggregate"])
def test_permuting_the_names_of_classes_permutes_the_result(name, n_classes):
    if n_classes == 3 and name in PERCEPTRONS:
        pytest.skip("takes no three classes")
    X, y = data_for(name, missing=0.3, n_classes=n_classes, clarity=3.0)
    swapped = np.array([1, 0] if n_classes == 2 else [2, 0, 1])  # what each class is called in the other fit
    matrix = y.to_matrix().astype(float)
    renamed = np.where(np.isnan(matrix), np.nan, swapped[np.nan_to_num(matrix).astype(int)])
    one = fit_quietly(steady(name, **splits_for(name, 80)), X, matrix)
    other = fit_quietly(steady(name, **splits_for(name, 80)), X, renamed)
    if name in PERCEPTRONS:
        assert np.allclose(other.coef_, -one.coef_, rtol=1e-10)
        return
    tolerance = 1e-4 if name == "any" else 1e-6
    assert_same_fit(one, other, X, classes=swapped, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("missing", [0.3, in_slow_run(0.6)])
@over(MODELS, without=["any tree"], variants=True)  # whose leaves have a least number of rows
def test_repeated_rows_are_whole_numbers_of_sample_weight(name, missing):
    X, y = data_for(name, missing=missing, n_annotators=9 if missing < 0.5 else 4)
    assert (y.labels_per_example == 1).any() == (missing > 0.5)  # a single label has the mean disagreement of all
    matrix, weight = y.to_matrix().astype(float), np.random.default_rng(2).integers(1, 4, 80)
    rows = np.repeat(np.arange(80), weight)
    fold = (np.arange(80) % 5)[rows]
    repeated_splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(5)]
    settings = {"steepnesses": (0.0, 1.0, 3.0, 5.0)} if name == "ridge cv" and missing < 0.5 else {}
    one = fit_quietly(steady(name, **settings, **splits_for(name, 80)), X, labels_for(name, matrix), weight)
    splits = {"cv": repeated_splits} if name in ANY else {}
    other = fit_quietly(steady(name, **settings, **splits), X[rows], labels_for(name, matrix[rows]))
    first = np.searchsorted(rows, np.arange(80))
    assert one.steepness_ == other.steepness_
    assert_same_fit(one, other, X, X[rows], rows=first, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_matrix])
@over([*RIDGE, *LOGISTIC, "any"])
def test_sparse_features_give_the_result_of_dense_ones(name, make):
    X, y = data_for(name, missing=0.3, n_features=6)
    X[np.abs(X) < 0.7] = 0.0
    one, other = fit_quietly(steady(name), X, y), fit_quietly(steady(name), make(X), y)
    tolerance = 1e-4 if name == "any" else 1e-7
    assert_same_fit(one, other, X, make(X), rtol=tolerance, atol=tolerance)
    found = [one.consensus(X, y), other.consensus(make(X), y)]
    assert np.allclose(sure_of(found[0]), sure_of(found[1]), atol=tolerance)


@over(LEARNERS)
def test_single_precision_gives_the_result_of_double_precision(name):
    X, y = data_for(name, missing=0.3)
    X = X.astype(np.float32)
    settings, tolerance = {}, 1e-6
    if name == "any":  # scikit-learn then computes in single precision, and can come no nearer
        settings, tolerance = {"estimator": LogisticRegression(tol=1e-5)}, 1e-3
    one, other = (
        fit_quietly(steady(name, **settings), X.astype(np.float64), y),
        fit_quietly(steady(name, **settings), X, y),
    )
    assert_same_fit(one, other, X.astype(np.float64), X, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("scale", [1e155, 1e-160, 1e60, 1e-60])
@over(LOGISTIC)
def test_features_of_any_size_give_the_result_of_features_around_one(name, scale):
    X, y, one = reference(name, missing=0.3)
    power = 2.0 ** np.round(np.log2(scale))  # so that no digit is lost
    other = fit_quietly(new(name), X * power, y)
    assert_same_fit(one, other, X, X * power, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("scale", [1e60, 1e-60])
@over(RIDGE)
def test_ridge_features_of_any_size_give_the_result_of_features_around_one_with_l2_in_their_unit(name, scale):
    X, y = data_for(name, missing=0.3)
    power = 2.0 ** np.round(np.log2(scale))
    settings = {"l2s": (power**2,)} if name == "ridge cv" else {"l2": power**2}
    plain = {"l2s": (1.0,)} if name == "ridge cv" else {"l2": 1.0}
    one, other = fit_quietly(new(name, **plain), X, y), fit_quietly(new(name, **settings), X * power, y)
    assert_same_fit(one, other, X, X * power, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("scale", [5e-324, 1e-309, 1e-300, 1e-160, 1e155, 1e300, 4e307])
@over(LEARNERS, without=ANY)
def test_features_that_cannot_be_squared_are_learnt_from_or_refused(name, scale):
    X, y = data_for(name, missing=0.3, n=40)
    try:
        model = fit_quietly(new(name), X * scale, y)
    except DataError as error:
        refused = str(error)
    else:
        refused = None
        assert np.isfinite(scores_of(model, X * scale)).all()
    assert refused is None or "escale the features" in refused


@pytest.mark.parametrize("seed", [0, in_slow_run(1)])
@over([*RIDGE, *LOGISTIC])
def test_a_jitter_of_the_last_digits_changes_next_to_nothing(name, seed):
    X, y = data_for(name, missing=0.3, seed=seed)
    jitter = 1e-13 * np.random.default_rng(seed).normal(size=X.shape)
    one, other = fit_quietly(steady(name), X, y), fit_quietly(steady(name), X + jitter, y)
    assert one.steepness_ == other.steepness_
    assert_same_fit(one, other, X, rtol=1e-6, atol=1e-6)


# ---------------------------------------------------------------------- sample_weight


@over(MODELS)
def test_one_number_as_sample_weight_counts_for_all_in_fit_and_score(name):
    X, y = data_for(name)
    one, other = fit_quietly(new(name), X, y, 2.0), fit_quietly(new(name), X, y, np.full(80, 2.0))
    assert_same_fit(one, other, X, rtol=0, atol=0)
    assert np.array_equal(sure_of(one.consensus(X, y)), sure_of(other.consensus(X, y)))
    assert one.score(X, y, 2.0) == pytest.approx(one.score(X, y))


@pytest.mark.parametrize("weight", [5e-324, 1e-200, 1e308])
@over(MODELS)
def test_tiny_and_huge_weights_give_a_finite_result_without_stray_warnings(name, weight):
    X, y, plain = reference(name, n=60)
    model = fit_quietly(new(name), X, y, np.full(60, weight))  # any other warning is an error
    assert_all_finite(model)
    assert_same_fit(plain, model, X, rtol=1e-8, atol=1e-8)
    mixed = np.ones(60)
    mixed[::7] = weight
    assert_all_finite(fit_quietly(new(name), X, y, mixed))


@over(MODELS)
def test_examples_of_weight_zero_take_no_part(name):
    X, y = data_for(name)
    weight = np.where(np.arange(80) % 8 == 3, 0.0, 1.0)
    used = np.flatnonzero(weight)
    model, without = fit_quietly(new(name), X, y, weight), fit_quietly(new(name), X[used], y[used])
    assert_same_fit(without, model, X[used], X, rows=used, rtol=1e-8, atol=1e-8)


@over(MODELS)
def test_an_annotator_all_of_whose_labels_weigh_nothing_is_one_without_labels(name):
    X, y = data_for(name)
    matrix = y.to_matrix().astype(float)
    matrix[8:, 2] = np.nan
    weight = np.where(np.arange(80) < 8, 0.0, 1.0)
    model = fit_quietly(new(name), X, labels_for(name, matrix), weight)
    without = fit_quietly(new(name), X[8:], labels_for(name, matrix[8:]))
    assert np.isnan(model.expertise_).tolist() == [False, False, True, False, False]
    assert model.annotator_flags_[2] == without.annotator_flags_[2] == ("no labels",)
    rest = np.arange(5) != 2
    assert np.array_equal(model.expertise_[rest], without.expertise_[rest])
    assert_same_fit(without, model, X[8:], X, rows=np.arange(8, 80), rtol=1e-8, atol=1e-8)
    assert np.isfinite(sure_of(model.consensus(X, labels_for(name, matrix)))).all()


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (-np.ones(80), "sample_weight must be finite and at least 0"),
        (np.full(80, np.nan), "sample_weight must be finite and at least 0"),
        (np.ones(79), r"sample_weight.shape == \(79,\), expected \(80,\)"),
        (["1"] * 80, "sample_weight must be numbers"),
        (np.zeros(80), "the sample_weight of every labelled example is zero"),
    ],
)
@over(MODELS)
def test_weights_that_make_no_sense_are_refused(name, weight, message):
    X, y = data_for(name)
    with pytest.raises(ValueError, match=message):
        new(name).fit(X, y, weight)
