"""The whole method again, slow and obvious: loops over examples, pairs and annotators; no code is shared."""

import math
from itertools import combinations

import numpy as np

PRIOR_LABELS = 3.0
SMALLEST_ERROR = 1e-8


def code(label, classes):
    """A class as a vector: one number for two classes, one a class for more."""
    if len(classes) == 2:
        return np.array([-1.0 if label == classes[0] else 1.0])
    return np.array([1.0 if label == k else -1.0 for k in classes])


def distance(a, b):
    """Squared difference of two vectors; half of it if there is a component for every class."""
    return float(((a - b) ** 2).sum()) * (0.5 if len(a) > 1 else 1.0)


def disagreement(matrix, classes, relative_to, weight=None):
    """`matrix` is a list of lists with None for a missing label; `weight` is how often each row of it counts."""
    weight = [1.0] * len(matrix) if weight is None else weight
    sums, n_pairs = [], []
    for row in matrix:
        given = [code(label, classes) for label in row if label is not None]
        pairs = list(combinations(given, 2))
        sums.append(sum(distance(a, b) for a, b in pairs))
        n_pairs.append(len(pairs))
    if relative_to is None:
        return np.array(sums)
    if not sum(n_pairs):
        return np.zeros(len(matrix))
    crowd = sum(w * s for w, s in zip(weight, sums, strict=True)) / sum(
        w * n for w, n in zip(weight, n_pairs, strict=True)
    )
    per_pair = [s / n if n else crowd for s, n in zip(sums, n_pairs, strict=True)]
    if relative_to == "observed":
        largest = [max(p for p, n in zip(per_pair, n_pairs, strict=True) if n)] * len(matrix)
    else:
        largest = [largest_possible(sum(label is not None for label in row), len(classes)) for row in matrix]
        ceiling = max(p for p, n in zip(largest, n_pairs, strict=True) if n)
        largest = [p if n else ceiling for p, n in zip(largest, n_pairs, strict=True)]
    return np.array([p / top if top > 0 else 0.0 for p, top in zip(per_pair, largest, strict=True)])


def largest_possible(n, n_classes):
    """Mean over pairs when the classes are used in turn."""
    labels = [i % n_classes for i in range(n)]
    pairs = list(combinations(labels, 2))
    return 4 * sum(a != b for a, b in pairs) / len(pairs) if pairs else 0.0


def majority_code(row, classes):
    counts = {k: sum(label == k for label in row) for k in classes}
    tied = [k for k in classes if counts[k] == max(counts.values())]
    return sum(code(k, classes) for k in tied) / len(tied)


def mean_code(row, expertise, classes):
    given = [(z, code(label, classes)) for z, label in zip(expertise, row, strict=True) if label is not None]
    return sum(z * c for z, c in given) / sum(z for z, _ in given)


def leading(row, expertise, classes):
    """One for the class with the most expertise behind it; classes that tie share it."""
    votes = [sum(z for z, label in zip(expertise, row, strict=True) if label == k) for k in classes]
    tied = [vote == max(votes) for vote in votes]
    return [own / sum(tied) for own in tied]


def balanced(weights, shares, n_classes):
    """What makes the totals of all classes the same and keeps the total of all."""
    mass = [sum(w * share[k] for w, share in zip(weights, shares, strict=True)) for k in range(n_classes)]
    held = sum(m > 0 for m in mass)
    return [sum(mass) / (held * m) if m > 0 else 1.0 for m in mass]


def ridge(X, y, weight, l2, fit_intercept):
    """Weighted ridge regression by the normal equations, an unpenalised column of ones for the intercept."""
    Z = np.column_stack([X, np.ones(len(X))]) if fit_intercept else X
    penalty = l2 * np.eye(Z.shape[1])
    if fit_intercept:
        penalty[-1, -1] = 0.0
    left, right = penalty, np.zeros((Z.shape[1], y.shape[1]))
    for i in range(len(X)):
        left = left + weight[i] * np.outer(Z[i], Z[i])
        right = right + weight[i] * np.outer(Z[i], y[i])
    theta = np.linalg.solve(left, right)
    return (theta[:-1], theta[-1]) if fit_intercept else (theta, np.zeros(y.shape[1]))


def fit(
    X,
    matrix,
    classes,
    *,
    steepness=2.0,
    l2=1.0,
    relative_to="observed",
    init="majority",
    fit_intercept=True,
    sample_weight=None,
    n_rounds=10,
    choose_l2=None,
    reweight=None,
    class_weight=None,
    known=None,
):
    """Coefficients, intercept and expertise after a number of rounds; every example has a label.

    `choose_l2(weights, voices, consensus, sample_weight)` may give another l2 in each round, and
    `reweight(t, easiness, losses, sample_weight)` other weights. `class_weight` is a list, or "balanced". `known` has
    the true class of some examples by position: what the model learns there, and what annotators are compared with.
    """
    known = known or {}
    X = np.asarray(X, dtype=float)
    n_examples, n_annotators = len(matrix), len(matrix[0])
    given = [1.0] * n_examples if sample_weight is None else list(sample_weight)
    easiness = [2 / (1 + math.exp(steepness * d)) for d in disagreement(matrix, classes, relative_to, given)]
    easiness = [1.0 if i in known else e for i, e in enumerate(easiness)]
    answered = [[j for j in range(n_annotators) if row[j] is not None] for row in matrix]
    expertise, first, scores, worth = [1.0] * n_annotators, True, None, None
    led, changes = None, [0] * n_examples
    for t in range(1, n_rounds + 1):
        easy, own = easiness, given
        if reweight is not None:
            losses = None
            if not first:  # of the last model, against the present consensus
                losses = np.array(
                    [distance(mean_code(matrix[i], expertise, classes), scores[i]) for i in range(n_examples)]
                )
            easy = reweight(t, np.array(easiness), losses, np.array(given)).tolist()
        if class_weight is not None:
            shares = [
                [float(known[i] == k) for k in classes] if i in known else leading(row, expertise, classes)
                for i, row in enumerate(matrix)
            ]
            for i in range(n_examples):  # at the third change of the lead an example is tied for good
                if changes[i] == 3:
                    shares[i] = led[i]
                elif not first and shares[i] != led[i]:
                    changes[i] += 1
                    if changes[i] == 3:
                        shares[i] = [(a + b) / 2 for a, b in zip(shares[i], led[i], strict=True)]
            led = shares
            worth = class_weight
            if class_weight == "balanced":
                worth = balanced([g * e for g, e in zip(given, easy, strict=True)], shares, len(classes))
            own = [g * float(np.dot(share, worth)) for g, share in zip(given, shares, strict=True)]
        target, voice = [], []
        for i, row in enumerate(matrix):
            total = sum(expertise[j] for j in answered[i])
            mean = sum(expertise[j] * code(row[j], classes) for j in answered[i]) / total
            if i in known:
                target.append(code(known[i], classes))
            else:
                target.append(majority_code(row, classes) if first and init == "majority" else mean)
            voice.append(total)
        average = sum(o * v for o, v in zip(own, voice, strict=True)) / sum(own)
        relative = [v / average for v in voice]
        weights = [own[i] * easy[i] * relative[i] for i in range(n_examples)]
        if choose_l2 is not None:
            l2 = choose_l2(easy, expertise, np.array(target), np.array(own))
        coef, intercept = ridge(X, np.array(target), weights, l2, fit_intercept)
        errors, mass = [0.0] * n_annotators, [0.0] * n_annotators
        for i, row in enumerate(matrix):
            score = code(known[i], classes) if i in known else X[i] @ coef + intercept
            for j in answered[i]:
                errors[j] += own[i] * easy[i] * distance(code(row[j], classes), score)
                mass[j] += own[i] * easy[i]
        scores = [X[i] @ coef + intercept for i in range(n_examples)]
        crowd = sum(errors) / sum(mass)
        expertise, first = [], False
        for j in range(n_annotators):
            labelled = sum(own[i] for i in range(n_examples) if j in answered[i]) / sum(own)
            prior = PRIOR_LABELS * (1 - labelled)
            expertise.append(1 / max((errors[j] + prior * crowd) / (mass[j] + prior), SMALLEST_ERROR))
    return {
        "coef": coef,
        "intercept": intercept,
        "expertise": np.array(expertise),
        "l2": l2,
        "class_weight": worth,
        "weights": np.array(easy),
        "sample_weight": np.array(own),
    }
