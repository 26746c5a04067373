"""A directory for the results of one experiment: one process at a time, nothing half written, resumable."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import crowdwise
from crowdwise._files import check_room, held, sweep, write_file
from crowdwise._text import versions
from crowdwise.exceptions import DataError, OutputError
from crowdwise.paper.reproduce.rows import Row, RowLog

_LOCK = ".lock"
_ROWS = "rows.csv"
_NOTE = "run.json"


@dataclass(frozen=True)
class RunFolder:
    """The directory of a run that this process holds; `stamp` is what its rows depend on, such as the seed."""

    path: Path
    stamp: str = ""

    def write(self, name: str, content: bytes | str) -> Path:
        """Write one result, whole or not at all; where it went."""
        target = self.path / name
        write_file(target, content)
        return target

    def log(self, columns: Mapping[str, type], key: Sequence[str], rows_per_trial: int) -> RowLog:
        """The rows of an earlier run of the same experiment, to which more can be added."""
        return RowLog(self.path / _ROWS, columns, key, rows_per_trial, stamp=self.stamp)

    def write_rows(self, key: Sequence[str], rows: Sequence[Row]) -> None:
        """Write rows that are all computed anew, one per trial, whatever an earlier run left."""
        columns = {name: type(value) for name, value in rows[0].items()}
        log = RowLog(self.path / _ROWS, columns, key, 1, stamp=self.stamp, resume=False)
        log.trials = {log.key_of(row): [row] for row in rows}
        log.finish()


@contextmanager
def open_run(
    path: Path, experiment: str, binding: Mapping[str, Any], options: Mapping[str, Any]
) -> Iterator[RunFolder]:
    """Hold a directory while an experiment fills it, and leave a ``run.json`` that records what was run.

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
    with held(path, path / _LOCK):
        sweep(path)
        check_room(path)
        bound = {"experiment": experiment, "crowdwise": crowdwise.__version__, **binding}
        stamp = json.dumps(bound)
        _refuse_other_rows(path, json.loads(stamp))
        note = {**bound, "options": dict(options), "versions": versions(), "started": started}
        folder = RunFolder(path, stamp)
        folder.write(_NOTE, _as_json({**note, "finished": None, "seconds": None}))
        yield folder
        done = {
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(time.monotonic() - began, 2),
        }
        folder.write(_NOTE, _as_json({**note, **done}))


def _as_json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _prepare(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"the directory {path} cannot be created: {error.strerror or error}.") from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise OutputError(f"the directory {path} cannot be written to; choose another one for the results.")


def _refuse_other_rows(path: Path, bound: Mapping[str, Any]) -> None:
    """Rows of another seed or version must not be mixed with ours."""
    if not (path / _ROWS).exists():
        return
    before = _read_note(path / _NOTE)
    differs = [
        f"{name}={before.get(name)!r} instead of {value!r}"
        for name, value in bound.items()
        if before.get(name) != value
    ]
    if differs:
        raise OutputError(
            f"{path} holds rows of another run ({'; '.join(differs)}). Choose another directory or remove this one."
        )


def _read_note(path: Path) -> dict[str, Any]:
    """What an earlier run noted; nothing if there is no note."""
    try:
        note = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError) as error:
        found = str(error)
    else:
        if isinstance(note, dict):
            return note
        found = f"it holds {'null' if note is None else type(note).__name__}"
    raise DataError(
        f"{path} is damaged: expected a JSON object that says what was run, but {found}. "
        f"Remove the directory {path.parent} to start over, or choose another one."
    )
