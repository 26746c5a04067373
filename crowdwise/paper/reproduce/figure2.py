"""Figure 2: how much smaller the mistake bound of theorem 2 is than Novikoff's."""

from __future__ import annotations

import numpy as np

from crowdwise.paper.reproduce.experiment import Options, Report
from crowdwise.paper.reproduce.pictures import Curve, picture
from crowdwise.paper.theory.bounds import improvement

MARGINS = (0.2, 0.1, 0.05, 0.02, 0.01)
LARGEST_SPREAD = 12.0


def curves(margins: tuple[float, ...] = MARGINS) -> list[Curve]:
    """The ratio of the two bounds against the spread of mistakes over the regions, for each margin."""
    spread = np.linspace(0, LARGEST_SPREAD, 241)
    return [Curve(f"{margin:g}", spread, np.asarray(improvement(margin, spread))) for margin in margins]


def reproduce(options: Options) -> Report:
    """Draw theorem 2 over Novikoff's bound against the spread."""
    return picture(
        "figure2",
        curves(),
        options,
        x_label="spread of mistakes over the regions, $\\varepsilon_s$",
        y_label="Theorem 2 ÷ Novikoff",
        legend="margin γ",
        x_limits=(0, LARGEST_SPREAD),
        y_limits=(0, 1.5),
        level=1.0,
    )
