import pickle

import numpy as np
import pandas as pd
import pytest
from crowds import balanced_twin, crowd, labels_of, paced_twin, rare_crowd, smooth_twin
from marks import in_slow_run
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from crowdwise import CrowdClassifier, CrowdLabels
from crowdwise.em import Shared
from crowdwise.em.held_out import stratified_folds
from crowdwise.em.temperature import ClassScores, best_temperature
from crowdwise.em.weighted_copies import class_scores, seeded, weight_parameter, weighted_copies
from crowdwise.exceptions import CrowdConvergenceWarning, CrowdWarning, DataError, LabelError
from crowdwise.model_selection import crowd_scorer
from crowdwise.weights import Fading, Fixed, SelfPaced, Smooth

# A solver that gives the same to nearly all digits wherever it starts from.
EXACT = LogisticRegression(solver="newton-cholesky", max_iter=1000, tol=1e-12)
few_rounds = pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdConvergenceWarning")


def fit(X, matrix, n_classes=2, *, estimator=None, sample_weight=None, **settings):
    # One kind of examples, annotators who err independently and are judged with the classifier from the votes on.
    plain = {"steepness": 0.0, "hard_examples": False, "errors_in_common": False, "joint": True, "init": "votes"}
    settings = {"max_rounds": 3, "tol": 0.0, **plain, **settings}
    return CrowdClassifier(estimator, **settings).fit(X, labels_of(matrix, n_classes), sample_weight=sample_weight)


# ---------------------------------------------------------------------- the slow twin


def twin_counts(matrix, posterior, weight):
    """How often each annotator said what, by looking at one label after the other."""
    n_classes = len(posterior[0])
    counts = np.zeros((len(matrix[0]), n_classes, n_classes))
    for i, row in enumerate(matrix):
        for annotator, label in enumerate(row):
            if label is not None:
                for k in range(n_classes):
                    counts[annotator, k, label] += weight[i] * posterior[i][k]
    return counts


def twin_around(counts, shared, strength):
    """Confusion matrices drawn towards the crowd's, and how well they explain labels and prior."""
    confusion, worth = np.zeros_like(counts), 0.0
    for annotator, k in np.ndindex(counts.shape[:2]):
        row = [counts[annotator, k, c] + strength * shared[k][c] for c in range(counts.shape[1])]
        for c in range(counts.shape[1]):
            confusion[annotator, k, c] = row[c] / sum(row)
            worth += row[c] * np.log(confusion[annotator, k, c]) - strength * shared[k][c] * np.log(shared[k][c])
    return confusion, worth


def twin_confusion(counts, strength, last_shared):
    """Confusion matrices and the crowd's: that of all labels, or that of the round before if it explains more."""
    n_classes = counts.shape[1]
    pooled = [[1 / n_classes + sum(one[k, c] for one in counts) for c in range(n_classes)] for k in range(n_classes)]
    pooled = [[count / sum(row) for count in row] for row in pooled]
    found, worth = twin_around(counts, pooled, strength)
    if last_shared is not None:
        other, other_worth = twin_around(counts, last_shared, strength)
        if other_worth > worth:
            return other, last_shared
    return found, pooled


def twin_scores(X, matrix, posterior, weight, splits, class_weight):
    """Logarithms of out-of-fold probabilities of logistic regressions on copies made one by one."""
    n_classes = len(posterior[0])
    scores = np.zeros((len(X), n_classes))
    for learn, held_out in splits:
        rows, classes, weights = [], [], []
        admitted = [i for i in learn if weight[i] > 0]
        for i in admitted:
            kept = [k for k in range(n_classes) if posterior[i][k] >= 1e-3]
            for k in kept:
                rows.append(X[i])
                classes.append(k)
                weights.append(class_weight[k] * weight[i] * posterior[i][k] / sum(posterior[i][c] for c in kept))
        model = clone(EXACT).fit(rows, classes, sample_weight=weights)
        for i in held_out:
            probability = dict(zip(model.classes_.tolist(), model.predict_proba(X[[i]])[0].tolist(), strict=True))
            for k in range(n_classes):
                n_learnt = len(admitted)
                scores[i, k] = np.log((n_learnt * probability.get(k, 0.0) + 1) / (n_learnt + n_classes))
                scores[i, k] -= np.log(class_weight[k])
    return scores


def twin_likelihood(matrix, confusion):
    n_classes = confusion.shape[1]
    found = np.zeros((len(matrix), n_classes))
    for i, row in enumerate(matrix):
        for annotator, label in enumerate(row):
            if label is not None:
                for k in range(n_classes):
                    found[i, k] += np.log(confusion[annotator, k, label])
    return found


def twin_posterior(scores, likelihood, temperature):
    prior = np.exp(temperature * scores)
    prior /= prior.sum(axis=1, keepdims=True)
    joint = prior * np.exp(likelihood)
    return joint / joint.sum(axis=1, keepdims=True), np.log(joint.sum(axis=1))


def twin_temperature(scores, likelihood, weight):
    """The best of many temperatures, then of many around it."""
    low, high = np.log(1e-3), np.log(1e2)
    for _ in range(6):
        grid = np.linspace(low, high, 101)
        best = grid[
            np.argmax([weight @ twin_posterior(scores, likelihood, np.exp(t))[1] + t - np.exp(t) for t in grid])
        ]
        step = grid[1] - grid[0]
        low, high = best - step, best + step
    return np.exp(best)


@few_rounds
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("missing", [0.0, 0.5])
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
    splits = list(KFold(4).split(X))
    model = fit(X, matrix, n_classes, sample_weight=sample_weight, estimator=EXACT, cv=splits, **settings)

    easy = 2 / (1 + np.exp(settings["steepness"] * model.disagreement_))
    weight, of_class, losses = sample_weight * easy, np.ones(n_classes), None
    answers = [[label for label in row if label is not None] for row in matrix.tolist()]
    posterior = np.array([[row.count(k) / len(row) for k in range(n_classes)] for row in answers])
    shared = None
    for t in range(1, 4):
        if round_weights is not None:
            weight = sample_weight * round_weights(t, easy, losses, posterior.argmax(axis=1))
        if class_weights is not None:
            of_class = class_weights(posterior, weight)
        counts = twin_counts(matrix.tolist(), posterior, weight)
        confusion, shared = twin_confusion(counts, 3.0, shared)
        scores = twin_scores(X, matrix, posterior, weight, splits, of_class)
        likelihood = twin_likelihood(matrix.tolist(), confusion)
        temperature = twin_temperature(scores, likelihood, weight)
        posterior, _ = twin_posterior(scores, likelihood, temperature)
        losses = -(posterior * np.log(twin_posterior(scores, 0 * likelihood, temperature)[0])).sum(axis=1)
    assert_allclose(model.temperature_, temperature, rtol=1e-4)
    assert_allclose(model.confusion_, confusion, rtol=1e-4, atol=1e-5)
    assert_allclose(model.consensus_proba_, posterior, rtol=1e-3, atol=1e-5)
    right = [sum(model.class_prior_[k] * confusion[a, k, k] for k in range(n_classes)) for a in range(len(confusion))]
    assert_allclose(model.accuracy_, right, rtol=1e-4)


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
    assert_allclose(best_temperature(ClassScores(scores, np.ones(2), True), certain, many), np.log(3), rtol=1e-4)


def test_the_temperature_stays_finite_where_nothing_contradicts_the_model():
    scores, certain = np.log([[0.9, 0.1]] * 5), np.log([[1, 1e-300]] * 5)
    by_hand = np.exp(np.linspace(-3, 3, 60001))
    gain = -5 * np.log1p(9.0**-by_hand) + np.log(by_hand) - by_hand
    assert_allclose(
        best_temperature(ClassScores(scores, np.ones(2), True), certain, np.ones(5)), by_hand[gain.argmax()], rtol=1e-3
    )


def test_folds_spread_every_class():
    code = np.array([0] * 20 + [1] * 2 + [2] * 7)
    splits = stratified_folds(code, 5, np.random.default_rng(0))
    assert sorted(np.concatenate([held_out for _, held_out in splits]).tolist()) == list(range(29))
    for learn, held_out in splits:
        assert set(code[learn]) == {0, 1, 2}
        assert not set(learn) & set(held_out)
        assert np.ptp([len(held_out), 6]) <= 1


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


def test_random_states_that_are_none_are_filled_and_others_kept():
    pipeline = make_pipeline(StandardScaler(), RandomForestClassifier())
    assert pipeline[-1].random_state is None
    assert seeded(pipeline, 3)[-1].random_state == seeded(pipeline, 3)[-1].random_state is not None
    assert seeded(RandomForestClassifier(random_state=7), 3).random_state == 7
    assert pipeline[-1].random_state is None


# ---------------------------------------------------------------------- estimators

ESTIMATORS = {
    "none": None,
    "gradient boosting": GradientBoostingClassifier(n_estimators=10),
    "histogram boosting": HistGradientBoostingClassifier(max_iter=5, max_leaf_nodes=4, min_samples_leaf=5),
    "forest": RandomForestClassifier(20, min_samples_leaf=3),
    "svc": SVC(),
    "sgd": SGDClassifier(alpha=0.1),
    "ridge": RidgeClassifier(),
    "pipeline": make_pipeline(StandardScaler(), SVC()),
    "pipeline in pipeline": make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), DecisionTreeClassifier())),
}


@few_rounds
@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("n_classes", [2, 3])
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
    """A tree that refuses to judge an example that it has learnt from."""

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
    with pytest.raises(DataError, match="both learnt from and held out"):
        CrowdClassifier(cv=[(np.arange(40), np.arange(40))]).fit(X, labels_of(matrix))


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


@few_rounds
def test_examples_without_labels_take_no_part_and_get_the_voice_of_the_model():
    X, matrix = crowd(missing=0.3, n_examples=50)
    matrix[[3, 7]] = None
    with pytest.warns(CrowdWarning, match="2 of 50 examples have no label"):
        model = fit(X, matrix)
    assert_array_equal(model.consensus_[[3, 7]], model.predict(X[[3, 7]]))
    with pytest.warns(CrowdWarning, match="2 of 50"):
        moved = fit(np.where(np.isin(np.arange(50), [3, 7])[:, None], X + 5.0, X), matrix)
    assert_array_equal(moved.estimator_.coef_, model.estimator_.coef_)


def test_no_label_and_no_weight_and_one_class_are_errors():
    X, matrix = crowd()
    with pytest.raises(LabelError, match="there is no label"):
        CrowdClassifier().fit(X, labels_of(np.full_like(matrix, None)))
    with pytest.raises(ValueError, match="sample_weight of every labelled example is zero"):
        CrowdClassifier().fit(X, labels_of(matrix), sample_weight=np.zeros(len(X)))
    half = matrix.copy()
    half[:20] = None
    with pytest.raises(DataError, match="sample_weight of every labelled example is zero"):
        CrowdClassifier().fit(X, labels_of(half), sample_weight=np.arange(40) < 20)
    with pytest.raises(LabelError, match="at least two classes"):
        CrowdClassifier().fit(X, labels_of(np.zeros_like(matrix)))
    with pytest.raises(ValueError, match="inconsistent"):
        CrowdClassifier().fit(X[:-1], labels_of(matrix))


@few_rounds
def test_an_annotator_with_one_label_is_like_the_crowd_and_flagged():
    X, matrix = crowd(n_examples=80)
    newcomer = np.full((80, 1), None)
    newcomer[5] = matrix[5, 0]
    model = fit(X, np.hstack([matrix, newcomer]))
    assert "few labels" in model.annotator_flags_[6]
    # Three labels of the crowd and at most one of their own.
    assert np.abs(model.confusion_[6] - model.fitted_.annotators.behaviour.crowd[0]).max() <= 0.25 + 1e-9


def test_one_annotator_is_believed():
    X, matrix = crowd(n_annotators=1)
    y = matrix[:, 0].astype(int)
    with pytest.warns(CrowdWarning, match="one annotator"):
        model = CrowdClassifier(LogisticRegression()).fit(X, y)
    assert_allclose(model.estimator_.coef_, LogisticRegression().fit(X, y).coef_)
    assert model.expertise_.tolist() == [1.0]
    assert_array_equal(model.consensus_, y)
    assert (model.n_rounds_, model.converged_) == (0, True)
    assert model.score(X, y) == np.mean(model.predict(X) == y)
    with pytest.warns(CrowdWarning, match="one annotator"):
        CrowdClassifier(steepness=1.0).fit(X, y)
    CrowdClassifier(steepness=0.0).fit(X, y)  # nothing to say: no weighting was asked for


@few_rounds
def test_annotators_who_share_no_example():
    X, matrix = crowd(n_examples=60)
    alone = np.full_like(matrix, None)
    alone[np.arange(60), np.arange(60) % 6] = matrix[np.arange(60), np.arange(60) % 6]
    with pytest.warns(CrowdWarning, match="no two annotators share"):
        model = fit(X, alone, steepness=2.0)
    assert_array_equal(model.easiness_, np.ones(60))
    assert np.isfinite(model.consensus_proba_).all()


@few_rounds
@pytest.mark.parametrize("name", ["none", "svc", "sgd", "forest", "histogram boosting"])
@pytest.mark.parametrize("steepness", [1e6, 1e308])
def test_however_steep_no_estimator_gets_weights_that_vanish(name, steepness):
    X, matrix = crowd(n_examples=60, n_annotators=7)
    matrix[0] = 1  # the only unanimous example: all other weights would vanish, and in one fold all of them
    model = fit(X, matrix, estimator=ESTIMATORS[name], steepness=steepness)
    assert model.easiness_.max() == 1
    assert (model.easiness_ > 0).all()
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
    with pytest.warns(CrowdConvergenceWarning, match="after 1 rounds the probabilities still changed by"):
        model = CrowdClassifier(max_rounds=1, tol=0.0).fit(X, labels_of(matrix))
    assert not model.converged_
    assert CrowdClassifier(tol=1.0).fit(X, labels_of(matrix)).converged_


# ---------------------------------------------------------------------- consensus


@few_rounds
def test_the_consensus_uses_the_final_model():
    X, matrix = crowd(missing=0.4, n_classes=3, n_examples=80)
    labels = labels_of(matrix, 3)
    model = fit(X, matrix, 3)
    few = model.consensus(X[:5], labels[:5])
    likelihood = twin_likelihood(matrix[:5].tolist(), model.confusion_)
    scores = np.log((80 * model.predict_proba(X[:5]) + 1) / 83)
    assert_allclose(few.proba, twin_posterior(scores, likelihood, model.temperature_)[0], rtol=1e-10)
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
    odds = model.class_prior_ * model.fitted_.annotators.behaviour.crowd[0, :, 1]
    assert_allclose(found.proba[0], odds / odds.sum())
    scores = np.log((40 * model.predict_proba(X[1:2]) + 1) / 42)
    assert_allclose(found.proba[1], twin_posterior(scores, np.zeros((1, 2)), model.temperature_)[0][0])
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
    assert_allclose(thin.consensus_proba_, dense.consensus_proba_, rtol=1e-3, atol=1e-4)
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


# ---------------------------------------------------------------------- curricula and class weights


@few_rounds
@pytest.mark.parametrize("estimator", [None, SVC(), RandomForestClassifier(5)])
@pytest.mark.parametrize(
    "settings",
    [
        {"curriculum": Fixed()},
        {"curriculum": SelfPaced(start=1.0)},
        {"class_weight": {0: 1, 1: 1.0}},
        {"class_weight": {}},
    ],
)
def test_settings_that_mean_nothing_change_no_bit(estimator, settings):
    X, matrix = crowd(missing=0.3)
    plain, other = (fit(X, matrix, estimator=estimator, steepness=2.0, **more) for more in ({}, settings))
    assert_array_equal(plain.consensus_proba_, other.consensus_proba_)
    assert_array_equal(plain.confusion_, other.confusion_)
    assert_array_equal(plain.predict(X), other.predict(X))
    assert (plain.temperature_, plain.n_rounds_) == (other.temperature_, other.n_rounds_)


@few_rounds
def test_the_same_seed_tosses_the_same_coins():
    X, matrix = crowd(missing=0.3)
    settings = {"steepness": 4.0, "curriculum": Fading(0.5), "cv": KFold(3), "max_rounds": 5}
    one, same, other = (fit(X, matrix, random_state=seed, **settings) for seed in (1, 1, 3))
    assert_array_equal(one.consensus_proba_, same.consensus_proba_)
    assert not np.array_equal(one.consensus_proba_, other.consensus_proba_)


class Strict(DecisionTreeClassifier):
    """A tree that will not see an example without weight."""

    def fit(self, X, y, sample_weight=None):
        if not (len(X) and np.min(sample_weight) > 0):
            raise AssertionError("an example without weight")
        return super().fit(X, y, sample_weight=sample_weight)


@few_rounds
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("start", [0.001, 0.3])
def test_examples_that_are_not_admitted_never_reach_an_estimator(n_classes, start):
    X, matrix = crowd(n_classes=n_classes, n_examples=30)
    paced = SelfPaced(start, 1.1)
    model = fit(X, matrix, n_classes, estimator=Strict(max_depth=2), curriculum=paced, steepness=3.0, max_rounds=5)
    assert model.estimator_.tree_.n_node_samples[0] < 30 * n_classes
    assert np.isfinite(model.consensus_proba_).all()
    assert set(model.estimator_.classes_) == set(range(n_classes))


@few_rounds
def test_a_part_of_which_nobody_is_admitted_is_silent():
    X, matrix = np.arange(6.0)[:, None], np.array([[0, 0, 0], [0, 1, 1], [0, 1, 0], [1, 0, 1], [1, 0, 0], [1, 1, 0]])
    splits = [(np.arange(1, 6), np.arange(1)), (np.arange(1), np.arange(1, 6))]
    model = fit(X, matrix, curriculum=SelfPaced(0.01, 1.01), steepness=5.0, cv=splits, max_rounds=1)
    # The one unanimous example is admitted, and nobody else: the model of the others has nothing to learn from.
    odds = np.prod([confusion[:, 0] for confusion in model.confusion_], axis=0)
    assert_allclose(model.consensus_proba_[0], odds / odds.sum())


def test_rounds_settle_when_the_weights_do():
    X, matrix = crowd(n_examples=100)
    settings = {"steepness": 2.0, "tol": 0.1}
    with pytest.warns(CrowdConvergenceWarning, match="curriculum still changes the weights after 9 rounds"):
        model = fit(X, matrix, curriculum=Smooth(1.0), max_rounds=9, **settings)
    assert not model.converged_
    model = fit(X, matrix, curriculum=Smooth(1.0), max_rounds=20, **settings)
    assert (model.converged_, model.n_rounds_) == (True, 10)


@pytest.mark.parametrize("estimator", [None, RidgeClassifier(), SVC(), DecisionTreeClassifier(min_samples_leaf=20)])
def test_balanced_classes_find_more_of_the_rare_one_and_leave_the_consensus(estimator):
    X, matrix, truth = rare_crowd()
    settings = {"estimator": estimator, "tol": 0.01, "max_rounds": 30}
    plain, balanced = (fit(X, matrix, class_weight=weight, **settings) for weight in (None, "balanced"))
    recall = [np.mean(model.predict(X)[truth == 1]) for model in (plain, balanced)]
    assert recall[1] > recall[0] + 0.15
    assert np.mean(balanced.consensus_ == truth) >= np.mean(plain.consensus_ == truth) - 0.01
    assert_allclose(balanced.class_prior_, plain.class_prior_, atol=0.015)
    assert_allclose(balanced.class_prior_ * balanced.class_weight_, [0.5, 0.5])


@few_rounds
def test_the_consensus_on_new_examples_has_class_weights_divided_out():
    X, matrix, _ = rare_crowd(n_examples=100)
    model = fit(X, matrix, class_weight={1: 5.0})
    few = model.consensus(X[:5], labels_of(matrix[:5]))
    scores = np.log((100 * model.predict_proba(X[:5]) + 1) / 102) - np.log([1.0, 5.0])
    likelihood = twin_likelihood(matrix[:5].tolist(), model.confusion_)
    assert_allclose(few.proba, twin_posterior(scores, likelihood, model.temperature_)[0], rtol=1e-10)


def test_margins_get_their_temperature_before_class_weights_are_divided_out():
    scores, weight = np.array([[-0.5, 0.5]]), np.array([1.0, 4.0])
    spoken = np.exp(ClassScores(scores, weight, False).log_proba(2.0))[0]
    assert_allclose(spoken[1] / spoken[0], np.exp(2.0) / 4)
    spoken = np.exp(ClassScores(np.log([[0.2, 0.8]]), weight, True).log_proba(2.0))[0]
    assert_allclose(spoken, [0.5, 0.5])  # odds of 4 to 1 are what the weights alone would give


def test_one_annotator_with_class_weights_is_scikit_learn():
    X, matrix = crowd(n_annotators=1)
    y = matrix[:, 0].astype(int)
    for class_weight in ("balanced", {0: 3.0}):
        model = CrowdClassifier(LogisticRegression(), class_weight=class_weight, steepness=0.0).fit(X, y)
        assert_allclose(
            model.estimator_.coef_, LogisticRegression(class_weight=class_weight).fit(X, y).coef_, rtol=1e-3
        )


@few_rounds
def test_a_class_that_is_declared_but_not_named_may_have_a_weight():
    X, matrix = crowd()
    declared = CrowdLabels.from_matrix(np.where(matrix == 1, "yes", "no"), classes=["maybe", "no", "yes"])
    model = CrowdClassifier(max_rounds=2, class_weight={"maybe": 7.0, "yes": 2.0}).fit(X, declared)
    assert model.class_weight_.tolist() == [1.0, 2.0]


@few_rounds
@pytest.mark.parametrize(
    "estimator", [RandomForestClassifier(3), in_slow_run(None), in_slow_run(make_pipeline(StandardScaler(), SVC()))]
)
def test_folds_side_by_side_give_the_same_bits(estimator):
    X, matrix = crowd(missing=0.3, n_classes=3, n_examples=60)
    settings = {"estimator": estimator, "steepness": 2.0, "curriculum": Smooth(), "class_weight": "balanced"}
    one, two = (fit(X, matrix, 3, n_jobs=n_jobs, **settings) for n_jobs in (None, 2))
    assert_array_equal(one.consensus_proba_, two.consensus_proba_)
    assert_array_equal(one.predict(X), two.predict(X))
    assert one.temperature_ == two.temperature_
