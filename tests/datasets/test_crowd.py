import csv
import gzip

import numpy as np
import pytest

from crowdwise.datasets import CROWD_NAMES, data_directory, fetch_crowd
from crowdwise.exceptions import MissingDataError

# examples, annotators, labels (repeated ones once), classes
SIZES = {
    "bluebirds": (108, 39, 4212, 2),
    "bm": (1000, 83, 5000, 2),
    "dog": (807, 109, 8070, 4),
    "ducks": (240, 53, 9600, 2),
    "medical_cause": (975, 304, 14920, 2),
    "music": (700, 44, 2945, 10),
    "product": (8315, 176, 24945, 2),
    "rte": (800, 164, 8000, 2),
    "sentiment": (4999, 203, 27746, 2),
    "weather": (300, 110, 6025, 5),
    "zencrowd_us": (2040, 74, 11155, 2),
}


def test_an_unknown_name_is_told_the_known_ones():
    with pytest.raises(ValueError, match=r"no crowd is called 'cats'.*bluebirds"):
        fetch_crowd("cats")


def test_an_absent_crowd_says_what_to_put_where(tmp_path):
    with pytest.raises(MissingDataError, match=r"is not in .*music.*labels\.csv.*truth\.csv.*CROWDWISE_DATA"):
        fetch_crowd("music", tmp_path)


@pytest.mark.parametrize("name", ["bluebirds", "weather", "zencrowd_us"])
def test_some_crowds_come_with_the_package(name, tmp_path):
    data = fetch_crowd(name, tmp_path)
    assert (*data.labels.shape, data.labels.n_labels, len(data.labels.classes)) == SIZES[name]


@pytest.mark.usefixtures("crowd_data")
@pytest.mark.parametrize("name", CROWD_NAMES)
def test_every_crowd_has_the_size_it_should(name):
    data = fetch_crowd(name)
    assert (*data.labels.shape, data.labels.n_labels, len(data.labels.classes)) == SIZES[name]
    assert data.truth.shape == (data.labels.n_examples,)
    assert set(data.truth) <= set(data.labels.classes)
    for part in (data.X, data.texts):
        assert part is None or len(part) == data.labels.n_examples


@pytest.mark.usefixtures("crowd_data")
def test_features_texts_and_truth_belong_to_their_example():
    music = fetch_crowd("music")
    with gzip.open(data_directory() / "crowd" / "music" / "features.csv.gz", "rt", newline="") as file:
        rows = {int(row["task"]): float(row["f3"]) for row in csv.DictReader(file)}
    assert music.X[:, 3].tolist() == [rows[example] for example in music.labels.examples]
    assert music.X_test.shape == (300, 124)
    assert music.classes[4] == "hiphop"
    sentiment = fetch_crowd("sentiment")
    assert len(sentiment.texts_test) == len(sentiment.truth_test) == 5661


@pytest.mark.usefixtures("crowd_data")
def test_the_last_of_two_answers_counts():
    data = fetch_crowd("zencrowd_us")
    with open(data_directory() / "crowd" / "zencrowd_us" / "labels.csv", newline="") as file:
        last = {(int(row["task"]), row["worker"]): int(row["label"]) for row in csv.DictReader(file)}
    table = data.labels.to_table()
    found = dict(zip(zip(table["example"].tolist(), table["annotator"], strict=True), table["label"], strict=True))
    assert found == last
    assert "116 of them with different answers" in data.DESCR


@pytest.mark.usefixtures("crowd_data")
def test_what_only_some_crowds_have():
    medical = fetch_crowd("medical_cause")
    assert int(np.isfinite(medical.truth_adjudicated).sum()) == 929
    assert medical.terms[0] == ("ANGI PECTORIS", "METOPROLOL")
    assert fetch_crowd("ducks").species[0] == "Canada Goose"
