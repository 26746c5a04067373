import pickle
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from marks import many_examples
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from crowdwise import CrowdLabels, simulate_annotators
from crowdwise.exceptions import CrowdWarning, DataError, LabelError
from crowdwise.paper.theory import EasyFirstPerceptron, estimate_margins, online

one_annotator = pytest.mark.filterwarnings("ignore:there is one annotator")


@one_annotator  # the checks give one-dimensional y
@parametrize_with_checks([EasyFirstPerceptron()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@one_annotator
@parametrize_with_checks(
    [EasyFirstPerceptron("random", average=True, random_state=0), EasyFirstPerceptron("margin", fit_intercept=False)]
)
def test_scikit_learn_checks_of_other_orders(estimator, check):
    check(estimator)


def plain_perceptron(rows, signs, orders, n_columns):
    """The textbook loop: weights, mistakes in order, and the sum of the weights after every example."""
    weights, total, mistakes = np.zeros(n_columns), np.zeros(n_columns), []
    for order in orders:
        before = len(mistakes)
        for i in order:
            if signs[i] * (rows[i] @ weights) <= 0:
                weights = weights + signs[i] * rows[i]
                mistakes.append(i)
            total = total + weights
        if len(mistakes) == before:
            break
    return weights, mistakes, total


@pytest.fixture
def noisy():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    truth = np.where(X @ [1.0, -2.0, 0.5, 0.0] > 0.3, "yes", "no")
    return X, truth, simulate_annotators(X, truth, 7, clarity=2.0, random_state=1)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_easiest_first_equals_the_textbook_loop_in_that_order(noisy, fit_intercept):
    X, _, labels = noisy
    model = EasyFirstPerceptron(n_epochs=3, fit_intercept=fit_intercept).fit(X, labels)
    rows = np.column_stack([X, np.ones(len(X))]) if fit_intercept else X
    signs = np.where(labels.majority() == "yes", 1.0, -1.0)
    order = np.argsort(model.disagreement_, kind="stable")
    weights, mistakes, total = plain_perceptron(rows, signs, [order] * 3, rows.shape[1])
    assert model.mistake_order_.tolist() == mistakes
    assert np.array_equal(model.coef_[0], weights[:4])
    assert model.n_mistakes_ == len(mistakes) == model.mistakes_per_epoch_.sum() == model.mistakes_per_region_.sum()
    averaged = clone(model).set_params(average=True).fit(X, labels)
    assert averaged.mistake_order_.tolist() == mistakes
    assert np.allclose(averaged.coef_[0], total[:4] / (3 * len(X)), rtol=1e-12)
    assert averaged.radius_ == pytest.approx(np.linalg.norm(rows, axis=1).max())


def test_unanimous_examples_come_before_disputed_ones():
    X = np.array([[1.0], [2.0], [3.0], [4.0]])
    y = [[1, 1, 0], [1, 1, 1], [0, 1, 0], [0, 0, 0]]
    model = EasyFirstPerceptron(n_epochs=1, fit_intercept=False).fit(X, y)
    # Fed in the order 1, 3, 0, 2: w = 2, then 4 has label 0: w = -2, then 1 has label 1: w = -1, then 3 is right.
    assert model.mistake_order_.tolist() == [1, 3, 0]
    assert model.coef_.tolist() == [[-1.0]]


def test_given_order_is_the_order_of_the_rows_or_of_the_curriculum(noisy):
    X, _, labels = noisy
    shuffle = np.random.default_rng(3).permutation(len(X))
    by_rows = EasyFirstPerceptron("given", n_epochs=2).fit(X[shuffle], labels[shuffle])
    by_curriculum = EasyFirstPerceptron("given", n_epochs=2).fit(X, labels, curriculum=shuffle)
    assert np.array_equal(by_rows.coef_, by_curriculum.coef_)
    assert np.array_equal(shuffle[by_rows.mistake_order_], by_curriculum.mistake_order_)


def test_known_margins_give_the_order_and_the_regions():
    X = np.array([[0.2, 0.1], [-0.9, 0.1], [0.5, -0.6]])
    model = EasyFirstPerceptron("margin", n_epochs=1, fit_intercept=False)
    model.fit(X, [1, 0, 1], margins=[0.2, 0.9, 0.5])
    # Fed as 1, 2, 0: a mistake on 1 makes w = (0.9, -0.1), with which 2 and 0 are right.
    assert model.mistake_order_.tolist() == [1]
    assert model.mistakes_per_region_.tolist() == [0, 0, 0, 1]
    bound = model.bound(X, u=[1.0, 0.0])
    assert (bound.margin, bound.n_regions, bound.deviation) == (0.2, 4, 0.0)
    assert bound.spread == pytest.approx(np.std([0, 0, 0, 1]))


def test_margins_are_estimated_when_none_are_known(noisy):
    X, truth, labels = noisy
    model = EasyFirstPerceptron("margin", n_epochs=2, average=True).fit(X, labels)
    assert model.margins_.min() >= 0
    assert model.score(X, truth) > 0.7
    assert model.bound().value >= model.n_mistakes_


def noisy_with_an_expert(seed=0, n=400):
    rng = np.random.default_rng(seed)
    truth = np.tile([-1, 1], n // 2)
    X = rng.normal(size=(n, 10)) + 0.5 * truth[:, np.newaxis]
    return X, truth, simulate_annotators(X, truth, 10, clarity=1.0, experts=1, random_state=rng)


def test_kernel_and_metric_are_those_of_the_estimated_margins(noisy):
    X, _, labels = noisy
    chosen = {"kernel": lambda left, right: (1 + left @ right.T) ** 2, "metric": "cityblock"}
    model = EasyFirstPerceptron("margin", **chosen).fit(X, labels)
    found = estimate_margins(X, labels, **chosen)
    np.testing.assert_array_equal(model.margins_, found.margins)
    np.testing.assert_array_equal(model.expertise_, found.expertise)
    np.testing.assert_array_equal(model.radii_, found.radii)
    batch = EasyFirstPerceptron("margin", **chosen).partial_fit(X, labels)
    np.testing.assert_array_equal(batch.coef_, EasyFirstPerceptron("margin", n_epochs=1, **chosen).fit(X, labels).coef_)


def test_the_margin_order_learns_the_estimated_labels_and_not_the_majority():
    X, truth, labels = noisy_with_an_expert()
    model = EasyFirstPerceptron("margin", average=True).fit(X, labels)
    assert (labels.majority() == truth).mean() < 0.55
    assert np.array_equal(model.consensus_, truth)  # the expert is found
    assert model.expertise_.argmax() == 10
    assert model.score(X, truth) > 0.9


def test_the_margin_order_equals_the_textbook_loop_over_the_papers_sequence():
    X, _, labels = noisy_with_an_expert()
    found = estimate_margins(X, labels)
    order = np.argsort(-found.margins, kind="stable")
    order = order[found.signs[order] != 0]
    weights, mistakes, _ = plain_perceptron(X, found.signs, [order] * 2, 10)
    model = EasyFirstPerceptron("margin", n_epochs=2, fit_intercept=False).fit(X, labels)
    assert model.mistake_order_.tolist() == mistakes
    assert np.array_equal(model.coef_[0], weights)
    assert np.array_equal(model.margins_, found.margins)
    assert np.array_equal(model.expertise_, found.expertise)
    assert np.array_equal(model.radii_, found.radii)


def test_with_known_margins_labels_are_estimated_all_the_same():
    X, truth, labels = noisy_with_an_expert()
    model = EasyFirstPerceptron("margin").fit(X, labels, margins=np.abs(X.sum(axis=1)))
    assert np.array_equal(model.consensus_, truth)
    assert not hasattr(model, "radii_")


def test_margins_are_matched_with_the_ids_of_the_examples(noisy):
    X, _, labels = noisy
    frame = pd.DataFrame(X, index=[f"e{i}" for i in range(len(X))], columns=list("abcd"))
    margins = pd.Series(np.abs(X[:, 0]), index=frame.index)
    plain = EasyFirstPerceptron("margin").fit(frame, labels, margins=margins.to_numpy())
    for shuffled in (margins[::-1], dict(margins[::-1])):
        assert np.array_equal(EasyFirstPerceptron("margin").fit(frame, labels, margins=shuffled).coef_, plain.coef_)


def sparse_crowd(n_examples=1000, n_annotators=1000, per_example=3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_examples, 5))
    example = np.repeat(np.arange(n_examples), per_example)
    annotator = np.concatenate([rng.choice(n_annotators, per_example, replace=False) for _ in range(n_examples)])
    label = (X[example, 0] > 0) ^ (rng.random(len(example)) < 0.25)
    table = {"example": example, "annotator": annotator, "label": label.astype(int)}
    return X, CrowdLabels.from_table(table, examples=np.arange(n_examples), annotators=np.arange(n_annotators))


@pytest.mark.slow
def test_memory_is_not_in_proportion_to_examples_times_annotators():
    X, labels = sparse_crowd()
    tracemalloc.start()
    try:
        EasyFirstPerceptron("margin").fit(X, labels)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 150 * 2**20  # squared errors of all radii and annotators would be 4 GB


def test_results_carry_ids_and_come_as_frames(noisy):
    X, _, labels = noisy
    names = [f"e{i}" for i in range(len(X))]
    named = CrowdLabels.from_matrix(labels.to_matrix(), examples=names, annotators=list("abcdefg"))
    for order in ("disagreement", "margin"):
        model = EasyFirstPerceptron(order).fit(X, named)
        assert model.examples_.tolist() == names
        assert model.annotators_.tolist() == list("abcdefg")
        frame = model.consensus_frame()
        assert list(frame) == ["example", "label", "disagreement", "margin"]
        assert frame["label"].tolist() == model.consensus_.tolist()
        annotators = model.annotators_frame()
        more = ["expertise", "radius"] if order == "margin" else []
        assert list(annotators) == ["annotator", "labels", *more, "flags"]
        assert annotators["labels"].tolist() == [300] * 7


def test_annotators_who_go_against_the_learnt_labels_are_flagged(noisy):
    X, _, labels = noisy
    matrix = labels.to_matrix()
    wrong = np.where(labels.majority() == "yes", "no", "yes")
    silent = np.full(len(X), None, dtype=object)
    model = EasyFirstPerceptron().fit(X, np.column_stack([matrix, wrong, silent]))
    assert model.annotator_flags_ == {7: ("worse than chance",), 8: ("no labels",)}


def test_another_order_forgets_what_only_margins_have(noisy):
    X, _, labels = noisy
    model = EasyFirstPerceptron("margin").fit(X, labels)
    model.set_params(order="disagreement").fit(X, labels)
    assert not hasattr(model, "expertise_")
    assert not hasattr(model, "radii_")


def test_separable_labels_converge_and_others_do_not(noisy):
    X, truth, labels = noisy
    assert not EasyFirstPerceptron().fit(X, labels).converged_
    assert EasyFirstPerceptron("given", n_epochs=1000).fit(X, truth).converged_


def test_score_takes_labels_of_a_crowd(noisy):
    X, truth, labels = noisy
    model = EasyFirstPerceptron(average=True).fit(X, labels)
    right = labels.to_matrix() == model.predict(X)[:, np.newaxis]
    assert model.score(X, labels) == pytest.approx(right.mean())
    assert model.score(X, truth) == pytest.approx((model.predict(X) == truth).mean())


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_features_that_are_not_finite_are_reported_with_their_place(noisy, bad):
    X, _, labels = noisy
    model = EasyFirstPerceptron().fit(X, labels)
    broken = X.copy()
    broken[17, 2] = bad
    for call in (
        lambda: EasyFirstPerceptron().fit(broken, labels),
        lambda: EasyFirstPerceptron("margin").fit(broken, labels),
        lambda: EasyFirstPerceptron().partial_fit(broken, labels),
        lambda: model.predict(broken),
        lambda: model.score(broken, labels),
        lambda: model.bound(broken, u=np.ones(4)),
        lambda: estimate_margins(broken, labels),
    ):
        with pytest.raises(DataError, match="row 17 column 2"):
            call()


@pytest.mark.parametrize("order", ["disagreement", "margin"])
def test_labels_that_make_no_example_easier_are_noted(noisy, order):
    X, truth, _ = noisy
    with pytest.warns(CrowdWarning, match="there is one annotator, so there is no disagreement") as noted:
        EasyFirstPerceptron(order).fit(X, truth)
    assert noted[0].filename == __file__
    apart = np.full((300, 2), None, dtype=object)
    apart[:150, 0], apart[150:, 1] = truth[:150], truth[150:]
    with pytest.warns(CrowdWarning, match="no two annotators share an example"):
        EasyFirstPerceptron(order).fit(X, apart)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_fit_that_is_interrupted_changes_nothing(noisy, monkeypatch, method):
    X, _, labels = noisy
    model = EasyFirstPerceptron("random", random_state=0)
    model.partial_fit(X[:100], labels[:100])
    twin = pickle.loads(pickle.dumps(model))

    def interrupted(signed, mistakes, start):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(online, "weight_sum", interrupted)
        with pytest.raises(KeyboardInterrupt):
            getattr(model, method)(X[100:200], labels[100:200])
    for each in (model, twin):
        each.partial_fit(X[200:], labels[200:])
    assert np.array_equal(model.coef_, twin.coef_)
    assert np.array_equal(model.mistake_order_, twin.mistake_order_)


def test_after_partial_fit_results_about_examples_are_not_there(noisy):
    X, _, labels = noisy
    model = EasyFirstPerceptron("margin").fit(X, labels).partial_fit(X, labels)
    assert not hasattr(model, "consensus_")
    with pytest.raises(DataError, match="partial_fit does not keep them"):
        model.consensus_frame()
    with pytest.raises(LabelError, match="both classes are needed at"):
        EasyFirstPerceptron().partial_fit([[1.0]], [3])


def test_random_order_is_new_in_every_epoch_and_seeded(noisy):
    X, _, labels = noisy
    fits = [EasyFirstPerceptron("random", n_epochs=2, random_state=seed).fit(X, labels) for seed in (0, 0, 1)]
    assert np.array_equal(fits[0].mistake_order_, fits[1].mistake_order_)
    assert not np.array_equal(fits[0].mistake_order_, fits[2].mistake_order_)


@one_annotator
def test_a_pass_without_mistakes_is_the_last():
    X, y = np.array([[1.0], [-1.0], [2.0]]), [1, 0, 1]
    model = EasyFirstPerceptron(n_epochs=50).fit(X, y)
    # With the constant feature: (1, 1) makes w = (1, 1), on which -(-1, 1) scores 0, a mistake; then w = (2, 0).
    assert model.mistakes_per_epoch_.tolist() == [2, 0]
    assert model.n_epochs_ == 2


@one_annotator
@many_examples(150)
@given(st.data())
def test_the_bound_is_never_below_the_mistakes_whatever_the_data(data):
    m, n = data.draw(st.integers(2, 12)), data.draw(st.integers(1, 3))
    number = st.integers(-4, 4)
    X = np.array(data.draw(st.lists(st.lists(number, min_size=n, max_size=n), min_size=m, max_size=m)), dtype=float)
    y = data.draw(st.lists(st.booleans(), min_size=m, max_size=m).filter(lambda y: any(y) and not all(y)))
    margins = data.draw(st.none() | st.lists(st.floats(0.01, 8), min_size=m, max_size=m))
    model = EasyFirstPerceptron(
        data.draw(st.sampled_from(["disagreement", "random"])),
        n_epochs=data.draw(st.integers(1, 20)),
        average=data.draw(st.booleans()),
        max_regions=data.draw(st.integers(1, 30)),
        random_state=0,
    ).fit(X, y, margins=margins)
    for bound in (model.bound(), model.bound(X, u=np.r_[1.0, np.zeros(n)])):
        assert model.n_mistakes_ <= bound.value * (1 + 1e-9)
        assert model.n_mistakes_ <= bound.novikoff * (1 + 1e-9)
        assert bound.n_mistakes == model.n_mistakes_


def test_batches_in_given_order_equal_one_pass_over_all(noisy):
    X, _, labels = noisy
    whole = EasyFirstPerceptron("given", n_epochs=1, average=True).fit(X, labels)
    parts = EasyFirstPerceptron("given", average=True)
    for rows in np.array_split(np.arange(len(X)), 7):
        parts.partial_fit(X[rows], labels[rows], classes=["no", "yes"])
    assert np.array_equal(parts.mistake_order_, whole.mistake_order_)
    assert np.allclose(parts.coef_, whole.coef_, rtol=1e-12)
    assert parts.radius_ == whole.radius_
    with pytest.raises(DataError, match="partial_fit does not keep"):
        parts.bound()


def test_a_batch_may_have_one_class_only():
    model = EasyFirstPerceptron().partial_fit([[1.0]], [3], classes=[3, 5])
    assert model.partial_fit([[2.0]], [5]).classes_.tolist() == [3, 5]
    with pytest.raises(LabelError, match=r"the classes \[4\] are not among those of the fit, \[3, 5\]"):
        model.partial_fit([[2.0]], [4])


def test_examples_without_a_majority_take_no_part(noisy):
    X, _, labels = noisy
    matrix = labels.to_matrix()
    extra = np.vstack([matrix, [["yes", "no"] * 3 + [None]], [[None] * 7]])
    with pytest.warns(CrowdWarning, match="1 of 302 examples has"):
        more = EasyFirstPerceptron().fit(np.vstack([X, [[50.0] * 4], [[-50.0] * 4]]), extra)
    plain = EasyFirstPerceptron().fit(X, matrix)
    assert np.array_equal(more.coef_, plain.coef_)
    assert more.consensus_[-2:].tolist() == more.predict([[50.0] * 4, [-50.0] * 4]).tolist()
    assert more.bound() == plain.bound()


@one_annotator
def test_a_column_of_labels_is_one_annotator_with_a_warning(noisy):
    X, truth, _ = noisy
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        column = EasyFirstPerceptron().fit(X, truth[:, np.newaxis])
    assert np.array_equal(column.coef_, EasyFirstPerceptron().fit(X, truth).coef_)


def test_exchanging_the_classes_turns_the_weights_around(noisy):
    X, _, labels = noisy
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        there = EasyFirstPerceptron().fit(X, labels)
        back = EasyFirstPerceptron().fit(X, CrowdLabels.from_matrix(labels.to_matrix(), classes=["yes", "no"]))
    assert np.array_equal(there.coef_, -back.coef_)
    assert there.bound() == back.bound()


def test_scaling_the_examples_scales_nothing_but_the_weights(noisy):
    X, _, labels = noisy
    one = EasyFirstPerceptron(fit_intercept=False).fit(X, labels)
    four = EasyFirstPerceptron(fit_intercept=False).fit(4 * X, labels)
    assert np.array_equal(4 * one.coef_, four.coef_)
    assert one.bound().value == pytest.approx(four.bound().value)
    assert np.array_equal(one.mistakes_per_region_, four.mistakes_per_region_)


def test_a_pickle_has_its_bound(noisy):
    X, _, labels = noisy
    model = EasyFirstPerceptron().fit(X, labels)
    assert pickle.loads(pickle.dumps(model)).bound() == model.bound()


@pytest.mark.parametrize(
    ("change", "arguments", "match"),
    [
        ({"order": "hardest"}, {}, 'order must be "disagreement", "margin", "given" or "random"; got'),
        ({"n_epochs": 0}, {}, "n_epochs must be a whole number"),
        ({"max_regions": 2.5}, {}, "max_regions must be a whole number"),
        ({"n_epochs": 1.5}, {}, "n_epochs must be a whole number >= 1; got 1.5"),
        ({"n_epochs": True}, {}, "n_epochs must be a whole number >= 1; got True"),
        ({"max_regions": "9"}, {}, "max_regions must be a whole number"),
        ({"average": 1}, {}, "average must be True or False; got 1"),
        ({"random_state": "a"}, {}, "random_state must be"),
        ({}, {"curriculum": [0, 1]}, 'curriculum is for order="given"'),
        ({"order": "given"}, {"curriculum": [0, 300]}, "positions of examples, 0 to 299"),
        ({"order": "margin"}, {"margins": [1.0]}, "300 finite numbers"),
    ],
)
def test_wrong_settings_are_reported(noisy, change, arguments, match):
    X, _, labels = noisy
    with pytest.raises(ValueError, match=match):
        EasyFirstPerceptron(**change).fit(X, labels, **arguments)


@pytest.mark.parametrize(
    ("y", "match"),
    [([0, 1, 2], "Only binary"), ([1, 1, 1], "two classes"), ([[0, 1]] * 3, "no example has a majority")],
)
def test_labels_with_nothing_to_learn_are_reported(y, match):
    with pytest.raises(LabelError, match=match):
        EasyFirstPerceptron().fit(np.eye(3), y)


def test_a_declared_class_that_nobody_chose_is_reported():
    with pytest.raises(LabelError, match="all labels are of the"):
        EasyFirstPerceptron().fit(np.eye(3), CrowdLabels.from_matrix([[1], [1], [1]], classes=[0, 1]))


def test_a_vector_or_examples_of_the_wrong_length_are_reported(noisy):
    X, _, labels = noisy
    model = EasyFirstPerceptron().fit(X, labels)
    with pytest.raises(DataError, match="u must have 5 finite numbers"):
        model.bound(X, u=[1.0, 2.0])
    with pytest.raises(DataError, match="X must be the 300"):
        model.bound(X[1:], u=[1.0, 2.0, 3.0, 4.0])
    with pytest.raises(DataError, match="X is missing"):
        model.bound(u=[1.0, 2.0, 3.0, 4.0])
