"""The journal: what was acknowledged is there again, whatever happened in between."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from marks import in_slow_run

from crowdwise.exceptions import BusyError, CrowdWarning, DataError
from crowdwise.session.journal import Journal

ENTRIES = [{"example": 1, "label": "a"}, {"example": "zwölf\n\u2028", "label": None}, {"example": 0.5, "label": True}]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "answers.jsonl"
    with Journal(path) as journal:
        for entry in ENTRIES:
            journal.add(entry)
    return path


def read(path: Path) -> list[dict]:
    with Journal(path) as journal:
        return journal.entries


def test_what_was_added_is_read_again(path: Path) -> None:
    assert read(path) == ENTRIES
    with Journal(path) as journal:
        journal.add({"example": np.int64(3), "label": np.str_("b")})
    assert read(path) == [*ENTRIES, {"example": 3, "label": "b"}]
    assert path.read_bytes().count(b"\n") == 4


def test_every_cut_leaves_whole_entries(path: Path) -> None:
    content = path.read_bytes()
    ends = [at + 1 for at, byte in enumerate(content) if byte == 10]
    for length in range(len(content)):
        path.write_bytes(content[:length])
        n_whole = sum(end <= length for end in ends)
        if length in (0, *ends):
            assert read(path) == ENTRIES[:n_whole]
            continue
        with pytest.warns(CrowdWarning, match="ended with a damaged line"):
            assert read(path) == ENTRIES[:n_whole]
        assert read(path) == ENTRIES[:n_whole]
        (beside,) = path.parent.glob("*.cut-*")
        assert path.read_bytes() + beside.read_bytes() == content[:length]
        beside.unlink()


def test_a_changed_byte_is_noticed(path: Path) -> None:
    content = path.read_bytes()
    last = content[:-1].rindex(b"\n") + 1
    for at in range(len(content)):
        damaged = bytearray(content)
        damaged[at] ^= 1
        path.write_bytes(damaged)
        if at < last:
            with pytest.raises(DataError, match="is damaged in line"):
                Journal(path)
        else:
            with pytest.warns(CrowdWarning, match="ended with a damaged line"):
                assert read(path) == ENTRIES[:2]


def test_a_line_that_is_left_out_is_noticed(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[2])
    with pytest.raises(DataError, match="is damaged in line 2"):
        Journal(path)


def test_two_cannot_hold_one_journal(path: Path) -> None:
    with Journal(path), pytest.raises(BusyError, match="is in use by"):
        Journal(path)
    assert read(path) == ENTRIES


@pytest.mark.parametrize("value", [float("nan"), object(), {1, 2}, np.datetime64("2026-01-01")])
def test_what_cannot_be_kept_is_refused_and_changes_nothing(path: Path, value: object) -> None:
    with Journal(path) as journal, pytest.raises(DataError, match="a journal keeps"):
        journal.add({"label": value})
    assert read(path) == ENTRIES


def test_a_full_disk_leaves_the_file_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = path.read_bytes()
    with Journal(path) as journal:

        def full(handle: int) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            with pytest.raises(OSError, match="No space left"):
                journal.add({"example": 4})
        assert path.read_bytes() == content
        journal.add({"example": 5})
    assert read(path) == [*ENTRIES, {"example": 5}]


WRITER = """
import sys
from crowdwise.session.journal import Journal
journal = Journal(sys.argv[1])
for number in range(len(journal.entries), 10**6):
    journal.add({"number": number, "text": "x" * (number % 50)})
    print(number, flush=True)
"""


@pytest.mark.parametrize("n_kills", [1, in_slow_run(5)])
def test_kills_lose_nothing_that_was_acknowledged(tmp_path: Path, n_kills: int) -> None:
    path, rng = tmp_path / "answers.jsonl", np.random.default_rng(0)
    for _ in range(n_kills):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            time.sleep(rng.uniform(0, 0.05))
            writer.send_signal(signal.SIGKILL)
            acknowledged = [int(line) for line in writer.stdout.read().split()]
        entries = read(path)
        assert [entry["number"] for entry in entries] == list(range(len(entries)))
        assert len(entries) > max(acknowledged, default=-1)
