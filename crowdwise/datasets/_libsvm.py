"""Binary benchmark data sets in LIBSVM format -> features and truth.

The twenty sets of the paper, raw and scaled to [-1, 1] where both exist.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.datasets import load_svmlight_file
from sklearn.utils import Bunch

from crowdwise._arrays import Floats
from crowdwise.datasets._store import find_file, read_at_most, read_file
from crowdwise.exceptions import DataError, warn

SITE = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"
_STAND_IN_SEED, _W4A_ROWS = 0, 7366


@dataclass(frozen=True)
class Entry:
    """What is fixed about a data set, whatever its file happens to mention."""

    n_features: int
    has_test: bool = False
    origin: str = ""
    note: str = ""
    on_site: bool = True


_ADULT = Entry(123, True, "Adult census income, as coded by Platt (1998)")
_WEB = Entry(300, True, "Web page categories, Platt (1998)", "Some rows have no feature at all; about 3% are positive.")
_ENTRIES: dict[str, Entry] = {
    **dict.fromkeys(("a1a", "a2a", "a3a", "a4a", "a5a"), _ADULT),
    "australian": Entry(14, origin="Statlog, credit approval"),
    "breast-cancer": Entry(
        10,
        origin="Wisconsin breast cancer, UCI; 2 is benign, 4 malignant",
        note="The first feature is the patient's number, as on the site.",
    ),
    "diabetes": Entry(8, origin="Pima Indians diabetes, UCI"),
    "fourclass": Entry(2, origin="Ho and Kleinberg (1996)"),
    "german.numer": Entry(24, origin="Statlog, German credit"),
    "heart": Entry(13, origin="Statlog, heart disease"),
    "ionosphere_scale": Entry(34, origin="Ionosphere, UCI"),
    "liver-disorders": Entry(
        6,
        origin="BUPA liver disorders, UCI; the selector (1 or 2) is the class",
        note="345 rows with 6 features, rebuilt from the UCI table: the site now has another version "
        "(145 + 200 rows, 5 features, another class).",
        on_site=False,
    ),
    "splice": Entry(60, True, "Splice junctions, Delve"),
    "sonar_scale": Entry(60, origin="Sonar, UCI; +1 is rock, -1 is mine"),
    **dict.fromkeys(("w1a", "w2a", "w3a", "w4a", "w5a"), _WEB),
}
# Those that also exist scaled. Scaling is a rule, so a scaled file that is not there is made from the raw one.
_SCALED = ("australian", "breast-cancer", "diabetes", "fourclass", "german.numer", "heart", "liver-disorders", "splice")

LIBSVM_NAMES: tuple[str, ...] = tuple(sorted([*_ENTRIES, *(f"{name}_scale" for name in _SCALED)]))


def fetch_libsvm(name: str, data_home: str | os.PathLike[str] | None = None) -> Bunch:
    """A binary data set of the LIBSVM collection, from the data directory or else downloaded.

    Every file is checked against its known sha256. A scaled set whose file is missing is made from the raw
    one by the rule of the collection: every feature to [-1, 1] by the range of the training part, six
    digits kept.

    w4a could not be found when the checksums were collected. If there is no file ``w4a``, a stand-in of the
    same size is built, and marked as such: w3a is a part of w4a and w4a of w5a, so all of w3a is taken, and
    as many rows of w5a as are lacking, at random (always the same ones). All other rows of w8a are the test part.

    Parameters
    ----------
    name : str
        One of `LIBSVM_NAMES`, such as "a1a" or "diabetes_scale".
    data_home : str or path, default=None
        The data directory; see `data_directory`.

    Returns
    -------
    data : Bunch
        - X : features, of shape (n_examples, n_features); sparse (CSR) for a1a to w5a, which are mostly zeros.
          The width is that of the data set, also where a file does not mention its last features.
        - truth : ndarray of shape (n_examples,), -1 or +1
        - X_test, truth_test : the test part, or None if the collection has none
        - classes : the two classes as the file calls them, first the one that became -1
        - name, DESCR : what it is
        - stand_in : bool, whether this is not the original data

    Examples
    --------
    >>> from crowdwise.datasets import fetch_libsvm
    >>> heart = fetch_libsvm("heart_scale")  # doctest: +SKIP
    >>> heart.X.shape  # doctest: +SKIP
    (270, 13)
    """
    if name not in LIBSVM_NAMES:
        raise ValueError(f"no data set is called {name!r}; the names are {', '.join(LIBSVM_NAMES)}.")
    raw_name = name.removesuffix("_scale") if name.removesuffix("_scale") in _ENTRIES else name
    entry = _ENTRIES[raw_name]
    stand_in = name == "w4a" and find_file("libsvm/w4a", data_home) is None
    if name == "w4a":
        parts = [_parse(part, entry) for part in _w4a(data_home)]
    elif name != raw_name and find_file(f"libsvm/{name}", data_home) is None:
        raw = _read_parts(raw_name, entry, data_home)
        low, high = raw[0][0].min(axis=0), raw[0][0].max(axis=0)
        parts = [(_scaled(X, low, high), values) for X, values in raw]
    else:
        parts = _read_parts(name, entry, data_home)
    if stand_in:
        warn("w4a is a stand-in built from w3a and w5a, not the original data.")
    classes = np.unique(parts[0][1])
    described = [(X, np.where(values == classes[-1], 1, -1)) for X, values in parts]
    (X, truth), (X_test, truth_test) = described[0], described[1] if entry.has_test else (None, None)
    return Bunch(
        X=X,
        truth=truth,
        X_test=X_test,
        truth_test=truth_test,
        classes=classes.astype(np.int64),
        name="w4a (stand-in)" if stand_in else name,
        stand_in=stand_in,
        DESCR=_describe(name, entry, X, X_test, stand_in),
    )


def _read_parts(name: str, entry: Entry, data_home: Any) -> list[tuple[Any, Floats]]:
    names = [name, f"{name}.t"] if entry.has_test else [name]
    hint = "" if entry.on_site else entry.note
    return [
        _parse(read_file(f"libsvm/{part}", data_home, url=SITE + part if entry.on_site else None, hint=hint), entry)
        for part in names
    ]


def _parse(content: bytes, entry: Entry) -> tuple[Any, Floats]:
    X, values = load_svmlight_file(BytesIO(content), n_features=entry.n_features)
    mostly_zero = entry in (_ADULT, _WEB)
    return csr_array(X) if mostly_zero else X.toarray(), values


def _scaled(X: Floats, low: Floats, high: Floats) -> Floats:
    """Every feature from [low, high] to [-1, 1], to six digits; a constant feature becomes 0."""
    span = high - low
    scaled = np.where(high == X, 1.0, -1 + 2 * (X - low) / np.where(span > 0, span, 1))
    scaled[:, span == 0] = 0.0
    # The text files of the collection keep six digits.
    return np.array([float(f"{value:g}") for value in scaled.ravel()]).reshape(X.shape)


def _w4a(data_home: Any) -> tuple[bytes, bytes]:
    """The training and test part of w4a, or of its stand-in.

    No checksum is known of a file that was put there, but its size and what it must contain are.
    """
    w3a, w5a, w8a = (
        read_file(f"libsvm/{part}", data_home, url=SITE + part).splitlines() for part in ("w3a", "w5a", "w8a")
    )
    path = find_file("libsvm/w4a", data_home)
    if path is None:
        beyond = _without(w5a, w3a)
        chosen = np.random.default_rng(_STAND_IN_SEED).choice(len(beyond), _W4A_ROWS - len(w3a), replace=False)
        train = w3a + [beyond[i] for i in np.sort(chosen)]
    else:
        train = read_at_most(path, 10_000_000).splitlines()
        if len(train) != _W4A_ROWS or Counter(w3a) - Counter(train) or Counter(train) - Counter(w5a):
            raise DataError(
                f"{path} is not w4a: it should have {_W4A_ROWS:,} rows, contain w3a and be contained in w5a."
            )
    return b"\n".join(train) + b"\n", b"\n".join(_without(w8a, train)) + b"\n"


def _without(lines: Iterable[bytes], taken: Iterable[bytes]) -> list[bytes]:
    """The lines that are left, in their order, when as many copies of each are gone as were taken."""
    left, others = Counter(taken), []
    for line in lines:
        if left[line] > 0:
            left[line] -= 1
        else:
            others.append(line)
    return others


def _describe(name: str, entry: Entry, X: Any, X_test: Any, stand_in: bool) -> str:
    test = "no test part" if X_test is None else f"{X_test.shape[0]:,} test examples"
    scaled = " Features are scaled to [-1, 1]." if name.endswith("_scale") else ""
    warning = " STAND-IN: not the original w4a, but rows drawn at random between w3a and w5a." if stand_in else ""
    note = f" {entry.note}" if entry.note else ""
    return f"{name}: {entry.origin}. {X.shape[0]:,} examples, {test}, {X.shape[1]} features.{scaled}{note}{warning}"
