"""How correlated the residuals of two annotators are: a naive twin, and how many examples are enough."""

import numpy as np
from crowds import crowd, labels_of
from numpy.testing import assert_allclose

from crowdwise.crowd.vote_sharing import enough_pairs, label_pairs
from crowdwise.results._error_correlation import residual_pairs


def judges(seed=0, *, n_examples=300, n_judges=6, n_classes=3, accuracy=0.7):
    """Labels of judges who err independently, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_examples)
    wrong = (truth[:, None] + rng.integers(1, n_classes, (n_examples, n_judges))) % n_classes
    return np.where(rng.random((n_examples, n_judges)) < accuracy, truth[:, None], wrong), truth


def slow_correlation(matrix, expected, added=7.0):
    """{pair: shrunk correlation of deviations}, one example after the other."""
    codes = np.eye(3)
    away = {}
    for i, row in enumerate(matrix.tolist()):
        for one, other in [(a, b) for a in range(len(row)) for b in range(a + 1, len(row))]:
            if row[one] is not None and row[other] is not None:
                expects = expected(i, one, other)
                away.setdefault((one, other), []).append((codes[row[one]] - expects, codes[row[other]] - expects))
    every = [vector for both in away.values() for pair in both for vector in pair]
    usual = np.mean([vector @ vector for vector in every])
    return {
        pair: sum(a @ b for a, b in both)
        / (np.sqrt(sum(a @ a for a, _ in both) * sum(b @ b for _, b in both)) + added * usual)
        for pair, both in away.items()
    }


def as_dict(pairs, values):
    return dict(zip(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True), values.tolist(), strict=True))


def test_residual_correlations_equal_the_slow_twin():
    _, matrix = crowd(n_classes=3, missing=0.4)
    labels, rng = labels_of(matrix, 3), np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), len(labels))
    found = residual_pairs(labels, np.eye(3)[labels.values] - proba[labels.example_index])
    slow = slow_correlation(matrix, lambda i, *_: proba[i])
    fast = as_dict(found, found.correlation)
    assert fast.keys() == slow.keys()
    assert_allclose([fast[pair] for pair in slow], list(slow.values()))
    agreed = {
        pair: np.mean([row[pair[0]] == row[pair[1]] for row in matrix if None not in row[list(pair)]]) for pair in slow
    }
    assert_allclose([as_dict(found, found.agreement)[pair] for pair in slow], list(agreed.values()))


def test_pairs_are_of_annotators_who_share_an_example():
    _, matrix = crowd(n_classes=3, missing=0.4)
    labels = labels_of(matrix, 3)
    found = residual_pairs(labels, np.eye(3)[labels.values] - 1 / 3)
    together = {(a, b) for a in range(6) for b in range(a + 1, 6) if any(None not in row[[a, b]] for row in matrix)}
    assert as_dict(found, found.shared).keys() == together
    assert all(a < b for a, b in together)


def test_of_many_pairs_some_are_enough(set_constants):
    labels = labels_of(judges()[0], 3)
    assert enough_pairs(labels) is None
    set_constants("crowdwise.crowd.vote_sharing", _MOST_PAIRS=150)
    assert len(enough_pairs(labels)) == 10
    assert len(np.unique(enough_pairs(labels))) == 10


def test_pairs_of_labels_by_loops():
    _, matrix = crowd(missing=0.5, n_examples=15)
    labels = labels_of(matrix)
    found = zip(*(part.tolist() for part in label_pairs(labels)), strict=True)
    slow, at = set(), 0
    for i, row in enumerate(matrix):
        n = sum(value is not None for value in row)
        slow |= {(at + a, at + b, i) for a in range(n) for b in range(a + 1, n)}
        at += n
    assert set(found) == slow
