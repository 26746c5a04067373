"""Where the last rounds began and ended -> where they are heading (Anderson 1965; Walker and Ni 2011).

EM is slow where labels say little: a round goes only a part of the way that is left. How the steps of the last rounds
differ tells how a step depends on where it begins, and so about where no step would be left. What is found there counts
only if the objective is not lower than before, so it still never falls.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from crowdwise.arrays import Floats

# Differences between rounds that are looked at.
_MOST_DIFFERENCES = 5
# With more parameters than this, what is kept of the rounds would take more memory than all else.
MOST_PARAMETERS = 2**18
# Added to their products, relative to the largest: directions in which steps hardly differ say nothing.
_RIDGE = 1e-8


@dataclass
class Anderson:
    """Where the last round ended and the step that led there, and how far rounds before it differ in both."""

    _last: tuple[Floats, Floats] | None = field(default=None, init=False)
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
        step, last, self._last = end - begin, self._last, None
        if last is not None:
            self._ends = [*self._ends, end - last[0]][-_MOST_DIFFERENCES:]
            self._steps = [*self._steps, step - last[1]][-_MOST_DIFFERENCES:]
        self._last = end, step
        if last is None:
            return None
        products = np.array([[one @ other for other in self._steps] for one in self._steps])
        products[np.diag_indices_from(products)] += _RIDGE * products.diagonal().max() + np.finfo(np.float64).tiny
        shares = np.linalg.solve(products, [turn @ step for turn in self._steps])
        proposal = end.copy()
        for share, turn in zip(shares, self._ends, strict=True):
            proposal -= share * turn
        return proposal

    def forget(self) -> None:
        """Begin anew: the last proposal was worse than where its round began."""
        self._last = None
        self._ends.clear()
        self._steps.clear()
