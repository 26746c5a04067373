import json
import os
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("click")

from crowdwise.__main__ import main
from crowdwise.exceptions import BusyError, DataError, MissingDataError, MissingExtraError, OutputError
from crowdwise.reproduce.run_folder import open_run


def test_a_table_is_printed_as_markdown_or_json(tmp_path, capsys):
    assert main(["reproduce", "table1", "--out", str(tmp_path)]) == 0
    assert "| f | flip score |" in capsys.readouterr().out
    assert main(["reproduce", "table1", "--out", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["flip_score"] == 0.15


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nonsense"],
        ["reproduce"],
        ["reproduce", "table9"],
        ["reproduce", "table1", "--trials", "0"],
        ["reproduce", "table1", "--steepness", "1,-2"],
        ["reproduce", "table1", "--steepness", "1,x"],
        ["reproduce", "table4", "--datasets", "a1a,adult"],
        ["reproduce", "table1", "--seed", "-1"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_2(arguments, capsys):
    assert main(arguments) == 2
    assert "Usage" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (DataError("bad row 3"), 65),
        (MissingDataError("no file x"), 66),
        (MissingExtraError("needs y"), 69),
        (OutputError("cannot make z"), 73),
        (OSError(28, "No space left on device"), 74),
        (BusyError("in use by process 1"), 75),
        (KeyboardInterrupt(), 130),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_fault_has_its_exit_code_and_one_sentence(error, code, monkeypatch, capsys, tmp_path):
    def fail(*_):
        raise error

    monkeypatch.setattr("crowdwise.cli.reproduce.reproduce", fail)
    assert main(["reproduce", "table1", "--out", str(tmp_path)]) == code
    message = capsys.readouterr().err.lstrip("\n")  # click ends the line that was interrupted
    assert message.startswith("crowdwise: ")
    assert message.count("\n") == 1
    assert ("interrupted" if code == 130 else str(error)) in message


def test_a_bug_of_ours_is_shown_with_its_traceback(monkeypatch):
    def bug(*_):
        raise ZeroDivisionError

    monkeypatch.setattr("crowdwise.cli.reproduce.reproduce", bug)
    with pytest.raises(ZeroDivisionError):  # Python then prints it and exits with 1
        main(["reproduce", "table1"])


def test_without_click_it_says_which_extra_and_exits_69(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "click", None)
    assert main(["--version"]) == 69
    assert "pip install 'crowdwise[cli]'" in capsys.readouterr().err


def test_an_output_directory_that_is_a_file_is_wrong_usage_and_one_inside_a_file_is_73(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["reproduce", "table1", "--out", str(tmp_path / "file")]) == 2
    assert main(["reproduce", "table1", "--out", str(tmp_path / "file" / "deeper")]) == 73
    assert "cannot be made" in capsys.readouterr().err


def test_importing_the_library_imports_neither_click_nor_plotting():
    script = "import sys, crowdwise; print([m for m in ('click', 'matplotlib', 'dask') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_directory_in_use_is_75_and_says_by_whom(tmp_path, capsys):
    with open_run(tmp_path / "table1", "table1", {}, {}):
        assert main(["reproduce", "table1", "--out", str(tmp_path)]) == 75
    assert f"in use by process {os.getpid()}" in capsys.readouterr().err


def test_results_of_another_seed_are_not_overwritten(tmp_path, capsys):
    assert main(["reproduce", "table1", "--out", str(tmp_path)]) == 0
    before = (tmp_path / "table1" / "rows.csv").read_bytes()
    assert main(["reproduce", "table1", "--out", str(tmp_path), "--seed", "1"]) == 73
    assert "seed=0 instead of 1" in capsys.readouterr().err
    assert (tmp_path / "table1" / "rows.csv").read_bytes() == before


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_interrupted_it_keeps_what_is_finished_exits_130_and_goes_on(tmp_path):
    command = [sys.executable, "-m", "crowdwise", "reproduce", "table2", "--steepness", "2", "--jobs", "1"]
    rows = tmp_path / "table2" / "rows.csv"
    process = subprocess.Popen([*command, "--trials", "500", "--out", str(tmp_path)], stderr=subprocess.PIPE, text=True)
    while not rows.exists() or rows.read_bytes().count(b"\n") < 5:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, message = process.communicate()
    assert process.returncode == 130
    assert "what is finished is kept" in message
    kept = rows.read_text().splitlines()[1:5]
    done = subprocess.run(
        [*command, "--trials", "2", "--out", str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert "| α=2, p=1 |" in done.stdout
    assert rows.read_text().splitlines()[1:5] == kept
