"""Small crowds for tests."""

import numpy as np

from crowdwise import CrowdLabels


def crowd(seed=0, *, n_examples=40, n_features=3, n_annotators=6, n_classes=2, missing=0.0):
    """Features and a matrix of labels, None where there is none; every example and annotator has a label."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_examples, n_features)) + 1
    direction = rng.normal(size=(n_features, n_classes))
    truth = ((X - 1) @ direction).argmax(axis=1)
    skill = rng.uniform(0.1, 0.9, n_annotators)
    guess = rng.integers(0, n_classes, (n_examples, n_annotators))
    matrix = np.where(rng.random(guess.shape) < skill, truth[:, None], guess).astype(object)
    absent = rng.random(guess.shape) < missing
    absent[np.arange(n_examples), rng.integers(0, n_annotators, n_examples)] = False
    absent[rng.integers(0, n_examples, n_annotators), np.arange(n_annotators)] = False
    matrix[absent] = None
    return X, matrix


def labels_of(matrix, n_classes=2, **kwargs):
    return CrowdLabels.from_matrix(matrix, classes=range(n_classes), **kwargs)
