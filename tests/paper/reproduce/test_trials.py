import io
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import numpy as np
import pytest

from crowdwise.exceptions import DataError, WorkerError
from crowdwise.paper.reproduce.rows import RowLog
from crowdwise.paper.reproduce.trials import run_trials, trial_seed

COLUMNS = {"setting": str, "trial": int, "method": str, "value": float}
KEYS = [(setting, trial) for setting in ("b", "a") for trial in range(6)]


def work(key):
    """Two rows a trial, of numbers that need every digit."""
    setting, trial = key
    rng = np.random.default_rng(trial_seed(7, ord(setting), trial))
    return [
        {"setting": setting, "trial": trial, "method": method, "value": rng.normal() ** 9} for method in ("new", "old")
    ]


def log_at(path, **settings):
    return RowLog(path, COLUMNS, ("setting", "trial"), 2, **settings)


def run(path, *, jobs=1, keys=KEYS, work=work, progress=False):
    log = log_at(path)
    run_trials(log, keys, work, jobs=jobs, title="toy", progress=progress)
    return path.read_bytes()


@pytest.fixture
def undisturbed(tmp_path):
    return run(tmp_path / "undisturbed.csv")


def test_rows_are_in_order_and_read_back_to_the_last_bit(tmp_path, undisturbed):
    log = log_at(tmp_path / "undisturbed.csv")
    assert list(log.trials) == sorted(KEYS)
    assert all(log.trials[key] == work(key) for key in KEYS)
    assert undisturbed.startswith(b"setting,trial,method,value,check\na,0,new,")


@pytest.mark.slow
def test_the_bytes_do_not_depend_on_the_number_of_processes_or_the_order(tmp_path, undisturbed):
    assert run(tmp_path / "two.csv", jobs=2) == undisturbed
    assert run(tmp_path / "reversed.csv", keys=KEYS[::-1]) == undisturbed


@pytest.mark.parametrize("cut", [0, 1, 20, 28, 60, 100, 250, 399])
def test_cut_off_anywhere_it_goes_on_to_the_same_bytes(tmp_path, undisturbed, cut):
    path = tmp_path / "rows.csv"
    path.write_bytes(undisturbed[:cut])
    assert run(path) == undisturbed


def test_whole_trials_are_not_run_again(tmp_path, undisturbed):
    path = tmp_path / "rows.csv"
    path.write_bytes(undisturbed[:-3])  # the last trial lost the end of its last row
    run_again = []

    def counted(key):
        run_again.append(key)
        return work(key)

    assert run(path, work=counted) == undisturbed
    assert run_again == [("b", 5)]


def changed(lines, number, old, new):
    """The lines with something else in one of them, counted from 1."""
    assert re.search(old, lines[number - 1])
    return [re.sub(old, new, line, count=1) if i == number else line for i, line in enumerate(lines, start=1)]


DAMAGES = {
    "garbled": (6, lambda lines: changed(lines, 6, rb".*", b"\x00\x00,what")),
    "digit": (4, lambda lines: changed(lines, 4, rb"(?<=\.)\d", b"")),
    "nan": (4, lambda lines: changed(lines, 4, rb"(?<=old,|new,)[^,]+", b"nan")),
    "quote": (5, lambda lines: changed(lines, 5, rb"a", b'"a')),
    "long": (7, lambda lines: changed(lines, 7, rb"\n", b"9" * 200_000 + b"\n")),
    "two in one": (8, lambda lines: changed(lines, 8, rb"\n", b",")),
    "not UTF-8": (9, lambda lines: changed(lines, 9, rb"a", b"\xff")),
    "empty line": (9, lambda lines: [*lines[:8], b"\n", *lines[8:]]),
    "other header": (1, lambda lines: changed(lines, 1, rb"value", b"values")),
    "rows swapped": (4, lambda lines: [*lines[:3], lines[4], lines[3], *lines[5:]]),
    "rows of two trials": (5, lambda lines: [*lines[:4], lines[6], *lines[5:]]),
    "a row lost": (5, lambda lines: [*lines[:4], *lines[5:]]),
    "a trial twice": (6, lambda lines: [*lines[:5], *lines[3:]]),
    "binary": (1, lambda lines: [bytes(range(128, 256))]),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_an_error_that_says_where_and_what_to_do(tmp_path, undisturbed, damage):
    path = tmp_path / "rows.csv"
    number, spoil = DAMAGES[damage]
    spoiled = b"".join(spoil(undisturbed.splitlines(True)))
    path.write_bytes(spoiled)
    with pytest.raises(DataError, match=rf"rows\.csv, line {number} is damaged: .* Remove this line and all"):
        log_at(path)
    assert path.read_bytes() == spoiled
    path.write_bytes(b"".join(spoiled.splitlines(True)[: number - 1]))  # what the message says
    assert run(path) == undisturbed


def test_any_bit_that_flips_is_noticed_or_its_trial_run_again(tmp_path, undisturbed):
    path = tmp_path / "rows.csv"
    expected = log_at(tmp_path / "undisturbed.csv").trials
    n_noticed = 0
    for place in range(0, 8 * len(undisturbed), 37):
        content = bytearray(undisturbed)
        content[place // 8] ^= 1 << place % 8
        path.write_bytes(content)
        try:
            kept = log_at(path).trials
        except DataError:
            n_noticed += 1
        else:
            assert kept == {key: expected[key] for key in list(expected)[: len(kept)]}
            assert len(kept) >= len(KEYS) - 1
    assert n_noticed > 200


def test_rows_that_depend_on_something_else_do_not_fit(tmp_path):
    path = tmp_path / "rows.csv"
    log_at(path, stamp="seed 1").append(work(("a", 0)))
    assert len(log_at(path, stamp="seed 1").trials) == 1
    with pytest.raises(DataError, match="line 2"):
        log_at(path, stamp="seed 2")
    assert log_at(path, stamp="seed 2", resume=False).trials == {}


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_an_error_or_interrupt_keeps_what_is_finished(tmp_path, undisturbed, jobs):
    path = tmp_path / "rows.csv"
    with pytest.raises(KeyboardInterrupt if jobs == 1 else RuntimeError):
        run(path, work=stop_at_a3 if jobs == 1 else fail_at_a3, jobs=jobs)
    kept = log_at(path).trials
    assert 1 <= len(kept) < len(KEYS)
    assert all(kept[key] == work(key) for key in kept)
    assert run(path) == undisturbed


def stop_at_a3(key):
    if key == ("a", 3):
        raise KeyboardInterrupt
    return work(key)


def fail_at_a3(key):
    if key == ("a", 3):
        raise RuntimeError
    return work(key)


KILLED = """
import os, sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
import test_trials
def fatal(key):
    if key == ("a", 2):
        os.kill(os.getpid(), {signal})
    return test_trials.work(key)
test_trials.run(Path(sys.argv[1]), work=fatal)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals")
def test_killed_in_the_middle_it_goes_on_to_the_same_bytes(tmp_path, undisturbed):
    path = tmp_path / "rows.csv"
    script = KILLED.format(signal=int(signal.SIGKILL))
    done = subprocess.run([sys.executable, "-c", script, str(path), os.path.dirname(__file__)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(log_at(path).trials) == 8  # all of "b", two of "a"
    assert run(path) == undisturbed


def test_more_trials_extend_a_log_and_fewer_leave_it(tmp_path, undisturbed):
    path = tmp_path / "rows.csv"
    run(path, keys=KEYS[:4])
    assert run(path) == undisturbed
    assert run(path, keys=KEYS[:2]) == undisturbed


def test_seeds_differ_by_place_and_not_by_what_else_is_run():
    states = {
        tuple(trial_seed(seed, *place).generate_state(4)) for seed in (0, 1) for place in [(0,), (1,), (0, 1), (1, 0)]
    }
    assert len(states) == 8


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_shown_where_a_terminal_is_watching(tmp_path, monkeypatch):
    run(tmp_path / "rows.csv", keys=KEYS[:2])
    monkeypatch.setattr(sys, "stderr", Terminal())
    run(tmp_path / "rows.csv", progress=None)
    assert "toy (2 of 12 trials were there)" in sys.stderr.getvalue()
    assert "10/10" in sys.stderr.getvalue()
    monkeypatch.setattr(sys, "stderr", Terminal())
    run(tmp_path / "silent.csv", progress=False)
    assert sys.stderr.getvalue() == ""


@pytest.mark.parametrize("stream", [io.StringIO(), None], ids=["file", "closed"])
def test_progress_is_silent_where_no_terminal_is_watching(tmp_path, monkeypatch, capsys, stream):
    monkeypatch.setattr(sys, "stderr", stream)
    run(tmp_path / "rows.csv", progress=None)
    assert stream is None or stream.getvalue() == ""
    assert capsys.readouterr().out == ""


def test_a_worker_that_was_ended_is_one_sentence_that_says_what_is_kept(tmp_path):
    def ended(key):
        if key == ("a", 3):
            raise BrokenProcessPool
        return work(key)

    with pytest.raises(WorkerError, match="worker process of toy was"):
        run(tmp_path / "rows.csv", work=ended)
    assert len(log_at(tmp_path / "rows.csv").trials) == 9


def killed_at_a3(key):
    if key == ("a", 3):
        os.kill(os.getpid(), signal.SIGKILL)
    return work(key)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals")
def test_a_worker_that_is_killed_is_one_sentence_and_keeps_what_is_finished(tmp_path, undisturbed):
    path = tmp_path / "rows.csv"
    with pytest.raises(WorkerError, match=r"toy was ended from outside.*kept"):
        run(path, work=killed_at_a3, jobs=2)
    assert run(path, jobs=2) == undisturbed


LONG = """
import sys, time
sys.path.insert(0, sys.argv[2])
from pathlib import Path
import test_trials
test_trials.run(Path(sys.argv[1]), work=test_trials.patient, jobs=2)
"""


def patient(key):
    if key[0] == "a":
        time.sleep(60)
    return work(key)


def children_of(pid):
    """Processes whose parent this is, as Linux lists them."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="needs the processes as Linux lists them")
def test_workers_end_with_their_parent_even_if_it_is_killed(tmp_path, undisturbed):
    path = tmp_path / "rows.csv"
    process = subprocess.Popen([sys.executable, "-c", LONG, str(path), os.path.dirname(__file__)])
    while not path.exists() or path.read_bytes().count(b"\n") < 13:  # all trials of "b"
        assert process.poll() is None
        time.sleep(0.02)
    workers = children_of(process.pid)
    assert sum(map(is_running, workers)) >= 2
    process.kill()
    process.wait()
    deadline = time.monotonic() + 10
    while any(map(is_running, workers)):
        assert time.monotonic() < deadline, "workers live on"
        time.sleep(0.05)
    assert run(path) == undisturbed
