import re
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator

from crowdwise import CrowdLabels
from crowdwise.crowd._disagreement import disagreement
from crowdwise.exceptions import AlignmentError, CrowdWarning, DataError, LabelError
from crowdwise.training_set import (
    TrainingSet,
    check_features,
    check_sample_weight,
    check_y,
    warn_if_few_effective,
)

X = np.arange(8.0).reshape(4, 2)
IDS = ["a", "b", "c", "d"]
LABELS = CrowdLabels.from_matrix([[0, 1, 1], [1, 1, 0], [0, 0, 0], [1, 0, 1]])

ALIKE = {
    "list": [1, 0, 2, 4],
    "tuple": (1, 0, 2, 4),
    "integers": np.array([1, 0, 2, 4]),
    "bytes": np.array([1, 0, 2, 4], dtype=np.uint8),
    "float32": np.array([1, 0, 2, 4], dtype=np.float32),
    "objects": np.array([1, 0.0, Fraction(2), 4], dtype=object),
    "series": pd.Series([1, 0, 2, 4]),
    "nullable": pd.Series([1, 0, 2, 4], dtype="Int64"),
    "polars": pl.Series([1, 0, 2, 4]),
    "mapping": {3: 4, 0: 1, 1: 0, 2: 2},
    "strided": np.array([1, 9, 0, 9, 2, 9, 4, 9])[::2],
}


@pytest.mark.parametrize("name", ALIKE)
def test_weights_of_every_type_are_the_same_floats(name):
    weight = check_sample_weight(ALIKE[name], X)
    assert weight.dtype == np.float64
    assert weight.tolist() == [1.0, 0.0, 2.0, 4.0]


@pytest.mark.parametrize("value", [3, 3.0, np.float32(3), np.array(3), np.int8(3)], ids=repr)
def test_one_number_is_the_weight_of_all(value):
    assert check_sample_weight(value, X).tolist() == [3.0] * 4


def test_without_weights_every_example_counts_once():
    assert check_sample_weight(None, X).tolist() == [1.0] * 4
    assert check_sample_weight([True, False, True, True], X).tolist() == [1.0, 0.0, 1.0, 1.0]


def test_what_came_is_not_changed():
    given = np.array([1e-300, 1.0, 2.0, 3.0])
    check_sample_weight(given, X)[2] = 7
    assert given.tolist() == [1e-300, 1.0, 2.0, 3.0]
    given.setflags(write=False)
    assert check_sample_weight(given, X).tolist() == [0.0, 1.0, 2.0, 3.0]


def test_weights_are_matched_by_id():
    frame = pd.DataFrame(X, index=IDS)
    named = CrowdLabels.from_matrix([[0]] * 4, examples=IDS)
    series = pd.Series([4.0, 3.0, 2.0, 1.0], index=IDS[::-1])
    for weight in (series, series.to_dict()):
        assert check_sample_weight(weight, frame).tolist() == [1.0, 2.0, 3.0, 4.0]
        assert check_sample_weight(weight, X, named).tolist() == [1.0, 2.0, 3.0, 4.0]
    with pytest.raises(AlignmentError, match=r"1 examples \(such as \['d'\]\) have no sample_weight"):
        check_sample_weight({"a": 1, "b": 1, "c": 1}, frame)


@pytest.mark.parametrize("unit", [5e-324, 1e-310, 1e-200, 1e-51, 1e51, 1e200, 4e307], ids=repr)
def test_weights_whose_squares_vanish_or_overflow_are_rescaled_with_a_word(unit):
    with pytest.warns(CrowdWarning, match="the largest sample_weight is .*:"):
        weight = check_sample_weight(np.array([1.0, 2.0, 0.0, 4.0]) * unit, X)
    assert weight.tolist() == [0.25, 0.5, 0.0, 1.0]


@pytest.mark.parametrize("unit", [1e-50, 1e-12, 1.0, 1e12, 2e49])
def test_other_weights_stay_as_they_are(unit):
    given = np.array([1.0, 2.0, 0.0, 4.0]) * unit
    assert check_sample_weight(given, X).tolist() == given.tolist()


def test_weights_beside_which_others_are_immense_count_for_nothing():
    assert check_sample_weight([1.0, 1e-29, 1e-31, 5e-324], X).tolist() == [1.0, 1e-29, 0.0, 0.0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1, 2], r"sample_weight.shape == (2,), expected (4,)"),
        ([[1], [1], [1], [1]], "sample_weight.shape == (4, 1), expected (4,)"),
        (np.ones((2, 2)), "sample_weight.shape == (2, 2)"),
        ([[1], [1, 2]], "sample_weight must be numbers, one per example"),
        ([1, 1, 1, -1], "at least 0 (Negative values in data passed to `sample_weight`); got -1.0 for row 3"),
        ([1, np.nan, 1, 1], "finite and at least 0 (not finite); got nan for row 1"),
        ([1, 1, np.inf, 1], "got inf for row 2"),
        (-1.0, "got -1.0 for row 0"),
        (np.nan, "got nan for row 0"),
        ("heavy", "sample_weight must be values"),
        (["1", "1", "1", "1"], "sample_weight must be numbers, one per example; got ['1', '1', '1', '1']"),
        ([1, None, 1, 1], "sample_weight must be numbers, one per example; got [1, None, 1, 1]"),
        (np.array([1j] * 4), "sample_weight must be numbers"),
        (np.array(["2020"] * 4, dtype="M8[D]"), "sample_weight must be numbers"),
        (np.ma.array([1, 2, 3, 4], mask=[0, 1, 0, 0]), "sample_weight must be numbers, one per example"),
        ({1, 2}, "sample_weight must be numbers, one per example; got {1, 2}"),
        ([10**400, 1, 1, 1], "sample_weight must be numbers"),
        (pd.Series([1, None, 1, 1], dtype="Int64"), "sample_weight must be"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_wrong_weights_say_what_is_wrong(given, message):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=re.escape(message)):
            check_sample_weight(given, X)


# ---------------------------------------------------------------------- who takes part


def test_everybody_takes_part_where_nothing_is_missing():
    data = TrainingSet.of(X, LABELS, None)
    assert data.used_labels is LABELS
    assert data.rows is X
    assert data.others.tolist() == []
    assert data.used_disagreement is data.disagreement
    assert data.sample_weight.tolist() == [1.0] * 4


def test_examples_without_a_label_or_a_weight_take_no_part():
    labels = CrowdLabels.from_matrix([[0, 1, None], [None] * 3, [1, 0, 1], [0, None, None]])
    with pytest.warns(CrowdWarning, match="1 of 4 examples has"):
        data = TrainingSet.of(X, labels, [1.0, 1.0, 0.0, 2.0])
    assert data.used.tolist() == [True, False, False, True]
    assert data.active.tolist() == [True, True, False]
    assert data.used_labels == labels[[0, 3]].select_annotators([True, True, False])
    assert data.rows.tolist() == X[[0, 3]].tolist()
    assert data.others.tolist() == [1, 2]
    assert data.sample_weight.tolist() == [1.0, 2.0]
    assert data.used_disagreement.tolist() == disagreement(data.used_labels).tolist()
    assert data.among_all(np.array([5.0, 6.0])).tolist()[:2] == [5.0, 6.0]
    assert np.isnan(data.among_all(np.array([5.0, 6.0]))[2])


def test_nothing_to_learn_from_is_an_error():
    with pytest.raises(LabelError, match="there is no label: all"):
        TrainingSet.of(X[:2], CrowdLabels.from_matrix([[None], [None]]), None)
    with pytest.raises(LabelError, match="there is no label: the"):
        TrainingSet.of(X[:1], CrowdLabels.from_matrix([[None]]), None)
    with pytest.raises(DataError, match="the sample_weight of every labelled"):
        TrainingSet.of(X, LABELS, 0)
    with pytest.raises(LabelError, match="at least two classes are"):
        TrainingSet.of(X[:2], CrowdLabels.from_matrix([[1, 1], [1, None]]), None)
    with pytest.raises(LabelError, match="at least two classes"):  # the other class has no weight
        TrainingSet.of(X[:2], CrowdLabels.from_matrix([[1, 1], [0, 0]]), [1.0, 0.0])


def test_labels_that_cannot_disagree_are_noted_where_it_matters():
    alone = CrowdLabels.from_matrix([[0], [1]])
    apart = CrowdLabels.from_matrix([[0, None], [None, 1]])
    with pytest.warns(CrowdWarning, match="there is one annotator"):
        TrainingSet.of(X[:2], alone, None)
    with pytest.warns(CrowdWarning, match="no two annotators share an example"):
        TrainingSet.of(X[:2], apart, None)
    for labels in (alone, apart):
        assert TrainingSet.of(X[:2], labels, None, weighting=False).disagreement.tolist() == [0.0, 0.0]


def test_few_examples_with_all_the_weight_are_noted():
    with pytest.warns(CrowdWarning, match="on about 1.0 of 4"):
        warn_if_few_effective(np.array([1.0, 1e-9, 1e-9, 1e-9]), 3)
    with pytest.warns(CrowdWarning, match="about 1.0 of 4"):  # whatever their unit
        warn_if_few_effective(np.array([1.0, 1e-9, 1e-9, 1e-9]) * 1e300, 3)
    warn_if_few_effective(np.ones(4), 3)
    warn_if_few_effective(np.ones(2), 3)  # fewer examples than features to begin with


# ---------------------------------------------------------------------- the door


class Model(BaseEstimator):
    pass


def test_labels_take_the_ids_of_x_before_it_becomes_an_array():
    frame = pd.DataFrame(X, index=IDS, columns=["p", "q"])
    found, labels = check_features(Model(), frame, LABELS)
    assert isinstance(found, np.ndarray)
    assert labels.examples.tolist() == IDS
    weight = pd.Series([4.0, 3.0, 2.0, 1.0], index=IDS[::-1])
    assert TrainingSet.of(found, labels, weight).sample_weight.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_features_that_are_not_finite_are_left_to_the_model():
    assert np.isnan(check_features(Model(), [[np.nan], [1.0]], [0, 1])[0][0, 0])
    with pytest.raises(AlignmentError, match="X has 4 examples and"):
        check_features(Model(), X, [0, 1])


def test_what_y_must_be_is_said():
    with pytest.raises(ValueError, match="This Model estimator requires y"):
        check_y(Model(), None)
    with pytest.warns(UserWarning, match="A column-vector y was passed"):
        assert check_y(Model(), np.array([[0], [1]])).n_annotators == 1


@pytest.mark.parametrize("library", [pd, pl])
def test_a_column_of_ids_among_the_features_is_refused_with_what_to_do(library):
    frame = library.DataFrame({"id": IDS, "size": [1.0, 2.0, 3.0, 4.0]})
    with pytest.raises(DataError, match="column 'id' of X holds"):
        check_features(BaseEstimator(), frame, LABELS)
    numbers = library.DataFrame({"size": ["1", "2.5", "3", "4"]})
    assert check_features(BaseEstimator(), numbers, LABELS)[0].tolist() == [[1.0], [2.5], [3.0], [4.0]]
