"""Table 1: what ten simulated annotators answer for examples from one end of the line to the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from crowdwise.crowd._disagreement import disagreement
from crowdwise.paper.reproduce.experiment import Options, Report, save
from crowdwise.paper.reproduce.paper import TABLE1, TABLE1_SLIPS
from crowdwise.paper.reproduce.run_folder import open_run
from crowdwise.paper.reproduce.tables import Table
from crowdwise.paper.reproduce.trials import trial_seed
from crowdwise.simulate import flip_score, simulate_annotators

_SCORES = np.arange(-10, 11) / 10
# Columns of the table: a key of its rows, and how its values are shown.
_COLUMNS = {
    "f": ("f", ".1f"),
    "flip score": ("flip_score", ".2f"),
    "paper": ("paper_flip_score", ".2f"),
    "truth": ("truth", "+d"),
    "labels": ("labels", ""),
    "d": ("disagreement", ""),
    "labels in the paper": ("paper_labels", ""),
    "d in the paper": ("paper_disagreement", ""),
    "verdict": ("verdict", ""),
}


def reproduce(options: Options) -> Report:
    """Simulate the labels, and compare what does not depend on chance with the paper."""
    with open_run(options.out / "table1", "table1", {"seed": options.seed}, {}) as folder:
        rows = simulated_rows(options.seed)
        folder.write_rows(("f",), rows)
        summary = {
            "seed": options.seed,
            "rows": [_compared(row, *stated) for row, stated in zip(rows, TABLE1, strict=True)],
        }
        return save(folder, "table1", summary, _table(summary))


def simulated_rows(seed: int) -> list[dict[str, Any]]:
    """A row per example: score, flip score, truth, labels and their disagreement."""
    truth = np.where(_SCORES < 0, -1, 1)
    labels = simulate_annotators(None, truth, 10, scores=_SCORES, random_state=trial_seed(seed))
    differs = disagreement(labels, relative_to=None)
    return [
        {
            "f": float(f),
            "flip_score": round(float(flip), 2),
            "truth": int(right),
            # Brackets as in the paper; without them a spreadsheet would take the signs for a formula.
            "labels": f"[{''.join('+' if label > 0 else '-' for label in row)}]",
            "disagreement": int(d),
        }
        for f, flip, right, row, d in zip(_SCORES, flip_score(_SCORES), truth, labels.to_matrix(), differs, strict=True)
    ]


def _compared(row: dict[str, Any], flip: float, labels: str, stated_disagreement: int) -> dict[str, Any]:
    """The row beside the paper's, whose disagreement is counted again from the labels it prints."""
    k = labels.count("+")
    expected = TABLE1_SLIPS.get(row["f"], flip)
    agrees = row["flip_score"] == expected and 4 * k * (len(labels) - k) == stated_disagreement
    slip = f"a slip in the paper ({flip})" if expected != flip else ""
    return {
        **row,
        "paper_flip_score": flip,
        "paper_labels": f"[{labels}]",
        "paper_disagreement": stated_disagreement,
        "verdict": slip or ("agrees" if agrees else f"flip score {row['flip_score']}, paper {flip}"),
    }


def _table(summary: dict[str, Any]) -> Table:
    rows = [[format(row[name], how) for name, how in _COLUMNS.values()] for row in summary["rows"]]
    notes = [
        f"Seed {summary['seed']}. Labels are random, so they and their disagreement d differ from the paper's: "
        "the verdict is about the flip score, and about d as counted from the labels that the paper prints."
    ]
    return Table("Labels of ten simulated annotators", list(_COLUMNS), rows, notes)
