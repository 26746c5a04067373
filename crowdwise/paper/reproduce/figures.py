"""The three figures: curves -> their rows on disk and a picture, PNG and PDF, that can be read without colour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crowdwise._text import how_to_install
from crowdwise.crowd._disagreement import easiness
from crowdwise.exceptions import DataError, MissingExtraError
from crowdwise.paper.reproduce.experiment import Options, Report
from crowdwise.paper.reproduce.run_folder import RunFolder, open_run
from crowdwise.paper.theory.bounds import improvement
from crowdwise.simulate import flip_score

STEEPNESSES = (0.1, 1.0, 2.0, 5.0, 10.0)
MARGINS, LARGEST_SPREAD = (0.2, 0.1, 0.05, 0.02, 0.01), 12.0
CLARITIES = (0.5, 1.0, 2.0, 5.0)
# Lines differ in darkness, dash and width at once; colours come from the Okabe-Ito set, dark to light.
_COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9")
_DASHES: tuple[Any, ...] = (
    "-",
    (0, (6, 2)),
    (0, (4, 1.5, 1, 1.5)),
    (0, (1, 1.2)),
    (0, (8, 2, 1, 2, 1, 2)),
    (0, (3, 3)),
)
_STYLE = {
    "figure.figsize": (5.2, 3.6),
    "figure.dpi": 100,
    "savefig.dpi": 300,
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "grid.color": "0.9",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 1.8,
    "legend.frameon": False,
    "legend.handlelength": 3.2,
    "pdf.fonttype": 42,  # text stays text
}


@dataclass(frozen=True)
class Curve:
    """One line of a figure, and what the legend calls it."""

    label: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]


def weights(steepnesses: Sequence[float] = STEEPNESSES) -> list[Curve]:
    """Figure 1: the paper's g, which is half of the weight used here, against disagreement."""
    x = np.linspace(0, 1, 201)
    return [Curve(f"{steepness:g}", x, easiness(x, steepness) / 2) for steepness in steepnesses]


def improvements(margins: Sequence[float] = MARGINS) -> list[Curve]:
    """Figure 2: theorem 2 over Novikoff's bound against the spread of mistakes over the regions."""
    spread = np.linspace(0, LARGEST_SPREAD, 241)
    return [Curve(f"{margin:g}", spread, np.asarray(improvement(margin, spread))) for margin in margins]


def flip_scores(clarities: Sequence[float] = CLARITIES) -> list[Curve]:
    """Figure 3: how likely simulated annotators are to go wrong against the score; a larger p is less noise."""
    f = np.linspace(-1, 1, 401)
    return [Curve(f"{clarity:g}", f, flip_score(f, clarity)) for clarity in clarities]


class Looks(NamedTuple):
    """Titles and limits of the axes, the title of the legend, and the height of a thin dashed line, if any."""

    x_label: str
    y_label: str
    legend: str
    x_limits: tuple[float, float]
    y_limits: tuple[float, float]
    level: float | None = None


_SPREAD = "spread of mistakes over the regions, $\\varepsilon_s$"
_LOOKS = {
    "figure1": Looks("disagreement d, as a share of the largest", "weight g(d)", "steepness α", (0, 1), (0, 0.52)),
    "figure2": Looks(_SPREAD, "Theorem 2 ÷ Novikoff", "margin γ", (0, LARGEST_SPREAD), (0, 1.5), level=1.0),
    "figure3": Looks("score f of the linear model", "flip score", "p (more: less noise)", (-1, 1), (0, 1.04)),
}


def reproduce(name: str, options: Options) -> Report:
    """Write the points of a figure and draw it; figure 1 for at most six steepnesses."""
    if name == "figure1":
        curves = weights(options.steepnesses or STEEPNESSES)
    else:
        curves = improvements() if name == "figure2" else flip_scores()
    with open_run(options.out / name, name, {}, {}) as folder:
        points = [
            {"curve": curve.label, "x": float(x), "y": float(y)}
            for curve in curves
            for x, y in zip(curve.x, curve.y, strict=True)
        ]
        folder.write_rows(("curve", "x"), points)
        figures = draw(folder, name, curves, _LOOKS[name])
        summary = {
            "curves": [{"label": curve.label, "x": curve.x.tolist(), "y": curve.y.tolist()} for curve in curves],
            "figures": [path.name for path in figures],
        }
        return Report(name, folder.path, summary, figures=figures)


def draw(folder: RunFolder, name: str, curves: Sequence[Curve], looks: Looks) -> list[Path]:
    """Draw at most six curves into ``name.png`` and ``name.pdf``."""
    if len(curves) > len(_DASHES):
        raise DataError(f"a figure has room for {len(_DASHES)} curves; got {len(curves)}. Ask for fewer steepnesses.")
    plt = _pyplot()
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots(layout="constrained")
        if looks.level is not None:
            axes.axhline(looks.level, color="0.45", linewidth=1, linestyle=(0, (5, 3)), zorder=1)
        for curve, colour, dash in zip(curves, _COLOURS, _DASHES, strict=False):
            axes.plot(curve.x, curve.y, color=colour, linestyle=dash, label=curve.label)
        axes.set(xlabel=looks.x_label, ylabel=looks.y_label, xlim=looks.x_limits, ylim=looks.y_limits)
        axes.locator_params(nbins=6, steps=[1, 2, 5, 10])
        axes.legend(title=looks.legend, loc="center left", bbox_to_anchor=(1.01, 0.5), alignment="left")
        paths = [folder.write(f"{name}.{kind}", _rendered(figure, kind)) for kind in ("png", "pdf")]
        plt.close(figure)
    return paths


def _rendered(figure: Any, kind: str) -> bytes:
    buffer = BytesIO()
    # Without dates and versions the same curves give the same bytes.
    metadata = {"Software": None} if kind == "png" else {"CreationDate": None, "Producer": None, "Creator": None}
    figure.savefig(buffer, format=kind, metadata=metadata)
    return buffer.getvalue()


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtraError(f"Figures need Matplotlib: {how_to_install('plot')}.") from error
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    return plt
