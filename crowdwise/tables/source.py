"""A path, or "-" for standard input -> its bytes, decompressed, with errors that name the file."""

from __future__ import annotations

import contextlib
import gzip
import os
import shutil
import stat
import sys
import tempfile
import weakref
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from crowdwise._files import Unchanged
from crowdwise.exceptions import DataError, MissingDataError

# So much is read at a time, and looked at to guess what a file is.
_CHUNK = 2**20
_HEAD = 2**16
# Beyond so many bytes, a document that is read as a whole may not be this many times larger than its compressed file.
_LARGE = 2**28
_LARGEST_RATIO = 200
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, eq=False)
class Source:
    """Where bytes come from; they can be read more than once.

    Parameters
    ----------
    path : str
        Of the file; "-" is standard input.
    title : str, default=""
        What messages call it; by default the path.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from crowdwise.tables import Source
    >>> path = Path(tempfile.mkdtemp()) / "note.txt"
    >>> _ = path.write_text("done")
    >>> Source(str(path)).read()
    b'done'
    """

    path: str
    title: str = ""

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.title or ("standard input" if self.path == "-" else self.path)

    @property
    def suffix(self) -> str:
        """The ending of the name in small letters, without that of the compression; empty for standard input."""
        name = self.path.lower().removesuffix(".gz")
        return "" if self.path == "-" else Path(name).suffix

    @cached_property
    def head(self) -> bytes:
        """The first bytes."""
        whole = b""
        for chunk in self.chunks(_HEAD):
            whole += chunk
            if len(whole) >= _HEAD:
                break
        return whole

    def read(self) -> bytes:
        """All bytes; a compressed file that would swell out of all proportion is refused."""
        chunks, n_bytes, limit = [], 0, max(_LARGE, _LARGEST_RATIO * self.size)
        for chunk in self.chunks():
            n_bytes += len(chunk)
            if n_bytes > limit:
                raise DataError(
                    f"{self.name}: a file of {self.size:,} bytes holds more than {limit:,} when it is decompressed, "
                    "which no usual file does. Decompress it first if it is meant to be so."
                )
            chunks.append(chunk)
        return b"".join(chunks)

    def chunks(self, size: int = _CHUNK) -> Iterator[bytes]:
        """The bytes, some at a time."""
        with self.open() as raw:
            compressed = raw.read(2) == _GZIP
            raw.seek(0)
            file = gzip.GzipFile(fileobj=raw) if compressed else raw
            try:
                while chunk := file.read(size):
                    yield chunk
                self._files.check()
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise DataError(
                    f"{self.name}: the compressed file is cut off or damaged ({str(error).rstrip('.')}). "
                    "Fetch or make it again."
                ) from None

    def open(self) -> BinaryIO:
        """The file as it is on the disk, open at its start."""
        try:
            self._files.check()
            return open(self._on_disk, "rb")
        except MissingDataError:
            raise
        except FileNotFoundError:
            raise MissingDataError(f"there is no file {self.path}.") from None
        except IsADirectoryError:
            raise DataError(f"{self.path} is a folder; a file was expected.") from None
        except ValueError as error:  # a NUL in the name
            raise DataError(f"{self.path!r} cannot be the name of a file: {error}.") from None

    @property
    def size(self) -> int:
        """Bytes on the disk."""
        with self.open() as raw:
            return raw.seek(0, os.SEEK_END)

    @cached_property
    def _files(self) -> Unchanged:
        """It is read more than once, and must stay as it is meanwhile."""
        return Unchanged([self._on_disk])

    @property
    def _on_disk(self) -> str:
        return self._copy if self._reads_once else self.path

    @cached_property
    def _reads_once(self) -> bool:
        """Whether the bytes are gone once they are read: standard input, or a pipe that has a name."""
        return self.path == "-" or stat.S_ISFIFO(os.stat(self.path).st_mode)

    @cached_property
    def _copy(self) -> str:
        """A file with what came in, which goes when this does: it may be read more than once."""
        handle, name = tempfile.mkstemp(prefix="crowdwise-")
        weakref.finalize(self, os.unlink, name)
        with os.fdopen(handle, "wb") as kept, _incoming(self.path) as incoming:
            shutil.copyfileobj(incoming, kept)
        return name


@contextlib.contextmanager
def _incoming(path: str) -> Iterator[BinaryIO]:
    if path != "-":
        with open(path, "rb") as file:
            yield file
    elif sys.stdin is None:
        raise MissingDataError("standard input is closed; give a file.")
    else:
        yield sys.stdin.buffer
