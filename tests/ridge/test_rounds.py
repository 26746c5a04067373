"""The rounds with curricula and class weights."""

import pickle
import warnings

import numpy as np
import pytest
import twin
from constants import changed
from crowds import crowd, labels_of
from marks import in_slow_run
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV
from test_classifier_cv import naive_choice

import crowdwise.ridge.data
from crowdwise import (
    CrowdLabels,
    CrowdRidgeClassifier,
    CrowdRidgeClassifierCV,
    CrowdRidgeRegressor,
    simulate_annotators,
)
from crowdwise.exceptions import CrowdConvergenceWarning
from crowdwise.ridge import rounds as ridge_rounds
from crowdwise.weights import Curriculum, Fading, Fixed, SelfPaced, Smooth, class_weights
from crowdwise.weights.folds import content_folds

few_rounds = pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdConvergenceWarning")
one_annotator = pytest.mark.filterwarnings("ignore:there is one annotator")
L2S = (0.01, 1.0, 30.0, 1000.0)
SEED = 7
TOSSES = np.random.default_rng(SEED).random(50)


def fading(c):
    return lambda t, easy, losses, own: easy if TOSSES[t - 1] < t**-c else np.ones(len(easy))


def smooth(c):
    return lambda t, easy, losses, own: t**-c * easy + 1 - t**-c


def self_paced(start, growth):
    """Threshold by sorting: the first loss at which enough sample weight is in."""

    def reweight(t, easy, losses, own):
        share = start * growth ** (t - 1)
        if share >= 1:
            return easy
        hardness = -easy if losses is None else losses
        order = np.argsort(hardness, kind="stable")
        threshold = hardness[order][np.searchsorted(np.cumsum(own[order]) / own.sum(), share)]
        return np.where(hardness <= threshold, easy, 0.0)

    return reweight


CURRICULA = {
    "fading": (Fading(0.5), fading(0.5)),
    "smooth": (Smooth(1.0), smooth(1.0)),
    "self-paced": (SelfPaced(0.31, 1.37), self_paced(0.31, 1.37)),
}
CLASS_WEIGHTS = {"none": None, "balanced": "balanced", "given": {0: 0.4, 1: 3.0}}


def rare(seed=0, *, n_classes=2, missing=0.0, n_examples=60):
    """A crowd in which the last class is rare."""
    X, matrix = crowd(seed, n_examples=3 * n_examples, n_classes=n_classes, missing=missing, n_annotators=5)
    votes = np.array([[sum(label == k for label in row) for k in range(n_classes)] for row in matrix])
    often = np.flatnonzero(votes.argmax(axis=1) < n_classes - 1)
    seldom = np.flatnonzero(votes.argmax(axis=1) == n_classes - 1)[: n_examples // 8]
    keep = np.sort(np.concatenate([often[: n_examples - len(seldom)], seldom]))
    return X[keep], matrix[keep]


def listed(class_weight, n_classes):
    return [class_weight.get(k, 1.0) for k in range(n_classes)] if isinstance(class_weight, dict) else class_weight


def assert_same(one, other, rtol=1e-8):
    for name in ("coef_", "intercept_", "expertise_", "label_score_", "temperature_"):
        assert_allclose(getattr(one, name), getattr(other, name), rtol=rtol, atol=1e-10, err_msg=name)


@few_rounds
@pytest.mark.parametrize("name", [*CURRICULA, "fixed"])
@pytest.mark.parametrize("weighting", CLASS_WEIGHTS)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("missing", [0.0, 0.5])
@pytest.mark.parametrize("fit_intercept", [True, in_slow_run(False)])
def test_equals_the_slow_twin(name, weighting, n_classes, missing, fit_intercept):
    X, matrix = rare(n_classes=n_classes, missing=missing)
    curriculum, reweight = CURRICULA.get(name, (None, None))
    class_weight = CLASS_WEIGHTS[weighting]
    sample_weight = np.random.default_rng(1).uniform(0.5, 2, len(X))
    model = CrowdRidgeClassifier(
        l2=0.7, fit_intercept=fit_intercept, max_rounds=5, tol=0.0,
        curriculum=curriculum, class_weight=class_weight, random_state=SEED,
    ).fit(X, labels_of(matrix, n_classes), sample_weight)  # fmt: skip
    slow = twin.fit(
        X, matrix.tolist(), list(range(n_classes)), l2=0.7, fit_intercept=fit_intercept, sample_weight=sample_weight,
        n_rounds=5, reweight=reweight, class_weight=listed(class_weight, n_classes),
    )  # fmt: skip
    assert_allclose(model.coef_.T, slow["coef"], rtol=1e-8, atol=1e-10)
    assert_allclose(model.intercept_, slow["intercept"], rtol=1e-8, atol=1e-10)
    assert_allclose(model.expertise_, slow["expertise"], rtol=1e-8)
    assert_allclose(model.class_weight_, np.ones(n_classes) if class_weight is None else slow["class_weight"])
    sums = class_weight is None and name in ("fading", "smooth", "fixed")
    assert model.route_ == ("sums" if sums else "rows")


@few_rounds
@pytest.mark.parametrize("name", [*CURRICULA, "fixed"])
@pytest.mark.parametrize("weighting", CLASS_WEIGHTS)
@pytest.mark.parametrize(("n_classes", "missing"), [(2, 0.4), in_slow_run(2, 0.0), in_slow_run(3, 0.0)])
@pytest.mark.parametrize("tune", ["every round", in_slow_run("once")])
def test_tuning_equals_fitting_every_l2_and_fold_anew(name, weighting, n_classes, missing, tune):
    X, matrix = rare(3, n_classes=n_classes, missing=missing)
    curriculum, reweight = CURRICULA.get(name, (None, None))
    class_weight = CLASS_WEIGHTS[weighting]
    model = CrowdRidgeClassifierCV(
        (0.0, 2.0), l2s=L2S, cv=3, max_rounds=4, tol=0.0, tune=tune,
        curriculum=curriculum, class_weight=class_weight, random_state=SEED,
    ).fit(X, labels_of(matrix, n_classes))  # fmt: skip
    choose = naive_choice(X, matrix, content_folds(X, 3, SEED), L2S)
    for s, steepness in enumerate((0.0, 2.0)):
        chosen = []

        def choose_l2(*state, chosen=chosen):
            chosen.append(chosen[0] if chosen and tune == "once" else choose(*state))
            return chosen[-1]

        slow = twin.fit(
            X, matrix.tolist(), list(range(n_classes)), steepness=steepness, n_rounds=4,
            reweight=reweight, class_weight=listed(class_weight, n_classes), choose_l2=choose_l2,
        )  # fmt: skip
        assert model.cv_results_["l2"][s] == slow["l2"]
        assert_allclose(model.cv_results_["coef"][s].T, slow["coef"], rtol=1e-8, atol=1e-10)
        assert_allclose(model.cv_results_["expertise"][s], slow["expertise"], rtol=1e-8)


@few_rounds
@pytest.mark.parametrize("name", CURRICULA)
def test_ratings_too(name):
    curriculum, reweight = CURRICULA[name]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    truth = X @ [1.0, -2.0, 0.5]
    ratings = truth[:, None] + rng.normal(size=(40, 4)) * [0.1, 0.5, 1.0, 2.0]
    model = CrowdRidgeRegressor(1.5, max_rounds=4, tol=0.0, curriculum=curriculum, random_state=SEED).fit(X, ratings)
    expertise, scores = np.ones(4), None
    for t in range(1, 5):
        consensus = ratings @ expertise / expertise.sum()
        weight = reweight(
            t, model.results_.easiness, None if scores is None else (consensus - scores) ** 2, np.ones(40)
        )
        coef, intercept = twin.ridge(X, consensus[:, None], weight, 1.0, True)
        scores = (X @ coef + intercept)[:, 0]
        expertise = weight.sum() / (weight @ (ratings - scores[:, None]) ** 2)
    assert_allclose(model.coef_, coef[:, 0], rtol=1e-8)
    assert_allclose(model.expertise_, expertise, rtol=1e-8)


def test_rows_are_read_where_sums_per_annotator_would_outgrow_the_features():
    X, matrix = crowd(2, missing=0.4)
    sums = CrowdRidgeClassifier().fit(X, labels_of(matrix, 2))
    few = slice(0, matrix.shape[1] * (X.shape[1] + 1) - 1)
    with changed("crowdwise.ridge.data", _SMALL_SUMS=0):
        still = CrowdRidgeClassifier().fit(X, labels_of(matrix, 2))  # fewer numbers than the features have
        rows = CrowdRidgeClassifier().fit(X[few], labels_of(matrix[few], 2))
    same = CrowdRidgeClassifier().fit(X[few], labels_of(matrix[few], 2))
    assert (sums.route_, still.route_, rows.route_, same.route_) == ("sums", "sums", "rows", "sums")
    assert_allclose(rows.coef_, same.coef_, rtol=1e-8, atol=1e-10)


@few_rounds
@pytest.mark.parametrize("curriculum", [Fading(0.5), Smooth(1.0)])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_sums_and_rows_give_the_same(curriculum, missing, monkeypatch):
    X, matrix = crowd(2, missing=missing, n_classes=3)
    settings = {"curriculum": curriculum, "random_state": SEED, "max_rounds": 12}
    sums = CrowdRidgeClassifier(**settings).fit(X, labels_of(matrix, 3))
    monkeypatch.setattr(ridge_rounds, "choose_route", lambda *args, **kwargs: "rows")
    rows = CrowdRidgeClassifier(**settings).fit(X, labels_of(matrix, 3))
    assert (sums.route_, rows.route_) == ("sums", "rows")
    for name in ("coef_", "expertise_", "objective_"):
        assert_allclose(getattr(sums, name), getattr(rows, name), rtol=1e-8, atol=1e-10)
    tuned = CrowdRidgeClassifierCV((1.0, 3.0), l2s=L2S, cv=3, **settings).fit(X, labels_of(matrix, 3))
    monkeypatch.undo()
    tuned_sums = CrowdRidgeClassifierCV((1.0, 3.0), l2s=L2S, cv=3, **settings).fit(X, labels_of(matrix, 3))
    assert (tuned_sums.route_, tuned.route_) == ("sums", "rows")
    for key in ("l2", "coef", "expertise"):
        assert_allclose(tuned.cv_results_[key], tuned_sums.cv_results_[key], rtol=1e-8, atol=1e-10)
    # The error of an l2 that is far off is a difference of large numbers.
    assert_allclose(tuned.cv_results_["held_out_error"], tuned_sums.cv_results_["held_out_error"], rtol=1e-6)


@few_rounds
@pytest.mark.parametrize("curriculum", [Fading(0.5), Smooth(1.0)])
def test_no_round_reads_a_row_while_weights_are_blended(curriculum, monkeypatch):
    X, matrix = crowd(2)
    read = []
    alternate = ridge_rounds.alternate

    def watched(*args, **kwargs):
        with monkeypatch.context() as patch:
            patch.setattr(crowdwise.rows.features.Rows, "read", lambda *_: read.append(1))
            patch.setattr(crowdwise.rows.features.Rows, "scores", lambda *_: read.append(1))
            return alternate(*args, **kwargs)

    monkeypatch.setattr(ridge_rounds, "alternate", watched)
    model = CrowdRidgeClassifier(curriculum=curriculum, random_state=0).fit(X, labels_of(matrix))
    assert model.n_rounds_ > 3
    assert not read


@pytest.mark.parametrize(
    "estimator", [CrowdRidgeClassifier(), CrowdRidgeClassifierCV((0.0, 2.0)), CrowdRidgeRegressor()]
)
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_fixed_is_the_default_to_the_bit(estimator, missing):
    X, matrix = crowd(1, missing=missing)
    y = (
        CrowdLabels.from_matrix(matrix.astype(float), scale="interval")
        if isinstance(estimator, CrowdRidgeRegressor)
        else labels_of(matrix)
    )
    one = clone(estimator).fit(X, y)
    other = (
        clone(estimator)
        .set_params(curriculum=Fixed(), random_state=3 if "cv" not in estimator.get_params() else 0)
        .fit(X, y)
    )
    precision = "model_precision_" if isinstance(estimator, CrowdRidgeRegressor) else "temperature_"
    for name in ("coef_", "intercept_", "expertise_", "objective_", precision):
        assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.n_rounds_ == other.n_rounds_


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_class_weights_of_one_are_no_class_weights_to_the_bit(missing):
    X, matrix = crowd(1, missing=missing)
    plain = CrowdRidgeClassifier().fit(X, labels_of(matrix))
    ones = CrowdRidgeClassifier(class_weight={0: 1.0, 1: 1.0}).fit(X, labels_of(matrix))
    assert ones.route_ == "sums"
    assert_array_equal(ones.coef_, plain.coef_)
    assert_array_equal(ones.expertise_, plain.expertise_)


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_the_pass_a_round_with_weights_of_one_is_the_plain_model(missing):
    X, matrix = crowd(1, missing=missing)
    plain = CrowdRidgeClassifier().fit(X, labels_of(matrix))
    nearly = CrowdRidgeClassifier(class_weight={0: 1.0, 1: 1.0 + 1e-13}).fit(X, labels_of(matrix))
    assert nearly.route_ == "rows"
    for name in ("coef_", "expertise_", "label_score_"):
        assert_allclose(getattr(nearly, name), getattr(plain, name), rtol=1e-9)


def test_smooth_with_a_huge_c_is_one_weighted_round_and_then_the_unweighted_method():
    X, matrix = crowd(4)
    model = CrowdRidgeClassifier(curriculum=Smooth(1000.0)).fit(X, labels_of(matrix))
    unweighted = CrowdRidgeClassifier(0.0).fit(X, labels_of(matrix))
    assert model.converged_
    assert_same(model, unweighted, rtol=1e-4)
    with pytest.warns(CrowdConvergenceWarning):
        first = CrowdRidgeClassifier(max_rounds=1).fit(X, labels_of(matrix))
    with pytest.warns(CrowdConvergenceWarning):
        same = CrowdRidgeClassifier(max_rounds=1, curriculum=Smooth(1000.0)).fit(X, labels_of(matrix))
    assert_same(first, same)


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_self_paced_settles_where_fixed_does(missing):
    X, matrix = crowd(4, n_examples=100, missing=missing)
    fixed = CrowdRidgeClassifier(tol=1e-12, max_rounds=1000).fit(X, labels_of(matrix))
    paced = CrowdRidgeClassifier(curriculum=SelfPaced(), tol=1e-12, max_rounds=1000).fit(X, labels_of(matrix))
    everything = CrowdRidgeClassifier(curriculum=SelfPaced(start=1.0), tol=1e-12, max_rounds=1000).fit(
        X, labels_of(matrix)
    )
    assert paced.converged_
    assert paced.n_rounds_ >= 5  # 0.5 times 1.2**4 is above 1
    for name in ("coef_", "expertise_", "label_score_"):
        assert_allclose(getattr(paced, name), getattr(fixed, name), rtol=1e-8)
        assert_allclose(getattr(everything, name), getattr(fixed, name), rtol=1e-8)
    assert everything.n_rounds_ == fixed.n_rounds_


def test_fading_is_told_its_seed():
    X, matrix = crowd(4)
    settings = {"curriculum": Fading(1.0), "max_rounds": 20}

    def coefs(seed):
        with pytest.warns(CrowdConvergenceWarning):
            return CrowdRidgeClassifier(**settings, random_state=seed).fit(X, labels_of(matrix)).coef_.tolist()

    assert coefs(1) == coefs(1)
    assert len({str(coefs(seed)) for seed in range(6)}) > 1


def test_a_fit_does_not_change_the_generator_of_another():
    X, matrix = crowd(4)
    model = CrowdRidgeClassifier(curriculum=Fading(3.0), random_state=5)
    assert_array_equal(model.fit(X, labels_of(matrix)).objective_, model.fit(X, labels_of(matrix)).objective_)


@pytest.mark.parametrize(("estimator", "steepness"), [(CrowdRidgeClassifier, 2.0), (CrowdRidgeClassifierCV, (2.0,))])
def test_fading_with_c_of_one_is_never_called_settled(estimator, steepness):
    X, matrix = crowd(4)
    with pytest.warns(CrowdConvergenceWarning, match=r"(curriculum|expertise) still change"):
        model = estimator(steepness, curriculum=Fading(1.0), max_rounds=300, random_state=0).fit(X, labels_of(matrix))
    assert not model.converged_
    assert model.n_rounds_ == 300


def test_smooth_is_not_called_settled_while_it_drifts():
    X, matrix = crowd(4)
    with pytest.warns(CrowdConvergenceWarning, match="the curriculum still changes the"):
        drifting = CrowdRidgeClassifier(curriculum=Smooth(1.0), tol=1e-3, max_rounds=300).fit(X, labels_of(matrix))
    assert not drifting.converged_
    settled = CrowdRidgeClassifier(curriculum=Smooth(3.0), max_rounds=100).fit(X, labels_of(matrix))
    assert settled.converged_
    assert settled.n_rounds_ >= 99


def test_without_disagreement_to_fade_every_mixture_is_fixed():
    X, matrix = crowd(4)
    plain = CrowdRidgeClassifier(0.0).fit(X, labels_of(matrix))
    for curriculum in (Fading(1.0), Smooth(1.0)):
        model = CrowdRidgeClassifier(0.0, curriculum=curriculum).fit(X, labels_of(matrix))
        assert model.converged_
        assert_array_equal(model.coef_, plain.coef_)


def test_an_own_curriculum_is_asked_for_its_weights():
    class OnlyTheEasiest(Curriculum):
        def weights(self, t, easiness, losses, rng, sample_weight=None):
            return np.where(easiness >= np.median(easiness), 1.0, 0.0)

    X, matrix = crowd(4)
    labels = labels_of(matrix)
    model = CrowdRidgeClassifier(curriculum=OnlyTheEasiest(), relative_to="possible").fit(X, labels)
    kept = model.results_.easiness >= np.median(model.results_.easiness)
    plain = CrowdRidgeClassifier(0.0, relative_to="possible").fit(X[kept], labels[kept])
    assert_allclose(model.coef_, plain.coef_, rtol=1e-6)
    assert_allclose(model.expertise_, plain.expertise_, rtol=1e-6)


@few_rounds
@pytest.mark.parametrize("curriculum", [Fading(0.5), Smooth(1.0), SelfPaced()])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_the_models_say_in_the_consensus_is_of_the_last_rounds_weights(curriculum, class_weight, missing):
    X, matrix = rare(5, missing=missing)
    settings = {"curriculum": curriculum, "class_weight": class_weight, "random_state": SEED}
    model = CrowdRidgeClassifier(max_rounds=3, tol=0.0, **settings).fit(X, labels_of(matrix))
    _, reweight = (
        (None, self_paced(0.5, 1.2))
        if isinstance(curriculum, SelfPaced)
        else CURRICULA[type(curriculum).__name__.lower()]
    )
    slow = twin.fit(X, matrix.tolist(), [0, 1], n_rounds=3, reweight=reweight, class_weight=class_weight)
    voice = np.array([sum(model.expertise_[j] for j, label in enumerate(row) if label is not None) for row in matrix])
    own = slow["sample_weight"]
    weight = slow["weights"] * own * voice / np.average(voice, weights=own)
    target = np.array([twin.mean_code(row, model.expertise_, [0, 1]) for row in matrix])
    fold, scores = content_folds(X, 5), np.empty(len(X))
    for k in range(5):
        coef, intercept = twin.ridge(X[fold != k], target[fold != k], weight[fold != k], 1.0, True)
        scores[fold == k] = (X[fold == k] @ coef + intercept)[:, 0]
    # Scores of the two classes are -score and score; temperature and offsets make probabilities of them.
    scaling = model.fitted_.scaling
    assert model.temperature_ == scaling.temperature
    log_odds = 2 * scaling.temperature * scores + scaling.offset[1] - scaling.offset[0]
    assert_allclose(model.results_.model_proba[:, 1], 1 / (1 + np.exp(-log_odds)), rtol=1e-8)


@one_annotator
@pytest.mark.parametrize("class_weight", ["balanced", {0: 0.2, 2: 5.0}])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_annotator_is_scikit_learns_ridge_classifier(class_weight, n_classes):
    if n_classes == 2 and isinstance(class_weight, dict):
        class_weight = {0: 0.2}
    X, matrix = rare(n_classes=n_classes)
    y = matrix[:, 0].astype(int)
    model = CrowdRidgeClassifier(l2=0.3, class_weight=class_weight).fit(X, y)
    ridge = RidgeClassifier(alpha=0.3, class_weight=class_weight).fit(X, y)
    assert_allclose(model.coef_, np.atleast_2d(ridge.coef_), rtol=1e-8)
    assert_allclose(model.intercept_, ridge.intercept_, rtol=1e-8)


def leading_class(model):
    """The class with the most expertise behind it, of two."""
    return (model.label_score_ > 0).astype(int)


@pytest.mark.parametrize(("seed", "missing"), [(2, 0.0), (4, 0.0), (6, 0.4)])
@pytest.mark.parametrize("class_weight", ["balanced", {1: 4.0}])
def test_when_settled_it_is_a_fit_with_these_sample_weights(seed, missing, class_weight):
    X, matrix = rare(seed, missing=missing)
    compared = labels_of(matrix).labels_per_example > 1  # the disagreement of a single label is a mean by sample_weight
    X, matrix = X[compared], matrix[compared]
    settings = {"tol": 1e-12, "max_rounds": 1000}
    model = CrowdRidgeClassifier(class_weight=class_weight, **settings).fit(X, labels_of(matrix))
    by_numbers = CrowdRidgeClassifier(class_weight=dict(enumerate(model.class_weight_)), **settings)
    assert_same(by_numbers.fit(X, labels_of(matrix)), model, rtol=1e-7)
    sample_weight = model.class_weight_[leading_class(model)]
    by_weights = CrowdRidgeClassifier(**settings).fit(X, labels_of(matrix), sample_weight)
    for name in ("coef_", "expertise_", "label_score_"):
        assert_allclose(getattr(by_weights, name), getattr(model, name), rtol=1e-7, err_msg=name)


@pytest.mark.parametrize("class_weight", ["balanced", {1: 5.0}])
@pytest.mark.parametrize("seed", range(6))
def test_rounds_with_class_weights_settle_and_equal_the_slow_twin(class_weight, seed):
    X, matrix = rare(seed, missing=0.3)
    model = CrowdRidgeClassifier(class_weight=class_weight).fit(X, labels_of(matrix))
    assert model.converged_
    slow = twin.fit(X, matrix.tolist(), [0, 1], class_weight=listed(class_weight, 2), n_rounds=model.n_rounds_)
    assert_allclose(model.coef_.T, slow["coef"], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("class_weight", ["balanced", {1: 5.0}])
def test_examples_on_the_fence_do_not_keep_the_rounds_from_settling(class_weight, set_constants):
    X, matrix = rare(4, missing=0.3)  # a crowd with such examples: most have none
    model = CrowdRidgeClassifier(class_weight=class_weight).fit(X, labels_of(matrix))
    assert model.converged_
    slow = twin.fit(X, matrix.tolist(), [0, 1], class_weight=listed(class_weight, 2), n_rounds=model.n_rounds_)
    between = ~np.isclose(slow["sample_weight"][:, None], model.class_weight_).any(axis=1)
    assert 0 < between.sum() <= 3
    set_constants(class_weights, _MOST_CHANGES=10**6)
    with pytest.warns(CrowdConvergenceWarning):  # they would without the rule
        CrowdRidgeClassifier(class_weight=class_weight).fit(X, labels_of(matrix))


def test_a_class_weight_of_three_is_three_copies_of_its_examples():
    X, matrix = rare(2)
    settings = {"tol": 1e-12, "max_rounds": 1000}
    model = CrowdRidgeClassifier(class_weight={1: 3}, **settings).fit(X, labels_of(matrix))
    copies = np.where(leading_class(model) == 1, 3, 1)
    repeated = CrowdRidgeClassifier(**settings).fit(
        np.repeat(X, copies, axis=0), labels_of(np.repeat(matrix, copies, axis=0))
    )
    assert_allclose(model.coef_, repeated.coef_, rtol=1e-7)
    assert_allclose(model.expertise_, repeated.expertise_, rtol=1e-7)


def test_balanced_classes_have_the_same_total_weight():
    X, matrix = rare(2)
    model = CrowdRidgeClassifier(class_weight="balanced").fit(X, labels_of(matrix))
    leads = leading_class(model)
    weight = model.results_.easiness * model.class_weight_[leads]
    assert np.mean(leads == 1) < 0.2
    assert weight[leads == 0].sum() == pytest.approx(weight[leads == 1].sum())
    assert weight.sum() == pytest.approx(model.results_.easiness.sum())


@pytest.mark.parametrize("curriculum", [None, SelfPaced()])
def test_permuting_the_classes_permutes_the_scores(curriculum):
    X, matrix = rare(n_classes=3)
    new = np.array([2, 0, 1])
    permuted = new[matrix.astype(int)]
    one = CrowdRidgeClassifier(curriculum=curriculum, class_weight={0: 0.5, 2: 4.0}).fit(X, labels_of(matrix, 3))
    other = CrowdRidgeClassifier(curriculum=curriculum, class_weight={2: 0.5, 1: 4.0}).fit(X, labels_of(permuted, 3))
    assert_allclose(other.coef_[new], one.coef_, rtol=1e-8)
    assert_allclose(other.expertise_, one.expertise_, rtol=1e-8)
    swapped = CrowdRidgeClassifier(class_weight="balanced").fit(*_two(rare(), flip=True))
    straight = CrowdRidgeClassifier(class_weight="balanced").fit(*_two(rare(), flip=False))
    assert_allclose(swapped.coef_, -straight.coef_, rtol=1e-8)


def _two(data, *, flip):
    X, matrix = data
    return X, labels_of(1 - matrix.astype(int) if flip else matrix.astype(int))


@pytest.mark.parametrize("class_weight", ["balanced", {1: 5.0}])
def test_class_weights_work_iteratively_and_on_sparse_features(class_weight, set_constants):
    X, matrix = rare(4, missing=0.3)
    labels = labels_of(matrix)
    exact = CrowdRidgeClassifier(class_weight=class_weight).fit(X, labels)
    thin = CrowdRidgeClassifier(class_weight=class_weight).fit(sparse.csr_array(X), labels)
    # With all labels, training sets have the same average voice as the whole.
    X_all, labels_all = _two(rare(4), flip=False)
    X_all = sparse.csr_array(X_all)
    tuned = CrowdRidgeClassifierCV(l2s=L2S, cv=3, tune="once", class_weight=class_weight).fit(X_all, labels_all)
    set_constants(crowdwise.ridge.data, EXACT_COLUMNS=1)
    iterated = CrowdRidgeClassifier(class_weight=class_weight).fit(sparse.csr_array(X), labels)
    tuned_iterated = CrowdRidgeClassifierCV(l2s=L2S, cv=3, tune="once", class_weight=class_weight)
    tuned_iterated.fit(X_all, labels_all)
    assert (exact.route_, thin.route_, iterated.route_, tuned.route_) == ("rows", "rows", "iterative", "rows")
    assert_allclose(thin.coef_, exact.coef_, rtol=1e-8)
    assert_allclose(iterated.coef_, exact.coef_, rtol=1e-5)
    assert tuned_iterated.l2_ == tuned.l2_
    assert_allclose(tuned_iterated.class_weight_, tuned.class_weight_, rtol=1e-5)
    assert_allclose(tuned_iterated.coef_, tuned.coef_, rtol=1e-4)


@pytest.mark.parametrize("curriculum", [Smooth(3.0), SelfPaced()])
def test_tuned_iteratively_the_curriculum_goes_on_after_l2_is_chosen_again(curriculum):
    X, matrix = rare(4, missing=0.3)
    tuned = CrowdRidgeClassifierCV((2.0,), l2s=L2S, cv=3, curriculum=curriculum)
    with changed(crowdwise.ridge.data, EXACT_COLUMNS=1):
        model = tuned.fit(sparse.csr_array(X), labels_of(matrix))
    steepness = 0.0 if isinstance(curriculum, Smooth) else 2.0  # where each of them ends
    plain = CrowdRidgeClassifier(steepness, l2=model.l2_).fit(X, labels_of(matrix))
    assert model.route_ == "iterative"
    assert model.converged_
    assert_allclose(model.coef_, plain.coef_, rtol=1e-4, atol=1e-6)


def test_examples_without_labels_or_weight_take_no_part():
    X, matrix = rare(1)
    matrix[3] = None
    own = np.ones(len(X))
    own[7] = 0.0
    rest = np.setdiff1d(np.arange(len(X)), [3, 7])
    for settings in ({"class_weight": "balanced"}, {"curriculum": SelfPaced()}, {"curriculum": Smooth(3.0)}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = CrowdRidgeClassifier(relative_to="possible", **settings).fit(X, labels_of(matrix), own)
        plain = CrowdRidgeClassifier(relative_to="possible", **settings).fit(X[rest], labels_of(matrix[rest]))
        assert_allclose(model.coef_, plain.coef_, rtol=1e-9)
        assert_allclose(model.consensus_proba_[rest], plain.consensus_proba_, rtol=1e-9)
        assert_allclose(
            model.consensus(X, labels_of(matrix)).proba[rest],
            plain.consensus(X[rest], labels_of(matrix[rest])).proba,
            rtol=1e-9,
        )


def test_a_rare_class_is_found_more_often_with_balanced_weights():
    rng = np.random.default_rng(0)
    truth = (rng.random(600) < 0.05).astype(int)
    X = rng.normal(size=(600, 4)) + truth[:, None]
    labels = simulate_annotators(X, truth, 8, clarity=3.0, experts=1, random_state=rng)
    plain = CrowdRidgeClassifier().fit(X, labels)
    balanced = CrowdRidgeClassifier(class_weight="balanced").fit(X, labels)
    found = [(model.predict(X)[truth == 1] == 1).mean() for model in (plain, balanced)]
    assert found[1] > found[0] + 0.2


@few_rounds
@pytest.mark.parametrize(
    "settings", [{"curriculum": Fading(2.0)}, {"curriculum": SelfPaced()}, {"class_weight": "balanced"}]
)
def test_copies_and_pickles_and_grids(settings):
    X, matrix = rare(1)
    model = CrowdRidgeClassifier(**settings, random_state=0).fit(X, labels_of(matrix))
    back = pickle.loads(pickle.dumps(model))
    assert_array_equal(back.consensus(X, labels_of(matrix)).proba, model.consensus(X, labels_of(matrix)).proba)
    assert_array_equal(clone(model).fit(X, labels_of(matrix)).coef_, model.coef_)


@one_annotator
def test_a_curriculum_can_be_searched_for():
    X, matrix = crowd()
    search = GridSearchCV(
        CrowdRidgeClassifier(), {"curriculum": [Fixed(), SelfPaced()], "class_weight": [None, "balanced"]}, cv=3
    )
    search.fit(X, matrix[:, 0].astype(int))
    assert search.best_params_["curriculum"] in (Fixed(), SelfPaced())


@one_annotator
def test_one_annotator_and_self_paced_waits_for_everybody():
    X, matrix = crowd(n_annotators=1)
    paced = CrowdRidgeClassifier(curriculum=SelfPaced(0.1, 1.5)).fit(X, labels_of(matrix))
    plain = CrowdRidgeClassifier().fit(X, labels_of(matrix))
    assert paced.converged_
    assert_allclose(paced.coef_, plain.coef_, rtol=1e-9)


@pytest.mark.parametrize("estimator", [CrowdRidgeClassifier, CrowdRidgeClassifierCV])
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"curriculum": "smooth"}, "curriculum must be Fixed"),
        ({"curriculum": Smooth(0)}, "c must be a finite number above 0"),
        ({"class_weight": "even"}, 'class_weight must be None, "balanced" or a dict'),
        ({"class_weight": {"owl": 2.0}}, "names the class 'owl'"),
        ({"class_weight": {1: 0.0}}, "must be a finite number above 0"),
    ],
)
def test_bad_settings_are_told(estimator, settings, message):
    X, matrix = crowd()
    with pytest.raises(ValueError, match=message):
        estimator(**settings).fit(X, labels_of(matrix))


def test_a_bad_curriculum_of_ratings_is_told():
    with pytest.raises(ValueError, match="growth must be above 1"):
        CrowdRidgeRegressor(curriculum=SelfPaced(growth=0.5)).fit([[0.0], [1.0]], [[0.0, 1.0], [1.0, 2.0]])


@pytest.mark.parametrize("seed", range(3, 9))
def test_so_steep_that_the_admitted_have_no_weight_is_survived(seed):
    X, matrix = crowd(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = CrowdRidgeClassifier(1e6, curriculum=SelfPaced(0.2), class_weight="balanced").fit(X, labels_of(matrix))
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.expertise_).all()
