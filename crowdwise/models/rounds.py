"""The rounds: coefficients, then expertise, until they settle."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crowdwise.exceptions import CrowdConvergenceWarning
from crowdwise.problems import Problem

Floats = NDArray[np.float64]

# The objective is a mean of logarithms; a rise below this is rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Settled:
    """What the rounds arrived at.

    Parameters
    ----------
    theta : ndarray of shape (n_columns, n_targets)
        Coefficients.
    expertise : ndarray of shape (n_annotators,)
        Expertise.
    objective : ndarray of shape (n_rounds,)
        One value a round; lower is better.
    converged : bool
        Whether expertise changed by less than the tolerance in the last round.
    change : float
        The largest relative change of expertise in the last round.
    """

    theta: Floats
    expertise: Floats
    objective: Floats
    converged: bool
    change: float

    @property
    def n_rounds(self) -> int:
        return len(self.objective)

    def warn(self, tol: float) -> None:
        """Say so if the rounds did not settle, or if the objective rose."""
        if not self.converged:
            warnings.warn(
                f"expertise still changed by {self.change:.2g} (relative) after {self.n_rounds} rounds, more than "
                f"tol={tol:g}. Raise max_rounds or tol, or try a larger l2.",
                CrowdConvergenceWarning,
                stacklevel=4,
            )
        rises = np.diff(self.objective)
        if rises.size and rises.max() > _ROUNDING:
            warnings.warn(
                f"the objective rose by {rises.max():.2g} in round {int(rises.argmax()) + 2}: the penalty is set anew "
                "in every round, so that l2 keeps its meaning, and outweighed the better fit there.",
                CrowdConvergenceWarning,
                stacklevel=4,
            )


def alternate(problem: Problem, *, max_rounds: int, tol: float, expertise: Floats | None = None) -> Settled:
    """Turn the rounds of a problem.

    Parameters
    ----------
    problem : Problem
        Gives coefficients for expertise and squared errors for coefficients.
    max_rounds : int
        The most rounds to turn.
    tol : float
        Stop when no annotator's expertise changes by more than this, relative to what it was.
    expertise : ndarray of shape (n_annotators,), default=None
        Where to begin; by default with the first consensus.

    Returns
    -------
    settled : Settled
    """
    history: list[tuple[Floats, float]] = []
    change = np.inf
    for _ in range(max_rounds):
        theta = problem.solve(expertise)
        errors = problem.squared_errors(theta)
        previous, expertise = expertise, problem.precision.expertise(errors)
        history.append((errors, problem.roughness(theta)))
        if len(expertise) == 1:  # nobody to be compared with
            change = 0.0
        elif previous is not None:
            change = float(np.abs(expertise / previous - 1).max())
        if change < tol:
            break
    assert expertise is not None
    penalties = problem.penalty_scale(expertise) * np.array([roughness for _, roughness in history])
    objective = problem.precision.objective(np.array([errors for errors, _ in history]), penalties)
    return Settled(theta, expertise, objective, change < tol, change)
