"""Figure 3: how likely simulated annotators are to go wrong, by the score of the example."""

from __future__ import annotations

import numpy as np

from crowdwise.paper.reproduce.experiment import Options, Report
from crowdwise.paper.reproduce.pictures import Curve, picture
from crowdwise.simulate import flip_score

CLARITIES = (0.5, 1.0, 2.0, 5.0)


def curves(clarities: tuple[float, ...] = CLARITIES) -> list[Curve]:
    """The flip score for each p; more is less noise."""
    f = np.linspace(-1, 1, 401)
    return [Curve(f"{clarity:g}", f, flip_score(f, clarity)) for clarity in clarities]


def reproduce(options: Options) -> Report:
    """Draw the flip score against the score."""
    return picture(
        "figure3",
        curves(),
        options,
        x_label="score f of the linear model",
        y_label="flip score",
        legend="p (more: less noise)",
        x_limits=(-1, 1),
        y_limits=(0, 1.04),
    )
