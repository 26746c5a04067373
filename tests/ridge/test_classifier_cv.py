import numpy as np
import pandas as pd
import pytest
import twin
from crowds import crowd, labels_of
from marks import in_slow_run
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold

import crowdwise.ridge.data
from crowdwise import CrowdLabels, CrowdRidgeClassifier, CrowdRidgeClassifierCV, simulate_annotators
from crowdwise.ridge import rounds as ridge_rounds
from crowdwise.ridge.classifier import PAPER_L2S
from crowdwise.weights.folds import content_folds

few_rounds = pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdConvergenceWarning")
L2S = (0.01, 1.0, 30.0, 1000.0)


def naive_choice(X, matrix, fold, l2s, *, fit_intercept=True):
    """Choose l2 by fitting scikit-learn's Ridge for every l2 and fold and summing unweighted held-out errors."""

    def voices(expertise, rows, own):
        """Sample weights times the expertise that answered, relative to the average of these rows."""
        totals = np.array([sum(expertise[j] for j, v in enumerate(matrix[i]) if v is not None) for i in rows])
        return own[rows] * totals / np.average(totals, weights=own[rows])

    def choose(easy, expertise, target, own):
        errors = []
        for l2 in l2s:
            total = 0.0
            for k in np.unique(fold):
                train, held_out = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
                weight = np.array(easy)[train] * voices(expertise, train, own)
                model = Ridge(alpha=l2, fit_intercept=fit_intercept).fit(X[train], target[train], sample_weight=weight)
                differs = (model.predict(X[held_out]).reshape(len(held_out), -1) - target[held_out]) ** 2
                total += (voices(expertise, held_out, own)[:, None] * differs).sum()
            errors.append(total)
        return l2s[int(np.argmin(errors))]

    return choose


@few_rounds
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("missing", [0.4, in_slow_run(0.0)])
@pytest.mark.parametrize("fit_intercept", [True, in_slow_run(False)])
def test_every_round_equals_fitting_every_l2_and_fold_anew(n_classes, missing, fit_intercept):
    X, matrix = crowd(3, n_classes=n_classes, missing=missing)
    model = CrowdRidgeClassifierCV((0.0, 2.0), l2s=L2S, cv=4, fit_intercept=fit_intercept, max_rounds=4, tol=0.0).fit(
        X, labels_of(matrix, n_classes)
    )
    fold = content_folds(X, 4)
    for s, steepness in enumerate((0.0, 2.0)):
        slow = twin.fit(
            X,
            matrix.tolist(),
            list(range(n_classes)),
            steepness=steepness,
            fit_intercept=fit_intercept,
            n_rounds=4,
            choose_l2=naive_choice(X, matrix, fold, L2S, fit_intercept=fit_intercept),
        )
        assert model.cv_results_["l2"][s] == slow["l2"]
        assert_allclose(model.cv_results_["coef"][s].T, slow["coef"], rtol=1e-8, atol=1e-10)
        assert_allclose(model.cv_results_["expertise"][s], slow["expertise"], rtol=1e-8)


def test_one_candidate_equals_the_plain_model():
    X, matrix = crowd(missing=0.3)
    tuned = CrowdRidgeClassifierCV((2.0,), l2s=(0.5,), cv=5).fit(X, labels_of(matrix))  # the folds of the plain model
    plain = CrowdRidgeClassifier(2.0, l2=0.5).fit(X, labels_of(matrix))
    for name in (
        "coef_",
        "intercept_",
        "expertise_",
        "label_score_",
        "disagreement_",
        "temperature_",
        "objective_",
        "consensus_proba_",
        "accuracy_",
    ):
        assert_allclose(getattr(tuned, name), getattr(plain, name), rtol=1e-8, err_msg=name)
    assert tuned.annotator_flags_ == plain.annotator_flags_
    assert tuned.cv_results_["held_out_error"].shape == (1, 1)
    assert_allclose(tuned.consensus(X, matrix).proba, plain.consensus(X, matrix).proba, rtol=1e-8)


@few_rounds
@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_levels_of_disagreement_give_the_same_as_a_pass_for_every_steepness(missing, set_constants):
    X, matrix = crowd(missing=missing)
    settings = {"steepnesses": (0.0, 1.0, 5.0), "l2s": L2S, "cv": 4}
    by_level = CrowdRidgeClassifierCV(**settings).fit(X, labels_of(matrix))
    set_constants(ridge_rounds, MOST_CELLS=0)
    pass_by_pass = CrowdRidgeClassifierCV(**settings).fit(X, labels_of(matrix))
    for key in ("coef", "expertise", "held_out_error", "criterion"):
        assert_allclose(by_level.cv_results_[key], pass_by_pass.cv_results_[key], rtol=1e-8, atol=1e-9, err_msg=key)


@pytest.mark.parametrize("route", ["rows", "iterative"])
def test_other_routes_choose_at_the_first_and_the_settled_consensus(route, set_constants):
    X, matrix = crowd(1, missing=0.4)
    settings = {"steepnesses": (2.0,), "l2s": L2S, "cv": 4, "tune": "once"}
    once = CrowdRidgeClassifierCV(**settings).fit(X, labels_of(matrix))
    if route == "rows":
        set_constants(crowdwise.ridge.data, MEMORY_BUDGET=0)
    else:
        set_constants(crowdwise.ridge.data, EXACT_COLUMNS=1)
    other = CrowdRidgeClassifierCV(**settings).fit(sparse.csr_array(X), labels_of(matrix))
    assert other.route_ == route
    assert other.l2_ == once.l2_
    assert_allclose(other.coef_, once.coef_, rtol=1e-5, atol=1e-8)
    again = CrowdRidgeClassifierCV(**{**settings, "tune": "every round"}).fit(sparse.csr_array(X), labels_of(matrix))
    assert again.l2_ in L2S


def test_the_grid_of_the_paper_has_seventeen_values():
    assert len(PAPER_L2S) == 17
    assert PAPER_L2S[0] == 2**-14
    assert PAPER_L2S[-1] == 2**14
    assert {0.5, 2.0} < set(PAPER_L2S)


def gaussians(seed, n=400):
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.normal(-0.5, 1, (n // 2, 5)), rng.normal(0.5, 1, (n // 2, 5))])
    truth = np.repeat([0, 1], n // 2)
    return X, truth, simulate_annotators(X, truth, experts=1, adversaries=1, random_state=rng)


def test_steepness_is_chosen_by_truth_where_it_is_known():
    X, truth, labels = gaussians(5)
    known = np.where(np.arange(len(X)) % 4 == 0, truth, np.nan)
    model = CrowdRidgeClassifierCV((0.0, 1.0, 2.0, 5.0), cv=5).fit(X, labels, truth=known)
    assert model.criterion_ == "truth"
    assert model.steepness_ == model.cv_results_["steepness"][model.cv_results_["criterion"].argmax()]
    fold = content_folds(X, 5)
    scores = np.empty(len(X))
    for k in range(5):  # by hand for steepness 0: the fold's model with the settled consensus of the whole
        tuned = model.cv_results_
        target = labels.to_matrix() * 2.0 - 1
        consensus = target @ tuned["expertise"][0] / tuned["expertise"][0].sum()
        consensus = np.where(np.isnan(known), consensus, 2 * truth - 1)
        ridge = Ridge(alpha=tuned["l2"][0]).fit(X[fold != k], consensus[fold != k])
        scores[fold == k] = ridge.predict(X[fold == k])
    here = ~np.isnan(known)
    assert model.cv_results_["criterion"][0] == pytest.approx(roc_auc_score(truth[here], scores[here]), abs=1e-3)


def test_steepness_is_chosen_by_agreement_without_truth():
    X, _, labels = gaussians(2)
    model = CrowdRidgeClassifierCV((0.0, 5.0), cv=5).fit(X, labels)
    assert model.criterion_ == "agreement"
    assert (model.cv_results_["criterion"] > 0.5).all()


def test_truth_is_checked():
    X, truth, labels = gaussians(0)
    model = CrowdRidgeClassifierCV(cv=3)
    with pytest.raises(ValueError, match="one per example, 400; got 10"):
        model.fit(X, labels, truth=truth[:10])
    with pytest.raises(ValueError, match="at least two classes; got"):
        CrowdRidgeClassifierCV(cv=3, criterion="truth").fit(X, labels, truth=[1] + [None] * 399)
    with pytest.raises(ValueError, match=r"classes \[0, 1\]; found 7\.?0? for example 0"):
        model.fit(X, labels, truth=[7, 0, 1] + [None] * 397)
    with pytest.raises(ValueError, match="needs fit"):
        CrowdRidgeClassifierCV(criterion="truth").fit(X, labels)


def test_folds_of_scikit_learn_are_taken_as_they_are():
    X, matrix = crowd()
    splits = list(KFold(4, shuffle=True, random_state=0).split(X))
    by_object = CrowdRidgeClassifierCV(cv=KFold(4, shuffle=True, random_state=0)).fit(X, labels_of(matrix))
    by_list = CrowdRidgeClassifierCV(cv=splits).fit(X, labels_of(matrix))
    assert_array_equal(by_object.cv_results_["held_out_error"], by_list.cv_results_["held_out_error"])
    with pytest.raises(ValueError, match="10 never are"):
        CrowdRidgeClassifierCV(cv=splits[:3]).fit(X, labels_of(matrix))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steepnesses": ()}, "at least one value"),
        ({"steepnesses": 2.0}, "must be a sequence"),
        ({"steepnesses": (-1.0,)}, "steepnesses must be"),
        ({"steepnesses": (0.0, np.nan)}, "steepnesses must be a finite number >= 0; got nan"),
        ({"l2s": (-1.0,)}, "l2s must be a finite number >= 0; got -1.0"),
        ({"l2s": ("1",)}, "l2s must be"),
        ({"cv": 1000}, "cv must not be more than the 40 examples that take part; got 1000"),
        ({"cv": 2.5}, "cv must be a whole number >= 2; got 2.5"),
        ({"cv": "5"}, "cv must be a whole number >= 2"),
        ({"random_state": "a"}, "random_state must be a whole number"),
        ({"max_rounds": 1.5}, "max_rounds must be a whole number >= 1; got 1.5"),
        ({"tol": "0"}, "tol must be"),
        ({"cv": 1}, "cv must be a whole number >= 2; got 1"),
        ({"criterion": "luck"}, "criterion must be"),
        ({"tune": "never"}, "tune must be"),
    ],
)
def test_wrong_settings_are_told(settings, message):
    X, matrix = crowd()
    with pytest.raises(ValueError, match=message):
        CrowdRidgeClassifierCV(**settings).fit(X, labels_of(matrix))


def test_unlabelled_examples_take_no_part():
    X, matrix = crowd()
    wide = np.vstack([matrix, np.full((5, matrix.shape[1]), None)])
    extra = np.vstack([X, X[:5] + 0.1])
    with pytest.warns(UserWarning, match="5 of 45 examples have"):
        model = CrowdRidgeClassifierCV(cv=4).fit(extra, CrowdLabels.from_matrix(wide, classes=[0, 1]))
    assert_allclose(model.coef_, CrowdRidgeClassifierCV(cv=4).fit(X, labels_of(matrix)).coef_, rtol=1e-10)
    assert_allclose(np.log(model.consensus_proba_[40:]), model.fitted_.log_prior(extra[40:]))
    assert_allclose(model.label_score_[40:], model.decision_function(extra[40:]))


def test_many_examples_of_few_kinds_leave_no_fold_empty():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (25_000, 2)).astype(float)  # four different rows for ten folds
    matrix = np.where(rng.random((25_000, 3)) < 0.8, X[:, :1], 1 - X[:, :1]).astype(int)
    model = CrowdRidgeClassifierCV((0.0, 2.0)).fit(X, CrowdLabels.from_matrix(matrix))
    assert np.isfinite(model.coef_).all()
    assert (model.predict(X) == X[:, 0]).all()


def test_a_series_of_truth_is_matched_by_its_index():
    X, truth, labels = gaussians(1)
    frame = pd.DataFrame(X, index=[f"e{i}" for i in range(len(X))])
    named = CrowdLabels.from_matrix(labels.to_matrix(), examples=frame.index)
    series = pd.Series(truth, index=frame.index)
    straight = CrowdRidgeClassifierCV((0.0, 2.0), cv=3).fit(frame, named, truth=series)
    shuffled = CrowdRidgeClassifierCV((0.0, 2.0), cv=3).fit(frame, named, truth=series.sample(frac=1, random_state=0))
    assert_array_equal(straight.cv_results_["criterion"], shuffled.cv_results_["criterion"])
    with pytest.raises(ValueError, match="400 of the examples that"):
        CrowdRidgeClassifierCV(cv=3).fit(frame, named, truth=series.rename(lambda name: name + "x"))
