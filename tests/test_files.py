import os
import stat
import sys
from pathlib import Path

import pytest

from crowdwise import aggregate, formats, model_file, report
from crowdwise._files import sweep, write_file
from crowdwise.exceptions import OutputError

LABELS = [["a", "a", "b"], ["b", "b", "b"], ["a", "a", "a"]]
AGGREGATION = aggregate(LABELS)


def save_report(result, path):
    report(result, LABELS, path=path)


def save_consensus(result, path):
    formats.write(result.consensus, path)


def test_text_bytes_and_writers_are_written(tmp_path):
    write_file(tmp_path / "text", "é")
    write_file(tmp_path / "bytes", b"\x00")
    write_file(tmp_path / "writer", lambda file: file.write(b"written"))
    assert (tmp_path / "text").read_bytes() == "é".encode()
    assert (tmp_path / "bytes").read_bytes() == b"\x00"
    assert (tmp_path / "writer").read_bytes() == b"written"


def test_a_writer_that_fails_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "result"
    write_file(path, "old")

    def fail(file):
        file.write(b"half of the new")
        raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        write_file(path, fail)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["result"]


def test_the_file_is_as_readable_as_any_other(tmp_path):
    (tmp_path / "usual").write_text("")
    write_file(tmp_path / "ours", "")
    assert stat.S_IMODE((tmp_path / "ours").stat().st_mode) == stat.S_IMODE((tmp_path / "usual").stat().st_mode)


@pytest.mark.skipif(sys.platform == "win32", reason="needs permissions")
def test_a_private_file_stays_private_from_the_first_byte_on(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("files of other threads would be made with it"))
    path = tmp_path / "result"
    write_file(path, "old")
    path.chmod(0o600)

    def write(file):
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600
        file.write(b"new")

    write_file(path, write)
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("write", [model_file.save, save_report, save_consensus])
def test_a_link_stays_a_link_and_its_file_is_written(tmp_path, write):
    (tmp_path / "far").mkdir()
    link = tmp_path / "link.html"
    link.symlink_to(tmp_path / "far" / "file")
    for _ in range(2):
        write(AGGREGATION, link)
        assert link.is_symlink()
        assert os.listdir(tmp_path / "far") == ["file"]
    assert sorted(os.listdir(tmp_path)) == ["far", "link.html"]


@pytest.mark.parametrize("name", ["x" * 255, "é" * 127, "x" * 235])
def test_a_name_may_be_as_long_as_the_disk_allows(tmp_path, name):
    write_file(tmp_path / name, "done")
    assert os.listdir(tmp_path) == [name]


def test_devices_and_folders_are_not_replaced(tmp_path):
    for path in (tmp_path, Path(os.devnull)):
        with pytest.raises(OutputError, match="is a folder or a device"):
            write_file(path, "done")


def test_sweep_removes_what_a_killed_writer_left_and_nothing_else(tmp_path):
    (tmp_path / ".rows.csv.partial-abc").write_text("half")
    (tmp_path / "rows.csv").write_text("whole")
    assert sweep(tmp_path) == 1
    assert os.listdir(tmp_path) == ["rows.csv"]
