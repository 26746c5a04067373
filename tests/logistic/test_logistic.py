import pickle

import numpy as np
import pytest
from crowds import HeldCrowd, balanced_twin, crowd, labels_of, paced_twin, rare_crowd, smooth_twin
from crowdwise.em.labels_alone import vote_shares
from crowdwise.em.temperature import ClassScores, best_temperature
from crowdwise.logistic.in_memory import simplest_of_the_best
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from crowdwise import CrowdLabels, CrowdLogisticClassifier, aggregate
from crowdwise.crowd import disagreement, easiness
from crowdwise.em import Confusion, OneCoin, Shared
from crowdwise.em.annotators import Behaviour
from crowdwise.em.fitted import FittedAnnotators
from crowdwise.exceptions import CrowdConvergenceWarning
from crowdwise.logistic.fitted import FittedLogistic
from crowdwise.probabilities.log_space import log_softmax
from crowdwise.weights import Fading, Fixed, SelfPaced, Smooth
from crowdwise.weights.folds import content_folds

quiet = pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdConvergenceWarning")


# The model of Raykar et al., unweighted.
RAYKAR = {
    "steepness": 0.0, "l2": 1.0, "hard_examples": False, "errors_in_common": False, "joint": True, "init": "votes",
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
    for t in range(1, n_rounds + 1):
        weight = round_weights(t, easy, losses, posterior.argmax(axis=1))
        of_class = class_weights(posterior, weight)
        confusion = np.full((matrix.shape[1], n_classes, n_classes), strength / n_classes)
        for i, row in enumerate(matrix):
            for j, label in enumerate(row):
                if label is not None:
                    confusion[j, :, label] += weight[i] * posterior[i]
        confusion /= confusion.sum(axis=2, keepdims=True)
        model = LogisticRegression(C=1 / l2, tol=1e-11, max_iter=10000).fit(
            np.tile(X, (n_classes, 1)),
            np.repeat(np.arange(n_classes), len(X)),
            sample_weight=(posterior * weight[:, None] * of_class).T.ravel(),
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
@pytest.mark.parametrize("n_classes", [2, pytest.param(3, marks=pytest.mark.slow)])
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
    monkeypatch.setattr("crowdwise.logistic.prior._STEPS_PER_ROUND", 1000)
    X, matrix = crowd(n_classes=n_classes, missing=0.3)
    model = fit(
        X, matrix, n_classes, l2=2.0, cross_fit=0, class_prior=0.0,
        annotator_model=Confusion(2.0), max_rounds=4, tol=0.0, **settings,
    )  # fmt: skip
    posterior, confusion = twin(X, matrix, n_classes, settings.get("steepness", 0.0), 2.0, 4, 2.0, **steps)
    assert_allclose(model.consensus_proba_, posterior, atol=1e-4)
    assert_allclose(model.confusion_, confusion, atol=1e-4)


@pytest.mark.parametrize("model", [Confusion(), OneCoin(), HeldCrowd(Shared())], ids=repr)
@given(seed=st.integers(0, 10**6), n_classes=st.sampled_from([2, 3]), steepness=st.sampled_from([0.0, 2.0]))
@hypothesis_settings(max_examples=8)
@quiet
def test_the_objective_never_falls(model, seed, n_classes, steepness):
    X, matrix = crowd(seed, n_classes=n_classes, missing=0.3)
    fitted = fit(X, matrix, n_classes, steepness=steepness, annotator_model=model, cross_fit=0, max_rounds=30)
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
    model = fit(X, matrix, cross_fit=0, class_prior=0.0, tol=1e-7, max_rounds=500)
    settings = {"hard_examples": False, "errors_in_common": False, "class_prior": 1e-9}
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
    with pytest.warns(UserWarning, match="1 of 41 examples has no label"):
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
def test_warm_start_goes_on_from_the_last_fit():
    X, matrix = crowd(n_examples=150, missing=0.3)
    settings = {"cross_fit": 0, "tol": 1e-5, "max_rounds": 500}
    cold = fit(X, matrix, **settings)
    warm = CrowdLogisticClassifier(warm_start=True, **RAYKAR | settings).fit(X, labels_of(matrix))
    first = warm.n_rounds_
    warm.fit(X, labels_of(matrix))
    assert warm.n_rounds_ < first
    assert_allclose(warm.consensus_proba_, cold.consensus_proba_, atol=1e-2)


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
    for settings in ({"l2": -1.0}, {"cross_fit": 1}, {"class_prior": -1.0}, {"max_rounds": 0}):
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
    with pytest.warns(CrowdConvergenceWarning, match="curriculum still changes the weights after 100 rounds"):
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
    assert_allclose(balanced.class_prior_ * balanced.class_weight_, [0.5, 0.5])
    # What the classifier has learnt beyond the frequency of classes is nearly the same.
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


# ---------------------------------------------------------------------- hard examples, and who judges annotators


def tempted_crowd(seed=1, n_examples=600):
    """Features tell the class and, better still, what tempts six of eight annotators into calling a 0 a 1."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n_examples) < 0.4).astype(int)
    tempting = (truth == 0) & (rng.random(n_examples) < 0.4)
    X = np.column_stack([truth + rng.normal(0, 1.0, n_examples), tempting + truth + rng.normal(0, 0.3, n_examples)])
    wrong = np.where(tempting | (truth == 1), 0.4, 0.05)[:, None] * np.ones(8)
    wrong[:, :2] = 0.05
    matrix = np.where(rng.random(wrong.shape) < wrong, 1 - truth[:, None], truth[:, None])
    return X, matrix, truth


@quiet
@pytest.mark.parametrize("seed", [1, 3, 4])
def test_a_classifier_that_knows_what_tempts_annotators_does_not_judge_them(seed):
    X, matrix, truth = tempted_crowd(seed)
    settings = {"hard_examples": "auto", "init": "labels"}
    auto, alone, both = (fit(X, matrix, joint=joint, **settings) for joint in ("auto", False, True))
    assert np.mean(both.consensus_ == truth) < 0.85
    assert np.mean(auto.consensus_ == truth) > 0.95
    assert_array_equal(auto.consensus_proba_, alone.consensus_proba_)
    # Judged by labels alone, annotators are what aggregation says.
    assert_allclose(alone.confusion_, aggregate(matrix).confusion, atol=1e-3)


@quiet
def test_with_one_kind_of_examples_auto_is_joint():
    X, matrix = crowd(n_examples=150)
    auto = fit(X, matrix, hard_examples="auto", joint="auto", init="labels")
    # It comes to the same by other rounds of labels alone.
    assert_allclose(auto.consensus_proba_, fit(X, matrix, init="labels").consensus_proba_, atol=1e-5)


@quiet
def test_judged_by_labels_alone_the_objective_never_falls():
    X, matrix, _ = tempted_crowd(n_examples=200)
    objective = fit(X, matrix, hard_examples=True, joint=False, cross_fit=0, max_rounds=30, tol=0.0).objective_
    assert (np.diff(objective) >= -1e-6).all()
    assert np.ptp(objective) > 0.1


def test_two_examples_that_teach_each_other_in_turn_settle():
    X, matrix = crowd(seed=3, n_examples=60, n_features=12, missing=0.6)
    model = fit(X, matrix, l2=0.01, joint=False, cross_fit=5, max_rounds=500)
    assert model.converged_


@pytest.mark.usefixtures("trusted")
@quiet
def test_l2_is_a_power_of_ten_relative_to_the_variance_of_the_features():
    rng = np.random.default_rng(0)
    X, matrix = crowd(n_examples=300, missing=0.3)
    noise = rng.normal(size=(300, 150))
    strong, weak = fit(np.hstack([X, noise]), matrix, l2="auto"), fit(X, matrix, l2="auto")
    assert strong.l2_ > weak.l2_
    assert round(np.log10(weak.l2_ / X.var(axis=0).mean()), 6).is_integer()
    # A penalty that was found begins with models of larger ones, and ends with those of one that was given.
    found, given = (fit(X, matrix, l2=l2, tol=1e-8) for l2 in ("auto", weak.l2_))
    assert found.l2_ == weak.l2_
    assert_allclose(given.consensus_proba_, found.consensus_proba_, atol=1e-5)
    # In other units the model is the same.
    here, there = (fit(unit * X, matrix, l2="auto", cross_fit=0) for unit in (1, 1024))
    assert_allclose(there.consensus_proba_, here.consensus_proba_, atol=1e-6)


@pytest.mark.usefixtures("trusted")
@quiet
@pytest.mark.parametrize(("n_noise", "power"), [(0, 1), (80, 2)])
def test_l2_foretells_the_first_consensus_of_held_out_examples(n_noise, power, rng):
    X, matrix = crowd(n_examples=200, missing=0.3)
    X = np.hstack([X, rng.normal(size=(200, n_noise))])
    model = fit(X, matrix, l2="auto", class_prior=0)
    shares = vote_shares(labels_of(matrix, 2))
    fold = content_folds(X, 5)
    scores = []
    for candidate in (3, 2, 1, 0, -1):
        voice = np.empty_like(shares)
        for k in range(5):
            learn = np.flatnonzero(fold != k)
            copies = LogisticRegression(C=1 / (10.0**candidate * X.var(axis=0).mean()), tol=1e-8, max_iter=10_000)
            copies.fit(np.tile(X[learn], (2, 1)), np.repeat([0, 1], len(learn)), sample_weight=shares[learn].T.ravel())
            voice[fold == k] = copies.predict_log_proba(X[fold == k])
        scores.append((shares * voice).sum(axis=1))
    mean = np.mean(scores, axis=1)
    error = np.std(scores[mean.argmax()]) / np.sqrt(len(X))
    first = next(i for i, value in enumerate(mean) if value >= mean.max() - error)
    assert first == 3 - power
    assert model.l2_ == pytest.approx(10.0**power * X.var(axis=0).mean())


def copies_of(X, proba, l2=1.0):
    """Scikit-learn's own fit of soft classes: every example once as each class, weighted by its probability."""
    n, n_classes = proba.shape
    model = LogisticRegression(C=1 / l2, tol=1e-10, max_iter=100_000, solver="newton-cg")
    return model.fit(np.tile(X, (n_classes, 1)), np.repeat(np.arange(n_classes), n), sample_weight=proba.T.ravel())


@quiet
def test_the_last_classifier_is_the_best_one_for_the_consensus_but_for_its_temperature(rng):
    X, matrix = crowd(n_examples=150, missing=0.3)
    X = np.hstack([X, X @ rng.normal(size=(X.shape[1], 20)) + 0.01 * rng.normal(size=(150, 20))])  # long narrow valleys
    model = fit(X, matrix, l2=1e-3, class_prior=0, max_rounds=3)
    best = copies_of(X, model.consensus_proba_, 1e-3)
    assert model.temperature_ != 1
    plain = 1 / (1 + np.exp(-model.decision_function(X) / model.temperature_))
    assert_allclose(plain, best.predict_proba(X)[:, 1], atol=1e-3)


@quiet
@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_round_out_of_fold_by_hand(n_classes, monkeypatch):
    monkeypatch.setattr("crowdwise.logistic.prior._STEPS_PER_ROUND", 1000)
    X, matrix = crowd(n_classes=n_classes, n_examples=80, missing=0.3)
    model = fit(X, matrix, n_classes, class_prior=0, max_rounds=1)
    labels = labels_of(matrix, n_classes)
    shares, fold = vote_shares(labels), content_folds(X, 5)
    likelihood, voice = np.zeros_like(shares), np.empty_like(shares)
    for i, j, said in zip(labels.example_index, labels.annotator_index, labels.values, strict=True):
        likelihood[i] += np.log(model.confusion_[j, :, said])
    for k in range(5):
        voice[fold == k] = copies_of(X[fold != k], shares[fold != k]).predict_log_proba(X[fold == k])

    def together(temperature):
        return scaled_to_one(np.exp(temperature * voice)) * np.exp(likelihood)

    grid = np.exp(np.linspace(-2, 2, 4001))
    worth = [np.log(together(t).sum(axis=1)).sum() + np.log(t) - t for t in grid]  # the prior is around one
    temperature = grid[np.argmax(worth)]
    assert_allclose(model.temperature_, temperature, rtol=2e-3)
    assert_allclose(model.consensus_proba_, scaled_to_one(together(temperature)), atol=2e-3)


def scaled_to_one(rows):
    return rows / rows.sum(axis=1, keepdims=True)


@quiet
@pytest.mark.parametrize("n_classes", [2, 3])
def test_what_classes_count_has_no_temperature(n_classes):
    X, matrix = crowd(n_classes=n_classes, n_examples=120, missing=0.3)
    model = fit(X, matrix, n_classes, class_prior=0, class_weight={0: 3.0})
    count = np.where(np.arange(n_classes) == 0, 3.0, 1.0)
    plain = copies_of(X, model.consensus_proba_ * count).predict_proba(X)
    expected = scaled_to_one((plain / count) ** model.temperature_ * count)
    assert_allclose(model.predict_proba(X), expected, atol=1e-3)


@quiet
@pytest.mark.parametrize("n_classes", [2, 3])
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


def test_the_simplest_of_the_best():
    scores = np.array([[-4.0, -4.0, -4.0, -4.0], [-2.0, -1.0, -1.0, -1.0], [-1.0, -0.9, -1.1, -1.0], [0, -3, 0, -1.5]])
    # Means -4, -1.25, -1 and -1.125. The best one's standard error is .035: only it will do.
    assert simplest_of_the_best(scores, np.ones(4)) == 2
    # Without the first example the second is as good.
    assert simplest_of_the_best(scores, np.array([0.0, 1.0, 1.0, 1.0])) == 1
    # An example of weight 3 is three examples: mean -1, standard error .87.
    weighted, repeated = np.array([[-1.95, -1.95], [0.0, -4.0]]), np.array([[-1.95] * 4, [0.0, 0.0, 0.0, -4.0]])
    assert simplest_of_the_best(weighted, np.array([3.0, 1.0])) == simplest_of_the_best(repeated, np.ones(4)) == 1
    # A best one that is uncertain lets simpler ones pass: -4/3 is within .82 of -1.
    assert simplest_of_the_best(scores[[1, 3]], np.array([1.0, 1.0, 1.0, 0.0])) == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"joint": "maybe"}, "joint must be True, False or"),
        ({"init": "truth"}, "init must be"),
        ({"hard_examples": 0}, "hard_examples must be"),
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
@pytest.mark.parametrize("n_classes", [2, 3])
def test_threads_change_no_bit(n_classes, monkeypatch, rng):
    X, matrix = crowd(n_examples=400, n_classes=n_classes, missing=0.3)
    X = np.hstack([X, rng.normal(size=(400, 40))])
    monkeypatch.setattr("crowdwise.softmax.rows._BLOCK_BYTES", 2**10)
    monkeypatch.setattr("crowdwise.labels.label_rows._MOST_STORED", 200)
    one = CrowdLogisticClassifier(max_rounds=5).fit(X, labels_of(matrix, n_classes))
    monkeypatch.setattr("crowdwise.threads._PARALLEL_FROM", 0)
    monkeypatch.setattr("crowdwise.threads.available_cores", lambda: 3)
    three = CrowdLogisticClassifier(max_rounds=5).fit(X, labels_of(matrix, n_classes))
    assert_array_equal(three.consensus_proba_, one.consensus_proba_)
    assert_array_equal(three.coef_, one.coef_)


def test_scores_of_sparse_features_far_from_zero_by_hand():
    annotators = FittedAnnotators(np.array(["a"]), np.array([0, 1]), Behaviour.always_right(2), np.full(2, 0.5))
    shift = np.array([1e8, 0.0, -5e7])
    coef = np.array([[1.0], [2.0], [3.0]])
    model = FittedLogistic(annotators, coef, np.array([0.5]), shift, np.ones(2))
    X = np.array([[1e8 + 1.25, 0.0, -5e7], [1e8, 3.0, -5e7 + 0.5], [0.0, 1.0, 0.0], [1e8, 0.0, 0.0]])
    expected = [[0.5 + 1.25], [0.5 + 6 + 1.5], [0.5 - 1e8 + 2 + 1.5e8], [0.5 + 1.5e8]]
    assert_allclose(model.scores(X), expected, rtol=1e-14)
    assert_allclose(model.scores(sparse.csr_array(X)), expected, rtol=1e-14)
    parts = sparse.csr_array(([6e7, 4e7 + 1.25, -5e7], [0, 0, 2], [0, 3]), shape=(1, 3))
    assert_allclose(model.scores(parts), expected[:1], rtol=1e-14)


@pytest.mark.parametrize("class_weight", [[1.0, 1.0], [1.0, 5.0]])
@pytest.mark.parametrize("are_probabilities", [True, False])
def test_one_column_of_scores_is_the_second_of_two(class_weight, are_probabilities, rng):
    scores, likelihood, weight = rng.normal(size=(80, 1)), rng.normal(size=(80, 2)), rng.uniform(0.1, 2, 80)
    likelihood[:, 1] += 2 * scores[:, 0]
    one = ClassScores(scores, np.array(class_weight), are_probabilities)
    two = ClassScores(log_softmax(scores), np.array(class_weight), are_probabilities)
    assert_allclose(one.log_proba(1.7), two.log_proba(1.7), rtol=1e-12)
    found = best_temperature(one, likelihood, weight)
    assert found != 1
    assert_allclose(found, best_temperature(two, likelihood, weight), rtol=1e-9)


def test_a_column_in_another_unit_does_not_hide_the_others(rng):
    X = rng.normal(size=(600, 4))
    truth = X @ [1.0, -1.0, 0.5, 0.5] > 0
    matrix = (truth[:, np.newaxis] ^ (rng.random((600, 4)) > [0.65, 0.7, 0.75, 0.8])).astype(int)
    mixed = CrowdLogisticClassifier().fit(X * [1, 1, 1, 3e4], matrix)
    assert mixed.model_weight_ == 1
    assert (mixed.consensus_ == truth).mean() > (aggregate(matrix).label == truth).mean() + 0.05
