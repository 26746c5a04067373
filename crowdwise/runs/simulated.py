"""Settings -> the files of a simulated crowd: labels, features and the truth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.datasets import make_blobs

from crowdwise._checks import check_whole
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.runs.inputs import PathLike
from crowdwise.runs.new_folder import holds_only, new_folder
from crowdwise.runs.result_table import ResultTable
from crowdwise.simulate import simulate_annotators

FILES = ("features.csv", "labels.csv", "truth.csv")
_SPREAD = 5.0  # of the classes, which then overlap a little
_PAPER_CENTRE = 0.5  # of either class in every feature, on either side of 0


@dataclass(frozen=True)
class Simulation:
    """A crowd to simulate.

    Parameters
    ----------
    examples, features, classes : int, default=500, 5 and 2
        How many there are.
    annotators, experts, adversaries : int, default=10, 0 and 0
        Annotators who err where examples are hard, who are always right, and who are always wrong.
    clarity : float, default=5.0
        Higher means less noise.
    missing : float, default=0.5
        Share of labels left out at random.
    seed : int, default=0
        The same seed gives the same crowd.
    paper : bool, default=False
        Whether the examples are those of the paper: two Gaussians of variance 1 around -1/2 and +1/2 in every feature.
        `PAPER` has the other numbers of the paper as well.
    """

    examples: int = 500
    features: int = 5
    classes: int = 2
    annotators: int = 10
    experts: int = 0
    adversaries: int = 0
    clarity: float = 5.0
    missing: float = 0.5
    seed: int = 0
    paper: bool = False


# The paper's synthetic data: 1,000 examples, ten annotators at p = 1, an expert and an adversary.
PAPER = Simulation(examples=1000, features=10, experts=1, adversaries=1, clarity=1.0, missing=0.0, paper=True)


def write_simulation(out: PathLike, simulation: Simulation | None = None, *, force: bool = False) -> CrowdLabels:
    """Simulate a crowd and write its labels, features and truth as CSV files; with `force` over an earlier one.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from crowdwise.runs.simulated import Simulation, write_simulation
    >>> out = Path(tempfile.mkdtemp()) / "crowd"
    >>> write_simulation(out, Simulation(examples=40)).n_examples
    40
    >>> (out / "truth.csv").read_text().splitlines()[0]
    'example,label'
    """
    simulation = simulation or Simulation()
    n_classes, n_features = (
        check_whole("classes", simulation.classes, low=2),
        check_whole("features", simulation.features),
    )
    n_examples = check_whole("examples", simulation.examples, low=2)
    if simulation.paper and n_classes != 2:
        raise ValueError(f"the paper's data have two classes; got {n_classes}.")
    centres = _PAPER_CENTRE * np.outer([-1, 1], np.ones(n_features)) if simulation.paper else n_classes
    spread = 1.0 if simulation.paper else _SPREAD
    with new_folder(out, may_replace=lambda old: force and holds_only(old, FILES)) as folder:
        X, truth = make_blobs(n_examples, n_features, centers=centres, cluster_std=spread, random_state=simulation.seed)
        names = np.array([f"class {k + 1}" for k in range(n_classes)])[truth]
        labels = simulate_annotators(
            X,
            names,
            simulation.annotators,
            clarity=simulation.clarity,
            experts=simulation.experts,
            adversaries=simulation.adversaries,
            missing=simulation.missing,
            random_state=simulation.seed,
        )
        examples = {"example": labels.examples}
        ResultTable("labels", labels.to_table()).write(folder)
        ResultTable("features", examples | {f"f{k + 1}": column for k, column in enumerate(X.T)}).write(folder)
        ResultTable("truth", examples | {"label": names}).write(folder)
    return labels
