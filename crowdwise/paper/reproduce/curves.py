"""The shared part of the three figures: curves -> rows on disk -> picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crowdwise.paper.reproduce.experiment import Options, Report
from crowdwise.paper.reproduce.pictures import Curve, draw
from crowdwise.paper.reproduce.run_folder import open_run

_COLUMNS = {"curve": str, "x": float, "y": float}


def picture(name: str, curves: Sequence[Curve], options: Options, **looks: Any) -> Report:
    """Write the points of the curves and draw them, with labels and limits as for `draw`."""
    with open_run(options.out / name, name, {}, {}) as folder:
        points = [
            {"curve": curve.label, "x": float(x), "y": float(y)}
            for curve in curves
            for x, y in zip(curve.x, curve.y, strict=True)
        ]
        folder.write_rows(_COLUMNS, ("curve", "x"), points)
        figures = draw(folder, name, curves, **looks)
        summary = {
            "curves": [{"label": curve.label, "x": curve.x.tolist(), "y": curve.y.tolist()} for curve in curves],
            "figures": [path.name for path in figures],
        }
        return Report(name, folder.path, summary, figures=figures)
