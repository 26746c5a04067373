"""A fitted model, or the result of `aggregate`, and the labels of its fit in the same order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from crowdwise._arrays import Array, Bools, Floats, Positions
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.results.fit_results import FitResults, fit_and_labels, is_representative


@dataclass(frozen=True, eq=False)
class FitRecord:
    """What was found, and the labels that it was found from, in the same order."""

    model: Any
    results: FitResults
    labels: CrowdLabels

    @classmethod
    def of(cls, model: Any, labels: Any) -> FitRecord:
        """From a fitted model or the result of `aggregate`, and anything that describes the labels of its fit."""
        return cls(model, *fit_and_labels(model, labels))

    @property
    def annotators(self) -> Any:
        """How annotators answer."""
        return self.results.fitted

    @property
    def classes(self) -> Array | None:
        """The classes; None for ratings."""
        return self.labels.classes

    @property
    def proba(self) -> Floats:
        """Probability of every class by labels and model, of shape (n_examples, n_classes)."""
        return self.results.proba

    @property
    def codes(self) -> Positions:
        """The position of every example's consensus among the classes, of shape (n_examples,)."""
        return self.results.codes

    @property
    def has_truth(self) -> Bools:
        """The examples whose answer the fit was given."""
        return self.results.has_truth

    @property
    def truth(self) -> Array:
        """The answers that the fit was given: positions of classes, -1 where unknown; or ratings, and NaN there."""
        if self.results.truth is not None:
            return self.results.truth
        return np.full(len(self.labels), np.nan if self.classes is None else -1)

    def is_representative(self, answers: Array) -> bool:
        """Whether the examples of known answer may be a random draw; ratings do not show it."""
        return is_representative(self.results, self.labels, answers)

    def confusion(self, chosen: Array) -> Floats:
        """Confusion matrices of some annotators (a mask)."""
        return self.results.confusion[chosen]
