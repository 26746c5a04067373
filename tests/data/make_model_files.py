"""Write a small file of every model that needs no other package, with what it predicts: for later versions to read.

    python tests/data/make_model_files.py FOLDER

A folder is made once for a format, by the version that introduces it, and not changed afterwards.
"""

import json
import sys
from pathlib import Path

import numpy as np

from crowdwise import (
    CrowdLabels,
    CrowdLogisticClassifier,
    CrowdRidgeClassifier,
    CrowdRidgeClassifierCV,
    CrowdRidgeRegressor,
    aggregate,
)
from crowdwise.em import Confusion
from crowdwise.paper.theory import EasyFirstPerceptron
from crowdwise.weights import Smooth


def models():
    """Fitted models by name, and the features that they predict from."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 2)).round(2)
    codes = ((X[:, :1] + rng.normal(size=(12, 3)) / 2) > 0).astype(int)
    names = {"annotators": ["ann", "bob", 3], "examples": [f"row {i}" for i in range(12)]}
    labels = CrowdLabels.from_matrix(np.array(["cat", "dog"], dtype=object)[codes], **names)
    ratings = CrowdLabels.from_matrix(codes + X[:, 1:].round(1), scale="interval", **names)
    return X, {
        "ridge": CrowdRidgeClassifier(curriculum=Smooth(c=4.0), class_weight={"cat": 2.0}).fit(X, labels),
        "ridge_cv": CrowdRidgeClassifierCV(steepnesses=(0.0, 2.0), cv=3).fit(X, labels),
        "regressor": CrowdRidgeRegressor().fit(X, ratings),
        "logistic": CrowdLogisticClassifier(steepness=1.0, l2=1.0, annotator_model=Confusion(2.0)).fit(X, labels),
        "perceptron": EasyFirstPerceptron(order="random", random_state=np.random.default_rng(1)).fit(X, labels),
        "aggregate": aggregate(labels),
    }


def expected(model, X):
    """Numbers and names that a model gives, as JSON has them."""
    if not hasattr(model, "predict"):
        return {"label": model.label.tolist(), "proba": model.proba.tolist(), "accuracy": model.accuracy.tolist()}
    score = getattr(model, "decision_function", model.predict)
    found = {"score": score(X).tolist(), "consensus": model.consensus_.tolist(), "examples": model.examples_.tolist()}
    return found | {"annotators": model.annotators_.tolist(), "disagreement": model.disagreement_.tolist()}


def main(folder):
    X, fitted = models()
    folder.mkdir(parents=True)
    for name, model in fitted.items():
        model.save(folder / f"{name}.crowdwise")
    found = {name: expected(model, X) for name, model in fitted.items()}
    (folder / "expected.json").write_text(json.dumps({"X": X.tolist(), "models": found}) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
