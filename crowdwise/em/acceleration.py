"""Parameters of three rounds -> parameters further along the way they were going (SQUAREM, Varadhan and Roland 2008).

EM is slow where labels say little. Three rounds in a row show how fast steps shrink, and so about where they end. What
is found there counts only if its objective is higher, so the objective still never falls.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from crowdwise.arrays import Floats

# No step is stretched by more than this at first; the limit grows where it was reached with success.
_FIRST_LIMIT, _GROWTH = 4.0, 4.0


@dataclass
class Squarem:
    """The logarithms of the parameters of the last rounds."""

    _path: list[Floats] = field(default_factory=list, init=False)
    _limit: float = field(default=_FIRST_LIMIT, init=False)
    _stretch: float = field(default=1.0, init=False)

    def propose(self, parameters: Floats) -> Floats | None:
        """Where the rounds are heading, after every third of them; None in between.

        Parameters
        ----------
        parameters : ndarray
            Logarithms of the parameters that the last round estimated; may be written over later.

        Returns
        -------
        proposal : ndarray or None
        """
        self._path.append(parameters)
        if len(self._path) < 3:
            return None
        first, second, third = self._path
        self._path = []
        # In place, for there may be millions of parameters: what was kept of the rounds is not needed again.
        second *= 2
        bend = np.subtract(third, second, out=third)
        bend += first
        second /= 2  # exactly as it was
        step = np.subtract(second, first, out=second)
        length = float(np.linalg.norm(bend))
        self._stretch = min(float(np.linalg.norm(step)) / length, self._limit) if length > 0 else 1.0
        if self._stretch <= 1:
            return None
        step *= 2 * self._stretch
        bend *= self._stretch**2
        first += step
        first += bend
        return first

    def heed(self, *, accepted: bool) -> None:
        """Learn from whether the proposal was better than the last round."""
        if accepted and self._stretch == self._limit:
            self._limit *= _GROWTH
        elif not accepted:
            self._limit = max(self._limit / _GROWTH, _FIRST_LIMIT)
