import pickle

import numpy as np
import pytest
from crowds import HeldCrowd, balanced_twin, crowd, labels_of, paced_twin, rare_crowd, smooth_twin
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from marks import in_slow_run
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from crowdwise import CrowdLabels, CrowdLogisticClassifier, aggregate
from crowdwise._limits import L2_GRID
from crowdwise.crowd import disagreement, easiness
from crowdwise.em import Confusion, OneCoin, Shared
from crowdwise.em.fitted import FittedAnnotators
from crowdwise.exceptions import CrowdConvergenceWarning
from crowdwise.logistic.fit import FittedLogistic
from crowdwise.probabilities import best_temperature, fit_scaling, log_softmax
from crowdwise.weights import Fading, Fixed, SelfPaced, Smooth
from crowdwise.weights.folds import content_folds

quiet = pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdConvergenceWarning")


# The model of Raykar et al., unweighted.
RAYKAR = {
    "steepness": 0.0, "l2": 1.0, "errors_in_common": False, "annotator_model": Confusion(),
}  # fmt: skip


def fit(X, matrix, n_classes=2, sample_weight=None, **settings):
    model = CrowdLogisticClassifier(**RAYKAR | settings)
    return model.fit(X, labels_of(matrix, n_classes), sample_weight=sample_weight)


def always(t, easy, losses, likeliest):
    return easy


def alike(posterior, weight):
    return np.ones(posterior.shape[1])


def twin(X, matrix, n_classes, steepness, l2, n_rounds, strength, round_weights=always, class_weights=alike):
    """The rounds with loops over labels and scikit-learn's logistic regression on weighted copies."""
    labels = labels_of(matrix, n_classes)
    easy, losses = easiness(disagreement(labels), steepness), None
    posterior = np.array([[list(row).count(k) for k in range(n_classes)] for row in matrix], dtype=float)
    posterior /= posterior.sum(axis=1, keepdims=True)
    n_rows = len(X)
    for t in range(1, n_rounds + 1):
        weight = round_weights(t, easy, losses, posterior.argmax(axis=1))
        of_class = class_weights(posterior, weight)
        confusion = np.full((matrix.shape[1], n_classes, n_classes), strength / n_classes)
        for i, row in enumerate(matrix):
            for j, label in enumerate(row):
                if label is not None:
                    confusion[j, :, label] += posterior[i]
        confusion /= confusion.sum(axis=2, keepdims=True)
        counted = posterior * weight[:, None] * of_class
        middle = np.average(X, axis=0, weights=counted.sum(axis=1))  # one example more there, evenly of all classes
        model = LogisticRegression(C=1 / l2, tol=1e-11, max_iter=10000).fit(
            np.tile(np.vstack([X, middle]), (n_classes, 1)),
            np.repeat(np.arange(n_classes), n_rows + 1),
            sample_weight=np.vstack([counted, np.full(n_classes, 1 / n_classes)]).T.ravel(),
        )
        prior = model.predict_proba(X) / of_class
        prior /= prior.sum(axis=1, keepdims=True)
        joint = np.log(prior)
        for i, row in enumerate(matrix):
            for j, label in enumerate(row):
                if label is not None:
                    joint[i] += np.log(confusion[j, :, label])
        posterior = np.exp(joint - joint.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
        losses = -(posterior * np.log(prior)).sum(axis=1)
    return posterior, confusion


@quiet
@pytest.mark.parametrize("n_classes", [2, in_slow_run(3)])
@pytest.mark.parametrize(
    ("settings", "steps"),
    [
        ({"steepness": 0.0}, {}),
        ({"steepness": 2.0}, {}),
        ({"steepness": 2.0, "curriculum": Smooth(1.0)}, {"round_weights": smooth_twin}),
        ({"steepness": 2.0, "curriculum": SelfPaced(0.37, 1.43)}, {"round_weights": paced_twin}),
        (
            {"class_weight": {1: 4.0}},
            {"class_weights": lambda posterior, _: np.array([1.0, 4.0, 1.0])[: len(posterior.T)]},
        ),
        (
            {"steepness": 2.0, "curriculum": SelfPaced(0.37, 1.43), "class_weight": "balanced"},
            {"round_weights": paced_twin, "class_weights": balanced_twin},
        ),
    ],
)
def test_equals_the_slow_twin(n_classes, settings, steps, monkeypatch):
    X, matrix = crowd(n_classes=n_classes, missing=0.3)
    model = fit(
        X, matrix, n_classes, l2=2.0, cross_fit=0,
        annotator_model=Confusion(2.0), max_rounds=4, tol=0.0, **settings,
    )  # fmt: skip
    posterior, confusion = twin(X, matrix, n_classes, settings.get("steepness", 0.0), 2.0, 4, 2.0, **steps)
    assert_allclose(model.consensus_proba_, posterior, atol=1e-4)
    assert_allclose(model.confusion_, confusion, atol=1e-4)


def raykar(X, matrix, l2, n_rounds, strength=4.0):
    """The EM algorithm of Raykar et al. for two classes, every step as obvious as can be."""
    given = np.array([[value is not None for value in row] for row in matrix])
    said = np.array([[value or 0 for value in row] for row in matrix])
    q = np.where(given, said, 0).sum(axis=1) / given.sum(axis=1)
    Z = np.column_stack([X, np.ones(len(X))])

    def loss(theta):
        scores, middle = Z @ theta, Z.mean(axis=0) @ theta  # one example more in the middle, half of each class
        fit = (np.logaddexp(0, scores) - q * scores).sum() + np.logaddexp(0, middle) - middle / 2
        return fit + l2 / 2 * theta[:-1] @ theta[:-1]

    theta = np.zeros(Z.shape[1])
    for _ in range(n_rounds):
        theta = minimize(loss, theta, method="BFGS", options={"gtol": 1e-8}).x
        sure = np.column_stack([1 - q, q])
        counts = np.array([[[(sure[:, k] * given[:, j] * (said[:, j] == c)).sum() for c in (0, 1)] for k in (0, 1)]
                           for j in range(matrix.shape[1])]) + strength / 2  # fmt: skip
        confusion = counts / counts.sum(axis=2, keepdims=True)
        log_odds = Z @ theta
        for j in range(matrix.shape[1]):
            log_odds += np.where(given[:, j], np.log(confusion[j, 1, said[:, j]] / confusion[j, 0, said[:, j]]), 0.0)
        q = 1 / (1 + np.exp(-log_odds))
    return theta, confusion, q


@pytest.mark.parametrize("seed", [0, in_slow_run(1), in_slow_run(2)])
def test_independent_errors_and_one_classifier_are_the_model_of_raykar(seed):
    X, matrix = crowd(seed, n_examples=60, missing=0.3)
    theta, confusion, q = raykar(X, matrix, 2.0, 200)
    model = CrowdLogisticClassifier(
        errors_in_common=False, cross_fit=0, annotator_model=Confusion(), l2=2.0, steepness=0.0, tol=1e-10,
        max_rounds=2000,
    ).fit(X, labels_of(matrix))  # fmt: skip
    assert_allclose(model.consensus_proba_[:, 1], q, atol=1e-4)
    assert_allclose(model.confusion_, confusion, atol=1e-4)
    assert_allclose([*model.coef_[0], *model.intercept_], theta, atol=1e-3)
    assert model.converged_


@pytest.mark.parametrize("model", [Confusion(), OneCoin(), HeldCrowd(Shared())], ids=repr)
@given(seed=st.integers(0, 10**6), n_classes=st.sampled_from([2, 3]))
@hypothesis_settings(max_examples=8)
@quiet
def test_the_objective_never_falls(model, seed, n_classes):
    X, matrix = crowd(seed, n_classes=n_classes, missing=0.3)
    fitted = fit(X, matrix, n_classes, annotator_model=model, cross_fit=0, max_rounds=30)
    assert (np.diff(fitted.objective_) >= -1e-6).all()


@quiet
@pytest.mark.parametrize("cross_fit", [0, 5])
def test_permuting_annotators_and_examples_permutes_the_result(cross_fit):
    X, matrix = crowd(n_classes=3, missing=0.3)
    rng = np.random.default_rng(1)
    rows, columns = rng.permutation(40), rng.permutation(6)
    one = fit(X, matrix, 3, cross_fit=cross_fit, max_rounds=5)
    other = fit(X[rows], matrix[rows][:, columns], 3, cross_fit=cross_fit, max_rounds=5)
    assert_allclose(other.consensus_proba_, one.consensus_proba_[rows], atol=1e-4)
    assert_allclose(other.expertise_, one.expertise_[columns], atol=1e-4)


@quiet
def test_without_information_in_the_features_it_is_aggregation():
    _, matrix = crowd(n_examples=200, missing=0.3)
    X = np.zeros((200, 1))
    model = fit(X, matrix, cross_fit=0, tol=1e-7, max_rounds=500)
    settings = {"errors_in_common": False, "annotator_model": Confusion()}
    alone = aggregate(labels_of(matrix), tol=1e-7, max_rounds=500, **settings)
    assert_allclose(model.consensus_proba_, alone.proba, atol=1e-3)


@quiet
def test_repeating_every_example_equals_doubling_its_weight():
    X, matrix = crowd(missing=0.3)
    repeated = fit(np.vstack([X, X]), np.vstack([matrix, matrix]), max_rounds=5)
    doubled = fit(X, matrix, sample_weight=np.full(40, 2.0), max_rounds=5)
    assert_allclose(repeated.decision_function(X), doubled.decision_function(X), atol=1e-3)
    assert_allclose(repeated.expertise_, doubled.expertise_, atol=1e-4)


@quiet
def test_an_annotator_or_example_without_labels_changes_nothing():
    X, matrix = crowd(missing=0.3)
    alone = fit(X, matrix)
    wide = np.hstack([matrix, np.full((40, 1), None)])
    accompanied = fit(X, wide)
    assert_allclose(accompanied.coef_, alone.coef_)
    assert np.isnan(accompanied.expertise_[-1])
    with pytest.warns(UserWarning, match="1 of 41 examples has"):
        longer = fit(np.vstack([X, X[:1] + 0.5]), np.vstack([matrix, np.full((1, 6), None)]))
    assert_allclose(longer.coef_, alone.coef_)
    assert_allclose(longer.consensus_proba_[-1:], longer.predict_proba(X[:1] + 0.5))


@quiet
def test_sparse_and_wide_features_give_the_same():
    X, matrix = crowd(n_examples=30, n_features=50, missing=0.3)
    dense = fit(X, matrix, max_rounds=3, cross_fit=0)
    assert_allclose(fit(sparse.csr_array(X), matrix, max_rounds=3, cross_fit=0).coef_, dense.coef_, atol=1e-3)
    assert dense.coef_.shape == (1, 50)


@quiet
def test_consensus_of_new_examples_by_hand():
    X, matrix = crowd(missing=0.3)
    model = fit(X, matrix)
    new = CrowdLabels.from_matrix([[1, None, 0, None, None, None]], classes=[0, 1])
    together = model.consensus(X[:1], new)
    joint = model.predict_proba(X[:1])[0] * model.confusion_[0, :, 1] * model.confusion_[2, :, 0]
    assert_allclose(together.proba[0], joint / joint.sum(), rtol=1e-10)
    alone = model.consensus(X[:1], new, use_model=False).proba[0]
    joint = model.class_prior_ * model.confusion_[0, :, 1] * model.confusion_[2, :, 0]
    assert_allclose(alone, joint / joint.sum(), rtol=1e-10)


def test_a_thousand_labels_on_one_example_do_not_underflow():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    truth = (X[:, 0] > 0).astype(int)
    matrix = np.where(rng.random((40, 1200)) < 0.6, truth[:, None], 1 - truth[:, None])
    model = CrowdLogisticClassifier().fit(X, matrix)
    assert_array_equal(model.consensus_, truth)
    assert np.abs(model.coef_).max() > 0.1


@quiet
def test_pickled_models_predict_the_same():
    X, matrix = crowd()
    model = fit(X, matrix)
    assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), model.predict_proba(X))


def test_wrong_settings_are_told():
    X, matrix = crowd()
    for settings in ({"l2": -1.0}, {"cross_fit": 1}, {"max_rounds": 0}):
        with pytest.raises(ValueError, match=next(iter(settings))):
            fit(X, matrix, **settings)
    with pytest.warns(CrowdConvergenceWarning, match="after 1 rounds"):
        fit(X, matrix, max_rounds=1)


@quiet
@pytest.mark.parametrize("cross_fit", [0, 5])
def test_large_offsets_and_scales_change_nothing(cross_fit):
    X, matrix = crowd(n_examples=200, missing=0.3)
    near = fit(X, matrix, cross_fit=0, tol=1e-6)
    far = fit(X + np.array([0.0, 2.0**20, 0.0]), matrix, cross_fit=0, tol=1e-6)
    assert_allclose(far.coef_, near.coef_, atol=1e-3)
    stretched = fit(np.column_stack([X, 1e9 + 1e6 * X[:, 0]]), matrix, cross_fit=cross_fit)
    assert (stretched.consensus_ == fit(X, matrix, cross_fit=cross_fit).consensus_).mean() > 0.95


# ---------------------------------------------------------------------- curricula and class weights


def bits(model, X):
    return [model.coef_, model.confusion_, model.consensus_proba_, model.objective_, model.predict_proba(X)]


@quiet
@pytest.mark.parametrize("cross_fit", [0, 5])
@pytest.mark.parametrize(
    "settings",
    [
        {"curriculum": Fixed()},
        {"curriculum": SelfPaced(start=1.0)},
        {"class_weight": {0: 1.0, 1: 1}},
        {"class_weight": {}},
    ],
)
def test_settings_that_mean_nothing_change_no_bit(cross_fit, settings):
    X, matrix = crowd(missing=0.3)
    plain = fit(X, matrix, steepness=2.0, cross_fit=cross_fit, max_rounds=6)
    for one, other in zip(
        bits(plain, X),
        bits(fit(X, matrix, steepness=2.0, cross_fit=cross_fit, max_rounds=6, **settings), X),
        strict=True,
    ):
        assert_array_equal(one, other)
    assert_array_equal(plain.class_weight_, [1.0, 1.0])


@quiet
def test_the_same_seed_tosses_the_same_coins():
    X, matrix = crowd(missing=0.3)
    settings = {"steepness": 4.0, "curriculum": Fading(0.5), "max_rounds": 6}
    one, same, other = (fit(X, matrix, random_state=seed, **settings) for seed in (1, 1, 3))
    assert_array_equal(one.consensus_proba_, same.consensus_proba_)
    assert not np.array_equal(one.consensus_proba_, other.consensus_proba_)


def test_rounds_settle_when_the_weights_do():
    X, matrix = crowd(n_examples=100)
    settings = {"steepness": 2.0, "cross_fit": 0, "tol": 0.02}
    with pytest.warns(CrowdConvergenceWarning, match="curriculum still changes the weights"):
        assert not fit(X, matrix, curriculum=Fading(1.0), random_state=0, **settings).converged_
    smooth, plain = fit(X, matrix, curriculum=Smooth(2.0), **settings), fit(X, matrix, **settings)
    assert plain.n_rounds_ < smooth.n_rounds_ == 8  # 1 / 8**2 is the first below the tolerance
    assert smooth.converged_
    paced = fit(X, matrix, curriculum=SelfPaced(0.1, 1.3), **settings)
    assert paced.n_rounds_ >= 10  # 0.1 * 1.3**9 is the first above one


@quiet
def test_when_all_are_in_the_rounds_come_to_the_same():
    X, matrix = crowd(n_examples=200, n_annotators=8)
    settings = {"steepness": 1.0, "cross_fit": 0, "tol": 1e-6, "max_rounds": 1000}
    plain, paced = fit(X, matrix, **settings), fit(X, matrix, curriculum=SelfPaced(), **settings)
    assert_allclose(paced.consensus_proba_, plain.consensus_proba_, atol=1e-3)


@pytest.mark.parametrize("cross_fit", [0, 5])
def test_balanced_classes_find_more_of_the_rare_one_and_leave_the_consensus(cross_fit):
    X, matrix, truth = rare_crowd()
    plain = fit(X, matrix, cross_fit=cross_fit)
    balanced = fit(X, matrix, cross_fit=cross_fit, class_weight="balanced")
    recall = [np.mean(model.predict(X)[truth == 1]) for model in (plain, balanced)]
    assert recall[0] < 0.6 < 0.8 < recall[1]
    assert np.mean(balanced.consensus_ == truth) >= np.mean(plain.consensus_ == truth) - 0.01
    assert_allclose(balanced.class_prior_, plain.class_prior_, atol=0.01)
    assert_allclose(balanced.class_prior_ * balanced.class_weight_, [0.5, 0.5], atol=1e-3)  # of the round before
    # What the classifier has learned beyond the frequency of classes is nearly the same.
    odds = balanced.decision_function(X) - np.log(balanced.class_weight_[1] / balanced.class_weight_[0])
    assert np.corrcoef(odds, plain.decision_function(X))[0, 1] > 0.99
    assert abs(np.mean(odds - plain.decision_function(X))) < 0.5


@quiet
def test_a_class_that_nobody_names_is_not_brought_to_life_by_balance():
    X, matrix, _ = rare_crowd()
    for cross_fit in (0, 5):
        model = fit(X, matrix, 3, cross_fit=cross_fit, class_weight="balanced")
        assert set(model.predict(X)) == {0, 1}
        assert model.class_prior_[2] < 0.01


@quiet
def test_the_consensus_on_new_examples_has_class_weights_divided_out():
    X, matrix, _ = rare_crowd(n_examples=150)
    model = fit(X, matrix, class_weight={1: 5.0})
    new = CrowdLabels.from_matrix([[1, None, 0, None, None, None], [None] * 6], classes=[0, 1])
    prior = model.predict_proba(X[:2]) / [1.0, 5.0]
    joint = prior[0] * model.confusion_[0, :, 1] * model.confusion_[2, :, 0]
    assert_allclose(model.consensus(X[:2], new).proba, [joint / joint.sum(), prior[1] / prior[1].sum()])


@quiet
def test_a_part_of_which_nobody_is_admitted_knows_nothing():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    matrix = np.array([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 0, 0]])
    model = fit(X, matrix, steepness=5.0, curriculum=SelfPaced(0.01, 1.01), max_rounds=5)
    assert np.isfinite(model.consensus_proba_).all()
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"curriculum": "fading"}, "curriculum must be"),
        ({"curriculum": Fading}, "curriculum must be"),
        ({"curriculum": Fading(0.0)}, "c must be"),
        ({"curriculum": SelfPaced(growth=1.0)}, "growth must be"),
        ({"class_weight": {2: 1.0}}, r"names the class 2; the classes are \[0, 1\]"),
        ({"class_weight": {1: -1.0}}, "class_weight of 1 must be"),
        ({"class_weight": "even"}, "class_weight must be"),
    ],
)
def test_curricula_and_class_weights_that_cannot_be_used(settings, match):
    X, matrix = crowd()
    with pytest.raises(ValueError, match=match):
        fit(X, matrix, **settings)


# ---------------------------------------------------------------------- the penalty, and classifiers out of fold


def vote_shares(matrix, n_classes):
    counts = np.array([[list(row).count(k) for k in range(n_classes)] for row in matrix], dtype=float)
    return counts / counts.sum(axis=1, keepdims=True)


def copies_of(X, proba, l2=1.0):
    """Scikit-learn's own fit of soft classes, and of one example more at the mean: every one once as each class."""
    weight = proba.sum(axis=1)
    X, n_classes = np.vstack([X, np.average(X, axis=0, weights=weight)]), proba.shape[1]
    proba, n = np.vstack([proba, np.full(n_classes, 1 / n_classes)]), len(X)
    model = LogisticRegression(C=1 / l2, tol=1e-10, max_iter=100_000, solver="newton-cg")
    return model.fit(np.tile(X, (n_classes, 1)), np.repeat(np.arange(n_classes), n), sample_weight=proba.T.ravel())


def scaled_to_one(rows):
    return rows / rows.sum(axis=1, keepdims=True)


@quiet
@pytest.mark.parametrize("n_noise", [0, 80])
def test_l2_predicts_the_vote_shares_of_held_out_examples_best(n_noise, rng):
    X, matrix = crowd(n_examples=200, missing=0.3)
    X = np.hstack([X, rng.normal(size=(200, n_noise))])
    model = CrowdLogisticClassifier().fit(X, labels_of(matrix))
    shares, fold = vote_shares(matrix, 2), content_folds(X, 5)
    curvature, losses = len(X) * X.var(axis=0).mean() / 4, []
    for candidate in L2_GRID:
        log_proba = np.empty_like(shares)
        for k in range(5):
            log_proba[fold == k] = copies_of(X[fold != k], shares[fold != k], candidate * curvature).predict_log_proba(
                X[fold == k]
            )
        losses.append(-(shares * log_proba).sum())
    (chosen,) = np.flatnonzero(np.isclose(model.l2_, np.array(L2_GRID) * curvature))
    rising = np.flatnonzero(np.diff(losses) > 0)
    best = losses[rising[0]] if len(rising) else losses[-1]
    assert losses[chosen] < best * (1 + 1e-3)  # which is as closely as models are fitted to choose
    # A penalty that was found ends with the models of one that was given, and in other units all is the same.
    given = CrowdLogisticClassifier(l2=model.l2_).fit(X, labels_of(matrix))
    assert_allclose(given.consensus_proba_, model.consensus_proba_, atol=1e-5)
    elsewhere = CrowdLogisticClassifier().fit(1024 * X, labels_of(matrix))
    assert_allclose(elsewhere.consensus_proba_, model.consensus_proba_, atol=1e-6)


@quiet
def test_noise_is_penalised_more(rng):
    X, matrix = crowd(n_examples=300, missing=0.3)
    weak, strong = (CrowdLogisticClassifier().fit(features, labels_of(matrix)).l2_
                    for features in (X, np.hstack([X, rng.normal(size=(300, 150))])))  # fmt: skip
    assert strong > weak


@quiet
@pytest.mark.parametrize("n_classes", [2, in_slow_run(3)])
def test_one_round_out_of_fold_by_hand(n_classes):
    X, matrix = crowd(n_classes=n_classes, n_examples=80, missing=0.3)
    model = fit(X, matrix, n_classes, max_rounds=1)
    labels, shares, fold = labels_of(matrix, n_classes), vote_shares(matrix, n_classes), content_folds(X, 5)
    likelihood, scores = np.zeros_like(shares), np.empty_like(shares)
    for i, j, said in zip(labels.example_index, labels.annotator_index, labels.values, strict=True):
        likelihood[i] += np.log(model.confusion_[j, :, said])
    for k in range(5):
        scores[fold == k] = copies_of(X[fold != k], shares[fold != k]).predict_log_proba(X[fold == k])
    scaling = fit_scaling(scores, likelihood, np.ones(80))
    assert_allclose(model.temperature_, scaling.temperature, rtol=1e-4)
    expected = scaled_to_one(np.exp(scaling.log_proba(scores) + likelihood))
    assert_allclose(model.consensus_proba_, expected, atol=1e-4)
    assert_allclose(model.results_.model_proba, np.exp(scaling.log_proba(scores)), atol=1e-4)


@quiet
@pytest.mark.parametrize("n_classes", [2, in_slow_run(3)])
@pytest.mark.parametrize("class_weight", [None, {0: 3.0}])
def test_predictions_are_of_the_best_classifier_with_temperature_and_offsets(n_classes, class_weight):
    X, matrix = crowd(n_classes=n_classes, n_examples=120, missing=0.3)
    model = fit(X, matrix, n_classes, class_weight=class_weight, max_rounds=1)  # of a classifier of the vote shares
    count = np.where(np.arange(n_classes) == 0, 3.0 if class_weight else 1.0, 1.0)
    best = copies_of(X, vote_shares(matrix, n_classes) * count).predict_log_proba(X)
    scores, labels = np.empty_like(best), labels_of(matrix, n_classes)
    fold = content_folds(X, 5)
    for k in range(5):
        inside = copies_of(X[fold != k], vote_shares(matrix, n_classes)[fold != k] * count)
        scores[fold == k] = inside.predict_log_proba(X[fold == k]) - np.log(count)
    likelihood = np.zeros_like(scores)
    for i, j, said in zip(labels.example_index, labels.annotator_index, labels.values, strict=True):
        likelihood[i] += np.log(model.confusion_[j, :, said])
    scaling = fit_scaling(scores, likelihood, np.ones(120))
    # What classes count is divided out of what has a temperature, and comes back.
    expected = scaling.temperature * (best - np.log(count)) + scaling.offset + np.log(count)
    assert_allclose(model.predict_proba(X), scaled_to_one(np.exp(expected)), atol=1e-4)


def test_rounds_out_of_fold_that_go_round_in_circles_are_told():
    X, matrix = crowd(seed=3, n_examples=60, n_features=12, missing=0.6)
    with pytest.warns(CrowdConvergenceWarning, match="after 50 rounds the probabilities"):
        assert not fit(X, matrix, l2=0.01, cross_fit=5, max_rounds=50).converged_


@quiet
@pytest.mark.parametrize("n_classes", [2, in_slow_run(3)])
def test_probabilities_of_unseen_examples_can_be_taken_at_their_word(n_classes, rng):
    X = rng.normal(size=(6000, 5))
    scores = 1.5 * X @ rng.normal(size=(5, n_classes))
    truth = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)  # a logistic model, with doubtful examples
    right = rng.random((1000, 6)) < rng.uniform(0.4, 0.9, 6)
    others = (truth[:1000, np.newaxis] + rng.integers(1, n_classes, (1000, 6))) % n_classes
    matrix = np.where(right, truth[:1000, np.newaxis], others)
    proba = CrowdLogisticClassifier().fit(X[:1000], labels_of(matrix, n_classes)).predict_proba(X[1000:])
    sure, hit = proba.max(axis=1), proba.argmax(axis=1) == truth[1000:]
    for rows in np.array_split(np.argsort(sure), 5):
        assert sure[rows].mean() == pytest.approx(hit[rows].mean(), abs=0.06)
    assert sure.min() < 0.6 < 0.95 < sure.max()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"init": "truth"}, "init must be"),
        ({"l2": "small"}, "l2 must be a finite number"),
        ({"cross_fit": "5"}, "cross_fit must be a whole number"),
        ({"cross_fit": 2.5}, "cross_fit must be a whole number"),
        ({"max_rounds": 1.5}, "max_rounds must be"),
        ({"random_state": "a"}, "random_state must be"),
        ({"annotator_model": "shared"}, "annotator_model must be"),
    ],
)
def test_words_that_mean_nothing_are_refused(settings, message):
    X, matrix = crowd()
    with pytest.raises(ValueError, match=message):
        fit(X, matrix, **settings)


@quiet
@pytest.mark.parametrize("n_classes", [2, in_slow_run(3)])
def test_threads_change_no_bit(n_classes, monkeypatch, set_constants, rng):
    X, matrix = crowd(n_examples=400, n_classes=n_classes, missing=0.3)
    X = np.hstack([X, rng.normal(size=(400, 40))])
    set_constants("crowdwise.logistic.softmax", _BLOCK_BYTES=2**10)
    set_constants("crowdwise.labels._label_rows", _MOST_STORED=200)
    one = CrowdLogisticClassifier(max_rounds=5).fit(X, labels_of(matrix, n_classes))
    set_constants("crowdwise._threads", _PARALLEL_FROM=0)
    monkeypatch.setattr("crowdwise._threads.available_cores", lambda: 3)
    three = CrowdLogisticClassifier(max_rounds=5).fit(X, labels_of(matrix, n_classes))
    assert_array_equal(three.consensus_proba_, one.consensus_proba_)
    assert_array_equal(three.coef_, one.coef_)


def test_scores_of_sparse_features_far_from_zero_by_hand():
    annotators = FittedAnnotators(np.array(["a"]), np.array([0, 1]), None, np.full(2, 0.5), np.ones(1))
    shift = np.array([1e8, 0.0, -5e7])
    coef = np.array([[1.0], [2.0], [3.0]])
    model = FittedLogistic(annotators, coef, np.array([0.5]), shift, np.ones(2))
    X = np.array([[1e8 + 1.25, 0.0, -5e7], [1e8, 3.0, -5e7 + 0.5], [0.0, 1.0, 0.0], [1e8, 0.0, 0.0]])
    expected = [[0.5 + 1.25], [0.5 + 6 + 1.5], [0.5 - 1e8 + 2 + 1.5e8], [0.5 + 1.5e8]]
    assert_allclose(model.scores(X), expected, rtol=1e-14)
    assert_allclose(model.scores(sparse.csr_array(X)), expected, rtol=1e-14)
    parts = sparse.csr_array(([6e7, 4e7 + 1.25, -5e7], [0, 0, 2], [0, 3]), shape=(1, 3))
    assert_allclose(model.scores(parts), expected[:1], rtol=1e-14)


@pytest.mark.parametrize("n_classes", [2, in_slow_run(3)])
def test_the_temperature_makes_labels_most_probable(n_classes, rng):
    scores, weight = rng.normal(size=(80, n_classes)), rng.uniform(0.1, 2, 80)
    likelihood = rng.normal(size=(80, n_classes)) + 2 * scores
    grid = np.exp(np.linspace(-2, 4, 6001))
    worth = [weight @ np.log(np.exp(log_softmax(t * scores) + likelihood).sum(axis=1)) + np.log(t) - t for t in grid]
    found = best_temperature(scores, likelihood, weight)
    assert_allclose(found, grid[np.argmax(worth)], rtol=2e-3)
    assert_allclose(best_temperature(scores, likelihood, weight, last=30.0), found, rtol=1e-6)
    assert_allclose(best_temperature(scores + rng.normal(size=(80, 1)), likelihood, weight), found, rtol=1e-9)
    assert fit_scaling(scores, likelihood, weight, offsets=False).temperature == found


def test_offsets_make_classes_as_frequent_as_labels_say(rng):
    truth = (rng.random(4000) < 0.2).astype(int)
    scores = np.column_stack([np.zeros(4000), 2 * truth - 1 + rng.normal(size=4000)])  # of balanced classes
    likelihood = np.log(np.where(np.eye(2)[truth] == 1, 0.9, 0.1))
    scaling = fit_scaling(scores, likelihood, np.ones(4000))
    assert np.exp(scaling.log_proba(scores))[:, 1].mean() == pytest.approx(0.2, abs=0.02)
    assert scaling.offset.sum() == pytest.approx(0)
    assert scaling.offset[1] < -0.3


def test_a_column_in_another_unit_does_not_hide_the_others(rng):
    X = rng.normal(size=(600, 4))
    truth = X @ [1.0, -1.0, 0.5, 0.5] > 0
    matrix = (truth[:, np.newaxis] ^ (rng.random((600, 4)) > [0.65, 0.7, 0.75, 0.8])).astype(int)
    mixed = CrowdLogisticClassifier().fit(X * [1, 1, 1, 3e4], matrix)
    assert (mixed.consensus_ == truth).mean() > (aggregate(matrix).label == truth).mean() + 0.05


# ---------------------------------------------------------------------- weak crowds, and where rounds begin


def weak_crowd(seed, n_examples=300, accuracy=0.65, n_annotators=5):
    """Features that tell the class, honest annotators who are seldom better than a coin, and examples for a test."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n_examples + 1000)
    X = rng.normal(size=(len(truth), 5)) + 0.7 * (2 * truth[:, None] - 1)
    right = rng.random((n_examples, n_annotators)) < accuracy
    return X, np.where(right, truth[:n_examples, None], 1 - truth[:n_examples, None]), truth


@quiet
def test_on_weak_honest_crowds_it_is_not_worse_than_regression_on_the_majority():
    ours, simple, consensus, votes = np.zeros((4, 5))
    for seed in range(5):
        X, matrix, truth = weak_crowd(seed)
        majority = (matrix.mean(axis=1) > 0.5).astype(int)
        model = CrowdLogisticClassifier().fit(X[:300], matrix)
        ours[seed] = (model.predict(X[300:]) == truth[300:]).mean()
        simple[seed] = (LogisticRegression().fit(X[:300], majority).predict(X[300:]) == truth[300:]).mean()
        consensus[seed], votes[seed] = (model.consensus_ == truth[:300]).mean(), (majority == truth[:300]).mean()
    assert ours.mean() > simple.mean()
    assert consensus.mean() > votes.mean() + 0.05


def test_init_is_where_rounds_begin():
    X, matrix = crowd(n_examples=150, missing=0.3)
    labels = labels_of(matrix)
    votes = CrowdLogisticClassifier(l2=1.0).fit(X, labels)
    given = CrowdLogisticClassifier(l2=1.0, init=vote_shares(matrix, 2)).fit(X, labels)
    assert_allclose(given.consensus_proba_, votes.consensus_proba_, atol=1e-12)
    scaled = CrowdLogisticClassifier(l2=1.0, init=7 * vote_shares(matrix, 2)).fit(X, labels)
    assert_allclose(scaled.consensus_proba_, votes.consensus_proba_, atol=1e-8)
    by_labels = CrowdLogisticClassifier(l2=1.0, init="labels").fit(X, labels)
    assert np.abs(by_labels.consensus_proba_ - votes.consensus_proba_).max() > 1e-4
    # From where rounds have ended, there is little left to do.
    settings = {"errors_in_common": False, "annotator_model": Confusion(), "cross_fit": 0, "l2": 1.0, "tol": 1e-6}
    first = CrowdLogisticClassifier(max_rounds=2000, **settings).fit(X, labels)
    again = CrowdLogisticClassifier(max_rounds=2000, init=first.consensus_proba_, **settings).fit(X, labels)
    assert again.n_rounds_ < first.n_rounds_ / 2
    assert_allclose(again.consensus_proba_, first.consensus_proba_, atol=1e-4)


@pytest.mark.parametrize(
    "odd", [np.ones((40, 3)), np.ones(40), -np.ones((40, 2)), np.full((40, 2), np.nan), np.zeros((40, 2))]
)
def test_a_start_that_is_no_probabilities_is_refused(odd):
    X, matrix = crowd()
    with pytest.raises(ValueError, match=r"init must be .* probabilities"):
        CrowdLogisticClassifier(init=odd).fit(X, labels_of(matrix))


@pytest.mark.parametrize("curriculum", [Fading(), Smooth(0.1)])
def test_a_curriculum_of_weights_that_are_one_has_nothing_to_change(curriculum):
    X, matrix = crowd(missing=0.3)
    model = CrowdLogisticClassifier(curriculum=curriculum, random_state=0).fit(X, labels_of(matrix))
    plain = CrowdLogisticClassifier().fit(X, labels_of(matrix))
    assert model.n_rounds_ == plain.n_rounds_ == 2
    assert model.converged_
    assert_array_equal(model.consensus_proba_, plain.consensus_proba_)
