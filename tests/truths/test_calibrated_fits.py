"""Known classes in the em models: a slow twin of the rounds, crowds that are turned round, honest confidence."""

import numpy as np
import pytest
from all_models import crowd, fit_quietly
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise import CrowdLabels, CrowdLogisticClassifier, aggregate
from crowdwise.exceptions import CrowdWarning


def test_annotators_are_estimated_without_known_answers():
    """What labels show stays what it is; only probabilities are calibrated."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 60)
    matrix = np.where(rng.random((60, 3)) < [0.9, 0.7, 0.6], truth[:, None], 1 - truth[:, None])
    known = {i: int(1 - truth[i]) if i < 4 else int(truth[i]) for i in range(0, 60, 5)}
    before, after = aggregate(matrix), aggregate(matrix, truth=known)
    assert_array_equal(after.confusion, before.confusion)
    assert_array_equal(after.class_prior, before.class_prior)
    assert_array_equal(after.proba[list(known)], np.eye(2)[list(known.values())])
    assert np.abs(after.proba - before.proba).max() > 0.01


@pytest.mark.parametrize("patterns", [True, False])
def test_patterns_taken_together_are_calibrated_as_if_apart(patterns, monkeypatch):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 60)
    matrix = np.where(rng.random((60, 3)) < [0.9, 0.7, 0.6], truth[:, None], 1 - truth[:, None])
    known = {i: int(truth[i]) for i in range(0, 60, 5)}
    together = aggregate(matrix, truth=known)
    if not patterns:
        monkeypatch.setattr("crowdwise.em.aggregate.distinct_patterns", lambda labels, weight: (labels, weight, None))
    assert_allclose(aggregate(matrix, truth=known).proba, together.proba, atol=1e-6)


def test_a_few_truths_turn_a_crowd_round_that_is_wrong_together():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 200)
    matrix = np.where(rng.random((200, 5)) < 0.2, truth[:, None], 1 - truth[:, None])
    labels = CrowdLabels.from_matrix(matrix)
    assert (aggregate(labels).label == truth).mean() < 0.1
    found = aggregate(labels, truth=np.where(np.arange(200) < 25, truth, np.nan))
    assert (found.label == truth)[25:].mean() > 0.9
    assert found.truth_check.accuracy > 0.8


def shared_errors(seed, n=600):
    """Labels of annotators of whom four copy one another, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, n)

    def answers(accuracy):
        return np.where(rng.random(n) < accuracy, truth, rng.integers(0, 3, n))

    copied = answers(0.5)
    copies = [np.where(rng.random(n) < 0.95, copied, rng.integers(0, 3, n)) for _ in range(4)]
    return CrowdLabels.from_matrix(np.column_stack([answers(0.6), answers(0.6), *copies])), truth


def test_truths_make_confidence_honest_and_outvote_copies():
    gaps, gained = [], []
    for seed in range(5):
        labels, truth = shared_errors(seed)
        known = np.where(np.arange(600) < 60, truth, np.nan)
        before, after = (aggregate(labels, truth=some, errors_in_common=False) for some in (None, known))
        right = [(found.label == truth)[60:].mean() for found in (before, after)]
        assert before.confidence[60:].mean() > right[0] + 0.15
        assert right[1] > right[0]
        gained.append(right[1] - right[0])
        gaps.append(after.confidence[60:].mean() - right[1])
        low, high = after.truth_check.interval
        assert low < right[1] < high
    assert np.mean(gaps) == pytest.approx(0, abs=0.04)
    assert np.mean(gained) > 0.03


def test_one_annotator_is_believed_as_far_as_truths_bear_out():
    truth = np.arange(100) % 2
    said = np.where(np.arange(100) % 5 == 0, 1 - truth, truth)  # right on four of five
    found = aggregate(said[:, np.newaxis], truth=np.where(np.arange(100) < 40, truth, np.nan))
    assert_array_equal(found.label[40:], said[40:])
    assert found.confidence[40:].mean() == pytest.approx(0.8, abs=0.03)
    assert found.truth_check.accuracy == 0.8


def test_new_labels_are_calibrated_as_those_of_the_fit():
    X, truth, labels = crowd(n=120, missing=0.3)
    known = [*truth[:30].tolist(), *[None] * 90]
    model = fit_quietly(CrowdLogisticClassifier(0.0, l2=1.0, cross_fit=0), X, labels, truth=known)
    again = model.consensus(X, labels)
    assert_allclose(again.proba[30:], model.consensus_proba_[30:], atol=1e-3)
    alone = model.consensus(X, labels, use_model=False)
    assert_allclose(alone.proba, model.results_.label_consensus.proba, atol=1e-12)


def test_levels_are_judged_by_what_is_taken_of_them():
    gaps, errors = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth = rng.integers(1, 6, 150)
        stars = np.clip(truth[:, None] + rng.integers(-1, 2, (150, 4)) + [0, 0, 1, 1], 1, 5)
        known, levels = np.where(np.arange(150) < 60, truth, np.nan), CrowdLabels.from_matrix(stars, scale="ordinal")
        found = aggregate(levels, truth=known, errors_in_common=False)  # and they have none
        assert_array_equal(found.label[:60], truth[:60])
        accuracy = (found.label == truth)[60:].mean()
        error = np.sqrt(accuracy * (1 - accuracy) * (1 / 60 + 1 / 90))  # of the difference of two samples
        errors.append((accuracy - found.truth_check.accuracy) / error)
        gaps.append(found.confidence[60:].mean() - accuracy)
    assert (np.abs(errors) < 1.96).sum() >= 18
    assert np.mean(errors) == pytest.approx(0, abs=0.5)
    assert np.mean(gaps) == pytest.approx(0, abs=0.05)


def easy_and_hard(seed=3):
    """Labels of six: nearly all are right on the first 200 examples, and they guess on the last 100."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, 300)
    wrong = rng.random((300, 6)) < np.repeat([0.05, 0.5], [200, 100])[:, None]
    return np.where(wrong, 1 - truth[:, None], truth[:, None]), truth


def test_answers_to_hard_examples_only_do_not_calibrate_the_others():
    matrix, truth = easy_and_hard()
    known = dict(zip(range(200, 250), truth[200:250].tolist(), strict=True))
    with pytest.warns(CrowdWarning, match="the examples with known answers differ"):
        found = aggregate(matrix, truth=known)
    assert found.label[200:250].tolist() == truth[200:250].tolist()
    assert (found.label == truth)[:200].mean() > 0.9
    assert not found.truth_check.at_random
    assert found.truth_check.others == pytest.approx(np.delete(found.confidence, np.arange(200, 250)).mean())


def test_answers_at_random_do():
    matrix, truth = easy_and_hard()
    found = aggregate(matrix, truth={i: int(truth[i]) for i in range(0, 300, 6)})
    assert found.truth_check.at_random
    assert found.fitted.calibration.own_share < 1
    assert (found.label == truth)[:200].mean() > 0.95


def one_good_judge(seed):
    """Labels of a judge who is right in nine of ten cases and of five who err together, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, 400)
    misled = np.where(rng.random(400) < 0.6, rng.integers(0, 3, 400), truth)
    others = np.where(rng.random((400, 5)) < 0.3, rng.integers(0, 3, (400, 5)), misled[:, None])
    good = np.where(rng.random(400) < 0.15, rng.integers(0, 3, 400), truth)
    return CrowdLabels.from_matrix(np.column_stack([good, others])), truth


def test_one_good_judge_among_five_who_err_together_is_followed():
    right = []
    for seed in range(6):
        labels, truth = one_good_judge(seed)
        known = np.where(np.arange(400) < 50, truth, np.nan)
        before, after = (aggregate(labels, truth=some) for some in (None, known))
        right.append([(found.label == truth)[50:].mean() for found in (before, after)])
    assert np.mean(right, axis=0)[1] > np.mean(right, axis=0)[0] + 0.1


@pytest.mark.parametrize(("n_classes", "accuracy"), [(2, 0.7), (2, 0.9), (4, 0.6)])
def test_fifty_random_truths_cost_little_where_labels_leave_nothing_to_learn(n_classes, accuracy):
    """Errors are independent, so that without truths the posterior is the best there is: at most two points."""
    gains = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        truth = rng.integers(0, n_classes, 400)
        wrong = (truth[:, None] + rng.integers(1, n_classes, (400, 5))) % n_classes
        matrix = np.where(rng.random((400, 5)) < accuracy, truth[:, None], wrong)
        known = rng.permutation(400)[:50]
        rest = np.delete(np.arange(400), known)
        before, after = (
            aggregate(CrowdLabels.from_matrix(matrix, classes=range(n_classes)), truth=some)
            for some in (None, dict(zip(known.tolist(), truth[known].tolist(), strict=True)))
        )
        gains.append((after.label == truth)[rest].mean() - (before.label == truth)[rest].mean())
        assert after.truth_check.at_random
    assert np.mean(gains) > -0.02


def test_known_answers_are_targets_of_the_classifier():
    X, truth, labels = crowd(n=120, missing=0.3)
    wrong = {i: int(1 - truth[i]) for i in range(0, 120, 2)}
    plain, told = (fit_quietly(CrowdLogisticClassifier(l2=1.0), X, labels, truth=known) for known in (None, wrong))
    at = list(wrong)
    agrees = [(model.predict(X)[at] == list(wrong.values())).mean() for model in (plain, told)]
    assert agrees[1] > agrees[0] + 0.1
