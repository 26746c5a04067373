"""Answers that are no labels: left out, counted, and kept with the examples and annotators they belong to."""

import pickle

import numpy as np
import pandas as pd
import pytest
from crowds import crowd
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from crowdwise import CrowdLabels, align
from crowdwise.crowd import krippendorff_alpha
from crowdwise.exceptions import CrowdWarning, LabelError

TABLE = {
    "task": ["t1", "t1", "t1", "t2", "t2", "t3", "t3"],
    "worker": ["ann", "bob", "cat", "ann", "bob", "cat", "bob"],
    "label": ["yes", "Unsure", "no", "yes", "yes", "Unsure", "tie"],
}


def abstaining(seed=0, missing=0.3):
    """A matrix of labels in which some answers are -1, and where they are."""
    _, matrix = crowd(seed, n_examples=15, n_annotators=4, n_classes=3, missing=missing)
    given = np.array([[value is not None for value in row] for row in matrix])
    unsure = given & (np.random.default_rng(seed).random(given.shape) < 0.3)
    matrix[unsure] = -1
    return matrix, unsure


def assert_abstained(labels, unsure):
    assert labels.n_abstentions == unsure.sum()
    assert_array_equal(labels.abstentions_per_example, unsure.sum(axis=1))
    assert_array_equal(labels.abstentions_per_annotator, unsure.sum(axis=0))


def test_abstentions_are_no_labels_and_are_counted():
    labels = CrowdLabels.from_table(TABLE, abstain=["Unsure", "tie"])
    assert labels.classes.tolist() == ["no", "yes"]
    assert labels.annotators.tolist() == ["ann", "bob", "cat"]
    assert labels.examples.tolist() == ["t1", "t2", "t3"]  # t3 has abstentions only
    assert labels.labels_per_example.tolist() == [2, 2, 0]
    assert labels.abstentions_per_example.tolist() == [1, 0, 2]
    assert labels.abstentions_per_annotator.tolist() == [0, 2, 1]
    assert "abstentions: 3 (not used as labels)" in repr(labels)


def test_without_abstain_the_same_answers_are_classes_and_asked_about():
    with pytest.warns(CrowdWarning, match="'Unsure' counts as a class."):
        labels = CrowdLabels.from_table(TABLE)
    assert labels.classes.tolist() == ["Unsure", "no", "tie", "yes"]
    assert labels.n_abstentions == 0
    assert labels.abstentions_per_example.tolist() == [0, 0, 0]
    assert "abstentions" not in repr(labels)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.4]))
def test_abstentions_stay_with_their_examples_and_annotators(seed, missing):
    matrix, unsure = abstaining(seed, missing)
    labels = CrowdLabels.from_matrix(matrix, abstain=[-1], classes=range(3))
    assert_abstained(labels, unsure)
    as_missing = CrowdLabels.from_matrix(matrix, missing=-1, classes=range(3))
    assert_array_equal(labels.to_matrix(), as_missing.to_matrix())
    rows = np.random.default_rng(seed).integers(0, 15, 20)
    assert_abstained(labels[rows], unsure[rows])
    assert_abstained(labels[2:9], unsure[2:9])
    keep = np.array([True, False, True, True])
    assert_abstained(labels.select_annotators(keep), unsure[:, keep])
    assert_abstained(labels._of_classes([True, False, True]), unsure)
    assert_abstained(pickle.loads(pickle.dumps(labels)), unsure)


def test_matrix_and_table_count_the_same():
    matrix, unsure = abstaining(3)
    table = [(i, j, matrix[i, j]) for i in range(15) for j in range(4) if matrix[i, j] is not None]
    columns = dict(zip(("task", "worker", "label"), zip(*table, strict=True), strict=True))
    of_table = CrowdLabels.from_table(columns, abstain=[-1])
    assert_abstained(of_table, unsure)
    assert of_table == CrowdLabels.from_matrix(matrix, abstain=[-1])
    assert of_table != CrowdLabels.from_matrix(matrix, missing=-1)


@pytest.mark.parametrize("join", ["exact", "inner", "left"])
def test_abstentions_are_aligned_with_features(join):
    matrix, unsure = abstaining(1)
    ids = [f"e{i}" for i in range(15)]
    labels = CrowdLabels.from_matrix(matrix, examples=ids, abstain=[-1])
    order = np.random.default_rng(0).permutation(15)
    index, expected = [ids[i] for i in order], unsure[order]
    if join != "exact":
        index, expected = (
            [*index[:8], "other"],
            np.vstack([expected[:8], np.zeros((int(join == "left"), 4), dtype=bool)]),
        )
    _, aligned = align(pd.DataFrame({"x": range(len(index))}, index=index), labels, join=join)
    assert_abstained(aligned, expected)


def test_an_answer_after_an_abstention_is_a_second_answer():
    table = {"task": ["a", "a"], "worker": ["w", "w"], "label": ["Unsure", "yes"]}
    with pytest.raises(LabelError, match="once an annotator gave one example two"):
        CrowdLabels.from_table(table, abstain=["Unsure"])
    with pytest.warns(UserWarning, match="the last was kept"):
        labels = CrowdLabels.from_table(table, abstain=["Unsure"], on_duplicate="last")
    assert (labels.n_labels, labels.n_abstentions) == (1, 0)


def test_words_may_stand_among_numbers_if_they_are_abstentions():
    labels = CrowdLabels.from_matrix([[1, "Unsure"], [2, 5]], abstain=["Unsure"])
    assert labels.classes.tolist() == [1, 2, 5]
    ratings = CrowdLabels.from_matrix([[0.5, "Unsure"], [2.5, 5]], abstain=["Unsure"], scale="interval")
    assert ratings.values.tolist() == [0.5, 2.5, 5]
    assert ratings.abstentions_per_annotator.tolist() == [0, 1]


def test_an_abstention_that_nobody_gave_is_told_with_what_may_be_meant():
    with pytest.warns(CrowdWarning, match=r"nobody gave 'unsure ' \(is 'Unsure' meant\?\), 'skip'\.") as told:
        labels = CrowdLabels.from_table(TABLE, abstain=["unsure ", "skip", "tie"])
    assert len(told) == 1
    assert "Unsure" in labels.classes.tolist()
    with pytest.warns(CrowdWarning, match="as they were given; nobody"):
        CrowdLabels.from_matrix([[1, -1], [0, 1]], abstain=["-1"])
    with pytest.warns(CrowdWarning, match="nobody gave 9"):
        CrowdLabels.from_matrix([[1.5, 2.5]], abstain=[9], scale="interval")
    CrowdLabels.from_matrix([[1, 0]], abstain=["?"], classes=[0, 1])  # with declared classes it cannot be a slip


def test_what_cannot_be_meant_is_an_error():
    with pytest.raises(LabelError, match="abstain must be a list"):
        CrowdLabels.from_table(TABLE, abstain="Unsure")
    with pytest.raises(LabelError, match="classes and abstain both name"):
        CrowdLabels.from_table(TABLE, abstain=["tie"], classes=["yes", "no", "Unsure", "tie"])
    with pytest.raises(LabelError, match="abstain must not be missing"):
        CrowdLabels.from_table(TABLE, abstain=[None])


def test_the_abstentions_of_a_real_crowd(data_home):
    table = pd.read_csv(data_home / "crowd" / "dices350" / "labels.csv")
    labels = CrowdLabels.from_table(table, abstain=["Unsure"])
    assert labels.classes.tolist() == ["No", "Yes"]
    assert labels.n_abstentions == (table["label"] == "Unsure").sum() > 0
    counted = table[table["label"] == "Unsure"].groupby("worker").size()
    assert dict(zip(labels.annotators, labels.abstentions_per_annotator, strict=True)) == {
        name: counted.get(name, 0) for name in labels.annotators
    }
    kept = table[table["label"] != "Unsure"]
    assert krippendorff_alpha(labels) == krippendorff_alpha(CrowdLabels.from_table(kept))
