"""Files of models that are damaged, made up or written half: a clear error, and the old file stays."""

import errno
import io
import json
import os
import pickle
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
    data_for,
)
from marks import in_slow_run
from saved_models import around, assert_same

import crowdwise
from crowdwise import (
    CrowdLogisticClassifier,
    CrowdRidgeClassifier,
    aggregate,
)
from crowdwise.exceptions import ModelFileError, OutputError
from crowdwise.model_file import FORMAT_VERSION
from crowdwise.model_file import _write as write

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
        ({"version": "1"}, "its version is '1', which no model file has"),
        ({"version": 0}, "its version is 0"),
        ({"version": -5}, "its version is -5"),
        ({"version": True}, "its version is True"),
        ({"model": {"kind": "tuple", "items": [], "name": "FitResults"}}, "'FitResults' and no model"),
        ({"model": {"kind": "dict", "items": []}}, "'dict' and no model"),
        ({"model": {"kind": "date", "value": "2026-01-01"}}, "'date' and no model"),
        (
            {"model": {"kind": "estimator", "name": "CrowdRidgeClassifier", "settings": {}, "state": {}}},
            "it lacks what",
        ),
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
        ({"kind": "record", "name": "Choice", "fields": {}}, "also needs chosen, name"),
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
        fields["consensus"], fields["fitted"] = fields["fitted"], fields["consensus"]

    assert_refused(with_manifest(small[1], swapped), tmp_path / "file", "of FitResults is of another type")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda state: state.pop("coef_"), "it lacks what a model predicts with"),
        (lambda state: state.pop("n_features_in_"), "its coefficients are of other features than its None"),
        (lambda state: state.update(n_features_in_=2), "its coefficients are of other features than its 2"),
        (lambda state: state.update(intercept_=state["label_score_"]), "different numbers of scores"),
        (lambda state: state.update(class_weight_=state["label_score_"]), "different numbers of classes"),
        (
            lambda state: state["results_"]["fields"].update(disagreement=state["coef_"]),
            "different numbers of examples",
        ),
        (
            lambda state: state["results_"]["fields"]["label_consensus"]["fields"].update(proba=state["coef_"]),
            "different numbers of (examples|classes)",
        ),
        (
            lambda state: state["results_"]["fields"].update(n_labels=state["coef_"]),
            "different numbers of annotators",
        ),
    ],
)
def test_a_state_that_does_not_fit_together_is_refused(change, match, tmp_path):
    X, labels = data_for("ridge")
    CrowdRidgeClassifier().fit(X, labels).save(tmp_path / "file")
    content = (tmp_path / "file").read_bytes()
    changed = with_manifest(content, lambda manifest: change(manifest["model"]["state"]))
    assert_refused(changed, tmp_path / "file", match)


RESHAPED = {
    "an entry less": lambda array: array[:-1],
    "an entry more": lambda array: np.concatenate([array, array[:1]]),
    "an axis more": lambda array: array[..., np.newaxis],
    "flat": np.ravel,
    "texts": lambda array: array.astype("U8"),
}


@pytest.mark.parametrize("reshape", RESHAPED)
@pytest.mark.parametrize("model", [CrowdLogisticClassifier, CrowdRidgeClassifier])
def test_a_model_file_with_another_array_is_refused_or_can_be_used(model, reshape, tmp_path):
    X, labels = data_for("ridge")
    model().fit(X, labels).save(tmp_path / "file")
    content = (tmp_path / "file").read_bytes()
    with zipfile.ZipFile(tmp_path / "file") as archive:
        names = [name for name in archive.namelist() if name.endswith(".npy")]
    n_refused = 0
    for name in names:

        def changed(members, name=name):
            file = io.BytesIO()
            array = np.lib.format.read_array(io.BytesIO(members[name]), allow_pickle=False)
            np.lib.format.write_array(file, RESHAPED[reshape](array), version=(1, 0), allow_pickle=False)
            members[name] = file.getvalue()

        try:
            again = load_bytes(rebuilt(content, changed), tmp_path / "changed")
        except ModelFileError:
            n_refused += 1
            continue
        assert again.predict(X).shape == (len(X),)
        again.annotators_frame()
    assert n_refused > 4


@pytest.mark.parametrize("name", ["results_", "fitted_", "n_features_in_", "coef_"])
def test_a_logistic_model_without_a_part_is_refused(name, tmp_path):
    X, labels = data_for("logistic")
    CrowdLogisticClassifier().fit(X, labels).save(tmp_path / "file")
    changed = with_manifest((tmp_path / "file").read_bytes(), lambda manifest: manifest["model"]["state"].pop(name))
    assert_refused(changed, tmp_path / "file", "cannot be read")


def test_a_number_where_a_record_or_another_type_belongs_is_refused(tmp_path):
    X, labels = data_for("logistic")
    CrowdLogisticClassifier().fit(X, labels).save(tmp_path / "file")
    content = (tmp_path / "file").read_bytes()
    for change in (
        lambda state: state.update(fitted_=3),
        lambda state: state["fitted_"]["fields"].update(annotators=None),
        lambda state: state["results_"]["fields"].update(converged="yes"),
    ):
        changed = with_manifest(content, lambda manifest, change=change: change(manifest["model"]["state"]))
        assert_refused(changed, tmp_path / "file", "cannot be read")


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
    with pytest.raises(ModelFileError, match="/dev/null is a folder or"):
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

    def sparse_matrix(**arrays):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, array in arrays.items():
                archive.writestr(f"{name}.npy", array)
        return with_skops(content, lambda members: members.update({"1.npz": file.getvalue()}))

    zeros = npy_bytes("{'descr': '|u1', 'fortran_order': False, 'shape': (100000000,)}") + bytes(10**8)
    cases = {
        "claims the shape .1000000000000,.": sparse_matrix(data=header),
        "a sparse matrix of .* bytes claims to have 100,000": sparse_matrix(data=zeros),
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
    with pytest.raises(OutputError, match=r"cannot be written to .*nowhere/file:"):
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
