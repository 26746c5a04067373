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
    CrowdRidgeClassifierCV,
    aggregate,
)


def crowd_labels(answers: Answers) -> CrowdLabels:
    """Our form of the labels."""
    table = {"example": answers.example, "annotator": answers.annotator, "label": answers.value}
    sizes = {"examples": answers.n_examples, "annotators": answers.n_annotators, "classes": answers.n_classes}
    return CrowdLabels.from_table(table, **{name: np.arange(size) for name, size in sizes.items()})


def from_labels(consensus: Callable[[CrowdLabels], np.ndarray]) -> Method:
    """A method that looks at labels alone."""

    def given(X: Any, answers: Answers) -> Fit:
        labels = crowd_labels(answers)
        return lambda: (consensus(labels), None)

    return given


def model(make: Callable[[float], Any], voice: bool, tuned: bool = False) -> Method:
    """A crowd's classifier, with or without a voice in the consensus; `make` is told the C of the same classifier."""

    def given(X: np.ndarray, answers: Answers) -> Fit:
        labels = crowd_labels(answers)

        def fit() -> tuple[np.ndarray, Any]:
            C = same_classifier(X, labels.majority(), answers.n_classes)[1] if tuned else 1.0
            fitted = make(C).fit(X, labels)
            return fitted.consensus(X, labels, use_model=voice).label, lambda rows: class_scores(fitted, rows)

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
    """The model of Raykar et al., but with the classifier out of fold."""
    return lambda C: CrowdLogisticClassifier(steepness, l2=1 / C, kinds=1, joint=True, init="votes")


def any_logistic(steepness: float) -> Callable[[float], Any]:
    """Any classifier: the same as everyone's."""
    return lambda C: CrowdClassifier(plain_logistic(C), steepness=steepness)


LABELS_ONLY: dict[str, Method] = {
    "majority": from_labels(lambda labels: labels.majority()),
    "aggregate": from_labels(lambda labels: aggregate(labels).label),
    "aggregate one kind": from_labels(lambda labels: aggregate(labels, kinds=1).label),
    "aggregate confusion": from_labels(lambda labels: aggregate(labels, annotator_model="confusion").label),
    "aggregate one-coin": from_labels(lambda labels: aggregate(labels, annotator_model="one-coin").label),
}
# A number is the steepness: 0 is without weights. "tuned" has the C that cross-validation on the majority vote chooses.
# "default" is what one gets without choosing anything.
WITH_FEATURES: dict[str, Method] = {
    "default": model(lambda _: CrowdLogisticClassifier(), voice=True),
    "ridge 0": model(ridge(0.0), voice=False),
    "ridge 0 + voice": model(ridge(0.0), voice=True),
    "ridge 2": model(ridge(2.0), voice=False),
    "ridge 2 + voice": model(ridge(2.0), voice=True),
    "logistic 0": model(logistic(0.0), voice=False),
    "logistic 0 + voice": model(logistic(0.0), voice=True),
    "logistic 2": model(logistic(2.0), voice=False),
    "logistic 2 + voice": model(logistic(2.0), voice=True),
    "logistic 0 tuned + voice": model(logistic(0.0), voice=True, tuned=True),
    "any(logistic) 0 tuned + voice": model(any_logistic(0.0), voice=True, tuned=True),
    "any(logistic) 2 tuned + voice": model(any_logistic(2.0), voice=True, tuned=True),
}

if __name__ == "__main__":
    serve({**LABELS_ONLY, **WITH_FEATURES}.__getitem__, *sys.argv[1:])
