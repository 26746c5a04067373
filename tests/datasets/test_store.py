import bz2
import gzip
import hashlib
import http.client
import lzma
import os
from pathlib import Path

import pytest

from crowdwise.datasets import _store as store
from crowdwise.datasets import data_directory
from crowdwise.exceptions import DataError, MissingDataError

CONTENT = b"+1 1:2\n-1 1:3\n"


@pytest.fixture
def toy(monkeypatch):
    """One known file, libsvm/toy."""
    known = {"libsvm/toy": store.Known(hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))}
    monkeypatch.setattr(store, "known_files", lambda: known)
    return "libsvm/toy"


@pytest.mark.parametrize(
    ("suffix", "pack"), [("", bytes), (".xz", lzma.compress), (".gz", gzip.compress)], ids=["plain", "xz", "gz"]
)
def test_a_file_is_found_plain_or_compressed(tmp_path, toy, suffix, pack):
    (tmp_path / "libsvm").mkdir()
    (tmp_path / "libsvm" / f"toy{suffix}").write_bytes(pack(CONTENT))
    assert store.read_file(toy, tmp_path, url=None) == CONTENT


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT + b" ", CONTENT.replace(b"2", b"9")])
def test_a_file_that_is_not_the_one_known_is_a_data_error(tmp_path, toy, content):
    (tmp_path / "libsvm").mkdir()
    (tmp_path / "libsvm" / "toy.xz").write_bytes(lzma.compress(content))
    with pytest.raises(DataError, match="toy"):
        store.read_file(toy, tmp_path, url=None)


def test_a_truncated_archive_is_a_data_error(tmp_path, toy):
    (tmp_path / "libsvm").mkdir()
    (tmp_path / "libsvm" / "toy.xz").write_bytes(lzma.compress(CONTENT)[:-8])
    with pytest.raises(DataError, match="damaged"):
        store.read_file(toy, tmp_path, url=None)


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [(".xz", lzma.compress), (".gz", gzip.compress), (".bz2", bz2.compress)],
    ids=["xz", "gz", "bz2"],
)
@pytest.mark.parametrize("spoil", ["garbage", "nothing", "cut", "bits"])
def test_a_garbled_archive_is_a_data_error_with_its_name(tmp_path, toy, suffix, pack, spoil):
    packed = pack(CONTENT)
    bits = bytearray(packed)
    bits[len(bits) // 2] ^= 255
    content = {"garbage": b"Not found\n" * 9, "nothing": b"", "cut": packed[: len(packed) // 2], "bits": bytes(bits)}
    (tmp_path / "libsvm").mkdir()
    (tmp_path / "libsvm" / f"toy{suffix}").write_bytes(content[spoil])
    with pytest.raises(DataError, match=rf"toy\{suffix} is (damaged|not the file expected).*(Remove|replace)"):
        store.read_file(toy, tmp_path, url=None)


def test_a_disk_that_cannot_be_read_is_not_called_damaged_data(tmp_path, toy, monkeypatch):
    def broken(*_):
        raise OSError(5, "Input/output error")

    (tmp_path / "libsvm").mkdir()
    (tmp_path / "libsvm" / "toy.gz").write_bytes(gzip.compress(CONTENT))
    monkeypatch.setitem(store._OPENERS, ".gz", broken)
    with pytest.raises(OSError, match="Input/output error"):
        store.read_file(toy, tmp_path, url=None)


def test_a_download_that_breaks_off_is_missing_data(tmp_path, toy, monkeypatch):
    def broken(*_, **__):
        raise http.client.IncompleteRead(b"+1")

    monkeypatch.setattr(store.urllib.request, "urlopen", broken)
    with pytest.raises(MissingDataError, match="failed"):
        store.read_file(toy, tmp_path, url="https://example.org/toy")


def test_an_archive_that_unpacks_to_far_more_is_not_unpacked(tmp_path, toy):
    (tmp_path / "libsvm").mkdir()
    (tmp_path / "libsvm" / "toy.gz").write_bytes(gzip.compress(bytes(50_000_000)))
    with pytest.raises(DataError, match="longer than the 14 bytes"):
        store.read_file(toy, tmp_path, url=None)


def test_a_download_is_verified_and_kept(tmp_path, toy):
    source = tmp_path / "site"
    source.write_bytes(CONTENT)
    home = tmp_path / "home"
    assert store.read_file(toy, home, url=source.as_uri()) == CONTENT
    source.unlink()
    assert store.read_file(toy, home, url=source.as_uri()) == CONTENT
    assert os.listdir(home / "libsvm") == ["toy"]


def test_a_download_of_something_else_is_refused_and_not_kept(tmp_path, toy):
    source = tmp_path / "site"
    source.write_bytes(b"<html>moved</html>")
    with pytest.raises(DataError, match="site"):
        store.read_file(toy, tmp_path / "home", url=source.as_uri())
    assert not (tmp_path / "home").exists()


def test_offline_it_says_what_to_put_where(tmp_path, toy):
    with pytest.raises(MissingDataError) as caught:
        store.read_file(toy, tmp_path, url=(tmp_path / "nowhere").as_uri())
    message = str(caught.value)
    assert str(tmp_path / "libsvm") in message
    assert "toy.xz" in message
    assert "CROWDWISE_DATA" in message
    assert "failed" in message


def test_the_directory_is_the_argument_then_the_variable_then_the_cache(monkeypatch):
    monkeypatch.setenv("CROWDWISE_DATA", "/from/variable")
    assert data_directory("/from/argument") == Path("/from/argument")
    assert data_directory() == Path("/from/variable")
    monkeypatch.delenv("CROWDWISE_DATA")
    monkeypatch.setattr(store.sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "/from/cache")
    assert data_directory() == Path("/from/cache/crowdwise")


def test_every_known_checksum_is_well_formed():
    known = store.known_files()
    assert len(known) == 75
    assert all(len(bytes.fromhex(entry.sha256)) == 32 and entry.size > 0 for entry in known.values())
