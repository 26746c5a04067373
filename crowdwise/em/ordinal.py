"""Counts -> confusion matrices of annotators who are harsh or lenient, exact or vague, where labels have an order.

An annotator's matrix is that of the crowd, tilted by two numbers. With c the level of the label, k that of the truth:

    log p(c | k) = log crowd(c | k) + shift * (c - k) + width * (c - k)**2 + a constant per row

A positive shift gives higher labels than the crowd does, a positive width labels that are further from the truth. This
is an exponential family: the best shift and width are unique, and found by Newton's method. The prior is that of
`Shared`, labels of the crowd's quality added to every row, and draws both numbers towards zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import xlogy

from crowdwise._arrays import ROUNDING, Floats
from crowdwise._checks import check_number
from crowdwise.em.confusion import Abstaining, AnnotatorModel, check_annotator_model, with_assumed
from crowdwise.labels.crowd_labels import CrowdLabels

# Newton's steps are halved at most so often; they end when one promises to gain nothing but rounding.
_MOST_STEPS, _MOST_HALVINGS = 100, 40
# Labels that are added to every row of the crowd's matrix, as if only the distance from the truth counted.
_LABELS_BY_DISTANCE = 200.0
# Smaller than this, relative to the other, is a direction in which nothing is known.
_SINGULAR = 1e-14


@dataclass(frozen=True)
class Ordinal:
    """Two numbers per annotator that tilt the crowd's confusion matrix: harsh or lenient, exact or vague.

    For labels with an order, where each annotator has a scale of their own, as on a panel of judges. Where the crowd's
    own matrix has few labels, only the distance from the truth counts in it. With two levels, matrices are those of
    `Shared` around that of the crowd.

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
    >>> aggregate(stars, annotator_model=Ordinal(strength=3.0)).label.tolist()
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

    def crowd(self, counts: Floats, class_counts: Floats | None = None) -> Floats:
        """The matrix of all labels together, drawn towards one in which only the distance from the truth counts."""
        return drawn_to_distances(with_assumed(counts.sum(axis=0), class_counts))

    def estimate(self, counts: Floats, crowd: Floats) -> Floats:
        """Matrices from counts."""
        base = np.broadcast_to(np.log(crowd), counts.shape)
        return np.exp(best_tilts(counts + self.strength * crowd, base, self._powers(counts.shape[-1])))

    def log_prior(self, confusion: Floats, crowd: Floats) -> Floats:
        """Minus the strength times the divergence of the crowd's rows from each annotator's."""
        return np.asarray(-self.strength * (xlogy(crowd, crowd) - xlogy(crowd, confusion)).sum(axis=(1, 2)))

    def _powers(self, n_classes: int) -> Floats:
        """Distances of labels (last axis) from the truth to the power of 1, 2, 3 and 4, in units of the whole range."""
        levels = np.arange(float(n_classes)) if self.levels is None else np.asarray(self.levels, dtype=np.float64)
        if len(levels) != n_classes:
            raise ValueError(f"Ordinal has {len(levels)} levels, and the labels have {n_classes} classes.")
        distance: Floats = (levels - levels[:, np.newaxis]) / max(np.ptp(levels), np.finfo(np.float64).tiny)
        return np.stack([distance, distance**2, distance**3, distance**4])


def drawn_to_distances(counts: Floats) -> Floats:
    """The crowd's matrix, drawn towards one in which only the distance from the truth counts.

    Rows that are free to be anything let levels drift: where an annotator is always two levels too harsh, these levels
    would be the truth, and everybody else lenient. Counts have a row for each true class.
    """
    n_classes = len(counts)
    apart = np.abs(np.arange(n_classes) - np.arange(n_classes)[:, np.newaxis])
    seen = np.bincount(apart.ravel(), counts.ravel()) + 1.0 / n_classes
    possible = np.bincount(apart.ravel(), np.repeat(counts.sum(axis=1), n_classes)) + 1.0
    by_distance = (seen / possible)[apart]
    rows = counts + _LABELS_BY_DISTANCE * by_distance / by_distance.sum(axis=1, keepdims=True)
    return rows / rows.sum(axis=1, keepdims=True)


def best_tilts(counts: Floats, base: Floats, powers: Floats) -> Floats:
    """Logarithms of tilted matrices that make counts most probable, by Newton's method for all matrices at once.

    Counts and `base`, the logarithms of what is tilted, are of (n_matrices, n_classes, n_classes), labels last;
    `powers` of (4, n_classes, n_classes) are the distances of the label from the truth, to the power of 1, 2, 3 and 4.
    """
    total, features = counts.sum(axis=-1), powers[:2]
    observed = np.einsum("nkc,fkc->nf", counts, features)
    tilt = np.zeros((len(counts), 2))
    log_confusion = _normal(base)
    value = np.einsum("nkc,nkc->n", counts, log_confusion)
    for _ in range(_MOST_STEPS):
        expected, information = _derivatives(np.exp(log_confusion), total, powers)
        gradient = observed - expected
        step = np.linalg.solve(information, gradient[..., np.newaxis])[..., 0]
        if (np.einsum("nf,nf->n", gradient, step) <= ROUNDING * (1 + total.sum(axis=1))).all():
            # The last step is too small to be seen in the likelihood, and doubles the number of right digits.
            return _normal(base + np.einsum("nf,fkc->nkc", tilt + step, features))
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


def _derivatives(confusion: Floats, total: Floats, powers: Floats) -> tuple[Floats, Floats]:
    """What the sums of distances and of their squares are expected to be, and the covariance of the two."""
    one, two, three, four = (np.einsum("nkc,kc->nk", confusion, power) for power in powers)
    covariance = np.stack([two - one * one, three - one * two, three - one * two, four - two * two], axis=-1)
    information = np.einsum("nk,nkf->nf", total, covariance).reshape(-1, 2, 2)
    # Rows of one certain label each would leave nothing to divide by.
    least = _SINGULAR * information.trace(axis1=1, axis2=2) + np.finfo(np.float64).tiny
    information += least[:, np.newaxis, np.newaxis] * np.eye(2)
    expected = np.stack([np.einsum("nk,nk->n", total, mean) for mean in (one, two)], axis=-1)
    return expected, information


def _normal(log_weights: Floats) -> Floats:
    """Logarithms of rows scaled to be probabilities."""
    shifted = log_weights - log_weights.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def uses_abstentions(labels: CrowdLabels) -> bool:
    """Whether abstaining is an answer of annotators, and someone abstained."""
    return labels.informative_abstentions and labels.n_abstentions > 0


def model_of_annotators(annotator_model: Any, labels: CrowdLabels) -> AnnotatorModel:
    """The model of annotators that was asked for, with the levels of the labels; by default `Shared`."""
    model = check_annotator_model(annotator_model)
    if labels.levels is not None and isinstance(model, Ordinal) and model.levels is None:
        model = replace(model, levels=tuple(labels.levels.tolist()))
    return Abstaining(model) if uses_abstentions(labels) else model


def level_scores(confusion: Floats, class_prior: Floats, levels: Floats) -> tuple[Floats, Floats, Floats]:
    """Three numbers per annotator: offset, spread and rank correlation; NaN for annotators without labels.

    The offset is how far labels are above the truth on average, the spread the standard deviation around that, both in
    the unit of the levels; the rank correlation is Spearman's, of label and truth, and 0 if all labels are the same.

    Examples
    --------
    >>> import numpy as np
    >>> from crowdwise.em.ordinal import level_scores
    >>> lenient = np.array([[[0.0, 1.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]]])
    >>> scores = level_scores(lenient, np.array([0.5, 0.5, 0.0]), np.array([1.0, 2.0, 3.0]))
    >>> [score.round(4).tolist() for score in scores]
    [[0.75], [0.433], [0.5774]]
    """
    joint = class_prior[:, np.newaxis] * confusion
    above = levels - levels[:, np.newaxis]
    offset = np.einsum("lkc,kc->l", joint, above)
    spread = np.sqrt(np.einsum("lkc,lkc->l", joint, (above - offset[:, np.newaxis, np.newaxis]) ** 2))
    label = joint.sum(axis=1)
    ranks = [np.cumsum(share, axis=-1) - share / 2 - 0.5 for share in (class_prior, label)]
    together = np.einsum("lkc,k,lc->l", joint, *ranks)
    squares = (class_prior @ ranks[0] ** 2) * np.einsum("lc,lc->l", label, ranks[1] ** 2)
    correlation = np.divide(together, np.sqrt(squares), out=0.0 * offset, where=squares > _SINGULAR**2)
    return offset, spread, correlation
