"""A fitted model, or the result of `aggregate`, and its labels -> one record with the same fields for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from crowdwise._arrays import Array, Bools, Floats, Positions
from crowdwise.consensus import Consensus, RatingConsensus
from crowdwise.em.aggregate import Aggregation
from crowdwise.em.fitted import FittedAnnotators
from crowdwise.exceptions import AlignmentError, LabelError
from crowdwise.labels.align import as_labels
from crowdwise.labels.build import Kind
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.encode import encode_declared
from crowdwise.labels.frames import is_frame
from crowdwise.labels.truth import is_known
from crowdwise.results import FitResults, StreamResults
from crowdwise.truths.check import TruthCheck
from crowdwise.truths.representativeness import Representativeness


@dataclass(frozen=True, eq=False)
class FitRecord:
    """What was found, and the labels that it was found from, in the same order."""

    model: Any  # estimator or Aggregation
    results: FitResults  # what it says about examples and annotators
    labels: CrowdLabels  # the labels of the fit, in the order of its examples and coded by its classes
    annotators: FittedAnnotators | None  # how annotators answer, if the model has confusion matrices

    @classmethod
    def of(cls, model: Any, labels: Any) -> FitRecord:
        """From a fitted model or an aggregation, and anything that describes the labels of its fit."""
        results = results_of(model)
        kind: Kind = "rating" if isinstance(results.consensus, RatingConsensus) else "class"
        crowd = in_order_of(as_labels(labels, kind=kind), results)
        fitted = model.fitted if isinstance(model, Aggregation) else getattr(model.fitted_, "annotators", None)
        return cls(model, results, crowd, fitted if isinstance(fitted, FittedAnnotators) else None)

    @property
    def classes(self) -> Array | None:
        """The classes; None for ratings."""
        return self.labels.classes

    @property
    def proba(self) -> Floats:
        """Probability of every class by labels and model, of shape (n_examples, n_classes)."""
        if not isinstance(self.results.consensus, Consensus):
            raise LabelError("ratings have no classes, and so no probabilities of classes.")
        return self.results.consensus.proba

    @property
    def codes(self) -> Positions:
        """The position of every example's consensus among the classes, of shape (n_examples,)."""
        if not isinstance(self.results.consensus, Consensus):
            raise LabelError("ratings have no classes.")
        return self.results.consensus.codes

    @property
    def has_truth(self) -> Bools:
        """The examples whose answer the fit was given."""
        truth = self.results.truth
        return np.zeros(len(self.labels), dtype=bool) if truth is None else is_known(truth)

    @property
    def truth(self) -> Array:
        """The answers that the fit was given: positions of classes, -1 where unknown; or ratings, and NaN there."""
        if self.results.truth is not None:
            return self.results.truth
        return np.full(len(self.labels), np.nan if self.classes is None else -1)

    def is_representative(self, answers: Array) -> bool:
        """Whether the examples of known answer may be a random draw; ratings do not show it."""
        if self.classes is None:
            return True
        if isinstance(check := self.results.truth_check, TruthCheck):
            return check.at_random
        labelled = np.flatnonzero(self.labels.labels_per_example > 0)
        known = np.flatnonzero(answers[labelled] >= 0)
        return Representativeness.of(self.proba[labelled], known, answers[labelled][known]).is_representative

    def confusion(self, chosen: Array) -> Floats:
        """Confusion matrices of some annotators (a mask).

        The probability of answering c (last axis) if the truth is k; NaN for annotators without labels.
        """
        if self.annotators is None:
            raise LabelError("ratings have no classes, and so no confusion matrices.")
        return self.annotators.confusion[chosen]


def results_of(model: Any) -> FitResults:
    """What a fitted model or an aggregation found out about its examples and annotators."""
    if isinstance(model, Aggregation):
        return model.results
    if not hasattr(model, "fit"):
        order = (
            " Are labels and model the other way round?" if isinstance(model, CrowdLabels) or is_frame(model) else ""
        )
        raise TypeError(
            f"a fitted model of crowdwise or the result of aggregate() is needed; got {type(model).__name__}.{order}"
        )
    check_is_fitted(model)
    results = getattr(model, "results_", None)
    if isinstance(results, StreamResults):
        raise TypeError(
            f"this {type(model).__name__} was fitted to blocks, of which no single examples are kept. "
            "Fit in memory for this."
        )
    if not isinstance(results, FitResults):
        raise TypeError(
            f"{type(model).__name__} finds no consensus of annotators. Use one of the crowd models, such as "
            "CrowdLogisticClassifier, or aggregate(labels)."
        )
    return results


def in_order_of(labels: CrowdLabels, results: FitResults) -> CrowdLabels:
    """The labels of a fit in the order of its results and in its classes; an error if they are other labels."""
    consensus = results.consensus
    if not np.array_equal(labels.annotators, results.annotators.annotators):
        raise LabelError(
            f"these labels are not those of the fit: they are of {labels.n_annotators} annotators (such as "
            f"{labels.annotators[:3].tolist()}), and the fit had {len(results.annotators)} (such as "
            f"{results.annotators.annotators[:3].tolist()}). Give the labels that the model was fitted to."
        )
    if len(labels) != len(consensus):
        raise AlignmentError(
            f"these labels are of {len(labels)} examples, and the fit had {len(consensus)}. Give the labels that the "
            "model was fitted to."
        )
    if labels.id_source != "position" and not np.array_equal(labels.examples, consensus.examples):
        place = encode_declared(consensus.examples, labels.examples).astype(np.intp)
        if (np.sort(place) == np.arange(len(labels))).all():
            labels = labels[place]
        elif labels.named_examples:
            raise AlignmentError(
                f"the examples of these labels (such as {labels.examples[:3].tolist()}) are not those of the fit (such "
                f"as {consensus.examples[:3].tolist()}). Give the labels that the model was fitted to."
            )
    return labels if isinstance(consensus, RatingConsensus) else labels.with_classes(consensus.classes)
