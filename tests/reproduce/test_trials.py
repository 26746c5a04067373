import io
import math
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from crowdwise.reproduce.rows import RowLog
from crowdwise.reproduce.trials import Progress, run_trials, trial_seed

COLUMNS = {"setting": str, "trial": int, "method": str, "value": float}
KEYS = [(setting, trial) for setting in ("b", "a") for trial in range(6)]


def work(key):
    """Two rows a trial, of numbers that need every digit."""
    setting, trial = key
    rng = np.random.default_rng(trial_seed(7, ord(setting), trial))
    return [
        {"setting": setting, "trial": trial, "method": method, "value": rng.normal() ** 9} for method in ("new", "old")
    ]


def log_at(path):
    return RowLog(path, COLUMNS, ("setting", "trial"), 2)


def run(path, *, jobs=1, keys=KEYS, work=work):
    log = log_at(path)
    run_trials(log, keys, work, jobs=jobs, title="toy", progress=False)
    return path.read_bytes()


@pytest.fixture
def undisturbed(tmp_path):
    return run(tmp_path / "undisturbed.csv")


def test_rows_are_in_order_and_read_back_to_the_last_bit(tmp_path, undisturbed):
    log = log_at(tmp_path / "undisturbed.csv")
    assert list(log.trials) == sorted(KEYS)
    assert all(log.trials[key] == work(key) for key in KEYS)
    assert undisturbed.startswith(b"setting,trial,method,value\na,0,new,")


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


def test_a_garbled_line_costs_its_trial_only(tmp_path, undisturbed):
    path = tmp_path / "rows.csv"
    lines = undisturbed.splitlines(True)
    lines[5] = b"\x00\x00,what\n"
    path.write_bytes(b"".join(lines))
    assert len(log_at(path).trials) == len(KEYS) - 1
    assert run(path) == undisturbed


@pytest.mark.parametrize("jobs", [1, 2])
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


def test_progress_says_how_much_is_left():
    shown = Progress("toy", 10, 4, shown=True, stream=io.StringIO())
    assert "4/10" in shown.line(0.0)
    assert "left" not in shown.line(0.0)
    shown.done = 7  # three in 60 seconds, three to go
    assert shown.line(60.0).endswith("7/10 trials, 1 min 00 s, 1 min 00 s left")
    assert math.isclose(shown.line(60.0).count("#"), 24 * 7 // 10)


def test_progress_is_silent_where_no_terminal_is_watching():
    stream = io.StringIO()
    with Progress("toy", 2, stream=stream) as shown:
        shown.step()
    assert stream.getvalue() == ""
