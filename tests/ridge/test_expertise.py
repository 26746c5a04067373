import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdwise import CrowdLabels
from crowdwise.ridge.expertise import Votes, estimated_accuracy
from crowdwise.ridge.targets import Targets


@st.composite
def crowds(draw):
    n_annotators, n_classes = draw(st.integers(1, 4)), draw(st.integers(2, 4))
    cell = st.integers(0, n_classes - 1)
    cell = st.one_of(st.none(), cell) if draw(st.booleans()) else cell
    matrix = draw(st.lists(st.lists(cell, min_size=n_annotators, max_size=n_annotators), min_size=1, max_size=6))
    expertise = draw(st.lists(st.floats(0.1, 10), min_size=n_annotators, max_size=n_annotators))
    return matrix, list(range(n_classes)), np.array(expertise)


def code(k, classes):
    return [1.0 if k == classes[1] else -1.0] if len(classes) == 2 else [1.0 if k == j else -1.0 for j in classes]


def posterior(row, classes, expertise, score, precision):
    """Probabilities of the classes from Gaussian voices around the codes, and the mean of the voices."""
    half = 0.5 if len(classes) > 2 else 1.0  # as many columns as classes: squared differences count half
    voices = [(z, code(label, classes)) for z, label in zip(expertise, row, strict=True) if label is not None]
    if score is not None:
        voices.append((precision, list(score)))
    likelihood = [
        math.exp(
            sum(-z / 2 * half * sum((a - b) ** 2 for a, b in zip(v, code(k, classes), strict=True)) for z, v in voices)
        )
        for k in classes
    ]
    total = sum(z for z, _ in voices)
    mean = [sum(z * v[t] for z, v in voices) / total if total else 0.0 for t in range(len(code(0, classes)))]
    return [value / sum(likelihood) for value in likelihood], mean


@given(crowds(), st.booleans(), st.integers(0, 5))
def test_classes_equal_the_gaussian_posterior(crowd, use_model, seed):
    matrix, classes, expertise = crowd
    labels = CrowdLabels.from_matrix(matrix, classes=classes)
    n_targets = 1 if len(classes) == 2 else len(classes)
    scores, precision = np.random.default_rng(seed).normal(size=(len(matrix), n_targets)), 1.7
    votes = Votes.of(labels, expertise)
    found = votes.consensus(labels, scores, precision) if use_model else votes.consensus(labels)
    means = votes.mean_targets(Targets.of(labels))
    for i, row in enumerate(matrix):
        shares, mean = posterior(row, classes, expertise, scores[i] if use_model else None, precision)
        assert found.confidence[i] == pytest.approx(max(shares), abs=1e-9)
        assert shares[classes.index(found.label[i])] == pytest.approx(max(shares), abs=1e-9)
        assert np.allclose(found.proba[i], shares, atol=1e-9)
        if not use_model and any(label is not None for label in row):
            assert np.allclose(means[i], mean, atol=1e-9)


@given(crowds())
def test_votes_are_sums_of_expertise(crowd):
    matrix, classes, expertise = crowd
    labels = CrowdLabels.from_matrix(matrix, classes=classes)
    votes = Votes.of(labels, expertise)
    expected = [
        [sum(z for z, label in zip(expertise, row, strict=True) if label == k) for k in classes] for row in matrix
    ]
    assert np.allclose(votes.votes, expected, atol=1e-12)
    assert np.allclose(votes.total, np.sum(expected, axis=1), atol=1e-12)
    filled = labels.labels_per_example > 0
    if filled.any():
        targets = Targets.of(labels)
        heard = Votes.of(labels[filled], expertise).mean_targets(targets)
        rows = [row for row in matrix if any(label is not None for label in row)]
        assert np.allclose(heard, [posterior(row, classes, expertise, None, 0)[1] for row in rows], atol=1e-12)


def test_ratings_are_precision_weighted_means_with_their_standard_error():
    labels = CrowdLabels.from_matrix([[1.0, 4.0], [np.nan, 2.0]], kind="rating")
    votes = Votes.of(labels, np.array([1.0, 3.0]))
    alone = votes.consensus(labels)
    assert alone.label.tolist() == [13 / 4, 2.0]
    assert alone.std.tolist() == pytest.approx([1 / 2, 1 / math.sqrt(3)])
    together = votes.consensus(labels, np.array([[0.0], [5.0]]), 1.0)
    assert together.label.tolist() == [13 / 5, 11 / 4]
    assert together.std.tolist() == pytest.approx([1 / math.sqrt(5), 1 / 2])


def test_the_model_may_count_for_some_examples_only():
    labels = CrowdLabels.from_matrix([["a", "b"], [None, None]], classes=["a", "b"])
    votes = Votes.of(labels, np.array([2.0, 1.0]))
    found = votes.consensus(labels, np.array([[9.0], [0.5]]), np.array([0.0, 4.0]))
    assert found.label.tolist() == ["a", "b"]
    assert found.proba[:, 1].tolist() == pytest.approx([1 / (1 + math.exp(2)), 1 / (1 + math.exp(-4))])


def test_nothing_is_nan_where_there_is_no_label():
    labels = CrowdLabels.from_matrix([["a", "b"], [None, None]])
    votes = Votes.of(labels, np.ones(2))
    assert votes.consensus(labels).confidence.tolist() == [0.5, 0.5]
    assert np.isfinite(votes.mean_targets(Targets.of(labels))).all()


def test_a_thousand_experts_do_not_overflow():
    labels = CrowdLabels.from_matrix([[k % 3 for k in range(3001)]])
    found = Votes.of(labels, np.full(3001, 1e8)).consensus(labels)
    assert found.label.tolist() == [0]
    assert found.confidence.tolist() == [1.0]


@given(crowds(), st.integers(0, 5))
def test_accuracy_is_the_mean_probability_of_the_classes_that_an_annotator_chose(crowd, seed):
    matrix, classes, _ = crowd
    rng = np.random.default_rng(seed)
    proba, weight = rng.dirichlet(np.ones(len(classes)), len(matrix)), rng.uniform(0.5, 2, len(matrix))
    labels = CrowdLabels.from_matrix(matrix, classes=classes)
    labels = labels.select_annotators(labels.labels_per_annotator > 0)
    found = estimated_accuracy(labels, proba, weight)
    for j, name in enumerate(labels.annotators.tolist()):
        given_labels = [(i, row[name]) for i, row in enumerate(matrix) if row[name] is not None]
        total = sum(weight[i] * proba[i, k] for i, k in given_labels)
        assert found[j] == pytest.approx(total / sum(weight[i] for i, _ in given_labels))
