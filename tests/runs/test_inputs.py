import numpy as np
import pytest

from crowdwise.exceptions import AlignmentError, DataError
from crowdwise.runs import read_inputs

LABELS = "task,worker,label\n1,ann,yes\n1,bob,no\n2,ann,no\n10,bob,yes\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "labels.csv").write_text(LABELS)
    return tmp_path


def inputs_of(folder, features=None, **settings):
    if features is not None:
        (folder / "features.csv").write_text(features)
        return read_inputs(folder / "labels.csv", folder / "features.csv", **settings)
    return read_inputs(folder / "labels.csv", **settings)


def test_labels_follow_the_order_of_the_features(folder):
    inputs = inputs_of(folder, "id,size\n10,1\n1,2\n2,3\n")
    assert inputs.labels.examples.tolist() == [10, 1, 2]
    assert dict(inputs.labels)[1] == {"ann": "yes", "bob": "no"}
    assert inputs.X[:, 0].argsort().tolist() == [0, 1, 2]


def test_examples_without_labels_are_kept_and_counted(folder):
    inputs = inputs_of(folder, "id,size\n3,0\n10,1\n1,2\n2,3\n")
    assert inputs.labels.labels_per_example.tolist() == [0, 1, 2, 1]
    assert inputs.labels.examples.tolist() == [3, 10, 1, 2]
    assert inputs.notes[-1] == "3 examples with labels and features; 1 with features only, to be predicted"


def test_abstentions_stay_where_some_examples_have_no_labels(folder):
    (folder / "labels.csv").write_text(LABELS + "2,bob,unsure\n")
    inputs = inputs_of(folder, "id,size\n3,0\n10,1\n1,2\n2,3\n", labels_as={"abstain": ["unsure"]})
    assert inputs.labels.abstentions_per_example.tolist() == [0, 0, 0, 1]
    assert inputs.labels.abstentions_per_annotator.tolist() == [0, 1]


def test_ids_that_are_not_all_numbers_are_texts_on_both_sides(folder):
    inputs = inputs_of(folder, "id,size\nx7,0\n10,1\n1,2\n2,3\n")
    assert inputs.labels.examples.tolist() == ["x7", "10", "1", "2"]
    assert dict(inputs.labels)["2"] == {"ann": "no"}


def test_labelled_examples_without_features_are_an_error_or_left_out(folder):
    features = "id,size\n1,2\n2,3\n11,4\n"
    words = r"2 examples .* but 1 .* labels only \(such as '10'\), 1 features only \(such as '11'\).*--join inner"
    with pytest.raises(AlignmentError, match=words):
        inputs_of(folder, features)
    inputs = inputs_of(folder, features, join="inner")
    assert inputs.labels.examples.tolist() == [1, 2, 11]
    assert "1 with labels only, left out" in inputs.notes[-1]


def test_ids_that_never_match_are_shown_from_both_sides(folder):
    words = r"no example has both.*3 .* labels only \(such as '1', '2', '10'\), 2 features only \(such as 'a', 'b'\)"
    for join in ("exact", "inner"):
        with pytest.raises(AlignmentError, match=words):
            inputs_of(folder, "id,size\na,2\nb,3\n", join=join)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (
            "001,2\n002,3\n010,4\n",
            r"no example has both.*\. 3 ids would match but for leading zeros, such as 1 and '001'",
        ),
        (" 1,2\n2,3\n10,4\n", r"2 examples have .*\. 1 id would match but for spaces at the ends, such as 1 and ' 1'"),
    ],
)
def test_ids_that_would_match_without_zeros_and_spaces_are_told(folder, rows, words):
    with pytest.raises(AlignmentError, match=words):
        inputs_of(folder, f"id,size\n{rows}")


def test_a_numpy_file_whose_rows_match_no_id_is_told_that_it_has_none(tmp_path):
    (tmp_path / "labels.csv").write_text("id,annotator,label\nu,ann,yes\nv,ann,no\n")
    np.save(tmp_path / "features.npy", np.eye(2))
    with pytest.raises(AlignmentError, match="A NumPy file has no"):
        read_inputs(tmp_path / "labels.csv", tmp_path / "features.npy")
    (tmp_path / "ids.txt").write_text("v\nu\n")
    named = {"ids": tmp_path / "ids.txt"}
    inputs = read_inputs(tmp_path / "labels.csv", tmp_path / "features.npy", features_as=named)
    assert inputs.labels.examples.tolist() == ["v", "u"]


def test_a_column_is_shown_and_becomes_no_feature(tmp_path):
    labels, features = tmp_path / "labels.csv", tmp_path / "features.csv"
    labels.write_text("task,worker,label,answer_text\n1,ann,yes,So so.\n2,ann,no,Not bad.\n1,bob,no,So so.\n")
    features.write_text("id,size,note\n1,3,short\n2,5,long\n")
    inputs = read_inputs(labels, features, show="answer_text")
    assert (inputs.texts, inputs.X.shape[1]) == (["So so.", "Not bad."], 3)
    inputs = read_inputs(labels, features, show="note")
    assert (inputs.texts, inputs.X.shape[1]) == (["short", "long"], 1)
    assert read_inputs(labels, show="answer_text").texts == ["So so.", "Not bad."]
    with pytest.raises(DataError, match=r"labels.csv has no column 'note'"):
        read_inputs(labels, show="note")
    with pytest.raises(DataError, match=r"features.csv has no column 'x'"):
        read_inputs(labels, features, show="x")
    with pytest.raises(DataError, match="leave out --show"):
        read_inputs(labels, show="note", features_as={"text": ["answer_text"]})


def test_texts_in_the_file_of_labels_can_be_the_features(tmp_path):
    rows = "1,ann,yes,good film\n2,ann,no,bad film\n1,bob,no,good film\n"
    (tmp_path / "labels.csv").write_text("task,worker,label,text\n" + rows)
    inputs = read_inputs(tmp_path / "labels.csv", features_as={"text": ["text"]})
    assert inputs.X.shape[0] == 2
    assert inputs.texts == ["good film", "bad film"]
    assert read_inputs(tmp_path / "labels.csv").X is None


@pytest.mark.parametrize("column", ["comment", "What they said"])
def test_texts_in_the_file_of_labels_are_those_of_the_column_that_was_named(tmp_path, column):
    rows = "1,ann,yes,same,good film\n2,ann,no,same,bad film\n1,bob,no,same,good film\n"
    (tmp_path / "labels.csv").write_text(f"task,worker,label,text,{column}\n{rows}")
    inputs = read_inputs(tmp_path / "labels.csv", features_as={"text": [column]})
    assert inputs.texts == ["good film", "bad film"]
    with pytest.raises(DataError, match="'review' needs a file of features"):
        read_inputs(tmp_path / "labels.csv", features_as={"text": ["review"]})


def test_a_column_without_a_file_of_features_is_an_error(folder):
    with pytest.raises(DataError, match="'text' needs a file of features"):
        inputs_of(folder, features_as={"text": ["text"]})


def test_known_answers_are_in_the_terms_of_the_labels(folder):
    (folder / "truth.csv").write_text("example,truth\n1,yes\n99,no\n2,\n")
    inputs = inputs_of(folder, truth=folder / "truth.csv")
    assert inputs.truth == {1: "yes"}
    assert inputs.notes[-2:] == (
        "1 known answer of these examples",
        "1 known answer ignored: no labels or features",
    )
    (folder / "truth.csv").write_text("example,truth\n1,yes\n002,no\n")
    last = inputs_of(folder, truth=folder / "truth.csv").notes[-1]
    assert last.startswith("1 id would match but for leading zeros, such as '002' and '2': write them the same way")


def test_a_known_answer_that_is_the_number_of_a_class_is_that_class(tmp_path):
    (tmp_path / "labels.csv").write_text("id,annotator,label\n1,ann,4\n2,ann,5\n")
    (tmp_path / "truth.csv").write_text("example,label\n1,4.0\n2,5.0\n")
    assert read_inputs(tmp_path / "labels.csv", truth=tmp_path / "truth.csv").truth == {1: 4, 2: 5}
    (tmp_path / "truth.csv").write_text("example,label\n1,4.5\n")
    with pytest.raises(DataError, match=r"'4\.5' is not among the"):
        read_inputs(tmp_path / "labels.csv", truth=tmp_path / "truth.csv")
    (tmp_path / "labels.csv").write_text("id,annotator,label\n1,ann,4\n2,ann,none\n")  # texts, as a version is
    (tmp_path / "truth.csv").write_text("example,label\n1,4.0\n")
    with pytest.raises(DataError, match=r"row 1 .*'4\.0' is the"):
        read_inputs(tmp_path / "labels.csv", truth=tmp_path / "truth.csv")


@pytest.mark.parametrize("header", ["example,human", "case,truth", "example,gold_label", "what,said", "said,what"])
def test_of_two_columns_one_name_says_what_both_are(folder, header):
    columns = header.split(",")
    row = "yes,1" if header == "said,what" else "1,yes"
    (folder / "truth.csv").write_text(f"{header}\n{row}\n")
    (folder / "votes.csv").write_text("what,who,said\n1,ann,yes\n2,ann,no\n1,bob,no\n")
    given = {"example": "what", "annotator": "who", "label": "said"}
    inputs = read_inputs(folder / "votes.csv", truth=folder / "truth.csv", labels_as=given)
    assert inputs.truth == {1: "yes"}
    guessed = header in ("example,human", "case,truth")
    assert inputs.notes[-1] == "1 known answer of these examples" + f" (columns: {', '.join(columns)})" * guessed


def test_known_answers_are_preferred_to_labels_beside_them(folder):
    (folder / "truth.csv").write_text("example,annotator,label,truth\n1,ann,no,yes\n1,bob,yes,yes\n")
    assert inputs_of(folder, truth=folder / "truth.csv").truth == {1: "yes"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "example,label\n1,YES\n",
            r"row 1 after the header: the label 'YES' is not among .* spelt like 'yes'.*--strip",
        ),
        (
            "example,label\n1,maybe\n",
            r"truth\.csv, row 1 after the header: the label 'maybe' is not among .*'no', 'yes'",
        ),
        ("example,label\n1,yes\n1,no\n", "'1' has two different labels"),
        ("example,label\n7,yes\n", r"no answer for any of the examples; the first of them is '1'"),
        (
            "example,label\n002,yes\n",
            r"the first of them is '1'\. 1 id would match but for leading zeros.*'002' and '2'",
        ),
        ("a,b\n7,yes\n", r"one column with the example was expected.*a, b"),
    ],
)
def test_odd_answers_are_errors(folder, text, words):
    (folder / "truth.csv").write_text(text)
    with pytest.raises(DataError, match=words):
        inputs_of(folder, truth=folder / "truth.csv")


def test_times_of_rows_without_a_label_are_those_of_no_one(folder):
    rows = "1,ann,yes,2026-01-01\n1,bob,no,2026-01-05\n2,ann,no,2026-01-02\n1,cas,,2026-03-01\n"
    (folder / "timed.csv").write_text("task,worker,label,time\n" + rows)
    times = read_inputs(folder / "timed.csv").times
    assert times.astype("datetime64[D]").astype(str).tolist() == ["2026-01-01", "2026-01-05", "2026-01-02"]
