"""A folder that is either the old one or the whole new one: written aside and moved into place."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from crowdwise._files import check_room, held, write_file
from crowdwise.exceptions import BusyError, MissingExtraError, OutputError

# In bytes; a system takes 255, of which some are needed for what stands beside a folder while it is replaced.
_LONGEST_NAME = 200


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
    new, old = _beside(place, "partial"), _beside(place, "old")
    with held(place, _beside(place, "lock")):
        _settle(place)
        if place.exists() and any(place.iterdir()) and not may_replace(place):
            raise OutputError(f"{out} already exists. Choose another folder, or replace it with --force.")
        try:
            new.mkdir()
            if place.exists():
                shutil.copymode(place, new)
            check_room(new)
            yield new
            _finish(new, place)
            if place.exists():
                os.rename(place, old)
            os.rename(new, place)
        except BaseException as error:
            with suppress(OSError):  # the next one will try again
                _settle(place)
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                raise OSError(f"the disk is full: {out} is not written, and what was there is unchanged.") from error
            raise
        with suppress(OSError):
            _settle(place)


def holds_only(folder: Path, names: Iterable[str]) -> bool:
    """True if a folder may be replaced by files of these names; else an error that names what else is there."""
    others = sorted({path.name for path in folder.iterdir()} - {*names})
    if others:
        raise OutputError(
            f"{folder} is not replaced because it also holds other files ({', '.join(others[:3])}). Move them, or "
            "choose another folder."
        )
    return True


def write_note(folder: Path, name: str, schema: str, about: dict[str, Any]) -> None:
    """Write the last file of a folder: what it is, and the names of all its files."""
    files = sorted([*(path.name for path in folder.iterdir()), name])
    note = {"schema": schema, **about, "files": files}
    write_file(folder / name, json.dumps(note, indent=2, ensure_ascii=False) + "\n")


def is_replaceable(folder: Path, name: str, schema: str, fault: str) -> bool:
    """True if a folder has a note of this schema, and nothing but the files that the note names; else an error."""
    try:
        note = json.loads((folder / name).read_bytes())
        files = {*note["files"]} if note["schema"] == schema else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        files = None
    if files is None:
        raise OutputError(f"{folder} is not replaced: it {fault}. Choose another folder with --out.")
    return holds_only(folder, files)


def recover(place: Path) -> None:
    """Put back a folder whose replacement was killed between its two renames, unless someone is at work there."""
    if not place.exists() and _beside(place, "old").exists():
        with (
            suppress(BusyError, MissingExtraError, OSError),  # or it is not ours to move
            held(place, _beside(place, "lock")),
        ):
            _settle(place)


def _beside(place: Path, what: str) -> Path:
    """What is needed while a folder is replaced; only the holder of the lock has any of it."""
    name = place.name
    if len(os.fsencode(name)) > _LONGEST_NAME:
        name = f"{name[:40]}-{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}"
    return place.with_name(f".{name}.{what}")


def _settle(place: Path) -> None:
    """End whatever was begun, from any step at which it was left: the folder is the old one or the new one.

    The old folder stands aside while the new one waits to take its place. Without a new one it was replaced, and if
    there is no folder now, someone removed it. What someone put in its place by hand stays.
    """
    new, old = _beside(place, "partial"), _beside(place, "old")
    is_taken = place.exists() and any(place.iterdir())
    if old.exists() and new.exists() and not is_taken:
        os.rename(old, place)
    for stray in (old, new):
        if stray.exists():
            shutil.rmtree(stray)


def _check_place(place: Path) -> None:
    here = Path.cwd()
    if place == here or place in here.parents:
        raise OutputError(f"{place} is the current folder or above it. Choose a folder inside it.")
    if place.name.startswith(".") and place.suffix in (".partial", ".old"):
        raise OutputError(f"{place.name} is a reserved name, needed while a folder is replaced. Choose another one.")
    if place.exists() and not place.is_dir():
        raise OutputError(f"{place} is a file, and the results need a folder. Choose another name.")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"the folder {place.parent} cannot be created: {error.strerror or error}.") from error
    if not os.access(place.parent, os.W_OK | os.X_OK):
        raise OutputError(f"nothing can be written to {place.parent}; choose another folder.")


def _finish(new: Path, place: Path) -> None:
    """Flush files to the disk, with the permissions of those that they replace."""
    for path in filter(Path.is_file, new.rglob("*")):
        with open(path, "rb") as file:
            os.fsync(file.fileno())
        if (before := place / path.relative_to(new)).is_file():
            shutil.copymode(before, path)
