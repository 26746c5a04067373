"""CrowdClassifier with settings for tests that compare digits, its slow twin, and estimators to put into it."""

import numpy as np
import pytest
from crowds import labels_of
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from crowdwise import CrowdClassifier

# A solver that gives the same to nearly all digits wherever it starts from.
EXACT = LogisticRegression(solver="newton-cholesky", max_iter=1000, tol=1e-12)
few_rounds = pytest.mark.filterwarnings("ignore::crowdwise.exceptions.CrowdConvergenceWarning")


def fit(X, matrix, n_classes=2, *, estimator=None, sample_weight=None, **settings):
    # Annotators who err independently.
    settings = {"max_rounds": 3, "tol": 0.0, "errors_in_common": False, **settings}
    return CrowdClassifier(estimator, **settings).fit(X, labels_of(matrix, n_classes), sample_weight=sample_weight)


def twin_counts(matrix, posterior, weight):
    """How often each annotator said what, by looking at one label after the other."""
    n_classes = len(posterior[0])
    counts = np.zeros((len(matrix[0]), n_classes, n_classes))
    for i, row in enumerate(matrix):
        for annotator, label in enumerate(row):
            if label is not None:
                for k in range(n_classes):
                    counts[annotator, k, label] += weight[i] * posterior[i][k]
    return counts


def twin_confusion(counts, strength):
    """Confusion matrices shrunk towards that of all labels, and of five that are assumed."""
    n_classes = counts.shape[1]
    total = [[sum(one[k, c] for one in counts) for c in range(n_classes)] for k in range(n_classes)]
    often = [sum(row[c] for row in total) + 1 / n_classes for c in range(n_classes)]
    assumed = [[0.8 * (c == k) + 0.2 * often[c] / sum(often) for c in range(n_classes)] for k in range(n_classes)]
    pooled = [[total[k][c] + 5 * assumed[k][c] for c in range(n_classes)] for k in range(n_classes)]
    pooled = [[count / sum(row) for count in row] for row in pooled]
    confusion = np.zeros_like(counts)
    for annotator, k in np.ndindex(counts.shape[:2]):
        row = [counts[annotator, k, c] + strength * pooled[k][c] for c in range(n_classes)]
        for c in range(n_classes):
            confusion[annotator, k, c] = row[c] / sum(row)
    return confusion


def twin_scores(X, posterior, weight, splits, class_weight, count):
    """Logarithms of out-of-fold probabilities of logistic regressions on copies made one by one."""
    n_classes = len(posterior[0])
    scores = np.zeros((len(X), n_classes))
    for learn, held_out in splits:
        rows, classes, weights = [], [], []
        admitted = [i for i in learn if weight[i] > 0]
        for i in admitted:
            kept = [k for k in range(n_classes) if posterior[i][k] >= 1e-3]
            for k in kept:
                rows.append(X[i])
                classes.append(k)
                weights.append(class_weight[k] * weight[i] * posterior[i][k] / sum(posterior[i][c] for c in kept))
        model = clone(EXACT).fit(rows, classes, sample_weight=weights)
        for i in held_out:
            probability = dict(zip(model.classes_.tolist(), model.predict_proba(X[[i]])[0].tolist(), strict=True))
            for k in range(n_classes):
                n_used = sum(count[i] for i in admitted)
                scores[i, k] = np.log((n_used * probability.get(k, 0.0) + 1) / (n_used + n_classes))
                scores[i, k] -= np.log(class_weight[k])
    return scores


def twin_likelihood(matrix, confusion):
    n_classes = confusion.shape[1]
    found = np.zeros((len(matrix), n_classes))
    for i, row in enumerate(matrix):
        for annotator, label in enumerate(row):
            if label is not None:
                for k in range(n_classes):
                    found[i, k] += np.log(confusion[annotator, k, label])
    return found


def twin_posterior(scores, likelihood, temperature, offset=0.0):
    prior = np.exp(temperature * scores + offset)
    prior /= prior.sum(axis=1, keepdims=True)
    joint = prior * np.exp(likelihood)
    return joint / joint.sum(axis=1, keepdims=True), np.log(joint.sum(axis=1))


def twin_temperature(scores, likelihood, weight, offset=0.0):
    """The best of many temperatures, then of many around it."""
    low, high = np.log(1e-3), np.log(1e2)

    def worth(t):
        return weight @ twin_posterior(scores, likelihood, np.exp(t), offset)[1] + t - np.exp(t)

    for _ in range(7):
        grid = np.linspace(low, high, 101)
        best = grid[np.argmax([worth(t) for t in grid])]
        step = grid[1] - grid[0]
        low, high = best - step, best + step
    return np.exp(best)


def twin_scaling(scores, likelihood, weight):
    """A temperature, and offsets under which each class is as frequent as labels make it: five rounds of both."""
    temperature, offset = twin_temperature(scores, likelihood, weight), np.zeros(scores.shape[1])
    for _ in range(5):
        posterior, _ = twin_posterior(scores, likelihood, temperature, offset)
        prior, _ = twin_posterior(scores, np.zeros_like(likelihood), temperature, offset)
        for k in range(scores.shape[1]):
            found, predicted = (weight @ proba[:, k] / weight.sum() for proba in (posterior, prior))
            offset[k] += np.log(found + 1e-3) - np.log(predicted + 1e-3)
        temperature = twin_temperature(scores, likelihood, weight, offset)
    return temperature, offset - offset.mean()


ESTIMATORS = {
    "none": None,
    "gradient boosting": GradientBoostingClassifier(n_estimators=10),
    "histogram boosting": HistGradientBoostingClassifier(max_iter=5, max_leaf_nodes=4, min_samples_leaf=5),
    "forest": RandomForestClassifier(20, min_samples_leaf=3),
    "svc": SVC(),
    "sgd": SGDClassifier(alpha=0.1),
    "ridge": RidgeClassifier(),
    "pipeline": make_pipeline(StandardScaler(), SVC()),
    "pipeline in pipeline": make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), DecisionTreeClassifier())),
}
