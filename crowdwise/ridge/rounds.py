"""The rounds: coefficients, then expertise, until they settle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdwise.arrays import Floats
from crowdwise.exceptions import CrowdConvergenceWarning, warn
from crowdwise.ridge.courses import Course

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
        Whether expertise changed by less than the tolerance in the last round, with weights that stay.
    change : float
        The largest relative change of expertise in the last round.
    same_weights : bool, default=True
        Whether all rounds had the same weights, so that their objectives can be compared.
    """

    theta: Floats
    expertise: Floats
    objective: Floats
    converged: bool
    change: float
    same_weights: bool = True

    @property
    def n_rounds(self) -> int:
        return len(self.objective)

    def warn(self, tol: float) -> None:
        """Say so if the rounds did not settle, or if the objective rose."""
        if not self.converged and self.change < tol:
            warn(
                f"the curriculum still changes the weights after {self.n_rounds} rounds. Raise max_rounds or tol, or "
                "choose a curriculum that is done sooner (a larger c or growth).",
                CrowdConvergenceWarning,
            )
        elif not self.converged:
            warn(
                f"expertise still changed by {self.change:.2g} (relative) after {self.n_rounds} rounds, more than "
                f"tol={tol:g}. Raise max_rounds or tol, or try a larger l2.",
                CrowdConvergenceWarning,
            )
        rises = np.diff(self.objective) if self.same_weights else np.empty(0)
        if rises.size and rises.max() > _ROUNDING:
            warn(
                f"the objective rose by {rises.max():.2g} in round {int(rises.argmax()) + 2}: the penalty is set anew "
                "in every round, so that l2 keeps its meaning, and outweighed the better fit there.",
                CrowdConvergenceWarning,
            )


def alternate(
    course: Course, *, max_rounds: int, tol: float, expertise: Floats | None = None, done: int = 0
) -> Settled:
    """Turn the rounds of a course.

    The rounds have settled when expertise has and when the weights are there to stay: then another round would
    change nothing.

    Parameters
    ----------
    course : Course
        Gives the problem of every round, and that coefficients for expertise and squared errors for coefficients.
    max_rounds : int
        The most rounds to turn.
    tol : float
        Stop when no annotator's expertise changes by more than this, relative to what it was.
    expertise : ndarray of shape (n_annotators,), default=None
        Where to begin; by default with the first consensus.
    done : int, default=0
        Rounds that were turned before these.

    Returns
    -------
    settled : Settled
    """
    history: list[tuple[Floats, float]] = []
    objectives: list[float] = []
    change, settled = np.inf, False
    theta: Floats | None = None
    for t in range(done + 1, done + max_rounds + 1):
        problem = course.problem(t, expertise, theta)
        theta = problem.solve(expertise)
        errors = problem.squared_errors(theta)
        previous, expertise = expertise, problem.precision.expertise(errors)
        history.append((errors, problem.roughness(theta)))
        if not course.is_steady:  # each round is judged by its own weights
            penalty = problem.penalty_scale(expertise) * history[-1][1]
            objectives.append(float(problem.precision.objective(errors[np.newaxis], np.array([penalty]))[0]))
        if len(expertise) == 1:  # nobody to be compared with
            change = 0.0
        elif previous is not None:
            change = float(np.abs(expertise / previous - 1).max())
        settled = change < tol and course.settled(t, tol)
        if settled:
            break
    assert expertise is not None
    assert theta is not None
    if not course.is_steady:
        return Settled(theta, expertise, np.array(objectives), settled, change, same_weights=False)
    penalties = problem.penalty_scale(expertise) * np.array([roughness for _, roughness in history])
    objective = problem.precision.objective(np.array([errors for errors, _ in history]), penalties)
    return Settled(theta, expertise, objective, settled, change)
