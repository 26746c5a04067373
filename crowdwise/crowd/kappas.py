"""Labels -> Cohen's kappa, plain or weighted, of every pair of annotators, and of resamples of their examples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from scipy import sparse

from crowdwise._arrays import Array, Codes, Floats, ratio
from crowdwise._checks import check_choice, check_whole
from crowdwise.crowd.vote_sharing import label_pairs
from crowdwise.exceptions import LabelError
from crowdwise.labels._align import as_labels
from crowdwise.labels._frames import make_frame
from crowdwise.labels.crowd_labels import CrowdLabels

Weights = Literal["linear", "quadratic"]

# Two labels of an example are a pair: so many are counted at a time.
_MOST_PAIRS = 2**18
# The place of each pair of annotators is kept in a square while that is small.
_SQUARE = 2**22


@dataclass(frozen=True, repr=False, eq=False)
class PairAgreement:
    """Cohen's kappa of every pair of annotators who share examples.

    Parameters
    ----------
    first, second : ndarray of shape (n_pairs,)
        Names of the two annotators, in the order of the labels' annotators.
    n_shared : ndarray of shape (n_pairs,)
        How many examples both labelled.
    kappa : ndarray of shape (n_pairs,)
        Agreement beyond chance; NaN if both gave one and the same class to all of them.
    low, high : ndarray of shape (n_pairs,) or None, default=None
        Ends of the interval of kappa, where one was asked for.
    """

    first: Array
    second: Array
    n_shared: Codes
    kappa: Floats
    low: Floats | None = None
    high: Floats | None = None

    def __len__(self) -> int:
        return len(self.kappa)

    def __repr__(self) -> str:
        known = self.kappa[~np.isnan(self.kappa)]
        median = f"; median kappa {np.median(known):.2f}" if len(known) else ""
        return f"PairAgreement: {len(self):,} pairs of annotators who share examples{median}"

    def to_frame(self) -> Any:
        """A data frame with the columns "first", "second", "shared", "kappa" and its interval, one row per pair.

        Returns
        -------
        frame : pandas.DataFrame, or polars.DataFrame where pandas is not installed
        """
        columns = {"first": self.first, "second": self.second, "shared": self.n_shared, "kappa": self.kappa}
        if self.low is not None and self.high is not None:
            columns |= {"low": self.low, "high": self.high}
        return make_frame(columns)


def cohen_kappas(labels: Any, *, min_shared: int = 1, weights: Weights | None = None) -> PairAgreement:
    """Cohen's kappa of every pair of annotators, on the examples that both labelled.

    Parameters
    ----------
    labels : CrowdLabels, or array-like of shape (n_examples, n_annotators)
        Classes.
    min_shared : int, default=1
        Leave out pairs with fewer examples in common.
    weights : {"linear", "quadratic"} or None, default=None
        For classes with an order, that of ``labels.classes``: how much more it counts if two are further apart.

    Returns
    -------
    pairs : PairAgreement
        With `first`, `second`, `n_shared` and `kappa`; in proportion to the pairs that share examples, not to all.

    Examples
    --------
    >>> from crowdwise import CrowdLabels
    >>> from crowdwise.crowd import cohen_kappas
    >>> labels = CrowdLabels.from_matrix([[0, 0, None], [1, 1, None], [0, 1, None], [1, 1, 1]])
    >>> pairs = cohen_kappas(labels, min_shared=2)
    >>> pairs.first.tolist(), pairs.second.tolist(), pairs.n_shared.tolist(), pairs.kappa.tolist()
    ([0], [1], [4], [0.5])
    """
    check_whole("min_shared", min_shared)
    check_choice("weights", weights, ("linear", "quadratic", None))
    labels = as_labels(labels, scale=None)
    if labels.classes is None:
        raise LabelError('cohen_kappas needs classes, and these labels are numbers (scale="interval").')
    distance = distances(np.arange(len(labels.classes), dtype=np.float64), weights)
    first, second, n_shared, kappa = kappas_of_pairs(labels, distance, min_shared)
    return PairAgreement(labels.annotators[first], labels.annotators[second], n_shared, kappa)


def kappas_of_pairs(labels: CrowdLabels, distance: Floats, min_shared: int) -> tuple[Codes, Codes, Codes, Floats]:
    """Pairs of annotators who share enough examples, how many these are, and their kappa.

    It is one minus the distance between their labels over the distance of labels drawn from what each of them uses.
    """
    first, second, n_shared = _pairs(labels, min_shared)
    n_pairs, n_classes = len(first), len(distance)
    place_of = _places(first, second, labels.n_annotators)
    observed = np.zeros(n_pairs)
    use = np.zeros((2, n_pairs * n_classes))  # of each class by the two of a pair, on the examples they share
    for block in _blocks(labels) if n_pairs else ():
        left, right, _ = label_pairs(block)
        pair = place_of(block.annotator_index[left], block.annotator_index[right])
        counted = pair >= 0
        pair, of_left, of_right = pair[counted], block.values[left[counted]], block.values[right[counted]]
        observed += np.bincount(pair, distance[of_left, of_right], n_pairs)
        for used, answers in zip(use, (of_left, of_right), strict=True):
            used += np.bincount(pair * n_classes + answers, minlength=len(used))
    of_first, of_second = use.reshape(2, n_pairs, n_classes)
    by_chance = np.einsum("pk,pk->p", of_first @ distance, of_second)
    kappa = 1 - ratio(n_shared * observed, by_chance)
    return first, second, n_shared, kappa


def distances(places: Floats, weights: Weights | None) -> Floats:
    """How far apart two levels are."""
    apart = np.abs(places[:, np.newaxis] - places)
    if weights is None:
        return (apart > 0).astype(np.float64)
    return apart if weights == "linear" else apart**2


def _blocks(labels: CrowdLabels) -> Iterator[CrowdLabels]:
    """Some examples at a time, so that what is made for every two labels of an example stays small."""
    n_labels = labels.labels_per_example
    block = np.cumsum(n_labels * (n_labels - 1) // 2) // _MOST_PAIRS
    ends = [*(np.flatnonzero(np.diff(block)) + 1).tolist(), len(labels)]
    for start, stop in pairwise([0, *ends]):
        yield labels[start:stop]


def _pairs(labels: CrowdLabels, min_shared: int) -> tuple[Codes, Codes, Codes]:
    """The pairs of annotators who share so many examples, sorted, and how many these are."""
    shared = sparse.csr_array((labels.n_annotators, labels.n_annotators))
    for block in _blocks(labels):
        labelled = block._as_sparse(np.ones(block.n_labels))
        shared = shared + sparse.triu(labelled.T @ labelled, k=1, format="csr")
    shared.sort_indices()
    pairs = sparse.coo_array(shared)
    enough = pairs.data >= min_shared
    first, second = (axis[enough].astype(np.int64) for axis in pairs.coords)
    return first, second, pairs.data[enough].astype(np.int64)


def _places(first: Codes, second: Codes, n_annotators: int) -> Callable[[Array, Array], Codes]:
    """What finds the places of pairs of annotators among sorted ones; -1 for those that are not there."""
    keys = first * n_annotators + second
    table = np.full(n_annotators**2 if n_annotators**2 <= _SQUARE else 0, -1)
    if len(table):
        table[keys] = np.arange(len(keys))

    def place_of(left: Array, right: Array) -> Codes:
        key = left.astype(np.int64) * n_annotators + right
        if len(table):
            return table[key]
        place = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
        return np.where(keys[place] == key, place, -1)

    return place_of


def resampled_kappas(
    labels: CrowdLabels, first: Codes, second: Codes, distance: Floats, n_resamples: int, rng: np.random.Generator
) -> Floats:
    """The kappa of pairs of annotators in resamples of the examples that the two share, of (n_pairs, n_resamples).

    Positions of annotators are sorted by the first. NaN where both gave one and the same class only.
    """
    order = np.argsort(labels.annotator_index, kind="stable")
    example, value = labels.example_index[order], labels.values[order].astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(labels.labels_per_annotator)])
    kappa = np.empty((len(first), n_resamples))
    answers = np.full(len(labels), -1)  # by the first annotator of the pair
    last = -1
    for i, (left, right) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        if left != last:
            answers[:] = -1
            answers[example[ends[left] : ends[left + 1]]] = value[ends[left] : ends[left + 1]]
            last = left
        theirs = slice(ends[right], ends[right + 1])
        kappa[i] = _kappa_of_pair(answers[example[theirs]], value[theirs], distance, n_resamples, rng)
    return kappa


def _kappa_of_pair(left: Array, right: Array, distance: Floats, n_resamples: int, rng: np.random.Generator) -> Floats:
    """One minus the distance observed over the distance by chance; -1 in `one` means no label."""
    n_classes = len(distance)
    both = left >= 0
    times = np.bincount(left[both] * n_classes + right[both])
    cell = np.flatnonzero(times)
    used, codes = np.unique(np.divmod(cell, n_classes), return_inverse=True)
    a, b = codes.reshape(2, -1)
    distance, classes = distance[np.ix_(used, used)], np.eye(len(used))
    n = int(times.sum())
    table = rng.multinomial(n, times[cell] / n, size=n_resamples).astype(np.float64)
    by_chance = ((table @ classes[a] @ distance) * (table @ classes[b])).sum(axis=1)
    return 1 - ratio(table @ distance[a, b] * n, by_chance)
