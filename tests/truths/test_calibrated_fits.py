"""Known classes in the em models: a slow twin of the rounds, crowds that are turned round, honest confidence."""

import numpy as np
import pytest
from all_models import crowd, fit_quietly
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise import CrowdLabels, CrowdLogisticClassifier, aggregate
from crowdwise.em import Confusion
from crowdwise.exceptions import CrowdWarning


def slow_rounds(matrix, known, n_classes, n_rounds, strength=3.0):
    """The method of Dawid and Skene with loops, the posterior of known examples being certain in every round."""
    n_examples, n_annotators = matrix.shape
    posterior = np.zeros((n_examples, n_classes))
    for i, row in enumerate(matrix):
        for value in row:
            posterior[i, value] += 1 / n_annotators
    for _ in range(n_rounds):
        for i, k in known.items():
            posterior[i] = np.eye(n_classes)[k]
        confusion = np.full((n_annotators, n_classes, n_classes), strength / n_classes)
        for i, row in enumerate(matrix):
            for j, value in enumerate(row):
                confusion[j, :, value] += posterior[i]
        confusion /= confusion.sum(axis=2, keepdims=True)
        frequency = posterior.sum(axis=0) + 1
        frequency /= frequency.sum()
        for i, row in enumerate(matrix):
            likelihood = frequency * np.prod([confusion[j, :, value] for j, value in enumerate(row)], axis=0)
            posterior[i] = likelihood / likelihood.sum()
    return confusion, frequency


@pytest.mark.parametrize("patterns", [True, False])
def test_known_classes_equal_the_slow_twin(patterns, monkeypatch):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 60)
    matrix = np.where(rng.random((60, 3)) < [0.9, 0.7, 0.6], truth[:, None], 1 - truth[:, None])
    known = {i: int(1 - truth[i]) if i < 4 else int(truth[i]) for i in range(12)}
    if not patterns:
        everything = "crowdwise.em.aggregate.distinct_patterns", lambda labels, weight, known: (labels, weight, None)
        monkeypatch.setattr(*everything)
    settings = {"annotator_model": Confusion(), "hard_examples": False, "tol": 1e-12, "max_rounds": 5000}
    found = aggregate(matrix, truth=known, **settings)
    confusion, frequency = slow_rounds(matrix, known, 2, 500)
    assert_allclose(found.confusion, confusion, atol=1e-6)
    assert_allclose(found.class_prior, frequency, atol=1e-6)
    assert np.diff(found.objective).min() > -1e-9


def test_a_few_truths_turn_a_crowd_round_that_is_wrong_together():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 200)
    matrix = np.where(rng.random((200, 5)) < 0.2, truth[:, None], 1 - truth[:, None])
    labels = CrowdLabels.from_matrix(matrix)
    assert (aggregate(labels).label == truth).mean() < 0.1
    found = aggregate(labels, truth=np.where(np.arange(200) < 25, truth, np.nan))
    assert (found.label == truth)[25:].mean() > 0.9
    assert found.truth_check.accuracy > 0.8
    more = aggregate(labels, truth=np.where(np.arange(200) < 50, truth, np.nan))
    assert set(more.annotator_flags) == set(range(5))
    assert all("worse than chance" in flags for flags in more.annotator_flags.values())


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
    gaps = []
    for seed in range(5):
        labels, truth = shared_errors(seed)
        known = np.where(np.arange(600) < 60, truth, np.nan)
        before, after = (aggregate(labels, truth=some, errors_in_common=False) for some in (None, known))
        right = [(found.label == truth)[60:].mean() for found in (before, after)]
        assert before.confidence[60:].mean() > right[0] + 0.15
        assert right[1] > right[0] + 0.04
        gaps.append(after.confidence[60:].mean() - right[1])
        low, high = after.truth_check.interval
        assert low < right[1] < high
    assert np.mean(gaps) == pytest.approx(0, abs=0.06)


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
    model = fit_quietly(CrowdLogisticClassifier(0.0, l2=1.0, hard_examples=False, cross_fit=0), X, labels, truth=known)
    again = model.consensus(X, labels)
    assert_allclose(again.proba[30:], model.consensus_proba_[30:], atol=1e-3)
    alone = model.consensus(X, labels, use_model=False)
    assert_allclose(alone.proba, model.label_proba_, atol=1e-12)


def test_levels_are_judged_by_what_is_taken_of_them():
    gaps, covered = [], 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        truth = rng.integers(1, 6, 150)
        stars = np.clip(truth[:, None] + rng.integers(-1, 2, (150, 4)) + [0, 0, 1, 1], 1, 5)
        known = np.where(np.arange(150) < 60, truth, np.nan)
        found = aggregate(stars, truth=known, kind="ordinal", errors_in_common=False)  # and they have none
        assert_array_equal(found.label[:60], truth[:60])
        low, high = found.truth_check.interval
        covered += low < (found.label == truth)[60:].mean() < high
        gaps.append(found.confidence[60:].mean() - (found.label == truth)[60:].mean())
    assert covered >= 4
    assert np.mean(gaps) == pytest.approx(0, abs=0.06)


def easy_and_hard(seed=3):
    """Labels of six: nearly all are right on the first 200 examples, and they guess on the last 100."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, 300)
    wrong = rng.random((300, 6)) < np.repeat([0.05, 0.5], [200, 100])[:, None]
    return np.where(wrong, 1 - truth[:, None], truth[:, None]), truth


def test_answers_to_hard_examples_only_do_not_calibrate_the_others(monkeypatch):
    matrix, truth = easy_and_hard()
    known = dict(zip(range(200, 250), truth[200:250].tolist(), strict=True))
    with pytest.warns(CrowdWarning, match="the known answers are of examples unlike the others: stated confidence wo"):
        found = aggregate(matrix, truth=known)
    assert found.label[200:250].tolist() == truth[200:250].tolist()
    assert (found.label == truth)[:200].mean() > 0.9
    assert not found.truth_check.at_random
    assert found.truth_check.others == pytest.approx(np.delete(found.confidence, np.arange(200, 250)).mean())
    monkeypatch.setattr("crowdwise.truths.draw._UNCOVERED", 2.0)
    assert (aggregate(matrix, truth=known).label == truth)[:200].mean() < 0.1  # learnt from guesses


def test_answers_at_random_do():
    matrix, truth = easy_and_hard()
    found = aggregate(matrix, truth={i: int(truth[i]) for i in range(0, 300, 6)})
    assert found.truth_check.at_random
    assert found.fitted.calibration.votes
    assert (found.label == truth)[:200].mean() > 0.95
