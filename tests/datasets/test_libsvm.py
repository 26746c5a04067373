from collections import Counter

import numpy as np
import pytest
from scipy.sparse import issparse

from crowdwise.datasets import LIBSVM_NAMES, fetch_libsvm
from crowdwise.datasets import _libsvm as libsvm
from crowdwise.datasets import _store as store
from crowdwise.exceptions import CrowdWarning, DataError, MissingDataError


def test_an_unknown_name_is_told_the_known_ones():
    with pytest.raises(ValueError, match=r"no data set is called 'adult'.*a1a"):
        fetch_libsvm("adult")


def test_the_old_liver_disorders_cannot_be_downloaded_and_says_why(tmp_path):
    with pytest.raises(MissingDataError, match=r"cannot be downloaded.*another version"):
        fetch_libsvm("liver-disorders", tmp_path)


@pytest.mark.usefixtures("libsvm_data")
def test_widths_are_fixed_also_where_the_file_stops_earlier():
    a1a = fetch_libsvm("a1a")
    assert a1a.X.shape == (1605, 123)
    assert a1a.X_test.shape == (30956, 123)
    assert a1a.X.indices.max() < 119  # the training file does not mention the last features
    assert issparse(a1a.X)


@pytest.mark.usefixtures("libsvm_data")
def test_truth_is_plus_or_minus_one_whatever_the_file_calls_it():
    data = fetch_libsvm("breast-cancer_scale")
    assert data.classes.tolist() == [2, 4]
    assert Counter(data.truth.tolist()) == {-1: 444, 1: 239}
    assert data.X_test is None
    assert data.truth_test is None
    assert "patient" in data.DESCR


@pytest.mark.usefixtures("libsvm_data")
@pytest.mark.parametrize(
    "name", [name for name in LIBSVM_NAMES if name.endswith("_scale") and name[:4] not in ("iono", "sona")]
)
def test_a_scaled_file_equals_what_the_rule_makes_of_the_raw_one(name, monkeypatch):
    expected = fetch_libsvm(name)
    present = store.find_file
    monkeypatch.setattr(
        libsvm, "find_file", lambda path, home: None if path.endswith("_scale") else present(path, home)
    )
    derived = fetch_libsvm(name)
    np.testing.assert_array_equal(derived.X, expected.X)
    np.testing.assert_array_equal(derived.truth, expected.truth)
    if expected.X_test is not None:
        np.testing.assert_array_equal(derived.X_test, expected.X_test)


def test_scaling_by_hand():
    X = np.array([[0.0, 5.0, 1.0], [3.0, 5.0, 2.0], [1.0, 5.0, 4.0]])
    scaled = libsvm._scaled(X, X.min(axis=0), X.max(axis=0))
    assert scaled.tolist() == [[-1.0, 0.0, -1.0], [1.0, 0.0, -0.333333], [-0.333333, 0.0, 1.0]]


def test_taking_lines_away_minds_how_many_copies_there_are():
    assert libsvm._without([b"a", b"b", b"a", b"a"], [b"a", b"a"]) == [b"b", b"a"]


@pytest.mark.usefixtures("libsvm_data")
def test_w4a_is_a_stand_in_and_says_so_everywhere():
    with pytest.warns(CrowdWarning, match="stand-in"):
        data = fetch_libsvm("w4a")
    assert data.stand_in
    assert data.name == "w4a (stand-in)"
    assert "STAND-IN" in data.DESCR
    assert data.X.shape == (7366, 300)
    assert data.X_test.shape == (42383, 300)
    rows = {name: _rows(fetch_libsvm(name).X) for name in ("w3a", "w5a")}
    assert not rows["w3a"] - _rows(data.X)
    assert not _rows(data.X) - rows["w5a"]
    with pytest.warns(CrowdWarning):
        np.testing.assert_array_equal(fetch_libsvm("w4a").X.toarray(), data.X.toarray())


@pytest.mark.usefixtures("libsvm_data")
def test_a_w4a_that_someone_puts_there_is_used_if_it_can_be_the_original(tmp_path):
    (tmp_path / "libsvm").mkdir()
    for path in (store.data_directory() / "libsvm").glob("w[358]a.xz"):
        (tmp_path / "libsvm" / path.name).symlink_to(path)
    train, _ = libsvm._w4a(None)
    (tmp_path / "libsvm" / "w4a").write_bytes(train)
    data = fetch_libsvm("w4a", tmp_path)  # no warning: warnings are errors here
    assert (data.name, data.stand_in) == ("w4a", False)
    (tmp_path / "libsvm" / "w4a").write_bytes(train.replace(b"+1", b"-1", 1))
    with pytest.raises(DataError, match="not w4a"):
        fetch_libsvm("w4a", tmp_path)


def _rows(X):
    return Counter(row.tobytes() for row in X.toarray().astype(np.int8))
