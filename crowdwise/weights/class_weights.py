"""The current consensus -> how much each class counts, so that a rare one is not lost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdwise._arrays import ROUNDING, Floats
from crowdwise.labels._encode import encode_declared
from crowdwise.labels.crowd_labels import CrowdLabels

# An example whose leading class has changed this often is taken as tied.
_MOST_CHANGES = 3


def check_class_weight(class_weight: Any, classes: NDArray[Any]) -> Floats | str | None:
    """What the parameter means: None, "balanced", or the weight of each class, 1 if a dict does not name it."""
    if class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced"):
        return class_weight
    if not isinstance(class_weight, dict):
        raise ValueError(f'class_weight must be None, "balanced" or a dict of classes; got {class_weight!r}.')
    known = {value: position for position, value in enumerate(classes.tolist())}
    weights = np.ones(len(classes))
    for name, weight in class_weight.items():
        if name not in known:
            raise ValueError(f"class_weight names the class {name!r}; the classes are {classes.tolist()}.")
        if not (isinstance(weight, int | float | np.number) and np.isfinite(weight) and weight > 0):
            raise ValueError(f"class_weight of {name!r} must be a finite number above 0; got {weight!r}.")
        weights[known[name]] = weight
    return weights


def weights_of_classes(class_weight: Any, labels: CrowdLabels, classes: NDArray[Any]) -> Floats | str:
    """What each of some classes counts, or "balanced"; `class_weight` may name others that the labels declare."""
    assert labels.classes is not None
    checked = check_class_weight(class_weight, labels.classes)
    if checked is None:
        return np.ones(len(classes))
    return checked if isinstance(checked, str) else checked[encode_declared(classes, labels.classes).astype(np.intp)]


def leading_shares(votes: Floats) -> Floats:
    """The consensus as shares of classes: one for the class with the most votes; classes that tie share it."""
    top = votes == votes.max(axis=1, keepdims=True)
    return top / top.sum(axis=1, keepdims=True)


@dataclass
class Leaders:
    """The leading class of every example from round to round.

    Weights by class move expertise, and expertise may move the lead: an example on the fence could go back and
    forth between two classes for ever, and the rounds with it. At the third change it is taken as tied for good.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise.weights.class_weights import Leaders
    >>> leaders, one, other = Leaders(), np.array([[2.0, 1.0]]), np.array([[1.0, 2.0]])
    >>> [leaders.shares(votes).tolist() for votes in (one, other, one, other, one)]
    [[[1.0, 0.0]], [[0.0, 1.0]], [[1.0, 0.0]], [[0.5, 0.5]], [[0.5, 0.5]]]
    """

    _last: Floats | None = field(default=None, init=False)
    _changes: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64), init=False)

    def shares(self, votes: Floats) -> Floats:
        """The shares of the classes after one more round, of the shape of `votes`."""
        shares = leading_shares(votes)
        if self._last is None:
            self._last, self._changes = shares, np.zeros(len(shares), dtype=np.int64)
            return shares
        undecided = self._changes < _MOST_CHANGES
        self._changes += undecided & (shares != self._last).any(axis=1)
        tied = undecided & (self._changes == _MOST_CHANGES)
        shares = np.where(tied[:, np.newaxis], (shares + self._last) / 2, shares)
        self._last = np.where(undecided[:, np.newaxis], shares, self._last)
        return self._last


def class_weights(checked: Floats | str, proba: Floats, weight: Floats) -> Floats:
    """The weight of each class for the current consensus of (n_examples, n_classes) and weights of examples.

    If balanced, every class gets the same total, and the examples keep theirs; a class that no one is in has weight 1.
    """
    if not isinstance(checked, str):
        return checked
    mass = weight @ proba
    held, least = mass > 0, ROUNDING * mass.sum()  # squares of larger weights would overflow
    return np.where(held, mass.sum() / (held.sum() * np.maximum(mass, least)), 1.0)
