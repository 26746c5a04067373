import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from crowdwise import CrowdLabels, CrowdRidgeClassifier, align
from crowdwise.exceptions import CrowdWarning, LabelError
from crowdwise.labels._align import as_labels
from crowdwise.labels._encode import as_objects
from crowdwise.labels._mistakes import ids_spelt_otherwise, perhaps_no_answers

CLASSES = {"ann": [0, 1, 1, 0] * 5, "bob": [0, 0, 1, 0] * 5}
N = 20
IDS = {
    "numbers": list(range(N)),
    "numbers from 1": list(range(1, N + 1)),
    "texts": [f"u{i}" for i in range(N)],
    "fractions": [i + 0.5 for i in range(N)],
}


def test_a_long_table_given_as_a_matrix_is_an_error():
    table = pd.DataFrame({"task": [1, 1, 2], "worker": [4, 5, 4], "label": [0, 1, 1]})
    with pytest.raises(LabelError, match="look like a long table"):
        CrowdLabels.from_matrix(table)


def test_a_long_table_with_names_of_its_own_is_told_how_to_be_read():
    table = pd.DataFrame({"case": [1, 1, 2], "who": ["a", "b", "a"], "said": ["x", "y", "y"]})
    with pytest.raises(LabelError, match=r"a mix of int, str.*a"):
        CrowdLabels.from_matrix(table)


def test_a_long_table_with_a_column_id_is_told_how_to_be_read():
    table = pd.DataFrame({"ID": [1, 1, 2], "annotator": ["a", "b", "a"], "label": ["x", "y", "y"]})
    with pytest.raises(LabelError, match="look like a long table"):
        as_labels(table)
    assert CrowdLabels.from_table(table, example="ID").n_labels == 3


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@pytest.mark.parametrize("name", ["id", "Task", "photo"])
@pytest.mark.parametrize("ids", IDS)
def test_a_column_of_ids_is_no_annotator(ids, name, make):
    frame = make({name: IDS[ids], **CLASSES})
    with pytest.raises(LabelError, match=rf"column '{name}' looks like ids.*20 values are all different.*set_index"):
        as_labels(frame)


def test_a_column_of_ids_in_an_array_is_no_annotator():
    matrix = np.column_stack([np.array(CLASSES["ann"]), np.arange(N)])
    with pytest.raises(LabelError, match=r"column number 1 \(from 0\) looks like ids.*such as \[0, 1, 2\]"):
        CrowdLabels.from_matrix(matrix)


def test_a_column_with_the_name_of_an_id_needs_few_rows():
    with pytest.raises(LabelError, match="column 'item' looks like ids"):
        CrowdLabels.from_matrix(pd.DataFrame({"item": [1, 2, 3], "ann": [0, 1, 0]}))
    with pytest.raises(LabelError, match="column 'item' looks like ids"):
        CrowdLabels.from_matrix(pd.DataFrame({"item": [1, 2, 3], "ann": [0.5, 1.5, 0.0]}), scale="interval")


def test_annotators_are_not_taken_for_ids():
    for frame, scale in (
        ({"id": [0, 1, 1], "ann": [0, 1, 0]}, "nominal"),  # a name alone proves nothing
        ({"ann": [0, 1, 2], "bob": [0, 1, 1]}, "nominal"),  # nor do three examples of three classes
        ({"ann": range(N), "bob": range(1, N + 1)}, "nominal"),  # many classes
        ({"ann": np.arange(N) / 7, "bob": [1.0, 2.0] * 10}, "interval"),  # ratings may all differ
        ({"ann": [None, *range(1, N)], "bob": [0, 1] * 10}, "nominal"),  # ids are never missing
        ({"ann": range(N)}, "nominal"),
    ):
        assert CrowdLabels.from_matrix(pd.DataFrame(frame), scale=scale).n_annotators == len(frame)
    declared = CrowdLabels.from_matrix(pd.DataFrame({"id": range(N), **CLASSES}), classes=range(N))
    assert declared.n_annotators == 3


def test_the_index_is_what_the_message_says_to_make_of_ids():
    frame = pd.DataFrame({"id": IDS["texts"], **CLASSES}).set_index("id")
    assert CrowdLabels.from_matrix(frame).examples.tolist() == IDS["texts"]


def test_numbers_with_a_fraction_are_classes_only_if_declared():
    matrix, table = [[0.5, 1.0]], {"task": [0, 0], "worker": [0, 1], "label": [0.5, 1.0]}
    for read, values in ((CrowdLabels.from_matrix, matrix), (CrowdLabels.from_table, table), (as_labels, matrix)):
        with pytest.raises(LabelError, match=r"continuous. Expected classes, got 0.5"):
            read(values)
    for read, values in ((CrowdLabels.from_matrix, matrix), (CrowdLabels.from_table, table)):
        assert read(values, classes=[0.5, 1.0]).classes.tolist() == [0.5, 1.0]
        assert read(values, scale="interval").values.tolist() == [0.5, 1.0]


def test_whole_numbers_are_classes_from_matrices_and_tables_alike():
    table = {"task": [0, 0], "worker": [0, 1], "label": [2.0, 1.0]}
    for labels in (CrowdLabels.from_matrix([[2.0, 1.0]]), CrowdLabels.from_table(table)):
        assert labels.classes.tolist() == [1, 2]
        assert labels.classes.dtype == np.int64


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["no", " no", "NO"], "3 classes.*' no', 'NO', 'no'"),
        (["yes", "Yes", "no"], "2 classes.*'Yes', 'yes'"),
        (["caf\u00e9", "cafe\u0301"], "2 classes"),
    ],
)
def test_one_class_in_several_spellings_is_noted(names, shown):
    table = {"task": range(len(names)), "worker": [0] * len(names), "label": names}
    for read, values in ((CrowdLabels.from_matrix, [names]), (CrowdLabels.from_table, table), (as_labels, names)):
        with pytest.warns(CrowdWarning, match=shown):
            labels = read(values)
        assert sorted(labels.classes.tolist()) == sorted(names)
    assert CrowdLabels.from_matrix([names], classes=names).n_labels == len(names)  # declared: meant so


@pytest.mark.parametrize(
    ("ids", "others", "words"),
    [
        (
            ["001", "002"],
            [1, 2, 3],
            "2 ids would match but for leading zeros, such as '001' and 1: write them the same way",
        ),
        ([" 7", "8"], ["7", "9"], "1 id would match but for spaces at the ends, such as ' 7' and '7'"),
        ([" 001"], ["1"], "1 id would match but for leading zeros and spaces at the ends"),
        (["1"], [1], "1 id would match but for being text or a number, such as '1' and 1"),
    ],
)
def test_ids_that_differ_in_zeros_and_spaces_are_told_apart_from_others(ids, others, words):
    said = ids_spelt_otherwise(as_objects(ids), as_objects(others))
    assert said.startswith(words)
    assert ("read_csv without dtype=str" in said) == ("zeros" in words)


@pytest.mark.parametrize(("ids", "others"), [(["10"], ["1"]), (["0"], [""]), (["0a"], ["a"]), ([], ["1"]), (["1"], [])])
def test_other_ids_are_not_taken_for_spellings_of_each_other(ids, others):
    assert ids_spelt_otherwise(as_objects(ids), as_objects(others)) == ""


@pytest.mark.parametrize(
    ("classes", "meant"),
    [
        (["Unsure", "no", "yes"], ["Unsure"]),
        (["N/A", "bad", "good", "skip"], ["N/A", "skip"]),
        (["1", "2", "no idea"], ["no idea"]),
        ([-1, 0, 1, 2], [-1]),
        (["I don't know", "a", "b"], ["I don't know"]),
        (["no", "yes"], []),
        (["1", "2", "no", "yes"], []),
        (["N/A", "yes"], []),  # one class would be left
        ([-2, -1, 0, 1], []),
        ([-1, 1], []),
        (["neutral", "a", "b"], []),
    ],
)
def test_classes_that_may_mean_no_answer_are_asked_about(classes, meant):
    assert perhaps_no_answers(np.array(classes)) == meant
    columns = [classes, classes]
    if not meant:
        CrowdLabels.from_matrix(np.array(columns).T)
        return
    option = "missing=-1" if meant == [-1] else "abstain="
    with pytest.warns(CrowdWarning, match=f"no answer: {option}"):
        CrowdLabels.from_matrix(np.array(columns).T)
    CrowdLabels.from_matrix(np.array(columns).T, classes=classes)
    CrowdLabels.from_matrix(np.array(columns).T, **({"missing": -1} if meant == [-1] else {"abstain": meant}))


def test_a_grid_search_warns_once_that_rows_are_matched_by_position_and_what_keeps_ids():
    rng = np.random.default_rng(0)
    names, truth = [f"e{i}" for i in range(60)], np.arange(60) % 2
    X = pd.DataFrame({"size": truth + rng.normal(size=60), "age": rng.normal(size=60)}, index=names)
    table = {"task": names * 3, "worker": np.repeat(["a", "b", "c"], 60), "label": np.tile(truth, 3)}
    labels = CrowdLabels.from_table(table)
    pipeline = make_pipeline(StandardScaler(), CrowdRidgeClassifier())
    grid = {"crowdridgeclassifier__l2": [0.1, 1.0]}
    with pytest.warns(CrowdWarning, match="set_output") as warned:
        wrong = GridSearchCV(pipeline, grid, cv=3).fit(X, labels)
    assert len(warned) == 1
    X, labels = align(X, CrowdLabels.from_table(table))
    right = GridSearchCV(pipeline.set_output(transform="pandas"), grid, cv=3, scoring="accuracy").fit(X, labels)
    assert right.best_score_ > wrong.best_score_
    fitted = make_pipeline(StandardScaler(), CrowdRidgeClassifier()).set_output(transform="pandas")
    assert fitted.fit(X, CrowdLabels.from_table(table)).predict(X).tolist() == right.predict(X).tolist()
