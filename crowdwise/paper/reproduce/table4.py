"""Table 4: wins of the weighted method over the unweighted one on benchmark data with simulated annotators."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import Bunch

from crowdwise.exceptions import BusyError
from crowdwise.paper.reproduce.draws import COLUMNS, benchmark, draw_usable, measure
from crowdwise.paper.reproduce.experiment import Options, Report, save
from crowdwise.paper.reproduce.paper import TABLE3, TABLE4
from crowdwise.paper.reproduce.rows import Key, Row
from crowdwise.paper.reproduce.run_folder import open_run
from crowdwise.paper.reproduce.table3 import available, fetch
from crowdwise.paper.reproduce.tables import Table
from crowdwise.paper.reproduce.trials import run_trials, trial_seed
from crowdwise.paper.reproduce.wins import CURVES, TOLERANCE, Wins, against, cells_of, redrawn, stars

STEEPNESSES = (1.0, 2.0, 5.0)
CLARITY = 1.0
_QUICK = ("diabetes", "heart", "splice")
_PLACES = {name: place for place, name in enumerate(TABLE3)}  # a set's seeds do not depend on which others are run


def reproduce(options: Options) -> Report:
    """Twenty data sets, a hundred versions each; a data set that cannot be had is left out and named."""
    wanted = options.datasets or (_QUICK if options.quick else tuple(TABLE3))
    # Before hours of work; each with its fingerprint.
    found, missing = available(wanted, lambda name: str(_load(name, options.data_home).fingerprint))
    steepnesses = options.steepnesses or STEEPNESSES
    n_trials = options.n_trials(quick=8)
    binding = options.binding(steepnesses)
    notes = {"trials": n_trials, "datasets": list(found), "missing": missing}
    with open_run(options.out / "table4", "table4", binding, notes) as folder:
        columns = {"dataset": str, "data": str, "stand_in": int, "trial": int, **COLUMNS}
        # Rows of other data of the same name, such as those of a stand-in, stay in the file but do not count.
        log = folder.log(columns, ("dataset", "data", "trial"), 1 + len(steepnesses))
        keys = [(name, data, trial) for name, data in found.items() for trial in range(n_trials)]
        work = partial(trial_rows, options=options, steepnesses=steepnesses)
        run_trials(log, keys, work, jobs=options.jobs, title="table4", progress=options.progress)
        summary = summarize(log.rows_of(keys), {**binding, "trials": n_trials, "missing": missing})
        return save(folder, "table4", summary, table(summary))


@lru_cache(maxsize=2)
def _load(name: str, data_home: str | Path | None) -> Bunch:
    """A data set and its fingerprint, read once by each process while its trials last."""
    data = fetch(name, data_home)
    return Bunch(**data, fingerprint=fingerprint(data))


def fingerprint(data: Bunch) -> str:
    """Twelve signs that are others for other features or classes: what a name stands for may change."""
    digest = hashlib.sha256()
    for part in (data.X, data.truth, data.X_test, data.truth_test):
        for array in (part.data, part.indices, part.indptr) if issparse(part) else (np.asarray(part),):
            digest.update(f"{array.shape}".encode())
            if array.dtype.kind != "O":  # no test part
                digest.update(array.astype(f"<{array.dtype.kind}8").tobytes())
    return digest.hexdigest()[:12]


def trial_rows(key: Key, options: Options, steepnesses: Sequence[float]) -> list[Row]:
    """The rows of one trial: a version of a data set, its labels, and the model of every steepness."""
    name, known, trial = key
    data = _load(name, options.data_home)
    if data.fingerprint != known:
        raise BusyError(f"the data of {name} changed while they were in use. Start again when they stay as they are.")
    rng = np.random.default_rng(trial_seed(options.seed, _PLACES[name], trial))
    drawn = draw_usable(partial(benchmark, data=data, clarity=CLARITY), rng, redraw=options.redraw)
    place = {"dataset": name, "data": known, "stand_in": int(data.stand_in), "trial": trial}
    return [{**place, **row} for row in measure(drawn, steepnesses)]


def summarize(rows: Sequence[Row], run: dict[str, Any]) -> dict[str, Any]:
    """Wins of every data set and steepness beside the paper's, from the rows alone."""
    datasets, outside, n_cells = [], [], 0
    for name in dict.fromkeys(row["dataset"] for row in rows):
        of_set = [row for row in rows if row["dataset"] == name]
        label = f"{name} (stand-in)" if of_set[0]["stand_in"] else name
        cells = cells_of(of_set, TABLE4[name])
        misses = [
            f"{label}, α={cell['steepness']:g}, {curve}: {wins.wins} (paper: {stated}, {wins.off(stated):+.0f})"
            for cell in cells
            for curve, wins, stated in against(cell)
            if not wins.agrees(stated)
        ]
        n_cells += sum(len(against(cell)) for cell in cells)
        outside += misses
        verdict = "agrees" if not misses else f"{len(misses)} of {2 * len(cells)} cells off"
        datasets.append({"dataset": label, "redrawn": redrawn(of_set), "cells": cells, "verdict": verdict})
    return {
        **run,
        "datasets": datasets,
        "cells": n_cells,
        "within": n_cells - len(outside),
        "outside": outside,
        "unsettled": sum(1 - row["converged"] for row in rows),
        "fits": len(rows),
    }


def table(summary: dict[str, Any]) -> Table:
    """The summary as a table, the paper's numbers in brackets."""
    first = summary["datasets"][0]["cells"]
    columns = ["data set", *(f"α={cell['steepness']:g}" for cell in first), "redrawn", "verdict"]
    rows = [
        [data["dataset"], *map(_cell_text, data["cells"]), str(data["redrawn"]), data["verdict"]]
        for data in summary["datasets"]
    ]
    redraw = "redrawn" if summary["redraw"] else "kept"
    percent = 100 * summary["within"] / max(summary["cells"], 1)
    notes = [
        f"Wins in AU-ROC / AU-PRC of {summary['trials']} versions, p=1, seed {summary['seed']}; too noisy ones were "
        f"{redraw}. In brackets the paper's (of 100); an asterisk means not significant (p > 0.01).",
        f"{summary['within']} of {summary['cells']} cells ({percent:.0f} %) are within {TOLERANCE:g} wins of the paper "
        f"(more with fewer than 100 versions); {summary['unsettled']} of {summary['fits']} fits did not settle.",
    ]
    if summary["outside"]:
        notes.append("Outside: " + "; ".join(summary["outside"]) + ".")
    if any("stand-in" in data["dataset"] for data in summary["datasets"]):
        notes.append("Stand-in: not the original data, which could not be found, but rows drawn between w3a and w5a.")
    if any(data["dataset"] == "breast-cancer" for data in summary["datasets"]):
        notes.append("The first feature of breast-cancer is the patient's number; it is kept, as in the paper.")
    if summary["missing"]:
        notes.append("Missing: " + ", ".join(summary["missing"]) + ".")
    return Table("Wins of the weighted method on benchmark data", columns, rows, notes)


def _cell_text(cell: dict[str, Any]) -> str:
    ours = f"{stars(Wins(**cell['roc']))} / {stars(Wins(**cell['prc']))}"
    paper = cell["paper"]
    if paper is None:
        return ours
    stated = " / ".join(f"{paper[f'{m}_wins']}{'' if paper[f'{m}_significant'] else '*'}" for m in CURVES)
    return f"{ours} ({stated})"
