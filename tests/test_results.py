"""Records of results: short to look at, complete as frames, and not to be changed by accident."""

import copy
import dataclasses
import importlib
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

from crowdwise._arrays import read_only
from crowdwise.labels import _frames
from crowdwise.results.consensus import Consensus, RatingConsensus
from crowdwise.results.fit_results import FitResults

PROBA = np.array([[0.75, 0.25], [0.5, 0.5], [0.125, 0.875]])


def consensus():
    return Consensus(np.array(["u", "v", "w"], dtype=object), np.array(["no", "yes"], dtype=object), PROBA.copy())


def ratings():
    return RatingConsensus(np.array([7, 8]), np.array([1.5, 2.0]), np.array([0.1, 0.3]))


def results(answer=None, accuracy=True):
    answer = consensus() if answer is None else answer
    return FitResults(
        annotators=np.array(["ann", "bob", "cy"], dtype=object),
        n_labels=np.array([3, 2, 0]),
        expertise=np.array([2.0, 0.5, np.nan]),
        accuracy=np.array([0.9, 0.6, np.nan]) if accuracy else None,
        annotator_flags={"bob": ("few labels", "worse than chance")},
        fitted=SimpleNamespace(classes=read_only(np.array(["no", "yes"], dtype=object))) if accuracy else None,
        n_examples=len(answer),
        consensus=answer,
        label_consensus=answer,
        disagreement=np.linspace(0, 1, len(answer)),
        steepness=2.0,
        objective=np.array([3.0, 2.0]),
    )


def rating_results():
    return results(ratings(), accuracy=False)


RECORDS = {"consensus": consensus, "ratings": ratings, "fit": results}


def arrays_of(record):
    """Every array in a record and in the records within it, computed ones too."""
    names = {field.name for field in dataclasses.fields(record)} | {"label", "confidence"}
    for name in names:
        value = getattr(record, name, None)
        if dataclasses.is_dataclass(value):
            yield from arrays_of(value)
        elif isinstance(value, np.ndarray):
            yield value


def test_the_most_probable_class_is_the_label_and_the_first_of_those_that_tie():
    answer = consensus()
    assert answer.label.tolist() == ["no", "no", "yes"]
    assert answer.confidence.tolist() == [0.75, 0.5, 0.875]
    assert len(answer) == 3


@pytest.mark.parametrize("name", RECORDS)
def test_records_cannot_be_changed_also_when_copied_or_pickled(name):
    record = RECORDS[name]()
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(record, dataclasses.fields(record)[0].name, None)
    for same in (record, copy.deepcopy(record), pickle.loads(pickle.dumps(record)), dataclasses.replace(record)):
        found = list(arrays_of(same))
        assert found
        for array in found:
            with pytest.raises(ValueError, match="read-only"):
                array[:1] = array[1:2]


def test_copies_are_ones_own_and_what_was_given_stays_writable():
    proba = PROBA.copy()
    answer = Consensus(np.arange(3), np.array([0, 1]), proba)
    assert proba.flags.writeable
    own = answer.label.copy()
    own[0] = 1
    assert answer.label[0] == 0


@pytest.mark.parametrize("make", [results, rating_results])
def test_attributes_of_a_model_cannot_change_its_results(make):
    for name, value in make().attributes().items():
        assert not (isinstance(value, np.ndarray) and value.flags.writeable), name


def test_attributes_are_those_of_classes_or_of_ratings():
    of_classes, of_ratings = results().attributes(), rating_results().attributes()
    assert set(of_classes) - set(of_ratings) == {
        "classes_",
        "accuracy_",
        "consensus_proba_",
        "consensus_confidence_",
    }
    assert set(of_ratings) - set(of_classes) == {"consensus_std_"}
    assert of_classes["examples_"].tolist() == ["u", "v", "w"]
    assert results().easiness[0] == 1.0
    assert of_classes["n_rounds_"] == 2


def test_records_are_short_to_look_at():
    assert repr(consensus()) == "Consensus: 3 examples of 2 classes; mean confidence 0.71"
    assert repr(ratings()) == "RatingConsensus: 2 examples; mean standard deviation 0.2"
    words = "FitResults: 3 examples, 3 annotators, 2 rounds, converged"
    assert repr(results()) == f"{words}; estimated accuracy of annotators 0.60 to 0.90"
    nobody = FitResults(np.zeros(0), np.zeros(0, int), np.zeros(0), None, {}, consensus(), consensus())
    assert repr(nobody) == "FitResults: 0 examples, 0 annotators, 0 rounds, converged"
    assert repr(Consensus(np.zeros(0), np.arange(2), np.zeros((0, 2)))) == "Consensus: 0 examples of 2 classes"
    assert repr(RatingConsensus(np.zeros(0), np.zeros(0), np.zeros(0))) == "RatingConsensus: 0 examples"


@pytest.fixture(params=["pandas", "polars"])
def library(request, monkeypatch):
    """Frames of this library, as where the other one is not installed."""

    wanted = importlib.import_module(request.param)

    def only(name):
        if name != request.param:
            raise ImportError(name)
        return wanted

    monkeypatch.setattr(_frames.importlib, "import_module", only)
    return wanted


def test_frames_hold_ids_labels_and_how_sure_they_are(library):
    frame = consensus().to_frame()
    assert isinstance(frame, library.DataFrame)
    assert list(frame.columns) == ["example", "label", "confidence", "p(no)", "p(yes)"]
    assert frame["example"].to_list() == ["u", "v", "w"]
    assert frame["label"].to_list() == ["no", "no", "yes"]
    assert frame["p(yes)"].to_list() == [0.25, 0.5, 0.875]
    assert {name: ratings().to_frame()[name].to_list() for name in ("example", "label", "std")} == {
        "example": [7, 8],
        "label": [1.5, 2.0],
        "std": [0.1, 0.3],
    }
    crowd = results().annotators_frame()
    assert list(crowd.columns) == [
        "annotator",
        "labels",
        "expertise",
        "accuracy",
        "accuracy_low",
        "accuracy_high",
        "flags",
    ]
    assert crowd["flags"].to_list() == ["", "few labels; worse than chance", ""]
    assert "accuracy" not in rating_results().annotators_frame().columns


def test_frames_hold_ids_of_every_type(library):
    for ids in ([("a", 1), ("b", 2), ("c", 3)], ["a", 2, b"c"], [1.5, 2.5, 3.5], [True, False, 7]):
        names = np.fromiter(ids, dtype=object, count=3)
        kept = Consensus(names, np.array([0, 1]), PROBA).to_frame()["example"].to_list()
        assert [tuple(name) if isinstance(name, list) else name for name in kept] == ids


def test_frames_can_be_changed_without_changing_the_record():
    answer = consensus()
    frame = answer.to_frame()
    frame.loc[0, "label"] = "yes"
    frame.loc[0, "confidence"] = 0.0
    assert answer.label[0] == "no"
    assert answer.confidence[0] == 0.75
