"""One test for each fault that labels promise to survive or to name; those of models are in test_all_models_faults."""

import tracemalloc

import numpy as np
import pytest
from crowds import odd_ids

from crowdwise import CrowdLabels, CrowdRidgeClassifier
from crowdwise.crowd import disagreement, easiness
from crowdwise.exceptions import CrowdWarning, LabelError


def test_fault_12_same_pair_twice_with_the_same_label_counts_once_and_is_reported():
    table = {"task": ["a", "b", "a", "a"], "worker": ["w", "w", "w", "v"], "label": [1, 0, 1, 1]}
    with pytest.warns(CrowdWarning, match=r"1 label repeats an \(example, annotator\) and counts once\."):
        labels = CrowdLabels.from_table(table)
    assert labels.n_labels == 3
    assert labels.counts().tolist() == [[0, 2], [1, 0]]


def test_fault_13_same_pair_twice_with_different_labels_is_an_error_that_names_them():
    table = {"task": ["a", "b", "a"], "worker": ["w", "w", "w"], "label": ["x", "x", "y"]}
    with pytest.raises(LabelError, match="annotator 'w' on example 'a':"):
        CrowdLabels.from_table(table)
    numbers = {name: np.array([7, 8, 7]) for name in ("task", "worker")} | {"label": np.array([0, 1, 1])}
    with pytest.raises(LabelError, match="annotator 7 on example 7:"):
        CrowdLabels.from_table(numbers)
    for which, kept in (("first", "x"), ("last", "y")):
        with pytest.warns(CrowdWarning, match=f"the {which} was kept"):
            assert CrowdLabels.from_table(table, on_duplicate=which).to_matrix().tolist() == [[kept], ["x"]]


def test_fault_14_a_label_outside_the_declared_classes_is_an_error():
    with pytest.raises(LabelError, match=r"declared classes \['a', 'b'\]; found 'c' for example 1, annotator 'w'"):
        CrowdLabels.from_matrix([["a"], ["c"]], classes=["a", "b"], annotators=["w"])
    table = {"task": [5], "worker": ["w"], "label": [2]}
    with pytest.raises(LabelError, match=r"declared classes \[0, 1\]; found 2 for example 5, annotator 'w'"):
        CrowdLabels.from_table(table, classes=[0, 1])


def test_fault_15_one_true_and_1_0_are_one_class_and_the_text_1_is_another():
    labels = CrowdLabels.from_matrix([[1, 1.0, True, 0]])
    assert labels.classes.tolist() == [0, 1]
    assert labels.counts().tolist() == [[1, 3]]
    with pytest.raises(LabelError, match="found a mix of int,"):
        CrowdLabels.from_matrix([[1, "1"]])


def test_fault_16_minus_one_is_a_label_unless_it_is_said_to_be_missing():
    matrix = np.array([[1, -1], [-1, 1]])
    assert CrowdLabels.from_matrix(matrix).classes.tolist() == [-1, 1]
    assert CrowdLabels.from_matrix(matrix, missing=-1).n_labels == 2


@pytest.mark.parametrize("relative_to", ["observed", "possible", None])
@pytest.mark.parametrize("steepness", [1e6, 1e308])
def test_fault_17_immense_steepness_gives_finite_weights_that_do_not_all_vanish(steepness, relative_to):
    rng = np.random.default_rng(0)
    labels = CrowdLabels.from_matrix(rng.integers(0, 2, (120, 5)))
    weight = easiness(disagreement(labels, relative_to=relative_to), steepness)
    assert np.isfinite(weight).all()
    assert weight.max() > 0
    nobody_agrees = CrowdLabels.from_matrix(np.tile([0, 1], (60, 1)).repeat(2, axis=0))
    assert easiness(disagreement(nobody_agrees, relative_to=relative_to), steepness).max() > 0


@pytest.mark.slow
def test_fault_25_memory_is_in_proportion_to_labels_and_not_to_examples_times_annotators():
    n_examples, n_annotators = 5_000, 10_000
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_examples, 2))
    table = {
        "example": np.repeat(np.arange(n_examples), 5),
        "annotator": (rng.integers(0, n_annotators, n_examples)[:, np.newaxis] + np.arange(5)).ravel() % n_annotators,
        "label": (X[:, 0] > 0).astype(int).repeat(5) ^ (rng.random(5 * n_examples) < 0.2),
    }
    tracemalloc.start()
    labels = CrowdLabels.from_table(table)
    CrowdRidgeClassifier(max_rounds=3, tol=1.0).fit(X, labels)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 550 * labels.n_labels  # a byte a cell would be 2,000 a label


def test_fault_26_ids_of_any_kind_are_kept_exactly_as_they_came():
    ids = odd_ids(longest=100_000)
    table = {"task": ids, "worker": ids[::-1], "label": [k % 2 for k in range(len(ids))]}
    labels = CrowdLabels.from_table(table, examples=ids)
    assert labels.examples.tolist() == ids
    assert sorted(labels.annotators.tolist()) == sorted(ids)
