import gc
import io
import json
import os
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("click")

from crowdwise.__main__ import main
from crowdwise.cli import ExitCode, _starting, started
from crowdwise.cli.group import COMMANDS, crowd
from crowdwise.exceptions import BusyError, DataError, MissingDataError, MissingExtraError, OutputError, WorkerError
from crowdwise.paper.reproduce.run_folder import open_run


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
        ["reproduce", "table1", "--steepness", "nan"],
        ["reproduce", "table1", "--steepness", "inf"],
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
        (WorkerError("a worker was ended"), 75),
        (MemoryError("Unable to allocate 9 TiB"), 75),
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


def test_the_exit_codes_are_these():
    assert {code.name: code.value for code in ExitCode} == {
        "FINE": 0,
        "OUR_BUG": 1,
        "WRONG_USAGE": 2,
        "BAD_DATA": 65,
        "NO_INPUT": 66,
        "NO_EXTRA": 69,
        "NO_OUTPUT": 73,
        "INPUT_OUTPUT": 74,
        "TRY_AGAIN": 75,
        "INTERRUPTED": 130,
        "PIPE_CLOSED": 141,
    }


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("fti", "No such command 'fti'. Did you mean 'fit'?"),
        ("Annotator", "Did you mean 'annotators'?"),
        ("merge", "The commands are fit, check, consensus,"),
        ("my labels.csv", "To learn from a file: crowdwise fit 'my labels.csv'"),
    ],
)
def test_a_word_that_is_no_command_is_answered_with_what_may_be_meant(typed, meant, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my labels.csv").touch()
    assert main([typed]) == 2
    assert meant in capsys.readouterr().err


def test_every_command_is_listed_with_the_first_line_of_its_help(capsys):
    assert main(["--help"]) == 0
    listed = capsys.readouterr().out
    for name, line in COMMANDS.items():
        command = crowd.get_command(None, name)
        assert command.name == name
        assert command.get_short_help_str(limit=200) == line
        assert f"{name:10}  {line}" in listed


@pytest.mark.parametrize("start", [["-m", "crowdwise"], ["-c", "from crowdwise.__main__ import main; main()"]])
def test_the_list_of_commands_needs_nothing_that_is_slow_to_import(start):
    script = ["-X", "importtime", *start, "--help"]
    done = subprocess.run([sys.executable, *script], capture_output=True, text=True, check=True)
    assert "reproduce" in done.stdout
    imported = {line.split("|")[-1].strip() for line in done.stderr.splitlines()}
    assert "click" in imported
    assert not imported & {"numpy", "scipy", "sklearn", "joblib", "crowdwise.paper.reproduce"}


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
    assert "cannot be created" in capsys.readouterr().err


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


def test_damaged_rows_are_65_and_nothing_is_changed(tmp_path, capsys):
    command = ["reproduce", "table2", "--trials", "1", "--steepness", "2", "--jobs", "1", "--out", str(tmp_path)]
    assert main(command) == 0
    rows = tmp_path / "table2" / "rows.csv"
    rows.write_bytes(rows.read_bytes().replace(b"1.0,0,2.0,0.", b"1.0,0,2.0,1.", 1))
    spoiled = rows.read_bytes()
    assert main(command) == 65
    assert "rows.csv, line 3 is damaged" in capsys.readouterr().err
    assert rows.read_bytes() == spoiled
    (tmp_path / "table2" / "run.json").write_text("null")
    assert main(command) == 65
    assert "run.json is damaged" in capsys.readouterr().err


def test_a_garbled_data_file_is_65_and_named(tmp_path, capsys):
    (tmp_path / "libsvm").mkdir()
    (tmp_path / "libsvm" / "heart_scale.bz2").write_bytes(b"<html>Not found</html>")
    command = ["reproduce", "table3", "--datasets", "heart", "--out", str(tmp_path), "--data-home", str(tmp_path)]
    assert main(command) == 65
    assert "heart_scale.bz2 is damaged" in capsys.readouterr().err


def test_a_link_in_the_place_of_the_lock_is_73_and_its_target_stays(tmp_path, capsys):
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "table1").mkdir()
    (tmp_path / "table1" / ".lock").symlink_to(tmp_path / "precious")
    assert main(["reproduce", "table1", "--out", str(tmp_path)]) == 73
    assert "cannot serve as a lock" in capsys.readouterr().err
    assert (tmp_path / "precious").read_text() == "precious"


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "utf-8"])
@pytest.mark.parametrize("form", [[], ["--json"]], ids=["table", "json"])
def test_signs_that_the_terminal_lacks_are_escaped(tmp_path, monkeypatch, encoding, form):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
    monkeypatch.setattr("crowdwise.cli.reproduce.reproduce", lambda *_: Greek)
    assert main(["reproduce", "table2", "--out", str(tmp_path), *form]) == 0
    shown = raw.getvalue().decode(encoding)
    if form:
        assert json.loads(shown) == {"α": "−𝛼"}
    else:
        assert shown.rstrip() == ("α − 𝛼" if encoding == "utf-8" else r"\u03b1 \u2212 \U0001d6fc")


class Greek:
    """A report with signs that few encodings have."""

    @staticmethod
    def as_text():
        return "α − 𝛼"

    @staticmethod
    def as_json(*, ascii_only):
        return json.dumps({"α": "−𝛼"}, ensure_ascii=ascii_only)


def unread_pipe():
    """The writing end of a pipe whose reader has left."""
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "w", encoding="utf-8")


def test_output_that_nobody_reads_is_141_without_a_word_and_the_results_are_there(tmp_path, monkeypatch, capsys):
    with unread_pipe() as pipe:
        monkeypatch.setattr(sys, "stdout", pipe)
        assert main(["reproduce", "table1", "--out", str(tmp_path)]) == 141
    assert capsys.readouterr().err == ""
    assert json.loads((tmp_path / "table1" / "run.json").read_text())["finished"]
    assert (tmp_path / "table1" / "table1.md").exists()


def test_errors_that_nobody_reads_keep_their_code(tmp_path, monkeypatch):
    assert main(["reproduce", "table1", "--out", str(tmp_path)]) == 0
    with unread_pipe() as pipe:
        monkeypatch.setattr(sys, "stderr", pipe)
        assert main(["reproduce", "table1", "--out", str(tmp_path), "--seed", "1"]) == 73


@pytest.mark.parametrize("arguments", [["--help"], ["nonsense"]])
@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_a_stream_that_is_closed_changes_no_exit_code(monkeypatch, capsys, arguments, closed):
    monkeypatch.setattr(sys, closed, None)
    assert main(arguments) == (2 if arguments == ["nonsense"] else 0)
    shown = capsys.readouterr()
    assert shown.out == ("" if closed == "stdout" or arguments == ["nonsense"] else shown.out)
    assert "Traceback" not in shown.err


def shell(command, **settings):
    line = command.replace("crowdwise", f"{sys.executable} -m crowdwise")
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False, **settings)


needs_bash = pytest.mark.skipif(sys.platform == "win32", reason="needs bash")


@needs_bash
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("crowdwise --help | true; exit ${PIPESTATUS[0]}", 141),
        ("crowdwise --help >&-", 0),
        ("crowdwise --help <&- >&- 2>&-", 0),
        ("crowdwise nonsense 2>&-", 2),
        ("crowdwise --help > /dev/full", 74),
    ],
)
def test_a_shell_sees_the_code_and_no_traceback(command, code):
    done = shell(command)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.slow
@needs_bash
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("PYTHONIOENCODING=latin-1 crowdwise reproduce table2 --trials 1 --jobs 2 --out out", 0),
        ("LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0 crowdwise reproduce table2 --trials 1 --jobs 1 --out out", 0),
        ("crowdwise reproduce table2 --trials 1 --jobs 2 --out out <&- >&- 2>&-", 0),
        ("crowdwise reproduce table2 --trials 1 --jobs 2 --out out | true; exit ${PIPESTATUS[0]}", 141),
        ("crowdwise reproduce table2 --trials 1 --jobs 1 --out out > /dev/full", 74),
    ],
)
def test_whatever_becomes_of_the_output_the_results_are_the_same(command, code, tmp_path):
    done = shell(command, cwd=tmp_path)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    expected = shell("crowdwise reproduce table2 --trials 1 --jobs 1 --out expected", cwd=tmp_path)
    assert expected.returncode == 0
    for name in ("rows.csv", "table2.md", "table2.json"):
        one, other = ((tmp_path / out / "table2" / name).read_bytes() for out in ("out", "expected"))
        assert one == other


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
@pytest.mark.usefixtures("heard_interrupts")
def test_interrupted_while_it_starts_it_exits_130_without_a_traceback(tmp_path):
    """At many moments: imports, the start of the workers, the first trials."""
    script = """if True:
        import sys
        from crowdwise import cli

        run = cli._run
        cli._run = lambda arguments: print("up", flush=True) or run(arguments)  # what happens before is Python's own
        sys.exit(cli.main())
    """
    command = [sys.executable, "-c", script, "reproduce", "table2", "--jobs", "2", "--trials", "500"]
    for delay in (0.0, 0.1, 0.2, 0.4, 0.7, 1.0, 1.3, 1.6, 2.0, 2.5, 3.0):
        process = subprocess.Popen(
            [*command, "--out", str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert process.stdout.readline() == "up\n"
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers as well
        _, message = process.communicate()
        # Python ends itself by the signal if it came inside exec(); a shell says 130 for both.
        assert process.returncode in (130, -signal.SIGINT), message
        assert message.strip() == "crowdwise: interrupted; finished work is kept. Run the command again to continue.", (
            delay
        )


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals")
def test_killed_again_and_again_it_ends_with_the_same_bytes(tmp_path):
    command = [sys.executable, "-m", "crowdwise", "reproduce", "table2", "--steepness", "2", "--trials", "8"]
    subprocess.run([*command, "--jobs", "1", "--out", str(tmp_path / "calm")], capture_output=True, check=True)
    rows = tmp_path / "killed" / "table2" / "rows.csv"
    n_killed = 0
    for n_rows in (1, 7, 14, 22, 30):  # of 48, and a header
        process = subprocess.Popen(
            [*command, "--jobs", "2", "--out", str(tmp_path / "killed")], stdout=subprocess.DEVNULL
        )
        while process.poll() is None and not (rows.exists() and rows.read_bytes().count(b"\n") > n_rows):
            time.sleep(0.001)
        process.kill()
        n_killed += process.wait() == -signal.SIGKILL
    assert n_killed >= 4
    subprocess.run([*command, "--jobs", "2", "--out", str(tmp_path / "killed")], capture_output=True, check=True)
    for name in ("rows.csv", "table2.md", "table2.tex", "table2.json"):
        killed, calm = ((tmp_path / how / "table2" / name).read_bytes() for how in ("killed", "calm"))
        assert killed == calm


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
@pytest.mark.usefixtures("heard_interrupts")
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
    assert "finished work is kept" in message
    kept = rows.read_text().splitlines()[1:5]
    done = subprocess.run(
        [*command, "--trials", "2", "--out", str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert "| α=2, p=1 |" in done.stdout
    assert rows.read_text().splitlines()[1:5] == kept


@pytest.mark.usefixtures("heard_interrupts")
def test_imports_are_not_searched_for_garbage_and_what_follows_is():
    with _starting():
        assert not gc.isenabled()
        started()
        assert gc.isenabled()
    with _starting():
        pass
    assert gc.isenabled()
