"""Labels and a classifier in the same rounds: a short twin of Raykar et al., and what known classes are."""

import numpy as np
import pytest
from crowds import crowd, labels_of
from marks import in_slow_run
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

from crowdwise import CrowdLogisticClassifier
from crowdwise.em import Confusion
from crowdwise.em.with_features import mean_change, with_truth
from crowdwise.rows.chunks import Chunk


def raykar(X, matrix, n_classes, n_rounds, l2=1.0, strength=4.0):
    """EM of annotators and logistic regression, with loops over labels; one more example is in the middle of all."""
    given = [(i, j, label) for (i, j), label in np.ndenumerate(matrix) if label is not None]
    posterior = np.zeros((len(X), n_classes))
    for i, _, label in given:
        posterior[i, label] += 1
    posterior /= posterior.sum(axis=1, keepdims=True)
    with_middle = np.vstack([X, X.mean(axis=0)])
    copies, classes = np.tile(with_middle, (n_classes, 1)), np.repeat(np.arange(n_classes), len(X) + 1)
    for _ in range(n_rounds):
        confusion = np.full((matrix.shape[1], n_classes, n_classes), strength / n_classes)
        for i, j, label in given:
            confusion[j, :, label] += posterior[i]
        confusion /= confusion.sum(axis=2, keepdims=True)
        model = LogisticRegression(C=1 / l2, solver="newton-cholesky", tol=1e-12, max_iter=1000)
        targets = np.vstack([posterior, np.full(n_classes, 1 / n_classes)])
        posterior = model.fit(copies, classes, sample_weight=targets.T.ravel()).predict_proba(X)
        for i, j, label in given:
            posterior[i] *= confusion[j, :, label]
        posterior /= posterior.sum(axis=1, keepdims=True)
    return posterior, confusion


@pytest.mark.parametrize("n_classes", [2, in_slow_run(3)])
@pytest.mark.parametrize("missing", [in_slow_run(0.0), 0.4])
def test_independent_errors_and_one_fold_are_raykar(missing, n_classes):
    X, matrix = crowd(n_classes=n_classes, missing=missing)
    settings = {"errors_in_common": False, "cross_fit": 0, "annotator_model": Confusion(), "l2": 1.0}
    model = CrowdLogisticClassifier(**settings, max_rounds=1000, tol=1e-10).fit(X, labels_of(matrix, n_classes))
    posterior, confusion = raykar(X, matrix, n_classes, 400)
    assert_allclose(model.consensus_proba_, posterior, atol=1e-6)
    assert_allclose(model.confusion_, confusion, atol=1e-6)


def test_known_classes_are_certain_targets(rng):
    posterior = rng.dirichlet(np.ones(3), 4)
    chunk = Chunk(labels_of([[0], [1], [2], [0]], 3), np.ones(4), truth=np.array([-1, 2, -1, 0]))
    held = with_truth(posterior, chunk)
    assert_array_equal(held[[1, 3]], np.eye(3)[[2, 0]])
    assert_array_equal(held[[0, 2]], posterior[[0, 2]])
    chunk.truth = None
    assert with_truth(posterior, chunk) is posterior


def test_the_change_of_a_round_by_hand():
    one, other = np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([[0.0, 1.0], [0.5, 0.5]])
    assert mean_change(one, other, np.array([1.0, 3.0])) == 0.25
