import math

import numpy as np
import pytest
from crowdwise.ridge.ballot import Ballot, consensus_of
from hypothesis import given
from hypothesis import strategies as st

from crowdwise import CrowdLabels
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
    flat = scores[:, 0] if n_targets == 1 else scores
    ballot = Ballot.of(labels, expertise)
    found = consensus_of(ballot, labels.classes, flat, precision) if use_model else consensus_of(ballot, labels.classes)
    assert found.uses_model == use_model
    for i, row in enumerate(matrix):
        shares, mean = posterior(row, classes, expertise, scores[i] if use_model else None, precision)
        assert found.confidence[i] == pytest.approx(max(shares), abs=1e-9)
        assert shares[classes.index(found.label[i])] == pytest.approx(max(shares), abs=1e-9)
        assert np.allclose(found.score[i], mean, atol=1e-9)


@given(crowds())
def test_votes_are_sums_of_expertise(crowd):
    matrix, classes, expertise = crowd
    labels = CrowdLabels.from_matrix(matrix, classes=classes)
    ballot = Ballot.of(labels, expertise)
    expected = [
        [sum(z for z, label in zip(expertise, row, strict=True) if label == k) for k in classes] for row in matrix
    ]
    assert np.allclose(ballot.votes, expected, atol=1e-12)
    assert np.allclose(ballot.total, np.sum(expected, axis=1), atol=1e-12)
    filled = labels.labels_per_example > 0
    if filled.any():
        targets = Targets.of(labels)
        heard = Ballot.of(labels[filled], expertise).mean_targets(targets)
        rows = [row for row in matrix if any(label is not None for label in row)]
        assert np.allclose(heard, [posterior(row, classes, expertise, None, 0)[1] for row in rows], atol=1e-12)


def test_ratings_are_precision_weighted_means_with_their_standard_error():
    labels = CrowdLabels.from_matrix([[1.0, 4.0], [np.nan, 2.0]], kind="rating")
    ballot = Ballot.of(labels, np.array([1.0, 3.0]))
    alone = consensus_of(ballot, None)
    assert alone.label.tolist() == [13 / 4, 2.0]
    assert alone.confidence.tolist() == pytest.approx([1 / 2, 1 / math.sqrt(3)])
    together = consensus_of(ballot, None, np.array([0.0, 5.0]), 1.0)
    assert together.label.tolist() == [13 / 5, 11 / 4]
    assert together.confidence.tolist() == pytest.approx([1 / math.sqrt(5), 1 / 2])


def test_the_model_may_speak_for_some_examples_only():
    labels = CrowdLabels.from_matrix([["a", "b"], [None, None]], classes=["a", "b"])
    ballot = Ballot.of(labels, np.array([2.0, 1.0]))
    found = consensus_of(ballot, labels.classes, np.array([9.0, 0.5]), np.array([0.0, 4.0]))
    assert found.label.tolist() == ["a", "b"]
    assert found.score.tolist() == pytest.approx([-1 / 3, 0.5])


def test_nothing_is_nan_where_nobody_speaks():
    labels = CrowdLabels.from_matrix([["a", "b"], [None, None]])
    found = consensus_of(Ballot.of(labels, np.ones(2)), labels.classes)
    assert found.confidence.tolist() == [0.5, 0.5]
    assert np.isfinite(found.score).all()


def test_a_thousand_experts_do_not_overflow():
    labels = CrowdLabels.from_matrix([[k % 3 for k in range(3001)]])
    found = consensus_of(Ballot.of(labels, np.full(3001, 1e8)), labels.classes)
    assert found.label.tolist() == [0]
    assert found.confidence.tolist() == [1.0]
