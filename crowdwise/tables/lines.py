"""Bytes -> lines of text, with errors that name the line."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator

from crowdwise.exceptions import DataError
from crowdwise.tables.source import Source

# No line and no cell may be longer: a quote that is not closed, or a file that is no table, would fill the memory.
LONGEST = 2**24
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def encoding_of(head: bytes) -> str:
    """The encoding that the first bytes announce, else UTF-8.

    Examples
    --------
    >>> from crowdwise.tables.lines import encoding_of
    >>> encoding_of("a".encode("utf-16"))
    'utf-16'
    """
    return next((encoding for mark, encoding in _MARKS if head.startswith(mark)), "utf-8")


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
    for chunk in _and_end(source.chunks()):
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


def _and_end(chunks: Iterator[bytes]) -> Iterator[bytes]:
    yield from chunks
    yield b""


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
