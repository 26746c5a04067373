"""Figure 1: how the weight of an example falls with the disagreement of its annotators."""

from __future__ import annotations

import numpy as np

from crowdwise.crowd._disagreement import easiness
from crowdwise.paper.reproduce.experiment import Options, Report
from crowdwise.paper.reproduce.pictures import Curve, picture

STEEPNESSES = (0.1, 1.0, 2.0, 5.0, 10.0)


def curves(steepnesses: tuple[float, ...] = STEEPNESSES) -> list[Curve]:
    """The paper's g, which is half of the weight used here, for each steepness."""
    x = np.linspace(0, 1, 201)
    return [Curve(f"{steepness:g}", x, easiness(x, steepness) / 2) for steepness in steepnesses]


def reproduce(options: Options) -> Report:
    """Draw the weight against the disagreement, for at most six steepnesses."""
    return picture(
        "figure1",
        curves(options.steepnesses or STEEPNESSES),
        options,
        x_label="disagreement d, as a share of the largest",
        y_label="weight g(d)",
        legend="steepness α",
        x_limits=(0, 1),
        y_limits=(0, 0.52),
    )
