"""Table 3: the benchmark data sets as found, beside the sizes that the paper states."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from sklearn.utils import Bunch

from crowdwise.datasets import LIBSVM_NAMES, fetch_libsvm
from crowdwise.exceptions import CrowdWarning, MissingDataError
from crowdwise.paper.reproduce.experiment import Options, Report, save
from crowdwise.paper.reproduce.paper import TABLE3, Size
from crowdwise.paper.reproduce.run_folder import open_run
from crowdwise.paper.reproduce.tables import Table

T = TypeVar("T")
_SIZES = {"train": "rows", "test": "test rows", "features": "features"}
_REMARKS = {
    "fourclass": "a slip in the paper",
    "breast-cancer": "the first feature is the patient's number, kept as the paper kept it",
    "liver-disorders": "the version with 345 rows, rebuilt from its source",
}


def file_name(dataset: str) -> str:
    """The file that stands for a data set of the paper: the scaled version where there is one."""
    return f"{dataset}_scale" if f"{dataset}_scale" in LIBSVM_NAMES else dataset


def fetch(dataset: str, data_home: str | Path | None) -> Bunch:
    """A data set of the paper; a stand-in is marked, not warned about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        return fetch_libsvm(file_name(dataset), data_home)


def available(names: Sequence[str], read: Callable[[str], T]) -> tuple[dict[str, T], dict[str, str]]:
    """What is read of the data sets that can be had, and why the others cannot."""
    found, missing = {}, {}
    for name in names:
        try:
            found[name] = read(name)
        except MissingDataError as error:
            missing[name] = str(error)
    if not found:
        raise MissingDataError(next(iter(missing.values())))
    return found, missing


def reproduce(options: Options) -> Report:
    """Count what is in the data sets."""
    names = options.datasets or tuple(TABLE3)
    with open_run(options.out / "table3", "table3", {}, {"datasets": names}) as folder:
        found, missing = available(names, lambda name: _counted(name, fetch(name, options.data_home)))
        folder.write_rows(("dataset",), list(found.values()))
        rows = [_compared(name, found.get(name), TABLE3[name]) for name in names]
        summary = {"rows": rows, "missing": missing}
        return save(folder, "table3", summary, _table(summary))


def _counted(name: str, data: Bunch) -> dict[str, Any]:
    return {
        "dataset": name,
        "file": data.name,
        "n_train": data.X.shape[0],
        "n_test": 0 if data.X_test is None else data.X_test.shape[0],
        "n_features": data.X.shape[1],
        "n_negative": int((data.truth < 0).sum()),
        "n_positive": int((data.truth > 0).sum()),
        "stand_in": int(data.stand_in),
    }


def _compared(name: str, row: dict[str, Any] | None, stated: Size) -> dict[str, Any]:
    paper = {f"paper_{what}": getattr(stated, f"n_{what}") or 0 for what in _SIZES}
    if row is None:
        return {"dataset": name, **paper, "verdict": "missing"}
    differs = [
        f"{row[f'n_{what}']} {title} instead of {paper[f'paper_{what}']}"
        for what, title in _SIZES.items()
        if row[f"n_{what}"] != paper[f"paper_{what}"]
    ]
    remarks = ["stand-in, not the original data"] if row["stand_in"] else []
    remarks += [_REMARKS[name]] if name in _REMARKS else []
    return {**row, **paper, "verdict": "; ".join([", ".join(differs) or "agrees", *remarks])}


def _table(summary: dict[str, Any]) -> Table:
    def count(number: int | None) -> str:
        return "missing" if number is None else f"{number:,}" if number else "none"

    rows = []
    for row in summary["rows"]:
        sizes = [f"{count(row.get(f'n_{what}'))} ({count(row[f'paper_{what}'])})" for what in _SIZES]
        classes = [count(row.get(f"n_{side}")) for side in ("negative", "positive")]
        rows.append([row["dataset"], row.get("file", ""), *sizes, *classes, row["verdict"]])
    columns = ["data set", "file", "training rows", "test rows", "features", "−1", "+1", "verdict"]
    notes = [
        "As found; in brackets what the paper states. The last counts are of the two classes in the training rows."
    ]
    return Table("Benchmark data sets", columns, rows, notes, left=2)
