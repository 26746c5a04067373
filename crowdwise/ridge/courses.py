"""Curriculum, class weights -> the problem of every round.

The weights of examples may change from round to round. While they lie between easiness and equal weights, the sums
for both are kept and blended, and no round reads a row; weights that look at losses or at the consensus need
a pass a round.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from crowdwise.arrays import Floats
from crowdwise.ridge.ballot import Ballot
from crowdwise.ridge.problem import Problem, SumsProblem, Task
from crowdwise.ridge.statistics import Statistics
from crowdwise.weights.class_weights import Leaders, check_class_weight, class_weights
from crowdwise.weights.curricula import Curriculum, Fixed

P = TypeVar("P", bound=Problem)


@dataclass(frozen=True)
class Pace:
    """How the weights of a fit change from round to round.

    Parameters
    ----------
    curriculum : Curriculum
        The weights that come from disagreement and, perhaps, from losses.
    class_weight : None, "balanced" or ndarray of shape (n_classes,)
        What the class of an example in the present consensus is worth.
    random_state : object
        Seed of a curriculum that draws.
    """

    curriculum: Curriculum
    class_weight: Floats | str | None = None
    random_state: Any = None

    @classmethod
    def of(cls, curriculum: Curriculum, class_weight: Any, classes: NDArray[Any], random_state: Any) -> Pace:
        """From what an estimator was given; weights of one are no weights."""
        checked = check_class_weight(class_weight, classes)
        alike = isinstance(checked, np.ndarray) and bool((checked == 1).all())
        return cls(curriculum, None if alike else checked, random_state)

    def is_steady(self, task: Task) -> bool:
        """Whether all rounds have the same weights."""
        if self.class_weight is not None:
            return False
        return isinstance(self.curriculum, Fixed) or (self.curriculum.is_mixture and bool((task.easiness == 1).all()))

    @property
    def needs_rows(self) -> bool:
        """Whether the weights of a round cannot be had by blending sums."""
        return self.class_weight is not None or not self.curriculum.is_mixture

    def rng(self) -> np.random.Generator:
        """A fresh generator: the same tosses for every fit with the same seed."""
        return np.random.default_rng(self.random_state)


class Course(Protocol):
    """What the rounds go through."""

    @property
    def is_steady(self) -> bool:
        """Whether all rounds have the same problem, so that their objectives can be compared."""
        ...

    def problem(self, t: int, expertise: Floats | None, theta: Floats | None) -> Problem:
        """The problem of round t, after a round that ended with `expertise` and `theta`."""
        ...

    def settled(self, t: int, tol: float) -> bool:
        """Whether later rounds may be taken to have the weights of round t."""
        ...


@dataclass(frozen=True)
class Steady(Generic[P]):
    """The same problem in every round."""

    task: Task
    current: P
    is_steady: bool = True
    class_weight: None = None

    def problem(self, t: int, expertise: Floats | None, theta: Floats | None) -> P:
        return self.current

    def settled(self, t: int, tol: float) -> bool:
        return True


@dataclass
class Blended(Generic[P]):
    """Weights between easiness and equal ones, from sums for both: no round reads a row.

    Parameters
    ----------
    base : Task
        What is to be learnt.
    pace : Pace
        Its curriculum gives the share of easiness.
    make : callable
        Gives the problem of a share; it is told the problem of the round before, or None.
    """

    base: Task
    pace: Pace
    make: Callable[[float, P | None], P]
    is_steady: bool = field(default=False, init=False)
    class_weight: None = field(default=None, init=False)
    _share: float = field(default=1.0, init=False)
    _current: P | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._rng = self.pace.rng()

    @property
    def task(self) -> Task:
        """With the weights of the last round."""
        return replace(self.base, round_weight=self._share * self.base.easiness + (1 - self._share))

    @property
    def current(self) -> P:
        assert self._current is not None
        return self._current

    def problem(self, t: int, expertise: Floats | None, theta: Floats | None) -> P:
        self._share = self.pace.curriculum.share(t, self._rng)
        self._current = self.make(self._share, self._current)
        return self._current

    def settled(self, t: int, tol: float) -> bool:
        return self.pace.curriculum.settled(t, tol)


@dataclass
class Reweighted(Generic[P]):
    """Weights that look at losses or at the consensus of the round: each round reads the rows.

    The class of an example is the one that leads in the consensus, not a mixture by votes: where one class is rare, the
    few wrong votes on each of the many examples of the other would make up most of its votes. Its weight multiplies
    the example's sample weight, so it means what it means elsewhere in scikit-learn.

    Parameters
    ----------
    base : Task
        What is to be learnt, with the weights that the caller gave.
    pace : Pace
        Gives the weights of a round.
    make : callable
        Gives the problem of a weighted task; it is told the problem of the round before, or None.
    """

    base: Task
    pace: Pace
    make: Callable[[Task, P | None], P]
    is_steady: bool = field(default=False, init=False)
    class_weight: Floats | None = field(default=None, init=False)
    _current: P | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.task = self.base
        self._rng = self.pace.rng()
        self._leaders = Leaders()

    @property
    def current(self) -> P:
        assert self._current is not None
        return self._current

    def problem(self, t: int, expertise: Floats | None, theta: Floats | None) -> P:
        self.task = self._weighted(t, expertise, theta)
        self._current = self.make(self.task, self._current)
        return self._current

    def settled(self, t: int, tol: float) -> bool:
        return self.pace.curriculum.settled(t, tol)

    def _weighted(self, t: int, expertise: Floats | None, theta: Floats | None) -> Task:
        task, curriculum = self.base, self.pace.curriculum
        voice = np.ones(task.labels.n_annotators) if expertise is None else expertise
        ballot = Ballot.of(task.labels, voice)
        losses = None
        if curriculum.reads_losses and theta is not None:
            consensus = task.first if expertise is None else ballot.mean_targets(task.targets)
            losses = task.targets.squared(consensus - task.rows.scores(theta))
        weight = curriculum.weights(t, task.easiness, losses, self._rng, task.sample_weight)
        if self.pace.class_weight is None:
            return replace(task, round_weight=weight)
        shares = self._leaders.shares(ballot.votes)
        self.class_weight = class_weights(self.pace.class_weight, shares, weight * task.sample_weight)
        return replace(task, round_weight=weight, sample_weight=task.sample_weight * (shares @ self.class_weight))


def blend_sums(
    easy: Statistics, plain: Statistics, problem_of: Callable[[Statistics], SumsProblem]
) -> Callable[[float, SumsProblem | None], SumsProblem]:
    """Problems for any share of easiness; those of all and of none are kept, with their factors."""
    ends = {1.0: problem_of(easy), 0.0: problem_of(plain)}

    def make(share: float, _: SumsProblem | None) -> SumsProblem:
        return ends[share] if share in ends else problem_of(easy.blend(plain, share))

    return make
