"""Every table and figure of the paper, by name.

Each leaves a directory with the rows (CSV), the table (Markdown and LaTeX) or the picture (PNG and PDF), and a
``run.json`` that records what was run.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from crowdwise.paper.reproduce.experiment import Options, Report

# Not of the paper, but its way of measuring, on any data.
PROTOCOL = "protocol"
EXPERIMENTS = ("table1", "table2", "table3", "table4", "figure1", "figure2", "figure3")


def reproduce(name: str, options: Options | None = None) -> Report:
    """Run one table or figure of the paper, or its protocol on a file of yours.

    Parameters
    ----------
    name : str
        One of `EXPERIMENTS`, or "protocol" with ``Options(data=...)``.
    options : Options, default=None
        How to run it; by default as in the paper, into the directory ``results``.

    Returns
    -------
    report : Report

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from crowdwise.paper.reproduce import Options, reproduce
    >>> report = reproduce("table1", Options(out=Path(tempfile.mkdtemp())))
    >>> report.summary["rows"][-1]["flip_score"]
    0.15
    """
    if name not in (*EXPERIMENTS, PROTOCOL):
        raise ValueError(f"no table or figure is called {name!r}; there are {', '.join(EXPERIMENTS)} and {PROTOCOL}.")
    module, options = module_of(name), options or Options()
    report: Report = module.reproduce(name, options) if name.startswith("figure") else module.reproduce(options)
    return report


def module_of(name: str) -> Any:
    """The module of a table or figure; imported by name, so that starting up stays quick."""
    return import_module(f"crowdwise.paper.reproduce.{'figures' if name.startswith('figure') else name}")


__all__ = ["EXPERIMENTS", "PROTOCOL", "Options", "Report", "reproduce"]
