"""A directory for the results of one experiment: one process at a time, nothing half written, resumable."""

from __future__ import annotations

import json
import os
import platform
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Any

import crowdwise
from crowdwise.exceptions import BusyError, OutputError
from crowdwise.files import sweep, write_file

_LOCK = ".lock"
_PROBE_BYTES = 1 << 20  # more than any table takes


@dataclass(frozen=True)
class RunFolder:
    """The directory of a run that this process holds.

    Parameters
    ----------
    path : Path
        The directory.
    """

    path: Path

    def write(self, name: str, content: bytes | str) -> Path:
        """Write one result, whole or not at all; where it went."""
        target = self.path / name
        write_file(target, content)
        return target


@contextmanager
def open_run(
    path: Path, experiment: str, binding: Mapping[str, Any], options: Mapping[str, Any]
) -> Iterator[RunFolder]:
    """Hold a directory while an experiment fills it, and leave a ``run.json`` that says what was run.

    Parameters
    ----------
    path : Path
        The directory; made if need be.
    experiment : str
        What is run, such as "table2".
    binding : mapping
        What the rows depend on, such as the seed. A directory with rows of another binding is refused.
    options : mapping
        Everything else worth noting, such as the number of trials.

    Yields
    ------
    folder : RunFolder
    """
    began, started = time.monotonic(), datetime.now(UTC).isoformat(timespec="seconds")
    _prepare(path)
    with _locked(path):
        sweep(path)
        _probe(path)
        bound = {"experiment": experiment, "crowdwise": crowdwise.__version__, **binding}
        _refuse_other_rows(path, json.loads(json.dumps(bound)))
        note = {**bound, "options": dict(options), "versions": versions(), "started": started}
        folder = RunFolder(path)
        folder.write("run.json", _as_json({**note, "finished": None, "seconds": None}))
        yield folder
        done = {
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(time.monotonic() - began, 2),
        }
        folder.write("run.json", _as_json({**note, **done}))


def versions() -> dict[str, str]:
    """The versions of everything that a result may depend on."""
    found = {"python": platform.python_version(), "platform": platform.platform(), "crowdwise": crowdwise.__version__}
    for package in ("numpy", "scipy", "scikit-learn"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # installed in some other way
            found[package] = "unknown"
    return found


def _as_json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _prepare(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"the directory {path} cannot be made: {error.strerror or error}.") from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise OutputError(f"the directory {path} cannot be written to; choose another one for the results.")


def _probe(path: Path) -> None:
    """Find out before the work begins that the disk is full."""
    probe = path / ".probe"
    try:
        write_file(probe, bytes(_PROBE_BYTES))
    finally:
        probe.unlink(missing_ok=True)


def _refuse_other_rows(path: Path, bound: Mapping[str, Any]) -> None:
    """Rows of another seed or version must not be mixed with ours."""
    if not (path / "rows.csv").exists():
        return
    try:
        before = json.loads((path / "run.json").read_text())
    except (OSError, ValueError):
        before = {}
    differs = [
        f"{name}={before.get(name)!r} instead of {value!r}"
        for name, value in bound.items()
        if before.get(name) != value
    ]
    if differs:
        raise OutputError(
            f"{path} holds rows of another run ({'; '.join(differs)}). Choose another directory or remove this one."
        )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the directory. The system lets go of the lock when the process ends, however it ends."""
    while True:
        file = _open_lock(path / _LOCK)
        if not _try_lock(file):
            file.seek(0)
            holder = file.read().strip() or "another process"
            file.close()
            raise BusyError(f"{path} is in use by {holder}. Wait for it, or choose another directory.")
        if _still_there(path / _LOCK, file):
            break
        file.close()  # its last holder removed it between our opening and our locking
    try:
        file.truncate(0)
        file.seek(0)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        file.write(f"process {os.getpid()} on {socket.gethostname()} since {now}")
        file.flush()
        yield
    finally:
        if sys.platform != "win32":  # an open file cannot be removed there; an empty lock does no harm
            (path / _LOCK).unlink(missing_ok=True)
        file.close()


def _open_lock(path: Path) -> IO[str]:
    try:
        return open(path, "a+", encoding="utf-8")
    except PermissionError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}.") from error


def _still_there(path: Path, file: IO[str]) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    ours = os.fstat(file.fileno())
    return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)


if sys.platform == "win32":
    import msvcrt

    _FAR = 1 << 20  # Windows keeps others from reading a locked place; the note at the start stays readable

    def _try_lock(file: IO[str]) -> bool:
        file.seek(_FAR)
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _try_lock(file: IO[str]) -> bool:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
