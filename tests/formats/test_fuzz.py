"""Files that were damaged at random: labels or a clear error, never an error of another kind."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from crowdwise import CrowdLabels, formats
from crowdwise.exceptions import CrowdWarning, DataError

FILES = sorted((Path(__file__).parent / "files").iterdir())
# What else a value of JSON may be.
ODD = [None, True, 0, -1, 1.5, "", "x", [], [1], [[]], {}, {"a": 1}, "\ud800", "1e999"]


def read_or_refuse(path, **options):
    """Labels, or None if the file was refused in words; anything else is raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        try:
            file = formats.read(path, **options)
        except DataError:
            return None
    assert isinstance(file.labels, CrowdLabels)
    assert file.labels.n_labels > 0
    return file


def damaged(content, rng):
    """The content with a few bytes changed, taken out or put in, or cut off."""
    content = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(len(content)))
        match rng.integers(5):
            case 0:
                content[at] = int(rng.integers(256))
            case 1:
                del content[at : at + int(rng.integers(1, 30))]
            case 2:
                content[at:at] = bytes(rng.choice([b'"', b",", b"\n", b"\0", b"{", b"]", b"\xff", b"\t", b"null"]))
            case 3:
                content[at:at] = content[: int(rng.integers(1, 60))]
            case 4:
                del content[max(at, 1) :]
        if not content:
            break
    return bytes(content)


def places(value, path=()):
    """Where every value of a JSON document is."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def replaced(document, path, value):
    if not path:
        return value
    copy = json.loads(json.dumps(document))
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return copy


def fuzz_bytes(source, tmp_path, n):
    rng = np.random.default_rng(0)
    path = tmp_path / source.name
    content = source.read_bytes()
    for _ in range(n):
        path.write_bytes(damaged(content, rng))
        read_or_refuse(path)


@pytest.mark.parametrize("source", FILES, ids=lambda path: path.name)
def test_damaged_bytes_never_surprise(source, tmp_path):
    fuzz_bytes(source, tmp_path, 12)


@pytest.mark.slow
@pytest.mark.parametrize("source", FILES, ids=lambda path: path.name)
def test_many_damaged_bytes_never_surprise(source, tmp_path):
    fuzz_bytes(source, tmp_path, 500)


def documents():
    for path in FILES:
        if path.suffix == ".json":
            yield pytest.param(json.loads(path.read_text()), id=path.name)
        elif path.suffix == ".jsonl":
            yield pytest.param([json.loads(line) for line in path.read_text().splitlines()], id=path.name)


def fuzz_values(document, tmp_path, step):
    every = [(path, odd) for path in places(document) for odd in ODD]
    for path, odd in every[::step]:
        changed = tmp_path / "changed.json"
        changed.write_text(json.dumps(replaced(document, path, odd)))
        for format in (None, *(("peerannot", "alttest") if isinstance(document, dict) else ())):
            read_or_refuse(changed, format=format)


@pytest.mark.parametrize("document", [*documents()])
def test_values_of_another_kind_never_surprise(document, tmp_path):
    fuzz_values(document, tmp_path, 97)


@pytest.mark.slow
@pytest.mark.parametrize("document", [*documents()])
def test_any_value_of_another_kind_never_surprises(document, tmp_path):
    fuzz_values(document, tmp_path, 1)
