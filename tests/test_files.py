import os
import stat

import pytest

from crowdwise.files import sweep, write_file


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


def test_sweep_removes_what_a_killed_writer_left_and_nothing_else(tmp_path):
    (tmp_path / ".rows.csv.partial-abc").write_text("half")
    (tmp_path / "rows.csv").write_text("whole")
    assert sweep(tmp_path) == 1
    assert os.listdir(tmp_path) == ["rows.csv"]
