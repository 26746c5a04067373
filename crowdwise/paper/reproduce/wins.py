"""Trials of two methods -> how often one is better, whether that could be chance, and whether the paper agrees."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.stats import wilcoxon

from crowdwise.paper.reproduce.rows import Row

CURVES = {"roc": "AU-ROC", "prc": "AU-PRC"}
SIGNIFICANT = 0.01  # the paper's level in Table 4
TOLERANCE = 15.0  # wins of 100; three standard errors of a count of wins
_STRONG = 65  # wins of 100; with p below 0.01 we call this, or 35 and fewer, a strong effect


@dataclass(frozen=True)
class Wins:
    """How the weighted method fares against the unweighted one."""

    wins: int  # trials in which it is better
    ties: int  # trials in which both are equal
    trials: int  # all of them
    p_value: float  # of the two-sided Wilcoxon signed-rank test
    mean: float  # over the trials
    mean_unweighted: float

    @property
    def percent(self) -> float:
        """Wins of 100."""
        return 100 * self.wins / self.trials

    @property
    def significant(self) -> bool:
        """Whether chance is an unlikely explanation, at the paper's level."""
        return self.p_value <= SIGNIFICANT

    @property
    def strong(self) -> bool:
        """Whether there is a clear effect, in either direction."""
        return self.significant and not 100 - _STRONG < self.percent < _STRONG

    def off(self, stated: int) -> float:
        """By how many wins of 100 it differs from what the paper states."""
        return self.percent - stated

    def agrees(self, stated: int) -> bool:
        """Whether that is at most 15 wins of 100; more where there are fewer trials, and so more chance."""
        return abs(self.off(stated)) <= TOLERANCE * max(1.0, (100 / self.trials) ** 0.5)

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers."""
        return asdict(self)


def count_wins(weighted: Sequence[float], unweighted: Sequence[float]) -> Wins:
    """Compare two methods, trial by trial; more is better.

    Examples
    --------
    >>> count_wins([0.9, 0.8, 0.7], [0.8, 0.8, 0.6]).wins
    2
    """
    new, old = np.asarray(weighted, dtype=np.float64), np.asarray(unweighted, dtype=np.float64)
    differs = new - old
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sample size too small")  # SciPy before 1.14, where there are ties
        p_value = float(wilcoxon(new, old).pvalue) if differs.any() else 1.0  # without a difference: nothing to test
    return Wins(
        int((differs > 0).sum()), int((differs == 0).sum()), len(new), p_value, float(new.mean()), float(old.mean())
    )


def wins_by_steepness(rows: Sequence[Row], measure: str) -> dict[float, Wins]:
    """The wins of every steepness over steepness 0, from rows that hold the trials of one setting."""
    values: dict[float, list[float]] = {}
    for row in rows:  # rows are in order of trials, so the lists are as well
        values.setdefault(row["steepness"], []).append(row[measure])
    return {steepness: count_wins(trials, values[0.0]) for steepness, trials in values.items() if steepness > 0}


def cells_of(rows: Sequence[Row], paper: Mapping[float, Any]) -> list[dict[str, Any]]:
    """For every steepness the wins by both curves beside the paper's, if it has them, from rows of one setting."""
    roc, prc = (wins_by_steepness(rows, measure) for measure in CURVES)
    return [
        {
            "steepness": steepness,
            "roc": roc[steepness].as_dict(),
            "prc": prc[steepness].as_dict(),
            "paper": paper[steepness]._asdict() if steepness in paper else None,
        }
        for steepness in roc
    ]


def against(cell: Mapping[str, Any]) -> list[tuple[str, Wins, int]]:
    """For both curves our wins and the paper's; nothing if the paper has no such cell."""
    if cell["paper"] is None:
        return []
    return [(title, Wins(**cell[name]), cell["paper"][f"{name}_wins"]) for name, title in CURVES.items()]


def redrawn(rows: Sequence[Row]) -> int:
    """How many versions were thrown away for these rows."""
    return sum(row["redrawn"] for row in rows if row["steepness"] == 0)


def stars(wins: Wins) -> str:
    """Wins as the paper prints them: an asterisk where they are not significant."""
    return f"{wins.wins}{'' if wins.significant else '*'}"


def p_text(p_value: float) -> str:
    """A p-value to read: 0.054, 4.1e-11."""
    return f"{p_value:.4f}" if p_value >= 5e-4 else f"{p_value:.1e}"
