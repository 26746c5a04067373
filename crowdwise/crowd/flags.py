"""Squared errors of annotators against the model -> their expertise, and what is remarkable about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdwise.arrays import Floats
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import shown

# With labels missing, an annotator is judged as if they had given this many more labels of the crowd's average quality.
PRIOR_LABELS = 3.0
# A perfect annotator would get infinite expertise; no mean squared error is taken to be smaller than this.
_SMALLEST_ERROR = 1e-8
# With fewer labels than this, an annotator is flagged: their expertise is mostly the crowd's.
_FEW_LABELS = 3
# Annotators with the same labels on at least this many examples are flagged as copies.
_COPY_LABELS = 10


@dataclass(frozen=True)
class Precision:
    """How squared errors become expertise: one over the mean squared error, shrunk where labels are missing.

    Parameters
    ----------
    mass : ndarray of shape (n_annotators,)
        Total weight of the examples that each annotator labelled.
    prior : ndarray of shape (n_annotators,)
        Weight of the crowd's average error in each annotator's: zero for those who labelled everything, so that
        complete labels give the paper's expertise exactly.
    floor : float
        The smallest mean squared error.
    """

    mass: Floats
    prior: Floats
    floor: float

    @classmethod
    def of(cls, mass: Floats, answered: Floats, present: float, span: float) -> Precision:
        """From the weights that were labelled, and that there were to label."""
        prior = PRIOR_LABELS * (1 - np.minimum(answered / present, 1.0))
        return cls(mass, prior, _SMALLEST_ERROR * span)

    def mean_errors(self, errors: Floats) -> Floats:
        """Mean squared errors from sums of squared errors."""
        return self._shrunk(errors, self._crowd_error(errors))

    def expertise(self, errors: Floats) -> Floats:
        """Expertise from sums of squared errors."""
        return 1.0 / self.mean_errors(errors)

    def objective(self, errors: Floats, penalties: Floats) -> Floats:
        """Minus the mean log-likelihood of the labels, up to constants, plus the ridge penalty, for every round.

        The crowd's error, and the scale of the penalty, are set anew in each round from the expertise then; here all
        rounds are judged as the last one judges, so that they can be compared.

        Parameters
        ----------
        errors : ndarray of shape (n_rounds, n_annotators)
            Sums of squared errors.
        penalties : ndarray of shape (n_rounds,)
            Penalties at the scale of the last round.

        Returns
        -------
        objective : ndarray of shape (n_rounds,)
        """
        strength = self.mass + self.prior
        logarithms = np.log(self._shrunk(errors, self._crowd_error(errors[-1])))
        return (logarithms @ strength + penalties) / strength.sum()

    def _crowd_error(self, errors: Floats) -> float:
        return float(errors.sum() / self.mass.sum())

    def _shrunk(self, errors: Floats, crowd: float) -> Floats:
        return np.maximum((errors + self.prior * crowd) / (self.mass + self.prior), self.floor)


def flag_annotators(labels: CrowdLabels, agreement: Floats) -> dict[Any, tuple[str, ...]]:
    """What is remarkable about annotators; those of whom nothing is are left out.

    Parameters
    ----------
    labels : CrowdLabels
        All labels.
    agreement : ndarray of shape (n_annotators,)
        How far each annotator's labels go with the scores; below zero is worse than chance.

    Returns
    -------
    flags : dict from annotator to tuple of str
    """
    n_labels = labels.labels_per_annotator
    twins = _copies(labels, n_labels)
    flags: dict[Any, tuple[str, ...]] = {}
    for i, name in enumerate(labels.annotators.tolist()):
        found = []
        if n_labels[i] == 0:
            found.append("no labels")
        elif n_labels[i] < _FEW_LABELS:
            found.append("few labels")
        if n_labels[i] and agreement[i] < 0:
            found.append("worse than chance")
        if i in twins:
            found.append(f"same labels as {shown(labels.annotators[twins[i]])}")
        if found:
            flags[name] = tuple(found)
    return flags


def _copies(labels: CrowdLabels, n_labels: NDArray[np.int64]) -> dict[int, int]:
    """Annotators who gave exactly the same labels to the same examples as another one."""
    seen: dict[tuple[float, float], int] = {}
    twins: dict[int, int] = {}
    sums, where = _keys(labels)
    for i in np.flatnonzero(n_labels >= _COPY_LABELS).tolist():
        other = seen.setdefault((float(sums[i]), float(where[i])), i)
        if other != i and _same_labels(labels, i, other):
            twins[i], twins[other] = other, i
    return twins


def _keys(labels: CrowdLabels) -> tuple[Floats, Floats]:
    """Two numbers an annotator that are the same for the same labels: random sums, exact in any order of addition."""
    n_values = 1 if labels.classes is None else len(labels.classes)
    largest = max(2**52 // max(labels.n_examples * n_values, 1), 2)
    n_keys = min(labels.n_examples, 1000) if labels.is_complete else labels.n_examples
    key = np.random.default_rng(0).integers(1, largest, n_keys).astype(np.float64)
    if labels.is_complete:  # all labelled the same examples: the first of them tell most annotators apart
        some = labels.values.reshape(labels.shape)[:n_keys]
        return key @ some.astype(np.float64), np.zeros(labels.n_annotators)
    at = key[labels.example_index]
    return labels.sum_per_annotator(at * labels.values), labels.sum_per_annotator(at)


def _same_labels(labels: CrowdLabels, i: int, j: int) -> bool:
    if labels.is_complete:
        matrix = labels.values.reshape(labels.shape)
        return np.array_equal(matrix[:, i], matrix[:, j])
    one, other = labels.annotator_index == i, labels.annotator_index == j
    example = labels.example_index
    return np.array_equal(example[one], example[other]) and np.array_equal(labels.values[one], labels.values[other])
