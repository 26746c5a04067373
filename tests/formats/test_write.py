"""Consensus and labels -> files that people, spreadsheets, crowd-kit and Label Studio can take; and back."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdwise import CrowdLabels, aggregate, formats
from crowdwise.exceptions import DataError, LabelError, OutputError
from crowdwise.labels._encode import as_objects
from crowdwise.results.consensus import Consensus, RatingConsensus

FILES = Path(__file__).parent / "files"
CONSENSUS = Consensus(as_objects(["a", "=1+1"]), as_objects(["no", "yes"]), np.array([[0.25, 0.75], [0.875, 0.125]]))


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_a_table_has_the_probability_of_every_class_and_no_formula(tmp_path):
    formats.write(CONSENSUS, tmp_path / "consensus.csv")
    assert rows_of(tmp_path / "consensus.csv") == [
        ["example", "label", "confidence", "p(no)", "p(yes)"],
        ["a", "yes", "0.75", "0.25", "0.75"],
        ["'=1+1", "no", "0.875", "0.875", "0.125"],
    ]
    ratings = RatingConsensus(np.array([7, 8]), np.array([-1.5, 2.0]), np.array([0.5, 0.25]))
    formats.write(ratings, tmp_path / "ratings.csv")
    assert rows_of(tmp_path / "ratings.csv") == [
        ["example", "label", "std"],
        ["7", "-1.5", "0.5"],
        ["8", "2.0", "0.25"],
    ]


def test_the_frame_of_crowd_kit_has_names_as_they_are(tmp_path):
    formats.write(CONSENSUS, tmp_path / "consensus.csv", format="crowd-kit")
    assert rows_of(tmp_path / "consensus.csv") == [["task", "agg_label"], ["a", "yes"], ["=1+1", "no"]]


def test_label_studio_gets_its_tasks_back_with_predictions(tmp_path):
    tasks = FILES / "label_studio.json"
    consensus = aggregate(formats.read(tasks).labels).consensus
    formats.write(consensus, tmp_path / "tasks.json", format="label-studio", tasks=tasks)
    written, exported = json.loads((tmp_path / "tasks.json").read_text()), json.loads(tasks.read_text())
    assert [task["data"] for task in written] == [task["data"] for task in exported]
    assert all(task.keys() == {"data", "predictions"} for task in written)
    for task, label, confidence in zip(written, consensus.label, consensus.confidence, strict=True):
        (prediction,) = task["predictions"]
        assert prediction["model_version"] == "crowdwise"
        assert prediction["score"] == confidence
        assert prediction["result"] == [
            {"from_name": "sentiment", "to_name": "text", "type": "choices", "value": {"choices": label.split("|")}}
        ]


def test_predictions_are_read_back_as_an_annotator(tmp_path):
    consensus = Consensus(np.arange(2), as_objects(["a", "b|c"]), np.array([[0.75, 0.25], [0.25, 0.75]]))
    formats.write(consensus, tmp_path / "t.json", format="label-studio", texts={0: "one", 1: "two", 2: "three"})
    tasks = json.loads((tmp_path / "t.json").read_text())
    (tmp_path / "t.json").write_text(json.dumps([{**task, "annotations": []} for task in tasks]))
    file = formats.read(tmp_path / "t.json")
    assert dict(file.labels) == {0: {"model:crowdwise": "a"}, 1: {"model:crowdwise": "b|c"}}
    assert file.texts == {0: "one", 1: "two"}


def test_label_studio_needs_something_to_show_and_one_question(tmp_path):
    with pytest.raises(DataError, match=r"give the export \(tasks=...\) or the texts"):
        formats.write(CONSENSUS, tmp_path / "t.json", format="label-studio")
    with pytest.raises(LabelError, match="has 2 questions"):
        formats.write(
            CONSENSUS, tmp_path / "t.json", format="label-studio", tasks=FILES / "label_studio_questions.json"
        )
    with pytest.raises(DataError, match="is not a JSON export"):
        formats.write(CONSENSUS, tmp_path / "t.json", format="label-studio", tasks=FILES / "peerannot.json")
    assert list(tmp_path.iterdir()) == []
    ratings = RatingConsensus(np.array([1, 2]), np.array([2.6, 3.0]), np.array([0.5, 0.25]))
    options = {"tasks": FILES / "label_studio_questions.json", "question": "stars"}
    formats.write(ratings, tmp_path / "t.json", format="label-studio", **options)
    first = json.loads((tmp_path / "t.json").read_text())[0]["predictions"][0]
    assert first["result"][0]["value"] == {"rating": 3}
    assert "score" not in first


def test_tasks_of_other_examples_and_questions_of_another_kind_are_errors(tmp_path):
    others = Consensus(np.array([98, 99]), as_objects(["a", "b"]), np.eye(2))
    with pytest.raises(DataError, match="has no task of the"):
        formats.write(others, tmp_path / "t.json", format="label-studio", tasks=FILES / "label_studio.json")
    words = Consensus(np.array([1, 2]), as_objects(["a", "b"]), np.eye(2))
    options = {"tasks": FILES / "label_studio_questions.json", "question": "stars"}
    with pytest.raises(DataError, match="'stars' is answered with numbers,"):
        formats.write(words, tmp_path / "t.json", format="label-studio", **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("format", formats.LABEL_FORMATS)
def test_labels_come_back_from_every_format(tmp_path, format):
    labels = CrowdLabels.from_table({"task": ["t1", "t1", "t2"], "worker": ["ann", "bob", "ann"], "label": [1, -2, 0]})
    assert formats.write_labels(labels, tmp_path / "labels", format=format) == ()
    assert formats.read(tmp_path / "labels", format=format).labels == labels


names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=5)


@pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdWarning")  # about classes that differ little
@settings(max_examples=40)
@given(
    st.dictionaries(st.tuples(names, names), names, min_size=1, max_size=8), st.sampled_from(["crowd-kit", "peerannot"])
)
def test_names_of_any_kind_come_back(tmp_path_factory, cells, format):
    missing = formats.read.__kwdefaults__["missing"]
    cells = {pair: label for pair, label in cells.items() if label not in missing}
    path = tmp_path_factory.mktemp("labels") / "labels"
    if not cells:
        return
    table = {
        "task": [example for example, _ in cells],
        "worker": [annotator for _, annotator in cells],
        "label": [f"<{label}" for label in cells.values()],
    }
    labels = CrowdLabels.from_table(table, classes=sorted(set(table["label"])))
    formats.write_labels(labels, path, format=format)
    read = formats.read(path, format=format, missing=()).labels
    assert [str(example) for example in read.examples] == sorted(set(table["task"]), key=_as_read(table["task"]))
    again = {(str(example), str(who)): label for example, given in read for who, label in given.items()}
    assert again == {pair: f"<{label}" for pair, label in cells.items()}


def _as_read(ids):
    """Ids that are all whole numbers are sorted as numbers."""
    whole = all(name.isascii() and name.lstrip("-").isdigit() and str(int(name)) == name for name in ids)
    return int if whole else str


def test_a_file_is_converted_and_never_replaced_unasked(tmp_path):
    target = tmp_path / "labels.csv"
    file = formats.convert(FILES / "mturk.csv", target, target_format="crowd-kit")
    assert file.format == "Mechanical Turk"
    assert formats.read(target).labels == file.labels
    old = target.read_bytes()
    with pytest.raises(OutputError, match=r"already exists.*--force"):
        formats.convert(FILES / "toloka.tsv", target)
    assert target.read_bytes() == old
    formats.convert(FILES / "toloka.tsv", target, force=True)
    assert formats.read(target).labels == formats.read(FILES / "toloka.tsv").labels
    with pytest.raises(OutputError, match="cannot be written"):
        formats.convert(FILES / "toloka.tsv", tmp_path / "none" / "labels.csv")


def test_half_a_character_does_not_stop_the_writing(tmp_path):
    half = Consensus(as_objects(["\ud83d"]), as_objects(["no", "yes"]), np.array([[0.25, 0.75]]))
    formats.write(half, tmp_path / "consensus.csv")
    assert rows_of(tmp_path / "consensus.csv")[1][0] == "\\ud83d"
    formats.write(half, tmp_path / "tasks.json", format="label-studio", texts={"\ud83d": "\ud83d"})
    assert json.loads((tmp_path / "tasks.json").read_text())[0]["data"] == {"text": "\ud83d"}


def test_names_that_look_like_formulas_are_told(tmp_path):
    (tmp_path / "in.csv").write_text("task,worker,label\n=A1,@bob,-1\n")
    notes = formats.convert(tmp_path / "in.csv", tmp_path / "out.csv").notes
    assert rows_of(tmp_path / "out.csv")[1] == ["'=A1", "'@bob", "-1"]
    assert 'formulas get an apostrophe: 2, such as "\'=A1"' in notes[-1]


@pytest.mark.filterwarnings("ignore")  # of crowd-kit's own calls of pandas
def test_crowd_kit_takes_what_is_written(tmp_path):
    aggregation = pytest.importorskip(
        "crowdkit.aggregation", reason="crowd-kit is not installed: pip install crowd-kit"
    )
    import pandas as pd
    from crowdkit.metrics.workers import accuracy_on_aggregates

    formats.convert(FILES / "mturk.csv", tmp_path / "labels.csv", target_format="crowd-kit")
    labels = formats.read(tmp_path / "labels.csv").labels
    frame = pd.read_csv(tmp_path / "labels.csv")
    majority = aggregation.MajorityVote().fit_predict(frame)
    assert majority.to_dict() == dict(zip(labels.examples.tolist(), labels.majority().tolist(), strict=True))
    formats.write(aggregate(labels).consensus, tmp_path / "consensus.csv", format="crowd-kit")
    consensus = pd.read_csv(tmp_path / "consensus.csv").set_index("task")["agg_label"]
    scores = accuracy_on_aggregates(frame, aggregates=consensus, by="worker")
    assert sorted(scores.index) == labels.annotators.tolist()
