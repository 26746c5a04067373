"""The paper's protocol on other data: noisy versions of a data set, wins of the weighted method, Wilcoxon test."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.datasets import load_svmlight_file
from sklearn.utils import Bunch

from crowdwise.exceptions import DataError
from crowdwise.features import Recipe
from crowdwise.formats._names import candidates
from crowdwise.labels._encode import as_objects, encode
from crowdwise.paper.reproduce.draws import benchmark, draw_usable, measure
from crowdwise.paper.reproduce.experiment import Options, Report
from crowdwise.paper.reproduce.rows import Key, Row
from crowdwise.paper.reproduce.table2 import run
from crowdwise.paper.reproduce.table4 import CLARITY, STEEPNESSES, fingerprint
from crowdwise.paper.reproduce.trials import trial_seed
from crowdwise.tables import Source, open_table

_LIBSVM = re.compile(rb"^\S+([ \t]+\d+:\S+)+[ \t\r]*$", flags=re.MULTILINE)
_FEWEST = 40  # of either class: a quarter of the examples, drawn at random, has to have both


def reproduce(options: Options) -> Report:
    """A hundred noisy versions of a data set, each split, balanced and labelled anew by twelve simulated annotators."""
    if options.data is None:
        raise ValueError("the protocol needs data: a LIBSVM or CSV file with features and the true classes.")
    data = read_data(options.data, options.truth)
    clarities, steepnesses = options.clarities or (CLARITY,), options.steepnesses or STEEPNESSES
    binding = {"data": options.data.name, "note": data.note, "fingerprint": fingerprint(data)}
    work = partial(trial_rows, options=options, steepnesses=steepnesses)
    return run("protocol", options, work, clarities, steepnesses, {}, binding)


def trial_rows(key: Key, options: Options, steepnesses: Sequence[float]) -> list[Row]:
    """The rows of one version; its split is the same at every clarity."""
    clarity, trial = key
    assert options.data is not None
    draw = partial(benchmark, data=read_data(options.data, options.truth), clarity=clarity)
    drawn = draw_usable(draw, np.random.default_rng(trial_seed(options.seed, trial)), redraw=options.redraw)
    return [{"clarity": clarity, "trial": trial, **row} for row in measure(drawn, steepnesses)]


@lru_cache(maxsize=1)
def read_data(path: Path, truth: str | None) -> Bunch:
    """Features and true classes of a file, read once by each process; the last class in order becomes +1."""
    source = Source(str(path))
    read = _read_libsvm if _LIBSVM.search(source.head) else _read_table
    X, values, notes = read(source, truth)
    codes, classes = encode(as_objects(values))
    counts = np.bincount(codes)
    if len(classes) != 2 or counts.min() < _FEWEST:
        found = ", ".join(f"{count:,} of {name}" for name, count in zip(classes[:8].tolist(), counts, strict=False))
        raise DataError(f"{path}: the protocol needs two classes with {_FEWEST} examples or more each; found {found}.")
    notes = [*notes, f"positive class: {classes[1]}, {counts[1]:,} of {len(codes):,} examples"]
    truth_of_all = np.where(codes == 1, 1, -1)
    return Bunch(X=X, truth=truth_of_all, X_test=None, truth_test=None, note="; ".join(notes))


def _read_libsvm(source: Source, truth: str | None) -> tuple[Any, list[Any], list[str]]:
    if truth is not None:
        raise DataError(f"{source.name} is a LIBSVM file, whose first number is the class: leave out --truth.")
    try:
        with source.open() as file:
            X, values = load_svmlight_file(file)
    except ValueError as error:
        raise DataError(f"{source.name} is not in LIBSVM format: {error}.") from error
    mostly_zero = 3 * X.nnz < X.shape[0] * X.shape[1]
    return csr_array(X) if mostly_zero else X.toarray(), values.tolist(), [f"features: {X.shape[1]:,}, as in the file"]


def _read_table(source: Source, truth: str | None) -> tuple[Any, list[Any], list[str]]:
    table = open_table(source)
    named = [truth] if truth else candidates(table.header, "truth") or candidates(table.header, "label")
    if len(named) != 1 or named[0] not in table.header:
        raise DataError(
            f"{source.name}: which column holds the true classes? Name it: --truth COLUMN. Its columns are "
            f"{', '.join(table.header)}."
        )
    cells = table.columns()
    values = cells.pop(named[0])
    if "" in values:
        raise DataError(f"{source.name}: row {values.index('') + 1} has no class in the column {named[0]!r}.")
    for name in candidates(list(cells), "example"):
        del cells[name]
    recipe, notes = Recipe.learn(cells)
    X, gaps = recipe.transform(cells)
    return X, _numbers(values), [f"classes: column {named[0]!r}", *notes, *gaps]


def _numbers(values: list[str]) -> list[Any]:
    """Numbers if all of them are, so that -1 comes before +1."""
    try:
        return [float(value) for value in values]
    except ValueError:
        return values
