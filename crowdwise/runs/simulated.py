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
        The higher, the less noise.
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
    wanted = simulation or Simulation()
    check_whole("classes", wanted.classes, low=2)
    if wanted.paper and wanted.classes != 2:
        raise ValueError(f"the paper's examples are of two classes; got {wanted.classes}.")
    with new_folder(out, may_replace=lambda old: force and holds_only(old, FILES)) as folder:
        n_features = check_whole("features", wanted.features)
        X, truth = make_blobs(
            check_whole("examples", wanted.examples, low=2),
            n_features,
            centers=_PAPER_CENTRE * np.outer([-1, 1], np.ones(n_features)) if wanted.paper else wanted.classes,
            cluster_std=1.0 if wanted.paper else _SPREAD,
            random_state=wanted.seed,
        )
        names = np.array([f"class {k + 1}" for k in range(wanted.classes)])[truth]
        labels = simulate_annotators(
            X,
            names,
            wanted.annotators,
            clarity=wanted.clarity,
            experts=wanted.experts,
            adversaries=wanted.adversaries,
            missing=wanted.missing,
            random_state=wanted.seed,
        )
        given = {name: column.tolist() for name, column in labels.to_table().items()}
        examples = labels.examples.tolist()
        measured = {f"f{k + 1}": column.tolist() for k, column in enumerate(X.T)}
        tables = (given, {"example": examples, **measured}, {"example": examples, "label": names.tolist()})
        for name, columns in zip(("labels", "features", "truth"), tables, strict=True):
            (folder / f"{name}.csv").write_text(ResultTable(name, columns).as_csv(), encoding="utf-8")
    return labels
