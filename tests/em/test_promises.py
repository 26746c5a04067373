"""What holds for the consensus of labels, with and without a classifier, whatever the crowd is."""

import numpy as np
import pytest
from crowds import clear_crowd, crowd, labels_of
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

from crowdwise import CrowdClassifier, CrowdLabels, CrowdLogisticClassifier, aggregate

EXACT = LogisticRegression(solver="newton-cholesky", max_iter=1000, tol=1e-12)


@given(
    seed=st.integers(0, 10**6), n_classes=st.sampled_from([2, 3, 5]), missing=st.sampled_from([0.0, 0.5, 0.8]),
    n_annotators=st.sampled_from([2, 3, 9]), common=st.booleans(),
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdWarning")  # about rounds, or chosen examples
def test_the_label_is_the_most_probable_class(seed, n_classes, missing, n_annotators, common):
    _, matrix = crowd(seed, n_classes=n_classes, missing=missing, n_annotators=n_annotators)
    found = aggregate(labels_of(matrix, n_classes), errors_in_common=common, max_rounds=None if common else 50)
    assert_array_equal(found.label, found.classes[found.proba.argmax(axis=1)])
    assert_allclose(found.confidence, found.proba.max(axis=1))
    assert_allclose(found.proba.sum(axis=1), 1)
    with_truth = aggregate(labels_of(matrix, n_classes), truth={i: i % 2 for i in range(0, 40, 3)})
    assert_array_equal(with_truth.label, with_truth.classes[with_truth.proba.argmax(axis=1)])


@pytest.mark.parametrize("model", [CrowdLogisticClassifier(), CrowdClassifier(EXACT)], ids=["logistic", "any"])
def test_with_features_the_label_is_the_most_probable_class_too(model):
    X, labels, _ = clear_crowd(n_classes=3)
    model.fit(X, labels)
    assert_array_equal(model.consensus_, model.classes_[model.consensus_proba_.argmax(axis=1)])
    assert_array_equal(
        model.results_.label_consensus.label, model.classes_[model.results_.label_consensus.proba.argmax(axis=1)]
    )


@given(seed=st.integers(0, 10**6), n_classes=st.sampled_from([2, 4]))
def test_a_declared_class_that_nobody_gave_is_never_the_consensus(seed, n_classes):
    _, matrix = crowd(seed, n_classes=n_classes, missing=0.5)
    found = aggregate(CrowdLabels.from_matrix(matrix, classes=range(n_classes + 1)))
    assert (found.label < n_classes).all()
    assert (found.proba[:, n_classes] < 1e-6).all()


@given(seed=st.integers(0, 10**6))
def test_the_consensus_of_the_labels_of_the_fit_is_that_of_the_fit(seed):
    _, matrix = crowd(seed, n_classes=3, missing=0.4)
    labels = labels_of(np.column_stack([matrix, matrix[:, 0]]), 3)
    found = aggregate(labels)
    assert_allclose(found.fitted.proba(labels), found.proba, atol=1e-10)
    one_by_one = np.vstack([found.fitted.proba(labels[[i]]) for i in range(len(labels))])
    assert_allclose(one_by_one, found.proba, atol=1e-10)


def test_the_consensus_of_the_labels_of_the_fit_with_features_is_that_of_the_fit():
    X, labels, _ = clear_crowd(n_classes=3)
    model = CrowdLogisticClassifier(cross_fit=0).fit(X, labels)
    assert_allclose(model.consensus(X, labels).proba, model.consensus_proba_, atol=1e-8)
    assert_allclose(model.consensus(X, labels, use_model=False).proba, model.results_.label_consensus.proba, atol=1e-10)


def test_known_answers_calibrate_new_labels_as_those_of_the_fit():
    _, labels, truth = clear_crowd()
    known = dict(zip(range(0, 150, 5), truth[::5].tolist(), strict=True))
    found = aggregate(labels, truth=known)
    others = np.setdiff1d(np.arange(150), list(known))
    assert_allclose(found.fitted.proba(labels)[others], found.proba[others], atol=1e-10)


def test_an_unknown_annotator_counts_as_the_crowd():
    _, matrix = crowd(missing=0.3, n_classes=3)
    found = aggregate(labels_of(matrix, 3)).fitted
    new = CrowdLabels.from_matrix([[2, None], [2, 0]], annotators=["new", 0], classes=range(3))
    odds = found.class_prior * found.answers.crowd[:, 2]
    assert_allclose(found.proba(new)[0], odds / odds.sum())  # of one vote nothing is discounted
    odds = odds * found.confusion[0, :, 0]
    merit = np.array([found.merit.mean(), found.merit[0]])
    n_votes = merit.sum() ** 2 / (merit**2).sum()
    odds = odds ** (n_votes ** (-0.7 * found.discount.common))
    assert_allclose(found.proba(new)[1], odds / odds.sum())


def test_an_annotator_without_labels_has_nothing_and_changes_no_bit():
    _, matrix = crowd(missing=0.3)
    silent = np.column_stack([matrix[:, :2], np.full(40, None), matrix[:, 2:]])
    one, other = aggregate(labels_of(matrix)), aggregate(labels_of(silent))
    assert_array_equal(other.proba, one.proba)
    assert_array_equal(np.delete(other.accuracy, 2), one.accuracy)
    assert np.isnan([other.accuracy[2], other.expertise[2]]).all()
    assert np.isnan(other.confusion[2]).all()
    assert other.annotator_flags[2] == ("no labels",)


def test_levels_are_classes_but_for_how_far_labels_agree_beyond_them():
    labels = labels_of(crowd(n_classes=5, missing=0.5, n_examples=100)[1], 5)
    classes, levels = aggregate(labels), aggregate(labels.with_scale("ordinal"))
    assert_array_equal(levels.confusion, classes.confusion)
    assert_array_equal(levels.label, classes.label)
    assert levels.choices[1].score != classes.choices[1].score  # the correlation of residuals
    assert_array_equal(levels.label, levels.proba.argmax(axis=1))


def permuted(X, matrix, seed, n_classes):
    """Examples, annotators and classes in another order, and the three orders."""
    rng = np.random.default_rng(seed)
    rows, columns, names = rng.permutation(len(matrix)), rng.permutation(matrix.shape[1]), rng.permutation(n_classes)
    renamed = np.array([[None if v is None else names[v] for v in row] for row in matrix], dtype=object)
    return X[rows], renamed[rows][:, columns], rows, columns, names


@settings(max_examples=5)
@given(seed=st.integers(0, 10**6))
@pytest.mark.parametrize("common", [True, False])
def test_orders_of_examples_annotators_and_classes_change_nothing_with_features(common, seed):
    X, matrix = crowd(seed, n_classes=3, missing=0.3, n_examples=60)
    settings = {"errors_in_common": common, "max_rounds": None if common else 4, "tol": 1.0}
    X_other, other_matrix, rows, columns, names = permuted(X, matrix, seed, 3)
    one = CrowdClassifier(EXACT, **settings).fit(X, labels_of(matrix, 3))
    other = CrowdClassifier(EXACT, **settings).fit(X_other, labels_of(other_matrix, 3))
    assert_allclose(other.consensus_proba_[:, names], one.consensus_proba_[rows], atol=1e-5)
    assert_allclose(other.accuracy_, one.accuracy_[columns], atol=1e-5)


@pytest.mark.parametrize("common", [True, False])
def test_a_weight_of_two_is_the_row_twice(common):
    X, matrix = crowd(missing=0.3, n_examples=60)
    twice, weight = np.concatenate([np.arange(60), np.arange(20)]), np.where(np.arange(60) < 20, 2.0, 1.0)
    fold, settings = np.arange(60) % 3, {"errors_in_common": common, "max_rounds": None if common else 4, "tol": 1.0}
    groups = dict.fromkeys(range(6))  # copies are looked for among rows, however often each counts

    def fit(rows, **more):
        splits = [(np.flatnonzero(fold[rows] != k), np.flatnonzero(fold[rows] == k)) for k in range(3)]
        model = CrowdClassifier(EXACT, cv=splits, **settings)
        labels = labels_of(matrix[rows])
        return model.fit(X[rows], labels.with_groups(groups) if common else labels, **more)

    # A mean weight of one: an estimator that counts examples counts these.
    one, other = fit(np.arange(60), sample_weight=weight), fit(twice)
    assert_allclose(one.confusion_, other.confusion_, atol=2e-3)
    assert_allclose(one.consensus_proba_, other.consensus_proba_[:60], atol=5e-3)
    plain = fit(np.arange(60))
    assert np.abs(plain.consensus_proba_ - one.consensus_proba_).max() > 0.01


def test_features_that_predict_the_truth_help():
    gains = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 2, 300)
        said = np.where(rng.random((300, 15)) < 0.7, truth[:, None], 1 - truth[:, None]).astype(object)
        said[rng.permuted(np.tile(np.arange(15), (300, 1)), axis=1) >= 3] = None
        X = rng.normal(size=(300, 3)) + 1.5 * truth[:, np.newaxis]
        for model in (CrowdLogisticClassifier(), CrowdClassifier(LogisticRegression())):
            model.fit(X, labels_of(said))
            gains.append((model.consensus_ == truth).mean() - (aggregate(labels_of(said)).label == truth).mean())
    assert min(gains) > 0.1


def test_features_that_say_nothing_cost_little():
    losses = []
    for seed in range(4):
        X, labels, truth = clear_crowd(seed)
        noise = np.random.default_rng(seed).normal(size=X.shape)
        model = CrowdLogisticClassifier().fit(noise, labels)
        losses.append((aggregate(labels).label == truth).mean() - (model.consensus_ == truth).mean())
    assert np.mean(losses) < 0.01
