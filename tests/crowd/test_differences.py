from itertools import combinations

import numpy as np
import pytest
import twin
from hypothesis import assume, given
from hypothesis import strategies as st

from crowdwise import CrowdLabels
from crowdwise.crowd import disagreement
from crowdwise.exceptions import LabelError

SCALES = [None, "observed", "possible"]


@st.composite
def class_matrices(draw):
    n_annotators = draw(st.integers(1, 6))
    label = st.one_of(st.none(), st.integers(0, draw(st.integers(1, 3))))
    matrix = draw(st.lists(st.lists(label, min_size=n_annotators, max_size=n_annotators), min_size=1, max_size=10))
    assume(any(label is not None for row in matrix for label in row))
    return matrix


@st.composite
def rating_matrices(draw):
    n_annotators = draw(st.integers(1, 5))
    rating = st.one_of(st.none(), st.floats(-100, 100, width=32))
    return draw(st.lists(st.lists(rating, min_size=n_annotators, max_size=n_annotators), min_size=1, max_size=8))


def test_ten_annotators_give_the_numbers_of_the_paper():
    rows = [[-1] * k + [1] * (10 - k) for k in range(6)]
    raw = [0, 36, 64, 84, 96, 100]
    labels = CrowdLabels.from_matrix(rows)
    assert disagreement(labels, relative_to=None).tolist() == raw
    assert disagreement(labels).tolist() == [d / 100 for d in raw]
    assert disagreement(labels, relative_to="possible").tolist() == [d / 100 for d in raw]
    # Where nobody is split evenly, the two scales differ.
    assert disagreement(labels[:3]).tolist() == [0, 36 / 64, 1]
    assert disagreement(labels[:3], relative_to="possible").tolist() == [0, 0.36, 0.64]


def test_three_classes_by_hand():
    labels = CrowdLabels.from_matrix([["a", "b", "c"], ["a", "a", "b"], ["a", "a", "a"]])
    assert disagreement(labels, relative_to=None).tolist() == [12.0, 8.0, 0.0]
    assert np.allclose(disagreement(labels), [1, 2 / 3, 0])


def test_missing_labels_are_counted_per_pair():
    labels = CrowdLabels.from_matrix([[1, 2, None, None], [1, 2, 1, 1], [None] * 4, [1, None, None, None]])
    assert disagreement(labels, relative_to=None).tolist() == [4.0, 12.0, 0.0, 0.0]
    # Means over pairs 4 and 2; the whole crowd has 16 over 7 pairs, for examples that say nothing themselves.
    assert np.allclose(disagreement(labels), [1, 0.5, 4 / 7, 4 / 7])
    # Two labels allow 4 a pair, four labels 16 over 6 pairs.
    assert np.allclose(disagreement(labels, relative_to="possible"), [1, 0.75, 4 / 7, 4 / 7])


@pytest.mark.parametrize("relative_to", SCALES)
@given(matrix=class_matrices())
def test_classes_equal_the_loop_over_pairs(matrix, relative_to):
    classes = sorted({label for row in matrix for label in row if label is not None})
    labels = CrowdLabels.from_matrix(matrix)
    assert np.allclose(
        disagreement(labels, relative_to=relative_to), twin.disagreement(matrix, classes, relative_to), atol=1e-12
    )


@given(matrix=rating_matrices())
def test_ratings_equal_the_loop_over_pairs(matrix):
    pairs = [list(combinations([r for r in row if r is not None], 2)) for row in matrix]
    sums = np.array([sum((a - b) ** 2 for a, b in row) for row in pairs])
    labels = CrowdLabels.from_matrix(matrix, scale="interval")
    assert np.allclose(disagreement(labels, relative_to=None), sums, rtol=1e-9, atol=1e-9)
    scaled = disagreement(labels)
    assert ((scaled >= 0) & (scaled <= 1)).all()
    if sums.any():
        crowd = sums.sum() / sum(map(len, pairs))
        means = [s / len(row) if row else crowd for s, row in zip(sums, pairs, strict=True)]
        assert np.allclose(scaled, np.array(means) / max(m for m, row in zip(means, pairs, strict=True) if row))
    possible = disagreement(labels, relative_to="possible")
    assert ((possible >= 0) & (possible <= 1)).all()


def test_ratings_at_both_ends_are_the_most_that_is_possible():
    labels = CrowdLabels.from_matrix([[0, 0, 10, 10], [0, 5, 5, 10]], scale="interval")
    assert disagreement(labels, relative_to=None).tolist() == [400.0, 200.0]
    assert disagreement(labels, relative_to="possible").tolist() == pytest.approx([1.0, 0.5])


@pytest.mark.parametrize("relative_to", SCALES)
def test_equal_ratings_do_not_differ_by_rounding(relative_to):
    labels = CrowdLabels.from_matrix([[0.1] * 3, [0.7] * 3, [1e8 + 0.1] * 3, [3.0, None, None]], scale="interval")
    assert disagreement(labels, relative_to=relative_to).tolist() == [0.0] * 4


def test_a_large_offset_of_ratings_costs_no_digits():
    near = CrowdLabels.from_matrix([[1.0, 2.0, 4.0]], scale="interval")
    far = CrowdLabels.from_matrix([[1e9 + 1, 1e9 + 2, 1e9 + 4]], scale="interval")
    assert disagreement(near, relative_to=None)[0] == pytest.approx(14)
    assert disagreement(far, relative_to=None)[0] == pytest.approx(14, rel=1e-12)


@pytest.mark.parametrize("unit", [1e-90, 1e-160, 1e-300])
@pytest.mark.parametrize("relative_to", ["observed", "possible"])
def test_the_unit_of_ratings_does_not_matter_where_it_is_tiny(relative_to, unit):
    ratings = np.array([[1.0, 2.0, 4.0], [2.0, 2.0, 3.0], [5.0, 5.0, 5.0]])
    expected = disagreement(CrowdLabels.from_matrix(ratings, scale="interval"), relative_to=relative_to)
    found = disagreement(CrowdLabels.from_matrix(ratings * unit, scale="interval"), relative_to=relative_to)
    assert found.tolist() == pytest.approx(expected.tolist(), rel=1e-12)


@pytest.mark.parametrize("relative_to", SCALES)
def test_unanimous_labels_are_all_equally_easy(relative_to):
    assert disagreement(CrowdLabels.from_matrix([[1, 1], [2, 2]]), relative_to=relative_to).tolist() == [0.0, 0.0]
    assert disagreement(CrowdLabels.from_matrix([[1], [2]]), relative_to=relative_to).tolist() == [0.0, 0.0]
    assert disagreement(CrowdLabels.from_matrix([[1, 1], [1, 1]]), relative_to=relative_to).tolist() == [0.0, 0.0]
    assert disagreement(CrowdLabels.from_matrix(np.full((2, 2), np.nan)), relative_to=relative_to).tolist() == [
        0.0,
        0.0,
    ]
    assert disagreement(CrowdLabels.from_matrix(np.zeros((0, 2))), relative_to=relative_to).shape == (0,)


@given(class_matrices(), st.data())
def test_the_names_and_order_of_annotators_and_classes_do_not_matter(matrix, data):
    order = data.draw(st.permutations(range(len(matrix[0]))))
    renamed = [[None if row[j] is None else f"class {9 - row[j]}" for j in order] for row in matrix]
    for relative_to in SCALES:
        same = disagreement(CrowdLabels.from_matrix(renamed), relative_to=relative_to)
        assert np.allclose(same, disagreement(CrowdLabels.from_matrix(matrix), relative_to=relative_to), atol=1e-14)


def test_unknown_scales_and_immense_ratings_are_errors():
    with pytest.raises(ValueError, match='relative_to must be "observed", "possible"'):
        disagreement(CrowdLabels.from_matrix([[1, 2]]), relative_to="max")
    for size in (1e200, 1e308):  # the difference of the second is infinite before it is squared
        with pytest.raises(LabelError, match=r"too far apart.*rescale"):
            disagreement(CrowdLabels.from_matrix([[size, -size], [0.0, 1.0]], scale="interval"))
