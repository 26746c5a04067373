"""What votes count: by a slow twin, and for annotators in any order."""

import numpy as np
import pytest
from crowdwise.truths.vote_weights import Ballot
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import logsumexp

from crowdwise import CrowdLabels


def votes(seed=0, n=40, n_annotators=3, n_classes=3):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n)
    right = rng.random((n, n_annotators)) < [0.9, 0.6, 0.4]
    matrix = np.where(right, truth[:, None], rng.integers(0, n_classes, (n, n_annotators))).astype(object)
    matrix[rng.random(matrix.shape) < 0.2] = None
    return CrowdLabels.from_matrix(matrix, classes=range(n_classes), annotators=["a", "b", "c"]), truth


def slow_fit(labels, truth, *, answers):
    """The penalised likelihood with loops, minimised without a gradient of our own."""
    n_annotators, n_classes = labels.n_annotators, len(labels.classes)
    n_free = n_annotators * n_classes * n_classes if answers else 0
    matrix = labels.to_matrix()

    def scores(parameters, row):
        any_vote, own, classes = parameters[0], parameters[1 : 1 + n_annotators], parameters[1 + n_annotators :]
        total = list(classes[:n_classes])
        for j, value in enumerate(row):
            if value is None or np.isnan(value):
                continue
            total[int(value)] += any_vote + own[j]
            for k in range(n_classes if answers else 0):
                total[k] += classes[n_classes + (j * n_classes + int(value)) * n_classes + k]
        return total

    def loss(parameters):
        penalty = 0.1 * (parameters[0] - 0.5) ** 2 + 4 * (parameters[1 : 1 + n_annotators] ** 2).sum()
        penalty += 0.2 * (parameters[1 + n_annotators : 1 + n_annotators + n_classes] ** 2).sum()
        penalty += (parameters[1 + n_annotators + n_classes :] ** 2).sum()
        told = [scores(parameters, row) for row in matrix]
        return penalty / 2 - sum(row[k] - logsumexp(row) for row, k in zip(told, truth, strict=True))

    start = np.zeros(1 + n_annotators + n_classes + n_free)
    found = minimize(loss, start, options={"gtol": 1e-6}).x
    logits = np.array([scores(found, row) for row in matrix])
    return logits - logsumexp(logits, axis=1, keepdims=True)


def test_weights_per_annotator_equal_the_slow_twin():
    labels, truth = votes(n=15)
    fast = Ballot.of(labels, truth, 3).fit(answers=False)
    assert_allclose(fast.log_proba(labels), slow_fit(labels, truth, answers=False), atol=1e-4)


@pytest.mark.slow
def test_weights_per_answer_equal_the_slow_twin():
    labels, truth = votes(n=15)
    fast = Ballot.of(labels, truth, 3).fit(answers=True)
    assert_allclose(fast.log_proba(labels), slow_fit(labels, truth, answers=True), atol=1e-4)


def test_annotators_in_another_order_change_nothing_and_unknown_ones_count_as_anybody():
    labels, truth = votes(1)
    weights = Ballot.of(labels, truth, 3).fit(answers=True)
    swapped = CrowdLabels.from_matrix(labels.to_matrix()[:, [2, 0, 1]], classes=range(3), annotators=["c", "a", "b"])
    assert_allclose(weights.log_proba(swapped), weights.log_proba(labels), rtol=1e-12)
    new = CrowdLabels.from_matrix([[0, 1]], classes=range(3), annotators=["nobody", "a"])
    added = weights.table[-1][0] + weights.table[0][1] + weights.classes
    assert_allclose(weights.log_proba(new)[0], added - logsumexp(added), rtol=1e-12)
    assert (np.diag(weights.table[-1]) > 0).all()


def test_without_truths_any_vote_counts_the_same():
    labels, truth = votes()
    weights = Ballot.of(labels, truth, 3).of_rows(np.empty(0, dtype=int)).fit(answers=True)
    assert_allclose(weights.table, np.broadcast_to(0.5 * np.eye(3), (4, 3, 3)), atol=1e-12)
    assert_allclose(weights.classes, 0, atol=1e-12)
