"""A folder that is either the old one or the whole new one: written aside and moved into place."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from crowdwise.exceptions import OutputError
from crowdwise.files import check_room, umask
from crowdwise.locks import held

_PARTIAL, _OLD = ".partial-", ".old-"


@contextmanager
def new_folder(out: str | os.PathLike[str], *, may_replace: Callable[[Path], bool]) -> Iterator[Path]:
    """A fresh folder beside `out`, which takes its place when the block ends well and is removed when it does not.

    `may_replace` is given a folder that is there already, if it holds anything; False, or an error of its own, keeps
    it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from crowdwise.runs.new_folder import new_folder
    >>> out = Path(tempfile.mkdtemp()) / "run"
    >>> with new_folder(out, may_replace=lambda old: False) as folder:
    ...     _ = (folder / "note.txt").write_text("done")
    >>> (out / "note.txt").read_text()
    'done'
    """
    place = Path(os.path.realpath(out))
    _check_place(place)
    with held(place, place.with_name(f".{place.name}.lock")):
        recover(place)
        if place.exists() and any(place.iterdir()) and not may_replace(place):
            raise OutputError(f"{out} exists already. Choose another folder, or replace it with --force.")
        _sweep(place)
        folder = Path(tempfile.mkdtemp(prefix=f".{place.name}{_PARTIAL}", dir=place.parent))
        try:
            check_room(folder)
            yield folder
            _flush(folder)
            os.chmod(folder, 0o777 & ~umask())  # mkdtemp makes it private
            _exchange(folder, place)
        except BaseException as error:
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                raise OSError(f"the disk is full: {out} is not written, and what was there is unchanged.") from error
            raise


def holds_only(folder: Path, names: Iterable[str]) -> bool:
    """True if a folder may be replaced by files of these names; else an error that says what else is there."""
    others = sorted({path.name for path in folder.iterdir()} - {*names})
    if others:
        raise OutputError(
            f"{folder} is not replaced, for it holds other files too ({', '.join(others[:3])}). Move them, or choose "
            "another folder."
        )
    return True


def recover(place: Path) -> None:
    """Put back a folder whose replacement was killed between its two renames."""
    if not place.exists():
        for old in place.parent.glob(f".{place.name}{_OLD}*"):
            with suppress(OSError):  # somebody else was faster, or it is not ours to move
                os.rename(old, place)
            return


def _check_place(place: Path) -> None:
    here = Path.cwd()
    if place == here or place in here.parents:
        raise OutputError(f"{place} is the folder that you are in, or above it. Name one inside it.")
    if place.exists() and not place.is_dir():
        raise OutputError(f"{place} is a file; a folder is made for the results. Choose another name.")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"the folder {place.parent} cannot be made: {error.strerror or error}.") from error
    if not os.access(place.parent, os.W_OK | os.X_OK):
        raise OutputError(f"nothing can be written to {place.parent}; choose another folder.")


def _sweep(place: Path) -> None:
    """Remove what processes that were killed left behind; nobody else is at work here."""
    for mark in (_PARTIAL, _OLD):
        for stray in place.parent.glob(f".{place.name}{mark}*"):
            shutil.rmtree(stray, ignore_errors=True)


def _flush(folder: Path) -> None:
    for path in folder.iterdir():
        with open(path, "rb") as file:
            os.fsync(file.fileno())


def _exchange(folder: Path, place: Path) -> None:
    if not place.exists():
        os.rename(folder, place)
        return
    old = place.with_name(f".{place.name}{_OLD}{os.getpid()}")
    os.rename(place, old)
    try:
        os.rename(folder, place)
    except OSError:
        os.rename(old, place)
        raise
    shutil.rmtree(old, ignore_errors=True)
