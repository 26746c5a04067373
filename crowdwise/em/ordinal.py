"""Counts -> confusion matrices of annotators who are harsh or lenient, exact or vague, where labels have an order.

An annotator's matrix is that of the crowd, tilted by two numbers: with c the level of the label and k that of the truth,

    log p(c | k) = log crowd(c | k) + shift * (c - k) + width * (c - k)**2 + a constant per row

A positive shift gives higher labels than the crowd does, a positive width labels that are further from the truth. This
is an exponential family: the best shift and width are unique, and found by Newton's method. The prior is that of
`Shared`, labels of the crowd's quality added to every row, and draws both numbers towards zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from crowdwise.arrays import Floats
from crowdwise.checks import check_number
from crowdwise.em.confusion import pooled

# Newton's steps are halved at most so often, and end when one promises to gain no more than this per label.
_MOST_STEPS, _MOST_HALVINGS, _ENOUGH = 100, 40, 1e-13


@dataclass(frozen=True)
class Ordinal:
    """The crowd's confusion matrix, tilted per annotator: two numbers, one for harsh or lenient, one for exact or vague.

    For labels with an order; ``kind="ordinal"`` takes it by default. With two levels it is the same as `Shared` of the
    same strength.

    Parameters
    ----------
    strength : float, default=1.0
        Labels of the crowd's quality that are added to every row; above 0.
    levels : tuple of float or None, default=None
        Where each class is; None is evenly spaced. Neither unit nor origin matters.

    Examples
    --------
    >>> from crowdwise import aggregate
    >>> from crowdwise.em import Ordinal
    >>> stars = [[1, 1, 2], [5, 5, 5], [3, 3, 4], [2, 2, 3], [4, 4, 5]]
    >>> aggregate(stars, kind="ordinal", annotator_model=Ordinal(strength=3.0)).label.tolist()
    [1, 5, 3, 2, 4]
    """

    strength: float = 1.0
    levels: tuple[float, ...] | None = None

    def check(self) -> None:
        """Raise if the strength is not above 0, or levels are not different numbers."""
        check_number("strength", self.strength, above=True)
        if self.levels is not None:
            levels = np.asarray(self.levels)
            if levels.dtype.kind not in "iuf" or not np.isfinite(levels).all() or len(set(self.levels)) < len(levels):
                raise ValueError(f"levels must be finite numbers, all different; got {self.levels!r}.")

    def crowd(self, counts: Floats, last: Floats | None) -> Floats:
        """The matrix of all labels together, unless that of the round before explains the labels better."""
        candidates = [pooled(counts)] if last is None else [pooled(counts), last]
        if last is None:
            return candidates[0]
        return max(candidates, key=lambda crowd: self._explained(counts, crowd))  # the first one of equals

    def estimate(self, counts: Floats, crowd: Floats) -> Floats:
        """Matrices from counts."""
        return np.exp(self._tilted(counts + self.strength * crowd, crowd)).reshape(counts.shape)

    def nearest(self, confusion: Floats, crowd: Floats) -> Floats:
        """The matrices of this model that are nearest to others: where rounds leap to need not be one of them."""
        return np.exp(self._tilted(confusion, crowd)).reshape(confusion.shape)

    def log_prior(self, confusion: Floats, crowd: Floats) -> float:
        """Minus the strength times the divergence of the crowd's rows from each annotator's."""
        return -self.strength * float((xlogy(crowd, crowd) - xlogy(crowd, confusion)).sum())

    def log_evidence(self, counts: Floats, crowd: Floats) -> float:
        """Logarithm of the probability of the labels over all shifts and widths, by Laplace's method."""
        n_classes = counts.shape[-1]
        powers = self._powers(n_classes)
        prior = np.broadcast_to(self.strength * crowd, counts.shape)
        log_crowd = np.broadcast_to(np.log(crowd), counts.shape)

        def integral(seen: Floats, log_confusion: Floats) -> float:
            """Of exp(sum of seen * log_confusion), without a constant that both integrals have."""
            of_rows = log_confusion.reshape(-1, n_classes, n_classes)
            total = seen.reshape(of_rows.shape).sum(axis=-1)
            *_, determinant = _curvature(np.exp(of_rows), total, powers)
            return float((seen * log_confusion).sum() - np.log(determinant).sum() / 2)

        log_confusion = self._tilted(counts + prior, crowd).reshape(counts.shape)
        return integral(counts + prior, log_confusion) - integral(prior, log_crowd)

    def _explained(self, counts: Floats, crowd: Floats) -> float:
        """Log-likelihood of counts plus log prior, with the best matrices for a given one of the crowd."""
        confusion = self.estimate(counts, crowd)
        return float(xlogy(counts, confusion).sum()) + self.log_prior(confusion, crowd)

    def _powers(self, n_classes: int) -> Floats:
        """Distances of labels (last axis) from the truth to the power of 1, 2, 3 and 4, in units of the whole range."""
        levels = np.arange(n_classes) if self.levels is None else np.asarray(self.levels, dtype=np.float64)
        if len(levels) != n_classes:
            raise ValueError(f"Ordinal has {len(levels)} levels, and the labels have {n_classes} classes.")
        distance = (levels - levels[:, np.newaxis]) / max(np.ptp(levels), np.finfo(np.float64).tiny)
        return distance ** np.arange(1, 5)[:, np.newaxis, np.newaxis]

    def _tilted(self, counts: Floats, crowd: Floats) -> Floats:
        """Logarithms of the matrices that make counts most probable, an annotator's on each difficulty by itself."""
        n_classes = counts.shape[-1]
        counts = counts.reshape(len(counts), -1, n_classes, n_classes)
        base = np.broadcast_to(np.log(crowd).reshape(counts.shape[1:]), counts.shape)
        flat = (-1, n_classes, n_classes)
        return best_tilts(counts.reshape(flat), base.reshape(flat), self._powers(n_classes))


def best_tilts(counts: Floats, base: Floats, powers: Floats) -> Floats:
    """The tilts of matrices that make counts most probable, by Newton's method for all matrices at once.

    Parameters
    ----------
    counts : ndarray of shape (n_matrices, n_classes, n_classes)
        How often each label (last axis) was given.
    base : ndarray of shape (n_matrices, n_classes, n_classes)
        Logarithms of the matrices that are tilted.
    powers : ndarray of shape (4, n_classes, n_classes)
        Distance of the label from the truth, to the power of 1, 2, 3 and 4.

    Returns
    -------
    log_confusion : ndarray of shape (n_matrices, n_classes, n_classes)
        Logarithms of the tilted matrices.
    """
    total, features = counts.sum(axis=-1), powers[:2]
    wanted = np.einsum("nkc,fkc->nf", counts, features)
    tilt = np.zeros((len(counts), 2))
    log_confusion = _normal(base)
    value = np.einsum("nkc,nkc->n", counts, log_confusion)
    for _ in range(_MOST_STEPS):
        moments, curvature, determinant = _curvature(np.exp(log_confusion), total, powers)
        gradient = wanted - np.einsum("nk,nfk->nf", total, moments[:, :2])
        first, mixed, second = curvature
        step = np.stack([second * gradient[:, 0] - mixed * gradient[:, 1],
                         first * gradient[:, 1] - mixed * gradient[:, 0]], axis=-1)  # fmt: skip
        step /= determinant[:, np.newaxis]
        if (np.einsum("nf,nf->n", gradient, step) <= _ENOUGH * (1 + total.sum(axis=1))).all():
            break
        for _ in range(_MOST_HALVINGS):
            ahead = _normal(base + np.einsum("nf,fkc->nkc", tilt + step, features))
            reached = np.einsum("nkc,nkc->n", counts, ahead)
            too_far = reached < value
            if not too_far.any():
                break
            step[too_far] /= 2
        step[too_far] = 0.0
        tilt += step
        log_confusion = np.where(too_far[:, np.newaxis, np.newaxis], log_confusion, ahead)
        value = np.maximum(value, reached)
    return log_confusion


def _curvature(confusion: Floats, total: Floats, powers: Floats) -> tuple[Floats, tuple[Floats, Floats, Floats], Floats]:
    """Moments of distances per row, minus the second derivatives of the log-likelihood by the tilt, their determinant."""
    moments = np.einsum("nkc,pkc->npk", confusion, powers)
    one, two, three, four = moments.swapaxes(0, 1)

    def summed(per_row: Floats) -> Floats:
        return np.einsum("nk,nk->n", total, per_row)

    tiny = np.finfo(np.float64).tiny
    first, mixed, second = summed(two - one * one), summed(three - one * two), summed(four - two * two)
    return moments, (first, mixed, second), np.maximum(first * second - mixed * mixed, tiny)


def _normal(log_weights: Floats) -> Floats:
    """Logarithms of rows scaled to be probabilities."""
    shifted = log_weights - log_weights.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def offset_and_spread(confusion: Floats, class_prior: Floats, levels: Floats) -> tuple[Floats, Floats]:
    """How far above the truth each annotator's labels are on average, and how they vary around their own average.

    Parameters
    ----------
    confusion : ndarray of shape (n_annotators, n_classes, n_classes)
        Probability of each label (last axis); NaN for annotators without labels.
    class_prior : ndarray of shape (n_classes,)
        How frequent each class is.
    levels : ndarray of shape (n_classes,)
        Where each class is.

    Returns
    -------
    offset : ndarray of shape (n_annotators,)
        In the unit of the levels; negative is below the truth.
    spread : ndarray of shape (n_annotators,)
        A standard deviation, in the same unit.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise.em.ordinal import offset_and_spread
    >>> lenient = np.array([[[0.0, 1.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]]])
    >>> offset, spread = offset_and_spread(lenient, np.array([0.5, 0.5, 0.0]), np.array([1.0, 2.0, 3.0]))
    >>> offset.tolist(), spread.round(4).tolist()
    ([0.75], [0.3536])
    """
    mean = confusion @ levels
    variance = np.einsum("lkc,lkc->lk", confusion, (levels - mean[..., np.newaxis]) ** 2)
    return (mean - levels) @ class_prior, np.sqrt(variance @ class_prior)
