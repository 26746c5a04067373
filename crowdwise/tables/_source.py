"""A path, or "-" for standard input -> its bytes, decompressed, and lines of text, with errors that name the line."""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import os
import shutil
import stat
import sys
import tempfile
import weakref
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import BinaryIO

from crowdwise._files import Unchanged
from crowdwise.exceptions import DataError, MissingDataError

# Bytes that are read at a time; the first of them are looked at to guess what a file is.
_CHUNK = 2**20
# Beyond so many bytes, a document that is read as a whole may not be this many times larger than its compressed file.
_LARGE = 2**28
_LARGEST_RATIO = 200
_GZIP, ZIP, _OLD_EXCEL = b"\x1f\x8b", b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
# No line and no cell may be longer: a quote that is not closed, or a file that is no table, would fill the memory.
LONGEST = 2**24
# Rows of a block, and rows from which delimiters and the names of columns are guessed.
N_ROWS, FIRST_ROWS = 2**15, 1000
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


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
        return next(self.chunks(), b"")

    @property
    def is_spreadsheet(self) -> bool:
        """Whether this is a file of Excel or LibreOffice."""
        named = self.suffix in (".xlsx", ".xlsm", ".ods")
        in_archive = named or any(mark in self.head for mark in (b"xl/work", b"opendocument.spreadsheet"))
        return self.head.startswith(_OLD_EXCEL) or (self.head.startswith(ZIP) and in_archive)

    def read(self) -> bytes:
        """All bytes; a compressed file that would swell out of all proportion is refused."""
        chunks, n_bytes = [], 0
        for chunk in self.chunks():
            n_bytes += len(chunk)
            if n_bytes > self.largest:
                raise DataError(
                    f"{self.name}: a file of {self.size:,} bytes holds more than {self.largest:,} when it is "
                    "decompressed, which is unusual. If this is intended, decompress it first."
                )
            chunks.append(chunk)
        return b"".join(chunks)

    def chunks(self) -> Iterator[bytes]:
        """The bytes, some at a time."""
        with self.open() as raw:
            compressed = raw.read(2) == _GZIP
            raw.seek(0)
            file = gzip.GzipFile(fileobj=raw) if compressed else raw
            try:
                while chunk := file.read(_CHUNK):
                    yield chunk
                self.check_unchanged()
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise DataError(
                    f"{self.name}: the compressed file is cut off or damaged ({str(error).rstrip('.')}). "
                    "Fetch or make it again."
                ) from None

    def open(self) -> BinaryIO:
        """The file as it is on the disk, open at its start."""
        try:
            self.check_unchanged()
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
    def largest(self) -> int:
        """The most bytes that it may hold when it is decompressed."""
        return max(_LARGE, _LARGEST_RATIO * self.size)

    def check_unchanged(self) -> None:
        """Raise if it is not what it was: it is read more than once, and must stay as it is meanwhile."""
        self._files.check()

    @cached_property
    def _files(self) -> Unchanged:
        return Unchanged([self._on_disk])

    @cached_property
    def _on_disk(self) -> str:
        """The file; of what can be read only once (standard input, a named pipe) a copy, which goes when this does."""
        if self.path != "-" and not stat.S_ISFIFO(os.stat(self.path).st_mode):
            return self.path
        if self.path == "-" and sys.stdin is None:
            raise MissingDataError("standard input is closed; give a file.")
        handle, name = tempfile.mkstemp(prefix="crowdwise-")
        weakref.finalize(self, os.unlink, name)
        with os.fdopen(handle, "wb") as copy, contextlib.ExitStack() as opened:
            incoming = sys.stdin.buffer if self.path == "-" else opened.enter_context(open(self.path, "rb"))
            shutil.copyfileobj(incoming, copy)
        return name


@dataclass(frozen=True)
class Block:
    """Some rows of a table."""

    columns: Sequence[Sequence[str]]  # one per column, all of the same length
    line_of: Callable[[int], int]  # from the position of a row in the block to the line of the file that it begins on


def encoding_of(head: bytes) -> str:
    """The encoding that the first bytes announce, else UTF-8.

    Examples
    --------
    >>> from crowdwise.tables import encoding_of
    >>> encoding_of("a".encode("utf-16"))
    'utf-16'
    """
    return next((encoding for mark, encoding in _MARKS.items() if head.startswith(mark)), "utf-8")


def check_encoding(encoding: str) -> str:
    """An encoding of texts that Python knows; some are of other things, such as names of hosts."""
    try:
        b"a".decode(encoding, "ignore")
    except (LookupError, ValueError):
        raise ValueError(
            f"encoding must be one that Python knows, such as utf-8 or latin-1; got {encoding!r}."
        ) from None
    return encoding


def decoded(source: Source, encoding: str) -> Iterator[str]:
    """The text of a file, some at a time."""
    decoder, line = codecs.getincrementaldecoder(encoding)(), 1
    for chunk in chain(source.chunks(), [b""]):
        try:
            text = decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            good = error.object[: error.start].decode(encoding, "ignore")
            raise DataError(_no_text(source, line + good.count("\n"), encoding, error)) from None
        except UnicodeError as error:  # UTF-16 without its mark
            raise DataError(
                f"{source.name}: this is not {encoding}: {error}. Name its encoding: --encoding NAME."
            ) from None
        if "\0" in text:
            raise DataError(_nul(source, line + text.count("\n", 0, text.index("\0"))))
        yield text
        line += text.count("\n")


def _no_text(source: Source, line: int, encoding: str, error: UnicodeDecodeError) -> str:
    came = f"byte 0x{error.object[error.start]:02x}" if error.start < len(error.object) else "the end of the file"
    return (
        f"{source.name}, line {line}: this is not {encoding.removesuffix('-sig').upper()} ({came} cannot be read). "
        'Name the encoding, such as --encoding latin-1 or --encoding cp1252 (in Python: encoding="latin-1").'
    )


def _nul(source: Source, line: int) -> str:
    even, odd = source.head[::2].count(0), source.head[1::2].count(0)
    if 4 * max(even, odd) > len(source.head):
        guess = "utf-16-le" if odd > even else "utf-16-be"
        return (
            f"{source.name}, line {line}: this looks like UTF-16 without a mark. Name it: --encoding {guess} "
            f'(in Python: encoding="{guess}").'
        )
    return f"{source.name}, line {line}: a NUL character, which text does not have. Is this a table? Remove it if so."


def line_blocks(source: Source, encoding: str) -> Iterator[list[str]]:
    """The lines of a file with their ends, some at a time."""
    rest, n_lines = "", 0
    for text in decoded(source, encoding):
        lines = io.StringIO(rest + text, newline="").readlines()
        # The last line may go on, and a carriage return at the end may be half of a line end.
        rest = lines.pop() if lines and not lines[-1].endswith("\n") else ""
        n_lines += len(lines)
        if len(rest) > LONGEST:
            raise DataError(
                f"{source.name}, line {n_lines + 1}: a line of more than {LONGEST:,} characters. Is this a table?"
            )
        yield lines
    if rest:
        yield [rest]
