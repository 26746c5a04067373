"""The name of a data file -> its bytes, found in the data directory or downloaded, checksum verified."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import http.client
import lzma
import os
import sys
import urllib.error
import urllib.request
import zlib
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from crowdwise._files import write_file
from crowdwise.exceptions import DataError, MissingDataError

ENVIRONMENT = "CROWDWISE_DATA"
_OPENERS: dict[str, Any] = {"": open, ".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}
# A few data sets come with the package; their licences are beside them.
_SHIPPED = Path(__file__).parent / "shipped"
_TIMEOUT = 30.0  # seconds without an answer


class Known(NamedTuple):
    """What is known of a file's uncompressed content."""

    sha256: str
    size: int


def data_directory(data_home: str | os.PathLike[str] | None = None) -> Path:
    """The directory in which data sets are looked for, with the sub-folders ``libsvm`` and ``crowd``.

    Parameters
    ----------
    data_home : str or path, default=None
        The directory itself. By default the environment variable ``CROWDWISE_DATA``, and if that is not
        set, ``crowdwise`` in the cache directory of the platform (``~/.cache`` on Linux).

    Returns
    -------
    directory : Path
        Whether or not it exists.

    Examples
    --------
    >>> from crowdwise.datasets import data_directory
    >>> data_directory("my/data").name
    'data'
    """
    if data_home is not None:
        return Path(data_home).expanduser()
    if os.environ.get(ENVIRONMENT):
        return Path(os.environ[ENVIRONMENT]).expanduser()
    return _platform_cache() / "crowdwise"


def _platform_cache() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


@cache
def known_files() -> dict[str, Known]:
    """Checksum and size of every file, by its path in the data directory (without a compression suffix)."""
    text = files("crowdwise.datasets").joinpath("checksums.txt").read_text()
    rows = (line.split() for line in text.splitlines())
    return {name: Known(sha256, int(size)) for sha256, size, name in rows}


def find_file(name: str, data_home: str | os.PathLike[str] | None) -> Path | None:
    """Where the file is, plain or compressed (``.xz``, ``.gz``, ``.bz2``); None if it is not there.

    The data directory is looked at first, then what comes with the package.
    """
    places = (data_directory(data_home) / name, _SHIPPED / name)
    candidates = (place.with_name(place.name + suffix) for place in places for suffix in _OPENERS)
    return next((path for path in candidates if path.is_file()), None)


def read_file(name: str, data_home: str | os.PathLike[str] | None, *, url: str | None, hint: str = "") -> bytes:
    """The uncompressed, verified content of a data file, such as "libsvm/a1a".

    It is downloaded if it is not there; it cannot be if `url` is None. `hint` is one more sentence for the
    message when it is missing.
    """
    known = known_files()[name]
    path = find_file(name, data_home)
    if path is not None:
        return verified(read_at_most(path, known.size), known, str(path))
    target = data_directory(data_home) / name
    if url is None:
        raise MissingDataError(_what_to_put_where(target, name, "It cannot be downloaded.", hint))
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer:
            content = verified(answer.read(known.size + 1), known, url)
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", error)
        raise MissingDataError(
            _what_to_put_where(target, name, f"Downloading {url} failed: {reason}.", hint)
        ) from error
    target.parent.mkdir(parents=True, exist_ok=True)
    write_file(target, content)
    return content


def read_at_most(path: Path, size: int) -> bytes:
    """The content of a file that should have `size` bytes; a longer one is not read to its end."""
    suffix = path.suffix if path.suffix in _OPENERS else ""
    try:
        with _OPENERS[suffix](path, "rb") as file:
            return bytes(file.read(size + 1))
    except (lzma.LZMAError, zlib.error, EOFError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk's fault; gzip and bz2 name no number for bad content
        raise DataError(f"{path} is damaged and cannot be decompressed: {error}. Remove it or replace it.") from error


def verified(content: bytes, known: Known, where: str) -> bytes:
    """The content itself, if it is what is known; else an error."""
    if len(content) > known.size:
        raise DataError(f"{where} is longer than the {known.size:,} bytes expected: not the file meant. Replace it.")
    sha256 = hashlib.sha256(content).hexdigest()
    if sha256 != known.sha256:
        raise DataError(
            f"{where} is not the file expected, or damaged: its sha256 is {sha256} ({len(content):,} bytes) "
            f"instead of {known.sha256} ({known.size:,} bytes). Remove it or replace it."
        )
    return content


def _what_to_put_where(target: Path, name: str, why: str, hint: str) -> str:
    return (
        f"{target.name} is not in {target.parent}. {why} {hint + ' ' if hint else ''}"
        f"Put the file there as {target.name} (or {target.name}.xz, .gz, .bz2), or name the directory that has "
        f"{name} with data_home=... or the environment variable {ENVIRONMENT}."
    )
