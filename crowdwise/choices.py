"""Automatic decisions of a fit as data: what was chosen, by which score and limit, and why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Choice:
    """One decision that a fit took by itself.

    Parameters
    ----------
    name : str
        What was decided.
    chosen : str or float
        The outcome.
    score, limit : float or None, default=None
        What was compared with what; None if there was nothing to compare.
    reason : str, default=""
        Why, in a sentence.
    """

    name: str
    chosen: str | float
    score: float | None = None
    limit: float | None = None
    reason: str = ""
