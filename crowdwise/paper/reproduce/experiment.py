"""What every experiment takes and gives."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crowdwise._checks import check_choice, check_number, check_whole
from crowdwise.paper.reproduce.paper import TABLE3
from crowdwise.paper.reproduce.run_folder import RunFolder
from crowdwise.paper.reproduce.tables import Table


@dataclass(frozen=True)
class Options:
    """How an experiment is run.

    Parameters
    ----------
    out : Path, default="results"
        Each experiment gets a directory of its own in here.
    trials : int or None, default=None
        Repetitions of every setting; None means 100, as in the paper.
    seed : int, default=0
        Seed of the experiment.
    seeds : int, default=1
        Of table2: how many seeds to run, from `seed` on.
    jobs : int, default=1
        Number of processes; -1 for one per core. The results do not depend on it.
    redraw : bool, default=True
        Whether labels that are too noisy are drawn again, as the paper's software did.
    steepnesses : tuple of float or None, default=None
        Steepnesses to compare with 0; None means those of the paper.
    datasets : tuple of str or None, default=None
        Data sets of tables 3 and 4; None means all.
    data_home : str, path or None, default=None
        The data directory.
    data : Path or None, default=None
        For protocol: a LIBSVM or CSV file with features and the true classes.
    truth : str or None, default=None
        The column of a CSV file with the true classes; None means the one named for it.
    clarities : tuple of float or None, default=None
        Of protocol: values of the paper's p; None means 1.
    quick : bool, default=False
        A short version, with few trials, that shows that everything works.
    progress : bool or None, default=None
        Whether to show progress; None means if a terminal is watching.
    """

    out: Path = Path("results")
    trials: int | None = None
    seed: int = 0
    seeds: int = 1
    jobs: int = 1
    redraw: bool = True
    steepnesses: tuple[float, ...] | None = None
    datasets: tuple[str, ...] | None = None
    data_home: str | Path | None = None
    data: Path | None = None
    truth: str | None = None
    clarities: tuple[float, ...] | None = None
    quick: bool = False
    progress: bool | None = None

    def __post_init__(self) -> None:
        check_whole("seed", self.seed, low=0)
        check_whole("seeds", self.seeds)
        if self.trials is not None:
            check_whole("trials", self.trials)
        if self.jobs != -1:
            check_whole("jobs", self.jobs)
        for steepness in self.steepnesses or ():
            check_number("steepnesses", steepness, above=True)
        for clarity in self.clarities or ():
            check_number("clarities", clarity)
        for name in self.datasets or ():
            check_choice("datasets", name, tuple(TABLE3))

    def binding(self, steepnesses: Sequence[float]) -> dict[str, Any]:
        """What the rows of wins depend on."""
        return {"seed": self.seed, "redraw": self.redraw, "steepnesses": list(steepnesses)}

    def n_trials(self, *, quick: int) -> int:
        """The number of trials that is meant."""
        if self.trials is not None:
            return self.trials
        return quick if self.quick else 100


@dataclass(frozen=True)
class Report:
    """What an experiment gives: a plain summary, and the table and files that show it.

    Parameters
    ----------
    name : str
        The experiment.
    folder : Path
        Where everything is.
    summary : dict
        Everything that the table shows, ready for JSON.
    table : Table or None, default=None
        The summary as a table.
    figures : sequence of Path, default=()
        Pictures that were drawn.
    """

    name: str
    folder: Path
    summary: Mapping[str, Any]
    table: Table | None = None
    figures: Sequence[Path] = field(default=())

    def as_json(self, *, ascii_only: bool = False) -> str:
        """The summary as JSON; with `ascii_only`, in signs that every terminal has."""
        content = {"schema": "crowdwise.paper.reproduce/1", "experiment": self.name, **self.summary}
        return json.dumps(content, indent=2, ensure_ascii=ascii_only)

    def as_text(self) -> str:
        """The table as Markdown, or which files were drawn."""
        if self.table is not None:
            return self.table.markdown()
        return "\n".join(str(path) for path in self.figures)


def save(folder: RunFolder, name: str, summary: Mapping[str, Any], table: Table) -> Report:
    """Write the table as Markdown and LaTeX and the summary as JSON."""
    report = Report(name, folder.path, summary, table)
    folder.write(f"{name}.md", table.markdown() + "\n")
    folder.write(f"{name}.tex", table.latex() + "\n")
    folder.write(f"{name}.json", report.as_json() + "\n")
    return report
