"""Labels of two annotators on the same examples -> Cohen's kappa, plain or weighted, of resamples of these."""

from __future__ import annotations

import numpy as np

from crowdwise.arrays import Array, Codes, Floats
from crowdwise.labels.crowd_labels import CrowdLabels


def resampled_kappas(
    labels: CrowdLabels, first: Codes, second: Codes, distance: Floats, n_resamples: int, rng: np.random.Generator
) -> Floats:
    """The kappa of pairs of annotators in resamples of the examples that the two share.

    Parameters
    ----------
    labels : CrowdLabels
        Classes.
    first, second : ndarray of shape (n_pairs,)
        Positions of the two annotators, sorted by the first.
    distance : ndarray of shape (n_classes, n_classes)
        How far apart two classes are: how much it counts if one is said for the other.
    n_resamples : int
        How many resamples.
    rng : Generator
        What draws them.

    Returns
    -------
    kappa : ndarray of shape (n_pairs, n_resamples)
        NaN where both gave one and the same class only.
    """
    order = np.argsort(labels.annotator_index, kind="stable")
    example, value = labels.example_index[order], labels.values[order].astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(labels.labels_per_annotator)])
    kappa = np.empty((len(first), n_resamples))
    said = np.full(len(labels), -1)  # by the first annotator of the pair
    last = -1
    for i, (one, other) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        if one != last:
            said[:] = -1
            said[example[ends[one] : ends[one + 1]]] = value[ends[one] : ends[one + 1]]
            last = one
        theirs = slice(ends[other], ends[other + 1])
        kappa[i] = _kappa_of_pair(said[example[theirs]], value[theirs], distance, n_resamples, rng)
    return kappa


def _kappa_of_pair(one: Array, other: Array, distance: Floats, n_resamples: int, rng: np.random.Generator) -> Floats:
    """One minus the distance observed over the distance by chance; -1 in `one` means no label."""
    n_classes = len(distance)
    both = one >= 0
    times = np.bincount(one[both] * n_classes + other[both])
    cell = np.flatnonzero(times)
    used, codes = np.unique(np.divmod(cell, n_classes), return_inverse=True)
    a, b = codes.reshape(2, -1)
    distance, classes = distance[np.ix_(used, used)], np.eye(len(used))
    n = int(times.sum())
    table = rng.multinomial(n, times[cell] / n, size=n_resamples).astype(np.float64)
    by_chance = ((table @ classes[a] @ distance) * (table @ classes[b])).sum(axis=1)
    observed = table @ distance[a, b] * n
    return 1 - np.divide(observed, by_chance, out=np.full(len(table), np.nan), where=by_chance > 0)
