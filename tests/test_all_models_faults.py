"""What all models promise alike: every fault of features, labels and annotators is survived or named."""

import tracemalloc
import warnings

import numpy as np
import pytest
from all_models import (
    ANY,
    CLASSIFIERS,
    EVERYTHING,
    LEARNERS,
    LOGISTIC,
    MODELS,
    PERCEPTRONS,
    RIDGE,
    assert_all_finite,
    assert_same_fit,
    crowd,
    data_for,
    fit_quietly,
    labels_for,
    messages_of,
    new,
    over,
    quiet,
    reference,
    scale_of,
    scores_of,
    sure_of,
)
from crowds import HeldCrowd
from marks import in_slow_run
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge

from crowdwise import CrowdLabels
from crowdwise.em import Shared
from crowdwise.exceptions import CrowdConvergenceWarning, CrowdWarning, DataError, LabelError

# ---------------------------------------------------------------------- faults: features


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
@over(LEARNERS, without=["any tree"])  # trees take NaN
def test_fault_01_nan_or_infinite_feature_is_an_error_with_up_to_five_positions(name, make, bad):
    X, y, model = reference(name, n=40)
    X[10:17, 1] = bad
    if name in PERCEPTRONS and make is not np.asarray:
        pytest.skip("takes no sparse features")
    places = ", ".join(f"row {row} column 1" for row in range(10, 15))
    with pytest.raises(DataError, match=rf"infinity: 7 values, at {places}, \.\.\."):
        fit_quietly(new(name), make(X), y)
    with pytest.raises(DataError, match="row 10 column 1"):
        model.predict(make(X))
    if name in MODELS:
        with pytest.raises(DataError, match="row 10 column 1"):
            model.consensus(make(X), y)


@pytest.mark.parametrize("missing", [0.0, 0.4])
@over(LEARNERS, without=["any tree"])
def test_fault_01_infinities_of_both_signs_are_an_error_without_a_stray_warning(name, missing):
    X, y = data_for(name, missing=missing)
    X[10:17, 1], X[20:23, 2] = np.inf, -np.inf
    with pytest.raises(DataError, match="row 10 column 1"):
        fit_quietly(new(name), X, y)


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@over(LEARNERS, without=[*PERCEPTRONS, "any tree"])
def test_fault_01_the_row_is_that_of_the_user_and_rows_that_take_no_part_are_looked_at(name, make):
    X, y = data_for(name, n=40)
    X[9, 0] = np.nan
    matrix = y.to_matrix().astype(float)
    matrix[[2, 5]] = np.nan
    with pytest.raises(DataError, match="1 value, at row 9"):
        fit_quietly(new(name), make(X), labels_for(name, matrix))
    matrix[9] = np.nan
    with pytest.raises(DataError, match="1 value, at row 9"):
        fit_quietly(new(name), make(X), labels_for(name, matrix))
    with pytest.raises(DataError, match="1 value, at row 9"):
        fit_quietly(new(name), make(X), y, np.where(np.arange(40) == 9, 0.0, 1.0))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@over([*RIDGE, *LOGISTIC])
def test_fault_02_features_around_1e8_give_the_result_of_centred_features(name, make):
    X, y = data_for(name)
    offset = 1e8
    far = X + offset
    centred = far - offset  # what is left of X after the offset was added
    near, distant = fit_quietly(new(name), centred, y), fit_quietly(new(name), make(far), y)
    assert np.allclose(near.coef_, distant.coef_, rtol=1e-8, atol=1e-10)
    assert_same_fit(near, distant, centred, make(far), rtol=1e-8, atol=1e-8)
    consensus = [model.consensus(rows, y) for model, rows in ((near, centred), (distant, make(far)))]
    assert np.allclose(sure_of(consensus[0]), sure_of(consensus[1]), atol=1e-8)


@pytest.mark.parametrize("value", [0.0, 3.0, 0.1, 1e8])
@over([*RIDGE, *LOGISTIC])
def test_fault_03_a_constant_feature_has_coefficient_zero(name, value):
    X, y, without = reference(name)
    model = fit_quietly(new(name), np.column_stack([X, np.full(len(X), value)]), y)
    assert np.abs(np.ravel(model.coef_)[-1]) < 1e-12
    if name in LOGISTIC:  # l2 is relative to the variance of the average feature
        model = fit_quietly(new(name, l2=without.l2_), np.column_stack([X, np.full(len(X), value)]), y)
    assert np.allclose(np.ravel(model.coef_)[:-1], np.ravel(without.coef_), atol=1e-8)


@over([*RIDGE, *LOGISTIC])
def test_fault_02_and_03_hold_for_fewer_examples_than_features(name):
    y = data_for(name)[1][:12]
    wide = np.random.default_rng(5).normal(size=(12, 20))
    far = wide + 1e8
    near, distant = (fit_quietly(new(name), rows, y) for rows in (far - 1e8, far))
    assert np.allclose(near.coef_, distant.coef_, rtol=1e-6, atol=1e-9)
    for value in (1e8, 1e300):
        model = fit_quietly(new(name), np.column_stack([wide, np.full(12, value)]), y)
        assert (np.reshape(model.coef_, (-1, 21))[:, -1] == 0).all()
        assert np.isfinite(model.intercept_).all()


@pytest.mark.parametrize("size", [2e153, 4e153, 1e154, 1.3e154, 1e307])
@pytest.mark.parametrize("n_examples", [3, 60])
@over([*RIDGE, *LOGISTIC])
def test_features_of_any_size_are_fitted_or_refused_in_words_without_a_stray_warning(name, n_examples, size):
    y = data_for(name)[1][:n_examples]
    X = np.random.default_rng(6).normal(size=(n_examples, 5))
    X *= size / np.abs(X).max()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        try:
            model = new(name).fit(X, y)
        except DataError:
            with pytest.raises(DataError, match="Input X is too large"):
                new(name).fit(X, y)
            assert name in RIDGE
        else:
            assert np.isfinite(model.coef_).all()
            assert np.isfinite(np.asarray(model.predict(X), dtype=float)).all()


@over(LEARNERS)
def test_fault_04_fewer_examples_than_features_and_collinear_ones_are_fine(name):
    X, y = data_for(name, n=30, n_features=50)
    assert_all_finite(fit_quietly(new(name), X, y))
    assert_all_finite(fit_quietly(new(name), np.hstack([X[:, :3], X[:, :3]]), y))
    assert_all_finite(fit_quietly(new(name), X[np.arange(30) % 3], y))


@pytest.mark.parametrize("n_features", [50, 3])
def test_fault_04_without_l2_the_smallest_solution_is_taken_and_said(n_features):
    X, _, labels = crowd(n=30, n_features=n_features)
    X = X if n_features == 50 else np.hstack([X, X])
    model = new("ridge", l2=0.0, steepness=0.0, max_rounds=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, labels)
    assert any("l2 is 0 and only" in str(w.message) and w.category is CrowdWarning for w in caught)
    target = np.sign(2 * labels.counts()[:, 1] - labels.n_annotators).astype(float)
    centred = X - X.mean(axis=0)
    expected = np.linalg.pinv(centred) @ (target - target.mean())
    assert np.allclose(model.coef_[0], expected, atol=1e-6)


@quiet
@over(LOGISTIC)
def test_fault_04_without_l2_the_logistic_model_stays_finite(name):
    X, y = data_for(name, n=30, n_features=50)
    assert_all_finite(new(name, l2=0.0).fit(X, y))
    assert_all_finite(new(name, l2=0.0).fit(np.hstack([X[:, :3], X[:, :3]]), y))


# ---------------------------------------------------------------------- faults: labels that are not there


@over(EVERYTHING, variants=True)
def test_fault_05_an_example_without_labels_takes_no_part_is_predicted_and_counted(name):
    X, y = data_for(name)
    matrix = y.to_matrix().astype(float)
    matrix[[3, 7]] = np.nan
    holes = labels_for(name, matrix)
    labelled = np.delete(np.arange(len(X)), [3, 7])
    with pytest.warns(CrowdWarning, match="2 of 80 examples have"):
        model = new(name).fit(X, holes)
    without = fit_quietly(new(name), X[labelled], holes[labelled])
    assert len(model.consensus_) == len(model.disagreement_) == 80
    assert_all_finite(model)
    if name == "aggregate":
        assert np.allclose(model.consensus_proba_[[3, 7]], model.results_.class_prior)
        return
    assert np.allclose(scores_of(model, X), scores_of(without, X), rtol=1e-10)
    if hasattr(model, "expertise_"):
        assert np.allclose(model.expertise_, without.expertise_, rtol=1e-10)
    predicted = model.predict(X[[3, 7]])
    assert np.allclose(model.consensus_[[3, 7]], predicted)
    if name in MODELS:
        assert np.allclose(model.results_.label_consensus.label[[3, 7]], predicted)


@over(EVERYTHING)
def test_fault_06_no_label_or_no_example_is_an_error(name):
    with pytest.raises(LabelError, match="there is no label: all"):
        new(name).fit(np.zeros((4, 2)), labels_for(name, np.full((4, 3), np.nan)))
    with pytest.raises(ValueError, match=r"0 sample|no label: all 0 examples"):
        new(name).fit(np.zeros((0, 2)), labels_for(name, np.zeros((0, 3))))


@pytest.mark.parametrize("missing", [0.0, 0.4])
@over(EVERYTHING, variants=True)
def test_fault_07_an_annotator_without_labels_changes_nothing_else_to_the_bit(name, missing):
    X, y, one = reference(name, missing=missing)
    silent = labels_for(name, np.insert(y.to_matrix().astype(float), 2, np.nan, axis=1))
    other = fit_quietly(new(name), X, silent)
    assert "no labels" in other.annotator_flags_[2]
    for attribute in ("coef_", "intercept_", "disagreement_", "consensus_", "consensus_proba_"):
        if hasattr(one, attribute):
            assert np.array_equal(getattr(other, attribute), getattr(one, attribute)), attribute
    if hasattr(one, "results_"):
        by_labels = (model.results_.label_consensus for model in (one, other))
        assert np.array_equal(*(getattr(found, "proba", found.label) for found in by_labels))
    assert np.array_equal(scores_of(other, X), scores_of(one, X))
    for attribute in ("expertise_", "accuracy_"):
        if hasattr(one, attribute):
            assert np.isnan(getattr(other, attribute)[2])
            assert np.array_equal(np.delete(getattr(other, attribute), 2), getattr(one, attribute))


@pytest.mark.parametrize("n_labels", [1, 2])
@over([*CLASSIFIERS, "aggregate", *PERCEPTRONS])
def test_fault_08_an_annotator_with_few_labels_is_shrunk_and_flagged(name, n_labels):
    X, truth, labels = crowd(missing=0.2)
    for right in (True, False):
        column = np.full((80, 1), np.nan)
        clear = np.argsort(-np.abs(X[:, 0]))[:n_labels]
        column[clear, 0] = truth[clear] if right else 1 - truth[clear]
        few = CrowdLabels.from_matrix(np.hstack([labels.to_matrix(), column]))
        model = fit_quietly(new(name), X, few)
        assert "few labels" in model.annotator_flags_[5]
        if name not in PERCEPTRONS:
            others = model.expertise_[:-1]
            assert others.min() / 3 < model.expertise_[-1] < others.max() * 3


@over([*CLASSIFIERS, *PERCEPTRONS, "aggregate"])
def test_fault_09_labels_of_one_class_only_are_an_error(name):
    X, _, _ = crowd()
    declared = CrowdLabels.from_matrix(np.ones((80, 3)), classes=[0, 1])
    enough = name in (*RIDGE, *LOGISTIC, *ANY, "aggregate")  # it is enough that another class is declared
    for y in (np.ones((80, 3)), *(() if enough else (declared,))):
        with pytest.raises(LabelError, match="at least two classes are"):
            new(name).fit(X, y)


@over(EVERYTHING)
def test_fault_10_one_annotator_is_believed_with_a_note(name):
    X, truth, _ = crowd()
    settings = {"steepness": 2.0} if name in (*LOGISTIC, *ANY, "aggregate") else {}
    with pytest.warns(CrowdWarning, match="one annotator, so there is no disagreement"):
        model = new(name, **settings).fit(X, truth)
    assert np.array_equal(model.consensus_, truth)
    if name in PERCEPTRONS:
        return
    assert model.expertise_.tolist() == [1.0]
    assert np.array_equal(model.results_.label_consensus.label, truth)
    if name in RIDGE:
        numbers = truth if name == "regressor" else 2 * truth - 1
        assert np.allclose(scores_of(model, X), Ridge(alpha=model.l2_).fit(X, numbers).predict(X), atol=1e-10)
    if name == "any":
        centred = X - X.mean(axis=0)
        expected = LogisticRegression().fit(centred, truth).decision_function(centred)
        assert np.allclose(scores_of(model, X), expected, atol=1e-6)


@over(EVERYTHING, without=PERCEPTRONS)
def test_fault_11_annotators_who_share_no_example_make_steepness_irrelevant(name):
    X, truth, _ = crowd()
    matrix = np.full((80, 3), np.nan)
    matrix[np.arange(80), np.arange(80) % 3] = truth
    with pytest.warns(CrowdWarning, match="no two annotators share an"):
        model = new(name, steepness=5.0).fit(X, matrix)
    flat = fit_quietly(new(name, steepness=0.0), X, matrix)
    assert_same_fit(model, flat, X, atol=1e-12)


# ---------------------------------------------------------------------- faults: labels that are odd


@over(CLASSIFIERS, variants=True)
def test_fault_14_a_class_that_the_fit_did_not_know_is_an_error_in_the_consensus(fitted, name):
    X, _, model = fitted[name]
    with pytest.raises(LabelError, match=r"the classes \[7\] are not among those of the fit, \[0(\.0)?, 1(\.0)?\]"):
        model.consensus(X[:1], CrowdLabels.from_matrix([[7]], annotators=["ann"]))


@over([*CLASSIFIERS, *PERCEPTRONS, "aggregate"])
def test_fault_15_one_true_and_1_0_are_one_class_and_the_text_1_is_another(name):
    X, truth, _ = crowd()
    numbers = np.column_stack([truth, truth, 1 - truth])
    mixed = numbers.astype(object)
    mixed[:, 0], mixed[:, 1] = truth.astype(bool), truth.astype(float)
    assert_same_fit(fit_quietly(new(name), X, numbers), fit_quietly(new(name), X, mixed), X)
    mixed[4, 2] = "1"
    with pytest.raises(LabelError, match=r"found a mix of .*Note"):
        fit_quietly(new(name), X, mixed)


@over([*CLASSIFIERS, *PERCEPTRONS, "aggregate"])
def test_fault_16_minus_one_is_a_label_like_any_other(name):
    X, y, other = reference(name)
    signs = 2 * y.to_matrix().astype(int) - 1
    model = fit_quietly(new(name), X, signs)
    assert model.classes_.tolist() == [-1, 1]
    assert_same_fit(other, model, X, rtol=0, atol=0)


# ---------------------------------------------------------------------- faults: weights


@pytest.mark.parametrize("relative_to", ["observed", "possible", None])
@pytest.mark.parametrize("steepness", [1e6, 1e308])
@over(EVERYTHING, without=PERCEPTRONS)
def test_fault_17_immense_steepness_gives_a_finite_result(name, steepness, relative_to):
    if relative_to != "observed" and name in (*LOGISTIC, *ANY, "aggregate"):
        pytest.skip("has no relative_to")
    settings = {} if relative_to == "observed" else {"relative_to": relative_to}
    X, y = data_for(name)
    model = fit_quietly(new(name, steepness=steepness, **settings), X, y)
    assert model.results_.easiness.max() > 0
    assert_all_finite(model)
    nobody_agrees = labels_for(name, np.tile([0.0, 1.0], (40, 1)).repeat(2, axis=0))
    assert_all_finite(fit_quietly(new(name, steepness=steepness, **settings), X, nobody_agrees))


@pytest.mark.parametrize("steepness", [-1.0, np.nan, np.inf, "3", None, True])
@over(EVERYTHING, without=PERCEPTRONS)
def test_fault_17_negative_or_nan_steepness_is_an_error(name, steepness):
    X, y = data_for(name)
    with pytest.raises(ValueError, match=r"steepness(es)? must be a finite number >= 0"):
        new(name, steepness=steepness).fit(X, y)


@over(MODELS)
def test_fault_18_weight_on_fewer_examples_than_features_is_told_with_their_number(name):
    X, truth, _ = crowd(n_features=10)
    matrix = np.column_stack([truth, truth, 1 - truth])
    matrix[:4, 2] = truth[:4]  # four examples that all agree on
    messages = messages_of(new(name, steepness=1e4).fit, X, matrix)
    assert any("weight is on about 4.0 of 80 examples, fewer than the 10 features" in text for text in messages)


# ---------------------------------------------------------------------- faults: annotators


@pytest.mark.parametrize("missing", [0.0, 0.3])
@over([*MODELS, "perceptron by margin", "aggregate"])
def test_fault_19_a_perfect_annotator_is_finite_and_ranked_first(name, missing):
    rng = np.random.default_rng(0)
    X = np.concatenate([np.full(60, -1.0), np.full(60, 1.0)])[:, np.newaxis]  # scores can equal the labels
    truth = X[:, 0] > 0
    noisy = np.where(rng.random((120, 3)) < 0.3, ~truth[:, np.newaxis], truth[:, np.newaxis]).astype(float)
    noisy[rng.random(noisy.shape) < missing] = np.nan
    matrix = np.column_stack([noisy, truth])
    settings = {"ridge": {"l2": 1e-9}, "ridge cv": {"l2s": (1e-9,), "cv": 2}, "regressor": {"l2": 1e-9}}.get(name, {})
    if name not in ("perceptron by margin", "aggregate"):
        settings["steepness"] = 0.0
    model = fit_quietly(new(name, **settings), X, matrix)
    assert model.expertise_.argmax() == 3
    assert_all_finite(model)


@over([*CLASSIFIERS, *PERCEPTRONS, "aggregate"])
def test_fault_20_an_annotator_who_is_always_wrong_is_finite_and_flagged(name):
    clarity = 5.0 if name in ("any tree", "aggregate", *PERCEPTRONS) else 2.0  # others get more from the features
    X, _, labels = crowd(n=120, experts=1, adversaries=1, clarity=clarity)
    model = fit_quietly(new(name), X, labels)
    assert "worse than chance" in model.annotator_flags_["adversary 1"]
    assert "expert 1" not in model.annotator_flags_
    if name not in PERCEPTRONS:  # by alignment, labels and their opposite are alike
        assert np.isfinite(model.expertise_).all()
        assert model.expertise_.argmin() == labels.annotators.tolist().index("adversary 1")


@pytest.mark.parametrize("missing", [0.0, 0.3])
@over(EVERYTHING)
def test_fault_21_annotators_who_copy_each_other_are_no_singularity_and_flagged(name, missing):
    X, y = data_for(name, missing=missing)
    matrix = y.to_matrix().astype(float)
    names = ["a", "b", "c", "d", "e", "copy"]
    copied = labels_for(name, np.column_stack([matrix, matrix[:, 0]]), annotators=names)
    model = fit_quietly(new(name), X, copied)
    assert_all_finite(model)
    assert "same labels as 'a'" in model.annotator_flags_["copy"]
    assert "same labels as 'copy'" in model.annotator_flags_["a"]
    if hasattr(model, "expertise_"):
        assert model.expertise_[0] == pytest.approx(model.expertise_[5])


@pytest.mark.parametrize("seed", [0, in_slow_run(1), in_slow_run(2)])
@over([*CLASSIFIERS, "aggregate"])
def test_fault_22_random_labels_give_a_result_that_tells_whether_it_settled(name, seed):
    rng = np.random.default_rng(seed)
    X, labels = rng.normal(size=(80, 4)), rng.integers(0, 3, (80, 5))
    model = new(name, max_rounds=4)
    messages = messages_of(model.fit, X, labels)
    unsettled = any("expertise still changed" in text or "probabilities still changed" in text for text in messages)
    assert model.converged_ == (not unsettled)
    assert_all_finite(model)


@over([*MODELS, "aggregate"])
def test_fault_23_rounds_that_do_not_settle_are_told_with_the_last_change(name):
    X, y = data_for(name, missing=0.3)
    change = r"[\d.e-]+"
    by_model = rf"after 2 rounds the probabilities still changed by {change} per example \(tol=1e-12\)"
    by_ridge = rf"still changed by {change} \(relative\) after 2 rounds.*tol=1e-12"
    with pytest.warns(CrowdConvergenceWarning, match=by_ridge if name in RIDGE else by_model):
        model = new(name, max_rounds=2, tol=1e-12).fit(X, y)
    assert not model.converged_
    assert model.n_rounds_ == len(model.objective_) == 2


@pytest.mark.parametrize("missing", [0.0, 0.5])
@pytest.mark.parametrize("seed", [0, 1, *map(in_slow_run, range(2, 5))])
@over(["ridge", "logistic in sample", "aggregate"])
def test_fault_23_the_objective_is_never_worse_silently(name, seed, missing):
    rng = np.random.default_rng(seed)
    X, matrix = rng.normal(size=(40, 6)), rng.integers(0, 2, (40, 6)).astype(float)
    matrix[rng.random(matrix.shape) < missing] = np.nan
    # The crowd that annotators are drawn towards is made anew in every round, and the objective with it.
    model = new(name, **({"l2": 100.0} if name == "ridge" else {"annotator_model": HeldCrowd(Shared())}))
    messages = messages_of(model.fit, X, matrix)
    objective = model.objective_ if name == "ridge" else -model.objective_  # the others maximise
    if name == "ridge":
        assert (objective[-1] - objective.min() > 1e-6) == any("the objective rose" in text for text in messages)
    else:
        assert (np.diff(objective) < 1e-8 * np.abs(objective).max()).all()


# ---------------------------------------------------------------------- faults: sizes


@pytest.mark.parametrize("n_annotators", [1001, in_slow_run(3000)])
@over([*CLASSIFIERS, "perceptron", "aggregate"])
def test_fault_24_more_than_a_thousand_labels_on_an_example_do_not_underflow(name, n_annotators):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    right = rng.random((20, n_annotators)) < 0.7
    labels = np.where(right, (X[:, :1] > 0), (X[:, :1] <= 0)).astype(int)
    model = fit_quietly(new(name), X, labels)
    assert np.array_equal(model.consensus_, (X[:, 0] > 0).astype(int))
    assert_all_finite(model)
    if name in RIDGE:
        assert np.abs(model.coef_).max() > 0.1
    if name in CLASSIFIERS:
        assert np.ptp(scores_of(model, X)) > 0.1
        assert np.isfinite(model.consensus(X, labels).confidence).all()


@over(
    EVERYTHING, without=["perceptron by margin"], slow=["ridge", "ridge cv", "regressor", *ANY]
)  # which has all pairs of them
def test_fault_25_memory_is_in_proportion_to_labels_and_not_to_examples_times_annotators(name):
    peaks = []
    for n_examples in (800, 3200):
        X, labels = labels_here_and_there(name, n_examples, n_annotators=2 * n_examples)
        settings = {} if name == "perceptron" else {"max_rounds": 3, "tol": 1.0}
        tracemalloc.start()
        fit_quietly(new(name, **settings), X, labels)
        peaks.append(tracemalloc.get_traced_memory()[1] / labels.n_labels)
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0]
    assert peaks[1] < (2500 if name == "ridge cv" else 500)  # a float per example and annotator would be 6,400


def labels_here_and_there(name, n_examples, n_annotators):
    """Five labels per example, whoever of many annotators they are from."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_examples, 2))
    first = rng.integers(0, n_annotators, n_examples)[:, np.newaxis]
    table = {
        "example": np.repeat(np.arange(n_examples), 5),
        "annotator": (first + np.arange(5)).ravel() % n_annotators,
        "label": (X[:, 0] > 0).astype(int).repeat(5) ^ (rng.random(5 * n_examples) < 0.2),
    }
    return X, CrowdLabels.from_table(table, scale=scale_of(name))


@over(CLASSIFIERS)
def test_a_class_whose_examples_have_no_weight_is_still_one_of_the_models(name):
    X, truth, _ = crowd(n=60)
    given = np.where(np.arange(60) < 5, 2, truth)
    labels = np.column_stack([given, given, given])
    model = fit_quietly(new(name), X, labels, sample_weight=(np.arange(60) >= 5).astype(float))
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.consensus(X, labels).label[:5].tolist() == [2] * 5


@over([name for name in MODELS if name not in ANY])
def test_times_are_no_features_of_new_examples_either(name):
    X, labels = data_for(name)
    model = fit_quietly(new(name), X, labels)
    with pytest.raises(DataError, match="times"):
        model.predict(np.full((2, 3), "2020-01-01", dtype="datetime64[D]"))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@over([*RIDGE, *LOGISTIC])
def test_new_examples_whose_scores_overflow_are_refused_with_their_row(fitted, name, make):
    X, y, model = fitted[name]
    X = X.copy()
    X[3] = np.where(np.arange(X.shape[1]) % 2, -1.7e308, 1.7e308)
    methods = [lambda: model.predict(make(X)), lambda: model.consensus(make(X), y)]
    if name != "regressor":
        methods.append(lambda: model.decision_function(make(X)))
    for method in methods:
        with pytest.raises(DataError, match="Input X is too large: the score of row 3 overflows"):
            method()
