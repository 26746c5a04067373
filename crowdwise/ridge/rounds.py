"""The rounds: weights, coefficients, then expertise, until they settle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crowdwise._arrays import Floats
from crowdwise._progress import SILENT, Reporter
from crowdwise.exceptions import CrowdConvergenceWarning, warn
from crowdwise.ridge.data import RidgeData, Route, Weights
from crowdwise.ridge.problem import Problem
from crowdwise.ridge.statistics import Precision
from crowdwise.ridge.targets import Votes
from crowdwise.weights.class_weights import Leaders, class_weights
from crowdwise.weights.curricula import Curriculum, Fixed, checked_weights

# The objective is a mean of logarithms; to have been lower by less than this is of no interest.
_NEGLIGIBLE = 1e-6


class RoundWeights:
    """The weights of one fit, round after round.

    The class of an example is the one that leads in the consensus, not a mixture by votes: where one class is rare, the
    few wrong votes on each of the many examples of the other would make up most of its votes. Its weight multiplies
    the example's sample weight, so it means what it means elsewhere in scikit-learn. `class_weight` is None,
    "balanced" or a number per class, `random_state` the seed of a curriculum that draws. `alike` is whether all
    examples are equally easy, where there are more of them than in the data.
    """

    def __init__(
        self,
        data: RidgeData,
        steepness: float,
        curriculum: Curriculum | None = None,
        class_weight: Floats | str | None = None,
        random_state: Any = None,
        *,
        alike: bool | None = None,
    ) -> None:
        self.data, self.steepness, self.class_weight = data, steepness, class_weight
        self.curriculum = Fixed() if curriculum is None else curriculum
        self.rng, self.leaders = np.random.default_rng(random_state), Leaders()
        self.first = Weights(data, steepness, data.training.sample_weight)
        fixed = isinstance(self.curriculum, Fixed)
        if not fixed and alike is None:
            alike = bool((data.easiness(steepness) == 1).all())
        self.steady = class_weight is None and (fixed or (self.curriculum.is_mixture and bool(alike)))

    def next(self, t: int, expertise: Floats | None, theta: Floats | None) -> Weights:
        """The weights of round t, after a round that ended with `expertise` and `theta`."""
        if self.steady:
            return self.first
        data, curriculum, losses = self.data, self.curriculum, None
        if self.class_weight is None and curriculum.is_mixture:
            return replace(self.first, share=curriculum.share(t, self.rng))
        if curriculum.reads_losses and theta is not None:  # how far the last model is from the present consensus
            losses = data.targets.squared(data.consensus(expertise)[0] - data.rows.scores(theta))
        easiness, count = data.easiness(self.steepness), self.first.sample_weight
        weight = checked_weights(curriculum.weights(t, easiness, losses, self.rng, count), curriculum)
        if data.known is not None:
            weight = weight.copy()
            weight[data.known.at] = 1.0
        if self.class_weight is None:
            return replace(self.first, given=weight)
        alike = np.ones(data.labels.n_annotators)
        shares = self.leaders.shares(Votes.of(data.labels, alike if expertise is None else expertise).votes)
        class_weight = class_weights(self.class_weight, shares, weight * count)
        return replace(
            self.first, sample_weight=count * (shares @ class_weight), given=weight, class_weight=class_weight
        )

    def settled(self, t: int, tol: float) -> bool:
        """Whether later rounds may be taken to have the weights of round t."""
        return self.steady or self.curriculum.settled(t, tol)


@dataclass(frozen=True, eq=False)
class Settled:
    """What the rounds arrived at."""

    theta: Floats  # (n_columns, n_targets): coefficients
    expertise: Floats  # (n_annotators,)
    errors: Floats  # (n_annotators,): weighted sums of squared errors after the last round
    precision: Precision  # how these become expertise
    objective: Floats  # (n_rounds,): lower is better
    converged: bool  # whether expertise changed by less than the tolerance in the last round, with weights that stay
    change: float  # the largest relative change of expertise in the last round
    comparable: bool  # whether all rounds had the same weights and no answer is known: then objectives can be compared
    weights: Weights  # of the last round
    l2: float  # of the last round
    rank: int  # how many directions of the features are determined
    route: Route = "sums"  # how it was solved
    fold_theta: Floats | None = None  # (n_folds, n_columns, n_targets): of all folds but one; None if there is one fold
    held_out_error: Floats | None = None  # (n_l2s,): of the last choice of l2
    agreement: Floats | None = None  # (n_annotators,): of ratings, with the scores

    @property
    def n_rounds(self) -> int:
        return len(self.objective)

    def warn(self, tol: float) -> None:
        """Warn if the rounds did not settle, or ended at a worse objective than they had been at."""
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
        rise = self.objective[-1] - self.objective.min()
        if self.comparable and rise > _NEGLIGIBLE:
            best = int(self.objective.argmin()) + 1
            warn(
                f"the objective rose by {rise:.2g} after round {best}: the penalty is set anew in every round, so that "
                f"l2 keeps its meaning, and outweighed the better fit. Set max_rounds={best} to stop there, or try "
                "another l2.",
                CrowdConvergenceWarning,
            )


def alternate(
    problem: Problem,
    weights: RoundWeights,
    max_rounds: int,
    tol: float,
    reporter: Reporter = SILENT,
    after: Settled | None = None,
) -> tuple[Settled, Problem]:
    """Coefficients and expertise in turn, from the first consensus or from where other rounds ended.

    The rounds have settled when no annotator's expertise changes by more than `tol`, relative to what it was, and when
    the weights are there to stay: then another round would change nothing. Also the problem of the last round.
    """
    report = reporter.rounds(f"steepness {weights.steepness:g}")
    expertise, done = (None, 0) if after is None else (after.expertise, after.n_rounds)
    errors: list[Floats] = []
    roughness: list[float] = []
    objectives: list[float] = []
    change, settled = np.inf, False
    theta: Floats | None = None
    for t in range(done + 1, done + max_rounds + 1):
        current = weights.next(t, expertise, theta)
        problem = problem.at(current)
        theta = problem.solve(expertise)
        squared = problem.squared_errors(theta)
        if weights.data.known is not None:
            squared = weights.data.against_truth(weights.data.known, squared, theta, current.product)
        errors.append(squared)
        roughness.append(weights.data.roughness(theta))
        previous, expertise = expertise, problem.precision.expertise(errors[-1])
        if report is not None or not weights.steady:  # each round has an objective of its own weights
            objectives.append(_objectives(problem, expertise, errors[-1:], roughness[-1:])[0])
        if len(expertise) == 1:  # no one to be compared with
            change = 0.0
        elif previous is not None:
            change = float(np.abs(expertise / previous - 1).max())
        if report is not None:
            report(t, objectives[-1], change)
        settled = change < tol and weights.settled(t, tol)
        if settled:
            break
    assert expertise is not None
    assert theta is not None
    objective = _objectives(problem, expertise, errors, roughness) if weights.steady else np.array(objectives)
    # Errors against known answers do not depend on the model, which need not make the objective smaller then.
    comparable = weights.steady and weights.data.known is None
    return Settled(
        theta, expertise, errors[-1], problem.precision, objective, settled, change, comparable, current,
        problem.l2, problem.rank,
    ), problem  # fmt: skip


def _objectives(problem: Problem, expertise: Floats, errors: list[Floats], roughness: list[float]) -> Floats:
    precision = problem.precision
    strength = np.minimum(problem.l2 * precision.average(expertise), np.finfo(np.float64).max)  # of infinity times 0
    penalties = strength * np.array(roughness)
    return precision.objective(np.array(errors), penalties)
