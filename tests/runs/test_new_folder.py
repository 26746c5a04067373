import contextlib
import errno
import itertools
import multiprocessing
import os
import shutil
import signal
import stat
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


@pytest.mark.parametrize("name", ["r" * 255, "é" * 127, "r" * 201])
def test_a_folder_may_have_a_name_as_long_as_a_name_can_be(tmp_path, name):
    write(tmp_path / name, "old")
    write(tmp_path / name, "new")
    assert (tmp_path / name / "note.txt").read_text() == "new"
    assert names(tmp_path) == [name]


def test_an_empty_folder_is_filled_and_a_full_one_is_kept(tmp_path):
    (tmp_path / "run").mkdir()
    write(tmp_path / "run", "first", replace=False)
    with pytest.raises(OutputError, match=r"run already exists.*--force"):
        write(tmp_path / "run", "second", replace=False)
    assert (tmp_path / "run" / "note.txt").read_text() == "first"
    write(tmp_path / "run", "third")
    assert (tmp_path / "run" / "note.txt").read_text() == "third"


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder in which nothing can be made")
def test_where_nothing_can_be_made_nobody_is_said_to_be_at_work():
    with pytest.raises(OutputError, match="nothing can be written to"):
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
    with pytest.raises(OSError, match=r"the disk is full: .*run"):
        write(tmp_path / "run", "half", then=OSError(errno.ENOSPC, "No space left on device"))
    assert (tmp_path / "run" / "note.txt").read_text() == "old"


EVENTS = {"fcntl.flock", "open", "os.chmod", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "shutil.rmtree"}


def stopped(out, step, how, taken):
    """Replace a folder, and be stopped just before the n-th thing that is done with the disk."""
    reached = 0

    def stop(event, args):
        nonlocal reached
        if event in EVENTS:
            reached += 1
            taken.value = reached
            if reached == step and how == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            elif reached == step:
                raise KeyboardInterrupt

    sys.addaudithook(stop)
    with contextlib.suppress(KeyboardInterrupt), new_folder(out, may_replace=lambda old: True) as folder:
        (folder / "note.txt").write_text("new")
        (folder / "more.txt").write_text("new")
    os._exit(0)


def both(folder):
    return {(folder / name).read_text() for name in ("note.txt", "more.txt")}


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
@pytest.mark.parametrize("how", ["killed", "interrupted"])
def test_stopped_at_any_step_there_is_one_whole_folder_or_none_if_it_is_removed(tmp_path, how):
    fork = multiprocessing.get_context("fork")
    taken, seen = fork.Value("i", 0), set()
    for step in itertools.count(1):
        place = tmp_path / str(step) / "run"
        place.mkdir(parents=True)
        for name in ("note.txt", "more.txt"):
            (place / name).write_text("old")
        process = fork.Process(target=stopped, args=(place, step, how, taken))
        process.start()
        process.join()
        if taken.value < step:
            break
        assert process.exitcode == (-signal.SIGKILL if how == "killed" else 0)
        if place.exists():  # a copy in which somebody removes it now
            removed = tmp_path / f"{step}-removed" / "run"
            shutil.copytree(place.parent, removed.parent)
            shutil.rmtree(removed)
            recover(removed)
            assert not removed.exists(), step
        else:
            assert how == "killed"
        recover(place)
        (found,) = both(place)
        seen.add(found)
        write(place, "third")
        assert (place / "note.txt").read_text() == "third"
        assert names(place.parent) == ["run"], step
    assert step > 20
    assert seen == {"old", "new"}


def test_readers_move_nothing_while_somebody_is_at_work(tmp_path):
    write(tmp_path / "run", "old")
    with new_folder(tmp_path / "run", may_replace=lambda old: True) as folder:
        os.rename(tmp_path / "run", tmp_path / ".run.old")  # between the two renames
        recover(tmp_path / "run")
        assert not (tmp_path / "run").exists()
        (folder / "note.txt").write_text("new")
    assert (tmp_path / "run" / "note.txt").read_text() == "new"
    assert names(tmp_path) == ["run"]


def test_a_folder_put_in_place_by_hand_after_a_kill_between_the_renames_stays(tmp_path):
    for name in (".run.old", ".run.partial", "run"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "note.txt").write_text(name)
    with pytest.raises(OutputError, match="already exists"):
        write(tmp_path / "run", "new", replace=False)
    assert (tmp_path / "run" / "note.txt").read_text() == "run"
    assert names(tmp_path) == ["run"]
    write(tmp_path / "run", "new")
    assert (tmp_path / "run" / "note.txt").read_text() == "new"


def test_folders_of_other_names_are_left_alone(tmp_path):
    others = ["ru?", "ru[n]", "*", "run.partial", "run.partial-x", "run.old"]
    with new_folder(tmp_path / "run", may_replace=lambda old: True) as folder:
        (folder / "note.txt").write_text("mine")
        for other in others:
            recover(tmp_path / other)
            write(tmp_path / other, other)
    assert (tmp_path / "run" / "note.txt").read_text() == "mine"
    assert names(tmp_path) == sorted(["run", *others])
    for other in others:
        assert (tmp_path / other / "note.txt").read_text() == other
    with pytest.raises(OutputError, match=r"\.run\.partial is a reserved name"):
        write(tmp_path / ".run.partial", "new")


@pytest.mark.skipif(sys.platform == "win32", reason="needs permissions")
def test_a_private_folder_stays_private(tmp_path):
    write(tmp_path / "run", "old")
    (tmp_path / "usual").mkdir()
    assert (tmp_path / "run").stat().st_mode == (tmp_path / "usual").stat().st_mode
    (tmp_path / "run").chmod(0o700)
    (tmp_path / "run" / "note.txt").chmod(0o600)
    with new_folder(tmp_path / "run", may_replace=lambda old: True) as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "note.txt").write_text("new")
    assert stat.S_IMODE((tmp_path / "run" / "note.txt").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o700


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
    with pytest.raises(OutputError, match="cannot be created"):
        write(tmp_path / "file" / "run", "new")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for place in (".", "..", tmp_path):
        with pytest.raises(OutputError, match="is the current folder"):
            write(place, "new")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_cannot_be_written_to_is_told(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match="nothing can be written"):
        write(tmp_path / "run", "new")
