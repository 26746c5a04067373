"""Models that are written to a file and read again: the same to the last bit, or a clear error."""

import dataclasses
import datetime
import errno
import io
import json
import os
import pickle
import re
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from contextlib import contextmanager
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
from marks import in_slow_run
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
from crowdwise.exceptions import MissingExtraError, ModelFileError, OutputError
from crowdwise.model_file import FORMAT_VERSION, save
from crowdwise.model_file import _read as read
from crowdwise.model_file import _write as write
from crowdwise.theory import EasyFirstPerceptron
from crowdwise.weights import Curriculum, Fading, SelfPaced, Smooth

DATA = Path(__file__).parent / "data"
TREE = "sklearn.tree._tree.Tree"  # not among the types that skops trusts


def skip_without_skops(name):
    if name.startswith("any"):
        pytest.importorskip("skops", reason="needs the extra skops")


def fitted(name, **options):
    """A fitted model with features and labels; what `aggregate` gives for "aggregate"."""
    skip_without_skops(name)
    X, labels = data_for(name, **options)
    model = fit_quietly(new(name, **quick(name)), X, labels)
    return (model.found if name == "aggregate" else model), X, labels


def read_again(model, path, **options):
    model.save(path)
    return crowdwise.load(path, **options)


def assert_same(one, other, where="model"):
    """The same types and the same bits, all the way down."""
    assert type(one) is type(other), where
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (other.dtype, other.shape), where
        assert one.flags.writeable == other.flags.writeable, where
        if one.dtype == object:
            assert_same(one.ravel().tolist(), other.ravel().tolist(), where)
        else:
            assert one.tobytes() == other.tobytes(), where
    elif isinstance(one, np.random.Generator):
        assert one.bit_generator.state == other.bit_generator.state, where
    elif isinstance(one, dict):
        assert_same(list(one.items()), list(other.items()), where)
    elif isinstance(one, list | tuple):
        assert len(one) == len(other), where
        for i, (left, right) in enumerate(zip(one, other, strict=True)):
            assert_same(left, right, f"{where}[{i}]")
    elif dataclasses.is_dataclass(one):
        for field in dataclasses.fields(one):
            assert_same(getattr(one, field.name), getattr(other, field.name), f"{where}.{field.name}")
    elif hasattr(one, "get_params"):
        assert_same(dict(sorted(vars(one).items())), dict(sorted(vars(other).items())), where)
    else:
        assert one == other or one != one, where


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
    model = model.found if name == "aggregate" else model
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
    frame = "to_frame" if name == "aggregate" else "consensus_frame"
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
    again.set_params(**({"max_regions": 7} if name in PERCEPTRONS else {"max_rounds": 1}))
    assert fit_quietly(again, X, labels).get_params() != model.get_params()


def test_a_perceptron_goes_on_where_it_was(tmp_path):
    X, labels = data_for("perceptron")
    model = EasyFirstPerceptron(order="random", random_state=np.random.default_rng(3))
    model.partial_fit(X[:40], labels[:40])
    again = read_again(model, tmp_path / "model")
    assert_same(model.partial_fit(X[40:], labels[40:]), again.partial_fit(X[40:], labels[40:]))


@quiet
def test_a_warm_start_goes_on_from_a_file(tmp_path):
    X, labels = data_for("logistic")
    model = CrowdLogisticClassifier(warm_start=True, **quick("logistic")).fit(X, labels)
    again = read_again(model, tmp_path / "model")
    assert_same(model.fit(X, labels), again.fit(X, labels))


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
    found = aggregate(CrowdLabels.from_matrix([[0, 1], [1, 1]], examples=[Path("a"), Path("b")]))
    with pytest.raises(ModelFileError, match=r"a value in examples of Consensus cannot be saved.*PosixPath.*Path"):
        found.save(tmp_path / "file")


# ---------------------------------------------------------------------- estimators of other packages


def around(estimator):
    X, labels = data_for("any")
    return fit_quietly(CrowdClassifier(estimator, steepness=0.0, hard_examples=False, max_rounds=1), X, labels), X


def test_without_skops_the_estimator_of_another_package_is_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops.io", None)
    model, _ = around(LogisticRegression())
    with pytest.raises(MissingExtraError, match=r"skops is needed to save estimator of.*crowdwise\[skops\]"):
        model.save(tmp_path / "model")
    assert os.listdir(tmp_path) == []


def test_without_skops_a_file_that_needs_it_says_so(tmp_path, monkeypatch):
    pytest.importorskip("skops", reason="needs the extra skops")
    model, _ = around(LogisticRegression())
    model.save(tmp_path / "model")
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(MissingExtraError, match=r"model cannot be read: skops is needed.*crowdwise\[skops\]"):
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
    with pytest.raises(ModelFileError, match=r"__main__\.Own is defined in the running script"):
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


# ---------------------------------------------------------------------- damaged files


@pytest.fixture(scope="module")
def small():
    """A small result, and its file as bytes."""
    found = aggregate([[1, 1, 0], [0, 0, 1], [1, 1, 0]])
    file = io.BytesIO()
    write(found, file)
    return found, file.getvalue()


def load_bytes(content, path):
    path.write_bytes(content)
    return crowdwise.load(path)


def refused_or_same(content, found, path):
    """Whether a file is refused, by its name; if not, it is read to the same result. Nothing else happens."""
    try:
        again = load_bytes(content, path)
    except ModelFileError as error:
        return str(error).startswith(f"{path} cannot be read: ") or pytest.fail(f"no name in {error}")
    assert_same(found, again)
    return False


@pytest.mark.parametrize("step", [61, in_slow_run(1)])
def test_a_file_cut_off_anywhere_is_refused(step, small, tmp_path):
    found, content = small
    assert not refused_or_same(content, found, tmp_path / "file")
    for length in range(0, len(content), step):
        assert refused_or_same(content[:length], found, tmp_path / "file"), length


@pytest.mark.parametrize("step", [61, in_slow_run(1)])
@pytest.mark.parametrize("change", [0xFF, 0x01, 0x20])
def test_a_file_with_any_byte_changed_is_refused_or_the_same(change, step, small, tmp_path):
    found, content = small
    refused = 0
    for at in range(0, len(content), step):
        changed = bytearray(content)
        changed[at] ^= change
        refused += refused_or_same(bytes(changed), found, tmp_path / "file")
    assert refused > 0.6 * len(range(0, len(content), step))  # the rest are dates, permissions and the like


def test_bytes_before_or_after_the_file_are_refused_or_change_nothing(small, tmp_path):
    found, content = small
    for changed in (b"x" * 100 + content, content + b"x" * 100, content + content):
        refused_or_same(changed, found, tmp_path / "file")


def rebuilt(content, change, compression=zipfile.ZIP_STORED):
    """The file with other members: `change` is given a dict of names and contents."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, value in members.items():
            archive.writestr(name, value)
    return file.getvalue()


def with_manifest(content, change):
    def changed(members):
        manifest = json.loads(members["manifest.json"])
        change(manifest)
        members["manifest.json"] = json.dumps(manifest).encode()

    return rebuilt(content, changed)


def with_array(content, array_bytes):
    """The file with other bytes in place of its first array."""

    def changed(members):
        name = next(name for name in members if name.endswith(".npy"))
        members[name] = array_bytes

    return rebuilt(content, changed)


def npy_bytes(header):
    text = f"{header}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


def assert_refused(content, path, match):
    with pytest.raises(ModelFileError, match=match) as caught:
        load_bytes(content, path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000, 10000000000)}",
        "{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,)}",
        "{'descr': '|V0', 'fortran_order': False, 'shape': (1000000000000,)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -1)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (0, 1000000000000000000000)}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': " + "(" * 5000 + ")" * 5000 + "}",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "1, " * 3000 + ")}",
        "__import__('os').getcwd()",
        "",
    ],
    ids=lambda header: header[:80],
)
def test_a_header_that_claims_what_is_not_there_is_refused(header, small, tmp_path):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert_refused(with_array(small[1], npy_bytes(header)), tmp_path / "file", "cannot be read")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kilobytes


class Loud:
    """Leaves a trace if it is ever unpickled."""

    def __reduce__(self):
        return open, (os.environ["CROWDWISE_TRACE"], "w")


def test_a_pickle_is_never_run(small, tmp_path, monkeypatch):
    monkeypatch.setenv("CROWDWISE_TRACE", str(tmp_path / "trace"))
    pickled = io.BytesIO()
    np.save(pickled, np.array([Loud()], dtype=object), allow_pickle=True)
    assert_refused(with_array(small[1], pickled.getvalue()), tmp_path / "file", "only a pickle could hold")
    assert_refused(pickle.dumps(Loud()), tmp_path / "file", "not a model file")
    assert not (tmp_path / "trace").exists()
    pickle.loads(pickle.dumps(Loud())).close()
    assert (tmp_path / "trace").exists()


def test_a_compressed_member_is_refused_before_it_is_read(small, tmp_path):
    bomb = rebuilt(small[1], lambda members: members.update({"99.npy": bytes(10**7)}), zipfile.ZIP_DEFLATED)
    assert len(bomb) < 50_000
    assert_refused(bomb, tmp_path / "file", r"\.npy is compressed or encrypted")


@pytest.mark.parametrize(
    ("at", "match"),
    [(8, "is compressed or encrypted"), (20, "has two sizes"), (24, "has two sizes")],
    ids=["flag of encryption", "size in the file", "size when read"],
)
def test_a_directory_that_does_not_fit_is_refused(at, match, small, tmp_path):
    content = bytearray(small[1])
    content[content.index(b"PK\x01\x02") + at] ^= 1
    assert_refused(bytes(content), tmp_path / "file", f"0.npy {match}")


def test_members_that_overlap_are_refused(small, tmp_path):
    # Two entries of the directory for the same bytes: the sizes add up to more than there is.
    content = rebuilt(small[1], lambda members: members.update({"98.npy": bytes(10**6), "99.npy": b""}))
    end = content.rindex(b"PK\x05\x06")
    first = content.rindex(b"PK\x01\x02", 0, content.rindex(b"98.npy"))
    last = content.rindex(b"PK\x01\x02", 0, content.rindex(b"99.npy"))
    twin = content[first:last].replace(b"98.npy", b"99.npy")
    assert len(twin) == end - last
    assert_refused(content[:last] + twin + content[end:], tmp_path / "file", "more bytes than the file has")


@pytest.mark.parametrize(
    "name", ["../outside.npy", "/etc/passwd", "a/0.npy", "..\\0.npy", "0.npy/", "0.pkl", "x" * 300]
)
def test_members_with_other_names_are_refused(name, small, tmp_path):
    changed = rebuilt(small[1], lambda members: members.update({name: b""}))
    assert_refused(changed, tmp_path / "file", "which no model file has")
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_refused(small, tmp_path):
    for name in ("0.npy", "manifest.json"):
        file = io.BytesIO(small[1])
        with zipfile.ZipFile(file, "a") as archive:
            archive.writestr(name, archive.read(name))
        assert_refused(file.getvalue(), tmp_path / "file", "two members of the same name")


def test_a_file_of_a_newer_format_says_to_upgrade(small, tmp_path):
    def newer(manifest):
        manifest.update(version=FORMAT_VERSION + 1, made_by="crowdwise 7.0", model={"kind": "of later"})

    assert_refused(with_manifest(small[1], newer), tmp_path / "file", "made by a newer version, crowdwise 7.0.*upgrade")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"format": "another"}, "its format is 'another'"),
        ({"version": "1"}, "not a model file"),
        ({"model": 5}, "not a model file"),
        ({"model": {"kind": "record", "name": "Fixed", "fields": {}}}, "'Fixed' and no model"),
    ],
    ids=str,
)
def test_a_made_up_manifest_is_refused(change, match, small, tmp_path):
    assert_refused(with_manifest(small[1], lambda manifest: manifest.update(change)), tmp_path / "file", match)


@pytest.mark.parametrize(
    ("node", "match"),
    [
        ({"kind": "os.system", "value": "true"}, "not a model file"),
        ({"kind": "record", "name": "os.system", "fields": {}}, "'os.system', which this version does not know"),
        ({"kind": "record", "name": "Fixed", "fields": {"c": 1}}, "this version's Fixed has no c"),
        ({"kind": "record", "name": "Behaviour", "fields": {}}, "also needs confusion, crowd, share"),
        ({"kind": "array", "member": "77.npy", "read_only": True}, "not a model file"),
        ({"kind": "array", "member": "../0.npy", "read_only": True}, "not a model file"),
        ({"kind": "scalar", "type": "O", "value": 1}, "scalar of type object"),
        ({"kind": "generator", "state": {"kind": "dict", "items": []}}, "not a model file"),
        ({"kind": "foreign", "member": "manifest.json"}, "cannot be read"),
        ({"kind": ["a"]}, "not a model file"),
    ],
    ids=str,
)
def test_a_made_up_value_is_refused(node, match, small, tmp_path):
    if node["kind"] == "foreign":
        pytest.importorskip("skops", reason="needs the extra skops")
    changed = with_manifest(small[1], lambda manifest: manifest["model"]["fields"].update(converged=node))
    assert_refused(changed, tmp_path / "file", match)


def test_a_result_of_another_type_is_refused(small, tmp_path):
    def swapped(manifest):
        fields = manifest["model"]["fields"]
        fields["disagreement"], fields["consensus"] = fields["consensus"], fields["disagreement"]

    assert_refused(with_manifest(small[1], swapped), tmp_path / "file", "of Aggregation is of another type")


def test_a_method_cannot_be_replaced_by_a_file(tmp_path):
    X, labels = data_for("ridge")
    CrowdRidgeClassifier().fit(X, labels).save(tmp_path / "file")
    changed = with_manifest(
        (tmp_path / "file").read_bytes(), lambda manifest: manifest["model"]["state"].update(predict="no")
    )
    assert_refused(changed, tmp_path / "file", "a part of CrowdRidgeClassifier that is not a result")


def test_nested_without_end_is_refused(small, tmp_path):
    def deep(members):
        members["manifest.json"] = (
            b'{"format": "crowdwise model", "version": 1, "made_by": "x", "model": ' + b"[" * 10**6
        )

    assert_refused(rebuilt(small[1], deep), tmp_path / "file", "not a model file")


@pytest.mark.parametrize("content", [b"", b"PK\x05\x06" + bytes(18), b"not a zip", bytes(1000)], ids=repr)
def test_what_is_no_model_is_refused(content, tmp_path):
    assert_refused(content, tmp_path / "file", "cannot be read")


def test_a_folder_a_device_and_nothing_are_refused(tmp_path, small):
    with pytest.raises(ModelFileError, match="is a folder"):
        crowdwise.load(tmp_path)
    with pytest.raises(ModelFileError, match="/dev/null is a folder or a device"):
        crowdwise.load("/dev/null")
    with pytest.raises(FileNotFoundError, match="nowhere"):
        crowdwise.load(tmp_path / "nowhere")
    with pytest.raises(OutputError, match="is a folder"):
        small[0].save(tmp_path)
    with pytest.raises(OutputError, match="device"):
        small[0].save("/dev/null")


def with_skops(content, change, compression=zipfile.ZIP_STORED):
    """The file with other members in its skops part."""

    def changed(members):
        (name,) = [name for name in members if name.endswith(".skops")]
        members[name] = rebuilt(members[name], change, compression)

    return rebuilt(content, changed)


def test_the_estimator_inside_is_checked_as_well(tmp_path):
    pytest.importorskip("skops", reason="needs the extra skops")
    model, _ = around(None)
    model.save(tmp_path / "file")
    content = (tmp_path / "file").read_bytes()
    header = npy_bytes("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}")
    cases = {
        r"\.npy is compressed": with_skops(content, lambda members: members.update({"1.npy": bytes(10**6)}), 8),
        "which is not its size": with_skops(content, lambda members: members.update({"1.npy": header})),
        "not a model file": with_skops(content, lambda members: members.update({"schema.json": b"{}"})),
    }
    assert_same(model.results_, load_bytes(with_skops(content, dict.copy), tmp_path / "file").results_)
    for match, changed in cases.items():
        assert_refused(changed, tmp_path / "file", match)


@contextmanager
def as_nobody():
    """Without the rights of root, if the tests have them."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)


@pytest.fixture
def locked(small):
    """A file that may not be read, in a folder that may not be written to."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(small[1])
        path.chmod(0)
        Path(folder).chmod(0o555)
        yield path
        Path(folder).chmod(0o755)


def test_a_file_without_permission_is_named(locked):
    with as_nobody(), pytest.raises(PermissionError, match=str(locked)):
        crowdwise.load(locked)


# ---------------------------------------------------------------------- writing


def test_a_folder_that_cannot_be_written_to_is_named(locked, small):
    with as_nobody(), pytest.raises(OutputError, match=f"cannot be written to {locked}: Permission denied.*unchanged"):
        small[0].save(locked)
    assert locked.read_bytes() == small[1]


def test_a_folder_that_is_not_there_is_named(small, tmp_path):
    with pytest.raises(OutputError, match=r"cannot be written to .*nowhere/file: No such file"):
        small[0].save(tmp_path / "nowhere" / "file")


def assert_nothing_changed(model, path, match):
    before = path.read_bytes()
    with pytest.raises(OutputError, match=match) as caught:
        model.save(path)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_a_full_disk_leaves_the_old_file(small, tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    small[0].save(tmp_path / "file")
    monkeypatch.setattr(os, "fsync", full)
    assert_nothing_changed(small[0], tmp_path / "file", "No space left on device.*What was there before is unchanged")


@pytest.mark.parametrize("limit", [0, 100, 3000, 5000])
def test_a_write_that_stops_half_way_leaves_the_old_file(limit, small, tmp_path):
    small[0].save(tmp_path / "file")
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        assert_nothing_changed(small[0], tmp_path / "file", "File too large")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))


def test_what_a_killed_writer_left_is_swept_but_not_the_work_of_another(small, tmp_path):
    long_ago = time.time() - 2 * 3600
    names = [".file.partial-old", ".file.partial-new", ".other.partial-old", ".file[1].partial-old"]
    for name in names:
        (tmp_path / name).write_text("half")
        if "old" in name:
            os.utime(tmp_path / name, (long_ago, long_ago))
    small[0].save(tmp_path / "file")
    assert sorted(os.listdir(tmp_path)) == sorted(["file", *names[1:]])
    small[0].save(tmp_path / "file[1]")
    assert sorted(os.listdir(tmp_path)) == sorted(["file", "file[1]", *names[1:3]])


_KILLED = """
import os, random, signal, sys, time
from pathlib import Path
import numpy as np
import crowdwise

folder, n_kills = Path(sys.argv[1]), int(sys.argv[2])
rng, results = np.random.default_rng(0), []
for scale in (0, 1):
    labels = rng.integers(0, 2, size=(20_000 + scale, 3))
    results.append(crowdwise.aggregate(labels, max_rounds=2, tol=1.0))
path = folder / "model"
results[0].save(path)
began = time.monotonic()
results[1].save(path)
lasts = time.monotonic() - began
n_torn = n_first = 0
for kill in range(n_kills):
    child = os.fork()
    if child == 0:
        while True:
            for i in range(2):
                results[(kill + i) % 2].save(path)
    time.sleep(random.uniform(0, 10 * lasts))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    n_torn += len(list(folder.glob(".model.partial-*"))) > 0
    for stray in folder.glob(".model.partial-*"):
        stray.unlink()
    found = crowdwise.load(path)
    (whole,) = [result for result in results if len(result.examples) == len(found.examples)]
    assert found.proba.tobytes() == whole.proba.tobytes(), kill
    n_first += whole is results[0]
print(n_torn, n_first)
"""


@pytest.mark.slow
def test_two_hundred_kills_while_writing_leave_the_old_file_or_the_new_one(tmp_path):
    command = [sys.executable, "-W", "ignore", "-c", _KILLED, tmp_path, "200"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    n_torn, n_first = map(int, done.stdout.split())
    assert n_torn > 20  # so many were killed in the middle
    assert 20 < n_first < 180


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
