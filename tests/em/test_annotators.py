from itertools import product
from math import lgamma

import numpy as np
import pytest
from crowds import HeldCrowd, crowd, labels_of
from crowdwise.em.labels_alone import check_hard_examples, fit_labels
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from crowdwise import aggregate
from crowdwise.em import Confusion, OneCoin, Shared
from crowdwise.em.annotators import Annotators, Behaviour, first_difficulty
from crowdwise.em.confusion import Incidence

quiet = pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdConvergenceWarning")


def tempting_crowd(seed=1, n_examples=600, tempting=0.3):
    """Two classes; some examples of the first tempt nine of twelve annotators, who miss a quarter of the second."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n_examples) < 0.4).astype(int)
    hard = (truth == 0) & (rng.random(n_examples) < tempting)
    wrong = np.where(hard, 0.5, np.where(truth == 1, 0.25, 0.05))[:, None] * np.ones(12)
    wrong[:, :3] = 0.05
    flipped = rng.random(wrong.shape) < wrong
    return np.where(flipped, 1 - truth[:, None], truth[:, None]), truth, hard


def twin(matrix, n_classes, n_difficulties, n_rounds, strength):
    """Rounds with loops over labels: states of class and kind, confusion matrices with labels spread evenly."""
    states = list(product(range(n_difficulties), range(n_classes)))
    posterior = []
    for row in matrix:
        shares = [sum(v == k for v in row) / sum(v is not None for v in row) for k in range(n_classes)]
        clarity = (max(shares) - 1 / n_classes) / (1 - 1 / n_classes)
        near = [
            0.05 + max(0.0, 1 - abs(clarity - place) * (n_difficulties - 1))
            for place in np.linspace(1, 0, n_difficulties)
        ]
        posterior.append([near[j] / sum(near) * shares[k] for j, k in states])
    for _ in range(n_rounds):
        counts = np.full((len(matrix[0]), len(states), n_classes), strength / n_classes)
        size = {state: sum(p[s] for p in posterior) for s, state in enumerate(states)}
        for row, p in zip(matrix, posterior, strict=True):
            for annotator, label in enumerate(row):
                if label is not None:
                    counts[annotator, :, label] += p
        confusion = counts / counts.sum(axis=2, keepdims=True)
        in_class = [sum(size[j, k] for j in range(n_difficulties)) for k in range(n_classes)]
        prior = [(in_class[k] + 1) / (len(matrix) + n_classes) for k in range(n_classes)]
        share = {(j, k): (size[j, k] + 1) / (in_class[k] + n_difficulties) for j, k in states}
        posterior = []
        for row in matrix:
            joint = [
                prior[k] * share[j, k]
                * np.prod([confusion[a, s, label] for a, label in enumerate(row) if label is not None])
                for s, (j, k) in enumerate(states)
            ]  # fmt: skip
            posterior.append([value / sum(joint) for value in joint])
    by_kind = np.array(posterior).reshape(len(matrix), n_difficulties, n_classes)
    return by_kind.sum(axis=1), by_kind[:, -1].sum(axis=1)


@quiet
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_difficulties", [2, 3])
def test_equals_the_slow_twin(n_classes, n_difficulties):
    _, matrix = crowd(n_classes=n_classes, missing=0.3)
    proba, hardness = twin(matrix.tolist(), n_classes, n_difficulties, 5, 2.0)
    fit = fit_labels(
        labels_of(matrix, n_classes), np.ones(len(matrix)), Confusion(2.0),
        difficulties=(n_difficulties,), max_rounds=5, tol=0.0, accelerate=False,
    )  # fmt: skip
    assert_allclose(fit.rounds.posterior, proba, rtol=1e-8, atol=1e-12)
    assert_allclose(fit.annotators.hardness(fit.rounds.posterior), hardness, rtol=1e-8, atol=1e-12)
    assert fit.annotators.n_difficulties == n_difficulties


@pytest.mark.parametrize("model", [Confusion(), OneCoin(), HeldCrowd(Shared())], ids=repr)
@given(seed=st.integers(0, 10**6), n_classes=st.sampled_from([2, 3]), n_difficulties=st.sampled_from([2, 3]))
@settings(max_examples=15)
@quiet
def test_the_objective_never_falls(model, seed, n_classes, n_difficulties):
    _, matrix = crowd(seed, n_classes=n_classes, missing=0.3)
    fit = fit_labels(
        labels_of(matrix, n_classes), np.ones(len(matrix)), model, difficulties=(n_difficulties,), max_rounds=60
    )
    assert (np.diff(fit.rounds.objective) >= -1e-8).all()


def test_examples_that_tempt_everybody_are_found():
    gains = []
    for seed in range(6):
        matrix, truth, hard = tempting_crowd(seed)
        plain, found = aggregate(matrix, hard_examples=False), aggregate(matrix)
        assert (found.hard_examples, plain.hard_examples) == (True, False)
        assert found.hardness[hard].mean() > 0.8
        assert found.hardness[~hard & (truth == 0)].mean() < 0.2
        gains.append(np.mean(found.label == truth) - np.mean(plain.label == truth))
    assert np.mean(gains) > 0.005
    assert min(gains) >= 0
    assert_array_equal(plain.hardness, 0)
    assert "easy and hard" in repr(found)


def test_a_crowd_without_such_examples_has_none():
    for seed in range(5):
        matrix, _, _ = tempting_crowd(seed, tempting=0.0)
        found = aggregate(matrix)
        assert not found.hard_examples
        assert_array_equal(found.proba, aggregate(matrix, hard_examples=False).proba)


def test_many_examples_choose_as_some_of_them_do(monkeypatch):
    matrix, _, _ = tempting_crowd(n_examples=3000)
    matrix = np.where(np.random.default_rng(1).random(matrix.shape) < 0.2, np.nan, matrix)
    whole = aggregate(matrix, tol=1e-9)
    monkeypatch.setattr("crowdwise.em.labels_alone._ENOUGH", 500)
    some = aggregate(matrix, tol=1e-9)
    assert some.hard_examples == whole.hard_examples
    assert np.mean(some.label == whole.label) > 0.995  # they begin elsewhere, and the optimum is flat


def test_evidence_of_one_annotator_and_one_class_in_closed_form():
    # Labels 0, 0, 1 on examples that are surely of class 0: by Laplace, 2! 1! / 4! for the labels and, with classes
    # evenly distributed, 3! 0! / 4! for the classes.
    labels = labels_of([[0], [0], [1]])
    annotators = Annotators.of(Incidence.of(labels), Confusion(2.0), np.eye(2)[[0, 0, 0]], 1)
    found = annotators.evidence(np.eye(2)[[0, 0, 0]], np.ones(3))
    assert_allclose(found, np.log(2 / 24) + np.log(6 / 24))


@pytest.mark.parametrize("model", [Confusion(), OneCoin(), Shared()])
def test_evidence_is_below_the_probability_of_the_labels(model):
    """The bound of a few labels against the sum over all truths and kinds, annotators integrated out."""
    matrix = np.array([[0, 1], [1, 1], [0, 0]])
    incidence = Incidence.of(labels_of(matrix))
    annotators = Annotators.of(incidence, model, np.full((3, 2), 0.5), 2)
    posterior = np.array([[0.6, 0.4], [0.2, 0.8], [0.9, 0.1]])
    annotators.estimate(posterior, np.ones(3))
    crowd = annotators.behaviour.crowd.reshape(4, 2)
    total = -np.inf
    for states in product(range(4), repeat=3):
        state = np.eye(4)[list(states)]
        size = state.sum(axis=0).reshape(2, 2)
        classes = size.sum(axis=0)
        prior = lgamma(2) - lgamma(5) + sum(lgamma(1 + n) for n in classes)
        prior += sum(lgamma(2) - lgamma(2 + n) for n in classes) + sum(lgamma(1 + n) for n in size.ravel())
        total = np.logaddexp(total, prior + annotators.model.log_evidence(incidence.counts(state), crowd))
    assert annotators.evidence(posterior, np.ones(3)) < total < 0


def test_the_first_difficulty_goes_by_the_clarity_of_the_vote():
    votes = np.array([[1.0, 0.0], [0.5, 0.5], [0.75, 0.25]])
    assert_array_equal(first_difficulty(votes, 1), np.ones((3, 1)))
    assert_allclose(first_difficulty(votes, 2), np.array([[1.05, 0.05], [0.05, 1.05], [0.55, 0.55]]) / 1.1)


def test_behaviour_of_unknown_annotators_is_the_crowds(rng):
    confusion = rng.dirichlet(np.ones(3), size=(2, 2, 3))
    crowd_of_all = rng.dirichlet(np.ones(3), size=(2, 3))
    share = np.array([[0.7, 0.5, 0.2], [0.3, 0.5, 0.8]])
    behaviour = Behaviour(confusion, share, crowd_of_all).among(np.array([True, False, True]))
    wanted = behaviour.of(np.array([2, -1, 1, 0]))
    assert_array_equal(wanted.confusion, np.stack([confusion[1], crowd_of_all, crowd_of_all, confusion[0]]))
    by_hand = 0.7 * confusion[0, 0, 0] + 0.3 * confusion[0, 1, 0]
    assert_allclose(wanted.by_class()[3, 0], by_hand)


@pytest.mark.parametrize("hard_examples", [0, 1, 1.5, "many", None])
def test_hard_examples_that_cannot_be(hard_examples):
    with pytest.raises(ValueError, match="hard_examples must be True, False or"):
        check_hard_examples(hard_examples)
