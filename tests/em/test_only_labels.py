"""One label per example, little overlap, all models: features override labels only as far as they are shown right."""

import numpy as np
import pytest
from all_models import CLASSIFIERS, new, over, quiet
from marks import in_slow_run

from crowdwise import CrowdLabels
from crowdwise.em import Confusion, OneCoin

# How far the means of two classes are apart, in standard deviations.
GAPS = {"useless": 0.0, "weak": 0.8, "good": 4.0}
OVERLAPS = [0.0, in_slow_run(0.02), 0.05, in_slow_run(0.1)]


def few_labels(seed, n_annotators, n_classes, overlap, features, right, n_examples=400):
    """Features, labels (one per example, a second on a share of them), the first label of each and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(n_classes, n_examples, p=rng.dirichlet(3 * np.ones(n_classes)))
    accuracy = right + rng.uniform(-0.03, 0.03, n_annotators)
    matrix = np.full((n_examples, n_annotators), None, dtype=object)
    first = np.empty(n_examples, dtype=int)
    for i in range(n_examples):
        who = rng.permutation(n_annotators)[: 1 + (i < overlap * n_examples)]
        for j in who:
            wrong = (truth[i] + rng.integers(1, n_classes)) % n_classes
            matrix[i, j] = truth[i] if rng.random() < accuracy[j] else wrong
        first[i] = matrix[i, who[0]]
    X = rng.normal(size=(n_examples, 5))
    X[:, :n_classes] += GAPS[features] / np.sqrt(2) * np.eye(n_classes)[truth]
    return X, CrowdLabels.from_matrix(matrix, classes=range(n_classes)), first, truth


def gains(name, n_classes, overlap, features, accuracies, crowds=(2, 12), **settings):
    """How much more of the consensus is right than of the first labels, for few and many annotators."""
    found = []
    for seed, right in enumerate(accuracies):
        for n_annotators in crowds:
            X, labels, first, truth = few_labels(seed, n_annotators, n_classes, overlap, features, right)
            consensus = new(name, **settings).fit(X, labels).results_.label
            found.append((consensus == truth).mean() - (first == truth).mean())
    return found


@quiet
@over(CLASSIFIERS, slow=["any", "ridge cv"])
@pytest.mark.parametrize("n_classes", [2, in_slow_run(3), in_slow_run(4)])
@pytest.mark.parametrize("overlap", OVERLAPS)
@pytest.mark.parametrize("features", GAPS)
def test_the_consensus_is_as_right_as_good_labels(name, n_classes, overlap, features):
    found = gains(name, n_classes, overlap, features, [0.9, 0.935, 0.96])
    assert np.mean(found) > -0.02
    assert np.min(found) > -0.05


@quiet
@over(["aggregate", "logistic", "any"], slow=["any"])
@pytest.mark.parametrize("model", [Confusion(), OneCoin()], ids=["confusion", "one coin"])
@pytest.mark.parametrize("n_classes", [in_slow_run(2), 4])
@pytest.mark.parametrize("overlap", OVERLAPS)
def test_matrices_that_are_not_drawn_to_the_crowd_lose_no_labels(name, model, n_classes, overlap):
    found = gains(name, n_classes, overlap, "useless", [0.9, 0.96], crowds=(2, 40), annotator_model=model)
    assert np.min(found) > -0.02


@quiet
@over(["logistic", "any"], slow=["any"])
def test_independent_errors_lose_no_labels_that_nothing_can_confirm(name):
    settings = {"annotator_model": Confusion(), "errors_in_common": False}
    assert np.min(gains(name, 4, 0.0, "useless", [0.9, 0.96], crowds=(2, 40), **settings)) > -0.02


@quiet
@over(CLASSIFIERS, without=["logistic in sample", "any tree"], slow=["any", "ridge cv"])
@pytest.mark.parametrize("n_classes", [in_slow_run(2), in_slow_run(3), 4])
@pytest.mark.parametrize("overlap", [0.0, in_slow_run(0.1)])
def test_good_features_correct_poor_labels(name, n_classes, overlap):
    assert np.mean(gains(name, n_classes, overlap, "good", [0.7] * 3)) > 0.1


@quiet
@over(CLASSIFIERS)
@pytest.mark.parametrize("features", GAPS)
def test_labels_of_one_annotator_are_the_consensus(name, features):
    X, labels, first, _ = few_labels(0, 1, 3, 0.0, features, 0.95)
    assert (new(name).fit(X, labels).results_.label == first).all()
