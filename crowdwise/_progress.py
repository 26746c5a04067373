"""Rounds of a fit -> what is reported while it runs: a call per round, lines on standard error, or nothing."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any

from crowdwise._checks import check_whole


@dataclass(frozen=True)
class Round:
    """What is reported after every round.

    Parameters
    ----------
    number : int
        From 1, in every stage.
    objective : float
        What the rounds improve: log-likelihood plus log priors (higher is better), in ridge models the mean logarithm
        of squared errors plus penalty (lower is better), in a perceptron the mistakes of the epoch. NaN for a stage
        without rounds.
    change : float
        What the rounds stop on: how far the probabilities of the average example moved, in ridge models the largest
        relative change of expertise, in a perceptron the share of mistakes.
    seconds : float
        Since the fit began.
    stage : str
        What the rounds are of: "labels", "labels and features", "steepness 2", ...
    """

    number: int
    objective: float
    change: float
    seconds: float
    stage: str

    def __str__(self) -> str:
        if math.isnan(self.objective):  # a step of its own
            return f"{self.stage}, {self.seconds:.1f} s"
        return (
            f"{self.stage}, round {self.number}: objective {self.objective:.6g}, change {self.change:.2g}, "
            f"{self.seconds:.1f} s"
        )


OnRound = Callable[[Round], None]
# What a loop calls after every round: number, objective, change.
Report = Callable[[int, float, float], None]


class Reporter:
    """Reports the rounds of one fit.

    Parameters
    ----------
    name : str
        Of what is fitted.
    verbose : int, default=0
        0 prints nothing, 1 one line at the end, 2 also a line per round.
    on_round : callable, default=None
        Called with a `Round` after every round. What it raises ends the fit.
    """

    def __init__(self, name: str, verbose: Any = 0, on_round: OnRound | None = None) -> None:
        self.name, self.verbose, self.on_round = name, check_whole("verbose", verbose, low=0), on_round
        if on_round is not None and not callable(on_round):
            raise TypeError(f"on_round must be a function that takes a Round; got {on_round!r}.")
        self._start, self._n_rounds, self._lock = time.perf_counter(), 0, Lock()

    def rounds(self, stage: str) -> Report | None:
        """What to call after every round of a stage; None if nothing is reported."""
        if self.verbose == 0 and self.on_round is None:
            return None

        def report(number: int, objective: float, change: float) -> None:
            self.tell(Round(number, float(objective), float(change), time.perf_counter() - self._start, stage))

        return report

    def step(self, stage: str) -> None:
        """A stage without rounds has come to its end."""
        report = self.rounds(stage)
        if report is not None:
            report(1, math.nan, math.nan)

    def tell(self, done: Round) -> None:
        """Pass a round on."""
        with self._lock:  # stages may run at the same time
            self._n_rounds += 1
            if self.verbose > 1:
                self._say(str(done))
            if self.on_round is not None:
                self.on_round(done)

    def done(self) -> None:
        """The fit has come to its end."""
        if self.verbose:
            self._say(f"{self._n_rounds} rounds, {time.perf_counter() - self._start:.1f} s")

    def _say(self, text: str) -> None:
        print(f"{self.name}: {text}", file=sys.stderr, flush=True)


SILENT = Reporter("")
