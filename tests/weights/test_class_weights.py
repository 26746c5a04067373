import numpy as np
import pytest
from sklearn.utils.class_weight import compute_class_weight

from crowdwise.weights.class_weights import check_class_weight, class_weights, leading_shares

CLASSES = np.array(["cat", "dog", "owl"])


def test_none_and_balanced_are_themselves():
    assert check_class_weight(None, CLASSES) is None
    assert check_class_weight("balanced", CLASSES) == "balanced"


def test_a_class_that_a_dict_does_not_name_has_weight_one():
    assert check_class_weight({"owl": 3, "cat": 0.5}, CLASSES).tolist() == [0.5, 1.0, 3.0]
    assert check_class_weight({}, CLASSES).tolist() == [1.0, 1.0, 1.0]
    assert check_class_weight({1: 2.0}, np.array([0, 1])).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("equal", "class_weight must be None"),
        ([1.0, 2.0], "class_weight must be None"),
        ({"fox": 1.0}, r"names the class 'fox'; the classes are \['cat', 'dog', 'owl'\]"),
        ({"cat": 0.0}, "class_weight of 'cat' must be a finite number above 0"),
        ({"cat": -1.0}, "above 0"),
        ({"cat": float("nan")}, "above 0"),
        ({"cat": float("inf")}, "above 0"),
        ({"cat": "2"}, "above 0"),
        ({"cat": None}, "above 0"),
    ],
)
def test_weights_that_make_no_sense_are_told(given, message):
    with pytest.raises(ValueError, match=message):
        check_class_weight(given, CLASSES)


def test_balanced_weights_of_certain_classes_are_those_of_scikit_learn():
    classes = np.array([0, 0, 0, 1, 2, 2])
    expected = compute_class_weight("balanced", classes=np.arange(3), y=classes)
    np.testing.assert_allclose(class_weights("balanced", np.eye(3)[classes], np.ones(6)), expected)


def test_balanced_classes_have_the_same_total_and_examples_keep_theirs(rng):
    shares, weight = rng.dirichlet(np.ones(3), 20), rng.random(20)
    each = class_weights("balanced", shares, weight)
    totals = each * (weight @ shares)
    np.testing.assert_allclose(totals, totals[0])
    np.testing.assert_allclose(totals.sum(), weight.sum())


def test_a_class_that_nobody_is_in_has_weight_one_and_does_not_count():
    shares = np.eye(3)[[0, 0, 0, 1]]
    np.testing.assert_allclose(class_weights("balanced", shares, np.ones(4)), [4 / 6, 2.0, 1.0])


def test_numbers_stay_what_they_are():
    given = np.array([1.0, 5.0])
    assert class_weights(given, np.eye(2), np.ones(2)) is given


def test_the_class_with_the_most_votes_leads_and_ties_share():
    votes = np.array([[2.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.5, 0.5, 0.5]])
    np.testing.assert_allclose(leading_shares(votes), [[1, 0, 0], [0.5, 0.5, 0], [1 / 3, 1 / 3, 1 / 3]])


def test_a_class_of_next_to_no_weight_is_not_blown_up_without_end():
    each = class_weights("balanced", np.eye(2), np.array([1.0, 1e-300]))
    np.testing.assert_allclose(each, [0.5, 0.5e12])
    with np.errstate(all="raise"):
        assert np.isfinite(each**2).all()
