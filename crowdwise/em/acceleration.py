"""Where the last rounds began and ended -> where they are heading (Anderson 1965; Walker and Ni 2011).

EM is slow where labels say little: a round goes only a part of the way that is left. How the steps of the last rounds
differ tells how a step depends on where it begins, and so about where no step would be left. What is found there counts
only if the objective is not lower than before, so it still never falls.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from crowdwise.arrays import Floats

# Differences between rounds that are looked at, and how many numbers may be kept of them: annotators of many classes
# have millions of parameters.
_MOST_DIFFERENCES, _MOST_NUMBERS = 8, 2**23
# Added to their products, relative to the largest: directions in which steps hardly differ say nothing.
_RIDGE = 1e-8


@dataclass
class Anderson:
    """The logarithms of the parameters at the ends of the last rounds, and the steps that led there."""

    _ends: list[Floats] = field(default_factory=list, init=False)
    _steps: list[Floats] = field(default_factory=list, init=False)

    def propose(self, begin: Floats, end: Floats) -> Floats | None:
        """Where the rounds are heading; None after the first.

        Parameters
        ----------
        begin, end : ndarray
            Logarithms of the parameters that a round began with, and of those that it estimated.

        Returns
        -------
        proposal : ndarray or None
        """
        self._ends.append(end)
        self._steps.append(end - begin)
        n_kept = max(1, min(_MOST_DIFFERENCES, _MOST_NUMBERS // len(end))) + 1
        del self._ends[:-n_kept], self._steps[:-n_kept]
        if len(self._ends) == 1:
            return None
        turns = np.diff(self._steps, axis=0)
        products = turns @ turns.T
        products[np.diag_indices_from(products)] += _RIDGE * products.diagonal().max() + np.finfo(np.float64).tiny
        share = np.linalg.solve(products, turns @ self._steps[-1])
        return end - share @ np.diff(self._ends, axis=0)

    def forget(self) -> None:
        """Begin anew: the last proposal was worse than where its round began."""
        self._ends.clear()
        self._steps.clear()
