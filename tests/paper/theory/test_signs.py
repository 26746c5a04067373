import numpy as np
import pytest

from crowdwise import CrowdLabels
from crowdwise.exceptions import LabelError
from crowdwise.paper.theory import label_signs, weighted_majority


def test_first_class_is_minus_one_and_missing_is_zero():
    labels = CrowdLabels.from_matrix([["b", None], ["a", "b"]])
    assert label_signs(labels).toarray().tolist() == [[1, 0], [-1, 1]]
    turned = CrowdLabels.from_matrix([["b", None], ["a", "b"]], classes=["b", "a"])
    assert np.array_equal(label_signs(turned).toarray(), -label_signs(labels).toarray())


def test_ratings_are_not_classes():
    with pytest.raises(LabelError, match="got real-valued labels"):
        label_signs(CrowdLabels.from_matrix([[0.5, 1.5]], scale="interval"))


def test_weights_that_cancel_are_a_tie_in_spite_of_rounding():
    signs = np.array([[1.0, 1.0, -1.0], [1.0, 1.0, 1.0]])
    assert weighted_majority(signs, [0.1, 0.2, 0.3]).tolist() == [0.0, 1.0]


def test_no_expertise_is_the_plain_majority_and_nan_counts_as_none():
    signs = np.array([[1.0, 1.0, -1.0]])
    assert weighted_majority(signs).tolist() == weighted_majority(signs, np.ones(3)).tolist() == [1.0]
    assert weighted_majority(signs, [np.nan, 0.0, 1.0]).tolist() == [-1.0]
    with pytest.raises(LabelError, match="finite and at least 0"):
        weighted_majority(signs, [np.inf, 1.0, 1.0])
