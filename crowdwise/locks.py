"""A place on the disk -> held by one process at a time; the second is told who holds it."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from crowdwise.exceptions import BusyError, MissingExtraError, OutputError
from crowdwise.extras import how_to_install


@contextmanager
def held(place: Path, lock: Path) -> Iterator[None]:
    """Hold a place. The system lets go of the lock when the process ends, however it ends.

    `lock` is the file that stands for the place, ending in "lock"; its directory exists.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from crowdwise.locks import held
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
            with suppress(OSError):  # Windows keeps a file that is open; an empty lock does no harm
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
    """An error if no file can be made there, as in /proc: filelock takes that for a lock that somebody holds."""
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
