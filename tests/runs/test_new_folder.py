import errno
import multiprocessing
import os
import sys

import pytest

pytest.importorskip("filelock")

from crowdwise.exceptions import BusyError, OutputError
from crowdwise.runs.new_folder import new_folder, recover


def write(out, text, *, replace=True, then=None):
    with new_folder(out, may_replace=lambda old: replace) as folder:
        (folder / "note.txt").write_text(text)
        if then is not None:
            raise then


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_is_there_whole_and_nothing_else_is_left(tmp_path):
    write(tmp_path / "deep" / "run", "new")
    assert (tmp_path / "deep" / "run" / "note.txt").read_text() == "new"
    assert names(tmp_path / "deep") == ["run"]


def test_an_empty_folder_is_filled_and_a_full_one_is_kept(tmp_path):
    (tmp_path / "run").mkdir()
    write(tmp_path / "run", "first", replace=False)
    with pytest.raises(OutputError, match=r"run exists already.*--force"):
        write(tmp_path / "run", "second", replace=False)
    assert (tmp_path / "run" / "note.txt").read_text() == "first"
    write(tmp_path / "run", "third")
    assert (tmp_path / "run" / "note.txt").read_text() == "third"


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder in which nothing can be made")
def test_where_nothing_can_be_made_nobody_is_said_to_be_at_work():
    with pytest.raises(OutputError, match=r"nothing can be written to /proc: .*Choose another directory"):
        write("/proc/run", "new")


@pytest.mark.parametrize("error", [ValueError("our own"), KeyboardInterrupt()])
def test_an_error_or_an_interrupt_leaves_what_was_there(tmp_path, error):
    write(tmp_path / "run", "old")
    with pytest.raises(type(error)):
        write(tmp_path / "run", "half", then=error)
    assert (tmp_path / "run" / "note.txt").read_text() == "old"
    assert names(tmp_path) == ["run"]


def test_a_full_disk_is_told_and_leaves_what_was_there(tmp_path):
    write(tmp_path / "run", "old")
    with pytest.raises(OSError, match=r"the disk is full: .*run is not written, and what was there is unchanged"):
        write(tmp_path / "run", "half", then=OSError(errno.ENOSPC, "No space left on device"))
    assert (tmp_path / "run" / "note.txt").read_text() == "old"


def test_killed_between_the_two_renames_the_old_folder_comes_back(tmp_path):
    write(tmp_path / "run", "old")
    os.rename(tmp_path / "run", tmp_path / ".run.old-123")
    recover(tmp_path / "run")
    assert (tmp_path / "run" / "note.txt").read_text() == "old"
    os.rename(tmp_path / "run", tmp_path / ".run.old-123")
    with pytest.raises(ValueError, match="our own"):
        write(tmp_path / "run", "half", then=ValueError("our own"))
    assert (tmp_path / "run" / "note.txt").read_text() == "old"


def test_what_a_killed_process_left_is_swept(tmp_path):
    (tmp_path / ".run.partial-abc").mkdir()
    (tmp_path / ".run.partial-abc" / "note.txt").write_text("half")
    write(tmp_path / "run", "new")
    assert names(tmp_path) == ["run"]


def killed(out):
    with new_folder(out, may_replace=lambda old: True) as folder:
        (folder / "note.txt").write_text("half")
        os._exit(9)


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
def test_killed_in_the_middle_the_old_folder_is_intact(tmp_path):
    write(tmp_path / "run", "old")
    process = multiprocessing.get_context("fork").Process(target=killed, args=(tmp_path / "run",))
    process.start()
    process.join()
    assert process.exitcode == 9
    assert (tmp_path / "run" / "note.txt").read_text() == "old"
    write(tmp_path / "run", "new")
    assert names(tmp_path) == ["run"]


def test_the_second_process_is_told_who_holds_the_folder(tmp_path):
    with (
        new_folder(tmp_path / "run", may_replace=lambda old: True),
        pytest.raises(BusyError, match=f"in use by process {os.getpid()}"),
    ):
        write(tmp_path / "run", "second")


def test_where_no_folder_can_be_made_it_is_told_before_the_work(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="is a file"):
        write(tmp_path / "file", "new")
    with pytest.raises(OutputError, match="cannot be made"):
        write(tmp_path / "file" / "run", "new")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for place in (".", "..", tmp_path):
        with pytest.raises(OutputError, match="the folder that you are in"):
            write(place, "new")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written_to_is_told(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match="nothing can be written"):
        write(tmp_path / "run", "new")
