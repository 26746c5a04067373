"""Labels, and how annotators answer -> how far labels of an example agree beyond its class, and what to make of that.

If annotators err independently, all that two labels of an example have in common is its class: given the class, the
residuals of two annotators are uncorrelated. The class is hidden, but averaged over its probabilities the product of
two residuals is still zero in the mean, for that is the slope of the log-likelihood towards correlated errors. So
labels can show that annotators do not err independently. How large the correlation is, labels cannot show: errors that
mislead most annotators look like the truth.

If errors are correlated, n votes carry less information than n independent ones: they count as n^(1 - b). The most
probable class stays the same; only how sure it is changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, log_ndtr, ndtr
from scipy.stats import norm

from crowdwise._arrays import Floats
from crowdwise._limits import DISCOUNT, OVERFITTED_LABELS, USUAL_CORRELATION
from crowdwise.crowd.vote_sharing import LabelPairs
from crowdwise.em.confusion import Incidence
from crowdwise.em.posterior import Counting
from crowdwise.labels.crowd_labels import CrowdLabels
from crowdwise.rows.chunks import Chunk, Sums


def residual_sums(
    chunk: Chunk,
    counting: Counting,
    posterior: Floats,
    confusion: Floats,
    weight: Floats,
    step: int = 1,
    levels: Floats | None = None,
) -> Sums:
    """Sums over every so many examples of a chunk: products of the residuals of two labels, and their scale.

    A residual is a label less what is expected of its annotator: a vector of ones and zeros, or with `levels` a number,
    as errors of one level and of four are not the same.
    """
    labels, of_label, copies, answers, who_labelled = chunk.keep(
        "residual labels", lambda: _thinned(chunk, counting, step)
    )
    answers_squared, weights_squared = answers.power(2), who_labelled.power(2)
    codes = np.eye(counting.n_classes) if levels is None else levels[:, np.newaxis]
    every, annotator, left, right = slice(None, None, step), labels.annotator_index, copies.left, copies.right
    of_pair = labels.example_index[left]
    shared = 2 * copies.share * of_label[left] * of_label[right]  # as far as two share a vote they are no two
    votes, posterior, weight = counting.votes(chunk)[every] @ codes, posterior[every], weight[every]
    products, scale = np.zeros((2, len(votes)))
    for k in range(posterior.shape[1]):
        expected = confusion[:, k] @ codes
        length = np.einsum("ld,ld->l", expected, expected)
        off = (codes**2).sum(axis=1) - 2 * expected @ codes.T + length[:, np.newaxis]  # squared, of every answer
        spread = np.sqrt(np.maximum(np.einsum("lc,lc->l", confusion[:, k], off), 0.0))
        away = votes - who_labelled @ expected
        together = np.einsum("id,id->i", away, away)
        alone = answers_squared @ off.ravel()
        scales = (who_labelled @ spread) ** 2 - weights_squared @ spread**2
        if len(left):
            residuals = [codes[labels.values[side]] - expected[annotator[side]] for side in (left, right)]
            together -= np.bincount(of_pair, shared * np.einsum("pd,pd->p", *residuals), len(votes))
            scales -= np.bincount(of_pair, shared * spread[annotator[left]] * spread[annotator[right]], len(votes))
        products += posterior[:, k] * (together - alone)
        scale += posterior[:, k] * scales
    return Sums(product=float(weight @ products), scale=float(weight @ scale), square=float(weight @ products**2))


def _thinned(chunk: Chunk, counting: Counting, step: int) -> tuple[CrowdLabels, Floats, LabelPairs, Any, Any]:
    """Labels of every so many examples, what they count, which share a vote, and two matrices of what they count."""
    if step == 1:
        labels, of_label, copies = chunk.labels, counting.label_weights(chunk), counting.copies(chunk)
    else:
        labels = chunk.labels[::step]
        copies = counting.sharing.pairs(labels)
        of_label = copies.weights(labels.n_labels)
    return labels, of_label, copies, Incidence.of(labels, of_label).matrix, labels._as_sparse(of_label)


def correlation_of(sums: Sums) -> tuple[float, float]:
    """The mean correlation of two labels of an example given its class, and its standard error; zeros if unknown."""
    if sums.scale <= 0:
        return 0.0, 0.0
    return sums.product / sums.scale, float(np.sqrt(sums.square)) / sums.scale


def has_common_errors(correlation: float, error: float, labels_per_class: float) -> float:
    """From 0, errors are independent, to 1, correlated as is usual: what labels show, as far as they can show it.

    A priori there are as probably correlated errors as not, and if there are, the correlation is exponentially
    distributed around what is usual: the posterior mean of the correlation relative to that, at most 1, is returned.
    Where labels cannot show it, 1 is assumed.

    Examples
    --------
    >>> from crowdwise.em.common_errors import has_common_errors
    >>> [round(has_common_errors(shown, 0.01, 1e6), 2) for shown in (0.0, 0.02, 0.05)]
    [0.04, 0.34, 0.97]
    """
    if error <= 0:
        return 1.0
    usual, centre = USUAL_CORRELATION, correlation - error**2 / USUAL_CORRELATION
    low, high = -centre / error, (usual - centre) / error  # no correlation, and the usual one
    if_some = error**2 / (2 * usual**2) - correlation / usual + log_ndtr(-low) - np.log(usual)
    if_none = -0.5 * (correlation / error) ** 2 - np.log(error * np.sqrt(2 * np.pi))
    mass = float(ndtr(-low))
    relative = 0.0  # the mean of a normal distribution that is cut off at zero, and at most one
    if mass > 0:
        below = centre * (ndtr(high) - ndtr(low)) + error * (norm.pdf(low) - norm.pdf(high))
        relative = float(below / usual + ndtr(-high)) / mass
    shown = float(expit(if_some - if_none)) * relative
    return 1 - (1 - shown) * labels_per_class / (OVERFITTED_LABELS + labels_per_class)


@dataclass(frozen=True)
class Discount:
    """How much less information votes carry than independent ones."""

    common: float = 0.0  # from 0, errors are independent, to 1, correlated as is usual on public crowds
    measured: bool = False  # whether labels or known answers show it; else it is assumed

    def effective_votes(self, n_votes: Floats) -> Floats:
        """How many independent votes so many carry as much information as."""
        return n_votes ** (1 - DISCOUNT * self.common)

    def proba(self, posterior: Floats, n_votes: Floats) -> Floats:
        """Stated probabilities, from a posterior of (n_examples, n_classes) and votes per example, at least one.

        Examples
        --------
        >>> import numpy as np
        >>> from crowdwise.em.common_errors import Discount
        >>> Discount(common=1.0).proba(np.array([[0.9, 0.1]]), np.array([5.0])).round(2).tolist()
        [[0.67, 0.33]]
        """
        if self.common == 0:
            return posterior
        with np.errstate(divide="ignore"):
            shares = np.log(posterior.T, order="C")
        shares *= n_votes ** (-DISCOUNT * self.common)
        np.exp(shares, out=shares)  # much faster than a power, and zero stays zero
        return np.ascontiguousarray((shares / np.add.reduce(shares)).T)


def number_of_votes(labels: CrowdLabels, weight: Floats, merit: Floats) -> Floats:
    """Votes per example, those of annotators with less merit counting less beside others; at least one.

    `weight` is what each label counts, `merit` that of each annotator.
    """
    counted = merit[labels.annotator_index]
    squares = labels._sum_per_example(weight * counted**2)
    total = labels._sum_per_example(weight * counted)
    return np.maximum(np.divide(total**2, squares, out=np.ones_like(total), where=squares > 0), 1.0)
