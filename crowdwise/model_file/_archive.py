"""Arrays, JSON and bytes <-> members of one zip file, which is checked before anything in it is read.

Members are stored, not compressed: none can be larger than the file that it is in.
"""

from __future__ import annotations

import json
import math
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

from crowdwise._arrays import Array
from crowdwise.exceptions import ModelFileError

MANIFEST = "manifest.json"
# Every name that a member may have.
_NAME = re.compile(rf"{re.escape(MANIFEST)}|\d{{1,9}}\.(npy|json|skops)")
_ENCRYPTED = 0x1
# A header and what else comes with a member; only to know whether it needs the larger kind of zip entry.
_MARGIN = 2**16


@dataclass(frozen=True)
class ArchiveWriter:
    """Writes members one after the other; the same content makes the same bytes, whenever it is written."""

    archive: zipfile.ZipFile

    @classmethod
    @contextmanager
    def on(cls, file: IO[bytes]) -> Iterator[ArchiveWriter]:
        """On a file that is open for writing."""
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            yield cls(archive)

    def add_array(self, name: str, array: Array) -> None:
        """An array of numbers, strings or times."""
        with self._member(name, array.nbytes) as member:
            npy.write_array(member, array, version=(1, 0), allow_pickle=False)

    def add_json(self, name: str, value: Any) -> None:
        """A value that JSON has."""
        self.add_bytes(name, json.dumps(value, allow_nan=False).encode())

    def add_bytes(self, name: str, content: bytes) -> None:
        """Bytes as they are."""
        with self._member(name, len(content)) as member:
            member.write(content)

    def _member(self, name: str, size: int) -> IO[bytes]:
        info = zipfile.ZipInfo(name)  # of 1980, as all are
        info.file_size = size + _MARGIN
        return self.archive.open(info, "w")


@dataclass(frozen=True)
class ArchiveReader:
    """Reads members; their names and sizes are known to be right, and checksums are compared as they are read."""

    archive: zipfile.ZipFile

    @classmethod
    def on(cls, file: BinaryIO) -> ArchiveReader:
        """On a file that is open for reading; raises if it is not a whole archive of ours."""
        archive = zipfile.ZipFile(file)
        names = [info.filename for info in archive.infolist()]
        for name in names:
            if not _NAME.fullmatch(name):
                raise ModelFileError(f"it has a member {name!r}, which no model file has")
        check_stored(archive, file.seek(0, 2))
        if MANIFEST not in names:
            raise ModelFileError(f"it has no {MANIFEST}")
        return cls(archive)

    def array(self, name: str) -> Array:
        """An array, of the size in its header."""
        info = self.archive.getinfo(name)
        with self.archive.open(info) as member:
            shape, fortran, dtype = npy_header(member, info.file_size)
            flat = np.empty(math.prod(shape), dtype)
            flat.view(np.uint8)[:] = np.frombuffer(member.read(flat.nbytes), np.uint8)
        return flat.reshape(shape, order="F" if fortran else "C")

    def json(self, name: str) -> Any:
        """A value that JSON has."""
        return json.loads(self.bytes(name))

    def bytes(self, name: str) -> bytes:
        """Bytes as they are."""
        return self.archive.read(name)


def check_stored(archive: zipfile.ZipFile, n_bytes: int) -> None:
    """Raise unless all members have different names, are as they are, and fit together into a file of this size."""
    members = archive.infolist()
    if len({info.filename for info in members}) < len(members):
        raise ModelFileError("it has two members of the same name")
    for info in members:
        if info.flag_bits & _ENCRYPTED or info.compress_type != zipfile.ZIP_STORED:
            raise ModelFileError(f"its member {info.filename} is compressed or encrypted, which no model file is")
        if info.file_size != info.compress_size:
            raise ModelFileError(f"its member {info.filename} has two sizes")
    if sum(info.file_size for info in members) > n_bytes:
        raise ModelFileError("its members claim more bytes than the file has")


def npy_header(member: IO[bytes], n_bytes: int) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type of an array whose header and numbers take `n_bytes`; raises if they do not."""
    if npy.read_magic(member) != (1, 0):
        raise ModelFileError("an array has a header of another version")
    shape, fortran, dtype = npy.read_array_header_1_0(member)
    if dtype.hasobject or dtype.itemsize == 0:
        raise ModelFileError(f"an array is of type {dtype}, which only a pickle could hold")
    if any(length < 0 for length in shape) or math.prod(shape) * dtype.itemsize != n_bytes - member.tell():
        raise ModelFileError(f"an array claims the shape {shape} of {dtype}, which is not its size")
    return shape, fortran, dtype
