import json
import os
import subprocess
import sys

import pytest

from crowdwise.exceptions import BusyError, DataError, MissingExtraError, OutputError
from crowdwise.paper.reproduce.run_folder import open_run

HOLD = """
import sys, time
from pathlib import Path
from crowdwise.paper.reproduce.run_folder import open_run
with open_run(Path(sys.argv[1]), "toy", {"seed": 1}, {}):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds tmp_path."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_run_json_says_what_was_run(tmp_path):
    with open_run(tmp_path / "deep" / "run", "toy", {"seed": 1}, {"trials": 5}):
        pass
    run = json.loads((tmp_path / "deep" / "run" / "run.json").read_text())
    assert (run["experiment"], run["seed"], run["options"]) == ("toy", 1, {"trials": 5})
    assert {"numpy", "scipy", "scikit-learn", "python", "crowdwise"} <= set(run["versions"])
    assert run["seconds"] >= 0
    assert run["finished"] >= run["started"]


def test_a_run_that_fails_is_not_called_finished_and_lets_go(tmp_path):
    with pytest.raises(RuntimeError), open_run(tmp_path, "toy", {}, {}):
        raise RuntimeError
    assert json.loads((tmp_path / "run.json").read_text())["finished"] is None
    assert os.listdir(tmp_path) == ["run.json"]
    with open_run(tmp_path, "toy", {}, {}):
        pass


def test_the_second_process_is_told_who_holds_the_directory(tmp_path, holder):
    with pytest.raises(BusyError, match=f"in use by process {holder.pid} on "), open_run(tmp_path, "toy", {}, {}):
        pass
    assert holder.poll() is None


def test_a_killed_process_holds_nothing(tmp_path, holder):
    (tmp_path / ".rows.csv.partial-x").write_text("half")
    holder.kill()
    holder.wait()
    with open_run(tmp_path, "toy", {"seed": 1}, {}):
        pass
    assert os.listdir(tmp_path) == ["run.json"]  # neither its lock nor what it was writing


@pytest.mark.slow
def test_many_processes_hold_it_one_at_a_time(tmp_path):
    """Each counts up a number that would lose steps if two were inside at once."""
    script = (
        "import sys, time\nfrom pathlib import Path\n"
        "from crowdwise.paper.reproduce.run_folder import open_run\nfrom crowdwise.exceptions import BusyError\n"
        "folder = Path(sys.argv[1]); count = folder / 'count'; done = 0\n"
        "while done < 10:\n"
        "    try:\n"
        "        with open_run(folder, 'toy', {}, {}):\n"
        "            n = int(count.read_text()); time.sleep(0.002); count.write_text(str(n + 1)); done += 1\n"
        "    except BusyError:\n"
        "        time.sleep(0.001)\n"
    )
    (tmp_path / "count").write_text("0")
    processes = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path)]) for _ in range(2)]
    assert [process.wait() for process in processes] == [0, 0]
    assert (tmp_path / "count").read_text() == "20"


def test_rows_of_another_seed_are_not_mixed_with_ours(tmp_path):
    with open_run(tmp_path, "toy", {"seed": 1}, {}) as folder:
        folder.write("rows.csv", "x\n")
    with pytest.raises(OutputError, match="seed=1 instead of 2"), open_run(tmp_path, "toy", {"seed": 2}, {}):
        pass
    with open_run(tmp_path, "toy", {"seed": 1}, {"trials": 9}):  # other options are fine
        pass


def test_rows_of_unknown_origin_are_not_taken_over(tmp_path):
    (tmp_path / "rows.csv").write_text("x\n")
    with pytest.raises(OutputError, match="another run"), open_run(tmp_path, "toy", {"seed": 2}, {}):
        pass


def test_a_file_in_the_place_of_the_directory_is_an_output_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be created"), open_run(tmp_path / "file", "toy", {}, {}):
        pass


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_directory_is_found_out_before_the_work(tmp_path):
    tmp_path.chmod(0o555)
    with pytest.raises(OutputError, match="cannot be written"), open_run(tmp_path, "toy", {}, {}):
        pass
    tmp_path.chmod(0o755)


def test_an_unwritable_directory_is_found_out_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)  # what a read-only place says, also to root
    with pytest.raises(OutputError, match="cannot be written"), open_run(tmp_path, "toy", {}, {}):
        pass


def test_a_full_disk_is_found_out_before_the_work(tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"), open_run(tmp_path, "toy", {}, {}):
        pytest.fail("the work began")
    assert os.listdir(tmp_path) == []


def test_the_lock_is_gone_when_the_work_is_done(tmp_path):
    with open_run(tmp_path, "toy", {}, {}):
        assert (tmp_path / ".lock").exists()
        assert (tmp_path / ".holder").read_text().startswith(f"process {os.getpid()} on ")
    assert os.listdir(tmp_path) == ["run.json"]


@pytest.mark.parametrize("name", [".holder", "run.json", "rows.csv"])
def test_what_a_link_points_to_is_not_overwritten(tmp_path, name):
    precious, folder = tmp_path / "precious", tmp_path / "run"
    precious.write_text("precious")
    folder.mkdir()
    with open_run(folder, "toy", {}, {}) as run:
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(precious)
        run.write_rows(("x",), [{"x": 1}])
    assert precious.read_text() == "precious"


def test_a_link_in_the_place_of_the_lock_is_an_output_error(tmp_path):
    (tmp_path / "precious").write_text("precious")
    for target in ("precious", "nowhere"):
        (tmp_path / ".lock").symlink_to(tmp_path / target)
        with pytest.raises(OutputError, match=r"\.lock cannot serve as a lock"), open_run(tmp_path, "toy", {}, {}):
            pass
        (tmp_path / ".lock").unlink()
    assert (tmp_path / "precious").read_text() == "precious"
    assert not (tmp_path / "nowhere").exists()


def test_without_filelock_it_says_which_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "filelock", None)
    with pytest.raises(MissingExtraError, match=r"crowdwise\[cli\]"), open_run(tmp_path, "toy", {}, {}):
        pass


NOTES = {
    "empty": b"", "list": b"[1]", "null": b"null", "text": b'"text"', "cut": b"{", "binary": b"\xff\xfe",
    "deep": b"[" * 100_000,
}  # fmt: skip


@pytest.mark.parametrize("note", NOTES.values(), ids=NOTES)
def test_a_damaged_run_json_beside_rows_is_a_data_error(tmp_path, note):
    (tmp_path / "rows.csv").write_text("x\n")
    (tmp_path / "run.json").write_bytes(note)
    with (
        pytest.raises(DataError, match=r"run\.json is damaged.*Remove the directory"),
        open_run(tmp_path, "toy", {}, {}),
    ):
        pass
    assert (tmp_path / "run.json").read_bytes() == note
    (tmp_path / "rows.csv").unlink()
    with open_run(tmp_path, "toy", {}, {}):  # without rows there is nothing to mix up
        pass
