import pickle

import numpy as np
import pandas as pd
import pytest
import twin
from all_models import quiet
from crowds import crowd, labels_of
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from marks import in_slow_run
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import crowdwise._threads
import crowdwise.rows.features
from crowdwise import CrowdLabels, CrowdRidgeClassifier, CrowdRidgeClassifierCV, simulate_annotators
from crowdwise.crowd import disagreement
from crowdwise.exceptions import CrowdConvergenceWarning, CrowdWarning, DataError, LabelError
from crowdwise.model_selection import crowd_scorer
from crowdwise.ridge.data import RidgeData
from crowdwise.ridge.problem import L2Choice, SumsProblem
from crowdwise.ridge.rounds import RoundWeights, Settled, alternate
from crowdwise.ridge.targets import Targets, first_consensus
from crowdwise.rows.features import Rows
from crowdwise.training_set import TrainingSet
from crowdwise.weights.folds import content_folds

few_rounds = pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdConvergenceWarning")


def fit(X, matrix, n_classes=2, sample_weight=None, **settings):
    return CrowdRidgeClassifier(**settings).fit(X, labels_of(matrix, n_classes), sample_weight=sample_weight)


def assert_same_model(one, other, rtol=1e-9):
    assert_allclose(one.coef_, other.coef_, rtol=rtol, atol=1e-10)
    assert_allclose(one.intercept_, other.intercept_, rtol=rtol, atol=1e-10)
    assert_allclose(one.expertise_, other.expertise_, rtol=rtol)


@few_rounds
@pytest.mark.parametrize("n_classes", [2, 3, in_slow_run(5)])
@pytest.mark.parametrize("missing", [0.0, 0.5])
@pytest.mark.parametrize("steepness", [0.0, 2.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("init", ["majority", "mean"])
def test_equals_the_slow_twin(n_classes, missing, steepness, fit_intercept, init):
    X, matrix = crowd(n_classes=n_classes, missing=missing)
    sample_weight = np.random.default_rng(1).uniform(0.5, 2, len(X))
    settings = {"steepness": steepness, "l2": 0.7, "fit_intercept": fit_intercept, "init": init}
    model = fit(X, matrix, n_classes, sample_weight, max_rounds=5, tol=0.0, **settings)
    slow = twin.fit(X, matrix.tolist(), list(range(n_classes)), sample_weight=sample_weight, n_rounds=5, **settings)
    assert_allclose(model.coef_.T, slow["coef"], rtol=1e-8, atol=1e-10)
    assert_allclose(model.intercept_, slow["intercept"], rtol=1e-8, atol=1e-10)
    assert_allclose(model.expertise_, slow["expertise"], rtol=1e-8)


@few_rounds
@pytest.mark.parametrize("relative_to", ["observed", "possible"])
def test_equals_the_slow_twin_for_whatever_disagreement_is_relative_to(relative_to):
    X, matrix = crowd(missing=0.3, n_classes=3)
    model = fit(X, matrix, 3, relative_to=relative_to, max_rounds=4, tol=0.0)
    slow = twin.fit(X, matrix.tolist(), [0, 1, 2], relative_to=relative_to, n_rounds=4)
    assert_allclose(model.coef_.T, slow["coef"], rtol=1e-8)
    assert_allclose(model.expertise_, slow["expertise"], rtol=1e-8)


def test_one_round_by_hand():
    # Two examples at -1 and +1, two annotators who agree: ridge through the origin gives 2 / (2 + 1).
    model = CrowdRidgeClassifier(0.0, fit_intercept=False).fit([[-1.0], [1.0]], [[0, 0], [1, 1]])
    assert_allclose(model.coef_, [[2 / 3]])
    assert_allclose(model.expertise_, [9.0, 9.0])  # each is 1/3 away from the score everywhere
    assert_array_equal(model.label_score_, [-1, 1])


@pytest.mark.filterwarnings("ignore:there is one annotator")
def test_one_annotator_is_ordinary_ridge():
    X, matrix = crowd(n_annotators=1)
    model = fit(X, matrix, l2=0.3)
    ridge = Ridge(alpha=0.3).fit(X, 2.0 * matrix[:, 0].astype(float) - 1)
    assert_allclose(model.coef_[0], ridge.coef_, rtol=1e-10)
    assert_allclose(model.intercept_[0], ridge.intercept_, rtol=1e-10)
    assert model.expertise_.tolist() == [1.0]


@given(seed=st.integers(0, 10**6), n_classes=st.sampled_from([2, 3]), missing=st.sampled_from([0.0, 0.4]))
@hypothesis_settings(max_examples=25)
@few_rounds
def test_permuting_examples_annotators_and_classes_permutes_the_result_and_nothing_else(seed, n_classes, missing):
    X, matrix = crowd(seed, n_classes=n_classes, missing=missing)
    rng = np.random.default_rng(seed)
    rows, columns, names = (rng.permutation(n) for n in (*matrix.shape, n_classes))
    shuffled = np.array([[None if v is None else names[v] for v in row] for row in matrix], dtype=object)
    one = fit(X, matrix, n_classes)
    other = fit(X[rows], shuffled[rows][:, columns], n_classes)
    assert_allclose(other.expertise_, one.expertise_[columns], rtol=1e-7)
    assert_allclose(other.disagreement_, one.disagreement_[rows], rtol=1e-12)
    assert_array_equal(other.consensus_, names[one.consensus_[rows]])
    assert_allclose(other.accuracy_, one.accuracy_[columns], rtol=1e-6)
    assert_allclose(other.consensus_proba_[:, names], one.consensus_proba_[rows], rtol=1e-5, atol=1e-9)
    if n_classes == 2:
        sign = 1 if names[1] == 1 else -1
        assert_allclose(other.coef_, sign * one.coef_, rtol=1e-6, atol=1e-9)
    else:
        assert_allclose(other.coef_[names], one.coef_, rtol=1e-6, atol=1e-9)
    named = CrowdLabels.from_matrix(shuffled[rows][:, columns], annotators=columns, classes=range(n_classes))
    # Annotators are matched by name, whatever their order.
    mapped = np.array([[None if v is None else names[v] for v in row] for row in matrix], dtype=object)
    again = fit(X, mapped, n_classes).consensus(X[rows], named)
    assert_allclose(again.proba, fit(X, mapped, n_classes).consensus(X, mapped).proba[rows], rtol=1e-9, atol=1e-12)


@given(seed=st.integers(0, 10**6), missing=st.sampled_from([0.0, 0.4]))
@hypothesis_settings(max_examples=15)
@few_rounds
def test_repeating_every_example_equals_doubling_its_weight(seed, missing):
    X, matrix = crowd(seed, missing=missing)
    repeated = fit(np.vstack([X, X]), np.vstack([matrix, matrix]))
    doubled = fit(X, matrix, sample_weight=np.full(len(X), 2.0))
    assert_same_model(repeated, doubled, rtol=1e-7)
    if (repeated.results_.vote_weight == 1).all() and (
        doubled.results_.vote_weight == 1
    ).all():  # near copies are found by rows
        assert_allclose(repeated.temperature_, doubled.temperature_, rtol=1e-6)
    assert_allclose(repeated.objective_, doubled.objective_, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_an_annotator_without_labels_changes_nothing_to_the_bit(missing):
    X, matrix = crowd(missing=missing)
    empty = np.full((len(X), 1), None)
    alone, accompanied = fit(X, matrix), fit(X, np.hstack([matrix[:, :2], empty, matrix[:, 2:]]))
    assert_array_equal(alone.coef_, accompanied.coef_)
    assert_array_equal(alone.label_score_, accompanied.label_score_)
    assert_array_equal(alone.consensus_proba_, accompanied.consensus_proba_)
    assert_array_equal(alone.expertise_, np.delete(accompanied.expertise_, 2))
    assert np.isnan(accompanied.expertise_[2])
    assert accompanied.annotator_flags_[2] == ("no labels",)


def test_unanimous_labels_make_steepness_irrelevant():
    X, matrix = crowd()
    unanimous = np.repeat(matrix[:, :1], 4, axis=1)
    assert_same_model(fit(X, unanimous, steepness=0.0), fit(X, unanimous, steepness=5.0))


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_two_classes_as_two_columns_equal_one_column_of_signs(missing):
    X, matrix = crowd(missing=missing)
    labels = labels_of(matrix)
    settled = []
    for targets in (Targets.of(labels), Targets(np.array([[1.0, -1.0], [-1.0, 1.0]]), 0.0, 0.5, 1.0)):
        rows = Rows.of(X, intercept=True)
        first = first_consensus(labels, Targets.of(labels), "majority") @ [
            [1.0] if targets.n_targets == 1 else [-1.0, 1.0]
        ]
        data = RidgeData(TrainingSet.of(X, labels, None), labels, rows, None, targets, first)
        weights = RoundWeights(data, 2.0)
        choice = L2Choice(np.ones(1), False)
        problem = SumsProblem(data, choice, weights.first, data.sums(data.easiness(2.0)), None)
        settled.append(alternate(problem, weights, max_rounds=100, tol=1e-10)[0])
    signs, columns = settled
    assert_allclose(columns.theta[:, 1:], signs.theta, rtol=1e-8, atol=1e-10)
    assert_allclose(columns.theta[:, :1], -signs.theta, rtol=1e-8, atol=1e-10)
    assert_allclose(columns.expertise, signs.expertise, rtol=1e-8)


@few_rounds
def test_two_classes_as_two_columns_by_the_twin():
    X, matrix = crowd()
    one = twin.fit(X, matrix.tolist(), [0, 1], n_rounds=3)
    code = twin.code
    twin.code = lambda label, classes: np.array([1.0 if label == k else -1.0 for k in classes])
    try:
        two = twin.fit(X, matrix.tolist(), [0, 1], n_rounds=3)
    finally:
        twin.code = code
    assert_allclose(two["coef"][:, 1:], one["coef"], rtol=1e-10)
    assert_allclose(two["coef"][:, :1], -one["coef"], rtol=1e-10)
    assert_allclose(two["expertise"], one["expertise"], rtol=1e-10)


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_splitting_into_blocks_changes_nothing(missing, monkeypatch, set_constants):
    X, matrix = crowd(n_examples=500, missing=missing)
    whole = fit(X, matrix)
    set_constants(crowdwise.rows.features, _BLOCK_BYTES=1)  # blocks of 64 rows
    set_constants(crowdwise._threads, TASK_ROWS=100)
    set_constants(crowdwise._threads, _PARALLEL_FROM=0)
    monkeypatch.setattr(crowdwise._threads, "available_cores", lambda: 3)
    assert_same_model(fit(X, matrix), whole, rtol=1e-10)


def test_threads_change_no_bit(monkeypatch, set_constants):
    X, matrix = crowd(n_examples=500)
    set_constants(crowdwise.rows.features, _BLOCK_BYTES=1)
    set_constants(crowdwise._threads, TASK_ROWS=100)
    alone = fit(X, matrix)
    set_constants(crowdwise._threads, _PARALLEL_FROM=0)
    monkeypatch.setattr(crowdwise._threads, "available_cores", lambda: 3)
    assert_array_equal(fit(X, matrix).coef_, alone.coef_)


@few_rounds
@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_rounds_do_not_read_the_rows(missing, monkeypatch):
    X, matrix = crowd(missing=missing)
    n_read, n_scored = [], []
    read, scores = crowdwise.rows.features.Rows.read, crowdwise.rows.features.Rows.fold_scores

    def counted(self, rows, root):
        x = read(self, rows, root)
        n_read.append(len(x))
        return x

    def counted_scores(self, theta, fold):
        n_scored.append(1)
        return scores(self, theta, fold)

    monkeypatch.setattr(crowdwise.rows.features.Rows, "read", counted)
    monkeypatch.setattr(crowdwise.rows.features.Rows, "fold_scores", counted_scores)
    totals = []
    for max_rounds in (1, 50):
        n_read.clear()
        n_scored.clear()
        fit(X, matrix, max_rounds=max_rounds, tol=0.0)
        totals.append(sum(n_read))
        assert len(n_scored) == 1  # when all is settled, to score every example out of fold
    assert totals[0] == totals[1] == (labels_of(matrix).n_labels if missing else len(X))


@few_rounds
@pytest.mark.parametrize("route", ["rows", "iterative"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_every_route_gives_the_same(route, n_classes, fit_intercept, set_constants):
    X, matrix = crowd(missing=0.4, n_classes=n_classes)
    settings = {"fit_intercept": fit_intercept, "max_rounds": 6, "tol": 0.0}
    sums = fit(X, matrix, n_classes, **settings)
    assert sums.route_ == "sums"
    if route == "rows":
        set_constants(crowdwise.ridge.data, MEMORY_BUDGET=0)
    else:
        set_constants(crowdwise.ridge.data, EXACT_COLUMNS=1)
    other = fit(sparse.csr_array(X) if route == "iterative" else X, matrix, n_classes, **settings)
    assert other.route_ == route
    assert_same_model(other, sums, rtol=1e-6)
    assert_allclose(other.objective_, sums.objective_, rtol=1e-6, atol=1e-8)
    assert other.annotator_flags_ == sums.annotator_flags_


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_fewer_examples_than_features_equals_the_slow_twin(n_classes, container):
    X, matrix = crowd(n_examples=12, n_features=30, n_classes=n_classes, missing=0.2)
    model = CrowdRidgeClassifier(max_rounds=3, tol=0.0)
    with pytest.warns(CrowdConvergenceWarning):
        model.fit(container(X), labels_of(matrix, n_classes))
    slow = twin.fit(X, matrix.tolist(), list(range(n_classes)), n_rounds=3)
    assert_allclose(model.coef_.T, slow["coef"], rtol=1e-7, atol=1e-10)
    assert_allclose(model.intercept_, slow["intercept"], rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_sparse_and_single_precision_features_give_the_same(missing):
    X, matrix = crowd(missing=missing)
    X = np.where(X > 1, X, 0).astype(np.float32)
    dense = fit(X.astype(np.float64), matrix)
    assert_same_model(fit(X, matrix), dense)
    assert_same_model(fit(sparse.csr_array(X), matrix), dense)
    assert_same_model(fit(sparse.csc_matrix(X), matrix), dense)


def test_the_objective_never_rises():
    for seed in range(30):
        X, matrix = crowd(seed, n_examples=60, missing=0.3 * (seed % 2))
        objective = fit(X, matrix, l2=10.0 ** (seed % 5 - 2)).objective_
        assert (np.diff(objective) <= 1e-9).all()


def test_to_end_worse_than_before_is_reported_with_the_round_to_stop_at():
    def settled(*objective):
        return Settled(np.zeros(1), np.ones(2), np.ones(2), None, np.array(objective), True, 0.0, True, None, 1.0, 1)

    with pytest.warns(CrowdConvergenceWarning, match="objective rose by 0.5 after"):
        settled(1.0, 0.0, 0.5).warn(1e-6)
    settled(1.0, 0.0, 2e-7).warn(1e-6)  # of no interest
    settled(1.0, 1.5, 0.5).warn(1e-6)  # made good


def test_rounds_that_do_not_settle_are_told_with_the_last_change():
    X, matrix = crowd()
    with pytest.warns(CrowdConvergenceWarning, match="still changed by .* after"):
        model = fit(X, matrix, max_rounds=2, tol=1e-15)
    assert not model.converged_
    assert model.n_rounds_ == len(model.objective_) == 2


def test_the_expert_is_found_and_the_adversary_flagged(rng):
    X = np.vstack([rng.normal(-0.7, 1, (300, 5)), rng.normal(0.7, 1, (300, 5))])
    truth = np.repeat(["no", "yes"], 300)
    labels = simulate_annotators(X, truth, clarity=2.0, experts=1, adversaries=1, random_state=1)
    model = CrowdRidgeClassifier(5.0).fit(X, labels)
    assert model.annotators_[model.expertise_.argmax()] == "expert 1"
    assert model.annotators_[model.expertise_.argmin()] == "adversary 1"
    assert "worse than chance" in model.annotator_flags_["adversary 1"]
    assert "worse than chance" not in model.annotator_flags_.get("expert 1", ())
    assert (model.predict(X) == truth).mean() > 0.9
    assert_allclose(model.disagreement_, disagreement(labels))


def log_odds(proba):
    return np.log(proba[:, 1] / proba[:, 0])


def test_label_attributes_are_those_of_the_labels_alone():
    X, matrix = crowd(missing=0.4, n_classes=3)
    model = fit(X, matrix, 3)
    alone = model.consensus(X, labels_of(matrix, 3), use_model=False)
    assert_array_equal(alone.label, model.results_.label_consensus.label)
    assert_array_equal(alone.proba, model.results_.label_consensus.proba)
    i = next(i for i, row in enumerate(matrix) if sum(v is not None for v in row) > 1)
    votes = {k: sum(model.expertise_[j] for j, v in enumerate(matrix[i]) if v == k) for k in range(3)}
    total = sum(votes.values())
    assert_allclose(model.label_score_[i], [2 * votes[k] / total - 1 for k in range(3)])
    assert_allclose(
        model.results_.label_consensus.proba[i], model.consensus(X, labels_of(matrix, 3), use_model=False).proba[i]
    )


@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_are_the_prior_of_labels_for_new_examples(n_classes):
    X, matrix = crowd(missing=0.4, n_classes=n_classes)
    model = fit(X, matrix, n_classes)
    new, matrix_new = crowd(7, n_examples=10, missing=0.4, n_classes=n_classes)
    found = model.consensus(new, labels_of(matrix_new, n_classes))
    scores, scaling, annotators = model.decision_function(new), model.fitted_.scaling, model.fitted_.annotators
    scores = np.column_stack([-scores, scores]) if n_classes == 2 else scores
    for i, row in enumerate(matrix_new):
        joint = np.exp(scaling.temperature * scores[i] + scaling.offset)
        merit = []
        for j, label in enumerate(row):
            if label is not None:
                joint = joint * annotators.confusion[j, :, label]
                merit.append(annotators.merit[j])
        posterior = joint / joint.sum()
        n_votes = sum(merit) ** 2 / sum(m**2 for m in merit) + 1  # the model is one more voter
        stated = posterior ** (n_votes ** (-0.7 * annotators.discount.common))
        assert_allclose(found.proba[i], stated / stated.sum(), rtol=1e-9)


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_training_examples_are_scored_by_models_that_have_not_seen_them(missing):
    X, matrix = crowd(n_examples=60, n_features=20, missing=missing)
    model = fit(X, matrix, l2=1e-3, steepness=0.0)
    given = np.array([[v is not None for v in row] for row in matrix])
    total = given @ model.expertise_
    target = model.label_score_
    scaling = model.fitted_.scaling
    away = log_odds(model.results_.model_proba) - (scaling.offset[1] - scaling.offset[0])
    unseen = away / (2 * scaling.temperature)
    fold = content_folds(X, 5)
    for k in range(5):
        others = fold != k
        weight = total[others] / total.mean()
        slow = twin.ridge(X[others], target[others][:, None], weight, 1e-3, True)
        assert_allclose(unseen[~others], (X[~others] @ slow[0] + slow[1])[:, 0], rtol=1e-6, atol=1e-8)
    error = np.average((unseen - target) ** 2, weights=total)
    seen = model.decision_function(X)
    assert error > 1.5 * np.average((seen - target) ** 2, weights=total)


@few_rounds
@pytest.mark.parametrize("route", ["rows", "iterative", "one cell"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_every_route_gives_the_same_consensus(route, n_classes, set_constants):
    X, matrix = crowd(missing=0.4, n_classes=n_classes)
    settings = {"max_rounds": 6, "tol": 0.0}
    sums = fit(X, matrix, n_classes, **settings)
    if route == "one cell":  # sums fit into memory, but not for every fold
        n_targets = 1 if n_classes == 2 else n_classes
        set_constants(crowdwise.ridge.data, MEMORY_BUDGET=8 * 4 * (6 * 4 + 6 * n_targets))
    elif route == "rows":
        set_constants(crowdwise.ridge.data, MEMORY_BUDGET=0)
    else:
        set_constants(crowdwise.ridge.data, EXACT_COLUMNS=1)
    other = fit(sparse.csr_array(X) if route == "iterative" else X, matrix, n_classes, **settings)
    assert other.route_ == ("sums" if route == "one cell" else route)
    for name in ("consensus_proba_", "temperature_", "accuracy_"):
        assert_allclose(getattr(other, name), getattr(sums, name), rtol=1e-5, atol=1e-8, err_msg=name)
    by_labels = (model.results_.label_consensus.proba for model in (other, sums))
    assert_allclose(*by_labels, rtol=1e-5, atol=1e-8)


def test_unknown_annotators_count_as_the_crowd_and_unknown_classes_are_an_error():
    X, matrix = crowd()
    model = CrowdRidgeClassifier().fit(X, CrowdLabels.from_matrix(matrix, annotators=list("abcdef")))
    known = CrowdLabels.from_matrix([[1, 0]], annotators=["a", "new"], classes=[0, 1])
    found = model.consensus(X[:1], known, use_model=False)
    annotators = model.fitted_.annotators
    joint = annotators.class_prior * annotators.confusion[0, :, 1] * annotators.answers.crowd[:, 0]
    posterior = joint / joint.sum()
    assert found.label[0] == posterior.argmax()
    assert 0 < log_odds(found.proba)[0] / log_odds(posterior[None])[0] <= 1  # less sure, for correlated errors
    with pytest.raises(ValueError, match="none of the 1 annotators"):
        model.consensus(X[:1], CrowdLabels.from_matrix([[1]], annotators=["zed"]))
    with pytest.raises(ValueError, match=r"classes \[7\] are not among"):
        model.consensus(X[:1], CrowdLabels.from_matrix([[7]], annotators=["a"]))


def test_consensus_carries_ids_and_is_not_the_models_own():
    X, matrix = crowd(missing=0.3)
    ids = [f"e{i}" for i in range(len(X))]
    labels = CrowdLabels.from_matrix(matrix, examples=ids, classes=[0, 1])
    model = CrowdRidgeClassifier().fit(pd.DataFrame(X, index=ids), labels)
    assert model.examples_.tolist() == model.consensus_frame()["example"].tolist() == ids
    found = model.consensus(pd.DataFrame(X, index=ids)[5:9], labels[[8, 7, 6, 5]])
    assert found.examples.tolist() == ids[5:9]
    with pytest.raises(ValueError, match="read-only"):
        found.proba[:] = 7.0
    assert not np.shares_memory(found.proba, model.consensus_proba_)


def test_other_features_with_the_same_labels_get_another_consensus():
    X, matrix = crowd(missing=0.5)
    model = fit(X, matrix)
    assert np.abs(model.consensus(-X, matrix).proba - model.consensus(X, matrix).proba).max() > 0.1


@pytest.mark.parametrize("use_model", [True, False])
def test_examples_without_labels_have_the_models_score(use_model):
    X, matrix = crowd()
    model = fit(X, matrix)
    some = np.vstack([matrix[:2], np.full((2, 6), None)])
    found = model.consensus(X[:4], labels_of(some), use_model=use_model)
    assert_allclose(np.log(found.proba[2:]), model.fitted_.log_prior(X[2:4]))
    offset = model.fitted_.scaling.offset
    expected = 2 * model.temperature_ * model.decision_function(X[2:4]) + offset[1] - offset[0]
    assert_allclose(log_odds(found.proba[2:]), expected)
    nothing = model.consensus(X[:4], labels_of(np.full((4, 6), None)), use_model=use_model)
    assert_allclose(np.log(nothing.proba), model.fitted_.log_prior(X[:4]))


@pytest.mark.filterwarnings("ignore:there is one annotator")
def test_one_annotator_is_taken_at_their_word():
    X, matrix = crowd(n_annotators=1)
    model = fit(X, matrix, l2=0.3)
    assert_array_equal(model.results_.label_consensus.label, matrix[:, 0].astype(int))
    assert model.expertise_.tolist() == [1.0]
    assert model.fitted_.crowd_expertise == 1.0
    flipped = 1 - matrix.astype(int)
    assert_array_equal(model.consensus(X, flipped, use_model=False).label, flipped[:, 0])
    assert np.isnan(model.accuracy_).all()  # nothing can show it


def test_works_in_pipelines_grid_search_and_cross_validation():
    X, matrix = crowd(n_examples=120, missing=0.3)
    labels = labels_of(matrix)
    pipeline = make_pipeline(StandardScaler(), CrowdRidgeClassifier())
    search = GridSearchCV(
        pipeline,
        {"crowdridgeclassifier__l2": [0.1, 10.0]},
        cv=KFold(3, shuffle=True, random_state=0),
        scoring=crowd_scorer("agreement"),
        error_score="raise",
    )
    assert search.fit(X, labels).best_score_ > 0.5
    numbers = np.array([[np.nan if v is None else v for v in row] for row in matrix])
    scores = cross_val_score(
        pipeline,
        X,
        numbers,
        cv=KFold(3, shuffle=True, random_state=0),
        scoring=crowd_scorer("ranking"),
        error_score="raise",
    )
    assert (scores > 0.5).all()


def test_metadata_routing_passes_sample_weight():
    import sklearn

    X, matrix = crowd(n_examples=60)
    with sklearn.config_context(enable_metadata_routing=True):
        model = CrowdRidgeClassifier().set_fit_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model).fit(
            X, labels_of(matrix), sample_weight=np.arange(60.0)
        )
    direct = fit(StandardScaler().fit_transform(X), matrix, sample_weight=np.arange(60.0))
    assert_same_model(pipeline[-1], direct)


def test_cloned_pickled_and_framed_models_are_the_same():
    X, matrix = crowd()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = CrowdRidgeClassifier(1.0, l2=3.0).fit(frame, labels_of(matrix))
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    again = clone(model).fit(frame, labels_of(matrix))
    assert_same_model(pickle.loads(pickle.dumps(model)), again)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["c", "b", "a"]])


def test_labels_are_aligned_with_a_frame_by_id():
    X, matrix = crowd()
    ids = [f"item {i}" for i in range(len(X))]
    order = np.random.default_rng(0).permutation(len(X))
    labels = CrowdLabels.from_matrix(matrix[order], examples=[ids[i] for i in order], classes=[0, 1])
    assert_same_model(CrowdRidgeClassifier().fit(pd.DataFrame(X, index=ids), labels), fit(X, matrix))


def test_input_is_never_changed():
    X, matrix = crowd(missing=0.3)
    before, weight = X.copy(), np.ones(len(X))
    X.setflags(write=False)
    fit(X, matrix, sample_weight=weight)
    assert_array_equal(X, before)
    assert (weight == 1).all()


def test_more_annotators_than_sums_can_be_kept_for_take_the_rows_route():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 300))
    who = rng.integers(0, 800, (3000, 2))
    table = {"example": np.repeat(np.arange(3000), 2), "annotator": who.ravel(), "label": np.repeat(X[:, 0] > 0, 2)}
    with pytest.warns(CrowdWarning, match="count once"):
        labels = CrowdLabels.from_table(table)
    assert CrowdRidgeClassifier().fit(X, labels).route_ == "rows"


def test_settings_and_scales_that_cannot_be_used_are_told():
    X, matrix = crowd()
    with pytest.raises(ValueError, match="l2 must be a finite"):
        fit(X, matrix, l2="a")
    with pytest.raises(DataError, match="squares of its values overflow"):
        fit(X * 1e160, matrix)
    model = CrowdRidgeClassifier().fit(X, np.where(matrix == 1, "b", "a"))
    with pytest.raises(ValueError, match="none of the classes of"):
        model.score(X, matrix[:, 0].astype(int))


@pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdWarning")
def test_the_consensus_is_not_below_its_own_predictions_out_of_fold_on_weak_crowds():
    consensus, unseen, votes = np.zeros((3, 5))
    for seed in range(5):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, 2, 300)
        X = rng.normal(size=(300, 5)) + 0.7 * (2 * truth[:, None] - 1)
        matrix = np.where(rng.random((300, 5)) < 0.65, truth[:, None], 1 - truth[:, None])
        model = CrowdRidgeClassifier().fit(X, matrix)
        consensus[seed] = (model.consensus_ == truth).mean()
        unseen[seed] = (model.results_.model_proba.argmax(axis=1) == truth).mean()
        votes[seed] = ((matrix.mean(axis=1) > 0.5) == truth).mean()
    assert consensus.mean() >= unseen.mean() - 0.01
    assert consensus.mean() > votes.mean() + 0.05


@quiet
@pytest.mark.parametrize("model", [CrowdRidgeClassifier(), CrowdRidgeClassifierCV(cv=2, l2s=[1.0])], ids=repr)
def test_labels_of_one_class_are_enough_if_classes_are_declared(model):
    X, matrix = crowd(12, n_examples=8, n_annotators=3)
    with pytest.raises(LabelError, match="labels of at least two"):
        clone(model).fit(X, np.ones_like(matrix))
    model.fit(X, CrowdLabels.from_matrix(np.ones_like(matrix), classes=[0, 1, 2]))
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.predict(X).tolist() == model.consensus_.tolist() == [1] * len(X)
    assert np.isfinite(model.consensus_proba_).all()


@quiet
def test_one_label_is_enough_if_classes_are_declared():
    labels = CrowdLabels.from_matrix([["no"]], classes=["no", "yes"])
    model = CrowdRidgeClassifier().fit([[1.0, 2.0]], labels)
    assert model.predict([[1.0, 2.0], [0.0, 0.0]]).tolist() == ["no", "no"]


@quiet
@pytest.mark.parametrize("n_classes", [2, 3])
def test_rounds_begin_with_the_consensus_that_is_given(n_classes):
    X, matrix = crowd(7, n_examples=60, n_classes=n_classes, missing=0.3)
    labels = labels_of(matrix, n_classes)
    one_round = {"max_rounds": 1, "steepness": 0.0}
    named = CrowdRidgeClassifier(**one_round).fit(X, labels)
    first = np.random.default_rng(0).integers(0, n_classes, 60)
    given = CrowdRidgeClassifier(init=first, **one_round).fit(X, labels)
    count = labels.labels_per_example / labels.labels_per_example.mean()
    codes = 2.0 * (first[:, np.newaxis] == np.arange(n_classes)) - 1
    expected = Ridge(1.0).fit(X, codes[:, 1:] if n_classes == 2 else codes, sample_weight=count).coef_
    assert_allclose(given.coef_, np.atleast_2d(expected), rtol=1e-8)
    assert not np.allclose(given.coef_, named.coef_)
    settled = CrowdRidgeClassifier(tol=1e-10, max_rounds=500).fit(X, labels)
    again = CrowdRidgeClassifier(tol=1e-10, max_rounds=500, init=settled.consensus_).fit(X, labels)
    assert_allclose(again.coef_, settled.coef_, rtol=1e-6)
    truth = np.where(np.arange(60) < 9, first, None)
    known = CrowdRidgeClassifier(init=np.zeros(60, dtype=int), **one_round).fit(X, labels, truth=truth)
    told = CrowdRidgeClassifier(init=np.where(np.arange(60) < 9, first, 0), **one_round).fit(X, labels, truth=truth)
    assert_array_equal(known.coef_, told.coef_)


def test_a_first_consensus_that_does_not_fit_is_refused():
    X, matrix = crowd(7)
    for init, message in (
        ([0, 1], "one value for each of the 40 examples; got 2"),
        (["yes"] * 40, r"classes among \[0, 1\].*got 'yes'"),
        ("median", "init must be"),
    ):
        with pytest.raises(ValueError, match=message):
            CrowdRidgeClassifier(init=init).fit(X, labels_of(matrix))
    with pytest.raises(ValueError, match="init has a value for"):
        CrowdRidgeClassifier(init=[0] * 40).block_sums(X, matrix)
