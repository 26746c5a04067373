"""Reports of table 2 for several seeds -> the range of every cell, and how often each verdict holds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from crowdwise.paper.reproduce.experiment import Report, save
from crowdwise.paper.reproduce.run_folder import open_run
from crowdwise.paper.reproduce.tables import Table
from crowdwise.paper.reproduce.wins import SIGNIFICANT, TOLERANCE, Wins


def report(path: Path, reports: Sequence[Report]) -> Report:
    """Put reports of table 2, a seed each, together."""
    with open_run(path, "table2-seeds", {}, {"seeds": [one.summary["seed"] for one in reports]}) as folder:
        summary = summarize([one.summary for one in reports])
        return save(folder, "table2-seeds", summary, table(summary))


def summarize(runs: Sequence[Any]) -> dict[str, Any]:
    """For every setting: the wins of all seeds, how often they are significant, and how often it agrees."""
    settings = []
    for same in zip(*(run["settings"] for run in runs), strict=True):
        first = same[0]
        settings.append(
            {
                "clarity": first["clarity"],
                "steepness": first["steepness"],
                "paper": first["paper"],
                **{
                    measure: {
                        "wins": [one[measure]["wins"] for one in same],
                        "significant": sum(one[measure]["p_value"] <= SIGNIFICANT for one in same),
                    }
                    for measure in ("roc", "prc")
                },
                "redrawn": [one["redrawn"] for one in same],
                "within": sum(_within(one) for one in same),
                "agrees": sum(one["verdict"] == "agrees" for one in same),
                "verdicts": [one["verdict"] for one in same],
            }
        )
    return {"seeds": [run["seed"] for run in runs], "trials": runs[0]["trials"], "settings": settings}


def _within(setting: dict[str, Any]) -> bool:
    """Whether both counts of wins are near the paper's; at p = 2 and 5 the verdict does not ask for that."""
    paper = setting["paper"]
    return bool(paper) and all(Wins(**setting[m]).agrees(paper[f"{m}_wins"]) for m in ("roc", "prc"))


def table(summary: dict[str, Any]) -> Table:
    """The summary as a table."""
    n_seeds = len(summary["seeds"])
    rows = [
        [
            f"α={setting['steepness']:g}, p={setting['clarity']:g}",
            *(
                cell
                for measure in ("roc", "prc")
                for cell in (
                    _range(setting[measure]["wins"], setting["paper"] and setting["paper"][f"{measure}_wins"]),
                    f"{setting[measure]['significant']}",
                )
            ),
            _range(setting["redrawn"], None),
            f"{setting['within']}",
            f"{setting['agrees']}",
        ]
        for setting in summary["settings"]
    ]
    columns = [
        "setting",
        "AU-ROC wins",
        "significant",
        "AU-PRC wins",
        "significant",
        "redrawn",
        f"within {TOLERANCE:g}",
        "agrees",
    ]
    notes = [
        f"Seeds {summary['seeds'][0]} to {summary['seeds'][-1]}, {summary['trials']} data sets per setting each. Wins "
        f"and redrawn data sets: least, median, most over the {n_seeds} seeds, in brackets the paper's. The other "
        f"columns count seeds: in how many p <= {SIGNIFICANT:g}, in how many both counts are within {TOLERANCE:g} wins "
        "of the paper's, and in how many the setting agrees, which at p = 2 and 5 asks for no strong effect only."
    ]
    return Table(f"Table 2 over {n_seeds} seeds", columns, rows, notes)


def _range(values: Sequence[int], paper: int | None) -> str:
    text = f"{min(values)} … {median(values):g} … {max(values)}"
    return text if paper is None else f"{text} ({paper})"
