"""A model of other labels of the same examples, from what a fit kept: what a new fit gives."""

import numpy as np
import pytest
from all_models import quiet
from crowds import crowd
from marks import in_slow_run
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold
from test_at import TIGHT, assert_same

from crowdwise import CrowdLabels, CrowdRidgeClassifier, CrowdRidgeClassifierCV, CrowdRidgeRegressor
from crowdwise.exceptions import AlignmentError, DataError, LabelError
from crowdwise.ridge.curve import Refit, steepness_curve
from crowdwise.ridge.data import RidgeData
from crowdwise.weights import SelfPaced, Smooth


def matrices(seed, n_examples=150, n_classes=2, missing=0.4, ratings=False):
    """Labels that change one or a few at a time: given, taken away, replaced, on rows with and without others."""
    rng = np.random.default_rng(seed)
    X, matrix = crowd(seed, n_examples=n_examples, n_classes=n_classes, missing=missing)
    matrix = np.where(matrix == None, np.nan, matrix).astype(float)  # noqa: E711
    matrix[5:9] = np.nan  # without labels at first
    if ratings:
        matrix += rng.integers(0, 2, matrix.shape)
    steps = [matrix]
    for size in (1, 1, 1, 1, 4):
        matrix = steps[-1].copy()
        rows, columns = rng.choice(n_examples, size, replace=False), rng.integers(0, matrix.shape[1], size)
        given = rng.integers(0, n_classes, size).astype(float)
        matrix[rows, columns] = np.where(np.isnan(matrix[rows, columns]) | (rng.random(size) < 0.5), given, np.nan)
        steps.append(matrix)
    steps.append(steps[-1].copy())
    steps[-1][6, 2] = 1.0  # the first label of an example
    steps.append(steps[-1].copy())
    steps[-1][6, 2] = np.nan  # and its last
    return X, steps


def of(matrix, n_classes=2, ratings=False):
    if ratings:
        return CrowdLabels.from_matrix(matrix, scale="interval")
    return CrowdLabels.from_matrix(np.where(np.isnan(matrix), None, matrix.astype(object)), classes=range(n_classes))


@quiet
@pytest.mark.parametrize("missing", [0.0, 0.5, in_slow_run(0.85)])
@pytest.mark.parametrize("kind", ["two classes", "three classes", "ratings"])
@pytest.mark.parametrize("keep_sums", [True, "auto"])
def test_labels_that_change_give_what_a_new_fit_gives(kind, missing, keep_sums):
    n_classes, ratings = 3 if kind == "three classes" else 2, kind == "ratings"
    make = CrowdRidgeRegressor if ratings else CrowdRidgeClassifier
    X, steps = matrices(1, n_classes=n_classes, missing=missing, ratings=ratings)
    model = make(keep_sums=keep_sums, **TIGHT).fit(X, of(steps[0], n_classes, ratings))
    for matrix in steps[1:]:
        labels = of(matrix, n_classes, ratings)
        before, model = model, model.relabelled(labels)
        new = make(**TIGHT).fit(X, labels)
        assert_same(model, new)
        assert np.array_equal(model.results_.n_labels, new.results_.n_labels)
    assert_same(model.at(steepness=5.0, l2=0.2), make(5.0, l2=0.2, **TIGHT).fit(X, labels))
    assert_same(before.at(l2=3.0), make(l2=3.0, **TIGHT).fit(X, of(steps[-2], n_classes, ratings)))  # made anew


@quiet
@pytest.mark.parametrize(
    "settings",
    [
        {"curriculum": Smooth(2.0), "tol": 1e-3},
        {"curriculum": SelfPaced(), "tol": 1e-3},
        {"class_weight": "balanced"},
        {"fit_intercept": False, "init": "mean", "relative_to": "possible"},
        in_slow_run({"steepness": 0.0}),
        in_slow_run({"relative_to": None}),
    ],
)
def test_settings_still_count(settings):
    X, steps = matrices(2)
    weight = np.arange(len(X)) % 3 + 0.5
    model = CrowdRidgeClassifier(**TIGHT | {"keep_sums": True} | settings).fit(X, of(steps[0]), weight)
    for matrix in steps[1:]:
        model = model.relabelled(of(matrix))
        assert_same(model, clone(model).fit(X, of(matrix), weight))


@quiet
def test_known_answers_may_come_and_go():
    X, steps = matrices(3)
    model = CrowdRidgeClassifier(keep_sums=True, **TIGHT).fit(X, of(steps[0]))
    for n_known, matrix in zip((4, 5, 6, 5, 0), steps[1:], strict=False):
        truth = {k * 7: k % 2 for k in range(n_known)} or None
        model = model.relabelled(of(matrix), truth) if n_known % 2 else model.relabelled(of(matrix).with_truth(truth))
        assert_same(model, clone(model).fit(X, of(matrix), truth=truth))


@quiet
@pytest.mark.parametrize("cv", [4, StratifiedKFold(4)])
def test_a_tuned_model_chooses_as_a_new_fit_does(cv):
    X, steps = matrices(4)
    model = CrowdRidgeClassifierCV((0.0, 2.0), l2s=(0.1, 10.0), cv=cv, keep_sums=True, **TIGHT)
    model = model.fit(X, of(steps[0]))
    for matrix in steps[1:]:
        model = model.relabelled(of(matrix))
        assert_same(model, clone(model).fit(X, of(matrix)))


@quiet
@pytest.mark.parametrize("kind", ["sparse", in_slow_run("wide"), "single precision", in_slow_run("large offset")])
def test_sparse_and_wide_features(kind):
    X, steps = matrices(5)
    features = {
        "sparse": sparse.csr_array(X),
        "wide": np.random.default_rng(0).normal(size=(150, 200)),
        "single precision": X.astype(np.float32),
        "large offset": X + 1e6,
    }[kind]
    model = CrowdRidgeClassifier(keep_sums=True, **TIGHT).fit(features, of(steps[0]))
    for matrix in steps[1:]:
        model = model.relabelled(of(matrix))
        assert_same(model, clone(model).fit(features, of(matrix)), rtol=1e-7)


@quiet
@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_only_rows_whose_labels_changed_are_summed_up(missing, monkeypatch):
    X, steps = matrices(6, missing=missing)
    for row in range(5, 9):
        steps[0][row] = 1.0
    passes, n_rows, sums, sums_of = [], [], RidgeData.sums, RidgeData.sums_of
    model = CrowdRidgeClassifier(keep_sums=True).fit(X, of(steps[0]))
    monkeypatch.setattr(RidgeData, "sums", lambda *given: passes.append(1) or sums(*given))
    monkeypatch.setattr(
        RidgeData, "sums_of", lambda self, some, cell: n_rows.append(len(some)) or sums_of(self, some, cell)
    )
    for row in range(20):
        steps[0][row, 1] = 1.0 - np.nan_to_num(steps[0][row, 1])
        model = model.relabelled(of(steps[0]))
    assert passes == []
    assert n_rows == [1] * 40


@quiet
@pytest.mark.parametrize("n_changes", [30, in_slow_run(300)])
def test_many_changes_leave_no_rounding_behind(n_changes):
    X, steps = matrices(7)
    matrix, rng = steps[0], np.random.default_rng(0)
    model = CrowdRidgeClassifier(keep_sums=True, **TIGHT).fit(X, of(matrix))
    for _ in range(n_changes):
        row, column = rng.integers(0, len(X)), rng.integers(0, matrix.shape[1])
        matrix[row, column] = rng.integers(0, 2) if np.isnan(matrix[row, column]) else np.nan
        model = model.relabelled(of(matrix))
    assert_same(model, clone(model).fit(X, of(matrix)))


@quiet
def test_the_curve_of_steepnesses_is_that_of_a_new_fit():
    X, steps = matrices(10)
    model = CrowdRidgeClassifier(keep_sums=True, **TIGHT).fit(X, of(steps[0]))
    for matrix in steps[1:]:
        model = model.relabelled(of(matrix))
        new = CrowdRidgeClassifier(keep_sums=True, **TIGHT).fit(X, of(matrix))
        for name in ("levels", "n_each", "weight", "expertise"):
            assert_allclose(getattr(Refit.of_sums(model, 3.0), name), getattr(Refit.of_sums(new, 3.0), name), rtol=1e-8)
        one, other = steepness_curve(model, (0.0, 4.0)), steepness_curve(new, (0.0, 4.0))
        assert len(one.criteria) == len(other.criteria) == 3
        for (*what, values), (*expected, right) in zip(one.criteria, other.criteria, strict=True):
            assert what == expected
            assert_allclose(values, right, rtol=1e-8)


@quiet
def test_new_annotators_and_classes_are_learned_anew():
    X, steps = matrices(8)
    labels = of(steps[0])
    model = CrowdRidgeClassifier(keep_sums=True, **TIGHT).fit(X, labels)
    more = labels.append(example=3, annotator=99, label=1, new=True)
    assert_same(model.relabelled(more), clone(model).fit(X, more))
    other = of(steps[0], 3)
    assert_same(model.relabelled(other), clone(model).fit(X, other))


def test_other_examples_and_lost_sums_are_refused():
    X, steps = matrices(9, missing=0.0)
    labels = of(np.nan_to_num(steps[0]))
    model = CrowdRidgeClassifier(keep_sums=True).fit(X, labels)
    with pytest.raises(AlignmentError, match="labels must be those of the 150 examples"):
        model.relabelled(labels[:100])
    with pytest.raises(LabelError, match="labels of at least two classes"):
        model.relabelled(np.zeros((150, 6), dtype=int))
    named = CrowdRidgeClassifier().fit(X, CrowdLabels.from_matrix(labels.to_matrix(), examples=np.arange(150) + 7))
    with pytest.raises(AlignmentError, match="labels must be those"):
        named.relabelled(CrowdLabels.from_matrix(labels.to_matrix(), examples=np.arange(150)))
    with pytest.raises(DataError, match="the sums of this fit"):
        CrowdRidgeClassifier(keep_sums=False).fit(X, labels).relabelled(labels)
