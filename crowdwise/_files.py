"""Files that are whole or not there, that must not change while they are read, and places that one process holds."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from crowdwise._text import how_to_install
from crowdwise.exceptions import BusyError, MissingExtraError, OutputError

_MARK = ".partial-"
# Seconds after which a file that is not written to any more was left by a writer that was killed.
_ABANDONED = 3600
_ROOM = 1 << 20  # more than tables of a small run take


def write_file(path: Path, content: bytes | str | Callable[[BinaryIO], object]) -> None:
    """Write beside, flush to the disk, rename: a reader sees the old file or the new one.

    Text is written as UTF-8, halves of surrogate pairs escaped; a callable is given the open file. The directory of the
    file exists. A file that was there leaves its permissions to the new one, and a link its place.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "note.txt"
    >>> write_file(path, "done")
    >>> path.read_text()
    'done'
    """
    if path.exists() and not path.is_file():
        raise OutputError(f"{path} is a folder or a device; the name of a file was expected.")
    beside = path.with_name(_prefix(path) + os.urandom(6).hex())
    try:
        with open(beside, "xb") as file:
            if path.is_file() and not path.is_symlink():
                shutil.copymode(path, beside)
            if callable(content):
                content(file)
            else:
                file.write(content.encode(errors="backslashreplace") if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


def _prefix(path: Path) -> str:
    """How names beside a file begin: its own name may be as long as a name can be."""
    return f".{path.name[:40]}{_MARK}"


def sweep(directory: Path) -> int:
    """Remove what writers that were killed left behind; how many files that were.

    Only for a directory that no one else writes to at the moment.
    """
    strays = list(directory.glob(f".*{_MARK}*"))
    for stray in strays:
        stray.unlink(missing_ok=True)
    return len(strays)


def sweep_beside(path: Path) -> None:
    """Remove what killed writers of one file left beside it an hour ago or earlier: others may be at work on theirs."""
    for stray in path.parent.glob(f"{glob.escape(_prefix(path))}*"):
        with contextlib.suppress(OSError):  # of another user, or gone by now
            if time.time() - stray.stat().st_mtime > _ABANDONED:
                stray.unlink()


class Unchanged:
    """Files that are read more than once: `check` is an error if one of them is not what it was at the beginning.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "note.txt"
    >>> write_file(path, "done")
    >>> files = Unchanged([path])
    >>> files.check()
    >>> write_file(path, "again")
    >>> files.check()
    Traceback (most recent call last):
    crowdwise.exceptions.BusyError: ...note.txt changed while it was read. Start again when no program writes to it.
    """

    def __init__(self, paths: Iterable[str | os.PathLike[str]]) -> None:
        self._before = {path: _stamp(path) for path in paths}

    def check(self) -> None:
        """Compare size, time and place on the disk."""
        for path, before in self._before.items():
            if _stamp(path) != before:
                raise BusyError(
                    f"{os.fspath(path)} changed while it was read. Start again when no program writes to it."
                ) from None


def _stamp(path: str | os.PathLike[str]) -> tuple[int, ...]:
    """Empty where there is no file, or one that is read once, such as a pipe."""
    if not os.path.isfile(path):
        return ()
    status = os.stat(path)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def check_room(directory: Path) -> None:
    """Find out before the work begins that the disk is full."""
    probe = directory / ".probe"
    try:
        write_file(probe, bytes(_ROOM))
    finally:
        probe.unlink(missing_ok=True)


@contextlib.contextmanager
def held(place: Path, lock: Path) -> Iterator[None]:
    """Hold a place. The system lets go of the lock when the process ends, however it ends.

    `lock` is the file that stands for the place, ending in "lock"; its directory exists.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from crowdwise._files import held
    >>> place = Path(tempfile.mkdtemp())
    >>> with held(place, place / ".lock"):
    ...     (place / ".holder").read_text().split()[0]
    'process'
    """
    holder = lock.with_name(lock.name.removesuffix("lock") + "holder")  # the lock itself may be emptied by who tries it
    acquired = _acquired(place, lock, holder)
    try:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        holder.unlink(missing_ok=True)  # of a process that was killed, or a link to somewhere else
        with open(holder, "x", encoding="utf-8") as file:
            file.write(f"process {os.getpid()} on {socket.gethostname()} since {now}")
        yield
    finally:
        for path in (holder, lock):
            with contextlib.suppress(OSError):  # Windows keeps a file that is open; an empty lock does no harm
                path.unlink()
        acquired.release()


def _acquired(place: Path, lock: Path, holder: Path) -> Any:
    try:
        from filelock import FileLock, Timeout
    except ImportError as error:
        raise MissingExtraError(f"Results need filelock: {how_to_install('cli')}.") from error
    file = FileLock(lock)
    try:
        file.acquire(blocking=False)
    except Timeout:
        _refuse_unmakeable(lock)
        raise BusyError(f"{place} is in use by {_read(holder)}. Wait for it, or choose another directory.") from None
    except OSError as error:  # a symbolic link or a directory in its place, or no right to write it
        raise OutputError(
            f"{lock} cannot serve as a lock: {error.strerror or error}. Remove it, or choose another directory."
        ) from error
    return file


def _refuse_unmakeable(lock: Path) -> None:
    """An error if no file can be made there, as in /proc: filelock takes that for a lock that is held."""
    try:
        lock.touch()
    except OSError as error:
        raise OutputError(
            f"nothing can be written to {lock.parent}: {error.strerror or error}. Choose another directory."
        ) from error


def _read(holder: Path) -> str:
    try:
        return holder.read_text(encoding="utf-8") or "another process"
    except (OSError, ValueError):
        return "another process"
