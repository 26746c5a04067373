"""Our configurations in `crowds.py`, each run by it in a fresh process. Add one here and it takes part.

python ours.py METHOD TASK.npz DIRECTORY REPEAT     a method on a task; results go to the directory as they come
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from contest import Answers, Fit, Method, plain_logistic, same_classifier, serve

from crowdwise import (
    CrowdClassifier,
    CrowdLabels,
    CrowdLogisticClassifier,
    CrowdRidgeClassifier,
    CrowdRidgeClassifierCV,
    aggregate,
)
from crowdwise.em import Confusion, OneCoin


def crowd_labels(answers: Answers) -> CrowdLabels:
    """Our form of the labels."""
    table = {"example": answers.example, "annotator": answers.annotator, "label": answers.value}
    sizes = {"examples": answers.n_examples, "annotators": answers.n_annotators, "classes": answers.n_classes}
    return CrowdLabels.from_table(table, **{name: np.arange(size) for name, size in sizes.items()})


def majority(X: Any, answers: Answers) -> Fit:
    """The majority vote, and its share of the votes."""
    labels = crowd_labels(answers)
    tally = np.zeros((answers.n_examples, answers.n_classes))
    np.add.at(tally, (answers.example, answers.value), 1.0)
    return lambda: (labels.majority(), None, tally.max(axis=1) / np.maximum(tally.sum(axis=1), 1.0))


def aggregated(**settings: Any) -> Method:
    """The consensus of labels alone."""

    def given(X: Any, answers: Answers) -> Fit:
        labels = crowd_labels(answers)

        def fit() -> tuple[np.ndarray, None, np.ndarray]:
            result = aggregate(labels, **settings)
            return result.label, None, result.confidence

        return fit

    return given


def model(make: Callable[[float], Any], labels_alone: bool = False, tuned: bool = False) -> Method:
    """A crowd's classifier and its consensus, or that of the labels alone; `make` gets the C of the same classifier."""

    def given(X: np.ndarray, answers: Answers) -> Fit:
        labels = crowd_labels(answers)

        def fit() -> tuple[np.ndarray, Any, np.ndarray]:
            C = same_classifier(X, labels.majority(), answers.n_classes)[1] if tuned else 1.0
            fitted = make(C).fit(X, labels)
            consensus = fitted.results_.label_consensus if labels_alone else fitted.results_.consensus
            return consensus.label, lambda rows: class_scores(fitted, rows), consensus.confidence

        return fit

    return given


def class_scores(fitted: Any, X: np.ndarray) -> np.ndarray:
    """A column for every class."""
    scores = fitted.decision_function(X)
    return np.column_stack([-scores, scores]) if scores.ndim == 1 else scores


def ridge(steepness: float) -> Callable[[float], Any]:
    """l2 is chosen by the model itself."""
    return lambda _: CrowdRidgeClassifierCV((steepness,))


def logistic(steepness: float) -> Callable[[float], Any]:
    """With a penalty that was chosen beforehand."""
    return lambda C: CrowdLogisticClassifier(steepness, l2=1 / C)


def any_logistic(steepness: float) -> Callable[[float], Any]:
    """Any classifier: the same as everyone's."""
    return lambda C: CrowdClassifier(plain_logistic(C), steepness=steepness)


LABELS_ONLY: dict[str, Method] = {
    "majority": majority,
    "aggregate": aggregated(),
    "aggregate confusion": aggregated(annotator_model=Confusion()),
    "aggregate one coin": aggregated(annotator_model=OneCoin()),
}
# A number is the steepness: 0 is without weights. "tuned" has the C that cross-validation on the majority vote chooses.
# "default" is what one gets without choosing anything.
WITH_FEATURES: dict[str, Method] = {
    "default": model(lambda _: CrowdLogisticClassifier()),
    "ridge": model(lambda _: CrowdRidgeClassifier()),
    "ridge 0": model(ridge(0.0)),
    "ridge 0 labels alone": model(ridge(0.0), labels_alone=True),
    "ridge 2": model(ridge(2.0)),
    "ridge 2 labels alone": model(ridge(2.0), labels_alone=True),
    "logistic 0": model(logistic(0.0)),
    "logistic 2": model(logistic(2.0)),
    "logistic 0 tuned": model(logistic(0.0), tuned=True),
    "any(logistic) 0 tuned": model(any_logistic(0.0), tuned=True),
    "any(logistic) 2 tuned": model(any_logistic(2.0), tuned=True),
}

if __name__ == "__main__":
    serve({**LABELS_ONLY, **WITH_FEATURES}.__getitem__, *sys.argv[1:])
