"""The peers of `crowds.py` and `scale.py`, run by them with the Python of their own environment (see `peers.txt`).

python peers.py METHOD TASK.npz DIRECTORY REPEAT     a method on a task; results go to the directory as they come
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
from contest import Answers, Fit, Method, plain_logistic, same_classifier, serve, spread

CROWD_KIT = {
    "crowd-kit majority": "MajorityVote",
    "crowd-kit Dawid-Skene": "DawidSkene",
    "crowd-kit one-coin": "OneCoinDawidSkene",
    "crowd-kit GLAD": "GLAD",
    "crowd-kit MACE": "MACE",
}


def crowd_kit(name: str) -> Method:
    """An aggregation of crowd-kit with its default settings."""
    import crowdkit.aggregation
    import pandas as pd

    def given(X: Any, answers: Answers) -> Fit:
        table = pd.DataFrame({"task": answers.example, "worker": answers.annotator, "label": answers.value})
        aggregation = getattr(crowdkit.aggregation, name)()
        return lambda: (aggregation.fit_predict(table).reindex(range(answers.n_examples)).to_numpy(), None)

    return given


def dawid_skene(X: Any, answers: Answers) -> Fit:
    """Dawid and Skene of crowd-kit, with its probabilities."""
    import crowdkit.aggregation
    import pandas as pd

    table = pd.DataFrame({"task": answers.example, "worker": answers.annotator, "label": answers.value})

    def fit() -> tuple[np.ndarray, None, np.ndarray]:
        proba = crowdkit.aggregation.DawidSkene().fit_predict_proba(table)
        proba = proba.reindex(range(answers.n_examples)).fillna(0)
        return proba.columns.to_numpy()[proba.to_numpy().argmax(axis=1)], None, proba.to_numpy().max(axis=1)

    return fit


def label_model(X: Any, answers: Answers) -> Fit:
    """Snorkel's model of labelling functions, with its default settings: annotators are the functions."""
    from snorkel.labeling.model import LabelModel

    given = np.nan_to_num(answers.matrix(), nan=-1).astype(int)

    def fit() -> tuple[np.ndarray, None]:
        model = LabelModel(cardinality=answers.n_classes, verbose=False)
        model.fit(given, seed=0, progress_bar=False)
        return model.predict(given), None

    return fit


def crowdlab(X: np.ndarray, answers: Answers) -> Fit:
    """As cleanlab documents it: majority vote, out-of-fold probabilities of a classifier fitted to it, consensus."""
    from cleanlab.multiannotator import get_label_quality_multiannotator, get_majority_vote_label
    from sklearn.model_selection import cross_val_predict

    matrix = answers.matrix()
    matrix = matrix[:, ~np.isnan(matrix).all(axis=0)]  # it refuses annotators without labels

    def fit() -> tuple[np.ndarray, None, np.ndarray]:
        majority = get_majority_vote_label(matrix, verbose=False)
        _, C = same_classifier(X, majority, answers.n_classes)
        proba = cross_val_predict(plain_logistic(C), X, majority, cv=5, method="predict_proba")
        proba = spread(proba, np.unique(majority), answers.n_classes)
        result = get_label_quality_multiannotator(matrix, proba, verbose=False)["label_quality"]
        return result["consensus_label"].to_numpy(), None, result["consensus_quality_score"].to_numpy()

    return fit


def raykar(X: np.ndarray, answers: Answers) -> Fit:
    """Logistic regression and confusion matrices together; the consensus is the expectation step of its own rounds."""
    from skactiveml.classifier.multiannotator import AnnotatorLogisticRegression

    matrix = answers.matrix()
    model = AnnotatorLogisticRegression(classes=list(range(answers.n_classes)), random_state=0)

    def fit() -> tuple[np.ndarray, Any]:
        model.fit(X, matrix)
        with np.errstate(divide="ignore"):
            posterior = np.log(model.predict_proba(X))
            likelihood = np.log(model.Alpha_[answers.annotator, :, answers.value.astype(int)])
        np.add.at(posterior, answers.example, likelihood)
        return posterior.argmax(axis=1), model.predict_proba

    return fit


def method_of(name: str) -> Method:
    """The peer of this name."""
    if name in CROWD_KIT:
        return dawid_skene if CROWD_KIT[name] == "DawidSkene" else crowd_kit(CROWD_KIT[name])
    return label_model if name == "snorkel LabelModel" else WITH_FEATURES[name]


WITH_FEATURES = {"cleanlab CROWDLAB": crowdlab, "scikit-activeml Raykar": raykar}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    serve(method_of, *sys.argv[1:])
