"""Known answers as they are given, and what holds them fixed."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from crowdwise import CrowdLabels
from crowdwise.exceptions import LabelError
from crowdwise.labels.truth import Known, known_answers

LABELS = CrowdLabels.from_matrix([["a", "b"], ["b", None], ["a", "a"]], examples=["x", "y", "z"])
RATINGS = CrowdLabels.from_matrix([[1.0, 2.0], [3.0, None], [2.5, 2.0]], scale="interval")


def test_answers_are_positions_among_the_classes_and_minus_one_elsewhere():
    assert_array_equal(known_answers({"z": "b"}, LABELS, LABELS), [-1, -1, 1])
    assert_array_equal(known_answers(["a", None, np.nan], LABELS, LABELS), [0, -1, -1])
    assert_array_equal(known_answers(pd.DataFrame({"id": ["y", "y"], "is": ["b", "b"]}), LABELS, LABELS), [-1, 1, -1])
    assert known_answers([None] * 3, LABELS, LABELS) is None
    assert known_answers(None, LABELS, LABELS) is None


def test_ratings_are_numbers_and_nan_elsewhere():
    assert_array_equal(known_answers([2, None, 1.5], RATINGS, RATINGS), [2.0, np.nan, 1.5])
    with pytest.raises(LabelError, match="which are numbers"):
        known_answers(["two", None, 1.5], RATINGS, RATINGS)
    with pytest.raises(LabelError, match="truth must be finite; found"):
        known_answers([None, np.inf, 1.5], RATINGS, RATINGS)


def test_a_class_that_nobody_named_has_to_be_declared():
    with pytest.raises(LabelError, match=r"found 'c' for example 'y'\."):
        known_answers({"y": "c"}, LABELS, LABELS)
    declared = CrowdLabels.from_matrix([["a", "b"], ["b", None]], classes=["a", "b", "c"])
    assert_array_equal(known_answers([None, "c"], declared, declared), [-1, 2])


def test_a_class_in_another_spelling_is_told_so():
    with pytest.raises(LabelError, match="found 'A ' for example"):
        known_answers({"y": "A "}, LABELS, LABELS)


def test_a_class_of_another_type_is_told_from_one_that_nobody_gave():
    stars = CrowdLabels.from_matrix([[1, 2], [2, 3]])
    with pytest.raises(LabelError, match=r"found '3' for example 0\."):
        known_answers({0: "3"}, stars, stars)
    assert_array_equal(known_answers({0: 3.0}, stars, stars), [2, -1])
    with pytest.raises(LabelError, match=r"found '3\.0' for example 0\."):
        known_answers({0: "3.0"}, stars, stars)
    with pytest.raises(LabelError, match=r"found '4\.0' for example 0\."):
        known_answers({0: "4.0"}, stars, stars)


def test_known_classes_are_certain():
    known = Known(np.array([0, 2]), np.array([1, 0]))
    even = np.full((3, 2), 0.5)
    assert_array_equal(known.clamp_posterior(even), [[0, 1], [0.5, 0.5], [1, 0]])
    assert (even == 0.5).all()


def test_labels_of_known_answers_are_the_known_answer_wherever_there_is_a_label():
    with_truth = Known(np.array([0, 1]), np.array([1, 0])).as_labels(LABELS)
    assert with_truth.to_matrix().tolist() == [["b", "b"], ["a", None], ["a", "a"]]
    assert Known(np.array([1]), np.array([9.0])).as_labels(RATINGS).to_matrix()[1, 0] == 9.0
