"""CrowdClassifier: equal to its slow twin, around any estimator, with scikit-learn's tools."""

import pickle

import numpy as np
import pandas as pd
import pytest
from any_classifiers import (
    ESTIMATORS,
    EXACT,
    few_rounds,
    fit,
    twin_confusion,
    twin_counts,
    twin_likelihood,
    twin_posterior,
    twin_scaling,
    twin_scores,
    twin_temperature,
)
from crowds import balanced_twin, crowd, labels_of, paced_twin, smooth_twin
from marks import in_slow_run
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from crowdwise import CrowdClassifier, CrowdLabels
from crowdwise.em import Shared
from crowdwise.em.estimators import class_scores, seeded, weight_parameter, weighted_copies
from crowdwise.exceptions import DataError, LabelError
from crowdwise.model_selection import crowd_scorer
from crowdwise.probabilities import best_temperature, fit_scaling
from crowdwise.weights import SelfPaced, Smooth

# ---------------------------------------------------------------------- the slow twin


@few_rounds
@pytest.mark.parametrize("n_classes", [2, in_slow_run(3)])
@pytest.mark.parametrize("missing", [in_slow_run(0.0), 0.5])
@pytest.mark.parametrize(
    ("settings", "round_weights", "class_weights"),
    [
        ({"steepness": 0.0}, None, None),
        ({"steepness": 2.0}, None, None),
        ({"steepness": 2.0, "curriculum": Smooth(1.0)}, smooth_twin, None),
        ({"steepness": 2.0, "curriculum": SelfPaced(0.37, 1.43)}, paced_twin, None),
        (
            {"steepness": 2.0, "curriculum": SelfPaced(0.37, 1.43), "class_weight": "balanced"},
            paced_twin,
            balanced_twin,
        ),
    ],
)
def test_equals_the_slow_twin(n_classes, missing, settings, round_weights, class_weights):
    X, matrix = crowd(n_classes=n_classes, missing=missing, n_examples=60)
    sample_weight = np.random.default_rng(1).uniform(0.5, 2, len(X))
    if round_weights is paced_twin:
        sample_weight = np.full(len(X), 1.5)  # the twin counts examples once
    count = sample_weight / sample_weight.mean()
    splits = list(KFold(4).split(X))
    model = fit(X, matrix, n_classes, sample_weight=sample_weight, estimator=EXACT, cv=splits, **settings)

    easy = 2 / (1 + np.exp(settings["steepness"] * model.disagreement_))
    weight, of_class, losses = sample_weight * easy, np.ones(n_classes), None
    answers = [[label for label in row if label is not None] for row in matrix.tolist()]
    votes = np.array([[row.count(k) for k in range(n_classes)] for row in answers])
    posterior = votes / votes.sum(axis=1, keepdims=True)
    alone = twin_dawid_skene(matrix.tolist(), posterior, sample_weight)
    for t in range(1, 4):
        if round_weights is not None:
            weight = sample_weight * round_weights(t, easy, losses, posterior.argmax(axis=1))
        if class_weights is not None:
            of_class = class_weights(posterior, weight)
        scores = twin_scores(X, posterior, weight, splits, of_class, count)
        if t == 1:  # annotators are first judged by a classifier of the votes, and by smoothed votes
            first = twin_temperature(scores, twin_likelihood(matrix.tolist(), alone), sample_weight)
            smoothed = np.log((votes + 1 / n_classes) / (votes.sum(axis=1, keepdims=True) + 1))
            posterior, _ = twin_posterior(scores, smoothed, first)
        judging = twin_judging(scores, posterior, votes, sample_weight, matrix.tolist())
        confusion = twin_confusion(twin_counts(matrix.tolist(), judging, sample_weight), 4.0)
        likelihood = twin_likelihood(matrix.tolist(), confusion)
        temperature, offset = twin_scaling(scores, likelihood, sample_weight)
        posterior, _ = twin_posterior(scores, likelihood, temperature, offset)
        losses = -(posterior * np.log(twin_posterior(scores, 0 * likelihood, temperature, offset)[0])).sum(axis=1)
    assert_allclose(model.temperature_, temperature, rtol=1e-4)
    assert_allclose(model.confusion_, confusion, rtol=1e-4, atol=1e-5)
    assert_allclose(model.consensus_proba_, posterior, rtol=1e-3, atol=1e-5)
    right = [sum(model.class_prior_[k] * confusion[a, k, k] for k in range(n_classes)) for a in range(len(confusion))]
    assert_allclose(model.accuracy_, right, rtol=1e-4)


def twin_judging(scores, posterior, votes, weight, rows):
    """A posterior in which an only label is right as often as scores, agreement of others and assumptions make it."""
    n_classes, only = votes.shape[1], votes.sum(axis=1) == 1
    if not only.any():
        return posterior
    often = weight @ votes / (weight @ votes).sum()
    chance = sum(share**2 for share in often)
    found = []
    for right in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95):
        confusion = [[right * (k == c) + (1 - right) * often[c] for c in range(n_classes)] for k in range(n_classes)]
        likelihood = np.array([[np.log(row @ confusion[k]) for k in range(n_classes)] for row in votes[only]])
        by_both, evidence = twin_posterior(
            scores[only], likelihood, *twin_scaling(scores[only], likelihood, weight[only])
        )
        value = weight[only] @ evidence + 5 * (0.8 * np.log(right) + 0.2 * np.log(1 - right))
        agree = chance + (1 - chance) * right**2
        for annotator in range(len(rows[0])):  # what one annotator shows about others is worth five labels at most
            agreed, differed = 0.0, 0.0
            for row, given, counts in zip(votes, rows, weight, strict=True):
                if given[annotator] is not None:
                    same = row[int(given[annotator])]
                    agreed += counts * (same - 1) / row.sum()
                    differed += counts * (row.sum() - same) / row.sum()
            worth = 5 / (5 + agreed + differed)
            value += worth * (agreed * np.log(agree) + differed * np.log(1 - agree))
        found.append((value, by_both))
    judging = posterior.copy()
    judging[only] = max(found, key=lambda one: one[0])[1]
    return judging


def twin_dawid_skene(rows, posterior, weight):
    """Matrices of annotators by their labels alone, to convergence."""
    for _ in range(1000):
        confusion = twin_confusion(twin_counts(rows, posterior, weight), 4.0)
        scores = np.tile(np.log(weight @ posterior / weight.sum()), (len(rows), 1))
        last, (posterior, _) = posterior, twin_posterior(scores, twin_likelihood(rows, confusion), 1.0)
        if np.abs(posterior - last).max() < 1e-6:
            break
    return confusion


# ---------------------------------------------------------------------- parts


def test_copies_by_hand():
    posterior = np.array([[0.7, 0.3, 0.0], [1 - 1e-4, 1e-4, 0.0], [0.0, 0.5, 0.5]])
    example, code, weight = weighted_copies(posterior, np.array([2.0, 1.0, 4.0]))
    assert example.tolist() == [0, 0, 1, 2, 2]
    assert code.tolist() == [0, 1, 0, 1, 2]
    assert_allclose(weight, [1.4, 0.6, 1.0, 2.0, 2.0])


def test_every_class_keeps_a_copy_and_weights_add_up(rng):
    posterior = np.column_stack([rng.uniform(0.3, 1, 50), rng.uniform(0, 1, 50), rng.uniform(0, 1e-6, 50)])
    posterior /= posterior.sum(axis=1, keepdims=True)
    weight = rng.uniform(0.1, 3, 50)
    example, code, copy_weight = weighted_copies(posterior, weight)
    assert set(code) == {0, 1, 2}
    assert (code == 2).sum() == 1
    assert example[code == 2][0] == posterior[:, 2].argmax()
    assert (copy_weight > 0).all()
    assert_allclose(np.bincount(example, copy_weight), weight)


def test_the_temperature_of_a_voice_that_only_predicts_is_its_rate_of_agreement():
    # The labels are the truth: the likeliest probability of a prediction is how often it is right, here 3 of 4.
    scores = np.tile([1.0, 0.0], (4, 1))
    certain = np.log(np.array([[1, 1e-300]] * 3 + [[1e-300, 1]]))
    many = np.full(4, 1e6)  # so that the prior is of no consequence
    assert_allclose(best_temperature(scores, certain, many), np.log(3), rtol=1e-4)


def test_the_temperature_stays_finite_where_nothing_contradicts_the_model():
    scores, certain = np.log([[0.9, 0.1]] * 5), np.log([[1, 1e-300]] * 5)
    by_hand = np.exp(np.linspace(-3, 3, 60001))
    gain = -5 * np.log1p(9.0**-by_hand) + np.log(by_hand) - by_hand
    assert_allclose(best_temperature(scores, certain, np.ones(5)), by_hand[gain.argmax()], rtol=1e-3)


@pytest.mark.parametrize("n_classes", [2, in_slow_run(3)])
def test_temperature_and_offsets_equal_the_slow_twin(n_classes, rng):
    truth = rng.integers(0, n_classes, 80) // (n_classes - 1)
    scores = rng.normal(size=(80, n_classes)) + np.eye(n_classes)[truth]
    likelihood = rng.normal(size=(80, n_classes)) + 3 * np.eye(n_classes)[truth]
    weight = rng.uniform(0.5, 2, 80)
    found, (temperature, offset) = fit_scaling(scores, likelihood, weight), twin_scaling(scores, likelihood, weight)
    assert_allclose(found.temperature, temperature, rtol=1e-5)
    assert_allclose(found.offset, offset, atol=1e-5)
    assert np.abs(offset).max() > 0.1
    assert fit_scaling(scores, likelihood, weight, offsets=False).offset.tolist() == [0] * n_classes


def test_scores_of_all_kinds_of_classifiers():
    X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([0, 0, 1, 1])
    tree = DecisionTreeClassifier().fit(X, y)
    assert_allclose(np.exp(class_scores(tree, X, np.array([0, 1]), 4))[0], [5 / 6, 1 / 6])  # four examples and one each
    assert_allclose(np.exp(class_scores(tree, X, np.array([0, 1, 2]), 4))[3], [1 / 7, 5 / 7, 1 / 7])
    svm = LinearSVC().fit(X, y)
    margin = svm.decision_function(X)
    assert_allclose(class_scores(svm, X, np.array([0, 1]), 4), np.column_stack([-margin / 2, margin / 2]))
    three = SVC(decision_function_shape="ovo").fit(np.eye(4), [0, 1, 2, 3])
    assert_array_equal(class_scores(three, np.eye(4), np.arange(4), 4), np.eye(4))


def test_scores_of_three_pairs_are_not_those_of_three_classes():
    X, y = np.array([[0.0], [1.0], [2.0]]), [0, 1, 2]
    for estimator in (SVC(decision_function_shape="ovo"), make_pipeline(SVC(decision_function_shape="ovo"))):
        model = estimator.fit(X, y)
        assert model.decision_function(X).shape == (3, 3)
        assert_array_equal(class_scores(model, X, np.arange(3), 3), np.eye(3)[model.predict(X)])


@pytest.mark.parametrize("estimator", [LogisticRegression(), LinearSVC(), SVC(), DecisionTreeClassifier(max_depth=3)])
@pytest.mark.parametrize("classes", [["yes", "no"], ["low", "mid", "high"]])
def test_columns_are_in_the_order_in_which_classes_were_declared(estimator, classes):
    X, matrix = crowd(0, n_examples=90, n_classes=len(classes))
    labels = CrowdLabels.from_matrix(np.array(classes, dtype=object)[matrix.astype(int)], classes=classes)
    model = CrowdClassifier(estimator, tol=0.1).fit(X, labels)
    own, seen = model.estimator_, model.estimator_.classes_.tolist()
    assert model.classes_.tolist() == classes != seen
    at = [seen.index(name) for name in classes]
    if hasattr(own, "predict_proba"):
        assert_array_equal(model.predict_proba(X), own.predict_proba(X)[:, at])
    if hasattr(own, "decision_function"):
        scores = own.decision_function(X)
        assert_array_equal(model.decision_function(X), -scores if scores.ndim == 1 else scores[:, at])


def test_random_states_that_are_none_are_filled_and_others_kept():
    pipeline = make_pipeline(StandardScaler(), RandomForestClassifier())
    assert pipeline[-1].random_state is None
    assert seeded(pipeline, 3)[-1].random_state == seeded(pipeline, 3)[-1].random_state is not None
    assert seeded(RandomForestClassifier(random_state=7), 3).random_state == 7
    assert pipeline[-1].random_state is None


# ---------------------------------------------------------------------- estimators


@few_rounds
@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("n_classes", [2, in_slow_run(3)])
def test_any_estimator_learns_and_finds_the_adversary(name, n_classes):
    rng = np.random.default_rng(0)
    truth = np.arange(150) % n_classes
    X = rng.normal(size=(150, 2)) + 3 * np.array([[0, 0], [1, 1], [-1, 1]])[truth]
    skill = {"good": 0.85, "fair": 0.75, "poor": 0.6, "expert": 1.0, "adversary": 0.0}
    wrong = (truth[:, None] + rng.integers(1, n_classes, (150, 5))) % n_classes
    matrix = np.where(rng.random((150, 5)) < list(skill.values()), truth[:, None], wrong).astype(object)
    matrix[rng.random((150, 5)) < 0.1] = None
    labels = CrowdLabels.from_matrix(matrix, annotators=list(skill))
    model = CrowdClassifier(ESTIMATORS[name], max_rounds=4).fit(X, labels)
    assert np.mean(model.predict(X) == truth) > 0.85
    assert np.mean(model.consensus_ == truth) > 0.9
    assert model.annotators_[np.argmax(model.expertise_)] == "expert"
    assert model.annotator_flags_["adversary"] == ("worse than chance",)
    assert np.isfinite(model.confusion_).all()
    assert_allclose(model.confusion_.sum(axis=2), 1)
    assert_allclose(model.consensus_proba_.sum(axis=1), 1)
    assert ESTIMATORS[name] is None or not hasattr(ESTIMATORS[name], "classes_")  # what was given is not fitted


class Memory(DecisionTreeClassifier):
    """A tree that refuses to judge an example that it has learned from."""

    def fit(self, X, y, sample_weight=None):
        self.seen_ = {tuple(row) for row in X}
        return super().fit(X, y, sample_weight=sample_weight)

    def predict_proba(self, X):
        if any(tuple(row) in self.seen_ for row in X):
            raise AssertionError("agrees with itself")
        return super().predict_proba(X)


@few_rounds
def test_nothing_is_judged_by_a_model_that_has_learnt_from_it():
    X, matrix = crowd(missing=0.3)
    model = fit(X, matrix, estimator=Memory())
    assert model.estimator_.seen_ == {tuple(row) for row in X}
    with pytest.raises(AssertionError, match="agrees with itself"):
        model.predict_proba(X)


def test_methods_are_there_if_the_estimator_has_them():
    X, matrix = crowd()
    assert hasattr(CrowdClassifier(), "predict_proba")
    assert not hasattr(CrowdClassifier(SVC()), "predict_proba")
    assert hasattr(CrowdClassifier(SVC()), "decision_function")
    forest = CrowdClassifier(RandomForestClassifier(5), tol=1.0).fit(X, labels_of(matrix))
    assert not hasattr(forest, "decision_function")
    assert_array_equal(forest.predict_proba(X), forest.estimator_.predict_proba(X))
    svc = CrowdClassifier(SVC(), tol=1.0).fit(X, labels_of(matrix))
    assert_array_equal(svc.decision_function(X), svc.estimator_.decision_function(X))


# ---------------------------------------------------------------------- errors before work starts


class Untouched:
    """Features that may not be read."""

    def __getattr__(self, name):
        raise AssertionError(f"looked at {name} of X")


@pytest.mark.parametrize(
    ("estimator", "match"),
    [
        (KNeighborsClassifier(), "KNeighborsClassifier does not"),
        (make_pipeline(StandardScaler(), KNeighborsClassifier()), "KNeighborsClassifier does not"),
        (GridSearchCV(LogisticRegression(), {}), "GridSearchCV does not"),
        (SVC(kernel="precomputed"), "matrix of similarities"),
        (LogisticRegression, "must be a classifier with fit and predict"),
        ("forest", "must be a classifier with fit and predict"),
        (StandardScaler(), "must be a classifier with fit and predict"),
    ],
)
def test_unusable_estimators_are_refused_before_anything_is_read(estimator, match):
    with pytest.raises(TypeError, match=match):
        CrowdClassifier(estimator).fit(Untouched(), [[0, 1], [1, 0]])


def test_weights_are_routed_to_the_last_step():
    assert weight_parameter(SVC()) == "sample_weight"
    assert weight_parameter(make_pipeline(StandardScaler(), SVC())) == "svc__sample_weight"
    assert weight_parameter(ESTIMATORS["pipeline in pipeline"]) == "pipeline__decisiontreeclassifier__sample_weight"


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"steepness": -1.0}, "steepness must be"),
        ({"steepness": np.nan}, "steepness must be"),
        ({"annotator_model": Shared(0.0)}, "strength must be"),
        ({"annotator_model": Shared(np.inf)}, "strength must be"),
        ({"max_rounds": 0}, "max_rounds must be"),
        ({"tol": np.nan}, "tol must be"),
        ({"cv": 1}, "cv must be a whole number >= 2"),
        ({"cv": "5"}, "cv must be a whole number"),
        ({"cv": 2.5}, "cv must be a whole number"),
        ({"max_rounds": 1.5}, "max_rounds must be"),
        ({"curriculum": "fading"}, "curriculum must be"),
        ({"curriculum": Smooth(-1.0)}, "c must be"),
        ({"class_weight": {2: 1.0}}, "names the class 2"),
        ({"class_weight": {1: -1.0}}, "class_weight of 1 must be"),
        ({"class_weight": "even"}, "class_weight must be"),
    ],
)
def test_settings_that_cannot_be_used(settings, match):
    X, matrix = crowd()
    with pytest.raises(ValueError, match=match):
        CrowdClassifier(**settings).fit(X, labels_of(matrix))


def test_every_example_must_be_held_out_once():
    X, matrix = crowd()
    with pytest.raises(DataError, match="must hold out every example once"):
        CrowdClassifier(cv=ShuffleSplit(3, random_state=0)).fit(X, labels_of(matrix))
    with pytest.raises(DataError, match="both learned from and held out"):
        CrowdClassifier(cv=[(np.arange(40), np.arange(40))]).fit(X, labels_of(matrix))


# ---------------------------------------------------------------------- consensus


@few_rounds
def test_the_consensus_uses_the_final_model():
    X, matrix = crowd(missing=0.4, n_classes=3, n_examples=80)
    labels = labels_of(matrix, 3)
    model = fit(X, matrix, 3)
    few = model.consensus(X[:5], labels[:5])
    likelihood = twin_likelihood(matrix[:5].tolist(), model.confusion_)
    scores = np.log((80 * model.predict_proba(X[:5]) + 1) / 83)
    offset = model.fitted_.scaling.offset
    assert_allclose(few.proba, twin_posterior(scores, likelihood, model.temperature_, offset)[0], rtol=1e-10)
    alone = model.consensus(X[:5], labels[:5], use_model=False)
    assert_allclose(alone.proba, twin_posterior(np.tile(np.log(model.class_prior_), (5, 1)), likelihood, 1.0)[0])


@few_rounds
def test_new_annotators_count_as_the_crowd_and_silence_as_the_model():
    X, matrix = crowd()
    model = fit(X, matrix)
    stranger = CrowdLabels.from_matrix([[1, None], [None, None], [None, 1]], annotators=["new", 0], classes=[0, 1])
    found = model.consensus(X[:3], stranger, use_model=False)
    with pytest.raises(LabelError, match="none of the 2 annotators"):
        model.consensus(X[:1], stranger[:1])
    odds = model.class_prior_ * model.fitted_.annotators.answers.crowd[:, 1]
    assert_allclose(found.proba[0], odds / odds.sum())
    scores = np.log((40 * model.predict_proba(X[1:2]) + 1) / 42)
    offset = model.fitted_.scaling.offset
    assert_allclose(found.proba[1], twin_posterior(scores, np.zeros((1, 2)), model.temperature_, offset)[0][0])
    with pytest.raises(LabelError, match="not among those of the fit"):
        model.consensus(X[:1], CrowdLabels.from_matrix([["a"]], classes=["a", "b"]))


# ---------------------------------------------------------------------- scikit-learn's tools


@few_rounds
def test_data_frames_with_words_and_sparse_features_are_passed_on_as_they_are():
    X, matrix = crowd(n_examples=60)
    frame = pd.DataFrame({"size": X[:, 0], "colour": np.where(X[:, 1] > 1, "red", "blue")})
    pipeline = make_pipeline(make_column_transformer((OneHotEncoder(), ["colour"]), remainder="passthrough"), SVC())
    model = CrowdClassifier(pipeline, max_rounds=2).fit(frame, matrix)
    assert model.feature_names_in_.tolist() == ["size", "colour"]
    assert len(model.predict(frame)) == 60
    texts = [" ".join(["good", "bad", "so"][j] for j in np.argsort(row)) for row in X]
    words = CrowdClassifier(make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression()), max_rounds=2)
    assert len(words.fit(texts, matrix).predict(texts)) == 60
    dense, thin, coordinates = (fit(kind(X), matrix) for kind in (np.asarray, sparse.csr_array, sparse.coo_array))
    assert_allclose(thin.consensus_proba_, dense.consensus_proba_, atol=1e-3)
    assert_array_equal(coordinates.consensus_proba_, thin.consensus_proba_)


@few_rounds
def test_grid_search_clone_and_pickle():
    X, matrix = crowd(missing=0.3, n_examples=60)
    labels = labels_of(matrix)
    search = GridSearchCV(
        CrowdClassifier(SVC(), max_rounds=2),
        {"estimator__C": [0.1, 1.0], "annotator_model": [Shared(1.0), Shared(3.0)]},
        cv=KFold(3, shuffle=True, random_state=0),
        scoring=crowd_scorer(),
        error_score="raise",
    ).fit(X, labels)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    model = search.best_estimator_
    assert clone(model).get_params()["estimator__C"] == search.best_params_["estimator__C"]
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    assert_array_equal(make_pipeline(StandardScaler(), clone(model)).fit(X, labels).predict(X[:3]).shape, (3,))


@few_rounds
def test_labels_are_matched_to_rows_by_identifier():
    X, matrix = crowd(missing=0.3)
    frame = pd.DataFrame(X, index=[f"row {i}" for i in range(len(X))])
    table = labels_of(matrix, examples=frame.index).to_table()
    shuffled = np.random.default_rng(0).permutation(len(table["label"]))
    labels = CrowdLabels.from_table({name: column[shuffled] for name, column in table.items()})
    settings = {"max_rounds": 3, "tol": 0.0}
    by_name, by_place = CrowdClassifier(**settings).fit(frame, matrix), CrowdClassifier(**settings).fit(frame, labels)
    assert_array_equal(by_name.consensus_proba_, by_place.consensus_proba_)
