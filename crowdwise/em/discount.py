"""A posterior of independent votes -> the probabilities that are stated.

Annotators have errors in common, so n votes carry less information than n independent ones: they count as n^(1 - b).
The most probable class stays the same; only how sure it is changes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crowdwise._arrays import Floats
from crowdwise._limits import DISCOUNT
from crowdwise.labels.crowd_labels import CrowdLabels


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
        >>> from crowdwise.em.discount import Discount
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
