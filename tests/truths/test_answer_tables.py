"""What single annotators say: tables by hand, a slow twin of the mixture, and a panel with one good judge."""

import numpy as np
from crowdwise.truths.answer_tables import AnswerTables
from crowdwise.truths.vote_weights import Ballot
from numpy.testing import assert_allclose

from crowdwise import CrowdLabels, aggregate


def tables(matrix, truth, n_classes=2, annotators=None):
    labels = CrowdLabels.from_matrix(matrix, classes=range(n_classes), annotators=annotators)
    return labels, AnswerTables.of(Ballot.of(labels, np.asarray(truth), n_classes))


def test_tables_by_hand():
    _, found = tables([[0], [0], [0], [1]], [0, 0, 1, 1])
    right = (3 + 2) / (4 + 3)
    # "0" was given three times and right twice, "1" once; ten answers that are right as often as all are added to each.
    assert_allclose(found.table[0, 0], [(2 + 10 * right) / 13, (1 + 10 * (1 - right)) / 13])
    assert_allclose(found.table[0, 1], [10 * (1 - right) / 11, (1 + 10 * right) / 11])


def random_votes(seed=0, n=30, n_classes=3):
    rng = np.random.default_rng(seed)
    matrix = rng.integers(0, n_classes, (n, 4)).astype(object)
    matrix[rng.random(matrix.shape) < 0.3] = None
    return matrix, rng.integers(0, n_classes, n), rng.dirichlet(np.ones(4))


def test_the_mixture_equals_loops_over_examples_and_annotators():
    matrix, truth, shares = random_votes()
    labels, found = tables(matrix, truth, 3)
    expected, right = np.zeros((30, 3)), np.zeros((30, 4))
    for i, row in enumerate(matrix):
        for j, answer in enumerate(row):
            proba = np.full(3, 1 / 3) if answer is None else found.table[j, answer]
            expected[i] += shares[j] * proba
            right[i, j] = proba[truth[i]]
    assert_allclose(found.mixed(labels, shares), expected)
    assert_allclose(expected.sum(axis=1), 1)
    assert_allclose(found.right(labels, truth), right)


def test_annotators_in_another_order_change_nothing_and_unknown_ones_say_nothing():
    matrix, truth, shares = random_votes(1)
    labels, found = tables(matrix, truth, 3, annotators=["a", "b", "c", "d"])
    other = np.column_stack([matrix[:, [2, 0, 3, 1]], matrix[:, :1]])
    more = CrowdLabels.from_matrix(other, classes=range(3), annotators=["c", "a", "d", "b", "new"])
    assert_allclose(found.mixed(more, shares), found.mixed(labels, shares))


def one_good_judge(seed):
    """Labels of a judge who is right in nine of ten cases and of five who err together, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, 400)
    misled = np.where(rng.random(400) < 0.6, rng.integers(0, 3, 400), truth)
    others = np.where(rng.random((400, 5)) < 0.3, rng.integers(0, 3, (400, 5)), misled[:, None])
    good = np.where(rng.random(400) < 0.15, rng.integers(0, 3, 400), truth)
    return CrowdLabels.from_matrix(np.column_stack([good, others])), truth


def test_one_good_judge_among_five_who_err_together_is_followed(monkeypatch):
    right = np.empty((2, 10))
    for j, panel in enumerate([50, 0]):  # with and without the answers of single judges
        monkeypatch.setattr("crowdwise.truths.calibration._PANEL", panel)
        for seed in range(10):
            labels, truth = one_good_judge(seed)
            found = aggregate(labels, truth=np.where(np.arange(400) < 50, truth, np.nan))
            right[j, seed] = (found.label == truth)[50:].mean()
    assert right[0].mean() > 0.86  # the good judge has 0.89, and labels alone 0.60
    assert right[0].mean() > right[1].mean() + 0.01
