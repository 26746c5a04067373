"""Labels -> how far annotators agree beyond chance: all of them together, and each pair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from crowdwise.arrays import Array, Bools, Codes, Floats
from crowdwise.checks import check_whole
from crowdwise.crowd.disagreement import disagreement
from crowdwise.exceptions import LabelError
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.labels.frames import make_frame


def krippendorff_alpha(labels: CrowdLabels) -> float:
    """Krippendorff's alpha: agreement corrected for chance, whatever labels are missing.

    One minus the disagreement within examples over the disagreement between any two labels of the crowd. Classes differ
    or do not (nominal); ratings differ by the square of their difference (interval).

    Parameters
    ----------
    labels : CrowdLabels
        Classes or ratings. Examples with fewer than two labels say nothing and are left out.

    Returns
    -------
    alpha : float
        1 for perfect agreement, around 0 for chance, below 0 for less than that. NaN if all labels are the same: nobody
        can show then whether annotators agree or know one answer only.

    Examples
    --------
    >>> from crowdwise import CrowdLabels, krippendorff_alpha
    >>> labels = CrowdLabels.from_matrix([["a", "a", None], ["b", "b", "b"], ["a", "b", "a"], ["b", None, "b"]])
    >>> round(krippendorff_alpha(labels), 3)
    0.625
    """
    n = labels.labels_per_example
    paired = n > 1
    if not paired.any():
        raise LabelError("no example has two labels: there is nothing to compare.")
    kept = labels[paired]
    within = float((disagreement(kept, scale=None) / (n[paired] - 1)).sum()) / kept.n_labels
    at_random = _pair_sum_of_all(kept) / (kept.n_labels * (kept.n_labels - 1))
    return float(1 - within / at_random) if at_random > 0 else float("nan")


def _pair_sum_of_all(labels: CrowdLabels) -> float:
    """What `disagreement` would be if all labels were of one example: the sum over unordered pairs."""
    if labels.classes is None:
        return float(labels.n_labels * ((labels.values - labels.values.mean()) ** 2).sum())
    counts = labels.tally.sum(axis=0, dtype=np.float64)
    return 2.0 * (counts.sum() ** 2 - (counts**2).sum())  # four for a pair that differs


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
    """

    first: Array
    second: Array
    n_shared: Codes
    kappa: Floats

    def __len__(self) -> int:
        return len(self.kappa)

    def __repr__(self) -> str:
        known = self.kappa[~np.isnan(self.kappa)]
        median = f"; median kappa {np.median(known):.2f}" if len(known) else ""
        return f"PairAgreement: {len(self):,} pairs of annotators who share examples{median}"

    def to_frame(self) -> Any:
        """A data frame with the columns "first", "second", "shared" and "kappa", one row per pair.

        Returns
        -------
        frame : pandas.DataFrame, or polars.DataFrame where pandas is not installed
        """
        return make_frame({"first": self.first, "second": self.second, "shared": self.n_shared, "kappa": self.kappa})


def cohen_kappas(labels: CrowdLabels, *, min_shared: int = 1) -> PairAgreement:
    """Cohen's kappa of every pair of annotators, on the examples that both labelled.

    Parameters
    ----------
    labels : CrowdLabels
        Classes.
    min_shared : int, default=1
        Leave out pairs with fewer examples in common.

    Returns
    -------
    pairs : PairAgreement
        With `first`, `second`, `n_shared` and `kappa`; in proportion to the pairs that share examples, not to all.

    Examples
    --------
    >>> from crowdwise import CrowdLabels, cohen_kappas
    >>> labels = CrowdLabels.from_matrix([[0, 0, None], [1, 1, None], [0, 1, None], [1, 1, 1]])
    >>> pairs = cohen_kappas(labels, min_shared=2)
    >>> pairs.first.tolist(), pairs.second.tolist(), pairs.n_shared.tolist(), pairs.kappa.tolist()
    ([0], [1], [4], [0.5])
    """
    check_whole("min_shared", min_shared)
    if labels.classes is None:
        raise LabelError('cohen_kappas needs classes, and these labels are real numbers (kind="rating").')
    given = _matrix(labels, np.ones(labels.n_labels, dtype=bool))
    shared = _upper(given.T @ given)
    first, second = shared.coords
    n_shared = shared.data.astype(np.int64)
    same, by_chance = np.zeros(len(first)), np.zeros(len(first))
    for k in range(len(labels.classes)):
        of_class = _matrix(labels, labels.values == k)
        same += _at(of_class.T @ of_class, first, second)
        shared_use = of_class.T @ given  # of the examples shared with each other annotator
        by_chance += _at(shared_use, first, second) / n_shared * _at(shared_use, second, first) / n_shared
    same /= n_shared
    kappa = np.divide(same - by_chance, 1 - by_chance, out=np.full(len(same), np.nan), where=by_chance < 1)
    keep = n_shared >= min_shared
    return PairAgreement(
        labels.annotators[first[keep]], labels.annotators[second[keep]], n_shared[keep], kappa[keep]
    )  # fmt: skip


def _matrix(labels: CrowdLabels, chosen: Bools) -> sparse.csr_array:
    """A sparse matrix of examples by annotators with a one for every chosen label."""
    entries = (np.ones(int(chosen.sum())), (labels.example_index[chosen], labels.annotator_index[chosen]))
    return sparse.csr_array(entries, shape=labels.shape)


def _upper(products: sparse.csr_array) -> sparse.coo_array:
    """The entries above the diagonal, row by row."""
    found = sparse.coo_array(sparse.triu(products, k=1))
    order = np.lexsort(found.coords[::-1])
    coords = tuple(axis[order].astype(np.int64) for axis in found.coords)
    return sparse.coo_array((found.data[order], coords), shape=found.shape)


def _at(products: sparse.csr_array, rows: Codes, columns: Codes) -> Floats:
    """Entries of a sparse matrix at many places at once; zero where nothing is stored."""
    stored = sparse.coo_array(products)
    width = stored.shape[1]
    key = stored.coords[0].astype(np.int64) * width + stored.coords[1]
    order = np.argsort(key)
    wanted = rows * width + columns
    place = np.minimum(np.searchsorted(key, wanted, sorter=order), max(len(key) - 1, 0))
    if len(key) == 0:
        return np.zeros(len(wanted))
    found = order[place]
    return np.where(key[found] == wanted, stored.data[found], 0.0)
