"""Settings that a user gave -> the same settings, or an error with what was expected and what came."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np


def check_number(
    name: str, value: Any, *, low: float = 0.0, above: bool = False, high: float = math.inf, auto: bool = False
) -> float:
    """A finite number from `low`, or above it, to `high`, as a float; NaN stands for "auto" where that is allowed.

    Examples
    --------
    >>> from crowdwise._checks import check_number
    >>> check_number("l2", 3)
    3.0
    """
    if auto and isinstance(value, str) and value == "auto":
        return math.nan
    number = _as_float(value)
    if not math.isfinite(number) or number < low or number > high or (above and number == low):
        relation = ">" if above else ">="
        limit = "" if high == math.inf else f" and <= {high:g}"
        choice = ' or "auto"' if auto else ""
        raise ValueError(f"{name} must be a finite number {relation} {low:g}{limit}{choice}; got {value!r}.")
    return number


def _as_float(value: Any) -> float:
    """A real number as a float; NaN for anything else, bools and numbers too large for a float too."""
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def check_whole(name: str, value: Any, *, low: int = 1) -> int:
    """A whole number of at least `low`."""
    if not isinstance(value, Integral) or isinstance(value, bool | np.bool_) or value < low:
        raise ValueError(f"{name} must be a whole number >= {low}; got {value!r}.")
    return int(value)


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> Any:
    """One of a few values, in the type that it is listed in: 1 does not stand for True, nor 1.0 for 1."""
    plain = value.item() if isinstance(value, np.generic) else value  # a grid of parameters may be an array
    for choice in choices:
        if type(plain) is type(choice) and plain == choice:
            return choice
    shown = [f'"{choice}"' if isinstance(choice, str) else repr(choice) for choice in choices]
    raise ValueError(f"{name} must be {', '.join(shown[:-1])} or {shown[-1]}; got {value!r}.")


def check_rounds(max_rounds: Any, tol: Any) -> None:
    """Raise if the rounds could not be turned with these: at least one round, and a change of at least 0."""
    if max_rounds is not None:
        check_whole("max_rounds", max_rounds)
    check_number("tol", tol)


def check_seed(random_state: Any) -> np.random.Generator:
    """A generator from what NumPy takes for a seed."""
    try:
        if not isinstance(random_state, bool | np.bool_):
            return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        pass
    raise ValueError(f"random_state must be a whole number >= 0, a numpy Generator or None; got {random_state!r}.")
