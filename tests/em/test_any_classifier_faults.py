"""CrowdClassifier: invariances and faults."""

import numpy as np
import pandas as pd
import pytest
from any_classifiers import ESTIMATORS, EXACT, few_rounds, fit
from crowds import crowd, labels_of
from marks import in_slow_run
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from crowdwise import CrowdClassifier, CrowdLabels, load
from crowdwise.exceptions import CrowdConvergenceWarning, CrowdWarning, DataError, LabelError

# ---------------------------------------------------------------------- invariances


@few_rounds
@pytest.mark.parametrize("estimator", [None, DecisionTreeClassifier(max_depth=2)])
def test_permuting_annotators_permutes_the_result(estimator):
    X, matrix = crowd(missing=0.4, n_classes=3, n_examples=80)
    order = np.random.default_rng(3).permutation(matrix.shape[1])
    one, other = (fit(X, columns, 3, estimator=estimator) for columns in (matrix, matrix[:, order]))
    assert_allclose(one.confusion_[order], other.confusion_, rtol=1e-6, atol=1e-9)
    assert_allclose(one.expertise_[order], other.expertise_, rtol=1e-6)
    assert_allclose(one.consensus_proba_, other.consensus_proba_, rtol=1e-5, atol=1e-8)


@few_rounds
def test_an_annotator_without_labels_changes_no_bit():
    X, matrix = crowd(missing=0.4)
    nobody = np.full((len(X), 1), None)
    one, other = fit(X, matrix), fit(X, np.hstack([matrix[:, :2], nobody, matrix[:, 2:]]))
    others = np.delete(np.arange(7), 2)
    assert_array_equal(one.confusion_, other.confusion_[others])
    assert_array_equal(one.consensus_proba_, other.consensus_proba_)
    assert_array_equal(one.estimator_.coef_, other.estimator_.coef_)
    assert np.isnan(other.expertise_[2])
    assert np.isnan(other.confusion_[2]).all()
    assert other.annotator_flags_[2] == ("no labels",)


@few_rounds
def test_a_weight_of_zero_is_as_if_the_example_were_not_there():
    X, matrix = crowd(missing=0.3, n_examples=60)
    weight = np.ones(60)
    weight[10:15] = 0
    kept = weight > 0
    splits = [(np.flatnonzero(np.arange(60) % 3 != k), np.flatnonzero(np.arange(60) % 3 == k)) for k in range(3)]
    position = np.cumsum(kept) - 1
    fewer = [tuple(position[part[kept[part]]] for part in split) for split in splits]
    one = fit(X, matrix, sample_weight=weight, cv=splits)
    other = fit(X[kept], matrix[kept], cv=fewer)
    assert_array_equal(one.estimator_.coef_, other.estimator_.coef_)
    assert_array_equal(one.consensus_proba_[kept], other.consensus_proba_)
    assert_allclose(one.consensus_proba_.sum(axis=1), 1)


@few_rounds
def test_the_same_seed_gives_the_same_forest_and_another_seed_another():
    X, matrix = crowd(missing=0.3)
    one, same, other = (fit(X, matrix, estimator=RandomForestClassifier(5), random_state=seed) for seed in (1, 1, 2))
    assert_array_equal(one.predict_proba(X), same.predict_proba(X))
    assert not np.array_equal(one.predict_proba(X), other.predict_proba(X))


@few_rounds
def test_groups_can_be_kept_together_by_giving_splits():
    X, matrix = crowd(n_examples=60)
    groups = np.arange(60) // 10
    model = fit(X, matrix, cv=GroupKFold(3).split(X, groups=groups))
    assert model.n_rounds_ == 3
    assert_array_equal(fit(X, matrix, cv=KFold(4)).consensus_proba_, fit(X, matrix, cv=KFold(4)).consensus_proba_)


# ---------------------------------------------------------------------- faults


SCALED_TREE = make_pipeline(StandardScaler(), DecisionTreeClassifier())
SCALED_LINE = make_pipeline(StandardScaler(), LogisticRegression())
FILLED_LINE = make_pipeline(SimpleImputer(), LogisticRegression())
KINDS_OF_X = {
    "array": np.asarray,
    "list": np.ndarray.tolist,
    "frame": pd.DataFrame,
    "frame of several types": lambda X: pd.DataFrame(X, columns=list("abc")).assign(whole=1),
}


@few_rounds
@pytest.mark.parametrize("make", [np.asarray, *map(in_slow_run, list(KINDS_OF_X.values())[1:])], ids=KINDS_OF_X)
@pytest.mark.parametrize(
    ("estimator", "taken"),
    [
        (None, ""),
        (SCALED_LINE, ""),  # which passes NaN on to one that refuses it
        (FILLED_LINE, "nan"),
        (DecisionTreeClassifier(), "nan"),
        (SCALED_TREE, "nan"),
        (HistGradientBoostingClassifier(max_iter=2), "nan inf"),
    ],
    ids=lambda given: given if isinstance(given, str) else type(given).__name__,
)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_numbers_that_an_estimator_does_not_take_are_told_with_their_places(estimator, taken, bad, make):
    X, matrix = crowd(n_examples=30)
    model = fit(make(X), matrix, estimator=estimator, max_rounds=1)
    X[[4, 20], [1, 2]] = bad
    calls = [
        lambda: fit(make(X), matrix, estimator=estimator, max_rounds=1),
        lambda: model.predict(make(X)),
        lambda: model.consensus(make(X), labels_of(matrix)),
    ]
    for call in calls:
        if str(bad) in taken:
            call()
        else:
            with pytest.raises(DataError, match="infinity: 2 values, at row"):
                call()


@few_rounds
def test_only_infinity_is_told_to_those_whose_tree_takes_nan():
    X, matrix = crowd(n_examples=30)
    X[3, 0], X[4, 1] = np.nan, np.inf
    with pytest.raises(DataError, match="contains infinity: 1 value, at"):
        fit(X, matrix, estimator=DecisionTreeClassifier())


@few_rounds
@pytest.mark.parametrize("offset", [1e4, 1e8])
def test_the_default_classifier_copes_with_features_far_from_zero(offset):
    X, matrix = crowd(n_examples=60, missing=0.3)
    far = X + offset
    near = far - offset  # what is left of X
    one, other = fit(near, matrix), fit(far, matrix)
    assert_allclose(other.estimator_.coef_, one.estimator_.coef_, rtol=1e-8)
    rounding = np.finfo(float).eps * offset * np.abs(one.estimator_.coef_).sum()  # of a product with such features
    assert_allclose(other.consensus_proba_, one.consensus_proba_, atol=1e-8 + rounding)
    assert_allclose(
        other.predict_proba(far), one.predict_proba(near), atol=1e-15 * offset + 1e-10
    )  # digits of X @ coef


def test_features_whose_squares_overflow_are_refused_by_the_default_classifier():
    X, matrix = crowd()
    with pytest.raises(DataError, match="too large: the squares of"):
        fit(1e155 * X, matrix)


@pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdWarning")
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize("size", [1e155, 1e200, 1.7e308])
def test_they_are_refused_sparse_too_and_without_a_stray_warning(size, make):
    X, matrix = crowd(n_examples=40)
    with pytest.raises(DataError, match="Input X is too large: the squares of its values overflow"):
        CrowdClassifier().fit(make(X / np.abs(X).max() * size), matrix)


@few_rounds
def test_the_default_classifier_is_a_logistic_regression_of_features_as_they_were_given():
    X, matrix = crowd(n_examples=60, n_classes=3)
    frame = pd.DataFrame(X, columns=list("abc"))
    ours, plain = fit(frame, matrix, 3, max_rounds=2), fit(frame, matrix, 3, estimator=EXACT, max_rounds=2)
    assert ours.feature_names_in_.tolist() == ["a", "b", "c"]
    assert_allclose(ours.estimator_.coef_, plain.estimator_.coef_, atol=2e-3)  # lbfgs stops earlier
    assert_allclose(ours.estimator_.intercept_, plain.estimator_.intercept_, atol=5e-3)


@few_rounds
def test_examples_without_labels_take_no_part_and_get_the_voice_of_the_model():
    X, matrix = crowd(missing=0.3, n_examples=50)
    matrix[[3, 7]] = None
    with pytest.warns(CrowdWarning, match="2 of 50 examples have"):
        model = fit(X, matrix)
    assert_array_equal(model.consensus_[[3, 7]], model.predict(X[[3, 7]]))
    with pytest.warns(CrowdWarning, match="2 of 50"):
        moved = fit(np.where(np.isin(np.arange(50), [3, 7])[:, None], X + 5.0, X), matrix)
    assert_array_equal(moved.estimator_.coef_, model.estimator_.coef_)


def test_no_label_and_no_weight_and_one_class_are_errors():
    X, matrix = crowd()
    with pytest.raises(LabelError, match="there is no label"):
        CrowdClassifier().fit(X, labels_of(np.full_like(matrix, None)))
    with pytest.raises(ValueError, match="sample_weight of every labelled example"):
        CrowdClassifier().fit(X, labels_of(matrix), sample_weight=np.zeros(len(X)))
    half = matrix.copy()
    half[:20] = None
    with pytest.raises(DataError, match="sample_weight of every labelled example"):
        CrowdClassifier().fit(X, labels_of(half), sample_weight=np.arange(40) < 20)
    with pytest.raises(LabelError, match="at least two classes"):
        CrowdClassifier().fit(X, np.zeros(matrix.shape))  # no other class is declared
    with pytest.raises(ValueError, match="inconsistent"):
        CrowdClassifier().fit(X[:-1], labels_of(matrix))


@few_rounds
def test_an_annotator_with_one_label_is_like_the_crowd_and_flagged():
    X, matrix = crowd(n_examples=80)
    newcomer = np.full((80, 1), None)
    newcomer[5] = matrix[5, 0]
    model = fit(X, np.hstack([matrix, newcomer]))
    assert "few labels" in model.annotator_flags_[6]
    # Four labels of the crowd and at most one of their own.
    assert np.abs(model.confusion_[6] - model.fitted_.annotators.answers.crowd).max() <= 0.2 + 1e-9


def test_one_annotator_cannot_be_compared():
    X, matrix = crowd(n_annotators=1)
    y = matrix[:, 0].astype(int)
    model = CrowdClassifier(LogisticRegression()).fit(X, y)
    assert np.isnan(model.accuracy_).all()
    assert model.expertise_.tolist() == [1.0]
    assert model.converged_
    assert model.score(X, y) == np.mean(model.predict(X) == y)
    with pytest.warns(CrowdWarning, match="one annotator"):
        CrowdClassifier(steepness=1.0).fit(X, y)


@few_rounds
def test_annotators_who_share_no_example():
    X, matrix = crowd(n_examples=60)
    alone = np.full_like(matrix, None)
    alone[np.arange(60), np.arange(60) % 6] = matrix[np.arange(60), np.arange(60) % 6]
    with pytest.warns(CrowdWarning, match="no two annotators share"):
        model = fit(X, alone, steepness=2.0)
    assert_array_equal(model.results_.easiness, np.ones(60))
    assert np.isfinite(model.consensus_proba_).all()


@pytest.mark.slow
@few_rounds
@pytest.mark.parametrize("name", ["none", "svc", "sgd", "forest", "histogram boosting"])
@pytest.mark.parametrize("steepness", [1e6, 1e308])
def test_however_steep_no_estimator_gets_weights_that_vanish(name, steepness):
    X, matrix = crowd(n_examples=60, n_annotators=7)
    matrix[0] = 1  # the only unanimous example: all other weights would vanish, and in one fold all of them
    model = fit(X, matrix, estimator=ESTIMATORS[name], steepness=steepness)
    assert model.results_.easiness.max() == 1
    assert (model.results_.easiness > 0).all()
    assert set(model.estimator_.classes_) == {0, 1}
    assert np.isfinite(model.consensus_proba_).all()


@few_rounds
def test_a_class_with_one_example_is_kept():
    X, matrix = crowd(n_examples=30, n_annotators=4)
    matrix[:] = np.where(matrix == 0, 0, 1)
    matrix[4] = 2
    model = fit(X, matrix, 3)
    assert model.consensus_[4] == 2  # although no classifier that has not seen it knows the class
    assert model.predict_proba(X).shape == (30, 3)


@few_rounds
def test_a_part_with_one_class_is_not_given_to_an_estimator():
    X = np.arange(6.0)[:, None]
    matrix = np.array([[0, 0], [0, 0], [0, 0], [0, 0], [0, 0], [1, 1]], dtype=object)
    model = fit(X, matrix, cv=3)
    assert_array_equal(model.consensus_, [0, 0, 0, 0, 0, 1])
    two = CrowdClassifier(tol=1.0).fit([[0.0], [1.0]], [[0, 0], [1, 1]])
    assert two.consensus_.tolist() == [0, 1]


@few_rounds
def test_a_class_that_nobody_names_is_not_learnt():
    X, matrix = crowd()
    declared = CrowdLabels.from_matrix(np.where(matrix == 1, "yes", "no"), classes=["maybe", "no", "yes"])
    model = CrowdClassifier(max_rounds=2, tol=0.0).fit(X, declared)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.consensus(X, declared).proba.shape == model.consensus_proba_.shape


@few_rounds
def test_an_annotator_who_is_always_wrong_is_turned_round():
    X, matrix = crowd(n_examples=100)
    wrong = 1 - (matrix.sum(axis=1, keepdims=True) > 3).astype(int)
    model = fit(X, np.hstack([matrix, wrong]))
    assert model.annotator_flags_[6] == ("worse than chance",)
    assert 0 < model.accuracy_[6] < 0.5


@few_rounds
def test_thousands_of_labels_on_an_example_do_not_underflow():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 30)
    X = rng.normal(size=(30, 2)) + 2 * truth[:, None]
    matrix = np.where(rng.random((30, 2000)) < 0.55, truth[:, None], 1 - truth[:, None])
    model = CrowdClassifier(max_rounds=3, tol=0.0).fit(X, matrix)
    assert np.isfinite(model.consensus_proba_).all()
    assert_array_equal(model.consensus_, truth)


def test_says_that_it_has_not_settled():
    X, matrix = crowd(missing=0.3)
    with pytest.warns(CrowdConvergenceWarning, match="after 1 rounds the probabilities"):
        model = CrowdClassifier(max_rounds=1, tol=0.0).fit(X, labels_of(matrix))
    assert not model.converged_
    assert CrowdClassifier(tol=1.0).fit(X, labels_of(matrix)).converged_


@pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdWarning")
@pytest.mark.parametrize("estimator", [None, DecisionTreeClassifier(), GaussianNB(), LinearSVC()], ids=repr)
@pytest.mark.parametrize("n_labelled", [1, 2, 12])
def test_labels_of_one_class_are_enough_if_classes_are_declared(estimator, n_labelled):
    X = np.random.default_rng(0).normal(size=(12, 2))
    matrix = [["no", "no"]] * n_labelled + [[None, None]] * (12 - n_labelled)
    with pytest.raises(LabelError, match="labels of at least two"):
        CrowdClassifier(estimator).fit(X, CrowdLabels.from_matrix(matrix))
    model = CrowdClassifier(estimator).fit(X, CrowdLabels.from_matrix(matrix, classes=["no", "yes", "perhaps"]))
    assert model.classes_.tolist() == ["no", "yes", "perhaps"]
    assert set(model.predict(X)) == set(model.consensus_) == {"no"}
    assert np.isfinite(model.consensus_proba_).all()
    assert_allclose(model.consensus(X, CrowdLabels.from_matrix(matrix, classes=["no", "yes"])).proba.sum(axis=1), 1)


ODD_CLASSES = {
    "half stars": [0.5, 1.0, 1.5],
    "dates": np.array(["2020-01-01", "2021-01-01", "2022-01-01"], dtype="datetime64[D]"),
    "bytes": [b"a", b"b", b"c"],
    "beyond 64 bits": [10**30, 10**31, 10**32],
    "floats beyond 64 bits": [-1e300, 1e20, 1e300],
}


@few_rounds
@pytest.mark.parametrize("estimator", [None, LinearSVC(), in_slow_run(DecisionTreeClassifier(max_depth=2))])
@pytest.mark.parametrize("kind", ODD_CLASSES)
def test_classes_that_scikit_learn_does_not_take_are_learnt_like_any_other(kind, estimator, tmp_path):
    X, matrix = crowd(n_classes=3, n_examples=60)
    codes = matrix.astype(int)
    classes = np.array(ODD_CLASSES[kind], dtype=object if kind == "beyond 64 bits" else None)
    plain = CrowdClassifier(estimator, max_rounds=1).fit(X, CrowdLabels.from_matrix(codes, classes=range(3)))
    odd = CrowdClassifier(estimator, max_rounds=1).fit(X, CrowdLabels.from_matrix(classes[codes], classes=classes))
    assert_array_equal(odd.results_.proba, plain.results_.proba)
    assert_array_equal(odd.classes_, classes)
    assert_array_equal(odd.predict(X), classes[plain.predict(X)])
    method = "decision_function" if isinstance(estimator, LinearSVC) else "predict_proba"
    assert_array_equal(getattr(odd, method)(X), getattr(plain, method)(X))
    if estimator is None and kind != "beyond 64 bits":
        odd.save(tmp_path / "model")
        assert_array_equal(load(tmp_path / "model").predict(X), odd.predict(X))


@few_rounds
@pytest.mark.parametrize("estimator", [None, DecisionTreeClassifier(max_depth=2)])
@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame])
def test_times_are_no_features_unless_a_first_step_converts_them(estimator, make):
    X, matrix = crowd(n_examples=60)
    times = make((X * 1e9).astype("datetime64[s]"))
    with pytest.raises(DataError, match="holds times"):
        CrowdClassifier(estimator).fit(times, matrix)
    fitted = CrowdClassifier(estimator, max_rounds=1).fit(X, matrix)
    with pytest.raises(DataError, match="holds times"):
        fitted.predict(times)
    converted = make_pipeline(FunctionTransformer(lambda X: np.asarray(X).astype(float)), LogisticRegression())
    assert len(CrowdClassifier(converted, max_rounds=1).fit(times, matrix).predict(times)) == 60
