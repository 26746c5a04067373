import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdwise import CrowdLabels
from crowdwise.ridge.targets import Targets, Votes


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


def mean_code(row, classes, expertise):
    """The mean of the codes of an example's labels, by expertise."""
    voices = [(z, code(label, classes)) for z, label in zip(expertise, row, strict=True) if label is not None]
    total = sum(z for z, _ in voices)
    return [sum(z * v[t] for z, v in voices) / total for t in range(len(code(0, classes)))]


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
        assert np.allclose(heard, [mean_code(row, classes, expertise) for row in rows], atol=1e-12)


def test_ratings_are_precision_weighted_means_with_their_standard_error():
    labels = CrowdLabels.from_matrix([[1.0, 4.0], [np.nan, 2.0]], scale="interval")
    votes = Votes.of(labels, np.array([1.0, 3.0]))
    alone = votes.rating_consensus(labels, np.zeros((2, 1)), 0.0)
    assert alone.label.tolist() == [13 / 4, 2.0]
    assert alone.std.tolist() == pytest.approx([1 / 2, 1 / math.sqrt(3)])
    together = votes.rating_consensus(labels, np.array([[0.0], [5.0]]), 1.0)
    assert together.label.tolist() == [13 / 5, 11 / 4]
    assert together.std.tolist() == pytest.approx([1 / math.sqrt(5), 1 / 2])


def test_the_model_may_count_for_some_examples_only():
    labels = CrowdLabels.from_matrix([[1.0, 4.0], [np.nan, np.nan]], scale="interval")
    votes = Votes.of(labels, np.array([2.0, 1.0]))
    found = votes.rating_consensus(labels, np.array([[9.0], [0.5]]), np.array([0.0, 4.0]))
    assert found.label.tolist() == [2.0, 0.5]
    assert found.std.tolist() == pytest.approx([1 / math.sqrt(3), 1 / 2])


def test_nothing_is_nan_where_there_is_no_label():
    labels = CrowdLabels.from_matrix([["a", "b"], [None, None]])
    votes = Votes.of(labels, np.ones(2))
    assert votes.total.tolist() == [2.0, 0.0]
    assert np.isfinite(votes.mean_targets(Targets.of(labels))).all()


@given(crowds(), st.integers(0, 5))
def test_labels_that_share_a_vote_count_by_their_part(crowd, seed):
    matrix, classes, expertise = crowd
    labels = CrowdLabels.from_matrix(matrix, classes=classes)
    part = np.random.default_rng(seed).uniform(0.1, 1, labels.n_labels)
    expected = np.zeros((len(matrix), len(classes)))
    for i, j, k, share in zip(labels.example_index, labels.annotator_index, labels.values, part, strict=True):
        expected[i, k] += share * expertise[j]
    assert np.allclose(Votes.of(labels, expertise, part).votes, expected, atol=1e-12)
