"""Models that are written to a file and read again: the same to the last bit."""

import dataclasses
import datetime
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from all_models import (
    EVERYTHING,
    LEARNERS,
    MODELS,
    PERCEPTRONS,
    data_for,
    fit_quietly,
    new,
    over,
    quick,
    quiet,
    scores_of,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st
from saved_models import DATA, TREE, around, assert_same, fitted, read_again
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import crowdwise
from crowdwise import (
    CrowdClassifier,
    CrowdLabels,
    CrowdLogisticClassifier,
    CrowdRidgeClassifier,
    CrowdRidgeClassifierCV,
    aggregate,
)
from crowdwise.em import Confusion, OneCoin, Shared
from crowdwise.exceptions import MissingExtraError, ModelFileError
from crowdwise.model_file import FORMAT_VERSION, save
from crowdwise.model_file import _read as read
from crowdwise.model_file import _write as write
from crowdwise.paper.theory import EasyFirstPerceptron
from crowdwise.weights import Curriculum, Fading, SelfPaced, Smooth

# ---------------------------------------------------------------------- the same model


@quiet
@over(EVERYTHING)
def test_a_model_that_is_read_again_has_the_same_bits(name, tmp_path):
    model, _, _ = fitted(name, missing=0.3)
    again = read_again(model, tmp_path / "model", trusted=[TREE])
    if name == "any tree":  # the arrays of a tree cannot be looked at; its predictions are compared below
        model, again = ((each.results_, dataclasses.replace(each.fitted_, estimator=None)) for each in (model, again))
    assert_same(model, again)


@quiet
@over(["ridge", "regressor", "logistic", "aggregate"])
def test_a_model_that_learnt_from_truths_is_read_again_with_the_same_bits(name, tmp_path):
    X, labels = data_for(name, missing=0.3)
    model = fit_quietly(new(name, **quick(name)), X, labels, truth={i: i % 2 for i in range(25)})
    model = model.results_ if name == "aggregate" else model
    again = read_again(model, tmp_path / "model")
    assert_same(model, again)
    assert again.truth_check.n == 25 if name == "aggregate" else again.truth_check_.n == 25


@quiet
@over(LEARNERS)
def test_a_model_that_is_read_again_predicts_the_same(name, tmp_path):
    model, X, labels = fitted(name, missing=0.3)
    again = read_again(model, tmp_path / "model", trusted=[TREE])
    kinds = [np.asarray, np.float32] if name in PERCEPTRONS else [np.asarray, np.float32, sparse.csr_array]
    for kind in kinds:
        assert_same(model.predict(kind(X)), again.predict(kind(X)))
        assert scores_of(model, kind(X)).tobytes() == scores_of(again, kind(X)).tobytes()
    assert model.score(X, labels) == again.score(X, labels)
    if name in MODELS:
        for use_model in (True, False):
            assert_same(model.consensus(X, labels, use_model), again.consensus(X, labels, use_model))


# Rows far from zero, of more than two classes: here coefficients of another layout give other last digits.
@quiet
@over(MODELS, slow=["any"])
@pytest.mark.parametrize("kind", [np.asarray, np.float32, sparse.csr_array], ids=["float64", "float32", "sparse"])
def test_the_layout_of_arrays_changes_no_bit(name, kind, tmp_path):
    model, X, labels = fitted(name, n_classes=4)
    X = kind(X + 1e7)
    fit_quietly(model, X, labels)
    again = read_again(model, tmp_path / "model", trusted=[TREE])
    assert scores_of(model, X).tobytes() == scores_of(again, X).tobytes()
    assert_same(model.consensus(X, labels), again.consensus(X, labels))
    if name.startswith(("logistic", "any")):
        assert_same(model.fitted_.annotators.accuracy, again.fitted_.annotators.accuracy)


@quiet
@over(EVERYTHING, slow=["any"])
def test_a_model_that_is_read_again_has_its_frames(name, tmp_path):
    model, _, _ = fitted(name)
    again = read_again(model, tmp_path / "model", trusted=[TREE])
    frame = "consensus_frame"
    for method in (frame, "annotators_frame"):
        assert getattr(model, method)().equals(getattr(again, method)())


@quiet
@over(LEARNERS, slow=["any"])
def test_a_model_that_is_read_again_can_be_cloned_changed_and_fitted(name, tmp_path):
    model, X, labels = fitted(name)
    again = read_again(model, tmp_path / "model", trusted=[TREE])
    assert repr(clone(again)) == repr(clone(model))
    before = scores_of(model, X)
    assert fit_quietly(again, X, labels) is again
    np.testing.assert_array_equal(scores_of(again, X), before)
    again.set_params(**({"max_regions": 7} if name in PERCEPTRONS else {"max_rounds": 3}))
    assert fit_quietly(again, X, labels).get_params() != model.get_params()


def test_a_perceptron_goes_on_where_it_was(tmp_path):
    X, labels = data_for("perceptron")
    model = EasyFirstPerceptron(order="random", random_state=np.random.default_rng(3))
    model.partial_fit(X[:40], labels[:40])
    again = read_again(model, tmp_path / "model")
    assert_same(model.partial_fit(X[40:], labels[40:]), again.partial_fit(X[40:], labels[40:]))


_IN_A_NEW_PROCESS = """
import sys
import numpy as np
from scipy import sparse
import crowdwise

X = np.load(sys.argv[1])
for path in sys.argv[2:]:
    model = crowdwise.load(path)
    score = getattr(model, "decision_function", model.predict)
    rows = X if path.endswith("perceptron") else sparse.csr_array(X)
    print(score(X).tobytes().hex(), score(rows).tobytes().hex(), model.consensus_.tobytes().hex())
"""


@quiet
def test_a_new_process_computes_the_same_bits(tmp_path):
    paths, expected = [], []
    for name in ("ridge", "ridge cv", "regressor", "logistic", "perceptron"):
        model, X, _ = fitted(name)
        paths.append(tmp_path / name)
        model.save(paths[-1])
        rows = X if name == "perceptron" else sparse.csr_array(X)
        arrays = scores_of(model, X), scores_of(model, rows), model.consensus_
        expected.append(" ".join(array.tobytes().hex() for array in arrays))
    np.save(tmp_path / "X.npy", X)
    command = [sys.executable, "-c", _IN_A_NEW_PROCESS, tmp_path / "X.npy", *paths]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.splitlines() == expected


@quiet
def test_what_is_read_is_written_again_to_the_same_bytes(tmp_path):
    for name in ("ridge cv", "logistic", "aggregate"):
        model, _, _ = fitted(name)
        read_again(model, tmp_path / "one").save(tmp_path / "two")
        assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_an_array_that_several_results_share_is_written_once(tmp_path):
    X, labels = data_for("ridge")
    labels = CrowdLabels.from_matrix(labels.to_matrix(), examples=[f"row {i}" for i in range(len(X))])
    model = CrowdRidgeClassifier().fit(X, labels)
    again = read_again(model, tmp_path / "model")
    assert (tmp_path / "model").read_bytes().count(b'"row 17"') == 1
    assert np.shares_memory(again.coef_, again.fitted_.coef)
    assert np.shares_memory(again.examples_, again.results_.label_consensus.examples)


# ---------------------------------------------------------------------- values and their types

NAMES = {
    "int": [3, 1, 2],
    "large int": [2**70, -(2**70), 1],
    "str": ["b", "ä\ud800", ""],
    "float": [0.1, -0.0, 1e308],
    "int and str": [1, "1", 2.5],
    "bool and int": [False, 7, 2],
    "tuple": [(1, "a"), (1, "b"), (2, None)],
    "bytes": [b"\x00\xff", b"b", b""],
    "date": [datetime.date(2026, 1, 2), datetime.date(2025, 1, 2), datetime.date(1, 1, 1)],
    "datetime": [datetime.datetime(2026, 1, 2, 3, 4, 5, 6), datetime.datetime.min, datetime.datetime.max],
    "time of NumPy": np.array(["2026-01-02", "2025-01-02", "1900-01-01"], dtype="M8[s]"),
    "str of NumPy": np.array(["b", "aaa", "c"]),
    "float32 of NumPy": np.array([0.1, 0.2, 0.3], dtype=np.float32),
}


@quiet
@pytest.mark.parametrize("kind", NAMES)
def test_identifiers_keep_their_types(kind, tmp_path):
    matrix = [[0, 1, 1], [1, 1, 0], [0, 0, 1]]
    found = aggregate(CrowdLabels.from_matrix(matrix, examples=NAMES[kind], annotators=NAMES[kind]))
    assert_same(found, read_again(found, tmp_path / "file"))


@quiet
@pytest.mark.parametrize(
    "classes",
    [[2, 1], ["b", "a"], [False, True], [0.5, 1.5], [1, 2**70], np.array(["2026-01-02", "2025-01-02"], dtype="M8[D]")],
    ids=str,
)
def test_classes_keep_their_types(classes, tmp_path):
    matrix = np.array([[0, 1, 1], [1, 1, 0], [0, 0, 1]])
    values = np.array([*classes], dtype=getattr(classes, "dtype", object))[matrix]
    found = aggregate(CrowdLabels.from_matrix(values, classes=classes))
    again = read_again(found, tmp_path / "file")
    assert_same(found, again)
    assert_same(found.label, again.label)


plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
scalars = st.sampled_from(
    [np.float32(0.1), np.int8(-3), np.bool_(True), np.float64("nan"), np.str_("a"), np.uint64(2**63)]
)
times = st.sampled_from([np.datetime64("2026-01-01T00:00:00.01"), np.timedelta64(3, "h"), np.datetime64("NaT", "s")])
arrays = st.sampled_from(
    [np.zeros((0, 3)), np.array(2.5), np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.array(["a", None, 3], object)]
)
keys = st.none() | st.booleans() | st.integers() | st.text()
settings_of_any_kind = st.recursive(
    plain | scalars | times | arrays,
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(keys, inner),
    max_leaves=5,
)


@settings(max_examples=40)
@example([float("nan"), float("inf"), -float("inf"), -0.0, np.float32("inf"), np.float64("nan")])
@given(settings_of_any_kind)
def test_settings_keep_their_types(value):
    file = io.BytesIO()
    write(CrowdRidgeClassifier(l2=value), file)
    assert_same(value, read(file, ()).l2)


OBJECTS = [Smooth(2.0), SelfPaced(start=0.3), Fading(c=np.float32(1.5)), Confusion(2.0), OneCoin(), Shared(np.int64(4))]


@pytest.mark.parametrize("setting", OBJECTS, ids=repr)
def test_curricula_and_models_of_annotators_are_kept_with_their_settings(setting):
    file = io.BytesIO()
    write(CrowdLogisticClassifier(curriculum=setting), file)
    again = read(file, ()).curriculum
    assert again == setting
    assert_same(vars(setting), vars(again))


def test_settings_of_a_fit_are_kept(tmp_path):
    X, labels = data_for("ridge cv")
    rows = np.arange(len(X))
    model = CrowdRidgeClassifierCV(
        steepnesses=np.array([0.0, 2.0]),
        l2s=[np.float32(0.5), 2],
        cv=[(rows[rows % 2 == i], rows[rows % 2 != i]) for i in range(2)],
        class_weight={0: 1.0, 1: 3},
        curriculum=Smooth(),
    )
    assert_same(model.fit(X, labels), read_again(model, tmp_path / "model"))


# ---------------------------------------------------------------------- what cannot be kept


class Mine(Curriculum):
    """A curriculum of a user."""


class MyRidge(CrowdRidgeClassifier):
    """A model of a user."""


def settle(x):
    return x


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"curriculum": Mine()}, "curriculum of CrowdRidgeClassifier cannot be saved.*test_model_file.Mine"),
        ({"l2": settle}, "l2 of CrowdRidgeClassifier cannot be saved.*function settle.*builtins.function"),
        ({"random_state": (i for i in range(3))}, "random_state of CrowdRidgeClassifier cannot be saved.*generator"),
        ({"class_weight": {1: CrowdRidgeClassifier}}, "class_weight of CrowdRidgeClassifier cannot be saved"),
        ({"random_state": np.random.RandomState(0)}, "random_state of .*mtrand.RandomState"),
    ],
    ids=["object", "function", "generator", "class", "RandomState"],  # the same in all processes
)
def test_code_and_objects_of_others_are_refused_by_name(given, named, tmp_path):
    with pytest.raises(ModelFileError, match=f"{named}.*and no code"):
        save(CrowdRidgeClassifier(**given), tmp_path / "model")
    assert os.listdir(tmp_path) == []


def test_a_model_derived_from_ours_is_refused_by_name(tmp_path):
    X, labels = data_for("ridge")
    with pytest.raises(ModelFileError, match=r"MyRidge cannot be saved.*test_model_file\.MyRidge"):
        MyRidge().fit(X, labels).save(tmp_path / "model")


def test_a_class_that_has_the_name_of_ours_is_refused(tmp_path):
    for ours in (Smooth, Confusion, CrowdRidgeClassifier):
        other = type(ours.__name__, (ours,), {"__module__": "somewhere"})()
        with pytest.raises(ModelFileError, match=rf"curriculum of .* is of type somewhere\.{ours.__name__}\."):
            save(CrowdRidgeClassifier(curriculum=other), tmp_path / "model")


def test_a_model_that_is_not_fitted_is_not_saved(tmp_path):
    for model in (CrowdRidgeClassifier(), CrowdClassifier(), EasyFirstPerceptron()):
        with pytest.raises(NotFittedError):
            model.save(tmp_path / "model")


def test_identifiers_of_a_strange_type_are_refused_by_name(tmp_path):
    found = aggregate(CrowdLabels.from_matrix([[0, 0], [1, 1]], examples=[Path("a"), Path("b")]))
    with pytest.raises(ModelFileError, match="a value in examples of"):
        found.save(tmp_path / "file")


# ---------------------------------------------------------------------- estimators of other packages


def test_without_skops_the_estimator_of_another_package_is_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops.io", None)
    model, _ = around(LogisticRegression())
    with pytest.raises(MissingExtraError, match="skops is needed to save"):
        model.save(tmp_path / "model")
    assert os.listdir(tmp_path) == []


def test_without_skops_a_file_that_needs_it_says_so(tmp_path, monkeypatch):
    pytest.importorskip("skops", reason="needs the extra skops")
    model, _ = around(LogisticRegression())
    model.save(tmp_path / "model")
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(MissingExtraError, match="model cannot be read: skops"):
        crowdwise.load(tmp_path / "model")


def test_a_pipeline_of_another_package_is_kept(tmp_path):
    pytest.importorskip("skops", reason="needs the extra skops")
    model, X = around(make_pipeline(StandardScaler(), LogisticRegression()))
    again = read_again(model, tmp_path / "model")
    assert again.fitted_.estimator is again.estimator_
    assert_same(model.predict_proba(X), again.predict_proba(X))
    assert_same(model.results_, again.results_)


def test_types_that_are_not_trusted_are_named_and_read_if_the_user_trusts_them(tmp_path):
    pytest.importorskip("skops", reason="needs the extra skops")
    model, X = around(RandomForestClassifier(3, random_state=0))
    model.save(tmp_path / "model")
    with pytest.raises(ModelFileError, match=re.escape(f"load(path, trusted=['{TREE}'])")):
        crowdwise.load(tmp_path / "model")
    with pytest.raises(ModelFileError, match="not known to be safe"):
        crowdwise.load(tmp_path / "model", trusted=f"{TREE}.and.more")
    for trusted in ([TREE], TREE):
        assert_same(model.predict_proba(X), crowdwise.load(tmp_path / "model", trusted=trusted).predict_proba(X))


def test_an_estimator_of_the_running_script_is_refused(tmp_path, monkeypatch):
    pytest.importorskip("skops", reason="needs the extra skops")

    class Own(LogisticRegression):
        pass

    Own.__module__, Own.__qualname__ = "__main__", "Own"
    monkeypatch.setattr(sys.modules["__main__"], "Own", Own, raising=False)
    model, _ = around(Own())
    with pytest.raises(ModelFileError, match=r"__main__\.Own is defined in the"):
        model.save(tmp_path / "model")


def test_a_splitter_of_another_package_is_kept(tmp_path):
    pytest.importorskip("skops", reason="needs the extra skops")
    X, labels = data_for("ridge cv")
    model = CrowdRidgeClassifierCV(cv=KFold(3, shuffle=True, random_state=1)).fit(X, labels)
    again = read_again(model, tmp_path / "model", trusted=["sklearn.model_selection._split.KFold"])
    assert vars(again.cv) == vars(model.cv)
    assert_same(model.results_, again.fit(X, labels).results_)


def test_a_model_of_ours_inside_needs_no_skops(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops.io", None)
    model, X = around(CrowdRidgeClassifier())
    again = read_again(model, tmp_path / "model")
    assert_same(model.predict(X), again.predict(X))


# ---------------------------------------------------------------------- files of earlier versions

KEPT = [path for folder in sorted(DATA.glob("model-format-*")) for path in sorted(folder.glob("*.crowdwise"))]


def assert_close(found, expected):
    """Strings and ids exactly, numbers to many digits: other processors and libraries may round otherwise."""
    if found and isinstance(found[0], float):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    else:
        assert found == expected


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_files_of_every_format_are_read(path):
    stored = json.loads((path.parent / "expected.json").read_text())
    model, expected = crowdwise.load(path), stored["models"][path.stem]
    if path.stem == "aggregate":
        found = {name: getattr(model, name) for name in expected}
    else:
        found = {name: getattr(model, f"{name}_") for name in expected if name != "score"}
        found["score"] = scores_of(model, np.array(stored["X"]))
    assert found.keys() == expected.keys()
    for name, values in found.items():
        assert_close(np.asarray(values).ravel().tolist(), np.array(expected[name], dtype=values.dtype).ravel().tolist())


def test_there_are_kept_files_of_the_present_format():
    assert {path.stem for path in KEPT if path.parent.name == f"model-format-{FORMAT_VERSION}"} >= {
        "aggregate", "logistic", "perceptron", "regressor", "ridge", "ridge_cv"
    }  # fmt: skip
    folder = DATA / f"model-format-{FORMAT_VERSION}"
    assert crowdwise.load(folder / "ridge.crowdwise").curriculum == Smooth(c=4.0)
    assert crowdwise.load(folder / "ridge.crowdwise").class_weight == {"cat": 2.0}
    assert crowdwise.load(folder / "logistic.crowdwise").annotator_model == Confusion(2.0)
