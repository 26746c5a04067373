"""Estimators of other packages <-> bytes, by skops: no pickle, and only types that are trusted are made again."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from typing import Any

from crowdwise._text import how_to_install
from crowdwise.exceptions import MissingExtraError, ModelFileError
from crowdwise.model_file._archive import check_stored, npy_header


def is_foreign(value: object) -> bool:
    """Whether this is an estimator or a splitter of another package; one derived from ours is not."""
    if isinstance(value, type) or any(base.__module__.startswith("crowdwise.") for base in type(value).__mro__):
        return False
    parts = ("get_params", "fit"), ("split", "get_n_splits")
    return any(all(hasattr(value, name) for name in both) for both in parts)


def dump_foreign(value: Any, where: str) -> bytes:
    """An estimator or splitter as bytes; `where` is what it is, for messages."""
    io_of_skops = _skops(f"to save {where}, which is of type {type(value).__name__},")
    try:
        content: bytes = io_of_skops.dumps(value)
    except Exception as error:  # whatever this type of object leads to
        raise ModelFileError(f"{where} cannot be saved: skops does not know how ({error}).") from error
    local = [name for name in io_of_skops.get_untrusted_types(data=content) if name.startswith("__main__.")]
    if local:
        raise ModelFileError(
            f"{where} cannot be saved: {local[0]} is defined in the running script, where no other program finds it. "
            "Put it into a module."
        )
    return content


def load_foreign(content: bytes, trusted: Sequence[str]) -> Any:
    """The estimator or splitter again, if all of its types are skops's own trusted ones or among those given."""
    io_of_skops = _skops("for the estimator or splitter in this file")
    with zipfile.ZipFile(io.BytesIO(content)) as inner:
        check_stored(inner, len(content))
        _check_arrays(inner, ".npy")
        for info in inner.infolist():
            if info.filename.endswith(".npz"):  # a sparse matrix, whose arrays may be compressed
                with inner.open(info) as member, zipfile.ZipFile(member) as arrays:
                    total = sum(array.file_size for array in arrays.infolist())
                    if total > max(2**26, 50 * info.file_size):
                        raise ModelFileError(f"a sparse matrix of {info.file_size:,} bytes claims to have {total:,}")
                    _check_arrays(arrays, "")
    unknown = [name for name in io_of_skops.get_untrusted_types(data=content) if name not in trusted]
    if unknown:
        raise ModelFileError(
            f"it holds an object of another package with types that are not known to be safe, {', '.join(unknown)}. "
            f"If you trust those who made the file: load(path, trusted={unknown!r})"
        )
    return io_of_skops.loads(content, trusted=list(trusted))


def _check_arrays(archive: zipfile.ZipFile, ending: str) -> None:
    """Raise unless arrays have the sizes of their headers."""
    for info in archive.infolist():
        if info.filename.endswith(ending):
            with archive.open(info) as member:
                npy_header(member, info.file_size)


def _skops(purpose: str) -> Any:
    try:
        import skops.io
    except ImportError:
        raise MissingExtraError(f"skops is needed {purpose}: {how_to_install('skops')}.") from None
    return skops.io
