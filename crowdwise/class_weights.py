"""The current consensus -> how much each class counts, so that a rare one is heard."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def check_class_weight(class_weight: Any, classes: NDArray[Any]) -> Floats | str | None:
    """What the parameter means: None, "balanced", or an array with the weight of each class.

    Parameters
    ----------
    class_weight : None, "balanced" or dict
        As in scikit-learn; a class that a dict does not name has weight 1.
    classes : ndarray of shape (n_classes,)
        The classes.

    Returns
    -------
    checked : None, "balanced" or ndarray of shape (n_classes,)
    """
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


def leading_shares(votes: Floats) -> Floats:
    """The consensus as shares of classes: one for the class with the most votes; classes that tie share it.

    Parameters
    ----------
    votes : ndarray of shape (n_examples, n_classes)
        Sums of expertise, or of labels.

    Returns
    -------
    shares : ndarray of shape (n_examples, n_classes)
    """
    top = votes == votes.max(axis=1, keepdims=True)
    return top / top.sum(axis=1, keepdims=True)


def class_weights(checked: Floats | str, proba: Floats, weight: Floats) -> Floats:
    """The weight of each class for the current consensus.

    Parameters
    ----------
    checked : "balanced" or ndarray of shape (n_classes,)
        What `check_class_weight` gave.
    proba : ndarray of shape (n_examples, n_classes)
        The current consensus: probability or share of each class.
    weight : ndarray of shape (n_examples,)
        How much each example counts otherwise.

    Returns
    -------
    weights : ndarray of shape (n_classes,)
        If balanced, every class gets the same total, and the examples keep theirs; a class that nobody is in has
        weight 1.
    """
    if not isinstance(checked, str):
        return checked
    mass = weight @ proba
    held = mass > 0
    return np.where(held, mass.sum() / (held.sum() * np.where(held, mass, 1.0)), 1.0)
