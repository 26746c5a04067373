"""The rounds: weights, coefficients, then expertise, until they settle."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from crowdwise._arrays import Array, Floats
from crowdwise._limits import PRIOR_LABELS, SMALLEST_ERROR
from crowdwise._progress import Report
from crowdwise.exceptions import CrowdConvergenceWarning, warn
from crowdwise.ridge.data import RidgeData, Route
from crowdwise.ridge.targets import Votes
from crowdwise.weights.class_weights import Leaders, check_class_weight, class_weights
from crowdwise.weights.curricula import Curriculum, Fixed, checked_weights

# The objective is a mean of logarithms; to have been lower by less than this is of no interest.
_NEGLIGIBLE = 1e-6


@dataclass(frozen=True, eq=False)
class Weights:
    """The weights of the examples in one round.

    Parameters
    ----------
    data : RidgeData
        What is to be learned from.
    steepness : float
        How fast easiness falls with disagreement.
    sample_weight : ndarray of shape (n_examples,)
        How often each example counts, times the weight of its class.
    given : ndarray of shape (n_examples,), default=None
        What the curriculum gave, if it is not easiness or between easiness and equal weights.
    share : float, default=1.0
        How much easiness counts; the rest of the weight is the same for all.
    class_weight : ndarray of shape (n_classes,), default=None
        What each class counted.
    """

    data: RidgeData
    steepness: float
    sample_weight: Floats
    given: Floats | None = None
    share: float = 1.0
    class_weight: Floats | None = None

    @cached_property
    def example(self) -> Floats:
        """The weight of every example, sample weights aside."""
        if self.given is not None:
            return self.given
        easiness = self.data.easiness(self.steepness)
        return easiness if self.share == 1 else self.share * easiness + (1 - self.share)

    @property
    def product(self) -> Floats:
        """Sample weights included."""
        return self.example * self.sample_weight


@dataclass(frozen=True, eq=False)
class Weighting:
    """How the weights of a fit change from round to round.

    `class_weight` is what the class of an example in the present consensus counts: None, "balanced" or a number per
    class. `random_state` is the seed of a curriculum that draws.
    """

    curriculum: Curriculum
    class_weight: Floats | str | None = None
    random_state: Any = None

    @classmethod
    def of(cls, curriculum: Curriculum, class_weight: Any, classes: Array | None, random_state: Any) -> Weighting:
        """From what an estimator was given; weights of one are no weights."""
        checked = None if classes is None else check_class_weight(class_weight, classes)
        alike = isinstance(checked, np.ndarray) and bool((checked == 1).all())
        return cls(curriculum, None if alike else checked, random_state)

    @property
    def blends(self) -> bool:
        """Whether the weights of a round lie between easiness and equal ones, and may differ from easiness."""
        return not self.needs_rows and not isinstance(self.curriculum, Fixed)

    @property
    def needs_rows(self) -> bool:
        """Whether the weights of a round look at losses or at the consensus, so that no sums can be kept of them."""
        return self.class_weight is not None or not self.curriculum.is_mixture


class WeightSequence:
    """The weights of one fit, round after round.

    The class of an example is the one that leads in the consensus, not a mixture by votes: where one class is rare, the
    few wrong votes on each of the many examples of the other would make up most of its votes. Its weight multiplies
    the example's sample weight, so it means what it means elsewhere in scikit-learn. `alike` is whether all examples
    are equally easy, where there are more of them than in the data.
    """

    def __init__(self, data: RidgeData, steepness: float, weighting: Weighting, *, alike: bool | None = None) -> None:
        self.data, self.steepness, self.weighting = data, steepness, weighting
        self.rng = np.random.default_rng(weighting.random_state)
        self.leaders = Leaders()
        self.first = Weights(data, steepness, data.training.sample_weight)
        fixed = isinstance(weighting.curriculum, Fixed)
        if not fixed and alike is None:
            alike = bool((data.easiness(steepness) == 1).all())
        self.steady = weighting.class_weight is None and (fixed or (weighting.curriculum.is_mixture and bool(alike)))

    def next(self, t: int, expertise: Floats | None, theta: Floats | None) -> Weights:
        """The weights of round t, after a round that ended with `expertise` and `theta`."""
        if self.steady:
            return self.first
        sample_weight, curriculum = self.data.training.sample_weight, self.weighting.curriculum
        if not self.weighting.needs_rows:
            return Weights(self.data, self.steepness, sample_weight, share=curriculum.share(t, self.rng))
        losses = self._losses(expertise, theta) if curriculum.reads_losses and theta is not None else None
        easiness = self.data.easiness(self.steepness)
        weight = checked_weights(curriculum.weights(t, easiness, losses, self.rng, sample_weight), curriculum)
        if self.data.known is not None:
            weight = weight.copy()
            weight[self.data.known.at] = 1.0
        if self.weighting.class_weight is None:
            return Weights(self.data, self.steepness, sample_weight, weight)
        alike = np.ones(self.data.labels.n_annotators)
        shares = self.leaders.shares(Votes.of(self.data.labels, alike if expertise is None else expertise).votes)
        class_weight = class_weights(self.weighting.class_weight, shares, weight * sample_weight)
        sample_weight = sample_weight * (shares @ class_weight)
        return Weights(self.data, self.steepness, sample_weight, weight, class_weight=class_weight)

    def _losses(self, expertise: Floats | None, theta: Floats) -> Floats:
        """How far the last model is from the present consensus."""
        consensus, _ = self.data.consensus(expertise)
        return self.data.targets.squared(consensus - self.data.rows.scores(theta))

    def settled(self, t: int, tol: float) -> bool:
        """Whether later rounds may be taken to have the weights of round t."""
        return self.steady or self.weighting.curriculum.settled(t, tol)


@dataclass(frozen=True, eq=False)
class Precision:
    """How squared errors become expertise: one over the mean squared error, shrunk where labels are missing.

    Parameters
    ----------
    mass : ndarray of shape (n_annotators,)
        Total weight of the examples that each annotator labelled.
    answered : ndarray of shape (n_annotators,)
        The same without easiness: how much each annotator labelled.
    present : float
        How much there was to label.
    floor : float
        The smallest mean squared error.
    """

    mass: Floats
    answered: Floats
    present: float
    floor: float

    @classmethod
    def of(cls, mass: Floats, answered: Floats, present: float, span: float) -> Precision:
        """From the weights that were labelled, and that there were to label."""
        return cls(mass, answered, present, SMALLEST_ERROR * span)

    @cached_property
    def prior(self) -> Floats:
        """Weight of the crowd's average error in each annotator's.

        It is zero for those who labelled everything, so that complete labels give the paper's expertise exactly.
        """
        return PRIOR_LABELS * (1 - np.minimum(self.answered / self.present, 1.0))

    def average(self, expertise: Floats) -> float:
        """The expertise of all who labelled the average example."""
        return float(self.answered @ expertise / self.present)

    def expertise(self, errors: Floats) -> Floats:
        """Expertise from sums of squared errors."""
        return 1.0 / self._shrunk(errors, self._crowd_error(errors))

    def crowd_expertise(self, errors: Floats) -> float:
        """The expertise of the crowd as a whole: what an unknown annotator is taken to have."""
        return 1.0 / max(self._crowd_error(errors), self.floor)

    def objective(self, errors: Floats, penalties: Floats) -> Floats:
        """Minus the mean log-likelihood of the labels, up to constants, plus the ridge penalty, for every round.

        The crowd's error, and the scale of the penalty, are set anew in each round from the expertise then; here all
        rounds are measured as in the last one, so that they can be compared. `errors` are (n_rounds, n_annotators).
        """
        strength = self.mass + self.prior
        logarithms = np.log(self._shrunk(errors, self._crowd_error(errors[-1])))
        return (logarithms @ strength + penalties) / strength.sum()

    def _crowd_error(self, errors: Floats) -> float:
        return float(errors.sum() / self.mass.sum())

    def _shrunk(self, errors: Floats, crowd: float) -> Floats:
        return np.maximum((errors + self.prior * crowd) / (self.mass + self.prior), self.floor)


class Problem(Protocol):
    """What the rounds ask: given the expertise, what are the coefficients; given these, how wrong is each annotator?"""

    rank: int

    @property
    def l2(self) -> float: ...

    @property
    def precision(self) -> Precision: ...

    def at(self, weights: Weights) -> Self: ...

    def solve(self, expertise: Floats | None) -> Floats: ...

    def squared_errors(self, theta: Floats) -> Floats: ...


P = TypeVar("P", bound=Problem)


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
    problem: P,
    weights: WeightSequence,
    *,
    max_rounds: int,
    tol: float,
    expertise: Floats | None = None,
    done: int = 0,
    report: Report | None = None,
) -> tuple[Settled, P]:
    """Coefficients and expertise in turn, from the first consensus or from an `expertise` after `done` rounds.

    The rounds have settled when no annotator's expertise changes by more than `tol`, relative to what it was, and when
    the weights are there to stay: then another round would change nothing. Also the problem of the last round.
    """
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
    penalties = problem.l2 * precision.average(expertise) * np.array(roughness)
    return precision.objective(np.array(errors), penalties)
