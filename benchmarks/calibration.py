"""Can probabilities be taken at their word? Predicted beside observed on real crowds whose truth is known.

python benchmarks/calibration.py

For unseen examples (the mean of five splits where the set has no test examples of its own): how often the classifier is
right, how sure it is on average, and by how much the two differ in ten bins of equal size (expected calibration error).
The same for the consensus on labelled examples.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from contest import same_classifier
from crowd_sets import WITH_FEATURES, CrowdSet, Split, load, splits

from crowdwise import CrowdLabels, CrowdLogisticClassifier
from crowdwise.exceptions import CrowdWarning


def calibration(proba: np.ndarray, truth: np.ndarray, n_bins: int = 10) -> tuple[float, float, float]:
    """Share right, mean probability of the class that is chosen, mean difference of the two within bins."""
    sure, right = proba.max(axis=1), proba.argmax(axis=1) == truth
    bins = np.array_split(np.argsort(sure, kind="stable"), n_bins)
    error = sum(abs(sure[rows].mean() - right[rows].mean()) * len(rows) for rows in bins) / len(sure)
    return float(right.mean()), float(sure.mean()), float(error)


def by_the_crowd(split: Split, labels: CrowdLabels) -> np.ndarray:
    return CrowdLogisticClassifier().fit(split.X, labels).predict_proba(split.X_test)


def by_majority(split: Split, labels: CrowdLabels) -> np.ndarray:
    assert labels.classes is not None
    scores, _ = same_classifier(split.X, labels.majority(), len(labels.classes))
    return scores(split.X_test)


def unseen(method: Callable[[Split, CrowdLabels], np.ndarray], data: CrowdSet) -> str:
    found = [calibration(method(part, data.labels[part.rows]), part.truth_test) for part in splits(data)]
    return shown(*np.mean(found, axis=0))


def main() -> None:
    warnings.simplefilter("ignore", CrowdWarning)
    print("| set | unseen: right, sure, error | majority's classifier | consensus | without the model |")
    print("|---|---|---|---|---|")
    for name in WITH_FEATURES:
        data = load(name)
        fitted = CrowdLogisticClassifier().fit(data.X, data.labels)
        alone = fitted.consensus(data.X, data.labels, use_model=False).score
        cells = [unseen(method, data) for method in (by_the_crowd, by_majority)]
        cells += [shown(*calibration(proba, data.truth)) for proba in (fitted.consensus_proba_, alone)]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def shown(right: float, sure: float, error: float) -> str:
    return f"{right:.3f}, {sure:.3f}, {error:.3f}"


if __name__ == "__main__":
    main()
