"""Answers of a fit and known answers that were held out -> how good it is, how surely, and how many more are needed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, sqrt
from typing import Any

import numpy as np
from scipy import stats

from crowdwise._arrays import Array, Codes, Floats
from crowdwise._checks import check_number
from crowdwise._limits import SPREAD_ERROR
from crowdwise._text import count

# Of intervals, and how many standard deviations of a normal distribution hold this share of it.
_CONFIDENCE = 0.95
HALF_WIDTH = float(stats.norm.ppf((1 + _CONFIDENCE) / 2))


@dataclass(frozen=True)
class TruthCheck:
    """How often the consensus is right, on examples of known class, each held out.

    Parameters
    ----------
    n : int
        Examples with labels whose class is known.
    right : int
        For how many of them the consensus is right, each truth held out.
    confidence : float
        The mean confidence of the consensus on these.
    others : float or None, default=None
        The mean confidence on the labelled examples whose class is not known: the share of them that is expected to be
        right. None if there are no such examples.
    at_random : bool, default=True
        Whether the known examples may be a random draw of all, by stated confidence and class. If not, the share that
        is right holds for examples like these only.
    tenths : tuple of (int, float, float), default=()
        By tenth of the stated confidence: how many, the mean confidence, the share that is right.

    Examples
    --------
    >>> from crowdwise.truths.check import TruthCheck
    >>> check = TruthCheck(n=50, right=40, confidence=0.84)
    >>> check
    TruthCheck: accuracy 80% on 50 known answers (67% to 89%), mean confidence 84%
    >>> check.needed(within=0.05)
    212
    >>> TruthCheck(n=50, right=30, confidence=0.62, others=0.85, at_random=False)
    TruthCheck: accuracy 60% on 50 known answers (46% to 72%), mean confidence 62%
      not a random draw; mean confidence on the other examples 85%
    """

    n: int
    right: int
    confidence: float
    others: float | None = None
    at_random: bool = True
    tenths: tuple[tuple[int, float, float], ...] = ()

    @property
    def accuracy(self) -> float:
        """The share that is right."""
        return self.right / self.n

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95% interval of it."""
        low, high = share_interval(self.accuracy, self.n)
        return float(low), float(high)

    def beside(self, stated: Floats) -> TruthCheck:
        """The same with the confidence that is stated of examples whose class is not known."""
        return replace(self, others=float(stated.mean()) if len(stated) else None)

    def needed(self, within: float = 0.05) -> int:
        """How many more truths would make the interval no wider than plus and minus this.

        Parameters
        ----------
        within : float, default=0.05
            Half the width of the interval.

        Returns
        -------
        n : int
            0 if there are enough.
        """
        check_number("within", within, above=True)
        z = HALF_WIDTH
        share = (self.right + z**2 / 2) / (self.n + z**2)
        return max(0, ceil(share * (1 - share) * (z / within) ** 2 - z**2) - self.n)

    def plain(self) -> dict[str, Any]:
        """The same as plain values, for reports and JSON."""
        low, high = self.interval
        return {
            "n": self.n,
            "accuracy": self.accuracy,
            "low": low,
            "high": high,
            "confidence": self.confidence,
            "others": self.others,
            "at_random": self.at_random,
            "needed": self.needed(),
            "within": 0.05,
            "reliability": reliability_rows(self.tenths),
        }

    def __repr__(self) -> str:
        low, high = self.interval
        chosen = ""
        if not self.at_random and self.others is not None:
            chosen = f"\n  not a random draw; mean confidence on the other examples {100 * self.others:.0f}%"
        return (
            f"TruthCheck: accuracy {100 * self.accuracy:.0f}% on {count(self.n, 'known answer')} ({100 * low:.0f}% to "
            f"{100 * high:.0f}%), mean confidence {100 * self.confidence:.0f}%{chosen}"
        )


@dataclass(frozen=True)
class RatingCheck:
    """How far the consensus is off, on examples of known rating, each held out.

    Parameters
    ----------
    n : int
        Examples with ratings whose true rating is known.
    error : float
        The root mean squared difference of consensus and truth, each truth held out.
    std : float
        The root of the mean squared standard deviation that it states, on these.

    Examples
    --------
    >>> from crowdwise.truths.check import RatingCheck
    >>> RatingCheck(n=50, error=0.4, std=0.35)
    RatingCheck: error 0.4 on 50 known answers (0.335 to 0.497), stated 0.35
    """

    n: int
    error: float
    std: float

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval of the error, if errors are normally distributed."""
        low, high = stats.chi2.ppf([(1 + _CONFIDENCE) / 2, (1 - _CONFIDENCE) / 2], self.n)
        return self.error * sqrt(self.n / low), self.error * sqrt(self.n / high)

    def needed(self, within: float = 0.05) -> int:
        """How many more truths would make the interval no wider than plus and minus this share of the error.

        Parameters
        ----------
        within : float, default=0.05
            Half the width of the interval, relative to the error.

        Returns
        -------
        n : int
            0 if there are enough.
        """
        check_number("within", within, above=True)
        return max(0, ceil((HALF_WIDTH / within) ** 2 / 2) - self.n)

    def plain(self) -> dict[str, Any]:
        """The same as plain values, for reports and JSON."""
        low, high = self.interval
        return {
            "n": self.n,
            "error": self.error,
            "low": low,
            "high": high,
            "std": self.std,
            "needed": self.needed(),
            "within": 0.05,
        }

    def __repr__(self) -> str:
        low, high = self.interval
        return (
            f"RatingCheck: error {self.error:.3g} on {count(self.n, 'known answer')} ({low:.3g} to {high:.3g}), stated "
            f"{self.std:.3g}"
        )


def check_classes(held_out: Floats, codes: Codes, chosen: Codes | None = None, *, at_random: bool = True) -> TruthCheck:
    """How good probabilities are that were given without knowing the true classes.

    The classes that are taken are by default the most probable ones.
    """
    chosen = held_out.argmax(axis=1) if chosen is None else chosen
    sure, right = held_out[np.arange(len(codes)), chosen], chosen == codes
    tenths = by_tenth(sure, right)
    return TruthCheck(len(codes), int(right.sum()), float(sure.mean()), at_random=at_random, tenths=tenths)


def by_tenth(sure: Floats, right: Array) -> tuple[tuple[int, float, float], ...]:
    """How many answers are in each tenth of confidence, the mean confidence there, and the share that is right.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise.truths.check import by_tenth
    >>> by_tenth(np.array([0.625, 0.6875, 1.0]), np.array([True, False, True]))
    ((2, 0.65625, 0.5), (1, 1.0, 1.0))
    """
    tenth = np.minimum((10 * sure).astype(np.intp), 9)
    parts = (tenth == k for k in np.unique(tenth))
    return tuple((int(rows.sum()), float(sure[rows].mean()), float(right[rows].mean())) for rows in parts)


def reliability_rows(tenths: tuple[tuple[int, float, float], ...]) -> list[dict[str, Any]]:
    """The same with Wilson's intervals, for reports and JSON."""
    rows = []
    for n, stated, value in tenths:
        low, high = share_interval(value, n)
        rows.append({"n": n, "stated": stated, "value": value, "low": float(low), "high": float(high)})
    return rows


def share_interval(share: Any, n: Any) -> tuple[Any, Any]:
    """Wilson's 95% interval of shares of n cases each; from 0 to 1 where there is no case.

    Examples
    --------
    >>> from crowdwise.truths.check import share_interval
    >>> [round(float(end), 3) for end in share_interval(0.9, 10)]
    [0.596, 0.982]
    """
    share, n, square = np.asarray(share, dtype=np.float64), np.asarray(n, dtype=np.float64), HALF_WIDTH**2
    with np.errstate(invalid="ignore"):
        centre = (n * share + square / 2) / (n + square)
        half = HALF_WIDTH * np.sqrt(n * share * (1 - share) + square / 4) / (n + square)
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)


def spread_interval(spread: Any, n: Any) -> tuple[Any, Any]:
    """The 95% interval of standard deviations around a consensus, from n labels each; NaN where there is none.

    Examples
    --------
    >>> from crowdwise.truths.check import spread_interval
    >>> [round(float(end), 2) for end in spread_interval(0.9, 200)]
    [0.6, 1.35]
    """
    factor = np.exp(HALF_WIDTH * np.sqrt(0.5 / np.maximum(n, 1) + SPREAD_ERROR**2))
    return spread / factor, spread * factor
